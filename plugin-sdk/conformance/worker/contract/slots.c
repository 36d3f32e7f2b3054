/* The calls of hands: each slot that any thread may call. */
#include "plugin-sdk/conformance/worker/contract/hand.h"

#include <stdio.h>
#include <string.h>

static void must(tc_hand *h, tn_status status, const char *what) {
    char reason[TC_MESSAGE];
    if (status != TN_OK && !*h->wrong)
        snprintf(h->wrong, sizeof h->wrong, "%s failed: %.200s", what, tc_reason(status, reason));
}

static void check(tc_hand *h, bool holds, const char *what) {
    if (!holds && !*h->wrong)
        snprintf(h->wrong, sizeof h->wrong, "%s", what);
}

/* ---- transfers --------------------------------------------------------------------------- */

/* Where a round writes to and reads from, how much, and which byte. */
static uint64_t at(const tc_hand *h, int round) {
    return h->most * (uint64_t)round;
}
static uint64_t source(const tc_hand *h, int round) {
    return (uint64_t)round * 7 % h->most;
}
static uint64_t size(const tc_hand *h, int round) {
    return 1 + ((uint64_t)round * 40503 + (uint64_t)h->number * 517) % h->most;
}
static int value(const tc_hand *h, int round) {
    return (2 * round + h->number + 1) & 0xff;
}

static bool always(const tc_hand *h) {
    return true;
}
static bool has_pinned(const tc_hand *h) {
    return h->pinned_to.bytes;
}

static void fill(tc_hand *h, int round) {
    uint64_t n = size(h, round);
    memset(h->to.model + at(h, round), value(h, round), n);
    must(h,
         h->s->memory->fill(h->s->device, h->stream, h->to.memory, at(h, round),
                            (uint8_t)value(h, round), n),
         "fill");
}

static void write(tc_hand *h, int round) {
    uint64_t n = size(h, round);
    memset(h->scratch, value(h, round), n);
    memset(h->to.model + at(h, round), value(h, round), n);
    must(h,
         h->s->memory->copy_from_host(h->s->device, h->stream, h->to.memory, at(h, round),
                                      h->scratch, 0, n),
         "copy_from_host");
    memset(h->scratch, 0xee, n); /* it was consumed */
}

static void write_pinned(tc_hand *h, int round) {
    uint64_t n = size(h, round), from = source(h, round);
    memcpy(h->to.model + at(h, round), h->pinned_from.model + from, n);
    must(h,
         h->s->memory->copy_from_host(h->s->device, h->stream, h->to.memory, at(h, round),
                                      (char *)h->pinned_from.host + from, h->pinned_from.memory, n),
         "copy_from_host of pinned memory");
}

static void read(tc_hand *h, int round) {
    uint64_t n = size(h, round), from = source(h, round);
    must(
        h,
        h->s->memory->copy_to_host(h->s->device, h->stream, h->scratch, 0, h->from.memory, from, n),
        "copy_to_host");
    check(h, memcmp(h->scratch, h->from.model + from, n) == 0,
          "copy_to_host brought other bytes than the memory holds");
}

static void read_pinned(tc_hand *h, int round) {
    uint64_t n = size(h, round), from = source(h, round);
    memcpy(h->pinned_to.model + at(h, round), h->from.model + from, n);
    must(h,
         h->s->memory->copy_to_host(h->s->device, h->stream,
                                    (char *)h->pinned_to.host + at(h, round), h->pinned_to.memory,
                                    h->from.memory, from, n),
         "copy_to_host of pinned memory");
}

static void copy(tc_hand *h, int round) {
    uint64_t n = size(h, round), from = source(h, round);
    memcpy(h->to.model + at(h, round), h->from.model + from, n);
    must(h,
         h->s->memory->copy(h->s->device, h->stream, h->to.memory, at(h, round), h->from.memory,
                            from, n),
         "copy");
}

/* ---- memory, questions, what is refused -------------------------------------------------- */

static void take_and_give(tc_hand *h, int32_t space, int round) {
    tn_memory memory = 0;
    void *host;
    tn_status status = tc_alloc(h->s, space, size(h, round), &memory, &host);
    must(h, status, "alloc");
    check(h, status != TN_OK || memory, "alloc gave the handle 0");
    if (status == TN_OK)
        h->s->memory->dealloc(h->s->device, space, memory);
}

static void alloc(tc_hand *h, int round) {
    take_and_give(h, TN_SPACE_DEVICE, round);
}
static void alloc_pinned(tc_hand *h, int round) {
    take_and_give(h, TN_SPACE_PINNED, round);
}

static bool has_info(const tc_hand *h) {
    return TN_HAS(h->s->memory, tn_memory_ops, info) && h->s->memory->info;
}

static void info(tc_hand *h, int round) {
    tn_memory_info i = {.struct_size = sizeof i};
    must(h, h->s->memory->info(h->s->device, TN_SPACE_DEVICE, &i), "info");
}

static void property(tc_hand *h, int round) {
    tn_cell cell = {0};
    tn_status status = h->s->ops->property(h->s->self, h->s->index, TN_PROP_ALIGNMENT, &cell);
    check(h, status == TN_ERR_UNSUPPORTED || (uint64_t)cell.v.i64 == h->s->alignment,
          "the alignment is another than before");
    must(h, h->s->ops->property(h->s->self, h->s->index, TN_PROP_NAME, &cell), "TN_PROP_NAME");
}

/* The message is of the thread whose call failed. */
static void refused(tc_hand *h, int round) {
    tn_allocation a = {.struct_size = sizeof a,
                       .bytes = 64,
                       .alignment = h->s->alignment,
                       .space = TN_SPACE_DEVICE,
                       .flags = 1u << 31};
    tc_host_forget();
    check(h, h->s->memory->alloc(h->s->device, &a) == TN_ERR_UNSUPPORTED,
          "alloc with an unknown flag is not refused as TN_ERR_UNSUPPORTED");
    check(h, *tc_host_message(), "alloc was refused without a message to the thread that called");
    tc_host_forget();
}

static bool has_kernel(const tc_hand *h) {
    return h->has_kernel;
}
static void kernel(tc_hand *h, int round) {
    tn_status status = tc_call_placed(&h->placed); /* it may decline now and then */
    must(h, status == TN_ERR_UNSUPPORTED ? TN_OK : status, "a kernel");
}

/* ---- streams and events ------------------------------------------------------------------ */

static bool has_streams(const tc_hand *h) {
    return h->stream;
}

/* Its work is done when it is gone. */
static void stream(tc_hand *h, int round) {
    const tn_stream_ops *streams = h->s->ops->streams;
    tn_stream_impl *made = NULL;
    uint64_t n = size(h, round);
    tn_status status = streams->create(h->s->device, round % 3 - 1, &made);
    must(h, status, "create of a stream");
    if (status != TN_OK)
        return;
    if (round % 2)
        must(h, h->s->ops->events->wait(made, h->event), "wait of a new stream");
    memset(h->to.model + at(h, round), value(h, round), n);
    must(h,
         h->s->memory->fill(h->s->device, made, h->to.memory, at(h, round),
                            (uint8_t)value(h, round), n),
         "fill");
    streams->destroy(made);
}

static void event(tc_hand *h, int round) {
    tn_event_impl *made = NULL;
    tn_status status = h->s->ops->events->create(h->s->device, round % 2, &made);
    must(h, status, "create of an event");
    if (status != TN_OK)
        return;
    if (round % 4 == 3) {
        must(h, h->s->ops->events->record(made, h->stream), "record of a new event");
        must(h, h->s->ops->events->wait(h->captures, made), "wait for a new event");
    }
    h->s->ops->events->destroy(made);
}

/* So that who waits does. */
static void queue_some(tc_hand *h, int round) {
    for (int i = 0; i < 16 && round % 2; i++)
        fill(h, round);
}

static void record(tc_hand *h, int round) {
    must(h, h->s->ops->events->record(h->event, h->stream), "record of an event");
}
static void wait(tc_hand *h, int round) {
    must(h, h->s->ops->events->wait(h->stream, h->event), "wait for an event");
}
static void ask_event(tc_hand *h, int round) {
    tn_status status = h->s->ops->events->query(h->event);
    must(h, status == TN_NOT_READY ? TN_OK : status, "query of an event");
}
static void await_event(tc_hand *h, int round) {
    queue_some(h, round);
    if (round % 2)
        record(h, round);
    must(h, h->s->ops->events->synchronize(h->event), "synchronize of an event");
}
static void ask_stream(tc_hand *h, int round) {
    tn_status status = h->s->ops->streams->query(h->stream);
    must(h, status == TN_NOT_READY ? TN_OK : status, "query of a stream");
}
static void await_stream(tc_hand *h, int round) {
    queue_some(h, round);
    must(h, h->s->ops->streams->synchronize(h->stream), "synchronize of a stream");
}

static bool has_elapsed(const tc_hand *h) {
    const tn_event_ops *events = h->s->ops->events;
    return h->start && TN_HAS(events, tn_event_ops, elapsed) && events->elapsed;
}
static void elapsed(tc_hand *h, int round) {
    double ns = -1;
    must(h, h->s->ops->events->elapsed(h->start, h->end, &ns), "elapsed");
    check(h, ns == h->elapsed, "elapsed of the same two points is another time than before");
}

/* ---- graphs ------------------------------------------------------------------------------ */

static bool has_graph(const tc_hand *h) {
    return h->graph;
}

/* Behind a fill with another byte where nobody else launches it. */
static void launch(tc_hand *h, int round) {
    if (h->replayed.bytes && !h->shares && round % 2)
        must(h,
             h->s->memory->fill(h->s->device, h->stream, h->replayed.memory, 0, 1,
                                h->replayed.bytes),
             "fill");
    must(h, h->ext->launch(h->graph, h->stream), "launch of a graph");
}

static void capture(tc_hand *h, int round) {
    tn_graph_impl *graph = NULL;
    uint64_t n = size(h, round);
    tn_status status = h->ext->begin(h->captures);
    must(h, status, "begin of a capture");
    if (status != TN_OK)
        return;
    must(h,
         h->s->memory->fill(h->s->device, h->captures, h->to.memory, at(h, round),
                            (uint8_t)value(h, round), n),
         "fill on a stream that captures");
    status = h->ext->end(h->captures, &graph);
    must(h, status, "end of a capture");
    if (status != TN_OK)
        return;
    memset(h->to.model + at(h, round), value(h, round), n);
    must(h, h->ext->launch(graph, h->captures), "launch of a graph");
    h->ext->destroy(graph);
}

const tc_slot tc_slots[] = {
    {"fill", true, always, fill},
    {"copy_from_host", true, always, write},
    {"copy_from_host of pinned memory", true, has_pinned, write_pinned},
    {"copy_to_host", true, always, read},
    {"copy_to_host of pinned memory", true, has_pinned, read_pinned},
    {"copy", true, always, copy},
    {"alloc and dealloc", false, always, alloc},
    {"alloc and dealloc of pinned memory", false, has_pinned, alloc_pinned},
    {"info", false, has_info, info},
    {"property", false, always, property},
    {"a refused alloc", false, always, refused},
    {"a kernel", false, has_kernel, kernel},
    {"create and destroy of a stream", false, has_streams, stream},
    {"create and destroy of an event", false, has_streams, event},
    {"record", false, has_streams, record},
    {"wait", false, has_streams, wait},
    {"query of an event", false, has_streams, ask_event},
    {"synchronize of an event", false, has_streams, await_event},
    {"query of a stream", false, has_streams, ask_stream},
    {"synchronize of a stream", false, has_streams, await_stream},
    {"elapsed", false, has_elapsed, elapsed},
    {"launch of a graph", false, has_graph, launch},
    {"a capture", false, has_graph, capture},
    {0},
};
