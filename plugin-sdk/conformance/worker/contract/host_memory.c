/* Host memory exhaustion: for each stage of a plugin's lifecycle the n-th allocation fails, for
 * every n there is. The call fails cleanly or can do without, nothing is lost, and the same call
 * succeeds when there is memory again. */
#include "plugin-sdk/conformance/worker/kernel/checks.h"
#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"

#include <stdio.h>
#include <string.h>
#include <tenon/ext/capture.h>

typedef struct trial {
    tc_contract *k;
    tc_subject s;
    tn_event_impl *event;
    tn_memory memory[2];
    tc_placed placed;
    tc_invocation call;
    const char *line; /* of the kernel call */
    tn_graph_impl *graph, *other;
    bool updated; /* `graph` does what `other` does */
    tc_work work;
    unsigned char *large;
    tn_device_impl *peer;
    tn_memory of_peer;
} trial;

/* A stage begins where `prepare` left the plugin, `attempt` is the call, `undo` takes a successful
 * one back. */
typedef struct step {
    const char *name;
    tn_requirement requirement; /* that it succeeds when there is memory */
    bool opens;                 /* a device and a stream are open before it */
    bool (*prepare)(trial *t);
    tn_status (*attempt)(trial *t);
    void (*undo)(trial *t);
    void (*finish)(trial *t);
    bool (*arm)(trial *t); /* before each attempt, with memory to be had; may be NULL */
} step;

/* ---- stages ------------------------------------------------------------------------------ */

/* What an output holds before the call: after one that fails it does still, or is cleared. */
static char poison;
#define POISONED(type) ((type *)(void *)&poison)

/* True, and the output cleared, where the call gave something. */
#define GAVE(t, status, out, what) \
    ((status) == TN_OK || (gave((t), (out), (what)), (out) = NULL, false))

static void gave(trial *t, const void *out, const char *what) {
    if (out && out != &poison)
        TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE, "%s failed and gave something all the same", what);
}

static tn_status try_init(trial *t) {
    t->s.self = POISONED(tn_instance);
    t->s.host = tc_host_table();
    tc_host_begin(t->s.host);
    tn_status status = t->s.plugin->init(tc_host_table(), t->k->options->plugin, &t->s.self);
    if (!GAVE(t, status, t->s.self, "init"))
        tc_host_end(NULL);
    return status;
}

static void undo_init(trial *t) {
    t->s.plugin->shutdown(t->s.self);
    t->s.self = NULL;
    tc_host_end(NULL);
}

static bool prepare_init(trial *t) {
    return tc_must(t->k, TNP_INIT_RESULT, try_init(t), "init");
}

static tn_status try_open(trial *t) {
    uint32_t n;
    tn_status status = t->s.ops->count(t->s.self, &n);
    t->s.device = status == TN_OK ? POISONED(tn_device_impl) : NULL;
    if (status == TN_OK)
        status = t->s.ops->open(t->s.self, t->k->options->device, &t->s.device);
    (void)GAVE(t, status, t->s.device, "open");
    return status;
}

static void undo_open(trial *t) {
    t->s.ops->close(t->s.device);
    t->s.device = NULL;
}

static tn_status try_stream(trial *t) {
    t->s.stream = POISONED(tn_stream_impl);
    tn_status status = t->s.ops->streams->create(t->s.device, 0, &t->s.stream);
    (void)GAVE(t, status, t->s.stream, "create of a stream");
    return status;
}

static void undo_stream(trial *t) {
    t->s.ops->streams->destroy(t->s.stream);
    t->s.stream = NULL;
}

static bool prepare_device(trial *t) {
    tn_stream_impl *stream = t->s.stream;
    if (stream) /* opening brought one, which the stage makes itself */
        t->s.ops->streams->destroy(stream);
    t->s.stream = NULL;
    return stream != NULL;
}

static bool has_streams(trial *t) {
    return t->s.ops->streams != NULL;
}

static tn_status try_event(trial *t) {
    const tn_event_ops *e = t->s.ops->events;
    t->event = POISONED(tn_event_impl);
    tn_status status = e->create(t->s.device, 0, &t->event);
    if (!GAVE(t, status, t->event, "create of an event"))
        return status;
    status = e->record(t->event, t->s.stream);
    if (status == TN_OK)
        status = e->wait(t->s.stream, t->event);
    if (status == TN_OK)
        status = tc_subject_sync(&t->s);
    if (status != TN_OK) {
        tc_subject_sync(&t->s);
        e->destroy(t->event);
    }
    return status;
}

static void undo_event(trial *t) {
    t->s.ops->events->destroy(t->event);
}

/* An event that was recorded behind long work, and is recorded again. */
static bool prepare_record(trial *t) {
    t->event = NULL;
    return t->s.ops->streams && tc_work_create(t->k, &t->s, &t->work) &&
           tc_must(t->k, TNP_EVENT_CREATE, t->s.ops->events->create(t->s.device, 0, &t->event),
                   "create of an event");
}

static bool arm_record(trial *t) {
    return tc_work_hold(t->k, &t->work, t->s.stream, 0.02) &&
           tc_must(t->k, TNP_EVENT_RECORD, t->s.ops->events->record(t->event, t->s.stream),
                   "record");
}

/* A record that fails leaves the event where it was: not passed while the work before it goes on. */
static tn_status try_record(trial *t) {
    const tn_event_ops *e = t->s.ops->events;
    tn_stream_impl *stream = t->s.stream;
    tn_status status = e->record(t->event, stream);
    tn_status passed = status == TN_OK ? TN_OK : e->query(t->event);
    bool was_idle = t->s.ops->streams->query(stream) == TN_OK;
    tn_status later = tc_subject_sync(&t->s);
    if (status != TN_OK && passed == TN_OK && !was_idle)
        TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE,
                  "record failed for want of host memory, and the event forgot what it had "
                  "recorded before: it is passed, and the work is not done");
    else if (status != TN_OK && later == TN_OK && e->query(t->event) != TN_OK)
        TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE,
                  "record failed for want of host memory, and the event waits for a point that was "
                  "never queued: the stream has run empty, and it is not passed");
    return status == TN_OK ? later : status;
}

static void finish_record(trial *t) {
    if (t->event)
        t->s.ops->events->destroy(t->event);
    tc_release(t->k, NULL);
    t->k->owned = NULL; /* its list lies in the arena, which ends with the trial */
}

static tn_status alloc_in(trial *t, int32_t space) {
    void *host;
    t->memory[0] = 0;
    return tc_alloc(&t->s, space, 100000, &t->memory[0], &host);
}

static tn_status try_alloc(trial *t) {
    return alloc_in(t, TN_SPACE_DEVICE);
}

static void undo_alloc(trial *t) {
    t->s.memory->dealloc(t->s.device, TN_SPACE_DEVICE, t->memory[0]);
}

static bool has_pinned(trial *t) {
    return t->s.spaces >> TN_SPACE_PINNED & 1;
}

static tn_status try_pinned(trial *t) {
    return alloc_in(t, TN_SPACE_PINNED);
}

static void undo_pinned(trial *t) {
    t->s.memory->dealloc(t->s.device, TN_SPACE_PINNED, t->memory[0]);
}

enum { BYTES = 3000 };

static bool prepare_transfer(trial *t) {
    void *host;
    for (int i = 0; i < 2; i++)
        if (!tc_must(t->k, TNP_ALLOC_HANDLE,
                     tc_alloc(&t->s, TN_SPACE_DEVICE, BYTES, &t->memory[i], &host), "alloc"))
            return false;
    return true;
}

static tn_status try_transfer(trial *t) {
    const tn_memory_ops *m = t->s.memory;
    unsigned char there[BYTES], back[BYTES];
    for (int i = 0; i < BYTES; i++)
        there[i] = (unsigned char)(i * 11);
    memset(back, 0, sizeof back);
    tn_status status =
        m->copy_from_host(t->s.device, t->s.stream, t->memory[0], 0, there, 0, BYTES);
    if (status == TN_OK)
        status = m->fill(t->s.device, t->s.stream, t->memory[1], 0, 1, BYTES);
    if (status == TN_OK)
        status = m->copy(t->s.device, t->s.stream, t->memory[1], 0, t->memory[0], 0, BYTES);
    if (status == TN_OK)
        status = m->copy_to_host(t->s.device, t->s.stream, back, 0, t->memory[1], 0, BYTES);
    tn_status later = tc_subject_sync(&t->s);
    if (status == TN_OK)
        status = later;
    if (status == TN_OK && memcmp(there, back, BYTES) != 0)
        TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE,
                  "transfers succeeded while the host had no memory, and did not move "
                  "the bytes");
    return status;
}

static void finish_transfer(trial *t) {
    for (int i = 0; i < 2; i++)
        if (t->memory[i])
            t->s.memory->dealloc(t->s.device, TN_SPACE_DEVICE, t->memory[i]);
}

/* ---- large transfers --------------------------------------------------------------------- */

/* Of sizes that drivers cut into pieces: one that fails has moved nothing, neither before the piece that
 * failed nor behind it. */
enum { LARGE = (3 << 20) + 5, WAS = 0x3c };

static bool prepare_large(trial *t) {
    void *host;
    t->large = tc_arena_array(&t->k->arena, LARGE, 1);
    for (int i = 0; i < 2; i++)
        if (!t->large ||
            !tc_must(t->k, TNP_ALLOC_HANDLE,
                     tc_alloc(&t->s, TN_SPACE_DEVICE, LARGE, &t->memory[i], &host), "alloc"))
            return false;
    return true;
}

static bool arm_large(trial *t) {
    const tc_subject *s = &t->s;
    memset(t->large, 0x71, LARGE);
    for (int i = 0; i < 2; i++)
        if (!tc_must(t->k, TNP_FILL_VALUE,
                     s->memory->fill(s->device, s->stream, t->memory[i], 0, WAS + i, LARGE),
                     "fill"))
            return false;
    return tc_must(t->k, TNP_FILL_VALUE, tc_subject_sync(&t->s), "synchronize");
}

/* The first memory holds `value` all over. */
static void expect(trial *t, int value, const char *what) {
    const tc_subject *s = &t->s;
    if (!tc_must(t->k, TNP_READ_COMPLETE,
                 s->memory->copy_to_host(s->device, s->stream, t->large, 0, t->memory[0], 0, LARGE),
                 "read"))
        return;
    for (uint64_t i = 0; i < LARGE && !tc_failed(t->k); i++)
        if (t->large[i] != value)
            TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE,
                      "%s: byte %llu of %d is 0x%02x, and should be 0x%02x", what,
                      (unsigned long long)i, LARGE, t->large[i], (unsigned)value);
}

static tn_status try_large(trial *t) {
    static const char *const names[] = {"a large write", "a large fill", "a large copy"};
    const tc_subject *s = &t->s;
    const tn_memory_ops *m = s->memory;
    static const int values[] = {WAS, 0x71, 0x22};
    tn_status status = TN_OK;
    int done = 0;
    for (; status == TN_OK && done < 3; done += status == TN_OK)
        status =
            done == 0 ? m->copy_from_host(s->device, s->stream, t->memory[0], 0, t->large, 0, LARGE)
            : done == 1 ? m->fill(s->device, s->stream, t->memory[0], 0, 0x22, LARGE)
                        : m->copy(s->device, s->stream, t->memory[0], 0, t->memory[1], 0, LARGE);
    tn_status later = tc_subject_sync(&t->s);
    if (status != TN_OK && tc_host_failed()) {
        char what[96];
        snprintf(what, sizeof what, "after %s failed for want of host memory", names[done]);
        expect(t, values[done], what);
    }
    return status == TN_OK ? later : status;
}

static void undo_large(trial *t) {
    expect(t, WAS + 1, "after large transfers");
}

/* ---- transfers that a driver takes in pieces --------------------------------------------- */

enum { HUGE = 160 << 20, MARKS = 11, MARK = 64 };

static uint64_t mark_place(int i) {
    return (uint64_t)i * ((HUGE - MARK) / (MARKS - 1));
}

static bool prepare_huge(trial *t) {
    void *host;
    if (tc_free_bytes(&t->s) / 4 < HUGE)
        return false;
    for (int i = 0; i < 2; i++)
        if (!tc_must(t->k, TNP_ALLOC_HANDLE,
                     tc_alloc(&t->s, TN_SPACE_DEVICE, HUGE, &t->memory[i], &host), "alloc"))
            return false;
    return true;
}

/* Marks at places all over the first memory; the second holds other bytes there. */
static bool arm_huge(trial *t) {
    const tc_subject *s = &t->s;
    bool ok = true;
    for (int i = 0; i < 2 * MARKS && ok; i++)
        ok = tc_must(t->k, TNP_FILL_VALUE,
                     s->memory->fill(s->device, s->stream, t->memory[i % 2], mark_place(i / 2),
                                     (uint8_t)(WAS + i % 2), MARK),
                     "fill");
    return ok && tc_must(t->k, TNP_FILL_VALUE, tc_subject_sync(&t->s), "synchronize");
}

static void expect_marks(trial *t, int value, const char *what) {
    const tc_subject *s = &t->s;
    unsigned char mark[MARK];
    for (int i = 0; i < MARKS && !tc_failed(t->k); i++) {
        tn_status status = s->memory->copy_to_host(s->device, s->stream, mark, 0, t->memory[0],
                                                   mark_place(i), MARK);
        if (tc_must(t->k, TNP_READ_COMPLETE, status, "read") && mark[0] != value)
            TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE,
                      "%s: byte %llu of %d is 0x%02x, and should be 0x%02x", what,
                      (unsigned long long)mark_place(i), HUGE, mark[0], (unsigned)value);
    }
}

static tn_status try_huge(trial *t) {
    const tc_subject *s = &t->s;
    const tn_memory_ops *m = s->memory;
    tn_status status = m->copy(s->device, s->stream, t->memory[0], 0, t->memory[1], 0, HUGE);
    bool copied = status == TN_OK;
    if (copied)
        status = m->fill(s->device, s->stream, t->memory[0], 0, 0x22, HUGE);
    tn_status later = tc_subject_sync(&t->s);
    if (status != TN_OK && tc_host_failed())
        expect_marks(t, copied ? WAS + 1 : WAS,
                     copied ? "after a fill of 160 MiB failed for want of host memory"
                            : "after a copy of 160 MiB failed for want of host memory");
    return status == TN_OK ? later : status;
}

static void undo_huge(trial *t) {
    expect_marks(t, 0x22, "after transfers of 160 MiB");
}

/* ---- from device to device --------------------------------------------------------------- */

static bool prepare_peer(trial *t) {
    const tn_memory_ops *m = t->s.memory;
    tn_allocation a = {.struct_size = sizeof a, .bytes = BYTES, .alignment = t->s.alignment};
    if (t->s.n_devices < 2 || !TN_HAS(m, tn_memory_ops, copy_peer) || !m->copy_peer ||
        !prepare_transfer(t) || t->s.ops->open(t->s.self, t->s.index ? 0 : 1, &t->peer) != TN_OK ||
        m->alloc(t->peer, &a) != TN_OK)
        return false;
    t->of_peer = a.memory;
    return m->copy_peer(t->s.device, t->s.stream, t->memory[0], 0, t->peer, t->of_peer, 0, BYTES) ==
               TN_OK &&
           tc_subject_sync(&t->s) == TN_OK;
}

static tn_status try_peer(trial *t) {
    const tc_subject *s = &t->s;
    tn_status status =
        s->memory->copy_peer(s->device, s->stream, t->memory[0], 0, t->peer, t->of_peer, 0, BYTES);
    tn_status later = tc_subject_sync(&t->s);
    return status == TN_OK ? later : status;
}

static void finish_peer(trial *t) {
    if (t->of_peer)
        t->s.memory->dealloc(t->peer, TN_SPACE_DEVICE, t->of_peer);
    if (t->peer)
        t->s.ops->close(t->peer);
    finish_transfer(t);
}

/* ---- kernels ----------------------------------------------------------------------------- */

static bool prepare_kernel(trial *t) {
    char why[TC_MESSAGE];
    const tn_kernel *kernel;
    tc_case *c = tc_arena_array(&t->k->arena, 1, sizeof *c);
    if (!c || !tc_case_parse(t->line, c, why) ||
        !tc_invocation_parse(c, &t->k->arena, &t->call, why) ||
        !tc_invocation_fill(&t->call, t->call.seed, why))
        return TC_CASE_ERROR(t->k->out, "%s: %s", t->line, c ? why : "no memory");
    if (tc_find_kernel(&t->s, &t->call, NULL, &kernel) != TC_CLAIMED)
        return false;
    return tc_place_call(&t->s, t->s.stream, &t->call, &t->placed, t->k->out) &&
           tc_subject_sync(&t->s) == TN_OK;
}

static tn_status try_kernel(trial *t) {
    tn_status status = tc_call_placed(&t->placed), later = tc_subject_sync(&t->s);
    return status != TN_OK ? status : later;
}

/* The result of a run that succeeded is right. */
static void undo_kernel(trial *t) {
    tc_result result = {0};
    if (tc_read_back(&t->placed, &result, t->k->out))
        tc_check_outputs(&t->call, &result, &t->s, t->k->out);
}

static void finish_kernel(trial *t) {
    tc_unplace(&t->placed);
}

static const tn_ext_capture *capture(const trial *t) {
    return tc_subject_extension(&t->s, TN_EXT_CAPTURE);
}

static bool prepare_capture(trial *t) {
    const tn_ext_capture *ext = t->s.stream ? capture(t) : NULL;
    if (!ext || ext->begin(t->s.stream) != TN_OK)
        return false;
    ext->abandon(t->s.stream);
    return prepare_transfer(t);
}

/* From begin to a launch; whatever fails, the stream is an ordinary one afterwards. */
static tn_status try_capture(trial *t) {
    const tn_ext_capture *ext = capture(t);
    tn_graph_impl *graph = POISONED(tn_graph_impl);
    unsigned char back[BYTES] = {0};
    tn_status status = ext->begin(t->s.stream);
    if (status != TN_OK)
        return status;
    status = t->s.memory->fill(t->s.device, t->s.stream, t->memory[0], 0, 7, BYTES);
    if (status != TN_OK) {
        ext->abandon(t->s.stream);
        return status;
    }
    status = ext->end(t->s.stream, &graph);
    if (GAVE(t, status, graph, "end of a capture")) {
        status = ext->launch(graph, t->s.stream);
        tc_must(t->k, TNP_HOST_ALLOC_FAILURE, tc_subject_sync(&t->s),
                "synchronize behind a launch");
        ext->destroy(graph);
    } else
        tc_must(t->k, TNP_CAPTURE_RECORDS, tc_subject_sync(&t->s),
                "synchronize after the end of a capture failed");
    if (status == TN_OK)
        status =
            t->s.memory->copy_to_host(t->s.device, t->s.stream, back, 0, t->memory[0], 0, BYTES);
    if (status == TN_OK && (back[0] != 7 || back[BYTES - 1] != 7))
        TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE,
                  "a launch succeeded while the host had no memory, and did nothing");
    return status;
}

static bool prepare_launch(trial *t) {
    const tn_ext_capture *ext = t->s.stream ? capture(t) : NULL;
    if (!ext || !prepare_transfer(t) || ext->begin(t->s.stream) != TN_OK)
        return false;
    if (t->s.memory->fill(t->s.device, t->s.stream, t->memory[0], 0, 9, BYTES) == TN_OK)
        return ext->end(t->s.stream, &t->graph) == TN_OK;
    ext->abandon(t->s.stream);
    return false;
}

/* Of one graph, again and again: a launch that failed is as if it had not been. */
static tn_status try_launch(trial *t) {
    unsigned char back[BYTES] = {0};
    const tn_memory_ops *m = t->s.memory;
    tn_status status = m->fill(t->s.device, t->s.stream, t->memory[0], 0, 0, BYTES);
    if (status == TN_OK)
        status = capture(t)->launch(t->graph, t->s.stream);
    tc_must(t->k, TNP_HOST_ALLOC_FAILURE, tc_subject_sync(&t->s), "synchronize behind a launch");
    if (status == TN_OK)
        status = m->copy_to_host(t->s.device, t->s.stream, back, 0, t->memory[0], 0, BYTES);
    if (status == TN_OK && (back[0] != 9 || back[BYTES - 1] != 9))
        TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE,
                  "a launch succeeded while the host had no memory, and did nothing");
    return status;
}

static void finish_launch(trial *t) {
    if (t->graph)
        capture(t)->destroy(t->graph);
    t->graph = NULL;
    finish_transfer(t);
}

/* Another graph, which fills with something else, and the usual one does that once it is updated. */
static bool prepare_update(trial *t) {
    const tn_ext_capture *ext = t->s.stream ? capture(t) : NULL;
    tn_graph_impl *first;
    if (!ext || !TN_HAS(ext, tn_ext_capture, update) || !ext->update || !prepare_launch(t))
        return false;
    first = t->graph;
    t->graph = NULL;
    if (ext->begin(t->s.stream) == TN_OK) {
        if (t->s.memory->fill(t->s.device, t->s.stream, t->memory[0], 0, 5, BYTES) != TN_OK)
            ext->abandon(t->s.stream);
        else if (ext->end(t->s.stream, &t->other) != TN_OK)
            t->other = NULL;
    }
    t->graph = first;
    return t->other != NULL;
}

/* An update that failed left both graphs what they were. */
static tn_status try_update(trial *t) {
    const tn_ext_capture *ext = capture(t);
    const tc_subject *s = &t->s;
    unsigned char back[BYTES] = {0};
    tn_status status = ext->update(t->graph, t->other);
    if (status == TN_ERR_UNSUPPORTED)
        return TN_OK;
    if (ext->launch(t->graph, s->stream) == TN_OK && tc_subject_sync(&t->s) == TN_OK &&
        s->memory->copy_to_host(s->device, s->stream, back, 0, t->memory[0], 0, BYTES) == TN_OK &&
        back[BYTES - 1] != (status == TN_OK || t->updated ? 5 : 9))
        TC_BROKEN(t->k, TNP_HOST_ALLOC_FAILURE,
                  "after an update %s a launch of the graph filled with %d",
                  status == TN_OK ? "" : "that failed for want of host memory", back[BYTES - 1]);
    t->updated = t->updated || status == TN_OK;
    return status;
}

static void finish_update(trial *t) {
    if (t->other)
        capture(t)->destroy(t->other);
    finish_launch(t);
}

static void nothing(trial *t) {
    (void)t;
}

static const step stages[] = {
    {"init", TNP_INIT_RESULT, false, NULL, try_init, undo_init, nothing, NULL},
    {"open", TNP_OPEN_DEVICE, false, prepare_init, try_open, undo_open, nothing, NULL},
    {"stream", TNP_STREAM_CREATE, true, prepare_device, try_stream, undo_stream, nothing, NULL},
    {"event", TNP_EVENT_CREATE, true, has_streams, try_event, undo_event, nothing, NULL},
    {"record", TNP_EVENT_RECORD, true, prepare_record, try_record, nothing, finish_record,
     arm_record},
    {"alloc", TNP_ALLOC_HANDLE, true, NULL, try_alloc, undo_alloc, nothing, NULL},
    {"pinned", TNP_ALLOC_HANDLE, true, has_pinned, try_pinned, undo_pinned, nothing, NULL},
    {"transfer", TNP_TRANSFER_RANGE, true, prepare_transfer, try_transfer, nothing, finish_transfer,
     NULL},
    {"capture", TNP_CAPTURE_REPLAYS, true, prepare_capture, try_capture, nothing, finish_transfer,
     NULL},
    {"launch", TNP_CAPTURE_REPLAYS, true, prepare_launch, try_launch, nothing, finish_launch, NULL},
    {"update", TNP_CAPTURE_UPDATE, true, prepare_update, try_update, nothing, finish_update, NULL},
    {"large", TNP_TRANSFER_RANGE, true, prepare_large, try_large, undo_large, finish_transfer,
     arm_large},
    {"huge", TNP_TRANSFER_RANGE, true, prepare_huge, try_huge, undo_huge, finish_transfer,
     arm_huge},
    {"peer", TNP_COPY_PEER, true, prepare_peer, try_peer, nothing, finish_peer, NULL},
    {"kernel", TNP_KERNEL_RESULT, true, prepare_kernel, try_kernel, undo_kernel, finish_kernel,
     NULL},
};

/* ---- trials ------------------------------------------------------------------------------ */

/* One attempt of which allocation n fails. Returns whether one did. */
static bool attempt(trial *t, const step *stage, int64_t n) {
    tc_contract *k = t->k;
    char what[TC_MESSAGE];
    snprintf(what, sizeof what, "%s%s%.60s, when allocation %lld of host memory in it fails,",
             stage->name, t->line ? " " : "", t->line ? t->line : "", (long long)n);
    tc_host_forget();
    if (stage->arm && !stage->arm(t))
        return false;
    tc_host_fail_after(n);
    tn_status status = stage->attempt(t);
    bool failed = tc_host_failed();
    tc_host_fail_after(-1);
    if (status == TN_OK)
        stage->undo(t);
    else if (failed)
        tc_must_fail(k, TNP_HOST_ALLOC_FAILURE, status, TN_ERR_OUT_OF_MEMORY, what);
    else
        tc_must(k, stage->requirement, status, stage->name);
    return failed;
}

static bool prepare(trial *t, const step *stage) {
    char why[TC_MESSAGE];
    tc_contract *k = t->k;
    if (stage->opens) {
        if (!tc_lifecycle_open(k, &t->s, tc_host_table(), TNP_NONE, "before host memory runs out"))
            return false;
    } else if (!tc_subject_load(&t->s, k->options->plugin, tc_host_table(), why))
        return TC_BROKEN(k, t->s.broken, "%s", why);
    return !stage->prepare || stage->prepare(t);
}

/* Allocation n fails, twice; then the call succeeds. False when no allocation has that number, or
 * the case is over. */
static bool try_number(tc_contract *k, const step *stage, const char *line, int64_t n,
                       bool *out_offered) {
    trial t = {.k = k, .line = line};
    bool failed = false;
    *out_offered = prepare(&t, stage);
    if (*out_offered) {
        failed = attempt(&t, stage, n);
        uint64_t before = 0, after = 1;
        for (int i = 0; failed && stage->opens && before != after && i < 3;
             i++) { /* other programs take some and give some back, but not each time */
            before = tc_free_bytes(&t.s);
            after = attempt(&t, stage, n) ? tc_free_bytes(&t.s) : before;
        }
        if (failed && stage->opens && before != after)
            TC_BROKEN(k, TNP_ALLOC_OUT_OF_MEMORY,
                      "%s: after each failure for want of host memory (allocation %lld) info has "
                      "%s free device memory",
                      stage->name, (long long)n, after < before ? "less" : "more");
        int64_t blocks = tc_host_blocks();
        if (failed && attempt(&t, stage, n) && tc_host_blocks() > blocks)
            TC_BROKEN(k, TNP_HOST_ALLOC_FAILURE,
                      "%s: each failure for want of host memory (allocation %lld) keeps "
                      "some",
                      stage->name, (long long)n);
        tc_host_forget();
        tn_status status = stage->attempt(&t);
        if (tc_must(k, TNP_HOST_ALLOC_FAILURE, status,
                    "the same call once there is host memory again"))
            stage->undo(&t);
    }
    if (stage->finish)
        stage->finish(&t);
    tc_subject_close(&t.s);
    tc_arena_finish(&k->arena);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED,
                          "after calls that lacked host memory, and shutdown");
    return failed && !tc_failed(k);
}

enum { MOST = 400 };

static bool try_stage(tc_contract *k, const step *stage, const char *line) {
    bool offered = true;
    for (int64_t n = 0; n < MOST && try_number(k, stage, line, n, &offered); n++)
        ;
    return offered;
}

static const char *const lines[] = {
    "kernel/add T=f32 self=[5,13] other=[5,13] alpha=2 data=exact",
    "kernel/add T=f32 self=[512,300] other=[512,300] alpha=2 data=exact",
    "kernel/copy S=f32 D=f32 self=[5,13] data=exact",
    "kernel/sum T=f32 self=[20,30] dim=[1] data=exact",
    "kernel/bmm T=f32 self=[2,33,40] mat2=[2,40,35] data=exact",
    "kernel/softmax T=f32 self=[20,30] dim=1 data=exact",
    "kernel/fill T=f32 value=3 out=[5,13] data=exact",
};

static void host_memory_fails(tc_contract *k) {
    const char *name = tc_contract_word(k, "stage");
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        if (strcmp(stages[i].name, name) != 0)
            continue;
        if (strcmp(name, "kernel") != 0) {
            if (!try_stage(k, &stages[i], NULL) && !tc_failed(k))
                TC_NOT_OFFERED(k, "the device has nothing of stage=%s", name);
            return;
        }
        for (size_t n = 0; n < sizeof lines / sizeof *lines && !tc_failed(k); n++)
            try_stage(k, &stages[i], lines[n]);
        return;
    }
    TC_CASE_ERROR(k->out, "stage=%s: there is no such stage", name);
}

const tc_contract_row tc_host_memory_rows[] = {
    {"host-memory-fails", "stage=init", TC_SMOKE, host_memory_fails},
    {"host-memory-fails", "stage=open", TC_SMOKE, host_memory_fails},
    {"host-memory-fails", "stage=stream", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=event", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=record", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=alloc", TC_SMOKE, host_memory_fails},
    {"host-memory-fails", "stage=pinned", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=transfer", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=capture", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=launch", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=update", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=large", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=huge", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=peer", TC_STANDARD, host_memory_fails},
    {"host-memory-fails", "stage=kernel", TC_STANDARD, host_memory_fails},
    {0},
};
