/* Arithmetic on two or three tensors: what every other operator is decomposed into. Integers wrap,
 * so they are computed unsigned. */
#include "plugins/cpu/pointwise.h"

#include <math.h>

/* ---- floating point ---------------------------------------------------------------------- */

/* floor(a / b) and a - b * floor(a / b) as Python has them: from fmod, which is exact, so that the
 * quotient is not off by one where a / b rounds up to an integer. Division by zero gives what a / b
 * gives. */
#define FLOOR_DIVIDE(T, fmod, floor, copysign) \
    static inline T floor_divide_one_##T(T a, T b) { \
        if (b == 0) \
            return a / b; \
        T r = fmod(a, b), q = (a - r) / b; \
        if (r != 0 && (b < 0) != (r < 0)) \
            q -= 1; \
        if (q == 0) \
            return copysign((T)0, a / b); \
        T whole = floor(q); \
        return q - whole > (T)0.5 ? whole + 1 : whole; \
    } \
    static inline T remainder_one_##T(T a, T b) { \
        T r = fmod(a, b); \
        if (r == 0) \
            return copysign(r, b); \
        return (b < 0) != (r < 0) ? r + b : r; \
    }
FLOOR_DIVIDE(float, fmodf, floorf, copysignf)
FLOOR_DIVIDE(tnc_bf16, fmodf, floorf, copysignf)
FLOOR_DIVIDE(double, fmod, floor, copysign)

/* NaN if either is; of two zeros x, so that clamp keeps -0. */
#define MAXIMUM(x, y) ((x) >= (y) || (x) != (x) ? (x) : (y))
#define MINIMUM(x, y) ((x) <= (y) || (x) != (x) ? (x) : (y))

#define FLOAT_LOOPS(sfx, T, pow, fmod) \
    TNC_LOOP2(add_##sfx, T, T, T alpha = TNC_ATTR_F(T, 0), a + alpha * b) \
    TNC_LOOP2(sub_##sfx, T, T, T alpha = TNC_ATTR_F(T, 0), a - alpha * b) \
    TNC_LOOP2(mul_##sfx, T, T, TNC_NOTHING, (a * b)) \
    TNC_LOOP2(div_##sfx, T, T, TNC_NOTHING, a / b) \
    TNC_LOOP2(floor_divide_##sfx, T, T, TNC_NOTHING, floor_divide_one_##T(a, b)) \
    TNC_LOOP2(remainder_##sfx, T, T, TNC_NOTHING, remainder_one_##T(a, b)) \
    TNC_LOOP2(fmod_##sfx, T, T, TNC_NOTHING, fmod(a, b)) \
    TNC_LOOP2(maximum_##sfx, T, T, TNC_NOTHING, MAXIMUM(a, b)) \
    TNC_LOOP2(minimum_##sfx, T, T, TNC_NOTHING, MINIMUM(a, b)) \
    TNC_LOOP2(pow_##sfx, T, T, TNC_NOTHING, pow(a, b)) \
    TNC_LOOP3(addcmul_##sfx, T, T, T value = TNC_ATTR_F(T, 0), a + value * b * c) \
    TNC_LOOP3(addcdiv_##sfx, T, T, T value = TNC_ATTR_F(T, 0), a + value * b / c) \
    TNC_LOOP1(neg_##sfx, T, T, TNC_NOTHING, -a) \
    TNC_LOOP1(clamp_##sfx, T, T, \
              T low = attrs[0].tag == TN_CELL_NONE ? (T)-INFINITY : TNC_ATTR_F(T, 0); \
              T high = attrs[1].tag == TN_CELL_NONE ? (T)INFINITY : TNC_ATTR_F(T, 1), \
              MINIMUM(MAXIMUM(a, low), high))
FLOAT_LOOPS(f32, float, powf, fmodf)
FLOAT_LOOPS(bf16, tnc_bf16, powf, fmodf)
FLOAT_LOOPS(f64, double, pow, fmod)

TNC_LOOP1(abs_f32, float, float, TNC_NOTHING, fabsf(a))
TNC_LOOP1(abs_bf16, tnc_bf16, tnc_bf16, TNC_NOTHING, fabsf(a))
TNC_LOOP1(abs_f64, double, double, TNC_NOTHING, fabs(a))
TNC_LOOP1(sign_f32, float, float, TNC_NOTHING, a != a ? a : (float)((a > 0) - (a < 0)))
TNC_LOOP1(sign_bf16, tnc_bf16, tnc_bf16, TNC_NOTHING, a != a ? a : (float)((a > 0) - (a < 0)))
TNC_LOOP1(sign_f64, double, double, TNC_NOTHING, a != a ? a : (double)((a > 0) - (a < 0)))

/* ---- integers: T the type, U its unsigned computing type --------------------------------- */

/* -1 is apart because the most negative number over -1 traps. */
#define INT_HELPERS(sfx, T, U, DT) \
    static inline T floor_divide_one_##sfx(T a, T b) { \
        if (b == 0) \
            return 0; \
        if (b == (T)-1 && (T)-1 < 0) \
            return (T)(0 - (U)a); \
        T q = (T)(a / b), r = (T)(a % b); \
        return (T)(q - (r != 0 && (r < 0) != (b < 0))); \
    } \
    static inline T remainder_one_##sfx(T a, T b) { \
        if (b == 0 || (b == (T)-1 && (T)-1 < 0)) \
            return 0; \
        T r = (T)(a % b); \
        return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r; \
    } \
    static inline T fmod_one_##sfx(T a, T b) { \
        return b == 0 || (b == (T)-1 && (T)-1 < 0) ? 0 : (T)(a % b); \
    } \
    static inline T pow_one_##sfx(T a, T b) { \
        if (b < 0) \
            return a == 1 ? 1 : (T)(a == (T)-1 ? (b % 2 ? -1 : 1) : 0); \
        U result = 1, base = (U)a; \
        for (; b; b >>= 1, base *= base) \
            result *= b & 1 ? base : 1; \
        return (T)result; \
    }
TNC_INT_TYPES(INT_HELPERS)

/* A bound given as I64, brought into T's range first. */
#define BOUND(T, cell, none) \
    ((cell).tag == TN_CELL_NONE ? (none) \
     : (cell).v.i64 < (int64_t)TNC_LOWEST(T) \
         ? TNC_LOWEST(T) \
         : ((cell).v.i64 > (int64_t)TNC_HIGHEST(T) ? TNC_HIGHEST(T) : (T)(cell).v.i64))

#define INT_LOOPS(sfx, T, U, DT) \
    TNC_LOOP2(add_##sfx, T, T, U alpha = TNC_ATTR_I(U, 0), (U)a + alpha * (U)b) \
    TNC_LOOP2(sub_##sfx, T, T, U alpha = TNC_ATTR_I(U, 0), (U)a - alpha * (U)b) \
    TNC_LOOP2(mul_##sfx, T, T, TNC_NOTHING, (U)(a) * (U)(b)) \
    TNC_LOOP2(floor_divide_##sfx, T, T, TNC_NOTHING, floor_divide_one_##sfx(a, b)) \
    TNC_LOOP2(remainder_##sfx, T, T, TNC_NOTHING, remainder_one_##sfx(a, b)) \
    TNC_LOOP2(fmod_##sfx, T, T, TNC_NOTHING, fmod_one_##sfx(a, b)) \
    TNC_LOOP2(maximum_##sfx, T, T, TNC_NOTHING, a > b ? a : b) \
    TNC_LOOP2(minimum_##sfx, T, T, TNC_NOTHING, a < b ? a : b) \
    TNC_LOOP2(pow_##sfx, T, T, TNC_NOTHING, pow_one_##sfx(a, b)) \
    TNC_LOOP3(addcmul_##sfx, T, T, U value = TNC_ATTR_I(U, 0), (U)a + value * (U)b * (U)c) \
    TNC_LOOP1(neg_##sfx, T, T, TNC_NOTHING, 0 - (U)a) \
    TNC_LOOP1(abs_##sfx, T, T, TNC_NOTHING, a < 0 ? 0 - (U)a : (U)a) \
    TNC_LOOP1(sign_##sfx, T, T, TNC_NOTHING, (a > 0) - (a < 0)) \
    TNC_LOOP1(clamp_##sfx, T, T, T low = BOUND(T, attrs[0], TNC_LOWEST(T)); \
              T high = BOUND(T, attrs[1], TNC_HIGHEST(T)), \
              (a < low ? low : a) > high ? high : (a < low ? low : a)) \
    TNC_LOOP2(bitwise_and_##sfx, T, T, TNC_NOTHING, (a & b)) \
    TNC_LOOP2(bitwise_or_##sfx, T, T, TNC_NOTHING, a | b) \
    TNC_LOOP2(bitwise_xor_##sfx, T, T, TNC_NOTHING, a ^ b)
TNC_INT_TYPES(INT_LOOPS)

/* ---- bool: one byte, 0 or 1 -------------------------------------------------------------- */

TNC_LOOP2(add_bool, uint8_t, uint8_t, uint8_t alpha = attrs[0].v.i64 != 0, a | (alpha & b))
TNC_LOOP2(and_bool, uint8_t, uint8_t, TNC_NOTHING, (a & b))
TNC_LOOP2(or_bool, uint8_t, uint8_t, TNC_NOTHING, a | b)
TNC_LOOP2(xor_bool, uint8_t, uint8_t, TNC_NOTHING, a ^ b)

static const tn_kernel records[] = {
    TNC_NUMBERS(TNC_BINARY, add),
    TNC_NUMBERS(TNC_BINARY, sub),
    TNC_NUMBERS(TNC_BINARY, mul),
    TNC_FLOATS(TNC_BINARY, div),
    TNC_NUMBERS(TNC_BINARY, floor_divide, .expensive = 1),
    TNC_NUMBERS(TNC_BINARY, remainder, .expensive = 1),
    TNC_NUMBERS(TNC_BINARY, fmod, .expensive = 1),
    TNC_NUMBERS(TNC_BINARY, maximum),
    TNC_NUMBERS(TNC_BINARY, minimum),
    TNC_NUMBERS(TNC_BINARY, pow, .expensive = 1),
    TNC_NUMBERS(TNC_TERNARY, addcmul),
    TNC_FLOATS(TNC_TERNARY, addcdiv),
    TNC_NUMBERS(TNC_UNARY, neg),
    TNC_NUMBERS(TNC_UNARY, abs),
    TNC_NUMBERS(TNC_UNARY, sign),
    TNC_NUMBERS(TNC_UNARY, clamp),
    TNC_INTS(TNC_BINARY, bitwise_and),
    TNC_INTS(TNC_BINARY, bitwise_or),
    TNC_INTS(TNC_BINARY, bitwise_xor),
    TNC_BINARY(add, BOOL, add_bool),
    TNC_BINARY(mul, BOOL, and_bool),
    TNC_BINARY(maximum, BOOL, or_bool),
    TNC_BINARY(minimum, BOOL, and_bool),
    TNC_BINARY(bitwise_and, BOOL, and_bool),
    TNC_BINARY(bitwise_or, BOOL, or_bool),
    TNC_BINARY(bitwise_xor, BOOL, xor_bool),
};
TNC_PUBLISH(arithmetic, records);
