/* The dtype that a call computes in, as PyTorch's result_type gives it for tensors and scalars. */
#ifndef TNI_CORE_CALL_PROMOTE_H
#define TNI_CORE_CALL_PROMOTE_H

#include "core/tensor/tensor.h"

typedef struct tni_promotion {
    tn_dtype dims, zero_dim, scalars; /* TN_DTYPE_NONE where there was none */
    bool to_none;                     /* two of them promote to nothing, whatever the others are */
} tni_promotion;
#define TNI_NO_PROMOTION \
    { TN_DTYPE_NONE, TN_DTYPE_NONE, TN_DTYPE_NONE, false }
void tni_promotion_add(tni_promotion *p, const tn_cell *cell);
tn_dtype tni_promotion_result(const tni_promotion *p);
/* What those of `args` that `mask` has a bit for promote to; f32 where that is no floating dtype. */
tn_dtype tni_common_float(const tn_cell *args, uint32_t mask);

/* May a result of dtype `from` be stored as `to`? Not floating to integer, not number to bool. */
bool tni_can_cast(tn_dtype from, tn_dtype to);

/* Can a number become an element of `dtype`? Integers wrap; a floating one must be within 64 bits. */
bool tni_fits(tn_scalar value, tn_dtype dtype);

#endif
