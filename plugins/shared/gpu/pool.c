/* Pooling over windows of images [N, C, H, W], and its gradients. */
#include "plugins/shared/gpu/device/avg_pool2d.params.h"
#include "plugins/shared/gpu/device/max_pool2d.params.h"
#include "plugins/shared/gpu/device/max_pool2d_backward.params.h"
#include "plugins/shared/gpu/gpu.h"

#include <math.h>

enum { ROW_GROUP = 16 };

/* What is kept under GPU_FAMILY_pool. */
enum { MAX, AVG, AVG_BACKWARD, MAX_SPANS, MAX_BOXES, MAX_GRADIENT, MAX_PLANES };

/* How a call is cut into work items, and what is known of it when the kernel is built. */
typedef struct form {
    const tn_tensor_view *out; /* the dtype is its */
    bool tiles, rows, unit, is_int32;
} form;

/* On a CPU device a work item is a row, which vectorises; else an element. */
static form form_of(const tn_call *call, const tn_tensor_view *const *views, int n) {
    form f = {.out = call->outs[0],
              .rows = gpu_device_traits(call->device)->is_cpu,
              .unit = true,
              .is_int32 = true};
    for (int k = 0; k < n; k++) {
        f.unit = f.unit && (views[k]->strides[3] == 1 || views[k]->sizes[3] == 1);
        f.is_int32 = f.is_int32 && views[k]->numel < INT32_MAX / 4;
    }
    return f;
}

static tn_status run(const tn_call *call, const gpu_launch *launch, int which,
                     const gpu_source *source, const char *entry, const form *f) {
    uint64_t key = GPU_KEY(GPU_FAMILY_pool, (uint64_t)which << 16 | (uint64_t)f->out->dtype << 8 |
                                                (uint64_t)f->tiles << 3 | (uint64_t)f->rows << 2 |
                                                (uint64_t)f->unit << 1 | f->is_int32);
    return gpu_run(call, launch, key, source, "%s -DT=%s -DTILES=%d -DROWS=%d -DUNIT=%d -DINDEX=%s",
                   entry, gpu_dtype_names[f->out->dtype], f->tiles, f->rows, f->unit,
                   f->is_int32 ? "i32" : "i64");
}

/* Few groups of rows would leave processors without work. */
static int64_t group_of(const tn_call *call, const form *f, int64_t items) {
    int64_t enough = 8 * ROW_GROUP * (int64_t)gpu_device_traits(call->device)->compute_units;
    return !f->rows ? GPU_GROUP : items >= enough ? ROW_GROUP : 1;
}

static int64_t items_of(const form *f, const tn_tensor_view *made) {
    return f->rows ? made->numel / made->sizes[3] : made->numel;
}

static void side(int64_t *out, const tn_tensor_view *v) {
    out[0] = v->sizes[2];
    out[1] = v->sizes[3];
}

static void pair(int64_t *out, const tn_cell *cell) {
    out[0] = cell->v.ints[0];
    out[1] = cell->v.ints[1];
}

/* The strides of a view of a row of one element need not be 1: `unit` takes no notice of them. */
static void place(const tn_tensor_view *v, int64_t *offset, int64_t *strides) {
    *offset = gpu_offset(v);
    for (int d = 0; d < 4; d++)
        strides[d] = v->strides[d];
}

/* Are windows 2 x 2, side by side and all inside? */
static bool is_tiled(const int64_t *kernel, const int64_t *stride, const int64_t *padding,
                     const int64_t *large, const int64_t *small) {
    bool tiled = true;
    for (int d = 0; d < 2; d++)
        tiled = tiled && kernel[d] == 2 && stride[d] == 2 && padding[d] == 0 &&
                2 * small[d] <= large[d];
    return tiled;
}

/* ---- max_pool2d -------------------------------------------------------------------------- */

static int64_t lowest(tn_dtype dtype) {
    static const int64_t ints[TN_DTYPE_COUNT] = {
        [TN_I8] = INT8_MIN, [TN_I16] = INT16_MIN, [TN_I32] = INT32_MIN, [TN_I64] = INT64_MIN};
    return dtype < TN_I8 ? gpu_number_f(dtype, -INFINITY) : ints[dtype];
}

static tn_status max_pool2d(const tn_call *call) {
    const tn_tensor_view *views[3] = {call->outs[0], call->outs[1],
                                      gpu_arg(call, TN_ARG_max_pool2d_self)};
    form f = form_of(call, views, 3);
    max_pool2d_params p = {
        .items = items_of(&f, f.out), .channels = f.out->sizes[1], .lowest = lowest(f.out->dtype)};
    side(p.large, views[2]);
    side(p.small, views[0]);
    pair(p.window, &call->args[TN_ARG_max_pool2d_kernel_size]);
    pair(p.stride, &call->args[TN_ARG_max_pool2d_stride]);
    pair(p.padding, &call->args[TN_ARG_max_pool2d_padding]);
    pair(p.dilation, &call->args[TN_ARG_max_pool2d_dilation]);
    for (int k = 0; k < 3; k++)
        place(views[k], &p.offsets[k], p.strides[k]);
    f.tiles = p.dilation[0] == 1 && p.dilation[1] == 1 &&
              is_tiled(p.window, p.stride, p.padding, p.large, p.small);
    gpu_launch l = {.n_memory = 3,
                    .memory = {views[0]->memory, views[1]->memory, views[2]->memory},
                    .parameters = &p,
                    .parameter_bytes = sizeof p};
    gpu_launch_items(&l, p.items, group_of(call, &f, p.items));
    return run(call, &l, MAX, &gpu_source_max_pool2d, "max_pool2d", &f);
}

/* ---- max_pool2d_backward ----------------------------------------------------------------- */

/* Rows and columns are counted in 32 bits. */
static tn_status backward_supports(const tn_call *call) {
    const tn_tensor_view *out = call->outs[0];
    return out->sizes[2] < INT32_MAX && out->sizes[3] < INT32_MAX ? TN_OK : TN_ERR_UNSUPPORTED;
}

/* Halves are rounded once, after all gradients of an element. */
static bool by_planes(const tn_call *call) {
    const gpu_traits *traits = gpu_device_traits(call->device);
    const tn_tensor_view *out = call->outs[0];
    return traits->is_cpu && (out->dtype == TN_F32 || out->dtype == TN_F64) &&
           out->sizes[0] * out->sizes[1] >= 2 * (int64_t)traits->compute_units;
}

static tn_status backward_prepare(const tn_call *call, tn_plan *out) {
    const tn_tensor_view *grad = gpu_arg(call, TN_ARG_max_pool2d_backward_grad_output);
    int64_t sides =
        grad->sizes[2] + grad->sizes[3] + call->outs[0]->sizes[2] + call->outs[0]->sizes[3];
    out->workspace_bytes =
        by_planes(call) ? 0 : (uint64_t)(8 * grad->sizes[0] * grad->sizes[1] * sides);
    return TN_OK;
}

static tn_status max_pool2d_backward(const tn_call *call) {
    const tn_tensor_view *views[3] = {call->outs[0],
                                      gpu_arg(call, TN_ARG_max_pool2d_backward_indices),
                                      gpu_arg(call, TN_ARG_max_pool2d_backward_grad_output)};
    const gpu_source *source = &gpu_source_max_pool2d_backward;
    form f = form_of(call, views, 3);
    int64_t n_planes = f.out->sizes[0] * f.out->sizes[1];
    max_pool2d_backward_params p = {.channels = f.out->sizes[1]};
    side(p.large, views[0]);
    side(p.small, views[2]);
    for (int k = 0; k < 3; k++)
        place(views[k], &p.offsets[k], p.strides[k]);
    p.offsets[3] = (int64_t)(call->workspace_offset / sizeof(int32_t));
    gpu_launch l = {.parameters = &p, .parameter_bytes = sizeof p};
    if (by_planes(call)) {
        l.n_memory = 3;
        for (int k = 0; k < 3; k++)
            l.memory[k] = views[k]->memory;
        l.may_fail = true;
        p.items = n_planes;
        gpu_launch_items(&l, p.items, 1);
        return run(call, &l, MAX_PLANES, source, "planes", &f);
    }
    const struct {
        const char *name;
        int which;
        bool may_fail;
        uint32_t n_memory;
        tn_memory memory[4];
        int64_t items, group;
    } steps[] = {
        {"spans",
         MAX_SPANS,
         true,
         2,
         {call->workspace, views[1]->memory},
         n_planes * (p.small[0] + p.small[1]),
         f.rows ? ROW_GROUP : 64},
        {"boxes", MAX_BOXES, false, 1, {call->workspace}, n_planes * (p.large[0] + p.large[1]), 64},
        {"gradient",
         MAX_GRADIENT,
         false,
         4,
         {views[0]->memory, views[1]->memory, views[2]->memory, call->workspace},
         items_of(&f, f.out),
         f.rows ? ROW_GROUP : GPU_GROUP},
    };
    for (int i = 0; i < 3; i++) {
        p.items = steps[i].items;
        l.may_fail = steps[i].may_fail;
        l.n_memory = steps[i].n_memory;
        for (uint32_t k = 0; k < l.n_memory; k++)
            l.memory[k] = steps[i].memory[k];
        gpu_launch_items(&l, p.items, steps[i].group);
        PLUGIN_TRY(run(call, &l, steps[i].which, source, steps[i].name, &f));
    }
    return TN_OK;
}

/* ---- avg_pool2d -------------------------------------------------------------------------- */

static tn_status average(const tn_call *call, int which, const tn_cell *attributes,
                         const tn_cell *count_include_pad) {
    bool backward = which == AVG_BACKWARD;
    const tn_tensor_view *views[2] = {call->outs[0], gpu_arg(call, 0)};
    form f = form_of(call, views, 2);
    avg_pool2d_params p = {.items = items_of(&f, f.out),
                           .channels = f.out->sizes[1],
                           .count_include_pad = count_include_pad->v.boolean};
    side(p.large, views[!backward]);
    side(p.small, views[backward]);
    pair(p.window, &attributes[0]);
    pair(p.stride, &attributes[1]);
    pair(p.padding, &attributes[2]);
    for (int k = 0; k < 2; k++)
        place(views[k], &p.offsets[k], p.strides[k]);
    f.tiles = is_tiled(p.window, p.stride, p.padding, p.large, p.small);
    gpu_launch l = {.n_memory = 2,
                    .memory = {views[0]->memory, views[1]->memory},
                    .parameters = &p,
                    .parameter_bytes = sizeof p};
    gpu_launch_items(&l, p.items, group_of(call, &f, p.items));
    return run(call, &l, which, &gpu_source_avg_pool2d,
               backward ? "avg_pool2d_backward" : "avg_pool2d", &f);
}

static tn_status avg_pool2d(const tn_call *call) {
    return average(call, AVG, &call->args[TN_ARG_avg_pool2d_kernel_size],
                   &call->args[TN_ARG_avg_pool2d_count_include_pad]);
}

static tn_status avg_pool2d_backward(const tn_call *call) {
    return average(call, AVG_BACKWARD, &call->args[TN_ARG_avg_pool2d_backward_kernel_size],
                   &call->args[TN_ARG_avg_pool2d_backward_count_include_pad]);
}

static const tn_kernel records[] = {
    GPU_KERNEL(max_pool2d, TN_DTYPES_NUMBER, GPU_FLAGS_STRIDED, max_pool2d),
    GPU_KERNEL(max_pool2d_backward, TN_DTYPES_FLOAT, GPU_FLAGS_STRIDED, max_pool2d_backward,
               .supports = backward_supports, .prepare = backward_prepare),
    GPU_KERNEL(avg_pool2d, TN_DTYPES_FLOAT, GPU_FLAGS_STRIDED, avg_pool2d),
    GPU_KERNEL(avg_pool2d_backward, TN_DTYPES_FLOAT, GPU_FLAGS_STRIDED, avg_pool2d_backward),
};
GPU_PUBLISH(pool, records);
