/* What is kept and what is reduced; strides and offsets in elements. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_REDUCE_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_REDUCE_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

typedef struct reduce_params {
    i64 offsets[2]; /* input, output */
    i64 states[2];  /* where a states array begins, in A; where the indices, in i64 */
    i64 n_outputs;  /* of the call */
    i64 n_reduced;  /* elements of a result */
    i64 chunk;      /* of these in a chunk */
    i64 n_chunks;
    i64 divisor;       /* var: a number of type A */
    i64 n_teams, per;  /* of the call; of a group, besides P */
    i64 width;         /* the innermost kept dimension */
    i64 steps[2];      /* its strides: input, output */
    i64 run, run_step; /* the innermost reduced dimension */
    LOOP(2) kept;      /* the others: input, output */
    LOOP(1) reduced;
} reduce_params;

#endif
