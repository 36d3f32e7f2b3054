/* Operators that compute each element from the elements in its place.
 *
 *   T              the dtype of the inputs
 *   STRIDED        0: all tensors lie in a row; 1: by sizes and strides; 2: the same, work items
 *                  following the innermost dimension and groups the others
 *   INDEX          i32 or i64, what counts elements
 *   N_IN           0: operators of any number of inputs; 1 to 4: of so many
 *   ENTRY          where one kernel is wanted, its name; then with
 *                  DO, N_OUT, FIRST, RESULT, SCALAR   what MAKE takes
 *
 * Otherwise all these operators of the dtype are here: op_add takes tensors, op_add_s1 a number for
 * input 1. A work item makes one element; where it is no thread of a CPU, as many neighbours as 16
 * bytes have. */
#include "plugins/shared/gpu/device/pointwise.params.h"
#include "plugins/shared/gpu/device/pointwise_list.h"

typedef computed(T) C;
typedef wrap(T) U;

/* An attribute, in the computed type. */
#define n(k) number(T)(p.numbers[k])

/* ---- helpers ----------------------------------------------------------------------------- */

#if IS_FLOAT(T)
/* NaN if either is; of two zeros a, so that clamp keeps -0. */
DEVICE C larger(C a, C b) {
    return a >= b || a != a ? a : b;
}
DEVICE C smaller(C a, C b) {
    return a <= b || a != a ? a : b;
}
/* As Python has it: from fmod, which is exact, so that the quotient is not off by one where a / b
 * rounds up to an integer. Division by zero gives what a / b gives. */
DEVICE C divide_down(C a, C b) {
    if (b == 0)
        return DIVIDE(a, b);
    C r = fmod(a, b);
    C q = DIVIDE(a - r, b);
    if (r != 0 && (b < 0) != (r < 0))
        q -= 1;
    if (q == 0)
        return copysign((C)0, copysign((C)1, a) * copysign((C)1, b));
    C whole = floor(q);
    return q - whole > (C)0.5 ? whole + 1 : whole;
}
DEVICE C rest_of(C a, C b) {
    C r = fmod(a, b);
    if (r == 0)
        return copysign(r, b);
    return (b < 0) != (r < 0) ? r + b : r;
}
DEVICE C fmod_of(C a, C b) {
    return fmod(a, b);
}
/* Squares are what is asked for most, and drivers' pow is slow. */
DEVICE C power(C a, C b) {
    return b == 2 ? a * a : pow(a, b);
}

/* 1 / (1 + exp(-x)): exp of what is negative does not overflow. Rounded as seldom as can be, since a
 * GPU's exp may be off by two steps of the four that are promised. */
DEVICE C sigmoid(C x) {
    C e = EXP(T)(-fabs(x)), s = (x < 0 ? e : (C)1) / (1 + e);
    return x != x ? x : s;
}
/* s (1 - s) without the cancellation of 1 - s. */
DEVICE C sigmoid_slope(C x) {
    C e = EXP(T)(-fabs(x)), s = 1 / (1 + e);
    return e * s * s;
}
/* The normal distribution function; erfc keeps the digits of its lower tail. */
DEVICE C normal_cdf(C x) {
#if IS_CPU && DTYPE(T) != DTYPE_f64
    return em_normal_cdf(x);
#else
    return (C)0.5 * erfc((C)-0.70710678118654752440 * x);
#endif
}
/* Twice the argument of tanh in gelu's 'tanh' form; (1 + tanh u) / 2 = sigmoid(2 u). */
DEVICE C gelu_2u(C x) {
    return (C)1.59576912160573071176 * (x + (C)0.044715 * x * x * x);
}
DEVICE C gelu(C x, bool by_tanh) {
    return by_tanh ? x * sigmoid(gelu_2u(x)) : x * normal_cdf(x);
}
DEVICE C gelu_slope(C x, bool by_tanh) {
    if (!by_tanh)
        return normal_cdf(x) + x * (C)0.39894228040143267794 * EXP(T)((C)-0.5 * x * x);
    C slope = (C)1.59576912160573071176 * (1 + (C)0.134145 * x * x);
    return sigmoid(gelu_2u(x)) + x * sigmoid_slope(gelu_2u(x)) * slope;
}
#else
DEVICE C larger(C a, C b) {
    return a > b ? a : b;
}
DEVICE C smaller(C a, C b) {
    return a < b ? a : b;
}
/* -1 is apart because the most negative number over it does not fit. */
DEVICE C divide_down(C a, C b) {
    if (b == 0)
        return 0;
    if (b == -1)
        return (C)(0 - (U)a);
    C q = a / b, r = a % b;
    return q - (r != 0 && (r < 0) != (b < 0));
}
DEVICE C rest_of(C a, C b) {
    if (b == 0 || b == -1)
        return 0;
    C r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
DEVICE C fmod_of(C a, C b) {
    return b == 0 || b == -1 ? 0 : a % b;
}
DEVICE C power(C a, C b) {
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    U result = 1, base = (U)a;
    for (; b; b >>= 1, base *= base)
        if (b & 1)
            result *= base;
    return (C)result;
}
#endif

/* ---- operators: x, y, z, w are the inputs, r0, r1, r2 the outputs ------------------------ */

#if IS_FLOAT(T)
#define DO_add r0 = x + n(0) * y
#define DO_sub r0 = x - n(0) * y
#define DO_mul r0 = x * y
#define DO_neg r0 = -x
#define DO_abs r0 = fabs(x)
#define DO_sign r0 = x != x ? x : (C)((x > 0) - (x < 0))
#define DO_addcmul r0 = x + n(0) * y * z
#define DO_relu r0 = x < 0 ? (C)0 : x
#elif IS_BOOL(T)
#define DO_add r0 = x | ((n(0) != 0) & y)
#define DO_mul r0 = x & y
#else
#define DO_add r0 = (C)((U)x + (U)n(0) * (U)y)
#define DO_sub r0 = (C)((U)x - (U)n(0) * (U)y)
#define DO_mul r0 = (C)((U)x * (U)y)
#define DO_neg r0 = (C)(0 - (U)x)
#define DO_abs r0 = x < 0 ? (C)(0 - (U)x) : x
#define DO_sign r0 = (x > 0) - (x < 0)
#define DO_addcmul r0 = (C)((U)x + (U)n(0) * (U)y * (U)z)
#define DO_relu r0 = x < 0 ? 0 : x
#endif

#define DO_div r0 = DIVIDE(x, y)
#define DO_floor_divide r0 = divide_down(x, y)
#define DO_remainder r0 = rest_of(x, y)
#define DO_fmod r0 = fmod_of(x, y)
#define DO_atan2 r0 = ATAN2(T)(x, y)
#define DO_maximum r0 = larger(x, y)
#define DO_minimum r0 = smaller(x, y)
#define DO_pow r0 = power(x, y)
#define DO_addcdiv r0 = x + DIVIDE(n(0) * y, z)
#define DO_bitwise_and r0 = x & y
#define DO_bitwise_or r0 = x | y
#define DO_bitwise_xor r0 = x ^ y
#define DO_clamp r0 = smaller(larger(x, n(0)), n(1))

#define DO_eq r0 = x == y
#define DO_ne r0 = x != y
#define DO_lt r0 = x < y
#define DO_le r0 = x <= y
#define DO_gt r0 = x > y
#define DO_ge r0 = x >= y
#define DO_logical_not r0 = x == 0
#define DO_where r0 = x ? y : z

#define DO_exp r0 = EXP(T)(x)
#define DO_log r0 = LOG(T)(x)
#define DO_sqrt r0 = SQRT(x)
#define DO_rsqrt \
    r0 = DIVIDE((C)1, SQRT(x)) /* a driver's rsqrt may differ from one kernel to the next */
#define DO_reciprocal r0 = DIVIDE((C)1, x)
#define DO_sin r0 = sin(x)
#define DO_cos r0 = cos(x)
#define DO_tan r0 = tan(x)
#define DO_asin r0 = ASIN(T)(x)
#define DO_acos r0 = ACOS(T)(x)
#define DO_atan r0 = ATAN(T)(x)
#define DO_sinh r0 = SINH(T)(x)
#define DO_cosh r0 = COSH(T)(x)
#define DO_asinh r0 = ASINH(T)(x)
#define DO_acosh r0 = ACOSH(T)(x)
#define DO_atanh r0 = ATANH(T)(x)
#define DO_exp2 r0 = EXP2(T)(x)
#define DO_log2 r0 = LOG2(T)(x)
#define DO_log10 r0 = LOG10(T)(x)
#define DO_tanh r0 = TANH(T)(x)
#define DO_erf r0 = ERF(T)(x)
#define DO_log1p r0 = LOG1P(T)(x)
#define DO_expm1 r0 = EXPM1(T)(x)
#define DO_floor r0 = floor(x)
#define DO_ceil r0 = ceil(x)
#define DO_trunc r0 = trunc(x)
#define DO_round r0 = rint(x)

#define DO_sigmoid r0 = sigmoid(x)
#define DO_silu r0 = x * sigmoid(x)
#define DO_gelu r0 = gelu(x, p.numbers[0] != 0)
#define DO_threshold_backward r0 = y <= n(0) ? (C)0 : x
#define DO_sigmoid_backward r0 = x * y * (1 - y)
#define DO_tanh_backward r0 = x * (1 - y * y)
#define DO_silu_backward r0 = x * (sigmoid(y) + y * sigmoid_slope(y))
#define DO_gelu_backward r0 = x * gelu_slope(y, p.numbers[0] != 0)

/* lr, momentum, 1 - dampening, weight decay, nesterov, the gradient's sign */
#define DO_fused_sgd \
    C g = n(5) * y + n(3) * x; \
    r1 = n(1) * z + n(2) * g; \
    g = n(4) != 0 ? g + n(1) * r1 : r1; \
    r0 = x - n(0) * g

/* beta1, 1 - beta1, beta2, 1 - beta2, eps, 1 - lr * weight decay, lr / (1 - beta1^step) with the
 * gradient's sign in the next, 1 / (1 - beta2^step) */
#define DO_fused_adamw \
    r1 = n(0) * z + n(1) * y; \
    r2 = n(2) * w + n(3) * y * y; \
    r0 = x * n(5) - n(6) * r1 / (SQRT(r2 * n(7)) + n(4))

/* ---- kernels ----------------------------------------------------------------------------- */

/* Elements of a work item. */
#if IS_CPU || STRIDED == 1
#define E 1
#elif BYTES(T) == 1
#define E 8
#else
#define E (16 / BYTES(T))
#endif
MAKE_PACK(T, E)
#if !IS_BOOL(T)
MAKE_PACK(bool, E)
#endif

/* FIND for n tensors, then `count` elements of tensor k are the work item's, from AT(k) on. */
#if STRIDED == 2
#define FIND(n) \
    INDEX i = (INDEX)GLOBAL_ID(0) * E, \
          row = (INDEX)(GLOBAL_ID(1) + GROUP_ID(2) * GROUPS(1) * LOCAL_SIZE(1)), \
          size = (INDEX)p.loop.sizes[0]; \
    if (i >= size || row >= p.numel / size) \
        return; \
    i64 at[n] = {0}; \
    WALK_FROM(1, p.loop, n, INDEX, row, at); \
    for (int k = 0; k < (n); k++) \
        at[k] += i * p.loop.strides[k][0]; \
    COUNT(size);
#define AT(k) (p.offsets[k] + at[k])
#else
#if IS_CPU
#define FIND(n) \
    INDEX i = (INDEX)GLOBAL_ID(0); \
    if (i >= p.numel) \
        return; \
    PLACE(n);
#else
#define FIND(n) \
    INDEX step_ = (INDEX)(GROUPS(0) * LOCAL_SIZE(0)) * E; \
    for (INDEX i = (INDEX)GLOBAL_ID(0) * E; i < p.numel; i += step_) { \
        COUNT(p.numel); \
        PLACE(n);
#define FOUND }
#endif
#if STRIDED
#define PLACE(n) \
    i64 at[n] = {0}; \
    WALK(p.loop, n, INDEX, i, at)
#define AT(k) (p.offsets[k] + at[k])
#else
#define PLACE(n)
#define AT(k) (p.offsets[k] + i)
#endif
#endif
#ifndef FOUND
#define FOUND
#endif

#if E == 1
#define COUNT(end)
#define GET(X, k, in, x) (x)[0] = load(X)(in, AT(k))
#define PUT(X, k, out, x) store(X)(out, AT(k), (x)[0])
#else
#define COUNT(end) int count = (end)-i < E ? (int)((end)-i) : E
#if STRIDED
#define STEP(k) p.loop.strides[k][0]
#else
#define STEP(k) 1
#endif
#define GET(X, k, in, x) \
    do { \
        if (STEP(k) == 1) { \
            LOAD_PACK(X, E, (in) + AT(k), count, x); \
        } else { \
            for (int l = 0; l < E; l++) \
                if (l < count) \
                    (x)[l] = load(X)(in, AT(k) + l * STEP(k)); \
        } \
    } while (0)
#define PUT(X, k, out, x) \
    do { \
        if (STEP(k) == 1) { \
            STORE_PACK(X, E, (out) + AT(k), count, x, narrow(X)); \
        } else { \
            for (int l = 0; l < E; l++) \
                if (l < count) \
                    store(X)(out, AT(k) + l * STEP(k), (x)[l]); \
        } \
    } while (0)
#endif

#define TENSORS_1_1 2
#define TENSORS_2_1 3
#define TENSORS_3_1 4
#define TENSORS_3_2 5
#define TENSORS_4_3 7

/* X is the dtype of the first input, or of the outputs. */
#define IN_ARGUMENTS_1(X) GLOBAL const stored(X) * in0,
#define IN_ARGUMENTS_2(X) IN_ARGUMENTS_1(X) GLOBAL const stored(T) * in1,
#define IN_ARGUMENTS_3(X) IN_ARGUMENTS_2(X) GLOBAL const stored(T) * in2,
#define IN_ARGUMENTS_4(X) IN_ARGUMENTS_3(X) GLOBAL const stored(T) * in3,
#define OUT_ARGUMENTS_1(X) GLOBAL stored(X) * out0,
#define OUT_ARGUMENTS_2(X) OUT_ARGUMENTS_1(X) GLOBAL stored(X) * out1,
#define OUT_ARGUMENTS_3(X) OUT_ARGUMENTS_2(X) GLOBAL stored(X) * out2,

#define INPUT(k, X, n_out, s, x) \
    computed(X) x[E] = {0}; \
    if (k == s) \
        for (int l = 0; l < E; l++) \
            x[l] = number(X)(p.scalar); \
    else \
        GET(X, (n_out) + k, in##k, x);
#define INPUTS_1(X, n_out, s) INPUT(0, X, n_out, s, xs)
#define INPUTS_2(X, n_out, s) INPUTS_1(X, n_out, s) INPUT(1, T, n_out, s, ys)
#define INPUTS_3(X, n_out, s) INPUTS_2(X, n_out, s) INPUT(2, T, n_out, s, zs)
#define INPUTS_4(X, n_out, s) INPUTS_3(X, n_out, s) INPUT(3, T, n_out, s, ws)
#define ELEMENTS_1(X) const computed(X) x = xs[l];
#define ELEMENTS_2(X) ELEMENTS_1(X) const C y = ys[l];
#define ELEMENTS_3(X) ELEMENTS_2(X) const C z = zs[l];
#define ELEMENTS_4(X) ELEMENTS_3(X) const C w = ws[l];

#define RESULTS_1(X) computed(X) r0;
#define RESULTS_2(X) RESULTS_1(X) computed(X) r1;
#define RESULTS_3(X) RESULTS_2(X) computed(X) r2;
#define KEEP_1 to0[l] = r0;
#define KEEP_2 KEEP_1 to1[l] = r1;
#define KEEP_3 KEEP_2 to2[l] = r2;
#define TO_1(X) computed(X) to0[E];
#define TO_2(X) TO_1(X) computed(X) to1[E];
#define TO_3(X) TO_2(X) computed(X) to2[E];
#define STORE_1(X) PUT(X, 0, out0, to0);
#define STORE_2(X) STORE_1(X) PUT(X, 1, out1, to1);
#define STORE_3(X) STORE_2(X) PUT(X, 2, out2, to2);

#define DTYPE_OF_own T
#define DTYPE_OF_bool bool

/* s: the input that is a number, or -1. */
#define MAKE(entry, OPERATOR, n_in, n_out, A, R, s) \
    KERNEL(entry) \
    (OUT_ARGUMENTS_##n_out(R) IN_ARGUMENTS_##n_in(A) \
         const CAT(pointwise_params_, TENSORS_##n_in##_##n_out) p) { \
        FIND(TENSORS_##n_in##_##n_out) \
        INPUTS_##n_in(A, n_out, s) TO_##n_out(R) for (int l = 0; l < E; l++) { \
            ELEMENTS_##n_in(A) RESULTS_##n_out(R) OPERATOR; \
            KEEP_##n_out \
        } \
        STORE_##n_out(R) FOUND \
    }

#ifdef ENTRY

#define MAKE_ONE(...) MAKE(__VA_ARGS__)
MAKE_ONE(ENTRY, DO, N_IN, N_OUT, CAT(DTYPE_OF_, FIRST), CAT(DTYPE_OF_, RESULT), SCALAR)

#else

/* The kernels of an operator; the name is pasted before it meets a macro of that name. */
#define ALL_1(entry, ...) MAKE(entry, __VA_ARGS__, -1)
#define ALL_2(entry, ...) \
    ALL_1(entry, __VA_ARGS__) MAKE(entry##_s0, __VA_ARGS__, 0) MAKE(entry##_s1, __VA_ARGS__, 1)
#define ALL_3(entry, ...) ALL_2(entry, __VA_ARGS__) MAKE(entry##_s2, __VA_ARGS__, 2)
#define ALL_4(entry, ...) ALL_3(entry, __VA_ARGS__) MAKE(entry##_s3, __VA_ARGS__, 3)

#define FOR_ALL(kernels) kernels
#if IS_FLOAT(T)
#define FOR_FLOATS(kernels) kernels
#else
#define FOR_FLOATS(kernels)
#endif
#if IS_BOOL(T)
#define FOR_NUMBERS(kernels)
#else
#define FOR_NUMBERS(kernels) kernels
#endif
#if IS_FLOAT(T)
#define FOR_INTS_BOOL(kernels)
#else
#define FOR_INTS_BOOL(kernels) kernels
#endif

#if N_IN == 0 || N_IN == 1
#define OF_1(kernels) kernels
#else
#define OF_1(kernels)
#endif
#if N_IN == 0 || N_IN == 2
#define OF_2(kernels) kernels
#else
#define OF_2(kernels)
#endif
#if N_IN == 0 || N_IN == 3
#define OF_3(kernels) kernels
#else
#define OF_3(kernels)
#endif
#if N_IN == 0 || N_IN == 4
#define OF_4(kernels) kernels
#else
#define OF_4(kernels)
#endif

#define KERNELS(name, n_in, n_out, dtypes, first, result, attributes) \
    OF_##n_in(FOR_##dtypes( \
        ALL_##n_in(op_##name, DO_##name, n_in, n_out, DTYPE_OF_##first, DTYPE_OF_##result)))
POINTWISE(KERNELS)

#endif
