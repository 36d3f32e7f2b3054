/* What the operators of GPU plugins share, as far as they do not care which of OpenCL and CUDA it is.
 *
 * The device code is in device/, written once (device/dialect.h); a file here chooses a variant of it
 * for a call, packs the parameters (device/NAME.params.h) and launches it (launch.h). What a plugin
 * brings for that is driver.h. docs/how-a-launch-travels.md follows one call. */
#ifndef TNI_PLUGINS_SHARED_GPU_GPU_H
#define TNI_PLUGINS_SHARED_GPU_GPU_H

#include "plugins/shared/gpu/launch.h"

#include <stdbool.h>
#include <tenon/kernels.h>
#include <tenon/plugin.h>

/* ---- dtypes ------------------------------------------------------------------------------ */

/* Names, "f32", which are the dialect's too; and bytes of an element. */
extern const char *const gpu_dtype_names[TN_DTYPE_COUNT];
extern const uint8_t gpu_dtype_sizes[TN_DTYPE_COUNT];

/* ---- kernels ----------------------------------------------------------------------------- */

/* The records of one file. */
typedef struct gpu_family {
    const tn_kernel *records;
    uint32_t n_records;
} gpu_family;

/* X(family): a file here, and device/ has one or more for it. */
#define GPU_FAMILIES(X) \
    X(pointwise) \
    X(copy) \
    X(matmul) \
    X(convolution) \
    X(reduce) \
    X(factory) \
    X(pool) \
    X(index) \
    X(sort) \
    X(softmax) \
    X(attention) \
    X(norm) \
    X(scan) \
    X(step) \
    X(loss)

/* The first part of their keys. */
enum {
#define GPU_FAMILY_ENUM(family) GPU_FAMILY_##family,
    GPU_FAMILIES(GPU_FAMILY_ENUM)
#undef GPU_FAMILY_ENUM
};

#define GPU_PUBLISH(family, records_) \
    const gpu_family gpu_family_##family = {records_, sizeof(records_) / sizeof *(records_)}

#define GPU_F64 TN_DTYPE_BIT(TN_F64)

/* A record; what follows are more of its members. */
#define GPU_RECORD(op_, dtypes_, flags_, run_, ...) \
    { \
        .struct_size = sizeof(tn_kernel), .op = #op_, .schema_hash = TN_KERNEL_HASH_##op_, \
        .dtypes = {dtypes_}, .flags = (flags_) | TN_KERNEL_DETERMINISTIC, .run = run_, __VA_ARGS__ \
    }

/* Two of them: not every device has f64, and a record is taken or left as a whole. */
#define GPU_KERNEL(op_, dtypes_, flags_, run_, ...) \
    GPU_RECORD(op_, (dtypes_) & ~GPU_F64, flags_, run_, __VA_ARGS__), \
        GPU_RECORD(op_, (dtypes_)&GPU_F64, flags_, run_, __VA_ARGS__)

#define GPU_FLAGS_STRIDED (TN_KERNEL_STRIDED | TN_KERNEL_BROADCAST | TN_KERNEL_INDEX64)

/* All records of all families, made at the first call. [any-thread] */
const tn_kernel *const *gpu_records(uint64_t *out_n);

/* Has the record to do with f64? */
bool gpu_needs_f64(const tn_kernel *kernel);

/* ---- numbers ----------------------------------------------------------------------------- */

/* A number in the type that `dtype` is computed in, as device code takes it. */
int64_t gpu_number_f(tn_dtype dtype, double x);
int64_t gpu_number_i(tn_dtype dtype, int64_t x);
int64_t gpu_number(tn_dtype dtype, const tn_cell *cell);

/* A number as an element of `dtype`, rounded once, in the low bits. */
uint64_t gpu_element(tn_dtype dtype, const tn_cell *cell);

/* The integer whose bits are moved where those of a dtype of so many bytes are. */
tn_dtype gpu_moved_as(tn_dtype dtype);

/* Where a view's first element lies, in elements; an absent view's at 0. */
int64_t gpu_offset(const tn_tensor_view *view);

static inline int64_t gpu_ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static inline const tn_tensor_view *gpu_arg(const tn_call *call, int at) {
    return call->args[at].tag == TN_CELL_TENSOR ? call->args[at].v.view : NULL;
}

#endif
