/* layer_norm and its gradient: tensors of different ranks become one loop, whose first dimensions
 * are a line. */
#include "plugins/shared/gpu/device/norm.params.h"
#include "plugins/shared/gpu/gemm.h"
#include "plugins/shared/gpu/loop.h"
#include "plugins/shared/gpu/tiling.h"

/* A view with dimensions before its own, along which it does not move. */
typedef struct raised {
    tn_tensor_view view;
    int64_t strides[TN_MAX_RANK];
} raised;

static const tn_tensor_view *raise_to(int32_t rank, const tn_tensor_view *view, raised *out) {
    if (!view)
        return NULL;
    out->view = *view;
    for (int32_t d = 0; d < rank; d++)
        out->strides[d] = d < rank - view->rank ? 0 : view->strides[d - (rank - view->rank)];
    out->view.rank = rank;
    out->view.strides = out->strides;
    return &out->view;
}

/* Adds a loop's dimensions behind those that are there. */
static void append(norm_params *p, const gpu_loop *loop) {
    for (int64_t d = 0; d < loop->rank; d++, p->loop.rank++) {
        p->loop.sizes[p->loop.rank] = loop->sizes[d];
        for (int k = 0; k < NORM_TENSORS; k++)
            p->loop.strides[k][p->loop.rank] = loop->strides[k][d];
    }
}

/* `views` as above, of which weight and bias may be NULL. */
static tn_status launch(const tn_call *call, bool backward, const tn_tensor_view *const *views,
                        int64_t n_dims, double eps) {
    const gpu_traits *traits = gpu_device_traits(call->device);
    const tn_tensor_view *out = views[NORM_OUT], *all[NORM_TENSORS];
    raised weight, bias;
    bool has_weight = views[NORM_WEIGHT], has_bias = !backward && views[NORM_OTHER];
    for (int k = 0; k < NORM_TENSORS; k++)
        all[k] = views[k];
    all[NORM_WEIGHT] = raise_to(out->rank, views[NORM_WEIGHT], &weight);
    if (!backward)
        all[NORM_OTHER] = raise_to(out->rank, views[NORM_OTHER], &bias);

    uint32_t outer_dims = (UINT32_C(1) << (out->rank - n_dims)) - 1;
    uint32_t absent = (views[NORM_WEIGHT] ? 0 : UINT32_C(1) << NORM_WEIGHT) |
                      (views[NORM_OTHER] ? 0 : UINT32_C(1) << NORM_OTHER);
    norm_params p = {.eps = gpu_number_f(traits->has_f64 ? TN_F64 : TN_F32, eps)};
    gpu_loop inner, outer;
    gpu_loop_init(&inner, all, NORM_MEAN, ~outer_dims); /* mean and rstd are of a line */
    for (int k = NORM_MEAN; k < NORM_TENSORS; k++)
        for (int64_t d = 0; d < inner.rank; d++)
            inner.strides[k][d] = 0;
    gpu_loop_init(&outer, all, NORM_TENSORS, outer_dims);
    p.length = gpu_loop_numel(&inner);
    p.inner = inner.rank;
    append(&p, &inner);
    append(&p, &outer);
    for (int k = 0; k < NORM_TENSORS; k++)
        p.offsets[k] = gpu_offset(views[k]);

    bool unit = gpu_loop_in_a_row(&inner, NORM_MEAN, absent),
         is_int32 = out->numel < INT32_MAX - GPU_TILING_ROOM;
    gpu_lines lines = {.n = out->numel / p.length,
                       .width = 1,
                       .length = p.length,
                       .run = p.length,
                       .run_step = 1,
                       .pack = gpu_tiling_pack(out->dtype, unit)};
    gpu_tiling team;
    gpu_tiling_choose(&team, traits, &lines, true);
    int64_t bytes = gpu_dtype_sizes[gpu_computed(out->dtype)],
            steps = gpu_tiling_steps(&team, traits, p.length, backward ? 2 * bytes : bytes);
    p.n_teams = team.n_teams;
    p.per = team.per;
    uint64_t key =
        GPU_KEY(GPU_FAMILY_norm, (uint64_t)out->dtype << 28 | gpu_tiling_key(&team) << 8 |
                                     (uint64_t)backward << 4 | (uint64_t)has_weight << 3 |
                                     (uint64_t)has_bias << 2 | (uint64_t)unit << 1 | is_int32 |
                                     (uint64_t)steps << 32);
    gpu_launch l = {.parameters = &p,
                    .parameter_bytes = sizeof p,
                    .groups = {(uint64_t)team.groups},
                    .local = {gpu_tiling_group(&team)}};
    for (int k = 0; k < NORM_TENSORS; k++)
        if (views[k])
            l.memory[l.n_memory++] = views[k]->memory;
    return gpu_run(call, &l, key, &gpu_source_norm,
                   "layer_norm -DT=%s -DBACKWARD=%d -DWEIGHT=%d -DBIAS=%d -DUNIT=%d "
                   "-DSTEPS=%d -DINDEX=%s -DL=%d -DM=1 -DP=%d -DW=%d",
                   gpu_dtype_names[out->dtype], backward, has_weight, has_bias, unit, (int)steps,
                   is_int32 ? "i32" : "i64", (int)team.l, (int)team.p, (int)team.w);
}

static tn_status forward(const tn_call *call) {
    const tn_tensor_view *const views[NORM_TENSORS] = {
        [NORM_OUT] = call->outs[0],
        [NORM_INPUT] = gpu_arg(call, TN_ARG_layer_norm_input),
        [NORM_WEIGHT] = gpu_arg(call, TN_ARG_layer_norm_weight),
        [NORM_OTHER] = gpu_arg(call, TN_ARG_layer_norm_bias),
        [NORM_MEAN] = call->outs[1],
        [NORM_RSTD] = call->outs[2],
    };
    return launch(call, false, views, call->args[TN_ARG_layer_norm_n_dims].v.i64,
                  call->args[TN_ARG_layer_norm_eps].v.f64);
}

static tn_status backward(const tn_call *call) {
    const tn_tensor_view *const views[NORM_TENSORS] = {
        [NORM_OUT] = call->outs[0],
        [NORM_INPUT] = gpu_arg(call, TN_ARG_layer_norm_backward_input),
        [NORM_WEIGHT] = gpu_arg(call, TN_ARG_layer_norm_backward_weight),
        [NORM_OTHER] = gpu_arg(call, TN_ARG_layer_norm_backward_grad_output),
        [NORM_MEAN] = gpu_arg(call, TN_ARG_layer_norm_backward_mean),
        [NORM_RSTD] = gpu_arg(call, TN_ARG_layer_norm_backward_rstd),
    };
    return launch(call, true, views, call->args[TN_ARG_layer_norm_backward_n_dims].v.i64, 0);
}

static const tn_kernel records[] = {
    GPU_KERNEL(layer_norm, TN_DTYPES_FLOAT, GPU_FLAGS_STRIDED | TN_KERNEL_IN_PLACE, forward,
               .user = NULL),
    GPU_KERNEL(layer_norm_backward, TN_DTYPES_FLOAT, GPU_FLAGS_STRIDED | TN_KERNEL_IN_PLACE,
               backward, .user = NULL),
};
GPU_PUBLISH(norm, records);
