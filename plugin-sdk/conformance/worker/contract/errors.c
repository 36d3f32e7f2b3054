/* Errors of queued work: reported once, by the stream they belong to, while what is behind them
 * runs. The error is an index out of range of gather, or of index_select. */
#include "plugin-sdk/conformance/worker/contract/graph_scene.h"

#include "plugin-sdk/conformance/worker/contract/meet.h"
#include "plugin-sdk/conformance/worker/kernel/execute.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* A call with one index out of range, and the same call as it should be. */
typedef struct scene {
    tc_contract *k;
    tc_subject *s;
    const tn_kernel *kernel;
    tc_case line;
    tc_invocation bad, good;
    tn_stream_impl *stream;
} scene;

static bool prepare(scene *n, tc_invocation *call, int64_t wrong_index) {
    char why[TC_MESSAGE];
    if (!tc_invocation_parse(&n->line, &n->k->arena, call, why) ||
        !tc_invocation_fill(call, n->k->c->seed, why))
        return TC_CASE_ERROR(n->k->out, "%s", why);
    tc_operand *index = &call->args[tc_record_arg(call->record, "index")].tensor;
    if (wrong_index) {
        index->values[index->shape.numel / 2].i = wrong_index;
        tc_operand_settle(index);
    }
    return true;
}

static bool set_up(tc_contract *k, scene *n) {
    static const char *const lines[] = {
        "kernel/gather T=f32 self=[60,40] dim=0 index=[50,40]",
        "kernel/index_select T=f32 self=[60,40] dim=0 index=[50]",
    };
    char why[TC_MESSAGE];
    *n = (scene){.k = k, .s = k->subject};
    if (!tc_has_streams(k))
        return false;
    for (int i = 0; i < 2 && !n->kernel; i++)
        if (tc_case_parse(lines[i], &n->line, why) && prepare(n, &n->good, 0) &&
            tc_find_kernel(n->s, &n->good, NULL, &n->kernel) != TC_CLAIMED)
            n->kernel = NULL;
    if (!n->kernel)
        return TC_NOT_OFFERED(k, "no kernel that finds a bad index");
    return prepare(n, &n->bad, 1000000) && prepare(n, &n->good, 0) &&
           tc_stream_create(k, n->s, 0, &n->stream);
}

typedef struct errand {
    tc_placed *p;
    tn_status status;
} errand;

static void *run_errand(void *context) {
    errand *e = context;
    e->status = tc_call_placed(e->p);
    return NULL;
}

/* On a thread that is gone afterwards. */
static tn_status call_elsewhere(tc_placed *p) {
    errand e = {.p = p, .status = TN_ERR_INTERNAL};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_errand, &e) == 0)
        pthread_join(thread, NULL);
    return e.status;
}

static bool queue(scene *n, tc_invocation *call, tc_placed *p) {
    bool elsewhere = strcmp(tc_contract_word(n->k, "queues"), "another") == 0;
    bool ok =
        tc_place_call(n->s, n->stream, call, p, n->k->out) &&
        tc_must_run(n->k, TNP_KERNEL_INDEX_RANGE, elsewhere ? call_elsewhere(p) : tc_call_placed(p),
                    "run of a call whose index is out of range");
    if (!ok) /* what was placed is written before it is freed */
        (void)n->s->ops->streams->synchronize(n->stream);
    return ok;
}

/* Asks until the work is done. */
static tn_status settle(scene *n, bool by_query) {
    tc_host_forget();
    return by_query ? tc_ask_until_done(n->s, n->stream, NULL)
                    : n->s->ops->streams->synchronize(n->stream);
}

static bool reported(scene *n, bool by_query) {
    return tc_must_fail(n->k, TNP_STREAM_ERROR_ONCE, settle(n, by_query), TN_ERR_INDEX_OUT_OF_RANGE,
                        by_query ? "query after an index out of range"
                                 : "synchronize after an index out of range");
}

/* Once, by whoever asks first; the work behind it has run, and the stream goes on. */
static void once(tc_contract *k) {
    scene n;
    tc_buffer b = {0};
    tc_placed bad = {0}, good = {0};
    tc_result result = {0};
    bool by_query = strcmp(tc_contract_word(k, "by"), "query") == 0;
    if (set_up(k, &n) && tc_buffer_create(k, n.s, TN_SPACE_DEVICE, 3000, &b) &&
        queue(&n, &n.bad, &bad)) {
        memset(b.model, 0x5a, b.bytes);
        tc_must(k, TNP_STREAM_ERROR_ONCE,
                n.s->memory->fill(n.s->device, n.stream, b.memory, 0, 0x5a, b.bytes),
                "fill behind work that will fail");
        unsigned char byte;
        if (strcmp(tc_contract_word(k, "with"), "read") == 0 && /* does not report it */
            tc_must(k, TNP_READ_NO_EARLIER_ERROR,
                    n.s->memory->copy_to_host(n.s->device, n.stream, &byte, 0, b.memory, 0, 1),
                    "read behind work that failed"))
            tc_buffer_check(k, &b, n.stream, TNP_READ_NO_EARLIER_ERROR,
                            "memory that was read behind an error");
        if (reported(&n, by_query)) {
            tc_must(k, TNP_STREAM_ERROR_ONCE, settle(&n, false),
                    "synchronize after the error was reported");
            tc_must(k, TNP_STREAM_ERROR_ONCE, settle(&n, true),
                    "query after the error was reported");
            tc_buffer_check(k, &b, n.stream, TNP_STREAM_ERROR_ONCE,
                            "what was queued behind an error");
        }
        if (!tc_failed(k) && queue(&n, &n.good, &good) &&
            tc_must(k, TNP_STREAM_ERROR_ONCE, settle(&n, by_query), "a call after an error"))
            tc_read_back(&good, &result, k->out);
    }
    tc_subject_sync(k->subject);
    tc_unplace(&good);
    tc_unplace(&bad);
}

/* An error that is known already is told when the work behind it is done, not before: asked while
 * that runs, so that it takes longer each time until it is seen to. */
static void behind(tc_contract *k) {
    scene n;
    tc_buffer b;
    tc_work work;
    tc_placed bad = {0};
    tn_event_impl *event = NULL;
    bool seen = false;
    if (set_up(k, &n) && tc_work_create(k, n.s, &work) && tc_event_create(k, n.s, 0, &event) &&
        tc_buffer_create(k, n.s, TN_SPACE_DEVICE, 50000, &b))
        for (int i = 0; i < 6 && !seen && queue(&n, &n.bad, &bad); i++) {
            const tn_event_ops *events = n.s->ops->events;
            if (!tc_work_hold(k, &work, n.stream, 0.03 * (1 << i)) ||
                !tc_buffer_fill(k, &b, n.stream, 0x21 + i) ||
                !tc_must(k, TNP_EVENT_RECORD, events->record(event, n.stream),
                         "record behind an error"))
                break;
            tn_status status = TN_NOT_READY;
            double end = tc_now() + 0.01; /* by then the error is known */
            while (tc_now() < end && status == TN_NOT_READY)
                status = n.s->ops->streams->query(n.stream);
            seen = events->query(event) == TN_NOT_READY;
            if (seen && status != TN_NOT_READY)
                TC_BROKEN(k, TNP_STREAM_QUERY,
                          "query of a stream reported an error while work behind it still ran");
            if (tc_failed(k) || (status == TN_NOT_READY && !reported(&n, true)))
                break;
            tc_buffer_check(k, &b, n.s->stream, TNP_STREAM_QUERY,
                            "what was queued behind an error that query has reported");
            tc_unplace(&bad);
            bad = (tc_placed){0};
        }
    if (n.stream)
        (void)n.s->ops->streams->synchronize(n.stream);
    tc_unplace(&bad);
}

/* Another stream knows nothing of it, and no event swallows it. */
static void elsewhere(tc_contract *k) {
    scene n;
    tc_placed bad = {0};
    tn_event_impl *event = NULL;
    tn_stream_impl *later =
        NULL; /* made after the one that fails; the subject's own was made before */
    if (set_up(k, &n) && tc_event_create(k, n.s, 0, &event) &&
        tc_stream_create(k, n.s, 0, &later) && queue(&n, &n.bad, &bad)) {
        tc_must(k, TNP_EVENT_RECORD, n.s->ops->events->record(event, n.stream),
                "record behind an error");
        tc_must(k, TNP_STREAM_ERROR_ONCE, n.s->ops->events->synchronize(event),
                "synchronize of an event behind an error");
        tc_must(k, TNP_STREAM_ERROR_ONCE, n.s->ops->events->query(event),
                "query of an event behind an error");
        tc_must(k, TNP_EVENT_WAIT, n.s->ops->events->wait(n.s->stream, event),
                "wait for an event behind an error");
        tc_must(k, TNP_STREAM_ERROR_ONCE, tc_subject_sync(n.s), "synchronize of another stream");
        tc_must(k, TNP_STREAM_ERROR_ONCE, n.s->ops->streams->synchronize(later),
                "synchronize of a newer stream");
        reported(&n, false);
    }
    tc_subject_sync(k->subject);
    tc_unplace(&bad);
}

/* A stream that is destroyed takes its error along: one that is made in its place has none. */
static void forgotten(tc_contract *k) {
    enum { TIMES = 3 };
    scene n;
    tc_placed bad = {0};
    if (!set_up(k, &n))
        return;
    for (int i = 0; i < TIMES && !tc_failed(k) && queue(&n, &n.bad, &bad); i++) {
        tc_stream_destroy(k, n.stream);
        n.stream = NULL;
        if (tc_stream_create(k, n.s, 0, &n.stream))
            tc_must(k, TNP_STREAM_ERROR_ONCE, settle(&n, i % 2),
                    "asking a new stream, after one with an error was destroyed");
        tc_unplace(&bad);
        bad = (tc_placed){0};
    }
    tc_subject_sync(k->subject);
    tc_unplace(&bad);
}

/* Two threads that wait for one stream, or ask it until it is done: one of them is told. */
typedef struct listener {
    scene *n;
    tc_meeting *meeting;
    tc_random random;
    bool by_query;
    tn_status status;
} listener;

static void *listen(void *context) {
    listener *l = context;
    tc_meet(l->meeting);
    tc_come_late(&l->random);
    l->status = settle(l->n, l->by_query);
    return NULL;
}

static bool listen_twice(scene *n, listener all[2]) {
    tc_meeting meeting;
    pthread_t other;
    tc_meeting_init(&meeting, 2);
    all[0].meeting = all[1].meeting = &meeting;
    if (pthread_create(&other, NULL, listen, &all[0]) != 0)
        return TC_CASE_ERROR(n->k->out, "a thread cannot be started");
    listen(&all[1]);
    pthread_join(other, NULL);
    int told = (all[0].status != TN_OK) + (all[1].status != TN_OK);
    return told == 1 || TC_BROKEN(n->k, TNP_STREAM_ERROR_ONCE,
                                  "of two threads of which one is in %s of a stream and one in %s, "
                                  "%s of its one error",
                                  all[0].by_query ? "query" : "synchronize",
                                  all[1].by_query ? "query" : "synchronize",
                                  told ? "both are told" : "neither is told");
}

/* While the work takes some time, and when it is done at once. */
static void two_listeners(tc_contract *k) {
    enum { HELD = 4, TIMES = 400, WAYS = 3 };
    static const double SECONDS = 0.1; /* for each way */
    scene n;
    tc_work work;
    tc_placed bad = {0};
    bool ok = set_up(k, &n) && tc_work_create(k, n.s, &work) &&
              tc_place_call(n.s, n.stream, &n.bad, &bad, k->out) && tc_stream_sync(k, n.stream);
    for (int way = 0; ok && way < WAYS; way++) {
        listener all[2] = {{.n = &n, .random = {1}, .by_query = way == 2},
                           {.n = &n, .random = {2}, .by_query = way > 0}};
        double end = tc_now() + SECONDS;
        for (int i = 0; ok && i < TIMES && (i <= HELD || tc_now() < end); i++)
            ok = (i >= HELD || tc_work_hold(k, &work, n.stream, 0.01)) &&
                 tc_must_run(k, TNP_KERNEL_INDEX_RANGE, tc_call_placed(&bad),
                             "run of a call whose index is out of range") &&
                 listen_twice(&n, all);
    }
    if (n.stream)
        (void)n.s->ops->streams->synchronize(n.stream);
    tc_unplace(&bad);
}

/* Writes the indices of another call over those of this one. */
static bool write_index(scene *n, const tc_placed *bad, const tc_invocation *of) {
    int32_t a = tc_record_arg(of->record, "index");
    const tc_operand *index = &of->args[a].tensor;
    return tc_must(n->k, TNP_TRANSFER_RANGE,
                   n->s->memory->copy_from_host(n->s->device, n->stream, bad->arg_views[a].memory,
                                                0, index->image, 0, index->bytes),
                   "write of indices") &&
           tc_stream_sync(n->k, n->stream);
}

/* Recorded, it is an error of the stream that it is launched on, each time. */
static void captured(tc_contract *k) {
    scene n;
    tc_placed bad = {0}, good = {0};
    tn_graph_impl *graph = NULL;
    const tn_ext_capture *ext = tc_capture_extension(k);
    tn_stream_impl *other = NULL;
    tc_buffer b = {0};
    if (!ext || !set_up(k, &n) || !tc_stream_create(k, n.s, 0, &other) ||
        !tc_buffer_create(k, n.s, TN_SPACE_DEVICE, 3000, &b) ||
        !tc_place_call(n.s, n.stream, &n.bad, &bad, k->out) || !tc_stream_sync(k, n.stream) ||
        !tc_capture_begin(k, ext, n.stream)) {
        tc_unplace(&bad);
        return;
    }
    bool ok = tc_must_run(k, TNP_CAPTURE_RECORDS, tc_call_placed(&bad),
                          "run on a stream that captures") &&
              tc_must(k, TNP_CAPTURE_RECORDS,
                      n.s->memory->fill(n.s->device, n.stream, b.memory, 0, 0x5a, b.bytes),
                      "fill on a stream that captures");
    if (!ok)
        ext->abandon(n.stream);
    ok = ok && tc_capture_end(k, ext, n.stream, &graph) && tc_stream_sync(k, n.stream);
    for (int i = 0; ok && i < 4; i++) {
        bool elsewhere = i % 2;
        scene on = n;
        on.stream = elsewhere ? other : n.stream;
        ok = tc_buffer_fill(k, &b, on.stream, i) && tc_graph_launch(k, ext, graph, on.stream) &&
             tc_must_fail(k, TNP_CAPTURE_ERRORS, settle(&on, i == 2), TN_ERR_INDEX_OUT_OF_RANGE,
                          "asking the stream of a launch whose index is out of range") &&
             tc_must(k, TNP_CAPTURE_ERRORS, settle(&on, false),
                     "synchronize after the error of a launch was reported");
        memset(b.model, 0x5a, b.bytes);
        ok = ok && tc_buffer_check(k, &b, on.stream, TNP_CAPTURE_ERRORS,
                                   "what a graph does behind work that failed");
        on.stream = elsewhere ? n.stream : other;
        ok = ok && tc_must(k, TNP_CAPTURE_ERRORS, settle(&on, false),
                           "synchronize of another stream than that of a launch that failed");
    }
    if (ok && write_index(&n, &bad, &n.good) && tc_graph_launch(k, ext, graph, other)) {
        n.stream = other;
        tc_must(k, TNP_CAPTURE_ERRORS, settle(&n, false),
                "a launch whose index is within range again");
    }
    n.stream = other;
    if (!tc_failed(k) && graph && write_index(&n, &bad, &n.bad) &&
        tc_graph_launch(k, ext, graph, other)) {
        ext->destroy(graph);
        graph = NULL;
        reported(&n, false); /* by the stream, which is there still */
    }
    if (!tc_failed(k) && queue(&n, &n.good, &good))
        tc_must(k, TNP_CAPTURE_ERRORS, settle(&n, false), "a call after launches that failed");
    if (graph)
        ext->destroy(graph);
    tc_subject_sync(k->subject);
    tc_unplace(&good);
    tc_unplace(&bad);
}

/* A launch behind an error that is known already runs, and neither tells of it nor takes it away. */
static void launched_behind(tc_contract *k) {
    scene n;
    tc_buffer b;
    tc_placed bad = {0};
    tn_graph_impl *graph = NULL;
    tn_event_impl *event;
    const tn_ext_capture *ext = tc_capture_extension(k);
    const tn_event_ops *events = k->subject->ops->events;
    bool ok = ext && set_up(k, &n) && tc_event_create(k, n.s, 0, &event) &&
              tc_buffer_create(k, n.s, TN_SPACE_DEVICE, 3000, &b) &&
              tc_capture_begin(k, ext, n.stream);
    if (ok && !tc_buffer_fill(k, &b, n.stream, 0x47)) {
        ext->abandon(n.stream);
        ok = false;
    }
    if (ok && tc_capture_end(k, ext, n.stream, &graph) && queue(&n, &n.bad, &bad) &&
        tc_must(k, TNP_EVENT_RECORD, events->record(event, n.stream), "record") &&
        tc_must(k, TNP_EVENT_SYNCHRONIZE, events->synchronize(event), "synchronize") &&
        tc_graph_launch(k, ext, graph, n.stream) && reported(&n, false) &&
        tc_must(k, TNP_CAPTURE_ERRORS, settle(&n, false),
                "synchronize after an error was reported that a launch came behind"))
        tc_buffer_check(k, &b, n.stream, TNP_CAPTURE_ERRORS, "what a launch behind an error wrote");
    if (graph)
        ext->destroy(graph);
    tc_subject_sync(k->subject);
    tc_unplace(&bad);
}

/* An error of work from before a capture is there after it, however that ends. */
static void kept(tc_contract *k) {
    bool meanwhile = strcmp(tc_contract_word(k, "from"), "meanwhile") == 0;
    scene n;
    tc_work work;
    tc_placed bad = {0};
    tn_graph_impl *graph = NULL;
    const tn_ext_capture *ext = tc_capture_extension(k);
    tn_event_impl *event;
    const tn_event_ops *events = k->subject->ops->events;
    if (ext && set_up(k, &n) && tc_event_create(k, n.s, 0, &event) &&
        (!meanwhile || (tc_work_create(k, n.s, &work) && tc_work_hold(k, &work, n.stream, 0.05))) &&
        queue(&n, &n.bad, &bad) &&
        tc_must(k, TNP_EVENT_RECORD, events->record(event, n.stream), "record") &&
        (meanwhile ||
         tc_must(k, TNP_EVENT_SYNCHRONIZE, events->synchronize(event), "synchronize")) &&
        tc_capture_begin(k, ext, n.stream)) {
        tc_must(k, TNP_EVENT_SYNCHRONIZE, events->synchronize(event),
                "synchronize, while a stream captures, of an event that was recorded before");
        if (strcmp(tc_contract_word(k, "by"), "abandon") == 0)
            ext->abandon(n.stream);
        else
            tc_capture_end(k, ext, n.stream, &graph);
        tc_must_fail(k, TNP_STREAM_ERROR_ONCE, settle(&n, false), TN_ERR_INDEX_OUT_OF_RANGE,
                     "asking a stream, after a capture, of an error from before it");
        tc_must(k, TNP_STREAM_ERROR_ONCE, settle(&n, false),
                "synchronize after that error was reported");
    }
    if (graph)
        ext->destroy(graph);
    tc_subject_sync(k->subject);
    tc_unplace(&bad);
}

/* What the plugin says of one wrong call. */
static bool message_of(scene *n, tc_invocation *call, char message[TC_MESSAGE]) {
    tc_placed p = {0};
    bool told = queue(n, call, &p) && reported(n, false);
    snprintf(message, TC_MESSAGE, "%s", told ? tc_host_message() : "");
    tc_subject_sync(n->s);
    tc_unplace(&p);
    return told;
}

/* Two errors before anybody asks: one is reported, the first. Which one it was shows in the message
 * of a plugin that says something else of each. */
static void two(tc_contract *k) {
    scene n;
    tc_invocation other;
    tc_placed first = {0}, second = {0};
    char of_first[TC_MESSAGE], of_second[TC_MESSAGE], once_more[TC_MESSAGE];
    if (set_up(k, &n) && prepare(&n, &other, 2000000) && message_of(&n, &n.bad, of_first) &&
        message_of(&n, &other, of_second) && message_of(&n, &n.bad, once_more) &&
        queue(&n, &n.bad, &first) && queue(&n, &other, &second) && reported(&n, false)) {
        if (strcmp(of_first, once_more) == 0 && strcmp(of_first, of_second) != 0 &&
            strcmp(tc_host_message(), of_second) == 0)
            TC_BROKEN(k, TNP_STREAM_ERROR_ONCE, "of two errors the second was reported: %.150s",
                      of_second);
        tc_must(k, TNP_STREAM_ERROR_ONCE, settle(&n, false),
                "synchronize after the first of two errors was reported");
    }
    tc_subject_sync(k->subject);
    tc_unplace(&second);
    tc_unplace(&first);
}

/* The same where both were recorded: a launch is as if they had been queued. */
static void captured_two(tc_contract *k) {
    scene n;
    tc_invocation other;
    tc_placed first = {0}, second = {0};
    tn_graph_impl *graph = NULL;
    const tn_ext_capture *ext = tc_capture_extension(k);
    char of_first[TC_MESSAGE], of_second[TC_MESSAGE];
    bool ok = ext && set_up(k, &n) && prepare(&n, &other, 2000000) &&
              message_of(&n, &n.bad, of_first) && message_of(&n, &other, of_second) &&
              tc_place_call(n.s, n.stream, &n.bad, &first, k->out) &&
              tc_place_call(n.s, n.stream, &other, &second, k->out) &&
              tc_stream_sync(k, n.stream) && tc_capture_begin(k, ext, n.stream);
    if (ok &&
        !(tc_must_run(k, TNP_CAPTURE_RECORDS, tc_call_placed(&first), "run while capturing") &&
          tc_must_run(k, TNP_CAPTURE_RECORDS, tc_call_placed(&second), "run while capturing"))) {
        ext->abandon(n.stream);
        ok = false;
    }
    ok = ok && tc_capture_end(k, ext, n.stream, &graph);
    for (int i = 0; i < 2 && ok; i++) {
        ok = tc_graph_launch(k, ext, graph, n.stream) && reported(&n, i);
        if (ok && strcmp(of_first, of_second) != 0 && strcmp(tc_host_message(), of_second) == 0)
            TC_BROKEN(k, TNP_CAPTURE_ERRORS,
                      "of two errors in a launch the second was reported: %.150s", of_second);
        ok = ok && tc_must(k, TNP_CAPTURE_ERRORS, settle(&n, false),
                           "synchronize after the first of two errors of a launch was reported");
    }
    if (graph)
        ext->destroy(graph);
    tc_subject_sync(k->subject);
    tc_unplace(&second);
    tc_unplace(&first);
}

/* Two graphs of one call, the second by an update from the first where there is one. */
static bool capture_twice(scene *n, const tn_ext_capture *ext, tc_placed *p,
                          tn_graph_impl *graphs[2]) {
    tc_contract *k = n->k;
    bool ok = true;
    for (int i = 0; i < 2 && ok; i++) {
        ok = tc_capture_begin(k, ext, n->stream);
        bool ran =
            ok && tc_must_run(k, TNP_CAPTURE_RECORDS, tc_call_placed(p), "run while capturing");
        if (ok && !ran)
            ext->abandon(n->stream);
        ok = ran && tc_capture_end(k, ext, n->stream, &graphs[i]);
    }
    if (!ok || !TN_HAS(ext, tn_ext_capture, update) || !ext->update)
        return ok;
    tn_status status = ext->update(graphs[1], graphs[0]);
    return status == TN_ERR_UNSUPPORTED || tc_must(k, TNP_CAPTURE_UPDATE, status, "update");
}

/* Both at the same time on two streams, each of which is told of its own error, in the words for it. */
static bool launch_both(scene *n, const tn_ext_capture *ext, tn_graph_impl *const graphs[2],
                        tn_stream_impl *const streams[2], const char *not_now) {
    bool ok = true;
    for (int i = 0; i < 2 && ok; i++)
        ok = tc_graph_launch(n->k, ext, graphs[i], streams[i]);
    for (int i = 0; i < 2 && ok; i++) {
        n->stream = streams[i];
        ok = reported(n, i);
        if (ok && *not_now && strcmp(tc_host_message(), not_now) == 0)
            ok = TC_BROKEN(n->k, TNP_CAPTURE_ERRORS,
                           "of two graphs that did the same at once one told an earlier error: "
                           "%.150s",
                           not_now);
    }
    return ok;
}

/* Over the index that `prepare` made wrong. */
static bool write_wrong(scene *n, const tc_placed *p, int64_t value) {
    int32_t a = tc_record_arg(p->call->record, "index");
    const tc_operand *index = &p->call->args[a].tensor;
    uint64_t at = (uint64_t)(index->shape.numel / 2) * sizeof(int64_t);
    return tc_must(n->k, TNP_TRANSFER_RANGE,
                   n->s->memory->copy_from_host(n->s->device, n->stream, p->arg_views[a].memory, at,
                                                &value, 0, sizeof value),
                   "write of an index") &&
           tc_stream_sync(n->k, n->stream);
}

/* Graphs that do the same have not their errors in common. */
static void captured_alike(tc_contract *k) {
    enum { ROUNDS = 150 };
    static const double SECONDS = 0.2;
    static const char line[] = "kernel/gather T=f32 self=[60,400] dim=0 index=[1500,400]";
    scene n;
    tc_invocation call;
    tc_placed p = {0};
    tn_graph_impl *graphs[2] = {0};
    char why[TC_MESSAGE], told[2][TC_MESSAGE];
    const tn_ext_capture *ext = tc_capture_extension(k);
    tn_stream_impl *streams[2], *alone;
    bool ok = ext && set_up(k, &n) && tc_case_parse(line, &n.line, why) &&
              prepare(&n, &call, 1000000) && tc_stream_create(k, n.s, 0, &streams[0]) &&
              tc_stream_create(k, n.s, 0, &streams[1]);
    if (ok && tc_find_kernel(n.s, &call, NULL, &n.kernel) != TC_CLAIMED)
        ok = TC_NOT_OFFERED(k, "no gather that finds a bad index");
    if (!ok)
        return;
    alone = n.stream;
    ok = tc_place_call(n.s, alone, &call, &p, k->out) && tc_stream_sync(k, alone) &&
         capture_twice(&n, ext, &p, graphs);
    double end = tc_now() + SECONDS;
    for (int i = 0; i < 2 + ROUNDS && ok && (i < 4 || tc_now() < end); i++) {
        n.stream = alone;
        ok = write_wrong(&n, &p, 1000000 * (1 + i % 2));
        if (i < 2) {
            ok = ok && tc_graph_launch(k, ext, graphs[0], alone) && reported(&n, false);
            snprintf(told[i], TC_MESSAGE, "%s", tc_host_message());
        } else {
            ok = ok && launch_both(&n, ext, graphs, streams,
                                   strcmp(told[0], told[1]) == 0 ? "" : told[!(i % 2)]);
        }
    }
    for (int i = 0; i < 2; i++)
        if (graphs[i])
            ext->destroy(graphs[i]);
    tc_subject_sync(k->subject);
    tc_unplace(&p);
}

/* Each error has its own message, also on a stream that had another one before. */
static void messages(tc_contract *k) {
    scene n;
    tc_invocation other;
    tn_stream_impl *fresh[2] = {0};
    char bad[2][TC_MESSAGE], alone[TC_MESSAGE], later[TC_MESSAGE];
    if (set_up(k, &n) && prepare(&n, &other, 2000000) && tc_stream_create(k, n.s, 0, &fresh[0]) &&
        tc_stream_create(k, n.s, 0, &fresh[1])) {
        tn_stream_impl *old = n.stream;
        bool told = message_of(&n, &n.bad, bad[0]);
        n.stream = fresh[0];
        told = told && message_of(&n, &n.bad, bad[1]);
        n.stream = fresh[1];
        told = told && message_of(&n, &other, alone);
        n.stream = old;
        told = told && message_of(&n, &other, later);
        if (told && strcmp(bad[0], bad[1]) == 0 && strcmp(bad[0], alone) != 0 &&
            strcmp(later, bad[0]) == 0)
            TC_BROKEN(k, TNP_STREAM_ERROR_ONCE,
                      "the second error of a stream came with the message of the first: %.150s",
                      later);
    }
    tc_subject_sync(k->subject);
}

/* Two streams with an error each: what one is told is not the other's. */
static void of_each(tc_contract *k) {
    scene n;
    tc_invocation other;
    tc_placed placed[2] = {0};
    tn_stream_impl *second;
    tn_event_impl *event;
    char alone[2][TC_MESSAGE], told[2][TC_MESSAGE];
    if (!set_up(k, &n) || !prepare(&n, &other, 2000000) || !tc_stream_create(k, n.s, 0, &second))
        return;
    tn_stream_impl *streams[] = {n.stream, second};
    tc_invocation *calls[] = {&n.bad, &other};
    bool ok = true;
    for (int i = 0; i < 2 && ok; i++) {
        n.stream = streams[i];
        ok = message_of(&n, calls[i], alone[i]);
    }
    for (int i = 0; i < 2 && ok; i++) {
        n.stream = streams[i];
        ok = queue(&n, calls[i], &placed[i]);
    }
    /* Both have happened; an event tells of neither. */
    const tn_event_ops *events = n.s->ops->events;
    ok = ok && tc_event_create(k, n.s, 0, &event) &&
         tc_must(k, TNP_EVENT_RECORD, events->record(event, second), "record") &&
         tc_must(k, TNP_EVENT_SYNCHRONIZE, events->synchronize(event), "synchronize");
    for (int i = 0; i < 2 && ok; i++) {
        n.stream = streams[i];
        ok = reported(&n, false);
        snprintf(told[i], TC_MESSAGE, "%s", tc_host_message());
    }
    for (int i = 0; i < 2 && ok; i++)
        if (strcmp(alone[0], alone[1]) != 0 && strcmp(told[i], alone[!i]) == 0)
            TC_BROKEN(k, TNP_STREAM_ERROR_ONCE,
                      "of two streams with an error one tells the other's: %.150s", told[i]);
    for (int i = 0; i < 2; i++) {
        (void)n.s->ops->streams->synchronize(streams[i]);
        tc_unplace(&placed[i]);
    }
}

/* Of many streams some have an error, and the others none. */
static void of_some(tc_contract *k) {
    enum { STREAMS = 41 };
    scene n;
    tn_stream_impl *streams[STREAMS] = {0};
    tc_placed placed[STREAMS] = {0};
    bool ok = set_up(k, &n);
    for (int i = 0; i < STREAMS && ok; i++) {
        ok = tc_stream_create(k, n.s, 0, &streams[i]);
        n.stream = streams[i];
        ok = ok && queue(&n, i % 3 == 1 ? &n.bad : &n.good, &placed[i]);
    }
    for (int j = 0; j < STREAMS && ok; j++) {
        int i = j * 17 % STREAMS; /* in another order */
        n.stream = streams[i];
        ok = i % 3 == 1 ? reported(&n, i % 2)
                        : tc_must(k, TNP_STREAM_ERROR_ONCE, settle(&n, i % 2),
                                  "asking one of many streams, of which others had an error");
    }
    for (int i = 0; i < STREAMS && streams[i]; i++) {
        (void)n.s->ops->streams->synchronize(streams[i]);
        tc_unplace(&placed[i]);
    }
}

/* Nobody asks for a while, in which there is nothing to do. */
static void rested(tc_contract *k) {
    static const struct timespec rest = {1, 500000000};
    scene n;
    tc_placed bad = {0};
    if (set_up(k, &n) && queue(&n, &n.bad, &bad)) {
        nanosleep(&rest, NULL);
        if (reported(&n, false))
            tc_must(k, TNP_STREAM_ERROR_ONCE, settle(&n, false),
                    "synchronize after an old error was reported");
    }
    tc_subject_sync(k->subject);
    tc_unplace(&bad);
}

const tc_contract_row tc_error_rows[] = {
    {"error-once", "by=synchronize with=read", TC_SMOKE, once},
    {"error-once", "by=query with=nothing", TC_SMOKE, once},
    {"error-once", "by=synchronize with=nothing queues=another", TC_SMOKE, once},
    {"error-behind", "", TC_SMOKE, behind},
    {"error-elsewhere", "", TC_SMOKE, elsewhere},
    {"error-forgotten", "", TC_SMOKE, forgotten},
    {"error-two-threads", "", TC_SMOKE, two_listeners},
    {"error-two", "", TC_SMOKE, two},
    {"error-messages", "", TC_SMOKE, messages},
    {"error-of-each", "", TC_SMOKE, of_each},
    {"error-of-some", "", TC_SMOKE, of_some},
    {"error-rested", "", TC_STANDARD, rested},
    {"capture-error", "", TC_SMOKE, captured},
    {"capture-error-two", "", TC_SMOKE, captured_two},
    {"capture-error-behind", "", TC_SMOKE, launched_behind},
    {"capture-error-alike", "", TC_STANDARD, captured_alike},
    {"capture-error-kept", "by=abandon from=before", TC_SMOKE, kept},
    {"capture-error-kept", "by=end from=before", TC_SMOKE, kept},
    {"capture-error-kept", "by=abandon from=meanwhile", TC_SMOKE, kept},
    {"capture-error-kept", "by=end from=meanwhile", TC_SMOKE, kept},
    {0},
};
