/* The one table of the format's dtypes, in the order of safetensors 0.8, by which Python's library
 * lays out a file: larger elements last here, first there. */
#include "nn/safetensors/dtype.h"

#include <stddef.h>
#include <string.h>

static const tnn_dtype dtypes[] = {
    {"BOOL", TN_BOOL, 8},
    {"F4", TN_DTYPE_NONE, 4},
    {"F6_E2M3", TN_DTYPE_NONE, 6},
    {"F6_E3M2", TN_DTYPE_NONE, 6},
    {"U8", TN_U8, 8},
    {"I8", TN_I8, 8},
    {"F8_E5M2", TN_DTYPE_NONE, 8},
    {"F8_E4M3", TN_DTYPE_NONE, 8},
    {"F8_E8M0", TN_DTYPE_NONE, 8},
    {"F8_E4M3FNUZ", TN_DTYPE_NONE, 8},
    {"F8_E5M2FNUZ", TN_DTYPE_NONE, 8},
    {"I16", TN_I16, 16},
    {"U16", TN_U16, 16},
    {"F16", TN_F16, 16},
    {"BF16", TN_BF16, 16},
    {"I32", TN_I32, 32},
    {"U32", TN_U32, 32},
    {"F32", TN_F32, 32},
    {"C64", TN_C64, 64},
    {"F64", TN_F64, 64},
    {"I64", TN_I64, 64},
    {"U64", TN_U64, 64},
};

enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

const tnn_dtype *tnn_dtype_named(const char *name) {
    for (int i = 0; i < N_DTYPES; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return &dtypes[i];
    return NULL;
}

const tnn_dtype *tnn_dtype_of(tn_dtype dtype) {
    for (int i = 0; i < N_DTYPES && dtype != TN_DTYPE_NONE; i++)
        if (dtypes[i].dtype == dtype)
            return &dtypes[i];
    return NULL;
}
