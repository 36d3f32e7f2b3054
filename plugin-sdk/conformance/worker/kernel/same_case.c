/* same/OP how=…: metamorphic tests, two ways of one call that must give the same. No oracle is
 * asked, so there is no tolerance for rounding.
 *
 *     dense          tensors as the line has them, and the same values densely
 *     again          the same call three times, with other bytes round the tensors and in outputs
 *     slices         the whole batch, and slices of it one by one
 *     threads        four threads with some calls each, at once on one stream
 *     streams        some calls on each of three streams, where there are streams
 *     turns          the call, and others that differ from it in one thing, in turns
 *     host-threads   on one and on several host threads, where the plugin has tenon.threads/1
 */
#include "plugin-sdk/conformance/worker/suite.h"
#include "plugin-sdk/conformance/worker/kernel/caller.h"
#include "plugin-sdk/conformance/worker/kernel/same.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- running and comparing --------------------------------------------------------------- */

/* Runs a call that must succeed and leave everything else alone. */
static bool run_call(tc_subject *s, tc_invocation *call, tc_result *result, tc_verdict *out) {
    if (!tc_execute(s, call, result, out))
        return false;
    if (!tc_check_success(call, result, out))
        return false;
    tc_check_untouched(call, result, out);
    return out->status == TC_PASS;
}

static void *elements(tc_arena *arena, const tc_operand *o, const unsigned char *image) {
    void *bytes = tc_arena_bytes(arena, (uint64_t)o->shape.numel * tc_dtype_bytes(o->dtype));
    if (bytes)
        tc_gather_elements(o, image, bytes);
    return bytes;
}

/* The bits of two runs of elements, from element `first` of `a` on. NaNs are all the same, and numbers below
 * `least` in size. */
static bool same_bits(tc_real least, const tc_operand *a, const void *a_bytes, int64_t first,
                      const tc_operand *b, const void *b_bytes, int64_t *out_at) {
    uint64_t size = tc_dtype_bytes(a->dtype);
    if (memcmp((const char *)a_bytes + (uint64_t)first * size, b_bytes,
               (uint64_t)b->shape.numel * size) == 0)
        return true;
    for (int64_t i = 0; i < b->shape.numel; i++) {
        if (memcmp((const char *)a_bytes + (uint64_t)(first + i) * size,
                   (const char *)b_bytes + (uint64_t)i * size, size) == 0)
            continue;
        tc_number x = tc_load(a->dtype, a_bytes, first + i), y = tc_load(b->dtype, b_bytes, i);
        if (tc_is_float(a->dtype) && x.f != x.f && y.f != y.f)
            continue;
        if (fabsl(x.f) < least && fabsl(y.f) < least)
            continue;
        *out_at = i;
        return false;
    }
    return true;
}

void tc_check_same(tc_arena *arena, const tc_invocation *a, const tc_result *ra, int64_t first,
                   const tc_invocation *b, const tc_result *rb, uint32_t k,
                   tn_requirement requirement, const char *difference, tc_verdict *out) {
    const tc_operand *x = &a->outs[k].tensor, *y = &b->outs[k].tensor;
    const void *p = elements(arena, x, ra->outs[k]), *q = elements(arena, y, rb->outs[k]);
    int64_t at;
    /* What may be zero may be in one way and not in another, but of one way no promise is made twice. */
    bool may_be_zero = (a->flushes & TN_DTYPES_FLOAT & TN_DTYPE_BIT(x->dtype)) &&
                       requirement != TNP_KERNEL_DETERMINISTIC;
    if (!p || !q)
        TC_CASE_ERROR(out, "the host has no memory for a case of this size");
    else if (!same_bits(may_be_zero ? tc_smallest_normal(x->dtype) : 0, x, p, first, y, q, &at))
        tc_verdict_set(out, TC_FAIL, requirement,
                       "%s: output %u differs %s, first at element %lld: %.9Lg and %.9Lg",
                       a->record->op, k, difference, (long long)first + at,
                       tc_is_float(x->dtype) ? tc_load(x->dtype, p, first + at).f
                                             : (tc_real)tc_load(x->dtype, p, first + at).i,
                       tc_is_float(y->dtype) ? tc_load(y->dtype, q, at).f
                                             : (tc_real)tc_load(y->dtype, q, at).i);
}

/* ---- the ways ---------------------------------------------------------------------------- */

static bool fill(tc_comparison *m, tc_invocation *call, uint64_t surroundings) {
    char why[TC_MESSAGE];
    if (tc_invocation_fill_inputs(call, surroundings, why))
        return true;
    return TC_CASE_ERROR(m->out, "%s", why);
}

static bool fill_and_compute(tc_comparison *m, tc_invocation *call, uint64_t surroundings) {
    char why[TC_MESSAGE];
    if (tc_invocation_fill(call, surroundings, why))
        return true;
    return TC_CASE_ERROR(m->out, "%s", why);
}

static bool fill_like(tc_comparison *m, const tc_invocation *like, tc_invocation *call,
                      uint64_t surroundings) {
    char why[TC_MESSAGE];
    if (tc_invocation_fill_like(like, call, surroundings, why))
        return true;
    return TC_CASE_ERROR(m->out, "%s", why);
}

/* The line's call once more. */
static bool parse(tc_comparison *m, tc_invocation *call) {
    char why[TC_MESSAGE];
    if (!tc_invocation_parse(m->c, m->arena, call, why))
        return TC_CASE_ERROR(m->out, "%s", why);
    call->flushes = m->subject->flushes;
    return true;
}

bool tc_same_call(tc_comparison *m, tc_invocation *call, tc_result *result, uint64_t surroundings) {
    if (!parse(m, call) || !(m->is_filled ? fill_like(m, &m->filled, call, surroundings)
                             : m->judged  ? fill_and_compute(m, call, surroundings)
                                          : fill(m, call, surroundings)))
        return false;
    if (!m->is_filled)
        m->filled = *call;
    m->is_filled = true;
    return run_call(m->subject, call, result, m->out);
}

static void as_dense(tc_comparison *m) {
    tc_invocation dense;
    tc_result laid_out, plain;
    if (!parse(m, &dense))
        return;
    for (uint32_t a = 0; a < dense.record->n_args; a++)
        if (dense.record->args[a].kind == TC_ARG_TENSOR && !dense.args[a].none)
            dense.args[a].tensor.shape =
                tc_dense(dense.args[a].tensor.shape.rank, dense.args[a].tensor.shape.sizes);
    for (uint32_t k = 0; k < dense.record->n_outs; k++)
        dense.outs[k].tensor.shape =
            tc_dense(dense.outs[k].tensor.shape.rank, dense.outs[k].tensor.shape.sizes);
    dense.in_place = dense.shared = dense.scalar = dense.within = -1;
    dense.sharing = dense.inner = 0;
    if (!tc_claimed_kernel(m->subject, &dense, m->out) || !fill(m, &m->call, m->call.seed) ||
        !fill_like(m, &m->call, &dense, m->call.seed + 1))
        return;
    if (!run_call(m->subject, &m->call, &laid_out, m->out) ||
        !run_call(m->subject, &dense, &plain, m->out))
        return;
    tn_requirement requirement = m->call.in_place >= 0 ? TNP_KERNEL_IN_PLACE
                                 : m->call.scalar >= 0 ? TNP_KERNEL_SCALARS
                                 : tc_needed_flags(&m->call) == TN_KERNEL_BROADCAST
                                     ? TNP_KERNEL_BROADCAST
                                     : TNP_KERNEL_STRIDED;
    for (uint32_t k = 0; k < dense.record->n_outs; k++)
        tc_check_same(m->arena, &m->call, &laid_out, 0, &dense, &plain, k, requirement,
                      "between tensors as the line has them and dense ones of the same values",
                      m->out);
}

static void again(tc_comparison *m) {
    enum { TIMES = 3 };
    tc_invocation calls[TIMES];
    tc_result results[TIMES];
    if (!(m->kernel->flags & TN_KERNEL_DETERMINISTIC)) {
        tc_verdict_set(m->out, TC_UNSUPPORTED, TNP_NONE,
                       "the kernel does not declare TN_KERNEL_DETERMINISTIC");
        return;
    }
    for (int i = 0; i < TIMES; i++)
        if (!tc_same_call(m, &calls[i], &results[i], m->call.seed + 1000 * (uint64_t)i))
            return;
    for (int i = 1; i < TIMES; i++)
        for (uint32_t k = 0; k < m->call.record->n_outs; k++)
            tc_check_same(
                m->arena, &calls[0], &results[0], 0, &calls[i], &results[i], k,
                TNP_KERNEL_DETERMINISTIC,
                "from one run to the next, with other bytes round the tensors and in the outputs",
                m->out);
}

/* ---- slices ------------------------------------------------------------------------------ */

/* Is the argument cut along its first dimension, too? Those that are the same for all slices are
 * not. */
static bool is_cut(const tc_arg *arg) {
    static const char *const whole[] = {"weight", "bias"};
    for (int i = 0; i < 2; i++)
        if (strcmp(arg->name, whole[i]) == 0)
            return false;
    return arg->kind == TC_ARG_TENSOR;
}

/* Can the first dimension be cut: is each index along it a call of its own? */
static bool can_cut(const tc_invocation *call) {
    int32_t dim = tc_record_arg(call->record, "dim"), rows = tc_record_arg(call->record, "n_dims");
    if (!call->record->batch)
        return false;
    const tc_shape *first = &call->args[0].tensor.shape;
    if (first->rank < 2 || first->sizes[0] < 2)
        return false;
    if (rows >= 0 && call->args[rows].i >= first->rank)
        return false;
    if (dim >= 0 && (call->record->args[dim].kind == TC_ARG_INTS ? call->args[dim].ints[0] == 0
                                                                 : call->args[dim].i == 0))
        return false;
    for (uint32_t a = 0; a < call->record->n_args; a++)
        if (is_cut(&call->record->args[a]) && !call->args[a].none &&
            call->args[a].tensor.shape.sizes[0] != first->sizes[0])
            return false;
    return true;
}

/* Index `at` of the first dimension as a dense call of its own. */
static bool cut(tc_comparison *m, int64_t at, tc_invocation *slice) {
    if (!parse(m, slice))
        return false;
    for (uint32_t a = 0; a < slice->record->n_args; a++) {
        tc_value *v = &slice->args[a];
        if (v->none)
            continue;
        if (is_cut(&slice->record->args[a])) {
            v->tensor.shape.sizes[0] = 1;
            v->tensor.shape = tc_dense(v->tensor.shape.rank, v->tensor.shape.sizes);
        }
        if (strcmp(slice->record->args[a].name, "input_size") == 0)
            v->ints[0] = 1;
    }
    for (uint32_t k = 0; k < slice->record->n_outs; k++) {
        tc_shape *s = &slice->outs[k].tensor.shape;
        s->sizes[0] = 1;
        *s = tc_dense(s->rank, s->sizes);
    }
    if (!fill(m, slice, m->call.seed + 77))
        return false;
    for (uint32_t a = 0; a < slice->record->n_args; a++) {
        tc_operand *to = &slice->args[a].tensor;
        if (slice->record->args[a].kind != TC_ARG_TENSOR || slice->args[a].none)
            continue;
        int64_t first = is_cut(&slice->record->args[a]) ? at * to->shape.numel : 0;
        memcpy(to->values, m->call.args[a].tensor.values + first,
               (size_t)to->shape.numel * sizeof *to->values);
        tc_operand_settle(to);
    }
    return true;
}

static void slices(tc_comparison *m) {
    tc_result whole, part;
    if (!can_cut(&m->call)) {
        TC_CASE_ERROR(m->out, "this call cannot be cut along its first dimension");
        return;
    }
    if (!fill(m, &m->call, m->call.seed) || !run_call(m->subject, &m->call, &whole, m->out))
        return;
    int64_t n = m->call.args[0].tensor.shape.sizes[0];
    /* By chance no far number stands beside near ones. */
    bool each = m->call.data == TC_DATA_EXPONENTS;
    for (int64_t at = 0; at<n; at += n> 3 && !each ? n / 3 : 1) {
        tc_invocation slice;
        if (!cut(m, at, &slice) || !run_call(m->subject, &slice, &part, m->out))
            return;
        for (uint32_t k = 0; k < slice.record->n_outs; k++)
            tc_check_same(m->arena, &m->call, &whole, at * slice.outs[k].tensor.shape.numel, &slice,
                          &part, k, TNP_KERNEL_RESULT, "between the whole batch and a slice of it",
                          m->out);
    }
}

/* ---- the class --------------------------------------------------------------------------- */

static const struct way {
    const char *name;
    void (*run)(tc_comparison *m);
} ways[] = {{"dense", as_dense},          {"again", again},
            {"slices", slices},           {"threads", tc_same_threads},
            {"streams", tc_same_streams}, {"host-threads", tc_same_host_threads},
            {"turns", tc_same_turns}};

static const struct way *find_way(const char *name) {
    for (size_t i = 0; name && i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return NULL;
}

static void run_here(const tc_case *c, const tc_options *options, tc_verdict *out) {
    tc_arena arena = {NULL};
    tc_comparison m = {.c = c, .arena = &arena, .out = out};
    const struct way *way = find_way(tc_case_get(c, "how"));
    m.subject = tc_subject_shared(options, out);
    if (!m.subject)
        return;
    if (!way)
        TC_CASE_ERROR(out, "how= is dense, again, slices, threads, streams, turns or host-threads");
    else if (parse(&m, &m.call) && (m.kernel = tc_claimed_kernel(m.subject, &m.call, out)))
        way->run(&m);
    tc_check_host(out);
    tc_arena_finish(&arena);
}

static void run(const tc_case *c, const tc_options *options, tc_verdict *out) {
    if (tc_subject_shared(options, out))
        tc_run_on_small_stack(run_here, c, options, out);
}

/* ---- lines: those of kernel/, where a way makes sense ------------------------------------ */

/* Elements: work that is split among threads, if any is; and so much that a call takes as long as hundreds
 * of others, of which every fourth does. */
enum { LARGE = 20000, HUGE = 100000 };

typedef struct relay {
    tc_sink sink;
    tc_sink *to;
    tc_arena arena;
    tc_set set;
    const tc_record *record; /* of the large line before, and its dtypes */
    tn_dtype types[TN_KERNEL_MAX_TYPES];
} relay;

static void emit(relay *r, const char *line, const char *how) {
    char text[TC_MAX_LINE];
    snprintf(text, sizeof text, "same%.900s how=%s", strchr(line, '/'), how);
    r->to->line(r->to, text);
}

/* Do rounding errors leave the result the same in whatever order it is computed? */
static bool order_free(const tc_invocation *call) {
    const tc_family *f = call->record->family;
    return call->record->pointwise || f == &tc_family_factory || call->data == TC_DATA_EXACT ||
           (f == &tc_family_index && !call->record->adds) || !tc_is_float(call->types[0]);
}

/* Elements of the largest tensor. */
static int64_t largest(const tc_invocation *call) {
    int64_t most = call->outs[0].tensor.shape.numel;
    for (uint32_t a = 0; a < call->record->n_args; a++)
        if (call->args[a].tensor.shape.numel > most)
            most = call->args[a].tensor.shape.numel;
    return most;
}

/* Small, as it is called some dozens of times; follows from the line alone. Of random numbers even a few: what is left
 * over of those that are drawn at once may be kept. */
static bool takes_turns(const relay *r, const tc_invocation *call, uint64_t n) {
    enum { LEAST = 12, MOST = 600, MOST_EXHAUSTIVE = 1500 };
    bool all = r->set == TC_EXHAUSTIVE;
    int64_t most = largest(call);
    bool enough = most >= LEAST || tc_record_arg(call->record, "offset") >= 0;
    return r->set != TC_SMOKE && enough && most <= (all ? MOST_EXHAUSTIVE : MOST) &&
           n / 64 % (all ? 4 : 10) == 0 && call->data == TC_DATA_RANDOM;
}

/* The first large line of each operator in each dtype, and some more; lines come in that order. */
static bool takes_host_threads(relay *r, const tc_invocation *call, uint64_t n) {
    enum { MOST = 1000000 }; /* elements of a call that comes some dozens of times */
    bool first = r->record != call->record || memcmp(r->types, call->types, sizeof r->types) != 0;
    if (largest(call) > MOST && r->set != TC_EXHAUSTIVE)
        return false;
    r->record = call->record;
    memcpy(r->types, call->types, sizeof r->types);
    return first || n % 48 == 0 || r->set == TC_EXHAUSTIVE;
}

static void choose(tc_sink *sink, const char *line) {
    relay *r = (relay *)sink;
    char why[TC_MESSAGE];
    tc_case c;
    tc_invocation call;
    if (!tc_case_parse(line, &c, why) || !tc_invocation_parse(&c, &r->arena, &call, why) ||
        tc_is_extra(&c, &call))
        return;
    bool plain = tc_needed_flags(&call) == 0;
    bool exact = order_free(&call) && !(call.record->ulps > 0 && !call.record->pointwise);
    uint64_t n = c.seed; /* of the line alone, whatever stands around it */
    bool spared = largest(&call) > HUGE && n / 64 % 4 != 0;
    if (!plain && exact && !spared)
        emit(r, line, "dense");
    if (takes_turns(r, &call, n))
        emit(r, line, "turns");
    if (n % 5 == 0 && !spared)
        emit(r, line, "again");
    if (exact && can_cut(&call) && (n % 2 == 0 || call.data == TC_DATA_EXPONENTS))
        emit(r, line, "slices");
    bool large = largest(&call) > LARGE;
    bool meets = large ? call.scalar >= 0 : n % 32 == 0; /* numbers of several calls, too */
    if (meets && call.in_place < 0)
        emit(r, line, "threads");
    if (n % 32 == 16 && call.in_place < 0 && !large)
        emit(r, line, "streams");
    if (large && takes_host_threads(r, &call, n))
        emit(r, line, "host-threads");
}

static void list(tc_set set, tc_sink *sink) {
    relay r = {.sink = {choose}, .to = sink, .set = set};
    tc_class_kernel.list(set, &r.sink);
    tc_arena_finish(&r.arena);
}

const tc_class tc_class_same = {.name = "same", .list = list, .run = run};
