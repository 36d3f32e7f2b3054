/* Operations of PTX on f32 and f64. They round as the host does at that time: steps around them set it
 * where PTX asks for another direction than to the nearest. */
#include "tests/cuda/double/ptx_lanes.h"

#include <fenv.h>
#include <float.h>
#include <math.h>

/* ---- what rounds once -------------------------------------------------------------------- */

static inline double canonical_double(double x) {
    return x;
}

#define ABS_f32(x) ptx_float(ptx_float_bits(x) & 0x7fffffffu)
#define ABS_f64(x) ptx_double(ptx_double_bits(x) & INT64_MAX)
#define NEG_f32(x) ptx_float(ptx_float_bits(x) ^ 0x80000000u)
#define NEG_f64(x) ptx_double(ptx_double_bits(x) ^ UINT64_C(1) << 63)
#define SIGN_f32(x) (ptx_float_bits(x) & 0x80000000u)
#define SIGN_f64(x) (ptx_double_bits(x) & UINT64_C(1) << 63)
#define JOIN_f32(sign, x) ptx_float((ptx_float_bits(x) & 0x7fffffffu) | SIGN_f32(sign))
#define JOIN_f64(sign, x) ptx_double((ptx_double_bits(x) & INT64_MAX) | SIGN_f64(sign))

/* A number before NaN, and -0 before +0. */
#define MIN(t, x, y) \
    ((x) != (x) ? (y) : (y) != (y) ? (x) : (x) < (y) || ((x) == (y) && SIGN_##t(x)) ? (x) : (y))
#define MAX(t, x, y) \
    ((x) != (x) ? (y) : (y) != (y) ? (x) : (x) > (y) || ((x) == (y) && !SIGN_##t(x)) ? (x) : (y))
#define OR_NAN(x, y, value) ((x) != (x) || (y) != (y) ? (x) + (y) : (value))

#define OF_FLOAT(X, t, T, n, C, FMA, SQRT, LEAST) \
    X(add_##t, n "/" n n, BINARY(T, T, T, C(x + y))) \
    X(sub_##t, n "/" n n, BINARY(T, T, T, C(x - y))) \
    X(mul_##t, n "/" n n, BINARY(T, T, T, C(x *y))) \
    X(div_##t, n "/" n n, BINARY(T, T, T, C(x / y))) \
    X(fma_##t, n "/" n n n, TERNARY(T, T, T, T, C(FMA(x, y, z)))) \
    X(mad_##t, n "/" n n n, TERNARY(T, T, T, T, C(FMA(x, y, z)))) \
    X(rcp_##t, n "/" n, UNARY(T, T, C(1 / x))) \
    X(sqrt_##t, n "/" n, UNARY(T, T, C(SQRT(x)))) \
    X(abs_##t, n "/" n, UNARY(T, T, ABS_##t(x))) \
    X(neg_##t, n "/" n, UNARY(T, T, NEG_##t(x))) \
    X(copysign_##t, n "/" n n, BINARY(T, T, T, JOIN_##t(x, y))) \
    X(min_##t, n "/" n n, BINARY(T, T, T, C(MIN(t, x, y)))) \
    X(max_##t, n "/" n n, BINARY(T, T, T, C(MAX(t, x, y)))) \
    X(min_NaN_##t, n "/" n n, BINARY(T, T, T, C(OR_NAN(x, y, MIN(t, x, y))))) \
    X(max_NaN_##t, n "/" n n, BINARY(T, T, T, C(OR_NAN(x, y, MAX(t, x, y))))) \
    X(testp_finite_##t, "p/" n, TEST(T, ABS_##t(x) < (T)INFINITY)) \
    X(testp_infinite_##t, "p/" n, TEST(T, ABS_##t(x) == (T)INFINITY)) \
    X(testp_number_##t, "p/" n, TEST(T, x == x)) \
    X(testp_notanumber_##t, "p/" n, TEST(T, x != x)) \
    X(testp_normal_##t, "p/" n, TEST(T, ABS_##t(x) >= LEAST && ABS_##t(x) < (T)INFINITY)) \
    X(testp_subnormal_##t, "p/" n, TEST(T, x != 0 && ABS_##t(x) < LEAST))

/* The second six hold for NaN, too. */
#define OF_COMPARISONS(X, t, T, n) \
    X(setp_eq_##t, "p/" n n, COMPARE(T, x == y)) \
    X(setp_ne_##t, "p/" n n, COMPARE(T, x<y || x> y)) \
    X(setp_lt_##t, "p/" n n, COMPARE(T, x < y)) \
    X(setp_le_##t, "p/" n n, COMPARE(T, x <= y)) \
    X(setp_gt_##t, "p/" n n, COMPARE(T, x > y)) \
    X(setp_ge_##t, "p/" n n, COMPARE(T, x >= y)) \
    X(setp_equ_##t, "p/" n n, COMPARE(T, !(x < y || x > y))) \
    X(setp_neu_##t, "p/" n n, COMPARE(T, x != y)) \
    X(setp_ltu_##t, "p/" n n, COMPARE(T, !(x >= y))) \
    X(setp_leu_##t, "p/" n n, COMPARE(T, !(x > y))) \
    X(setp_gtu_##t, "p/" n n, COMPARE(T, !(x <= y))) \
    X(setp_geu_##t, "p/" n n, COMPARE(T, !(x < y))) \
    X(setp_num_##t, "p/" n n, COMPARE(T, x == x && y == y)) \
    X(setp_nan_##t, "p/" n n, COMPARE(T, x != x || y != y))

/* ---- approximations ---------------------------------------------------------------------- */

/* As far from the exact value as PTX permits, or less, which the operands decide: device code that asks
 * for more than is promised is not to pass here. 0, infinity and no number are themselves. */
static inline float approximated(double exact, double bound, uint32_t operands) {
    float nearest = ptx_canonical((float)exact);
    if (nearest == 0 || !(fabs(exact) <= FLT_MAX))
        return nearest;
    operands = (operands ^ operands >> 16) * 0x7feb352du;
    operands = (operands ^ operands >> 15) * 0x846ca68bu;
    float x = (float)(exact + bound * ((int32_t)operands * 0x1p-31));
    return fabs(x - exact) <= bound ? x : nearest;
}

/* The place of f32's last bit. */
static inline double ulp(double x) {
    double power = ptx_double(ptx_double_bits(x) & UINT64_C(0x7ff0000000000000));
    return (power < 0x1p-126 ? 0x1p-126 : power) * 0x1p-23;
}

static inline float quotient(float x, float y) {
    double exact = (double)x / y;
    return approximated(exact, 2 * ulp(exact), ptx_float_bits(x) * 31 + ptx_float_bits(y));
}

/* Divisors above 2^126 give 0, and infinity over them no number. */
static inline float coarse_quotient(float x, float y) {
    bool high = ABS_f32(y) > 0x1p126f && ABS_f32(y) < INFINITY;
    return high ? ptx_canonical(x * 0 * JOIN_f32(y, 1)) : quotient(x, y);
}

/* In [-2 pi, 2 pi], and in a hundred of them; there is no promise beyond. */
#define TURNS(x) (ABS_f32(x) <= 6.2831853f ? 0x1.6a09e6p-21 : 0x1.3b2c48p-15)
/* The lower words of operand and result count for nothing. */
static inline double high_word(double x) {
    x = ptx_double(ptx_double_bits(x) & UINT64_C(0xffffffff00000000));
    return ABS_f64(x) < 0x1p-1022 ? ptx_double(SIGN_f64(x)) : x;
}

/* What becomes of 0 and of subnormal numbers is in PTX's tables. */
#define APPROXIMATELY(value, bound) \
    float *d = ROW(float, 0); \
    const float *a = ROW(const float, 1); \
    EACH(float x = a[l]; double e = value; double most = ABS_f32(x) < 0x1p-126f ? 0 : bound; \
         d[l] = approximated(e, most, ptx_float_bits(x));)
/* NVRTC's own tanh() of f64 takes 2 to the power of an integer for exact, which no table promises. What
 * lies so little below 1 that f64 rounds it to 1 has the last bit of what is below. */
#define OF_POWER(x, e) (rintf(x) == x ? 0 : 2 * ulp(x < 0 ? nextafter(e, 0) : e))
#define OF_APPROXIMATIONS(X) \
    X(ex2_approx_f32, "4/4", APPROXIMATELY(exp2((double)x), OF_POWER(x, e))) \
    X(lg2_approx_f32, "4/4", \
      APPROXIMATELY(log2((double)x), (x > 0.5f && x < 2 ? 1 : fabs(e)) * 0x1p-22)) \
    X(sin_approx_f32, "4/4", APPROXIMATELY(sin((double)x), TURNS(x))) \
    X(cos_approx_f32, "4/4", APPROXIMATELY(cos((double)x), TURNS(x))) \
    X(tanh_approx_f32, "4/4", APPROXIMATELY(tanh((double)x), fabs(e) * 0x1p-11)) \
    X(sqrt_approx_f32, "4/4", APPROXIMATELY(sqrt((double)x), e * 0x1p-23)) \
    X(rsqrt_approx_f32, "4/4", APPROXIMATELY(1 / sqrt((double)x), e * 0x1.125fbep-23)) \
    X(rcp_approx_f32, "4/4", APPROXIMATELY(1 / (double)x, ulp(e))) \
    X(div_approx_f32, "4/44", BINARY(float, float, float, coarse_quotient(x, y))) \
    X(div_full_f32, "4/44", BINARY(float, float, float, quotient(x, y))) \
    X(rsqrt_approx_f64, "8/8", UNARY(double, double, 1 / sqrt(x))) \
    X(rsqrt_approx_ftz_f64, "8/8", UNARY(double, double, high_word(1 / sqrt(high_word(x))))) \
    X(rcp_approx_ftz_f64, "8/8", UNARY(double, double, high_word(1 / high_word(x))))

/* ---- steps of others --------------------------------------------------------------------- */

static inline float flushed(float x) {
    return ABS_f32(x) < 0x1p-126f ? ptx_float(SIGN_f32(x)) : x;
}

/* NaN becomes +0. */
#define SATURATED(T) UNARY(T, T, x > 0 ? x < 1 ? x : 1 : 0)

#define OF_STEPS(X) \
    X(flush, "4/4", UNARY(float, float, flushed(x))) \
    X(flush_f64, "8/8", \
      UNARY(double, double, ABS_f64(x) < 0x1p-1022 ? ptx_double(SIGN_f64(x)) : x)) \
    X(saturate_f32, "4/4", SATURATED(float)) \
    X(saturate_f64, "8/8", SATURATED(double)) \
    X(relu_f32, "4/4", UNARY(float, float, x > 0 || x != x ? x : 0)) \
    X(round_rn, "/", fesetround(FE_TONEAREST); (void)lanes) \
    X(round_rz, "/", fesetround(FE_TOWARDZERO); (void)lanes) \
    X(round_rm, "/", fesetround(FE_DOWNWARD); (void)lanes) \
    X(round_rp, "/", fesetround(FE_UPWARD); (void)lanes)

/* ---- all --------------------------------------------------------------------------------- */

#define ALL(X) \
    OF_FLOAT(X, f32, float, "4", ptx_canonical, __builtin_fmaf, __builtin_sqrtf, 0x1p-126f) \
    OF_FLOAT(X, f64, double, "8", canonical_double, __builtin_fma, __builtin_sqrt, 0x1p-1022) \
    OF_COMPARISONS(X, f32, float, "4") \
    OF_COMPARISONS(X, f64, double, "8") \
    OF_APPROXIMATIONS(X) \
    OF_STEPS(X)

ALL(DEFINE_OPERATION)

extern const ptx_form PTX_NAME(ptx_float_forms)[];
const ptx_form PTX_NAME(ptx_float_forms)[] = {ALL(OPERATION_FORM){0}};
