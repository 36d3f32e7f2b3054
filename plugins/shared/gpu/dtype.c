/* Dtypes, and numbers as device code takes them. */
#include "plugins/shared/gpu/gpu.h"

#include <math.h>
#include <string.h>

const char *const gpu_dtype_names[TN_DTYPE_COUNT] = {
#define NAME(N, value, name, bytes, category) [TN_##N] = name,
    TN_DTYPE_MAP(NAME)
#undef NAME
};

const uint8_t gpu_dtype_sizes[TN_DTYPE_COUNT] = {
#define BYTES(N, value, name, bytes, category) [TN_##N] = bytes,
    TN_DTYPE_MAP(BYTES)
#undef BYTES
};

int64_t gpu_number_f(tn_dtype dtype, double x) {
    float narrow = (float)x;
    int64_t bits = 0;
    if (dtype == TN_F64)
        memcpy(&bits, &x, sizeof x);
    else
        memcpy(&bits, &narrow, sizeof narrow);
    return bits;
}

int64_t gpu_number_i(tn_dtype dtype, int64_t x) {
    return dtype < TN_I8 ? gpu_number_f(dtype, (double)x) : x;
}

int64_t gpu_number(tn_dtype dtype, const tn_cell *cell) {
    if (cell->tag != TN_CELL_F64)
        return gpu_number_i(dtype, cell->tag == TN_CELL_BOOL ? cell->v.boolean : cell->v.i64);
    return dtype < TN_I8 ? gpu_number_f(dtype, cell->v.f64) : (int64_t)cell->v.f64;
}

/* The 16 bits of x in a format of IEEE 754 with `digits` bits of fraction, whose least normal
 * number is 2^lowest; rounded to nearest even. */
static uint64_t narrow_bits(double x, int digits, int lowest) {
    uint64_t infinity = (uint64_t)(3 - 2 * lowest) << digits;
    uint64_t bits;
    if (x != x) {
        bits = infinity | UINT64_C(1) << (digits - 1);
    } else if (isinf(x) || ilogb(x) > 1 - lowest) { /* f16: 2^16 and up */
        bits = infinity;
    } else {
        int e = x != 0 && ilogb(x) > lowest ? ilogb(x) : lowest;
        double scaled = ldexp(fabs(x), digits - e);
        uint64_t whole = (uint64_t)scaled;
        double rest = scaled - (double)whole;
        whole += rest > 0.5 || (rest == 0.5 && (whole & 1));
        bits = ((uint64_t)(e - lowest) << digits) + whole;
    }
    return bits | (uint64_t)(signbit(x) != 0) << 15;
}

uint64_t gpu_element(tn_dtype dtype, const tn_cell *cell) {
    double x = cell->tag == TN_CELL_F64    ? cell->v.f64
               : cell->tag == TN_CELL_BOOL ? (double)cell->v.boolean
                                           : (double)cell->v.i64;
    switch (dtype) {
    case TN_F16:
        return narrow_bits(x, 10, -14);
    case TN_BF16:
        return narrow_bits(x, 7, -126);
    case TN_BOOL:
        return cell->tag == TN_CELL_F64 ? x != 0 : cell->v.i64 != 0;
    default:
        return (uint64_t)gpu_number(dtype, cell);
    }
}

tn_dtype gpu_moved_as(tn_dtype dtype) {
    uint32_t bytes = gpu_dtype_sizes[dtype];
    return bytes == 1 ? TN_I8 : bytes == 2 ? TN_I16 : bytes == 4 ? TN_I32 : TN_I64;
}

int64_t gpu_offset(const tn_tensor_view *view) {
    return view ? (int64_t)(view->offset / gpu_dtype_sizes[view->dtype]) : 0;
}
