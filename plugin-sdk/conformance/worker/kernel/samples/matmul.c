/* Matrix products: bmm and addmm. */
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

#include <stdio.h>
#include <string.h>

/* Is the product with this factor one that the core asks for? */
static bool counts(const tc_invocation *call, const tc_value *factor) {
    switch (call->types[0]) {
    case TN_F64:
        return factor->f != 0;
    case TN_F32:
    case TN_F16:
    case TN_BF16:
        return (float)factor->f != 0;
    default:
        return factor->i != 0;
    }
}

static bool shapes(tc_invocation *call, char why[TC_MESSAGE]) {
    bool batched = call->record->n_args == 2;
    const tc_shape *a = &call->args[batched ? 0 : 1].tensor.shape,
                   *b = &call->args[batched ? 1 : 2].tensor.shape;
    int32_t rank = batched ? 3 : 2;
    if (a->rank != rank || b->rank != rank || a->sizes[rank - 1] != b->sizes[rank - 2] ||
        (batched && a->sizes[0] != b->sizes[0]))
        return tc_why(why, TC_MESSAGE, "%s: [M, K] and [K, N]%s", call->record->op,
                      batched ? ", of equal batch" : "");
    int64_t sizes[3] = {a->sizes[0], a->sizes[1], b->sizes[2]};
    if (!batched)
        sizes[1] = b->sizes[1];
    call->outs[0].tensor.shape = tc_dense(rank, sizes);
    if (!batched && !tc_same_sizes(&call->args[0].tensor.shape, &call->outs[0].tensor.shape))
        return tc_why(why, TC_MESSAGE, "addmm: self is expanded to [M, N]");
    if (!batched && !counts(call, &call->args[TN_ARG_addmm_alpha]))
        return tc_why(why, TC_MESSAGE, "addmm: alpha is not 0");
    return true;
}

static int64_t terms(const tc_invocation *call) {
    return call->args[call->record->n_args == 2 ? 0 : 1]
        .tensor.shape.sizes[call->record->n_args == 2 ? 2 : 1];
}

static const struct sized {
    int64_t batch, m, k, n;
} sized[] = {
    {2, 6, 9, 7},     {1, 33, 17, 40}, {3, 4, 5, 6},   {1, 1, 1, 1}, {1, 64, 64, 64},
    {2, 65, 31, 67},  {1, 1, 100, 7},  {1, 7, 100, 1}, {5, 2, 1, 3}, {1, 40, 300, 30},
    {1, 17, 257, 33}, {2, 16, 16, 16}, {1, 50, 1, 50}, {4, 8, 8, 8}, {1, 130, 20, 9},
    {1, 9, 20, 130},  {1, 2, 1025, 2},
};
enum { N_LAID_OUT = 3 };

enum { ROWS_EXPANDED = 7, COLUMNS_EXPANDED };

/* Rows that are one, or columns: `row` is the stride of rows, 0 or 1. Without batch, of addmm. */
static void expanded(tc_line *l, const char *name, int64_t batch, int64_t rows, int64_t columns,
                     int row) {
    if (batch)
        tc_line_add(l, "%s=[%d,%d,%d]/[%d,%d,%d]", name, (int)batch, (int)rows, (int)columns,
                    (int)(row ? rows : columns), row, 1 - row);
    else
        tc_line_add(l, "%s=[%d,%d]/[%d,%d]", name, (int)rows, (int)columns, row, 1 - row);
}

/* Ways of an operand: dense, shifted, padded, stepped, transposed, a batch stride of zero, gaps
 * between batches alone, one row for all, one column for all. */
static void operand(tc_line *l, const char *name, bool batched, int64_t batch, int64_t rows,
                    int64_t columns, int way) {
    const int64_t sizes[3] = {batch, rows, columns};
    int32_t skip = batched ? 0 : 1;
    if (way == ROWS_EXPANDED || way == COLUMNS_EXPANDED)
        expanded(l, name, batched ? batch : 0, rows, columns, way == ROWS_EXPANDED ? 0 : 1);
    else if (way == 6 && batched)
        tc_line_add(l, "%s=[%d,%d,%d]/[%d,%d,1]", name, (int)batch, (int)rows, (int)columns,
                    (int)((rows + 1) * columns), (int)columns);
    else if (way == 5 && batched)
        tc_line_add(l, "%s=[%d,%d,%d]/[0,%d,1]", name, (int)batch, (int)rows, (int)columns,
                    (int)columns);
    else if (way == 4 && batched)
        tc_line_add(l, "%s=[%d,%d,%d]/[%d,1,%d]", name, (int)batch, (int)rows, (int)columns,
                    (int)(rows * columns), (int)rows);
    else
        tc_line_tensor(l, name, 3 - skip, sizes + skip, (tc_layout)(way == 5 ? 0 : way));
}

static const char factors[][20] = {"beta=1 alpha=1", "beta=0 alpha=1", "beta=2 alpha=-3",
                                   "beta=1 alpha=-2", "beta=0.3 alpha=1.7"};

/* Of addmm, `bias` is how self lies: dense, expanded from a row, from a column, from one element. */
static tc_line call_line(const tc_sampler *m, const struct sized *s, int bias, int a, int b,
                         int out, int factor) {
    static const char *const strides[] = {"", "/[0,1]", "/[1,0]", "/[0,0]"};
    bool batched = m->record->n_args == 2;
    tc_line l = tc_line_start(m);
    if (!batched)
        tc_line_add(&l, "self=[%d,%d]%s", (int)s->m, (int)s->n, strides[bias]);
    operand(&l, batched ? "self" : "mat1", batched, s->batch, s->m, s->k, a);
    operand(&l, "mat2", batched, s->batch, s->k, s->n, b);
    if (out)
        operand(&l, "out", batched, s->batch, s->m, s->n, out);
    if (!batched)
        tc_line_add(&l, "%s", factors[factor]);
    return l;
}

/* One row, one column, one batch, whose strides mean nothing: less than a row is long. */
static void list_ones(const tc_sampler *m) {
    static const struct sized ones[] = {{1, 1, 9, 7},   {1, 6, 9, 1},   {1, 6, 1, 7},  {1, 6, 9, 7},
                                        {1, 1, 90, 60}, {1, 70, 90, 1}, {1, 70, 1, 80}};
    int way = TC_LAYOUT_SHIFTED;
    for (int k = 0; k < TC_LENGTH(ones); k++)
        tc_emit(m, call_line(m, &ones[k], 0, way, way, way, 0));
}

/* Products of vectors, of which each of a batch has its own or all have one: of a row, of a column, of both, and the
 * outer ones. */
static void list_vectors(const tc_sampler *m) {
    static const struct sized some[] = {{3, 1, 9, 7}, {3, 6, 9, 1}, {3, 1, 9, 1},
                                        {3, 6, 1, 7}, {3, 1, 1, 7}, {3, 6, 1, 1}};
    static const int ways[][3] = {{0, 0, 0}, {4, 0, 0}, {0, 4, 0}, {5, 0, 0},
                                  {0, 5, 0}, {6, 6, 0}, {3, 3, 0}, {0, 0, 6}};
    static const struct sized large[] = {{3, 1, 90, 300}, {3, 300, 90, 1}};
    for (int k = 0; tc_has_large(m) && k < TC_LENGTH(large); k++)
        tc_emit(m, call_line(m, &large[k], 0, 0, 0, 0, 0));
    for (int k = 0; k < TC_LENGTH(some); k++)
        for (int way = 0; way < TC_LENGTH(ways); way++)
            tc_emit(m, call_line(m, &some[k], 0, ways[way][0], ways[way][1], ways[way][2], 0));
}

/* Squares, small and large; a first layer of a perceptron; what attention multiplies; a weight that
 * comes transposed. */
static void list_timed(const tc_sampler *m) {
    static const struct {
        struct sized size;
        int b;
    } timed[] = {{{1, 512, 512, 512}, 0}, {{1, 1024, 1024, 1024}, 0}, {{1, 16, 16, 16}, 0},
                 {{1, 64, 784, 128}, 0},  {{1, 512, 512, 512}, 4},    {{32, 128, 64, 128}, 0}};
    for (int k = 0; k < (tc_has_large(m) ? TC_LENGTH(timed) : 1); k++)
        if (m->record->n_args == 2 || timed[k].size.batch == 1)
            tc_emit(m, call_line(m, &timed[k].size, 0, 0, timed[k].b, 0, 0));
}

/* Each operand expanded along each dimension, where the product is one of vectors and where it is not. */
static void list_expanded(const tc_sampler *m) {
    static const struct sized some[] = {{1, 1, 90, 300}, {1, 300, 90, 1}, {1, 70, 90, 80}};
    for (int k = 0; k < TC_LENGTH(some); k++)
        for (int way = ROWS_EXPANDED; way <= COLUMNS_EXPANDED; way++) {
            tc_emit(m, call_line(m, &some[k], 0, way, 0, 0, 0));
            tc_emit(m, call_line(m, &some[k], 0, 0, way, 0, 0));
        }
}

static void list_faint_parts(const tc_sampler *m, const struct sized *s) {
    static const char *const kinds[] = {"faint-left", "faint-first", "faint-added"};
    bool adds = m->record->n_args > 2;
    for (int k = 0; k < (adds ? 3 : 2); k++) {
        tc_line l = call_line(m, s, 0, 0, k ? 0 : 4, 0, 0);
        tc_line_add(&l, "data=%s drawn=faint", kinds[k]);
        tc_emit(m, l);
    }
    /* each sign in each factor, at the end or not, as it lies and turned */
    for (int k = 0; k < 16; k++) {
        tc_line l = call_line(m, s, 0, k & 1 ? 4 : 0, k & 1 ? 4 : 0, 0, 0);
        tc_line_add(&l, "data=faint-lone seed=%x", k * 0x35b0b + k / 2);
        tc_emit(m, l);
    }
}

/* What looks for subnormal numbers does so part by part: of the sum, and of what is added up. */
static void list_faint(const tc_sampler *m) {
    static const struct sized some[] = {{1, 33, 17, 40}, {2, 65, 31, 67}, {1, 40, 600, 30}};
    static const struct sized parts[] = {{1, 33, 17, 40}, {1, 10, 600, 9}};
    for (int k = 0; tc_is_float(m->types[0]) && k < TC_LENGTH(parts); k++)
        list_faint_parts(m, &parts[k]);
    for (int k = 0; k < TC_LENGTH(some); k++)
        for (int way = 0; way < 4; way++) {
            struct sized s = some[k];
            s.batch = m->record->n_args == 2 ? s.batch : 1;
            tc_line l = call_line(m, &s, 0, way % 2 ? 4 : 0, way / 2 ? 4 : 0, 0, way % 2 ? 2 : 0);
            tc_line_add(&l, "data=faint drawn=faint"); /* few numbers may prove little */
            if (tc_is_float(m->types[0]))
                tc_emit(m, l);
        }
}

/* Sums that lie halfway between two halves: with and without what is added or multiplies all. */
static void list_ties(const tc_sampler *m) {
    static const struct sized some[] = {{1, 33, 17, 40}, {1, 7, 9, 6}, {1, 12, 600, 30}};
    bool half = tc_is_float(m->types[0]) && tc_dtype_bytes(m->types[0]) == 2;
    for (int k = 0; half && k < 2 * TC_LENGTH(some); k++) {
        tc_line l = call_line(m, &some[k / 2], 0, 0, 0, 0, k % 2 ? 3 : 0);
        tc_line_add(&l, "data=ties");
        if (k % 2 == 0 || m->record->n_args > 2)
            tc_emit(m, l);
    }
}

/* For this class alone, by a seed of its own, for there are many; at each kind of memory (kernel_case.c). */
static void emit_tail(const tc_sampler *m, tc_line l, int at) {
    tc_line_add(&l, "seed=%x00000001", at + 1);
    tc_emit(m, l);
}

/* One row or column more than tiles have, and where numbers lie apart more than one block of them. */
static void list_tails(const tc_sampler *m) {
    static const struct sized some[] = {
        {1, 257, 18, 6}, {1, 6, 18, 257}, {1, 129, 34, 3}, {1, 3, 34, 129}};
    static const int ways[][3] = {{4, 0, 0}, {0, 4, 0}, {4, 4, 0}, {3, 3, 0}, {0, 0, 3}, {0, 0, 4}};
    for (int k = 0; k < TC_LENGTH(some); k++)
        for (int way = 0; way < TC_LENGTH(ways); way++)
            emit_tail(
                m,
                call_line(m, &some[k], (k + way) % 4, ways[way][0], ways[way][1], ways[way][2], 0),
                way);
    static const struct sized both = {1, 262, 9, 530}, deep = {1, 6, 2100, 20};
    emit_tail(m, call_line(m, &both, 1, 0, 0, 0, 0), 1);
    /* parts of K, of which one factor is gathered and the other is not */
    for (int way = 0; way < 2; way++)
        emit_tail(m, call_line(m, &deep, 0, way ? 3 : 0, way ? 0 : 3, 0, 0), way);
}

/* Vectors longer than a tile, of so many matrices that threads share them: what each has packed and put by is its own. */
static void list_shared_vectors(const tc_sampler *m) {
    static const struct sized some[] = {{44, 300, 90, 1}, {44, 1, 90, 300}};
    for (int k = 0; k < TC_LENGTH(some); k++) {
        tc_line l = call_line(m, &some[k], 0, k ? 0 : 5, k ? 5 : 0, 0, 0);
        tc_line_add(&l, "data=exact seed=1"); /* for this class alone */
        tc_emit(m, l);
    }
}

static void list(const tc_sampler *m) {
    bool batched = m->record->n_args == 2;
    static const struct sized large[] = {
        {1, 140, 150, 160}, {9, 40, 70, 50},  {1, 3, 700, 500}, {1, 1030, 9, 5}, {1, 5, 9, 1030},
        {1, 4, 4100, 3},    {300, 3, 4, 5},   {1, 200, 40, 1},  {1, 1, 40, 200}, {65541, 2, 3, 1},
        {65541, 3, 2, 4},   {1, 65541, 2, 3}, {1, 2, 3, 65541}};
    static const struct sized split = {2, 131, 40, 133}, deep = {1, 2, 5003, 3};
    for (int k = 0; tc_has_large(m) && k < TC_LENGTH(large); k++)
        if (batched || large[k].batch == 1)
            tc_emit(m, call_line(m, &large[k], k % 4, 0, 4 * (k % 2), 0, 0));
    if (m->set != TC_SMOKE) {
        tc_line back = call_line(m, &deep, 0, 0, 0, 0, 0);
        tc_line_add(&back, "data=carry");
        tc_emit(m, back);
        tc_emit(m, call_line(m, &split, 0, 0, 0, 0, 0));
        tc_line longest = call_line(m, &(struct sized){1, 2, 65541, 3}, 0, 0, 0, 0, 0);
        tc_line_add(&longest, "data=exact"); /* of so many terms only whole ones tell */
        if (tc_has_large(m))
            tc_emit(m, longest);
        /* Packed at once it is more than a stack has, in each dtype. */
        tc_line packed = call_line(m, &(struct sized){1, 2, 20011, 67}, 0, 4, 4, 0, 0);
        tc_line_add(&packed, "data=exact");
        tc_emit(m, packed);
        /* Parts of K, and more tiles beside each other that share them than there are threads; gathered, in f32 as well. */
        int gathered = m->types[0] == TN_F32 ? 3 : 0;
        tc_line tiles =
            call_line(m, &(struct sized){1, 2, 2100, 1040}, 0, gathered, gathered, 0, 0);
        tc_line_add(&tiles, "data=exact seed=1"); /* once is enough */
        if (tc_is_float(m->types[0]) && m->types[0] != TN_F64)
            tc_emit(m, tiles);
        for (int f = 1; !batched && f < TC_LENGTH(factors); f++) /* parts of K that are joined */
            if (tc_is_float(m->types[0]) || !strchr(factors[f], '.'))
                for (int64_t k = 600; k <= 4200; k += 3600) /* transposed: packed */
                    tc_emit(m, call_line(m, &(struct sized){1, 6, k, 20}, f % 4, 0, 4, 0, f));
        for (int64_t batch = 1; batched && batch <= 3; batch += 2) /* one mat2 for all of them */
            tc_emit(m, call_line(m, &(struct sized){batch, 6, 4200, 20}, 0, 0, 5, 0, 0));
        for (int first = 0; first < 2; first++) {
            tc_line null = call_line(m, &(struct sized){1, 6, 600, 20}, 0, 0, 0, 0, 0);
            tc_line_add(&null, first ? "data=null-first" : "data=null");
            if (tc_is_float(m->types[0]))
                tc_emit(m, null);
        }
        for (int out = 1; tc_has_large(m) && out < 5; out++) { /* vectors with elements apart */
            tc_emit(m, call_line(m, &(struct sized){1, 200, 40, 1}, 0, 0, 0, out, 0));
            tc_emit(m, call_line(m, &(struct sized){1, 1, 40, 200}, 0, 0, 0, out, 0));
        }
        list_ones(m);
        /* one matrix as all factors, of several blocks, which is not symmetric */
        tc_line square =
            call_line(m, &(struct sized){batched ? 2 : 1, 100, 100, 100}, 0, 0, 0, 0, 0);
        tc_line_add(&square, "shared=mat2 seed=1");
        tc_emit(m, square);
        if (batched)
            list_vectors(m);
        list_faint(m);
        list_ties(m);
        list_tails(m);
        list_expanded(m);
    }
    for (int k = 0; k < (m->set == TC_SMOKE ? 2 : TC_LENGTH(sized)); k++) {
        tc_line l = call_line(m, &sized[k], k % 4, 0, 0, 0, 0);
        if ((k % 3 == 0 && sized[k].m > 1) || k == 10)
            tc_emit_data(m, &l, 0);
        else
            tc_emit(m, l);
        if (k >= N_LAID_OUT || m->set == TC_SMOKE)
            continue;
        for (int a = 0; a < 6; a++)
            for (int b = 0; b < 6; b++)
                if (a + b > 0 && (batched || (a < 5 && b < 5)))
                    tc_emit(m, call_line(m, &sized[k], (a + b) % 4, a, b, 0, 0));
        for (int out = 1; out < 5; out++)
            tc_emit(m, call_line(m, &sized[k], 0, 0, 0, out, 0));
        for (int way = 0; batched && k == 0 && way < 3 * 3 * 3; way++) { /* which may be folded */
            static const int ways[] = {0, 5, 6}, outs[] = {2, 4, 6};
            tc_emit(m,
                    call_line(m, &sized[k], 0, ways[way % 3], ways[way / 3 % 3], outs[way / 9], 0));
        }
        for (int f = 1; !batched && f < TC_LENGTH(factors); f++) {
            tc_line scaled = call_line(m, &sized[k], f % 4, 0, 0, 0, f);
            if (tc_is_float(m->types[0]) || !strchr(factors[f], '.'))
                tc_emit_data(m, &scaled, 0);
        }
    }
    if (batched && m->set != TC_SMOKE && tc_dtype_bytes(m->types[0]) == 2 &&
        tc_is_float(m->types[0]))
        list_shared_vectors(m);
}

const tc_family tc_family_matmul = {"matmul", shapes, terms, NULL, list, list_timed};
