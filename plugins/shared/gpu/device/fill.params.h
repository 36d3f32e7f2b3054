/* One tensor, and the bits of an element. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_FILL_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_FILL_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

typedef struct fill_params {
    i64 numel;
    i64 offset; /* in elements */
    i64 bits;
#if HOST || STRIDED
    LOOP(1) loop;
#endif
} fill_params;

#endif
