/* f16 and bf16 to f32 and back, for runs of elements. All arithmetic on them is done in
 * f32: kernels load a block, compute, and round once at the end, to nearest even. */
#ifndef TNI_PLUGINS_CPU_HALF_H
#define TNI_PLUGINS_CPU_HALF_H

#include "plugins/cpu/cpu.h"
#include "plugins/cpu/elementary.h"
#ifdef __F16C__
#include <immintrin.h>
#endif

/* ---- bf16: the upper half of an f32 ------------------------------------------------------ */

static inline float tnc_from_bf16(uint16_t h) {
    return tnc_float((uint32_t)h << 16);
}

static inline uint16_t tnc_to_bf16(float x) {
    uint32_t u = tnc_bits(x);
    uint32_t rounded = u + 0x7fff + (u >> 16 & 1), quiet = u | 0x400000;
    /* signed, or GCC narrows each of the two by itself */
    int32_t all = (int32_t)(x != x ? quiet : rounded);
    return (uint16_t)(all >> 16);
}

/* ---- runs -------------------------------------------------------------------------------- */

static inline void tnc_halves_to_floats(tn_dtype dtype, float *out, const void *in, int64_t n) {
    const uint16_t *h = in;
    int64_t i = 0;
    if (dtype == TN_BF16) {
        for (; i < n; i++)
            out[i] = tnc_from_bf16(h[i]);
        return;
    }
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(h + i))));
    for (; i < n; i++)
        out[i] = _cvtsh_ss(h[i]);
#else
    for (; i < n; i++)
        out[i] = f32_of_f16(h[i]);
#endif
}

static inline void tnc_floats_to_halves(tn_dtype dtype, void *out, const float *in, int64_t n) {
    uint16_t *h = out;
    int64_t i = 0;
    if (dtype == TN_BF16) {
        for (; i < n; i++)
            h[i] = tnc_to_bf16(in[i]);
        return;
    }
#ifdef __F16C__
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(h + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; i++)
        h[i] = _cvtss_sh(in[i], _MM_FROUND_TO_NEAREST_INT);
#else
    for (; i < n; i++)
        h[i] = (uint16_t)f16_of_f32(in[i]);
#endif
}

/* f64 to f32, rounded to odd: a later rounding to f16 or bf16 is then as if done at once (Boldo and
 * Melquiond, "When double rounding is odd", 2005). */
static inline float tnc_round_to_odd(double x) {
    float f = (float)x;
    uint32_t u = tnc_bits(f);
    double back = f, magnitude = x < 0 ? -x : x;
    uint32_t too_far = (back < 0 ? -back : back) > magnitude;
    uint32_t inexact = back != x && x == x;
    return tnc_float((u - too_far) | inexact);
}

#endif
