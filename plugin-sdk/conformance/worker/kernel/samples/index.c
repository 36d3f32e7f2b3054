/* Operators with an index tensor: gather, scatter_add, index_select, index_add. */
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WRONG(...) tc_why(why, TC_MESSAGE, __VA_ARGS__)

/* Is `small` at most `large` in all dimensions but one? */
static bool fits(const tc_shape *small, const tc_shape *large, int64_t but) {
    bool ok = small->rank == large->rank;
    for (int32_t d = 0; ok && d < small->rank; d++)
        ok = d == but || small->sizes[d] <= large->sizes[d];
    return ok;
}

static bool shapes(tc_invocation *call, char why[TC_MESSAGE]) {
    const tc_shape *self = &tc_invocation_arg(call, "self")->tensor.shape,
                   *index = &tc_invocation_arg(call, "index")->tensor.shape;
    int64_t dim = tc_invocation_arg(call, "dim")->i;
    tc_value *src = tc_invocation_arg(call, "src"), *source = tc_invocation_arg(call, "source");
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

/* Of TC_DATA_ORDERED: self is large, and taken away, put back and taken away again by the first terms of each place; a
 * small one is added last. Whoever adds in another order, or terms to each other first, loses that. */
enum { PARTS = 4 };

static tc_number ordered(tn_dtype dtype, int64_t part, tc_random *r) {
    tc_real large = ldexpl(
        1, dtype == TN_F16 ? 15 : 80); /* more digits apart than f64 has; f16 as far as it goes */
    tc_real small = ldexpl((tc_real)tc_integer(r, 1, 4), dtype == TN_F16 ? -12 : 0);
    return (tc_number){part == PARTS - 1 ? small : part % 2 ? large : -large, 0};
}

static void fill_ordered(const tc_invocation *call, tc_operand *o, bool is_self, bool is_index,
                         tc_random *r) {
    int32_t dim = (int32_t)call->args[tc_record_arg(call->record, "dim")].i;
    int64_t after = 1, places = call->args[0].tensor.shape.sizes[dim];
    for (int32_t d = dim + 1; d < o->shape.rank; d++)
        after *= o->shape.sizes[d];
    for (int64_t i = 0; i < o->shape.numel; i++) {
        int64_t along = i / after % o->shape.sizes[o->shape.rank > dim ? dim : 0];
        o->values[i] = is_index ? (tc_number){0, along % places}
                                : ordered(o->dtype, is_self ? 1 : along / places % PARTS, r);
    }
}

/* Places within self, both ends among them. */
static bool fill(tc_invocation *call, uint32_t a, tc_random *r) {
    tc_operand *o = &call->args[a].tensor;
    bool is_index = strcmp(call->record->args[a].name, "index") == 0;
    if (call->data == TC_DATA_ORDERED) {
        fill_ordered(call, o, a == 0, is_index, r);
        return true;
    }
    if (!is_index)
        return false;
    int64_t n =
        tc_invocation_arg(call, "self")->tensor.shape.sizes[tc_invocation_arg(call, "dim")->i];
    for (int64_t i = 0; i < o->shape.numel; i++)
        o->values[i].i = i == 0 ? n - 1 : i == 1 ? 0 : (int64_t)tc_below(r, (uint64_t)n);
    return true;
}

static const struct sized {
    int32_t rank;
    /* index of gather and scatter_add; src at least that */
    int64_t self[TC_MAX_RANK], index[TC_MAX_RANK], src[TC_MAX_RANK];
    int dim;
} sized[] = {
    {2, {6, 9}, {4, 7}, {5, 8}, 0},
    {2, {6, 9}, {4, 7}, {4, 7}, 1},
    {3, {3, 4, 5}, {3, 6, 5}, {3, 6, 5}, 1},
    {1, {1}, {1}, {1}, 0},
    {1, {7}, {20}, {25}, 0},
    {2, {1, 5}, {8, 5}, {8, 5}, 0},
    {1, {1024}, {2048}, {2048}, 0}, /* whole blocks, nothing is left over */
    {3, {2, 3, 40}, {2, 3, 40}, {2, 3, 40}, 2},
    {2, {50, 33}, {70, 33}, {70, 33}, 0},
    {4, {2, 3, 4, 5}, {2, 2, 6, 5}, {2, 3, 6, 5}, 2},
    {4, {1, 4, 1, 5}, {1, 6, 1, 5}, {1, 6, 1, 5}, 1},
};
enum { N_LAID_OUT = 3 };

static tc_line call_line(const tc_sampler *m, const struct sized *s, const char *odd,
                         tc_layout layout, const char *alpha) {
    int64_t source[TC_MAX_RANK];
    memcpy(source, s->self, sizeof source);
    source[s->dim] = s->index[s->dim];
    tc_line l = tc_line_start(m);
    for (uint32_t a = 0; a < m->record->n_args; a++) {
        const tc_arg *arg = &m->record->args[a];
        tc_layout lies = !odd || strcmp(odd, arg->name) == 0 ? layout : TC_LAYOUT_DENSE;
        if (strcmp(arg->name, "self") == 0)
            tc_line_tensor(&l, "self", s->rank, s->self, lies);
        else if (strcmp(arg->name, "index") == 0)
            tc_line_tensor(&l, "index", m->record->slices ? 1 : s->rank,
                           m->record->slices ? &s->index[s->dim] : s->index, lies);
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

/* Rows that are longer than what is taken at a time, of one tensor that lies otherwise than the rest. */
static void list_long_layouts(const tc_sampler *m) {
    static const struct sized ways[] = {{2, {9, 133}, {11, 133}, {11, 133}, 0},
                                        {2, {9, 133}, {9, 135}, {9, 135}, 1}};
    for (int k = 0; k < 2 * TC_LENGTH(ways); k++)
        for (uint32_t a = 0; a < m->record->n_args; a++) {
            tc_layout layout = k % 2 ? TC_LAYOUT_REVERSED : TC_LAYOUT_STEPPED;
            tc_line l = call_line(m, &ways[k / 2], m->record->args[a].name, layout, "1");
            tc_line_add(&l, "data=random seed=1"); /* once is enough */
            if (m->record->args[a].kind == TC_ARG_TENSOR)
                tc_emit(m, l);
        }
}

static void list_layouts(const tc_sampler *m, const struct sized *s) {
    for (int layout = 1; layout < TC_LAYOUT_ZERO_ALL; layout++) {
        tc_emit(m, call_line(m, s, NULL, (tc_layout)layout, "1"));
        for (uint32_t a = 0; a < m->record->n_args; a++)
            if (m->record->args[a].kind == TC_ARG_TENSOR)
                tc_emit(m, call_line(m, s, m->record->args[a].name, (tc_layout)layout, "1"));
        if (layout >= TC_N_OUT_LAYOUTS)
            continue;
        int64_t sizes[TC_MAX_RANK];
        memcpy(sizes, s->self, sizeof sizes);
        if (!m->record->adds && !m->record->slices)
            memcpy(sizes, s->index, sizeof sizes);
        if (!m->record->adds && m->record->slices)
            sizes[s->dim] = s->index[s->dim];
        tc_line out = call_line(m, s, "none", TC_LAYOUT_DENSE, "1");
        tc_line_tensor(&out, "out", s->rank, sizes, (tc_layout)layout);
        tc_emit(m, out);
    }
}

/* Rows of a table, as of an embedding: a few, and many. */
static void list_timed(const tc_sampler *m) {
    static const struct sized timed[] = {{2, {4096, 64}, {16384, 64}, {16384, 64}, 0},
                                         {2, {64, 16}, {64, 16}, {64, 16}, 0}};
    for (int k = 0; k < (tc_has_large(m) ? TC_LENGTH(timed) : 1); k++)
        tc_emit(m, call_line(m, &timed[k], NULL, TC_LAYOUT_DENSE, "1"));
}

/* An index of one element along every set of other dimensions, in which self, and src, have more: it is not
 * repeated. */
static void list_narrow(const tc_sampler *m) {
    for (int dim = 0; dim < 3; dim++)
        for (int narrow = 1; narrow < 8; narrow++) {
            struct sized s = {3, {4, 5, 6}, {4, 5, 6}, {4, 5, 6}, dim};
            for (int d = 0; d < 3; d++)
                s.index[d] = d == dim ? 7 : narrow >> d & 1 ? 1 : s.index[d];
            s.src[dim] = s.index[dim];
            if (!(narrow >> dim & 1))
                tc_emit(m, call_line(m, &s, NULL, TC_LAYOUT_DENSE, "1"));
        }
    static const struct sized column = {2, {5, 5}, {5, 1}, {5, 1}, 0};
    tc_emit(m, call_line(m, &column, NULL, TC_LAYOUT_DENSE, "1"));
}

/* The order in which a kernel declared deterministic adds. */
static void list_ordered(const tc_sampler *m) {
    static const struct sized ways[] = {{1, {7}, {28}, {28}, 0},
                                        {2, {5, 9}, {5, 36}, {5, 36}, 1},
                                        {2, {101, 40}, {404, 40}, {404, 40}, 0}};
    for (int k = 0; m->record->adds && tc_is_float(m->types[0]) && k < TC_LENGTH(ways); k++) {
        tc_line l = call_line(m, &ways[k], NULL, TC_LAYOUT_DENSE, "1");
        tc_line_add(&l, "data=ordered seed=%d", k + 1);
        tc_emit(m, l);
    }
}

/* One place along dim: of each row its own, as who picks a class takes it, or one for all. */
static void list_picks(const tc_sampler *m) {
    static const struct sized picks[] = {{3, {4, 5, 6}, {1, 5, 6}, {1, 5, 6}, 0},
                                         {3, {4, 5, 6}, {4, 1, 6}, {4, 1, 6}, 1},
                                         {3, {4, 5, 6}, {4, 5, 1}, {4, 5, 1}, 2},
                                         {2, {6, 9}, {6, 1}, {6, 3}, 1},
                                         {2, {300, 7}, {300, 1}, {300, 1}, 1},
                                         {2, {7, 300}, {1, 300}, {1, 300}, 0},
                                         {1, {20}, {1}, {1}, 0}};
    for (int k = 0; k < TC_LENGTH(picks); k++)
        tc_emit(m, call_line(m, &picks[k], NULL, TC_LAYOUT_DENSE, "1"));
}

static void list(const tc_sampler *m) {
    static const struct sized large[] = {
        {2, {900, 100}, {700, 100}, {700, 100}, 0}, {2, {100, 900}, {100, 1000}, {100, 1000}, 1},
        {1, {70001}, {90000}, {90000}, 0},          {2, {65541, 2}, {65539, 2}, {65539, 2}, 0},
        {2, {65541, 3}, {65541, 2}, {65541, 2}, 1}, {2, {1, 16}, {1, 70001}, {1, 70001}, 1},
        {2, {16, 1}, {70001, 1}, {70001, 1}, 0}};
    static const struct sized split = {2, {300, 133}, {303, 133}, {303, 133}, 0};
    struct sized ranks = {0, {2, 3, 2, 2, 3, 2, 3, 1, 2, 1, 2, 2}, {0}, {0}, 0};
    for (int k = 0; tc_has_large(m) && k < TC_LENGTH(large); k++)
        tc_emit(m, call_line(m, &large[k], NULL, TC_LAYOUT_DENSE, "1"));
    if (tc_has_large(m)) /* one index for a whole row, as of an embedding */
        tc_emit(m, call_line(m, &large[0], "index",
                             m->record->slices ? TC_LAYOUT_STEPPED : TC_LAYOUT_ZERO_LAST, "1"));
    if (m->set != TC_SMOKE)
        tc_emit(m, call_line(m, &split, NULL, TC_LAYOUT_DENSE, "1"));
    if (m->set != TC_SMOKE)
        list_picks(m);
    if (m->set != TC_SMOKE && !m->record->slices)
        list_narrow(m);
    if (m->set != TC_SMOKE)
        list_ordered(m), list_long_layouts(m);
    /* As many of one place as a narrow counter has numbers. */
    static const int64_t counts[] = {255, 256, 65535, 65536}; /* with self, and without */
    for (int k = 0; m->set != TC_SMOKE && m->record->adds && k < TC_LENGTH(counts); k++) {
        struct sized one = {1, {1}, {counts[k]}, {counts[k]}, 0};
        tc_line l = call_line(m, &one, NULL, TC_LAYOUT_DENSE, "1");
        tc_line_add(&l, "data=ones");
        if (k < 2 || tc_has_large(m) || m->types[0] == TN_BOOL)
            tc_emit(m, l);
    }
    static const struct sized every = {TC_MAX_RANK,
                                       {TC_ALL_DIMENSIONS},
                                       {TC_ALL_DIMENSIONS},
                                       {TC_ALL_DIMENSIONS},
                                       6},
                              beyond = {1, {70001}, {TC_BEYOND}, {TC_BEYOND}, 0},
                              meet[] = {{2, {1, 4}, {1, 1000003}, {1, 1000003}, 1},
                                        {2, {4, 2}, {300007, 2}, {300007, 2}, 0}};
    /* Long enough for several threads to be at it; of ones, where each that is lost is seen. Columns
     * that have one index between them would all be alike. */
    int n_meet = !tc_has_large(m) || !m->record->adds ? 0 : m->record->slices ? 1 : 2;
    for (int k = 0; k < n_meet; k++) {
        tc_line l = call_line(m, &meet[k], NULL, k > 0 ? TC_LAYOUT_REVERSED : TC_LAYOUT_DENSE, "1");
        tc_line_add(&l, "data=ones seed=1"); /* for this class alone (tc_is_extra) */
        tc_emit(m, l);
    }
    if (tc_has_large(m)) {
        tc_emit_once(m, call_line(m, &every, NULL, TC_LAYOUT_REVERSED, "1"));
        tc_emit_once(m, call_line(m, &beyond, NULL, TC_LAYOUT_DENSE, "1"));
    }
    while (tc_has_large(m) && ranks.rank++ < TC_MAX_RANK) {
        memcpy(ranks.index, ranks.self, sizeof ranks.index);
        ranks.dim = ranks.rank / 2;
        ranks.index[ranks.dim] += 2;
        memcpy(ranks.src, ranks.index, sizeof ranks.src);
        tc_emit(m, call_line(m, &ranks, NULL, TC_LAYOUT_REVERSED, "1"));
    }
    for (int k = 0; k < (m->set == TC_SMOKE ? 2 : TC_LENGTH(sized)); k++) {
        tc_line l = call_line(m, &sized[k], NULL, TC_LAYOUT_DENSE, "1");
        if (k % 3 == 0)
            tc_emit_data(m, &l, 0);
        else
            tc_emit(m, l);
        if (m->set == TC_SMOKE) { /* one that lies otherwise, too */
            tc_emit(m,
                    call_line(m, &sized[k], NULL, k ? TC_LAYOUT_REVERSED : TC_LAYOUT_PADDED, "1"));
            continue;
        }
        if (k < N_LAID_OUT || k == TC_LENGTH(sized) - 1)
            list_layouts(m, &sized[k]);
        if (tc_record_arg(m->record, "alpha") >= 0) {
            bool digits = m->types[0] == TN_I64; /* more than f64 has */
            const char *odd = digits ? "9007199254740993" : tc_is_float(m->types[0]) ? "0.3" : "-2";
            tc_emit(m, call_line(m, &sized[k], NULL, TC_LAYOUT_DENSE, k % 2 ? odd : "-2"));
        }
    }
}

const tc_family tc_family_index = {"index", shapes, terms, fill, list, list_timed};
