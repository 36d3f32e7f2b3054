/* Chains of calls over owned references: each step gives up what it used. NULL passes through. */
#ifndef TNI_CORE_OPS_OWNED_H
#define TNI_CORE_OPS_OWNED_H

#include "core/ops/boxed.h"

/* x = tni_then(tni_exp(x), x): the result of a call, after which its argument is no longer needed.
 */
static inline tn_tensor *tni_then(tn_tensor *result, tn_tensor *used) {
    tni_drop(used);
    return result;
}
static inline tn_tensor *tni_then2(tn_tensor *result, tn_tensor *used1, tn_tensor *used2) {
    tni_drop(used1);
    tni_drop(used2);
    return result;
}
static inline bool tni_is_half(tn_dtype dtype) {
    return dtype == TN_F16 || dtype == TN_BF16;
}
/* A cast of an owned tensor, or the tensor itself. */
static inline tn_tensor *tni_as_dtype(tn_tensor *owned, tn_dtype dtype) {
    if (!owned || owned->view.dtype == dtype)
        return owned;
    return tni_then(tni_to_dtype(owned, dtype), owned);
}

#endif
