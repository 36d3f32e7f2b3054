/* The time between two marks: how right it is, and when there is none. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include <math.h>
#include <stdlib.h>

enum { EXACT = 2000 }; /* ns: a microsecond of either end */

typedef struct scene {
    tc_contract *k;
    tc_subject *s;
    const tn_event_ops *events;
    tn_stream_impl *slow, *other;
    tc_work work;
} scene;

static bool set_up(tc_contract *k, scene *n) {
    *n = (scene){.k = k, .s = k->subject, .events = k->subject->ops->events};
    if (!tc_has_streams(k))
        return false;
    if (!TN_HAS(n->events, tn_event_ops, elapsed) || !n->events->elapsed)
        return TC_NOT_OFFERED(k, "no elapsed");
    return tc_stream_create(k, n->s, 0, &n->slow) && tc_stream_create(k, n->s, 0, &n->other);
}

/* ---- how right it is --------------------------------------------------------------------- */

/* Records a mark and sees it passed, between two looks at the host's clock. */
static bool pass(scene *n, tn_stream_impl *stream, tn_event_impl *event, double *out_before,
                 double *out_after) {
    *out_before = tc_now();
    bool ok = tc_must(n->k, TNP_EVENT_RECORD, n->events->record(event, stream), "record") &&
              tc_must(n->k, TNP_EVENT_SYNCHRONIZE, n->events->synchronize(event), "synchronize");
    *out_after = tc_now();
    return ok;
}

/* Two marks, of two streams, so far from each other, and what `elapsed` says of them; the host's clock has the least and the most
 * that it may be. */
static bool measure(scene *n, tn_event_impl *start, tn_event_impl *end, double seconds,
                    double *out_ns) {
    double before, after, end_before, end_after;
    *out_ns = NAN;
    if (!pass(n, n->slow, start, &before, &after))
        return false;
    while (tc_now() < after + seconds)
        ;
    if (!pass(n, n->other, end, &end_before, &end_after) ||
        !tc_must(n->k, TNP_EVENT_ELAPSED, n->events->elapsed(start, end, out_ns), "elapsed"))
        return false;
    double least = 1e9 * (end_before - after), most = 1e9 * (end_after - before);
    return (*out_ns >= 0.998 * least - EXACT && *out_ns <= 1.002 * most + EXACT) ||
           TC_BROKEN(
               n->k, TNP_EVENT_ELAPSED,
               "elapsed: %g ns between marks that by the host's clock were at least %g ns from "
               "each other and at most %g ns",
               *out_ns, least, most);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Many times are equal, and none are nearer to each other than that: they are of a clock that moves in steps. */
static void check_steps(tc_contract *k, double *ns, int n) {
    enum { MANY = 20 };
    int equal = 0, close = 0;
    double step = INFINITY;
    qsort(ns, (size_t)n, sizeof *ns, compare);
    for (int i = 1; i < n; i++) {
        double apart = ns[i] - ns[i - 1];
        equal += apart < 0.5;
        close += apart >= 0.5 && apart <= EXACT;
        if (apart >= 0.5 && apart < step)
            step = apart;
    }
    if (equal >= MANY && !close)
        TC_BROKEN(
            k, TNP_EVENT_ELAPSED,
            "elapsed: %d of %d times are equal to another, and no two others are nearer to each "
            "other than %g ns; it is right to a microsecond",
            equal, n, step);
}

static void right(tc_contract *k) {
    enum { SHORT = 120, LONG = 30 };
    static const double SHORTEST = 1e-6, SHORT_SECONDS = 100e-6, LONG_SECONDS = 3e-3;
    scene n;
    tn_event_impl *start, *end;
    double ns[SHORT + LONG];
    int i = 0;
    if (!set_up(k, &n) || !tc_event_create(k, n.s, TN_EVENT_TIMING, &start) ||
        !tc_event_create(k, n.s, TN_EVENT_TIMING, &end))
        return;
    for (; i < SHORT + LONG && !tc_failed(k); i++) {
        double part = (double)tc_below(&k->random, 1 << 20) / (1 << 20);
        if (!measure(&n, start, end, SHORTEST + part * (i < SHORT ? SHORT_SECONDS : LONG_SECONDS),
                     &ns[i]))
            return;
    }
    check_steps(k, ns, i);
}

/* What lies between two marks stays so, however many others are recorded. */
static void kept(tc_contract *k) {
    enum { RECORDS = 70000, ROOM = 200 };
    static const double SECONDS = 2e-3, MOST = 0.3;
    scene n;
    tn_event_impl *start, *end, *others[ROOM];
    double ns, later;
    bool ok = set_up(k, &n) && tc_event_create(k, n.s, TN_EVENT_TIMING, &start) &&
              tc_event_create(k, n.s, TN_EVENT_TIMING, &end);
    for (int i = 0; i < ROOM && ok; i++)
        ok = tc_event_create(k, n.s, TN_EVENT_TIMING, &others[i]);
    ok = ok && measure(&n, start, end, SECONDS, &ns);
    double enough = tc_now() + MOST;
    for (int i = 0; i < RECORDS && ok && (i % ROOM || tc_now() < enough); i++) {
        ok = tc_must(k, TNP_EVENT_RECORD, n.events->record(others[i % ROOM], n.other), "record");
        if (ok && i % ROOM == ROOM - 1)
            ok = tc_stream_sync(k, n.other);
    }
    if (ok && tc_must(k, TNP_EVENT_ELAPSED, n.events->elapsed(start, end, &later), "elapsed") &&
        !(fabs(later - ns) <= EXACT + 0.002 * ns))
        TC_BROKEN(k, TNP_EVENT_ELAPSED,
                  "elapsed: %g ns between two events, and when others were recorded %g ns", ns,
                  later);
}

/* ---- when there is none ------------------------------------------------------------------ */

typedef enum state { UNRECORDED, PENDING, PASSED, N_STATES } state;
static const char *const states[N_STATES] = {"was never recorded", "is not complete",
                                             "is complete"};

static bool make(scene *n, state of, tn_event_impl **out) {
    tc_contract *k = n->k;
    tn_stream_impl *stream = of == PENDING ? n->slow : n->other;
    return tc_event_create(k, n->s, TN_EVENT_TIMING, out) &&
           (of == UNRECORDED ||
            tc_must(k, TNP_EVENT_RECORD, n->events->record(*out, stream), "record")) &&
           (of != PASSED ||
            tc_must(k, TNP_EVENT_SYNCHRONIZE, n->events->synchronize(*out), "synchronize"));
}

/* One that was pending may be passed by now. */
static bool is_passed(const scene *n, tn_event_impl *event, state of) {
    return of == PASSED || (of == PENDING && n->events->query(event) == TN_OK);
}

static void ask(scene *n, tn_event_impl *start, state of_start, tn_event_impl *end, state of_end) {
    tc_contract *k = n->k;
    double ns = NAN;
    bool may = is_passed(n, start, of_start) && is_passed(n, end, of_end);
    tc_host_forget();
    tn_status status = n->events->elapsed(start, end, &ns);
    bool has = is_passed(n, start, of_start) && is_passed(n, end, of_end);
    if (status == TN_OK && !has)
        TC_BROKEN(k, TNP_EVENT_ELAPSED,
                  "elapsed: %g ns from an event that %s to one that %s; it is TN_ERR_STATE", ns,
                  states[of_start], states[of_end]);
    else if (status == TN_OK && start == end && !(fabs(ns) <= EXACT))
        TC_BROKEN(k, TNP_EVENT_ELAPSED, "elapsed: %g ns from an event to itself", ns);
    else if (may)
        tc_must(k, TNP_EVENT_ELAPSED, status, "elapsed of events that are complete");
    else if (status != TN_OK)
        tc_must_fail(k, TNP_EVENT_ELAPSED, status, TN_ERR_STATE,
                     "elapsed of events that are not both complete");
}

/* Every two states, and one event twice. */
static void of_states(tc_contract *k) {
    static const double SECONDS = 0.01;
    scene n;
    if (!set_up(k, &n) || !tc_work_create(k, n.s, &n.work))
        return;
    for (int of_start = 0; of_start < N_STATES; of_start++)
        for (int of_end = 0; of_end < N_STATES && !tc_failed(k); of_end++) {
            tn_event_impl *start, *end;
            bool pending = of_start == PENDING || of_end == PENDING;
            if ((pending && !tc_work_hold(k, &n.work, n.slow, SECONDS)) ||
                !make(&n, of_start, &start) || !make(&n, of_end, &end))
                return;
            ask(&n, start, of_start, end, of_end);
            if (of_start == of_end)
                ask(&n, start, of_start, start, of_start);
            tc_stream_sync(k, n.slow);
        }
}

const tc_contract_row tc_event_clock_rows[] = {
    {"event-elapsed-right", "", TC_SMOKE, right},
    {"event-elapsed-states", "", TC_SMOKE, of_states},
    {"event-elapsed-kept", "", TC_STANDARD, kept},
    {0},
};
