/* Output and input, and how a tile of them lies. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_COPY_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_COPY_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

#define COPY_TILE 32 /* elements, both ways */

typedef struct copy_params {
    i64 numel;
    i64 offsets[2]; /* output, input */
#if HOST || STRIDED
    LOOP(2) loop; /* with STRIDED 2: less the two dimensions of the tile */
#endif
#if HOST || STRIDED == 2
    i64 sizes[2];          /* along the dimension that the output lies in, and along the input's */
    i64 out_step, in_step; /* of the one along the other's */
#endif
} copy_params;

#endif
