/* What one thread knows of streams and events is so whoever else asks about them at the same time: a call that finds
 * another in its way waits for it, for the moment that takes, rather than answer something else. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { BYTES = 3000, WAITERS = 4, PART = BYTES / WAITERS };

/* What the other thread asks, all the time. */
typedef enum question {
    ASK_EVENT,
    ASK_STREAM,
    ASK_ELAPSED,
    ASK_WAIT,
    AWAIT_EVENT,
    AWAIT_STREAM,
    N_QUESTIONS
} question;
static const char *const questions[N_QUESTIONS] = {
    "query of that event",       "query of that stream",      "elapsed of that event",
    "wait of a stream for that", "synchronize of that event", "synchronize of that stream",
};

typedef struct scene {
    tc_contract *k;
    tc_subject *s;
    tn_stream_impl *slow, *third; /* the third is the other thread's */
    tn_stream_impl *waiters[WAITERS];
    tn_event_impl *start, *event; /* round what `slow` writes */
    tc_work work;
    tc_buffer b, copy;
    bool has_clock;
    question asked;
    atomic_int calls; /* that the other thread has made */
    atomic_bool enough;
} scene;

static bool set_up(tc_contract *k, scene *n) {
    *n = (scene){.k = k, .s = k->subject};
    const tn_event_ops *events = n->s->ops->events;
    if (!tc_has_streams(k))
        return false;
    n->has_clock = TN_HAS(events, tn_event_ops, elapsed) && events->elapsed;
    bool ok = true;
    for (int i = 0; i < WAITERS && ok; i++)
        ok = tc_stream_create(k, n->s, 0, &n->waiters[i]);
    return ok && tc_work_create(k, n->s, &n->work) &&
           tc_buffer_create(k, n->s, TN_SPACE_DEVICE, BYTES, &n->b) &&
           tc_buffer_create(k, n->s, TN_SPACE_DEVICE, BYTES, &n->copy) &&
           tc_stream_create(k, n->s, 0, &n->slow) && tc_stream_create(k, n->s, 0, &n->third) &&
           tc_event_create(k, n->s, TN_EVENT_TIMING, &n->start) &&
           tc_event_create(k, n->s, TN_EVENT_TIMING, &n->event);
}

static void ask(scene *n, int i) {
    enum { ROOM = 100 };
    const tn_event_ops *events = n->s->ops->events;
    const tn_stream_ops *streams = n->s->ops->streams;
    double ns;
    switch (n->asked) {
    case ASK_EVENT:
        events->query(n->event);
        break;
    case ASK_STREAM:
        streams->query(n->slow);
        break;
    case ASK_ELAPSED: /* one way and the other */
        events->elapsed(i % 2 ? n->start : n->event, i % 2 ? n->event : n->start, &ns);
        break;
    case ASK_WAIT:
        events->wait(n->third, n->event);
        if (i % ROOM == 0)
            streams->synchronize(n->third);
        break;
    case AWAIT_EVENT:
        events->synchronize(n->event);
        break;
    default:
        streams->synchronize(n->slow);
    }
}

static void *go_on_asking(void *context) {
    scene *n = context;
    for (int i = 0; !atomic_load(&n->enough); i++) {
        ask(n, i);
        atomic_fetch_add(&n->calls, 1);
    }
    return NULL;
}

/* Work, marks round it, and streams that wait for the second, each to copy its part. */
static bool queue_round(scene *n, int value) {
    const tn_event_ops *events = n->s->ops->events;
    tc_contract *k = n->k;
    bool ok = tc_work_hold(k, &n->work, n->slow, 0.0005) &&
              tc_must(k, TNP_EVENT_RECORD, events->record(n->start, n->slow), "record") &&
              tc_buffer_fill(k, &n->b, n->slow, value) &&
              tc_must(k, TNP_EVENT_RECORD, events->record(n->event, n->slow), "record");
    for (uint64_t i = 0; i < WAITERS && ok; i++)
        ok = tc_must(k, TNP_EVENT_WAIT, events->wait(n->waiters[i], n->event), "wait") &&
             tc_must(k, TNP_TRANSFER_ORDER,
                     n->s->memory->copy(n->s->device, n->waiters[i], n->copy.memory, i * PART,
                                        n->b.memory, i * PART, PART),
                     "copy");
    memcpy(n->copy.model, n->b.model, BYTES);
    return ok;
}

/* While it may be pending: what comes later is not done before what comes first. */
static void ask_pending(scene *n) {
    const tn_device_ops *ops = n->s->ops;
    const char *beside = questions[n->asked];
    if (ops->streams->query(n->slow) == TN_OK && ops->events->query(n->event) == TN_NOT_READY)
        TC_BROKEN(n->k, TNP_STREAM_QUERY,
                  "a stream is done, says its query, and an event recorded there is not complete; "
                  "another thread is in %s",
                  beside);
    if (ops->events->query(n->event) == TN_OK && ops->events->query(n->start) == TN_NOT_READY)
        TC_BROKEN(
            n->k, TNP_EVENT_QUERY,
            "an event is complete, says its query, and one recorded before it is not; another "
            "thread is in %s",
            beside);
}

/* When all is known to be done. */
static void ask_done(scene *n) {
    const tn_device_ops *ops = n->s->ops;
    const char *beside = questions[n->asked];
    double ns = 0;
    if (ops->events->query(n->event) != TN_OK)
        TC_BROKEN(n->k, TNP_EVENT_QUERY,
                  "query of an event that is complete is not TN_OK while another thread is in %s",
                  beside);
    if (ops->streams->query(n->slow) != TN_OK)
        TC_BROKEN(n->k, TNP_STREAM_QUERY,
                  "query of a stream that is done is not TN_OK while another thread is in %s",
                  beside);
    if (n->has_clock && ops->events->elapsed(n->start, n->event, &ns) != TN_OK)
        TC_BROKEN(n->k, TNP_EVENT_ELAPSED,
                  "elapsed of events that are complete is not TN_OK while another thread is in %s",
                  beside);
}

/* Until the other thread has made so many calls meanwhile, as far as the machine lets both run. */
static void ask_done_often(scene *n) {
    enum { LEAST = 30, CALLS = 2000 };
    static const double SECONDS = 0.006;
    double end = tc_now() + SECONDS;
    int before = atomic_load(&n->calls);
    for (int i = 0; !tc_failed(n->k) &&
                    (i < LEAST || (atomic_load(&n->calls) - before < CALLS && tc_now() < end));
         i++)
        ask_done(n);
}

static void look(scene *n, int round) {
    tc_contract *k = n->k;
    const tn_event_ops *events = n->s->ops->events;
    if (!queue_round(n, round & 0xff))
        return;
    ask_pending(n);
    for (int i = 0; i < WAITERS; i++)
        tc_stream_sync(k, n->waiters[i]);
    tc_buffer_check(k, &n->copy, n->waiters[0], TNP_EVENT_WAIT,
                    "what streams copied behind an event that another thread asked about");
    tc_must(k, TNP_EVENT_SYNCHRONIZE, events->synchronize(n->event), "synchronize");
    tc_buffer_check(k, &n->b, n->third, TNP_EVENT_SYNCHRONIZE,
                    "what was queued before an event that another thread asked about");
    tc_stream_sync(k, n->slow);
    ask_done_often(n);
}

static void asked_by_another(tc_contract *k) {
    enum { ROUNDS = 20, LEAST = 3 };
    static const double SECONDS = 0.1; /* for each question, where the machine is busy */
    scene n;
    if (!set_up(k, &n))
        return;
    for (n.asked = 0; n.asked < N_QUESTIONS && !tc_failed(k); n.asked++) {
        pthread_t thread;
        if (n.asked == ASK_ELAPSED && !n.has_clock)
            continue;
        atomic_store(&n.enough, false);
        atomic_store(&n.calls, 0);
        if (pthread_create(&thread, NULL, go_on_asking, &n) != 0) {
            TC_CASE_ERROR(k->out, "a thread cannot be started");
            return;
        }
        double end = tc_now() + SECONDS;
        while (!atomic_load(&n.calls))
            sched_yield();
        for (int i = 0; i < ROUNDS && !tc_failed(k) && (i < LEAST || tc_now() < end); i++)
            look(&n, ROUNDS * (int)n.asked + i);
        atomic_store(&n.enough, true);
        pthread_join(thread, NULL);
    }
}

const tc_contract_row tc_asked_rows[] = {
    {"thread-asks", "", TC_STANDARD, asked_by_another},
    {0},
};
