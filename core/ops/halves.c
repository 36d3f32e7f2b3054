/* From half to f32, and to any other dtype, where need be. */
#include "core/ops/halves.h"

#include <float.h>

tn_tensor *tni_as_dtype(tni_temps *temps, tn_tensor *t, tn_dtype dtype) {
    return !t || t->view.dtype == dtype ? t : tni_then(temps, tni_to_dtype(t, dtype), t);
}

tn_tensor *tni_widened(tni_temps *temps, tn_tensor *t) {
    return t && tni_is_half(t->view.dtype) ? tni_as_dtype(temps, t, TN_F32) : t;
}

tn_tensor *tni_wide(tn_tensor *t) {
    return t && tni_is_half(t->view.dtype) ? tni_to_dtype(t, TN_F32) : tni_keep_opt(t);
}

double tni_largest_finite(tn_dtype dtype) {
    return dtype == TN_F64    ? DBL_MAX
           : dtype == TN_F16  ? 65504.0
           : dtype == TN_BF16 ? 0x1.fep127
                              : (double)FLT_MAX;
}
