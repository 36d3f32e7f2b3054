/* Captures and graphs (tenon/ext/capture.h). What a stream records is no work yet: each launch is one
 * piece of work, which uses all the memory that was named. */
#include "base/alloc.h"
#include "base/error.h"
#include "loader/validation/internal.h"

#include <inttypes.h>

/* ---- what a capture names ---------------------------------------------------------------- */

void tni_names_free(tni_names *names) {
    tni_free(names->items);
    *names = (tni_names){0};
}

/* Each once. */
void tni_name(tni_watch *w, tni_names *names, tni_named memory) {
    for (size_t i = 0; i < names->n; i++)
        if (names->items[i].key == memory.key && names->items[i].serial == memory.serial)
            return;
    if (names->n == names->capacity &&
        !tni_grow(&names->items, names->n, &names->capacity, sizeof *names->items))
        w->order_lost = true;
    else
        names->items[names->n++] = memory;
}

/* The i-th allocation that a graph names; NULL: it was freed. Under the lock, as the next two. */
static tni_record *named_by(tni_watch *w, const tni_record *graph, size_t i) {
    const tni_named *m = &graph->names.items[i];
    tni_record *r = tni_memory_find(w, tni_device_of(graph), m->space, m->key);
    return r && r->serial == m->serial ? r : NULL;
}

static tni_record *find_stream(tni_watch *w, const tn_stream_impl *stream) {
    return tni_record_find(w, TNI_RECORD_STREAM, (uintptr_t)stream);
}

static tni_record *find_graph(tni_watch *w, const tn_graph_impl *graph) {
    return tni_record_find(w, TNI_RECORD_GRAPH, (uintptr_t)graph);
}

/* ---- capturing --------------------------------------------------------------------------- */

static tn_status capture_begin(tn_stream_impl *stream) {
    tni_watch *w = tni_watch_of(TNI_RECORD_STREAM, stream);
    tni_record s;
    const char *slot = "capture->begin";
    if (!tni_live_stream(w, slot, "", NULL, stream, &s))
        return tni_watch_refuse("capture->begin: the stream is not alive");
    tn_status status = TNI_ASK(w, slot, NULL, TNI_MAY_DECLINE, w->real.capture.begin(stream));
    tni_note_refusal(w, &s, status, slot);
    pthread_mutex_lock(&tni_records_lock);
    tni_record *r = find_stream(w, stream);
    bool captured = s.captures || (r && r->captures);
    if (r && status == TN_OK)
        r->captures = true;
    pthread_mutex_unlock(&tni_records_lock);
    if (status == TN_ERR_STATE && !captured)
        tni_finding(w, TNP_CAPTURE_RECORDS, slot, "",
                    "answered STATE on a stream that does not capture");
    tni_note_loss(w, tni_device_of(&s), s.lost, status, slot, "");
    return status;
}

/* The stream records no more; what it named is the caller's. */
static tni_names stop(tni_watch *w, const tn_stream_impl *stream) {
    tni_names names = {0};
    pthread_mutex_lock(&tni_records_lock);
    tni_record *s = find_stream(w, stream);
    if (s) {
        names = s->names;
        s->names = (tni_names){0};
        s->captures = false;
    }
    pthread_mutex_unlock(&tni_records_lock);
    return names;
}

static tn_status capture_end(tn_stream_impl *stream, tn_graph_impl **out) {
    tni_watch *w = tni_watch_of(TNI_RECORD_STREAM, stream);
    tni_record s;
    const char *slot = "capture->end";
    *out = NULL;
    if (!tni_live_stream(w, slot, "", NULL, stream, &s))
        return tni_watch_refuse("capture->end: the stream is not alive");
    tni_record like = {.kind = TNI_RECORD_GRAPH, .device = s.device, .names = stop(w, stream)};
    tn_status status = TNI_ASK(w, slot, NULL, 0, w->real.capture.end(stream, out));
    tni_note_loss(w, tni_device_of(&s), s.lost, status, slot, "");
    if (status == TN_OK && !s.captures)
        tni_finding(w, TNP_CAPTURE_REFUSES, slot, "",
                    "answered OK on a stream that does not capture");
    if (status != TN_OK && *out)
        tni_finding(w, TNP_CAPTURE_RECORDS, slot, "", "failed, and *out_graph is not NULL");
    if (status == TN_OK) {
        like.key = (uintptr_t)*out;
        status = tni_handle_keep(w, &like, TNP_CAPTURE_RECORDS, slot);
        if (status == TN_OK)
            return status;
        if (*out)
            w->real.capture.destroy(*out);
    }
    tni_names_free(&like.names);
    *out = NULL;
    return status;
}

static void capture_abandon(tn_stream_impl *stream) {
    tni_watch *w = tni_watch_of(TNI_RECORD_STREAM, stream);
    tni_record s;
    if (!tni_live_stream(w, "capture->abandon", "", NULL, stream, &s))
        return;
    tni_names names = stop(w, stream);
    tni_names_free(&names);
    TNI_TELL(w, "capture->abandon", NULL, w->real.capture.abandon(stream));
}

/* ---- graphs ------------------------------------------------------------------------------ */

/* A call on the graph begins. */
static void enter_graph(tni_watch *w, const char *slot, const tn_graph_impl *graph, bool updates) {
    pthread_mutex_lock(&tni_records_lock);
    tni_record *g = find_graph(w, graph);
    bool clash = g && (g->updating || (updates && g->calls));
    if (g) {
        g->calls++;
        g->updating |= updates;
    }
    pthread_mutex_unlock(&tni_records_lock);
    if (clash)
        tni_finding(w, TNI_TENON, slot, "",
                    "called while another call on the graph goes on, and one of them is an update");
}

static void leave_graph(tni_watch *w, const tn_graph_impl *graph, bool updates) {
    pthread_mutex_lock(&tni_records_lock);
    tni_record *g = find_graph(w, graph);
    if (g) {
        g->calls--;
        g->updating &= !updates;
    }
    pthread_mutex_unlock(&tni_records_lock);
}

/* Memory that a launch names and that was freed: its allocation number, or 0. */
static uint64_t freed_of(tni_watch *w, const tn_graph_impl *graph) {
    uint64_t freed = 0;
    pthread_mutex_lock(&tni_records_lock);
    const tni_record *g = find_graph(w, graph);
    for (size_t i = 0; g && i < g->names.n && !freed; i++)
        freed = named_by(w, g, i) ? 0 : g->names.items[i].serial;
    pthread_mutex_unlock(&tni_records_lock);
    return freed;
}

/* It waits for the graph's earlier launches, on whichever streams they are. */
static void note_launch(tni_watch *w, const tn_graph_impl *graph, tn_stream_impl *stream) {
    pthread_mutex_lock(&tni_records_lock);
    tni_record *g = find_graph(w, graph), *s = find_stream(w, stream);
    if (g && s && !s->captures) {
        tni_clock_merge(w, &s->clock, &g->clock);
        tni_point work = tni_note_work(w, stream);
        g->clock.n = 0;
        tni_mark_stream(w, s, &g->clock);
        for (size_t i = 0; i < g->names.n; i++)
            tni_note_use(w, work, named_by(w, g, i));
    }
    pthread_mutex_unlock(&tni_records_lock);
}

static tn_status capture_launch(tn_graph_impl *graph, tn_stream_impl *stream) {
    tni_watch *w = tni_watch_of(TNI_RECORD_GRAPH, graph);
    tni_record g, s;
    const char *slot = "capture->launch";
    if (!tni_live_graph(w, slot, graph, &g) ||
        !tni_live_stream(w, slot, "", tni_device_of(&g), stream, &s))
        return tni_watch_refuse("capture->launch: graph or stream is not alive, or they are of two "
                                "devices");
    uint64_t freed = freed_of(w, graph);
    if (freed)
        tni_finding(w, TNI_TENON, slot, "",
                    "the graph names allocation number %" PRIu64 ", which was freed", freed);
    enter_graph(w, slot, graph, false);
    tn_status status = TNI_ASK(w, slot, NULL, 0, w->real.capture.launch(graph, stream));
    leave_graph(w, graph, false);
    if (status == TN_OK)
        note_launch(w, graph, stream);
    tni_note_refusal(w, &s, status, slot);
    tni_note_loss(w, tni_device_of(&s), s.lost, status, slot, "");
    return status;
}

static void capture_destroy(tn_graph_impl *graph) {
    tni_watch *w = tni_watch_of(TNI_RECORD_GRAPH, graph);
    tni_record g;
    tni_clock launches = {0};
    if (!tni_live_graph(w, "capture->destroy", graph, &g))
        return;
    enter_graph(w, "capture->destroy", graph, false);
    /* Before the call: after it the handle may be another graph's. */
    pthread_mutex_lock(&tni_records_lock);
    tni_record *r = find_graph(w, graph);
    if (r) {
        launches = r->clock;
        r->clock = (tni_clock){0};
        tni_record_remove(w, r);
    }
    pthread_mutex_unlock(&tni_records_lock);
    TNI_TELL(w, "capture->destroy", NULL, w->real.capture.destroy(graph));
    tni_clock_settle(w, &launches, true);
}

/* Both name the same from now on. */
static void take_names(tni_watch *w, const tn_graph_impl *graph, const tn_graph_impl *from) {
    pthread_mutex_lock(&tni_records_lock);
    tni_record *g = find_graph(w, graph);
    const tni_record *source = find_graph(w, from);
    if (g && source && g != source) {
        g->names.n = 0;
        for (size_t i = 0; i < source->names.n; i++)
            tni_name(w, &g->names, source->names.items[i]);
    }
    pthread_mutex_unlock(&tni_records_lock);
}

static tn_status capture_update(tn_graph_impl *graph, tn_graph_impl *from) {
    tni_watch *w = tni_watch_of(TNI_RECORD_GRAPH, graph);
    tni_record g, source;
    const char *slot = "capture->update";
    if (!tni_live_graph(w, slot, graph, &g) || !tni_live_graph(w, slot, from, &source))
        return tni_watch_refuse("capture->update: a graph is not alive");
    if (g.device != source.device)
        tni_finding(w, TNI_TENON, slot, "", "the graphs are of two devices");
    enter_graph(w, slot, graph, true);
    if (from != graph)
        enter_graph(w, slot, from, true);
    tn_status status = TNI_ASK(w, slot, NULL, TNI_MAY_DECLINE, w->real.capture.update(graph, from));
    leave_graph(w, graph, true);
    if (from != graph)
        leave_graph(w, from, true);
    if (status == TN_OK)
        take_names(w, graph, from);
    tni_note_loss(w, tni_device_of(&g), g.lost, status, slot, "");
    return status;
}

const tn_ext_capture tni_checked_capture = {
    .begin = capture_begin,
    .end = capture_end,
    .abandon = capture_abandon,
    .launch = capture_launch,
    .destroy = capture_destroy,
    .update = capture_update,
};
TN_LAST_MEMBER(tn_ext_capture, update);
