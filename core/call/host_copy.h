/* What copies and fills do on the host, element by element. */
#ifndef TNI_CORE_CALL_HOST_COPY_H
#define TNI_CORE_CALL_HOST_COPY_H

#include "core/tensor/tensor.h"

/* dst = src of one shape on one device, cast: for pairs of dtypes that it has no `copy` kernel for. */
tn_status tni_host_copy(tn_tensor *dst, tn_tensor *src);

/* The first element of an array of `dtype` becomes `value`. */
void tni_store_scalar(void *data, tn_dtype dtype, tn_scalar value);

#endif
