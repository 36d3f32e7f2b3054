/* Which dimensions a call goes over: for reductions, scans, sorts and softmax. */
#ifndef TNI_CORE_OPS_DIMS_H
#define TNI_CORE_OPS_DIMS_H

#include "core/call/call.h"

/* The dimensions that `dim` names, one bit each; all when it is empty or left out. Rank 0 counts as
 * rank 1. False, with an error that starts with `call`, when one is out of range or named twice. */
bool tni_reduce_mask(tn_ints dim, int32_t rank, const char *call, uint32_t *out_mask);
/* How many elements go into one element of the result. */
int64_t tni_reduce_count(const tn_tensor *t, uint32_t mask);
/* The dimensions of a mask as a list; `out` has room for TN_MAX_RANK. */
tn_ints tni_reduce_dims(uint32_t mask, int64_t *out);
/* A reduced tensor as keepdim would have left it, so that it broadcasts against an input of
 * `sizes`; owned. */
tn_tensor *tni_reduce_restore(tn_tensor *reduced, tn_ints sizes, uint32_t mask, bool keepdim);

/* t [n] as [1, ..., n, ..., 1] of so many dimensions, n at dim; owned by the list. */
tn_tensor *tni_along(tni_temps *temps, tn_tensor *t, int32_t dim, int32_t rank);

/* Sums and products of integers and bool are made in i64. */
tn_dtype tni_accumulator_dtype(tn_dtype dtype);

/* `infer` along one dimension: all outputs have the shape of argument 0, tensor arguments are of
 * rank 1 at least, and kernel argument `at` is the dimension. */
tn_status tni_infer_along(tni_build *b, uint32_t at);

#endif
