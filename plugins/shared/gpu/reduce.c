/* sum, prod, var, amax, amin, argmax, argmin. Which work items make which results follows from the
 * call's shapes and strides and from the device's traits. */
#include "plugins/shared/gpu/device/reduce.params.h"
#include "plugins/shared/gpu/loop.h"
#include "plugins/shared/gpu/tiling.h"

#include <string.h>

enum {
    MAX_CHUNKS = 1024,
    MERGERS = 64, /* work items that put chunks together, on a GPU */
};

typedef enum { SUM, PROD, VAR, AMAX, AMIN, ARGMAX, ARGMIN } reduction;

/* tn_kernel.user */
typedef struct reducer {
    const char *name;
    reduction id;
} reducer;

typedef struct layout {
    reduce_params p;
    gpu_tiling team;
    bool unit, is_int32;
} layout;

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static uint32_t reduced_dims(const tn_call *call) {
    const tn_cell *dim = &call->args[1];
    uint32_t mask = 0;
    if (dim->tag == TN_CELL_I64)
        return UINT32_C(1) << dim->v.i64;
    for (uint32_t i = 0; i < dim->n; i++)
        mask |= UINT32_C(1) << dim->v.ints[i];
    return mask;
}

/* ---- layout ------------------------------------------------------------------------------ */

static void lay_out_loops(const tn_call *call, layout *l) {
    const tn_tensor_view *in = gpu_arg(call, 0), *out = call->outs[0];
    const tn_tensor_view *const views[2] = {in, out};
    uint32_t dims = in->rank ? reduced_dims(call) : 0;
    reduce_params *p = &l->p;
    gpu_loop kept, reduced;
    gpu_loop_init(&kept, views, 2, ~dims);
    gpu_loop_sort(&kept, 2, 0);
    gpu_loop_init(&reduced, views, 1, dims);
    gpu_loop_sort(&reduced, 1, 0);
    p->n_outputs = gpu_loop_numel(&kept);
    p->n_reduced = gpu_loop_numel(&reduced);
    p->width = gpu_loop_take_innermost(&kept, 2, p->steps);
    p->run = gpu_loop_take_innermost(&reduced, 1, &p->run_step);
    p->offsets[0] = gpu_offset(in);
    p->offsets[1] = gpu_offset(out);
    memcpy(&p->kept, &kept, sizeof p->kept);
    memcpy(&p->reduced, &reduced, sizeof p->reduced);
    gpu_lines lines = {.n = p->n_outputs,
                       .width = p->width,
                       .step = p->steps[0],
                       .length = p->n_reduced,
                       .run = p->run,
                       .run_step = p->run_step,
                       .pack = gpu_tiling_pack(in->dtype, p->run_step == 1)};
    bool rows = gpu_tiling_by_rows(&lines);
    gpu_tiling_choose(&l->team, gpu_device_traits(call->device), &lines, rows);
    p->n_teams = l->team.n_teams;
    p->per = l->team.per;
    l->unit = (rows ? p->run_step : p->steps[0]) == 1;
    l->is_int32 = in->numel < INT32_MAX - GPU_TILING_ROOM;
}

/* Chunks of what is reduced, as many as there are work groups missing, and each of some elements
 * for every lane. */
static void cut(const gpu_traits *traits, layout *l) {
    enum { CHUNK = 16384, STEPS = 16 }; /* elements of a work item of a CPU; of a GPU */
    reduce_params *p = &l->p;
    const gpu_tiling *t = &l->team;
    int64_t missing = gpu_ceil_div(t->wanted, t->groups),
            least = !traits->is_cpu ? STEPS * t->m * (t->rows ? t->l * t->w : 1)
                    : t->rows       ? CHUNK
                                    : gpu_ceil_div(CHUNK, smaller(p->width, t->w)),
            n = larger(1, smaller(smaller(missing, MAX_CHUNKS), p->n_reduced / least));
    p->chunk = gpu_ceil_div(p->n_reduced, n);
    p->n_chunks = gpu_ceil_div(p->n_reduced, p->chunk);
}

static void lay_out(const tn_call *call, layout *l) {
    lay_out_loops(call, l);
    cut(gpu_device_traits(call->device), l);
}

/* ---- states ------------------------------------------------------------------------------ */

/* Bytes of a number of the device code's A. */
static uint32_t state_bytes(const gpu_traits *traits, reduction id, tn_dtype dtype) {
    bool is_wide = id <= VAR && dtype < TN_I8 && traits->has_f64;
    return is_wide || gpu_dtype_sizes[dtype] == 8 ? 8 : 4;
}

/* Numbers of type A first, then indices. */
static uint64_t states_bytes(const layout *l, reduction id) {
    uint64_t numbers = id == VAR ? 3 : id == SUM || id >= ARGMAX ? 2 : 1;
    return (uint64_t)(l->p.n_chunks * l->p.n_outputs) * numbers * 8;
}

static tn_status prepare(const tn_call *call, tn_plan *out) {
    const reducer *op = call->user;
    layout l;
    lay_out(call, &l);
    out->workspace_bytes = l.p.n_chunks > 1 ? states_bytes(&l, op->id) : 0;
    return TN_OK;
}

/* ---- running ----------------------------------------------------------------------------- */

/* `merges`: with the kernel that puts chunks together. */
static tn_status launch(const tn_call *call, const layout *l, bool merges, gpu_launch *launch) {
    const reducer *op = call->user;
    tn_dtype in = gpu_arg(call, 0)->dtype;
    bool chunks = l->p.n_chunks > 1;
    uint64_t bits = (uint64_t)op->id << 28 | (uint64_t)in << 24 | gpu_tiling_key(&l->team) << 4 |
                    (uint64_t)merges << 3 | (uint64_t)l->unit << 2 | (uint64_t)chunks << 1 |
                    l->is_int32;
    launch->parameters = &l->p;
    launch->parameter_bytes = sizeof l->p;
    return gpu_run(
        call, launch, GPU_KEY(GPU_FAMILY_reduce, bits), &gpu_source_reduce,
        "%s -DOP=OP_%s -DT=%s -DR=%s -DUNIT=%d -DCHUNKS=%d -DINDEX=%s " GPU_TILING_OPTIONS,
        merges ? "merge" : "reduce", op->name, gpu_dtype_names[in],
        gpu_dtype_names[call->outs[0]->dtype], l->unit, chunks, l->is_int32 ? "i32" : "i64",
        GPU_TILING_ARGUMENTS(&l->team));
}

static tn_status merge(const tn_call *call, const layout *chunked) {
    layout l = *chunked;
    l.team = (gpu_tiling){.rows = true, .l = 1, .m = 1, .p = 1, .w = 1};
    if (!gpu_device_traits(call->device)->is_cpu)
        l.team.l = MERGERS;
    l.unit = true;
    gpu_launch merging = {.n_memory = 3,
                          .memory = {call->outs[0]->memory, call->workspace, call->workspace},
                          .groups = {(uint64_t)l.p.n_outputs},
                          .local = {(uint64_t)l.team.l}};
    return launch(call, &l, true, &merging);
}

static tn_status run(const tn_call *call) {
    const reducer *op = call->user;
    const gpu_traits *traits = gpu_device_traits(call->device);
    const tn_tensor_view *in = gpu_arg(call, 0), *out = call->outs[0];
    layout l;
    lay_out(call, &l);
    reduce_params *p = &l.p;
    if (op->id == VAR) {
        double divisor = (double)p->n_reduced - call->args[TN_ARG_var_correction].v.f64;
        p->divisor = gpu_number_f(traits->has_f64 ? TN_F64 : TN_F32, divisor > 0 ? divisor : 0);
    }
    bool chunks = p->n_chunks > 1;
    tn_memory states = chunks ? call->workspace : out->memory; /* not used */
    p->states[0] = (int64_t)(call->workspace_offset / state_bytes(traits, op->id, in->dtype));
    p->states[1] = (int64_t)(call->workspace_offset / 8) + p->n_chunks * p->n_outputs;
    gpu_launch reducing = {.n_memory = 4,
                           .memory = {out->memory, states, states, in->memory},
                           .groups = {(uint64_t)l.team.groups, (uint64_t)p->n_chunks},
                           .local = {gpu_tiling_group(&l.team)}};
    tn_status status = launch(call, &l, false, &reducing);
    return status == TN_OK && chunks ? merge(call, &l) : status;
}

/* ---- records ----------------------------------------------------------------------------- */

#define OPERATOR(name_, id_) static const reducer op_##name_ = {#name_, id_};
OPERATOR(sum, SUM)
OPERATOR(prod, PROD)
OPERATOR(var, VAR)
OPERATOR(amax, AMAX)
OPERATOR(amin, AMIN)
OPERATOR(argmax, ARGMAX)
OPERATOR(argmin, ARGMIN)

#define RECORDS(name_, dtypes_) \
    GPU_KERNEL(name_, dtypes_, GPU_FLAGS_STRIDED, run, .prepare = prepare, \
               .user = (void *)&op_##name_)

static const tn_kernel records[] = {
    RECORDS(sum, TN_DTYPES_NUMBER), RECORDS(prod, TN_DTYPES_NUMBER), RECORDS(var, TN_DTYPES_FLOAT),
    RECORDS(amax, TN_DTYPES_ALL),   RECORDS(amin, TN_DTYPES_ALL),    RECORDS(argmax, TN_DTYPES_ALL),
    RECORDS(argmin, TN_DTYPES_ALL),
};
GPU_PUBLISH(reduce, records);
