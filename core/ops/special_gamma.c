/* The gamma function: its logarithm and the derivatives of that. */
#include "core/ops/special.h"

/* ---- lgamma and digamma ------------------------------------------------------------------ */

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
static const tni_polynomial lgamma_near = TNI_POLYNOMIAL(lgamma_near);

/* x times what Stirling's formula leaves, for x from 4, by (4 / x)^2. */
static const double lgamma_far_f64[] = {
    0.083333333333333333,   -0.00017361111111106256, 3.1001984107329342e-6, -1.4532176923782264e-7,
    1.28438386158402e-8,    -1.8274167154492308e-9,  3.780482034637779e-10, -1.0155451847640894e-10,
    2.9281651378591372e-11, -6.86293425002324e-12,   8.6230438054315831e-13};
static const double lgamma_far_f32[] = {0.0833333333, -0.000173608606, 3.08740189e-6,
                                        -1.23705648e-7};
static const tni_polynomial lgamma_far = TNI_POLYNOMIAL(lgamma_far);

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
static const tni_polynomial digamma_near = TNI_POLYNOMIAL(digamma_near);

/* x^2 (log(x) - 1 / (2 x) - digamma(x)) for x from 4, by (4 / x)^2. */
static const double digamma_far_f64[] = {
    0.08333333333333333,    -0.00052083333333242668, 1.5500992026756004e-5, -1.0172520170154815e-6,
    1.1559200583614896e-7,  -2.0091524452009813e-8,  4.8904628494141909e-9, -1.487492794787721e-9,
    4.6577207986214972e-10, -1.1459156764965827e-10, 1.4799745662687634e-11};
static const double digamma_far_f32[] = {0.0833333327, -0.000520811903, 1.53910234e-5,
                                         -8.29358903e-7};
static const tni_polynomial digamma_far = TNI_POLYNOMIAL(digamma_far);

/* log(gamma(x)), x >= 0.5 */
tn_tensor *tni_lgamma_above(tn_tensor *x) {
    tni_temps tmp = {0};
    tn_tensor *near = tni_polynomial_at(&tmp, &lgamma_near, tni_folded(&tmp, x, 1.5));
    near = tni_own(&tmp, tni_mul(near, tni_plus_number(&tmp, x, -1)));
    near = tni_own(&tmp, tni_mul(near, tni_plus_number(&tmp, x, -2)));

    /* (x - 1/2) (log(x) - 1) + log(2 pi) / 2 - 1/2 + rest / x */
    tn_tensor *part = tni_number_over(&tmp, 4, x);
    tn_tensor *rest = tni_polynomial_at(&tmp, &lgamma_far, tni_own(&tmp, tni_mul(part, part)));
    rest = tni_own(&tmp, tni_mul(rest, tni_times_number(&tmp, part, 0.25)));
    tn_tensor *far = tni_plus_number(&tmp, tni_own(&tmp, tni_log(x)), -1);
    far = tni_plus_number(&tmp, tni_own(&tmp, tni_mul(far, tni_plus_number(&tmp, x, -0.5))),
                          0.41893853320467274);
    far = tni_own(&tmp, tni_add(far, rest, tn_int(1)));
    tn_tensor *is_near = tni_own(&tmp, tni_lt_scalar(x, tn_int(4)));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_where(is_near, near, far)));
}

/* The derivative of that, x >= 0.5. The zero is two numbers, of which x and the first have no
 * digits in common near it. */
tn_tensor *tni_digamma_above(tn_tensor *x) {
    bool is_f64 = x && x->view.dtype == TN_F64;
    tni_temps tmp = {0};
    tn_tensor *off = tni_plus_number(&tmp, x, is_f64 ? -0x1.762d86356be3fp+0 : -0x1.762d86p+0);
    off = tni_plus_number(&tmp, off, is_f64 ? -9.5491852996595e-17 : -1.2435844108e-08);
    tn_tensor *near = tni_polynomial_at(&tmp, &digamma_near, tni_folded(&tmp, x, 1.5));
    near = tni_own(&tmp, tni_mul(near, off));

    tn_tensor *part = tni_number_over(&tmp, 4, x), *square = tni_own(&tmp, tni_mul(part, part));
    tn_tensor *rest = tni_own(&tmp, tni_mul(tni_polynomial_at(&tmp, &digamma_far, square), square));
    tn_tensor *far = tni_own(&tmp, tni_add(tni_times_number(&tmp, part, 0.125),
                                           tni_times_number(&tmp, rest, 0.0625), tn_int(1)));
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
    tn_tensor *high = tni_own(&tmp, tni_tan(tni_times_number(&tmp, rest, pi)));
    tn_tensor *low =
        tni_number_over(&tmp, 1, tni_own(&tmp, tni_tan(tni_times_number(&tmp, size, pi))));
    tn_tensor *is_high = tni_own(&tmp, tni_gt_scalar(size, tn_float(0.25)));
    tn_tensor *value = tni_own(&tmp, tni_where(is_high, high, low));
    tn_tensor *negative = tni_own(&tmp, tni_lt_scalar(x, tn_int(0)));
    return tni_temps_keep(&tmp,
                          tni_own(&tmp, tni_where(negative, tni_own(&tmp, tni_neg(value)), value)));
}

/* A whole number or truth as f32. */

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
        tn_tensor *term = tni_own(tmp, tni_pow_scalar(tni_plus_number(tmp, x, k), power));
        sum = tni_then(tmp, tni_add(sum, term, tn_int(1)), sum);
    }
    tn_tensor *end = tni_plus_number(tmp, x, N), *last = tni_own(tmp, tni_pow_scalar(end, power));
    tn_tensor *integral = tni_own(tmp, tni_pow_scalar(end, tn_float(1 - (double)s)));
    sum =
        tni_own(tmp, tni_add(sum, tni_times_number(tmp, integral, 1 / (double)(s - 1)), tn_int(1)));
    sum = tni_own(tmp, tni_add(sum, tni_times_number(tmp, last, 0.5), tn_int(1)));
    double factors[CORRECTIONS], rising = (double)s;
    for (int j = 0; j < CORRECTIONS; j++) {
        factors[j] = bernoulli[j] * rising;
        rising *= ((double)s + 2 * j + 1) * ((double)s + 2 * j + 2);
    }
    tn_tensor *less = tni_number_over(tmp, 1, end);
    tn_tensor *rest = tni_evaluated(tmp, factors, CORRECTIONS, tni_own(tmp, tni_mul(less, less)));
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
    return tni_times_number(tmp, tni_evaluated(tmp, now, (uint32_t)n + 2, cot), scale);
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
    self = tni_as_float(&tmp, self);
    if (!self)
        return tni_temps_return(&tmp, NULL, rets);
    double factor = n % 2 == 0 ? -1 : 1;
    for (int64_t i = 2; i <= n; i++)
        factor *= (double)i;
    tn_tensor *low = tni_own(&tmp, tni_lt_scalar(self, tn_int(0)));
    tn_tensor *mirrored = tni_own(&tmp, tni_rsub_scalar(self, tn_int(1), tn_int(1)));
    tn_tensor *x = tni_own(&tmp, tni_where(low, mirrored, tni_own(&tmp, tni_abs(self))));
    tn_tensor *value = tni_times_number(&tmp, zeta(&tmp, n + 1, x), factor);
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
        tn_tensor *part = tni_own(&tmp, tni_lgamma(tni_plus_number(&tmp, self, 0.5 * (double)-j)));
        sum = j == 0 ? part : tni_then(&tmp, tni_add(sum, part, tn_int(1)), sum);
    }
    if (p > 1)
        sum = tni_plus_number(&tmp, sum, (double)p * (double)(p - 1) * 0.28618247146235004);
    return tni_temps_return(&tmp, sum, rets);
}
