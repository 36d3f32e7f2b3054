/* A device that is lost, where the plugin can be told to lose one: by an option `lose`, whose value
 * "D:N" makes device D lost at its Nth command. A plugin offers it by asking for it in `init`.
 */
#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/kernel/execute.h"

#include <tenon/ext/capture.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BYTES = 4096, COMMANDS = 200, MOST = 20000 };

static struct {
    char value[32];
    bool asked;
} lose;

static const char *option(const tn_host *host, const char *name) {
    if (!name || strcmp(name, "lose") != 0)
        return tc_host_table()->option(host, name);
    lose.asked = true;
    return lose.value;
}

/* Two devices of which the first will be lost, and what was made on it before. */
typedef struct scene {
    tc_contract *k;
    tn_host host;
    tc_subject s, other; /* no device: there is one only */
    tn_memory memory, pinned;
    void *pinned_host;
    tn_stream_impl *stream, *unused;
    tn_event_impl *event, *start, *of_other;
    tn_event_impl *never; /* recorded, and without a clock */
    tc_invocation call;
    tc_placed placed;
    bool has_kernel;
} scene;

static bool make_things(scene *n) {
    tc_contract *k = n->k;
    tc_subject *s = &n->s;
    void *host;
    n->has_kernel = tc_lifecycle_call(k, s, TC_WORK_SMALL, &n->call) &&
                    tc_place_call(s, s->stream, &n->call, &n->placed, k->out);
    return tc_must(k, TNP_ALLOC_HANDLE, tc_alloc(s, TN_SPACE_DEVICE, BYTES, &n->memory, &host),
                   "alloc") &&
           (!(s->spaces >> TN_SPACE_PINNED & 1) ||
            tc_must(k, TNP_ALLOC_HANDLE,
                    tc_alloc(s, TN_SPACE_PINNED, BYTES, &n->pinned, &n->pinned_host), "alloc")) &&
           tc_must(k, TNP_STREAM_CREATE, s->ops->streams->create(s->device, 0, &n->stream),
                   "create of a stream") &&
           tc_must(k, TNP_STREAM_CREATE, s->ops->streams->create(s->device, 0, &n->unused),
                   "create of a stream") &&
           tc_must(k, TNP_EVENT_CREATE,
                   s->ops->events->create(s->device, TN_EVENT_TIMING, &n->event),
                   "create of an event") &&
           tc_must(k, TNP_EVENT_CREATE,
                   s->ops->events->create(s->device, TN_EVENT_TIMING, &n->start),
                   "create of an event") &&
           tc_must(k, TNP_EVENT_CREATE, s->ops->events->create(s->device, 0, &n->never),
                   "create of an event") &&
           tc_must(k, TNP_EVENT_RECORD, s->ops->events->record(n->start, n->stream), "record");
}

static bool set_up(tc_contract *k, scene *n) {
    memset(n, 0, sizeof *n);
    n->k = k;
    n->host = *tc_host_table();
    n->host.option = option;
    lose.asked = false;
    snprintf(lose.value, sizeof lose.value, "%u:%d", k->options->device, COMMANDS);
    if (!tc_lifecycle_open(k, &n->s, &n->host, TNP_NONE, "with the option lose"))
        return false;
    if (!lose.asked)
        return TC_NOT_OFFERED(k, "init asks for no option `lose`, by which a device could be lost");
    if (!n->s.ops->streams)
        return TC_NOT_OFFERED(k, "the device has no streams");
    n->other = n->s;
    n->other.device = NULL;
    n->other.stream = NULL;
    uint32_t index = n->s.index ? 0 : 1;
    return (n->s.n_devices < 2 ||
            (tc_lifecycle_open_device(k, &n->s, index, &n->other) &&
             tc_must(k, TNP_STREAM_CREATE,
                     n->other.ops->streams->create(n->other.device, 0, &n->other.stream),
                     "create of a stream") &&
             tc_must(k, TNP_EVENT_CREATE,
                     n->other.ops->events->create(n->other.device, TN_EVENT_TIMING, &n->of_other),
                     "create of an event") &&
             tc_must(k, TNP_EVENT_RECORD,
                     n->other.ops->events->record(n->of_other, n->other.stream), "record"))) &&
           make_things(n);
}

/* All of it is given back, on a lost device too, and that device opened again. */
static void finish(scene *n) {
    tc_subject *s = &n->s;
    if (!s->device)
        return;
    tc_unplace(&n->placed);
    if (n->memory)
        s->memory->dealloc(s->device, TN_SPACE_DEVICE, n->memory);
    if (n->pinned)
        s->memory->dealloc(s->device, TN_SPACE_PINNED, n->pinned);
    if (n->event)
        s->ops->events->destroy(n->event);
    if (n->start)
        s->ops->events->destroy(n->start);
    if (n->never)
        s->ops->events->destroy(n->never);
    if (n->stream)
        s->ops->streams->destroy(n->stream);
    if (n->unused)
        s->ops->streams->destroy(n->unused);
    if (n->of_other)
        s->ops->events->destroy(n->of_other);
    if (n->other.stream)
        s->ops->streams->destroy(n->other.stream);
    if (n->other.device)
        s->ops->close(n->other.device);
}

/* Queues commands until one is answered with the loss. */
static bool lose_by(scene *n, tn_stream_impl *stream) {
    const tc_subject *s = &n->s;
    tn_status status = TN_OK;
    for (int i = 0; i < MOST && status == TN_OK; i++) {
        status = s->memory->fill(s->device, stream, n->memory, 0, (uint8_t)i, BYTES);
        if (status == TN_OK && i % 64 == 63)
            status = s->ops->streams->synchronize(stream);
    }
    return status == TN_ERR_DEVICE_LOST ||
           TC_BROKEN(n->k, TNP_DEVICE_LOST_FAILS,
                     "option lose=%s: after %d commands the device is not lost (%s)", lose.value,
                     MOST, tc_tn_status_name(status));
}

static bool lose_it(scene *n) {
    return lose_by(n, n->stream);
}

#define LOST(n, call, what) \
    do { \
        tc_host_forget(); \
        tn_status status_ = (call); \
        tc_must_fail((n)->k, TNP_DEVICE_LOST_FAILS, status_, TN_ERR_DEVICE_LOST, \
                     what " on a lost device"); \
    } while (0)

/* The loss comes before what else is wrong with two events. */
static void call_elapsed(scene *n) {
    const tn_event_ops *events = n->s.ops->events;
    double ns;
    if (!TN_HAS(events, tn_event_ops, elapsed) || !events->elapsed)
        return;
    LOST(n, events->elapsed(n->start, n->start, &ns), "elapsed");
    LOST(n, events->elapsed(n->start, n->never, &ns), "elapsed to an event without a clock");
    LOST(n, events->elapsed(n->never, n->start, &ns), "elapsed from an event without a clock");
    if (!n->of_other)
        return;
    LOST(n, events->elapsed(n->start, n->of_other, &ns), "elapsed to an event of another device");
    LOST(n, events->elapsed(n->of_other, n->start, &ns), "elapsed from an event of another device");
}

static void call_events(scene *n) {
    const tn_event_ops *events = n->s.ops->events;
    tn_event_impl *event = NULL;
    LOST(n, events->create(n->s.device, 0, &event), "create of an event");
    LOST(n, events->create(n->s.device, 0x80000000, &event),
         "create of an event with an unknown flag");
    LOST(n, events->record(n->event, n->stream), "record of an event");
    LOST(n, events->wait(n->stream, n->start), "wait for an event");
    LOST(n, events->query(n->event), "query of an event");
    LOST(n, events->query(n->start), "query of an event that was passed before");
    LOST(n, events->synchronize(n->start), "synchronize of an event");
    LOST(n, events->wait(n->stream, n->never), "wait for an event that was never recorded");
    LOST(n, events->query(n->never), "query of an event that was never recorded");
    LOST(n, events->synchronize(n->never), "synchronize of an event that was never recorded");
    call_elapsed(n);
    if (!n->of_other)
        return;
    LOST(n, events->wait(n->other.stream, n->start),
         "wait of another device's stream for an event");
    LOST(n, events->wait(n->other.stream, n->never),
         "wait of another device's stream for an event that was never recorded");
    LOST(n, events->wait(n->stream, n->of_other), "wait for an event of another device");
}

static void call_everything(scene *n) {
    tc_subject *s = &n->s;
    const tn_memory_ops *m = s->memory;
    unsigned char bytes[64] = {0};
    tn_memory memory;
    tn_stream_impl *stream = NULL;
    void *host;
    LOST(n, tc_alloc(s, TN_SPACE_DEVICE, 100, &memory, &host), "alloc");
    if (s->spaces >> TN_SPACE_PINNED & 1)
        LOST(n, tc_alloc(s, TN_SPACE_PINNED, 100, &memory, &host), "alloc of pinned memory");
    LOST(n,
         m->alloc(s->device, &(tn_allocation){.struct_size = sizeof(tn_allocation),
                                              .bytes = 100,
                                              .alignment = s->alignment,
                                              .flags = 0x80000000}),
         "alloc with an unknown flag");
    if (TN_HAS(m, tn_memory_ops, info) && m->info) {
        LOST(n,
             m->info(s->device, TN_SPACE_DEVICE, &(tn_memory_info){sizeof(tn_memory_info), 0, 0}),
             "info");
        LOST(n, m->info(s->device, 1000, &(tn_memory_info){sizeof(tn_memory_info), 0, 0}),
             "info of an unknown space");
    }
    LOST(n, m->copy_from_host(s->device, n->stream, n->memory, 0, bytes, 0, 64), "copy_from_host");
    LOST(n, m->copy_to_host(s->device, n->stream, bytes, 0, n->memory, 0, 64), "copy_to_host");
    LOST(n, m->copy(s->device, n->stream, n->memory, 0, n->memory, 1000, 64), "copy");
    LOST(n, m->fill(s->device, n->stream, n->memory, 0, 1, 64), "fill");
    LOST(n, m->copy_from_host(s->device, n->stream, n->memory, 0, bytes, 0, 0),
         "copy_from_host of no bytes");
    LOST(n, m->copy_to_host(s->device, n->stream, bytes, 0, n->memory, 0, 0),
         "copy_to_host of no bytes");
    LOST(n, m->copy(s->device, n->stream, n->memory, 0, n->memory, 1000, 0), "copy of no bytes");
    LOST(n, m->fill(s->device, n->stream, n->memory, 0, 1, 0), "fill of no bytes");
    if (n->pinned) {
        LOST(n,
             m->copy_from_host(s->device, n->stream, n->memory, 0, n->pinned_host, n->pinned, 64),
             "copy_from_host of pinned memory");
        LOST(n, m->copy_to_host(s->device, n->stream, n->pinned_host, n->pinned, n->memory, 0, 64),
             "copy_to_host of pinned memory");
        LOST(n, m->copy_from_host(s->device, n->stream, n->memory, 0, n->pinned_host, n->pinned, 0),
             "copy_from_host of no bytes of pinned memory");
        LOST(n, m->copy_to_host(s->device, n->stream, n->pinned_host, n->pinned, n->memory, 0, 0),
             "copy_to_host of no bytes of pinned memory");
    }
    LOST(n, s->ops->streams->create(s->device, 0, &stream), "create of a stream");
    LOST(n, s->ops->streams->query(n->stream), "query of a stream");
    LOST(n, s->ops->streams->synchronize(n->stream), "synchronize of a stream");
    LOST(n, s->ops->streams->query(n->unused), "query of a stream that was never used");
    LOST(n, s->ops->streams->synchronize(n->unused), "synchronize of a stream that was never used");
    call_events(n);
    if (n->other.device && TN_HAS(m, tn_memory_ops, copy_peer) && m->copy_peer &&
        tc_alloc(&n->other, TN_SPACE_DEVICE, 64, &memory, &host) == TN_OK) {
        LOST(n,
             m->copy_peer(n->other.device, n->other.stream, memory, 0, s->device, n->memory, 0, 64),
             "copy_peer from a device");
        LOST(n,
             m->copy_peer(n->other.device, n->other.stream, memory, 0, s->device, n->memory, 0, 0),
             "copy_peer of no bytes from a device");
        LOST(n, m->copy_peer(s->device, n->stream, n->memory, 0, n->other.device, memory, 0, 64),
             "copy_peer to a device");
        m->dealloc(n->other.device, TN_SPACE_DEVICE, memory);
    }
    if (n->has_kernel)
        LOST(n, tc_call_placed(&n->placed), "run of a kernel");
}

/* Others go on, and the device comes back when it is closed and opened again. */
static void look_after(scene *n) {
    tc_contract *k = n->k;
    if (n->other.device && !tc_failed(k))
        tc_lifecycle_probe(k, &n->other, TC_WORK_SMALL, TNP_DEVICE_LOST_FAILS,
                           "on a device beside one that was lost", NULL);
    finish(n);
    if (tc_failed(k) || !n->s.device) {
        tc_subject_close(&n->s);
        return;
    }
    tc_subject again;
    n->s.ops->streams->destroy(n->s.stream);
    n->s.ops->close(n->s.device);
    n->s.stream = NULL;
    n->s.device = NULL;
    if (tc_lifecycle_open_device(k, &n->s, n->s.index, &again)) {
        if (tc_must(k, TNP_DEVICE_LOST_RELEASE,
                    again.ops->streams->create(again.device, 0, &again.stream),
                    "create of a stream on a device that was lost, closed and opened again")) {
            tc_lifecycle_probe(k, &again, TC_WORK_SMALL, TNP_DEVICE_LOST_RELEASE,
                               "on a device that was lost, closed and opened again", NULL);
            again.ops->streams->destroy(again.stream);
        }
        again.ops->close(again.device);
    }
    tc_subject_close(&n->s);
    tc_lifecycle_balanced(k, TNP_DEVICE_LOST_RELEASE, "after a device was lost, and shutdown");
}

/* Each call, and each again. */
static void lost_calls(tc_contract *k) {
    static scene n;
    if (set_up(k, &n) && lose_it(&n)) {
        call_everything(&n);
        call_everything(&n);
    }
    look_after(&n);
}

/* Lost with work in its queues: who asks or waits is told, and does not wait for ever. */
static void lost_at_work(tc_contract *k) {
    static scene n;
    if (set_up(k, &n)) {
        const tc_subject *s = &n.s;
        const tn_event_ops *events = s->ops->events;
        tn_status status = TN_OK;
        for (int i = 0; i < 2 * COMMANDS && status == TN_OK; i++)
            status = s->memory->fill(s->device, n.stream, n.memory, 0, (uint8_t)i, BYTES);
        if (status == TN_OK)
            status = events->record(n.event, n.stream);
        if (status == TN_OK)
            status = events->wait(s->stream, n.event);
        if (status == TN_OK && n.other.stream)
            status = events->wait(n.other.stream, n.event);
        if (status == TN_OK || status == TN_ERR_DEVICE_LOST) {
            if (n.other.stream)
                tc_must(k, TNP_DEVICE_LOST_FAILS, s->ops->streams->synchronize(n.other.stream),
                        "synchronize of a stream that waits for an event of another, lost device");
            LOST(&n, s->ops->streams->synchronize(s->stream),
                 "synchronize of a stream that waits for work");
            LOST(&n, events->synchronize(n.event), "synchronize of an event behind work");
            LOST(&n, events->query(n.event), "query of an event behind work");
            LOST(&n, s->ops->streams->query(n.stream), "query of a stream with work");
            LOST(&n, s->ops->streams->synchronize(n.stream), "synchronize of a stream with work");
        } else {
            tc_must(k, TNP_DEVICE_LOST_FAILS, status, "a call while the device is lost");
        }
    }
    look_after(&n);
}

/* A graph of so many fills; NULL where the device cannot capture, or was lost meanwhile. */
static tn_graph_impl *capture_fills(scene *n, const tn_ext_capture *ext, int fills) {
    tn_graph_impl *graph = NULL;
    tn_status status = ext->begin(n->stream);
    if (status != TN_OK)
        return NULL;
    for (int i = 0; i < fills && status == TN_OK; i++)
        status = n->s.memory->fill(n->s.device, n->stream, n->memory, 0, 1, BYTES);
    if (status != TN_OK || ext->end(n->stream, &graph) != TN_OK)
        ext->abandon(n->stream);
    return graph;
}

/* Lost with launches of a graph in two queues, one waiting for the other's: all of them are over. */
static void lost_with_launches(tc_contract *k) {
    static scene n;
    if (set_up(k, &n)) {
        const tc_subject *s = &n.s;
        const tn_ext_capture *ext = tc_subject_extension(s, TN_EXT_CAPTURE);
        tn_graph_impl *graph = ext ? capture_fills(&n, ext, 1) : NULL;
        tn_graph_impl *other = graph ? capture_fills(&n, ext, 1) : NULL;
        tn_graph_impl *nothing = other ? capture_fills(&n, ext, 0) : NULL;
        if (!graph)
            TC_NOT_OFFERED(k, "no captures");
        tn_status status = TN_OK;
        for (int i = 0; i < 2 * COMMANDS && graph && status == TN_OK; i++) {
            status = s->memory->fill(s->device, n.stream, n.memory, 0, (uint8_t)i, BYTES);
            if (status == TN_OK)
                status = ext->launch(graph, i % 2 ? n.stream : s->stream);
        }
        if (graph) {
            LOST(&n, s->ops->streams->synchronize(n.stream), "synchronize behind launches");
            LOST(&n, s->ops->streams->synchronize(s->stream), "synchronize behind launches");
            LOST(&n, ext->launch(graph, n.stream), "launch");
            if (nothing)
                LOST(&n, ext->launch(nothing, n.stream), "launch of a graph of nothing");
            LOST(&n, ext->begin(n.stream), "begin of a capture");
            if (other && TN_HAS(ext, tn_ext_capture, update) && ext->update)
                LOST(&n, ext->update(graph, other), "update of a graph");
            ext->destroy(graph);
            if (other)
                ext->destroy(other);
            if (nothing)
                ext->destroy(nothing);
        }
    }
    look_after(&n);
}

/* What a stream that captures refuses, and what it would record: the loss is told first. */
static void call_while_capturing(scene *n, const tn_ext_capture *ext, tn_graph_impl *graph) {
    tn_graph_impl *none = NULL;
    call_everything(n);
    LOST(n, ext->begin(n->stream), "begin where a stream captures");
    LOST(n, ext->launch(graph, n->stream), "launch where a stream captures");
    LOST(n, ext->end(n->stream, &none), "end of a capture");
    LOST(n, ext->end(n->stream, &none), "end of a capture that is over");
}

/* Lost by work on another stream while one captures: its end fails, and keeps nothing of what was
 * recorded. */
static void lost_while_capturing(tc_contract *k) {
    static scene n;
    if (set_up(k, &n)) {
        const tc_subject *s = &n.s;
        const tn_ext_capture *ext = tc_subject_extension(s, TN_EXT_CAPTURE);
        tn_graph_impl *graph = ext ? capture_fills(&n, ext, 1) : NULL;
        tn_status status = graph ? ext->begin(n.stream) : TN_ERR_UNSUPPORTED;
        if (status != TN_OK)
            TC_NOT_OFFERED(k, "no captures");
        for (int i = 0; i < 5 && status == TN_OK; i++)
            status = s->memory->fill(s->device, n.stream, n.memory, 0, (uint8_t)i, BYTES);
        if (status == TN_OK && lose_by(&n, s->stream))
            call_while_capturing(&n, ext, graph);
        if (graph) {
            ext->abandon(n.stream);
            ext->destroy(graph);
        }
    }
    look_after(&n);
}

/* Transfers until the device is lost at its `at`th command: what says that it was done was done. */
static void lose_at(tc_contract *k, int at) {
    tc_subject s;
    tn_host host = *tc_host_table();
    tn_memory memory;
    void *where;
    unsigned char bytes[BYTES], back[BYTES];
    host.option = option;
    lose.asked = false;
    snprintf(lose.value, sizeof lose.value, "%u:%d", k->options->device, at);
    if (!tc_lifecycle_open(k, &s, &host, TNP_NONE, "with the option lose"))
        return;
    tn_status status = tc_alloc(&s, TN_SPACE_DEVICE, BYTES, &memory, &where);
    bool has = status == TN_OK;
    for (int i = 0; lose.asked && status == TN_OK && i < 100 && !tc_failed(k); i++) {
        memset(bytes, i + 1, sizeof bytes);
        memset(back, 0, sizeof back);
        status = s.memory->copy_from_host(s.device, s.stream, memory, 0, bytes, 0, BYTES);
        if (status == TN_OK)
            status = s.memory->copy_to_host(s.device, s.stream, back, 0, memory, 0, BYTES);
        if (status == TN_OK && memcmp(bytes, back, BYTES) != 0)
            TC_BROKEN(k, TNP_READ_COMPLETE,
                      "copy_to_host says TN_OK, and other bytes came than were written; the device "
                      "is lost at its command %d",
                      at);
    }
    if (status != TN_OK && status != TN_ERR_DEVICE_LOST)
        tc_must(k, TNP_DEVICE_LOST_FAILS, status, "a transfer while the device is lost");
    if (!lose.asked)
        TC_NOT_OFFERED(k, "init asks for no option `lose`, by which a device could be lost");
    if (has)
        s.memory->dealloc(s.device, TN_SPACE_DEVICE, memory);
    tc_subject_close(&s);
}

static void lost_in_transfers(tc_contract *k) {
    for (int at = 1; at <= 12 && !tc_failed(k); at++)
        lose_at(k, at);
}

/* ---- lost while another thread waits ----------------------------------------------------- */

enum { IN_STREAM, IN_EVENT, IN_READ, IN_DESTROY, NOBODY, N_IN };

typedef struct sleeper {
    const scene *n;
    int way;
    tn_stream_impl *stream; /* waits for the other device */
    tn_status status;
} sleeper;

static void *sleep_in(void *context) {
    sleeper *w = context;
    const tc_subject *s = &w->n->s;
    unsigned char bytes[64];
    if (w->way == IN_STREAM)
        w->status = s->ops->streams->synchronize(w->stream);
    else if (w->way == IN_EVENT)
        w->status = s->ops->events->synchronize(w->n->event);
    else if (w->way == IN_READ)
        w->status =
            s->memory->copy_to_host(s->device, w->stream, bytes, 0, w->n->memory, 0, sizeof bytes);
    else
        s->ops->streams->destroy(w->stream);
    return NULL;
}

/* Behind work of the other device, which takes a while and is not lost. */
static bool hold_back(scene *n, sleeper *w, tc_work *work) {
    tc_contract *k = n->k;
    const tn_event_ops *events = n->s.ops->events;
    tn_device_impl *device = n->s.device;
    return tc_work_create(k, &n->other, work) &&
           tc_must(k, TNP_STREAM_CREATE, n->s.ops->streams->create(device, 0, &w->stream),
                   "create of a stream") &&
           tc_work_hold(k, work, n->other.stream, 0.15) &&
           tc_must(k, TNP_EVENT_RECORD, events->record(n->of_other, n->other.stream), "record") &&
           tc_must(k, TNP_EVENT_WAIT, events->wait(w->stream, n->of_other), "wait") &&
           tc_must(k, TNP_FILL_VALUE, n->s.memory->fill(device, w->stream, n->memory, 0, 1, BYTES),
                   "fill") &&
           tc_must(k, TNP_EVENT_RECORD, events->record(n->event, w->stream), "record");
}

/* A wait that goes on when the device is lost returns, at the latest when what it waits for is over. */
static void lose_under(scene *n, sleeper *w) {
    static const char *const what[N_IN] = {"synchronize of a stream, while the device was lost",
                                           "synchronize of an event, while the device was lost",
                                           "copy_to_host, while the device was lost"};
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleep_in, w) != 0) {
        TC_CASE_ERROR(n->k->out, "a thread cannot be started");
        return;
    }
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    lose_it(n);
    pthread_join(thread, NULL);
    if (w->status != TN_ERR_DEVICE_LOST)
        tc_must(n->k, TNP_DEVICE_LOST_FAILS, w->status, what[w->way]);
    n->s.ops->streams->synchronize(n->other.stream);
}

/* Whoever asks is told of the loss, and not that work is left, each time. */
static void ask_under(scene *n, sleeper *w) {
    const tn_event_ops *events = n->s.ops->events;
    double ns;
    if (!lose_it(n))
        return;
    for (int i = 0; i < 3; i++) {
        LOST(n, n->s.ops->streams->query(w->stream),
             "query of a stream that another device holds up");
        LOST(n, events->query(n->event), "query of an event that another device holds up");
        if (TN_HAS(events, tn_event_ops, elapsed) && events->elapsed)
            LOST(n, events->elapsed(n->start, n->event, &ns),
                 "elapsed to an event that another device holds up");
    }
    n->s.ops->streams->synchronize(n->other.stream);
}

static void lost_while_waiting(tc_contract *k) {
    static scene n;
    for (int way = 0; way < N_IN && !tc_failed(k); way++) {
        tc_work work;
        sleeper w = {.n = &n, .way = way, .status = TN_OK};
        bool ok = set_up(k, &n);
        if (ok && !n.other.device)
            ok = TC_NOT_OFFERED(k, "the plugin has one device");
        if (ok && hold_back(&n, &w, &work))
            (way == NOBODY ? ask_under : lose_under)(&n, &w);
        if (w.stream && way != IN_DESTROY)
            n.s.ops->streams->destroy(w.stream);
        if (n.other.device)
            tc_release(k, n.other.device);
        look_after(&n);
    }
}

const tc_contract_row tc_lost_rows[] = {
    {"lost-calls", "", TC_SMOKE, lost_calls},
    {"lost-at-work", "", TC_SMOKE, lost_at_work},
    {"lost-with-launches", "", TC_SMOKE, lost_with_launches},
    {"lost-while-capturing", "", TC_SMOKE, lost_while_capturing},
    {"lost-in-transfers", "", TC_SMOKE, lost_in_transfers},
    {"lost-while-waiting", "", TC_STANDARD, lost_while_waiting},
    {0},
};
