/* Attention with a mask that may be causal besides; see attention.h. */
#include "nn/modules/attention.h"

#include <math.h>
#include <tenon/device.h>
#include <tenon/ops.h>

/* What a mask and the order of the positions leave to be seen. */
static tn_tensor *both(tn_tensor *mask, const tn_tensor *query, const tn_tensor *key) {
    tn_ints shape = TN_SHAPE(tn_size(query, -2), tn_size(key, -2));
    tn_tensor *seen = tn_tril(tn_ones(shape, TN_BOOL, tn_device_of(query)));
    if (tn_dtype_of(mask) == TN_BOOL)
        return tn_logical_and(mask, seen);
    return tn_masked_fill_scalar(mask, tn_logical_not(seen), tn_float(-INFINITY));
}

tn_tensor *tnn_attention(tn_tensor *query, tn_tensor *key, tn_tensor *value, tn_tensor *mask,
                         double dropout, bool is_causal) {
    bool masked = mask && mask != TN_NONE;
    if (masked && is_causal)
        mask = both(mask, query, key);
    return tn_scaled_dot_product_attention(query, key, value, mask, dropout, is_causal && !masked);
}
