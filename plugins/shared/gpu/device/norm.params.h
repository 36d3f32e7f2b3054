/* The tensors of a layer_norm or of its gradient, as offsets and the loop have them. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_NORM_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_NORM_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

#define NORM_OUT 0
#define NORM_INPUT 1
#define NORM_WEIGHT 2
#define NORM_OTHER 3 /* the bias; backward the gradient of the output */
#define NORM_MEAN 4
#define NORM_RSTD 5
#define NORM_TENSORS 6

typedef struct norm_params {
    i64 offsets[NORM_TENSORS];
    i64 length;
    i64 n_teams, per; /* of the call; of a group, besides P */
    i64 eps;          /* a number of type A */
    i64 inner;        /* so many dimensions of the loop make a line */
    LOOP(NORM_TENSORS) loop;
} norm_params;

#endif
