/* Tensors from nothing: one value, a sequence, and the bits that random numbers are made of. */
#include "plugins/shared/gpu/device/arange.params.h"
#include "plugins/shared/gpu/device/fill.params.h"
#include "plugins/shared/gpu/device/random_bits.params.h"
#include "plugins/shared/gpu/loop.h"

#include <string.h>

/* What is kept under GPU_FAMILY_factory. */
enum { FILL, ARANGE, RANDOM_BITS, RANDOM_BITS_FROM };

static uint64_t key_of(int which, tn_dtype dtype, bool strided, bool is_int32) {
    return GPU_KEY(GPU_FAMILY_factory,
                   (uint64_t)which << 8 | (uint64_t)dtype << 4 | (uint64_t)strided << 1 | is_int32);
}

/* ---- fill -------------------------------------------------------------------------------- */

/* Narrow elements in a row are written eight bytes at a time, where they begin and end so. */
static tn_dtype widen(const tn_tensor_view *out, fill_params *p) {
    uint64_t bytes = gpu_dtype_sizes[out->dtype], bits = (uint64_t)p->bits;
    if (bytes == 8 || (out->offset | (uint64_t)out->numel * bytes) % 8)
        return gpu_moved_as(out->dtype);
    for (uint64_t n = bytes; n < 8; n *= 2)
        bits = (bits & (UINT64_MAX >> (64 - 8 * n))) | bits << 8 * n;
    p->bits = (int64_t)bits;
    p->numel = p->numel * (int64_t)bytes / 8;
    p->offset = (int64_t)(out->offset / 8);
    return TN_I64;
}

static tn_status fill(const tn_call *call) {
    const tn_tensor_view *out = call->outs[0];
    gpu_loop loop;
    fill_params p = {.numel = out->numel,
                     .offset = gpu_offset(out),
                     .bits = (int64_t)gpu_element(out->dtype, &call->args[TN_ARG_fill_value])};
    gpu_loop_init(&loop, &out, 1, GPU_ALL_DIMS);
    bool strided = !gpu_loop_in_a_row(&loop, 1, 0);
    tn_dtype as = strided ? gpu_moved_as(out->dtype) : widen(out, &p);
    bool is_int32 = gpu_is_int32(p.numel);
    gpu_launch launch = {.n_memory = 1,
                         .memory = {out->memory},
                         .parameters = &p,
                         .parameter_bytes = strided ? sizeof p : offsetof(fill_params, loop)};
    if (strided)
        memcpy(&p.loop, &loop, sizeof p.loop);
    if (strided)
        gpu_launch_items(&launch, p.numel, GPU_GROUP);
    else
        gpu_launch_elements(&launch, gpu_device_traits(call->device), p.numel,
                            16 / gpu_dtype_sizes[as]);
    return gpu_run(call, &launch, key_of(FILL, as, strided, is_int32), &gpu_source_fill,
                   "fill -DT=%s -DSTRIDED=%d -DINDEX=%s", gpu_dtype_names[as], strided,
                   is_int32 ? "i32" : "i64");
}

/* ---- arange ------------------------------------------------------------------------------ */

static tn_status arange(const tn_call *call) {
    const tn_tensor_view *out = call->outs[0];
    arange_params p = {.numel = out->numel,
                       .offset = gpu_offset(out),
                       .stride = out->strides[0],
                       .start =
                           call->args[TN_ARG_arange_start].v.i64, /* of floating numbers the bits */
                       .step = call->args[TN_ARG_arange_step].v.i64};
    gpu_launch launch = {
        .n_memory = 1, .memory = {out->memory}, .parameters = &p, .parameter_bytes = sizeof p};
    gpu_launch_items(&launch, p.numel, GPU_GROUP);
    return gpu_run(call, &launch, key_of(ARANGE, out->dtype, true, false), &gpu_source_arange,
                   "arange -DT=%s", gpu_dtype_names[out->dtype]);
}

/* ---- random_bits ------------------------------------------------------------------------- */

/* From the state in a tensor; NULL: of the parameters. */
static tn_status make_words(const tn_call *call, const tn_tensor_view *state, int64_t seed,
                            int64_t first) {
    const tn_tensor_view *out = call->outs[0];
    int64_t words = out->dtype == TN_I64 ? 2 : 1;
    random_bits_params p = {.n_words = words * out->numel,
                            .offset = words * gpu_offset(out),
                            .seed = seed,
                            .first = first};
    int64_t lanes = gpu_device_traits(call->device)->is_cpu ? 64 : 1; /* blocks */
    gpu_launch launch = {.n_memory = state ? 2 : 1,
                         .memory = {out->memory, state ? state->memory : 0},
                         .parameters = &p,
                         .parameter_bytes = sizeof p};
    gpu_launch_items(&launch, gpu_ceil_div(p.n_words, 4 * lanes), lanes > 1 ? 1 : GPU_GROUP);
    return gpu_run(
        call, &launch, key_of(state ? RANDOM_BITS_FROM : RANDOM_BITS, TN_I32, false, false),
        &gpu_source_random_bits, "random_bits%s -DW=%d", state ? "_from" : "", (int)lanes);
}

static tn_status random_bits(const tn_call *call) {
    return make_words(call, NULL, call->args[TN_ARG_random_bits_seed].v.i64,
                      call->args[TN_ARG_random_bits_offset].v.i64);
}

static tn_status random_bits_from(const tn_call *call) {
    const tn_tensor_view *state = call->args[TN_ARG_random_bits_from_state].v.view;
    return make_words(call, state, gpu_offset(state),
                      call->args[TN_ARG_random_bits_from_offset].v.i64);
}

static const tn_kernel records[] = {
    GPU_KERNEL(fill, TN_DTYPES_ALL, GPU_FLAGS_STRIDED, fill),
    GPU_KERNEL(arange, TN_DTYPES_NUMBER, GPU_FLAGS_STRIDED, arange),
    GPU_KERNEL(random_bits, TN_DTYPE_BIT(TN_I32) | TN_DTYPE_BIT(TN_I64), TN_KERNEL_INDEX64,
               random_bits),
    GPU_KERNEL(random_bits_from, TN_DTYPE_BIT(TN_I32) | TN_DTYPE_BIT(TN_I64), TN_KERNEL_INDEX64,
               random_bits_from),
};
GPU_PUBLISH(factory, records);
