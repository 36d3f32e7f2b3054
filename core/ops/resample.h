/* Tables made on the host, which say where elements are taken from: what padding and resampling share. */
#ifndef TNI_CORE_OPS_RESAMPLE_H
#define TNI_CORE_OPS_RESAMPLE_H

#include "core/tensor/tensor.h"

/* A tensor of `sizes` with those bytes of the host; NULL with an error. */
tn_tensor *tni_table(tni_device *device, tn_dtype dtype, tn_ints sizes, const void *data,
                     uint64_t bytes);

#endif
