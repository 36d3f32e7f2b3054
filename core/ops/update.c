/* See update.h. */
#include "core/ops/update.h"
#include "core/call/copy.h"
#include "core/ops/halves.h"

tni_factor tni_factor_later(tni_temps *temps, tn_tensor *factors, int64_t i) {
    int64_t step = factors->view.rank ? factors->strides[0] : 0;
    tn_tensor *one =
        tni_tensor_view(factors, 0, NULL, NULL, tni_offset_elements(factors) + i * step);
    return (tni_factor){.later = tni_own(temps, one)};
}

tn_tensor *tni_scale(tni_temps *temps, tn_tensor *t, tni_factor f) {
    return tni_own(temps, f.later ? tni_mul_(t, f.later) : tni_mul_scalar_(t, tn_float(f.now)));
}

tn_tensor *tni_times(tni_temps *temps, tn_tensor *t, tni_factor f) {
    return tni_own(temps, f.later ? tni_mul(t, f.later) : tni_mul_scalar(t, tn_float(f.now)));
}

tn_tensor *tni_subtract_scaled(tni_temps *temps, tn_tensor *t, tn_tensor *x, tni_factor f) {
    return f.later ? tni_own(temps, tni_add_(t, tni_times(temps, x, f), tn_int(-1)))
                   : tni_own(temps, tni_add_(t, x, tn_float(-f.now)));
}

tn_tensor *tni_average(tni_temps *temps, tn_tensor *average, tn_tensor *x, double beta) {
    average = tni_own(temps, tni_mul_scalar_(average, tn_float(beta)));
    return tni_own(temps, tni_add_(average, x, tn_float(1 - beta)));
}

tn_tensor *tni_average_square(tni_temps *temps, tn_tensor *average, tn_tensor *x, double beta) {
    average = tni_own(temps, tni_mul_scalar_(average, tn_float(beta)));
    return tni_own(temps, tni_addcmul_(average, x, x, tn_float(1 - beta)));
}

void tni_update_begin(tni_update *u, tni_temps *temps, tn_tensor *const *given, uint32_t n) {
    *u = (tni_update){.temps = temps, .n = n, .before = tni_thread_keys};
    tni_thread_keys.excluded |= TNI_KEYS_BELOW_AUTOGRAD;
    for (uint32_t i = 0; i < n; i++) {
        u->given[i] = given[i];
        u->t[i] = tni_widened(temps, given[i]);
    }
}

tn_tensor *tni_update_grad(const tni_update *u, bool maximize, double penalty) {
    tn_tensor *grad = maximize ? tni_own(u->temps, tni_neg(u->t[1])) : u->t[1];
    if (penalty == 0)
        return grad;
    return tni_own(u->temps, tni_add(grad, u->t[0], tn_float(penalty)));
}

tn_status tni_update_end(tni_update *u, const tn_tensor *last) {
    tn_status status = last ? TN_OK : tni_failed();
    for (uint32_t i = 0; i < u->n && status == TN_OK; i++)
        if (i != 1 && u->t[i] != u->given[i])
            status = tni_copy_data(u->given[i], u->t[i]);
    tni_temps_finish(u->temps);
    tni_thread_keys = u->before;
    return status;
}
