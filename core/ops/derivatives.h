/* What backward formulas call besides operators. Every function makes its result from operators, so
 * that derivatives of derivatives work through it; results are owned, NULL arguments pass through.
 */
#ifndef TNI_CORE_OPS_DERIVATIVES_H
#define TNI_CORE_OPS_DERIVATIVES_H

#include "core/ops/ops.h"

/* Mask of the edges whose gradient somebody wants. */
uint32_t tni_needed(const tni_node *node);
/* Saved tensor k, owned; TN_NONE when it was left out, NULL with an error when it is gone. */
tn_tensor *tni_unpack(tni_node *node, uint32_t k);
/* Drops n results and clears them. */
void tni_drop_all(tn_tensor **out, uint32_t n);

/* whole backward functions, for what is no expression */
tn_status backward_cat(tni_node *node, tn_tensor *const *grads, tn_tensor **out);
tn_status backward_unbind(tni_node *node, tn_tensor *const *grads, tn_tensor **out);
tn_status backward_split(tni_node *node, tn_tensor *const *grads, tn_tensor **out);

/* of views */
tn_tensor *tni_permute_backward(tn_tensor *grad, tn_ints dims);
tn_tensor *tni_select_backward(tn_tensor *grad, tn_ints sizes, int64_t dim, int64_t index);
tn_tensor *tni_slice_backward(tn_tensor *grad, tn_ints sizes, int64_t dim, int64_t start,
                              int64_t end, int64_t step);
/* self has sizes, strides and offset; the view size, stride and view_offset (TN_NO_INT: the same)
 */
tn_tensor *tni_as_strided_backward(tn_tensor *grad, tn_ints sizes, tn_ints strides, int64_t offset,
                                   tn_ints size, tn_ints stride, int64_t view_offset);
tn_tensor *tni_diagonal_backward(tn_tensor *grad, tn_ints sizes, int64_t offset, int64_t dim1,
                                 int64_t dim2);

/* pointwise */
tn_tensor *tni_pow_backward_self(tn_tensor *grad, tn_tensor *self, tn_tensor *exponent);
tn_tensor *tni_pow_backward_exponent(tn_tensor *grad, tn_tensor *self, tn_tensor *exponent,
                                     tn_tensor *result);
tn_tensor *tni_pow_scalar_backward(tn_tensor *grad, tn_tensor *self, tn_scalar exponent);
tn_tensor *tni_clamp_backward(tn_tensor *grad, tn_tensor *self, tn_scalar min, tn_scalar max);
/* by `self`; equals share the gradient */
tn_tensor *tni_maximum_backward(tn_tensor *grad, tn_tensor *self, tn_tensor *other);
tn_tensor *tni_minimum_backward(tn_tensor *grad, tn_tensor *self, tn_tensor *other);

/* reductions: `dim` as the caller gave it, empty for all. Each element's share in a sum; the
 * elements that equal the extreme share its gradient evenly; a running sum from the other end. */
tn_tensor *tni_sum_backward(tn_tensor *grad, tn_ints sizes, tn_ints dim, bool keepdim);
tn_tensor *tni_amax_backward(tn_tensor *grad, tn_tensor *self, tn_tensor *result, tn_ints dim,
                             bool keepdim);
tn_tensor *tni_cumsum_backward(tn_tensor *grad, int64_t dim);

tn_tensor *tni_max_pool2d_double_backward(tn_tensor *grad, tn_tensor *indices);
tn_tensor *tni_layer_norm_backward_weight(tn_tensor *grad, tn_tensor *input, tn_tensor *mean,
                                          tn_tensor *rstd, tn_ints normalized_shape);
tn_tensor *tni_layer_norm_backward_bias(tn_tensor *grad, tn_ints normalized_shape);

#endif
