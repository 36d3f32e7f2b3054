/* See hand.h. */
#include "plugin-sdk/conformance/worker/contract/hand.h"

#include "plugin-sdk/conformance/worker/contract/lifecycle.h"

#include <string.h>

enum { REPLAYED = 1000 };

static bool make_buffers(tc_hand *h) {
    tc_contract *k = h->k;
    uint64_t all = h->most * (uint64_t)h->rounds;
    h->scratch = tc_arena_array(&k->arena, h->most, 1);
    if (!h->scratch)
        return TC_CASE_ERROR(k->out, "the host has no memory for this case");
    return tc_buffer_create(k, h->s, TN_SPACE_DEVICE, 2 * h->most, &h->from) &&
           tc_buffer_create(k, h->s, TN_SPACE_DEVICE, all, &h->to) &&
           (!(h->s->spaces >> TN_SPACE_PINNED & 1) ||
            (tc_buffer_create(k, h->s, TN_SPACE_PINNED, 2 * h->most, &h->pinned_from) &&
             tc_buffer_create(k, h->s, TN_SPACE_PINNED, all, &h->pinned_to)));
}

/* Two events with work between them, both passed. */
static bool make_marks(tc_hand *h) {
    tc_contract *k = h->k;
    const tn_event_ops *events = h->s->ops->events;
    return tc_event_create(k, h->s, 0, &h->event) &&
           tc_event_create(k, h->s, TN_EVENT_TIMING, &h->start) &&
           tc_event_create(k, h->s, TN_EVENT_TIMING, &h->end) &&
           tc_must(k, TNP_EVENT_RECORD, events->record(h->start, h->stream), "record") &&
           tc_must(k, TNP_FILL_VALUE,
                   h->s->memory->fill(h->s->device, h->stream, h->replayed.memory, 0, 1, REPLAYED),
                   "fill") &&
           tc_must(k, TNP_EVENT_RECORD, events->record(h->end, h->stream), "record") &&
           tc_must(k, TNP_STREAM_SYNCHRONIZE, h->s->ops->streams->synchronize(h->stream),
                   "synchronize") &&
           (!TN_HAS(events, tn_event_ops, elapsed) || !events->elapsed ||
            tc_must(k, TNP_EVENT_ELAPSED, events->elapsed(h->start, h->end, &h->elapsed),
                    "elapsed"));
}

/* NULL where the device cannot capture; whether it should, other cases see. */
static tn_graph_impl *capture(tc_hand *h) {
    tn_graph_impl *graph = NULL;
    if (!h->ext || h->ext->begin(h->captures) != TN_OK)
        return NULL;
    h->s->memory->fill(h->s->device, h->captures, h->replayed.memory, 0, (uint8_t)(90 + h->number),
                       REPLAYED);
    return h->ext->end(h->captures, &graph) == TN_OK ? graph : NULL;
}

static bool make_streams(tc_hand *h) {
    tc_contract *k = h->k;
    h->ext = tc_subject_extension(h->s, TN_EXT_CAPTURE);
    if (!tc_stream_create(k, h->s, 0, &h->captures))
        return false;
    if (h->shares)
        return true;
    if (!tc_stream_create(k, h->s, 0, &h->stream) ||
        !tc_buffer_create(k, h->s, TN_SPACE_DEVICE, REPLAYED, &h->replayed) || !make_marks(h))
        return false;
    h->graph = capture(h);
    return tc_buffer_fill(k, &h->replayed, h->stream, 90 + h->number) &&
           tc_must(k, TNP_STREAM_SYNCHRONIZE, h->s->ops->streams->synchronize(h->stream),
                   "synchronize");
}

/* What the kernel's outputs hold; 0 where they cannot be read, with the case failed. */
static uint64_t read_bits(tc_hand *h) {
    tc_result result = {0};
    uint64_t bits = UINT64_C(0xcbf29ce484222325);
    if (!tc_read_outs(&h->placed, &result, h->k->out))
        return 0;
    for (uint64_t i = 0; i < h->call.outs[0].tensor.bytes; i++)
        bits = (bits ^ result.outs[0][i]) * UINT64_C(0x100000001b3);
    return bits | 1;
}

static bool make_call(tc_hand *h) {
    char why[TC_MESSAGE];
    if (!tc_lifecycle_call(h->k, h->s, TC_WORK_SMALL, &h->call) || h->call.in_place >= 0)
        return !tc_failed(h->k);
    h->call.seed += (uint64_t)h->number;
    if (!tc_invocation_fill(&h->call, h->call.seed, why))
        return TC_CASE_ERROR(h->k->out, "%s", why);
    if (!tc_place_call(h->s, h->stream, &h->call, &h->placed, h->k->out))
        return !tc_failed(h->k);
    h->has_kernel = tc_call_placed(&h->placed) == TN_OK;
    h->bits = h->has_kernel ? read_bits(h) : 0;
    return !tc_failed(h->k);
}

bool tc_hand_create(tc_hand *h, const tc_hand *other) {
    h->shares = other != NULL;
    if (other) {
        h->stream = other->stream;
        h->event = other->event;
        h->start = other->start;
        h->end = other->end;
        h->elapsed = other->elapsed;
        h->graph = other->graph;
    }
    return make_buffers(h) && (!h->s->ops->streams || make_streams(h)) && make_call(h);
}

void tc_hand_finish(tc_hand *h) {
    if (h->graph && !h->shares)
        h->ext->destroy(h->graph);
    if (h->placed.subject)
        tc_unplace(&h->placed);
}

/* As far as rounds have come. */
static bool check_places(tc_hand *h, const tc_buffer *b, const char *what) {
    tc_buffer used = *b;
    used.bytes = h->most * (uint64_t)h->used;
    return used.bytes == 0 || tc_buffer_check(h->k, &used, h->stream, TNP_THREADS_CONCURRENT, what);
}

bool tc_hand_check(tc_hand *h, const char *what) {
    tc_contract *k = h->k;
    if (*h->wrong)
        return TC_BROKEN(k, TNP_THREADS_CONCURRENT, "%s: %s", what, h->wrong);
    if (h->stream &&
        !tc_must(k, TNP_THREADS_CONCURRENT, h->s->ops->streams->synchronize(h->stream), what))
        return false;
    if (!check_places(h, &h->to, what) ||
        (h->replayed.bytes &&
         !tc_buffer_check(k, &h->replayed, h->stream, TNP_THREADS_CONCURRENT, what)) ||
        (h->pinned_to.bytes && !check_places(h, &h->pinned_to, what)))
        return false;
    return !h->has_kernel || read_bits(h) == h->bits ||
           TC_BROKEN(k, TNP_THREADS_CONCURRENT, "%s: a kernel's output is another than before",
                     what);
}
