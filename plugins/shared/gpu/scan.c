/* Calls of device/scan.cl. */
#include "plugins/shared/gpu/loop.h"
#include "plugins/shared/gpu/tiling.h"

#include <string.h>

enum {
    MAX_CHUNKS = 64,
    CHUNK = 4096, /* elements, at least */
    LANES = 4,    /* of a work item of a GPU, by rows */
};

/* As the device code has it. */
typedef struct parameters {
    int64_t offsets[2], sums, length, chunk, n_chunks, n_lines, along[2], lane_step[2];
    int64_t n_teams, per, width, steps[2];
    struct {
        int64_t rank, sizes[TN_MAX_RANK], strides[2][TN_MAX_RANK];
    } others;
} parameters;

typedef struct layout {
    parameters p;
    gpu_tiling team;
    bool unit, is_int32;
} layout;

static void make_plan(const tn_call *call, layout *plan) {
    const gpu_traits *traits = gpu_device_traits(call->device);
    const tn_tensor_view *out = call->outs[0], *in = gpu_arg(call, TN_ARG_cumsum_self);
    const tn_tensor_view *const views[2] = {out, in};
    int64_t dim = call->args[TN_ARG_cumsum_dim].v.i64;
    parameters *p = &plan->p;
    gpu_loop others;
    gpu_loop_init(&others, views, 2, out->rank ? ~(UINT32_C(1) << dim) : 0);
    gpu_loop_sort(&others, 2, 1);
    p->n_lines = gpu_loop_numel(&others);
    p->width = gpu_loop_take_innermost(&others, 2, p->steps);
    memcpy(&p->others, &others, sizeof p->others);
    p->length = out->rank ? out->sizes[dim] : 1;
    for (int k = 0; k < 2; k++) {
        p->offsets[k] = gpu_offset(views[k]);
        p->along[k] = out->rank ? views[k]->strides[dim] : 0;
    }
    gpu_lines lines = {.n = p->n_lines,
                       .width = p->width,
                       .step = p->steps[1],
                       .length = p->length,
                       .run = p->length,
                       .run_step = p->along[1],
                       .in_order = true};
    gpu_tiling *team = &plan->team;
    gpu_tiling_choose(team, traits, &lines, gpu_tiling_by_rows(&lines));
    if (team->rows && team->w == 1)
        team->w = LANES;
    p->n_teams = team->n_teams;
    p->per = team->per;
    memcpy(p->lane_step, team->rows ? p->along : p->steps, sizeof p->lane_step);
    plan->unit = p->lane_step[0] == 1 && p->lane_step[1] == 1;
    plan->is_int32 = out->numel < INT32_MAX - GPU_TILING_ROOM;

    int64_t n = gpu_ceil_div(team->wanted, team->groups);
    if (n > p->length / CHUNK)
        n = p->length / CHUNK;
    n = n < 1 ? 1 : n > MAX_CHUNKS ? MAX_CHUNKS : n;
    int64_t tile = team->rows ? team->l * team->w : 1;
    p->chunk = gpu_ceil_div(gpu_ceil_div(p->length, n), tile) * tile;
    p->n_chunks = gpu_ceil_div(p->length, p->chunk);
}

/* A sum and what it loses, of 8 bytes or less each. */
static tn_status workspace(const tn_call *call, uint64_t *out_bytes) {
    layout plan;
    make_plan(call, &plan);
    *out_bytes = plan.p.n_chunks > 1 ? (uint64_t)(plan.p.n_chunks * plan.p.n_lines) * 16 : 0;
    return TN_OK;
}

static tn_status launch(const tn_call *call, const layout *plan, int stage) {
    const tn_tensor_view *out = call->outs[0];
    const gpu_tiling *team = &plan->team;
    gpu_kernel *kernel;
    tn_status status = gpu_kernel_get(
        call->device,
        GPU_KEY(GPU_FAMILY_scan, (uint64_t)out->dtype << 28 | gpu_tiling_key(team) << 8 |
                                     (uint64_t)stage << 2 | (uint64_t)plan->unit << 1 |
                                     plan->is_int32),
        &gpu_source_scan, "scan", &kernel,
        "-DT=%s -DSTAGE=%d -DUNIT=%d -DINDEX=%s " GPU_TILING_OPTIONS, gpu_dtype_name(out->dtype),
        stage, plan->unit, plan->is_int32 ? "i32" : "i64", GPU_TILING_ARGUMENTS(team));
    if (status != TN_OK)
        return status;
    gpu_launch l = {.kernel = kernel,
                    .n_memory = 3,
                    .memory = {out->memory, stage ? call->workspace : out->memory,
                               gpu_arg(call, TN_ARG_cumsum_self)->memory},
                    .parameters = &plan->p,
                    .parameter_bytes = sizeof plan->p,
                    .groups = {(uint64_t)team->groups, (uint64_t)plan->p.n_chunks},
                    .local = {gpu_tiling_group(team)}};
    return gpu_launch_on(call->stream, &l);
}

static tn_status run(const tn_call *call) {
    tn_dtype dtype = call->outs[0]->dtype;
    bool is_wide =
        gpu_dtype_bytes(dtype) == 8 || (dtype < TN_I8 && gpu_device_traits(call->device)->has_f64);
    layout plan;
    make_plan(call, &plan);
    plan.p.sums = (int64_t)(call->workspace_offset / (is_wide ? 8 : 4));
    if (plan.p.n_chunks == 1)
        return launch(call, &plan, 0);
    tn_status status = launch(call, &plan, 1);
    return status == TN_OK ? launch(call, &plan, 2) : status;
}

static const tn_kernel records[] = {
    GPU_KERNEL(cumsum, TN_DTYPES_NUMBER, GPU_FLAGS_STRIDED | TN_KERNEL_IN_PLACE, run,
               .workspace = workspace),
};
GPU_PUBLISH(scan, records);
