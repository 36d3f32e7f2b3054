/* What streams are given to run: kernels, functions of the host, and what the doubles of libraries
 * do. What of a launch is wrong by its numbers is told at once; what a kernel does wrong, later. */
#include "tests/cuda/double/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct kernel_work {
    work head;
    module *module;
    ptx_launch launch;
    unsigned char *parameters;
} kernel_work;

typedef struct call_work {
    work head;
    CUresult (*fn)(void *argument);
    void *argument;
} call_work;

typedef struct host_work {
    work head;
    CUhostFn fn;
    void *argument;
} host_work;

static CUresult fault(CUresult error, const char *message) {
    pthread_mutex_lock(&driver.lock);
    snprintf(driver.last_fault, sizeof(driver.last_fault), "%s", message);
    talk("%s", message);
    pthread_mutex_unlock(&driver.lock);
    return error;
}

/* Whether this kernel, or call of a library, was told to fail. */
static CUresult told_to_fail(void) {
    pthread_mutex_lock(&driver.lock);
    rule *r = &driver.settings.fault;
    bool due = r->error && ++driver.n_launches == r->at;
    pthread_mutex_unlock(&driver.lock);
    return due ? fault(r->error, "a fault that was asked for") : CUDA_SUCCESS;
}

/* ---- kernels ----------------------------------------------------------------------------- */

/* Memory that a kernel in `user`, a context, reaches. */
static bool find(void *user, uint64_t address, ptx_range *out) {
    pthread_mutex_lock(&driver.lock);
    const range *r = memory_find(address, 1);
    bool reached = r && (r->pinned || context_reaches(user, r->context));
    if (reached)
        *out = (ptx_range){.begin = r->begin, .end = r->end, .host = memory_host(r->begin)};
    pthread_mutex_unlock(&driver.lock);
    return reached;
}

/* The first race of the launch that runs on this thread. */
static _Thread_local char raced[MAX_TEXT];

static void tell_race(void *user, const char *what) {
    pthread_mutex_lock(&driver.lock);
    driver.n_races++;
    pthread_mutex_unlock(&driver.lock);
    fprintf(stderr, "driver double: %s\n", what);
    if (!raced[0])
        snprintf(raced, sizeof(raced), "%s", what);
}

static CUresult kernel_run(work *w, context *c) {
    kernel_work *k = (kernel_work *)w;
    CUresult error = told_to_fail();
    if (error)
        return error;
    pthread_mutex_lock(&driver.lock);
    /* In the context that it was launched in: a graph may be launched in another's stream. */
    context *own = object_find((void *)(uintptr_t)w->fixed, DOUBLE_CONTEXT); // NOLINT
    bool unloaded = !own || k->module->unloaded, skipped = driver.settings.no_kernels;
    bool races = driver.settings.races, races_fail = driver.settings.races_fail;
    pthread_mutex_unlock(&driver.lock);
    if (unloaded)
        return fault(CUDA_ERROR_LAUNCH_FAILED, "a kernel of a module that was unloaded");
    char message[MAX_TEXT] = "";
    ptx_launch launch = k->launch;
    launch.find = find;
    launch.race = races ? tell_race : NULL;
    raced[0] = '\0';
    launch.user = own;
    ptx_result result = skipped ? PTX_DONE : ptx_run(&launch, message, sizeof(message));
    switch (result) {
    case PTX_DONE:
        if (races_fail && raced[0])
            return fault(CUDA_ERROR_LAUNCH_FAILED, raced);
        break;
    case PTX_ILLEGAL_ADDRESS:
        return fault(CUDA_ERROR_ILLEGAL_ADDRESS, message);
    case PTX_MISALIGNED_ADDRESS:
        return fault(CUDA_ERROR_MISALIGNED_ADDRESS, message);
    case PTX_ILLEGAL_INSTRUCTION:
        return fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, message);
    case PTX_LAUNCH_FAILED:
        return fault(CUDA_ERROR_LAUNCH_FAILED, message);
    }
    pthread_mutex_lock(&driver.lock);
    driver.n_kernels++;
    pthread_mutex_unlock(&driver.lock);
    return CUDA_SUCCESS;
}

static void kernel_finish(work *w) {
    kernel_work *k = (kernel_work *)w;
    module_drop(k->module);
    free(k->parameters);
}

/* The block of parameters, from either form; NULL where it is neither. */
static unsigned char *read_parameters(const entry *f, void **one_by_one, void **extra) {
    if (one_by_one && extra)
        return NULL;
    unsigned char *block = take(f->facts.parameter_bytes, 1);
    const void *buffer = NULL;
    const size_t *size = NULL;
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = extra[1];
        else
            break;
    }
    /* The end of a struct may be behind that of its last member. */
    bool good = extra
                    ? *extra == CU_LAUNCH_PARAM_END && buffer && size &&
                          *size >= f->facts.parameter_bytes && *size < f->facts.parameter_bytes + 16
                    : f->facts.n_parameters == 0 || one_by_one;
    if (good && buffer)
        memcpy(block, buffer, f->facts.parameter_bytes);
    for (uint32_t i = 0; i < f->facts.n_parameters && good && !buffer; i++) {
        uint32_t offset, bytes;
        good = one_by_one[i] && ptx_kernel_parameter(f->kernel, i, &offset, &bytes);
        if (good)
            memcpy(block + offset, one_by_one[i], bytes);
    }
    if (good)
        return block;
    free(block);
    return NULL;
}

CUresult CUDAAPI cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y,
                                unsigned grid_z, unsigned block_x, unsigned block_y,
                                unsigned block_z, unsigned dynamic, CUstream stream_handle,
                                void **one_by_one, void **extra) {
    context *c;
    CUresult error = enter(CALL_cuLaunchKernel, NEEDS_ALL, &c);
    if (error)
        return error;
    entry *f = object_find(handle, OBJECT_FUNCTION);
    stream *s = NULL;
    error = f ? stream_find(stream_handle, c, &s) : CUDA_ERROR_INVALID_HANDLE;
    if (!error && (f->head.context != c || s->head.context != c))
        error = CUDA_ERROR_INVALID_HANDLE;
    if (error)
        return leave(error);
    if (!grid_x || !grid_y || !grid_z || grid_x > 0x7fffffff || grid_y > 65535 || grid_z > 65535 ||
        !block_x || !block_y || !block_z || block_x > 1024 || block_y > 1024 || block_z > 64 ||
        block_x * block_y * block_z > f->facts.max_threads || dynamic > f->max_dynamic_shared)
        return leave(CUDA_ERROR_INVALID_VALUE);
    unsigned char *parameters = read_parameters(f, one_by_one, extra);
    if (!parameters)
        return leave(CUDA_ERROR_INVALID_VALUE);

    kernel_work *k = work_create(sizeof(*k), CU_GRAPH_NODE_TYPE_KERNEL, kernel_run, kernel_finish);
    k->head.fixed = c->head.handle;
    k->module = f->module;
    k->module->references++;
    k->parameters = parameters;
    k->launch = (ptx_launch){
        .kernel = f->kernel,
        .parameters = parameters,
        .grid = {grid_x, grid_y, grid_z},
        .block = {block_x, block_y, block_z},
        .dynamic_shared_bytes = dynamic,
    };
    return leave(stream_submit(s, &k->head));
}

/* ---- functions of the host --------------------------------------------------------------- */

static CUresult host_run(work *w, context *c) {
    host_work *h = (host_work *)w;
    in_host_function = true;
    h->fn(h->argument);
    in_host_function = false;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream handle, CUhostFn fn, void *argument) {
    context *c;
    stream *s;
    CUresult error = enter(CALL_cuLaunchHostFunc, NEEDS_ALL, &c);
    if (error)
        return error;
    error = stream_find(handle, c, &s);
    if (!error && !fn)
        error = CUDA_ERROR_INVALID_VALUE;
    if (error)
        return leave(error);
    host_work *h = work_create(sizeof(*h), CU_GRAPH_NODE_TYPE_HOST, host_run, NULL);
    h->fn = fn;
    h->argument = argument;
    return leave(stream_submit(s, &h->head));
}

/* ---- doubles of libraries ---------------------------------------------------------------- */

static CUresult call_run(work *w, context *c) {
    call_work *k = (call_work *)w;
    CUresult error = told_to_fail();
    pthread_mutex_lock(&driver.lock);
    bool skipped = driver.settings.no_kernels;
    pthread_mutex_unlock(&driver.lock);
    if (error || skipped)
        return error;
    in_host_function = true;
    error = k->fn(k->argument);
    in_host_function = false;
    return error ? fault(error, "the double of a library") : CUDA_SUCCESS;
}

static void call_finish(work *w) {
    free(((call_work *)w)->argument);
}

CUresult double_stream_enqueue(CUstream handle, CUresult (*fn)(void *argument),
                               const void *argument, size_t bytes) {
    context *c;
    stream *s;
    CUresult error = enter(CALL_double_stream_enqueue, NEEDS_ALL, &c);
    if (error)
        return error;
    error = stream_find(handle, c, &s);
    if (!error && s->head.context != c)
        error = CUDA_ERROR_INVALID_HANDLE;
    if (error)
        return leave(error);
    call_work *k = work_create(sizeof(*k), CU_GRAPH_NODE_TYPE_KERNEL, call_run, call_finish);
    k->head.fixed = c->head.handle;
    k->fn = fn;
    k->argument = take(bytes, 1);
    if (bytes)
        memcpy(k->argument, argument, bytes);
    return leave(stream_submit(s, &k->head));
}

void *double_host_address(CUdeviceptr address, size_t bytes, size_t alignment) {
    ptx_range r;
    if (!running || (alignment && address % alignment))
        return NULL;
    if (!find(running, address, &r) || bytes > r.end - address)
        return NULL;
    return r.host + (address - r.begin);
}

CUresult double_stream_device(CUstream handle, CUdevice *out) {
    pthread_mutex_lock(&driver.lock);
    context *c = NULL;
    stream *s;
    CUresult error = context_current(&c);
    if (!error)
        error = stream_find(handle, c, &s);
    if (!error)
        *out = s->head.context->device->ordinal;
    pthread_mutex_unlock(&driver.lock);
    return error;
}
