/* The records of all families in one list, as tn_plugin wants them. */
#include "plugins/shared/gpu/gpu.h"

#include <pthread.h>

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

const tn_kernel *const *gpu_records(uint64_t *out_n) {
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
