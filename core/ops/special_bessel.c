/* Modified Bessel functions of orders 0 and 1. */
#include "core/ops/special.h"

/* sqrt(x) exp(-x) I(x) of order 0 and 1 for x from 8, by 8 / x. */
static const double bessel_0_f64[] = {
    0.39894228040143268,     0.0062334731312740766,  0.00043829107916429999, 5.7069184523314248e-5,
    1.0921818637026896e-5,   2.8101964063088878e-6,  2.5329619342846053e-9,  1.2156392266983999e-5,
    -0.00011867082932521416, 0.00090678794741329997, -0.0053704692598455601, 0.02508266134855101,
    -0.09343867414533713,    0.27985604585307813,    -0.67726143951177154,   1.3273308927114018,
    -2.1060120912755735,     2.6970044011718363,     -2.770641130344686,     2.2605548449079139,
    -1.4425728930348426,     0.70347412890785434,    -0.25280199448589571,   0.063021896574053667,
    -0.0097235902377035993,  0.00069863132080570828};
static const double bessel_0_f32[] = {0.39894228,    0.00623347988, 0.000438149949, 5.81854164e-5,
                                      6.64947271e-6, 1.13782708e-5, -8.08629032e-6, 4.30538269e-6};
static const double bessel_1_f64[] = {
    0.39894228040143268,     -0.018700419393818875,  -0.00073048513218675753,
    -7.9896845433925418e-5,  -1.4042764125473472e-5, -3.4252960211676123e-6,
    -1.4882626153408695e-7,  -1.2362946911986552e-5, 0.00012011086475648444,
    -0.00091696652254695626, 0.0054240430134543058,  -0.025296957221395029,
    0.094082983253988637,    -0.28125698029184712,   0.67918706801434877,
    -1.3278235511447532,     2.1008478179626186,     -2.6817014088570271,
    2.7447410293531701,      -2.2299580349798604,    1.4161643188362847,
    -0.68676724218826505,    0.24522523914658182,    -0.060683054077101221,
    0.009282605603699308,    -0.00066025335262827015};
static const double bessel_1_f32[] = {0.39894228,     -0.0187004271,  -0.000730323506,
                                      -8.11719339e-5, -9.17938102e-6, -1.31421082e-5,
                                      9.07571052e-6,  -4.84557117e-6};
static const tni_polynomial bessel_far[] = {TNI_POLYNOMIAL(bessel_0), TNI_POLYNOMIAL(bessel_1)};

/* 1 / (k! (k + order)!), the series of orders 0 and 1 by (x / 2)^2. Below 8 f32 has its digits from
 * fewer terms. */
enum { BESSEL_TERMS = 26, BESSEL_TERMS_F32 = 18 };
static uint32_t bessel_series(const tn_tensor *x, int order, double *out) {
    out[0] = 1;
    for (int k = 1; k < BESSEL_TERMS; k++)
        out[k] = out[k - 1] / ((double)k * (k + order));
    return x->view.dtype == TN_F64 ? BESSEL_TERMS : BESSEL_TERMS_F32;
}

/* I(x) for x below 8. */
static tn_tensor *near_bessel(tni_temps *tmp, tn_tensor *x, int order) {
    double series[BESSEL_TERMS];
    if (!x)
        return NULL;
    uint32_t n = bessel_series(x, order, series);
    tn_tensor *half = tni_times_number(tmp, x, 0.5);
    tn_tensor *sum = tni_evaluated(tmp, series, n, tni_own(tmp, tni_mul(half, half)));
    return order == 1 ? tni_own(tmp, tni_mul(sum, half)) : sum;
}

/* exp(x) times the derivative of exp(-x) I(x) for x below 8: the series of order 1 with the factors
 * x / 2 - (k + 1), or for that order k + 1/2 - x / 2, which has more digits than a difference. */
static tn_tensor *near_slope(tni_temps *tmp, tn_tensor *x, int order) {
    double series[BESSEL_TERMS];
    if (!x)
        return NULL;
    uint32_t n = bessel_series(x, 1, series);
    tn_tensor *half = tni_times_number(tmp, x, 0.5), *square = tni_own(tmp, tni_mul(half, half));
    tn_tensor *less =
        tni_own(tmp, tni_rsub_scalar(half, tn_float(order == 1 ? 0.5 : 1), tn_int(1)));
    tn_tensor *sum = tni_times_number(tmp, tni_plus_number(tmp, less, n - 1), series[n - 1]);
    for (uint32_t k = n - 1; k-- > 0;) {
        sum = tni_then(tmp, tni_mul(sum, square), sum);
        tn_tensor *term = tni_own(tmp, tni_add_scalar(less, tn_float(k), tn_int(1)));
        sum = tni_then(tmp, tni_add(sum, term, tn_float(series[k])), sum);
    }
    return order == 1 ? sum : tni_own(tmp, tni_neg(sum));
}

/* exp(-x) near where x is below 8, else far / sqrt(x), owned. */
static tn_tensor *of_both(tni_temps *tmp, tn_tensor *x, tn_tensor *near, tn_tensor *far) {
    near = tni_own(tmp, tni_mul(near, tni_own(tmp, tni_exp(tni_own(tmp, tni_neg(x))))));
    far = tni_own(tmp, tni_div(far, tni_own(tmp, tni_sqrt(x))));
    tn_tensor *is_near = tni_own(tmp, tni_lt_scalar(x, tn_int(8)));
    return tni_temps_keep(tmp, tni_own(tmp, tni_where(is_near, near, far)));
}

/* exp(-x) I(x) of an order, x >= 0 */
static tn_tensor *scaled_bessel(tn_tensor *x, int order) {
    tni_temps tmp = {0};
    tn_tensor *far = tni_polynomial_at(&tmp, &bessel_far[order], tni_number_over(&tmp, 8, x));
    return of_both(&tmp, x, near_bessel(&tmp, x, order), far);
}

/* The derivative of that. From 8 it is the polynomial's: the two orders are nearly the same there. */
static tn_tensor *slope_of_scaled(tn_tensor *x, int order) {
    tni_temps tmp = {0};
    x = tni_widened(&tmp, x);
    bool is_f64 = x && x->view.dtype == TN_F64;
    const tni_polynomial *p = &bessel_far[order];
    const double *of = is_f64 ? p->of_f64 : p->of_f32;
    uint32_t n = is_f64 ? p->n_of_f64 : p->n_of_f32;
    double factors[TNI_COUNT(bessel_0_f64)]; /* of -(w P'(w) + P(w) / 2) */
    for (uint32_t i = 0; i < n; i++)
        factors[i] = -(i + 0.5) * of[i];
    tn_tensor *far = tni_evaluated(&tmp, factors, n, tni_number_over(&tmp, 8, x));
    far = tni_own(&tmp, tni_div(far, x));
    return of_both(&tmp, x, near_slope(&tmp, x, order), far);
}

tn_tensor *tni_i0e_slope(tn_tensor *x) {
    return slope_of_scaled(x, 0);
}

tn_tensor *tni_i1e_slope(tn_tensor *x) {
    return slope_of_scaled(x, 1);
}

tn_tensor *tni_i0e_above(tn_tensor *x) {
    return scaled_bessel(x, 0);
}

tn_tensor *tni_i1e_above(tn_tensor *x) {
    return scaled_bessel(x, 1);
}
