/* Pointwise operators, and steps of optimizers: one function of a few numbers each. */
#include "plugin-sdk/conformance/worker/oracle/reference/reference.h"

#include <math.h>
#include <string.h>

enum { MOST_TENSORS = 5 };

/* What follows from AdamW's learning rate, decay and step, and how far off it may be. */
typedef struct adamw_factors {
    tc_real shrink, size, root, error;
} adamw_factors;

/* One element of a call. */
typedef struct point {
    const tc_invocation *call;
    tc_number x[MOST_TENSORS]; /* of the tensors of its sizes, in the schema's order */
    tc_number r[TC_MAX_OUTS];
    tc_real error[TC_MAX_OUTS], rounding[TC_MAX_OUTS];
    adamw_factors factors; /* the same for all elements: found out at the first */
    bool is_known;
} point;

/* With a number of outputs that the compiler knows, mostly one: this runs for each element. */
static inline __attribute__((always_inline)) void each_of(tc_invocation *call, void (*f)(point *p),
                                                          uint32_t n_outs) {
    const tc_record *record = call->record;
    tn_dtype dtype = call->outs[0].tensor.dtype;
    bool converts = record->n_types == 2 && record->out_types[0] != record->arg_types[0];
    bool narrow = (dtype == TN_F16 || dtype == TN_BF16) && !converts;
    int64_t numel = call->outs[0].tensor.shape.numel;
    double ulps = record->ulps;
    const tc_number *in[MOST_TENSORS];
    point p = {.call = call};
    int n = 0;
    for (uint32_t a = 0; a < record->n_args; a++)
        if (record->args[a].kind == TC_ARG_TENSOR && call->args[a].tensor.shape.numel == numel)
            in[n++] = call->args[a].tensor.values;
    for (int64_t i = 0; i < numel; i++) {
        for (int a = 0; a < n; a++)
            tc_put(&p.x[a], in[a][i]);
        for (uint32_t k = 0; k < n_outs; k++) {
            tc_put(&p.r[k], (tc_number){0, 0});
            p.error[k] = p.rounding[k] = 0;
        }
        f(&p);
        for (uint32_t k = 0; k < n_outs; k++) {
            tc_expected *e = &call->outs[k];
            tc_real r = p.r[k].f, error = p.error[k], rounding = p.rounding[k];
            tc_put(&e->tensor.values[i], p.r[k]);
            if ((ulps > 0 || narrow) && isfinite(r)) {
                if (ulps > 0)
                    error += tc_ulps(call, ulps, r);
                if (narrow) /* computed in f32, then rounded once more */
                    rounding += tc_u(call) * fabsl(r);
            }
            e->error[i] = error;
            e->rounding[i] = rounding;
        }
    }
}

static void each(tc_invocation *call, void (*f)(point *p)) {
    if (call->record->n_outs == 1)
        each_of(call, f, 1);
    else
        each_of(call, f, call->record->n_outs);
}

/* `a`, `b`, `c`: floating values; `i`, `j`, `k`: integers, signed; `u`: the unit roundoff. */
#define POINTWISE(name) \
    static void name##_at(point *p); \
    void tc_reference_##name(tc_invocation *call) { \
        each(call, name##_at); \
    } \
    static void name##_at(point *p)

#define NAMES \
    tc_real a = p->x[0].f, b = p->x[1].f, c = p->x[2].f; \
    int64_t i = p->x[0].i, j = p->x[1].i, k = p->x[2].i; \
    tc_real u = tc_u(p->call); \
    (void)a, (void)b, (void)c, (void)i, (void)j, (void)k, (void)u

/* A floating expression; a floating and an integer one; one that is an integer for all dtypes. */
#define FLOATING(name, expression) \
    POINTWISE(name) { \
        NAMES; \
        p->r[0].f = expression; \
    }
#define BOTH(name, floating, integer) \
    POINTWISE(name) { \
        NAMES; \
        p->r[0] = (tc_number){floating, integer}; \
    }
#define COMPARISON(name, floating, integer) \
    POINTWISE(name) { \
        NAMES; \
        p->r[0].i = tc_floating(p->call) ? (floating) : (integer); \
    }

#define ATTRIBUTE(op, name) (&p->call->args[TN_ARG_##op##_##name])

/* ---- moving and comparing ---------------------------------------------------------------- */

POINTWISE(copy) {
    tn_dtype from = p->call->types[0], to = p->call->types[1];
    tc_number x = p->x[0];
    if (tc_is_float(from) == tc_is_float(to)) {
        p->r[0] = x;
    } else if (tc_is_float(to)) {
        p->r[0].f = (tc_real)x.i;
        if (to == TN_F16 || to == TN_BF16) /* by way of f32, or at once */
            p->rounding[0] = 0x1p-24L * fabsl(p->r[0].f);
    } else if (to == TN_BOOL) {
        p->r[0].i = x.f != 0; /* NaN is not 0 */
    } else {
        tc_real low = (tc_real)tc_int_min(to), high = (tc_real)tc_int_max(to);
        if (truncl(x.f) >= low && truncl(x.f) <= high)
            p->r[0].i = (int64_t)x.f;
        else
            p->error[0] = INFINITY; /* unspecified */
    }
    if (tc_is_float(from) && to == TN_BOOL)
        p->error[0] = 0;
}

COMPARISON(eq, a == b, i == j)
COMPARISON(ne, a != b, i != j)
COMPARISON(lt, a < b, i < j)
COMPARISON(le, a <= b, i <= j)
COMPARISON(gt, a > b, i > j)
COMPARISON(ge, a >= b, i >= j)
COMPARISON(logical_not, a == 0, i == 0)

POINTWISE(where) {
    p->r[0] = p->x[0].i ? p->x[1] : p->x[2];
}

/* ---- arithmetic -------------------------------------------------------------------------- */

/* self + factor * product, the product having been rounded `steps` times. bool: or, and. */
static void add_product(point *p, tc_number factor, tc_number product, int steps) {
    tc_real term = factor.f * product.f;
    p->r[0].f = p->x[0].f + term;
    p->r[0].i = p->call->types[0] == TN_BOOL
                    ? p->x[0].i || (factor.i && product.i)
                    : tc_wrap_add(p->x[0].i, tc_wrap_mul(factor.i, product.i));
    if (isfinite(term))
        p->rounding[0] = steps * (tc_u(p->call) * fabsl(term) +
                                  tc_spacing(p->call->types[0] == TN_F64 ? TN_F64 : TN_F32, 0));
}

static tc_number scalar(const tc_value *v) {
    return (tc_number){v->f, v->i};
}

static tc_number minus(tc_number x) {
    return (tc_number){-x.f, (int64_t) - (uint64_t)x.i};
}

/* Rounded to the dtype, and multiplied; neither where the factor is one. */
static int factor_steps(const tc_value *v) {
    return fabs(v->f) == 1 ? 0 : 2;
}

POINTWISE(add) {
    const tc_value *alpha = ATTRIBUTE(add, alpha);
    add_product(p, scalar(alpha), p->x[1], factor_steps(alpha));
}

POINTWISE(sub) {
    const tc_value *alpha = ATTRIBUTE(sub, alpha);
    add_product(p, minus(scalar(alpha)), p->x[1], factor_steps(alpha));
}

POINTWISE(addcmul) {
    const tc_value *value = ATTRIBUTE(addcmul, value);
    tc_number product = {p->x[1].f * p->x[2].f, tc_wrap_mul(p->x[1].i, p->x[2].i)};
    add_product(p, scalar(value), product, 1 + factor_steps(value));
}

POINTWISE(addcdiv) {
    const tc_value *value = ATTRIBUTE(addcdiv, value);
    add_product(p, scalar(value), (tc_number){p->x[1].f / p->x[2].f, 0}, 2 + factor_steps(value));
}

POINTWISE(mul) {
    NAMES;
    p->r[0] = (tc_number){a * b, p->call->types[0] == TN_BOOL ? i && j : tc_wrap_mul(i, j)};
}

BOTH(neg, -a, (int64_t) - (uint64_t)i)
BOTH(abs, fabsl(a), i < 0 ? (int64_t) - (uint64_t)i : i)
BOTH(sign, isnan(a) ? a : (a > 0) - (a < 0), (i > 0) - (i < 0))
BOTH(maximum, isnan(a) || isnan(b) ? NAN : a > b ? a : b, i > j ? i : j)
BOTH(minimum, isnan(a) || isnan(b) ? NAN : a < b ? a : b, i < j ? i : j)
BOTH(relu, a < 0 ? 0 : a, i < 0 ? 0 : i)
BOTH(bitwise_and, 0, i &j)
BOTH(bitwise_or, 0, i | j)
BOTH(bitwise_xor, 0, i ^ j)
FLOATING(div, a / b)
FLOATING(reciprocal, 1 / a)
FLOATING(rsqrt, 1 / sqrtl(a))

/* floor(i / j) as Python has it. */
static int64_t floor_quotient(int64_t i, int64_t j) {
    if (j == 0)
        return 0;
    if (j == -1)
        return (int64_t) - (uint64_t)i;
    return i / j - (i % j != 0 && (i < 0) != (j < 0));
}

POINTWISE(floor_divide) {
    NAMES;
    tc_real rest = fmodl(a, b);
    tc_real q = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0))
        q -= 1;
    p->r[0].f = b == 0 ? a / b : q == 0 ? copysignl(0, a / b) : isnan(q) ? q : nearbyintl(q);
    p->r[0].i = floor_quotient(i, j);
    if (fabsl(q) > 0.25L / u) /* a - rest is rounded, and then the quotient */
        p->error[0] = fmaxl(1, tc_ulps(p->call, 1, q));
}

POINTWISE(remainder) {
    NAMES;
    tc_real rest = fmodl(a, b);
    if (rest == 0)
        rest = copysignl(0, b);
    else if ((rest < 0) != (b < 0))
        rest += b;
    p->r[0].f = rest;
    p->r[0].i =
        j == 0 ? 0 : (int64_t)((uint64_t)i - (uint64_t)tc_wrap_mul(floor_quotient(i, j), j));
}

POINTWISE(fmod) {
    NAMES;
    p->r[0].f = fmodl(a, b);
    p->r[0].i = j == 0 || j == -1 ? 0 : i % j;
}

POINTWISE(pow) {
    NAMES;
    int64_t product = 1, base = i;
    for (uint64_t n = j > 0 ? (uint64_t)j : 0; n; n >>= 1, base = tc_wrap_mul(base, base))
        if (n & 1)
            product = tc_wrap_mul(product, base);
    p->r[0].f = powl(a, b);
    p->r[0].i = j >= 0 ? product : i == 1 ? 1 : i == -1 ? (j % 2 ? -1 : 1) : 0;
}

/* The number of the call's integer dtype that is nearest to a bound. */
static int64_t in_range(const point *p, const tc_value *bound) {
    int64_t low = tc_int_min(p->call->types[0]), high = tc_int_max(p->call->types[0]);
    return bound->i < low ? low : bound->i > high ? high : bound->i;
}

POINTWISE(clamp) {
    const tc_value *low = ATTRIBUTE(clamp, min), *high = ATTRIBUTE(clamp, max);
    bool floating = tc_floating(p->call);
    tc_number y = p->x[0];
    if (!low->none && (floating ? y.f < low->f : y.i < in_range(p, low)))
        y = floating ? (tc_number){low->f, 0} : (tc_number){0, in_range(p, low)};
    if (!high->none && (floating ? y.f > high->f : y.i > in_range(p, high)))
        y = floating ? (tc_number){high->f, 0} : (tc_number){0, in_range(p, high)};
    if (floating && ((!low->none && isnan(low->f)) || (!high->none && isnan(high->f))))
        y.f = NAN;
    p->r[0] = y;
}

/* ---- functions of one number ------------------------------------------------------------- */

FLOATING(exp, expl(a))
FLOATING(log, logl(a))
FLOATING(log1p, log1pl(a))
FLOATING(expm1, expm1l(a))
FLOATING(sqrt, sqrtl(a))
FLOATING(sin, sinl(a))
FLOATING(cos, cosl(a))
FLOATING(tan, tanl(a))
FLOATING(asin, asinl(a))
FLOATING(acos, acosl(a))
FLOATING(atan, atanl(a))
FLOATING(sinh, sinhl(a))
FLOATING(cosh, coshl(a))
FLOATING(tanh, tanhl(a))
FLOATING(asinh, asinhl(a))
FLOATING(acosh, acoshl(a))
FLOATING(atanh, atanhl(a))
FLOATING(exp2, exp2l(a))
FLOATING(log2, log2l(a))
FLOATING(log10, log10l(a))
FLOATING(atan2, atan2l(a, b))
FLOATING(erf, erfl(a))
FLOATING(floor, floorl(a))
FLOATING(ceil, ceill(a))
FLOATING(trunc, truncl(a))
FLOATING(round, nearbyintl(a)) /* the rounding mode is the default one: halves to even */

static tc_real sigmoid(tc_real x) {
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

FLOATING(sigmoid, sigmoid(a))

POINTWISE(silu) {
    NAMES;
    p->r[0].f = a * sigmoid(a);
    if (isfinite(a)) /* of a sigmoid that is subnormal */
        p->rounding[0] = fabsl(a) * tc_spacing(p->call->types[0] == TN_F64 ? TN_F64 : TN_F32, 0);
    if (isinf(a) && a < 0)
        p->error[0] = INFINITY; /* infinity times zero, or the limit */
}

/* Phi(x) and its derivative, in either form. */
static tc_real gelu_phi(tc_real x, const char *approximate, tc_real *out_derivative) {
    tc_real root = sqrtl(2 / acosl(-1));
    if (strcmp(approximate, "none") == 0) {
        *out_derivative = expl(-x * x / 2) * root / 2;
        return erfcl(-x / sqrtl(2)) / 2;
    }
    tc_real inner = root * (x + 0.044715L * x * x * x);
    tc_real slope = root * (1 + 3 * 0.044715L * x * x);
    *out_derivative = isinf(inner) ? 0 : 2 * sigmoid(2 * inner) * sigmoid(-2 * inner) * slope;
    return sigmoid(2 * inner);
}

POINTWISE(gelu) {
    NAMES;
    tc_real derivative;
    p->r[0].f = a * gelu_phi(a, ATTRIBUTE(gelu, approximate)->string, &derivative);
    p->rounding[0] = 16 * u * fabsl(a); /* far to the left all of it is rounding */
    if (isinf(a))
        p->rounding[0] = 0, p->error[0] = a < 0 ? INFINITY : 0;
}

/* ---- derivatives ------------------------------------------------------------------------- */

POINTWISE(threshold_backward) {
    NAMES;
    const tc_value *threshold = ATTRIBUTE(threshold_backward, threshold);
    bool below = tc_floating(p->call) ? b <= threshold->f : j <= threshold->i;
    p->r[0] = below ? (tc_number){0, 0} : p->x[0];
}

FLOATING(sigmoid_backward, a *b *(1 - b))

/* Infinite operands meet zeros inside these formulas in an order that nobody fixed. */
static void unspecified_when_infinite(point *p) {
    if (!isfinite(p->x[0].f) || !isfinite(p->x[1].f) || !isfinite(p->rounding[0]))
        p->rounding[0] = 0, p->error[0] = isnan(p->x[0].f) || isnan(p->x[1].f) ? 0 : INFINITY;
}

POINTWISE(tanh_backward) {
    NAMES;
    p->r[0].f = a * (1 - b * b);
    p->rounding[0] = 2 * u * fabsl(a) * (1 + b * b);
    unspecified_when_infinite(p);
}

POINTWISE(silu_backward) {
    NAMES;
    tc_real s = sigmoid(b);
    p->r[0].f = a * s * (1 + b * sigmoid(-b));
    p->rounding[0] = 8 * u * fabsl(a) * (1 + fabsl(b));
    unspecified_when_infinite(p);
}

POINTWISE(gelu_backward) {
    NAMES;
    tc_real derivative;
    tc_real phi = gelu_phi(b, ATTRIBUTE(gelu_backward, approximate)->string, &derivative);
    p->r[0].f = a * (phi + b * derivative);
    p->rounding[0] = 20 * u * fabsl(a) * (1 + fabsl(b));
    unspecified_when_infinite(p);
}

/* ---- optimizers -------------------------------------------------------------------------- */

/* The arguments of either form have the same names. */
#define SGD(op, lr_) \
    POINTWISE(op) { \
        NAMES; \
        tc_real lr = lr_, momentum = ATTRIBUTE(op, momentum)->f; \
        tc_real decay = ATTRIBUTE(op, weight_decay)->f, dampening = ATTRIBUTE(op, dampening)->f; \
        tc_real g = (ATTRIBUTE(op, maximize)->boolean ? -b : b) + decay * a; \
        tc_real buffer = momentum * c + (1 - dampening) * g; \
        bool nesterov = ATTRIBUTE(op, nesterov)->boolean; \
        p->r[0].f = a - lr * (nesterov ? g + momentum * buffer : buffer); \
        p->r[1].f = buffer; \
        tc_real terms = fabsl(b) + fabsl(decay * a); \
        p->rounding[1] = 6 * u * (fabsl(momentum * c) + fabsl(1 - dampening) * terms); \
        p->rounding[0] = \
            2 * u * fabsl(a) + 2 * fabsl(lr) * (p->rounding[1] + 6 * u * nesterov * terms); \
    }
SGD(fused_sgd, ATTRIBUTE(fused_sgd, lr)->f)
SGD(fused_sgd_from, ATTRIBUTE(fused_sgd_from, lr)->tensor.values[0].f)

/* The relative error of 1 - beta^step, computed in f64: next to nothing but for the first steps. */
static tc_real correction_error(tc_real beta, tc_real steps) {
    tc_real power = powl(beta, steps);
    return 3 * 0x1p-53L * power / (1 - power);
}

static adamw_factors factors_of(const tc_invocation *call) {
#define NUMBER(name) call->args[TN_ARG_fused_adamw_##name]
    tc_real lr = NUMBER(lr).f, steps = (tc_real)NUMBER(step).i;
    tc_real b1 = NUMBER(beta1).f, b2 = NUMBER(beta2).f;
    return (adamw_factors){1 - lr * NUMBER(weight_decay).f, lr / (1 - powl(b1, steps)),
                           1 / (1 - powl(b2, steps)),
                           correction_error(b1, steps) + correction_error(b2, steps) / 2};
#undef NUMBER
}

static adamw_factors factors_now(point *p) {
    if (!p->is_known)
        p->factors = factors_of(p->call);
    p->is_known = true;
    return p->factors;
}

static adamw_factors factors_from(point *p) {
    const tc_number *f = p->call->args[TN_ARG_fused_adamw_from_factors].tensor.values;
    return (adamw_factors){f[0].f, f[1].f, f[2].f, 0};
}

#define ADAMW(op, factors) \
    POINTWISE(op) { \
        NAMES; \
        adamw_factors f = factors(p); \
        tc_real b1 = ATTRIBUTE(op, beta1)->f, b2 = ATTRIBUTE(op, beta2)->f; \
        tc_real g = ATTRIBUTE(op, maximize)->boolean ? -b : b; \
        tc_real m = b1 * c + (1 - b1) * g, v = b2 * p->x[3].f + (1 - b2) * g * g; \
        tc_real root = sqrtl(v * f.root) + ATTRIBUTE(op, eps)->f; \
        p->r[0].f = a * f.shrink - f.size * m / root; \
        p->r[1].f = m; \
        p->r[2].f = v; \
        p->rounding[1] = 4 * u * (fabsl(b1 * c) + fabsl((1 - b1) * g)); \
        p->rounding[2] = 5 * u * fabsl(v); \
        p->rounding[0] = 4 * u * fabsl(a) + \
                         fabsl(f.size) / root * (p->rounding[1] + (10 * u + f.error) * fabsl(m)); \
    }
ADAMW(fused_adamw, factors_now)
ADAMW(fused_adamw_from, factors_from)
