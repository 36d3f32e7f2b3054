/* softmax, log_softmax and their gradients: how their lines are shared out among work items. */
#include "plugins/shared/gpu/device/softmax.params.h"
#include "plugins/shared/gpu/gemm.h"
#include "plugins/shared/gpu/loop.h"
#include "plugins/shared/gpu/tiling.h"

#include <string.h>

/* tn_kernel.user */
typedef struct softmax {
    const char *name;
    uint64_t id;
    int n_in;
} softmax;

static tn_status run(const tn_call *call) {
    const softmax *op = call->user;
    const tn_tensor_view *out = call->outs[0], *views[3] = {out, gpu_arg(call, 0)};
    int n = 1 + op->n_in;
    if (n > 2)
        views[2] = gpu_arg(call, 1);
    int64_t dim = call->args[op->n_in].v.i64;
    uint32_t dims = out->rank ? UINT32_C(1) << dim : 0;
    softmax_params p = {.length = out->rank ? out->sizes[dim] : 1};
    gpu_loop others;
    gpu_loop_init(&others, views, 3, ~dims);
    gpu_loop_sort(&others, 3, 1);
    int64_t n_lines = gpu_loop_numel(&others);
    p.width = gpu_loop_take_innermost(&others, 3, p.steps);
    memcpy(&p.others, &others, sizeof p.others);
    for (int k = 0; k < n; k++) {
        p.offsets[k] = gpu_offset(views[k]);
        p.along[k] = out->rank ? views[k]->strides[dim] : 0;
    }
    bool in_rows = true; /* lines lie in a row */
    for (int k = 0; k < n; k++)
        in_rows = in_rows && p.along[k] == 1;
    gpu_lines lines = {.n = n_lines,
                       .width = p.width,
                       .step = p.steps[1],
                       .length = p.length,
                       .run = p.length,
                       .run_step = p.along[1],
                       .pack = gpu_tiling_pack(out->dtype, in_rows)};
    const gpu_traits *traits = gpu_device_traits(call->device);
    gpu_tiling team;
    gpu_tiling_choose(&team, traits, &lines, gpu_tiling_by_rows(&lines));
    int64_t bytes = gpu_dtype_sizes[gpu_computed(out->dtype)],
            steps = gpu_tiling_steps(&team, traits, p.length, op->n_in * bytes);
    p.n_teams = team.n_teams;
    p.per = team.per;
    memcpy(p.lane_step, team.rows ? p.along : p.steps, sizeof p.lane_step);
    bool unit = true;
    for (int k = 0; k < n; k++)
        unit = unit && p.lane_step[k] == 1;
    bool is_int32 = out->numel < INT32_MAX - GPU_TILING_ROOM;
    uint64_t key = GPU_KEY(GPU_FAMILY_softmax,
                           op->id << 28 | (uint64_t)out->dtype << 24 | gpu_tiling_key(&team) << 4 |
                               (uint64_t)unit << 1 | is_int32 | (uint64_t)steps << 32);
    gpu_launch launch = {.n_memory = (uint32_t)n,
                         .parameters = &p,
                         .parameter_bytes = sizeof p,
                         .groups = {(uint64_t)team.groups},
                         .local = {gpu_tiling_group(&team)}};
    for (int k = 0; k < n; k++)
        launch.memory[k] = views[k]->memory;
    return gpu_run(call, &launch, key, &gpu_source_softmax,
                   "softmax -DOP=OP_%s -DT=%s -DUNIT=%d -DSTEPS=%d -DINDEX=%s " GPU_TILING_OPTIONS,
                   op->name, gpu_dtype_names[out->dtype], unit, (int)steps,
                   is_int32 ? "i32" : "i64", GPU_TILING_ARGUMENTS(&team));
}

#define OPERATOR(name_, id_, n_in_) static const softmax op_##name_ = {#name_, id_, n_in_};
OPERATOR(softmax, 0, 1)
OPERATOR(log_softmax, 1, 1)
OPERATOR(softmax_backward, 2, 2)
OPERATOR(log_softmax_backward, 3, 2)

#define RECORDS(name_) \
    GPU_KERNEL(name_, TN_DTYPES_FLOAT, GPU_FLAGS_STRIDED | TN_KERNEL_IN_PLACE, run, \
               .user = (void *)&op_##name_)

static const tn_kernel records[] = {RECORDS(softmax), RECORDS(log_softmax),
                                    RECORDS(softmax_backward), RECORDS(log_softmax_backward)};
GPU_PUBLISH(softmax, records);
