/* See element.h. */
#include "plugin-sdk/conformance/worker/data/element.h"

#include <math.h>
#include <string.h>

static double double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

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

bool tc_is_float(tn_dtype dtype) {
    return TN_DTYPES_FLOAT & TN_DTYPE_BIT(dtype);
}

int tc_digits(tn_dtype dtype) {
    return dtype == TN_F64 ? 53 : dtype == TN_F32 ? 24 : dtype == TN_F16 ? 11 : 8;
}

static int lowest_exponent(tn_dtype dtype) {
    return dtype == TN_F64 ? -1022 : dtype == TN_F16 ? -14 : -126;
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
    *out_lowest = lowest_exponent(dtype) + 1 - tc_digits(dtype);
    return 2 - lowest_exponent(dtype) - *out_lowest;
}

/* 2^n. Of numbers that a double has too, it is written down at once: this runs for each element. */
static tc_real power_of_two(int n) {
    if (n < -1022 || n > 1023)
        return ldexpl(1, n);
    return double_of((uint64_t)(n + 1023) << 52);
}

tc_real tc_spacing(tn_dtype dtype, tc_real x) {
    int exponent = lowest_exponent(dtype) + 1; /* as frexp counts */
    if (isinf(x) || fabsl(x) > tc_largest(dtype))
        exponent = 2 - lowest_exponent(dtype);
    else if (fabsl(x) >= tc_smallest_normal(dtype))
        frexpl(x, &exponent);
    return power_of_two(exponent - tc_digits(dtype));
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

static tc_real decode16(uint16_t h, int digits) {
    int bias = (1 << (14 - digits)) - 1, top = 2 * bias + 1;
    int exponent = (h & 0x7fff) >> digits;
    uint64_t fraction = h & ((1u << digits) - 1);
    double sign = h & 0x8000 ? -1 : 1;
    if (exponent == top)
        return copysign(fraction != 0 ? NAN : INFINITY, sign);
    if (exponent == 0)
        return sign * (double)fraction * power_of_two(1 - bias - digits);
    return sign * double_of((uint64_t)(exponent - bias + 1023) << 52 | fraction << (52 - digits));
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
static uint16_t encode16(tc_real x, int digits) {
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

/* ---- elements ---------------------------------------------------------------------------- */

/* X(dtype, C's type, member of tc_number): what C reads and writes itself; of bool see tc_store. */
#define PLAIN(X) \
    X(TN_F32, float, f) \
    X(TN_F64, double, f) \
    X(TN_I8, int8_t, i) \
    X(TN_I16, int16_t, i) \
    X(TN_I32, int32_t, i) \
    X(TN_I64, int64_t, i) \
    X(TN_U8, uint8_t, i) \
    X(TN_BOOL, uint8_t, i)

tc_number tc_load(tn_dtype dtype, const void *data, int64_t i) {
    tc_number n = {0, 0};
    switch (dtype) {
#define LOAD(dtype_, type, member) \
    case dtype_: \
        n.member = ((const type *)data)[i]; \
        break;
        PLAIN(LOAD)
    default:
        n.f = decode16(((const uint16_t *)data)[i], dtype == TN_F16 ? 10 : 7);
    }
    return n;
}

/* A NaN with these bits of its significand, by which it need not be a quiet one. */
static void store_nan(tn_dtype dtype, void *data, int64_t i, bool negative, uint64_t significand) {
    int digits = tc_digits(dtype) - 1, width = 8 * (int)tc_dtype_bytes(dtype);
    uint64_t bits = ((UINT64_C(1) << (width - 1 - digits)) - 1) << digits |
                    (uint64_t)negative << (width - 1) | significand;
    if (dtype == TN_F64)
        ((uint64_t *)data)[i] = bits;
    else if (dtype == TN_F32)
        ((uint32_t *)data)[i] = (uint32_t)bits;
    else
        ((uint16_t *)data)[i] = (uint16_t)bits;
}

void tc_store(tn_dtype dtype, void *data, int64_t i, tc_number x) {
    uint64_t significand = (uint64_t)x.i & ((UINT64_C(1) << (tc_digits(dtype) - 1)) - 1);
    if (tc_is_float(dtype) && isnan(x.f) && significand) {
        store_nan(dtype, data, i, signbit(x.f), significand);
        return;
    }
    if (dtype == TN_BOOL)
        x.i = x.i != 0;
    switch (dtype) {
#define STORE(dtype_, type, member) \
    case dtype_: \
        ((type *)data)[i] = (type)x.member; \
        break;
        PLAIN(STORE)
    default:
        ((uint16_t *)data)[i] = encode16(x.f, dtype == TN_F16 ? 10 : 7);
    }
}

tc_number tc_round(tn_dtype dtype, tc_number x) {
    uint64_t room;
    tc_store(dtype, &room, 0, x);
    return tc_load(dtype, &room, 0);
}

/* ---- random numbers ---------------------------------------------------------------------- */

uint64_t tc_next(tc_random *r) {
    uint64_t z = r->state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

uint64_t tc_below(tc_random *r, uint64_t n) {
    return tc_next(r) % n; /* the bias of a modulus is no matter here */
}

int64_t tc_integer(tc_random *r, int64_t low, int64_t high) {
    uint64_t n = (uint64_t)high - (uint64_t)low + 1;
    return (int64_t)((uint64_t)low + (n ? tc_below(r, n) : tc_next(r)));
}

tc_real tc_uniform(tc_random *r, tc_real low, tc_real high) {
    return low + (high - low) * (tc_real)(tc_next(r) >> 11) * 0x1p-53L;
}
