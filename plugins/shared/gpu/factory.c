/* Tensors from nothing; calls of device/fill.cl, arange.cl and random_bits.cl. */
#include "plugins/shared/gpu/loop.h"

#include <string.h>

/* What is kept under GPU_FAMILY_factory. */
enum { FILL, ARANGE, RANDOM_BITS };

static uint64_t key_of(int which, tn_dtype dtype, bool strided, bool is_int32) {
    return GPU_KEY(GPU_FAMILY_factory,
                   (uint64_t)which << 8 | (uint64_t)dtype << 4 | (uint64_t)strided << 1 | is_int32);
}

/* ---- fill -------------------------------------------------------------------------------- */

typedef struct fill_parameters {
    int64_t numel, offset;
    uint64_t bits;
    gpu_loop loop; /* strided calls */
} fill_parameters;

/* Narrow elements in a row are written eight bytes at a time, where they begin and end so. */
static tn_dtype widen(const tn_tensor_view *out, fill_parameters *p) {
    uint64_t bytes = gpu_dtype_bytes(out->dtype);
    if (bytes == 8 || (out->offset | (uint64_t)out->numel * bytes) % 8)
        return gpu_moved_as(out->dtype);
    for (uint64_t n = bytes; n < 8; n *= 2)
        p->bits = (p->bits & (UINT64_MAX >> (64 - 8 * n))) | p->bits << 8 * n;
    p->numel = p->numel * (int64_t)bytes / 8;
    p->offset = (int64_t)(out->offset / 8);
    return TN_I64;
}

static tn_status fill(const tn_call *call) {
    const tn_tensor_view *out = call->outs[0];
    fill_parameters p = {.numel = out->numel,
                         .offset = gpu_offset(out),
                         .bits = gpu_element(out->dtype, &call->args[TN_ARG_fill_value])};
    gpu_loop_init(&p.loop, &out, 1, GPU_ALL_DIMS);
    bool strided = !gpu_loop_in_a_row(&p.loop, 1, 0);
    tn_dtype as = strided ? gpu_moved_as(out->dtype) : widen(out, &p);
    bool is_int32 = p.numel < INT32_MAX - GPU_GROUP;
    gpu_kernel *kernel;
    tn_status status = gpu_kernel_get(
        call->device, key_of(FILL, as, strided, is_int32), &gpu_source_fill, "fill", &kernel,
        "-DT=%s -DSTRIDED=%d -DINDEX=%s", gpu_dtype_name(as), strided, is_int32 ? "i32" : "i64");
    if (status != TN_OK)
        return status;
    gpu_launch launch = {.kernel = kernel,
                         .n_memory = 1,
                         .memory = {out->memory},
                         .parameters = &p,
                         .parameter_bytes =
                             offsetof(fill_parameters, loop) + (strided ? gpu_loop_bytes(1) : 0)};
    return gpu_launch_items(call->stream, &launch, p.numel, GPU_GROUP);
}

/* ---- arange ------------------------------------------------------------------------------ */

static tn_status arange(const tn_call *call) {
    const tn_tensor_view *out = call->outs[0];
    struct {
        int64_t numel, offset, stride, start, step;
    } p = {.numel = out->numel,
           .offset = gpu_offset(out),
           .stride = out->strides[0],
           .start = call->args[TN_ARG_arange_start].v.i64, /* of floating numbers the bits */
           .step = call->args[TN_ARG_arange_step].v.i64};
    gpu_kernel *kernel;
    tn_status status =
        gpu_kernel_get(call->device, key_of(ARANGE, out->dtype, true, false), &gpu_source_arange,
                       "arange", &kernel, "-DT=%s", gpu_dtype_name(out->dtype));
    if (status != TN_OK)
        return status;
    gpu_launch launch = {.kernel = kernel,
                         .n_memory = 1,
                         .memory = {out->memory},
                         .parameters = &p,
                         .parameter_bytes = sizeof p};
    return gpu_launch_items(call->stream, &launch, p.numel, GPU_GROUP);
}

/* ---- random_bits ------------------------------------------------------------------------- */

static tn_status random_bits(const tn_call *call) {
    const tn_tensor_view *out = call->outs[0];
    int64_t words = out->dtype == TN_I64 ? 2 : 1;
    struct {
        int64_t n_words, offset, seed, first;
    } p = {.n_words = words * out->numel,
           .offset = words * gpu_offset(out),
           .seed = call->args[TN_ARG_random_bits_seed].v.i64,
           .first = call->args[TN_ARG_random_bits_offset].v.i64};
    int64_t lanes = gpu_device_traits(call->device)->is_cpu ? 64 : 1; /* blocks */
    gpu_kernel *kernel;
    tn_status status =
        gpu_kernel_get(call->device, key_of(RANDOM_BITS, TN_I32, false, false),
                       &gpu_source_random_bits, "random_bits", &kernel, "-DW=%d", (int)lanes);
    if (status != TN_OK)
        return status;
    gpu_launch launch = {.kernel = kernel,
                         .n_memory = 1,
                         .memory = {out->memory},
                         .parameters = &p,
                         .parameter_bytes = sizeof p};
    return gpu_launch_items(call->stream, &launch, gpu_ceil_div(p.n_words, 4 * lanes),
                            lanes > 1 ? 1 : GPU_GROUP);
}

static const tn_kernel records[] = {
    GPU_KERNEL(fill, TN_DTYPES_ALL, GPU_FLAGS_STRIDED, fill),
    GPU_KERNEL(arange, TN_DTYPES_NUMBER, GPU_FLAGS_STRIDED, arange),
    GPU_KERNEL(random_bits, TN_DTYPE_BIT(TN_I32) | TN_DTYPE_BIT(TN_I64), TN_KERNEL_INDEX64,
               random_bits),
};
GPU_PUBLISH(factory, records);
