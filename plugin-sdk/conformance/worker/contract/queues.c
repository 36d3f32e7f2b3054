/* What a queue has room for: hundreds of commands behind a mark without a wait of the caller, and
 * thousands in their order, however long the caller waits. */
#include "plugin-sdk/conformance/worker/contract/graph_scene.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/kernel/execute.h"

#include <stdio.h>
#include <string.h>

enum { ROOM = 200, RECORDED = 24, DEEP = 5000, STEP = 8, SPAN = 64 };

typedef struct scene {
    tc_contract *k;
    tc_subject *s;
    tc_work work;
    tc_buffer b, pinned;
    tn_stream_impl *slow, *queue;
    tn_event_impl *mark, *beside;
    const char *what;
    tc_invocation call; /* of what=kernel */
    tc_placed placed;
    const tn_ext_capture *ext; /* of what=launch */
    tn_graph_impl *graph;
} scene;

static bool set_up(tc_contract *k, scene *n) {
    *n = (scene){.k = k, .s = k->subject, .what = tc_contract_word(k, "what")};
    bool pinned = strcmp(n->what, "read") == 0 || strcmp(n->what, "write") == 0;
    uint64_t bytes = DEEP * STEP + SPAN;
    return tc_has_streams(k) && (!pinned || tc_has_pinned(k)) &&
           tc_work_create(k, n->s, &n->work) &&
           tc_buffer_create(k, n->s, TN_SPACE_DEVICE, bytes, &n->b) &&
           (!pinned || tc_buffer_create(k, n->s, TN_SPACE_PINNED, bytes, &n->pinned)) &&
           tc_stream_create(k, n->s, 0, &n->slow) && tc_stream_create(k, n->s, 0, &n->queue) &&
           tc_event_create(k, n->s, 0, &n->mark) && tc_event_create(k, n->s, 0, &n->beside);
}

static bool set_up_kernel(scene *n) {
    if (!tc_lifecycle_call(n->k, n->s, TC_WORK_SMALL, &n->call))
        return TC_NOT_OFFERED(n->k, "no kernel to queue");
    return tc_place_call(n->s, n->queue, &n->call, &n->placed, n->k->out);
}

/* A launch counts as the commands that it runs. */
static bool set_up_graph(scene *n) {
    tc_contract *k = n->k;
    n->ext = tc_capture_extension(k);
    bool ok = n->ext && tc_capture_begin(k, n->ext, n->queue);
    for (int i = 0; ok && i < RECORDED; i++) {
        ok = tc_must(k, TNP_CAPTURE_RECORDS,
                     n->s->memory->fill(n->s->device, n->queue, n->b.memory, (uint64_t)i * STEP,
                                        (uint8_t)(i + 1), SPAN),
                     "fill on a stream that captures");
        memset(n->b.model + i * STEP, i + 1, SPAN);
    }
    return ok && tc_capture_end(k, n->ext, n->queue, &n->graph);
}

static bool set_up_commands(scene *n) {
    return strcmp(n->what, "kernel") == 0   ? set_up_kernel(n)
           : strcmp(n->what, "launch") == 0 ? set_up_graph(n)
                                            : true;
}

static void tear_down(scene *n) {
    if (n->queue)
        (void)n->s->ops->streams->synchronize(n->queue);
    if (n->graph)
        n->ext->destroy(n->graph);
    tc_unplace(&n->placed);
}

/* Command i of many: each writes over a part of what the one before has written. */
static tn_status queue_one(scene *n, int i) {
    const tn_memory_ops *m = n->s->memory;
    uint64_t at = (uint64_t)i * STEP;
    if (strcmp(n->what, "kernel") == 0)
        return tc_call_placed(&n->placed);
    if (strcmp(n->what, "launch") == 0)
        return n->ext->launch(n->graph, n->queue);
    if (strcmp(n->what, "marks") == 0 && i > 0) { /* beside each command a record or a wait */
        const tn_event_ops *events = n->s->ops->events;
        tn_status status =
            i % 2 ? events->record(n->beside, n->queue) : events->wait(n->queue, n->beside);
        if (status != TN_OK)
            return status;
    }
    if (strcmp(n->what, "copy") == 0) { /* what it copies the one before has made */
        memcpy(n->b.model + at + STEP, n->b.model + at, STEP);
        return m->copy(n->s->device, n->queue, n->b.memory, at + STEP, n->b.memory, at, STEP);
    }
    if (strcmp(n->what, "write") == 0) {
        memcpy(n->b.model + at, n->pinned.model + at, SPAN);
        return m->copy_from_host(n->s->device, n->queue, n->b.memory, at,
                                 (char *)n->pinned.host + at, n->pinned.memory, SPAN);
    }
    if (strcmp(n->what, "read") == 0) {
        memcpy(n->pinned.model + at, n->b.model + at, SPAN);
        return m->copy_to_host(n->s->device, n->queue, (char *)n->pinned.host + at,
                               n->pinned.memory, n->b.memory, at, SPAN);
    }
    memset(n->b.model + at, i & 0xff, SPAN);
    return m->fill(n->s->device, n->queue, n->b.memory, at, (uint8_t)i, SPAN);
}

static bool must_queue(scene *n, tn_status status) {
    static const char what[] = "one of many commands behind a mark";
    return strcmp(n->what, "kernel") == 0 ? tc_must_run(n->k, TNP_STREAM_ROOM, status, what)
                                          : tc_must(n->k, TNP_STREAM_ROOM, status, what);
}

/* So many commands behind a mark that takes `seconds`; what the caller needed to queue them, and
 * whether the mark was still held then. */
static bool queue_behind(scene *n, int count, double seconds, double *out_took, bool *out_held) {
    const tn_event_ops *events = n->s->ops->events;
    if (!tc_work_hold(n->k, &n->work, n->slow, seconds) ||
        !tc_must(n->k, TNP_EVENT_RECORD, events->record(n->mark, n->slow), "record"))
        return false;
    double start = tc_now();
    if (!tc_must(n->k, TNP_EVENT_WAIT, events->wait(n->queue, n->mark), "wait"))
        return false;
    for (int i = 0; i < count; i++)
        if (!must_queue(n, queue_one(n, i)))
            return false;
    *out_took = tc_now() - start;
    *out_held = events->query(n->mark) == TN_NOT_READY;
    return tc_stream_sync(n->k, n->queue);
}

static void check(scene *n, tn_requirement requirement, const char *what) {
    tc_buffer_check(n->k, &n->b, n->s->stream, requirement, what);
    if (n->pinned.bytes && !tc_failed(n->k))
        tc_buffer_check(n->k, &n->pinned, NULL, requirement, what);
}

/* One that always takes as long as the mark is held waits for it. A host that is kept off its core
 * does so, too, but not each time. */
static void room(tc_contract *k) {
    scene n;
    double took = 0, seconds = 0;
    bool held = false;
    int count = strcmp(tc_contract_word(k, "what"), "launch") == 0 ? ROOM / RECORDED : ROOM;
    if (!set_up(k, &n) || !set_up_commands(&n) || !queue_behind(&n, count, 0, &took, &held)) {
        tear_down(&n);
        return;
    }
    held = false;
    for (int i = 0; i < 4 && !held; i++) {
        seconds = (4 * took > 0.03 ? 4 * took : 0.03) * (1 << i);
        double now;
        if (!queue_behind(&n, count, seconds, &now, &held))
            break;
    }
    if (!held && !tc_failed(k))
        TC_BROKEN(k, TNP_STREAM_ROOM,
                  "%d commands (%s) behind a mark keep the caller until it is passed; without it "
                  "they take %g s to queue; a queue has room for them",
                  count, n.what, took);
    if (!tc_failed(k))
        check(&n, TNP_STREAM_ROOM, "what hundreds of commands behind a mark wrote");
    tear_down(&n);
}

/* Each of some streams has room of its own. */
static void room_of_each(tc_contract *k) {
    enum { STREAMS = 5 };
    scene n;
    tn_stream_impl *queues[STREAMS];
    double took = 0;
    bool held = false, ok = set_up(k, &n);
    for (int i = 0; i < STREAMS && ok; i++)
        ok = tc_stream_create(k, n.s, 0, &queues[i]);
    for (int tries = 0; tries < 5 && ok && !held; tries++) {
        const tn_event_ops *events = n.s->ops->events;
        double seconds = tries ? (4 * took > 0.03 ? 4 * took : 0.03) * (1 << tries) : 0;
        ok = tc_work_hold(k, &n.work, n.slow, seconds) &&
             tc_must(k, TNP_EVENT_RECORD, events->record(n.mark, n.slow), "record");
        double start = tc_now();
        for (int i = 0; i < STREAMS && ok; i++) {
            n.queue = queues[i];
            ok = tc_must(k, TNP_EVENT_WAIT, events->wait(n.queue, n.mark), "wait");
            for (int c = 0; c < ROOM && ok; c++)
                ok = tc_must(k, TNP_STREAM_ROOM,
                             n.s->memory->fill(n.s->device, n.queue, n.b.memory, (uint64_t)i * SPAN,
                                               (uint8_t)(c + i), SPAN),
                             "one of many commands behind a mark");
            memset(n.b.model + i * SPAN, (ROOM - 1 + i) & 0xff, SPAN);
        }
        took = tries ? took : tc_now() - start;
        held = ok && tries && events->query(n.mark) == TN_NOT_READY;
        for (int i = 0; i < STREAMS && ok; i++)
            ok = tc_stream_sync(k, queues[i]);
    }
    if (ok && !held)
        TC_BROKEN(k, TNP_STREAM_ROOM,
                  "%d commands on each of %d streams behind a mark keep the caller until it is "
                  "passed; without it they take %g s to queue; each stream has room for them",
                  ROOM, STREAMS, took);
    else if (ok)
        check(&n, TNP_STREAM_ROOM, "what hundreds of commands on each of some streams wrote");
}

static void deep(tc_contract *k) {
    scene n;
    double took;
    bool held;
    if (set_up(k, &n) && queue_behind(&n, DEEP - 1, 0.1, &took, &held))
        check(&n, TNP_STREAM_ORDER, "what thousands of commands behind a mark wrote, in order");
}

/* Commands that wait are counted, and counts have ends: 2^15, 2^16. While the mark is held the stream is not done, however
 * many have come; a device that makes the caller wait for room before shows less. */
static bool ask_while_held(scene *n, int *out_count) {
    enum { MOST = 70000, APART = 509 };
    const tn_event_ops *events = n->s->ops->events;
    bool ok = tc_must(n->k, TNP_EVENT_RECORD, events->record(n->mark, n->slow), "record") &&
              tc_must(n->k, TNP_EVENT_WAIT, events->wait(n->queue, n->mark), "wait");
    int i = 0;
    for (bool held = true; ok && held && i < MOST; i++) {
        ok = tc_must(n->k, TNP_STREAM_ROOM,
                     n->s->memory->fill(n->s->device, n->queue, n->b.memory, 0, (uint8_t)i, 1),
                     "one of many commands behind a mark");
        n->b.model[0] = (unsigned char)i;
        if (!ok || i % APART)
            continue;
        tn_status answer = n->s->ops->streams->query(n->queue);
        held = events->query(n->mark) == TN_NOT_READY;
        if (held && answer != TN_NOT_READY)
            ok = TC_BROKEN(n->k, TNP_STREAM_QUERY,
                           "query of a stream with %d commands behind a mark that is not passed is "
                           "%s",
                           i + 1, tc_tn_status_name(answer));
    }
    *out_count = i;
    return ok && tc_stream_sync(n->k, n->queue);
}

static void questions(tc_contract *k) {
    enum { TRIES = 3, ENOUGH = 1 << 16 };
    scene n;
    int count = 0;
    bool ok = set_up(k, &n);
    for (int i = 0; ok && i < TRIES && count <= ENOUGH; i++)
        ok = tc_work_hold(k, &n.work, n.slow, 0.1 * (1 << i)) && ask_while_held(&n, &count);
    if (ok)
        check(&n, TNP_STREAM_ORDER, "what tens of thousands of commands behind a mark wrote");
}

const tc_contract_row tc_queue_rows[] = {
    {"queue-room", "what=fill", TC_SMOKE, room},
    {"queue-room", "what=copy", TC_SMOKE, room},
    {"queue-room", "what=write", TC_SMOKE, room},
    {"queue-room", "what=read", TC_SMOKE, room},
    {"queue-room", "what=kernel", TC_SMOKE, room},
    {"queue-room", "what=marks", TC_SMOKE, room},
    {"queue-room", "what=launch", TC_SMOKE, room},
    {"queue-room-of-each", "", TC_SMOKE, room_of_each},
    {"queue-deep", "what=fill", TC_STANDARD, deep},
    {"queue-deep", "what=copy", TC_STANDARD, deep},
    {"queue-deep", "what=write", TC_STANDARD, deep},
    {"queue-deep", "what=read", TC_STANDARD, deep},
    {"queue-questions", "what=fill", TC_STANDARD, questions},
    {0},
};
