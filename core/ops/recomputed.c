/* See recomputed.h. */
#include "core/ops/recomputed.h"

#include "core/ops/operators.h"

tn_tensor *tni_with_history(tni_temps *temps, tn_tensor *constant, tn_tensor *again) {
    tn_tensor *same = tni_own(temps, tni_detach(again));
    tn_tensor *zero = tni_own(temps, tni_sub(again, same, tn_int(1)));
    return tni_own(temps, tni_add(constant, zero, tn_int(1)));
}
