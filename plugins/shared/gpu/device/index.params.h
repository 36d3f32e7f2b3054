/* Rows, cut into runs, of the index, the tensor of its shape and the indexed one. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_INDEX_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_INDEX_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

typedef struct index_params {
    i64 items;
    i64 row, run, runs; /* elements of a row, of a run; runs of a row */
    i64 size, stride;   /* of the indexed tensor along dim */
    i64 n, strides[2];  /* elements along dim; the index's, the other tensor's */
    i64 alpha;
    i64 keys, places; /* of add_sorted: where they begin in the workspace, in elements */
    i64 offsets[3], row_strides[3]; /* index, the tensor of its shape, the indexed one */
    LOOP(3) loop;                   /* rows, or lines of add_sorted */
} index_params;

#endif
