/* Device code, built for a device when a call first needs it, and kept on disk. */
#include "plugins/cuda/cuda.h"
#include "plugins/shared/gpu/signals.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { OPTIONS = GPU_OPTIONS + 64 };

/* Device code with options, which several kernels are made of. */
typedef struct program {
    struct program *next;
    CUmodule module, replaced; /* NULL, or from the cache, and of no use for the rest */
    const gpu_source *source;
    char options[OPTIONS];
    bool is_loaded; /* from the cache */
} program;

struct cuda_programs {
    pthread_mutex_t lock; /* guards what follows, and device->move_error */
    program *first;
};

tn_status cuda_programs_create(tn_device_impl *device) {
    device->programs =
        cuda_host_alloc(device->self, sizeof *device->programs, "the list of programs");
    if (!device->programs)
        return TN_ERR_OUT_OF_MEMORY;
    *device->programs = (cuda_programs){0};
    pthread_mutex_init(&device->programs->lock, NULL);
    return TN_OK;
}

void cuda_programs_destroy(tn_device_impl *device) {
    if (!device->programs)
        return;
    for (program *p = device->programs->first, *next; p; p = next) {
        next = p->next;
        (void)CUDA_CALL(device, cuModuleUnload, p->module);
        if (p->replaced)
            (void)CUDA_CALL(device, cuModuleUnload, p->replaced);
        device->self->host->dealloc(device->self->host, p);
    }
    device->self->host->dealloc(device->self->host, device->move_error);
    pthread_mutex_destroy(&device->programs->lock);
    device->self->host->dealloc(device->self->host, device->programs);
}

void cuda_kernel_release(tn_device_impl *device, gpu_kernel *kernel) {
    device->self->host->dealloc(device->self->host, kernel);
}

/* ---- building ---------------------------------------------------------------------------- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* For who asks why the first step is slow. */
static void tell(tn_device_impl *device, const program *p, const char *from, double start) {
    char line[CUDA_MESSAGE];
    snprintf(line, sizeof line, "cuda:%u: %s %.300s: %.0f ms, %s", device->index, p->source->name,
             p->options, (now() - start) * 1e3, from);
    device->self->host->log_message(device->self->host, TN_LOG_DEBUG, line);
}

/* What a program is kept under. A driver takes machine code of its own major version, and PTX it
 * compiles itself. `builder` lives as long as the key. */
static gpu_cache_key key_of(const tn_device_impl *device, const program *p, char builder[64]) {
    snprintf(builder, 64, "cuda %d.%d\ndriver %d", device->found->major, device->found->minor,
             device->self->driver_version);
    return (gpu_cache_key){.builder = builder, .options = p->options, .source = p->source->text};
}

/* What the driver says of an image that it does not take goes into `log`. */
static CUresult load_image(tn_device_impl *device, const cuda_image *image, program *p,
                           char log[256]) {
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)256};
    log[0] = '\0';
    gpu_signals_keep(); /* the driver compiles, too */
    CUresult error =
        CUDA_CALL(device, cuModuleLoadDataEx, &p->module, image->data, 2, options, values);
    gpu_signals_restore();
    return error;
}

/* From the cache. Whatever is wrong with it, the source is still there. */
static bool load(tn_device_impl *device, program *p) {
    double start = now();
    char builder[64], log[256];
    gpu_cache_key key = key_of(device, p, builder);
    cuda_image image = {0};
    image.data = gpu_cache_load(&device->self->cache, &key, &image.bytes);
    if (!image.data)
        return false;
    p->is_loaded = load_image(device, &image, p, log) == CUDA_SUCCESS;
    device->self->host->dealloc(device->self->host, image.data);
    if (p->is_loaded)
        tell(device, p, "from the cache", start);
    return p->is_loaded;
}

static tn_status build(tn_device_impl *device, program *p) {
    double start = now();
    char builder[64], log[256], what[CUDA_MESSAGE / 2];
    cuda_image image;
    const cuda_found *found = device->found;
    tn_status status = cuda_nvrtc_compile(device->self, p->source->name, p->source->text,
                                          p->options, found->major, found->minor, &image);
    if (status != TN_OK)
        return status;
    CUresult error = load_image(device, &image, p, log);
    if (error == CUDA_SUCCESS) {
        gpu_cache_key key = key_of(device, p, builder);
        p->is_loaded = false;
        tell(device, p, "built", start);
        gpu_cache_save(&device->self->cache, &key, image.data, image.bytes);
    } else {
        snprintf(what, sizeof what, "loading %.40s with %.200s%s%.100s", p->source->name,
                 p->options, log[0] ? ": " : "", log);
        status = cuda_fail_driver(device, error, what);
    }
    device->self->host->dealloc(device->self->host, image.data);
    return status;
}

/* The program that a variant is in, loaded or built if need be. */
static tn_status find_program(tn_device_impl *device, const gpu_variant *v, program **out) {
    cuda_programs *all = device->programs;
    char options[OPTIONS];
    snprintf(options, sizeof options, "%s -DIS_CPU=0 -DHAS_F64=1", v->options);
    for (program *p = all->first; p; p = p->next)
        if (p->source == v->source && strcmp(p->options, options) == 0) {
            *out = p;
            return TN_OK;
        }
    program *p = cuda_host_alloc(device->self, sizeof *p, "a program");
    if (!p)
        return TN_ERR_OUT_OF_MEMORY;
    *p = (program){.next = all->first, .source = v->source};
    memcpy(p->options, options, sizeof options);
    tn_status status = load(device, p) ? TN_OK : build(device, p);
    if (status != TN_OK) {
        device->self->host->dealloc(device->self->host, p);
        return status;
    }
    *out = all->first = p;
    return TN_OK;
}

/* A program from the cache that lacks the kernel is not what it says: it is built. What was made of
 * it before goes on using the module. */
static tn_status find_function(tn_device_impl *device, program *p, const char *entry,
                               CUfunction *out) {
    CUresult error = CUDA_CALL(device, cuModuleGetFunction, out, p->module, entry);
    if (error != CUDA_SUCCESS && p->is_loaded) {
        CUmodule loaded = p->module;
        tn_status status = build(device, p);
        if (status != TN_OK) {
            p->module = loaded;
            return status;
        }
        p->replaced = loaded;
        error = CUDA_CALL(device, cuModuleGetFunction, out, p->module, entry);
    }
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail_driver(device, error, entry);
}

/* A few more than are there at once, so that none waits long for the last. */
static tn_status count_groups(tn_device_impl *device, gpu_kernel *k) {
    enum { ROUNDS = 4 };
    int n = 0;
    CUresult error = CUDA_CALL(device, cuOccupancyMaxActiveBlocksPerMultiprocessor, &n, k->function,
                               GPU_GROUP, 0);
    if (error != CUDA_SUCCESS)
        return cuda_fail_driver(device, error, k->name);
    k->busy = (n > 0 ? (unsigned)n : 1) * device->found->traits.compute_units * ROUNDS;
    return TN_OK;
}

static tn_status make_kernel(tn_device_impl *device, const gpu_variant *variant, gpu_kernel **out) {
    program *p = NULL;
    PLUGIN_TRY(find_program(device, variant, &p));
    size_t n = strlen(variant->entry) + 1;
    gpu_kernel *k = cuda_host_alloc(device->self, sizeof *k + n, "a kernel");
    if (!k)
        return TN_ERR_OUT_OF_MEMORY;
    *k = (gpu_kernel){.options = p->options};
    k->name = memcpy(k + 1, variant->entry, n);
    tn_status status = find_function(device, p, variant->entry, &k->function);
    if (status == TN_OK)
        status = count_groups(device, k);
    if (status == TN_OK)
        *out = k;
    else
        device->self->host->dealloc(device->self->host, k);
    return status;
}

tn_status cuda_kernel_build(tn_device_impl *device, const gpu_variant *variant, gpu_kernel **out) {
    *out = NULL;
    PLUGIN_TRY(cuda_check_lost(device));
    pthread_mutex_lock(&device->programs->lock);
    tn_status status = make_kernel(device, variant, out);
    pthread_mutex_unlock(&device->programs->lock);
    return status;
}

tn_status cuda_move_error_build(tn_device_impl *device, const gpu_source *source) {
    gpu_variant variant = {.source = source, .entry = "move_error", .options = ""};
    tn_status status = TN_OK;
    pthread_mutex_lock(&device->programs->lock);
    if (!device->move_error)
        status = make_kernel(device, &variant, &device->move_error);
    pthread_mutex_unlock(&device->programs->lock);
    return status;
}
