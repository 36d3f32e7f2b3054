/* Windows of [N, C, H, W]: values and their places from the input. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_MAX_POOL2D_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_MAX_POOL2D_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

typedef struct max_pool2d_params {
    i64 items, channels;
    i64 large[2], small[2]; /* H, W of the input; of the outputs */
    i64 window[2], stride[2], padding[2], dilation[2];
    i64 lowest;                    /* the value of a window of padding alone */
    i64 offsets[3], strides[3][4]; /* values, places, input */
} max_pool2d_params;

#endif
