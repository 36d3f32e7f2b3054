/* Attention over operators; see attention.h. */
#include "nn/modules/attention.h"

#include <math.h>
#include <tenon/device.h>
#include <tenon/ops.h>

static tn_tensor *hide(tn_tensor *scores, tn_tensor *seen) {
    return tn_masked_fill_scalar(scores, tn_logical_not(seen), tn_float(-INFINITY));
}

tn_tensor *tnn_scaled_dot_product_attention(tn_tensor *query, tn_tensor *key, tn_tensor *value,
                                            tn_tensor *mask, double dropout, bool is_causal) {
    double scale = 1 / sqrt((double)tn_size(query, -1));
    /* The smaller factor is scaled; scores [N, H, L, S] */
    tn_tensor *scores = tn_matmul(tn_mul_scalar(query, tn_float(scale)), tn_transpose(key, -2, -1));
    if (is_causal && scores) {
        tn_ints shape = TN_SHAPE(tn_size(scores, -2), tn_size(scores, -1));
        scores = hide(scores, tn_tril(tn_ones(shape, TN_BOOL, tn_device_of(scores))));
    }
    if (mask && mask != TN_NONE)
        scores = tn_dtype_of(mask) == TN_BOOL ? hide(scores, mask) : tn_add(scores, mask);
    tn_tensor *weights = tn_softmax(scores, -1);
    if (dropout > 0)
        weights = tn_dropout(weights, dropout, true);
    return tn_matmul(weights, value);
}
