/* tenon.capture/1: in what order launches run, what happens beside a capture, and updates. */
#include "plugin-sdk/conformance/worker/contract/graph_scene.h"

#include <pthread.h>
#include <string.h>

/* ---- order ------------------------------------------------------------------------------- */

/* Launches on the streams A and B that `order` names. The last but one waits for work, and so the
 * last does; what comes behind that on its stream does not disturb it. */
static bool launch_in_order(tc_scene *n, tc_work *work, const char *order, int value) {
    tc_contract *k = n->k;
    tn_stream_impl *stream = n->stream;
    bool ok = tc_buffer_fill(k, &n->a, n->stream, value) && tc_stream_sync(k, n->stream);
    for (const char *p = order; *p && ok; p++) {
        stream = *p == 'A' ? n->stream : n->other;
        ok = (!p[1] || p[2] || tc_work_queue(k, work, stream)) &&
             tc_scene_launch(n, n->graph, stream);
    }
    memcpy(n->b.model, n->a.model, TC_SCENE_BYTES);
    ok = ok && tc_buffer_fill(k, &n->a, stream, value + 0x40) && tc_stream_sync(k, n->stream) &&
         tc_stream_sync(k, n->other);
    return ok && tc_scene_check(n, &n->b, n->stream, TNP_CAPTURE_LAUNCH_ORDER,
                                "what launches of a graph on two streams in turn wrote");
}

static void launch_order(tc_contract *k) {
    static const char *const orders[] = {"AB", "BA", "ABA", "BAB", "AAB", "ABBA", "BABA", NULL};
    tc_scene n;
    tc_work work;
    if (!tc_scene_set_up(k, &n) || !tc_work_create(k, n.s, &work))
        return;
    bool ok = tc_scene_begin(&n) && tc_scene_copy(&n, &n.b, 0, &n.a, TC_SCENE_BYTES) &&
              tc_scene_end(&n, &n.graph) && tc_scene_capture_fill(&n, &n.b, 0x71, &n.second);
    for (int i = 0; ok && orders[i] && !tc_failed(k); i++) {
        ok = launch_in_order(&n, &work, orders[i], 0x21 + i);
        /* two graphs on one stream */
        ok =
            ok && tc_scene_launch(&n, n.second, n.stream) && tc_scene_launch(&n, n.graph, n.stream);
        memcpy(n.b.model, n.a.model, TC_SCENE_BYTES);
        ok = ok && tc_scene_check(&n, &n.b, n.stream, TNP_STREAM_ORDER,
                                  "what launches of two graphs on one stream wrote");
        ok =
            ok && tc_scene_launch(&n, n.graph, n.stream) && tc_scene_launch(&n, n.second, n.stream);
        memset(n.b.model, 0x71, TC_SCENE_BYTES);
        ok = ok && tc_scene_check(&n, &n.b, n.stream, TNP_STREAM_ORDER,
                                  "what launches of two graphs on one stream wrote");
    }
    tc_scene_finish(&n);
}

static tn_status ask_launch(tc_contract *k, void *of) {
    tc_scene *n = of;
    return n->ext->launch(n->graph, n->stream);
}

static void launch_at_once(tc_contract *k) {
    tc_scene n;
    tc_work work;
    if (tc_scene_set_up(k, &n) && tc_work_create(k, n.s, &work) &&
        tc_scene_capture_fill(&n, &n.a, 1, &n.graph) && tc_scene_launch(&n, n.graph, n.stream) &&
        tc_stream_sync(k, n.stream) && tc_question_waits(k, &work, n.stream, NULL, ask_launch, &n))
        TC_BROKEN(k, TNP_CAPTURE_LAUNCH_ORDER,
                  "launch of a graph always waits until the work before it is done");
    tc_scene_finish(&n);
}

/* ---- others ------------------------------------------------------------------------------ */

static bool measures(const tc_scene *n) {
    const tn_event_ops *events = n->s->ops->events;
    return TN_HAS(events, tn_event_ops, elapsed) && events->elapsed;
}

/* Of events, one recorded before the capture and one on a stream that does not capture; and streams
 * and events come and go. */
static bool ask_others(tc_contract *k, tc_scene *n, tn_event_impl *const events[2]) {
    tn_memory pinned;
    void *host;
    const tn_device_ops *ops = n->s->ops;
    tn_memory_info info = {.struct_size = sizeof info};
    double ns;
    tn_event_impl *more;
    tn_stream_impl *stream;
    bool ok = tc_must(k, TNP_CAPTURE_OTHERS, ops->events->record(events[1], n->other),
                      "record of an event on another stream while one captures") &&
              tc_must(k, TNP_CAPTURE_OTHERS, ops->events->wait(n->other, events[0]),
                      "wait of another stream for an event while one captures");
    for (int e = 0; e < 2 && ok; e++)
        ok = tc_must(k, TNP_CAPTURE_OTHERS, ops->events->synchronize(events[e]),
                     "synchronize of an event while a stream captures") &&
             tc_must(k, TNP_CAPTURE_OTHERS, ops->events->query(events[e]),
                     "query of an event while a stream captures");
    if (ok && measures(n))
        ok = tc_must(k, TNP_CAPTURE_OTHERS, ops->events->elapsed(events[0], events[1], &ns),
                     "elapsed between events while a stream captures");
    ok = ok &&
         tc_must(k, TNP_CAPTURE_OTHERS, ops->streams->synchronize(n->other),
                 "synchronize of a stream while another captures") &&
         tc_must(k, TNP_CAPTURE_OTHERS, ops->streams->query(n->other),
                 "query of a stream while another captures") &&
         (!tc_has_info(n->s) ||
          tc_must(k, TNP_CAPTURE_OTHERS, n->s->memory->info(n->s->device, TN_SPACE_DEVICE, &info),
                  "info of memory while a stream captures")) &&
         tc_must(k, TNP_CAPTURE_OTHERS, ops->events->create(n->s->device, 0, &more),
                 "create of an event while a stream captures");
    if (ok)
        ops->events->destroy(more);
    ok = ok && tc_must(k, TNP_CAPTURE_OTHERS, ops->streams->create(n->s->device, 0, &stream),
                       "create of a stream while another captures");
    if (ok)
        ops->streams->destroy(stream);
    if (ok && (n->s->spaces >> TN_SPACE_PINNED & 1) &&
        tc_must(k, TNP_CAPTURE_OTHERS, tc_alloc(n->s, TN_SPACE_PINNED, 1000, &pinned, &host),
                "alloc of pinned memory while a stream captures"))
        n->s->memory->dealloc(n->s->device, TN_SPACE_PINNED, pinned);
    return ok;
}

/* While one stream captures, memory comes and goes, another stream works, and captures too. */
static void others(tc_contract *k) {
    tc_scene n;
    tc_buffer more;
    tn_event_impl *events[2];
    if (!tc_scene_set_up(k, &n))
        return;
    uint32_t flags = measures(&n) ? TN_EVENT_TIMING : 0;
    bool ok =
        tc_event_create(k, n.s, flags, &events[0]) && tc_event_create(k, n.s, flags, &events[1]) &&
        tc_must(k, TNP_EVENT_RECORD, n.s->ops->events->record(events[0], n.stream), "record") &&
        tc_scene_begin(&n) && tc_scene_fill(&n, &n.a, 0, TC_SCENE_BYTES, 0x41);
    ok = ok && ask_others(k, &n, events) &&
         tc_buffer_create(k, n.s, TN_SPACE_DEVICE, TC_SCENE_BYTES, &more) &&
         tc_buffer_fill(k, &more, n.other, 0x42) && tc_stream_sync(k, n.other) &&
         tc_buffer_check(k, &more, n.s->stream, TNP_CAPTURE_OTHERS,
                         "what another stream wrote while one captured");
    if (ok)
        tc_buffer_destroy(&more);
    ok = ok && tc_capture_begin(k, n.ext, n.other) &&
         tc_must(k, TNP_CAPTURE_OTHERS,
                 n.s->memory->fill(n.s->device, n.other, n.b.memory, 0, 0x43, TC_SCENE_BYTES),
                 "fill on a second stream that captures") &&
         tc_scene_fill(&n, &n.a, 0, 50, 0x44) && tc_capture_end(k, n.ext, n.other, &n.second) &&
         tc_scene_end(&n, &n.graph);
    if (ok && tc_scene_launch(&n, n.second, n.stream) && tc_stream_sync(k, n.stream) &&
        tc_buffer_check(k, &n.a, n.s->stream, TNP_CAPTURE_OTHERS,
                        "what one of two captures names, before its launch") &&
        tc_scene_launch(&n, n.graph, n.stream)) {
        memset(n.a.model, 0x41, TC_SCENE_BYTES);
        memset(n.a.model, 0x44, 50);
        memset(n.b.model, 0x43, TC_SCENE_BYTES);
        tc_scene_check(&n, &n.a, n.stream, TNP_CAPTURE_OTHERS, "the first of two captures");
        if (!tc_failed(k))
            tc_buffer_check(k, &n.b, n.s->stream, TNP_CAPTURE_OTHERS, "the second of two captures");
    }
    if (!n.graph)
        n.ext->abandon(n.stream);
    tc_scene_finish(&n);
}

/* What is allocated and freed while a stream captures counts at once, as at other times. */
static void memory(tc_contract *k) {
    enum { BYTES = 4 << 20, TIMES = 4 };
    tc_scene n;
    tn_memory some[TIMES];
    void *host;
    uint64_t first[2] = {0}, taken[2] = {0}, last[2] = {0}; /* bytes free; while one captures */
    if (!tc_scene_set_up(k, &n))
        return;
    for (int captures = 0; captures < 2 && !tc_failed(k); captures++) {
        if (captures && (!tc_scene_begin(&n) || !tc_scene_fill(&n, &n.a, 0, n.a.bytes, 1)))
            break;
        for (int round = 0; round < 2; round++) { /* in the first a device may take what it keeps */
            first[captures] = tc_free_bytes(n.s);
            for (int i = 0; i < TIMES; i++)
                if (!tc_must(k, TNP_CAPTURE_OTHERS,
                             tc_alloc(n.s, TN_SPACE_DEVICE, BYTES, &some[i], &host), "alloc"))
                    some[i] = 0;
            taken[captures] = tc_free_bytes(n.s);
            for (int i = 0; i < TIMES; i++)
                if (some[i])
                    n.s->memory->dealloc(n.s->device, TN_SPACE_DEVICE, some[i]);
            last[captures] = tc_free_bytes(n.s);
        }
        if (captures)
            n.ext->abandon(n.stream);
    }
    if (first[0] == last[0] && taken[0] < first[0] && first[1] != last[1])
        TC_BROKEN(k, TNP_CAPTURE_OTHERS,
                  "info: %llu bytes are free, and %llu after some were allocated and freed while a "
                  "stream captures; at other times as many as before",
                  (unsigned long long)first[1], (unsigned long long)last[1]);
    tc_scene_finish(&n);
}

typedef struct helper {
    tc_scene *n;
    tn_status on_captured, on_other;
} helper;

static void *help(void *context) {
    helper *h = context;
    tc_scene *n = h->n;
    const tn_memory_ops *m = n->s->memory;
    h->on_captured = m->fill(n->s->device, n->stream, n->a.memory, 0, 0x91, TC_SCENE_BYTES);
    h->on_other = m->fill(n->s->device, n->other, n->b.memory, 0, 0x92, TC_SCENE_BYTES);
    if (h->on_other == TN_OK)
        h->on_other = n->s->ops->streams->synchronize(n->other);
    return NULL;
}

/* What another thread queues on the stream is recorded too; what it queues elsewhere runs. */
static void threads(tc_contract *k) {
    tc_scene n;
    helper h = {.n = &n};
    pthread_t thread;
    if (!tc_scene_set_up(k, &n) || !tc_scene_begin(&n))
        return;
    if (pthread_create(&thread, NULL, help, &h) != 0) {
        TC_CASE_ERROR(k->out, "a thread cannot be started");
        n.ext->abandon(n.stream);
        return;
    }
    pthread_join(thread, NULL);
    memset(n.b.model, 0x92, TC_SCENE_BYTES);
    if (tc_must(k, TNP_CAPTURE_RECORDS, h.on_captured,
                "fill by another thread on a stream that captures") &&
        tc_must(k, TNP_CAPTURE_OTHERS, h.on_other, "work of another thread while one captures") &&
        tc_scene_end(&n, &n.graph) && tc_stream_sync(k, n.stream) &&
        tc_buffer_check(k, &n.a, n.s->stream, TNP_CAPTURE_RECORDS,
                        "what another thread queued on a stream that captures") &&
        tc_buffer_check(k, &n.b, n.s->stream, TNP_CAPTURE_OTHERS,
                        "what another thread wrote while one captured") &&
        tc_scene_launch(&n, n.graph, n.stream)) {
        memset(n.a.model, 0x91, TC_SCENE_BYTES);
        tc_scene_check(&n, &n.a, n.stream, TNP_CAPTURE_REPLAYS,
                       "what another thread had queued, after a launch");
    }
    if (!n.graph)
        n.ext->abandon(n.stream);
    tc_scene_finish(&n);
}

/* ---- update ------------------------------------------------------------------------------ */

/* Nothing to finish where it is false. */
static bool set_up_update(tc_contract *k, tc_scene *n) {
    if (!tc_scene_set_up(k, n))
        return false;
    if (TN_HAS(n->ext, tn_ext_capture, update) && n->ext->update)
        return true;
    TC_NOT_OFFERED(k, "tenon.capture/1 has no update");
    return false;
}

/* Where a device declines an update, graphs stay as they are; else it must have done it. */
static bool update_from_second(tc_scene *n) {
    tn_status status = n->ext->update(n->graph, n->second);
    return status != TN_ERR_UNSUPPORTED && tc_must(n->k, TNP_CAPTURE_UPDATE, status, "update");
}

static void update(tc_contract *k) {
    tc_scene n;
    tc_work work;
    if (!set_up_update(k, &n))
        return;
    if (!tc_work_create(k, n.s, &work) || !tc_scene_capture_fill(&n, &n.a, 0xa1, &n.graph) ||
        !tc_scene_capture_fill(&n, &n.a, 0xa2, &n.second) ||
        !tc_scene_launch(&n, n.graph, n.stream) || !tc_work_queue(k, &work, n.stream) ||
        !tc_scene_launch(&n, n.graph, n.stream)) {
        tc_scene_finish(&n);
        return;
    }
    bool updated = update_from_second(&n);
    memset(n.a.model, 0xa1, TC_SCENE_BYTES);
    tc_scene_check(&n, &n.a, n.stream, TNP_CAPTURE_UPDATE, "what was launched before an update");
    for (int i = 0; i < 3 && !tc_failed(k); i++) {
        tn_graph_impl *graph = i == 1 ? n.second : n.graph;
        if (i == 2 && updated) { /* it needs `from` no more */
            n.ext->destroy(n.second);
            n.second = NULL;
        }
        memset(n.a.model, graph == n.second || updated ? 0xa2 : 0xa1, TC_SCENE_BYTES);
        if (tc_scene_launch(&n, graph, n.stream))
            tc_scene_check(&n, &n.a, n.stream, TNP_CAPTURE_UPDATE, "a launch after an update");
        tc_buffer_fill(k, &n.a, n.stream, 0);
    }
    tc_scene_finish(&n);
}

/* From a graph of other length: what `from` has more is done, what it has less is not. */
static void update_length(tc_contract *k) {
    tc_scene n;
    bool longer = strcmp(tc_contract_word(k, "to"), "longer") == 0;
    if (!set_up_update(k, &n))
        return;
    tn_graph_impl **one = longer ? &n.graph : &n.second, **two = longer ? &n.second : &n.graph;
    if (tc_scene_capture_fill(&n, &n.a, 0x11, one) && tc_scene_begin(&n) &&
        tc_scene_fill(&n, &n.a, 0, TC_SCENE_BYTES, 0x12) &&
        tc_scene_fill(&n, &n.b, 0, TC_SCENE_BYTES, 0x13) && tc_scene_end(&n, two)) {
        bool of_two = longer == update_from_second(&n);
        memset(n.a.model, of_two ? 0x12 : 0x11, TC_SCENE_BYTES);
        if (of_two)
            memset(n.b.model, 0x13, TC_SCENE_BYTES);
        if (tc_scene_launch(&n, n.graph, n.stream) &&
            tc_scene_check(&n, &n.a, n.stream, TNP_CAPTURE_UPDATE,
                           "a launch after an update from a graph of other length"))
            tc_buffer_check(k, &n.b, n.stream, TNP_CAPTURE_UPDATE,
                            "what one of the two graphs of an update writes");
    }
    tc_scene_finish(&n);
}

/* From a graph of nothing, and of one. */
static void update_nothing(tc_contract *k) {
    tc_scene n;
    bool to_nothing = strcmp(tc_contract_word(k, "to"), "nothing") == 0;
    if (!set_up_update(k, &n))
        return;
    if (tc_scene_capture_fill(&n, &n.a, 0x31, to_nothing ? &n.graph : &n.second) &&
        tc_scene_begin(&n) && tc_scene_end(&n, to_nothing ? &n.second : &n.graph)) {
        bool fills = to_nothing != update_from_second(&n);
        if (fills)
            memset(n.a.model, 0x31, TC_SCENE_BYTES);
        if (tc_scene_launch(&n, n.graph, n.stream))
            tc_scene_check(&n, &n.a, n.stream, TNP_CAPTURE_UPDATE,
                           to_nothing ? "a launch after an update from a graph of nothing"
                                      : "a launch after an update of a graph of nothing");
    }
    tc_scene_finish(&n);
}

/* Updates one after the other, while what was launched between them waits behind work: each launch does what it was
 * launched with. */
static void update_again(tc_contract *k) {
    enum { UPDATES = 5, SPAN = 500 };
    tc_scene n;
    tc_work work;
    int latest = 0;
    if (!set_up_update(k, &n))
        return;
    bool ok = tc_work_create(k, n.s, &work) && tc_work_queue(k, &work, n.other);
    for (int i = 0; ok && i <= UPDATES; i++) {
        ok = tc_scene_begin(&n) && tc_scene_fill(&n, &n.a, (uint64_t)i * SPAN, SPAN, 0xb0 + i) &&
             tc_scene_end(&n, i ? &n.second : &n.graph);
        if (ok && i && update_from_second(&n))
            latest = i;
        if (n.second) /* it is needed no more */
            n.ext->destroy(n.second);
        n.second = NULL;
        ok = ok && !tc_failed(k) && tc_scene_launch(&n, n.graph, n.other);
        memset(n.a.model + latest * SPAN, 0xb0 + latest, SPAN);
    }
    if (ok)
        tc_scene_check(&n, &n.a, n.other, TNP_CAPTURE_UPDATE,
                       "what launches wrote that waited while their graph was updated again");
    tc_scene_finish(&n);
}

/* Launches stay in their order, also when an update comes between them; what runs nothing is over when those before
 * it are. */
static void update_order(tc_contract *k) {
    tc_scene n;
    tc_work work;
    bool to_nothing = strcmp(tc_contract_word(k, "to"), "nothing") == 0;
    if (!set_up_update(k, &n))
        return;
    if (tc_work_create(k, n.s, &work) && tc_scene_capture_fill(&n, &n.a, 0x21, &n.graph) &&
        (to_nothing ? tc_scene_begin(&n) && tc_scene_end(&n, &n.second)
                    : tc_scene_capture_fill(&n, &n.a, 0x22, &n.second)) &&
        tc_work_hold(k, &work, n.stream, 0.05) && tc_scene_launch(&n, n.graph, n.stream)) {
        bool updated = update_from_second(&n);
        memset(n.a.model, updated && !to_nothing ? 0x22 : 0x21, TC_SCENE_BYTES);
        if (tc_scene_launch(&n, n.graph, n.other) && (to_nothing || tc_stream_sync(k, n.stream)))
            tc_scene_check(&n, &n.a, n.other, TNP_CAPTURE_LAUNCH_ORDER,
                           "two launches on two streams, with an update between them");
    }
    tc_scene_finish(&n);
}

const tc_contract_row tc_graph_order_rows[] = {
    {"capture-launch-order", "", TC_SMOKE, launch_order},
    {"capture-launch-at-once", "", TC_SMOKE, launch_at_once},
    {"capture-memory", "", TC_SMOKE, memory},
    {"capture-others", "", TC_SMOKE, others},
    {"capture-threads", "", TC_SMOKE, threads},
    {"capture-update", "", TC_SMOKE, update},
    {"capture-update-length", "to=longer", TC_SMOKE, update_length},
    {"capture-update-length", "to=shorter", TC_SMOKE, update_length},
    {"capture-update-nothing", "to=nothing", TC_SMOKE, update_nothing},
    {"capture-update-nothing", "to=something", TC_SMOKE, update_nothing},
    {"capture-update-again", "", TC_SMOKE, update_again},
    {"capture-update-order", "to=something", TC_SMOKE, update_order},
    {"capture-update-order", "to=nothing", TC_SMOKE, update_order},
    {0},
};
