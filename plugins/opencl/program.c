/* Device code, built for a device when a call first needs it. */
#include "plugins/opencl/cache.h"
#include "plugins/opencl/program.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* PoCL's compiler reads Clang's header of all functions for each program, half of what a program
 * costs, unless it believes to have done so. */
#define WITHOUT_HEADER " -D_OPENCL_H_ -DDECLARES_BUILTINS=1"

enum { TABLE = 4096 }; /* kernels of a device; more than there are operators, dtypes and forms */

struct ocl_programs {
    pthread_mutex_t lock; /* taken to build, and to save */
    atomic_bool has_unsaved;
    bool reads_header; /* see WITHOUT_HEADER */
    ocl_program *first;
    gpu_kernel entries[TABLE];
};

tn_status ocl_programs_create(tn_pdevice *device) {
    struct ocl_programs *p = ocl_host_alloc(device->self, sizeof *p, "the table of programs");
    if (!p)
        return TN_OUT_OF_MEMORY;
    memset(p, 0, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    p->reads_header = !device->found->is_pocl;
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
            device->self->host->free(p->entries[i].arguments);
            pthread_mutex_destroy(&p->entries[i].lock);
        }
    for (ocl_program *next; p->first; p->first = next) {
        next = p->first->next;
        clReleaseProgram(p->first->program);
        device->self->host->free(p->first);
    }
    pthread_mutex_destroy(&p->lock);
    device->self->host->free(p);
}

/* Where `key` is, or would be. Keys are not 0: they are stored less one bit pattern. */
static gpu_kernel *slot_of(struct ocl_programs *p, uint64_t key) {
    uint64_t at = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 52;
    for (int i = 0; i < TABLE; i++, at = (at + 1) % TABLE) {
        uint64_t there = atomic_load_explicit(&p->entries[at].key, memory_order_acquire);
        if (there == 0 || there == key)
            return &p->entries[at];
    }
    return NULL;
}

static const uint64_t USED = UINT64_C(1) << 63;

gpu_kernel *gpu_kernel_find(tn_pdevice *device, uint64_t key) {
    gpu_kernel *k = slot_of(device->programs, key | USED);
    /* A slot that was free may just have been taken for another key. */
    return k && atomic_load_explicit(&k->key, memory_order_acquire) == (key | USED) ? k : NULL;
}

/* ---- building ---------------------------------------------------------------------------- */

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
static void find_error(tn_pdevice *device, cl_program program, char out[160]) {
    char log[16384];
    size_t n = 0;
    out[0] = '\0';
    if (clGetProgramBuildInfo(program, device->found->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log,
                              &n) != CL_SUCCESS)
        return;
    log[n < sizeof log ? n : sizeof log - 1] = '\0';
    device->self->host->log(device->self, TN_LOG_DEBUG, log);
    const char *line = error_line(log);
    snprintf(out, 160, "%.*s", (int)strcspn(line, "\n"), line);
}

/* For who asks why the first step is slow. */
static void tell(tn_pdevice *device, const ocl_program *p, const char *from, double start) {
    char line[OCL_MESSAGE];
    snprintf(line, sizeof line, "opencl:%u: %s %.300s: %.0f ms, %s", device->index, p->source->name,
             p->options, (now() - start) * 1e3, from);
    device->self->host->log(device->self, TN_LOG_DEBUG, line);
}

static cl_int compile(tn_pdevice *device, const ocl_program *p, const char *more) {
    char options[sizeof p->options + sizeof WITHOUT_HEADER];
    snprintf(options, sizeof options, "%s%s", p->options, more);
    return clBuildProgram(p->program, 1, &device->found->id, options, NULL, NULL);
}

/* What fails without the header may be the trick: where it is, no more is built with it. */
static cl_int finish_build(tn_pdevice *device, const ocl_program *p) {
    struct ocl_programs *all = device->programs;
    cl_int error = compile(device, p, all->reads_header ? "" : WITHOUT_HEADER);
    if (error == CL_BUILD_PROGRAM_FAILURE && !all->reads_header) {
        char line[160];
        find_error(device, p->program, line);
        device->self->host->log(device->self, TN_LOG_DEBUG, "programs are built with the header");
        error = compile(device, p, "");
        all->reads_header = error == CL_SUCCESS;
    }
    return error;
}

static struct ocl_cache_key cache_key(const tn_pdevice *device, const ocl_program *p) {
    struct ocl_cache_key key = {device->found, p->source->text, p->options, 0};
    ocl_cache_name(&key);
    return key;
}

/* From the cache. Whatever is wrong with it, the source is still there. */
static bool load(tn_pdevice *device, ocl_program *p) {
    double start = now();
    if (!ocl_cache_serves(device))
        return false;
    struct ocl_cache_key key = cache_key(device, p);
    uint64_t bytes = 0;
    unsigned char *binary = ocl_cache_load(device->self, &key, &bytes);
    const unsigned char *binaries[] = {binary};
    const size_t sizes[] = {bytes};
    cl_int state = CL_SUCCESS, error = CL_SUCCESS;
    if (!binary)
        return false;
    p->program = clCreateProgramWithBinary(device->context, 1, &device->found->id, sizes, binaries,
                                           &state, &error);
    device->self->host->free(binary);
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

static tn_status fail_build(tn_pdevice *device, const ocl_program *p, const gpu_variant *v,
                            cl_int error) {
    char line[160];
    find_error(device, p->program, line);
    return ocl_fail(device->self, TN_INTERNAL,
                    "opencl:%u (%.60s): kernel '%s' does not build: %s%s%s; %s with %.120s; "
                    "TENON_LOG=debug shows the compiler's log, another driver may do",
                    device->index, device->found->name, v->entry, line, line[0] ? ": " : "",
                    ocl_error_name(error), v->source->name, v->options);
}

/* From its source. p->program is NULL where that fails. */
static tn_status build(tn_pdevice *device, const gpu_variant *v, ocl_program *p) {
    double start = now();
    cl_int error;
    p->program = clCreateProgramWithSource(device->context, 1, (const char **)&v->source->text,
                                           NULL, &error);
    if (!p->program)
        return ocl_fail_driver(device, error, "creating a program");
    error = finish_build(device, p);
    p->is_loaded = false;
    p->saved = ocl_cache_serves(device) ? OCL_NOT_LAUNCHED : OCL_SAVED;
    if (error == CL_SUCCESS) {
        tell(device, p, "built", start);
        return TN_OK;
    }
    tn_status status = fail_build(device, p, v, error);
    clReleaseProgram(p->program);
    p->program = NULL;
    return status;
}

/* The program that a variant is in, built if need be. */
static tn_status find_program(tn_pdevice *device, const gpu_variant *v, ocl_program **out) {
    struct ocl_programs *all = device->programs;
    char options[sizeof(*out)->options];
    snprintf(options, sizeof options, "%s -DIS_CPU=%d -DHAS_F64=%d%s", v->options,
             device->found->traits.is_cpu, device->found->traits.has_f64,
             device->found->divides_exactly ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    for (ocl_program *p = all->first; p; p = p->next)
        if (p->source == v->source && strcmp(p->options, options) == 0) {
            *out = p;
            return TN_OK;
        }
    ocl_program *p = ocl_host_alloc(device->self, sizeof *p, "a program");
    if (!p)
        return TN_OUT_OF_MEMORY;
    *p = (ocl_program){.next = all->first, .source = v->source};
    memcpy(p->options, options, sizeof options);
    tn_status status = load(device, p) ? TN_OK : build(device, v, p);
    if (status != TN_OK) {
        device->self->host->free(p);
        return status;
    }
    *out = all->first = p;
    return TN_OK;
}

/* A program from the cache that lacks the kernel is not what it says: it is built. What was made of
 * it before goes on holding it. */
static tn_status make_kernel(tn_pdevice *device, const gpu_variant *v, gpu_kernel *out) {
    cl_int error;
    tn_status status = find_program(device, v, &out->program);
    if (status != TN_OK)
        return status;
    ocl_program *p = out->program;
    out->kernel = clCreateKernel(p->program, v->entry, &error);
    if (!out->kernel && p->is_loaded) {
        cl_program loaded = p->program;
        status = build(device, v, p);
        if (status != TN_OK) {
            p->program = loaded;
            p->is_loaded = true;
            return status;
        }
        clReleaseProgram(loaded);
        out->kernel = clCreateKernel(p->program, v->entry, &error);
    }
    return out->kernel ? TN_OK : fail_build(device, p, v, error);
}

tn_status gpu_kernel_build(tn_pdevice *device, uint64_t key, const gpu_variant *variant,
                           gpu_kernel **out) {
    struct ocl_programs *p = device->programs;
    struct ocl_guard guard;
    tn_status status = ocl_check_lost(device);
    *out = NULL;
    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&p->lock);
    gpu_kernel *k = slot_of(p, key | USED);
    if (!k) {
        status = ocl_fail(device->self, TN_INTERNAL,
                          "opencl:%u has built %d kernels, and no more "
                          "can be kept",
                          device->index, TABLE);
    } else if (atomic_load(&k->key) == 0) {
        ocl_guard_enter(&guard);
        k->arguments = ocl_host_alloc(device->self, sizeof *k->arguments, "a kernel's arguments");
        status = k->arguments ? make_kernel(device, variant, k) : TN_OUT_OF_MEMORY;
        ocl_guard_leave(&guard);
        if (status == TN_OK) {
            pthread_mutex_init(&k->lock, NULL);
            k->arguments->n_freed = UINT64_MAX;
            atomic_store_explicit(&k->key, key | USED, memory_order_release);
        } else {
            device->self->host->free(k->arguments);
        }
    }
    pthread_mutex_unlock(&p->lock);
    *out = k;
    return status;
}

/* ---- keeping ----------------------------------------------------------------------------- */

void ocl_program_launched(tn_pdevice *device, ocl_program *p) {
    p->saved = OCL_LAUNCHED;
    atomic_store(&device->programs->has_unsaved, true);
}

static void save(tn_pdevice *device, const ocl_program *p) {
    const tn_host *host = device->self->host;
    struct ocl_cache_key key = cache_key(device, p);
    size_t bytes = 0;
    if (clGetProgramInfo(p->program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) !=
            CL_SUCCESS ||
        bytes == 0)
        return;
    unsigned char *binary = host->alloc(bytes, 64);
    if (binary && clGetProgramInfo(p->program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) ==
                      CL_SUCCESS)
        ocl_cache_save(device->self, &key, binary, bytes);
    host->free(binary);
}

void ocl_programs_save(tn_pdevice *device, bool at_end) {
    struct ocl_programs *all = device->programs;
    if (!atomic_load_explicit(&all->has_unsaved, memory_order_relaxed) ||
        (device->found->is_pocl && !at_end))
        return;
    struct ocl_guard guard;
    pthread_mutex_lock(&all->lock);
    ocl_guard_enter(&guard);
    atomic_store(&all->has_unsaved, false);
    for (ocl_program *p = all->first; p; p = p->next)
        if (p->saved == OCL_LAUNCHED) {
            p->saved = OCL_SAVED;
            save(device, p);
        }
    ocl_guard_leave(&guard);
    pthread_mutex_unlock(&all->lock);
}
