/* Device code, built for a device when a call first needs it. */
#include "plugins/opencl/program.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* PoCL's compiler reads Clang's header of all functions for each program, half of what a program
 * costs, unless it believes to have done so. */
#define WITHOUT_HEADER " -D_OPENCL_H_ -DDECLARES_BUILTINS=1"

struct ocl_programs {
    pthread_mutex_t lock; /* taken to build, and to save */
    bool reads_header;    /* see WITHOUT_HEADER */
    bool are_kept;        /* in the cache */
    ocl_program *first;
};

/* A driver that keeps programs itself is left to it unless the option names a folder: PoCL, asked for a
 * program, compiles every kernel in it first, 0.1 s each. */
static bool are_kept(const tn_device_impl *device) {
    const gpu_cache *cache = &device->self->cache;
    return cache->folder[0] && (cache->is_named || !device->found->is_pocl);
}

tn_status ocl_programs_create(tn_device_impl *device) {
    ocl_programs *p = ocl_host_alloc(device->self, sizeof *p, "the list of programs");
    if (!p)
        return TN_ERR_OUT_OF_MEMORY;
    *p = (ocl_programs){.reads_header = !device->found->is_pocl, .are_kept = are_kept(device)};
    pthread_mutex_init(&p->lock, NULL);
    device->programs = p;
    return TN_OK;
}

void ocl_programs_destroy(tn_device_impl *device) {
    ocl_programs *p = device->programs;
    if (!p)
        return;
    for (ocl_program *next; p->first; p->first = next) {
        next = p->first->next;
        clReleaseProgram(p->first->program);
        device->self->host->dealloc(device->self->host, p->first);
    }
    pthread_mutex_destroy(&p->lock);
    device->self->host->dealloc(device->self->host, p);
}

void ocl_kernel_release(tn_device_impl *device, gpu_kernel *kernel) {
    clReleaseKernel(kernel->kernel);
    pthread_mutex_destroy(&kernel->lock);
    device->self->host->dealloc(device->self->host, kernel);
}

/* ---- what the compiler says -------------------------------------------------------------- */

/* Why a kernel could not be made. */
typedef struct failure {
    cl_int error;
    const char *what; /* the driver's call; NULL: the compiler's line says it */
    char line[160];
} failure;

static tn_status fail(tn_device_impl *device, const gpu_variant *v, const failure *f) {
    if (f->what)
        return ocl_fail_driver(device, f->error, f->what);
    return ocl_fail(device->self, TN_ERR_INTERNAL,
                    "opencl:%u (%.60s): kernel '%s' does not build: %s%s%s; %s with %.120s; "
                    "TENON_LOG=debug shows the compiler's log, another driver may do",
                    device->index, device->found->name, v->entry, f->line, f->line[0] ? ": " : "",
                    ocl_error_name(f->error), v->source->name, v->options);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The line of `log` that says what is wrong, or the first one: some drivers write "error: FILE",
 * some "FILE: error:", and warnings may speak of errors. */
static const char *error_line(const char *log) {
    for (const char *line = log; *line; line += line[0] == '\n') {
        const char *error = strstr(line, "error:"), *warning = strstr(line, "warning:"),
                   *end = line + strcspn(line, "\n");
        if (!error)
            break;
        if (error < end && !(warning && warning < error))
            return line;
        line = end;
    }
    return log;
}

/* What the build log says; the whole of it goes to the host's log. */
static void find_error(tn_device_impl *device, cl_program program, char out[160]) {
    char log[16384];
    size_t n = 0;
    out[0] = '\0';
    if (clGetProgramBuildInfo(program, device->found->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log,
                              &n) != CL_SUCCESS)
        return;
    log[n < sizeof log ? n : sizeof log - 1] = '\0';
    device->self->host->log_message(device->self->host, TN_LOG_DEBUG, log);
    const char *line = error_line(log);
    snprintf(out, 160, "%.*s", (int)strcspn(line, "\n"), line);
}

/* ---- building ---------------------------------------------------------------------------- */

/* For who asks why the first step is slow. */
static void tell(tn_device_impl *device, const ocl_program *p, const char *from, double start) {
    char line[OCL_MESSAGE];
    snprintf(line, sizeof line, "opencl:%u: %s %.300s: %.0f ms, %s", device->index, p->source->name,
             p->options, (now() - start) * 1e3, from);
    device->self->host->log_message(device->self->host, TN_LOG_DEBUG, line);
}

static cl_int compile(tn_device_impl *device, const ocl_program *p, const char *more) {
    char options[sizeof p->options + sizeof WITHOUT_HEADER];
    snprintf(options, sizeof options, "%s%s", p->options, more);
    return clBuildProgram(p->program, 1, &device->found->id, options, NULL, NULL);
}

/* What fails without the header may be the trick: where it is, no more is built with it. */
static cl_int finish_build(tn_device_impl *device, const ocl_program *p) {
    ocl_programs *all = device->programs;
    cl_int error = compile(device, p, all->reads_header ? "" : WITHOUT_HEADER);
    if (error == CL_BUILD_PROGRAM_FAILURE && !all->reads_header) {
        char line[160];
        find_error(device, p->program, line);
        device->self->host->log_message(device->self->host, TN_LOG_DEBUG,
                                        "programs are built with the header");
        error = compile(device, p, "");
        all->reads_header = error == CL_SUCCESS;
    }
    return error;
}

/* What a program is kept under. `builder` lives as long as the key. */
static gpu_cache_key key_of(const tn_device_impl *device, const ocl_program *p,
                            char builder[6 * OCL_NAME]) {
    const ocl_found *found = device->found;
    snprintf(builder, 6 * OCL_NAME, "%s\n%s\n%s", found->platform_name, found->name, found->driver);
    return (gpu_cache_key){.builder = builder, .options = p->options, .source = p->source->text};
}

/* From the cache. Whatever is wrong with it, the source is still there. */
static bool load(tn_device_impl *device, ocl_program *p) {
    double start = now();
    uint64_t bytes = 0;
    char builder[6 * OCL_NAME];
    gpu_cache_key key = key_of(device, p, builder);
    unsigned char *binary =
        device->programs->are_kept ? gpu_cache_load(&device->self->cache, &key, &bytes) : NULL;
    const unsigned char *binaries[] = {binary};
    const size_t sizes[] = {bytes};
    cl_int state = CL_SUCCESS, error = CL_SUCCESS;
    if (!binary)
        return false;
    p->program = clCreateProgramWithBinary(device->context, 1, &device->found->id, sizes, binaries,
                                           &state, &error);
    device->self->host->dealloc(device->self->host, binary);
    if (!p->program)
        return false;
    if (state == CL_SUCCESS && finish_build(device, p) == CL_SUCCESS) {
        p->is_loaded = true;
        tell(device, p, "from the cache", start);
        return true;
    }
    clReleaseProgram(p->program);
    p->program = NULL;
    return false;
}

/* From its source. p->program is NULL where that fails. */
static bool build(tn_device_impl *device, ocl_program *p, failure *out) {
    double start = now();
    p->program = clCreateProgramWithSource(device->context, 1, (const char **)&p->source->text,
                                           NULL, &out->error);
    out->what = "creating a program";
    if (!p->program)
        return false;
    p->is_loaded = false;
    p->saved = device->programs->are_kept ? OCL_NOT_LAUNCHED : OCL_SAVED;
    out->error = finish_build(device, p);
    out->what = NULL;
    if (out->error == CL_SUCCESS) {
        tell(device, p, "built", start);
        return true;
    }
    find_error(device, p->program, out->line);
    clReleaseProgram(p->program);
    p->program = NULL;
    return false;
}

/* The program that a variant is in, loaded or built if need be; NULL where that fails. */
static ocl_program *find_program(tn_device_impl *device, const gpu_variant *v, failure *out) {
    ocl_programs *all = device->programs;
    char options[sizeof((ocl_program *)0)->options];
    snprintf(options, sizeof options, "%s -DIS_CPU=%d -DHAS_F64=%d%s", v->options,
             device->found->traits.is_cpu, device->found->traits.has_f64,
             device->found->divides_exactly ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    for (ocl_program *p = all->first; p; p = p->next)
        if (p->source == v->source && strcmp(p->options, options) == 0)
            return p;
    ocl_program *p =
        device->self->host->alloc(device->self->host, sizeof *p, _Alignof(ocl_program));
    *out = (failure){CL_OUT_OF_HOST_MEMORY, "allocating a program", ""};
    if (!p)
        return NULL;
    *p = (ocl_program){.next = all->first, .source = v->source};
    memcpy(p->options, options, sizeof options);
    if (!load(device, p) && !build(device, p, out)) {
        device->self->host->dealloc(device->self->host, p);
        return NULL;
    }
    return all->first = p;
}

/* A program from the cache that lacks the kernel is not what it says: it is built. What was made of
 * it before goes on holding it. */
static bool make_kernel(tn_device_impl *device, const gpu_variant *v, gpu_kernel *k, failure *out) {
    ocl_program *p = k->program = find_program(device, v, out);
    if (!p)
        return false;
    k->kernel = clCreateKernel(p->program, v->entry, &out->error);
    if (!k->kernel && p->is_loaded) {
        cl_program loaded = p->program;
        if (!build(device, p, out)) {
            p->program = loaded;
            p->is_loaded = true;
            return false;
        }
        clReleaseProgram(loaded);
        k->kernel = clCreateKernel(p->program, v->entry, &out->error);
    }
    if (!k->kernel) {
        out->what = NULL;
        find_error(device, p->program, out->line);
    }
    return k->kernel;
}

tn_status ocl_kernel_build(tn_device_impl *device, const gpu_variant *variant, gpu_kernel **out) {
    ocl_guard guard;
    failure why = {CL_OUT_OF_HOST_MEMORY, "allocating a kernel", ""};
    bool made = false;
    *out = NULL;
    gpu_kernel *k = device->self->host->alloc(device->self->host, sizeof *k, _Alignof(gpu_kernel));
    if (k && !ocl_is_lost(device)) {
        pthread_mutex_lock(&device->programs->lock);
        ocl_guard_enter(&guard);
        made = make_kernel(device, variant, k, &why);
        ocl_guard_leave(&guard);
        pthread_mutex_unlock(&device->programs->lock);
    }
    if (!made) {
        device->self->host->dealloc(device->self->host, k);
        return fail(device, variant, &why);
    }
    pthread_mutex_init(&k->lock, NULL);
    k->n_freed = UINT64_MAX;
    *out = k;
    return TN_OK;
}

/* ---- keeping ----------------------------------------------------------------------------- */

static void save(tn_device_impl *device, const ocl_program *p) {
    const tn_host *host = device->self->host;
    char builder[6 * OCL_NAME];
    gpu_cache_key key = key_of(device, p, builder);
    size_t bytes = 0;
    if (clGetProgramInfo(p->program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) !=
            CL_SUCCESS ||
        bytes == 0)
        return;
    unsigned char *binary = host->alloc(host, bytes, 64);
    if (binary && clGetProgramInfo(p->program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) ==
                      CL_SUCCESS)
        gpu_cache_save(&device->self->cache, &key, binary, bytes);
    host->dealloc(host, binary);
}

void ocl_programs_save(tn_device_impl *device, bool at_end) {
    ocl_programs *all = device->programs;
    if (!atomic_load_explicit(&device->has_unsaved, memory_order_relaxed) ||
        (device->found->is_pocl && !at_end))
        return;
    ocl_guard guard;
    pthread_mutex_lock(&all->lock);
    ocl_guard_enter(&guard);
    atomic_store(&device->has_unsaved, false);
    for (ocl_program *p = all->first; p; p = p->next)
        if (p->saved == OCL_LAUNCHED) {
            p->saved = OCL_SAVED;
            save(device, p);
        }
    ocl_guard_leave(&guard);
    pthread_mutex_unlock(&all->lock);
}
