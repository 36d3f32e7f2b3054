/* contract/record-arguments: calls that wait in a queue keep their arguments, each its own.
 *
 * Scalars, sizes and strides travel to the device by way of something that a driver has only so much
 * of: rings of constants, slots for descriptors, parameters that are taken to be those of the call
 * before. More calls than that are queued behind long work, each with outputs of its own, which
 * differ in their data and their attributes, of each operator that has such; and of a few also in
 * how their tensors lie, which is the driver's matter and not the operator's. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/contract/reach.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"
#include "plugin-sdk/conformance/worker/kernel/mutate.h"

#include <stdio.h>
#include <string.h>

/* Of attributes there are AROUND sets, a number that is no part of a power of two. */
enum { CALLS = 300, AROUND = 25, STEPS = 41, LAID_OUT = 8 };

typedef struct queued {
    tc_invocation call;
    tc_placed placed;
    char line[TC_MAX_LINE];
    bool declined; /* no record takes it after all */
} queued;

/* The next attribute has its next value. */
static void step_attribute(tc_draft *d, const tc_record *record, int v) {
    for (int i = 0; i < (int)d->n; i++)
        if (tc_mutate_attribute(d, record, (v + i) % (int)d->n))
            return;
}

static bool has_attributes(const tc_record *record) {
    bool any = false;
    for (uint32_t a = 0; a < record->n_args; a++)
        any = any || (record->args[a].kind != TC_ARG_TENSOR &&
                      record->args[a].kind != TC_ARG_INTS && record->args[a].kind != TC_ARG_STRING);
    return any;
}

/* Every other time one tensor has its elements further apart. */
static void step_layout(tc_draft *d, const tc_record *record, int v) {
    const tc_arg *arg = &record->args[(uint32_t)v / 2 % (record->n_args ? record->n_args : 1)];
    tc_shape s;
    int at = tc_draft_find(d, record->n_args ? arg->name : "");
    if (v % 2 == 0 || at < 0 || arg->kind != TC_ARG_TENSOR || !tc_draft_shape(d, at, &s))
        return;
    for (int32_t k = 0; k < s.rank; k++)
        s.strides[k] *= 2 + v / 2 % STEPS;
    s.placed = true;
    tc_draft_put_shape(d, at, &s);
}

static bool read(tc_arena *arena, const char *line, int v, queued *q) {
    char why[TC_MESSAGE];
    tc_case c;
    snprintf(q->line, sizeof q->line, "%s", line);
    if (!tc_case_parse(line, &c, why) || !tc_invocation_parse(&c, arena, &q->call, why))
        return false;
    q->call.seed += 0x1000003 * (uint64_t)v;
    return tc_invocation_fill(&q->call, q->call.seed, why);
}

/* Calls that follow from a line, ready to be queued. Returns how many. */
static int make_calls(tc_contract *k, tc_arena *arena, const char *line, bool laid_out,
                      queued *calls) {
    tc_draft base, walking;
    char why[TC_MESSAGE], text[TC_MAX_LINE];
    if (!tc_draft_read(line, &base, why))
        return 0;
    tc_draft_set(&base, "data", "exact"); /* how good functions are is asked elsewhere */
    const tc_record *record = tc_record_find(base.subject);
    walking = base;
    int n = 0;
    for (int v = 0; v < CALLS && n < CALLS && !tc_failed(k); v++) {
        tc_verdict none = {.status = TC_PASS};
        tc_draft d;
        step_attribute(&walking, record, v);
        if (v % AROUND == 0 || !tc_draft_line(&walking, text)) /* no such call */
            walking = base;
        d = walking;
        if (laid_out)
            step_layout(&d, record, v);
        queued *q = &calls[n];
        q->declined = false;
        memset(&q->placed, 0, sizeof q->placed);
        if (!tc_draft_line(&d, text) || !read(arena, text, v, q))
            continue;
        if (q->call.in_place < 0 &&
            tc_place_call(k->subject, k->subject->stream, &q->call, &q->placed, &none))
            n++;
        else
            tc_unplace(&q->placed);
        if (none.status == TC_FAIL || none.status == TC_ERROR)
            tc_verdict_set(k->out, none.status, none.requirement, "%s", none.message);
    }
    return n;
}

static void check(tc_contract *k, queued *q) {
    tc_result result = {0};
    tc_verdict v = {.status = TC_PASS};
    if (tc_read_back(&q->placed, &result, &v)) {
        tc_check_untouched(&q->call, &result, &v);
        tc_check_outputs(&q->call, &result, k->subject, &v);
    }
    if (v.status == TC_FAIL)
        TC_BROKEN(k, TNP_KERNEL_RESULT, "`%.200s`, one of many calls in a queue: %.600s", q->line,
                  v.message);
}

/* False where something has failed. A call that no record takes is left out from then on. */
static bool queue_each(tc_contract *k, queued *calls, int n) {
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        if (calls[i].declined)
            continue;
        tn_status status = tc_call_placed(&calls[i].placed);
        calls[i].declined = status == TN_ERR_UNSUPPORTED;
        ok = calls[i].declined || tc_must(k, TNP_KERNEL_RESULT, status, calls[i].line);
    }
    return ok;
}

/* All at once, and then what came of each: behind work that takes longer than to queue them, which
 * is known when they have been called before, the first time for what a first call has to do. */
static void queue_all(tc_contract *k, tc_work *work, const char *line, bool laid_out,
                      queued *calls) {
    tn_stream_impl *stream = k->subject->stream;
    tc_arena arena = {NULL};
    int n = make_calls(k, &arena, line, laid_out, calls);
    bool ok = !tc_failed(k) && queue_each(k, calls, n) && tc_stream_sync(k, stream);
    double start = tc_now();
    ok = ok && queue_each(k, calls, n);
    double took = tc_now() - start;
    ok = ok && tc_stream_sync(k, stream) &&
         tc_work_hold(k, work, stream, 2 * took > 0.01 ? 2 * took : 0.01) &&
         queue_each(k, calls, n);
    ok = tc_stream_sync(k, stream) && ok;
    for (int i = 0; i < n; i++) {
        if (ok && !calls[i].declined && !tc_failed(k))
            check(k, &calls[i]);
        tc_unplace(&calls[i].placed);
    }
    tc_arena_finish(&arena);
}

void tc_record_arguments(tc_contract *k) {
    const tn_plugin *p = k->subject->plugin;
    tc_work work;
    if (!tc_has_streams(k) || !tc_work_create(k, k->subject, &work))
        return;
    tc_reached *reached = tc_reach_records(k, TC_SMOKE, NULL);
    queued *calls = tc_arena_array(&k->arena, CALLS, sizeof *calls);
    int n = 0;
    if (!calls)
        TC_CASE_ERROR(k->out, "the host has no memory for this case");
    for (uint64_t i = 0; reached && calls && i < p->n_kernels && !tc_failed(k); i++) {
        bool seen = false; /* one record of each operator */
        for (uint64_t j = 0; j < i && !seen; j++)
            seen = strcmp(p->kernels[i]->op, p->kernels[j]->op) == 0 && reached[j].lines[0];
        if (seen || !reached[i].lines[0])
            continue;
        if (n < LAID_OUT || has_attributes(tc_record_find(p->kernels[i]->op)))
            queue_all(k, &work, reached[i].lines[0], n < LAID_OUT, calls);
        n++;
    }
}
