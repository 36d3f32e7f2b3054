/* Windows of [N, C, H, W], known by where their maxima stood. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_MAX_POOL2D_BACKWARD_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_MAX_POOL2D_BACKWARD_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

typedef struct max_pool2d_backward_params {
    i64 items, channels;
    i64 large[2], small[2];        /* H, W of the gradient that is made; of the windows */
    i64 offsets[4], strides[3][4]; /* out, places, in; the workspace's offset is last */
} max_pool2d_backward_params;

#endif
