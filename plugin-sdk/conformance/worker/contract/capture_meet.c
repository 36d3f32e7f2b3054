/* contract/capture-two-begins and contract/capture-meets: a capture begins and ends while another thread begins one, too,
 * or queues on the stream what no capture records. That is done as on an ordinary stream, or refused. */
#include "plugin-sdk/conformance/worker/contract/graph_scene.h"

#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/worker/contract/meet.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

enum { MEETINGS = 1500, LEAST = 20, BYTES = 2000 };
static const double SECONDS = 0.2;

typedef struct course {
    tc_scene n;
    tn_event_impl *event;
    tn_status (*act)(struct course *c, int value);
    tc_meeting before, after;
    atomic_int last;  /* of the meetings */
    tn_status status; /* of the other thread's latest act */
    char reason[TC_MESSAGE];
    unsigned char bytes[BYTES];
} course;

/* ---- what the other thread does ---------------------------------------------------------- */

static tn_status act_begin(course *c, int value) {
    (void)value;
    return c->n.ext->begin(c->n.stream);
}

static tn_status act_record(course *c, int value) {
    (void)value;
    return c->n.s->ops->events->record(c->event, c->n.stream);
}

static tn_status act_wait(course *c, int value) {
    (void)value;
    return c->n.s->ops->events->wait(c->n.stream, c->event);
}

static tn_status act_write(course *c, int value) {
    memset(c->bytes, value, BYTES);
    return c->n.s->memory->copy_from_host(c->n.s->device, c->n.stream, c->n.b.memory, 0, c->bytes,
                                          0, BYTES);
}

static tn_status act_read(course *c, int value) {
    memset(c->bytes, value, BYTES);
    return c->n.s->memory->copy_to_host(c->n.s->device, c->n.stream, c->bytes, 0, c->n.b.memory, 0,
                                        BYTES);
}

static tn_status act_launch(course *c, int value) {
    (void)value;
    return c->n.ext->launch(c->n.second, c->n.stream);
}

static tn_status act_query(course *c, int value) {
    (void)value;
    tn_status status = c->n.s->ops->streams->query(c->n.stream);
    return status == TN_NOT_READY ? TN_OK : status;
}

static tn_status act_synchronize(course *c, int value) {
    (void)value;
    return c->n.s->ops->streams->synchronize(c->n.stream);
}

static const struct {
    const char *name;
    tn_status (*act)(course *c, int value);
} acts[] = {
    {"record", act_record},
    {"wait", act_wait},
    {"write", act_write},
    {"read", act_read},
    {"launch", act_launch},
    {"query", act_query},
    {"synchronize", act_synchronize},
};

static void *act_often(void *context) {
    course *c = context;
    tc_random r = {5};
    for (int i = 0; i <= atomic_load(&c->last); i++) {
        tc_meet(&c->before);
        tc_come_late(&r);
        tc_host_forget();
        c->status = c->act(c, i & 0x3f);
        (void)tc_reason(c->status, c->reason);
        tc_meet(&c->after);
    }
    return NULL;
}

/* ---- two captures ------------------------------------------------------------------------ */

static bool meet_begin(course *c, tc_random *r, int i) {
    (void)i;
    tc_contract *k = c->n.k;
    tc_come_late(r);
    tc_host_forget();
    tn_status own = act_begin(c, 0);
    tc_meet(&c->after);
    bool one = (own == TN_OK) != (c->status == TN_OK);
    tn_status refused = own == TN_OK ? c->status : own;
    c->n.ext->abandon(c->n.stream);
    return (one && refused == TN_ERR_STATE) ||
           TC_BROKEN(
               k, TNP_CAPTURE_REFUSES,
               "two threads begin a capture of one stream at once: they are answered %s and %s; "
               "one is TN_OK, the other TN_ERR_STATE",
               tc_tn_status_name(own), tc_tn_status_name(c->status));
}

/* ---- a capture and something else -------------------------------------------------------- */

static bool check_act(course *c, int value) {
    tc_scene *n = &c->n;
    tc_contract *k = n->k;
    if (c->status != TN_OK && c->status != TN_ERR_STATE)
        return TC_BROKEN(
            k, TNP_CAPTURE_REFUSES,
            "of=%s while another thread begins and ends a capture of the stream: %.800s",
            tc_contract_word(k, "of"), c->reason);
    bool done = c->status == TN_OK;
    if (c->act == act_record)
        return tc_must(k, TNP_EVENT_SYNCHRONIZE, n->s->ops->events->synchronize(c->event),
                       "synchronize of an event that was recorded beside a capture") &&
               tc_must(k, TNP_EVENT_QUERY, n->s->ops->events->query(c->event),
                       "query of an event that was recorded beside a capture, and waited for");
    if (c->act == act_write && done)
        memset(n->b.model, value, BYTES);
    if (c->act == act_launch && done)
        memset(n->b.model, 0x7b, n->b.bytes);
    return c->act != act_read || !done || memcmp(c->bytes, n->b.model, BYTES) == 0 ||
           TC_BROKEN(
               k, TNP_TRANSFER_ORDER,
               "a read beside a capture of its stream returned before its bytes were there, or "
               "gave others");
}

/* What was recorded runs twice, and no more than that. */
static bool meet_capture(course *c, tc_random *r, int i) {
    tc_scene *n = &c->n;
    tc_contract *k = n->k;
    tn_graph_impl *graph = NULL;
    bool ok = tc_must(k, TNP_CAPTURE_RECORDS, act_begin(c, 0), "begin of a capture") &&
              tc_scene_fill(n, &n->a, 0, n->a.bytes, i & 0xff);
    tc_come_late(r);
    if (ok)
        ok = tc_scene_end(n, &graph);
    else
        n->ext->abandon(n->stream);
    tc_meet(&c->after);
    ok = ok && check_act(c, i & 0x3f);
    for (int times = 0; ok && times < 2; times++)
        ok = tc_scene_launch(n, graph, n->other);
    memset(n->a.model, i & 0xff, n->a.bytes);
    ok = ok && tc_stream_sync(k, n->other) && tc_stream_sync(k, n->stream);
    if (ok && i % 8 == 0)
        ok = tc_scene_check(n, &n->a, n->other, TNP_CAPTURE_REPLAYS,
                            "what a graph does whose capture met another thread") &&
             tc_scene_check(n, &n->b, n->stream, TNP_CAPTURE_REFUSES,
                            "what another thread did, or was refused, beside a capture");
    if (graph)
        n->ext->destroy(graph);
    return ok;
}

/* ---- both -------------------------------------------------------------------------------- */

static void meet_often(course *c, bool (*meet)(course *c, tc_random *r, int i)) {
    tc_contract *k = c->n.k;
    tc_random r = {77};
    pthread_t other;
    atomic_init(&c->last, INT_MAX);
    tc_meeting_init(&c->before, 2);
    tc_meeting_init(&c->after, 2);
    if (pthread_create(&other, NULL, act_often, c) != 0) {
        TC_CASE_ERROR(k->out, "a thread cannot be started");
        return;
    }
    double end = tc_now() + SECONDS;
    for (int i = 0; i <= atomic_load(&c->last); i++) {
        if (i == MEETINGS || (i >= LEAST && tc_now() > end) || tc_failed(k))
            atomic_store(&c->last, i);
        tc_meet(&c->before);
        meet(c, &r, i); /* comes to `after` itself */
    }
    pthread_join(other, NULL);
    c->n.ext->abandon(c->n.stream);
    if (tc_stream_sync(k, c->n.stream))
        tc_scene_check(&c->n, &c->n.b, c->n.stream, TNP_CAPTURE_ABANDON,
                       "memory, after captures which another thread met");
}

static void two_begins(tc_contract *k) {
    course c = {.act = act_begin};
    if (tc_scene_set_up(k, &c.n) && tc_stream_sync(k, c.n.s->stream) && tc_scene_begin(&c.n)) {
        c.n.ext->abandon(c.n.stream);
        meet_often(&c, meet_begin);
    }
    tc_scene_finish(&c.n);
}

static void meets(tc_contract *k) {
    course c = {0};
    int i = 0;
    while (strcmp(acts[i].name, tc_contract_word(k, "of")) != 0)
        i++;
    c.act = acts[i].act;
    if (tc_scene_set_up(k, &c.n) && tc_stream_sync(k, c.n.s->stream) &&
        tc_event_create(k, c.n.s, 0, &c.event) &&
        tc_must(k, TNP_EVENT_RECORD, c.n.s->ops->events->record(c.event, c.n.other), "record") &&
        tc_scene_capture_fill(&c.n, &c.n.b, 0x7b, &c.n.second))
        meet_often(&c, meet_capture);
    tc_scene_finish(&c.n);
}

const tc_contract_row tc_capture_meet_rows[] = {
    {"capture-two-begins", "", TC_STANDARD, two_begins},
    {"capture-meets", "of=record", TC_STANDARD, meets},
    {"capture-meets", "of=wait", TC_STANDARD, meets},
    {"capture-meets", "of=write", TC_STANDARD, meets},
    {"capture-meets", "of=read", TC_STANDARD, meets},
    {"capture-meets", "of=launch", TC_STANDARD, meets},
    {"capture-meets", "of=query", TC_STANDARD, meets},
    {"capture-meets", "of=synchronize", TC_STANDARD, meets},
    {0},
};
