/* Special functions, made of pointwise operators: polynomials where a function is smooth, and what
 * brings an argument there. Every device computes them alike, and with the digits of its dtype.
 *
 * The coefficients are those of polynomials through the zeros of a Chebyshev polynomial (mpmath, 50
 * digits), lowest first; f32 has shorter ones. tests/values holds them against PyTorch's. */
#include "core/ops/functions.h"
#include "core/ops/halves.h"

#include <math.h>

typedef struct polynomial {
    const double *of_f64;
    uint32_t n_of_f64;
    const double *of_f32;
    uint32_t n_of_f32;
} polynomial;
#define COUNT(table) ((uint32_t)(sizeof(table) / sizeof(table)[0]))
#define POLYNOMIAL(name) \
    { name##_f64, COUNT(name##_f64), name##_f32, COUNT(name##_f32) }

/* coefficients[0] + coefficients[1] x + ..., by Horner's rule, of n, 2 at least. */
static tn_tensor *evaluated(tni_temps *tmp, const double *coefficients, uint32_t n, tn_tensor *x) {
    tn_tensor *sum = tni_own(tmp, tni_mul_scalar(x, tn_float(coefficients[n - 1])));
    for (uint32_t i = n - 2;; i--) {
        sum = tni_then(tmp, tni_add_scalar(sum, tn_float(coefficients[i]), tn_int(1)), sum);
        if (i == 0)
            return sum;
        sum = tni_then(tmp, tni_mul(sum, x), sum);
    }
}

/* The polynomial of x's dtype at x. */
static tn_tensor *at(tni_temps *tmp, const polynomial *p, tn_tensor *x) {
    if (!x)
        return NULL;
    return x->view.dtype == TN_F64 ? evaluated(tmp, p->of_f64, p->n_of_f64, x)
                                   : evaluated(tmp, p->of_f32, p->n_of_f32, x);
}

static tn_tensor *plus(tni_temps *tmp, tn_tensor *x, double number) {
    return tni_own(tmp, tni_add_scalar(x, tn_float(number), tn_int(1)));
}

static tn_tensor *times(tni_temps *tmp, tn_tensor *x, double number) {
    return tni_own(tmp, tni_mul_scalar(x, tn_float(number)));
}

/* number / x */
static tn_tensor *over(tni_temps *tmp, double number, tn_tensor *x) {
    return times(tmp, tni_own(tmp, tni_reciprocal(x)), number);
}

/* (x - middle) / (x + middle), which brings [0, inf] into [-1, 1]. */
static tn_tensor *folded(tni_temps *tmp, tn_tensor *x, double middle) {
    tn_tensor *rest = over(tmp, -2 * middle, plus(tmp, x, middle));
    return plus(tmp, rest, 1);
}

/* ---- the error function ------------------------------------------------------------------ */

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
static const polynomial erfcx_folded = POLYNOMIAL(erfcx);

/* exp(x^2) erfc(x), x >= 0 */
tn_tensor *tni_erfcx_above(tn_tensor *x) {
    tni_temps tmp = {0};
    tn_tensor *top = times(&tmp, at(&tmp, &erfcx_folded, folded(&tmp, x, 4)), 0.5);
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_div(top, plus(&tmp, x, 0.5))));
}

/* The derivative of that, by the polynomial's: 2 x erfcx(x) - 2 / sqrt(pi) leaves few digits. */
tn_tensor *tni_erfcx_slope(tn_tensor *x) {
    bool is_f64 = x && x->view.dtype == TN_F64;
    const double *of = is_f64 ? erfcx_f64 : erfcx_f32;
    uint32_t n = is_f64 ? COUNT(erfcx_f64) : COUNT(erfcx_f32);
    double slopes[COUNT(erfcx_f64)];
    for (uint32_t i = 1; i < n; i++)
        slopes[i - 1] = i * of[i];
    tni_temps tmp = {0};
    tn_tensor *part = over(&tmp, 1, plus(&tmp, x, 4)), *q = plus(&tmp, times(&tmp, part, -8), 1);
    tn_tensor *factor = over(&tmp, 0.5, plus(&tmp, x, 0.5));
    tn_tensor *inner = evaluated(&tmp, slopes, n - 1, q);
    inner = times(&tmp, tni_own(&tmp, tni_mul(inner, tni_own(&tmp, tni_mul(part, part)))), 8);
    tn_tensor *outer = tni_own(&tmp, tni_mul(at(&tmp, &erfcx_folded, q), factor));
    inner = tni_own(&tmp, tni_sub(inner, outer, tn_int(2)));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_mul(inner, factor)));
}

/* exp(sign x^2), 0 <= x. The exponential of a rounded square has as many digits less as the square has
 * before the point, so that of x in sixteenths is taken apart. Past 30 it is infinite, or 0. */
static tn_tensor *exp_of_square(tn_tensor *x, double sign) {
    tni_temps tmp = {0};
    x = tni_own(&tmp, tni_clamp_max(x, tn_int(30)));
    tn_tensor *low = times(&tmp, tni_own(&tmp, tni_floor(times(&tmp, x, 16))), 0.0625);
    tn_tensor *rest = tni_own(&tmp, tni_mul(tni_own(&tmp, tni_sub(x, low, tn_int(1))),
                                            tni_own(&tmp, tni_add(x, low, tn_int(1)))));
    low = tni_own(&tmp, tni_exp(times(&tmp, tni_own(&tmp, tni_mul(low, low)), sign)));
    rest = tni_own(&tmp, tni_exp(times(&tmp, rest, sign)));
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
    rest = tni_own(&tmp, tni_mul(rest, plus(&tmp, y, 1)));
    tn_tensor *w = tni_own(&tmp, tni_neg(tni_own(&tmp, tni_log(rest))));
    tn_tensor *near = evaluated(&tmp, erfinv_near, COUNT(erfinv_near), w);
    tn_tensor *root = tni_own(&tmp, tni_sqrt(w));
    tn_tensor *far = evaluated(&tmp, erfinv_far, COUNT(erfinv_far), root);
    tn_tensor *is_near = tni_own(&tmp, tni_lt_scalar(w, tn_int(5)));
    tn_tensor *factor = tni_own(&tmp, tni_where(is_near, near, far));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_mul(factor, y)));
}

/* ---- the gamma function ------------------------------------------------------------------ */

/* lgamma(x) / ((x - 1) (x - 2)) for x from 0.5 to 4, by (x - 1.5) / (x + 1.5). */
static const double lgamma_near_f64[] = {
    0.4831289505409809,   -0.43787968774291934,  0.12832292192815696,   -0.15080363092749803,
    0.085305642816654935, -0.093210522776779656, 0.063828120201919409,  -0.067694899022990594,
    0.050915761778725347, -0.053194896089395083, 0.042326579899375001,  -0.043821692167379169,
    0.036214726937986661, -0.037348041828440339, 0.03157349948162071,   -0.031620019555612661,
    0.028636032125608475, -0.034428046231451393, 0.021818233279339158,  0.001843250351408163,
    0.037318511313149444, -0.10979244733776661,  -0.016809238766834642, 0.14111986083093714,
    0.071889653330379716, -0.1672602380368045};
static const double lgamma_near_f32[] = {0.483128951,  -0.437879652,  0.128322536,  -0.150807828,
                                         0.085330224,  -0.0930699998, 0.0632604529, -0.0697007842,
                                         0.0569009234, -0.0395109293, 0.0119857368, -0.0861767101,
                                         0.102741913};
static const polynomial lgamma_near = POLYNOMIAL(lgamma_near);

/* x times what Stirling's formula leaves, for x from 4, by (4 / x)^2. */
static const double lgamma_far_f64[] = {
    0.083333333333333333,   -0.00017361111111106256, 3.1001984107329342e-6, -1.4532176923782264e-7,
    1.28438386158402e-8,    -1.8274167154492308e-9,  3.780482034637779e-10, -1.0155451847640894e-10,
    2.9281651378591372e-11, -6.86293425002324e-12,   8.6230438054315831e-13};
static const double lgamma_far_f32[] = {0.0833333333, -0.000173608606, 3.08740189e-6,
                                        -1.23705648e-7};
static const polynomial lgamma_far = POLYNOMIAL(lgamma_far);

/* digamma(x) / (x - its zero) for x from 0.5 to 4, by (x - 1.5) / (x + 1.5). */
static const double digamma_near_f64[] = {
    0.9510558760318329,  -1.2708822638443813,  0.89400009432266133, -0.94805046996610131,
    0.89705272398776996, -0.92368202817457269, 0.9043231237384596,  -0.91820415769453595,
    0.90758324794257007, -0.91593502603517858, 0.90918205275558641, -0.91475418137423843,
    0.91016722419786596, -0.91402219230762244, 0.90920447346408427, -0.91413030816044596,
    0.92763454115403459, -0.90763091432381591, 0.77403922055647485, -0.9586463264488722,
    1.7105068134493456,  -0.65308822801843793, -2.3157447710267583, -1.923572594383474,
    9.5719500719986124,  1.5617392768062024,   -13.185940892185864, -4.0849941910603596,
    11.976566300568064};
static const double digamma_near_f32[] = {0.951055874,  -1.27088234,  0.894001204, -0.948038961,
                                          0.89695887,   -0.924199363, 0.907272659, -0.90796511,
                                          0.86337419,   -1.01924228,  1.25474425,  -0.368770752,
                                          -0.488960185, -2.28099136,  3.4531887};
static const polynomial digamma_near = POLYNOMIAL(digamma_near);

/* x^2 (log(x) - 1 / (2 x) - digamma(x)) for x from 4, by (4 / x)^2. */
static const double digamma_far_f64[] = {
    0.08333333333333333,    -0.00052083333333242668, 1.5500992026756004e-5, -1.0172520170154815e-6,
    1.1559200583614896e-7,  -2.0091524452009813e-8,  4.8904628494141909e-9, -1.487492794787721e-9,
    4.6577207986214972e-10, -1.1459156764965827e-10, 1.4799745662687634e-11};
static const double digamma_far_f32[] = {0.0833333327, -0.000520811903, 1.53910234e-5,
                                         -8.29358903e-7};
static const polynomial digamma_far = POLYNOMIAL(digamma_far);

/* log(gamma(x)), x >= 0.5 */
tn_tensor *tni_lgamma_above(tn_tensor *x) {
    tni_temps tmp = {0};
    tn_tensor *near = at(&tmp, &lgamma_near, folded(&tmp, x, 1.5));
    near = tni_own(&tmp, tni_mul(near, plus(&tmp, x, -1)));
    near = tni_own(&tmp, tni_mul(near, plus(&tmp, x, -2)));

    /* (x - 1/2) (log(x) - 1) + log(2 pi) / 2 - 1/2 + rest / x */
    tn_tensor *part = over(&tmp, 4, x);
    tn_tensor *rest = at(&tmp, &lgamma_far, tni_own(&tmp, tni_mul(part, part)));
    rest = tni_own(&tmp, tni_mul(rest, times(&tmp, part, 0.25)));
    tn_tensor *far = plus(&tmp, tni_own(&tmp, tni_log(x)), -1);
    far = plus(&tmp, tni_own(&tmp, tni_mul(far, plus(&tmp, x, -0.5))), 0.41893853320467274);
    far = tni_own(&tmp, tni_add(far, rest, tn_int(1)));
    tn_tensor *is_near = tni_own(&tmp, tni_lt_scalar(x, tn_int(4)));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_where(is_near, near, far)));
}

/* The derivative of that, x >= 0.5. The zero is two numbers, of which x and the first have no
 * digits in common near it. */
tn_tensor *tni_digamma_above(tn_tensor *x) {
    bool is_f64 = x && x->view.dtype == TN_F64;
    tni_temps tmp = {0};
    tn_tensor *off = plus(&tmp, x, is_f64 ? -0x1.762d86356be3fp+0 : -0x1.762d86p+0);
    off = plus(&tmp, off, is_f64 ? -9.5491852996595e-17 : -1.2435844108e-08);
    tn_tensor *near = at(&tmp, &digamma_near, folded(&tmp, x, 1.5));
    near = tni_own(&tmp, tni_mul(near, off));

    tn_tensor *part = over(&tmp, 4, x), *square = tni_own(&tmp, tni_mul(part, part));
    tn_tensor *rest = tni_own(&tmp, tni_mul(at(&tmp, &digamma_far, square), square));
    tn_tensor *far =
        tni_own(&tmp, tni_add(times(&tmp, part, 0.125), times(&tmp, rest, 0.0625), tn_int(1)));
    far = tni_own(&tmp, tni_sub(tni_own(&tmp, tni_log(x)), far, tn_int(1)));
    tn_tensor *is_near = tni_own(&tmp, tni_lt_scalar(x, tn_int(4)));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_where(is_near, near, far)));
}

/* cot(pi x) with |x| at most 1/2; inf at both zeros. Past a quarter it is the tangent of what is
 * left, as pi / 2 has no tangent in floating point. */
tn_tensor *tni_cotangent(tn_tensor *x) {
    double pi = 3.14159265358979324;
    tni_temps tmp = {0};
    tn_tensor *size = tni_own(&tmp, tni_abs(x));
    tn_tensor *rest = tni_own(&tmp, tni_rsub_scalar(size, tn_float(0.5), tn_int(1)));
    tn_tensor *high = tni_own(&tmp, tni_tan(times(&tmp, rest, pi)));
    tn_tensor *low = over(&tmp, 1, tni_own(&tmp, tni_tan(times(&tmp, size, pi))));
    tn_tensor *is_high = tni_own(&tmp, tni_gt_scalar(size, tn_float(0.25)));
    tn_tensor *value = tni_own(&tmp, tni_where(is_high, high, low));
    tn_tensor *negative = tni_own(&tmp, tni_lt_scalar(x, tn_int(0)));
    return tni_temps_keep(&tmp,
                          tni_own(&tmp, tni_where(negative, tni_own(&tmp, tni_neg(value)), value)));
}

/* A whole number or truth as f32. */
static tn_tensor *as_float(tni_temps *tmp, tn_tensor *x) {
    return tni_is_float(x->view.dtype) ? x : tni_own(tmp, tni_to_dtype(x, TN_F32));
}

/* ---- polygamma --------------------------------------------------------------------------- */

enum { MAX_POLYGAMMA = 170 }; /* 171! is beyond f64 */

/* sum of (x + k)^-s over k = 0, 1, ... for x > 0 and a whole s > 1, by Euler's and Maclaurin's
 * formula after N terms. */
static tn_tensor *zeta(tni_temps *tmp, int64_t s, tn_tensor *x) {
    enum { N = 10, CORRECTIONS = 8 };
    static const double bernoulli[CORRECTIONS] = {/* B(2 j) / (2 j)! */
                                                  0.083333333333333333,   -0.0013888888888888889,
                                                  3.3068783068783069e-05, -8.2671957671957672e-07,
                                                  2.0876756987868099e-08, -5.2841901386874932e-10,
                                                  1.3382536530684679e-11, -3.3896802963225829e-13};
    tn_scalar power = tn_float(-(double)s);
    tn_tensor *sum = tni_own(tmp, tni_pow_scalar(x, power));
    for (int k = 1; k < N; k++) {
        tn_tensor *term = tni_own(tmp, tni_pow_scalar(plus(tmp, x, k), power));
        sum = tni_then(tmp, tni_add(sum, term, tn_int(1)), sum);
    }
    tn_tensor *end = plus(tmp, x, N), *last = tni_own(tmp, tni_pow_scalar(end, power));
    tn_tensor *integral = tni_own(tmp, tni_pow_scalar(end, tn_float(1 - (double)s)));
    sum = tni_own(tmp, tni_add(sum, times(tmp, integral, 1 / (double)(s - 1)), tn_int(1)));
    sum = tni_own(tmp, tni_add(sum, times(tmp, last, 0.5), tn_int(1)));
    double factors[CORRECTIONS], rising = (double)s;
    for (int j = 0; j < CORRECTIONS; j++) {
        factors[j] = bernoulli[j] * rising;
        rising *= ((double)s + 2 * j + 1) * ((double)s + 2 * j + 2);
    }
    tn_tensor *less = over(tmp, 1, end);
    tn_tensor *rest = evaluated(tmp, factors, CORRECTIONS, tni_own(tmp, tni_mul(less, less)));
    rest = tni_own(tmp, tni_mul(tni_own(tmp, tni_mul(rest, less)), last));
    return tni_own(tmp, tni_add(sum, rest, tn_int(1)));
}

/* The n-th derivative of pi cot(pi x), a polynomial in the cotangent: (1 + c^2) times the
 * derivative of that before, negative. */
static tn_tensor *derivative_of_cotangent(tni_temps *tmp, int64_t n, tn_tensor *x) {
    double now[MAX_POLYGAMMA + 3] = {0, 1}, next[MAX_POLYGAMMA + 3];
    tn_tensor *turn = tni_own(tmp, tni_sub(x, tni_own(tmp, tni_round(x)), tn_int(1)));
    tn_tensor *cot = tni_own(tmp, tni_cotangent(turn));
    double scale = 3.14159265358979324;
    for (int64_t order = 1; order <= n; order++) {
        for (int64_t i = 0; i <= order + 1; i++)
            next[i] = -(i <= order ? (double)(i + 1) * now[i + 1] : 0) -
                      (i > 0 ? (double)(i - 1) * now[i - 1] : 0);
        for (int64_t i = 0; i <= order + 1; i++)
            now[i] = next[i];
        now[order + 2] = 0;
        scale *= 3.14159265358979324;
    }
    return times(tmp, evaluated(tmp, now, (uint32_t)n + 2, cot), scale);
}

/* polygamma(n, self): (-1)^(n + 1) n! zeta(n + 1, x), below zero by reflection at 1/2 */
tn_status tni_run_polygamma(const tn_cell *args, tn_cell *rets) {
    int64_t n = args[0].v.i64;
    tn_tensor *self = tni_arg_tensor(&args[1]);
    if (n < 0 || n > MAX_POLYGAMMA)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_polygamma: n is %lld; it must be 0 to %d",
                        (long long)n, MAX_POLYGAMMA);
    if (n == 0)
        return tni_return(rets, tni_digamma(self));
    tni_temps tmp = {0};
    self = as_float(&tmp, self);
    if (!self)
        return tni_temps_return(&tmp, NULL, rets);
    double factor = n % 2 == 0 ? -1 : 1;
    for (int64_t i = 2; i <= n; i++)
        factor *= (double)i;
    tn_tensor *low = tni_own(&tmp, tni_lt_scalar(self, tn_int(0)));
    tn_tensor *mirrored = tni_own(&tmp, tni_rsub_scalar(self, tn_int(1), tn_int(1)));
    tn_tensor *x = tni_own(&tmp, tni_where(low, mirrored, tni_own(&tmp, tni_abs(self))));
    tn_tensor *value = times(&tmp, zeta(&tmp, n + 1, x), factor);
    tn_tensor *below = n % 2 == 0 ? value : tni_own(&tmp, tni_neg(value));
    tn_tensor *mirror = derivative_of_cotangent(&tmp, n, self);
    below = tni_own(&tmp, tni_sub(below, mirror, tn_int(1)));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_where(low, below, value)), rets);
}

tn_tensor *tni_polygamma_backward(tn_tensor *grad, tn_tensor *self, int64_t n) {
    tni_temps tmp = {0};
    grad = tni_widened(&tmp, grad);
    tn_tensor *slope = tni_own(&tmp, tni_polygamma(n + 1, tni_widened(&tmp, self)));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_mul(grad, slope)));
}

enum { MAX_DIMENSION = 4096 }; /* of mvlgamma, which calls lgamma for each */

/* mvlgamma(self, p): p (p - 1) / 4 log(pi) and the sum of lgamma(self - j / 2) for j below p */
tn_status tni_run_mvlgamma(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *sum = NULL;
    int64_t p = args[1].v.i64;
    if (p < 1 || p > MAX_DIMENSION)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_mvlgamma: p is %lld; it must be 1 to %d",
                        (long long)p, MAX_DIMENSION);
    tni_temps tmp = {0};
    for (int64_t j = 0; j < p; j++) {
        tn_tensor *part = tni_own(&tmp, tni_lgamma(plus(&tmp, self, 0.5 * (double)-j)));
        sum = j == 0 ? part : tni_then(&tmp, tni_add(sum, part, tn_int(1)), sum);
    }
    if (p > 1)
        sum = plus(&tmp, sum, (double)p * (double)(p - 1) * 0.28618247146235004);
    return tni_temps_return(&tmp, sum, rets);
}

/* ---- modified Bessel functions ----------------------------------------------------------- */

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
static const polynomial bessel_far[] = {POLYNOMIAL(bessel_0), POLYNOMIAL(bessel_1)};

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
    tn_tensor *half = times(tmp, x, 0.5);
    tn_tensor *sum = evaluated(tmp, series, n, tni_own(tmp, tni_mul(half, half)));
    return order == 1 ? tni_own(tmp, tni_mul(sum, half)) : sum;
}

/* exp(x) times the derivative of exp(-x) I(x) for x below 8: the series of order 1 with the factors
 * x / 2 - (k + 1), or for that order k + 1/2 - x / 2, which has more digits than a difference. */
static tn_tensor *near_slope(tni_temps *tmp, tn_tensor *x, int order) {
    double series[BESSEL_TERMS];
    if (!x)
        return NULL;
    uint32_t n = bessel_series(x, 1, series);
    tn_tensor *half = times(tmp, x, 0.5), *square = tni_own(tmp, tni_mul(half, half));
    tn_tensor *less =
        tni_own(tmp, tni_rsub_scalar(half, tn_float(order == 1 ? 0.5 : 1), tn_int(1)));
    tn_tensor *sum = times(tmp, plus(tmp, less, n - 1), series[n - 1]);
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
    tn_tensor *far = at(&tmp, &bessel_far[order], over(&tmp, 8, x));
    return of_both(&tmp, x, near_bessel(&tmp, x, order), far);
}

/* The derivative of that. From 8 it is the polynomial's: the two orders are nearly the same there. */
static tn_tensor *slope_of_scaled(tn_tensor *x, int order) {
    tni_temps tmp = {0};
    x = tni_widened(&tmp, x);
    bool is_f64 = x && x->view.dtype == TN_F64;
    const polynomial *p = &bessel_far[order];
    const double *of = is_f64 ? p->of_f64 : p->of_f32;
    uint32_t n = is_f64 ? p->n_of_f64 : p->n_of_f32;
    double factors[COUNT(bessel_0_f64)]; /* of -(w P'(w) + P(w) / 2) */
    for (uint32_t i = 0; i < n; i++)
        factors[i] = -(i + 0.5) * of[i];
    tn_tensor *far = evaluated(&tmp, factors, n, over(&tmp, 8, x));
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

/* ---- logit ------------------------------------------------------------------------------- */

/* logit(self, eps) */
tn_status tni_run_logit(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = tni_arg_tensor(&args[0]);
    tni_temps tmp = {0};
    x = as_float(&tmp, x);
    if (args[1].tag != TN_CELL_NONE) {
        double eps = tni_scalar_f64(args[1]);
        x = tni_own(&tmp, tni_clamp(x, tn_float(eps), tn_float(1 - eps)));
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
