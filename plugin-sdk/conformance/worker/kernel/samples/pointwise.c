/* Pointwise operators: all tensors have the output's sizes. */
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

#include <stdio.h>
#include <string.h>

static bool shapes(tc_invocation *call, char why[TC_MESSAGE]) {
    const tc_shape *first = NULL;
    for (uint32_t a = 0; a < call->record->n_args; a++) {
        if (call->record->args[a].kind != TC_ARG_TENSOR)
            continue;
        const tc_shape *s = &call->args[a].tensor.shape;
        if (first && !tc_same_sizes(first, s))
            return tc_why(why, TC_MESSAGE, "%s: all tensors have the same sizes", call->record->op);
        first = s;
    }
    for (uint32_t k = 0; k < call->record->n_outs; k++)
        call->outs[k].tensor.shape = tc_dense(first->rank, first->sizes);
    return true;
}

static int64_t terms(const tc_invocation *call) {
    (void)call;
    return 1;
}

/* ---- attributes -------------------------------------------------------------------------- */

/* Those with a point are for floating dtypes, those with more digits than f64 has for i64. */
static bool suits(const char *text, tn_dtype dtype) {
    size_t digits = 0, most = 0;
    for (const char *p = text; *p; p++) {
        digits = *p >= '0' && *p <= '9' ? digits + 1 : 0;
        most = digits > most ? digits : most;
    }
    return (tc_is_float(dtype) || !strchr(text, '.')) && (dtype == TN_I64 || most <= 15);
}

/* The k-th choice; "" for the first of an operator without attributes; NULL behind the last. */
static const char *choice(const tc_record *record, const tn_dtype *types, int k) {
    const char *const *choices = record->attributes;
    if (!choices[0])
        return k == 0 ? "" : NULL;
    if (k >= TC_MAX_ATTRIBUTES || !choices[k])
        return NULL;
    return suits(choices[k], types[0]) ? choices[k] : choice(record, types, k + 1);
}

/* ---- lines ------------------------------------------------------------------------------- */

/* A call in which argument `odd` (-1: each) lies in `layout`, and the others densely. */
static tc_line call_line(const tc_sampler *m, const char *attrs, int32_t rank, const int64_t *sizes,
                         int32_t odd, tc_layout layout) {
    tc_line l = tc_line_start(m);
    for (uint32_t a = 0; a < m->record->n_args; a++)
        if (m->record->args[a].kind == TC_ARG_TENSOR)
            tc_line_tensor(&l, m->record->args[a].name, rank, sizes,
                           odd < 0 || odd == (int32_t)a ? layout : TC_LAYOUT_DENSE);
    if (*attrs)
        tc_line_add(&l, "%s", attrs);
    return l;
}

static const struct sized {
    int32_t rank;
    int64_t sizes[TC_MAX_RANK];
} sized[] = {
    {1, {1}},
    {1, {5}},
    {1, {17}},
    {1, {64}},
    {1, {65}},
    {1, {1024}}, /* whole blocks, nothing is left over */
    {1, {4099}},
    {2, {3, 5}},
    {2, {33, 17}},
    {2, {128, 65}},
    {3, {2, 3, 4}},
    {3, {5, 1, 7}},
    {5, {2, 1, 3, 1, 2}},
    {6, {2, 2, 2, 2, 2, 2}},
    {12, {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2}},
};

/* So few elements that they may be alike. */
static void list_alike(const tc_sampler *m) {
    for (int k = 0; k < TC_MAX_ATTRIBUTES && m->record->alike[k]; k++) {
        tc_line l = call_line(m, m->record->alike[k], 1, TC_SIZES(5), -1, TC_LAYOUT_DENSE);
        if (suits(m->record->alike[k], m->types[0]))
            tc_emit_data(m, &l, 0);
    }
}

static uint32_t n_tensors(const tc_record *record) {
    uint32_t n = 0;
    for (uint32_t a = 0; a < record->n_args; a++)
        n += record->args[a].kind == TC_ARG_TENSOR;
    return n;
}

static void list_data(const tc_sampler *m) {
    static const int64_t n[] = {331}; /* more than every pair of special values, and a prime */
    for (int k = 0; choice(m->record, m->types, k); k++) {
        tc_line l = call_line(m, choice(m->record, m->types, k), 1, n, -1, TC_LAYOUT_DENSE);
        tc_emit_data(m, &l, 0);
        if (m->set == TC_SMOKE)
            return;
        tc_line_add(&l, "data=near");
        if (n_tensors(m->record) > 1 && tc_is_arithmetic(m->record) && !tc_is_float(m->types[0]) &&
            m->types[0] != TN_BOOL)
            tc_emit(m, l);
    }
}

/* All exponents, and the neighbours of each for functions of one number; where there are not so many
 * numbers, list_every has them all. And of these a far one alone, which a kernel meets late. */
static void list_exponents(const tc_sampler *m) {
    enum { FAR = 16000 };
    static const int64_t mixed[] = {256, 3}; /* rows of which some have no far number, for same/ */
    bool one = n_tensors(m->record) == 1, function = one && m->record->n_types == 1;
    int64_t n = m->set == TC_EXHAUSTIVE ? 262147 : function ? 16411 : 4099;
    if (!tc_is_float(m->types[0]) || !m->record->extremes ||
        (one && tc_dtype_bytes(m->types[0]) <= 2))
        return;
    for (int k = 0; k < 2 && choice(m->record, m->types, k); k++) {
        tc_line l = call_line(m, choice(m->record, m->types, k), 1, &n, -1, TC_LAYOUT_DENSE);
        tc_line_add(&l, "data=exponents");
        tc_emit(m, l);
        tc_line_add(&l, "only=%d drawn=far", FAR);
        if (function && k == 0 && m->types[0] == TN_F32)
            tc_emit(m, l);
        l = call_line(m, choice(m->record, m->types, k), 2, mixed, -1, TC_LAYOUT_DENSE);
        tc_line_add(&l, "data=exponents");
        if (m->record->ulps > 0 && k == 0 && m->types[0] == TN_F32) /* of f64 it proves nothing */
            tc_emit(m, l);
    }
}

static void list_layouts(const tc_sampler *m, const char *attrs, int32_t rank,
                         const int64_t *sizes) {
    for (int layout = TC_LAYOUT_SHIFTED; layout < TC_N_LAYOUTS; layout++) {
        if (layout != TC_LAYOUT_ZERO_ALL) /* of one value each: nothing could be mixed up */
            tc_emit(m, call_line(m, attrs, rank, sizes, -1, (tc_layout)layout));
        for (uint32_t a = 0; m->record->n_args > 1 && a < m->record->n_args; a++)
            if (m->record->args[a].kind == TC_ARG_TENSOR)
                tc_emit(m, call_line(m, attrs, rank, sizes, (int32_t)a, (tc_layout)layout));
        for (uint32_t k = 0; layout < TC_N_OUT_LAYOUTS && k < m->record->n_outs; k++) {
            tc_line out = call_line(m, attrs, rank, sizes, -1, TC_LAYOUT_DENSE);
            tc_line_out(&out, m, k, rank, sizes, (tc_layout)layout);
            tc_emit(m, out);
            tc_line both =
                call_line(m, attrs, rank, sizes, -1, (tc_layout)(TC_N_OUT_LAYOUTS - layout));
            tc_line_out(&both, m, k, rank, sizes, (tc_layout)layout);
            tc_emit(m, both);
        }
    }
}

/* Many dimensions of which each tensor is broadcast along others: `first` gives those of the first
 * argument, and each further one has them a dimension later. */
static void emit_crossed(const tc_sampler *m, const char *attrs, uint32_t first) {
    enum { RANK = 6 };
    static const int64_t sizes[RANK] = {2, 3, 2, 3, 2, 3};
    uint32_t zeros = first;
    tc_line l = tc_line_start(m);
    for (uint32_t a = 0; a < m->record->n_args; a++)
        if (m->record->args[a].kind == TC_ARG_TENSOR) {
            tc_line_broadcast(&l, m->record->args[a].name, RANK, sizes, zeros);
            zeros = (zeros << 1 | zeros >> (RANK - 1)) & ((1u << RANK) - 1);
        }
    if (*attrs)
        tc_line_add(&l, "%s", attrs);
    tc_emit(m, l);
}

static void list_crossed(const tc_sampler *m, const char *attrs) {
    for (uint32_t d = 0; d < 6; d++)
        emit_crossed(m, attrs, 1u << d);
    emit_crossed(m, attrs, 0x9); /* 0 and 3 */
    emit_crossed(m, attrs, 0x15);
    emit_crossed(m, attrs, 0x6);
}

/* One tensor's dimensions lie in another order than those of the others, each order of four: what is
 * sorted for one of them is not for the next. */
static void list_orders(const tc_sampler *m, const char *attrs) {
    enum { RANK = 4 };
    static const int64_t sizes[RANK] = {2, 3, 2, 4};
    for (int code = 1; code < RANK * RANK * RANK * RANK; code++) {
        int place[RANK] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6 & 3};
        if ((1 << place[0] | 1 << place[1] | 1 << place[2] | 1 << place[3]) != 15)
            continue;
        int64_t strides[RANK], stride = 1;
        for (int p = RANK - 1; p >= 0; p--) /* `place` says from the outermost on who lies there */
            for (int d = 0; d < RANK; d++)
                if (place[p] == d) {
                    strides[d] = stride;
                    stride *= sizes[d];
                }
        tc_line l = tc_line_start(m);
        int n = 0;
        for (uint32_t a = 0; a < m->record->n_args; a++)
            if (m->record->args[a].kind == TC_ARG_TENSOR)
                tc_line_strided(&l, m->record->args[a].name, RANK, sizes,
                                n++ == code % 2 || m->record->n_args == 1 ? strides : NULL);
        if (*attrs)
            tc_line_add(&l, "%s", attrs);
        tc_emit(m, l);
    }
}

/* Each way of being broadcast with each way that an output lies. */
static void list_spread(const tc_sampler *m, const char *attrs) {
    bool moves = m->record->n_types == 2 && m->types[0] == m->types[1];
    for (int in = TC_LAYOUT_ZERO_FIRST; in <= TC_LAYOUT_ZERO_LAST; in++)
        for (int out = 1; (moves || tc_has_large(m)) && out < TC_N_OUT_LAYOUTS; out++) {
            tc_line l = call_line(m, attrs, 2, TC_SIZES(7, 9), -1, (tc_layout)in);
            for (uint32_t k = 0; k < m->record->n_outs; k++)
                tc_line_out(&l, m, k, 2, TC_SIZES(7, 9), (tc_layout)out);
            tc_emit(m, l);
        }
}

/* Tiles of a transposition, of any size up to 64, cut at both edges, one of them by a single element; within more
 * dimensions, before and between those that change places. */
static void list_turned(const tc_sampler *m, const char *attrs) {
    enum { LONG = 127, SHORT = 66, RANK = 5 };
    for (int k = 0; k < 2; k++) { /* the longer side outside, and inside */
        int64_t outer = k ? SHORT : LONG, inner = k ? LONG : SHORT, matrix = outer * inner;
        const int64_t sizes[RANK] = {2, 2, outer, 3, inner};
        const int64_t strides[RANK] = {3 * matrix, 6 * matrix, 1, matrix, outer};
        tc_line l = tc_line_start(m);
        tc_line_strided(&l, m->record->args[0].name, RANK, sizes, strides);
        if (*attrs)
            tc_line_add(&l, "%s", attrs);
        tc_line_add(&l, "seed=1"); /* once is enough */
        tc_emit(m, l);
    }
}

/* Rows that are longer than a block, of which one tensor has a single one, or a single element each. */
static void list_rows(const tc_sampler *m, const char *attrs) {
    int k = 0;
    for (uint32_t a = 0; a < m->record->n_args; a++) {
        if (m->record->args[a].kind != TC_ARG_TENSOR)
            continue;
        tc_layout way = k++ % 2 ? TC_LAYOUT_ZERO_FIRST : TC_LAYOUT_ZERO_LAST;
        tc_line l = call_line(m, attrs, 2, TC_SIZES(3, 1201), (int32_t)a, way);
        tc_line_add(&l, "seed=1"); /* once is enough */
        tc_emit(m, l);
    }
}

/* One tensor with its own transpose, with one of its rows, one of its columns and itself a few elements later: they
 * begin at one address, or one in the midst of the other, and are not the same. */
static void list_within(const tc_sampler *m, const char *attrs) {
    static const char *const ways[][2] = {{"[19,19]", "[19,19]/[1,19]"},
                                          {"[19,19]", "[19,19]/[0,1]"},
                                          {"[19,19]", "[19,19]/[0,1]+57"},
                                          {"[19,19]", "[19,19]/[19,0]"},
                                          {"[331]", "[331]/[1]+7"}};
    uint32_t first = 0;
    while (tc_dtype_of(m->record->arg_types[first], m->types) != m->types[0])
        first++;
    for (int k = 0; k < TC_LENGTH(ways); k++) {
        tc_line l = tc_line_start(m);
        for (uint32_t a = 0; a < m->record->n_args; a++)
            if (m->record->args[a].kind == TC_ARG_TENSOR)
                tc_line_add(&l, "%s=%s", m->record->args[a].name, ways[k][a > first]);
        tc_line_add(&l, "%s within=%s", attrs, m->record->args[first].name);
        tc_emit(m, l);
    }
}

/* Each special value as a cell, against all of them: NaN, infinities, the divisor -1 and the exponent
 * 0.5 are looked for once in a call, if at all. Against many a one nothing can be told. */
static void list_cells(const tc_sampler *m, const char *attrs, const char *name) {
    enum { N_CELLS = 24 }; /* fill.c has no more */
    for (int k = 0; k < N_CELLS; k++) {
        tc_line l = call_line(m, attrs, 1, TC_SIZES(37), -1, TC_LAYOUT_DENSE);
        tc_line_add(&l, "scalar=%s data=special drawn=cell seed=%x", name, k);
        tc_emit(m, l);
    }
}

static bool are_alike(const tc_sampler *m, uint32_t a, uint32_t b) {
    const tc_arg *args = m->record->args;
    const int8_t *types = m->record->arg_types;
    return args[a].kind == TC_ARG_TENSOR && args[b].kind == TC_ARG_TENSOR &&
           tc_dtype_of(types[a], m->types) == tc_dtype_of(types[b], m->types);
}

/* One tensor given twice, or more often: NaN does not equal itself, nor is infinity less infinity 0. */
static void list_special_shared(const tc_sampler *m, const char *attrs) {
    for (uint32_t a = 0; a < m->record->n_args; a++)
        for (uint32_t b = a + 1; b < m->record->n_args; b++)
            if (are_alike(m, a, b) && tc_is_float(tc_dtype_of(m->record->arg_types[a], m->types))) {
                tc_line l = call_line(m, attrs, 1, TC_SIZES(361), -1, TC_LAYOUT_DENSE);
                tc_line_add(&l, "data=special drawn=special shared=%s", m->record->args[a].name);
                tc_emit(m, l);
                return;
            }
}

/* All pairs of special values where tensors lie apart, which kernels take another way; and each of them
 * as the one number of a row. */
static void list_special(const tc_sampler *m, const char *attrs) {
    static const tc_layout ways[] = {TC_LAYOUT_PADDED, TC_LAYOUT_STEPPED, TC_LAYOUT_REVERSED};
    for (int k = 0; m->types[0] != TN_BOOL && k < TC_LENGTH(ways); k++) {
        tc_line l = call_line(m, attrs, 2, TC_SIZES(18, 19), -1, ways[k]);
        tc_line_add(&l, "data=special drawn=special");
        tc_emit(m, l);
    }
    for (uint32_t a = 0; n_tensors(m->record) > 1 && a < m->record->n_args; a++) {
        const tc_arg *arg = &m->record->args[a];
        if (arg->kind != TC_ARG_TENSOR || tc_dtype_of(m->record->arg_types[a], m->types) == TN_BOOL)
            continue;
        tc_line l = call_line(m, attrs, 2, TC_SIZES(18, 90), (int32_t)a, TC_LAYOUT_ZERO_LAST);
        tc_line_add(&l, "data=special drawn=special");
        tc_emit(m, l);
    }
    list_special_shared(m, attrs);
}

/* In place, and with a scalar for a tensor, where the dtypes let it be. */
static void list_forms(const tc_sampler *m, const char *attrs) {
    static const int64_t sizes[] = {9, 7};
    for (uint32_t a = 0; a < m->record->n_args; a++) {
        const tc_arg *arg = &m->record->args[a];
        if (arg->kind != TC_ARG_TENSOR)
            continue;
        tn_dtype in = tc_dtype_of(m->record->arg_types[a], m->types);
        tn_dtype out = tc_dtype_of(m->record->out_types[0], m->types);
        for (int layout = 0; in == out && layout < TC_N_OUT_LAYOUTS; layout += 3) {
            tc_line l = call_line(m, attrs, 2, sizes, -1, (tc_layout)layout);
            tc_line_add(&l, "in-place=%s", arg->name);
            tc_emit(m, l);
            /* Where a kernel goes a second way for some values, and reads them again. */
            tc_line_add(&l, "data=special");
            if (layout == 0 && tc_is_float(m->types[0]))
                tc_emit(m, l);
        }
        tc_line l = call_line(m, attrs, 2, sizes, -1, TC_LAYOUT_DENSE);
        tc_line_add(&l, "scalar=%s", arg->name);
        if (m->record->n_args > 1)
            tc_emit(m, l);
        tc_line_add(&l, "data=wide"); /* one that arrives as an integer, with all its digits */
        bool any =
            tc_is_arithmetic(m->record) || m->record->out_types[0] == TN_KERNEL_FIXED(TN_BOOL);
        if (m->record->n_args > 1 && any && m->types[0] != TN_BOOL)
            tc_emit(m, l);
        if (m->record->n_args > 1 && in != TN_BOOL)
            list_cells(m, attrs, arg->name);
        l = call_line(m, attrs, 1, TC_SIZES(37), -1, TC_LAYOUT_DENSE);
        tc_line_add(&l, "scalar=%s data=digits drawn=cell", arg->name);
        if (m->record->n_args > 1 && (in == TN_F16 || in == TN_BF16) && tc_is_arithmetic(m->record))
            tc_emit(m, l);
        /* Long enough for calls of several threads to meet, each with a number of its own. */
        l = call_line(m, attrs, 2, TC_SIZES(300, 201), -1, TC_LAYOUT_DENSE);
        tc_line_add(&l, "scalar=%s", arg->name);
        if (m->record->n_args > 1 && m->types[0] == TN_F32)
            tc_emit(m, l);
        /* Rows apart, of which the second thread's part begins with the rest of one. */
        l = call_line(m, attrs, 2, TC_SIZES(67, 1000), -1, TC_LAYOUT_PADDED);
        tc_line_add(&l, "scalar=%s seed=1", arg->name);
        if (m->record->n_args > 1 && m->types[0] == TN_F32)
            tc_emit(m, l);
    }
}

/* All values that the dtype has, where these are few. */
static void list_every(const tc_sampler *m) {
    if (tc_dtype_bytes(m->types[0]) > 2 || m->types[0] == TN_BOOL)
        return;
    int64_t n = (int64_t)1 << (8 * tc_dtype_bytes(m->types[0]));
    tc_line l = call_line(m, choice(m->record, m->types, 0), 1, &n, -1, TC_LAYOUT_DENSE);
    tc_line_add(&l, "data=every");
    tc_emit(m, l);
}

/* A call that is nothing but a call, one that streams through memory, and for those that all
 * programs use, one that stays in caches, one that crosses rows and columns, and one that no cache
 * holds. */
static void list_timed(const tc_sampler *m) {
    const char *attrs = choice(m->record, m->types, 0);
    tc_emit(m, call_line(m, attrs, 1, TC_SIZES(1 << 22), -1, TC_LAYOUT_DENSE));
    if (!tc_has_large(m))
        return;
    tc_emit(m, call_line(m, attrs, 1, TC_SIZES(64), -1, TC_LAYOUT_DENSE));
    if (m->record->timed & TC_TIMED_SIZES) {
        tc_emit(m, call_line(m, attrs, 1, TC_SIZES(1 << 16), -1, TC_LAYOUT_DENSE));
        tc_emit(m, call_line(m, attrs, 2, TC_SIZES(1024, 1024), 0, TC_LAYOUT_REVERSED));
    }
    if (m->record->timed & TC_TIMED_HUGE)
        tc_emit(m, call_line(m, attrs, 1, TC_SIZES(1 << 24), -1, TC_LAYOUT_DENSE));
}

static void list(const tc_sampler *m) {
    const char *attrs = choice(m->record, m->types, 0);
    list_data(m);
    if (m->set == TC_SMOKE) {
        tc_emit(m, call_line(m, attrs, 2, TC_SIZES(5, 7), -1, TC_LAYOUT_STEPPED));
        if (m->record->n_types == 2) /* copy, by which all others are brought into shape */
            tc_emit(m, call_line(m, attrs, 2, TC_SIZES(5, 7), -1, TC_LAYOUT_PADDED));
        return;
    }
    for (int k = 0; k < TC_LENGTH(sized); k++)
        tc_emit(m, call_line(m, attrs, sized[k].rank, sized[k].sizes, -1, TC_LAYOUT_DENSE));
    list_alike(m);
    list_exponents(m);
    tc_emit(m, call_line(m, attrs, 1, TC_SIZES(tc_split(m)), -1, TC_LAYOUT_DENSE));
    if (tc_has_large(m)) {
        tc_emit(m, call_line(m, attrs, 2, TC_SIZES(257, 515), -1, TC_LAYOUT_PADDED));
        tc_emit(m, call_line(m, attrs, 2, TC_SIZES(300, 290), 0, TC_LAYOUT_REVERSED));
        /* More rows than a grid of a GPU has blocks in its second dimension. */
        tc_emit(m, call_line(m, attrs, 2, TC_SIZES(65541, 2), -1, TC_LAYOUT_STEPPED));
        /* And rows long enough to be taken one by one: how they are dealt out is the same for all. */
        if ((m->record->timed & TC_TIMED_SIZES) || m->set == TC_EXHAUSTIVE) {
            tc_line rows = call_line(m, attrs, 2, TC_SIZES(33000, 64), -1, TC_LAYOUT_PADDED);
            tc_line_add(&rows, "seed=1"); /* once is enough */
            tc_emit(m, rows);
        }
        for (int32_t rank = 0; rank <= TC_MAX_RANK; rank++) /* none of them joins another */
            tc_emit(m, call_line(m, attrs, rank, TC_SIZES(2, 1, 3, 2, 1, 2, 2, 1, 2, 1, 3, 2), -1,
                                 TC_LAYOUT_REVERSED));
        for (int32_t rank = 9; rank <= TC_MAX_RANK; rank++) {
            tc_line l =
                call_line(m, attrs, rank, TC_SIZES(TC_ALL_DIMENSIONS), -1, TC_LAYOUT_REVERSED);
            tc_emit_once(m, l);
        }
        tc_line beyond = call_line(m, attrs, 1, TC_SIZES(TC_BEYOND), -1, TC_LAYOUT_DENSE);
        if (m->record->timed & TC_TIMED_SIZES)
            tc_emit_once(m, beyond);
    }
    /* Conversions take another way than copies, also when they are split among threads. */
    if (m->record->n_types == 2 && m->types[0] == TN_F32 &&
        (m->types[1] == TN_F16 || m->types[1] == TN_I32)) {
        tc_emit(m, call_line(m, attrs, 2, TC_SIZES(257, 515), -1, TC_LAYOUT_PADDED));
        tc_emit(m, call_line(m, attrs, 2, TC_SIZES(300, 290), 0, TC_LAYOUT_REVERSED));
    }
    list_layouts(m, attrs, 2, TC_SIZES(7, 9));
    list_spread(m, attrs);
    if (m->record->n_types == 2 && m->types[0] == m->types[1])
        list_turned(m, attrs);
    if (n_tensors(m->record) > 1)
        list_rows(m, attrs), list_within(m, attrs);
    list_special(m, attrs);
    tc_emit(m, call_line(m, attrs, 4, TC_SIZES(5, 1, 7, 1), -1, TC_LAYOUT_SHIFTED));
    /* Rows that are longer than what kernels take at a time; more dimensions than they count, none
     * of which joins another; tiles that are cut at both edges. */
    tc_emit(m, call_line(m, attrs, 2, TC_SIZES(2, 601), -1, TC_LAYOUT_STEPPED));
    tc_emit(m, call_line(m, attrs, 7, TC_SIZES(2, 3, 2, 2, 3, 2, 2), -1, TC_LAYOUT_REVERSED));
    tc_emit(m, call_line(m, attrs, 2, TC_SIZES(37, 35), -1, TC_LAYOUT_REVERSED));
    for (uint32_t a = 0; m->record->n_args > 1 && a < m->record->n_args; a++)
        if (m->record->args[a].kind == TC_ARG_TENSOR)
            tc_emit(m, call_line(m, attrs, 1, TC_SIZES(65), (int32_t)a, TC_LAYOUT_ZERO_ALL));
    list_forms(m, attrs);
    if (tc_has_large(m))
        list_crossed(m, attrs), list_orders(m, attrs);
    if (m->record->n_args == 1)
        list_every(m);
    if (m->set != TC_EXHAUSTIVE)
        return;
    list_layouts(m, attrs, 4, TC_SIZES(3, 2, 5, 4));
    for (int k = 0; k < 16; k++) {
        tc_line l =
            call_line(m, attrs, 2, TC_SIZES(300, 257), -1, (tc_layout)(k % TC_LAYOUT_ZERO_ALL));
        tc_line_add(&l, "salt=%d data=%s", k, tc_data_name((tc_data)(k % 3)));
        tc_emit(m, l);
    }
}

const tc_family tc_family_pointwise = {"pointwise", shapes, terms, NULL, list, list_timed};
