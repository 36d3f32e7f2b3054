/* See inputs.h. Every number is one that its dtype holds exactly. */
#include "tests/values/inputs.h"

#include "core/tensor/tensor.h"

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

static void store_whole(void *data, tn_dtype dtype, int64_t i, int64_t x) {
    switch (tn_dtype_size(dtype)) {
    case 1:
        ((uint8_t *)data)[i] = (uint8_t)x;
        break;
    case 2:
        ((uint16_t *)data)[i] = (uint16_t)x;
        break;
    case 4:
        ((uint32_t *)data)[i] = (uint32_t)x;
        break;
    default:
        ((int64_t *)data)[i] = x;
    }
}

void input_store(void *data, tn_dtype dtype, int64_t i, double x) {
    switch (dtype) {
    case TN_F64:
        ((double *)data)[i] = x;
        break;
    case TN_F32:
        ((float *)data)[i] = (float)x;
        break;
    case TN_F16:
        ((uint16_t *)data)[i] = tni_f32_to_f16((float)x);
        break;
    default:
        ((uint16_t *)data)[i] = tni_f32_to_bf16((float)x);
    }
}

double element_real(const void *data, tn_dtype dtype, int64_t i) {
    tn_scalar s = tni_element(data, dtype, i);
    return s.tag == TN_CELL_F64 ? s.v.f64 : s.tag == TN_CELL_BOOL ? s.v.boolean : (double)s.v.i64;
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
    } else if (strcmp(in->kind, "apart") == 0) {
        int64_t place = place_in_order(in, i, n);
        if (dtype == TN_BOOL)
            store_whole(data, dtype, at, place & 1);
        else if (is_float(dtype))
            input_store(data, dtype, at, (double)(place - n / 2) * 0.25 + 0.125);
        else
            store_whole(data, dtype, at, place - (dtype == TN_U8 ? 0 : n / 2));
    } else if (dtype == TN_BOOL) {
        store_whole(data, dtype, at,
                    is_listed || is_special ? i & 1 : h & (strcmp(in->kind, "zero") != 0));
    } else if (is_listed) {
        if (is_float(dtype))
            input_store(data, dtype, at, special(dtype, (uint64_t)(is_tamed ? i % N_TAME : i)));
        else
            store_whole(data, dtype, at, whole_special(dtype, (uint64_t)i));
    } else if (is_float(dtype)) {
        input_store(data, dtype, at, real(in->kind, dtype, h));
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
