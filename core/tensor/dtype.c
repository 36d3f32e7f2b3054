/* Element types: names, sizes, what two of them promote to. */
#include "core/tensor/tensor.h"

static const struct {
    const char *name;
    char category;
} dtypes[TN_DTYPE_END] = {
#define X(NAME, value, name, bytes, category) [value] = {name, category},
    TN_DTYPE_MAP(X) TN_STORAGE_DTYPE_MAP(X)
#undef X
};

const char *tn_dtype_name(tn_dtype dtype) {
    return tni_is_dtype(dtype) ? dtypes[dtype].name : "?";
}

int64_t tn_dtype_size(tn_dtype dtype) {
    return tni_is_dtype(dtype) ? tni_dtype_size(dtype) : 0;
}

/* Of two different ones. PyTorch promotes u16, u32 and u64 to floating dtypes alone. */
static tn_dtype promote_storage(tn_dtype a, tn_dtype b) {
    tn_dtype wide = tni_is_complex(a) ? a : b, other = wide == a ? b : a;
    if (!tni_is_complex(wide))
        return tni_is_float(a) ? a : tni_is_float(b) ? b : TN_DTYPE_NONE;
    if (tni_is_complex(other) || other == TN_F64)
        return TN_C128;
    return tni_is_storage_dtype(other) ? TN_DTYPE_NONE : wide;
}

tn_dtype tn_promote(tn_dtype a, tn_dtype b) {
    if (!tni_is_dtype(a) || !tni_is_dtype(b))
        return tni_is_dtype(a) ? a : tni_is_dtype(b) ? b : TN_DTYPE_NONE;
    if (a == b)
        return a;
    if (tni_is_storage_dtype(a) || tni_is_storage_dtype(b))
        return promote_storage(a, b);
    if (b == TN_BOOL)
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
