/* A loss of self [n, n_classes], or its gradient. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_LOSS_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_LOSS_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

typedef struct loss_params {
    i64 n, n_classes;
    i64 mean; /* 0 or 1 */
    i64 ignore_index;
    i64 offsets[4]; /* of the tensors in the order of the kernel's arguments */
    i64 target;     /* stride */
    i64 self[2];    /* strides; of the loss */
} loss_params;

#endif
