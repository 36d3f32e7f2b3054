/* Tensors over memory that is not the allocator's. */
#ifndef TNI_CORE_TENSOR_FOREIGN_H
#define TNI_CORE_TENSOR_FOREIGN_H

#include "core/tensor/tensor.h"

/* tn_from_blob on behalf of `call`. */
tn_tensor *tni_tensor_at(const char *call, void *data, tn_ints sizes, tn_ints strides,
                         tn_dtype dtype, tni_device *device, void (*release)(void *),
                         void *context);

#endif
