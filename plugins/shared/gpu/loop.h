/* The elements of several tensors of one shape, walked together; or some dimensions of
 * them. Dimensions are joined where all tensors let them be, so that most loops have one or two.
 * The device walks it as WALK of device/dialect.h. */
#ifndef TNI_PLUGINS_SHARED_GPU_LOOP_H
#define TNI_PLUGINS_SHARED_GPU_LOOP_H

#include "plugins/shared/gpu/device/params.h"
#include "plugins/shared/gpu/gpu.h"

/* Sizes, and the strides of up to GPU_MAX_MEMORY tensors, in elements, innermost first. Device code
 * takes it as it is, as far as there are tensors: gpu_loop_bytes. */
typedef LOOP(GPU_MAX_MEMORY) gpu_loop;
_Static_assert(MAX_RANK == TN_MAX_RANK, "device code has the rank of tenon/plugin.h");

/* Every dimension. */
#define GPU_ALL_DIMS UINT32_MAX

/* A loop over the dimensions `dims` (a mask) of the first view's shape. Views may be NULL, except
 * the first: such a tensor has strides of zero. Those that are there have the shape's rank. */
void gpu_loop_init(gpu_loop *loop, const tn_tensor_view *const *views, int n, uint32_t dims);

/* Puts the dimensions into the order of tensor k's strides, the smallest innermost, and joins what
 * can be joined then. For who does not mind in which order elements come. */
void gpu_loop_sort(gpu_loop *loop, int n, int k);

/* Takes the innermost dimension off the loop: returns its size, 1 where there is none, and writes
 * its n strides. */
int64_t gpu_loop_take_innermost(gpu_loop *loop, int n, int64_t *out_strides);

/* The product of its sizes. */
int64_t gpu_loop_numel(const gpu_loop *loop);

/* Do the elements of the first `n` tensors lie in a row, those in `absent` (a mask) apart? */
bool gpu_loop_in_a_row(const gpu_loop *loop, int n, uint32_t absent);

static inline uint64_t gpu_loop_bytes(int n) {
    return offsetof(gpu_loop, strides) + (uint64_t)n * sizeof(int64_t[TN_MAX_RANK]);
}

#endif
