/* Numbers of 16 bits: f16 and bf16 from and to what they are computed in, rounded once. */
#ifndef TNI_TESTS_CUDA_DOUBLE_PTX_HALF_H
#define TNI_TESTS_CUDA_DOUBLE_PTX_HALF_H

#include "tests/cuda/double/ptx_lanes.h"

/* 2^112 moves the exponent where f32 has it, subnormal numbers too. */
static inline float ptx_of_f16(uint16_t h) {
    uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13;
    uint32_t bits = ptx_float_bits(ptx_float(magnitude) * ptx_float(0x77800000));
    bits = magnitude >= 0x0f800000 ? magnitude | 0x7f800000 : bits;
    return ptx_canonical(ptx_float(bits | (uint32_t)(h & 0x8000) << 16));
}

static inline float ptx_of_bf16(uint16_t h) {
    return ptx_canonical(ptx_float((uint32_t)h << 16));
}

/* x in a format of `mantissa` bits, 15 - mantissa of the exponent; to the nearest, or towards zero. */
static inline uint16_t ptx_narrowed(double x, int mantissa, bool to_zero) {
    uint64_t bits = ptx_double_bits(x);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    uint32_t infinity = (0x7fffu >> mantissa) << mantissa;
    int bias = (int)(infinity >> mantissa) >> 1;
    if (x != x)
        return 0x7fff;
    if (exponent == 1024)
        return (uint16_t)(sign | infinity);
    int below = exponent < 1 - bias ? 1 - bias - exponent : 0;
    int shift = 52 - mantissa + below;
    shift = shift > 62 ? 62 : shift;
    uint64_t all = exponent == -1023 ? 0 : (bits & UINT64_C(0xfffffffffffff)) | UINT64_C(1) << 52;
    uint64_t kept = all >> shift;
    uint64_t rest = all & ((UINT64_C(1) << shift) - 1);
    uint64_t half = UINT64_C(1) << (shift - 1);
    if (!to_zero && (rest > half || (rest == half && kept & 1)))
        kept++;
    uint64_t out = kept;
    if (!below)
        out += (uint64_t)(exponent + bias - 1) << mantissa;
    if (out >= infinity)
        out = to_zero ? infinity - 1 : infinity;
    return (uint16_t)(sign | out);
}

static inline uint16_t ptx_to_f16(double x) {
    return ptx_narrowed(x, 10, false);
}
static inline uint16_t ptx_to_bf16(double x) {
    return ptx_narrowed(x, 7, false);
}

#endif
