/* Reductions: the output has the input's rank, with size 1 in the reduced dimensions. */
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool shapes(tc_invocation *call, char why[TC_MESSAGE]) {
    const tc_shape *in = &call->args[0].tensor.shape;
    bool one = call->record->args[1].kind == TC_ARG_INT;
    const int64_t *dims = one ? &call->args[1].i : call->args[1].ints;
    int32_t n = one ? 1 : call->args[1].n_ints;
    int64_t sizes[TC_MAX_RANK];
    memcpy(sizes, in->sizes, sizeof sizes);
    for (int32_t k = 0; k < n; k++) {
        if (dims[k] < 0 || dims[k] >= in->rank || (k > 0 && dims[k] <= dims[k - 1]))
            return tc_why(why, TC_MESSAGE, "dim: rising dimensions of the input");
        sizes[dims[k]] = 1;
    }
    if (n == 0)
        return tc_why(why, TC_MESSAGE, "dim: at least one");
    call->outs[0].tensor.shape = tc_dense(in->rank, sizes);
    return true;
}

/* A variance, which differs from a sum in what its data must be. */
static bool corrects(const tc_record *record) {
    return tc_record_arg(record, "correction") >= 0;
}

static int64_t terms(const tc_invocation *call) {
    if (!call->record->adds || corrects(call->record))
        return 1;
    return call->args[0].tensor.shape.numel / call->outs[0].tensor.shape.numel;
}

/* Factors whose product stays within reach: powers of two near 1, odd integers, which never wrap to
 * zero. */
static tc_number factor(tn_dtype dtype, tc_data data, int64_t n, tc_random *r) {
    if (!tc_is_float(dtype))
        return (tc_number){0, 2 * tc_integer(r, tc_int_min(dtype) ? -40 : 0, 40) + 1};
    tc_real sign = tc_below(r, 2) ? 1 : -1;
    if (data == TC_DATA_EXACT)
        return (tc_number){tc_below(r, (uint64_t)n) < 4 ? 2 * sign : sign, 0};
    return (tc_number){sign * exp2((double)tc_uniform(r, -4, 4) / sqrt((double)n)), 0};
}

/* Integers whose largest (smallest) of n is as likely to be any number of the dtype. */
static tc_number contender(tn_dtype dtype, int64_t n, bool largest, tc_random *r) {
    tc_real span =
        dtype == TN_I64 ? 0x1p40L : (tc_real)tc_int_max(dtype) - (tc_real)tc_int_min(dtype);
    int64_t x = (int64_t)(span * pow((double)tc_uniform(r, 0, 1), (double)n));
    return (tc_number){0, largest ? tc_int_min(dtype) + x : tc_int_max(dtype) - x};
}

/* Of a line of n about two, wherever: the first NaN is to be told from the others. */
static tc_real rare(int64_t n, tc_random *r) {
    uint64_t k = tc_below(r, (uint64_t)n + 3);
    return k < 2    ? copysignl(NAN, k ? 1 : -1)
           : k == 2 ? copysignl(INFINITY, tc_below(r, 2) ? 1 : -1)
                    : (tc_real)tc_integer(r, -99, 99);
}

/* A NaN in each line of a matrix, in the last place of the first, in the first of the second, and so
 * inwards; or two, the other half a line from it. Some lines have instead nothing but the infinity that all
 * else comes before, or the finite number next to it: where a kernel begins tells. */
static void few_nans(tc_invocation *call, tc_operand *o, tc_random *r) {
    bool down =
        (call->record->args[1].kind == TC_ARG_INT ? call->args[1].i : call->args[1].ints[0]) == 0;
    int64_t columns = o->shape.sizes[o->shape.rank - 1], n = down ? o->shape.sizes[0] : columns;
    tc_real sign = call->record->fill == TC_FILL_LARGEST ? -1 : 1;
    for (int64_t i = 0; i < o->shape.numel; i++) {
        int64_t whole = down ? i % columns : i / columns, line = whole % n;
        int64_t place = down ? i / columns : i % n;
        int64_t at = line % 2 ? line / 2 : n - 1 - line / 2, other = (at + n / 2) % n;
        bool is_nan = place == at || (place == other && call->data == TC_DATA_NULL_FIRST);
        o->values[i].f = whole % 8 == 5                          ? sign * INFINITY
                         : whole % 8 == 3 && !call->record->adds ? sign * tc_largest(o->dtype)
                         : is_nan                                ? NAN
                                                                 : (tc_real)tc_integer(r, -99, 99);
    }
}

enum { OF_ZEROS = 3 }; /* the seed of list_zeros */

/* A few equals, anywhere; or zeros of both signs, which are equal, before all else. */
static tc_number equal(const tc_invocation *call, int64_t n, bool largest, tc_random *r) {
    int64_t span = n > 600 ? n / 6 : 99, x = tc_integer(r, -span, span);
    if (!tc_is_float(call->types[0]) || call->seed != OF_ZEROS)
        return (tc_number){(tc_real)x, x};
    x = tc_below(r, 2) ? 0 : largest ? -llabs(x) : llabs(x);
    return (tc_number){x == 0 && tc_below(r, 2) ? -0.0L : (tc_real)x, x};
}

/* What other data would give the same result for all lines. */
static bool fill(tc_invocation *call, uint32_t arg, tc_random *r) {
    tc_operand *o = &call->args[arg].tensor;
    if (tc_is_null(call->data) && tc_is_float(o->dtype)) {
        few_nans(call, o, r);
        return true;
    }
    tc_record_fill kind = call->record->fill;
    bool prod = kind == TC_FILL_PRODUCT, largest = kind == TC_FILL_LARGEST;
    bool meet = call->data == TC_DATA_EXACT && tc_dtype_bytes(o->dtype) > 1;
    bool special = call->data == TC_DATA_SPECIAL && tc_is_float(o->dtype);
    if (kind == TC_FILL_USUAL || call->data == TC_DATA_NEAR || (special && prod) ||
        (tc_is_float(o->dtype) && !special && !prod && call->data != TC_DATA_EXACT))
        return false;
    int64_t n = o->shape.numel / call->outs[0].tensor.shape.numel;
    for (int64_t i = 0; i < o->shape.numel; i++) {
        if (special)
            o->values[i].f = rare(n, r);
        else if (o->dtype == TN_BOOL)
            o->values[i].i = (tc_below(r, (uint64_t)n) == 0) == largest;
        else if (prod)
            o->values[i] = factor(o->dtype, call->data, n, r);
        else if (tc_is_float(o->dtype) || meet)
            o->values[i] = equal(call, n, largest, r);
        else
            o->values[i] = contender(o->dtype, n, largest, r);
    }
    return true;
}

static const struct sized {
    int32_t rank;
    int64_t sizes[TC_MAX_RANK];
    int32_t n_dims;
    int64_t dims[TC_MAX_RANK];
} sized[] = {
    {2, {6, 9}, 1, {1}},
    {2, {6, 9}, 1, {0}},
    {2, {6, 9}, 2, {0, 1}},
    {3, {4, 5, 6}, 1, {1}},
    {3, {4, 5, 6}, 2, {0, 2}},
    {1, {1}, 1, {0}},
    {1, {7}, 1, {0}},
    {1, {1024}, 1, {0}}, /* whole blocks, nothing is left over */
    {2, {256, 3}, 1, {0}},
    {2, {3, 512}, 1, {1}},
    {1, {4099}, 1, {0}},
    {3, {2, 3, 4}, 3, {0, 1, 2}},
    {3, {2, 1, 2}, 1, {1}},
    {2, {33, 65}, 1, {1}},
    {2, {65, 33}, 1, {0}},
    {2, {8, 31}, 1, {1}},
    {2, {8, 32}, 1, {1}},
    {2, {8, 33}, 1, {1}},
    {5, {2, 3, 2, 3, 2}, 2, {1, 3}},
    {2, {64, 130}, 1, {0}},
    {2, {1, 300}, 1, {1}},
    {2, {300, 1}, 1, {0}},
    {7, {2, 2, 2, 2, 2, 2, 2}, 3, {0, 3, 6}},
    {4, {2, 9, 4, 4}, 3, {0, 2, 3}},
    {4, {3, 4, 5, 2}, 1, {2}},
    {2, {7, 1025}, 1, {1}},
    {8, {2, 3, 2, 2, 2, 3, 2, 2}, 4, {0, 2, 4, 6}},
    {8, {2, 2, 3, 2, 2, 2, 2, 3}, 4, {1, 3, 5, 7}},
    {6, {2, 2, 2, 2, 2, 16}, 3, {0, 2, 4}},
    {4, {1, 5, 1, 6}, 1, {1}},
};
enum { N_LAID_OUT = 5 };

static bool is_laid_out(int k) {
    return k < N_LAID_OUT || k == TC_LENGTH(sized) - 1;
}

static tc_line corrected_line(const tc_sampler *m, const struct sized *s, const char *correction,
                              tc_layout in, tc_layout out) {
    tc_line l = tc_line_start(m);
    tc_line_tensor(&l, "self", s->rank, s->sizes, in);
    if (m->record->args[1].kind == TC_ARG_INT)
        tc_line_add(&l, "dim=%d", (int)s->dims[0]);
    else
        tc_line_ints(&l, "dim", s->n_dims, s->dims);
    if (corrects(m->record))
        tc_line_add(&l, "correction=%s", correction);
    int64_t sizes[TC_MAX_RANK];
    memcpy(sizes, s->sizes, sizeof sizes);
    for (int32_t k = 0; k < s->n_dims; k++)
        sizes[s->dims[k]] = 1;
    if (out != TC_LAYOUT_DENSE)
        tc_line_tensor(&l, "out", s->rank, sizes, out);
    return l;
}

static tc_line call_line(const tc_sampler *m, const struct sized *s, tc_layout in, tc_layout out) {
    return corrected_line(m, s, s->rank % 2 ? "1" : "0", in, out);
}

static void list_timed(const tc_sampler *m) {
    static const struct sized timed[] = {
        {2, {4096, 1024}, 1, {1}}, {2, {4096, 1024}, 1, {0}}, {2, {64, 10}, 1, {1}}};
    for (int k = 0; k < (tc_has_large(m) ? TC_LENGTH(timed) : 1); k++)
        tc_emit(m, call_line(m, &timed[k], TC_LAYOUT_DENSE, TC_LAYOUT_DENSE));
}

/* Of extremes, which tell the first NaN from the others. */
static void emit_nans(const tc_sampler *m, const struct sized *s) {
    for (int first = 0; first < 2; first++) {
        tc_line l = call_line(m, s, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
        tc_line_add(&l, first ? "data=null-first" : "data=null");
        tc_emit(m, l);
    }
}

/* Of places of extremes, in rows and in columns. */
static void list_zeros(const tc_sampler *m) {
    static const struct sized ways[] = {{2, {33, 65}, 1, {1}}, {2, {65, 33}, 1, {0}}};
    bool tells =
        m->record->args[1].kind == TC_ARG_INT && !m->record->adds && tc_is_float(m->types[0]);
    for (int k = 0; tells && k < TC_LENGTH(ways); k++) {
        tc_line l = call_line(m, &ways[k], TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
        tc_line_add(&l, "data=exact seed=%d", OF_ZEROS);
        tc_emit(m, l);
    }
}

/* Every place of every rank reduced, between dimensions of one element: who leaves these out must
 * count the others as before. */
static void list_ones(const tc_sampler *m) {
    for (int32_t rank = 3; rank < 8; rank++)
        for (int32_t d = 0; d < rank; d++) {
            struct sized s = {rank, {1, 1, 1, 1, 1, 1, 1}, 1, {d}};
            s.sizes[d] = 5;
            s.sizes[(d + 2) % rank] = 3;
            tc_emit(m, call_line(m, &s, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE));
        }
}

/* All dimensions of s, and all but the first: long lists of them. */
static void list_whole(const tc_sampler *m, const struct sized *s) {
    struct sized whole = *s;
    for (int first = 0; first < 2; first++) {
        whole.n_dims = 0;
        for (int32_t d = first; d < s->rank; d++)
            whole.dims[whole.n_dims++] = d;
        tc_emit(m, call_line(m, &whole, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE));
    }
}

/* Every other one of all dimensions, and more terms than 20 bits count. */
static void list_most(const tc_sampler *m) {
    struct sized every = {TC_MAX_RANK, {TC_ALL_DIMENSIONS}, 6, {0, 2, 4, 6, 8, 10}};
    static const struct sized beyond = {1, {TC_BEYOND}, 1, {0}};
    if (m->record->args[1].kind == TC_ARG_INT)
        every.n_dims = 1, every.dims[0] = TC_MAX_RANK / 2;
    tc_emit_once(m, call_line(m, &every, TC_LAYOUT_REVERSED, TC_LAYOUT_DENSE));
    if (m->record->fill != TC_FILL_PRODUCT)
        tc_emit_once(m, call_line(m, &beyond, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE));
}

/* So many rows, and so long ones, that blocks are taken of them, each way that they lie. */
static void list_wide_layouts(const tc_sampler *m) {
    static const struct sized ways[] = {{2, {35, 133}, 1, {0}}, {2, {35, 133}, 1, {1}}};
    for (int layout = 1; layout < TC_N_OUT_LAYOUTS; layout++)
        for (int k = 0; (tc_has_large(m) || m->types[0] == TN_F16) && k < TC_LENGTH(ways); k++) {
            tc_line in = call_line(m, &ways[k], (tc_layout)layout, TC_LAYOUT_DENSE);
            tc_line out = call_line(m, &ways[k], TC_LAYOUT_DENSE, (tc_layout)layout);
            tc_line_add(&in, "data=random seed=1"); /* once is enough */
            tc_line_add(&out, "data=random seed=1");
            tc_emit(m, in);
            tc_emit(m, out);
        }
}

/* Long ranges of two dimensions that do not touch, of which a part begins within the inner one, along the
 * last dimension and before it; long lines whose elements lie apart, which are gathered piece by piece; and
 * columns so long that adding row after row shows. */
static void list_parts(const tc_sampler *m) {
    static const struct sized rows = {3, {60, 2, 301}, 2, {0, 2}},
                              columns = {4, {60, 2, 21, 17}, 2, {0, 2}},
                              line = {2, {3, 10007}, 1, {1}}, down = {2, {9001, 17}, 1, {0}},
                              longest = {1, {2300003}, 1, {0}};
    if (m->record->args[1].kind == TC_ARG_INTS && tc_has_large(m)) {
        tc_emit(m, call_line(m, &rows, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE));
        tc_emit(m, call_line(m, &columns, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE));
    }
    if (tc_has_large(m))
        tc_emit(m, call_line(m, &line, TC_LAYOUT_STEPPED, TC_LAYOUT_DENSE));
    /* Places in columns of more than 16 bits count: each column's is its last. */
    static const struct sized deep = {2, {66003, 17}, 1, {0}};
    tc_line late = call_line(m, &deep, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
    tc_line_add(&late, "data=%s drawn=far",
                m->record->fill == TC_FILL_LARGEST ? "rising" : "falling");
    if (m->record->args[1].kind == TC_ARG_INT && tc_has_large(m))
        tc_emit(m, late);
    if (!m->record->adds || !tc_has_large(m))
        return;
    tc_line l = call_line(m, &down, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
    tc_line_add(&l, "data=biased");
    tc_emit(m, l);
    /* More parts than somebody has counted on, whose sum is exact. */
    tc_line all = call_line(m, &longest, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
    tc_line_add(&all, "data=exact");
    if (!corrects(m->record))
        tc_emit(m, all);
}

/* Many lines either way, a few long ones, all ranks with every other dimension reduced. */
static void list_large(const tc_sampler *m) {
    static const struct sized large[] = {
        {2, {700, 150}, 1, {0}},   {2, {600, 170}, 1, {1}},  {3, {40, 50, 60}, 2, {0, 2}},
        {2, {65541, 3}, 1, {1}},   {2, {3, 65541}, 1, {0}},  {3, {2, 65541, 2}, 2, {0, 2}},
        {3, {3, 50, 300}, 1, {1}}, {2, {3, 131075}, 1, {1}},
    };
    static const struct sized many = {2, {3, 40000}, 1, {1}},
                              carried[] = {{2, {3, 10007}, 1, {1}}, {1, {40009}, 1, {0}}},
                              over = {2, {65, 257}, 1, {0}}, /* a row more than chunks have */
        down = {2, {1025, 57}, 1, {0}};
    struct sized ranks = {0, {3, 2, 2, 3, 2, 2, 3, 1, 2, 1, 2, 2}, 0, {0}};
    bool one = m->record->args[1].kind == TC_ARG_INT;
    tc_line l = call_line(m, &many, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
    if (tc_has_large(m))
        tc_emit(m, l);
    tc_line_add(&l, "data=exact"); /* equals in parts that are joined */
    tc_emit(m, l);
    if (!m->record->adds && tc_is_float(m->types[0])) {
        emit_nans(m, &many);
        emit_nans(m, &over);
        emit_nans(m, &(struct sized){2, {150, 67}, 1, {1}});
    }
    for (int k = 0; m->record->fill != TC_FILL_PRODUCT && k < 2; k++) {
        tc_line last = call_line(m, k ? &down : &over, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
        tc_line_add(&last, "data=special");
        tc_emit(m, last);
    }
    /* Of one element each, which is not looked at by those who know what comes out. */
    static const struct sized lone[] = {{2, {1, 300}, 1, {0}}, {2, {300, 1}, 1, {1}}};
    for (int k = 0; k < TC_LENGTH(lone); k++) {
        tc_line alone = call_line(m, &lone[k], TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
        tc_line_add(&alone, "data=special drawn=special");
        if (tc_is_float(m->types[0]))
            tc_emit(m, alone);
    }
    for (int k = 0; m->record->adds && !corrects(m->record) && k < TC_LENGTH(carried); k++) {
        tc_line back = call_line(m, &carried[k], TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
        tc_line_add(&back, "data=carry");
        tc_emit(m, back);
    }
    for (int k = 0; tc_has_large(m) && k < TC_LENGTH(large); k++)
        if (!one || large[k].n_dims == 1)
            tc_emit(m, call_line(m, &large[k], TC_LAYOUT_DENSE, TC_LAYOUT_DENSE));
    if (tc_has_large(m)) {
        list_ones(m);
        list_most(m);
    }
    while (tc_has_large(m) && ranks.rank++ < TC_MAX_RANK) {
        ranks.dims[ranks.n_dims] = ranks.rank - 1;
        ranks.n_dims += ranks.rank % 2;
        if (one)
            ranks.n_dims = 1, ranks.dims[0] = ranks.rank / 2;
        tc_emit(m, call_line(m, &ranks, TC_LAYOUT_REVERSED, TC_LAYOUT_DENSE));
        if (ranks.rank > 4 && !one)
            list_whole(m, &ranks);
        struct sized last = ranks;
        last.n_dims = 1;
        last.dims[0] = ranks.rank - 1;
        if (ranks.rank > 4 && ranks.sizes[ranks.rank - 1] > 1)
            tc_emit(m, call_line(m, &last, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE));
    }
}

/* Divisors that are no whole number, 0, and would be less; one element has no distance from the mean,
 * so that 0 / 0 is for certain. */
static void list_corrections(const tc_sampler *m) {
    static const struct {
        struct sized size;
        const char *correction;
    } odd[] = {
        {{2, {6, 9}, 1, {1}}, "2.3"},  {{2, {5, 9}, 1, {1}}, "8.5"}, {{2, {5, 9}, 1, {1}}, "9"},
        {{2, {5, 9}, 1, {1}}, "11.5"}, {{2, {5, 1}, 1, {1}}, "1"},   {{2, {5, 1}, 1, {1}}, "0"},
        {{2, {1, 5}, 1, {0}}, "2"},
    };
    for (int k = 0; corrects(m->record) && k < TC_LENGTH(odd); k++)
        tc_emit(m, corrected_line(m, &odd[k].size, odd[k].correction, TC_LAYOUT_DENSE,
                                  TC_LAYOUT_DENSE));
}

static void list(const tc_sampler *m) {
    bool one = m->record->args[1].kind == TC_ARG_INT;
    for (int k = 0; k < TC_LENGTH(sized); k++) {
        if (one && sized[k].n_dims > 1)
            continue;
        tc_line l = call_line(m, &sized[k], TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
        if (m->set == TC_SMOKE && k > 1)
            break;
        if (k % 3 == 0)
            tc_emit_data(m, &l, 0);
        else
            tc_emit(m, l);
        for (int layout = 1; is_laid_out(k) && m->set != TC_SMOKE && layout < TC_LAYOUT_ZERO_ALL;
             layout++) {
            if ((one || corrects(m->record)) && sized[k].n_dims == 1 &&
                layout == (sized[k].dims[0] ? TC_LAYOUT_ZERO_LAST : TC_LAYOUT_ZERO_FIRST))
                continue; /* equals only: the place is always the first */
            tc_emit(m, call_line(m, &sized[k], (tc_layout)layout, TC_LAYOUT_DENSE));
            if (layout < TC_N_OUT_LAYOUTS)
                tc_emit(m, call_line(m, &sized[k], TC_LAYOUT_DENSE, (tc_layout)layout));
        }
    }
    if (m->set == TC_SMOKE)
        return;
    tc_line close =
        call_line(m, &(struct sized){2, {37, 67}, 1, {1}}, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
    tc_line_add(&close, "data=near");
    if (!m->record->adds && m->types[0] != TN_BOOL && m->record->fill != TC_FILL_PRODUCT)
        tc_emit(m, close);
    tc_line far =
        call_line(m, &(struct sized){2, {7, 4099}, 1, {1}}, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
    tc_line_add(&far, "data=outlier");
    tc_line biased =
        call_line(m, &(struct sized){2, {7, 4099}, 1, {1}}, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
    tc_line_add(&biased, "data=biased");
    if (corrects(m->record)) {
        tc_emit(m, far);
        tc_emit(m, biased);
    }
    list_large(m);
    list_parts(m);
    list_wide_layouts(m);
    list_zeros(m);
    list_corrections(m);
    /* Long lines: what is lost with each addition adds up. */
    static const struct sized longest = {1, {300000}, 1, {0}}, endless = {1, {10000019}, 1, {0}};
    bool most = m->set == TC_EXHAUSTIVE && tc_has_large(m);
    tc_line l = call_line(m, most ? &endless : &longest, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
    tc_line_add(&l, "data=biased");
    static const struct sized columns = {2, {300000, 2}, 1, {0}};
    tc_line down = call_line(m, &columns, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
    tc_line_add(&down, "data=biased");
    static const struct sized rows = {
        2, {33, 262147}, 1, {1}}; /* so many that each is a thread's */
    tc_line across = call_line(m, &rows, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
    tc_line_add(&across, "data=biased");
    if (!m->record->adds)
        return;
    tc_emit(m, l);
    tc_emit(m, down);
    if (tc_has_large(m) && m->types[0] == TN_F32)
        tc_emit(m, across);
}

const tc_family tc_family_reduce = {"reduce", shapes, terms, fill, list, list_timed};
