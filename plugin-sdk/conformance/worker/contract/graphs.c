/* tenon.capture/1: what a capturing stream records, and what launches make of it. That of errors
 * is with the other errors. */
#include "plugin-sdk/conformance/worker/contract/graph_scene.h"

#include "plugin-sdk/conformance/worker/contract/reach.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"

#include <string.h>

/* ---- recording --------------------------------------------------------------------------- */

/* What a launch reads is what is there then. */
static bool change_pinned(tc_buffer *pinned) {
    memset(pinned->host, 0x5c, 5000);
    memset(pinned->model, 0x5c, 5000);
    return true;
}

/* Nothing of it runs before a launch, also behind work that does, and all of it then. */
static void records(tc_contract *k) {
    tc_scene n;
    tc_work work;
    tc_buffer pinned = {0};
    bool has_pinned = k->subject->spaces >> TN_SPACE_PINNED & 1;
    if (!tc_scene_set_up(k, &n) || !tc_work_create(k, n.s, &work) ||
        !tc_work_queue(k, &work, n.stream) || !tc_buffer_fill(k, &n.a, n.stream, 0x11) ||
        (has_pinned && !tc_buffer_create(k, n.s, TN_SPACE_PINNED, TC_SCENE_BYTES, &pinned)))
        return;
    bool ok = tc_scene_begin(&n) && tc_scene_fill(&n, &n.b, 100, 5000, 0x22) &&
              tc_scene_copy(&n, &n.b, 10000, &n.a, 7000);
    if (ok && has_pinned)
        ok = tc_must(k, TNP_CAPTURE_RECORDS,
                     n.s->memory->copy_from_host(n.s->device, n.stream, n.b.memory, 30000,
                                                 pinned.host, pinned.memory, 9000),
                     "copy_from_host of pinned memory on a stream that captures") &&
             tc_must(k, TNP_CAPTURE_RECORDS,
                     n.s->memory->copy_to_host(n.s->device, n.stream, (char *)pinned.host + 20000,
                                               pinned.memory, n.b.memory, 0, 8000),
                     "copy_to_host of pinned memory on a stream that captures");
    ok = ok && tc_scene_end(&n, &n.graph) && tc_stream_sync(k, n.stream);
    static const char ran[] = "memory that work on a capturing stream names, before any launch";
    if (ok && tc_buffer_check(k, &n.b, n.s->stream, TNP_CAPTURE_RECORDS, ran) &&
        tc_buffer_check(k, &n.a, n.s->stream, TNP_CAPTURE_RECORDS,
                        "what was queued before a capture") &&
        (!has_pinned || tc_buffer_check(k, &pinned, NULL, TNP_CAPTURE_RECORDS, ran)) &&
        (!has_pinned || change_pinned(&pinned)) && tc_scene_launch(&n, n.graph, n.stream)) {
        memset(n.b.model + 100, 0x22, 5000);
        memcpy(n.b.model + 10000, n.a.model, 7000);
        if (has_pinned) {
            memcpy(n.b.model + 30000, pinned.model, 9000);
            memcpy(pinned.model + 20000, n.b.model, 8000);
        }
        tc_scene_check(&n, &n.b, n.stream, TNP_CAPTURE_REPLAYS, "what a launch wrote");
        if (has_pinned && !tc_failed(k))
            tc_buffer_check(k, &pinned, NULL, TNP_CAPTURE_REPLAYS,
                            "pinned memory that a launch wrote");
    }
    tc_scene_finish(&n);
}

static void nothing(tc_contract *k) {
    tc_scene n;
    if (tc_scene_set_up(k, &n) && tc_scene_begin(&n) && tc_scene_end(&n, &n.graph) &&
        tc_buffer_fill(k, &n.a, n.stream, 1) && tc_scene_launch(&n, n.graph, n.stream) &&
        tc_scene_launch(&n, n.graph, n.other) && tc_stream_sync(k, n.other))
        tc_scene_check(&n, &n.a, n.stream, TNP_CAPTURE_REPLAYS,
                       "memory before the launch of an empty graph");
    tc_scene_finish(&n);
}

/* ---- replays ----------------------------------------------------------------------------- */

/* The graph exchanges a and b by way of c, then marks a place of its own. */
static void replay(tc_contract *k) {
    tc_scene n;
    tc_buffer c;
    if (!tc_scene_set_up(k, &n) || !tc_buffer_create(k, n.s, TN_SPACE_DEVICE, TC_SCENE_BYTES, &c))
        return;
    bool ok = tc_scene_begin(&n) && tc_scene_copy(&n, &c, 0, &n.a, TC_SCENE_BYTES) &&
              tc_scene_copy(&n, &n.a, 0, &n.b, TC_SCENE_BYTES) &&
              tc_scene_copy(&n, &n.b, 0, &c, TC_SCENE_BYTES) &&
              tc_scene_fill(&n, &n.a, 9, 90, 0x33) && tc_scene_end(&n, &n.graph);
    static const int runs[] = {1, 1, 1, 7, 2};
    for (int round = 0; ok && round < 5 && !tc_failed(k); round++) {
        if (round == 2) /* other inputs, in place */
            ok = tc_buffer_fill(k, &n.a, n.stream, 0x44);
        for (int i = 0; ok && i < runs[round]; i++) {
            ok = tc_scene_launch(&n, n.graph, n.stream);
            memcpy(c.model, n.a.model, TC_SCENE_BYTES);
            memcpy(n.a.model, n.b.model, TC_SCENE_BYTES);
            memcpy(n.b.model, c.model, TC_SCENE_BYTES);
            memset(n.a.model + 9, 0x33, 90);
        }
        ok = ok && tc_scene_check(&n, &n.a, n.stream, TNP_CAPTURE_REPLAYS, "what launches wrote") &&
             tc_buffer_check(k, &n.b, n.s->stream, TNP_CAPTURE_REPLAYS, "what launches copied");
    }
    tc_scene_finish(&n);
}

/* More commands than a command buffer may have been made for. */
static void many(tc_contract *k) {
    enum { STEP = 16, SPAN = 24, PLACES = TC_SCENE_BYTES / STEP - 1 };
    int64_t commands = tc_contract_int(k, "commands");
    tc_scene n;
    bool ok = tc_scene_set_up(k, &n) && tc_scene_begin(&n);
    for (int64_t i = 0; i < commands && ok; i++) {
        uint64_t at = (uint64_t)(i % PLACES) * STEP;
        ok = tc_scene_fill(&n, &n.a, at, SPAN, (int)(i % 251));
        memset(n.a.model + at, (int)(i % 251), SPAN);
    }
    if (ok && tc_scene_end(&n, &n.graph) && tc_scene_launch(&n, n.graph, n.stream))
        tc_scene_check(&n, &n.a, n.stream, TNP_CAPTURE_REPLAYS,
                       "what a launch of thousands of commands wrote");
    tc_scene_finish(&n);
}

/* Every number of equal commands that a driver may take together, each with a range of its own. */
static void counts(tc_contract *k) {
    enum { MOST = 34, STEP = 331, SPAN = 160 };
    bool copies = strcmp(tc_contract_word(k, "of"), "copy") == 0;
    tc_scene n;
    bool ok = tc_scene_set_up(k, &n);
    for (int count = 1; ok && count <= MOST; count++) {
        ok = tc_buffer_fill(k, &n.a, n.stream, count) &&
             tc_buffer_fill(k, &n.b, n.stream, 0x80 + count) && tc_scene_begin(&n);
        for (int i = 0; ok && i < count; i++) {
            ok = copies ? tc_scene_copy(&n, &n.a, (uint64_t)i * STEP, &n.b, SPAN)
                        : tc_scene_fill(&n, &n.a, (uint64_t)i * STEP, SPAN, 0x40 + i);
            memset(n.a.model + i * STEP, copies ? 0x80 + count : 0x40 + i, SPAN);
        }
        ok = ok && tc_scene_end(&n, &n.graph) && tc_scene_launch(&n, n.graph, n.stream) &&
             tc_scene_check(&n, &n.a, n.stream, TNP_CAPTURE_REPLAYS,
                            "what a launch of so many equal commands wrote");
        tc_scene_drop(&n);
    }
    tc_scene_finish(&n);
}

/* Of sizes at which a driver goes another way: each launch does all of it again. */
static void sizes(tc_contract *k) {
    static const uint64_t all[] = {4099, 65541, (1 << 20) + 4, (3 << 20) + 1, (9 << 20) + 7};
    enum { AT = 3, LAUNCHES = 3 };
    tc_scene n;
    tc_buffer from, to;
    bool ok = tc_scene_set_up(k, &n);
    for (size_t i = 0; ok && i < sizeof all / sizeof *all; i++) {
        uint64_t bytes = all[i];
        const tn_memory_ops *m = n.s->memory;
        ok = tc_buffer_create(k, n.s, TN_SPACE_DEVICE, bytes + AT, &from) &&
             tc_buffer_create(k, n.s, TN_SPACE_DEVICE, bytes + AT, &to) && tc_scene_begin(&n) &&
             tc_scene_fill(&n, &from, AT, bytes, 0x71) &&
             tc_must(k, TNP_CAPTURE_RECORDS,
                     m->copy(n.s->device, n.stream, to.memory, 0, from.memory, AT, bytes),
                     "copy on a stream that captures") &&
             tc_scene_end(&n, &n.graph);
        for (int j = 0; ok && j < LAUNCHES; j++) {
            ok = tc_buffer_fill(k, &from, n.stream, j) && tc_buffer_fill(k, &to, n.stream, j) &&
                 tc_scene_launch(&n, n.graph, n.stream);
            memset(from.model + AT, 0x71, bytes);
            memset(to.model, 0x71, bytes);
            ok = ok &&
                 tc_scene_check(&n, &from, n.stream, TNP_CAPTURE_REPLAYS, "what a launch filled") &&
                 tc_buffer_check(k, &to, n.s->stream, TNP_CAPTURE_REPLAYS, "what a launch copied");
        }
        tc_scene_drop(&n);
        if (ok) {
            tc_buffer_destroy(&from);
            tc_buffer_destroy(&to);
        }
    }
    tc_scene_finish(&n);
}

/* On other streams than its own, also when that is gone. */
static void streams(tc_contract *k) {
    tc_scene n;
    if (!tc_scene_set_up(k, &n) || !tc_scene_capture_fill(&n, &n.a, 0x55, &n.graph))
        return;
    for (int round = 0; round < 3 && !tc_failed(k); round++) {
        tn_stream_impl *stream = round == 1 ? n.s->stream : n.other;
        if (round == 2)
            tc_stream_destroy(k, n.stream);
        if (tc_buffer_fill(k, &n.a, stream, round) && tc_scene_launch(&n, n.graph, stream)) {
            memset(n.a.model, 0x55, TC_SCENE_BYTES);
            tc_scene_check(&n, &n.a, stream, TNP_CAPTURE_REPLAYS,
                           "what a launch wrote on another stream than was captured");
        }
    }
    tc_scene_finish(&n);
}

/* ---- kernels ----------------------------------------------------------------------------- */

static bool put(tc_scene *n, tn_memory memory, const tc_operand *tensor) {
    return tc_must(n->k, TNP_TRANSFER_RANGE,
                   n->s->memory->copy_from_host(n->s->device, n->stream, memory, 0, tensor->image,
                                                0, tensor->bytes),
                   "write of a captured call's tensor");
}

/* Inputs and outputs as the call has them. */
static bool reset(tc_scene *n, tc_placed *p) {
    bool ok = true;
    for (uint32_t i = 0; ok && i < p->call->record->n_args; i++)
        if (p->cells[i].tag == TN_CELL_TENSOR)
            ok = put(n, p->arg_views[i].memory, &p->call->args[i].tensor);
    for (uint32_t i = 0; ok && i < p->call->record->n_outs; i++)
        ok = put(n, p->out_views[i].memory, &p->call->outs[i].tensor);
    return ok;
}

static void check_untouched(tc_scene *n, tc_placed *p) {
    tc_result result = {0};
    if (!tc_read_outs(p, &result, n->k->out))
        return;
    for (uint32_t i = 0; i < p->call->record->n_outs; i++)
        if (memcmp(result.outs[i], p->call->outs[i].tensor.image, p->call->outs[i].tensor.bytes) !=
            0)
            TC_BROKEN(n->k, TNP_CAPTURE_RECORDS, "%s: ran while it was captured",
                      p->call->record->op);
}

static void check_result(tc_scene *n, tc_placed *p, int round) {
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

/* The call of a line, with other data for each `turn`. */
static tc_invocation *read_call(tc_contract *k, const char *line, int turn) {
    tc_case c;
    char why[TC_MESSAGE] = "no memory";
    tc_invocation *call = tc_arena_array(&k->arena, 1, sizeof *call);
    if (!call || !tc_case_parse(line, &c, why) || !tc_invocation_parse(&c, &k->arena, call, why)) {
        TC_CASE_ERROR(k->out, "%s: %s", line, why);
        return NULL;
    }
    uint64_t surroundings = call->seed;
    call->seed += 0x1000003 * (uint64_t)turn;
    if (!tc_fill_for(k->subject, call, surroundings, why)) {
        TC_CASE_ERROR(k->out, "%s: %s", line, why);
        return NULL;
    }
    return call;
}

/* Captures the call on the stream `other`. False where there is nothing to launch. */
static bool capture_call(tc_scene *n, tc_placed *p) {
    tn_stream_impl *launches = n->stream;
    n->stream = n->other;
    bool began = tc_stream_sync(n->k, n->stream) && tc_scene_begin(n), ok = false;
    if (began) {
        tn_status status = tc_call_placed(p);
        if (status == TN_ERR_UNSUPPORTED) /* this record is passed over */
            n->ext->abandon(n->stream);
        else
            ok = tc_must(n->k, TNP_CAPTURE_RECORDS, status, p->call->record->op) &&
                 tc_scene_end(n, &n->graph) && tc_stream_sync(n->k, n->stream);
    }
    n->stream = launches;
    return ok;
}

/* Launches, while the stream of the capture runs such a call itself: what that works with is not the graph's. */
static void launch_in_company(tc_scene *n, tc_placed *p, tc_invocation *call, int round) {
    enum { TIMES = 40 }; /* that some meet, where each takes a microsecond */
    tc_contract *k = n->k;
    tc_placed q = {.subject = n->s};
    bool ran = false;
    bool ok = call && tc_place_call(n->s, n->other, call, &q, k->out) &&
              tc_stream_sync(k, n->other) && reset(n, p) && tc_stream_sync(k, n->stream);
    for (int i = 0; ok && i < TIMES; i++) {
        tn_status status = tc_call_placed(&q); /* may decline now and then */
        ran = ran || status == TN_OK;
        ok = (status == TN_ERR_UNSUPPORTED ||
              tc_must(k, TNP_KERNEL_RESULT, status, call->record->op)) &&
             tc_scene_launch(n, n->graph, n->stream);
    }
    if (ok && tc_stream_sync(k, n->stream) && tc_stream_sync(k, n->other)) {
        check_result(n, p, round);
        if (ran)
            check_result(n, &q, round);
    }
    tc_unplace(&q);
}

/* One record's call, captured, and launched some times: what it reads is what is there then. Meanwhile the stream
 * that captured it has work of its own, and then is gone. */
static void one_kernel(tc_scene *n, const char *line, tc_placed *p) {
    enum { LAUNCHES = 6, IN_COMPANY = 3 };
    tc_contract *k = n->k;
    tc_invocation *call = read_call(k, line, 0);
    if (!call || call->in_place >= 0 || !tc_place_call(n->s, n->stream, call, p, k->out) ||
        !tc_stream_sync(k, n->stream))
        return;
    p->tn.stream = n->other;
    bool captured = capture_call(n, p);
    p->tn.stream = n->stream;
    if (!captured)
        return;
    check_untouched(n, p);
    for (int round = 0; round < LAUNCHES && !tc_failed(k); round++) {
        if (round == IN_COMPANY) {
            tc_stream_destroy(k, n->other);
            if (!tc_stream_create(k, n->s, 0, &n->other))
                break;
        }
        if (round > IN_COMPANY && call->scalar < 0) /* a cell's value is the call's own */
            p->call = read_call(k, line, round);
        if (round < IN_COMPANY)
            launch_in_company(n, p, read_call(k, line, 10 + round), round);
        else if (p->call && reset(n, p) && tc_scene_launch(n, n->graph, n->stream) &&
                 tc_stream_sync(k, n->stream))
            check_result(n, p, round);
    }
    tc_scene_drop(n);
}

static void kernels(tc_contract *k) {
    tc_scene n;
    if (!tc_scene_set_up(k, &n))
        return;
    const tn_plugin *p = k->subject->plugin;
    tc_reached *reached = tc_reach_records(k, TC_SMOKE, NULL);
    for (uint64_t i = 0; reached && i < p->n_kernels && !tc_failed(k); i++) {
        tc_placed placed = {.subject = n.s};
        if (reached[i].lines[0])
            one_kernel(&n, reached[i].lines[0], &placed);
        tc_unplace(&placed);
    }
    tc_scene_finish(&n);
}

/* ---- refusals ---------------------------------------------------------------------------- */

static bool refused(tc_scene *n, tn_status status, const char *what) {
    return tc_must_fail(n->k, TNP_CAPTURE_REFUSES, status, TN_ERR_STATE, what);
}

/* From another device of the plugin, where there is one. */
static void refuse_peer(tc_scene *n) {
    const tc_subject *s = n->s;
    tc_subject other = *s;
    tn_memory memory;
    void *host;
    if (s->n_devices < 2 || !TN_HAS(s->memory, tn_memory_ops, copy_peer) || !s->memory->copy_peer ||
        s->ops->open(s->self, s->index ? 0 : 1, &other.device) != TN_OK)
        return;
    tc_subject_describe(&other, s->index ? 0 : 1);
    if (tc_alloc(&other, TN_SPACE_DEVICE, 1000, &memory, &host) == TN_OK) {
        refused(n,
                s->memory->copy_peer(s->device, n->stream, n->b.memory, 0, other.device, memory, 0,
                                     1000),
                "copy_peer on a stream that captures");
        refused(
            n,
            s->memory->copy_peer(s->device, n->stream, n->b.memory, 0, other.device, memory, 0, 0),
            "copy_peer of no bytes on a stream that captures");
        s->memory->dealloc(other.device, TN_SPACE_DEVICE, memory);
    }
    s->ops->close(other.device);
}

/* Where there is nothing to wait for and nothing to run, too. */
static void refuse_nothing(tc_scene *n, tn_event_impl *never, tn_graph_impl *nothing) {
    refused(n, n->s->ops->events->wait(n->stream, never),
            "wait of a stream that captures, for an event that was never recorded");
    refused(n, n->ext->launch(nothing, n->stream),
            "launch of a graph of nothing on a stream that captures");
}

/* What is refused is not done, neither now nor by a launch. */
static void refuses(tc_contract *k) {
    tc_scene n;
    tn_event_impl *event = NULL, *never = NULL;
    tn_graph_impl *nothing = NULL;
    tn_graph_impl *none = (tn_graph_impl *)(void *)k; /* it is cleared */
    unsigned char bytes[1000];
    if (!tc_scene_set_up(k, &n) || !tc_event_create(k, n.s, 0, &event) ||
        !tc_event_create(k, n.s, 0, &never) || !tc_scene_begin(&n) || !tc_scene_end(&n, &nothing) ||
        !tc_scene_capture_fill(&n, &n.b, 0x66, &n.second) ||
        !tc_must(k, TNP_EVENT_RECORD, n.s->ops->events->record(event, n.other), "record"))
        return;
    memset(bytes, 0x77, sizeof bytes);
    const tn_memory_ops *m = n.s->memory;
    const tn_device_ops *ops = n.s->ops;
    refused(&n, n.ext->end(n.stream, &none), "end of a capture that was not begun");
    if (none)
        TC_BROKEN(k, TNP_CAPTURE_REFUSES,
                  "end of a capture that was not begun failed, and *out_graph is not NULL");
    if (tc_scene_begin(&n) && tc_scene_fill(&n, &n.a, 0, TC_SCENE_BYTES, 0x12)) {
        refused(&n, m->copy_from_host(n.s->device, n.stream, n.b.memory, 0, bytes, 0, sizeof bytes),
                "copy_from_host of memory that is not pinned, on a stream that captures");
        refused(&n, m->copy_to_host(n.s->device, n.stream, bytes, 0, n.b.memory, 0, sizeof bytes),
                "copy_to_host of memory that is not pinned, on a stream that captures");
        refused(&n, m->copy_from_host(n.s->device, n.stream, n.b.memory, 0, bytes, 0, 0),
                "copy_from_host of no bytes that are not pinned, on a stream that captures");
        refused(&n, m->copy_to_host(n.s->device, n.stream, bytes, 0, n.b.memory, 0, 0),
                "copy_to_host of no bytes that are not pinned, on a stream that captures");
        refused(&n, ops->streams->query(n.stream), "query of a stream that captures");
        refused(&n, ops->streams->synchronize(n.stream), "synchronize of a stream that captures");
        refused(&n, ops->events->record(event, n.stream), "record on a stream that captures");
        refused(&n, ops->events->wait(n.stream, event), "wait of a stream that captures");
        refused(&n, n.ext->begin(n.stream), "begin on a stream that captures");
        refused(&n, n.ext->launch(n.second, n.stream), "launch on a stream that captures");
        refuse_nothing(&n, never, nothing);
        refuse_peer(&n);
        for (size_t i = 0; i < sizeof bytes; i++)
            if (bytes[i] != 0x77)
                TC_BROKEN(k, TNP_CAPTURE_REFUSES,
                          "copy_to_host on a stream that captures was refused, and wrote");
        if (tc_failed(k))
            n.ext->abandon(n.stream);
        else if (tc_scene_end(&n, &n.graph) && tc_scene_launch(&n, n.graph, n.other)) {
            memset(n.a.model, 0x12, TC_SCENE_BYTES);
            tc_scene_check(&n, &n.a, n.other, TNP_CAPTURE_REPLAYS,
                           "what was captured beside calls that were refused");
            if (!tc_failed(k))
                tc_buffer_check(k, &n.b, n.s->stream, TNP_CAPTURE_REFUSES,
                                "memory of calls that were refused");
            memset(n.b.model, 0x66, TC_SCENE_BYTES);
            if (!tc_failed(k) && tc_scene_launch(&n, n.second, n.stream))
                tc_scene_check(&n, &n.b, n.stream, TNP_CAPTURE_REPLAYS,
                               "a graph of which a launch was refused");
        }
    }
    n.ext->destroy(nothing);
    tc_scene_finish(&n);
}

/* What an event recorded last stands, where a later record of it is refused. */
static void refuses_record(tc_contract *k) {
    tc_scene n;
    tc_work work;
    tn_event_impl *event = NULL;
    if (!tc_scene_set_up(k, &n) || !tc_work_create(k, n.s, &work) ||
        !tc_event_create(k, n.s, 0, &event))
        return;
    const tn_event_ops *events = n.s->ops->events;
    for (int i = 0; i < 3 && !tc_failed(k); i++) {
        if (!tc_work_hold(k, &work, n.other, 0.1) || !tc_buffer_fill(k, &n.a, n.other, 0x51 + i) ||
            !tc_must(k, TNP_EVENT_RECORD, events->record(event, n.other), "record") ||
            !tc_scene_begin(&n))
            break;
        refused(&n, events->record(event, n.stream), "record on a stream that captures");
        n.ext->abandon(n.stream);
        if (tc_must(k, TNP_EVENT_SYNCHRONIZE, events->synchronize(event),
                    "synchronize of an event of which a later record was refused"))
            tc_buffer_check(k, &n.a, n.stream, TNP_CAPTURE_REFUSES,
                            "what was queued before an event of which a later record was refused");
    }
    tc_scene_finish(&n);
}

/* ---- the end of captures and graphs ------------------------------------------------------ */

static void abandon(tc_contract *k) {
    tc_scene n;
    tn_event_impl *event = NULL;
    if (!tc_scene_set_up(k, &n) || !tc_event_create(k, n.s, 0, &event))
        return;
    n.ext->abandon(n.stream); /* nothing to abandon */
    for (int i = 0; i < 3 && !tc_failed(k) && tc_scene_begin(&n); i++) {
        bool ok = tc_scene_fill(&n, &n.a, 0, TC_SCENE_BYTES, 0x81) &&
                  tc_scene_copy(&n, &n.b, 0, &n.a, TC_SCENE_BYTES);
        n.ext->abandon(n.stream);
        if (ok &&
            tc_must(k, TNP_CAPTURE_ABANDON, n.s->ops->streams->synchronize(n.stream),
                    "synchronize after a capture was abandoned") &&
            tc_must(k, TNP_CAPTURE_ABANDON, n.s->ops->events->record(event, n.stream),
                    "record after a capture was abandoned") &&
            tc_buffer_check(k, &n.a, n.stream, TNP_CAPTURE_ABANDON,
                            "memory that an abandoned capture names") &&
            tc_buffer_fill(k, &n.b, n.stream, 0x30 + i))
            tc_scene_check(&n, &n.b, n.stream, TNP_CAPTURE_ABANDON,
                           "what a stream wrote after its capture was abandoned");
    }
    if (!tc_failed(k) && tc_scene_capture_fill(&n, &n.a, 0x19, &n.graph) &&
        tc_scene_launch(&n, n.graph, n.stream)) {
        memset(n.a.model, 0x19, TC_SCENE_BYTES);
        tc_scene_check(&n, &n.a, n.stream, TNP_CAPTURE_ABANDON,
                       "a capture of a stream whose last one was abandoned");
    }
    tc_scene_finish(&n);
}

/* As many commands as a training step of many small layers has, ended and abandoned: what goes from one to the next
 * by calls of calls has no end of a stack. As many as can be recorded in some time. */
static void abandon_long(tc_contract *k) {
    enum { SOME = 1000 };
    static const double SECONDS = 2;
    int64_t commands = tc_contract_int(k, "commands");
    tc_scene n;
    bool ok = tc_scene_set_up(k, &n) && tc_stream_sync(k, n.s->stream);
    for (int i = 0; ok && i < 2 && (ok = tc_scene_begin(&n)); i++) {
        double end = tc_now() + SECONDS;
        for (int64_t done = 0; ok && done < commands && (done % SOME || tc_now() < end); done++)
            ok = tc_scene_fill(&n, &n.a, (uint64_t)(done % TC_SCENE_BYTES), 1, 0x81);
        if (i == 0 && ok)
            ok = tc_scene_end(&n, &n.graph);
        else
            n.ext->abandon(n.stream);
    }
    if (ok)
        tc_scene_check(&n, &n.a, n.stream, TNP_CAPTURE_ABANDON,
                       "memory that long captures name, none of which was launched");
    tc_scene_finish(&n);
}

/* With launches in the queue; and what is made for a graph is given back. */
static void destroy(tc_contract *k) {
    enum { ROUNDS = 4, TIMES = 12 };
    tc_scene n;
    tc_work work;
    int64_t blocks[ROUNDS];
    if (!tc_scene_set_up(k, &n) || !tc_work_create(k, n.s, &work))
        return;
    for (int r = 0; r < ROUNDS && !tc_failed(k); r++) {
        for (int i = 0; i < TIMES && tc_scene_capture_fill(&n, &n.a, 0x20 + i, &n.graph); i++) {
            bool ok = (i || tc_work_queue(k, &work, n.other)) &&
                      tc_scene_launch(&n, n.graph, n.other) &&
                      tc_scene_launch(&n, n.graph, n.other);
            n.ext->destroy(n.graph);
            n.graph = NULL;
            memset(n.a.model, 0x20 + i, TC_SCENE_BYTES);
            /* by a stream that waits for nothing: it is there when destroy has returned */
            if (!ok || !tc_scene_check(&n, &n.a, n.stream, TNP_CAPTURE_DESTROY,
                                       "what a graph was to write that was destroyed meanwhile"))
                break;
        }
        blocks[r] = tc_host_blocks();
    }
    if (!tc_failed(k) && blocks[2] - blocks[1] >= TIMES && blocks[3] - blocks[2] >= TIMES)
        TC_BROKEN(k, TNP_CAPTURE_DESTROY,
                  "capture and destroy of a graph %d times leaves %lld host blocks out", TIMES,
                  (long long)(blocks[3] - blocks[2]));
    tc_scene_finish(&n);
}

const tc_contract_row tc_graph_rows[] = {
    {"capture-records", "", TC_SMOKE, records},
    {"capture-nothing", "", TC_SMOKE, nothing},
    {"capture-replay", "", TC_SMOKE, replay},
    {"capture-many", "commands=3000", TC_SMOKE, many},
    {"capture-many", "commands=70000", TC_STANDARD, many},
    {"capture-counts", "of=fill", TC_STANDARD, counts},
    {"capture-counts", "of=copy", TC_STANDARD, counts},
    {"capture-streams", "", TC_SMOKE, streams},
    {"capture-kernels", "", TC_SMOKE, kernels},
    {"capture-sizes", "", TC_STANDARD, sizes},
    {"capture-refuses-record", "", TC_SMOKE, refuses_record},
    {"capture-refuses", "", TC_SMOKE, refuses},
    {"capture-abandon", "", TC_SMOKE, abandon},
    {"capture-long", "commands=300000", TC_STANDARD, abandon_long},
    {"capture-destroy", "", TC_SMOKE, destroy},
    {0},
};
