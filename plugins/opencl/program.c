/* program.c: device code, built for a device when a call first needs it, and launched. */
#include "cache.h"
#include "program.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- what was built ---- */

enum { OCL_OPTIONS = 128 }; /* bytes of options that are the device's */
enum { TABLE = 4096 }; /* variants of a device; more than there are operators, dtypes and forms */

/* What the cache knows of a variant. */
enum saved { SAVED, NOT_LAUNCHED, LAUNCHED };

/* The arguments of a kernel object as they were set last, while no memory was freed since. */
struct ocl_arguments {
    uint64_t n_freed;
    cl_mem memory[GPU_MAX_MEMORY];
    uint64_t bytes;
    unsigned char parameters[GPU_ARGUMENTS];
};

struct gpu_kernel {
    _Atomic uint64_t key; /* 0: free */
    pthread_mutex_t lock; /* arguments belong to the kernel object, not to a launch */
    struct ocl_arguments arguments;
    cl_program program;
    cl_kernel kernel;
    const gpu_source *source;
    char options[GPU_OPTIONS + OCL_OPTIONS];
    _Atomic enum saved saved;
};

struct ocl_programs {
    pthread_mutex_t lock; /* taken to build, and to save */
    atomic_bool has_unsaved;
    gpu_kernel entries[TABLE];
};

tn_status ocl_programs_create(tn_pdevice *device) {
    struct ocl_programs *p = ocl_host_alloc(device->self, sizeof *p, "the table of programs");
    if (!p)
        return TN_OUT_OF_MEMORY;
    memset(p, 0, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    device->programs = p;
    return TN_OK;
}

void ocl_programs_destroy(tn_pdevice *device) {
    struct ocl_programs *p = device->programs;
    if (!p)
        return;
    for (int i = 0; i < TABLE; i++)
        if (p->entries[i].key) {
            clReleaseKernel(p->entries[i].kernel);
            clReleaseProgram(p->entries[i].program);
            pthread_mutex_destroy(&p->entries[i].lock);
        }
    pthread_mutex_destroy(&p->lock);
    device->self->host->free(p);
}

/* Where `key` is, or would be. Keys are not 0: they are stored less one bit pattern. */
static gpu_kernel *slot_of(struct ocl_programs *p, uint64_t key) {
    uint64_t at = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 52;
    for (int i = 0; i < TABLE; i++, at = (at + 1) % TABLE) {
        const uint64_t there = atomic_load_explicit(&p->entries[at].key, memory_order_acquire);
        if (there == 0 || there == key)
            return &p->entries[at];
    }
    return NULL;
}

static const uint64_t USED = UINT64_C(1) << 63;

gpu_kernel *gpu_kernel_find(tn_pdevice *device, uint64_t key) {
    gpu_kernel *k = slot_of(device->programs, key | USED);
    return k && atomic_load_explicit(&k->key, memory_order_acquire) ? k : NULL;
}

/* ---- building ---- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The first line of the build log that names an error; the whole of it goes to the host's log. */
static void find_error(tn_pdevice *device, cl_program program, char out[160]) {
    char log[16384];
    size_t n = 0;
    out[0] = '\0';
    if (clGetProgramBuildInfo(program, device->found->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log,
                              &n) != CL_SUCCESS)
        return;
    log[n < sizeof log ? n : sizeof log - 1] = '\0';
    device->self->host->log(device->self, TN_LOG_DEBUG, log);
    const char *at = strstr(log, "error");
    while (at && at > log && at[-1] != '\n')
        at--;
    if (!at)
        at = log;
    snprintf(out, 160, "%.*s", (int)strcspn(at, "\n"), at);
}

static cl_int finish_build(tn_pdevice *device, gpu_kernel *k, const gpu_variant *v) {
    cl_int error = clBuildProgram(k->program, 1, &device->found->id, k->options, NULL, NULL);
    if (error == CL_SUCCESS)
        k->kernel = clCreateKernel(k->program, v->entry, &error);
    return error;
}

static struct ocl_cache_key cache_key(const tn_pdevice *device, const gpu_kernel *k) {
    struct ocl_cache_key key = {device->found, k->source->text, k->options, 0};
    ocl_cache_name(&key);
    return key;
}

/* From the cache. Whatever is wrong with it, the source is still there. */
static bool load(tn_pdevice *device, gpu_kernel *k, const gpu_variant *v) {
    const struct ocl_cache_key key = cache_key(device, k);
    uint64_t bytes = 0;
    unsigned char *binary = ocl_cache_load(device->self, &key, &bytes);
    const unsigned char *binaries[] = {binary};
    const size_t sizes[] = {bytes};
    cl_int state = CL_SUCCESS, error = CL_SUCCESS;
    if (!binary)
        return false;
    k->program = clCreateProgramWithBinary(device->context, 1, &device->found->id, sizes, binaries,
                                           &state, &error);
    device->self->host->free(binary);
    if (!k->program)
        return false;
    if (state == CL_SUCCESS && finish_build(device, k, v) == CL_SUCCESS)
        return true;
    clReleaseProgram(k->program);
    return false;
}

/* For who asks why the first step is slow. */
static void tell(tn_pdevice *device, const gpu_variant *v, const char *from, double start) {
    char line[OCL_MESSAGE];
    snprintf(line, sizeof line, "opencl:%u: %s of %s %.200s: %.0f ms, %s", device->index, v->entry,
             v->source->name, v->options, (now() - start) * 1e3, from);
    device->self->host->log(device->self, TN_LOG_DEBUG, line);
}

static tn_status build(tn_pdevice *device, const gpu_variant *v, gpu_kernel *out) {
    const double start = now();
    const struct ocl_found *found = device->found;
    cl_int error;
    snprintf(out->options, sizeof out->options, "%s -DHAS_F64=%d%s", v->options,
             found->traits.has_f64,
             found->divides_exactly ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    out->source = v->source;
    out->saved = SAVED;
    if (load(device, out, v)) {
        tell(device, v, "from the cache", start);
        return TN_OK;
    }
    out->program = clCreateProgramWithSource(device->context, 1, (const char **)&v->source->text,
                                             NULL, &error);
    if (!out->program)
        return ocl_fail_driver(device, error, "creating a program");
    error = finish_build(device, out, v);
    out->saved = device->self->cache[0] ? NOT_LAUNCHED : SAVED;
    if (error == CL_SUCCESS) {
        tell(device, v, "built", start);
        return TN_OK;
    }
    char line[160];
    find_error(device, out->program, line);
    clReleaseProgram(out->program);
    return ocl_fail(device->self, TN_INTERNAL,
                    "opencl:%u (%.60s): kernel '%s' does not build: %s%s%s; %s with %.120s; "
                    "TENON_LOG=debug shows the compiler's log, another driver may do",
                    device->index, found->name, v->entry, line, line[0] ? ": " : "",
                    ocl_error_name(error), v->source->name, v->options);
}

/* ---- keeping ---- */

static void save(tn_pdevice *device, const gpu_kernel *k) {
    const tn_host *host = device->self->host;
    const struct ocl_cache_key key = cache_key(device, k);
    size_t bytes = 0;
    if (clGetProgramInfo(k->program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) !=
            CL_SUCCESS ||
        bytes == 0)
        return;
    unsigned char *binary = host->alloc(bytes, 64);
    if (binary && clGetProgramInfo(k->program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) ==
                      CL_SUCCESS)
        ocl_cache_save(device->self, &key, binary, bytes);
    host->free(binary);
}

void ocl_programs_save(tn_pdevice *device) {
    struct ocl_programs *p = device->programs;
    if (!atomic_load_explicit(&p->has_unsaved, memory_order_relaxed))
        return;
    struct ocl_guard guard;
    pthread_mutex_lock(&p->lock);
    ocl_guard_enter(&guard);
    atomic_store(&p->has_unsaved, false);
    for (int i = 0; i < TABLE; i++)
        if (p->entries[i].key && p->entries[i].saved == LAUNCHED) {
            p->entries[i].saved = SAVED;
            save(device, &p->entries[i]);
        }
    ocl_guard_leave(&guard);
    pthread_mutex_unlock(&p->lock);
}

tn_status gpu_kernel_build(tn_pdevice *device, uint64_t key, const gpu_variant *variant,
                           gpu_kernel **out) {
    struct ocl_programs *p = device->programs;
    struct ocl_guard guard;
    tn_status status = TN_OK;
    pthread_mutex_lock(&p->lock);
    gpu_kernel *k = slot_of(p, key | USED);
    if (!k) {
        status = ocl_fail(device->self, TN_INTERNAL, "opencl:%u has built %d kernels, and no more "
                                                     "can be kept", device->index, TABLE);
    } else if (atomic_load(&k->key) == 0) {
        ocl_guard_enter(&guard);
        status = build(device, variant, k);
        ocl_guard_leave(&guard);
        if (status == TN_OK) {
            pthread_mutex_init(&k->lock, NULL);
            k->arguments.n_freed = UINT64_MAX;
            atomic_store_explicit(&k->key, key | USED, memory_order_release);
        }
    }
    pthread_mutex_unlock(&p->lock);
    *out = k;
    return status;
}

/* ---- launching ---- */

/* A driver allocates for each argument that is set; most calls are the one before over again. A
 * handle may come back with another allocation behind it: after memory was freed all are set. */
static cl_int set_arguments(tn_pstream *stream, const gpu_launch *l) {
    gpu_kernel *k = l->kernel;
    struct ocl_arguments *now = &k->arguments;
    const uint64_t n_freed = atomic_load(&stream->device->n_freed);
    const bool known = now->n_freed == n_freed;
    cl_int error = CL_SUCCESS;
    cl_uint n = 0;
    now->n_freed = n_freed;
    for (; n < l->n_memory && error == CL_SUCCESS; n++) {
        const cl_mem memory = ocl_mem(l->memory[n]);
        if (known && now->memory[n] == memory)
            continue;
        error = clSetKernelArg(k->kernel, n, sizeof memory, &memory);
        now->memory[n] = memory;
    }
    if (l->may_fail && error == CL_SUCCESS)
        error = clSetKernelArg(k->kernel, n++, sizeof stream->error_word, &stream->error_word);
    if (error == CL_SUCCESS && !(known && now->bytes == l->parameter_bytes &&
                                 memcmp(now->parameters, l->parameters, now->bytes) == 0)) {
        error = clSetKernelArg(k->kernel, n, l->parameter_bytes, l->parameters);
        now->bytes = l->parameter_bytes;
        memcpy(now->parameters, l->parameters, l->parameter_bytes);
    }
    if (error != CL_SUCCESS)
        now->n_freed = UINT64_MAX; /* nothing is known */
    return error;
}

tn_status gpu_launch_on(tn_pstream *stream, const gpu_launch *l) {
    size_t global[3], local[3];
    const tn_status status = ocl_check_lost(stream->device);
    if (status != TN_OK)
        return status;
    for (int d = 0; d < 3; d++) {
        local[d] = l->local[d] ? l->local[d] : 1;
        global[d] = (l->groups[d] ? l->groups[d] : 1) * local[d];
    }
    const cl_uint dims = global[2] > 1 ? 3 : global[1] > 1 ? 2 : 1;
    if (l->may_fail) /* see take_error in stream.c */
        pthread_mutex_lock(&stream->lock);
    pthread_mutex_lock(&l->kernel->lock);
    cl_int error = set_arguments(stream, l);
    if (error == CL_SUCCESS)
        error = clEnqueueNDRangeKernel(stream->queue, l->kernel->kernel, dims, NULL, global, local,
                                       0, NULL, NULL);
    pthread_mutex_unlock(&l->kernel->lock);
    if (l->may_fail) {
        atomic_store(&stream->may_fail, true);
        pthread_mutex_unlock(&stream->lock);
    }
    if (error != CL_SUCCESS)
        return ocl_fail_driver(stream->device, error, "launching a kernel");
    if (l->kernel->saved == NOT_LAUNCHED) {
        l->kernel->saved = LAUNCHED;
        atomic_store(&stream->device->programs->has_unsaved, true);
    }
    ocl_stream_queued(stream);
    return TN_OK;
}

tn_status gpu_fail(tn_pdevice *device, tn_status status, const char *format, ...) {
    char message[OCL_MESSAGE];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    return ocl_fail(device->self, status, "%s", message);
}
