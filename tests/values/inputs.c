/* See inputs.h. Every number is one that its dtype holds exactly. */
#include "tests/values/inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hashed(uint64_t seed, uint64_t i) {
    uint64_t x = seed * 0x9E3779B97F4A7C15u + i * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static bool is_float(tn_dtype dtype) {
    return (TN_DTYPES_FLOAT & TN_DTYPE_BIT(dtype)) != 0;
}

/* Bits after the point of a significand that `any` and `away` use. */
static int bits_of(tn_dtype dtype) {
    return dtype == TN_F16 ? 10 : dtype == TN_BF16 ? 7 : 22;
}

/* ---- lists of special values ------------------------------------------------------------- */

enum { N_SPECIAL = 24, N_TAME = 11, N_WHOLE_SPECIAL = 13 };

static double special(tn_dtype dtype, uint64_t i) {
    int bits = dtype == TN_F64 ? 53 : dtype == TN_F32 ? 24 : dtype == TN_F16 ? 11 : 8;
    int top = dtype == TN_F64 ? 1023 : dtype == TN_F16 ? 15 : 127;
    int bottom = 1 - top;
    double largest = ldexp(2 - ldexp(1, 1 - bits), top), normal = ldexp(1, bottom),
           least = ldexp(1, bottom - bits + 1);
    double list[N_SPECIAL] = {0,       -0.0,     1,      -1,      0.5,      -0.5,           1.5,
                              2.5,     -2.5,     3,      -7.25,   INFINITY, -INFINITY,      NAN,
                              largest, -largest, normal, -normal, least,    least - normal, 0x1p-10,
                              88.5,    -104,     0x1p-20};
    return list[i % N_SPECIAL];
}

static int64_t whole_special(tn_dtype dtype, uint64_t i) {
    int64_t high = dtype == TN_U8    ? 255
                   : dtype == TN_I8  ? INT8_MAX
                   : dtype == TN_I16 ? INT16_MAX
                   : dtype == TN_I32 ? INT32_MAX
                                     : INT64_MAX;
    int64_t low = dtype == TN_U8 ? 0 : -high - 1;
    int64_t list[N_WHOLE_SPECIAL] = {0,    1,   -1,       2,       -2,  7,   -8,
                                     high, low, high - 1, low + 1, 100, -100};
    return list[i % N_WHOLE_SPECIAL];
}

/* ---- one element ------------------------------------------------------------------------- */

/* To be stored with the dtype's wraparound. */
static int64_t whole(const char *kind, tn_dtype dtype, uint64_t h) {
    bool is_unsigned = dtype == TN_U8;
    if (strcmp(kind, "special") == 0 || strcmp(kind, "tame") == 0)
        return whole_special(dtype, h);
    if (strcmp(kind, "zero") == 0)
        return 0;
    if (strcmp(kind, "wide") == 0)
        return (int64_t)h;
    if (strcmp(kind, "any") == 0 || strcmp(kind, "strewn") == 0)
        return (int64_t)(h % 19) - (is_unsigned ? 0 : 9);
    int64_t positive = 1 + (int64_t)(h % 9);
    bool is_away = strcmp(kind, "away") == 0;
    return is_away && (h >> 40 & 1) && !is_unsigned ? -positive : positive;
}

static double real(const char *kind, tn_dtype dtype, uint64_t h) {
    int bits = bits_of(dtype);
    double sign = h >> 40 & 1 ? -1 : 1;
    double fraction = ldexp((double)(h & (((uint64_t)1 << bits) - 1)), -bits);
    double moderate = ldexp(1 + fraction, -(int)(h >> 41 & 1));
    if (strcmp(kind, "pos") == 0)
        return moderate;
    if (strcmp(kind, "away") == 0)
        return sign * moderate;
    if (strcmp(kind, "above") == 0)
        return 4 * moderate;
    if (strcmp(kind, "unit") == 0)
        return h >> 41 & 1 ? fraction / 2 + ldexp(1, -bits) : 1 - fraction / 2;
    if (strcmp(kind, "wide") == 0) {
        int limit = dtype == TN_F16 ? 6 : 20;
        return sign * ldexp(1 + fraction, (int)((h >> 41) % (uint64_t)(2 * limit + 1)) - limit);
    }
    if (strcmp(kind, "special") == 0)
        return special(dtype, h);
    if (strcmp(kind, "tame") == 0)
        return special(dtype, h % N_TAME);
    if (strcmp(kind, "zero") == 0)
        return 0;
    if (strcmp(kind, "strewn") == 0 && (h >> 48) % 5 == 0)
        return special(dtype, h >> 8);
    double steps = (double)(h & (((uint64_t)1 << (bits + 1)) - 1));
    return ldexp(steps - ldexp(1, bits), 1 - bits);
}

/* ---- elements ---------------------------------------------------------------------------- */

static void store_whole(void *data, tn_dtype dtype, int64_t i, int64_t x) {
    size_t size = (size_t)tn_dtype_size(dtype);
    memcpy((uint8_t *)data + (size_t)i * size, &x, size); /* the low bytes */
}

/* A half, sign, exponent and fraction: 5 bits of exponent for f16, 8 for bf16. */
static uint16_t half_bits(tn_dtype dtype, double x) {
    int exponent_bits = dtype == TN_F16 ? 5 : 8, fraction_bits = 15 - exponent_bits;
    int bias = (1 << (exponent_bits - 1)) - 1, exponent = bias * 2 + 1;
    uint16_t sign = (uint16_t)(signbit(x) ? 0x8000 : 0);
    if (isnan(x))
        return (uint16_t)(exponent << fraction_bits | 1 << (fraction_bits - 1));
    if (isinf(x))
        return (uint16_t)(sign | exponent << fraction_bits);
    exponent = x == 0 || ilogb(x) < 1 - bias ? 1 - bias : ilogb(x);
    int steps = (int)ldexp(fabs(x), fraction_bits - exponent); /* the implied bit among them */
    return (uint16_t)(sign | (((exponent + bias - 1) << fraction_bits) + steps));
}

static double half_real(tn_dtype dtype, uint16_t bits) {
    int exponent_bits = dtype == TN_F16 ? 5 : 8, fraction_bits = 15 - exponent_bits;
    int bias = (1 << (exponent_bits - 1)) - 1, fraction = bits & ((1 << fraction_bits) - 1);
    int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    double x = exponent == bias * 2 + 1 ? (fraction ? NAN : INFINITY)
               : exponent == 0
                   ? ldexp(fraction, 1 - bias - fraction_bits)
                   : ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    return bits & 0x8000 ? -x : x;
}

void store_real(void *data, tn_dtype dtype, int64_t i, double x) {
    if (dtype == TN_F64)
        ((double *)data)[i] = x;
    else if (dtype == TN_F32)
        ((float *)data)[i] = (float)x;
    else
        ((uint16_t *)data)[i] = half_bits(dtype, x);
}

double real_at(const void *data, tn_dtype dtype, int64_t i) {
    switch (dtype) {
    case TN_F64:
    case TN_F32: {
        float f;
        double d;
        const uint8_t *at = (const uint8_t *)data + i * tn_dtype_size(dtype);
        memcpy(&f, at, sizeof f);
        if (dtype == TN_F64)
            memcpy(&d, at, sizeof d);
        return dtype == TN_F64 ? d : f;
    }
    default: {
        uint16_t bits;
        memcpy(&bits, (const uint8_t *)data + i * 2, sizeof bits);
        return half_real(dtype, bits);
    }
    }
}

int64_t whole_at(const void *data, tn_dtype dtype, int64_t i) {
    int64_t x = 0;
    int shift = 64 - 8 * (int)tn_dtype_size(dtype);
    memcpy(&x, (const uint8_t *)data + i * tn_dtype_size(dtype), (size_t)tn_dtype_size(dtype));
    if (dtype == TN_U8 || dtype == TN_BOOL)
        return x;
    return (int64_t)((uint64_t)x << shift) >> shift; /* with its sign */
}

/* Where element i stands among the n by its hash. */
static int64_t place_in_order(const input *in, int64_t i, int64_t n) {
    uint64_t h = hashed(in->seed, (uint64_t)i);
    int64_t place = 0;
    for (int64_t j = 0; j < n; j++) {
        uint64_t other = hashed(in->seed, (uint64_t)j);
        place += other < h || (other == h && j < i);
    }
    return place;
}

/* Element i of n into place `at`. */
static void store(const input *in, void *data, int64_t at, int64_t i, int64_t n) {
    tn_dtype dtype = in->dtype;
    uint64_t h = hashed(in->seed, (uint64_t)i);
    bool is_tamed = strcmp(in->kind, "tamed") == 0;
    bool is_listed = is_tamed || strcmp(in->kind, "listed") == 0;
    bool is_special = strcmp(in->kind, "special") == 0 || strcmp(in->kind, "tame") == 0;
    if (strncmp(in->kind, "idx", 3) == 0) {
        store_whole(data, dtype, at, (int64_t)(h % strtoull(in->kind + 3, NULL, 10)));
    } else if (strcmp(in->kind, "apart") == 0 || strcmp(in->kind, "rising") == 0) {
        bool is_rising = in->kind[0] == 'r'; /* in order, two of each */
        int64_t place = is_rising ? i / 2 * 2 : place_in_order(in, i, n), centred = place - n / 2;
        if (dtype == TN_BOOL)
            store_whole(data, dtype, at, is_rising ? centred >= 0 : place & 1);
        else if (is_float(dtype))
            store_real(data, dtype, at, (double)centred * 0.25 + 0.125);
        else
            store_whole(data, dtype, at, dtype == TN_U8 ? place : centred);
    } else if (dtype == TN_BOOL) {
        store_whole(data, dtype, at,
                    is_listed || is_special ? i & 1 : h & (strcmp(in->kind, "zero") != 0));
    } else if (is_listed) {
        if (is_float(dtype))
            store_real(data, dtype, at, special(dtype, (uint64_t)(is_tamed ? i % N_TAME : i)));
        else
            store_whole(data, dtype, at, whole_special(dtype, (uint64_t)i));
    } else if (is_float(dtype)) {
        store_real(data, dtype, at, real(in->kind, dtype, h));
    } else {
        store_whole(data, dtype, at, whole(in->kind, dtype, h));
    }
}

/* ---- the tensor -------------------------------------------------------------------------- */

tn_tensor *input_place(const input *in, tn_device device) {
    int64_t strides[INPUT_RANK], offset, numel = 1, index[INPUT_RANK] = {0};
    for (int32_t d = 0; d < in->rank; d++)
        numel *= in->sizes[d];
    int64_t extent =
        numel ? tc_layout_strides(in->layout, in->rank, in->sizes, strides, &offset) : 0;
    int64_t distinct =
        in->layout == TC_EXPANDED && in->rank && numel ? numel / in->sizes[0] : numel;
    void *data = calloc((size_t)extent + 1, (size_t)tn_dtype_size(in->dtype));
    if (!data)
        return NULL;
    for (int64_t i = 0; i < numel; i++) {
        int64_t at = offset;
        for (int32_t d = 0; d < in->rank; d++)
            at += index[d] * strides[d];
        if (i < distinct)
            store(in, data, at, i, distinct);
        for (int32_t d = in->rank - 1; d >= 0 && ++index[d] == in->sizes[d]; d--)
            index[d] = 0;
    }
    tn_ints sizes = tn_ints_of(in->sizes, in->rank);
    tn_tensor *t;
    if (in->layout == TC_DENSE || numel == 0) {
        t = tn_from_data(data, sizes, in->dtype, device);
    } else {
        t = tn_from_data(data, TN_SHAPE(extent), in->dtype, device);
        t = tn_as_strided(t, sizes, tn_ints_of(strides, in->rank), offset);
    }
    free(data);
    return t;
}
