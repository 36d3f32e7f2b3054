/* tenon/dtype.h: the dtypes that tensors can have beside those of plugins.
 *
 * A storage dtype is kept, moved and converted, and not computed with: convert it with tn_to_dtype
 * first. Plugins never see one: kernels get its elements as integers of their size. Its number is
 * one that plugin.h reserves, so that it stays should kernels learn to compute with it.
 */
#ifndef TENON_DTYPE_H
#define TENON_DTYPE_H

#include <tenon/plugin.h>

/* X(NAME, value, name, bytes, category) as in TN_DTYPE_MAP; c is complex: the real part, then the
 * imaginary one, each of half the bytes. */
#define TN_STORAGE_DTYPE_MAP(X) \
    X(U16, 10, "u16", 2, 'u') \
    X(U32, 11, "u32", 4, 'u') \
    X(U64, 12, "u64", 8, 'u') \
    X(C64, 14, "c64", 8, 'c') \
    X(C128, 15, "c128", 16, 'c')

enum tn_storage_dtype_code {
#define TN_STORAGE_DTYPE_ENUM(NAME, value, name, bytes, category) TN_##NAME = value,
    TN_STORAGE_DTYPE_MAP(TN_STORAGE_DTYPE_ENUM)
#undef TN_STORAGE_DTYPE_ENUM
        TN_DTYPE_END = 16 /* above every dtype; not every number below it is one */
};

#define TN_STORAGE_DTYPE_OR(NAME, value, name, bytes, category) | TN_DTYPE_BIT(value)
#define TN_DTYPES_STORAGE (UINT64_C(0) TN_STORAGE_DTYPE_MAP(TN_STORAGE_DTYPE_OR))

#endif /* TENON_DTYPE_H */
