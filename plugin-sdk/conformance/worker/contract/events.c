/* Events: completion, waiting on the host and between streams, timing. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* What each case here has: a stream with long work, another that is idle, a buffer. */
typedef struct scene {
    tc_contract *k;
    tc_subject *s;
    const tn_event_ops *events;
    tn_stream_impl *slow, *other;
    tn_event_impl *event;
    tc_work work;
    tc_buffer b;
} scene;

static bool set_up(tc_contract *k, scene *n, uint32_t flags) {
    *n = (scene){.k = k, .s = k->subject, .events = k->subject->ops->events};
    return tc_has_streams(k) && tc_work_create(k, n->s, &n->work) &&
           tc_buffer_create(k, n->s, TN_SPACE_DEVICE, 100000, &n->b) &&
           tc_stream_create(k, n->s, 0, &n->slow) && tc_stream_create(k, n->s, 0, &n->other) &&
           tc_event_create(k, n->s, flags, &n->event);
}

/* After long work the buffer gets this value. */
static bool produce(scene *n, tn_stream_impl *stream, int value) {
    return tc_work_queue(n->k, &n->work, stream) && tc_buffer_fill(n->k, &n->b, stream, value);
}

/* The last of some times it takes a good deal longer: for who gives up, or looks away, after a while. */
static bool produce_late(scene *n, int value, bool is_last) {
    return (!is_last || tc_work_hold(n->k, &n->work, n->slow, 0.2)) && produce(n, n->slow, value);
}

static bool record(scene *n, tn_event_impl *event, tn_stream_impl *stream) {
    return tc_must(n->k, TNP_EVENT_RECORD, n->events->record(event, stream), "record");
}

static bool wait(scene *n, tn_stream_impl *stream, tn_event_impl *event) {
    return tc_must(n->k, TNP_EVENT_WAIT, n->events->wait(stream, event), "wait");
}

static void unrecorded(tc_contract *k) {
    scene n;
    if (set_up(k, &n, 0)) {
        tc_must(k, TNP_EVENT_CREATE, n.events->query(n.event),
                "query of an event that was never recorded");
        tc_must(k, TNP_EVENT_CREATE, n.events->synchronize(n.event),
                "synchronize of an event that was never recorded");
        tc_must(k, TNP_EVENT_CREATE, n.events->wait(n.other, n.event),
                "wait for an event that was never recorded");
        tc_must(k, TNP_EVENT_CREATE, n.s->ops->streams->synchronize(n.other),
                "synchronize of a stream that waited for it");
    }
}

/* Also where one was destroyed that is not yet complete, and the new ones may take its place. */
static void unrecorded_again(tc_contract *k) {
    enum { EVENTS = 4 };
    scene n;
    tn_event_impl *events[EVENTS];
    if (!set_up(k, &n, 0) || !tc_work_queue(k, &n.work, n.slow))
        return;
    for (int i = 0; i < EVENTS; i++)
        if (!tc_event_create(k, n.s, 0, &events[i]) || !record(&n, events[i], n.slow))
            return;
    for (int i = 0; i < EVENTS; i++)
        tc_event_destroy(k, events[i]);
    for (int i = 0; i < EVENTS && tc_event_create(k, n.s, 0, &events[i]); i++)
        tc_must(k, TNP_EVENT_CREATE, n.events->query(events[i]),
                "query of an event that was never recorded, made after others were destroyed");
    tc_stream_sync(k, n.slow);
}

/* When the event says done, what was before it is there, for one who waits for nothing else. */
static void done_means_done(tc_contract *k) {
    scene n;
    bool by_query = strcmp(tc_contract_word(k, "by"), "query") == 0;
    if (set_up(k, &n, 0))
        for (int i = 0; i < 5 && !tc_failed(k); i++) {
            if (!produce(&n, n.slow, 0x20 + i) || !record(&n, n.event, n.slow))
                break;
            if (i % 2) /* behind the mark: not waited for */
                tc_work_queue(k, &n.work, n.slow);
            if (strcmp(tc_contract_word(k, "by"), "both") == 0)
                n.events->query(n.event); /* before it is done: the next may not rely on it */
            tn_status status = by_query ? tc_ask_until_done(k->subject, n.slow, n.event)
                                        : n.events->synchronize(n.event);
            if (tc_must(k, by_query ? TNP_EVENT_QUERY : TNP_EVENT_SYNCHRONIZE, status,
                        by_query ? "query of an event, asked until it was done," : "synchronize"))
                tc_buffer_check(k, &n.b, n.other,
                                by_query ? TNP_EVENT_QUERY : TNP_EVENT_SYNCHRONIZE,
                                "what was queued before an event that is done");
        }
}

/* An event is known to be done; it is recorded as often as a counter takes to come round, the last time behind work. */
static void record_count(tc_contract *k) {
    scene n;
    int64_t count = tc_contract_int(k, "n");
    if (!set_up(k, &n, 0) || !record(&n, n.event, n.other) ||
        !tc_must(k, TNP_EVENT_QUERY, tc_ask_until_done(k->subject, n.other, n.event), "query"))
        return;
    for (int64_t i = 1; i < count; i++)
        if (!record(&n, n.event, n.other))
            return;
    if (tc_stream_sync(k, n.other) && produce(&n, n.slow, 0x5c) && record(&n, n.event, n.slow) &&
        tc_must(k, TNP_EVENT_QUERY, tc_ask_until_done(k->subject, n.slow, n.event), "query"))
        tc_buffer_check(k, &n.b, n.other, TNP_EVENT_QUERY,
                        "what was queued before an event that is done, recorded so many times");
}

/* An event that is recorded again on its stream, with more work there of which somebody has asked, is
 * recorded behind that. */
static void recorded_again(tc_contract *k) {
    scene n;
    if (set_up(k, &n, 0))
        for (int i = 0; i < 3 && !tc_failed(k); i++) {
            if (!record(&n, n.event, n.slow) || !produce(&n, n.slow, 0x61 + i))
                break;
            n.s->ops->streams->query(n.slow);
            if (!record(&n, n.event, n.slow) ||
                !tc_must(k, TNP_EVENT_SYNCHRONIZE, n.events->synchronize(n.event), "synchronize"))
                break;
            tc_buffer_check(k, &n.b, n.other, TNP_EVENT_RECORD,
                            "what was queued before an event that was recorded again");
        }
}

/* Hundreds of marks on a stream of their own, all passed. */
static bool pass_marks(scene *n) {
    enum { EVENTS = 100, ROUNDS = 3 };
    tn_event_impl *events[EVENTS];
    tn_stream_impl *third;
    bool ok = tc_stream_create(n->k, n->s, 0, &third);
    for (int i = 0; i < EVENTS && ok; i++)
        ok = tc_event_create(n->k, n->s, 0, &events[i]);
    for (int i = 0; i < EVENTS * ROUNDS && ok; i++)
        ok = record(n, events[i % EVENTS], third);
    return ok && tc_stream_sync(n->k, third);
}

/* Work behind `wait` sees what was before the mark; then=: what happens afterwards, to the event or
 * beside it. */
static void wait_holds(tc_contract *k) {
    scene n;
    const char *how = tc_contract_word(k, "then");
    if (set_up(k, &n, 0))
        for (int i = 0; i < 5 && !tc_failed(k); i++) {
            if (!produce_late(&n, 0x50 + i, i == 4) || !record(&n, n.event, n.slow) ||
                !wait(&n, n.other, n.event))
                break;
            if (strcmp(how, "record") == 0 && !record(&n, n.event, n.other))
                break;
            if (strcmp(how, "marks") == 0 && !pass_marks(&n))
                break;
            if (strcmp(how, "query") == 0) {
                n.events->query(n.event);
                n.s->ops->streams->query(n.other);
            }
            if (strcmp(how, "destroy") == 0) {
                tc_event_destroy(k, n.event);
                if (!tc_event_create(k, n.s, 0, &n.event))
                    break;
            }
            tc_buffer_check(k, &n.b, n.other, TNP_EVENT_WAIT,
                            "what was queued before an event that the stream waits for");
            tc_stream_sync(k, n.slow);
        }
}

/* A chain over three streams, there and back. */
static void chain(tc_contract *k) {
    scene n;
    tn_stream_impl *third = NULL;
    if (set_up(k, &n, 0) && tc_stream_create(k, n.s, 0, &third)) {
        tn_stream_impl *streams[] = {n.slow, n.other, third};
        for (int i = 0; i < 12 && !tc_failed(k); i++) {
            tn_stream_impl *from = streams[i % 3], *to = streams[(i + 1) % 3];
            if (!produce(&n, from, 0x30 + i) || !record(&n, n.event, from) ||
                !wait(&n, to, n.event))
                break;
            n.work.fills = 1;
        }
        tc_buffer_check(k, &n.b, streams[0], TNP_EVENT_WAIT,
                        "the end of a chain of streams that wait for each other");
    }
}

/* Recorded again while the first mark is pending: it is the second that counts. */
static void record_again(tc_contract *k) {
    scene n;
    if (set_up(k, &n, 0))
        for (int i = 0; i < 4 && !tc_failed(k); i++) {
            if (!produce_late(&n, 0x60 + i, i == 3) || !record(&n, n.event, n.slow) ||
                !produce(&n, n.slow, 0x70 + i) || !record(&n, n.event, n.slow))
                break;
            if (tc_must(k, TNP_EVENT_SYNCHRONIZE, n.events->synchronize(n.event), "synchronize"))
                tc_buffer_check(k, &n.b, n.other, TNP_EVENT_RECORD,
                                "what was queued before an event that was recorded twice");
        }
}

/* Recorded again on an idle stream while the first mark is pending on a busy one, whose it is no more. */
static void record_elsewhere(tc_contract *k) {
    enum { TIMES = 4 };
    scene n;
    if (!set_up(k, &n, 0))
        return;
    for (int i = 0; i < TIMES && !tc_failed(k); i++) {
        if (!tc_work_hold(k, &n.work, n.slow, 0.02 * (1 << i)) || !record(&n, n.event, n.slow) ||
            !record(&n, n.event, n.other) || !tc_stream_sync(k, n.other))
            break;
        tn_status answer = n.events->query(n.event);
        tc_must(k, TNP_EVENT_SYNCHRONIZE, n.events->synchronize(n.event), "synchronize");
        bool busy = n.s->ops->streams->query(n.slow) == TN_NOT_READY;
        if (answer != TN_OK || (busy && n.events->query(n.event) != TN_OK))
            TC_BROKEN(k, TNP_EVENT_RECORD,
                      "an event was recorded on a busy stream and then on one that is done: query "
                      "is %s; the latest record is what counts",
                      tc_tn_status_name(answer));
        tc_stream_sync(k, n.slow);
    }
}

/* Two streams wait for one event: each goes on when it is done. */
static void two_waiters(tc_contract *k) {
    scene n;
    tn_stream_impl *third = NULL;
    if (set_up(k, &n, 0) && tc_stream_create(k, n.s, 0, &third))
        for (int i = 0; i < 5 && !tc_failed(k); i++) {
            if (!produce_late(&n, 0x40 + i, i == 4) || !record(&n, n.event, n.slow) ||
                !wait(&n, n.other, n.event) || !wait(&n, third, n.event))
                break;
            tc_buffer_check(k, &n.b, third, TNP_EVENT_WAIT,
                            "what two streams wait for, read on the second");
            tc_buffer_check(k, &n.b, n.other, TNP_EVENT_WAIT,
                            "what two streams wait for, read on the first");
        }
}

/* One stream waits for many others in a row; the latest stands at another place in it each time. */
static void many_waits(tc_contract *k) {
    enum { STREAMS = 40, ROUNDS = 4, PIECE = 1000 };
    scene n;
    tn_stream_impl *streams[STREAMS];
    tn_event_impl *events[STREAMS];
    bool ok = set_up(k, &n, 0);
    for (int i = 0; i < STREAMS && ok; i++)
        ok = tc_stream_create(k, n.s, 0, &streams[i]) && tc_event_create(k, n.s, 0, &events[i]);
    for (int round = 0; round < ROUNDS && ok; round++) {
        int latest = STREAMS - 1 - round * (STREAMS - 1) / (ROUNDS - 1);
        for (int i = 0; i < STREAMS && ok; i++) {
            ok = (i != latest || tc_work_hold(k, &n.work, streams[i], 0.2)) &&
                 tc_must(k, TNP_TRANSFER_ORDER,
                         n.s->memory->fill(n.s->device, streams[i], n.b.memory, (uint64_t)i * PIECE,
                                           (uint8_t)(i + round), PIECE),
                         "fill") &&
                 record(&n, events[i], streams[i]);
            memset(n.b.model + i * PIECE, i + round, PIECE);
        }
        for (int i = 0; i < STREAMS && ok; i++)
            ok = wait(&n, n.other, events[i]);
        ok = ok && tc_buffer_check(k, &n.b, n.other, TNP_EVENT_WAIT,
                                   "what streams wrote that one waits for, all of them in a row");
    }
}

/* A stream waits for what the event recorded last, not for what it will record: if it did, these two
 * would wait for each other. of=: where the event was by then. */
static void wait_taken(tc_contract *k) {
    enum { SECONDS = 10 };
    scene n;
    tn_event_impl *back = NULL;
    bool passed = strcmp(tc_contract_word(k, "of"), "passed") == 0;
    if (!set_up(k, &n, 0) || !tc_event_create(k, n.s, 0, &back))
        return;
    for (int i = 0; i < 4 && !tc_failed(k); i++) {
        bool ok =
            (passed || tc_work_hold(k, &n.work, n.slow, 0.05)) && record(&n, n.event, n.slow) &&
            (!passed || (tc_stream_sync(k, n.slow) && tc_work_hold(k, &n.work, n.other, 0.05))) &&
            wait(&n, n.other, n.event) && tc_buffer_fill(k, &n.b, n.other, 0x15 + i) &&
            record(&n, back, n.other) && wait(&n, n.slow, back) && record(&n, n.event, n.slow);
        tn_status status = TN_NOT_READY;
        for (double end = tc_now() + SECONDS; ok && status == TN_NOT_READY && tc_now() < end;)
            status = n.events->query(back);
        if (!ok)
            return;
        if (status == TN_NOT_READY)
            TC_BROKEN(k, TNP_EVENT_WAIT,
                      "a stream that waits for an event goes on waiting when the event is recorded "
                      "again, behind that stream's own work: neither ends within %d s",
                      SECONDS);
        else
            tc_buffer_check(
                k, &n.b, n.slow, TNP_EVENT_WAIT,
                "what a stream wrote that waited for an event which was recorded again");
    }
}

/* A stream that is destroyed while it waits: its work still comes after what it waits for. */
static void destroyed_waiter(tc_contract *k) {
    scene n;
    tc_buffer copy = {0};
    if (set_up(k, &n, 0) && tc_buffer_create(k, n.s, TN_SPACE_DEVICE, n.b.bytes, &copy))
        for (int i = 0; i < 4 && !tc_failed(k); i++) {
            if (!produce_late(&n, 0x10 + i, i == 3) || !record(&n, n.event, n.slow) ||
                !wait(&n, n.other, n.event) ||
                !tc_must(k, TNP_TRANSFER_ORDER,
                         n.s->memory->copy(n.s->device, n.other, copy.memory, 0, n.b.memory, 0,
                                           n.b.bytes),
                         "copy"))
                break;
            tc_stream_destroy(k, n.other);
            memcpy(copy.model, n.b.model, copy.bytes);
            tc_buffer_check(k, &copy, n.s->stream, TNP_STREAM_DESTROY_FINISHES,
                            "what a stream copied that was destroyed while it waited for an event");
            if (!tc_stream_create(k, n.s, 0, &n.other))
                break;
        }
}

/* Of streams that are gone, with others in their place that are busy: the events are what they were. */
static void outlived(tc_contract *k) {
    enum { STREAMS = 4 };
    scene n;
    tn_stream_impl *streams[STREAMS];
    tn_event_impl *events[STREAMS];
    bool ok = set_up(k, &n, 0);
    for (int i = 0; i < STREAMS && ok; i++)
        ok = tc_stream_create(k, n.s, 0, &streams[i]) && tc_event_create(k, n.s, 0, &events[i]) &&
             produce(&n, streams[i], 0x11 + i) && record(&n, events[i], streams[i]);
    for (int i = 0; i < STREAMS && ok; i++)
        tc_stream_destroy(k, streams[i]);
    for (int i = 0; i < STREAMS && ok; i++)
        ok = tc_stream_create(k, n.s, 0, &streams[i]) && tc_work_queue(k, &n.work, streams[i]);
    for (int i = 0; i < STREAMS && ok; i++) {
        if (n.events->query(events[i]) != TN_OK)
            TC_BROKEN(k, TNP_EVENT_QUERY,
                      "query of an event whose stream was destroyed is not TN_OK; destroy finishes "
                      "what is queued");
        ok = wait(&n, n.other, events[i]) &&
             tc_must(k, TNP_EVENT_SYNCHRONIZE, n.events->synchronize(events[i]),
                     "synchronize of an event whose stream was destroyed");
    }
    if (ok)
        tc_stream_sync(k, n.other);
}

static tn_status ask_event(tc_contract *k, void *of) {
    const scene *n = of;
    return n->events->query(n->event);
}

static void query_at_once(tc_contract *k) {
    scene n;
    if (set_up(k, &n, 0) && tc_question_waits(k, &n.work, n.slow, n.event, ask_event, &n))
        TC_BROKEN(k, TNP_EVENT_QUERY, "query of an event always waits until it is done");
}

static tn_status ask_to_wait(tc_contract *k, void *of) {
    const scene *n = of;
    return n->events->wait(n->other, n->event);
}

static tn_status ask_to_wait_for_itself(tc_contract *k, void *of) {
    const scene *n = of;
    return n->events->wait(n->slow, n->event);
}

static void wait_at_once(tc_contract *k) {
    scene n;
    if (set_up(k, &n, 0)) {
        if (tc_question_waits(k, &n.work, n.slow, n.event, ask_to_wait, &n))
            TC_BROKEN(k, TNP_EVENT_WAIT, "wait keeps the host until the event is done");
        if (tc_question_waits(k, &n.work, n.slow, n.event, ask_to_wait_for_itself, &n))
            TC_BROKEN(k, TNP_EVENT_WAIT,
                      "wait for an event of the same stream keeps the host until it is done");
    }
}

/* ---- time -------------------------------------------------------------------------------- */

static bool has_clock(const scene *n) {
    return TN_HAS(n->events, tn_event_ops, elapsed) && n->events->elapsed;
}

/* As set_up, with a second event; both have a clock. */
static bool set_up_clock(tc_contract *k, scene *n, tn_event_impl **out_end) {
    if (!set_up(k, n, TN_EVENT_TIMING) || !tc_event_create(k, n->s, TN_EVENT_TIMING, out_end))
        return false;
    return has_clock(n) || TC_NOT_OFFERED(k, "no elapsed");
}

/* From one mark to the other, and back: the same with a minus, to a float's precision. */
static bool measure(scene *n, tn_event_impl *from, tn_event_impl *to, double *out_ns) {
    double back = NAN;
    if (!tc_must(n->k, TNP_EVENT_ELAPSED, n->events->elapsed(from, to, out_ns), "elapsed") ||
        !tc_must(n->k, TNP_EVENT_ELAPSED, n->events->elapsed(to, from, &back),
                 "elapsed from the later of two marks to the earlier"))
        return false;
    return fabs(*out_ns + back) <= 1e-5 * fabs(*out_ns) + 1000 ||
           TC_BROKEN(n->k, TNP_EVENT_ELAPSED,
                     "elapsed: %g ns from one mark to the other, and %g ns back, which is negative",
                     *out_ns, back);
}

/* Two marks with long work between them: what `elapsed` says, and how long the host saw it take. */
static bool time_work(scene *n, tn_event_impl *end, double *out_ns, double *out_host) {
    double start = tc_now();
    if (!record(n, n->event, n->slow) || !produce(n, n->slow, 1) || !record(n, end, n->slow) ||
        !tc_must(n->k, TNP_EVENT_SYNCHRONIZE, n->events->synchronize(end), "synchronize"))
        return false;
    *out_host = 1e9 * (tc_now() - start);
    return measure(n, n->event, end, out_ns);
}

/* Some times, as the host may be kept from looking: the device's time is never longer than the
 * host's, and now and then a good part of it. */
static void elapsed(tc_contract *k) {
    enum { SHARE = 50 };
    scene n;
    tn_event_impl *end = NULL;
    double ns = NAN, host = 0;
    bool plausible = false;
    if (!set_up_clock(k, &n, &end))
        return;
    tc_host_forget();
    tc_must_fail(k, TNP_EVENT_ELAPSED, n.events->elapsed(n.event, end, &ns), TN_ERR_STATE,
                 "elapsed of events that were not recorded");
    if (!isnan(ns) && ns != 0)
        TC_BROKEN(k, TNP_EVENT_ELAPSED, "elapsed failed, and gave %g ns all the same", ns);
    for (int i = 0; i < 5 && !plausible && !tc_failed(k); i++) {
        if (!time_work(&n, end, &ns, &host))
            break;
        if (!(ns > 0 && ns <= host + 1e6))
            TC_BROKEN(k, TNP_EVENT_ELAPSED,
                      "elapsed: %g ns of work that took the host %g ns to see done", ns, host);
        plausible = ns >= host / SHARE;
    }
    if (!plausible && !tc_failed(k))
        TC_BROKEN(k, TNP_EVENT_ELAPSED,
                  "elapsed: %g ns of work that took the host %g ns; is it nanoseconds?", ns, host);
}

/* Between marks of which one was not passed there is no time yet. */
static void elapsed_pending(tc_contract *k) {
    scene n;
    tn_event_impl *end = NULL;
    if (!set_up_clock(k, &n, &end))
        return;
    for (int i = 0; i < 5 && !tc_failed(k); i++) {
        double ns = 0;
        if (!record(&n, n.event, n.slow) || !produce(&n, n.slow, i) || !record(&n, end, n.slow))
            break;
        tn_status status = n.events->elapsed(n.event, end, &ns);
        if (status == TN_OK && n.events->query(end) == TN_NOT_READY)
            TC_BROKEN(k, TNP_EVENT_ELAPSED,
                      "elapsed says %g ns of events that were not passed; it is TN_ERR_STATE", ns);
        else if (status != TN_OK)
            tc_must_fail(k, TNP_EVENT_ELAPSED, status, TN_ERR_STATE,
                         "elapsed of events that were not passed");
        tc_stream_sync(k, n.slow);
    }
}

/* As soon as the stream is done its marks are passed, and their time is known. */
static void elapsed_at_once(tc_contract *k) {
    scene n;
    tn_event_impl *end = NULL;
    double ns = 0;
    if (!set_up_clock(k, &n, &end))
        return;
    for (int i = 0; i < 300 && !tc_failed(k) && record(&n, n.event, n.slow) &&
                    record(&n, end, n.slow) && tc_stream_sync(k, n.slow);
         i++) {
        tc_host_forget();
        tc_must(k, TNP_EVENT_ELAPSED, n.events->elapsed(n.event, end, &ns),
                "elapsed of events of a stream that is done");
        tc_must(k, TNP_EVENT_ELAPSED, n.events->query(end),
                "query of an event of a stream that is done");
    }
}

/* One of the two was made without TN_EVENT_TIMING. */
static void elapsed_untimed(tc_contract *k) {
    scene n;
    tn_event_impl *end = NULL, *plain = NULL;
    double ns = 0;
    if (!set_up_clock(k, &n, &end) || !tc_event_create(k, n.s, 0, &plain) ||
        !record(&n, n.event, n.slow) || !record(&n, plain, n.slow) || !record(&n, end, n.slow) ||
        !tc_stream_sync(k, n.slow))
        return;
    tc_host_forget();
    tc_must_fail(k, TNP_EVENT_ELAPSED, n.events->elapsed(plain, end, &ns), TN_ERR_STATE,
                 "elapsed from an event without TN_EVENT_TIMING");
    tc_host_forget();
    tc_must_fail(k, TNP_EVENT_ELAPSED, n.events->elapsed(n.event, plain, &ns), TN_ERR_STATE,
                 "elapsed to an event without TN_EVENT_TIMING");
    tc_must(k, TNP_EVENT_ELAPSED, n.events->elapsed(n.event, end, &ns),
            "elapsed of the two that have it");
}

/* ---- a mark that is held for long -------------------------------------------------------- */

typedef struct witness {
    scene *n;
    tn_event_impl *mark;
    tn_status status, after;
    pthread_t thread;
} witness;

static void *wait_for_mark(void *context) {
    witness *w = context;
    w->status = w->n->events->synchronize(w->mark);
    w->after = w->n->events->query(w->mark);
    return NULL;
}

/* Who waited for the mark goes on when it is passed. Returns the seconds for which it was held. */
static double look_behind(scene *n, tn_event_impl *start, double begun, tc_buffer *copy,
                          witness *w) {
    tc_contract *k = n->k;
    double queued = tc_now(), ns = 0;
    bool runs = pthread_create(&w->thread, NULL, wait_for_mark, w) == 0;
    tn_status done = n->s->ops->streams->synchronize(n->other);
    tn_status mark = n->events->query(n->event);
    double waited = tc_now() - queued;
    if (runs)
        pthread_join(w->thread, NULL);
    tc_must(k, TNP_STREAM_SYNCHRONIZE, done, "synchronize of a stream that waits for a mark");
    if (mark == TN_NOT_READY)
        TC_BROKEN(k, TNP_EVENT_WAIT,
                  "a stream that waits for a mark went on after %g s, before the mark was passed",
                  waited);
    if (runs && (w->status != TN_OK || w->after != TN_OK))
        TC_BROKEN(k, TNP_EVENT_SYNCHRONIZE,
                  "synchronize of an event that is held for long returned %s, and query then %s",
                  tc_tn_status_name(w->status), tc_tn_status_name(w->after));
    memcpy(copy->model, n->b.model, copy->bytes);
    tc_buffer_check(k, copy, n->s->stream, TNP_EVENT_WAIT, "what a stream copied behind a mark");
    if (has_clock(n) && !tc_failed(k) && measure(n, start, n->event, &ns) &&
        (ns < 0.9e9 * waited || ns > 1e9 * (tc_now() - begun) + 1e6))
        TC_BROKEN(k, TNP_EVENT_ELAPSED, "elapsed: %g s between marks of which the host saw %g s",
                  1e-9 * ns, waited);
    return waited;
}

/* Far longer than any watchdog of a driver has patience. */
static void held(tc_contract *k) {
    scene n;
    tc_buffer copy;
    tn_event_impl *start = NULL;
    if (!set_up(k, &n, TN_EVENT_TIMING) || !tc_event_create(k, n.s, TN_EVENT_TIMING, &start) ||
        !tc_buffer_create(k, n.s, TN_SPACE_DEVICE, n.b.bytes, &copy))
        return;
    witness w = {.n = &n, .mark = n.event};
    double wanted = 1e-3 * (double)tc_contract_int(k, "milliseconds"), waited = 0, queueing = 0;
    /* Work was measured on a machine that may have been busy, and takes less than it did then. It
       is of no use to try more where the host is held instead: the work is done by then. */
    for (int i = 0; i < 3 && waited < 0.75 * wanted && queueing < wanted && !tc_failed(k); i++) {
        double begun = tc_now();
        if (record(&n, start, n.slow) && tc_work_hold(k, &n.work, n.slow, wanted * (1 << i)) &&
            tc_buffer_fill(k, &n.b, n.slow, 0x6d + i) && record(&n, n.event, n.slow) &&
            wait(&n, n.other, n.event) &&
            tc_must(
                k, TNP_TRANSFER_ORDER,
                n.s->memory->copy(n.s->device, n.other, copy.memory, 0, n.b.memory, 0, copy.bytes),
                "copy")) {
            queueing = tc_now() - begun;
            waited = look_behind(&n, start, begun, &copy, &w);
        }
    }
    if (waited < 0.75 * wanted && !tc_failed(k))
        TC_NOT_OFFERED(k, "the device's queue holds work of %g s at most", waited);
}

static void many(tc_contract *k) {
    scene n;
    int all = (int)tc_contract_int(k, "n"), made = 0;
    tn_event_impl **events = tc_arena_array(&k->arena, (uint64_t)all, sizeof(tn_event_impl *));
    if (!events || !set_up(k, &n, 0))
        return;
    for (; made < all && !tc_failed(k) &&
           tc_event_create(k, n.s, made % 2 ? TN_EVENT_TIMING : 0, &events[made]);
         made++)
        record(&n, events[made], made % 3 ? n.slow : n.other);
    /* The latest of so many is an event like any other, and so is the first. */
    for (int i = 0; i < 2 && !tc_failed(k); i++) {
        tn_event_impl *event = events[i ? 0 : all - 1];
        if (produce(&n, n.slow, 0x33 + i) && record(&n, event, n.slow) &&
            tc_must(k, TNP_EVENT_SYNCHRONIZE, n.events->synchronize(event), "synchronize"))
            tc_buffer_check(k, &n.b, n.other, TNP_EVENT_SYNCHRONIZE,
                            "what was queued before one of many events that live together");
    }
    while (made-- > 0 && !tc_failed(k)) {
        tc_must(k, TNP_EVENT_SYNCHRONIZE, n.events->synchronize(events[made]),
                "synchronize of one of many events");
        if (n.events->query(events[made]) != TN_OK)
            TC_BROKEN(k, TNP_EVENT_QUERY, "query after synchronize of an event is not TN_OK");
        tc_event_destroy(k, events[made]);
    }
}

const tc_contract_row tc_event_rows[] = {
    {"event-unrecorded", "", TC_SMOKE, unrecorded},
    {"event-unrecorded-again", "", TC_SMOKE, unrecorded_again},
    {"event-done-means-done", "by=query", TC_SMOKE, done_means_done},
    {"event-done-means-done", "by=synchronize", TC_SMOKE, done_means_done},
    {"event-done-means-done", "by=both", TC_SMOKE, done_means_done},
    {"event-recorded-again", "", TC_SMOKE, recorded_again},
    {"event-record-count", "n=256", TC_STANDARD, record_count},
    {"event-record-count", "n=65536", TC_STANDARD, record_count},
    {"event-wait-holds", "then=nothing", TC_SMOKE, wait_holds},
    {"event-wait-holds", "then=record", TC_SMOKE, wait_holds},
    {"event-wait-holds", "then=destroy", TC_SMOKE, wait_holds},
    {"event-wait-holds", "then=query", TC_SMOKE, wait_holds},
    {"event-wait-holds", "then=marks", TC_SMOKE, wait_holds},
    {"event-chain", "", TC_SMOKE, chain},
    {"event-record-again", "", TC_SMOKE, record_again},
    {"event-record-elsewhere", "", TC_SMOKE, record_elsewhere},
    {"event-two-waiters", "", TC_SMOKE, two_waiters},
    {"event-many-waits", "", TC_SMOKE, many_waits},
    {"event-wait-taken", "of=passed", TC_SMOKE, wait_taken},
    {"event-wait-taken", "of=pending", TC_SMOKE, wait_taken},
    {"event-destroyed-waiter", "", TC_SMOKE, destroyed_waiter},
    {"event-outlives-stream", "", TC_SMOKE, outlived},
    {"event-query-at-once", "", TC_SMOKE, query_at_once},
    {"event-wait-at-once", "", TC_SMOKE, wait_at_once},
    {"event-elapsed", "", TC_SMOKE, elapsed},
    {"event-elapsed-pending", "", TC_SMOKE, elapsed_pending},
    {"event-elapsed-at-once", "", TC_SMOKE, elapsed_at_once},
    {"event-elapsed-untimed", "", TC_SMOKE, elapsed_untimed},
    {"event-many", "n=500", TC_SMOKE, many},
    {"event-many", "n=5000", TC_STANDARD, many},
    {"event-held", "milliseconds=3000", TC_STANDARD, held},
    {"event-held", "milliseconds=6000", TC_EXHAUSTIVE, held},
    {0},
};
