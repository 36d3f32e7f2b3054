/* same/ how=threads and how=streams: concurrent calls. */
#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/worker/kernel/same.h"

#include "plugin-sdk/conformance/worker/kernel/draft.h"
#include "plugin-sdk/conformance/worker/kernel/mutate.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    THREADS = 4,
    STREAMS = 3,
    CALLS = 8,
    LONG_CALLS = 3,
    LONG = 2000,
    LONGER = 40000,
    MOST = 1 << 20
};
static const double MEETING_SECONDS = 0.002;
enum { GATE_BYTES = 8 << 20, GATE_FILLS = 4 }; /* a millisecond or two */

/* Calls of one thread, or of one stream: the line's, each with data and places of its own. Long
 * ones meet each other even when they are few. */
typedef struct lane {
    int n;
    int64_t times; /* all of them, at most: a device that is only asked would be far behind */
    tc_arena arena;
    tc_case c; /* that of its calls, whose texts they borrow */
    tc_invocation calls[CALLS];
    tc_placed placed[CALLS];
    tc_result results[CALLS];
    pthread_t thread;
    pthread_rwlock_t *start; /* held by who starts the threads, until all are there */
} lane;

/* The line as one of kernel/. */
static bool read_line(const tc_comparison *m, tc_draft *out) {
    char line[TC_MAX_LINE], why[TC_MESSAGE];
    if (!tc_draft_read(tc_case_line(m->c, line), out, why))
        return false;
    snprintf(out->class, sizeof out->class, "kernel");
    tc_draft_remove(out, tc_draft_find(out, "how"));
    return true;
}

/* The draft's call for the lane; false where there is none, or the device does not take it. */
static bool take_call(tc_comparison *m, const tc_draft *d, lane *l, tc_invocation *out) {
    char line[TC_MAX_LINE], why[TC_MESSAGE];
    const tn_kernel *kernel;
    return tc_draft_line(d, line) && tc_case_parse(line, &l->c, why) &&
           tc_invocation_parse(&l->c, &l->arena, out, why) &&
           tc_find_kernel(m->subject, out, NULL, &kernel) == TC_CLAIMED;
}

/* The line with its first tensor's last dimension one longer, or its first. */
static bool grow(tc_comparison *m, bool last, lane *l, tc_invocation *out) {
    tc_draft d;
    tc_shape s;
    if (!read_line(m, &d))
        return false;
    int at = tc_draft_find(&d, m->call.record->args[0].name);
    if (at < 0 || !tc_draft_shape(&d, at, &s) || s.rank == 0)
        return false;
    int64_t size = s.sizes[last ? s.rank - 1 : 0];
    tc_mutate_resize(&d, size, size + 1);
    return take_call(m, &d, l, out);
}

/* The line with another value of one of its attributes, for another line of another one. */
static bool vary(tc_comparison *m, lane *l, tc_invocation *out) {
    tc_draft base;
    if (!read_line(m, &base))
        return false;
    for (int i = 0; i < (int)base.n; i++) {
        tc_draft d = base;
        int at = (int)((m->call.seed + (uint64_t)i) % base.n);
        if (tc_mutate_attribute(&d, m->call.record, at) && take_call(m, &d, l, out))
            return true;
    }
    return false;
}

/* Every other lane has calls of other sizes, or with another attribute: what is kept for one is not another's. */
static bool prepare_lane(tc_comparison *m, lane *l, int which, tn_stream_impl *stream,
                         uint64_t seed) {
    char why[TC_MESSAGE];
    int64_t elements = 0;
    tc_invocation call;
    bool other = which == 2 ? vary(m, l, &call) : which % 2 && grow(m, which == 1, l, &call);
    if (!other)
        call = m->call;
    for (uint32_t a = 0; a < m->call.record->n_args; a++)
        if (m->call.record->args[a].kind == TC_ARG_TENSOR)
            elements += m->call.args[a].tensor.shape.numel; /* as many calls in each lane */
    l->n = elements > LONGER ? 1 : elements > LONG ? LONG_CALLS : CALLS;
    l->times = 1 + MOST / (1 + elements * l->n);
    for (int i = 0; i < l->n; i++) {
        l->calls[i] = call;
        l->calls[i].arena = &l->arena;
        l->calls[i].seed = seed + (uint64_t)i; /* what is another call's shows */
        if (!tc_fill_for(m->subject, &l->calls[i], seed + (uint64_t)i, why))
            return TC_CASE_ERROR(m->out, "%s", why);
        if (!tc_place_call(m->subject, stream, &l->calls[i], &l->placed[i], m->out))
            return false;
    }
    return true;
}

static void run_one(lane *l, int i) {
    tc_host_forget();
    l->results[i].run = tc_call_placed(&l->placed[i]);
    if (l->results[i].run != TN_OK)
        tc_reason(l->results[i].run, l->results[i].message);
}

/* Each result of a call that ran is right, and every failure of the lot is a failure of being `at once`. */
static void check_lane(tc_comparison *m, lane *l, tn_status later, tn_requirement requirement) {
    for (int i = 0; i < l->n && m->out->status == TC_PASS; i++) {
        l->results[i].sync = later;
        if (l->results[i].run == TN_ERR_UNSUPPORTED)
            continue;
        if (!tc_check_success(&l->calls[i], &l->results[i], m->out) ||
            !tc_read_back(&l->placed[i], &l->results[i], m->out))
            return;
        tc_verdict before = *m->out;
        tc_check_untouched(&l->calls[i], &l->results[i], m->out);
        tc_check_outputs(&l->calls[i], &l->results[i], m->subject, m->out);
        if (m->out->status == TC_INCONCLUSIVE) /* a call of many whose data proves nothing */
            *m->out = before;
        if (m->out->status == TC_FAIL && m->out->requirement == TNP_KERNEL_RESULT)
            m->out->requirement = requirement;
    }
}

static void check_any_ran(tc_comparison *m, const lane *lanes, int n) {
    bool ran = false;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < lanes[k].n; i++)
            ran = ran || lanes[k].results[i].run != TN_ERR_UNSUPPORTED;
    if (!ran)
        tc_verdict_set(m->out, TC_UNSUPPORTED, TNP_NONE,
                       "prepare or run of every record declines these calls");
}

static void finish_lanes(lane *lanes, int n) {
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < lanes[k].n; i++)
            tc_unplace(&lanes[k].placed[i]);
        tc_arena_finish(&lanes[k].arena);
    }
}

static lane *create_lanes(tc_comparison *m, int n) {
    lane *lanes = tc_arena_array(m->arena, (uint64_t)n, sizeof *lanes);
    if (!lanes)
        TC_CASE_ERROR(m->out, "the host has no memory for a case of this size");
    else
        memset(lanes, 0, (size_t)n * sizeof *lanes);
    return lanes;
}

static void *run_lane(void *context) {
    lane *l = context;
    pthread_rwlock_rdlock(l->start);
    pthread_rwlock_unlock(l->start);
    double end = tc_now() + MEETING_SECONDS;
    do /* again: a thread may have come to its end before the next is woken */
        for (int i = 0; i < l->n; i++)
            run_one(l, i);
    while (--l->times > 0 && tc_now() < end && l->results[l->n - 1].run == TN_OK);
    return NULL;
}

void tc_same_threads(tc_comparison *m) {
    pthread_rwlock_t start;
    lane *lanes = create_lanes(m, THREADS);
    if (!lanes)
        return;
    bool ok = true;
    for (int t = 0; ok && t < THREADS; t++) {
        lanes[t].start = &start;
        ok = prepare_lane(m, &lanes[t], t, m->subject->stream, m->call.seed + 100 * (uint64_t)t);
    }
    tn_status later = tc_subject_sync(m->subject);
    if (ok) {
        int n = 0;
        pthread_rwlock_init(&start, NULL);
        pthread_rwlock_wrlock(&start);
        while (n < THREADS && pthread_create(&lanes[n].thread, NULL, run_lane, &lanes[n]) == 0)
            n++;
        pthread_rwlock_unlock(&start);
        for (int t = n; t < THREADS; t++) /* for which there was no thread */
            run_lane(&lanes[t]);
        for (int t = 0; t < n; t++)
            pthread_join(lanes[t].thread, NULL);
        pthread_rwlock_destroy(&start);
        later = tc_subject_sync(m->subject);
    }
    for (int t = 0; ok && t < THREADS; t++)
        check_lane(m, &lanes[t], later, TNP_THREADS_CONCURRENT);
    if (ok)
        check_any_ran(m, lanes, THREADS);
    finish_lanes(lanes, THREADS);
}

/* Holds all streams up behind work of the first, so that their calls begin together: calls of streams that
 * are idle come one after the other, as fast as they are queued. */
typedef struct gate {
    tn_memory memory; /* 0: there is none, which costs no more than that the calls may not meet */
    tn_event_impl *event;
} gate;

static void close_gate(tc_comparison *m, tn_stream_impl *const *streams, gate *g) {
    const tc_subject *s = m->subject;
    const tn_event_ops *events = s->ops->events;
    void *host;
    *g = (gate){0};
    if (tc_free_bytes(s) / 4 < GATE_BYTES ||
        tc_alloc(s, TN_SPACE_DEVICE, GATE_BYTES, &g->memory, &host) != TN_OK)
        return;
    if (events->create(s->device, 0, &g->event) != TN_OK) {
        g->event = NULL;
        return;
    }
    for (int i = 0; i < GATE_FILLS; i++)
        s->memory->fill(s->device, streams[0], g->memory, 0, (uint8_t)i, GATE_BYTES);
    if (events->record(g->event, streams[0]) == TN_OK)
        for (int k = 1; k < STREAMS; k++)
            events->wait(streams[k], g->event);
}

static void remove_gate(tc_comparison *m, gate *g) {
    if (g->event)
        m->subject->ops->events->destroy(g->event);
    if (g->memory)
        m->subject->memory->dealloc(m->subject->device, TN_SPACE_DEVICE, g->memory);
}

void tc_same_streams(tc_comparison *m) {
    tn_stream_impl *made[STREAMS] = {0};
    gate held = {0};
    const tn_stream_ops *ops = m->subject->ops->streams;
    if (!ops) {
        tc_verdict_set(m->out, TC_UNSUPPORTED, TNP_NONE, "the device has no streams");
        return;
    }
    lane *lanes = create_lanes(m, STREAMS);
    bool ok = lanes != NULL;
    for (int s = 0; ok && s < STREAMS; s++) {
        tn_status status = ops->create(m->subject->device, 0, &made[s]);
        if (status != TN_OK) {
            char reason[TC_MESSAGE];
            tc_verdict_set(m->out, TC_FAIL, TNP_STREAM_CREATE, "create of a stream: %s",
                           tc_reason(status, reason));
            ok = false;
        }
        ok = ok && prepare_lane(m, &lanes[s], s, made[s], m->call.seed + 100 * (uint64_t)s);
    }
    if (ok)
        close_gate(m, made, &held);
    for (int i = 0; ok && i < lanes[0].n; i++)
        for (int s = 0; s < STREAMS; s++)
            run_one(&lanes[s], i);
    for (int s = 0; lanes && s < STREAMS && made[s]; s++) {
        tn_status later = ops->synchronize(made[s]);
        if (ok)
            check_lane(m, &lanes[s], later, TNP_STREAM_ORDER);
    }
    if (ok)
        check_any_ran(m, lanes, STREAMS);
    for (int s = 0; s < STREAMS && made[s]; s++) {
        ops->synchronize(made[s]);
        ops->destroy(made[s]);
    }
    remove_gate(m, &held);
    if (lanes)
        finish_lanes(lanes, STREAMS);
}
