/* Element types: names, sizes, what two of them promote to. */
#include "core/tensor/tensor.h"

static const struct {
    const char *name;
    char category;
} dtypes[TN_DTYPE_COUNT] = {
#define X(NAME, value, name, bytes, category) [value] = {name, category},
    TN_DTYPE_MAP(X)
#undef X
};

static bool is_dtype(tn_dtype d) {
    return d >= 0 && d < TN_DTYPE_COUNT;
}

const char *tn_dtype_name(tn_dtype dtype) {
    return is_dtype(dtype) ? dtypes[dtype].name : "?";
}

int64_t tn_dtype_size(tn_dtype dtype) {
    return is_dtype(dtype) ? tni_dtype_size(dtype) : 0;
}

tn_dtype tn_promote(tn_dtype a, tn_dtype b) {
    if (!is_dtype(a) || !is_dtype(b))
        return is_dtype(a) ? a : is_dtype(b) ? b : TN_DTYPE_NONE;
    if (a == b || b == TN_BOOL)
        return a;
    if (a == TN_BOOL)
        return b;
    if (tni_is_float(a) || tni_is_float(b)) {
        if (!tni_is_float(a))
            return b;
        if (!tni_is_float(b))
            return a;
        if (tni_dtype_size(a) == tni_dtype_size(b))
            return TN_F32; /* f16 has the bits and bf16 the range: neither holds the other */
        return tni_dtype_size(a) > tni_dtype_size(b) ? a : b;
    }
    if (tni_dtype_size(a) != tni_dtype_size(b))
        return tni_dtype_size(a) > tni_dtype_size(b) ? a : b;
    return TN_I16; /* u8 and i8 */
}
