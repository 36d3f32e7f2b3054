/* The references of pointwise operators, from the text in kernels.toml and the C library. */
#include "pointwise_table.h"

#include <math.h>

#define REFERENCE(name) \
    static void name(const number *x, const tn_cell *attrs, number *r, double *scales)

/* One floating expression of a, b and c. */
#define FLOATING(name, expression) \
    REFERENCE(name) { \
        const double a = x[0].f, b = x[1].f, c = x[2].f; \
        (void)a, (void)b, (void)c, (void)attrs, (void)scales; \
        r[0].f = expression; \
    }

/* A floating and an integer expression; integers are unsigned, so that they wrap. */
#define BOTH(name, floating, integer) \
    REFERENCE(name) { \
        const double a = x[0].f, b = x[1].f, c = x[2].f; \
        const uint64_t i = (uint64_t)x[0].i, j = (uint64_t)x[1].i, k = (uint64_t)x[2].i; \
        const double v = attrs[0].tag == TN_CELL_F64 ? attrs[0].v.f64 : 0; \
        const uint64_t w = attrs[0].tag == TN_CELL_I64 ? (uint64_t)attrs[0].v.i64 : 0; \
        (void)a, (void)b, (void)c, (void)i, (void)j, (void)k, (void)v, (void)w; \
        r[0] = (number){floating, (int64_t)(integer)}; \
    }

/* The same where the floating result is a sum of terms as large as `scale`. */
#define SUM(name, floating, scale, integer) \
    BOTH(name##_value, floating, integer) \
    REFERENCE(name) { \
        const double a = x[0].f, b = x[1].f, c = x[2].f; \
        const double v = attrs[0].tag == TN_CELL_F64 ? attrs[0].v.f64 : 0; \
        (void)a, (void)b, (void)c; \
        name##_value(x, attrs, r, scales); \
        scales[0] = scale; \
    }

/* ---- arithmetic ----------------------------------------------------------------------------- */

SUM(add, a + v * b, fabs(a) + fabs(v * b), i + w * j)
SUM(sub, a - v * b, fabs(a) + fabs(v * b), i - w * j)
SUM(addcmul, a + v * b * c, fabs(a) + fabs(v * b * c), i + w * j * k)
SUM(addcdiv, a + v * b / c, fabs(a) + fabs(v * b / c), 0)
BOTH(mul, a *b, i *j)
BOTH(neg, -a, -i)
BOTH(absolute, fabs(a), x[0].i < 0 ? -i : i)
BOTH(sign, isnan(a) ? a : (a > 0) - (a < 0), (x[0].i > 0) - (x[0].i < 0))
BOTH(maximum, isnan(a) || isnan(b) ? NAN : fmax(a, b), x[0].i > x[1].i ? i : j)
BOTH(minimum, isnan(a) || isnan(b) ? NAN : fmin(a, b), x[0].i < x[1].i ? i : j)
BOTH(relu, a <= 0 ? 0 : a, x[0].i <= 0 ? 0 : i)
BOTH(bit_and, 0, i &j)
BOTH(bit_or, 0, i | j)
BOTH(bit_xor, 0, i ^ j)
FLOATING(divide, a / b)
FLOATING(reciprocal, 1 / a)
FLOATING(rsqrt, 1 / sqrt(a))

REFERENCE(floor_divide) {
    const double a = x[0].f, b = x[1].f;
    const int64_t i = x[0].i, j = x[1].i;
    double rest = fmod(a, b), q = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0))
        q -= 1;
    r[0].f = b == 0 ? a / b : isnan(q) ? q : nearbyint(q); /* whole but for rounding */
    r[0].i = j == 0 ? 0 : j == -1 ? (int64_t) - (uint64_t)i : i / j - (i % j && (i < 0) != (j < 0));
}

REFERENCE(remainder_of) {
    const double b = x[1].f;
    const int64_t i = x[0].i, j = x[1].i;
    double rest = fmod(x[0].f, b);
    if (rest == 0)
        rest = copysign(0, b);
    else if ((rest < 0) != (b < 0))
        rest += b;
    r[0].f = rest;
    r[0].i = j == 0 || j == -1 ? 0 : i % j && (i < 0) != (j < 0) ? i % j + j : i % j;
}

REFERENCE(power) {
    uint64_t base = (uint64_t)x[0].i, product = 1;
    const int64_t n = x[1].i;
    for (int bit = 62; bit >= 0; bit--) /* from the top: square, and multiply where a bit is set */
        product *= product * ((uint64_t)n >> bit & 1 ? base : 1);
    r[0].f = pow(x[0].f, x[1].f);
    r[0].i = n >= 0 ? (int64_t)product : x[0].i == 1 ? 1 : (x[0].i == -1 ? (n % 2 ? -1 : 1) : 0);
}

static bool below(number a, number b) {
    return a.f < b.f || a.i < b.i;
}

REFERENCE(clamp) {
    const bool has_low = attrs[0].tag != TN_CELL_NONE, has_high = attrs[1].tag != TN_CELL_NONE;
    number low = {0}, high = {0}, y = x[0];
    if (has_low)
        low = attrs[0].tag == TN_CELL_F64 ? (number){.f = attrs[0].v.f64}
                                          : (number){.i = attrs[0].v.i64};
    if (has_high)
        high = attrs[1].tag == TN_CELL_F64 ? (number){.f = attrs[1].v.f64}
                                           : (number){.i = attrs[1].v.i64};
    if (has_low && (below(y, low) || isnan(low.f)))
        y = low;
    if (has_high && (below(high, y) || isnan(high.f)))
        y = high;
    r[0] = isnan(x[0].f) ? x[0] : y;
}

/* ---- comparisons ---------------------------------------------------------------------------- */

static bool equal(const number *x) {
    return x[0].f == x[1].f && x[0].i == x[1].i;
}

#define COMPARISON(name, expression) \
    REFERENCE(name) { \
        r[0].i = expression; \
    }
COMPARISON(eq, equal(x))
COMPARISON(ne, !equal(x))
COMPARISON(lt, below(x[0], x[1]))
COMPARISON(le, below(x[0], x[1]) || equal(x))
COMPARISON(gt, below(x[1], x[0]))
COMPARISON(ge, below(x[1], x[0]) || equal(x))
COMPARISON(logical_not, x[0].f == 0 && x[0].i == 0)

REFERENCE(where) {
    r[0] = x[0].i ? x[1] : x[2];
}

/* ---- functions of one number ---------------------------------------------------------------- */

#define FUNCTION(name) FLOATING(name##_of, name(a))
FUNCTION(exp)
FUNCTION(log)
FUNCTION(log1p)
FUNCTION(expm1)
FUNCTION(sqrt)
FUNCTION(sin)
FUNCTION(cos)
FUNCTION(tanh)
FUNCTION(erf)
FUNCTION(floor)
FUNCTION(ceil)
FUNCTION(trunc)
FUNCTION(nearbyint)

static double sigmoid(double x) {
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

FLOATING(sigmoid_of, sigmoid(a))
FLOATING(silu, a *sigmoid(a))
FLOATING(sigmoid_backward, a *b *(1 - b))
FLOATING(tanh_backward, a *(1 - b * b))

REFERENCE(silu_backward) {
    const double g = x[0].f, s = sigmoid(x[1].f);
    r[0].f = g * s * (1 + x[1].f * sigmoid(-x[1].f));
    scales[0] = fabs(g);
}

REFERENCE(threshold_backward) {
    const number bound =
        attrs[0].tag == TN_CELL_F64 ? (number){.f = attrs[0].v.f64} : (number){.i = attrs[0].v.i64};
    const number pair[] = {x[1], bound};
    r[0] = below(x[1], bound) || equal(pair) ? (number){0} : x[0];
}

/* Phi(x) and its derivative, in either form. */
static double gelu_phi(double x, const tn_cell *attrs, double *out_derivative) {
    const double root = sqrt(2 / acos(-1));
    if (attrs[0].v.string[0] == 'n') {
        *out_derivative = exp(-x * x / 2) * root / 2;
        return erfc(-x / sqrt(2)) / 2;
    }
    const double u = root * (x + 0.044715 * x * x * x), du = root * (1 + 3 * 0.044715 * x * x);
    *out_derivative = isinf(u) ? 0 : 2 * sigmoid(2 * u) * sigmoid(-2 * u) * du;
    return sigmoid(2 * u);
}

REFERENCE(gelu) {
    double derivative;
    r[0].f = x[0].f * gelu_phi(x[0].f, attrs, &derivative);
    scales[0] = isinf(x[0].f) ? 0 : fabs(x[0].f); /* far to the left all of it is rounding */
}

REFERENCE(gelu_backward) {
    double derivative;
    const double phi = gelu_phi(x[1].f, attrs, &derivative);
    r[0].f = x[0].f * (phi + x[1].f * derivative);
    scales[0] = fabs(x[0].f);
}

/* ---- optimizers ----------------------------------------------------------------------------- */

REFERENCE(fused_sgd) {
    const double p = x[0].f, lr = attrs[0].v.f64, momentum = attrs[1].v.f64;
    double g = attrs[5].v.boolean ? -x[1].f : x[1].f;
    g += attrs[3].v.f64 * p;
    const double buffer = momentum * x[2].f + (1 - attrs[2].v.f64) * g;
    const double step = attrs[4].v.boolean ? g + momentum * buffer : buffer;
    r[0].f = p - lr * step;
    r[1].f = buffer;
    scales[1] = fabs(x[2].f) + fabs(x[1].f) + fabs(p);
    scales[0] = fabs(p) + 2 * lr * scales[1];
}

REFERENCE(fused_adamw) {
    const double p = x[0].f, lr = attrs[0].v.f64, b1 = attrs[1].v.f64, b2 = attrs[2].v.f64;
    const double g = attrs[6].v.boolean ? -x[1].f : x[1].f, steps = (double)attrs[5].v.i64;
    const double m = b1 * x[2].f + (1 - b1) * g, v = b2 * x[3].f + (1 - b2) * g * g;
    const double size = lr / (1 - pow(b1, steps));
    const double root = sqrt(v / (1 - pow(b2, steps))) + attrs[3].v.f64;
    r[0].f = p * (1 - lr * attrs[4].v.f64) - size * m / root;
    r[1].f = m;
    r[2].f = v;
    scales[1] = fabs(x[2].f) + fabs(g);
    scales[0] = fabs(p) + size * scales[1] / root;
}

/* ---- attributes ----------------------------------------------------------------------------- */

static tn_cell scalar(bool is_float, double f, int64_t i) {
    return is_float ? mini_f64(f) : mini_i64(i);
}

static uint32_t factor(int v, bool is_float, tn_cell *out) {
    static const double f[] = {1, 2, -0.3, 0};
    static const int64_t i[] = {1, 2, -3, 0};
    out[0] = scalar(is_float, f[v], i[v]);
    return 1;
}

/* One-sided, two-sided, crossed, out of every small type's range; NaN. */
static uint32_t bounds(int v, bool is_float, tn_cell *out) {
    static const int64_t low[] = {-20, 0, -20, 30, -100000, 5}, high[] = {0, 30, 30, 10, 70000, 5};
    out[0] = v == 1 ? mini_none() : scalar(is_float, (double)low[v] / 40, low[v]);
    out[1] = v == 0 ? mini_none() : scalar(is_float, (double)high[v] / 40, high[v]);
    if (v == 5)
        out[1] = scalar(is_float, NAN, high[v]);
    return 2;
}

static uint32_t threshold(int v, bool is_float, tn_cell *out) {
    out[0] = scalar(is_float, v ? 0.5 : 0, v ? 20 : 0);
    return 1;
}

static uint32_t approximate(int v, bool is_float, tn_cell *out) {
    out[0] = mini_string(v ? "tanh" : "none");
    return 1;
}

static uint32_t sgd(int v, bool is_float, tn_cell *out) {
    const double values[2][4] = {{0.1, 0.9, 0, 0}, {0.01, 0.5, 0.1, 0.03}};
    for (int k = 0; k < 4; k++)
        out[k] = mini_f64(values[v][k]);
    out[4] = mini_bool(v);
    out[5] = mini_bool(v);
    return 6;
}

static uint32_t adamw(int v, bool is_float, tn_cell *out) {
    const double values[2][5] = {{0.1, 0.9, 0.999, 1e-8, 0.01}, {0.01, 0.5, 0.9, 1e-3, 0}};
    for (int k = 0; k < 5; k++)
        out[k] = mini_f64(values[v][k]);
    out[5] = mini_i64(v ? 1000 : 1);
    out[6] = mini_bool(v);
    return 7;
}

/* ---- the table ------------------------------------------------------------------------------ */

#define ROW(op_, n_in_, f_, low_, high_, ulps_, half_ulps_, specials_, ...) \
    { \
        .op = op_, .n_in = n_in_, .f = f_, .low = low_, .high = high_, .ulps = ulps_, \
        .half_ulps = half_ulps_, .specials = specials_, __VA_ARGS__ \
    }

#define COMPARE_ROW(op, n_in, f) ROW(op, n_in, f, -2, 2, 0, 0, EXTREME, .bool_out = true)

/* So many sets of attributes. */
#define ATTRIBUTES(attrs_, n) .attrs = attrs_, .n_variants = n

const pointwise pointwise_table[] = {
    ROW("add", 2, add, -10, 10, 2, 1, SPECIAL, ATTRIBUTES(factor, 4)),
    ROW("sub", 2, sub, -10, 10, 2, 1, SPECIAL, ATTRIBUTES(factor, 4)),
    ROW("mul", 2, mul, -10, 10, 0, 0, EXTREME),
    ROW("div", 2, divide, -10, 10, 0, 1, EXTREME),
    ROW("floor_divide", 2, floor_divide, -50, 50, SAME, SAME, SPECIAL),
    ROW("remainder", 2, remainder_of, -50, 50, 0, 1, SPECIAL),
    ROW("maximum", 2, maximum, -10, 10, SAME, SAME, EXTREME),
    ROW("minimum", 2, minimum, -10, 10, SAME, SAME, EXTREME),
    ROW("pow", 2, power, 0.1, 4, 2, 1, EXTREME),
    ROW("addcmul", 3, addcmul, -10, 10, 2, 1, SPECIAL, ATTRIBUTES(factor, 4)),
    ROW("addcdiv", 3, addcdiv, -10, 10, 2, 1, PLAIN, ATTRIBUTES(factor, 4)),
    ROW("neg", 1, neg, -10, 10, 0, 0, EXTREME),
    ROW("abs", 1, absolute, -10, 10, 0, 0, EXTREME),
    ROW("sign", 1, sign, -10, 10, 0, 0, EXTREME),
    ROW("clamp", 1, clamp, -2, 2, 1, 1, EXTREME, ATTRIBUTES(bounds, 6)),
    ROW("bitwise_and", 2, bit_and, 0, 0, 0, 0, PLAIN),
    ROW("bitwise_or", 2, bit_or, 0, 0, 0, 0, PLAIN),
    ROW("bitwise_xor", 2, bit_xor, 0, 0, 0, 0, PLAIN),
    COMPARE_ROW("eq", 2, eq),
    COMPARE_ROW("ne", 2, ne),
    COMPARE_ROW("lt", 2, lt),
    COMPARE_ROW("le", 2, le),
    COMPARE_ROW("gt", 2, gt),
    COMPARE_ROW("ge", 2, ge),
    COMPARE_ROW("logical_not", 1, logical_not),
    ROW("where", 3, where, -10, 10, 0, 0, EXTREME, .bool_in = true),
    ROW("exp", 1, exp_of, -8, 8, 2, 1, EXTREME),
    ROW("log", 1, log_of, 0.01, 50, 2, 1, EXTREME),
    ROW("log1p", 1, log1p_of, -0.9, 5, 2, 1, EXTREME),
    ROW("expm1", 1, expm1_of, -4, 4, 2, 1, EXTREME),
    ROW("sqrt", 1, sqrt_of, 0, 100, 0, 1, EXTREME),
    ROW("rsqrt", 1, rsqrt, 0.01, 100, 2, 1, EXTREME),
    ROW("reciprocal", 1, reciprocal, -10, 10, 0, 1, EXTREME),
    ROW("sin", 1, sin_of, -20, 20, 2, 1, EXTREME),
    ROW("cos", 1, cos_of, -20, 20, 2, 1, EXTREME),
    ROW("tanh", 1, tanh_of, -4, 4, 2, 1, EXTREME),
    ROW("erf", 1, erf_of, -4, 4, 2, 1, EXTREME),
    ROW("floor", 1, floor_of, -30, 30, 0, 0, EXTREME),
    ROW("ceil", 1, ceil_of, -30, 30, 0, 0, EXTREME),
    ROW("trunc", 1, trunc_of, -30, 30, 0, 0, EXTREME),
    ROW("round", 1, nearbyint_of, -30, 30, 0, 0, EXTREME),
    ROW("relu", 1, relu, -10, 10, SAME, SAME, EXTREME),
    ROW("sigmoid", 1, sigmoid_of, -10, 10, 4, 1, EXTREME),
    ROW("silu", 1, silu, -10, 10, 4, 1, SPECIAL),
    ROW("gelu", 1, gelu, -6, 6, 2, 1, EXTREME, ATTRIBUTES(approximate, 2)),
    ROW("threshold_backward", 2, threshold_backward, -2, 2, 0, 0, EXTREME,
        ATTRIBUTES(threshold, 2)),
    ROW("sigmoid_backward", 2, sigmoid_backward, -1, 1, 4, 1, SPECIAL),
    ROW("tanh_backward", 2, tanh_backward, -0.9, 0.9, 16, 1, SPECIAL),
    ROW("silu_backward", 2, silu_backward, -5, 5, 4, 1, PLAIN),
    ROW("gelu_backward", 2, gelu_backward, -5, 5, 8, 1, PLAIN, ATTRIBUTES(approximate, 2)),
    ROW("fused_sgd", 3, fused_sgd, -2, 2, 4, 1, PLAIN, .n_out = 2, ATTRIBUTES(sgd, 2)),
    ROW("fused_adamw", 4, fused_adamw, 0.1, 2, 4, 1, PLAIN, .n_out = 3, ATTRIBUTES(adamw, 2)),
};
const int n_pointwise = LENGTH(pointwise_table);
