/* One struct for each number of tensors; the host packs the one that a call has. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_POINTWISE_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_POINTWISE_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

#if HOST || STRIDED
#define POINTWISE_LOOP(n) LOOP(n) loop; /* as offsets */
#else
#define POINTWISE_LOOP(n)
#endif
#define POINTWISE_PARAMS(n) \
    typedef struct pointwise_params_##n { \
        i64 numel; \
        i64 scalar;     /* the input that is a number */ \
        i64 numbers[8]; /* attributes of the operator */ \
        i64 offsets[n]; /* in elements; outputs first, then inputs */ \
        POINTWISE_LOOP(n) \
    } pointwise_params_##n;
POINTWISE_PARAMS(2)
POINTWISE_PARAMS(3)
POINTWISE_PARAMS(4)
POINTWISE_PARAMS(5)
POINTWISE_PARAMS(7)

#endif
