/* Work on the data of tensors, below autograd: copies, casts, moves, fills. */
#ifndef TNI_CORE_CALL_COPY_H
#define TNI_CORE_CALL_COPY_H

#include "core/tensor/tensor.h"

/* Has each element of `self`, which is to be written, memory of its own? Otherwise TN_ERR_SHAPE, said
 * in the name of `call`. */
bool tni_check_distinct(const char *call, const tn_tensor *self);

/* May elements of `src`, which `call` calls `what`, become some of self's? Complex numbers are no real ones
 * without saying so: TN_ERR_DTYPE. */
tn_status tni_check_keeps_imaginary(const char *call, const char *what, const tn_tensor *src,
                                    const tn_tensor *self);

/* dst = src: broadcast, cast, any strides, any devices. */
tn_status tni_copy_data(tn_tensor *dst, tn_tensor *src);
/* Sets every element. */
tn_status tni_fill_data(tn_tensor *dst, tn_scalar value);
/* Another dtype, or t itself kept; owned. */
tn_tensor *tni_cast_data(tn_tensor *t, tn_dtype dtype);

#endif
