/* See buffers.h. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin-sdk/conformance/worker/poison.h"

/* ---- what a case has made ---------------------------------------------------------------- */

struct tc_owned {
    tc_owned *next;
    const tn_device_ops *ops;
    tn_device_impl *device;
    int32_t space;
    tn_memory memory; /* of the three one; none: it was destroyed */
    tn_stream_impl *stream;
    tn_event_impl *event;
};

static tc_owned *own(tc_contract *k, const tc_subject *s) {
    tc_owned *o = tc_arena_array(&k->arena, 1, sizeof *o);
    if (!o) {
        TC_CASE_ERROR(k->out, "the host has no memory for this case");
        return NULL;
    }
    *o = (tc_owned){.next = k->owned, .ops = s->ops, .device = s->device};
    return k->owned = o;
}

static void release(tc_owned *o) {
    if (o->event)
        o->ops->events->destroy(o->event);
    if (o->stream)
        o->ops->streams->destroy(o->stream);
    if (o->memory)
        o->ops->memory->dealloc(o->device, o->space, o->memory);
    *o = (tc_owned){.next = o->next};
}

void tc_release(tc_contract *k, const tn_device_impl *device) {
    for (tc_owned *o = k->owned; o; o = o->next)
        if (!device || o->device == device)
            release(o);
}

void tc_stream_destroy(tc_contract *k, tn_stream_impl *stream) {
    tc_owned *o = k->owned;
    while (o->stream != stream)
        o = o->next;
    release(o);
}

void tc_event_destroy(tc_contract *k, tn_event_impl *event) {
    tc_owned *o = k->owned;
    while (o->event != event)
        o = o->next;
    release(o);
}

/* ---- buffers ----------------------------------------------------------------------------- */

bool tc_buffer_create(tc_contract *k, tc_subject *s, int32_t space, uint64_t bytes,
                      tc_buffer *out) {
    char what[64];
    *out = (tc_buffer){.subject = s, .space = space, .bytes = bytes};
    if (!(out->owned = own(k, s)))
        return false;
    out->model = tc_arena_array(&k->arena, bytes, 1);
    if (!out->model)
        return TC_CASE_ERROR(k->out, "the host has no memory for this case");
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t x = tc_next(&k->random);
        memcpy(out->model + i, &x, bytes - i < 8 ? bytes - i : 8);
    }
    snprintf(what, sizeof what, "alloc of %llu bytes", (unsigned long long)bytes);
    tc_host_forget();
    if (!tc_must(k, TNP_ALLOC_HANDLE, tc_alloc(s, space, bytes, &out->memory, &out->host), what))
        return false;
    out->owned->space = space;
    out->owned->memory = out->memory;
    if (out->memory == 0)
        TC_BROKEN(k, TNP_ALLOC_HANDLE, "%s gave the handle 0", what);
    if (space == TN_SPACE_PINNED && !out->host)
        return TC_BROKEN(k, TNP_ALLOC_HOST_POINTER,
                         "%s in TN_SPACE_PINNED gave no host pointer; set allocation->host", what);
    if (s->host_memory && !out->host)
        TC_BROKEN(k, TNP_PROPERTY_UNIFIED_MEMORY,
                  "%s gave no host pointer, on a device with TN_PROP_UNIFIED_MEMORY", what);
    if (out->host && (uint64_t)out->host % s->alignment)
        TC_BROKEN(k, TNP_ALLOC_ALIGNMENT, "%s gave %p, which is not aligned to %llu", what,
                  out->host, (unsigned long long)s->alignment);
    tn_status status =
        space == TN_SPACE_PINNED
            ? (memcpy(out->host, out->model, bytes), TN_OK)
            : s->memory->copy_from_host(s->device, s->stream, out->memory, 0, out->model, 0, bytes);
    return tc_must(k, TNP_TRANSFER_RANGE, status, "write of a whole allocation") &&
           tc_must(k, TNP_STREAM_SYNCHRONIZE, tc_subject_sync(s), "synchronize");
}

void tc_buffer_destroy(tc_buffer *b) {
    if (b->owned)
        release(b->owned);
}

bool tc_buffer_fill(tc_contract *k, tc_buffer *b, tn_stream_impl *stream, int value) {
    tc_subject *s = b->subject;
    memset(b->model, value, b->bytes);
    return tc_must(k, TNP_FILL_VALUE,
                   s->memory->fill(s->device, stream, b->memory, 0, (uint8_t)value, b->bytes),
                   "fill");
}

bool tc_buffer_check(tc_contract *k, tc_buffer *b, tn_stream_impl *stream,
                     tn_requirement requirement, const char *what) {
    tc_subject *s = b->subject;
    unsigned char *now = malloc(b->bytes);
    if (!now)
        return TC_CASE_ERROR(k->out, "the host has no memory for this case");
    bool read = true;
    if (b->space == TN_SPACE_PINNED)
        memcpy(now, b->host, b->bytes);
    else
        read = tc_must(k, TNP_READ_COMPLETE,
                       s->memory->copy_to_host(s->device, stream, now, 0, b->memory, 0, b->bytes),
                       "read");
    uint64_t i = 0;
    if (!read || memcmp(now, b->model, b->bytes) == 0)
        i = b->bytes;
    while (i < b->bytes && now[i] == b->model[i])
        i++;
    if (i < b->bytes)
        TC_BROKEN(k, tc_poison_breaks(now[i], requirement),
                  "%s: byte %llu of %llu should be 0x%02x and is 0x%02x%s", what,
                  (unsigned long long)i, (unsigned long long)b->bytes, b->model[i], now[i],
                  tc_poison_text(now[i]));
    free(now);
    return read && i == b->bytes;
}

/* ---- work that takes a while ------------------------------------------------------------- */

/* A queue has room for a few hundred commands, so each of them is to take a while, on the fastest of
 * devices too. */
enum {
    SMALLEST_BYTES = 64 << 10,
    LEAST_BYTES = 4 << 20,
    MOST_BYTES = 256 << 20,
    MOST_FILLS = 400,
    FEW = 4,
    MORE = 20,
    LESS = 8
};
static const double WORK_SECONDS = 0.008, FILL_SECONDS = 100e-6;

static bool queue_fills(tc_contract *k, const tc_work *w, tn_stream_impl *stream, uint32_t n) {
    const tc_subject *s = w->subject;
    for (uint32_t i = 0; i < n; i++)
        if (!tc_must(k, TNP_FILL_VALUE,
                     s->memory->fill(s->device, stream, w->memory, 0, (uint8_t)i, w->bytes),
                     "fill"))
            return false;
    return true;
}

/* The least that n of them took. */
static bool time_fills(tc_contract *k, tc_work *w, uint32_t n, double *out_least) {
    for (int i = 0; i < 3; i++) {
        double start = tc_now();
        if (!queue_fills(k, w, w->subject->stream, n) ||
            !tc_must(k, TNP_STREAM_SYNCHRONIZE, tc_subject_sync(w->subject), "synchronize"))
            return false;
        double took = tc_now() - start;
        *out_least = i == 0 || took < *out_least ? took : *out_least;
    }
    return true;
}

/* Memory of `bytes`, or of much less, which leaves the case some, where it turns out that there is not so
 * much; and how long a fill of it takes where nothing comes between: what more of them take longer
 * than a few, for a synchronization by itself may take longer than they do. */
static bool try_work(tc_contract *k, tc_work *w, uint64_t bytes) {
    void *host;
    tc_owned *o = own(k, w->subject);
    if (!o)
        return false;
    tn_status status = tc_alloc(w->subject, TN_SPACE_DEVICE, bytes, &o->memory, &host);
    for (; tc_lacks(status) && bytes / LESS >= SMALLEST_BYTES;
         status = tc_alloc(w->subject, TN_SPACE_DEVICE, bytes, &o->memory, &host))
        bytes /= LESS;
    if (!tc_must(k, TNP_ALLOC_HANDLE, status, "alloc of memory for long work"))
        return false;
    w->memory = o->memory;
    w->bytes = bytes;
    double few, more;
    if (!time_fills(k, w, FEW, &few) || !time_fills(k, w, MORE, &more))
        return false;
    w->seconds = more > few ? (more - few) / (MORE - FEW) : more / MORE;
    return true;
}

/* A quarter of what there is, so that the case has room beside it. */
static uint64_t most_work(const tc_subject *s) {
    uint64_t most = MOST_BYTES, there = tc_free_bytes(s);
    if (s->max_allocation && s->max_allocation / 4 < most)
        most = s->max_allocation / 4;
    return there / 4 < most ? there / 4 : most;
}

bool tc_work_create_one(tc_contract *k, tc_subject *s, tc_work *out) {
    *out = (tc_work){.subject = s, .fills = 1};
    return try_work(k, out, most_work(s));
}

bool tc_work_create(tc_contract *k, tc_subject *s, tc_work *out) {
    uint64_t most = most_work(s);
    *out = (tc_work){.subject = s};
    uint64_t first = LEAST_BYTES;
    while (first > most && first > SMALLEST_BYTES) /* a small device, or several works on one */
        first /= 2;
    for (uint64_t bytes = first; try_work(k, out, bytes) && out->seconds < FILL_SECONDS &&
                                 out->bytes == bytes && bytes * 4 <= most;
         bytes *= 4)
        release(k->owned);
    double wanted = out->seconds > 0 ? WORK_SECONDS / out->seconds : MOST_FILLS;
    out->fills = wanted < 1 ? 1 : wanted > MOST_FILLS ? MOST_FILLS : (uint32_t)wanted;
    return !tc_failed(k);
}

bool tc_work_queue(tc_contract *k, tc_work *w, tn_stream_impl *stream) {
    return queue_fills(k, w, stream, w->fills);
}

void tc_let_begin(const tc_work *w) {
    double seconds = w->seconds * w->fills / 4;
    nanosleep(&(struct timespec){.tv_nsec = (long)((seconds < 0.001 ? seconds : 0.001) * 1e9)},
              NULL);
}

bool tc_hold_together(tc_contract *k, tc_work *w, tn_stream_impl *const *streams, int n,
                      tn_event_impl *event) {
    const tn_event_ops *events = w->subject->ops->events;
    bool ok = tc_work_queue(k, w, streams[0]) &&
              tc_must(k, TNP_EVENT_RECORD, events->record(event, streams[0]), "record");
    for (int i = 1; i < n && ok; i++)
        ok = tc_must(k, TNP_EVENT_WAIT, events->wait(streams[i], event), "wait");
    return ok;
}

bool tc_work_hold(tc_contract *k, const tc_work *w, tn_stream_impl *stream, double seconds) {
    return queue_fills(k, w, stream, 1 + (uint32_t)(seconds / (w->seconds + 1e-7)));
}

bool tc_question_waits(tc_contract *k, tc_work *w, tn_stream_impl *stream, tn_event_impl *event,
                       tc_question *ask, void *of) {
    const tn_device_ops *ops = w->subject->ops;
    const tn_stream_ops *streams = ops->streams;
    bool waits = true;
    for (int i = 0; i < 5 && waits; i++) {
        for (int n = 0; n < 3 && waits; n++) /* longer than a host is kept off its core */
            waits = tc_work_queue(k, w, stream);
        if (event)
            waits =
                waits && tc_must(k, TNP_EVENT_RECORD, ops->events->record(event, stream), "record");
        tc_let_begin(w);
        double start = tc_now();
        waits &= ask(k, of) == TN_OK;
        double asked = tc_now() - start;
        streams->synchronize(stream);
        double done = tc_now() - start;
        waits &= asked > 0.002 && asked > 0.9 * done;
    }
    return waits;
}

/* ---- streams and events ------------------------------------------------------------------ */

bool tc_has_streams(tc_contract *k) {
    return k->subject->ops->streams || TC_NOT_OFFERED(k, "the device has no streams");
}

tn_status tc_ask_until_done(const tc_subject *s, tn_stream_impl *stream, tn_event_impl *event) {
    tn_status status = TN_NOT_READY;
    for (double end = tc_now() + 30; status == TN_NOT_READY && tc_now() < end;)
        status = event ? s->ops->events->query(event) : s->ops->streams->query(stream);
    return status;
}

bool tc_has_pinned(tc_contract *k) {
    return k->subject->spaces >> TN_SPACE_PINNED & 1 ||
           TC_NOT_OFFERED(k, "the device has no TN_SPACE_PINNED");
}

bool tc_stream_create(tc_contract *k, tc_subject *s, int32_t priority, tn_stream_impl **out) {
    tc_owned *o = own(k, s);
    *out = NULL;
    if (!o || !tc_must(k, TNP_STREAM_CREATE, s->ops->streams->create(s->device, priority, out),
                       "create of a stream"))
        return false;
    o->stream = *out;
    return *out || TC_BROKEN(k, TNP_STREAM_CREATE, "create of a stream gave NULL");
}

bool tc_stream_sync(tc_contract *k, tn_stream_impl *stream) {
    return tc_must(k, TNP_STREAM_SYNCHRONIZE, k->subject->ops->streams->synchronize(stream),
                   "synchronize");
}

bool tc_event_create(tc_contract *k, tc_subject *s, uint32_t flags, tn_event_impl **out) {
    tc_owned *o = own(k, s);
    *out = NULL;
    if (!o || !tc_must(k, TNP_EVENT_CREATE, s->ops->events->create(s->device, flags, out),
                       "create of an event"))
        return false;
    o->event = *out;
    return *out || TC_BROKEN(k, TNP_EVENT_CREATE, "create of an event gave NULL");
}
