/* cvt between registers that are just as wide as their types; numbers of 8 bits are in rows of 16.
 * Narrower and wider registers have steps of their own, as has rounding to an integer. */
#include "tests/cuda/double/ptx_half.h"

#include <math.h>

/* ---- integers ---------------------------------------------------------------------------- */

/* X(source, S, s): to each width, and saturated to each type. An unsigned source is compared as such. A
 * vector of zeros that is rounded down is made -0 by some compilers. */
#define CLAMP(T, x, least, most) ((x) < (least) ? (T)(least) : (x) > (most) ? (T)(most) : (T)(x))
typedef __int128 i128;
#define OF_WIDTHS(X, s, S, n) \
    X(cvt_b16_##s, "2/" n, UNARY(uint16_t, S, x)) \
    X(cvt_b32_##s, "4/" n, UNARY(uint32_t, S, x)) \
    X(cvt_b64_##s, "8/" n, UNARY(uint64_t, S, x)) \
    X(cvt_sat_u8_##s, "2/" n, UNARY(uint16_t, S, CLAMP(uint16_t, (i128)x, 0, UINT8_MAX))) \
    X(cvt_sat_s8_##s, "2/" n, UNARY(int16_t, S, CLAMP(int16_t, (i128)x, INT8_MIN, INT8_MAX))) \
    X(cvt_sat_u16_##s, "2/" n, UNARY(uint16_t, S, CLAMP(uint16_t, (i128)x, 0, UINT16_MAX))) \
    X(cvt_sat_s16_##s, "2/" n, UNARY(int16_t, S, CLAMP(int16_t, (i128)x, INT16_MIN, INT16_MAX))) \
    X(cvt_sat_u32_##s, "4/" n, UNARY(uint32_t, S, CLAMP(uint32_t, (i128)x, 0, UINT32_MAX))) \
    X(cvt_sat_s32_##s, "4/" n, UNARY(int32_t, S, CLAMP(int32_t, (i128)x, INT32_MIN, INT32_MAX))) \
    X(cvt_sat_u64_##s, "8/" n, UNARY(uint64_t, S, CLAMP(uint64_t, (i128)x, 0, UINT64_MAX))) \
    X(cvt_sat_s64_##s, "8/" n, UNARY(int64_t, S, CLAMP(int64_t, (i128)x, INT64_MIN, INT64_MAX))) \
    X(cvt_f32_##s, "4/" n, UNARY(float, S, x ? (float)x : 0)) \
    X(cvt_f64_##s, "8/" n, UNARY(double, S, x ? (double)x : 0)) \
    X(cvt_f16_##s, "2/" n, UNARY(uint16_t, S, ptx_to_f16((double)x)))

/* What a register has of a narrower type: the lowest bits, extended to a row of the type's own. */
#define OF_NARROW(X) \
    X(narrow_u8_2, "2/2", UNARY(uint16_t, uint16_t, (uint8_t)x)) \
    X(narrow_s8_2, "2/2", UNARY(int16_t, uint16_t, (int8_t)x)) \
    X(narrow_u8_4, "2/4", UNARY(uint16_t, uint32_t, (uint8_t)x)) \
    X(narrow_s8_4, "2/4", UNARY(int16_t, uint32_t, (int8_t)x)) \
    X(narrow_u8_8, "2/8", UNARY(uint16_t, uint64_t, (uint8_t)x)) \
    X(narrow_s8_8, "2/8", UNARY(int16_t, uint64_t, (int8_t)x))

/* ---- from floating point ----------------------------------------------------------------- */

/* An integral x. What NaN becomes differs: of f64 and to 64 bits the highest bit alone, otherwise 0.
 * LIMIT: the first number above all that there are, 2^bits. */
#define CLAMPED_S(T, x, nan, least, limit) \
    ((x) != (x)       ? (T)(nan) \
     : (x) < (least)  ? (T)(least) \
     : (x) >= (limit) ? (T) - ((T)(least) + 1) \
                      : (T)(x))
#define CLAMPED_U(T, x, nan, limit) \
    ((x) != (x) ? (T)(nan) : !((x) > 0) ? (T)0 : (x) >= (limit) ? (T)((limit)-1) : (T)(x))
#define OF_INTEGERS(X, f, F, n, nan) \
    X(cvt_u8_##f, "2/" n, UNARY(uint16_t, F, CLAMPED_U(uint32_t, x, nan * 0x80u, 256.f))) \
    X(cvt_s8_##f, "2/" n, UNARY(int16_t, F, CLAMPED_S(int32_t, x, nan * -0x80, -128.f, 128.f))) \
    X(cvt_u16_##f, "2/" n, UNARY(uint16_t, F, CLAMPED_U(uint32_t, x, nan * 0x8000u, 65536.f))) \
    X(cvt_s16_##f, "2/" n, \
      UNARY(int16_t, F, CLAMPED_S(int32_t, x, nan * -0x8000, -0x1p15f, 0x1p15f))) \
    X(cvt_u32_##f, "4/" n, UNARY(uint32_t, F, to_u32((double)x, nan))) \
    X(cvt_s32_##f, "4/" n, \
      UNARY(int32_t, F, CLAMPED_S(int32_t, x, nan *INT32_MIN, -0x1p31f, 0x1p31f))) \
    X(cvt_u64_##f, "8/" n, UNARY(uint64_t, F, to_u64((double)x))) \
    X(cvt_s64_##f, "8/" n, UNARY(int64_t, F, CLAMPED_S(int64_t, x, INT64_MIN, -0x1p63f, 0x1p63f)))

static inline uint32_t to_u32(double x, uint32_t nan) {
    return x != x ? nan << 31 : !(x > 0) ? 0 : x >= 0x1p32 ? UINT32_MAX : (uint32_t)x;
}
static inline uint64_t to_u64(double x) {
    return x != x ? UINT64_C(1) << 63 : !(x > 0) ? 0 : x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
}

/* rni is to even: steps around these set the host's direction to the nearest. */
#define OF_INTEGRAL(X, f, F, n, S, C) \
    X(integral_rni_##f, n "/" n, UNARY(F, F, C(__builtin_rint##S(x)))) \
    X(integral_rzi_##f, n "/" n, UNARY(F, F, C(__builtin_trunc##S(x)))) \
    X(integral_rmi_##f, n "/" n, UNARY(F, F, C(__builtin_floor##S(x)))) \
    X(integral_rpi_##f, n "/" n, UNARY(F, F, C(__builtin_ceil##S(x))))

/* A pair: the first source is the upper half. */
#define PAIR(...) \
    BINARY(uint32_t, float, float, \
           (uint32_t)pair_of(x, __VA_ARGS__) << 16 | pair_of(y, __VA_ARGS__))
static inline uint16_t pair_of(float x, int mantissa, bool to_zero, bool relu) {
    return ptx_narrowed(relu && x <= 0 ? 0 : x, mantissa, to_zero);
}

#define OF_FLOATS(X) \
    X(cvt_f32_f32, "4/4", UNARY(float, float, ptx_canonical(x))) \
    X(cvt_f64_f64, "8/8", UNARY(double, double, x)) \
    X(cvt_f64_f32, "8/4", UNARY(double, float, x)) \
    X(cvt_f32_f64, "4/8", UNARY(float, double, ptx_canonical((float)x))) \
    X(cvt_f32_f16, "4/2", UNARY(float, uint16_t, ptx_of_f16(x))) \
    X(cvt_f32_bf16, "4/2", UNARY(float, uint16_t, ptx_of_bf16(x))) \
    X(cvt_f64_f16, "8/2", UNARY(double, uint16_t, ptx_of_f16(x))) \
    X(cvt_f64_bf16, "8/2", UNARY(double, uint16_t, ptx_of_bf16(x))) \
    X(cvt_rn_f16_f32, "2/4", UNARY(uint16_t, float, ptx_narrowed(x, 10, false))) \
    X(cvt_rz_f16_f32, "2/4", UNARY(uint16_t, float, ptx_narrowed(x, 10, true))) \
    X(cvt_rn_bf16_f32, "2/4", UNARY(uint16_t, float, ptx_narrowed(x, 7, false))) \
    X(cvt_rz_bf16_f32, "2/4", UNARY(uint16_t, float, ptx_narrowed(x, 7, true))) \
    X(cvt_rn_f16_f64, "2/8", UNARY(uint16_t, double, ptx_narrowed(x, 10, false))) \
    X(cvt_rz_f16_f64, "2/8", UNARY(uint16_t, double, ptx_narrowed(x, 10, true))) \
    X(cvt_rn_bf16_f64, "2/8", UNARY(uint16_t, double, ptx_narrowed(x, 7, false))) \
    X(cvt_rn_f16x2_f32, "4/44", PAIR(10, false, false)) \
    X(cvt_rz_f16x2_f32, "4/44", PAIR(10, true, false)) \
    X(cvt_rn_relu_f16x2_f32, "4/44", PAIR(10, false, true)) \
    X(cvt_rn_bf16x2_f32, "4/44", PAIR(7, false, false)) \
    X(cvt_rz_bf16x2_f32, "4/44", PAIR(7, true, false)) \
    X(cvt_rn_relu_bf16x2_f32, "4/44", PAIR(7, false, true))

/* ---- all --------------------------------------------------------------------------------- */

#define SAME(x) (x)
#define ALL(X) \
    OF_WIDTHS(X, u16, uint16_t, "2") \
    OF_WIDTHS(X, s16, int16_t, "2") \
    OF_WIDTHS(X, u32, uint32_t, "4") \
    OF_WIDTHS(X, s32, int32_t, "4") \
    OF_WIDTHS(X, u64, uint64_t, "8") \
    OF_WIDTHS(X, s64, int64_t, "8") \
    OF_NARROW(X) \
    OF_INTEGERS(X, f32, float, "4", 0) \
    OF_INTEGERS(X, f64, double, "8", 1) \
    OF_INTEGRAL(X, f32, float, "4", f, ptx_canonical) \
    OF_INTEGRAL(X, f64, double, "8", , SAME) \
    OF_FLOATS(X)

ALL(DEFINE_OPERATION)

extern const ptx_form PTX_NAME(ptx_convert)[];
const ptx_form PTX_NAME(ptx_convert)[] = {ALL(OPERATION_FORM){0}};

/* ---- the lists of this instruction set --------------------------------------------------- */

extern const ptx_form PTX_NAME(ptx_integer)[], PTX_NAME(ptx_float_forms)[];
const ptx_forms PTX_NAME(ptx_forms) = {PTX_NAME(ptx_integer), PTX_NAME(ptx_float_forms),
                                       PTX_NAME(ptx_convert)};
