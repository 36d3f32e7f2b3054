/* vmath.h: elementary functions of f32, written so that a loop over them vectorises: no branches,
 * no tables, no calls. Errors are at most 2 ULP, 3 of sigmoid (tests/kernels measures them);
 * infinities, NaN, signed zeros and subnormals come out as in C's <math.h>. f64 uses the C library.
 *
 * Sources of the polynomials
 *   Cephes    S. L. Moshier, Cephes Mathematical Library (exp, log)
 *   FreeBSD   msun, k_sinf.c and k_cosf.c (sin, cos)
 *   Juffa     N. Juffa, minimax fits of erff and tanhf, published on Stack Overflow, 2017-2018
 */
#ifndef TENON_PLUGINS_CPU_VMATH_H
#define TENON_PLUGINS_CPU_VMATH_H

#include "half.h"

#include <math.h>

#define TNC_VMATH static inline __attribute__((always_inline))

static inline double tnc_double(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline uint64_t tnc_bits64(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* x where `condition`, else y, by bits: the compiler may not turn it into a branch. */
TNC_VMATH float tnc_copysign(float magnitude, float sign) {
    return tnc_float((tnc_bits(magnitude) & 0x7fffffff) | (tnc_bits(sign) & 0x80000000));
}

TNC_VMATH float tnc_fabs(float x) {
    return tnc_float(tnc_bits(x) & 0x7fffffff);
}

/* Adding it makes the low bits of the sum the nearest integer. */
#define TNC_ROUND_F32 12582912.0f        /* 1.5 * 2^23 */
#define TNC_ROUND_F64 6755399441055744.0 /* 1.5 * 2^52 */

/* exp(x): x = n ln2 + r, |r| <= ln2 / 2; 2^n in two factors, for subnormal results. */
TNC_VMATH float tnc_exp(float x) {
    float y = x > 89.0f ? 89.0f : x;
    y = y < -104.5f ? -104.5f : y;
    float shifted = y * 1.44269504088896341f + TNC_ROUND_F32;
    float n = shifted - TNC_ROUND_F32;
    float r = y - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    int32_t k = (int32_t)(tnc_bits(shifted) - tnc_bits(TNC_ROUND_F32));
    int32_t half = k >> 1;
    float scale = tnc_float((uint32_t)(half + 127) << 23);
    float rest = tnc_float((uint32_t)(k - half + 127) << 23);
    return p * scale * rest;
}

/* log(x): x = 2^e m, sqrt(1/2) <= m < sqrt(2). */
TNC_VMATH float tnc_log(float x) {
    float tiny = x < 0x1p-126f ? 1.0f : 0.0f;
    float y = x < 0x1p-126f ? x * 0x1p23f : x;
    uint32_t u = tnc_bits(y) + (0x3f800000 - 0x3f3504f3);
    float e = (float)((int32_t)(u >> 23) - 127) - 23.0f * tiny;
    float m = tnc_float((u & 0x007fffff) + 0x3f3504f3) - 1.0f;
    float z = m * m;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    p = p * m * z;
    p = p - 2.12194440e-4f * e;
    p = p - 0.5f * z;
    float r = m + p + 0.693359375f * e;
    r = x == 0.0f ? -INFINITY : r;
    r = x < 0.0f ? NAN : r;
    r = x == INFINITY ? INFINITY : r;
    return x != x ? x : r;
}

/* expm1(x) = 2^n expm1(r) + (2^n - 1), in f64. */
TNC_VMATH float tnc_expm1(float x) {
    double y = x > 89.0f ? 89.0f : x;
    y = y < -104.0 ? -104.0 : y;
    double shifted = y * 1.44269504088896338700 + TNC_ROUND_F64;
    double n = shifted - TNC_ROUND_F64;
    double r = y - n * 0.693147180559945309417;
    double p = 1.0 / 362880; /* Taylor: |r| < 0.35, and only 24 bits are wanted */
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * (r * r) + r;
    uint64_t k = tnc_bits64(shifted) - tnc_bits64(TNC_ROUND_F64);
    double scale = tnc_double((k + 1023) << 52);
    float result = (float)(p * scale + (scale - 1.0));
    return x == 0.0f || x != x ? x : result;
}

/* log1p(x): log of 1 + x in f64 by atanh, or a short series near 0. */
TNC_VMATH float tnc_log1p(float x) {
    double d = x, y = 1.0 + d;
    uint64_t u = tnc_bits64(y) + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
    /* The exponent as a double, without a 64-bit integer conversion. */
    double e = tnc_double((u >> 52) | 0x4330000000000000) - (0x1p52 + 1023.0);
    double m = tnc_double((u & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd);
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    p = p * z + 1.0;
    double r = 2.0 * s * p + e * 0.693147180559945309417;
    double small = d - d * d * (0.5 - d * (1.0 / 3));
    r = d < 1e-4 && d > -1e-4 ? small : r;
    float result = (float)r;
    result = x == -1.0f ? -INFINITY : result;
    result = x < -1.0f ? NAN : result;
    return x == 0.0f || x != x || x == INFINITY ? x : result;
}

/* sin and cos: x = n pi/2 + r in f64 with pi/2 in two parts, good for |x| < TNC_TRIG_MAX. */
#define TNC_TRIG_MAX 1.0e6f

TNC_VMATH float tnc_sin_quarter(float x, uint64_t quarter) {
    double shifted = (double)x * 0.636619772367581343076 + TNC_ROUND_F64;
    double n = shifted - TNC_ROUND_F64;
    double r = x - n * 1.57079632673412561417;
    r = r - n * 6.07710050650619224932e-11;
    double z = r * r;
    double s = 2.7183114939898219064e-6;
    s = s * z - 1.98393348360966317347e-4;
    s = s * z + 8.3333293858894631756e-3;
    s = s * z - 1.66666666416265235595e-1;
    s = s * (z * r) + r;
    double c = 2.43904487962774090654e-5;
    c = c * z - 1.38867637746099294692e-3;
    c = c * z + 4.16666233237390631894e-2;
    c = c * z - 4.99999997251031003120e-1;
    c = c * z + 1.0;
    uint64_t q = tnc_bits64(shifted) + quarter;
    double y = q & 1 ? c : s;
    return (float)tnc_double(tnc_bits64(y) ^ (q & 2) << 62);
}

TNC_VMATH float tnc_sin(float x) {
    return x == 0.0f ? x : tnc_sin_quarter(x, 0);
}

TNC_VMATH float tnc_cos(float x) {
    return tnc_sin_quarter(x, 1);
}

/* tanh(x): a polynomial near 0, else 1 - 2 / (exp(2 |x|) + 1). */
TNC_VMATH float tnc_tanh(float x) {
    float t = tnc_fabs(x), z = x * x;
    float large = 1.0f - 2.0f / (tnc_exp(2.0f * t) + 1.0f);
    float p = 1.57394409e-2f;
    p = p * z - 5.23025580e-2f;
    p = p * z + 1.33152470e-1f;
    p = p * z - 3.33327681e-1f;
    p = p * (z * x) + x;
    float r = t >= 0.55f ? tnc_copysign(large, x) : p;
    return x == 0.0f ? x : r;
}

/* The two halves of erf: erfc(|x|) for |x| > 0.927734375, erf(x) below. */
#define TNC_ERF_SPLIT 0.927734375f

TNC_VMATH float tnc_erfc_large(float t) {
    t = t > 10.5f ? 10.5f : t;
    float z = t * t;
    float p = -1.72853470e-5f * t + 3.83197126e-4f;
    float q = -3.88396438e-3f * t + 2.42546219e-2f;
    p = p * z + q;
    p = p * t - 1.06777877e-1f;
    p = p * t - 6.34846687e-1f;
    p = p * t - 1.28717512e-1f;
    p = p * t - t;
    return tnc_exp(p);
}

TNC_VMATH float tnc_erf_small(float x) {
    float z = x * x;
    float p = -5.96761703e-4f;
    p = p * z + 4.99119423e-3f;
    p = p * z - 2.67681349e-2f;
    p = p * z + 1.12819925e-1f;
    p = p * z - 3.76125336e-1f;
    p = p * z + 1.28379166e-1f;
    return p * x + x;
}

TNC_VMATH float tnc_erf(float x) {
    float large = tnc_copysign(1.0f - tnc_erfc_large(tnc_fabs(x)), x);
    float r = tnc_fabs(x) > TNC_ERF_SPLIT ? large : tnc_erf_small(x);
    return x != x ? x : r;
}

/* The normal distribution function (1 + erf(x / sqrt 2)) / 2, without cancellation at the left. */
TNC_VMATH float tnc_normal_cdf(float x) {
    float y = x * 0.707106781186547524f;
    float tail = 0.5f * tnc_erfc_large(tnc_fabs(y));
    float large = y > 0.0f ? 1.0f - tail : tail;
    float r = tnc_fabs(y) > TNC_ERF_SPLIT ? large : 0.5f + 0.5f * tnc_erf_small(y);
    return x != x ? x : r;
}

/* 1 / (1 + exp(-x)) */
TNC_VMATH float tnc_sigmoid(float x) {
    float e = tnc_exp(-tnc_fabs(x));
    float r = 1.0f / (1.0f + e);
    return x < 0.0f ? e * r : r;
}

/* ---- the same names for f64 ----------------------------------------------------------------- */

static inline double tnc_normal_cdf_f64(double x) {
    return 0.5 * erfc(x * -0.707106781186547524400844362104849039);
}

static inline double tnc_sigmoid_f64(double x) {
    double e = exp(-fabs(x)), r = 1 / (1 + e);
    return x < 0 ? e * r : r;
}

#endif /* TENON_PLUGINS_CPU_VMATH_H */
