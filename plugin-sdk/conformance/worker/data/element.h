/* Elements of every dtype as numbers, by rules of the suite's own.
 *
 * Nothing here is shared with a plugin. Numbers are long double, wider than every dtype of
 * plugin.h, so that rounding to a dtype happens once.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_DATA_ELEMENT_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_DATA_ELEMENT_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <tenon/plugin.h>

typedef long double tc_real;

/* `f` for floating dtypes, `i` for the others; the other one is 0, but of a NaN `i` may be the
 * bits that its significand is to have. */
typedef struct tc_number {
    tc_real f;
    int64_t i;
} tc_number;

/* A copy without the bytes that fill it up, for which a processor would wait. */
static inline void tc_put(tc_number *to, tc_number x) {
    to->f = x.f;
    to->i = x.i;
}

const char *tc_dtype_name(tn_dtype dtype);
uint64_t tc_dtype_bytes(tn_dtype dtype);

/* What is inline here runs for each element of each case. */
static inline bool tc_is_float(tn_dtype dtype) {
    return TN_DTYPES_FLOAT & TN_DTYPE_BIT(dtype);
}

/* Of a floating dtype: bits of the significand, the leading one counted; the largest and the
 * smallest normal number. */
static inline int tc_digits(tn_dtype dtype) {
    return dtype == TN_F64 ? 53 : dtype == TN_F32 ? 24 : dtype == TN_F16 ? 11 : 8;
}
tc_real tc_largest(tn_dtype dtype);
tc_real tc_smallest_normal(tn_dtype dtype);

/* The exponent of the smallest normal number; the largest number is below 2^(2 - it). */
static inline int tc_lowest_exponent(tn_dtype dtype) {
    return dtype == TN_F64 ? -1022 : dtype == TN_F16 ? -14 : -126;
}

static inline double tc_double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^n. Of numbers that a double has too, it is written down at once. */
static inline tc_real tc_power_of_two(int n) {
    if (n < -1022 || n > 1023)
        return ldexpl(1, n);
    return tc_double_of((uint64_t)(n + 1023) << 52);
}

/* As frexp has it, and as for 0 a very small one, for an infinity and a NaN a very large one. */
static inline int tc_exponent_of(tc_real x) {
#if LDBL_MANT_DIG == 64
    uint16_t top;
    memcpy(&top, (const char *)&x + 8, sizeof top);
    return (top & 0x7fff) - 16382;
#else
    int exponent;
    if (!(fabsl(x) <= LDBL_MAX) || x == 0)
        return x == 0 ? INT16_MIN : INT16_MAX;
    frexpl(x, &exponent);
    return exponent;
#endif
}

/* The distance between the numbers of a floating dtype around x, that of the subnormal ones at
 * least, that of the largest ones at most. */
static inline tc_real tc_spacing(tn_dtype dtype, tc_real x) {
    int exponent = tc_exponent_of(x), lowest = tc_lowest_exponent(dtype) + 1;
    if (exponent < lowest)
        exponent = lowest;
    if (exponent > 3 - lowest)
        exponent = 3 - lowest;
    return tc_power_of_two(exponent - tc_digits(dtype));
}

/* The unit roundoff of the arithmetic a kernel is to use: that of f64 for f64, of f32 for the
 * others. */
tc_real tc_unit(tn_dtype dtype);

/* How many exponents its numbers have, the subnormal ones included, and the lowest of them. */
int tc_exponents(tn_dtype dtype, int *out_lowest);

/* Largest and smallest integer of an integer dtype; 1 and 0 for bool. */
int64_t tc_int_max(tn_dtype dtype);
int64_t tc_int_min(tn_dtype dtype);

/* ---- elements ---------------------------------------------------------------------------- */

/* The 16-bit floats by their definition: f16 has 10 digits behind the leading one, bf16 7. To the
 * nearest, ties to even. */
tc_real tc_decode16(uint16_t h, int digits);
uint16_t tc_encode16(tc_real x, int digits);

/* Stores a NaN with the bits of x.i in its significand, by which it need not be a quiet one; false
 * where these are none. */
bool tc_store_nan(tn_dtype dtype, void *data, int64_t i, tc_number x);

/* X(dtype, C's type, member of tc_number): what C reads and writes itself; of bool see tc_store. */
#define TC_PLAIN_MAP(X) \
    X(TN_F32, float, f) \
    X(TN_F64, double, f) \
    X(TN_I8, int8_t, i) \
    X(TN_I16, int16_t, i) \
    X(TN_I32, int32_t, i) \
    X(TN_I64, int64_t, i) \
    X(TN_U8, uint8_t, i) \
    X(TN_BOOL, uint8_t, i)

/* Element i of an array. */
static inline tc_number tc_load(tn_dtype dtype, const void *data, int64_t i) {
    tc_number n = {0, 0};
    switch (dtype) {
#define TC_LOAD(dtype_, type, member) \
    case dtype_: \
        n.member = ((const type *)data)[i]; \
        break;
        TC_PLAIN_MAP(TC_LOAD)
#undef TC_LOAD
    default:
        n.f = tc_decode16(((const uint16_t *)data)[i], dtype == TN_F16 ? 10 : 7);
    }
    return n;
}

/* Floating dtypes round x.f to nearest even, integers wrap x.i, bool is x.i != 0. */
static inline void tc_store(tn_dtype dtype, void *data, int64_t i, tc_number x) {
    if (tc_is_float(dtype) && x.i != 0 && x.f != x.f && tc_store_nan(dtype, data, i, x))
        return;
    if (dtype == TN_BOOL)
        x.i = x.i != 0;
    switch (dtype) {
#define TC_STORE(dtype_, type, member) \
    case dtype_: \
        ((type *)data)[i] = (type)x.member; \
        break;
        TC_PLAIN_MAP(TC_STORE)
#undef TC_STORE
    default:
        ((uint16_t *)data)[i] = tc_encode16(x.f, dtype == TN_F16 ? 10 : 7);
    }
}

/* What tc_load gives after tc_store. */
static inline tc_number tc_round(tn_dtype dtype, tc_number x) {
    uint64_t room;
    tc_store(dtype, &room, 0, x);
    return tc_load(dtype, &room, 0);
}

/* ---- random numbers ---------------------------------------------------------------------- */

/* A stream of random numbers that follows from its seed (splitmix64, S. Vigna). */
typedef struct tc_random {
    uint64_t state;
} tc_random;

static inline uint64_t tc_next(tc_random *r) {
    uint64_t z = r->state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

/* [0, n), n > 0; the bias of a modulus is no matter here. */
static inline uint64_t tc_below(tc_random *r, uint64_t n) {
    return tc_next(r) % n;
}

/* Both included. */
static inline int64_t tc_integer(tc_random *r, int64_t low, int64_t high) {
    uint64_t n = (uint64_t)high - (uint64_t)low + 1;
    return (int64_t)((uint64_t)low + (n ? tc_below(r, n) : tc_next(r)));
}

static inline tc_real tc_uniform(tc_random *r, tc_real low, tc_real high) {
    return low + (high - low) * (tc_real)(int64_t)(tc_next(r) >> 11) * 0x1p-53L;
}

#endif
