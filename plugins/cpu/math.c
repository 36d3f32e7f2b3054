/* Elementary functions. */
#include "plugins/cpu/pointwise.h"
#include "plugins/cpu/vmath.h"

/* X(op, f32 expression, f64 expression, expensive) */
#define FUNCTIONS(X) \
    X(exp, em_exp(a), exp(a), 1) \
    X(log, em_log(a), log(a), 1) \
    X(log1p, em_log1p(a), log1p(a), 1) \
    X(expm1, em_expm1(a), expm1(a), 1) \
    X(sqrt, sqrtf(a), sqrt(a), 0) \
    X(rsqrt, 1.0f / sqrtf(a), 1.0 / sqrt(a), 0) \
    X(reciprocal, 1.0f / a, 1.0 / a, 0) \
    X(exp2, em_exp2(a), exp2(a), 1) \
    X(log2, em_log2(a), log2(a), 1) \
    X(log10, em_log10(a), log10(a), 1) \
    X(asin, em_asin(a), asin(a), 1) \
    X(acos, em_acos(a), acos(a), 1) \
    X(atan, em_atan(a), atan(a), 1) \
    X(sinh, em_sinh(a), sinh(a), 1) \
    X(cosh, em_cosh(a), cosh(a), 1) \
    X(asinh, em_asinh(a), asinh(a), 1) \
    X(acosh, em_acosh(a), acosh(a), 1) \
    X(atanh, em_atanh(a), atanh(a), 1) \
    X(tanh, em_tanh(a), tanh(a), 1) \
    X(erf, em_erf(a), erf(a), 1) \
    X(floor, floorf(a), floor(a), 0) \
    X(ceil, ceilf(a), ceil(a), 0) \
    X(trunc, truncf(a), trunc(a), 0) \
    X(round, rintf(a), rint(a), 0)

#define LOOPS(op, f32, f64, expensive) \
    TNC_LOOP1(op##_f32, float, float, TNC_NOTHING, f32) \
    TNC_LOOP1(op##_bf16, tnc_bf16, tnc_bf16, TNC_NOTHING, f32) \
    TNC_LOOP1(op##_f64, double, double, TNC_NOTHING, f64)
FUNCTIONS(LOOPS)

TNC_LOOP1(sin_f64, double, double, TNC_NOTHING, sin(a))
TNC_LOOP1(cos_f64, double, double, TNC_NOTHING, cos(a))
TNC_LOOP1(tan_f64, double, double, TNC_NOTHING, tan(a))

TNC_LOOP2(atan2_f32, float, float, TNC_NOTHING, em_atan2(a, b))
TNC_LOOP2(atan2_bf16, tnc_bf16, tnc_bf16, TNC_NOTHING, em_atan2(a, b))
TNC_LOOP2(atan2_f64, double, double, TNC_NOTHING, atan2(a, b))

/* The fast reduction of sin, cos and tan ends at TNC_TRIG_MAX; the few elements beyond it are done again
 * by the C library, from a copy since the output may be the input. */
#define TRIG_LOOP(name, fast, slow) \
    TNC_LOOP_HEAD(name) { \
        float part[TNC_BLOCK]; \
        for (int64_t begin = 0; begin < n; begin += TNC_BLOCK) { \
            const float *x = (const float *)in[0] + begin; \
            float *r = (float *)out[0] + begin; \
            int64_t m = tnc_min(TNC_BLOCK, n - begin); \
            int32_t beyond = 0; \
            for (int64_t i = 0; i < m; i++) { \
                part[i] = x[i]; \
                beyond |= !(em_fabs(x[i]) < TNC_TRIG_MAX); \
            } \
            for (int64_t i = 0; i < m; i++) \
                r[i] = fast(part[i]); \
            if (beyond) \
                for (int64_t i = 0; i < m; i++) \
                    if (!(em_fabs(part[i]) < TNC_TRIG_MAX)) \
                        r[i] = slow(part[i]); \
        } \
    }
TRIG_LOOP(sin_f32, tnc_sin, sinf)
TRIG_LOOP(cos_f32, tnc_cos, cosf)
TRIG_LOOP(tan_f32, tnc_tan, tanf)

#define RECORDS(op, f32, f64, expensive_) TNC_FLOATS(TNC_UNARY, op, .expensive = expensive_),

static const tn_kernel records[] = {
    FUNCTIONS(RECORDS) TNC_FLOATS_IN_BLOCKS(TNC_UNARY, sin, .expensive = 1),
    TNC_FLOATS_IN_BLOCKS(TNC_UNARY, cos, .expensive = 1),
    TNC_FLOATS_IN_BLOCKS(TNC_UNARY, tan, .expensive = 1),
    TNC_FLOATS(TNC_BINARY, atan2, .expensive = 1),
};
TNC_PUBLISH(math, records);
