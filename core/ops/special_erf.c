/* The error function: erfc with its digits in the tail, its scaled form, the start of its inverse. */
#include "core/ops/special.h"

/* (1 + 2 x) exp(x^2) erfc(x) for x >= 0, by (x - 4) / (x + 4): M. M. Shepherd and J. G.
 * Laframboise, Mathematics of Computation 36 (1981). */
static const double erfcx_f64[] = {
    1.2329951186255525,     -0.13962111684056249,    0.015379652102610162,
    0.068097054254686208,   -0.10103906603585294,    0.093732834998651721,
    -0.066330365820503671,  0.037167515531843196,    -0.016197733979924258,
    0.005031970032548695,   -0.00075777371418388841, -0.00019925700412184814,
    0.0001506231178516207,  -2.4398117942079951e-5,  -1.1225140354449657e-5,
    5.7072395736932574e-6,  2.9805960553227692e-7,   -8.2180206548130444e-7,
    7.1119124280104204e-8,  1.0683442926744583e-7,   -1.6357383982124754e-8,
    -1.2544825403855503e-8, 1.5712153638319037e-9,   9.6554082254828342e-10};
static const double erfcx_f32[] = {1.23299512,    -0.139621084,  0.0153796837,    0.0680961321,
                                   -0.101039951,  0.0937404438,  -0.0663232595,   0.0371399169,
                                   -0.0162222746, 0.00508280915, -0.000716339472, -0.000248632297,
                                   0.000116607997};
static const tni_polynomial erfcx_folded = TNI_POLYNOMIAL(erfcx);

/* exp(x^2) erfc(x), x >= 0 */
tn_tensor *tni_erfcx_above(tn_tensor *x) {
    tni_temps tmp = {0};
    tn_tensor *top =
        tni_times_number(&tmp, tni_polynomial_at(&tmp, &erfcx_folded, tni_folded(&tmp, x, 4)), 0.5);
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_div(top, tni_plus_number(&tmp, x, 0.5))));
}

/* The derivative of that, by the polynomial's: 2 x erfcx(x) - 2 / sqrt(pi) leaves few digits. */
tn_tensor *tni_erfcx_slope(tn_tensor *x) {
    bool is_f64 = x && x->view.dtype == TN_F64;
    const double *of = is_f64 ? erfcx_f64 : erfcx_f32;
    uint32_t n = is_f64 ? TNI_COUNT(erfcx_f64) : TNI_COUNT(erfcx_f32);
    double slopes[TNI_COUNT(erfcx_f64)];
    for (uint32_t i = 1; i < n; i++)
        slopes[i - 1] = i * of[i];
    tni_temps tmp = {0};
    tn_tensor *part = tni_number_over(&tmp, 1, tni_plus_number(&tmp, x, 4)),
              *q = tni_plus_number(&tmp, tni_times_number(&tmp, part, -8), 1);
    tn_tensor *factor = tni_number_over(&tmp, 0.5, tni_plus_number(&tmp, x, 0.5));
    tn_tensor *inner = tni_evaluated(&tmp, slopes, n - 1, q);
    inner = tni_times_number(&tmp,
                             tni_own(&tmp, tni_mul(inner, tni_own(&tmp, tni_mul(part, part)))), 8);
    tn_tensor *outer = tni_own(&tmp, tni_mul(tni_polynomial_at(&tmp, &erfcx_folded, q), factor));
    inner = tni_own(&tmp, tni_sub(inner, outer, tn_int(2)));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_mul(inner, factor)));
}

/* exp(sign x^2), 0 <= x. The exponential of a rounded square has as many digits less as the square has
 * before the point, so that of x in sixteenths is taken apart. Past 30 it is infinite, or 0. */
static tn_tensor *exp_of_square(tn_tensor *x, double sign) {
    tni_temps tmp = {0};
    x = tni_own(&tmp, tni_clamp_max(x, tn_int(30)));
    tn_tensor *low =
        tni_times_number(&tmp, tni_own(&tmp, tni_floor(tni_times_number(&tmp, x, 16))), 0.0625);
    tn_tensor *rest = tni_own(&tmp, tni_mul(tni_own(&tmp, tni_sub(x, low, tn_int(1))),
                                            tni_own(&tmp, tni_add(x, low, tn_int(1)))));
    low = tni_own(&tmp, tni_exp(tni_times_number(&tmp, tni_own(&tmp, tni_mul(low, low)), sign)));
    rest = tni_own(&tmp, tni_exp(tni_times_number(&tmp, rest, sign)));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_mul(low, rest)));
}

tn_tensor *tni_exp_of_square(tn_tensor *x) {
    return exp_of_square(x, 1);
}

tn_tensor *tni_exp_of_minus_square(tn_tensor *x) {
    return exp_of_square(x, -1);
}

/* erfinv(y) / y, by w = -log(1 - y^2) below 5, and by its root to 6.1; six digits. */
static const double erfinv_near[] = {0.886226786,    0.232018183,     0.0115254312,
                                     -0.00228678285, -0.000176159183, 7.25781085e-5,
                                     -5.48766582e-6, -1.09894846e-7,  2.26059777e-8};
static const double erfinv_far[] = {2.80727754,   -4.29329555,     4.12982384,
                                    -1.84438971,  0.514572945,     -0.0915902554,
                                    0.0101402148, -0.000637830505, 1.7442125e-5};

/* Six digits of the inverse of erf. */
tn_tensor *tni_erfinv_begun(tn_tensor *y) {
    tni_temps tmp = {0};
    tn_tensor *rest = tni_own(&tmp, tni_rsub_scalar(y, tn_int(1), tn_int(1)));
    rest = tni_own(&tmp, tni_mul(rest, tni_plus_number(&tmp, y, 1)));
    tn_tensor *w = tni_own(&tmp, tni_neg(tni_own(&tmp, tni_log(rest))));
    tn_tensor *near = tni_evaluated(&tmp, erfinv_near, TNI_COUNT(erfinv_near), w);
    tn_tensor *root = tni_own(&tmp, tni_sqrt(w));
    tn_tensor *far = tni_evaluated(&tmp, erfinv_far, TNI_COUNT(erfinv_far), root);
    tn_tensor *is_near = tni_own(&tmp, tni_lt_scalar(w, tn_int(5)));
    tn_tensor *factor = tni_own(&tmp, tni_where(is_near, near, far));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_mul(factor, y)));
}
