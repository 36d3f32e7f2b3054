/* 16-bit floating formats to and from f32, in integers, so that every machine gives the same bits.
 *
 *   f16   s eeeee mmmmmmmmmm        bf16   s eeeeeeee mmmmmmm (the upper half of an f32)
 *
 * Rounding is to nearest even; a NaN stays a NaN, made quiet, with the upper bits of its payload.
 */
#include "core/tensor/tensor.h"

#include <string.h>

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float tni_f16_to_f32(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t exponent = (bits >> 10) & 0x1fu;
    uint32_t mantissa = bits & 0x3ffu;
    if (exponent == 0x1f)
        return float_of(sign | 0x7f800000u | (mantissa ? 0x400000u | mantissa << 13 : 0));
    if (exponent)
        return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    if (!mantissa)
        return float_of(sign);
    uint32_t shift = (uint32_t)__builtin_clz(mantissa) - 21; /* brings the top bit to bit 10 */
    return float_of(sign | (113 - shift) << 23 | ((mantissa << shift) & 0x3ffu) << 13);
}

uint16_t tni_f32_to_f16(float value) {
    uint32_t bits = bits_of(value);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520: half way between the largest f16 and the next */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude >= 0x38800000u) { /* 2^-14: normal; a carry moves into the exponent rightly */
        uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1);
        return (uint16_t)(sign | ((rounded - 0x38000000u) >> 13));
    }
    if (magnitude < 0x33000000u) /* less than half of the smallest denormal */
        return (uint16_t)sign;
    uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    uint32_t shift = 126 - (magnitude >> 23); /* 14 .. 24: units of 2^-24 */
    uint32_t half = 1u << (shift - 1);
    uint32_t result = mantissa >> shift;
    uint32_t rest = mantissa & ((1u << shift) - 1);
    result += rest > half || (rest == half && (result & 1));
    return (uint16_t)(sign | result);
}

float tni_bf16_to_f32(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    if ((wide & 0x7fffffffu) > 0x7f800000u)
        wide |= 0x400000u;
    return float_of(wide);
}

uint16_t tni_f32_to_bf16(float value) {
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}
