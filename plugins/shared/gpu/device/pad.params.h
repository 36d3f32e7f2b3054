/* A dense [n, c, h, w]: the input with `before` zeros round it, and as many behind as fit. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_PAD_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_PAD_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

typedef struct pad_params {
    i64 sizes[4];  /* of the output */
    i64 inside[2]; /* rows and columns of the input */
    i64 before[2];
    i64 from, strides[4];
    i64 to;
} pad_params;

#endif
