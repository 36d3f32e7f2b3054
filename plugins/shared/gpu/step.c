/* Steps of optimizers that find their factors in memory. */
#include "plugins/shared/gpu/device/step.params.h"
#include "plugins/shared/gpu/gpu.h"

/* Queues the step with the first n_in arguments, and the factors behind them. */
static tn_status run(const tn_call *call, const char *name, int n_in, step_params *p) {
    const tn_tensor_view *first = call->outs[0], *factors = gpu_arg(call, n_in);
    int n_out = (int)call->n_outs;
    gpu_launch launch = {
        .n_memory = (uint32_t)(n_out + n_in + 1), .parameters = p, .parameter_bytes = sizeof *p};
    for (int k = 0; k < n_out + n_in; k++) {
        const tn_tensor_view *v = k < n_out ? call->outs[k] : gpu_arg(call, k - n_out);
        launch.memory[k] = v->memory;
        p->offsets[k] = gpu_offset(v);
    }
    launch.memory[n_out + n_in] = factors->memory;
    p->factors_offset = gpu_offset(factors);
    p->numel = first->numel;
    gpu_launch_elements(&launch, gpu_device_traits(call->device), p->numel,
                        16 / gpu_dtype_sizes[first->dtype]);
    bool is_int32 = gpu_is_int32(p->numel);
    uint64_t key = GPU_KEY(GPU_FAMILY_step, (uint64_t)n_in << 16 | (uint64_t)first->dtype << 8 |
                                                (uint64_t)factors->dtype << 1 | is_int32);
    return gpu_run(call, &launch, key, &gpu_source_step, "%s -DT=%s -DF=%s -DINDEX=%s", name,
                   gpu_dtype_names[first->dtype], gpu_dtype_names[factors->dtype],
                   is_int32 ? "i32" : "i64");
}

static void set_numbers(const tn_call *call, step_params *p, const double *numbers, int n) {
    for (int k = 0; k < n; k++)
        p->numbers[k] = gpu_number_f(call->outs[0]->dtype, numbers[k]);
}

static tn_status fused_sgd_from(const tn_call *call) {
    const tn_cell *a = call->args;
    step_params p = {.nesterov = a[TN_ARG_fused_sgd_from_nesterov].v.boolean};
    const double numbers[] = {a[TN_ARG_fused_sgd_from_momentum].v.f64,
                              1 - a[TN_ARG_fused_sgd_from_dampening].v.f64,
                              a[TN_ARG_fused_sgd_from_weight_decay].v.f64,
                              a[TN_ARG_fused_sgd_from_maximize].v.boolean ? -1 : 1};
    set_numbers(call, &p, numbers, 4);
    return run(call, "fused_sgd_from", TN_ARG_fused_sgd_from_lr, &p);
}

static tn_status fused_adamw_from(const tn_call *call) {
    const tn_cell *a = call->args;
    double b1 = a[TN_ARG_fused_adamw_from_beta1].v.f64, b2 = a[TN_ARG_fused_adamw_from_beta2].v.f64,
           sign = a[TN_ARG_fused_adamw_from_maximize].v.boolean ? -1 : 1;
    step_params p = {0};
    const double numbers[] = {b1, sign * (1 - b1), b2, 1 - b2,
                              a[TN_ARG_fused_adamw_from_eps].v.f64};
    set_numbers(call, &p, numbers, 5);
    return run(call, "fused_adamw_from", TN_ARG_fused_adamw_from_factors, &p);
}

/* Factors of f64 for f64, else of f32. */
#define STEP(op) \
    GPU_RECORD(op, TN_DTYPES_FLOAT & ~GPU_F64, TN_KERNEL_INDEX64 | TN_KERNEL_IN_PLACE, op, \
               .dtypes[1] = TN_DTYPE_BIT(TN_F32)), \
        GPU_RECORD(op, GPU_F64, TN_KERNEL_INDEX64 | TN_KERNEL_IN_PLACE, op, .dtypes[1] = GPU_F64)

static const tn_kernel records[] = {STEP(fused_sgd_from), STEP(fused_adamw_from)};
GPU_PUBLISH(step, records);
