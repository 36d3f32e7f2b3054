/* See element.h. */
#include "plugin-sdk/conformance/worker/data/element.h"

#include <float.h>
#include <math.h>
#include <string.h>

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

const char *tc_dtype_name(tn_dtype dtype) {
#define NAME(NAME, value, name, bytes, category) name,
    static const char *const names[] = {TN_DTYPE_MAP(NAME)};
#undef NAME
    return dtype >= 0 && dtype < TN_DTYPE_COUNT ? names[dtype] : "no dtype";
}

uint64_t tc_dtype_bytes(tn_dtype dtype) {
#define BYTES(NAME, value, name, bytes, category) bytes,
    static const uint8_t bytes[] = {TN_DTYPE_MAP(BYTES)};
#undef BYTES
    return bytes[dtype];
}

tc_real tc_smallest_normal(tn_dtype dtype) {
    return dtype == TN_F64 ? 0x1p-1022L : dtype == TN_F16 ? 0x1p-14L : 0x1p-126L;
}

tc_real tc_largest(tn_dtype dtype) {
    return dtype == TN_F64   ? 0x1.fffffffffffffp1023L
           : dtype == TN_F32 ? 0x1.fffffep127L
           : dtype == TN_F16 ? 0x1.ffcp15L
                             : 0x1.fep127L;
}

int tc_exponents(tn_dtype dtype, int *out_lowest) {
    *out_lowest = tc_lowest_exponent(dtype) + 1 - tc_digits(dtype);
    return 2 - tc_lowest_exponent(dtype) - *out_lowest;
}

tc_real tc_unit(tn_dtype dtype) {
    return dtype == TN_F64 ? 0x1p-53L : 0x1p-24L;
}

int64_t tc_int_max(tn_dtype dtype) {
    return dtype == TN_BOOL  ? 1
           : dtype == TN_U8  ? UINT8_MAX
           : dtype == TN_I8  ? INT8_MAX
           : dtype == TN_I16 ? INT16_MAX
           : dtype == TN_I32 ? INT32_MAX
                             : INT64_MAX;
}

int64_t tc_int_min(tn_dtype dtype) {
    return dtype == TN_BOOL || dtype == TN_U8 ? 0 : -tc_int_max(dtype) - 1;
}

/* ---- the 16-bit floats, by their definition ---------------------------------------------- */

tc_real tc_decode16(uint16_t h, int digits) {
    int bias = (1 << (14 - digits)) - 1, top = 2 * bias + 1;
    int exponent = (h & 0x7fff) >> digits;
    uint64_t fraction = h & ((1u << digits) - 1);
    double sign = h & 0x8000 ? -1 : 1;
    if (exponent == top)
        return copysign(fraction != 0 ? NAN : INFINITY, sign);
    if (exponent == 0)
        return sign * (double)fraction * tc_power_of_two(1 - bias - digits);
    return sign *
           tc_double_of((uint64_t)(exponent - bias + 1023) << 52 | fraction << (52 - digits));
}

/* The double next to x towards 0, its last bit set where x is not a double: what a rounding to at most
 * 51 bits makes of it is what it makes of x ("round to odd": Boldo, Melquiond, IEEE TC 57(4), 2008). */
static uint64_t odd_double(tc_real x) {
    double nearest = (double)x;
    uint64_t bits = bits_of(nearest);
    if (nearest > x)
        bits--;
    return nearest == x ? bits : bits | 1;
}

/* Nearest even. Patterns of positive numbers are in order, so one that rounds up to the next power
 * of two, or to infinity, needs no care. */
uint16_t tc_encode16(tc_real x, int digits) {
    int lowest = 2 - (1 << (14 - digits)); /* exponent of the smallest normal number */
    uint16_t infinity = (uint16_t)((2 * (1 - lowest) + 1) << digits);
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x))
        return sign | infinity | (uint16_t)(1 << (digits - 1)); /* a quiet one */
    if (isinf(x))
        return sign | infinity;
    uint64_t bits = odd_double(fabsl(x));
    int exponent = (int)(bits >> 52) - 1023;
    int dropped = 52 - digits + (exponent < lowest ? lowest - exponent : 0);
    if (dropped > 54) /* less than half of the smallest number */
        return sign;
    uint64_t significand = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    uint64_t half = UINT64_C(1) << (dropped - 1), rest = significand & (2 * half - 1);
    uint64_t steps = significand >> dropped;
    steps += rest > half || (rest == half && steps % 2);
    if (exponent > lowest)
        steps += (uint64_t)(exponent - lowest) << digits;
    return sign | (steps < infinity ? (uint16_t)steps : infinity);
}

bool tc_store_nan(tn_dtype dtype, void *data, int64_t i, tc_number x) {
    int digits = tc_digits(dtype) - 1, width = 8 * (int)tc_dtype_bytes(dtype);
    uint64_t significand = (uint64_t)x.i & ((UINT64_C(1) << digits) - 1);
    uint64_t bits = ((UINT64_C(1) << (width - 1 - digits)) - 1) << digits |
                    (uint64_t)(signbit(x.f) != 0) << (width - 1) | significand;
    if (!significand)
        return false;
    if (dtype == TN_F64)
        ((uint64_t *)data)[i] = bits;
    else if (dtype == TN_F32)
        ((uint32_t *)data)[i] = (uint32_t)bits;
    else
        ((uint16_t *)data)[i] = (uint16_t)bits;
    return true;
}
