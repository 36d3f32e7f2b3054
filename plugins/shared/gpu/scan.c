/* cumsum: lines are shared out among teams of work items; a line that is long, where lines are few,
 * is cut into chunks, whose sums are made by a launch of its own. */
#include "plugins/shared/gpu/device/scan.params.h"
#include "plugins/shared/gpu/loop.h"
#include "plugins/shared/gpu/tiling.h"

#include <string.h>

enum {
    MAX_CHUNKS = 64,
    CHUNK = 4096, /* elements, at least */
    LANES = 4,    /* of a work item of a GPU, by rows */
};

typedef struct layout {
    scan_params p;
    gpu_tiling team;
    bool unit, is_int32;
} layout;

static void lay_out(const tn_call *call, layout *l) {
    const gpu_traits *traits = gpu_device_traits(call->device);
    const tn_tensor_view *out = call->outs[0], *in = gpu_arg(call, TN_ARG_cumsum_self);
    const tn_tensor_view *const views[2] = {out, in};
    int64_t dim = call->args[TN_ARG_cumsum_dim].v.i64;
    scan_params *p = &l->p;
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
                       .in_order = true,
                       .pack = gpu_tiling_pack(out->dtype, p->along[0] == 1 && p->along[1] == 1)};
    gpu_tiling *team = &l->team;
    gpu_tiling_choose(team, traits, &lines, gpu_tiling_by_rows(&lines));
    if (team->rows && team->w == 1)
        team->w = LANES;
    p->n_teams = team->n_teams;
    p->per = team->per;
    memcpy(p->lane_step, team->rows ? p->along : p->steps, sizeof p->lane_step);
    l->unit = p->lane_step[0] == 1 && p->lane_step[1] == 1;
    l->is_int32 = out->numel < INT32_MAX - GPU_TILING_ROOM;

    int64_t n = gpu_ceil_div(team->wanted, team->groups);
    if (n > p->length / CHUNK)
        n = p->length / CHUNK;
    n = n < 1 ? 1 : n > MAX_CHUNKS ? MAX_CHUNKS : n;
    int64_t tile = team->rows ? team->l * team->w : 1;
    p->chunk = gpu_ceil_div(gpu_ceil_div(p->length, n), tile) * tile;
    p->n_chunks = gpu_ceil_div(p->length, p->chunk);
}

/* A sum and what it loses, of 8 bytes or less each. */
static tn_status prepare(const tn_call *call, tn_plan *out) {
    layout l;
    lay_out(call, &l);
    out->workspace_bytes = l.p.n_chunks > 1 ? (uint64_t)(l.p.n_chunks * l.p.n_lines) * 16 : 0;
    return TN_OK;
}

static tn_status launch(const tn_call *call, const layout *l, int stage) {
    const tn_tensor_view *out = call->outs[0];
    const gpu_tiling *team = &l->team;
    uint64_t key =
        GPU_KEY(GPU_FAMILY_scan, (uint64_t)out->dtype << 28 | gpu_tiling_key(team) << 8 |
                                     (uint64_t)stage << 2 | (uint64_t)l->unit << 1 | l->is_int32);
    gpu_launch launch = {.n_memory = 3,
                         .memory = {out->memory, stage ? call->workspace : out->memory,
                                    gpu_arg(call, TN_ARG_cumsum_self)->memory},
                         .parameters = &l->p,
                         .parameter_bytes = sizeof l->p,
                         .groups = {(uint64_t)team->groups, (uint64_t)l->p.n_chunks},
                         .local = {gpu_tiling_group(team)}};
    return gpu_run(call, &launch, key, &gpu_source_scan,
                   "scan_%s -DT=%s -DSTAGE=%d -DUNIT=%d -DINDEX=%s " GPU_TILING_OPTIONS,
                   team->rows ? "rows" : "columns", gpu_dtype_names[out->dtype], stage, l->unit,
                   l->is_int32 ? "i32" : "i64", GPU_TILING_ARGUMENTS(team));
}

static tn_status run(const tn_call *call) {
    tn_dtype dtype = call->outs[0]->dtype;
    bool is_wide =
        gpu_dtype_sizes[dtype] == 8 || (dtype < TN_I8 && gpu_device_traits(call->device)->has_f64);
    layout l;
    lay_out(call, &l);
    l.p.sums = (int64_t)(call->workspace_offset / (is_wide ? 8 : 4));
    int stage = l.p.n_chunks == 1 ? 0 : 1, last = 2 * stage;
    tn_status status = TN_OK;
    for (; stage <= last && status == TN_OK; stage++)
        status = launch(call, &l, stage);
    return status;
}

static const tn_kernel records[] = {
    GPU_KERNEL(cumsum, TN_DTYPES_NUMBER, GPU_FLAGS_STRIDED | TN_KERNEL_IN_PLACE, run,
               .prepare = prepare),
};
GPU_PUBLISH(scan, records);
