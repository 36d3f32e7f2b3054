/* Captures and graphs (tenon/ext/capture.h). What a stream records is no work yet: each launch is one
 * piece of work, which uses all the memory that was named. */
#include "base/alloc.h"
#include "base/error.h"
#include "loader/validation/internal.h"

#include <inttypes.h>
#include <string.h>

/* ---- what a capture names ---------------------------------------------------------------- */

void tni_names_free(tni_names *names) {
    tni_free(names->items);
    *names = (tni_names){0};
}

/* Each once. */
void tni_name(tni_watch *w, tni_names *names, const tni_record *memory) {
    for (size_t i = 0; i < names->n; i++)
        if (names->items[i].key == memory->key && names->items[i].serial == memory->serial)
            return;
    if (names->n == names->capacity &&
        !tni_grow(&names->items, names->n, &names->capacity, sizeof *names->items))
        w->order_lost = true;
    else
        names->items[names->n++] = (tni_named){memory->key, memory->serial, memory->space};
}

static tni_record *find_stream(tni_watch *w, const tn_stream_impl *stream) {
    return tni_record_find(w, TNI_RECORD_STREAM, (uintptr_t)stream);
}

/* The stream records no more; what it named goes to `out`, or is forgotten. */
static void stop(tni_watch *w, const tn_stream_impl *stream, tni_names *out) {
    pthread_mutex_lock(&tni_records_lock);
    tni_record *s = find_stream(w, stream);
    if (s) {
        s->captures = false;
        if (out)
            *out = s->names;
        else
            tni_names_free(&s->names);
        s->names = (tni_names){0};
    }
    pthread_mutex_unlock(&tni_records_lock);
}

static tn_device_impl *device_of(const tni_record *r) {
    return (tn_device_impl *)(uintptr_t)r->device;
}

/* ---- the slots --------------------------------------------------------------------------- */

static tn_status capture_begin(tn_stream_impl *stream) {
    tni_watch *w = tni_watch_of(TNI_RECORD_STREAM, stream);
    tni_frame f;
    tni_record s;
    const char *slot = "capture->begin";
    if (!tni_live_stream(w, slot, "", NULL, stream, &s))
        return tni_watch_refuse("capture->begin: the stream is not alive");
    tni_enter(&f, w, slot, NULL);
    tn_status status = tni_answer(&f, w->real.capture.begin(stream), TNI_MAY_DECLINE);
    if (status == TN_OK && s.captures)
        tni_finding(w, TNP_CAPTURE_REFUSES, slot, "",
                    "answered TN_OK on a stream that captures already");
    pthread_mutex_lock(&tni_records_lock);
    tni_record *r = find_stream(w, stream);
    if (r && status == TN_OK)
        r->captures = true;
    pthread_mutex_unlock(&tni_records_lock);
    tni_note_loss(w, device_of(&s), s.lost, status, slot, "");
    return status;
}

static tn_status capture_end(tn_stream_impl *stream, tn_graph_impl **out) {
    tni_watch *w = tni_watch_of(TNI_RECORD_STREAM, stream);
    tni_frame f;
    tni_record s;
    const char *slot = "capture->end";
    if (!tni_live_stream(w, slot, "", NULL, stream, &s))
        return tni_watch_refuse("capture->end: the stream is not alive");
    tni_names names = {0};
    stop(w, stream, &names);
    tni_enter(&f, w, slot, NULL);
    tn_status status = tni_answer(&f, w->real.capture.end(stream, out), 0);
    if (status == TN_OK && !s.captures)
        tni_finding(w, TNP_CAPTURE_REFUSES, slot, "",
                    "answered TN_OK on a stream that does not capture");
    tni_note_loss(w, device_of(&s), s.lost, status, slot, "");
    tni_record like = {.kind = TNI_RECORD_GRAPH,
                       .key = status == TN_OK ? (uintptr_t)*out : 0,
                       .device = s.device,
                       .names = names};
    if (status == TN_OK)
        status = tni_handle_keep(w, &like, TNP_CAPTURE_RECORDS, slot);
    else
        like.key = 0;
    if (status == TN_OK)
        return TN_OK;
    tni_names_free(&names);
    if (like.key) {
        w->real.capture.destroy(*out);
        *out = NULL;
    }
    return status;
}

static void capture_abandon(tn_stream_impl *stream) {
    tni_watch *w = tni_watch_of(TNI_RECORD_STREAM, stream);
    tni_frame f;
    tni_record s;
    if (!tni_live_stream(w, "capture->abandon", "", NULL, stream, &s))
        return;
    stop(w, stream, NULL);
    tni_enter(&f, w, "capture->abandon", NULL);
    w->real.capture.abandon(stream);
    tni_leave(&f);
}

/* Memory that a launch names and that was freed: its allocation number, or 0. */
static uint64_t freed_of(tni_watch *w, const tn_graph_impl *graph) {
    uint64_t freed = 0;
    pthread_mutex_lock(&tni_records_lock);
    const tni_record *g = tni_record_find(w, TNI_RECORD_GRAPH, (uintptr_t)graph);
    for (size_t i = 0; g && i < g->names.n && !freed; i++) {
        const tni_named *m = &g->names.items[i];
        const tni_record *r = tni_memory_find(w, (void *)(uintptr_t)g->device, m->space, m->key);
        freed = r && r->serial == m->serial ? 0 : m->serial;
    }
    pthread_mutex_unlock(&tni_records_lock);
    return freed;
}

static void note_launch(tni_watch *w, const tn_graph_impl *graph, tn_stream_impl *stream) {
    pthread_mutex_lock(&tni_records_lock);
    tni_point work = tni_note_work(w, stream);
    const tni_record *g = tni_record_find(w, TNI_RECORD_GRAPH, (uintptr_t)graph);
    for (size_t i = 0; g && i < g->names.n; i++)
        tni_note_use(w, work,
                     tni_memory_find(w, (void *)(uintptr_t)g->device, g->names.items[i].space,
                                     g->names.items[i].key));
    pthread_mutex_unlock(&tni_records_lock);
}

static tn_status capture_launch(tn_graph_impl *graph, tn_stream_impl *stream) {
    tni_watch *w = tni_watch_of(TNI_RECORD_GRAPH, graph);
    tni_frame f;
    tni_record g, s;
    const char *slot = "capture->launch";
    if (!tni_live_graph(w, slot, graph, &g) ||
        !tni_live_stream(w, slot, "", device_of(&g), stream, &s))
        return tni_watch_refuse("capture->launch: graph or stream is not alive, or they are of two "
                                "devices");
    uint64_t freed = freed_of(w, graph);
    if (freed)
        tni_finding(w, TNI_TENON, slot, "",
                    "the graph names allocation number %" PRIu64 ", which was freed", freed);
    tni_enter(&f, w, slot, NULL);
    tn_status status = tni_answer(&f, w->real.capture.launch(graph, stream), 0);
    if (status == TN_OK)
        note_launch(w, graph, stream);
    tni_note_loss(w, device_of(&s), s.lost, status, slot, "");
    return status;
}

static void capture_destroy(tn_graph_impl *graph) {
    tni_watch *w = tni_watch_of(TNI_RECORD_GRAPH, graph);
    tni_frame f;
    tni_record g;
    if (!tni_live_graph(w, "capture->destroy", graph, &g))
        return;
    /* Before the call: after it the handle may be another graph's. */
    pthread_mutex_lock(&tni_records_lock);
    tni_record *r = tni_record_find(w, TNI_RECORD_GRAPH, (uintptr_t)graph);
    if (r)
        tni_record_remove(w, r);
    pthread_mutex_unlock(&tni_records_lock);
    tni_enter(&f, w, "capture->destroy", NULL);
    w->real.capture.destroy(graph);
    tni_leave(&f);
}

static tn_status capture_update(tn_graph_impl *graph, tn_graph_impl *from) {
    tni_watch *w = tni_watch_of(TNI_RECORD_GRAPH, graph);
    tni_frame f;
    tni_record g, h;
    const char *slot = "capture->update";
    if (!tni_live_graph(w, slot, graph, &g) || !tni_live_graph(w, slot, from, &h))
        return tni_watch_refuse("capture->update: a graph is not alive");
    if (g.device != h.device)
        tni_finding(w, TNI_TENON, slot, "", "the graphs are of two devices");
    tni_enter(&f, w, slot, NULL);
    tn_status status = tni_answer(&f, w->real.capture.update(graph, from), TNI_MAY_DECLINE);
    pthread_mutex_lock(&tni_records_lock);
    tni_record *to = tni_record_find(w, TNI_RECORD_GRAPH, (uintptr_t)graph);
    const tni_record *source = tni_record_find(w, TNI_RECORD_GRAPH, (uintptr_t)from);
    if (status == TN_OK && to && source && to != source) {
        to->names.n = 0;
        for (size_t i = 0; i < source->names.n; i++) {
            const tni_named *m = &source->names.items[i];
            tni_name(w, &to->names,
                     &(tni_record){.key = m->key, .serial = m->serial, .space = m->space});
        }
    }
    pthread_mutex_unlock(&tni_records_lock);
    tni_note_loss(w, device_of(&g), g.lost, status, slot, "");
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
