/* Streams: ordering, synchronization, destruction. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A fill of so much takes longer than a look at what it reaches last. */
enum { LONG_BYTES = 16 << 20, END_BYTES = 64 };

/* On a device with small allocations the largest there is. */
static uint64_t long_bytes(const tc_subject *s) {
    uint64_t most = s->max_allocation;
    return most > END_BYTES && most < LONG_BYTES ? most : LONG_BYTES;
}

/* The end of what a fill wrote, by way of a stream that waits for nothing. */
static void check_end(tc_contract *k, const tc_buffer *b, tn_requirement requirement,
                      const char *what) {
    tc_subject *s = k->subject;
    uint64_t from = b->bytes - END_BYTES;
    unsigned char now[END_BYTES];
    if (!tc_must(k, TNP_READ_COMPLETE,
                 s->memory->copy_to_host(s->device, s->stream, now, 0, b->memory, from, END_BYTES),
                 "read"))
        return;
    if (memcmp(now, b->model + from, END_BYTES) != 0)
        TC_BROKEN(k, requirement, "%s: its last byte should be 0x%02x and is 0x%02x", what,
                  b->model[b->bytes - 1], now[END_BYTES - 1]);
}

/* A stream of its own, with long work to put before what it writes. */
typedef struct scene {
    tc_work work;
    tc_buffer b;
    tn_stream_impl *stream;
} scene;

static bool set_up(tc_contract *k, scene *n) {
    return tc_has_streams(k) && tc_work_create(k, k->subject, &n->work) &&
           tc_buffer_create(k, k->subject, TN_SPACE_DEVICE, long_bytes(k->subject), &n->b) &&
           tc_stream_create(k, k->subject, 0, &n->stream);
}

/* Where the row says so, what is queued is looked at once: what follows may not rely on the look. */
static void ask_first(tc_contract *k, tn_stream_impl *stream) {
    if (strcmp(tc_contract_word(k, "first"), "query") == 0 &&
        k->subject->ops->streams->query(stream) != TN_NOT_READY)
        (void)k->subject->ops->streams->query(stream);
}

/* Long work, then a change, then `destroy`: the change is there. */
static void destroy_finishes(tc_contract *k) {
    tc_subject *s = k->subject;
    tc_work work;
    tc_buffer b;
    tn_stream_impl *stream;
    if (!tc_has_streams(k) || !tc_work_create(k, s, &work) ||
        !tc_buffer_create(k, s, TN_SPACE_DEVICE, 5000, &b))
        return;
    for (int i = 0; i < 6 && !tc_failed(k) && tc_stream_create(k, s, i - 3, &stream); i++) {
        if (i % 2 == 0)
            tc_work_hold(k, &work, stream, i ? 0.2 : 0.02);
        tc_buffer_fill(k, &b, stream, 0x40 + i);
        ask_first(k, stream);
        tc_stream_destroy(k, stream);
        tc_buffer_check(k, &b, s->stream, TNP_STREAM_DESTROY_FINISHES,
                        "what a stream had queued when it was destroyed");
    }
}

/* Four times long work and a change of the whole buffer: what `wait` says is done is there. */
static void finish_and_look(tc_contract *k, scene *n,
                            bool (*wait)(tc_contract *k, tn_stream_impl *stream), int value,
                            tn_requirement requirement, const char *what) {
    for (int i = 0; i < 4 && !tc_failed(k); i++) {
        tc_work_queue(k, &n->work, n->stream);
        tc_buffer_fill(k, &n->b, n->stream, value + i);
        if (!wait(k, n->stream))
            return;
        check_end(k, &n->b, requirement, what);
    }
    if (!tc_failed(k))
        tc_buffer_check(k, &n->b, k->subject->stream, requirement, what);
}

static bool ask_until_done(tc_contract *k, tn_stream_impl *stream) {
    return tc_must(k, TNP_STREAM_QUERY, tc_ask_until_done(k->subject, stream, NULL),
                   "query of a stream, asked until its work was done,");
}

/* While work is left, `query` says TN_NOT_READY at once; when it says TN_OK the data is there. */
static void query(tc_contract *k) {
    scene n;
    if (set_up(k, &n))
        finish_and_look(k, &n, ask_until_done, 0x70, TNP_STREAM_QUERY,
                        "what a stream wrote that `query` says is done");
}

static tn_status ask_stream(tc_contract *k, void *of) {
    return k->subject->ops->streams->query(of);
}

static void query_at_once(tc_contract *k) {
    tc_work work;
    tn_stream_impl *stream;
    if (tc_has_streams(k) && tc_work_create(k, k->subject, &work) &&
        tc_stream_create(k, k->subject, 0, &stream) &&
        tc_question_waits(k, &work, stream, NULL, ask_stream, stream))
        TC_BROKEN(k, TNP_STREAM_QUERY, "query of a stream always waits until its work is done");
}

static bool wait_and_ask(tc_contract *k, tn_stream_impl *stream) {
    ask_first(k, stream);
    tc_stream_sync(k, stream);
    if (k->subject->ops->streams->query(stream) != TN_OK)
        TC_BROKEN(k, TNP_STREAM_QUERY, "query after synchronize is not TN_OK");
    return true;
}

static void synchronize(tc_contract *k) {
    scene n;
    if (set_up(k, &n))
        finish_and_look(k, &n, wait_and_ask, 0x10, TNP_STREAM_SYNCHRONIZE,
                        "what a stream wrote that was synchronized");
}

/* Many at once, of all priorities, each with work of its own. */
static void many(tc_contract *k) {
    tc_subject *s = k->subject;
    int all = (int)tc_contract_int(k, "n"), n = 0;
    tn_stream_impl **streams = tc_arena_array(&k->arena, (uint64_t)all, sizeof *streams);
    tc_buffer b;
    if (!streams || !tc_has_streams(k) ||
        !tc_buffer_create(k, s, TN_SPACE_DEVICE, (uint64_t)all * 100, &b))
        return;
    while (n < all && tc_stream_create(k, s, n % 21 - 10, &streams[n]))
        n++;
    for (int i = 0; i < n; i++)
        for (int step = 0; step < 5; step++) { /* in order within each */
            memset(b.model + i * 100 + step, i + step, 100 - (size_t)step);
            tc_must(k, TNP_FILL_VALUE,
                    s->memory->fill(s->device, streams[i], b.memory,
                                    (uint64_t)i * 100 + (uint64_t)step, (uint8_t)(i + step),
                                    100 - (uint64_t)step),
                    "fill");
        }
    for (int i = 0; i < n; i++)
        tc_stream_sync(k, streams[i]);
    for (int i = 0; i < n && n == all; i++)
        tc_stream_destroy(k, streams[(i * 7) % n]); /* n is no multiple of 7 */
    if (!tc_failed(k))
        tc_buffer_check(k, &b, s->stream, TNP_STREAM_ORDER,
                        "what many streams wrote, each in its order");
}

/* Far more and far less urgent than any device knows, and work for each. */
static void priority(tc_contract *k) {
    static const int32_t priorities[] = {INT32_MIN, INT32_MAX, -1000, 1000, 11, -11};
    tc_subject *s = k->subject;
    tc_buffer b;
    tn_stream_impl *stream;
    if (!tc_has_streams(k) || !tc_buffer_create(k, s, TN_SPACE_DEVICE, 5000, &b))
        return;
    for (int i = 0; i < 6 && tc_stream_create(k, s, priorities[i], &stream); i++) {
        tc_buffer_fill(k, &b, stream, 0x50 + i);
        if (tc_stream_sync(k, stream))
            tc_buffer_check(k, &b, s->stream, TNP_STREAM_CREATE,
                            "what a stream of a far priority wrote");
    }
}

/* Priorities are hints, which change no order: what waits for a stream that is less urgent, or more,
 * comes behind it, and comes. */
static void priority_order(tc_contract *k) {
    static const int32_t priorities[][2] = {{-1000, 1000}, {1000, -1000}, {-1, 0}, {0, 1}};
    tc_subject *s = k->subject;
    tc_work work;
    tc_buffer a, b;
    tn_event_impl *event;
    if (!tc_has_streams(k) || !tc_work_create(k, s, &work) || !tc_event_create(k, s, 0, &event) ||
        !tc_buffer_create(k, s, TN_SPACE_DEVICE, 5000, &a) ||
        !tc_buffer_create(k, s, TN_SPACE_DEVICE, 5000, &b))
        return;
    for (size_t i = 0; i < sizeof priorities / sizeof *priorities && !tc_failed(k); i++) {
        tn_stream_impl *waits, *first;
        if (!tc_stream_create(k, s, priorities[i][0], &waits) ||
            !tc_stream_create(k, s, priorities[i][1], &first) ||
            !tc_work_hold(k, &work, first, 0.02))
            return;
        tc_buffer_fill(k, &a, first, 0x41 + (int)i);
        tc_must(k, TNP_EVENT_RECORD, s->ops->events->record(event, first), "record");
        tc_must(k, TNP_EVENT_WAIT, s->ops->events->wait(waits, event), "wait");
        tc_must(k, TNP_TRANSFER_RANGE,
                s->memory->copy(s->device, waits, b.memory, 0, a.memory, 0, b.bytes), "copy");
        memcpy(b.model, a.model, b.bytes);
        if (tc_stream_sync(k, waits))
            tc_buffer_check(k, &b, s->stream, TNP_EVENT_WAIT,
                            "what a stream copied behind one of another priority");
        tc_stream_destroy(k, waits);
        tc_stream_destroy(k, first);
    }
}

/* A read to pinned memory is work like any other: `destroy` finishes it. */
static void destroy_finishes_pinned(tc_contract *k) {
    tc_subject *s = k->subject;
    tc_work work;
    tc_buffer b, pinned;
    tn_stream_impl *stream;
    if (!tc_has_streams(k) || !tc_has_pinned(k) || !tc_work_create(k, s, &work) ||
        !tc_buffer_create(k, s, TN_SPACE_DEVICE, 50000, &b) ||
        !tc_buffer_create(k, s, TN_SPACE_PINNED, 50000, &pinned))
        return;
    for (int i = 0; i < 4 && !tc_failed(k) && tc_stream_create(k, s, 0, &stream); i++) {
        tc_work_queue(k, &work, stream);
        tc_buffer_fill(k, &b, stream, 0x30 + i);
        memcpy(pinned.model, b.model, b.bytes);
        tc_must(k, TNP_TRANSFER_PINNED,
                s->memory->copy_to_host(s->device, stream, pinned.host, pinned.memory, b.memory, 0,
                                        b.bytes),
                "read to pinned memory");
        tc_stream_destroy(k, stream);
        tc_buffer_check(k, &pinned, NULL, TNP_STREAM_DESTROY_FINISHES,
                        "pinned memory that a stream was reading to when it was destroyed");
    }
}

/* Destroyed at once, again and again: when it was made, when a query has said that it is done, and when it has work. */
static void brief(tc_contract *k) {
    int64_t times = tc_contract_int(k, "times");
    tc_subject *s = k->subject;
    tc_buffer b;
    tn_stream_impl *stream;
    if (!tc_has_streams(k) || !tc_buffer_create(k, s, TN_SPACE_DEVICE, 256, &b))
        return;
    for (int i = 0; i < times && !tc_failed(k) && tc_stream_create(k, s, 0, &stream); i++) {
        if (i % 3 != 0)
            tc_buffer_fill(k, &b, stream, i & 0xff);
        if (i % 3 == 1)
            ask_until_done(k, stream);
        tc_stream_destroy(k, stream);
    }
    tc_buffer_check(k, &b, s->stream, TNP_STREAM_DESTROY_FINISHES,
                    "what the last of many brief streams wrote");
}

/* One command on a stream that has slept for a while, and a caller who does nothing but ask. */
static void polled(tc_contract *k) {
    static const double SLEEP = 0.005;
    const tc_subject *s = k->subject;
    const char *what = tc_contract_word(k, "what");
    scene n;
    tn_event_impl *event;
    bool ok = set_up(k, &n) && tc_event_create(k, k->subject, 0, &event);
    for (int i = 0; ok && i < 4; i++) {
        bool pending = i % 2; /* what a wait is for */
        ok = tc_stream_sync(k, n.stream) &&
             (!pending || tc_work_hold(k, &n.work, s->stream, 4 * SLEEP)) &&
             tc_must(k, TNP_EVENT_RECORD, s->ops->events->record(event, s->stream), "record");
        for (double end = tc_now() + SLEEP; tc_now() < end;)
            sched_yield();
        if (ok && strcmp(what, "wait") == 0)
            ok = tc_must(k, TNP_EVENT_WAIT, s->ops->events->wait(n.stream, event), "wait");
        else if (ok && strcmp(what, "record") == 0)
            ok = tc_must(k, TNP_EVENT_RECORD, s->ops->events->record(event, n.stream), "record");
        else
            ok = ok && tc_buffer_fill(k, &n.b, n.stream, i);
        if (ok && tc_ask_until_done(s, n.stream, NULL) != TN_OK)
            ok =
                TC_BROKEN(k, TNP_STREAM_QUERY,
                          "a stream has one command, a %s, and its query does not come to say that "
                          "it is done, with nobody waiting for it",
                          what);
        ok = ok && tc_subject_sync(k->subject) == TN_OK;
    }
}

const tc_contract_row tc_stream_rows[] = {
    {"stream-destroy-finishes", "first=nothing", TC_SMOKE, destroy_finishes},
    {"stream-destroy-finishes", "first=query", TC_SMOKE, destroy_finishes},
    {"stream-brief", "times=3000", TC_STANDARD, brief},
    {"stream-brief", "times=100000", TC_EXHAUSTIVE, brief},
    {"stream-destroy-finishes-pinned", "", TC_SMOKE, destroy_finishes_pinned},
    {"stream-priority", "", TC_SMOKE, priority},
    {"stream-priority-order", "", TC_SMOKE, priority_order},
    {"stream-query", "", TC_SMOKE, query},
    {"stream-query-at-once", "", TC_SMOKE, query_at_once},
    {"stream-polled", "what=fill", TC_SMOKE, polled},
    {"stream-polled", "what=wait", TC_SMOKE, polled},
    {"stream-polled", "what=record", TC_SMOKE, polled},
    {"stream-synchronize", "first=nothing", TC_SMOKE, synchronize},
    {"stream-synchronize", "first=query", TC_SMOKE, synchronize},
    {"stream-many", "n=40", TC_SMOKE, many},
    {"stream-many", "n=600", TC_STANDARD, many},
    {0},
};
