/* dtype.c: dtypes, and numbers as device code takes them. */
#include "gpu.h"

#include <string.h>

const char *gpu_dtype_name(tn_dtype dtype) {
    static const char *const names[TN_DTYPE_COUNT] = {
#define NAME(N, value, name, bytes, category) [TN_##N] = name,
        TN_DTYPE_MAP(NAME)
#undef NAME
    };
    return names[dtype];
}

uint32_t gpu_dtype_bytes(tn_dtype dtype) {
    static const uint32_t sizes[TN_DTYPE_COUNT] = {
#define BYTES(N, value, name, bytes, category) [TN_##N] = bytes,
        TN_DTYPE_MAP(BYTES)
#undef BYTES
    };
    return sizes[dtype];
}

int64_t gpu_number_f(tn_dtype dtype, double x) {
    const float narrow = (float)x;
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

int64_t gpu_offset(const tn_tensor_view *view) {
    return view ? (int64_t)(view->offset / gpu_dtype_bytes(view->dtype)) : 0;
}
