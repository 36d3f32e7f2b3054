/* What derivative formulas of reductions, pooling and normalisation call besides operators. Results
 * are owned; NULL passes through. */
#ifndef TNI_CORE_OPS_HELPERS_A_H
#define TNI_CORE_OPS_HELPERS_A_H

#include "core/ops/ops.h"

/* Each element's share in a sum: grad over again. */
tn_tensor *tni_sum_backward(tn_tensor *grad, tn_ints sizes, tn_ints dim, bool keepdim);
/* The elements that equal the extreme share its gradient evenly; for amax and amin. */
tn_tensor *tni_amax_backward(tn_tensor *grad, tn_tensor *self, tn_tensor *result, tn_ints dim,
                             bool keepdim);
/* A running sum from the other end. */
tn_tensor *tni_cumsum_backward(tn_tensor *grad, int64_t dim);
/* The elements of `grad` where the maxima stood. */
tn_tensor *tni_max_pool2d_double_backward(tn_tensor *grad, tn_tensor *indices);
tn_tensor *tni_layer_norm_backward_weight(tn_tensor *grad, tn_tensor *input, tn_tensor *mean,
                                          tn_tensor *rstd, tn_ints normalized_shape);
tn_tensor *tni_layer_norm_backward_bias(tn_tensor *grad, tn_ints normalized_shape);

#endif
