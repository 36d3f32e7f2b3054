/* How each element type is stored and computed with, in one list.
 *
 * SIM_..._TYPES(X, ...) calls X(tag, NAME, stored, value, wrap, ...) for each type of a class:
 *   tag     the type's name, as in sim_load_f16; bool is b8, since <stdbool.h> owns the word
 *   NAME    as in TN_F16
 *   stored  what lies in memory
 *   value   what it is loaded as: signed, for comparisons and division
 *   wrap    what sums and products are made in: unsigned for integers, so that they wrap
 * Those of 16 bits are computed in f32 and rounded to nearest even when stored. */
#ifndef TNI_PLUGINS_SIM_DTYPE_H
#define TNI_PLUGINS_SIM_DTYPE_H

#include <tenon/plugin.h>

#include <math.h>
#include <string.h>

#define SIM_FLOAT_TYPES(X, ...) \
    X(f32, F32, float, float, float, __VA_ARGS__) \
    X(f64, F64, double, double, double, __VA_ARGS__) \
    X(f16, F16, uint16_t, float, float, __VA_ARGS__) \
    X(bf16, BF16, uint16_t, float, float, __VA_ARGS__)

#define SIM_INT_TYPES(X, ...) \
    X(i8, I8, int8_t, int32_t, uint32_t, __VA_ARGS__) \
    X(i16, I16, int16_t, int32_t, uint32_t, __VA_ARGS__) \
    X(i32, I32, int32_t, int32_t, uint32_t, __VA_ARGS__) \
    X(i64, I64, int64_t, int64_t, uint64_t, __VA_ARGS__) \
    X(u8, U8, uint8_t, int32_t, uint32_t, __VA_ARGS__)

#define SIM_BOOL_TYPES(X, ...) X(b8, BOOL, uint8_t, int32_t, uint32_t, __VA_ARGS__)

#define SIM_NUMBER_TYPES(X, ...) SIM_FLOAT_TYPES(X, __VA_ARGS__) SIM_INT_TYPES(X, __VA_ARGS__)
#define SIM_INT_BOOL_TYPES(X, ...) SIM_INT_TYPES(X, __VA_ARGS__) SIM_BOOL_TYPES(X, __VA_ARGS__)
#define SIM_ALL_TYPES(X, ...) SIM_NUMBER_TYPES(X, __VA_ARGS__) SIM_BOOL_TYPES(X, __VA_ARGS__)

/* Bytes of an element. */
static inline uint64_t sim_dtype_bytes(tn_dtype dtype) {
    static const uint8_t bytes[TN_DTYPE_COUNT] = {
#define SIM_DTYPE_BYTES(NAME, value, name, n, category) [TN_##NAME] = n,
        TN_DTYPE_MAP(SIM_DTYPE_BYTES)
#undef SIM_DTYPE_BYTES
    };
    return bytes[dtype];
}

static inline const char *sim_dtype_name(tn_dtype dtype) {
    static const char *const names[TN_DTYPE_COUNT] = {
#define SIM_DTYPE_NAME(NAME, value, name, n, category) [TN_##NAME] = name,
        TN_DTYPE_MAP(SIM_DTYPE_NAME)
#undef SIM_DTYPE_NAME
    };
    return dtype >= 0 && dtype < TN_DTYPE_COUNT ? names[dtype] : "unknown";
}

/* ---- 16-bit floating types --------------------------------------------------------------- */

/* `x` rounded to nearest even in a 16-bit format: sign, 15 - digits bits of exponent, `digits` bits
 * of fraction. From f64 in one step, so that nothing is rounded twice. */
static inline uint16_t sim_round_to_16(double x, int digits) {
    int bias = (1 << (14 - digits)) - 1;
    uint16_t infinity = (uint16_t)(((2 * bias + 1)) << digits);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 63 << 15);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);

    if (exponent == 1024) /* infinity or NaN */
        return sign | infinity | (uint16_t)(fraction ? 1 << (digits - 1) : 0);
    if (exponent > bias)
        return sign | infinity;
    int drop = 52 - digits; /* bits of the fraction that do not fit */
    uint64_t high = (uint64_t)(exponent + bias) << digits;
    if (exponent < 1 - bias) { /* subnormal there: the leading one is written out */
        drop += 1 - bias - exponent;
        if (drop > 54)
            return sign;
        fraction |= UINT64_C(1) << 52;
        high = 0;
    }
    uint64_t even = fraction >> drop & 1;
    fraction += (UINT64_C(1) << (drop - 1)) - 1 + even;
    /* A carry out of the fraction goes into the exponent, and from there to infinity. */
    return sign | (uint16_t)(high + (fraction >> drop));
}

static inline float sim_load_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t rest = h & 0x7fff;
    uint32_t bits;
    float f;
    if (rest >= 0x7c00) { /* infinity, NaN */
        bits = sign | 0x7f800000 | (rest & 0x3ff) << 13;
    } else if (rest >= 0x400) {
        bits = sign | ((rest << 13) + (112u << 23));
    } else { /* subnormal: a multiple of 2^-24 */
        f = (float)rest * 0x1p-24f;
        memcpy(&bits, &f, sizeof bits);
        bits |= sign;
    }
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline float sim_load_bf16(uint16_t h) {
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint16_t sim_store_f16(float x) {
    return sim_round_to_16(x, 10);
}

static inline uint16_t sim_store_bf16(float x) {
    return sim_round_to_16(x, 7);
}

/* ---- the other types --------------------------------------------------------------------- */

#define SIM_PLAIN_LOAD_STORE(t, NAME, stored, value, wrap, ...) \
    static inline value sim_load_##t(stored x) { \
        return x; \
    } \
    static inline stored sim_store_##t(wrap x) { \
        return (stored)x; \
    }
SIM_PLAIN_LOAD_STORE(f32, F32, float, float, float)
SIM_PLAIN_LOAD_STORE(f64, F64, double, double, double)
SIM_INT_TYPES(SIM_PLAIN_LOAD_STORE, )

static inline int32_t sim_load_b8(uint8_t x) {
    return x;
}

static inline uint8_t sim_store_b8(uint32_t x) {
    return x != 0;
}

#endif
