/* One tensor, and the sequence in it. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_ARANGE_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_ARANGE_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

typedef struct arange_params {
    i64 numel;
    i64 offset, stride;
    i64 start, step; /* floating T: the bits of f64 */
} arange_params;

#endif
