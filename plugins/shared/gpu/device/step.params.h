/* A step of an optimizer over one parameter. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_STEP_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_STEP_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

typedef struct step_params {
    i64 numel;
    i64 nesterov;
    i64 numbers[5];     /* attributes; step.cl has their order */
    i64 offsets[7];     /* in elements; outputs first, then inputs */
    i64 factors_offset; /* where the factors begin */
} step_params;

#endif
