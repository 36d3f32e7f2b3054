/* same/ how=turns: a call, and between its repetitions others that differ from it in one thing.
 *
 * What a device keeps from one call to the next (plans, programs, arguments that are set already,
 * workspaces) it finds again by a key, and a key lacks something easily: what is told apart is tried
 * here, thing by thing. Each of these calls, and each repetition, has other data and is held against
 * the oracle. */
#include "plugin-sdk/conformance/worker/kernel/same.h"

#include "plugin-sdk/conformance/worker/kernel/draft.h"
#include "plugin-sdk/conformance/worker/kernel/mutate.h"

#include <stdio.h>
#include <string.h>

typedef struct turns {
    tc_comparison *m;
    char first[TC_MAX_LINE]; /* the call that all others are variations of */
    uint64_t n;              /* calls so far */
    tc_shelf *shelf;         /* NULL: each call has memory of its own */
} turns;

/* One call, with other data than any before. What the plugin does not claim is left out. */
static void call_once(turns *t, const char *line, const char *what) {
    char why[TC_MESSAGE];
    tc_case c;
    tc_invocation call;
    tc_result result;
    tc_arena arena = {NULL};
    tc_verdict v = {.status = TC_PASS};
    if (t->m->out->status != TC_PASS || !tc_case_parse(line, &c, why) ||
        !tc_invocation_parse(&c, &arena, &call, why)) {
        tc_arena_finish(&arena);
        return;
    }
    call.seed = t->m->call.seed + 0x1000003 * ++t->n;
    if (tc_claimed_kernel(t->m->subject, &call, &v) &&
        tc_fill_for(t->m->subject, &call, call.seed ^ 0x5eed, why) &&
        tc_execute_on(t->shelf, t->m->subject, &call, &result, &v) &&
        tc_check_success(&call, &result, &v)) {
        tc_check_untouched(&call, &result, &v);
        tc_check_outputs(&call, &result, t->m->subject, &v);
    }
    if (v.status == TC_FAIL || v.status == TC_ERROR)
        tc_verdict_set(t->m->out, v.status, v.requirement, "%s: `%.300s`: %s", what, line,
                       v.message);
    tc_arena_finish(&arena);
}

/* Sizes that are exchanged in all tensors alike can grow beyond what anybody waits for. */
static bool is_small(const tc_draft *d) {
    enum { MOST = 1 << 18 };
    tc_shape s;
    for (int i = 0; i < (int)d->n; i++)
        if (tc_draft_shape(d, i, &s) && s.numel > MOST)
            return false;
    return true;
}

/* A variation, and the call itself again. */
static void turn(turns *t, const tc_draft *d) {
    char line[TC_MAX_LINE], what[TC_MESSAGE + TC_MAX_LINE];
    if (!is_small(d) || !tc_draft_line(d, line) || strcmp(line, t->first) == 0)
        return;
    snprintf(what, sizeof what, "behind `%.400s`", t->first);
    call_once(t, line, what);
    snprintf(what, sizeof what, "behind `%.400s`", line);
    call_once(t, t->first, what);
}

/* ---- what is varied ---------------------------------------------------------------------- */

static void vary_attributes(turns *t, const tc_draft *base) {
    for (int i = 0; i < (int)base->n; i++) {
        tc_draft d = *base;
        if (tc_mutate_attribute(&d, t->m->call.record, i))
            turn(t, &d);
        d = *base;
        if (tc_mutate_far_bit(&d, t->m->call.record, i))
            turn(t, &d);
    }
}

/* Element `dim` of the list `at` is one more; false where it is no list of so many. */
static bool raise(const turns *t, tc_draft *d, int at, int32_t dim) {
    int32_t a = tc_record_arg(t->m->call.record, d->at[at].name);
    tc_shape s;
    if (a < 0 || t->m->call.record->args[a].kind == TC_ARG_TENSOR || !tc_draft_shape(d, at, &s) ||
        dim >= s.rank)
        return false;
    s.sizes[dim]++;
    tc_draft_put_shape(d, at, &s);
    return true;
}

/* Each number of a list alone, and of each two lists together: a window that grows and its padding with
 * it leave all shapes as they were. */
static void vary_lists(turns *t, const tc_draft *base) {
    for (int i = 0; i < (int)base->n; i++)
        for (int32_t dim = 0; dim < TC_MAX_RANK; dim++) {
            tc_draft one = *base;
            if (!raise(t, &one, i, dim))
                break;
            turn(t, &one);
            for (int k = i + 1; k < (int)base->n; k++) {
                tc_draft two = one;
                if (raise(t, &two, k, dim))
                    turn(t, &two);
            }
        }
}

/* Each type variable in turn is of every other dtype. */
static void vary_dtypes(turns *t, const tc_draft *base) {
    const tc_record *record = t->m->call.record;
    for (uint32_t k = 0; k < record->n_types; k++)
        for (tn_dtype type = 0; type < TN_DTYPE_COUNT; type++) {
            tc_draft d = *base;
            tc_draft_set(&d, record->type_names[k], tc_dtype_name(type));
            if ((record->dtypes[k] & TN_DTYPE_BIT(type)) != 0)
                turn(t, &d);
        }
}

/* Where the tensor `at` lies: an element later, with gaps, its dimensions the other way round, of one
 * value along the first. */
static void vary_layout(turns *t, const tc_draft *base, int at) {
    enum { SHIFTED, GAPS, TURNED, BROADCAST, WAYS };
    for (int way = 0; way < WAYS; way++) {
        tc_draft d = *base;
        tc_shape s;
        if (!tc_draft_shape(&d, at, &s) || s.rank == 0)
            return;
        int64_t stride = 1;
        for (int32_t k = 0; way == TURNED && k < s.rank; k++) {
            s.strides[k] = stride;
            stride *= s.sizes[k];
        }
        for (int32_t k = 0; way == GAPS && k < s.rank; k++)
            s.strides[k] *= 2;
        if (way == BROADCAST)
            s.strides[0] = 0;
        s.offset += way == SHIFTED;
        s.placed = true;
        tc_draft_put_shape(&d, at, &s);
        turn(t, &d);
    }
}

/* Each size one more, and each two next to one another exchanged, in all tensors alike. */
static void vary_sizes(turns *t, const tc_draft *base, int at) {
    tc_shape s;
    for (int32_t k = 0; tc_draft_shape(base, at, &s) && k < s.rank; k++) {
        tc_draft d = *base;
        tc_mutate_resize(&d, s.sizes[k], s.sizes[k] + 1);
        turn(t, &d);
        if (k == 0)
            continue;
        d = *base;
        enum { ELSEWHERE = 1009 }; /* no size of a line */
        tc_mutate_resize(&d, s.sizes[k], ELSEWHERE);
        tc_mutate_resize(&d, s.sizes[k - 1], s.sizes[k]);
        tc_mutate_resize(&d, ELSEWHERE, s.sizes[k - 1]);
        turn(t, &d);
    }
}

/* Has a tensor before argument `a` such a size? */
static bool is_before(const turns *t, const tc_draft *base, uint32_t a, int64_t size) {
    tc_shape s;
    for (uint32_t k = 0; k < a; k++) {
        int at = tc_draft_find(base, t->m->call.record->args[k].name);
        for (int32_t d = 0; at >= 0 && tc_draft_shape(base, at, &s) && d < s.rank; d++)
            if (s.sizes[d] == size)
                return true;
    }
    return false;
}

/* Each size that the tensors before have not, one more: of values, say, which are no wider than keys as a rule. */
static void vary_own_sizes(turns *t, const tc_draft *base, uint32_t a, int at) {
    tc_shape s;
    for (int32_t k = 0; tc_draft_shape(base, at, &s) && k < s.rank; k++) {
        tc_draft d = *base;
        if (is_before(t, base, a, s.sizes[k]))
            continue;
        tc_mutate_resize(&d, s.sizes[k], s.sizes[k] + 1);
        turn(t, &d);
    }
}

/* In place, as a cell, left out. */
static void vary_forms(turns *t, const tc_draft *base, const tc_arg *arg) {
    static const char *const forms[] = {"in-place", "scalar"};
    for (int k = 0; k < 2; k++) {
        tc_draft d = *base;
        tc_draft_set(&d, forms[k], arg->name);
        turn(t, &d);
    }
    tc_draft d = *base;
    tc_draft_set(&d, arg->name, "none");
    if (arg->optional)
        turn(t, &d);
}

/* Once more what leaves sizes and dtypes alone, now with all tensors where those of the call before
 * were: nothing but what is varied is new. */
static void vary_on_a_shelf(turns *t, const tc_draft *base) {
    const tc_record *record = t->m->call.record;
    tc_shelf shelf = {0};
    t->shelf = &shelf;
    call_once(t, t->first, "where it was");
    vary_attributes(t, base);
    vary_lists(t, base);
    for (uint32_t a = 0; a < record->n_args; a++) {
        int at =
            record->args[a].kind == TC_ARG_TENSOR ? tc_draft_find(base, record->args[a].name) : -1;
        if (at >= 0)
            vary_layout(t, base, at);
    }
    tc_shelf_clear(&shelf, t->m->subject);
    t->shelf = NULL;
}

void tc_same_turns(tc_comparison *m) {
    turns t = {.m = m};
    tc_draft base;
    char why[TC_MESSAGE], line[TC_MAX_LINE];
    const tc_record *record = m->call.record;
    if (!tc_draft_read(tc_case_line(m->c, line), &base, why)) {
        TC_CASE_ERROR(m->out, "%s", why);
        return;
    }
    snprintf(base.class, sizeof base.class, "kernel");
    tc_draft_remove(&base, tc_draft_find(&base, "how"));
    if (!tc_draft_line(&base, t.first)) {
        TC_CASE_ERROR(m->out, "the line is too long");
        return;
    }
    call_once(&t, t.first, "at first");
    vary_attributes(&t, &base);
    vary_lists(&t, &base);
    for (uint32_t a = 0; a < record->n_args; a++) {
        int at =
            record->args[a].kind == TC_ARG_TENSOR ? tc_draft_find(&base, record->args[a].name) : -1;
        if (at < 0)
            continue;
        vary_layout(&t, &base, at);
        vary_forms(&t, &base, &record->args[a]);
        if (a == 0)
            vary_sizes(&t, &base, at);
        else
            vary_own_sizes(&t, &base, a, at);
    }
    vary_dtypes(&t, &base);
    vary_on_a_shelf(&t, &base);
}
