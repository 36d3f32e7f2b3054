/* tenon.capture/1: a launch is work of its stream like any other, for all who ask or wait. The stream has
 * nothing else, so that what came before or comes behind cannot tell them. */
#include "plugin-sdk/conformance/worker/contract/graph_scene.h"

#include <string.h>

enum { ROUNDS = 4, OLD = 0x15, NEW = 0x6a };

typedef struct way {
    const char *name;
    tn_requirement broken; /* where what the launch writes is not there */
    /* Waits for what was launched on `stream`, which it may destroy. Returns the stream to look on. */
    tn_stream_impl *(*wait)(tc_scene *n, tn_stream_impl *stream);
} way;

static tn_stream_impl *by_query(tc_scene *n, tn_stream_impl *stream) {
    tc_must(n->k, TNP_STREAM_QUERY, tc_ask_until_done(n->s, stream, NULL),
            "query of a stream, asked until a launch was done,");
    return n->s->stream;
}

static tn_stream_impl *by_synchronize(tc_scene *n, tn_stream_impl *stream) {
    tc_stream_sync(n->k, stream);
    return n->s->stream;
}

static tn_stream_impl *by_destroy(tc_scene *n, tn_stream_impl *stream) {
    tc_stream_destroy(n->k, stream);
    return n->s->stream;
}

/* An event behind the launch; NULL with the case failed. */
static tn_event_impl *mark(tc_scene *n, tn_stream_impl *stream) {
    tn_event_impl *event;
    return tc_event_create(n->k, n->s, 0, &event) &&
                   tc_must(n->k, TNP_EVENT_RECORD, n->s->ops->events->record(event, stream),
                           "record behind a launch")
               ? event
               : NULL;
}

static tn_stream_impl *by_event_query(tc_scene *n, tn_stream_impl *stream) {
    tn_event_impl *event = mark(n, stream);
    if (event)
        tc_must(n->k, TNP_EVENT_QUERY, tc_ask_until_done(n->s, stream, event),
                "query of an event, asked until a launch was done,");
    return n->s->stream;
}

static tn_stream_impl *by_event_synchronize(tc_scene *n, tn_stream_impl *stream) {
    tn_event_impl *event = mark(n, stream);
    if (event)
        tc_must(n->k, TNP_EVENT_SYNCHRONIZE, n->s->ops->events->synchronize(event),
                "synchronize of an event behind a launch");
    return n->s->stream;
}

static tn_stream_impl *by_event_wait(tc_scene *n, tn_stream_impl *stream) {
    tn_event_impl *event = mark(n, stream);
    if (event)
        tc_must(n->k, TNP_EVENT_WAIT, n->s->ops->events->wait(n->other, event),
                "wait of another stream for an event behind a launch");
    return n->other;
}

static const way ways[] = {
    {"query", TNP_STREAM_QUERY, by_query},
    {"synchronize", TNP_STREAM_SYNCHRONIZE, by_synchronize},
    {"destroy", TNP_STREAM_DESTROY_FINISHES, by_destroy},
    {"event-query", TNP_EVENT_QUERY, by_event_query},
    {"event-synchronize", TNP_EVENT_SYNCHRONIZE, by_event_synchronize},
    {"event-wait", TNP_EVENT_WAIT, by_event_wait},
};

/* Long work, and behind it what is looked for. */
static bool capture_long_work(tc_scene *n) {
    tc_work work;
    return tc_work_create(n->k, n->s, &work) && tc_scene_begin(n) &&
           tc_work_queue(n->k, &work, n->stream) &&
           tc_scene_fill(n, &n->a, 0, TC_SCENE_BYTES, NEW) && tc_scene_end(n, &n->graph);
}

static void done(tc_contract *k) {
    const way *w = ways;
    tc_scene n;
    while (strcmp(w->name, tc_contract_word(k, "by")) != 0)
        w++;
    bool ok = tc_scene_set_up(k, &n) && capture_long_work(&n);
    for (int i = 0; i < ROUNDS && ok; i++) {
        tn_stream_impl *stream, *look;
        ok = tc_buffer_fill(k, &n.a, n.s->stream, OLD) && tc_stream_sync(k, n.s->stream) &&
             tc_stream_create(k, n.s, 0, &stream) && tc_scene_launch(&n, n.graph, stream);
        if (!ok)
            break;
        look = w->wait(&n, stream);
        memset(n.a.model, NEW, TC_SCENE_BYTES);
        ok = !tc_failed(k) && tc_buffer_check(k, &n.a, look, w->broken,
                                              "what the launch of a graph wrote, which was done");
    }
    tc_scene_finish(&n);
}

const tc_contract_row tc_graph_done_rows[] = {
    {"capture-done", "by=query", TC_SMOKE, done},
    {"capture-done", "by=synchronize", TC_SMOKE, done},
    {"capture-done", "by=destroy", TC_SMOKE, done},
    {"capture-done", "by=event-query", TC_SMOKE, done},
    {"capture-done", "by=event-synchronize", TC_SMOKE, done},
    {"capture-done", "by=event-wait", TC_SMOKE, done},
    {0},
};
