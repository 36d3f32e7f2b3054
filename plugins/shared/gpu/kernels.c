/* The records of all families in one list, as tn_plugin wants them, and what their calls
 * have in common. */
#include "plugins/shared/gpu/gpu.h"

#include <pthread.h>
#include <stdio.h>

#define DECLARE(family) extern const gpu_family gpu_family_##family;
GPU_FAMILIES(DECLARE)

#define ADDRESS(family) &gpu_family_##family,
static const gpu_family *const families[] = {GPU_FAMILIES(ADDRESS)};

enum { MAX_KERNELS = 512 };
static const tn_kernel *kernels[MAX_KERNELS];
static uint64_t n_kernels;

/* Operators without f64 have an empty record in its place. */
static void collect(void) {
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++)
        for (uint32_t i = 0; i < families[f]->n_records; i++)
            if (families[f]->records[i].dtypes[0] && n_kernels < MAX_KERNELS)
                kernels[n_kernels++] = &families[f]->records[i];
}

const tn_kernel *const *gpu_kernels(uint64_t *out_n) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, collect);
    *out_n = n_kernels;
    return kernels;
}

bool gpu_needs_f64(const tn_kernel *kernel) {
    for (int i = 0; i < TN_KERNEL_MAX_TYPES; i++)
        if (kernel->dtypes[i] == GPU_F64)
            return true;
    return false;
}

tn_status gpu_kernel_get(tn_pdevice *device, uint64_t key, const gpu_source *source,
                         const char *entry, gpu_kernel **out, const char *format, ...) {
    *out = gpu_kernel_find(device, key);
    if (*out)
        return TN_OK;
    gpu_variant v = {.source = source, .entry = entry};
    va_list list;
    va_start(list, format);
    vsnprintf(v.options, sizeof v.options, format, list);
    va_end(list);
    return gpu_kernel_build(device, key, &v, out);
}

tn_status gpu_launch_items(tn_pstream *stream, gpu_launch *launch, int64_t n, int64_t group) {
    launch->groups[0] = (uint64_t)gpu_ceil_div(n, group);
    launch->local[0] = (uint64_t)group;
    return gpu_launch_on(stream, launch);
}
