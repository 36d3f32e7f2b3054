/* Lines of keys and places, sorted in runs that are merged. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_SORT_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_SORT_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

#define SORT_RUN 16 /* elements that a work item sorts by itself */

typedef struct sort_params {
    i64 items, per_line;        /* work items; those of a line */
    i64 n;                      /* elements of a line */
    i64 run, chunk;             /* merge: elements of a run; those that a work item makes */
    i64 keys[2], places[2];     /* where they begin in the workspace, in elements: from, to */
    i64 offsets[3], strides[3]; /* values, places, input; along dim */
    LOOP(3) loop;               /* lines */
} sort_params;

#endif
