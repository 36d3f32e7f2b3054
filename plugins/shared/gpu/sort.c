/* Stable sorting: runs are sorted, and merged two by two, a launch for each pass. */
#include "plugins/shared/gpu/sort.h"
#include "plugins/shared/gpu/device/sort.params.h"
#include "plugins/shared/gpu/loop.h"

#include <string.h>

enum { GROUP = 64 };

/* What a work item merges: on a CPU a stretch, elsewhere few elements for many work items. */
enum { CPU_CHUNK = 2048, GPU_CHUNK = 8 };

typedef struct sorting {
    const tn_call *call;
    const tn_tensor_view *in, *values, *places;
    tn_dtype place_dtype;
    bool descending, is_cpu, is_int32;
    int64_t n_lines;
    sort_params p;
} sorting;

static int64_t length(const tn_tensor_view *in, int64_t dim) {
    return in->rank ? in->sizes[dim] : 1;
}

static tn_dtype place_dtype(const tn_tensor_view *in, int64_t dim) {
    return length(in, dim) <= INT32_MAX ? TN_I32 : TN_I64;
}

static uint64_t key_bytes(const tn_tensor_view *in) {
    return gpu_dtype_sizes[in->dtype] == 8 ? 8 : 4;
}

uint64_t gpu_sort_bytes(const tn_tensor_view *in, int64_t dim) {
    return 2 * (uint64_t)in->numel * (key_bytes(in) + gpu_dtype_sizes[place_dtype(in, dim)]);
}

/* One pass, `merge` or not; `last`: it writes the result. */
static tn_status pass(sorting *s, bool merge, bool last) {
    static const char *const entries[2][2] = {{"runs", "runs_last"}, {"merge", "merge_last"}};
    bool wide = key_bytes(s->in) == 8;
    uint64_t key =
        GPU_KEY(GPU_FAMILY_sort, (uint64_t)s->in->dtype << 8 | (uint64_t)merge << 4 |
                                     (uint64_t)last << 3 | (uint64_t)s->descending << 2 |
                                     (uint64_t)(s->place_dtype == TN_I64) << 1 | s->is_int32);
    tn_memory work = s->call->workspace;
    gpu_launch l = {.n_memory = 5,
                    .memory = {s->values ? s->values->memory : s->in->memory,
                               s->places ? s->places->memory : s->in->memory, s->in->memory,
                               work ? work : s->in->memory, work ? work : s->in->memory},
                    .parameters = &s->p,
                    .parameter_bytes = sizeof s->p};
    int64_t unit = merge ? s->p.chunk : SORT_RUN;
    s->p.per_line = gpu_ceil_div(s->p.n, unit);
    s->p.items = s->p.per_line * s->n_lines;
    gpu_launch_items(&l, s->p.items, unit > SORT_RUN * 8 ? 1 : GROUP);
    return gpu_run(s->call, &l, key, &gpu_source_sort,
                   "%s -DT=%s -DM=%s -DK=%s -DP=%s -DDESCENDING=%d -DINDEX=%s",
                   entries[merge][last], gpu_dtype_names[s->in->dtype],
                   gpu_dtype_names[gpu_moved_as(s->in->dtype)], wide ? "u64" : "u32",
                   gpu_dtype_names[s->place_dtype], s->descending, s->is_int32 ? "i32" : "i64");
}

static tn_status run_passes(sorting *s, gpu_sorted *out) {
    bool stays = !s->values;
    sort_params *p = &s->p;
    tn_status status = pass(s, false, !stays && p->n <= SORT_RUN);
    for (p->run = SORT_RUN; p->run < p->n && status == TN_OK; p->run *= 2) {
        for (int k = 0; k < 2; k++) { /* what was written is read */
            int64_t *at = k ? p->places : p->keys, swap = at[0];
            at[0] = at[1];
            at[1] = swap;
        }
        int64_t most = s->is_cpu ? CPU_CHUNK : GPU_CHUNK;
        p->chunk = most < 2 * p->run ? most : 2 * p->run;
        status = pass(s, true, !stays && 2 * p->run >= p->n);
    }
    if (out)
        *out = (gpu_sorted){.keys = (uint64_t)p->keys[1] * key_bytes(s->in),
                            .places = (uint64_t)p->places[1] * gpu_dtype_sizes[s->place_dtype],
                            .place_dtype = s->place_dtype};
    return status;
}

tn_status gpu_sort(const tn_call *call, const tn_tensor_view *in, int64_t dim, bool descending,
                   const tn_tensor_view *values, const tn_tensor_view *places, uint64_t from,
                   gpu_sorted *out) {
    const tn_tensor_view *views[3] = {in, values, places}; /* the first gives the shape */
    sorting s = {.call = call,
                 .in = in,
                 .values = values,
                 .places = places,
                 .place_dtype = place_dtype(in, dim),
                 .descending = descending,
                 .is_cpu = gpu_device_traits(call->device)->is_cpu,
                 .is_int32 = in->numel < INT32_MAX - GROUP * SORT_RUN,
                 .p.n = length(in, dim)};
    uint64_t start = call->workspace_offset + from, bytes = key_bytes(in);
    gpu_loop loop;
    gpu_loop_init(&loop, views, 3, in->rank ? GPU_ALL_DIMS & ~(UINT32_C(1) << dim) : GPU_ALL_DIMS);
    s.n_lines = gpu_loop_numel(&loop);
    s.p.loop.rank = loop.rank;
    memcpy(s.p.loop.sizes, loop.sizes, sizeof loop.sizes);
    for (int k = 0; k < 3; k++) { /* device code has the input last */
        int to = k ? k - 1 : 2;
        for (int d = 0; d < TN_MAX_RANK; d++)
            s.p.loop.strides[to][d] = loop.strides[k][d];
        s.p.offsets[to] = gpu_offset(views[k]);
        s.p.strides[to] = views[k] && in->rank ? views[k]->strides[dim] : 0;
    }
    uint64_t after = start + 2 * (uint64_t)in->numel * bytes;
    for (int k = 0; k < 2; k++) {
        s.p.keys[k] = (int64_t)(start / bytes) + k * in->numel;
        s.p.places[k] = (int64_t)(after / gpu_dtype_sizes[s.place_dtype]) + k * in->numel;
    }
    return run_passes(&s, out);
}

static tn_status run(const tn_call *call) {
    return gpu_sort(call, gpu_arg(call, TN_ARG_sort_self), call->args[TN_ARG_sort_dim].v.i64,
                    call->args[TN_ARG_sort_descending].v.boolean, call->outs[0], call->outs[1], 0,
                    NULL);
}

static tn_status prepare(const tn_call *call, tn_plan *out) {
    const tn_tensor_view *in = gpu_arg(call, TN_ARG_sort_self);
    int64_t dim = call->args[TN_ARG_sort_dim].v.i64;
    out->workspace_bytes = length(in, dim) > SORT_RUN ? gpu_sort_bytes(in, dim) : 0;
    return TN_OK;
}

static const tn_kernel records[] = {
    GPU_KERNEL(sort, TN_DTYPES_ALL, GPU_FLAGS_STRIDED, run, .prepare = prepare),
};
GPU_PUBLISH(sort, records);
