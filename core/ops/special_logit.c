/* logit, and its derivative. */
#include "core/ops/special.h"

#include <math.h>

/* logit(self, eps) */
tn_status tni_run_logit(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = tni_arg_tensor(&args[0]);
    tni_temps tmp = {0};
    x = tni_as_float(&tmp, x);
    if (args[1].tag != TN_CELL_NONE) {
        double eps = tni_scalar_f64(args[1]);
        tn_tensor *low = tni_own(&tmp, tni_lt_scalar(x, tn_float(eps))); /* eps may be above 1/2 */
        x = tni_own(&tmp, tni_clamp_max(x, tn_float(1 - eps)));
        x = tni_own(&tmp, tni_where_scalarself(low, tn_float(eps), x));
    }
    tn_tensor *rest = tni_own(&tmp, tni_rsub_scalar(x, tn_int(1), tn_int(1)));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_log(tni_own(&tmp, tni_div(x, rest)))), rets);
}

/* 1 / (x (1 - x)) from eps to 1 - eps, and 0 beyond; without eps NaN beyond 0 and 1 */
tn_tensor *tni_logit_backward(tn_tensor *grad, tn_tensor *self, tn_scalar eps) {
    bool is_given = eps.tag != TN_CELL_NONE;
    double low = is_given ? tni_scalar_f64(eps) : 0;
    tni_temps tmp = {0};
    grad = tni_widened(&tmp, grad);
    tn_tensor *x = tni_widened(&tmp, self);
    tn_tensor *beyond =
        tni_own(&tmp, tni_bitwise_or(tni_own(&tmp, tni_lt_scalar(x, tn_float(low))),
                                     tni_own(&tmp, tni_gt_scalar(x, tn_float(1 - low)))));
    tn_tensor *rest = tni_own(&tmp, tni_rsub_scalar(x, tn_int(1), tn_int(1)));
    tn_tensor *slope = tni_own(&tmp, tni_div(grad, tni_own(&tmp, tni_mul(x, rest))));
    tn_scalar other = tn_float(is_given ? 0 : (double)NAN);
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_where_scalarself(beyond, other, slope)));
}
