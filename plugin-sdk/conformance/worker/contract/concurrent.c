/* What goes on at the same time: questions while another thread waits, waits while another thread
 * queues, large transfers on several streams and between devices. */
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/contract/open_devices.h"
#include "plugin-sdk/conformance/worker/kernel/execute.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <tenon/ext/capture.h>
#include <time.h>

static void sleep_for(double seconds) {
    nanosleep(&(struct timespec){0, (long)(seconds * 1e9)}, NULL);
}

/* ---- questions while another thread waits ------------------------------------------------ */

enum { WAIT_STREAM, WAIT_EVENT, WAIT_READ, WAIT_FREE, WAIT_DESTROY, WAIT_GRAPH, N_WAITS };
enum {
    ASK_EVENT,
    ASK_WAIT,
    ASK_FILL,
    ASK_RECORD,
    ASK_KERNEL,
    ASK_LAUNCH,
    ASK_STREAM, /* and what follows: of the stream that works */
    ASK_FILL_BEHIND,
    N_ASKS
};

typedef struct waiter {
    tc_contract *k;
    tc_subject *s;
    tn_stream_impl *stream, *other;
    tn_event_impl *event, *another;
    tc_buffer b;
    tn_memory spare; /* nobody uses it; some wait for the whole device before they free */
    tn_stream_impl *doomed;
    const tn_ext_capture *ext;     /* NULL: nothing can be captured */
    tn_graph_impl *graph, *second; /* the first is destroyed */
    tc_invocation call;
    tc_placed placed; /* on `other`, where there is such a kernel */
    bool has_kernel;
    int way;
    tn_status status;
    double back; /* when the wait was over */
} waiter;

static void *wait_for_it(void *context) {
    waiter *w = context;
    const tn_device_ops *ops = w->s->ops;
    unsigned char bytes[64];
    if (w->way == WAIT_STREAM)
        w->status = ops->streams->synchronize(w->stream);
    else if (w->way == WAIT_EVENT)
        w->status = ops->events->synchronize(w->event);
    else if (w->way == WAIT_FREE)
        w->s->memory->dealloc(w->s->device, TN_SPACE_DEVICE, w->spare);
    else if (w->way == WAIT_DESTROY)
        ops->streams->destroy(w->doomed);
    else if (w->way == WAIT_GRAPH)
        w->ext->destroy(w->graph);
    else
        w->status = w->s->memory->copy_to_host(w->s->device, w->stream, bytes, 0, w->b.memory, 0,
                                               sizeof bytes);
    w->back = tc_now();
    return NULL;
}

static bool ask(waiter *w, int what) {
    const tn_device_ops *ops = w->s->ops;
    tn_stream_impl *fills = what == ASK_FILL ? w->other : w->stream;
    tn_status status = what == ASK_EVENT    ? ops->events->query(w->event)
                       : what == ASK_STREAM ? ops->streams->query(w->stream)
                       : what == ASK_WAIT   ? ops->events->wait(w->other, w->event)
                       : what == ASK_RECORD ? ops->events->record(w->another, w->other)
                       : what == ASK_KERNEL ? tc_call_placed(&w->placed)
                       : what == ASK_LAUNCH ? w->ext->launch(w->second, w->other)
                                            : w->s->memory->fill(w->s->device, fills, w->b.memory,
                                                                 500, 1, w->b.bytes - 500);
    bool declines = what == ASK_KERNEL && status == TN_ERR_UNSUPPORTED; /* now and then */
    return status == TN_NOT_READY || declines ||
           tc_must(w->k, TNP_THREADS_CONCURRENT, status, "a call while another thread waits");
}

/* A graph of one fill; false where the device cannot capture it, and the case goes on without. */
static bool capture_fill(waiter *w, tn_graph_impl **out) {
    const tc_subject *s = w->s;
    *out = NULL;
    if (!w->ext || w->ext->begin(w->other) != TN_OK)
        return false;
    if (s->memory->fill(s->device, w->other, w->b.memory, 500, 1, w->b.bytes - 500) != TN_OK) {
        w->ext->abandon(w->other);
        return false;
    }
    return w->ext->end(w->other, out) == TN_OK;
}

/* What the other thread is to wait for, in the queue. */
static bool begin_wait(tc_contract *k, waiter *w, tc_work *work, double seconds) {
    const tn_device_ops *ops = w->s->ops;
    void *host;
    w->status = TN_OK;
    if (w->way == WAIT_FREE &&
        !tc_must(k, TNP_ALLOC_HANDLE, tc_alloc(w->s, TN_SPACE_DEVICE, 1000, &w->spare, &host),
                 "alloc"))
        return false;
    if (w->way == WAIT_DESTROY &&
        !tc_must(k, TNP_STREAM_CREATE, ops->streams->create(w->s->device, 0, &w->doomed), "create"))
        return false;
    tn_stream_impl *works = w->way == WAIT_DESTROY ? w->doomed : w->stream;
    return (w->way != WAIT_GRAPH || capture_fill(w, &w->graph)) &&
           tc_work_hold(k, work, works, seconds) &&
           (w->way != WAIT_GRAPH ||
            tc_must(k, TNP_CAPTURE_REPLAYS, w->ext->launch(w->graph, works), "launch")) &&
           tc_must(k, TNP_EVENT_RECORD, ops->events->record(w->event, works), "record");
}

/* Does the call take as long as the other thread waits, each time? */
static bool always_waits(tc_contract *k, waiter *w, tc_work *work, int what) {
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        if (!tc_stream_sync(k, w->other) || !tc_stream_sync(k, w->stream) ||
            !begin_wait(k, w, work, 0.04 * (1 << i)))
            return false;
        if (pthread_create(&thread, NULL, wait_for_it, w) != 0)
            return TC_CASE_ERROR(k->out, "a thread cannot be started");
        sleep_for(0.01 * (1 << i));
        double start = tc_now();
        bool ok = ask(w, what);
        double asked = tc_now() - start;
        pthread_join(thread, NULL);
        double waited = tc_now() - start;
        if (!ok || !tc_must(k, TNP_THREADS_CONCURRENT, w->status, "a wait of another thread") ||
            asked < 0.004 || asked < 0.5 * waited)
            return false;
    }
    return true;
}

/* Is it a question at all here? A stream that is destroyed is asked nothing. */
static bool is_asked(const waiter *w, int what) {
    return (w->way != WAIT_GRAPH || w->second) && (what != ASK_LAUNCH || w->second) &&
           (what != ASK_KERNEL || w->has_kernel) && (w->way != WAIT_DESTROY || what < ASK_STREAM);
}

/* A graph and a kernel on the idle stream, which were used before. */
static bool make_more(tc_contract *k, waiter *w) {
    w->ext = tc_subject_extension(w->s, TN_EXT_CAPTURE);
    w->has_kernel = tc_lifecycle_call(k, w->s, TC_WORK_SMALL, &w->call) &&
                    tc_place_call(w->s, w->other, &w->call, &w->placed, k->out) &&
                    tc_call_placed(&w->placed) == TN_OK;
    if (capture_fill(w, &w->second))
        tc_must(k, TNP_CAPTURE_REPLAYS, w->ext->launch(w->second, w->other), "launch");
    return !tc_failed(k) && tc_stream_sync(k, w->other);
}

static void ask_all(tc_contract *k, waiter *w, tc_work *work) {
    static const char *const waits[N_WAITS] = {
        "synchronize of its stream", "synchronize of an event", "a read", "dealloc",
        "destroy of a stream",       "destroy of a graph"};
    static const char *const asks[N_ASKS] = {
        "query of an event",          "wait of a stream for an event",
        "fill on an idle stream",     "record on an idle stream",
        "a kernel on an idle stream", "launch of a graph on an idle stream",
        "query of a stream",          "fill on the stream that works"};
    static const tn_requirement broken[N_ASKS] = {TNP_EVENT_QUERY,        TNP_EVENT_WAIT,
                                                  TNP_THREADS_CONCURRENT, TNP_THREADS_CONCURRENT,
                                                  TNP_THREADS_CONCURRENT, TNP_THREADS_CONCURRENT,
                                                  TNP_STREAM_QUERY,       TNP_THREADS_CONCURRENT};
    for (w->way = 0; w->way < N_WAITS; w->way++)
        for (int what = 0; what < N_ASKS && !tc_failed(k); what++)
            if (is_asked(w, what) && always_waits(k, w, work, what))
                TC_BROKEN(k, broken[what], "%s blocks as long as another thread is in %s",
                          asks[what], waits[w->way]);
}

static void questions(tc_contract *k) {
    tc_work work;
    waiter w = {.k = k, .s = k->subject};
    if (!tc_has_streams(k) || !tc_work_create(k, w.s, &work) ||
        !tc_stream_create(k, w.s, 0, &w.stream) || !tc_stream_create(k, w.s, 0, &w.other) ||
        !tc_event_create(k, w.s, 0, &w.event) || !tc_event_create(k, w.s, 0, &w.another) ||
        !tc_buffer_create(k, w.s, TN_SPACE_DEVICE, 1000, &w.b))
        return;
    if (make_more(k, &w))
        ask_all(k, &w, &work);
    tc_stream_sync(k, w.other);
    if (w.second)
        w.ext->destroy(w.second);
    tc_unplace(&w.placed);
}

/* ---- answers while another thread waits -------------------------------------------------- */

enum { SAYS_EVENT, SAYS_STREAM, SAYS_EVENT_WAIT, SAYS_STREAM_WAIT, N_SAYS };

typedef struct holder {
    waiter *w;
    tc_work *work;
    double seconds;
    bool queued; /* the work is */
    sem_t begun;
} holder;

static bool queue_work(holder *h) {
    waiter *w = h->w;
    h->queued =
        tc_work_hold(w->k, h->work, w->stream, h->seconds) &&
        tc_must(w->k, TNP_EVENT_RECORD, w->s->ops->events->record(w->event, w->stream), "record");
    return h->queued;
}

static void *queue_and_wait(void *context) {
    holder *h = context;
    bool queued = h->queued || queue_work(h);
    sem_post(&h->begun);
    if (queued)
        wait_for_it(h->w);
    return NULL;
}

static tn_status say(const waiter *w, int what) {
    const tn_device_ops *ops = w->s->ops;
    return what == SAYS_EVENT        ? ops->events->query(w->event)
           : what == SAYS_STREAM     ? ops->streams->query(w->stream)
           : what == SAYS_EVENT_WAIT ? ops->events->synchronize(w->event)
                                     : ops->streams->synchronize(w->stream);
}

/* Does the call say that the work is done, long before another thread's wait for it is over? Each
 * time: a machine may be slow to wake the thread. */
static bool speaks_early(holder *h, bool waiter_queues, int what) {
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        h->seconds = 0.06 * (1 << i);
        h->queued = false;
        if (!waiter_queues && !queue_work(h))
            return false;
        if (pthread_create(&thread, NULL, queue_and_wait, h) != 0)
            return TC_CASE_ERROR(h->w->k->out, "a thread cannot be started");
        sem_wait(&h->begun);
        sleep_for(h->seconds / 4);
        tn_status status = h->queued ? say(h->w, what) : TN_NOT_READY;
        double said = tc_now();
        pthread_join(thread, NULL);
        if (!h->queued ||
            !tc_must(h->w->k, TNP_THREADS_CONCURRENT, h->w->status, "a wait of another thread") ||
            status != TN_OK || h->w->back - said < h->seconds / 4)
            return false;
    }
    return true;
}

static void answers(tc_contract *k) {
    static const char *const waits[] = {"synchronize of the stream", "synchronize of an event",
                                        "a read"};
    static const char *const says[N_SAYS] = {"query of an event", "query of a stream",
                                             "synchronize of an event", "synchronize of a stream"};
    static const tn_requirement broken[N_SAYS] = {TNP_EVENT_QUERY, TNP_STREAM_QUERY,
                                                  TNP_EVENT_SYNCHRONIZE, TNP_STREAM_SYNCHRONIZE};
    tc_work work;
    waiter w = {.k = k, .s = k->subject};
    holder h = {.w = &w, .work = &work};
    bool waiter_queues = strcmp(tc_contract_word(k, "queues"), "waiter") == 0;
    if (!tc_has_streams(k) || !tc_work_create(k, w.s, &work) ||
        !tc_stream_create(k, w.s, 0, &w.stream) || !tc_event_create(k, w.s, 0, &w.event) ||
        !tc_buffer_create(k, w.s, TN_SPACE_DEVICE, 1000, &w.b))
        return;
    sem_init(&h.begun, 0, 0);
    for (w.way = WAIT_STREAM; w.way <= WAIT_READ; w.way++)
        for (int what = 0; what < N_SAYS && !tc_failed(k); what++)
            if (speaks_early(&h, waiter_queues, what))
                TC_BROKEN(k, broken[what],
                          "%s says that work is done for which another thread still waits in %s",
                          says[what], waits[w.way]);
    sem_destroy(&h.begun);
}

/* ---- a wait while another thread queues -------------------------------------------------- */

typedef struct feeder {
    tc_work *work;
    tn_stream_impl *stream;
    tn_event_impl *event; /* recorded each time; NULL: none is */
    double seconds;
    atomic_bool enough, ended;
    atomic_int queued;
    tn_status status;
} feeder;

/* Queues faster than the device works, also where a sleep is longer than was asked for, so that the stream is never
 * empty. */
static void *feed(void *context) {
    enum { MOST = 4000, AT_ONCE = 8 };
    feeder *f = context;
    const tc_subject *s = f->work->subject;
    double start = tc_now();
    while (!f->enough && f->status == TN_OK && f->queued < MOST && tc_now() - start < f->seconds) {
        for (int i = 0; i < AT_ONCE && f->status == TN_OK; i++)
            f->status =
                s->memory->fill(s->device, f->stream, f->work->memory, 0, 1, f->work->bytes);
        if (f->event && f->status == TN_OK)
            f->status = s->ops->events->record(f->event, f->stream);
        f->queued += AT_ONCE;
        sleep_for(AT_ONCE * f->work->seconds / 4);
    }
    f->ended = true;
    return NULL;
}

/* Is synchronize, of the event or where that is NULL of the stream, back while the other thread goes on? */
static bool returns(tc_contract *k, tc_work *work, tn_stream_impl *stream, tn_event_impl *event,
                    double seconds) {
    feeder f = {.work = work, .stream = stream, .event = event, .seconds = seconds};
    pthread_t thread;
    if (pthread_create(&thread, NULL, feed, &f) != 0)
        return TC_CASE_ERROR(k->out, "a thread cannot be started");
    while (f.queued < 20 && !f.ended)
        sleep_for(0.001);
    tn_status status = event ? k->subject->ops->events->synchronize(event)
                             : k->subject->ops->streams->synchronize(stream);
    bool back = !f.ended;
    bool ok = tc_must(k, event ? TNP_EVENT_SYNCHRONIZE : TNP_STREAM_SYNCHRONIZE, status,
                      "synchronize while another thread queues");
    f.enough = true;
    pthread_join(thread, NULL);
    tc_must(k, TNP_FILL_VALUE, f.status, "fill while another thread synchronizes the stream");
    tc_stream_sync(k, stream);
    return ok && back;
}

static void feeds(tc_contract *k) {
    tc_work work;
    tn_stream_impl *stream;
    tn_event_impl *event = NULL;
    bool back = false, of_event = strcmp(tc_contract_word(k, "of"), "event") == 0;
    if (!tc_has_streams(k) || !tc_work_create(k, k->subject, &work) ||
        !tc_stream_create(k, k->subject, 0, &stream) ||
        (of_event && !tc_event_create(k, k->subject, 0, &event)))
        return;
    for (int i = 0; i < 4 && !back && !tc_failed(k); i++)
        back = returns(k, &work, stream, event, 0.3 * (1 << i));
    if (back || tc_failed(k))
        return;
    if (of_event)
        TC_BROKEN(k, TNP_EVENT_SYNCHRONIZE,
                  "synchronize of an event does not return as long as another thread records it "
                  "again; it waits for what was recorded before, at most");
    else
        TC_BROKEN(k, TNP_STREAM_SYNCHRONIZE,
                  "synchronize does not return as long as another thread queues on the stream; it "
                  "waits for what was queued before");
}

/* ---- large transfers at once ------------------------------------------------------------- */

enum { STREAMS = 3, LARGE = (3 << 20) + 5, ROUNDS = 3, TIMES = 4 };

typedef struct lane {
    tn_stream_impl *stream;
    tc_buffer first, second, from, to;
} lane;

static bool set_up_lane(tc_contract *k, tc_subject *s, lane *l) {
    return tc_stream_create(k, s, 0, &l->stream) &&
           tc_buffer_create(k, s, TN_SPACE_DEVICE, LARGE, &l->first) &&
           tc_buffer_create(k, s, TN_SPACE_DEVICE, LARGE, &l->second) &&
           tc_buffer_create(k, s, TN_SPACE_PINNED, LARGE, &l->from) &&
           tc_buffer_create(k, s, TN_SPACE_PINNED, LARGE, &l->to);
}

/* Up, across and down again, of bytes that differ by their streams. */
static bool queue_lane(tc_contract *k, lane *l, int value) {
    const tc_subject *s = k->subject;
    const tn_memory_ops *m = s->memory;
    memset(l->from.host, value, LARGE / 2);
    memset(l->from.model, value, LARGE / 2);
    memcpy(l->first.model, l->from.model, LARGE);
    memcpy(l->second.model, l->from.model, LARGE);
    memcpy(l->to.model, l->from.model, LARGE);
    return tc_must(k, TNP_TRANSFER_PINNED,
                   m->copy_from_host(s->device, l->stream, l->first.memory, 0, l->from.host,
                                     l->from.memory, LARGE),
                   "write from pinned memory") &&
           tc_must(k, TNP_TRANSFER_RANGE,
                   m->copy(s->device, l->stream, l->second.memory, 0, l->first.memory, 0, LARGE),
                   "copy") &&
           tc_must(k, TNP_TRANSFER_PINNED,
                   m->copy_to_host(s->device, l->stream, l->to.host, l->to.memory, l->second.memory,
                                   0, LARGE),
                   "read to pinned memory");
}

static void parallel(tc_contract *k) {
    lane lanes[STREAMS];
    bool ok = tc_has_streams(k) && tc_has_pinned(k);
    for (int i = 0; i < STREAMS && ok; i++)
        ok = set_up_lane(k, k->subject, &lanes[i]);
    for (int round = 0; round < ROUNDS && ok; round++) {
        for (int i = 0; i < STREAMS && ok; i++)
            ok = queue_lane(k, &lanes[i], 0x10 * round + i);
        for (int i = 0; i < STREAMS && ok; i++)
            ok = tc_stream_sync(k, lanes[i].stream) &&
                 tc_buffer_check(k, &lanes[i].second, k->subject->stream, TNP_TRANSFER_RANGE,
                                 "memory that was copied while other streams transferred") &&
                 tc_buffer_check(k, &lanes[i].to, NULL, TNP_TRANSFER_PINNED,
                                 "pinned memory read while other streams transferred");
    }
}

typedef struct fetch {
    tn_stream_impl *stream;
    tc_buffer from, to;
} fetch;

/* Several streams of one device fetch from the other at once. */
static void fetch_at_once(tc_contract *k, tc_subject *a, tc_subject *b) {
    fetch all[STREAMS];
    tn_stream_impl *streams[STREAMS];
    tn_event_impl *event;
    tc_work work;
    const tn_memory_ops *m = b->memory;
    bool ok = tc_work_create(k, b, &work) && tc_event_create(k, b, 0, &event);
    for (int i = 0; i < STREAMS && ok; i++)
        ok = tc_stream_create(k, b, 0, &all[i].stream) &&
             tc_buffer_create(k, a, TN_SPACE_DEVICE, LARGE, &all[i].from) &&
             tc_buffer_create(k, b, TN_SPACE_DEVICE, LARGE, &all[i].to);
    for (int i = 0; i < STREAMS && ok; i++)
        streams[i] = all[i].stream;
    for (int round = 0; round < 4 * ROUNDS && ok; round++) {
        ok = tc_hold_together(k, &work, streams, STREAMS, event);
        for (int i = 0; i < STREAMS && ok; i++) {
            const tc_buffer *from = &all[(i + round) % STREAMS].from;
            tn_status status = TN_OK;
            for (int n = 0; n < TIMES && status == TN_OK; n++)
                status = m->copy_peer(b->device, all[i].stream, all[i].to.memory, 0, a->device,
                                      from->memory, 0, LARGE);
            if (status == TN_ERR_UNSUPPORTED) {
                TC_NOT_OFFERED(k, "copy_peer declines");
                return;
            }
            ok = tc_must(k, TNP_COPY_PEER, status, "copy_peer");
            memcpy(all[i].to.model, from->model, LARGE);
        }
        for (int i = 0; i < STREAMS && ok; i++)
            ok = tc_must(k, TNP_STREAM_SYNCHRONIZE, b->ops->streams->synchronize(all[i].stream),
                         "synchronize") &&
                 tc_buffer_check(k, &all[i].to, b->stream, TNP_COPY_PEER,
                                 "memory after several streams copied from another device at once");
    }
    for (int i = 0; i < STREAMS && ok; i++) { /* the other way needs as much */
        tc_buffer_destroy(&all[i].from);
        tc_buffer_destroy(&all[i].to);
    }
}

static void peers(tc_contract *k) {
    tc_devices all;
    const tn_memory_ops *m = k->subject->memory;
    if (!tc_has_streams(k))
        return;
    if (!TN_HAS(m, tn_memory_ops, copy_peer) || !m->copy_peer) {
        TC_NOT_OFFERED(k, "no copy_peer");
        return;
    }
    if (tc_devices_open(k, &all)) {
        fetch_at_once(k, &all.at[0], &all.at[1]);
        if (!tc_failed(k))
            fetch_at_once(k, &all.at[1], &all.at[0]);
    }
    tc_devices_close(&all);
}

const tc_contract_row tc_concurrent_rows[] = {
    {"thread-answers", "queues=waiter", TC_SMOKE, answers},
    {"thread-answers", "queues=asker", TC_SMOKE, answers},
    {"thread-feeds", "of=stream", TC_STANDARD, feeds},
    {"thread-feeds", "of=event", TC_STANDARD, feeds},
    {"thread-questions", "", TC_SMOKE, questions},
    {"transfer-parallel", "", TC_SMOKE, parallel},
    {"device-peer-parallel", "", TC_SMOKE, peers},
    {0},
};
