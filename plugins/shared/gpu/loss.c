/* The negative log likelihood of target classes, and its gradient. */
#include "plugins/shared/gpu/device/loss.params.h"
#include "plugins/shared/gpu/gpu.h"

/* Work items of the group that makes a loss, where a device takes so many. */
enum { WIDE_GROUP = 512 };

/* Four tensors, in the order of the device code's arguments. */
static gpu_launch launch_of(const tn_tensor_view *const *views, loss_params *p) {
    gpu_launch launch = {
        .n_memory = 4, .parameters = p, .parameter_bytes = sizeof *p, .may_fail = true};
    for (int k = 0; k < 4; k++) {
        launch.memory[k] = views[k]->memory;
        p->offsets[k] = gpu_offset(views[k]);
    }
    return launch;
}

static tn_status nll_loss(const tn_call *call) {
    const gpu_traits *traits = gpu_device_traits(call->device);
    const tn_tensor_view *self = gpu_arg(call, TN_ARG_nll_loss_self);
    const tn_tensor_view *target = gpu_arg(call, TN_ARG_nll_loss_target);
    const tn_tensor_view *views[4] = {self, target, call->outs[0], call->outs[1]};
    loss_params p = {.n = self->sizes[0],
                     .n_classes = self->sizes[1],
                     .mean = call->args[TN_ARG_nll_loss_mean].v.boolean,
                     .ignore_index = call->args[TN_ARG_nll_loss_ignore_index].v.i64,
                     .target = target->strides[0],
                     .self = {self->strides[0], self->strides[1]}};
    int lanes = traits->is_cpu ? 1 : traits->max_group < WIDE_GROUP ? GPU_GROUP : WIDE_GROUP;
    gpu_launch launch = launch_of(views, &p);
    gpu_launch_items(&launch, lanes, lanes);
    return gpu_run(call, &launch, GPU_KEY(GPU_FAMILY_loss, (uint64_t)self->dtype << 8),
                   &gpu_source_loss, "nll_loss -DT=%s -DBACKWARD=0 -DL=%d -DINDEX=i64",
                   gpu_dtype_names[self->dtype], lanes);
}

static tn_status nll_loss_backward(const tn_call *call) {
    const tn_tensor_view *out = call->outs[0];
    const tn_tensor_view *target = gpu_arg(call, TN_ARG_nll_loss_backward_target);
    const tn_tensor_view *views[4] = {gpu_arg(call, TN_ARG_nll_loss_backward_grad_output), target,
                                      gpu_arg(call, TN_ARG_nll_loss_backward_total_weight), out};
    loss_params p = {.n = target->sizes[0],
                     .n_classes = call->args[TN_ARG_nll_loss_backward_n_classes].v.i64,
                     .mean = call->args[TN_ARG_nll_loss_backward_mean].v.boolean,
                     .ignore_index = call->args[TN_ARG_nll_loss_backward_ignore_index].v.i64,
                     .target = target->strides[0]};
    gpu_launch launch = launch_of(views, &p);
    gpu_launch_elements(&launch, gpu_device_traits(call->device), out->numel,
                        16 / gpu_dtype_sizes[out->dtype]);
    bool is_int32 = gpu_is_int32(out->numel);
    return gpu_run(call, &launch,
                   GPU_KEY(GPU_FAMILY_loss, 1 << 16 | (uint64_t)out->dtype << 8 | is_int32),
                   &gpu_source_loss, "nll_loss_backward -DT=%s -DBACKWARD=1 -DL=1 -DINDEX=%s",
                   gpu_dtype_names[out->dtype], is_int32 ? "i32" : "i64");
}

static const tn_kernel records[] = {
    GPU_KERNEL(nll_loss, TN_DTYPES_FLOAT, GPU_FLAGS_STRIDED, nll_loss),
    GPU_KERNEL(nll_loss_backward, TN_DTYPES_FLOAT, TN_KERNEL_INDEX64, nll_loss_backward),
};
GPU_PUBLISH(loss, records);
