/* Operators with an index tensor: gather, scatter_add, index_select, index_add. */
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

#include <stdio.h>
#include <string.h>

#define WRONG(...) (snprintf(why, TC_MESSAGE, __VA_ARGS__), false)

static tc_value *arg(tc_invocation *call, const char *name) {
    int32_t a = tc_record_arg(call->record, name);
    return a < 0 ? NULL : &call->args[a];
}

/* Is `small` at most `large` in all dimensions but one? */
static bool fits(const tc_shape *small, const tc_shape *large, int64_t but) {
    bool ok = small->rank == large->rank;
    for (int32_t d = 0; ok && d < small->rank; d++)
        ok = d == but || small->sizes[d] <= large->sizes[d];
    return ok;
}

static bool shapes(tc_invocation *call, char why[TC_MESSAGE]) {
    const tc_shape *self = &arg(call, "self")->tensor.shape,
                   *index = &arg(call, "index")->tensor.shape;
    int64_t dim = arg(call, "dim")->i;
    tc_value *src = arg(call, "src"), *source = arg(call, "source");
    tc_shape *out = &call->outs[0].tensor.shape;
    if (dim < 0 || dim >= self->rank)
        return WRONG("dim: a dimension of self");
    if (!call->record->slices) {
        if (!fits(index, self, dim) || (src && !fits(index, &src->tensor.shape, -1)))
            return WRONG("index is larger than self or src");
        *out = src ? tc_dense(self->rank, self->sizes) : tc_dense(index->rank, index->sizes);
        return true;
    }
    if (index->rank != 1)
        return WRONG("index has one dimension");
    int64_t sizes[TC_MAX_RANK];
    memcpy(sizes, self->sizes, sizeof sizes);
    sizes[dim] = index->sizes[0];
    tc_shape selected = tc_dense(self->rank, sizes);
    if (source && !tc_same_sizes(&source->tensor.shape, &selected))
        return WRONG("source has self's sizes, and index's along dim");
    *out = source ? tc_dense(self->rank, self->sizes) : selected;
    return true;
}

static int64_t terms(const tc_invocation *call) {
    return call->args[tc_record_arg(call->record, "index")].tensor.shape.numel;
}

/* Places within self, both ends among them. */
static bool fill(tc_invocation *call, uint32_t a, tc_random *r) {
    tc_operand *o = &call->args[a].tensor;
    if (strcmp(call->record->args[a].name, "index") != 0)
        return false;
    int64_t n = arg(call, "self")->tensor.shape.sizes[arg(call, "dim")->i];
    for (int64_t i = 0; i < o->shape.numel; i++)
        o->values[i].i = i == 0 ? n - 1 : i == 1 ? 0 : (int64_t)tc_below(r, (uint64_t)n);
    return true;
}

static const struct sized {
    int32_t rank;
    int64_t self[4], index[4], src[4]; /* index of gather and scatter_add; src at least that */
    int dim;
} sized[] = {
    {2, {6, 9}, {4, 7}, {5, 8}, 0},
    {2, {6, 9}, {4, 7}, {4, 7}, 1},
    {3, {3, 4, 5}, {3, 6, 5}, {3, 6, 5}, 1},
    {1, {1}, {1}, {1}, 0},
    {1, {7}, {20}, {25}, 0},
    {2, {1, 5}, {8, 5}, {8, 5}, 0},
    {1, {1000}, {1500}, {1500}, 0},
    {3, {2, 3, 40}, {2, 3, 40}, {2, 3, 40}, 2},
    {2, {50, 33}, {70, 33}, {70, 33}, 0},
    {4, {2, 3, 4, 5}, {2, 2, 6, 5}, {2, 3, 6, 5}, 2},
    {4, {1, 4, 1, 5}, {1, 6, 1, 5}, {1, 6, 1, 5}, 1},
};
enum { N_LAID_OUT = 3 };

static tc_line call_line(const tc_record *record, const tn_dtype *types, const struct sized *s,
                         const char *odd, tc_layout layout, const char *alpha) {
    int64_t source[4];
    memcpy(source, s->self, sizeof source);
    source[s->dim] = s->index[s->dim];
    tc_line l;
    tc_line_start(&l, "kernel", record, types);
    for (uint32_t a = 0; a < record->n_args; a++) {
        const tc_arg *arg = &record->args[a];
        tc_layout lies = !odd || strcmp(odd, arg->name) == 0 ? layout : TC_LAYOUT_DENSE;
        if (strcmp(arg->name, "self") == 0)
            tc_line_tensor(&l, "self", s->rank, s->self, lies);
        else if (strcmp(arg->name, "index") == 0)
            tc_line_tensor(&l, "index", record->slices ? 1 : s->rank,
                           record->slices ? &s->index[s->dim] : s->index, lies);
        else if (strcmp(arg->name, "src") == 0)
            tc_line_tensor(&l, "src", s->rank, s->src, lies);
        else if (strcmp(arg->name, "source") == 0)
            tc_line_tensor(&l, "source", s->rank, source, lies);
        else if (strcmp(arg->name, "dim") == 0)
            tc_line_add(&l, "dim=%d", s->dim);
        else
            tc_line_add(&l, "alpha=%s", alpha);
    }
    return l;
}

static void list_layouts(const tc_record *record, const tn_dtype *types, const struct sized *s,
                         tc_sink *sink) {
    for (int layout = 1; layout < TC_LAYOUT_ZERO_ALL; layout++) {
        tc_line all = call_line(record, types, s, NULL, (tc_layout)layout, "1");
        tc_line_emit(&all, sink);
        for (uint32_t a = 0; a < record->n_args; a++)
            if (record->args[a].kind == TC_ARG_TENSOR) {
                tc_line one =
                    call_line(record, types, s, record->args[a].name, (tc_layout)layout, "1");
                tc_line_emit(&one, sink);
            }
        if (layout >= TC_N_OUT_LAYOUTS)
            continue;
        int64_t sizes[4];
        memcpy(sizes, s->self, sizeof sizes);
        if (!record->adds && !record->slices)
            memcpy(sizes, s->index, sizeof sizes);
        if (!record->adds && record->slices)
            sizes[s->dim] = s->index[s->dim];
        tc_line out = call_line(record, types, s, "none", TC_LAYOUT_DENSE, "1");
        tc_line_tensor(&out, "out", s->rank, sizes, (tc_layout)layout);
        tc_line_emit(&out, sink);
    }
}

/* Rows of a table, as of an embedding: a few, and many. */
static void list_timed(const tc_record *record, const tn_dtype *types, tc_sink *sink) {
    static const struct sized timed[] = {{2, {4096, 64}, {16384, 64}, {16384, 64}, 0},
                                         {2, {64, 16}, {64, 16}, {64, 16}, 0}};
    for (int k = 0; k < (tc_has_large(record, types, TC_PERF) ? TC_LENGTH(timed) : 1); k++) {
        tc_line l = call_line(record, types, &timed[k], NULL, TC_LAYOUT_DENSE, "1");
        tc_line_emit(&l, sink);
    }
}

static void list(const tc_record *record, const tn_dtype *types, tc_set set, tc_sink *sink) {
    if (set == TC_PERF) {
        if (tc_is_timed(record, types))
            list_timed(record, types, sink);
        return;
    }
    static const struct sized large[] = {{2, {900, 100}, {700, 100}, {700, 100}, 0},
                                         {2, {100, 900}, {100, 1000}, {100, 1000}, 1},
                                         {1, {70001}, {90000}, {90000}, 0},
                                         {2, {65541, 2}, {65539, 2}, {65539, 2}, 0},
                                         {2, {65541, 3}, {65541, 2}, {65541, 2}, 1}};
    for (int k = 0; tc_has_large(record, types, set) && k < TC_LENGTH(large); k++) {
        tc_line l = call_line(record, types, &large[k], NULL, TC_LAYOUT_DENSE, "1");
        tc_line_emit(&l, sink);
    }
    for (int k = 0; k < (set == TC_SMOKE ? 2 : TC_LENGTH(sized)); k++) {
        tc_line l = call_line(record, types, &sized[k], NULL, TC_LAYOUT_DENSE, "1");
        if (k % 3 == 0)
            tc_emit_data(&l, record, types, set, 0, sink);
        else
            tc_line_emit(&l, sink);
        if (set == TC_SMOKE)
            continue;
        if (k < N_LAID_OUT || k == TC_LENGTH(sized) - 1)
            list_layouts(record, types, &sized[k], sink);
        if (tc_record_arg(record, "alpha") >= 0) {
            tc_line scaled = call_line(record, types, &sized[k], NULL, TC_LAYOUT_DENSE, "-2");
            tc_line_emit(&scaled, sink);
        }
    }
}

const tc_family tc_family_index = {"index", shapes, terms, fill, list};
