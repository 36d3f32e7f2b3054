/* Attention itself, without parameters. */
#ifndef TNI_NN_MODULES_ATTENTION_H
#define TNI_NN_MODULES_ATTENTION_H

#include <tenon/tensor.h>

/* softmax(query key^T / sqrt(D) + mask) value: query [N, H, L, D], key and value [N, H, S, D] to
 * [N, H, L, D]. mask: TN_NONE, bool (true: sees), or a number to add; is_causal: as well as it. */
tn_tensor *tnn_attention(tn_tensor *query, tn_tensor *key, tn_tensor *value, tn_tensor *mask,
                         double dropout, bool is_causal);

#endif
