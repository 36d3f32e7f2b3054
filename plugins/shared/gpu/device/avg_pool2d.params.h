/* Windows of [N, C, H, W], forward and backward. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_AVG_POOL2D_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_AVG_POOL2D_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

typedef struct avg_pool2d_params {
    i64 items, channels;
    i64 large[2], small[2]; /* H, W of the input; of the windows */
    i64 window[2], stride[2], padding[2];
    i64 count_include_pad;
    i64 offsets[2], strides[2][4]; /* out, in */
} avg_pool2d_params;

#endif
