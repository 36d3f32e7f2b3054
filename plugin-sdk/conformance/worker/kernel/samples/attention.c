/* Attention and its gradients. */
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool has_sizes(tc_invocation *call, const char *name, int32_t rank, const int64_t *sizes) {
    const tc_value *v = tc_invocation_arg(call, name);
    tc_shape s = tc_dense(rank, sizes);
    return !v || v->none || tc_same_sizes(&v->tensor.shape, &s);
}

static bool shapes(tc_invocation *call, char why[TC_MESSAGE]) {
    enum { MOST_KEYS = 8192 }; /* of the reference */
    const tc_shape *q = &tc_invocation_arg(call, "query")->tensor.shape;
    const tc_shape *k = &tc_invocation_arg(call, "key")->tensor.shape;
    const tc_shape *v = &tc_invocation_arg(call, "value")->tensor.shape;
    if ((call->types[0] == TN_F64) != (call->types[1] == TN_F64))
        return tc_why(why, TC_MESSAGE, "A is f64 where T is f64, else f32");
    if (q->rank != 4 || k->rank != 4 || v->rank != 4 || k->sizes[1] == 0 ||
        q->sizes[1] % k->sizes[1] != 0 || q->sizes[3] == 0 || k->sizes[2] == 0 ||
        k->sizes[2] > MOST_KEYS ||
        !has_sizes(call, "key", 4, TC_SIZES(q->sizes[0], k->sizes[1], k->sizes[2], q->sizes[3])) ||
        !has_sizes(call, "value", 4, TC_SIZES(q->sizes[0], k->sizes[1], k->sizes[2], v->sizes[3])))
        return tc_why(
            why, TC_MESSAGE,
            "query is [B, H, L, E], key [B, G, S, E], value [B, G, S, V], H a multiple of "
            "G, S at most %d",
            MOST_KEYS);
    const int64_t result[] = {q->sizes[0], q->sizes[1], q->sizes[2], v->sizes[3]};
    const int64_t scores[] = {q->sizes[0], q->sizes[1], q->sizes[2], k->sizes[2]};
    if (!has_sizes(call, "grad_output", 4, result) || !has_sizes(call, "output", 4, result) ||
        !has_sizes(call, "logsumexp", 3, result) || !has_sizes(call, "attn_mask", 4, scores))
        return tc_why(why, TC_MESSAGE,
                      "grad_output and output are [B, H, L, V], logsumexp is [B, H, L], attn_mask "
                      "[B, H, L, S]");
    if (call->record->n_outs == 2) {
        call->outs[0].tensor.shape = tc_dense(4, result);
        call->outs[1].tensor.shape = tc_dense(3, result);
        return true;
    }
    call->outs[0].tensor.shape = tc_dense(4, q->sizes);
    call->outs[1].tensor.shape = tc_dense(4, k->sizes);
    call->outs[2].tensor.shape = tc_dense(4, v->sizes);
    return true;
}

static int64_t terms(const tc_invocation *call) {
    (void)call;
    return 1000; /* nothing here is exact */
}

/* So far that a kernel may think that nothing is there, and near enough for digits to be left. */
static tc_real far_below(tn_dtype dtype) {
    return dtype == TN_F64 ? -1e9L : -60000;
}

/* What hides a key: -infinity, or the lowest number, as many write it. A query of which all keys have
 * that has scores like any other, though they are far from 0. */
static tc_real hiding(tn_dtype dtype, int64_t query, bool backward) {
    bool wide = dtype == TN_F64;
    return query % 10 == 8  ? backward ? far_below(dtype) : (wide ? -1e300L : -1e38L)
           : query % 5 == 1 ? -tc_largest(wide ? TN_F64 : TN_F32)
                            : -INFINITY;
}

/* Has each query a row of attn_mask that nothing else has filled? */
static bool is_masked_alone(tc_invocation *call) {
    const tc_value *mask = tc_invocation_arg(call, "attn_mask");
    return !mask->none && tc_is_dense(&mask->tensor.shape) && !call->sharing && !call->inner;
}

/* Of each five queries the fourth sees no key by the mask, the third the last one alone; a quarter of the
 * others' are hidden. logsumexp of those that see none is -infinity, and as far from 0 as the scores are. */
static bool fill(tc_invocation *call, uint32_t arg, tc_random *r) {
    const tc_arg *a = &call->record->args[arg];
    tc_operand *o = &call->args[arg].tensor;
    bool mask = strcmp(a->name, "attn_mask") == 0, backward = call->record->n_outs == 3;
    bool masked = !tc_invocation_arg(call, "attn_mask")->none, alone = is_masked_alone(call);
    if (!mask && strcmp(a->name, "logsumexp") != 0)
        return false;
    int64_t n = mask ? o->shape.sizes[3] : 1;
    int64_t l = mask && o->shape.strides[2] == 0 ? 1 : o->shape.sizes[2]; /* one row for all */
    for (int64_t i = 0; i < o->shape.numel; i++) {
        int64_t query = i / n % l, key = i % n;
        bool hidden = query % 5 == 3 || (query % 5 == 2 ? key != n - 1 : tc_below(r, 4) == 0);
        tc_real x = tc_uniform(r, (tc_real)a->low, (tc_real)a->high);
        o->values[i].f = mask ? (hidden ? hiding(o->dtype, query, backward) : x)
                         : masked && query % 10 == 3 ? -INFINITY
                         : alone && query % 10 == 8  ? far_below(o->dtype) + x
                                                     : x;
    }
    return true;
}

static const struct sized {
    int64_t b, h, g, l, s, e, v;
} sized[] = {
    {3, 2, 1, 5, 7, 4, 4},       {2, 2, 2, 9, 6, 3, 5},       {1, 3, 3, 17, 33, 16, 16},
    {1, 2, 2, 65, 63, 8, 8},     {1, 1, 1, 64, 64, 64, 64},   {2, 4, 2, 31, 129, 17, 17},
    {1, 2, 1, 130, 65, 40, 24},  {1, 1, 1, 1, 200, 64, 64},   {2, 3, 1, 7, 1, 5, 9},
    {1, 1, 1, 33, 40, 160, 160}, {1, 2, 2, 16, 80, 128, 128}, {2, 1, 1, 129, 15, 1, 1},
    {1, 6, 2, 3, 20, 80, 96},    {1, 1, 1, 20, 257, 31, 33},  {2, 4, 2, 1, 70, 16, 24},
};
enum { N_LAID_OUT = 2, N_WAYS = 6 };

/* How attn_mask comes: left out, whole, one for all batches and heads, one row for all queries; and
 * behind these expanded along every choice of dimensions, a bit for each. */
enum { NO_MASK, WHOLE, SHARED, ROW, N_MASKS, EXPANDED = 16 };

static uint32_t expanded_along(int mask) {
    return mask >= EXPANDED ? (uint32_t)(mask - EXPANDED) : mask == ROW ? 7 : 3;
}

/* A tensor lies as [B, L, H, N], or in another way of tc_layout. */
static void tensor(tc_line *l, const char *name, int32_t rank, const int64_t *s, int way) {
    int64_t n = rank == 4 ? s[3] : 1;
    if (way == TC_LAYOUT_ZERO_FIRST)
        tc_line_strided(l, name, rank, s, TC_SIZES(s[2] * s[1] * n, n, s[1] * n, 1));
    else
        tc_line_tensor(l, name, rank, s, (tc_layout)way);
}

static tc_line call_line(const tc_sampler *m, const struct sized *s, int mask, bool causal,
                         const char *scale, const char *odd, int way) {
    tc_line l = tc_line_start(m);
    for (uint32_t a = 0; a < m->record->n_args; a++) {
        const char *name = m->record->args[a].name;
        int lies = !odd || strcmp(odd, name) == 0 ? way : 0;
        if (strcmp(name, "attn_mask") == 0 && mask == NO_MASK)
            tc_line_add(&l, "attn_mask=none");
        else if (strcmp(name, "attn_mask") == 0 && mask != WHOLE)
            tc_line_broadcast(&l, name, 4, TC_SIZES(s->b, s->h, s->l, s->s), expanded_along(mask));
        else if (strcmp(name, "attn_mask") == 0)
            tensor(&l, name, 4, TC_SIZES(s->b, s->h, s->l, s->s), lies);
        else if (strcmp(name, "is_causal") == 0)
            tc_line_add(&l, "is_causal=%s", causal ? "true" : "false");
        else if (strcmp(name, "scale") == 0)
            tc_line_add(&l, "scale=%s", scale);
        else if (strcmp(name, "key") == 0)
            tensor(&l, name, 4, TC_SIZES(s->b, s->g, s->s, s->e), lies);
        else if (strcmp(name, "value") == 0)
            tensor(&l, name, 4, TC_SIZES(s->b, s->g, s->s, s->v), lies);
        else if (strcmp(name, "logsumexp") == 0)
            tensor(&l, name, 3, TC_SIZES(s->b, s->h, s->l), lies);
        else
            tensor(&l, name, 4,
                   TC_SIZES(s->b, s->h, s->l, strcmp(name, "query") == 0 ? s->e : s->v), lies);
    }
    return l;
}

/* Output k lies in another way. */
static void list_out(const tc_sampler *m, const struct sized *s, uint32_t k, int way) {
    bool forward = m->record->n_outs == 2;
    tc_line l = call_line(m, s, NO_MASK, true, "0.5", "none", 0);
    const int64_t query[] = {s->b, s->h, s->l, forward ? s->v : s->e};
    const int64_t key[] = {s->b, s->g, s->s, k == 1 ? s->e : s->v};
    char name[TC_OUT_NAME];
    tensor(&l, tc_record_out(m->record, k, name), forward && k == 1 ? 3 : 4,
           forward || k == 0 ? query : key, way);
    tc_emit(m, l);
}

static bool is_of_one_kind(const tc_sampler *m) {
    return (m->types[0] == TN_F64) == (m->types[1] == TN_F64);
}

/* As networks have them, one query at a time, and little more than a call. */
static void list_timed(const tc_sampler *m) {
    static const struct sized timed[] = {
        {8, 8, 8, 256, 256, 64, 64}, {8, 8, 8, 1, 512, 64, 64}, {1, 2, 2, 16, 16, 64, 64}};
    for (int k = 0; is_of_one_kind(m) && k < (tc_has_large(m) ? TC_LENGTH(timed) : 1); k++)
        tc_emit(m, call_line(m, &timed[k], NO_MASK, k == 0, "0.125", NULL, 0));
}

static void list_layouts(const tc_sampler *m, const struct sized *s) {
    for (int way = 1; way < N_WAYS; way++) {
        tc_emit(m, call_line(m, s, WHOLE, way % 2, "0.5", NULL, way));
        for (uint32_t a = 0; a < m->record->n_args; a++)
            if (m->record->args[a].kind == TC_ARG_TENSOR)
                tc_emit(m, call_line(m, s, WHOLE, false, "0.5", m->record->args[a].name, way));
        for (uint32_t k = 0; k < m->record->n_outs; k++)
            list_out(m, s, k, way);
    }
}

/* Are calls of that mask made causal, too? Of a whole one also some of so many queries and keys that parts of
 * them lie before the diagonal. */
static bool is_both(int k, int mask) {
    return k < 3 || mask == NO_MASK || (mask == WHOLE && k % 3 == 0);
}

/* More queries than a kernel takes at once, and more keys, each with a mask of its own. */
static void list_masked_blocks(const tc_sampler *m) {
    static const struct sized some[] = {{1, 1, 1, 530, 70, 5, 6}, {1, 2, 1, 20, 530, 6, 5}};
    for (int k = 0; k < 2 * TC_LENGTH(some); k++) {
        tc_line l = call_line(m, &some[k / 2], k % 2 ? WHOLE : SHARED, k % 2, "0.5", NULL, 0);
        tc_line_add(&l, "seed=1"); /* for this class alone */
        tc_emit(m, l);
    }
}

static void list(const tc_sampler *m) {
    /* Of the fourth forms.c turns all tensors, one by one. */
    static const struct sized large[] = {{1, 2, 1, 515, 300, 64, 64}, {1, 1, 1, 3, 4100, 20, 20},
                                         {33, 5, 1, 2, 3, 2, 2},      {2, 2, 2, 26, 37, 12, 8},
                                         {2, 2, 2, 260, 70, 96, 32},  {1, 4, 4, 66, 520, 72, 72},
                                         {2, 3, 3, 140, 90, 24, 200}, {65541, 1, 1, 1, 2, 1, 1}};
    static const char *const scales[] = {"0.125", "1", "-0.3", "0"};
    static const struct sized tiles = {1, 2, 1, 70, 67, 9, 10}; /* the second of each, apart */
    uint32_t never = TC_DATA_BIT(TC_DATA_EXACT), none = TC_DATA_BIT(TC_DATA_SPECIAL);
    if (!is_of_one_kind(m))
        return;
    for (int k = 0; tc_has_large(m) && k < TC_LENGTH(large); k++)
        tc_emit(m, call_line(m, &large[k], k == 1 ? ROW : NO_MASK, k % 2 == 0, "0.125", NULL, 0));
    for (int way = 1; tc_has_large(m) && way < N_WAYS; way++)
        tc_emit(m, call_line(m, &tiles, WHOLE, way % 2, "0.5", NULL, way));
    for (uint32_t k = 0; tc_has_large(m) && k < m->record->n_outs; k++)
        list_out(m, &tiles, k, TC_LAYOUT_STEPPED);
    for (int k = 0; k < (m->set == TC_SMOKE ? 2 : TC_LENGTH(sized)); k++) {
        const struct sized *s = &sized[k];
        tc_line plain = call_line(m, s, NO_MASK, false, "0.25", NULL, 0);
        if (k < 3 && s->b * s->h > 2) /* a NaN spoils a head */
            tc_emit_data(m, &plain, never);
        else
            tc_emit(m, plain);
        for (int mask = 0; mask < N_MASKS; mask++)
            for (int causal = mask == NO_MASK; causal < (is_both(k, mask) ? 2 : 1); causal++) {
                tc_line l = call_line(m, s, mask, causal, k == 2 ? "1" : "0.25", NULL, 0);
                if (k == 1 && mask == WHOLE)
                    tc_emit_data(m, &l, never | none);
                else
                    tc_emit(m, l);
            }
        for (int i = 0; k == 0 && i < TC_LENGTH(scales); i++) {
            /* with 0 the gradients of query and key are 0 */
            if (m->record->n_outs == 2 || strcmp(scales[i], "0") != 0)
                tc_emit(m, call_line(m, s, NO_MASK, i % 2, scales[i], NULL, 0));
        }
        /* such as [B, 1, 1, S], of keys that are padding, and one for each head */
        for (int along = 1; k == 0 && m->set != TC_SMOKE && along < 16; along++)
            tc_emit(m, call_line(m, s, EXPANDED + along, along % 3 == 0, "0.25", NULL, 0));
        if (k < N_LAID_OUT && m->set != TC_SMOKE)
            list_layouts(m, s);
    }
    if (m->set != TC_SMOKE)
        list_masked_blocks(m);
}

const tc_family tc_family_attention = {"attention", shapes, terms, fill, list, list_timed};
