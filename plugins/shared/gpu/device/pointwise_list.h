/* The pointwise operators, for those who call them and for device code.
 *
 * X(name, inputs, outputs, dtypes, dtype of the first input, of the outputs, attributes). Dtypes
 * are FLOATS, NUMBERS, INTS_BOOL or ALL; a dtype is `own`, that of the other inputs, or `bool`; for
 * attributes see pointwise_table.c. */
#define POINTWISE(X) \
    X(add, 2, 1, ALL, own, own, first) \
    X(sub, 2, 1, NUMBERS, own, own, first) \
    X(mul, 2, 1, ALL, own, own, none) \
    X(div, 2, 1, FLOATS, own, own, none) \
    X(floor_divide, 2, 1, NUMBERS, own, own, none) \
    X(remainder, 2, 1, NUMBERS, own, own, none) \
    X(fmod, 2, 1, NUMBERS, own, own, none) \
    X(atan2, 2, 1, FLOATS, own, own, none) \
    X(maximum, 2, 1, ALL, own, own, none) \
    X(minimum, 2, 1, ALL, own, own, none) \
    X(pow, 2, 1, NUMBERS, own, own, none) \
    X(addcmul, 3, 1, NUMBERS, own, own, first) \
    X(addcdiv, 3, 1, FLOATS, own, own, first) \
    X(bitwise_and, 2, 1, INTS_BOOL, own, own, none) \
    X(bitwise_or, 2, 1, INTS_BOOL, own, own, none) \
    X(bitwise_xor, 2, 1, INTS_BOOL, own, own, none) \
    X(clamp, 1, 1, NUMBERS, own, own, clamp) \
    X(neg, 1, 1, NUMBERS, own, own, none) \
    X(abs, 1, 1, NUMBERS, own, own, none) \
    X(sign, 1, 1, NUMBERS, own, own, none) \
    X(eq, 2, 1, ALL, own, bool, none) \
    X(ne, 2, 1, ALL, own, bool, none) \
    X(lt, 2, 1, ALL, own, bool, none) \
    X(le, 2, 1, ALL, own, bool, none) \
    X(gt, 2, 1, ALL, own, bool, none) \
    X(ge, 2, 1, ALL, own, bool, none) \
    X(logical_not, 1, 1, ALL, own, bool, none) \
    X(where, 3, 1, ALL, bool, own, none) \
    X(exp, 1, 1, FLOATS, own, own, none) \
    X(log, 1, 1, FLOATS, own, own, none) \
    X(sqrt, 1, 1, FLOATS, own, own, none) \
    X(rsqrt, 1, 1, FLOATS, own, own, none) \
    X(reciprocal, 1, 1, FLOATS, own, own, none) \
    X(sin, 1, 1, FLOATS, own, own, none) \
    X(cos, 1, 1, FLOATS, own, own, none) \
    X(tan, 1, 1, FLOATS, own, own, none) \
    X(asin, 1, 1, FLOATS, own, own, none) \
    X(acos, 1, 1, FLOATS, own, own, none) \
    X(atan, 1, 1, FLOATS, own, own, none) \
    X(sinh, 1, 1, FLOATS, own, own, none) \
    X(cosh, 1, 1, FLOATS, own, own, none) \
    X(asinh, 1, 1, FLOATS, own, own, none) \
    X(acosh, 1, 1, FLOATS, own, own, none) \
    X(atanh, 1, 1, FLOATS, own, own, none) \
    X(exp2, 1, 1, FLOATS, own, own, none) \
    X(log2, 1, 1, FLOATS, own, own, none) \
    X(log10, 1, 1, FLOATS, own, own, none) \
    X(tanh, 1, 1, FLOATS, own, own, none) \
    X(erf, 1, 1, FLOATS, own, own, none) \
    X(log1p, 1, 1, FLOATS, own, own, none) \
    X(expm1, 1, 1, FLOATS, own, own, none) \
    X(floor, 1, 1, FLOATS, own, own, none) \
    X(ceil, 1, 1, FLOATS, own, own, none) \
    X(trunc, 1, 1, FLOATS, own, own, none) \
    X(round, 1, 1, FLOATS, own, own, none) \
    X(relu, 1, 1, NUMBERS, own, own, none) \
    X(sigmoid, 1, 1, FLOATS, own, own, none) \
    X(silu, 1, 1, FLOATS, own, own, none) \
    X(gelu, 1, 1, FLOATS, own, own, gelu) \
    X(threshold_backward, 2, 1, NUMBERS, own, own, first) \
    X(sigmoid_backward, 2, 1, FLOATS, own, own, none) \
    X(tanh_backward, 2, 1, FLOATS, own, own, none) \
    X(silu_backward, 2, 1, FLOATS, own, own, none) \
    X(gelu_backward, 2, 1, FLOATS, own, own, gelu) \
    X(fused_sgd, 3, 2, FLOATS, own, own, sgd) \
    X(fused_adamw, 4, 3, FLOATS, own, own, adamw)
