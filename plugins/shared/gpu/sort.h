/* Stable sorting along one dimension, for who needs an order. */
#ifndef TNI_PLUGINS_SHARED_GPU_SORT_H
#define TNI_PLUGINS_SHARED_GPU_SORT_H

#include "plugins/shared/gpu/gpu.h"

/* Where in the workspace the sorted keys and the places they came from are, in bytes: [lines][n],
 * lines in row-major order. The key of an i64 is itself with its sign bit turned over, in 64 bits.
 */
typedef struct gpu_sorted {
    uint64_t keys, places;
    tn_dtype place_dtype; /* TN_I32 or TN_I64 */
} gpu_sorted;

/* The bytes of workspace that sorting takes. */
uint64_t gpu_sort_bytes(const tn_tensor_view *in, int64_t dim);

/* Sorts `in` along `dim` with the help of the call's workspace from byte `from` on, a multiple
 * of 8. The result goes to `values` and `places`; or where these are NULL it stays in the
 * workspace. */
tn_status gpu_sort(const tn_call *call, const tn_tensor_view *in, int64_t dim, bool descending,
                   const tn_tensor_view *values, const tn_tensor_view *places, uint64_t from,
                   gpu_sorted *out);

#endif
