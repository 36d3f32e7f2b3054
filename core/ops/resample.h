/* Tables made on the host, which say where elements are taken from: what padding and resampling
 * share. */
#ifndef TNI_CORE_OPS_RESAMPLE_H
#define TNI_CORE_OPS_RESAMPLE_H

#include "core/tensor/tensor.h"

/* Room on the host for n elements; of tni_alloc. NULL with an error, also where the device, which is to
 * get them as `dtype`, has none. */
void *tni_new_table(tni_device *device, tn_dtype dtype, int64_t n, int64_t element_size);
/* A tensor of `sizes` with those bytes of the host; NULL with an error. */
tn_tensor *tni_table(tni_device *device, tn_dtype dtype, tn_ints sizes, const void *data,
                     uint64_t bytes);
/* The same of n numbers, as f64 where that is the dtype, else as f32. */
tn_tensor *tni_number_table(tni_device *device, tn_dtype dtype, tn_ints sizes,
                            const double *numbers, int64_t n);

/* What the operators that resample check in the same way: output_size has n_dims values, all at
 * least `least`, and a result that can be counted. `sizes` gets those of self, with these as the
 * last. */
tn_status tni_resample_sizes(const char *call, const tn_tensor *self, tn_ints output_size,
                             int32_t n_dims, int64_t least, int64_t sizes[TN_MAX_RANK]);
/* self is floating. */
tn_status tni_resample_float(const char *call, const tn_tensor *self);

#endif
