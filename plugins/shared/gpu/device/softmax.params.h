/* Of the output and of one or two inputs. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_SOFTMAX_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_SOFTMAX_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

typedef struct softmax_params {
    i64 offsets[3];
    i64 length;
    i64 along[3];     /* strides of the dimension */
    i64 lane_step[3]; /* strides from lane to lane */
    i64 n_teams, per; /* of the call; of a group, besides P */
    i64 width;        /* the innermost other dimension */
    i64 steps[3];     /* its strides */
    LOOP(3) others;
} softmax_params;

#endif
