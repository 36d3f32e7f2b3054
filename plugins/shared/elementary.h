/* Elementary functions of f32 and the conversions of f16, written so that a loop over
 * them vectorises: no branches, no tables, no calls. In C and in device code
 * (shared/gpu/device/dialect.h), for devices that are CPUs; others have better ones. Errors are at most
 * 2 ULP, 3 of sigmoid and of angles (tests/cpu/test_math.c measures them); infinities, NaN, signed zeros and subnormals
 * come out as in C's <math.h>.
 *
 * Who includes it has defined the types f32, i32, u32, and where HAS_F64 is 1 f64 and u64; numbers
 * by their bits, bits_of_f32 and f32_of_bits and those of f64; em_sqrt and em_sqrt_f64; and ELEMENTARY,
 * which begins a function.
 *
 * Sources of the polynomials
 *   Cephes    S. L. Moshier, Cephes Mathematical Library (exp, log,
 *             asinf, atanf, sinhf)
 *   Juffa     N. Juffa, minimax fits of erff and tanhf, published on Stack Overflow, 2017-2018
 */
#ifndef TNI_PLUGINS_SHARED_ELEMENTARY_H
#define TNI_PLUGINS_SHARED_ELEMENTARY_H

/* By bits: the compiler may not turn these into branches. */
ELEMENTARY f32 em_copysign(f32 magnitude, f32 sign) {
    return f32_of_bits((bits_of_f32(magnitude) & 0x7fffffff) | (bits_of_f32(sign) & 0x80000000));
}

ELEMENTARY f32 em_fabs(f32 x) {
    return f32_of_bits(bits_of_f32(x) & 0x7fffffff);
}

/* Adding it makes the low bits of the sum the nearest integer. */
#define ROUND_F32 12582912.0f        /* 1.5 * 2^23 */
#define ROUND_F64 6755399441055744.0 /* 1.5 * 2^52 */

#define INFINITE f32_of_bits(0x7f800000u)
#define NOT_A_NUMBER f32_of_bits(0x7fc00000u)

/* exp(x): x = n ln2 + r, |r| <= ln2 / 2; 2^n in two factors, for subnormal results. */
ELEMENTARY f32 em_exp(f32 x) {
    f32 y = x > 89.0f ? 89.0f : x;
    y = y < -104.5f ? -104.5f : y;
    f32 shifted = y * 1.44269504088896341f + ROUND_F32;
    f32 n = shifted - ROUND_F32;
    f32 r = y - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    f32 p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    i32 k = (i32)(bits_of_f32(shifted) - bits_of_f32(ROUND_F32));
    i32 part = k >> 1;
    f32 scale = f32_of_bits((u32)(part + 127) << 23);
    f32 rest = f32_of_bits((u32)(k - part + 127) << 23);
    return p * scale * rest;
}

/* log(x): x = 2^e m, sqrt(1/2) <= m < sqrt(2). */
ELEMENTARY f32 em_log(f32 x) {
    f32 tiny = x < 0x1p-126f ? 1.0f : 0.0f;
    f32 y = x < 0x1p-126f ? x * 0x1p23f : x;
    u32 u = bits_of_f32(y) + (0x3f800000 - 0x3f3504f3);
    f32 e = (f32)((i32)(u >> 23) - 127) - 23.0f * tiny;
    f32 m = f32_of_bits((u & 0x007fffff) + 0x3f3504f3) - 1.0f;
    f32 z = m * m;
    f32 p = 7.0376836292e-2f;
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
    f32 r = m + p + 0.693359375f * e;
    r = x == 0.0f ? -INFINITE : r;
    r = x < 0.0f ? NOT_A_NUMBER : r;
    r = x == INFINITE ? INFINITE : r;
    return x != x ? x : r;
}

#if HAS_F64
/* expm1(x) = 2^n expm1(r) + (2^n - 1), in f64. */
ELEMENTARY f32 em_expm1(f32 x) {
    f64 y = x > 89.0f ? 89.0f : x;
    y = y < -104.0 ? -104.0 : y;
    f64 shifted = y * 1.44269504088896338700 + ROUND_F64;
    f64 n = shifted - ROUND_F64;
    f64 r = y - n * 0.693147180559945309417;
    f64 p = 1.0 / 362880; /* Taylor: |r| < 0.35, and only 24 bits are wanted */
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * (r * r) + r;
    u64 k = bits_of_f64(shifted) - bits_of_f64(ROUND_F64);
    f64 scale = f64_of_bits((k + 1023) << 52);
    f32 result = (f32)(p * scale + (scale - 1.0));
    return x == 0.0f || x != x ? x : result;
}

/* log1p(x): log of 1 + x in f64 by atanh, or a short series near 0. */
ELEMENTARY f32 em_log1p(f32 x) {
    f64 d = x, y = 1.0 + d;
    u64 u = bits_of_f64(y) + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
    /* The exponent as a f64, without a 64-bit integer conversion. */
    f64 e = f64_of_bits((u >> 52) | 0x4330000000000000) - (0x1p52 + 1023.0);
    f64 m = f64_of_bits((u & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd);
    f64 s = (m - 1.0) / (m + 1.0), z = s * s;
    f64 p = 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    p = p * z + 1.0;
    f64 r = 2.0 * s * p + e * 0.693147180559945309417;
    f64 small = d - d * d * (0.5 - d * (1.0 / 3));
    r = d < 1e-4 && d > -1e-4 ? small : r;
    f32 result = (f32)r;
    result = x == -1.0f ? -INFINITE : result;
    result = x < -1.0f ? NOT_A_NUMBER : result;
    return x == 0.0f || x != x || x == INFINITE ? x : result;
}
#endif

/* tanh(x): a polynomial near 0, else 1 - 2 / (exp(2 |x|) + 1). */
ELEMENTARY f32 em_tanh(f32 x) {
    f32 t = em_fabs(x), z = x * x;
    f32 large = 1.0f - 2.0f / (em_exp(2.0f * t) + 1.0f);
    f32 p = 1.57394409e-2f;
    p = p * z - 5.23025580e-2f;
    p = p * z + 1.33152470e-1f;
    p = p * z - 3.33327681e-1f;
    p = p * (z * x) + x;
    f32 r = t >= 0.55f ? em_copysign(large, x) : p;
    return x == 0.0f ? x : r;
}

/* The two halves of erf: erfc(|x|) for |x| > 0.927734375, erf(x) below. */
#define ERF_SPLIT 0.927734375f

ELEMENTARY f32 em_erfc_large(f32 t) {
    t = t > 10.5f ? 10.5f : t;
    f32 z = t * t;
    f32 p = -1.72853470e-5f * t + 3.83197126e-4f;
    f32 q = -3.88396438e-3f * t + 2.42546219e-2f;
    p = p * z + q;
    p = p * t - 1.06777877e-1f;
    p = p * t - 6.34846687e-1f;
    p = p * t - 1.28717512e-1f;
    p = p * t - t;
    return em_exp(p);
}

ELEMENTARY f32 em_erf_small(f32 x) {
    f32 z = x * x;
    f32 p = -5.96761703e-4f;
    p = p * z + 4.99119423e-3f;
    p = p * z - 2.67681349e-2f;
    p = p * z + 1.12819925e-1f;
    p = p * z - 3.76125336e-1f;
    p = p * z + 1.28379166e-1f;
    return p * x + x;
}

ELEMENTARY f32 em_erf(f32 x) {
    f32 large = em_copysign(1.0f - em_erfc_large(em_fabs(x)), x);
    f32 r = em_fabs(x) > ERF_SPLIT ? large : em_erf_small(x);
    return x != x ? x : r;
}

/* The normal distribution function: left of 0 the tail exp(-x^2 / 2) P(u), u = 0.3 |x| / (1 + 0.3 |x|), P minimax up to
 * 14.5, beyond which it is 0 in f32; right of it 1 less that. The exponential is 2^n 2^r, its n brought into the exponent
 * of 2^(r + 64), which no tail makes subnormal, and the 64 taken out at last. */
ELEMENTARY f32 em_normal_cdf(f32 x) {
    f32 y = em_fabs(x);
    y = y > 14.5f ? 14.5f : y;
    f32 u = 0.3f * y / (1.0f + 0.3f * y);
    f32 p = 3.8127504e-2f;
    p = p * u - 1.36929393e-1f;
    p = p * u + 1.17658004e-1f;
    p = p * u + 1.09027207e-1f;
    p = p * u - 4.49859798e-2f;
    p = p * u - 7.01181591e-1f;
    p = p * u + 1.44810212e+0f;
    p = p * u - 1.32981122e+0f;
    p = p * u + 0.5f;
    f32 slope = y * -0.721347520f; /* y slope is -x^2 / 2 in powers of 2 */
    f32 shifted = slope * y + (ROUND_F32 + 64.0f);
    f32 r = slope * y - (shifted - (ROUND_F32 + 64.0f));
    f32 q = 1.32647203e-3f;
    q = q * r + 9.67151299e-3f;
    q = q * r + 5.55073358e-2f;
    q = q * r + 2.40222424e-1f;
    q = q * r + 6.93147004e-1f;
    q = q * r + 1.0f;
    f32 power = f32_of_bits(bits_of_f32(q) + (bits_of_f32(shifted) << 23));
    f32 tail = power * p * 0x1p-64f;
    return x > 0.0f ? 1.0f - tail : tail;
}

/* 1 / (1 + exp(-x)) */
ELEMENTARY f32 em_sigmoid(f32 x) {
    f32 e = em_exp(-em_fabs(x));
    f32 r = 1.0f / (1.0f + e);
    return x < 0.0f ? e * r : r;
}

/* 2^x: x = n + r, |r| <= 1/2, and exp(r ln2). */
ELEMENTARY f32 em_exp2(f32 x) {
    f32 y = x > 129.0f ? 129.0f : x;
    y = y < -151.0f ? -151.0f : y;
    f32 shifted = y + ROUND_F32;
    f32 n = shifted - ROUND_F32;
    f32 p = em_exp((y - n) * 0.693147180559945309f);
    i32 k = (i32)(bits_of_f32(shifted) - bits_of_f32(ROUND_F32));
    i32 part = k >> 1;
    f32 scale = f32_of_bits((u32)(part + 127) << 23);
    f32 rest = f32_of_bits((u32)(k - part + 127) << 23);
    f32 r = p * scale * rest;
    return x != x ? x : r;
}

/* ---- angles ------------------------------------------------------------------------------ */

#define PI_F32 3.14159265358979324f
#define HALF_PI_F32 1.57079632679489662f

/* atan of what lies in [0, 1]: a polynomial up to tan(pi / 8), beyond it pi / 4 + atan((x - 1) / (x + 1)). */
ELEMENTARY f32 em_atan_part(f32 x) {
    f32 far = x > 0.414213562373095049f ? 1.0f : 0.0f;
    f32 y = (x - far) / (1.0f + x * far), z = y * y;
    f32 p = 8.05374449538e-2f;
    p = p * z - 1.38776856032e-1f;
    p = p * z + 1.99777106478e-1f;
    p = p * z - 3.33329491539e-1f;
    p = p * (z * y) + y;
    return p + far * 0.785398163397448310f;
}

ELEMENTARY f32 em_atan(f32 x) {
    f32 t = em_fabs(x);
    f32 p = em_atan_part(t > 1.0f ? 1.0f / t : t);
    f32 r = em_copysign(t > 1.0f ? HALF_PI_F32 - p : p, x);
    return x == 0.0f || x != x ? x : r;
}

/* The angle of the point (x, y). */
ELEMENTARY f32 em_atan2(f32 y, f32 x) {
    f32 a = em_fabs(x), b = em_fabs(y);
    f32 large = a > b ? a : b, small = a > b ? b : a;
    f32 q = small / large;
    q = large == 0.0f ? 0.0f : q;
    q = small == INFINITE ? 1.0f : q;
    f32 r = em_atan_part(q);
    r = b > a ? HALF_PI_F32 - r : r;
    r = bits_of_f32(x) >> 31 ? PI_F32 - r : r;
    r = em_copysign(r, y);
    return x != x || y != y ? NOT_A_NUMBER : r;
}

/* asin of what lies in [0, 1/2]. */
ELEMENTARY f32 em_asin_part(f32 x, f32 z) {
    f32 p = 4.2163199048e-2f;
    p = p * z + 2.4181311049e-2f;
    p = p * z + 4.5470025998e-2f;
    p = p * z + 7.4953002686e-2f;
    p = p * z + 1.6666752422e-1f;
    return p * (z * x) + x;
}

/* asin(x) = pi / 2 - 2 asin(sqrt((1 - x) / 2)) */
ELEMENTARY f32 em_asin(f32 x) {
    f32 t = em_fabs(x);
    f32 z = t > 0.5f ? 0.5f * (1.0f - t) : t * t;
    f32 p = em_asin_part(t > 0.5f ? em_sqrt(z) : t, z);
    f32 r = em_copysign(t > 0.5f ? HALF_PI_F32 - 2.0f * p : p, x);
    r = t > 1.0f ? NOT_A_NUMBER : r;
    return x == 0.0f || x != x ? x : r;
}

ELEMENTARY f32 em_acos(f32 x) {
    f32 t = em_fabs(x);
    f32 z = t > 0.5f ? 0.5f * (1.0f - t) : t * t;
    f32 p = em_asin_part(t > 0.5f ? em_sqrt(z) : t, z);
    f32 near = x < 0.0f ? PI_F32 - 2.0f * p : 2.0f * p;
    f32 r = t > 0.5f ? near : HALF_PI_F32 - em_copysign(p, x);
    r = t > 1.0f ? NOT_A_NUMBER : r;
    return x != x ? x : r;
}

/* ---- hyperbolic functions ---------------------------------------------------------------- */

/* exp(x) / 2, also where exp(x) overflows. */
ELEMENTARY f32 em_half_exp(f32 x) {
    f32 large = em_exp(x - 1.0f) * 1.35914091422952262f;
    return x > 80.0f ? large : 0.5f * em_exp(x);
}

ELEMENTARY f32 em_sinh(f32 x) {
    f32 t = em_fabs(x), z = x * x;
    f32 e = em_half_exp(t);
    f32 large = em_copysign(e - 0.25f / e, x);
    f32 p = 2.03721912945e-4f;
    p = p * z + 8.33028376239e-3f;
    p = p * z + 1.66667160211e-1f;
    p = p * (z * x) + x;
    f32 r = t > 1.0f ? large : p;
    return x == 0.0f || x != x ? x : r;
}

ELEMENTARY f32 em_cosh(f32 x) {
    f32 e = em_half_exp(em_fabs(x));
    f32 r = e + 0.25f / e;
    return x != x ? x : r;
}

#if HAS_F64
/* e and 2 atanh((m - 1) / (m + 1)) of x = 2^e m, sqrt(1/2) <= m < sqrt(2); x is positive and normal. */
ELEMENTARY f64 em_log_parts(f64 x, f64 *out_e) {
    u64 u = bits_of_f64(x) + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
    *out_e = f64_of_bits((u >> 52) | 0x4330000000000000) - (0x1p52 + 1023.0);
    f64 m = f64_of_bits((u & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd);
    f64 s = (m - 1.0) / (m + 1.0), z = s * s;
    f64 p = 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    p = p * z + 1.0;
    return 2.0 * s * p;
}

/* A logarithm whose base has that factor for e and for the rest. */
ELEMENTARY f32 em_log_based(f32 x, f64 of_e, f64 of_rest) {
    f64 e, rest = em_log_parts(x, &e);
    f32 r = (f32)(e * of_e + rest * of_rest);
    r = x == 0.0f ? -INFINITE : r;
    r = x < 0.0f ? NOT_A_NUMBER : r;
    return x != x || x == INFINITE ? x : r;
}

ELEMENTARY f32 em_log2(f32 x) {
    return em_log_based(x, 1.0, 1.44269504088896340736);
}

ELEMENTARY f32 em_log10(f32 x) {
    return em_log_based(x, 0.301029995663981195214, 0.434294481903251827651);
}

ELEMENTARY f64 em_log_f64(f64 x) {
    f64 e, rest = em_log_parts(x, &e);
    return e * 0.693147180559945309417 + rest;
}

/* log(t + sqrt(t^2 + 1)), or a short series near 0. */
ELEMENTARY f32 em_asinh(f32 x) {
    f64 t = em_fabs(x);
    f64 small = t - t * t * t * (1.0 / 6);
    f32 r = (f32)(t < 1e-3 ? small : em_log_f64(t + em_sqrt_f64(t * t + 1.0)));
    r = em_copysign(r, x);
    return x != x || em_fabs(x) == INFINITE ? x : r;
}

/* log(x + sqrt(x^2 - 1)) */
ELEMENTARY f32 em_acosh(f32 x) {
    f64 t = x < 1.0f ? 1.0f : x;
    f32 r = (f32)em_log_f64(t + em_sqrt_f64(t * t - 1.0));
    r = x < 1.0f ? NOT_A_NUMBER : r;
    return x != x || x == INFINITE ? x : r;
}

/* log((1 + t) / (1 - t)) / 2, or a short series near 0. */
ELEMENTARY f32 em_atanh(f32 x) {
    f64 t = em_fabs(x);
    f64 inside = t < 1.0 ? t : 0.0;
    f64 small = t + t * t * t * (1.0 / 3);
    f32 r = (f32)(t < 1e-3 ? small : 0.5 * em_log_f64((1.0 + inside) / (1.0 - inside)));
    r = t == 1.0 ? INFINITE : r;
    r = t > 1.0 ? NOT_A_NUMBER : em_copysign(r, x);
    return x != x ? x : r;
}
#endif

/* ---- f16 by bits, after F. Giesen, "Float->half variants" -------------------------------- */

ELEMENTARY f32 f32_of_f16(u32 h) {
    u32 magnitude = (h & 0x7fffu) << 13, exponent = magnitude & 0x0f800000u;
    u32 normal = magnitude + (112u << 23), special = magnitude + (224u << 23),
        subnormal = bits_of_f32(f32_of_bits(magnitude + (113u << 23)) - 0x1p-14f);
    u32 u = exponent == 0 ? subnormal : exponent == 0x0f800000u ? special : normal;
    return f32_of_bits(u | (h & 0x8000u) << 16);
}

/* Rounds to nearest even. */
ELEMENTARY u32 f16_of_f32(f32 x) {
    u32 bits = bits_of_f32(x), u = bits & 0x7fffffffu;
    u32 normal = (u - (112u << 23) + 0xfffu + (u >> 13 & 1)) >> 13,
        subnormal = bits_of_f32(f32_of_bits(u) + 0.5f) - 0x3f000000u;
    u32 h = u < 0x38800000u ? subnormal : normal;
    h = u >= 0x477ff000u ? 0x7c00u : h; /* rounds to infinity, or is it */
    h = u > 0x7f800000u ? 0x7e00u : h;
    return h | (bits >> 16 & 0x8000u);
}

#endif
