/* The tests' own view of the element types: nothing here is shared with a plugin. */
#include "elements.h"

#include <math.h>
#include <stdlib.h>

bool is_float(tn_dtype dtype) {
    return TN_DTYPES_FLOAT & TN_DTYPE_BIT(dtype);
}

double epsilon(tn_dtype dtype) {
    return dtype == TN_F64   ? 0x1p-52
           : dtype == TN_F32 ? 0x1p-23
           : dtype == TN_F16 ? 0x1p-10
                             : 0x1p-7;
}

double smallest_normal(tn_dtype dtype) {
    return dtype == TN_F64 ? 0x1p-1022 : dtype == TN_F16 ? 0x1p-14 : 0x1p-126;
}

/* A 16-bit float with `digits` bits of fraction, by the definition. */
static double decode16(uint16_t h, int digits) {
    const int bias = (1 << (14 - digits)) - 1, top = 2 * bias + 1;
    const int exponent = (h & 0x7fff) >> digits;
    const double fraction = h & ((1 << digits) - 1), sign = h & 0x8000 ? -1 : 1;
    if (exponent == top)
        return fraction != 0 ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - digits);
    return sign * ldexp(fraction + (1 << digits), exponent - bias - digits);
}

/* Nearest even. Patterns of positive numbers are in order, so one that rounds up to the next power
 * of two, or to infinity, needs no care. */
static uint16_t encode16(double x, int digits) {
    const int lowest = 2 - (1 << (14 - digits)); /* exponent of the smallest normal number */
    const uint16_t infinity = (uint16_t)((2 * (1 - lowest) + 1) << digits);
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x))
        return (uint16_t)(infinity | 1 << (digits - 1)); /* a quiet one */
    if (isinf(x))
        return sign | infinity;
    if (x == 0)
        return sign;
    int exponent;
    frexp(x, &exponent);
    exponent = exponent - 1 < lowest ? lowest : exponent - 1;
    const double steps = nearbyint(ldexp(fabs(x), digits - exponent));
    const double pattern = ldexp(exponent - lowest, digits) + steps;
    return sign | (pattern < infinity ? (uint16_t)pattern : infinity);
}

number get(tn_dtype dtype, const void *data, int64_t i) {
    number n = {0};
    switch (dtype) {
    case TN_F32:
        n.f = ((const float *)data)[i];
        break;
    case TN_F64:
        n.f = ((const double *)data)[i];
        break;
    case TN_F16:
        n.f = decode16(((const uint16_t *)data)[i], 10);
        break;
    case TN_BF16:
        n.f = decode16(((const uint16_t *)data)[i], 7);
        break;
    case TN_I8:
        n.i = ((const int8_t *)data)[i];
        break;
    case TN_I16:
        n.i = ((const int16_t *)data)[i];
        break;
    case TN_I32:
        n.i = ((const int32_t *)data)[i];
        break;
    case TN_I64:
        n.i = ((const int64_t *)data)[i];
        break;
    default:
        n.i = ((const uint8_t *)data)[i];
        break;
    }
    return n;
}

void set(tn_dtype dtype, void *data, int64_t i, number x) {
    switch (dtype) {
    case TN_F32:
        ((float *)data)[i] = (float)x.f;
        break;
    case TN_F64:
        ((double *)data)[i] = x.f;
        break;
    case TN_F16:
        ((uint16_t *)data)[i] = encode16(x.f, 10);
        break;
    case TN_BF16:
        ((uint16_t *)data)[i] = encode16(x.f, 7);
        break;
    case TN_I8:
        ((int8_t *)data)[i] = (int8_t)x.i;
        break;
    case TN_I16:
        ((int16_t *)data)[i] = (int16_t)x.i;
        break;
    case TN_I32:
        ((int32_t *)data)[i] = (int32_t)x.i;
        break;
    case TN_I64:
        ((int64_t *)data)[i] = x.i;
        break;
    case TN_U8:
        ((uint8_t *)data)[i] = (uint8_t)x.i;
        break;
    default:
        ((uint8_t *)data)[i] = x.i != 0;
        break;
    }
}

uint64_t random_u64(void) {
    static uint64_t state = 42; /* splitmix64 */
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

void set_random(tn_dtype dtype, void *data, int64_t i, double low, double high) {
    number x = {.f = low + (high - low) * (double)(random_u64() >> 11) * 0x1p-53};
    if (!is_float(dtype))
        x.i = (int64_t)low + (int64_t)(random_u64() % (uint64_t)(high - low + 1));
    if (dtype == TN_BOOL)
        x.i = random_u64() & 1;
    if (dtype == TN_U8)
        x.i = llabs(x.i);
    set(dtype, data, i, x);
}
