/* tenon.capture/1: what a capturing stream records, and what launches make of it. That of errors is with
 * the other errors. */
#include "plugin-sdk/conformance/worker/contract/graphs.h"

#include "plugin-sdk/conformance/worker/contract/reach.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 60000 };

const tn_ext_capture *tc_capture_extension(tc_contract *k) {
    const tn_ext_capture *ext = tc_subject_extension(k->subject, TN_EXT_CAPTURE);
    if (!tc_has_streams(k))
        return NULL;
    if (!ext)
        TC_NOT_OFFERED(k, "no tenon.capture/1");
    else if (!TN_HAS(ext, tn_ext_capture, destroy) || !ext->begin || !ext->end || !ext->abandon ||
             !ext->launch || !ext->destroy)
        TC_BROKEN(k, TNP_TABLE_REQUIRED_MEMBERS, TN_EXT_CAPTURE " lacks a function");
    else
        return ext;
    return NULL;
}

bool tc_capture_begin(tc_contract *k, const tn_ext_capture *ext, tn_stream_impl *stream) {
    tn_status status = ext->begin(stream);
    if (status == TN_ERR_UNSUPPORTED)
        return TC_NOT_OFFERED(k, "this device cannot capture");
    return tc_must(k, TNP_CAPTURE_RECORDS, status, "begin of a capture");
}

bool tc_capture_end(tc_contract *k, const tn_ext_capture *ext, tn_stream_impl *stream,
                    tn_graph_impl **out) {
    *out = NULL;
    if (!tc_must(k, TNP_CAPTURE_RECORDS, ext->end(stream, out), "end of a capture"))
        return false;
    return *out || TC_BROKEN(k, TNP_CAPTURE_RECORDS, "end of a capture gave no graph");
}

bool tc_graph_launch(tc_contract *k, const tn_ext_capture *ext, tn_graph_impl *graph,
                     tn_stream_impl *stream) {
    return tc_must(k, TNP_CAPTURE_REPLAYS, ext->launch(graph, stream), "launch of a graph");
}

/* ---- what cases share -------------------------------------------------------------------- */

typedef struct scene {
    tc_contract *k;
    tc_subject *s;
    const tn_ext_capture *ext;
    tn_stream_impl *stream, *other;
    tc_buffer a, b;
    tn_graph_impl *graph, *second;
} scene;

static bool set_up(tc_contract *k, scene *n) {
    *n = (scene){.k = k, .s = k->subject, .ext = tc_capture_extension(k)};
    return n->ext && tc_stream_create(k, n->s, 0, &n->stream) &&
           tc_stream_create(k, n->s, 0, &n->other) &&
           tc_buffer_create(k, n->s, TN_SPACE_DEVICE, BYTES, &n->a) &&
           tc_buffer_create(k, n->s, TN_SPACE_DEVICE, BYTES, &n->b);
}

static void finish(scene *n) {
    if (!n->ext)
        return;
    if (n->graph)
        n->ext->destroy(n->graph);
    if (n->second)
        n->ext->destroy(n->second);
}

static bool begin(scene *n) {
    return tc_capture_begin(n->k, n->ext, n->stream);
}
static bool end(scene *n, tn_graph_impl **out) {
    return tc_capture_end(n->k, n->ext, n->stream, out);
}
static bool launch(scene *n, tn_graph_impl *graph, tn_stream_impl *stream) {
    return tc_graph_launch(n->k, n->ext, graph, stream);
}

/* A fill that leaves the model alone. */
static bool fill(scene *n, tc_buffer *b, uint64_t from, uint64_t bytes, int value) {
    return tc_must(
        n->k, TNP_CAPTURE_RECORDS,
        n->s->memory->fill(n->s->device, n->stream, b->memory, from, (uint8_t)value, bytes),
        "fill on a stream that captures");
}

static bool copy(scene *n, tc_buffer *to, uint64_t at, tc_buffer *from, uint64_t bytes) {
    return tc_must(
        n->k, TNP_CAPTURE_RECORDS,
        n->s->memory->copy(n->s->device, n->stream, to->memory, at, from->memory, 0, bytes),
        "copy on a stream that captures");
}

static bool sync_and_check(scene *n, tc_buffer *b, tn_stream_impl *stream,
                           tn_requirement requirement, const char *what) {
    return tc_stream_sync(n->k, stream) &&
           tc_buffer_check(n->k, b, n->s->stream, requirement, what);
}

/* A graph that fills all of `b`. */
static bool capture_fill(scene *n, tc_buffer *b, int value, tn_graph_impl **out) {
    return begin(n) && fill(n, b, 0, b->bytes, value) && end(n, out);
}

/* ---- recording --------------------------------------------------------------------------- */

/* What a launch reads is what is there then. */
static bool change_pinned(tc_buffer *pinned) {
    memset(pinned->host, 0x5c, 5000);
    memset(pinned->model, 0x5c, 5000);
    return true;
}

/* Nothing of it runs before a launch, also behind work that does, and all of it then. */
static void records(tc_contract *k) {
    scene n;
    tc_work work;
    tc_buffer pinned = {0};
    bool has_pinned = k->subject->spaces >> TN_SPACE_PINNED & 1;
    if (!set_up(k, &n) || !tc_work_create(k, n.s, &work) || !tc_work_queue(k, &work, n.stream) ||
        !tc_buffer_fill(k, &n.a, n.stream, 0x11) ||
        (has_pinned && !tc_buffer_create(k, n.s, TN_SPACE_PINNED, BYTES, &pinned)))
        return;
    bool ok = begin(&n) && fill(&n, &n.b, 100, 5000, 0x22) && copy(&n, &n.b, 10000, &n.a, 7000);
    if (ok && has_pinned)
        ok = tc_must(k, TNP_CAPTURE_RECORDS,
                     n.s->memory->copy_from_host(n.s->device, n.stream, n.b.memory, 30000,
                                                 pinned.host, pinned.memory, 9000),
                     "copy_from_host of pinned memory on a stream that captures") &&
             tc_must(k, TNP_CAPTURE_RECORDS,
                     n.s->memory->copy_to_host(n.s->device, n.stream, (char *)pinned.host + 20000,
                                               pinned.memory, n.b.memory, 0, 8000),
                     "copy_to_host of pinned memory on a stream that captures");
    ok = ok && end(&n, &n.graph) && tc_stream_sync(k, n.stream);
    static const char ran[] = "memory that work on a capturing stream names, before any launch";
    if (ok && tc_buffer_check(k, &n.b, n.s->stream, TNP_CAPTURE_RECORDS, ran) &&
        tc_buffer_check(k, &n.a, n.s->stream, TNP_CAPTURE_RECORDS,
                        "what was queued before a capture") &&
        (!has_pinned || tc_buffer_check(k, &pinned, NULL, TNP_CAPTURE_RECORDS, ran)) &&
        (!has_pinned || change_pinned(&pinned)) && launch(&n, n.graph, n.stream)) {
        memset(n.b.model + 100, 0x22, 5000);
        memcpy(n.b.model + 10000, n.a.model, 7000);
        if (has_pinned) {
            memcpy(n.b.model + 30000, pinned.model, 9000);
            memcpy(pinned.model + 20000, n.b.model, 8000);
        }
        sync_and_check(&n, &n.b, n.stream, TNP_CAPTURE_REPLAYS, "what a launch wrote");
        if (has_pinned && !tc_failed(k))
            tc_buffer_check(k, &pinned, NULL, TNP_CAPTURE_REPLAYS,
                            "pinned memory that a launch wrote");
    }
    finish(&n);
}

static void nothing(tc_contract *k) {
    scene n;
    if (set_up(k, &n) && begin(&n) && end(&n, &n.graph) && tc_buffer_fill(k, &n.a, n.stream, 1) &&
        launch(&n, n.graph, n.stream) && launch(&n, n.graph, n.other) && tc_stream_sync(k, n.other))
        sync_and_check(&n, &n.a, n.stream, TNP_CAPTURE_REPLAYS,
                       "memory before the launch of an empty graph");
    finish(&n);
}

/* ---- replays ----------------------------------------------------------------------------- */

/* The graph exchanges a and b by way of c, then marks a place of its own. */
static void replay(tc_contract *k) {
    scene n;
    tc_buffer c;
    if (!set_up(k, &n) || !tc_buffer_create(k, n.s, TN_SPACE_DEVICE, BYTES, &c))
        return;
    bool ok = begin(&n) && copy(&n, &c, 0, &n.a, BYTES) && copy(&n, &n.a, 0, &n.b, BYTES) &&
              copy(&n, &n.b, 0, &c, BYTES) && fill(&n, &n.a, 9, 90, 0x33) && end(&n, &n.graph);
    static const int runs[] = {1, 1, 1, 7, 2};
    for (int round = 0; ok && round < 5 && !tc_failed(k); round++) {
        if (round == 2) /* other inputs, in place */
            ok = tc_buffer_fill(k, &n.a, n.stream, 0x44);
        for (int i = 0; ok && i < runs[round]; i++) {
            ok = launch(&n, n.graph, n.stream);
            memcpy(c.model, n.a.model, BYTES);
            memcpy(n.a.model, n.b.model, BYTES);
            memcpy(n.b.model, c.model, BYTES);
            memset(n.a.model + 9, 0x33, 90);
        }
        ok = ok && sync_and_check(&n, &n.a, n.stream, TNP_CAPTURE_REPLAYS, "what launches wrote") &&
             tc_buffer_check(k, &n.b, n.s->stream, TNP_CAPTURE_REPLAYS, "what launches copied");
    }
    finish(&n);
}

/* On other streams than its own, also when that is gone. */
static void streams(tc_contract *k) {
    scene n;
    if (!set_up(k, &n) || !capture_fill(&n, &n.a, 0x55, &n.graph))
        return;
    for (int round = 0; round < 3 && !tc_failed(k); round++) {
        tn_stream_impl *stream = round == 1 ? n.s->stream : n.other;
        if (round == 2)
            tc_stream_destroy(k, n.stream);
        if (tc_buffer_fill(k, &n.a, stream, round) && launch(&n, n.graph, stream)) {
            memset(n.a.model, 0x55, BYTES);
            sync_and_check(&n, &n.a, stream, TNP_CAPTURE_REPLAYS,
                           "what a launch wrote on another stream than was captured");
        }
    }
    finish(&n);
}

/* ---- kernels ----------------------------------------------------------------------------- */

/* The outputs as they were placed. */
static bool reset(scene *n, tc_placed *p) {
    bool ok = true;
    for (uint32_t i = 0; ok && i < p->call->record->n_outs; i++)
        ok = tc_must(n->k, TNP_TRANSFER_RANGE,
                     n->s->memory->copy_from_host(n->s->device, n->stream, p->out_views[i].memory,
                                                  0, p->call->outs[i].tensor.image, 0,
                                                  p->call->outs[i].tensor.bytes),
                     "write of an output");
    return ok;
}

static void check_untouched(scene *n, tc_placed *p) {
    tc_result result = {0};
    if (!tc_read_outs(p, &result, n->k->out))
        return;
    for (uint32_t i = 0; i < p->call->record->n_outs; i++)
        if (memcmp(result.outs[i], p->call->outs[i].tensor.image, p->call->outs[i].tensor.bytes) !=
            0)
            TC_BROKEN(n->k, TNP_CAPTURE_RECORDS, "%s: ran while it was captured",
                      p->call->record->op);
}

static void check_result(scene *n, tc_placed *p, int round) {
    tc_result result = {0};
    tc_verdict v = {0};
    if (tc_read_back(p, &result, &v)) {
        tc_check_untouched(p->call, &result, &v);
        tc_check_outputs(p->call, &result, n->s, &v);
    }
    if (v.status == TC_FAIL)
        TC_BROKEN(n->k, TNP_CAPTURE_REPLAYS, "launch %d of a captured call: %.800s", round + 1,
                  v.message);
}

/* One record's call, captured, and launched three times. */
static void one_kernel(scene *n, const char *line, tc_placed *p) {
    tc_contract *k = n->k;
    tc_case c;
    char why[TC_MESSAGE];
    tc_invocation *call = tc_arena_array(&k->arena, 1, sizeof *call);
    if (!call || !tc_case_parse(line, &c, why) || !tc_invocation_parse(&c, &k->arena, call, why) ||
        !tc_invocation_fill(call, call->seed, why)) {
        TC_CASE_ERROR(k->out, "%s: %s", line, call ? why : "no memory");
        return;
    }
    if (call->in_place >= 0 || !tc_place_call(n->s, n->stream, call, p, k->out) ||
        !tc_stream_sync(k, n->stream) || !begin(n))
        return;
    tn_status status = tc_call_placed(p);
    if (status == TN_ERR_UNSUPPORTED) { /* this record is passed over */
        n->ext->abandon(n->stream);
        return;
    }
    if (!tc_must(k, TNP_CAPTURE_RECORDS, status, call->record->op) || !end(n, &n->graph) ||
        !tc_stream_sync(k, n->stream))
        return;
    check_untouched(n, p);
    for (int round = 0; round < 3 && !tc_failed(k); round++)
        if (reset(n, p) && launch(n, n->graph, n->stream) && tc_stream_sync(k, n->stream))
            check_result(n, p, round);
    n->ext->destroy(n->graph);
    n->graph = NULL;
}

static void kernels(tc_contract *k) {
    scene n;
    if (!set_up(k, &n))
        return;
    const tn_plugin *p = k->subject->plugin;
    tc_reached *reached = tc_reach_records(k, TC_SMOKE, NULL);
    for (uint64_t i = 0; reached && i < p->n_kernels && !tc_failed(k); i++) {
        tc_placed placed = {.subject = n.s};
        if (reached[i].lines[0])
            one_kernel(&n, reached[i].lines[0], &placed);
        tc_unplace(&placed);
    }
    finish(&n);
}

/* ---- refusals ---------------------------------------------------------------------------- */

static bool refused(scene *n, tn_status status, const char *what) {
    return tc_must_fail(n->k, TNP_CAPTURE_REFUSES, status, TN_ERR_STATE, what);
}

/* From another device of the plugin, where there is one. */
static void refuse_peer(scene *n) {
    const tc_subject *s = n->s;
    tn_device_impl *device = NULL;
    tn_memory memory;
    tn_allocation a = {.struct_size = sizeof a, .bytes = 1000, .alignment = s->alignment};
    if (s->n_devices < 2 || !TN_HAS(s->memory, tn_memory_ops, copy_peer) || !s->memory->copy_peer ||
        s->ops->open(s->self, s->index ? 0 : 1, &device) != TN_OK)
        return;
    if (s->memory->alloc(device, &a) == TN_OK) {
        memory = a.memory;
        refused(n,
                s->memory->copy_peer(s->device, n->stream, n->b.memory, 0, device, memory, 0, 1000),
                "copy_peer on a stream that captures");
        s->memory->dealloc(device, TN_SPACE_DEVICE, memory);
    }
    s->ops->close(device);
}

/* What is refused is not done, neither now nor by a launch. */
static void refuses(tc_contract *k) {
    scene n;
    tn_event_impl *event = NULL;
    tn_graph_impl *none = NULL;
    unsigned char bytes[1000];
    if (!set_up(k, &n) || !tc_event_create(k, n.s, 0, &event) ||
        !capture_fill(&n, &n.b, 0x66, &n.second) ||
        !tc_must(k, TNP_EVENT_RECORD, n.s->ops->events->record(event, n.other), "record"))
        return;
    memset(bytes, 0x77, sizeof bytes);
    const tn_memory_ops *m = n.s->memory;
    const tn_device_ops *ops = n.s->ops;
    refused(&n, n.ext->end(n.stream, &none), "end of a capture that was not begun");
    if (begin(&n) && fill(&n, &n.a, 0, BYTES, 0x12)) {
        refused(&n, m->copy_from_host(n.s->device, n.stream, n.b.memory, 0, bytes, 0, sizeof bytes),
                "copy_from_host of memory that is not pinned, on a stream that captures");
        refused(&n, m->copy_to_host(n.s->device, n.stream, bytes, 0, n.b.memory, 0, sizeof bytes),
                "copy_to_host of memory that is not pinned, on a stream that captures");
        refused(&n, ops->streams->query(n.stream), "query of a stream that captures");
        refused(&n, ops->streams->synchronize(n.stream), "synchronize of a stream that captures");
        refused(&n, ops->events->record(event, n.stream), "record on a stream that captures");
        refused(&n, ops->events->wait(n.stream, event), "wait of a stream that captures");
        refused(&n, n.ext->begin(n.stream), "begin on a stream that captures");
        refused(&n, n.ext->launch(n.second, n.stream), "launch on a stream that captures");
        refuse_peer(&n);
        for (size_t i = 0; i < sizeof bytes; i++)
            if (bytes[i] != 0x77)
                TC_BROKEN(k, TNP_CAPTURE_REFUSES,
                          "copy_to_host on a stream that captures was refused, and wrote");
        if (tc_failed(k))
            n.ext->abandon(n.stream);
        else if (end(&n, &n.graph) && launch(&n, n.graph, n.other)) {
            memset(n.a.model, 0x12, BYTES);
            sync_and_check(&n, &n.a, n.other, TNP_CAPTURE_REPLAYS,
                           "what was captured beside calls that were refused");
            if (!tc_failed(k))
                tc_buffer_check(k, &n.b, n.s->stream, TNP_CAPTURE_REFUSES,
                                "memory of calls that were refused");
        }
    }
    finish(&n);
}

/* ---- the end of captures and graphs ------------------------------------------------------ */

static void abandon(tc_contract *k) {
    scene n;
    tn_event_impl *event = NULL;
    if (!set_up(k, &n) || !tc_event_create(k, n.s, 0, &event))
        return;
    n.ext->abandon(n.stream); /* nothing to abandon */
    for (int i = 0; i < 3 && !tc_failed(k) && begin(&n); i++) {
        bool ok = fill(&n, &n.a, 0, BYTES, 0x81) && copy(&n, &n.b, 0, &n.a, BYTES);
        n.ext->abandon(n.stream);
        if (ok &&
            tc_must(k, TNP_CAPTURE_ABANDON, n.s->ops->streams->synchronize(n.stream),
                    "synchronize after a capture was abandoned") &&
            tc_must(k, TNP_CAPTURE_ABANDON, n.s->ops->events->record(event, n.stream),
                    "record after a capture was abandoned") &&
            tc_buffer_check(k, &n.a, n.stream, TNP_CAPTURE_ABANDON,
                            "memory that an abandoned capture names") &&
            tc_buffer_fill(k, &n.b, n.stream, 0x30 + i))
            sync_and_check(&n, &n.b, n.stream, TNP_CAPTURE_ABANDON,
                           "what a stream wrote after its capture was abandoned");
    }
    if (!tc_failed(k) && capture_fill(&n, &n.a, 0x19, &n.graph) && launch(&n, n.graph, n.stream)) {
        memset(n.a.model, 0x19, BYTES);
        sync_and_check(&n, &n.a, n.stream, TNP_CAPTURE_ABANDON,
                       "a capture of a stream whose last one was abandoned");
    }
    finish(&n);
}

/* With launches in the queue; and what is made for a graph is given back. */
static void destroy(tc_contract *k) {
    enum { ROUNDS = 4, TIMES = 12 };
    scene n;
    tc_work work;
    int64_t blocks[ROUNDS];
    if (!set_up(k, &n) || !tc_work_create(k, n.s, &work))
        return;
    for (int r = 0; r < ROUNDS && !tc_failed(k); r++) {
        for (int i = 0; i < TIMES && capture_fill(&n, &n.a, 0x20 + i, &n.graph); i++) {
            bool ok = (i || tc_work_queue(k, &work, n.other)) && launch(&n, n.graph, n.other) &&
                      launch(&n, n.graph, n.other);
            n.ext->destroy(n.graph);
            n.graph = NULL;
            memset(n.a.model, 0x20 + i, BYTES);
            if (!ok || !sync_and_check(&n, &n.a, n.other, TNP_CAPTURE_DESTROY,
                                       "what a graph was to write that was destroyed meanwhile"))
                break;
        }
        blocks[r] = tc_host_blocks();
    }
    if (!tc_failed(k) && blocks[2] - blocks[1] >= TIMES && blocks[3] - blocks[2] >= TIMES)
        TC_BROKEN(k, TNP_CAPTURE_DESTROY,
                  "capture and destroy of a graph %d times leaves %lld host blocks out", TIMES,
                  (long long)(blocks[3] - blocks[2]));
    finish(&n);
}

/* ---- order ------------------------------------------------------------------------------- */

/* The second launch is behind the first, whatever that waits for; so what comes behind the second does not
 * disturb the first. */
static void launch_order(tc_contract *k) {
    scene n;
    tc_work work;
    if (!set_up(k, &n) || !tc_work_create(k, n.s, &work))
        return;
    bool ok = begin(&n) && copy(&n, &n.b, 0, &n.a, BYTES) && end(&n, &n.graph) &&
              capture_fill(&n, &n.b, 0x71, &n.second);
    for (int i = 0; ok && i < 4 && !tc_failed(k); i++) {
        ok = tc_buffer_fill(k, &n.a, n.stream, 0x51 + i) && tc_stream_sync(k, n.stream) &&
             tc_work_queue(k, &work, n.stream) && launch(&n, n.graph, n.stream) &&
             launch(&n, n.graph, n.other);
        memcpy(n.b.model, n.a.model, BYTES);
        ok = ok && tc_buffer_fill(k, &n.a, n.other, 0x61 + i) && tc_stream_sync(k, n.other) &&
             sync_and_check(&n, &n.b, n.stream, TNP_CAPTURE_LAUNCH_ORDER,
                            "what two launches of a graph on two streams wrote");
        /* two graphs on one stream */
        ok = ok && launch(&n, n.second, n.stream) && launch(&n, n.graph, n.stream);
        memcpy(n.b.model, n.a.model, BYTES);
        ok = ok && sync_and_check(&n, &n.b, n.stream, TNP_STREAM_ORDER,
                                  "what launches of two graphs on one stream wrote");
        ok = ok && launch(&n, n.graph, n.stream) && launch(&n, n.second, n.stream);
        memset(n.b.model, 0x71, BYTES);
        ok = ok && sync_and_check(&n, &n.b, n.stream, TNP_STREAM_ORDER,
                                  "what launches of two graphs on one stream wrote");
    }
    finish(&n);
}

static tn_status ask_launch(tc_contract *k, void *of) {
    scene *n = of;
    return n->ext->launch(n->graph, n->stream);
}

static void launch_at_once(tc_contract *k) {
    scene n;
    tc_work work;
    if (set_up(k, &n) && tc_work_create(k, n.s, &work) && capture_fill(&n, &n.a, 1, &n.graph) &&
        launch(&n, n.graph, n.stream) && tc_stream_sync(k, n.stream) &&
        tc_question_waits(k, &work, n.stream, NULL, ask_launch, &n))
        TC_BROKEN(k, TNP_CAPTURE_LAUNCH_ORDER,
                  "launch of a graph always waits until the work before it is done");
    finish(&n);
}

/* ---- others ------------------------------------------------------------------------------ */

/* While one stream captures, memory comes and goes, another stream works, and captures too. */
static void others(tc_contract *k) {
    scene n;
    tc_buffer more;
    if (!set_up(k, &n) || !begin(&n) || !fill(&n, &n.a, 0, BYTES, 0x41))
        return;
    bool ok = tc_buffer_create(k, n.s, TN_SPACE_DEVICE, BYTES, &more) &&
              tc_buffer_fill(k, &more, n.other, 0x42) && tc_stream_sync(k, n.other) &&
              tc_buffer_check(k, &more, n.s->stream, TNP_CAPTURE_OTHERS,
                              "what another stream wrote while one captured");
    if (ok)
        tc_buffer_destroy(&more);
    ok = ok && tc_capture_begin(k, n.ext, n.other) &&
         tc_must(k, TNP_CAPTURE_OTHERS,
                 n.s->memory->fill(n.s->device, n.other, n.b.memory, 0, 0x43, BYTES),
                 "fill on a second stream that captures") &&
         fill(&n, &n.a, 0, 50, 0x44) && tc_capture_end(k, n.ext, n.other, &n.second) &&
         end(&n, &n.graph);
    if (ok && launch(&n, n.second, n.stream) && tc_stream_sync(k, n.stream) &&
        tc_buffer_check(k, &n.a, n.s->stream, TNP_CAPTURE_OTHERS,
                        "what one of two captures names, before its launch") &&
        launch(&n, n.graph, n.stream)) {
        memset(n.a.model, 0x41, BYTES);
        memset(n.a.model, 0x44, 50);
        memset(n.b.model, 0x43, BYTES);
        sync_and_check(&n, &n.a, n.stream, TNP_CAPTURE_OTHERS, "the first of two captures");
        if (!tc_failed(k))
            tc_buffer_check(k, &n.b, n.s->stream, TNP_CAPTURE_OTHERS, "the second of two captures");
    }
    if (!n.graph)
        n.ext->abandon(n.stream);
    finish(&n);
}

typedef struct helper {
    scene *n;
    tn_status on_captured, on_other;
} helper;

static void *help(void *context) {
    helper *h = context;
    scene *n = h->n;
    const tn_memory_ops *m = n->s->memory;
    h->on_captured = m->fill(n->s->device, n->stream, n->a.memory, 0, 0x91, BYTES);
    h->on_other = m->fill(n->s->device, n->other, n->b.memory, 0, 0x92, BYTES);
    if (h->on_other == TN_OK)
        h->on_other = n->s->ops->streams->synchronize(n->other);
    return NULL;
}

/* What another thread queues on the stream is recorded too; what it queues elsewhere runs. */
static void threads(tc_contract *k) {
    scene n;
    helper h = {.n = &n};
    pthread_t thread;
    if (!set_up(k, &n) || !begin(&n))
        return;
    if (pthread_create(&thread, NULL, help, &h) != 0) {
        TC_CASE_ERROR(k->out, "a thread cannot be started");
        n.ext->abandon(n.stream);
        return;
    }
    pthread_join(thread, NULL);
    memset(n.b.model, 0x92, BYTES);
    if (tc_must(k, TNP_CAPTURE_RECORDS, h.on_captured,
                "fill by another thread on a stream that captures") &&
        tc_must(k, TNP_CAPTURE_OTHERS, h.on_other, "work of another thread while one captures") &&
        end(&n, &n.graph) && tc_stream_sync(k, n.stream) &&
        tc_buffer_check(k, &n.a, n.s->stream, TNP_CAPTURE_RECORDS,
                        "what another thread queued on a stream that captures") &&
        tc_buffer_check(k, &n.b, n.s->stream, TNP_CAPTURE_OTHERS,
                        "what another thread wrote while one captured") &&
        launch(&n, n.graph, n.stream)) {
        memset(n.a.model, 0x91, BYTES);
        sync_and_check(&n, &n.a, n.stream, TNP_CAPTURE_REPLAYS,
                       "what another thread had queued, after a launch");
    }
    if (!n.graph)
        n.ext->abandon(n.stream);
    finish(&n);
}

/* ---- update ------------------------------------------------------------------------------ */

static void update(tc_contract *k) {
    scene n;
    tc_work work;
    if (!set_up(k, &n))
        return;
    if (!TN_HAS(n.ext, tn_ext_capture, update) || !n.ext->update) {
        TC_NOT_OFFERED(k, "tenon.capture/1 has no update");
        return;
    }
    if (!tc_work_create(k, n.s, &work) || !capture_fill(&n, &n.a, 0xa1, &n.graph) ||
        !capture_fill(&n, &n.a, 0xa2, &n.second) || !launch(&n, n.graph, n.stream) ||
        !tc_work_queue(k, &work, n.stream) || !launch(&n, n.graph, n.stream)) {
        finish(&n);
        return;
    }
    tn_status status = n.ext->update(n.graph, n.second);
    memset(n.a.model, 0xa1, BYTES);
    if (sync_and_check(&n, &n.a, n.stream, TNP_CAPTURE_UPDATE,
                       "what was launched before an update") &&
        status != TN_ERR_UNSUPPORTED)
        tc_must(k, TNP_CAPTURE_UPDATE, status, "update");
    for (int i = 0; i < 3 && !tc_failed(k); i++) {
        tn_graph_impl *graph = i == 1 ? n.second : n.graph;
        if (i == 2 && status == TN_OK) { /* it needs `from` no more */
            n.ext->destroy(n.second);
            n.second = NULL;
        }
        memset(n.a.model, graph == n.second || status == TN_OK ? 0xa2 : 0xa1, BYTES);
        if (launch(&n, graph, n.stream))
            sync_and_check(&n, &n.a, n.stream, TNP_CAPTURE_UPDATE, "a launch after an update");
        tc_buffer_fill(k, &n.a, n.stream, 0);
    }
    finish(&n);
}

/* From a graph of other length: what `from` has more is done, what it has less is not. */
static void update_length(tc_contract *k) {
    scene n;
    bool longer = strcmp(tc_contract_word(k, "to"), "longer") == 0;
    if (!set_up(k, &n))
        return;
    if (!TN_HAS(n.ext, tn_ext_capture, update) || !n.ext->update) {
        TC_NOT_OFFERED(k, "tenon.capture/1 has no update");
        return;
    }
    tn_graph_impl **one = longer ? &n.graph : &n.second, **two = longer ? &n.second : &n.graph;
    if (capture_fill(&n, &n.a, 0x11, one) && begin(&n) && fill(&n, &n.a, 0, BYTES, 0x12) &&
        fill(&n, &n.b, 0, BYTES, 0x13) && end(&n, two)) {
        tn_status status = n.ext->update(n.graph, n.second);
        bool of_two = longer == (status == TN_OK);
        if (status != TN_ERR_UNSUPPORTED)
            tc_must(k, TNP_CAPTURE_UPDATE, status, "update");
        memset(n.a.model, of_two ? 0x12 : 0x11, BYTES);
        if (of_two)
            memset(n.b.model, 0x13, BYTES);
        if (launch(&n, n.graph, n.stream) &&
            sync_and_check(&n, &n.a, n.stream, TNP_CAPTURE_UPDATE,
                           "a launch after an update from a graph of other length"))
            tc_buffer_check(k, &n.b, n.stream, TNP_CAPTURE_UPDATE,
                            "what one of the two graphs of an update writes");
    }
    finish(&n);
}

/* Launches stay in their order, also when an update comes between them. */
static void update_order(tc_contract *k) {
    scene n;
    tc_work work;
    if (!set_up(k, &n))
        return;
    if (!TN_HAS(n.ext, tn_ext_capture, update) || !n.ext->update) {
        TC_NOT_OFFERED(k, "tenon.capture/1 has no update");
        return;
    }
    if (tc_work_create(k, n.s, &work) && capture_fill(&n, &n.a, 0x21, &n.graph) &&
        capture_fill(&n, &n.a, 0x22, &n.second) && tc_work_queue(k, &work, n.stream) &&
        launch(&n, n.graph, n.stream)) {
        tn_status status = n.ext->update(n.graph, n.second);
        if (status != TN_ERR_UNSUPPORTED)
            tc_must(k, TNP_CAPTURE_UPDATE, status, "update");
        memset(n.a.model, status == TN_OK ? 0x22 : 0x21, BYTES);
        if (launch(&n, n.graph, n.other) && tc_stream_sync(k, n.stream))
            sync_and_check(&n, &n.a, n.other, TNP_CAPTURE_LAUNCH_ORDER,
                           "two launches on two streams, with an update between them");
    }
    finish(&n);
}

const tc_contract_row tc_graph_rows[] = {
    {"capture-records", "", TC_SMOKE, records},
    {"capture-nothing", "", TC_SMOKE, nothing},
    {"capture-replay", "", TC_SMOKE, replay},
    {"capture-streams", "", TC_SMOKE, streams},
    {"capture-kernels", "", TC_SMOKE, kernels},
    {"capture-refuses", "", TC_SMOKE, refuses},
    {"capture-abandon", "", TC_SMOKE, abandon},
    {"capture-destroy", "", TC_SMOKE, destroy},
    {"capture-launch-order", "", TC_SMOKE, launch_order},
    {"capture-launch-at-once", "", TC_SMOKE, launch_at_once},
    {"capture-others", "", TC_SMOKE, others},
    {"capture-threads", "", TC_SMOKE, threads},
    {"capture-update", "", TC_SMOKE, update},
    {"capture-update-length", "to=longer", TC_SMOKE, update_length},
    {"capture-update-length", "to=shorter", TC_SMOKE, update_length},
    {"capture-update-order", "", TC_SMOKE, update_order},
    {0},
};
