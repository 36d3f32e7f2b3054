/* What the table of pointwise operators says of each. */
#ifndef TNI_PLUGINS_SHARED_GPU_POINTWISE_H
#define TNI_PLUGINS_SHARED_GPU_POINTWISE_H

#include "plugins/shared/gpu/gpu.h"

/* What tn_kernel.user points to. */
typedef struct gpu_pointwise {
    const char *name;
    uint32_t id; /* smaller than 2^16, of no other operator */
    uint8_t n_in, n_out;
    bool bool_in; /* the first input is bool */
    /* Attributes to what the device code takes; see device/pointwise.cl. */
    void (*numbers)(const tn_call *call, tn_dtype dtype, int64_t *out);
} gpu_pointwise;

tn_status gpu_pointwise_run(const tn_call *call);

#endif
