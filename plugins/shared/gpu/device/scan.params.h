/* Of the output and the input. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_SCAN_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_SCAN_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

typedef struct scan_params {
    i64 offsets[2];
    i64 sums; /* where the sums of chunks begin, in A; what they lose is behind them */
    i64 length;
    i64 chunk;    /* elements of a line; a multiple of L * W by rows */
    i64 n_chunks; /* of a line */
    i64 n_lines;
    i64 along[2];     /* strides of the dimension */
    i64 lane_step[2]; /* strides from lane to lane */
    i64 n_teams, per; /* of the call; of a group, besides P */
    i64 width;        /* the innermost other dimension */
    i64 steps[2];     /* its strides */
    LOOP(2) others;
} scan_params;

#endif
