/* reduce.c: calls of device/reduce.c. Which work items make which results follows from the call's
 * shapes and strides and from the device's traits. */
#include "loop.h"

#include <string.h>

enum {
    LANES_ROWS = 32,     /* of a work item of a CPU: two to eight vectors, to hide latency */
    LANES_COLUMNS = 256, /* there: enough that each row read is worth its page */
    SHORT = 16,          /* runs too short for lanes */
    TASK = 16384,        /* elements worth a work item of a CPU */
    MAX_CHUNKS = 256,
    MERGERS = 64,        /* work items that put chunks together, on a GPU */
    INDEX_ROOM = 1 << 20 /* what indices in 32 bits may exceed the number of elements by */
};

typedef enum { SUM, PROD, VAR, AMAX, AMIN, ARGMAX, ARGMIN } reduction;

/* tn_kernel.user */
typedef struct reducer {
    const char *name;
    reduction id;
} reducer;

/* As the device code has it. */
typedef struct parameters {
    int64_t offsets[2], states[2], n_outputs, n_reduced, chunk, n_chunks, divisor, n_teams, per;
    int64_t width, steps[2], run, run_step;
    struct {
        int64_t rank, sizes[TN_MAX_RANK], strides[2][TN_MAX_RANK];
    } kept;
    struct {
        int64_t rank, sizes[TN_MAX_RANK], strides[1][TN_MAX_RANK];
    } reduced;
} parameters;

typedef struct layout {
    parameters p;
    bool rows, unit, is_int32;
    int64_t l, m, teams, lanes; /* L, M, P and W of the device code */
    int64_t groups;
} layout;

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* The largest power of two that is not above n, nor above `limit`. */
static int64_t power_below(int64_t n, int64_t limit) {
    int64_t power = 1;
    while (power * 2 <= n && power * 2 <= limit)
        power *= 2;
    return power;
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

/* ---- planning ---- */

static void plan_loops(const tn_call *call, layout *plan) {
    const tn_tensor_view *in = gpu_arg(call, 0), *out = call->outs[0];
    const tn_tensor_view *const views[2] = {in, out};
    const uint32_t dims = in->rank ? reduced_dims(call) : 0;
    parameters *p = &plan->p;
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
    /* Lanes follow memory, where that way is long enough. */
    const bool short_run = p->run < SHORT && p->width > p->run,
               short_width = p->width < SHORT && p->run > p->width;
    plan->rows = !short_run && (short_width || p->run_step <= p->steps[0]);
    plan->unit = (plan->rows ? p->run_step : p->steps[0]) == 1;
    plan->is_int32 = in->numel < INT32_MAX - INDEX_ROOM;
}

/* Chunks of what is reduced, so many as there are work groups missing, and each of `least` elements
 * or more. */
static void cut(parameters *p, int64_t missing, int64_t least) {
    const int64_t n = larger(1, smaller(smaller(missing, MAX_CHUNKS), p->n_reduced / least));
    p->chunk = gpu_ceil_div(p->n_reduced, n);
    p->n_chunks = gpu_ceil_div(p->n_reduced, p->chunk);
}

static void plan_cpu(const gpu_traits *traits, layout *plan) {
    parameters *p = &plan->p;
    const int64_t wanted = 4 * (int64_t)traits->compute_units;
    plan->l = plan->m = plan->teams = 1;
    plan->lanes = plan->rows ? LANES_ROWS : LANES_COLUMNS;
    const int64_t lines = plan->rows ? 1 : smaller(p->width, LANES_COLUMNS);
    p->n_teams = p->n_outputs / p->width * (plan->rows ? p->width : gpu_ceil_div(p->width, lines));
    cut(p, gpu_ceil_div(wanted, p->n_teams), gpu_ceil_div(TASK, lines));
    p->per = p->n_chunks > 1 ? 1
                             : larger(gpu_ceil_div(TASK, lines * p->n_reduced),
                                      gpu_ceil_div(p->n_teams, 4 * wanted));
    plan->groups = gpu_ceil_div(p->n_teams, p->per);
}

static void plan_gpu(const gpu_traits *traits, layout *plan) {
    parameters *p = &plan->p;
    const int64_t limit = power_below(traits->max_group, 256),
                  wanted = 8 * (int64_t)traits->compute_units;
    plan->lanes = p->per = 1;
    if (plan->rows) {
        plan->l = power_below(p->run, limit);
        plan->m = power_below(p->n_reduced / p->run, limit / plan->l);
        plan->teams = power_below(p->n_outputs, limit / plan->l / plan->m);
        p->n_teams = p->n_outputs;
    } else {
        plan->m = power_below(p->n_reduced / SHORT, limit / 32);
        plan->l = larger(limit / plan->m / 2 >= p->width ? 32 : 1,
                         power_below(2 * p->width - 1, limit / plan->m));
        plan->teams = 1;
        p->n_teams = p->n_outputs / p->width * gpu_ceil_div(p->width, plan->l);
    }
    plan->groups = gpu_ceil_div(p->n_teams, plan->teams);
    cut(p, gpu_ceil_div(wanted, plan->groups), (plan->rows ? plan->l : 1) * plan->m * SHORT);
}

static void make_plan(const tn_call *call, layout *plan) {
    const gpu_traits *traits = gpu_device_traits(call->device);
    plan_loops(call, plan);
    if (traits->is_cpu)
        plan_cpu(traits, plan);
    else
        plan_gpu(traits, plan);
}

/* ---- states ---- */

/* Bytes of a number of the device code's A. */
static uint32_t state_bytes(const gpu_traits *traits, reduction id, tn_dtype dtype) {
    const bool is_wide = id <= VAR && dtype < TN_I8 && traits->has_f64;
    return is_wide || gpu_dtype_bytes(dtype) == 8 ? 8 : 4;
}

/* Numbers of type A first, then indices. */
static uint64_t states_bytes(const layout *plan, reduction id) {
    const uint64_t numbers = id == VAR ? 3 : id == SUM || id >= ARGMAX ? 2 : 1;
    return (uint64_t)(plan->p.n_chunks * plan->p.n_outputs) * numbers * 8;
}

static tn_status workspace(const tn_call *call, uint64_t *out_bytes) {
    const reducer *op = call->user;
    layout plan;
    make_plan(call, &plan);
    *out_bytes = plan.p.n_chunks > 1 ? states_bytes(&plan, op->id) : 0;
    return TN_OK;
}

/* ---- running ---- */

static int log2_of(int64_t power) {
    int n = 0;
    while (power >> n > 1)
        n++;
    return n;
}

/* `merges`: the kernel that puts chunks together. */
static tn_status find(const tn_call *call, const layout *plan, bool merges, gpu_kernel **out) {
    const reducer *op = call->user;
    const tn_dtype in = gpu_arg(call, 0)->dtype;
    const bool chunks = plan->p.n_chunks > 1;
    const uint64_t bits =
        (uint64_t)op->id << 36 | (uint64_t)in << 32 | (uint64_t)log2_of(plan->l) << 28 |
        (uint64_t)log2_of(plan->m) << 24 | (uint64_t)log2_of(plan->teams) << 20 |
        (uint64_t)log2_of(plan->lanes) << 16 | (uint64_t)merges << 4 | (uint64_t)plan->rows << 3 |
        (uint64_t)plan->unit << 2 | (uint64_t)chunks << 1 | plan->is_int32;
    return gpu_kernel_get(
        call->device, GPU_KEY(GPU_FAMILY_reduce, bits), &gpu_source_reduce,
        merges ? "merge" : "reduce", out,
        "-DOP=OP_%s -DT=%s -DR=%s -DROWS=%d -DUNIT=%d -DCHUNKS=%d -DINDEX=%s -DL=%d -DM=%d -DP=%d "
        "-DW=%d",
        op->name, gpu_dtype_name(in), gpu_dtype_name(call->outs[0]->dtype), plan->rows, plan->unit,
        chunks, plan->is_int32 ? "i32" : "i64", (int)plan->l, (int)plan->m, (int)plan->teams,
        (int)plan->lanes);
}

static tn_status merge(const tn_call *call, const layout *plan) {
    layout merging = *plan;
    gpu_kernel *kernel;
    merging.l = gpu_device_traits(call->device)->is_cpu ? 1 : MERGERS;
    merging.m = merging.teams = merging.lanes = 1;
    merging.rows = merging.unit = true;
    const tn_status status = find(call, &merging, true, &kernel);
    if (status != TN_OK)
        return status;
    const gpu_launch launch = {
        .kernel = kernel,
        .n_memory = 3,
        .memory = {call->outs[0]->memory, call->workspace, call->workspace},
        .parameters = &merging.p,
        .parameter_bytes = sizeof merging.p,
        .groups = {(uint64_t)plan->p.n_outputs},
        .local = {(uint64_t)merging.l},
    };
    return gpu_launch_on(call->stream, &launch);
}

static tn_status run(const tn_call *call) {
    const reducer *op = call->user;
    const gpu_traits *traits = gpu_device_traits(call->device);
    const tn_tensor_view *in = gpu_arg(call, 0), *out = call->outs[0];
    layout plan;
    gpu_kernel *kernel;
    make_plan(call, &plan);
    parameters *p = &plan.p;
    if (op->id == VAR) {
        const double divisor = (double)p->n_reduced - call->args[TN_ARG_var_correction].v.f64;
        p->divisor = gpu_number_f(traits->has_f64 ? TN_F64 : TN_F32, divisor > 0 ? divisor : 0);
    }
    const bool chunks = p->n_chunks > 1;
    const tn_memory states = chunks ? call->workspace : out->memory; /* not used */
    p->states[0] = (int64_t)(call->workspace_offset / state_bytes(traits, op->id, in->dtype));
    p->states[1] = (int64_t)(call->workspace_offset / 8) + p->n_chunks * p->n_outputs;
    const tn_status status = find(call, &plan, false, &kernel);
    if (status != TN_OK)
        return status;
    const gpu_launch launch = {
        .kernel = kernel,
        .n_memory = 4,
        .memory = {out->memory, states, states, in->memory},
        .parameters = p,
        .parameter_bytes = sizeof *p,
        .groups = {(uint64_t)plan.groups, (uint64_t)p->n_chunks},
        .local = {(uint64_t)(plan.l * plan.m * plan.teams)},
    };
    const tn_status launched = gpu_launch_on(call->stream, &launch);
    return launched == TN_OK && chunks ? merge(call, &plan) : launched;
}

/* ---- records ---- */

#define OPERATOR(name_, id_) static const reducer op_##name_ = {#name_, id_};
OPERATOR(sum, SUM)
OPERATOR(prod, PROD)
OPERATOR(var, VAR)
OPERATOR(amax, AMAX)
OPERATOR(amin, AMIN)
OPERATOR(argmax, ARGMAX)
OPERATOR(argmin, ARGMIN)

#define RECORDS(name_, dtypes_) \
    GPU_KERNEL(name_, dtypes_, GPU_FLAGS_STRIDED, run, .workspace = workspace, \
               .user = (void *)&op_##name_)

static const tn_kernel records[] = {
    RECORDS(sum, TN_DTYPES_NUMBER), RECORDS(prod, TN_DTYPES_NUMBER), RECORDS(var, TN_DTYPES_FLOAT),
    RECORDS(amax, TN_DTYPES_ALL),   RECORDS(amin, TN_DTYPES_ALL),    RECORDS(argmax, TN_DTYPES_ALL),
    RECORDS(argmin, TN_DTYPES_ALL),
};
GPU_PUBLISH(reduce, records);
