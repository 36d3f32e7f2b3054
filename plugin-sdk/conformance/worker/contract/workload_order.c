/* Workloads: who comes behind whom, and the ways to wait. */
#include "plugin-sdk/conformance/worker/contract/workload.h"

#include <string.h>
#include <time.h>

static void merge(tc_clock *to, const tc_clock *from) {
    for (int i = 0; i < TC_MOST_LANES; i++)
        if (to->at[i] < from->at[i])
            to->at[i] = from->at[i];
}

static bool covers(const tc_clock *c, tc_use use) {
    return use.lane == TC_NOBODY || c->at[use.lane] >= use.n;
}

static bool covers_all(const tc_clock *c, const tc_clock *of) {
    for (int i = 0; i < TC_MOST_LANES; i++)
        if (c->at[i] < of->at[i])
            return false;
    return true;
}

int tc_any_lane(tc_workload *w, int device) {
    int found[TC_MOST_LANES], n = 0;
    for (int i = 0; i < w->n_lanes; i++)
        if (!w->lanes[i].captures && (device < 0 || w->lanes[i].device == device))
            found[n++] = i;
    return n ? found[tc_workload_below(w, (uint64_t)n)] : TC_NOBODY;
}

/* Marks and waits are operations, too: that what lies before them is done does not make them so. */
static void step(tc_workload *w, int lane) {
    tc_lane *l = &w->lanes[lane];
    merge(&l->behind, &w->host); /* what was done when it was queued */
    l->behind.at[lane] = ++l->n;
    if (!w->streams)
        merge(&w->host, &l->behind);
}

void tc_lane_did(tc_workload *w, int lane) {
    step(w, lane);
    while (w->n_taken)
        w->taken[--w->n_taken]->last = (tc_use){lane, w->lanes[lane].n};
}

/* ---- the calls, with what follows from them ---------------------------------------------- */

static bool record(tc_workload *w, tn_event_impl *event, int lane, tc_clock *out_at) {
    tc_lane *l = &w->lanes[lane];
    merge(&l->behind, &w->host);
    *out_at = l->behind;
    step(w, lane);
    return tc_workload_must(w, TNP_EVENT_RECORD, l->s->ops->events->record(event, l->stream),
                            "record");
}

static bool wait(tc_workload *w, int lane, tn_event_impl *event, const tc_clock *at) {
    tc_lane *l = &w->lanes[lane];
    merge(&l->behind, at);
    step(w, lane);
    return tc_workload_must(w, TNP_EVENT_WAIT, l->s->ops->events->wait(l->stream, event), "wait");
}

static bool synchronize(tc_workload *w, int lane) {
    tc_lane *l = &w->lanes[lane];
    if (!tc_workload_must(w, TNP_STREAM_SYNCHRONIZE, l->s->ops->streams->synchronize(l->stream),
                          "synchronize of a stream"))
        return false;
    merge(&w->host, &l->behind);
    return true;
}

static bool synchronize_event(tc_workload *w, const tc_subject *s, tn_event_impl *event,
                              const tc_clock *at) {
    if (!tc_workload_must(w, TNP_EVENT_SYNCHRONIZE, s->ops->events->synchronize(event),
                          "synchronize of an event"))
        return false;
    merge(&w->host, at);
    return true;
}

/* Of a lane, or of an event: done or not, and done for certain where the host knows it. */
static bool ask(tc_workload *w, tn_status status, const tc_clock *at, bool certain,
                tn_requirement requirement, const char *what, bool *out_done) {
    *out_done = status == TN_OK;
    if (status == TN_NOT_READY && certain)
        return TC_BROKEN(w->k, requirement,
                         "operation %d, %s: %s says TN_NOT_READY, and it is known to be done",
                         w->op, w->what, what);
    if (status == TN_OK)
        merge(&w->host, at);
    return status == TN_NOT_READY || tc_workload_must(w, requirement, status, what);
}

static bool ask_lane(tc_workload *w, int lane, bool *out_done) {
    tc_lane *l = &w->lanes[lane];
    bool certain = covers_all(&w->host, &l->behind);
    return ask(w, l->s->ops->streams->query(l->stream), &l->behind, certain, TNP_STREAM_QUERY,
               "query of a stream", out_done);
}

static bool ask_event(tc_workload *w, const tc_subject *s, tn_event_impl *event, const tc_clock *at,
                      bool certain, bool *out_done) {
    return ask(w, s->ops->events->query(event), at, certain, TNP_EVENT_QUERY, "query of an event",
               out_done);
}

static void pause_briefly(void) {
    nanosleep(&(struct timespec){0, 50000}, NULL);
}

/* Asks until it is done; what never is ends with the case's time. */
static bool poll(tc_workload *w, int lane, tn_event_impl *event, const tc_clock *at) {
    bool done = false, ok = true;
    while (ok && !done) {
        ok = event ? ask_event(w, w->lanes[lane].s, event, at, false, &done)
                   : ask_lane(w, lane, &done);
        if (!done)
            pause_briefly();
    }
    return ok;
}

/* ---- waits that are needed --------------------------------------------------------------- */

static bool by_new_event(tc_workload *w, int from, int to) {
    tc_subject *s = w->lanes[from].s;
    tn_event_impl *event;
    tc_clock at, later;
    if (!tc_event_create(w->k, s, 0, &event))
        return false;
    bool ok = record(w, event, from, &at) && wait(w, to, event, &at);
    int other = tc_any_lane(w, w->lanes[from].device);
    if (ok && other != TC_NOBODY &&
        tc_workload_below(w, 3) == 0) /* a later mark is not waited for */
        ok = record(w, event, other, &later);
    tc_event_destroy(w->k, event); /* those that wait still do */
    return ok;
}

/* One of the kept events, of the lane's device. */
static tc_mark *any_mark(tc_workload *w, const tc_subject *s) {
    tc_mark *m = &w->marks[tc_workload_below(w, TC_WORKLOAD_MARKS)];
    return !s || m->s == s ? m : NULL;
}

/* For certain. What was never recorded is. */
static bool is_passed(const tc_workload *w, const tc_mark *m) {
    return m->passed || covers(&w->host, m->recorded);
}

static bool record_mark(tc_workload *w, tc_mark *m, int lane) {
    bool ok = record(w, m->event, lane, &m->at);
    m->recorded = (tc_use){lane, w->lanes[lane].n};
    m->passed = false;
    return ok;
}

static bool by_kept_event(tc_workload *w, int from, int to) {
    tc_mark *m = any_mark(w, w->lanes[from].s);
    if (!m)
        return by_new_event(w, from, to);
    return record_mark(w, m, from) && wait(w, to, m->event, &m->at);
}

/* By what was recorded before, where one of them lies behind the use. */
static bool by_old_event(tc_workload *w, tc_use use, int to) {
    for (int i = 0; i < TC_WORKLOAD_MARKS; i++)
        if (w->marks[i].recorded.lane != TC_NOBODY && covers(&w->marks[i].at, use))
            return wait(w, to, w->marks[i].event, &w->marks[i].at);
    return by_new_event(w, use.lane, to);
}

static bool by_third_lane(tc_workload *w, int from, int to) {
    int by = tc_any_lane(w, -1);
    return by == TC_NOBODY || by == from || by == to
               ? by_new_event(w, from, to)
               : by_new_event(w, from, by) && by_new_event(w, by, to);
}

bool tc_host_waits(tc_workload *w, tc_use use) {
    tn_event_impl *event;
    tc_clock at;
    if (covers(&w->host, use))
        return true;
    tc_lane *l = &w->lanes[use.lane];
    if (l->captures)
        return synchronize_event(w, l->s, l->before, &l->before_at);
    switch (tc_workload_below(w, 4)) {
    case 0:
        return synchronize(w, use.lane);
    case 1:
        return poll(w, use.lane, NULL, NULL);
    }
    if (!tc_event_create(w->k, l->s, 0, &event))
        return false;
    bool ok = record(w, event, use.lane, &at) &&
              (tc_workload_below(w, 2) ? synchronize_event(w, l->s, event, &at)
                                       : poll(w, use.lane, event, &at));
    tc_event_destroy(w->k, event);
    return ok;
}

bool tc_take(tc_workload *w, tc_place *p, int lane) {
    tc_use use = p->last;
    w->taken[w->n_taken++] = p;
    if (use.lane == lane || covers(&w->host, use) || covers(&w->lanes[lane].behind, use))
        return true;
    if (w->lanes[use.lane].captures)
        return wait(w, lane, w->lanes[use.lane].before, &w->lanes[use.lane].before_at);
    switch (tc_workload_below(w, 8)) {
    case 0:
    case 1:
        return by_kept_event(w, use.lane, lane);
    case 2:
        return by_old_event(w, use, lane);
    case 3:
        return by_third_lane(w, use.lane, lane);
    case 4:
        return tc_host_waits(w, use);
    default:
        return by_new_event(w, use.lane, lane);
    }
}

bool tc_lane_mark_before(tc_workload *w, int lane) {
    return record(w, w->lanes[lane].before, lane, &w->lanes[lane].before_at);
}

/* ---- operations -------------------------------------------------------------------------- */

bool tc_op_mark(tc_workload *w) {
    tc_mark *m = any_mark(w, NULL);
    int lane = TC_NOBODY;
    for (int i = 0; i < w->n_lanes && lane == TC_NOBODY; i++)
        if (w->lanes[i].s == m->s)
            lane = tc_any_lane(w, w->lanes[i].device);
    if (lane == TC_NOBODY)
        return true;
    TC_DID(w, "record of event %d on stream %d", (int)(m - w->marks), lane);
    return record_mark(w, m, lane);
}

/* Where nobody needs to. */
bool tc_op_wait(tc_workload *w) {
    tc_mark *m = any_mark(w, NULL);
    int lane = tc_any_lane(w, -1);
    TC_DID(w, "wait of stream %d for event %d", lane, (int)(m - w->marks));
    return lane == TC_NOBODY || wait(w, lane, m->event, &m->at);
}

bool tc_op_ask(tc_workload *w) {
    tc_mark *m = any_mark(w, NULL);
    int lane = tc_any_lane(w, -1);
    bool done;
    TC_DID(w, "query of event %d and stream %d", (int)(m - w->marks), lane);
    return ask_event(w, m->s, m->event, &m->at, is_passed(w, m), &m->passed) &&
           (lane == TC_NOBODY || ask_lane(w, lane, &done));
}

/* Of two events that are passed; which came first is known where they are of one stream. */
bool tc_op_elapsed(tc_workload *w) {
    enum { EXACT = 2000 }; /* ns: a microsecond each */
    tc_mark *m = any_mark(w, NULL), *after = any_mark(w, m->s);
    double ns = 0;
    const tn_event_ops *events = m->s->ops->events;
    if (!after || m->recorded.lane == TC_NOBODY || after->recorded.lane == TC_NOBODY ||
        !TN_HAS(events, tn_event_ops, elapsed) || !events->elapsed || !is_passed(w, m) ||
        !is_passed(w, after))
        return true;
    TC_DID(w, "elapsed from event %d to %d", (int)(m - w->marks), (int)(after - w->marks));
    if (!tc_workload_must(w, TNP_EVENT_ELAPSED, events->elapsed(m->event, after->event, &ns),
                          "elapsed"))
        return false;
    if (m->recorded.lane == after->recorded.lane && m->recorded.n < after->recorded.n &&
        ns < -EXACT)
        return TC_BROKEN(w->k, TNP_EVENT_ELAPSED,
                         "operation %d, %s: %g ns, and the first was recorded before the second",
                         w->op, w->what, ns);
    return true;
}

bool tc_op_renew_mark(tc_workload *w) {
    tc_mark *m = any_mark(w, NULL);
    TC_DID(w, "destroy and create of event %d", (int)(m - w->marks));
    tc_event_destroy(w->k, m->event);
    *m = (tc_mark){.s = m->s, .recorded = {TC_NOBODY, 0}};
    return tc_event_create(w->k, m->s, TN_EVENT_TIMING, &m->event);
}

/* destroy finishes what is queued: it is done when the call is back. */
bool tc_op_new_stream(tc_workload *w) {
    int lane = tc_any_lane(w, -1);
    if (lane == TC_NOBODY || w->n_lanes < 2)
        return true;
    tc_lane *l = &w->lanes[lane];
    TC_DID(w, "destroy of stream %d", lane);
    tc_stream_destroy(w->k, l->stream);
    merge(&w->host, &l->behind);
    l->behind = w->host;
    return tc_stream_create(w->k, l->s, (int32_t)tc_workload_below(w, 3) - 1, &l->stream);
}
