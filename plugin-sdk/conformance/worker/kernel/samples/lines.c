/* See lines.h. */
#include "plugin-sdk/conformance/worker/kernel/samples/lines.h"

#include <stdio.h>

bool tc_lines_shapes(tc_invocation *call, char why[TC_MESSAGE]) {
    const tc_shape *in = &call->args[0].tensor.shape;
    int64_t dim = call->args[tc_record_arg(call->record, "dim")].i;
    if (dim < 0 || dim >= in->rank)
        return tc_why(why, TC_MESSAGE, "dim: a dimension of the input");
    if (call->record->args[1].kind == TC_ARG_TENSOR &&
        !tc_same_sizes(in, &call->args[1].tensor.shape))
        return tc_why(why, TC_MESSAGE, "%s: both tensors have the same sizes", call->record->op);
    for (uint32_t k = 0; k < call->record->n_outs; k++)
        call->outs[k].tensor.shape = tc_dense(in->rank, in->sizes);
    return true;
}

int64_t tc_lines_terms(const tc_invocation *call) {
    return call->args[0].tensor.shape.sizes[call->args[tc_record_arg(call->record, "dim")].i];
}

static const struct sized {
    int32_t rank;
    int64_t sizes[TC_MAX_RANK];
    int dim;
} sized[] = {
    {2, {6, 9}, 1},       {2, {6, 9}, 0},          {3, {3, 4, 5}, 1},       {1, {1}, 0},
    {1, {7}, 0},          {1, {1000}, 0},          {2, {33, 65}, 1},        {2, {65, 33}, 0},
    {2, {4, 31}, 1},      {2, {4, 32}, 1},         {2, {4, 33}, 1},         {3, {2, 1, 2}, 1},
    {2, {5, 300}, 1},     {3, {2, 3, 4}, 2},       {3, {4, 3, 2}, 0},       {2, {3, 2049}, 1},
    {4, {2, 3, 4, 5}, 2}, {5, {2, 2, 3, 2, 2}, 2}, {5, {2, 3, 2, 3, 2}, 1}, {5, {3, 2, 2, 3, 2}, 0},
    {4, {3, 1, 4, 1}, 2},
};
enum { N_LAID_OUT = 3 };

/* Does it put the elements of a line in order, either way? */
static bool orders(const tc_record *record) {
    return tc_record_arg(record, "descending") >= 0;
}

static tc_line call_line(const tc_sampler *m, const struct sized *s, int32_t odd, tc_layout layout,
                         bool descending) {
    tc_line l = tc_line_start(m);
    for (uint32_t a = 0; a < m->record->n_args; a++)
        if (m->record->args[a].kind == TC_ARG_TENSOR)
            tc_line_tensor(&l, m->record->args[a].name, s->rank, s->sizes,
                           odd < 0 || odd == (int32_t)a ? layout : TC_LAYOUT_DENSE);
    tc_line_add(&l, "dim=%d", s->dim);
    if (orders(m->record))
        tc_line_add(&l, "descending=%s", descending ? "true" : "false");
    return l;
}

static void list_layouts(const tc_sampler *m, const struct sized *s) {
    for (int layout = 1; layout < TC_LAYOUT_ZERO_ALL; layout++) {
        for (int32_t odd = -1; odd < (m->record->args[1].kind == TC_ARG_TENSOR ? 2 : 0); odd++)
            tc_emit(m, call_line(m, s, odd, (tc_layout)layout, layout % 2));
        for (uint32_t k = 0; layout < TC_N_OUT_LAYOUTS && k < m->record->n_outs; k++) {
            tc_line out = call_line(m, s, -1, TC_LAYOUT_DENSE, layout % 2);
            tc_line_out(&out, m, k, s->rank, s->sizes, (tc_layout)layout);
            tc_emit(m, out);
        }
    }
}

/* Lines that are longer than what is taken at a time, of elements that lie apart on one side and next to one another on
 * the other. */
static void list_long_layouts(const tc_sampler *m) {
    static const struct sized ways[] = {{2, {5, 133}, 1}, {2, {133, 5}, 0}};
    for (int k = 0; k < 2 * TC_LENGTH(ways); k++) {
        const struct sized *s = &ways[k / 2];
        tc_layout layout = k % 2 ? TC_LAYOUT_REVERSED : TC_LAYOUT_STEPPED;
        tc_line in = call_line(m, s, -1, layout, k % 2);
        tc_line_add(&in, "data=random seed=1"); /* once is enough */
        tc_emit(m, in);
        for (uint32_t o = 0; o < m->record->n_outs; o++) {
            tc_line out = call_line(m, s, -1, TC_LAYOUT_DENSE, k % 2);
            tc_line_out(&out, m, o, s->rank, s->sizes, layout);
            tc_line_add(&out, "data=random seed=1");
            tc_emit(m, out);
        }
    }
}

/* Classes of a batch, and rows that fill a device; sorting is as slow as all others together. */
void tc_lines_list_timed(const tc_sampler *m) {
    static const struct sized rows = {2, {4096, 1024}, 1}, fewer = {2, {256, 1024}, 1},
                              classes = {2, {64, 10}, 1};
    tc_emit(m, call_line(m, orders(m->record) ? &fewer : &rows, -1, TC_LAYOUT_DENSE, false));
    if (tc_has_large(m))
        tc_emit(m, call_line(m, &classes, -1, TC_LAYOUT_DENSE, false));
}

/* Many lines, long ones, all ranks; and in every dtype so much that the work is split. */
static void list_large(const tc_sampler *m) {
    static const struct sized large[] = {
        {2, {400, 300}, 1},   {2, {300, 400}, 0}, {1, {70001}, 0},       {2, {3, 5003}, 1},
        {2, {5003, 3}, 0},    {2, {65541, 2}, 1}, {3, {2, 20011, 2}, 1}, {2, {2, 65541}, 0},
        {3, {3, 50, 300}, 1}, {2, {2, 50257}, 1}, {2, {33003, 2}, 0},    {2, {2, 131075}, 1},
    };
    /* Nothing is left over, nothing is filled up. */
    static const struct sized whole[] = {
        {2, {3, 128}, 1}, {2, {256, 3}, 0}, {2, {2, 512}, 1}, {2, {2, 1024}, 1}};
    static const struct sized split = {2, {303, 133}, 1}, lines = {2, {3, 5003}, 1},
                              down = {2, {31, 43}, 0};
    struct sized ranks = {0, {2, 3, 2, 2, 3, 2, 3, 1, 2, 1, 2, 2}, 0};
    for (int k = 0; tc_has_large(m) && k < TC_LENGTH(large); k++)
        /* One softmax of so many has no digit left. */
        if (large[k].rank > 1 || m->record->ulps == 0)
            tc_emit(m, call_line(m, &large[k], -1, TC_LAYOUT_DENSE, k % 2));
    if (tc_has_large(m)) { /* blocks of a long line, stored with steps */
        tc_line l = call_line(m, &large[3], -1, TC_LAYOUT_DENSE, false);
        tc_line_out(&l, m, 0, large[3].rank, large[3].sizes, TC_LAYOUT_STEPPED);
        tc_emit(m, l);
    }
    tc_emit(m, call_line(m, &split, -1, TC_LAYOUT_DENSE, true));
    for (int k = 0; k < TC_LENGTH(whole); k++) {
        tc_line l = call_line(m, &whole[k], -1, TC_LAYOUT_DENSE, k % 2);
        tc_line_add(&l, "seed=1"); /* once is enough */
        tc_emit(m, l);
    }
    if (orders(m->record) && tc_dtype_bytes(m->types[0]) == 2) /* places have more digits */
        tc_emit(m, call_line(m, &(struct sized){1, {70001}, 0}, -1, TC_LAYOUT_DENSE, false));
    for (int descending = 0; descending < (orders(m->record) ? 2 : 1); descending++) {
        tc_line l = call_line(m, &lines, -1, TC_LAYOUT_DENSE, descending), special = l;
        tc_line_add(&l, m->record->ulps == 0 && !orders(m->record) ? "data=carry" : "data=exact");
        tc_line_add(&special, "data=special");
        if (m->record->ulps == 0)
            tc_emit(m, l);
        tc_line masked =
            call_line(m, &(struct sized){2, {8, 4099}, 1}, -1, TC_LAYOUT_DENSE, descending);
        tc_line_add(&masked, "data=null");
        tc_line columns = call_line(m, &down, -1, TC_LAYOUT_DENSE, descending);
        tc_line_add(&columns, "data=null");
        if (m->record->fill == TC_FILL_FAR) {
            tc_emit(m, masked);
            tc_emit(m, columns);
        }
        tc_line close = call_line(m, &lines, -1, TC_LAYOUT_DENSE, descending);
        tc_line_add(&close, "data=near");
        if (orders(m->record) && m->types[0] != TN_BOOL)
            tc_emit(m, close);
        if (orders(m->record))
            tc_emit(m, special);
    }
    for (int dim = 0; dim < 2 && tc_is_float(m->types[0]) && m->record->ulps == 0; dim++) {
        tc_line l = call_line(m, &(struct sized){2, {70, 67}, dim}, -1, TC_LAYOUT_DENSE, false);
        tc_line_add(&l, "data=infinite");
        tc_emit(m, l);
    }
    static const struct sized every = {TC_MAX_RANK, {TC_ALL_DIMENSIONS}, TC_MAX_RANK / 2};
    if (tc_has_large(m))
        tc_emit_once(m, call_line(m, &every, -1, TC_LAYOUT_REVERSED, false));
    for (; tc_has_large(m) && ranks.rank++ < TC_MAX_RANK;) {
        ranks.dim = ranks.rank / 2;
        tc_emit(m, call_line(m, &ranks, -1, TC_LAYOUT_REVERSED, ranks.rank % 2));
    }
}

void tc_lines_list(const tc_sampler *m) {
    if (m->set != TC_SMOKE)
        list_large(m), list_long_layouts(m);
    for (int k = 0; k < (m->set == TC_SMOKE ? 2 : TC_LENGTH(sized)); k++) {
        for (int descending = 0; descending < (orders(m->record) ? 2 : 1); descending++) {
            tc_line l = call_line(m, &sized[k], -1, TC_LAYOUT_DENSE, descending);
            /* One NaN spoils a line, where it is not put in its order. */
            if (orders(m->record) ? k % 2 == 0
                                  : k % 3 == 0 && sized[k].sizes[sized[k].rank - 1] < 100)
                tc_emit_data(m, &l, 0);
            else
                tc_emit(m, l);
        }
        if ((k < N_LAID_OUT || k == TC_LENGTH(sized) - 1) && m->set != TC_SMOKE)
            list_layouts(m, &sized[k]);
    }
}
