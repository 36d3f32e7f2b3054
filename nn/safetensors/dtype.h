/* The dtypes of the format, those that Tenon does not have too. */
#ifndef TNI_NN_SAFETENSORS_DTYPE_H
#define TNI_NN_SAFETENSORS_DTYPE_H

#include <stdint.h>
#include <tenon/tensor.h>

typedef struct tnn_dtype {
    const char *name; /* "F32" */
    tn_dtype dtype;   /* TN_DTYPE_NONE: Tenon has none such */
    uint32_t bits;    /* of an element */
} tnn_dtype;

/* The format's dtype of that name; NULL where there is none. A pointer further on in memory stands
 * earlier in a file. */
const tnn_dtype *tnn_dtype_named(const char *name);
/* That of Tenon's; NULL for one that the format does not have. */
const tnn_dtype *tnn_dtype_of(tn_dtype dtype);

#endif
