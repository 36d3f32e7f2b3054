/* Waits of the host that last longer than a driver may have patience: every call that waits for queued work, each on
 * a stream of its own, behind the same second of it. What a call says is done is looked at by way of a stream that
 * waits for nothing. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include <pthread.h>
#include <string.h>
#include <tenon/ext/capture.h>

enum { BYTES = 100000, SMALL = 64 };

typedef enum way { READ_SMALL, READ, WRITE, STREAM, EVENT, DESTROY, GRAPH, TURN, N_WAYS } way;

static const struct {
    const char *name;
    tn_requirement broken;
    uint64_t bytes; /* that are looked at */
} ways[N_WAYS] = {
    [READ_SMALL] = {"a small read", TNP_READ_COMPLETE, SMALL},
    [READ] = {"a read", TNP_READ_COMPLETE, BYTES},
    [WRITE] = {"a write", TNP_TRANSFER_ORDER, BYTES},
    [STREAM] = {"synchronize of a stream", TNP_STREAM_SYNCHRONIZE, BYTES},
    [EVENT] = {"synchronize of an event", TNP_EVENT_SYNCHRONIZE, BYTES},
    [DESTROY] = {"destroy of a stream", TNP_STREAM_DESTROY_FINISHES, BYTES},
    [GRAPH] = {"destroy of a graph", TNP_CAPTURE_DESTROY, BYTES},
    [TURN] = {"synchronize behind a launch, whose graph is launched elsewhere,",
              TNP_CAPTURE_LAUNCH_ORDER, BYTES},
};

typedef struct scene scene;

/* One call that waits, on a thread of its own. */
typedef struct lane {
    scene *n;
    way way;
    tn_stream_impl *stream, *idle; /* the latter waits for nothing, but for a turn */
    tn_event_impl *event;
    tn_graph_impl *graph;
    tc_buffer to; /* gets what `slow` has written last to `b` */
    unsigned char *seen;
    tn_status status;
    bool runs, right;
    pthread_t thread;
} lane;

struct scene {
    tc_contract *k;
    tc_subject *s;
    const tn_ext_capture *ext; /* NULL: nothing can be captured */
    tc_work work;
    tc_buffer b;
    tn_stream_impl *slow;
    tn_event_impl *mark;
    lane lanes[N_WAYS];
    int value;
};

static bool set_up_lane(scene *n, way which) {
    tc_contract *k = n->k;
    lane *l = &n->lanes[which];
    *l = (lane){.n = n, .way = which, .seen = tc_arena_array(&k->arena, BYTES, 1)};
    return (l->seen || TC_CASE_ERROR(k->out, "the host has no memory for this case")) &&
           tc_buffer_create(k, n->s, TN_SPACE_DEVICE, BYTES, &l->to) &&
           tc_stream_create(k, n->s, 0, &l->stream) && tc_stream_create(k, n->s, 0, &l->idle) &&
           tc_event_create(k, n->s, 0, &l->event);
}

static bool set_up(tc_contract *k, scene *n) {
    *n = (scene){.k = k, .s = k->subject, .value = 0x31};
    if (!tc_has_streams(k))
        return false;
    n->ext = tc_subject_extension(n->s, TN_EXT_CAPTURE);
    bool ok = tc_work_create(k, n->s, &n->work) &&
              tc_buffer_create(k, n->s, TN_SPACE_DEVICE, BYTES, &n->b) &&
              tc_stream_create(k, n->s, 0, &n->slow) && tc_event_create(k, n->s, 0, &n->mark);
    for (int i = 0; i < N_WAYS && ok; i++)
        ok = set_up_lane(n, i);
    return ok;
}

static tn_status copy(lane *l, tn_stream_impl *stream) {
    const tc_subject *s = l->n->s;
    return s->memory->copy(s->device, stream, l->to.memory, 0, l->n->b.memory, 0, BYTES);
}

/* None where the device cannot capture it, which other cases look at. */
static void capture_copy(lane *l) {
    const tn_ext_capture *ext = l->n->ext;
    l->graph = NULL;
    if (!ext || ext->begin(l->idle) != TN_OK)
        return;
    if (copy(l, l->idle) != TN_OK)
        ext->abandon(l->idle);
    else if (ext->end(l->idle, &l->graph) != TN_OK)
        l->graph = NULL;
}

/* What the lane's call is to wait for. */
static bool queue_lane(lane *l) {
    tc_contract *k = l->n->k;
    const tn_event_ops *events = l->n->s->ops->events;
    if (!tc_must(k, TNP_EVENT_WAIT, events->wait(l->stream, l->n->mark), "wait"))
        return false;
    if (l->way >= GRAPH && l->graph)
        return tc_must(k, TNP_CAPTURE_REPLAYS, l->n->ext->launch(l->graph, l->stream), "launch");
    return (l->way < STREAM || tc_must(k, TNP_TRANSFER_ORDER, copy(l, l->stream), "copy")) &&
           (l->way != EVENT ||
            tc_must(k, TNP_EVENT_RECORD, events->record(l->event, l->stream), "record"));
}

static tn_status call(lane *l) {
    scene *n = l->n;
    const tn_memory_ops *m = n->s->memory;
    switch (l->way) {
    case READ_SMALL:
    case READ:
        return m->copy_to_host(n->s->device, l->stream, l->seen, 0, n->b.memory, 0,
                               ways[l->way].bytes);
    case WRITE: { /* over what `slow` writes there */
        memset(l->seen, n->value, BYTES);
        tn_status status =
            m->copy_from_host(n->s->device, l->stream, l->to.memory, 0, l->seen, 0, BYTES);
        memset(l->seen, 0, BYTES);
        return status;
    }
    case STREAM:
        return n->s->ops->streams->synchronize(l->stream);
    case EVENT:
        return n->s->ops->events->synchronize(l->event);
    case DESTROY:
        tc_stream_destroy(n->k, l->stream);
        return TN_OK;
    case GRAPH:
        n->ext->destroy(l->graph);
        l->graph = NULL;
        return TN_OK;
    default: {
        tn_status launched = n->ext->launch(l->graph, l->idle);
        return launched == TN_OK ? n->s->ops->streams->synchronize(l->idle) : launched;
    }
    }
}

static bool is_right(const lane *l) {
    for (uint64_t i = 0; i < ways[l->way].bytes; i++)
        if (l->seen[i] != l->n->value)
            return false;
    return true;
}

static void *wait_and_look(void *context) {
    lane *l = context;
    const tc_subject *s = l->n->s;
    l->status = call(l);
    if (l->status == TN_OK && l->way > READ) /* of one stream comes after what was written there */
        l->status = s->memory->copy_to_host(s->device, l->way == WRITE ? l->stream : l->idle,
                                            l->seen, 0, l->to.memory, 0, BYTES);
    l->right = is_right(l); /* now: it may be put right later */
    return NULL;
}

/* What they are to wait for: so much work. */
static bool queue_all(scene *n, double seconds) {
    tc_contract *k = n->k;
    bool ok = tc_work_hold(k, &n->work, n->slow, seconds) &&
              tc_buffer_fill(k, &n->lanes[WRITE].to, n->slow, ~n->value & 0xff) &&
              tc_buffer_fill(k, &n->b, n->slow, n->value) &&
              tc_must(k, TNP_EVENT_RECORD, n->s->ops->events->record(n->mark, n->slow), "record");
    for (int i = 0; i < N_WAYS && ok; i++)
        ok = queue_lane(&n->lanes[i]);
    return ok;
}

static void start(lane *l) {
    l->runs =
        (l->way < GRAPH || l->graph) && pthread_create(&l->thread, NULL, wait_and_look, l) == 0;
}

static void finish(lane *l, double held) {
    tc_contract *k = l->n->k;
    if (!l->runs)
        return;
    pthread_join(l->thread, NULL);
    l->runs = false;
    if (tc_must(k, ways[l->way].broken, l->status, ways[l->way].name) && !l->right)
        TC_BROKEN(k, ways[l->way].broken,
                  "%s behind work of %g s: when it returned that work was not done, or never was",
                  ways[l->way].name, held);
}

/* All of them behind so much work; returns for how long that has held them. */
static double wait_behind(scene *n, double seconds, double *out_queueing) {
    tc_contract *k = n->k;
    lane *destroy = &n->lanes[DESTROY];
    for (int i = GRAPH; i < N_WAYS; i++)
        capture_copy(&n->lanes[i]);
    double begun = tc_now();
    bool ok = queue_all(n, seconds);
    double queued = tc_now();
    for (int i = 0; i < N_WAYS && ok; i++)
        start(&n->lanes[i]);
    tc_stream_sync(k, n->slow);
    double held = tc_now() - queued;
    for (int i = 0; i < N_WAYS; i++)
        finish(&n->lanes[i], held);
    for (int i = GRAPH; i < N_WAYS; i++)
        if (n->lanes[i].graph)
            n->ext->destroy(n->lanes[i].graph);
    if (!tc_failed(k))
        tc_stream_create(k, n->s, 0, &destroy->stream);
    *out_queueing = queued - begun;
    return held;
}

static void wait_long(tc_contract *k) {
    static const double ENOUGH = 0.82; /* of what is wanted */
    scene n;
    double wanted = 1e-3 * (double)tc_contract_int(k, "milliseconds"), work = wanted, queueing;
    if (!set_up(k, &n))
        return;
    double held = wait_behind(&n, work, &queueing);
    /* Work was measured on a machine that may have been busy, and takes less than it did then. It is
       of no use to try more where the host is held instead: the work is done by then. */
    for (int i = 0; i < 2 && held < ENOUGH * wanted && queueing < wanted && !tc_failed(k); i++) {
        work *= held < wanted / 2 ? 2 : wanted / held;
        n.value++;
        held = wait_behind(&n, work, &queueing);
    }
    if (held < ENOUGH * wanted && !tc_failed(k))
        TC_NOT_OFFERED(k, "the device's queue holds work of %g s at most", held);
}

const tc_contract_row tc_long_wait_rows[] = {
    {"long-waits", "milliseconds=1250", TC_STANDARD, wait_long},
    {"long-waits", "milliseconds=12000", TC_EXHAUSTIVE, wait_long},
    {0},
};
