/* Threads that wait for one stream. Two, the second for more than the first: when the first goes on the second is not
 * forgotten, in whichever ways the two wait. And as many as a byte does not count: none is forgotten. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include <pthread.h>
#include <stdio.h>

enum { SMALL = 64 };

typedef enum way { STREAM, EVENT, READ, N_WAYS } way;
static const char *const ways[N_WAYS] = {"synchronize of the stream", "synchronize of an event",
                                         "a read"};

typedef struct waiter {
    tc_subject *s;
    tn_stream_impl *stream;
    tn_event_impl *event; /* where its wait ends */
    const tc_buffer *b;
    way way;
    tn_status status;
} waiter;

static void *wait_for_it(void *context) {
    waiter *w = context;
    unsigned char bytes[SMALL];
    w->status = w->way == STREAM  ? w->s->ops->streams->synchronize(w->stream)
                : w->way == EVENT ? w->s->ops->events->synchronize(w->event)
                                  : w->s->memory->copy_to_host(w->s->device, w->stream, bytes, 0,
                                                               w->b->memory, 0, sizeof bytes);
    return NULL;
}

static bool queue(tc_contract *k, const tc_work *work, const waiter *w, double seconds) {
    return tc_work_hold(k, work, w->stream, seconds) &&
           tc_must(k, TNP_EVENT_RECORD, w->s->ops->events->record(w->event, w->stream), "record");
}

/* The first is in its wait when the second's work is queued, as a rule. */
static void wait_both(tc_contract *k, const tc_work *work, waiter both[2]) {
    static const double FIRST = 0.006, SECOND = 0.008;
    pthread_t thread;
    char what[128];
    if (!queue(k, work, &both[0], FIRST))
        return;
    if (pthread_create(&thread, NULL, wait_for_it, &both[0]) != 0) {
        TC_CASE_ERROR(k->out, "a thread cannot be started");
        return;
    }
    nanosleep(&(struct timespec){0, 1000000}, NULL);
    bool ok = queue(k, work, &both[1], SECOND);
    if (ok)
        wait_for_it(&both[1]);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2 && ok; i++) {
        snprintf(what, sizeof what, "%s, beside %s of another thread", ways[both[i].way],
                 ways[both[!i].way]);
        tc_must(k, TNP_THREADS_CONCURRENT, both[i].status, what);
    }
}

static void two_waits(tc_contract *k) {
    tc_work work;
    tc_buffer b;
    waiter both[2] = {{.s = k->subject}, {.s = k->subject}};
    if (!tc_has_streams(k) || !tc_work_create(k, k->subject, &work) ||
        !tc_buffer_create(k, k->subject, TN_SPACE_DEVICE, SMALL, &b) ||
        !tc_stream_create(k, k->subject, 0, &both[0].stream) ||
        !tc_event_create(k, k->subject, 0, &both[0].event) ||
        !tc_event_create(k, k->subject, 0, &both[1].event))
        return;
    both[1].stream = both[0].stream;
    both[0].b = both[1].b = &b;
    for (both[0].way = 0; both[0].way < N_WAYS; both[0].way++)
        for (both[1].way = 0; both[1].way < N_WAYS && !tc_failed(k); both[1].way++)
            wait_both(k, &work, both);
    tc_stream_sync(k, both[0].stream);
}

/* All of them are in their wait when the stream's work ends, as a rule. */
static void many_waits(tc_contract *k) {
    enum { WAITERS = 256 };
    static const size_t STACK = 1 << 18;
    tc_work work;
    tc_buffer b;
    waiter first = {.s = k->subject, .b = &b}, *all = NULL;
    pthread_t threads[WAITERS];
    pthread_attr_t attributes;
    if (!tc_has_streams(k) || !tc_work_create(k, k->subject, &work) ||
        !tc_buffer_create(k, k->subject, TN_SPACE_DEVICE, SMALL, &b) ||
        !tc_stream_create(k, k->subject, 0, &first.stream) ||
        !tc_event_create(k, k->subject, 0, &first.event))
        return;
    if (!(all = tc_arena_array(&k->arena, WAITERS, sizeof *all))) {
        TC_CASE_ERROR(k->out, "the host has no memory for %d threads", WAITERS);
        return;
    }
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    for (first.way = STREAM; first.way <= EVENT && !tc_failed(k);
         first.way++) { /* reads have places of their own */
        int n = 0;
        if (!queue(k, &work, &first, 0.15))
            break;
        for (; n < WAITERS; n++) {
            all[n] = first;
            if (pthread_create(&threads[n], &attributes, wait_for_it, &all[n]) != 0)
                break;
        }
        for (int i = 0; i < n; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < n && !tc_failed(k); i++)
            tc_must(k, TNP_THREADS_CONCURRENT, all[i].status, ways[first.way]);
    }
    pthread_attr_destroy(&attributes);
    tc_stream_sync(k, first.stream);
}

const tc_contract_row tc_two_waits_rows[] = {
    {"thread-two-waits", "", TC_SMOKE, two_waits},
    {"thread-many-waits", "", TC_STANDARD, many_waits},
    {0},
};
