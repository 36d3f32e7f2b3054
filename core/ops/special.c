/* See special.h. */
#include "core/ops/special.h"

tn_tensor *tni_evaluated(tni_temps *tmp, const double *coefficients, uint32_t n, tn_tensor *x) {
    tn_tensor *sum = tni_own(tmp, tni_mul_scalar(x, tn_float(coefficients[n - 1])));
    for (uint32_t i = n - 2;; i--) {
        sum = tni_then(tmp, tni_add_scalar(sum, tn_float(coefficients[i]), tn_int(1)), sum);
        if (i == 0)
            return sum;
        sum = tni_then(tmp, tni_mul(sum, x), sum);
    }
}

tn_tensor *tni_polynomial_at(tni_temps *tmp, const tni_polynomial *p, tn_tensor *x) {
    if (!x)
        return NULL;
    return x->view.dtype == TN_F64 ? tni_evaluated(tmp, p->of_f64, p->n_of_f64, x)
                                   : tni_evaluated(tmp, p->of_f32, p->n_of_f32, x);
}

tn_tensor *tni_plus_number(tni_temps *tmp, tn_tensor *x, double number) {
    return tni_own(tmp, tni_add_scalar(x, tn_float(number), tn_int(1)));
}

tn_tensor *tni_times_number(tni_temps *tmp, tn_tensor *x, double number) {
    return tni_own(tmp, tni_mul_scalar(x, tn_float(number)));
}

tn_tensor *tni_number_over(tni_temps *tmp, double number, tn_tensor *x) {
    return tni_times_number(tmp, tni_own(tmp, tni_reciprocal(x)), number);
}

tn_tensor *tni_folded(tni_temps *tmp, tn_tensor *x, double middle) {
    tn_tensor *rest = tni_number_over(tmp, -2 * middle, tni_plus_number(tmp, x, middle));
    return tni_plus_number(tmp, rest, 1);
}

tn_tensor *tni_as_float(tni_temps *tmp, tn_tensor *x) {
    return tni_is_float(x->view.dtype) ? x : tni_own(tmp, tni_to_dtype(x, TN_F32));
}
