/* pointwise.c: operators that compute each element from the elements in its place. One work item
 * makes one element.
 *
 *   OP             the operator: DO_add and so on, below
 *   T, R           the dtype of the inputs; of the outputs
 *   N_IN, N_OUT    tensors
 *   BOOL_IN        1: the first input is bool
 *   SCALAR         the input that is a number, or -1
 *   STRIDED        0: all tensors lie in a row; 1: by sizes and strides; 2: the same, work items
 *                  following the innermost dimension and groups the others
 *   INDEX          i32 or i64, what counts elements */

#if BOOL_IN
#define A bool
#else
#define A T
#endif

typedef computed(T) C;
typedef wrap(T) U;

/* As the host writes it (gpu/pointwise.c). */
typedef struct parameters {
    i64 numel;
    i64 scalar;                /* the input that is a number */
    i64 numbers[8];            /* attributes of the operator */
    i64 offsets[N_IN + N_OUT]; /* in elements; outputs first, then inputs */
#if STRIDED
    LOOP(N_IN + N_OUT) loop; /* as offsets */
#endif
} parameters;

/* An attribute, in the computed type. */
#define n(k) number(T)(p.numbers[k])

/* ---- helpers ---- */

#if IS_FLOAT(T)
DEVICE C larger(C a, C b) {
    return a > b || a != a ? a : b;
}
DEVICE C smaller(C a, C b) {
    return a < b || a != a ? a : b;
}
/* As Python has it: from fmod, which is exact, so that the quotient is not off by one where a / b
 * rounds up to an integer. Division by zero gives what a / b gives. */
DEVICE C divide_down(C a, C b) {
    if (b == 0)
        return DIVIDE(a, b);
    const C r = fmod(a, b);
    C q = DIVIDE(a - r, b);
    if (r != 0 && (b < 0) != (r < 0))
        q -= 1;
    if (q == 0)
        return copysign((C)0, (a < 0) != (b < 0) ? (C)-1 : (C)1);
    const C whole = floor(q);
    return q - whole > (C)0.5 ? whole + 1 : whole;
}
DEVICE C rest_of(C a, C b) {
    const C r = fmod(a, b);
    if (r == 0)
        return copysign(r, b);
    return (b < 0) != (r < 0) ? r + b : r;
}
#define power(a, b) pow(a, b)

/* 1 / (1 + exp(-x)): exp of what is negative does not overflow. */
DEVICE C sigmoid(C x) {
    const C e = exp(-fabs(x)), s = 1 / (1 + e);
    return x < 0 ? e * s : x != x ? x : s;
}
/* s (1 - s) without the cancellation of 1 - s. */
DEVICE C sigmoid_slope(C x) {
    const C e = exp(-fabs(x)), s = 1 / (1 + e);
    return e * s * s;
}
/* The normal distribution function; erfc keeps the digits of its lower tail. */
DEVICE C normal_cdf(C x) {
    return (C)0.5 * erfc((C)-0.70710678118654752440 * x);
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
        return normal_cdf(x) + x * (C)0.39894228040143267794 * exp((C)-0.5 * x * x);
    const C slope = (C)1.59576912160573071176 * (1 + (C)0.134145 * x * x);
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
    const C q = a / b, r = a % b;
    return q - (r != 0 && (r < 0) != (b < 0));
}
DEVICE C rest_of(C a, C b) {
    if (b == 0 || b == -1)
        return 0;
    const C r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
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

/* ---- operators: x, y, z, w are the inputs, r0, r1, r2 the outputs -----------------------------
 */

#if IS_FLOAT(T)
#define DO_add r0 = x + n(0) * y
#define DO_sub r0 = x - n(0) * y
#define DO_mul r0 = x * y
#define DO_neg r0 = -x
#define DO_abs r0 = fabs(x)
#define DO_sign r0 = x != x ? x : (C)((x > 0) - (x < 0))
#define DO_addcmul r0 = x + n(0) * y * z
#define DO_relu r0 = x < 0 ? (C)0 : x + (C)0
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

#define DO_exp r0 = exp(x)
#define DO_log r0 = log(x)
#define DO_sqrt r0 = SQRT(x)
#define DO_rsqrt r0 = rsqrt(x)
#define DO_reciprocal r0 = DIVIDE((C)1, x)
#define DO_sin r0 = sin(x)
#define DO_cos r0 = cos(x)
#define DO_tanh r0 = tanh(x)
#define DO_erf r0 = erf(x)
#define DO_log1p r0 = log1p(x)
#define DO_expm1 r0 = expm1(x)
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

/* ---- the kernel ---- */

#define INPUT(k, X) \
    (SCALAR == k ? number(X)(p.scalar) : load(X)(CAT(in, k), p.offsets[N_OUT + k] + AT(N_OUT + k)))

#if STRIDED
#define AT(k) at[k]
#else
#define AT(k) i
#endif

KERNEL(pointwise)(GLOBAL stored(R) * out0,
#if N_OUT > 1
                  GLOBAL stored(R) * out1,
#endif
#if N_OUT > 2
                  GLOBAL stored(R) * out2,
#endif
                  GLOBAL const stored(A) * in0,
#if N_IN > 1
                  GLOBAL const stored(T) * in1,
#endif
#if N_IN > 2
                  GLOBAL const stored(T) * in2,
#endif
#if N_IN > 3
                  GLOBAL const stored(T) * in3,
#endif
                  const parameters p) {
    const INDEX i = (INDEX)GLOBAL_ID(0);
#if STRIDED == 2
    const INDEX row = (INDEX)(GROUP_ID(1) + GROUP_ID(2) * GROUPS(1)), size = (INDEX)p.loop.sizes[0];
    if (i >= size || row >= p.numel / size)
        return;
#else
    if (i >= p.numel)
        return;
#endif
#if STRIDED
    i64 at[N_IN + N_OUT] = {0};
#if STRIDED == 2
    WALK_FROM(1, p.loop, N_IN + N_OUT, INDEX, row, at);
    for (int k = 0; k < N_IN + N_OUT; k++)
        at[k] += i * p.loop.strides[k][0];
#else
    WALK(p.loop, N_IN + N_OUT, INDEX, i, at);
#endif
#endif
    const computed(A) x = INPUT(0, A);
#if N_IN > 1
    const C y = INPUT(1, T);
#endif
#if N_IN > 2
    const C z = INPUT(2, T);
#endif
#if N_IN > 3
    const C w = INPUT(3, T);
#endif
    computed(R) r0;
#if N_OUT > 1
    computed(R) r1;
#endif
#if N_OUT > 2
    computed(R) r2;
#endif
    OP;
    store(R)(out0, p.offsets[0] + AT(0), r0);
#if N_OUT > 1
    store(R)(out1, p.offsets[1] + AT(1), r1);
#endif
#if N_OUT > 2
    store(R)(out2, p.offsets[2] + AT(2), r2);
#endif
}
