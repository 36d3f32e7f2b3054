/* Halves are computed in f32: a formula of several steps widens its inputs and narrows the result. The
 * decompositions of the table need not (tni_run_as does it for them), composites of their own do. */
#ifndef TNI_CORE_OPS_HALVES_H
#define TNI_CORE_OPS_HALVES_H

#include "core/call/temps.h"
#include "core/ops/operators.h"

/* t itself, or where it has another dtype, a cast of it that the list owns. */
static inline tn_tensor *tni_as_dtype(tni_temps *temps, tn_tensor *t, tn_dtype dtype) {
    return !t || t->view.dtype == dtype ? t : tni_then(temps, tni_to_dtype(t, dtype), t);
}
/* The same, from a half to f32. */
static inline tn_tensor *tni_widened(tni_temps *temps, tn_tensor *t) {
    return t && tni_is_half(t->view.dtype) ? tni_as_dtype(temps, t, TN_F32) : t;
}
/* The same, owned. */
static inline tn_tensor *tni_wide(tn_tensor *t) {
    return t && tni_is_half(t->view.dtype) ? tni_to_dtype(t, TN_F32) : tni_keep_opt(t);
}

#endif
