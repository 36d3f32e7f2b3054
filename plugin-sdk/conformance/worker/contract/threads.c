/* Concurrent calls of functions tagged any-thread: creating and destroying streams and events,
 * transfers on one stream. Kernels are in same/ (how=threads), memory is in memory.c. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 5, ROUNDS = 25, ROOM = 4000 };

typedef struct worker {
    tc_subject *s;
    tc_buffer *buffer;
    uint64_t first;       /* of the ROOM bytes that are this thread's */
    tn_event_impl *event; /* that all threads record */
    pthread_t thread;
    char wrong[160];
} worker;

#define CHECK(w, status, what) \
    do { \
        tn_status status_ = (status); \
        char reason[TC_MESSAGE]; \
        if (status_ != TN_OK) { \
            snprintf((w)->wrong, sizeof(w)->wrong, "%s: %.100s", what, \
                     tc_reason(status_, reason)); \
            return NULL; \
        } \
    } while (0)

/* A stream of its own in each round, joined with the shared one by an event. */
static void *streams_and_events(void *context) {
    worker *w = context;
    tc_subject *s = w->s;
    for (int i = 0; i < ROUNDS; i++) {
        tn_stream_impl *stream;
        tn_event_impl *event;
        CHECK(w, s->ops->streams->create(s->device, 0, &stream), "create of a stream");
        CHECK(w, s->ops->events->create(s->device, 0, &event), "create of an event");
        CHECK(w, s->memory->fill(s->device, stream, w->buffer->memory, w->first, (uint8_t)i, ROOM),
              "fill");
        CHECK(w, s->ops->events->record(event, stream), "record");
        CHECK(w, s->ops->events->wait(s->stream, event), "wait");
        s->ops->events->destroy(event);
        if (i % 2)
            CHECK(w, s->ops->streams->synchronize(stream), "synchronize");
        s->ops->streams->destroy(stream);
    }
    return NULL;
}

/* One event, recorded again and again by all of them, each on a stream of its own. */
static void *one_event(void *context) {
    worker *w = context;
    tc_subject *s = w->s;
    tn_stream_impl *stream;
    CHECK(w, s->ops->streams->create(s->device, 0, &stream), "create of a stream");
    for (int i = 0; i < 40 * ROUNDS; i++) {
        CHECK(w, s->ops->events->record(w->event, stream), "record of an event by several threads");
        tn_status status = s->ops->events->query(w->event);
        CHECK(w, status == TN_NOT_READY ? TN_OK : status, "query of an event");
        if (i % 4 == 0)
            CHECK(w, s->ops->events->wait(stream, w->event), "wait");
        if (i % 64 == 0)
            CHECK(w, s->ops->streams->synchronize(stream), "synchronize");
    }
    CHECK(w, s->ops->streams->synchronize(stream), "synchronize");
    s->ops->streams->destroy(stream);
    return NULL;
}

/* All on one stream. */
static void *transfers(void *context) {
    worker *w = context;
    tc_subject *s = w->s;
    unsigned char bytes[ROOM], back[ROOM];
    for (int i = 0; i < ROUNDS; i++) {
        memset(bytes, i + (int)(w->first / ROOM), sizeof bytes);
        CHECK(w,
              s->memory->copy_from_host(s->device, s->stream, w->buffer->memory, w->first, bytes, 0,
                                        ROOM),
              "write");
        CHECK(w,
              s->memory->copy_to_host(s->device, s->stream, back, 0, w->buffer->memory, w->first,
                                      ROOM),
              "read");
        if (memcmp(bytes, back, ROOM) != 0) {
            snprintf(w->wrong, sizeof w->wrong, "other bytes came back than were written");
            return NULL;
        }
    }
    return NULL;
}

static void run(tc_contract *k) {
    worker workers[THREADS] = {0};
    tc_buffer buffer;
    const char *what = tc_contract_word(k, "what");
    bool events = strcmp(what, "events") == 0, streams = strcmp(what, "streams") == 0;
    tn_event_impl *event = NULL;
    if (((streams || events) && !tc_has_streams(k)) ||
        (events && !tc_event_create(k, k->subject, 0, &event)) ||
        !tc_buffer_create(k, k->subject, TN_SPACE_DEVICE, THREADS * ROOM, &buffer))
        return;
    int n = 0;
    tc_host_yield(true);
    for (; n < THREADS; n++) {
        workers[n] = (worker){
            .s = k->subject, .buffer = &buffer, .first = (uint64_t)n * ROOM, .event = event};
        if (pthread_create(&workers[n].thread, NULL,
                           streams  ? streams_and_events
                           : events ? one_event
                                    : transfers,
                           &workers[n]) != 0)
            break;
    }
    for (int i = 0; i < n; i++) {
        pthread_join(workers[i].thread, NULL);
        if (*workers[i].wrong)
            TC_BROKEN(k, TNP_THREADS_CONCURRENT, "%d threads at once: %s", n, workers[i].wrong);
        if (!events)
            memset(buffer.model + workers[i].first, ROUNDS - 1 + (streams ? 0 : i), ROOM);
    }
    tc_host_yield(false);
    tc_must(k, TNP_THREADS_CONCURRENT, tc_subject_sync(k->subject), "synchronize");
    if (!tc_failed(k))
        tc_buffer_check(k, &buffer, k->subject->stream, TNP_THREADS_CONCURRENT,
                        "what several threads wrote, each to its place");
}

const tc_contract_row tc_thread_rows[] = {
    {"thread-streams", "what=streams", TC_SMOKE, run},
    {"thread-events", "what=events", TC_SMOKE, run},
    {"thread-transfers", "what=transfers", TC_SMOKE, run},
    {0},
};
