/* Reading and adding at places named by an index tensor. What has an index for each slice
 * (index_select, index_add) is what has one for each element (gather, scatter_add) with an index
 * of strides of zero. */
#include "plugins/shared/gpu/copy.h"
#include "plugins/shared/gpu/device/index.params.h"
#include "plugins/shared/gpu/loop.h"
#include "plugins/shared/gpu/sort.h"

#include <string.h>

enum { ROW_GROUP = 16 };

/* What is kept under GPU_FAMILY_index. */
enum { GATHER, ADD, ADD_SORTED };

/* What is made of a call step by step; the loop goes into the parameters at the end. */
typedef struct rows {
    index_params p;
    gpu_loop loop;
} rows;

/* A view with strides of its own. */
typedef struct changed {
    tn_tensor_view view;
    int64_t strides[TN_MAX_RANK];
} changed;

static const tn_tensor_view *change(const tn_tensor_view *v, changed *out) {
    out->view = *v;
    out->view.strides = out->strides;
    for (int32_t d = 0; d < v->rank; d++)
        out->strides[d] = v->strides[d];
    return &out->view;
}

/* index of rank 1 as one of v's shape: the same for all elements of a slice. */
static const tn_tensor_view *spread(const tn_tensor_view *index, const tn_tensor_view *v,
                                    int64_t dim, changed *out) {
    change(v, out);
    out->view.memory = index->memory;
    out->view.offset = index->offset;
    out->view.dtype = index->dtype;
    for (int32_t d = 0; d < v->rank; d++)
        out->strides[d] = d == dim && index->rank ? index->strides[0] : 0;
    return &out->view;
}

static int64_t stride_of(const tn_tensor_view *v, int64_t dim) {
    return v->rank ? v->strides[dim] : 0;
}

/* ---- rows and runs ----------------------------------------------------------------------- */

/* What all kernels need: where the three tensors begin, and the loop over `dims` of index. */
static void init(rows *r, const tn_tensor_view *const *views, int64_t dim, uint32_t dims) {
    const tn_tensor_view *indexed = views[2];
    index_params *p = &r->p;
    gpu_loop_init(&r->loop, views, 3, dims);
    p->size = indexed->rank ? indexed->sizes[dim] : 1;
    p->stride = stride_of(indexed, dim);
    for (int k = 0; k < 3; k++)
        p->offsets[k] = gpu_offset(views[k]);
}

/* Does the row of tensors 1 and 2 lie side by side? */
static bool is_unit(const index_params *p) {
    return p->row == 1 || (p->row_strides[1] == 1 && p->row_strides[2] == 1);
}

/* Is the row's index one? */
static bool is_same(const index_params *p) {
    return p->row > 1 && p->row_strides[0] == 0;
}

/* Takes the innermost dimension out of the loop and cuts it into runs. On a CPU device there are a
 * few for each processor; elsewhere they are of `pack` elements where these move together; where
 * elements of a row lie far apart (not `whole_rows`), and otherwise, each is one. */
static void cut(const tn_call *call, rows *r, bool whole_rows, int64_t pack) {
    const gpu_traits *traits = gpu_device_traits(call->device);
    index_params *p = &r->p;
    int64_t numel = gpu_loop_numel(&r->loop);
    p->row = gpu_loop_take_innermost(&r->loop, 3, p->row_strides);
    p->run = 1;
    if (traits->is_cpu && whole_rows) {
        int64_t share = numel / (4 * (int64_t)traits->compute_units);
        p->run = share < 16 ? 16 : share;
        if (p->run > p->row)
            p->run = p->row;
    } else if (!traits->is_cpu && is_same(p) && is_unit(p)) {
        p->run = pack;
    }
    p->runs = gpu_ceil_div(p->row, p->run);
    p->items = numel / p->row * p->runs;
}

static int64_t group_of(const tn_call *call, const index_params *p) {
    const gpu_traits *traits = gpu_device_traits(call->device);
    if (!traits->is_cpu || p->run == 1)
        return GPU_GROUP;
    return p->items >= 8 * ROW_GROUP * (int64_t)traits->compute_units ? ROW_GROUP : 1;
}

typedef struct variant {
    int which;
    tn_dtype dtype, sum, places;
    bool same, unit, shared, is_int32;
} variant;

static bool is_int32(const index_params *p) {
    return p->items < INT32_MAX - GPU_GROUP && p->n <= INT32_MAX;
}

/* Gathers of all dtypes are in one program, and all that adds to a dtype. */
static tn_status run(const tn_call *call, const gpu_launch *launch, const variant *v) {
    static const char *const forms[2][2] = {{"", "_unit"}, {"_same", "_same_unit"}};
    const char *form = v->which == ADD_SORTED ? "_sorted" : forms[v->same][v->unit],
               *index = v->is_int32 ? "i32" : "i64", *dtype = gpu_dtype_names[v->dtype];
    uint64_t key = GPU_KEY(GPU_FAMILY_index, (uint64_t)v->which << 16 | (uint64_t)v->dtype << 8 |
                                                 (uint64_t)(v->places == TN_I64) << 4 |
                                                 (uint64_t)v->same << 3 | (uint64_t)v->unit << 2 |
                                                 (uint64_t)v->shared << 1 | v->is_int32);
    if (v->which == GATHER)
        return gpu_run(call, launch, key, &gpu_source_index, "gather_%s%s -DINDEX=%s", dtype, form,
                       index);
    return gpu_run(call, launch, key, &gpu_source_index,
                   "add%s -DT=%s -DA=%s -DP=%s -DSHARED=%d -DINDEX=%s", form, dtype,
                   gpu_dtype_names[v->sum], gpu_dtype_names[v->places], v->shared, index);
}

static tn_status launch(const tn_call *call, variant *v, rows *r,
                        const tn_tensor_view *const *views) {
    index_params *p = &r->p;
    gpu_launch l = {.n_memory = 3,
                    .memory = {views[0]->memory, views[1]->memory, views[2]->memory},
                    .parameters = p,
                    .parameter_bytes = sizeof *p,
                    .may_fail = true};
    v->unit = is_unit(p);
    v->same = is_same(p);
    v->is_int32 = is_int32(p);
    memcpy(&p->loop, &r->loop, sizeof p->loop);
    gpu_launch_items(&l, p->items, group_of(call, p));
    return run(call, &l, v);
}

/* ---- gather and index_select ------------------------------------------------------------- */

static tn_status fetch(const tn_call *call, const tn_tensor_view *self, int64_t dim,
                       const tn_tensor_view *index) {
    rows r = {.p.n = 1};
    changed still; /* self, which dim does not move */
    const tn_tensor_view *views[3] = {index, call->outs[0], change(self, &still)};
    init(&r, views, dim, GPU_ALL_DIMS);
    if (self->rank)
        still.strides[dim] = 0;
    gpu_loop_init(&r.loop, views, 3, GPU_ALL_DIMS);
    cut(call, &r, true, 16 / gpu_dtype_sizes[self->dtype]);
    tn_dtype moved = gpu_moved_as(self->dtype);
    variant v = {.which = GATHER, .dtype = moved, .sum = moved, .places = TN_I32};
    return launch(call, &v, &r, views);
}

static tn_status gather(const tn_call *call) {
    return fetch(call, gpu_arg(call, TN_ARG_gather_self), call->args[TN_ARG_gather_dim].v.i64,
                 gpu_arg(call, TN_ARG_gather_index));
}

static tn_status index_select(const tn_call *call) {
    int64_t dim = call->args[TN_ARG_index_select_dim].v.i64;
    changed index;
    return fetch(call, gpu_arg(call, TN_ARG_index_select_self), dim,
                 spread(gpu_arg(call, TN_ARG_index_select_index), call->outs[0], dim, &index));
}

/* ---- scatter_add and index_add ----------------------------------------------------------- */

typedef struct adding {
    const tn_tensor_view *self, *index, *source; /* index as the call has it */
    int64_t dim, alpha;
    bool shared; /* all lines have one index */
} adding;

static adding adding_of(const tn_call *call) {
    tn_dtype dtype = call->outs[0]->dtype;
    return (adding){.self = gpu_arg(call, TN_ARG_scatter_add_self),
                    .index = gpu_arg(call, TN_ARG_scatter_add_index),
                    .source = gpu_arg(call, TN_ARG_scatter_add_src),
                    .dim = call->args[TN_ARG_scatter_add_dim].v.i64,
                    .alpha = gpu_number_i(dtype, 1)};
}

static adding index_adding_of(const tn_call *call) {
    tn_dtype dtype = call->outs[0]->dtype;
    return (adding){.self = gpu_arg(call, TN_ARG_index_add_self),
                    .index = gpu_arg(call, TN_ARG_index_add_index),
                    .source = gpu_arg(call, TN_ARG_index_add_source),
                    .dim = call->args[TN_ARG_index_add_dim].v.i64,
                    .alpha = gpu_number(dtype, &call->args[TN_ARG_index_add_alpha]),
                    .shared = true};
}

static bool is_half(tn_dtype dtype) {
    return dtype == TN_F16 || dtype == TN_BF16;
}

/* A GPU with too few lines to keep it busy, one work item for each, takes one for each index. */
static bool by_sorting(const tn_call *call, const adding *a) {
    const gpu_traits *traits = gpu_device_traits(call->device);
    const tn_tensor_view *shape = a->shared ? a->source : a->index;
    int64_t n = shape->rank ? shape->sizes[a->dim] : 1;
    return !traits->is_cpu && n > 32 && shape->numel / n < 2048 * (int64_t)traits->compute_units;
}

/* The f32 stand-in for a half output comes first. */
static uint64_t sum_bytes(const tn_call *call) {
    const tn_tensor_view *out = call->outs[0];
    return is_half(out->dtype) ? ((uint64_t)out->numel * 4 + 7) & ~(uint64_t)7 : 0;
}

static uint64_t adding_bytes(const tn_call *call, const adding *a) {
    return sum_bytes(call) +
           (by_sorting(call, a) ? gpu_sort_bytes(a->index, a->shared ? 0 : a->dim) : 0);
}

static const tn_tensor_view *stand_in(const tn_call *call, changed *out) {
    const tn_tensor_view *v = call->outs[0];
    if (!is_half(v->dtype))
        return v;
    change(v, out);
    out->view.dtype = TN_F32;
    out->view.memory = call->workspace;
    out->view.offset = call->workspace_offset;
    int64_t dense = 1;
    for (int32_t d = v->rank - 1; d >= 0; d--) {
        out->strides[d] = dense;
        dense *= v->sizes[d];
    }
    return &out->view;
}

static tn_status add_sorted(const tn_call *call, const adding *a, variant *v, rows *r,
                            const tn_tensor_view *const *views) {
    index_params *p = &r->p;
    gpu_sorted sorted;
    PLUGIN_TRY(gpu_sort(call, a->index, a->shared ? 0 : a->dim, false, NULL, NULL, sum_bytes(call),
                        &sorted));
    p->items = gpu_loop_numel(&r->loop) * p->n;
    p->keys = (int64_t)(sorted.keys / 8);
    p->places = (int64_t)(sorted.places / gpu_dtype_sizes[sorted.place_dtype]);
    v->which = ADD_SORTED;
    v->places = sorted.place_dtype;
    v->shared = a->shared;
    v->is_int32 = is_int32(p);
    gpu_launch l = {
        .n_memory = 4,
        .memory = {call->workspace, call->workspace, views[1]->memory, views[2]->memory},
        .parameters = p,
        .parameter_bytes = sizeof *p,
        .may_fail = true};
    memcpy(&p->loop, &r->loop, sizeof p->loop);
    gpu_launch_items(&l, p->items, GPU_GROUP);
    return run(call, &l, v);
}

static tn_status add(const tn_call *call, const adding *a) {
    const tn_tensor_view *out = call->outs[0];
    changed for_index, for_sum;
    const tn_tensor_view *sum = stand_in(call, &for_sum);
    const tn_tensor_view *views[3] = {
        a->shared ? spread(a->index, a->source, a->dim, &for_index) : a->index, a->source, sum};
    const tn_tensor_view *shape = views[0];
    rows r = {.p = {.n = shape->rank ? shape->sizes[a->dim] : 1,
                    .strides = {stride_of(views[0], a->dim), stride_of(views[1], a->dim)},
                    .alpha = a->alpha}};
    init(&r, views, a->dim, shape->rank ? GPU_ALL_DIMS & ~(UINT32_C(1) << a->dim) : GPU_ALL_DIMS);
    variant v = {.which = ADD, .dtype = out->dtype, .sum = sum->dtype, .places = TN_I32};
    tn_status status = gpu_copy(call, sum, a->self);
    if (status == TN_OK && by_sorting(call, a)) {
        status = add_sorted(call, a, &v, &r, views);
    } else if (status == TN_OK) {
        bool side_by_side = r.loop.rank && r.loop.strides[1][0] == 1 && r.loop.strides[2][0] == 1;
        cut(call, &r, side_by_side, 1);
        status = launch(call, &v, &r, views);
    }
    return status == TN_OK && sum != out ? gpu_copy(call, out, sum) : status;
}

static tn_status scatter_add(const tn_call *call) {
    adding a = adding_of(call);
    return add(call, &a);
}

static tn_status scatter_add_prepare(const tn_call *call, tn_plan *out) {
    adding a = adding_of(call);
    out->workspace_bytes = adding_bytes(call, &a);
    return TN_OK;
}

static tn_status index_add(const tn_call *call) {
    adding a = index_adding_of(call);
    return add(call, &a);
}

static tn_status index_add_prepare(const tn_call *call, tn_plan *out) {
    adding a = index_adding_of(call);
    out->workspace_bytes = adding_bytes(call, &a);
    return TN_OK;
}

static const tn_kernel records[] = {
    GPU_KERNEL(gather, TN_DTYPES_ALL, GPU_FLAGS_STRIDED, gather),
    GPU_KERNEL(index_select, TN_DTYPES_ALL, GPU_FLAGS_STRIDED, index_select),
    GPU_KERNEL(scatter_add, TN_DTYPES_ALL, GPU_FLAGS_STRIDED, scatter_add,
               .prepare = scatter_add_prepare),
    GPU_KERNEL(index_add, TN_DTYPES_NUMBER, GPU_FLAGS_STRIDED, index_add,
               .prepare = index_add_prepare),
};
GPU_PUBLISH(index, records);
