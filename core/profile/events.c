/* The events of a profile: times of the host and, where a stream can tell, of the device.
 *
 * A device's times come from events round each call. They are read when the device has passed them:
 * as many as PENDING wait, so that a long profile does not hold thousands of a driver's events. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/fork.h"
#include "core/call/init.h"
#include "core/ops/operators.h"
#include "core/profile/profile.h"
#include "core/tensor/tensor.h"

#include <time.h>

enum { PENDING = 256, CHUNK = 1024, MAX_CHUNKS = 4096 };

static tni_lock lock = TNI_LOCK_INITIALIZER;
static tni_event *chunks[MAX_CHUNKS];     /* an event stays where it is */
static uint64_t n_events, n_lost, n_read; /* the first n_read have no event of a driver left */
static uint32_t n_threads;
static _Atomic int64_t started_ns; /* of the host's clock; read without the lock */
static uint32_t generation;        /* of tn_profile_start, so that threads are numbered anew */

/* The point on a device's clock that start_ns of the host corresponds to. */
static struct {
    tn_event_impl *mark;
    int64_t host_ns;
} origins[TNI_MAX_DEVICES];

static TNI_TLS uint32_t thread, thread_generation;

/* In a child: events that were being changed are not told of. */
static void mend(bool whole) {
    if (!whole)
        n_events = n_read = 0;
}

TNI_FORK_LOCK(PROFILE_EVENTS, lock, mend)

static int64_t host_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Nanoseconds since tn_profile_start. */
static int64_t now_ns(void) {
    return host_clock_ns() - atomic_load_explicit(&started_ns, memory_order_relaxed);
}

/* A driver that is asked for times may log, and the log function call operators: the thread has
 * the lock then, and what it guards is whole. */
static bool take(void) {
    bool taken = !tni_lock_is_mine(&lock);
    if (taken)
        tni_lock_take(&lock);
    return taken;
}

static void give(bool taken) {
    if (taken)
        tni_lock_give(&lock);
}

/* ---- a driver's events ------------------------------------------------------------------- */

/* What a profile asks of a device must not disturb the errors of the program: no message is kept,
 * and a device that cannot tell is not asked. */
static bool can_time(const tni_device *d) {
    return d && d->streams && d->events && TNI_SLOT(d->events, tn_event_ops, elapsed) &&
           !atomic_load(&d->lost);
}

static tn_event_impl *mark(tni_device *d, tn_stream *stream) {
    tn_event_impl *event = NULL;
    if (tni_stream_captures(stream))
        return NULL;
    if (d->events->create(d->handle, TN_EVENT_TIMING, &event) != TN_OK || !event)
        return NULL;
    if (d->events->record(event, stream->handle) == TN_OK)
        return event;
    d->events->destroy(event);
    return NULL;
}

static int64_t between(tni_device *d, tn_event_impl *begin, tn_event_impl *end) {
    double ns;
    if (!begin || !end || atomic_load(&d->forked) || d->events->synchronize(begin) != TN_OK ||
        d->events->synchronize(end) != TN_OK || d->events->elapsed(begin, end, &ns) != TN_OK)
        return -1;
    return (int64_t)ns;
}

static void unmark(tni_device *d, tn_event_impl **event) {
    if (*event && !atomic_load(&d->forked))
        d->events->destroy(*event);
    *event = NULL;
}

/* Reads and gives back a device's times of one event. */
static void read_times(tni_event *e) {
    tni_device *d = e->device;
    if (!e->begin && !e->end)
        return;
    e->shown.device_ns = between(d, e->begin, e->end);
    int64_t at = between(d, origins[d->ordinal].mark, e->begin);
    if (at >= 0)
        e->shown.device_start_ns = origins[d->ordinal].host_ns + at;
    unmark(d, &e->begin);
    unmark(d, &e->end);
    tni_error_plugin(TN_OK, NULL);
}

static tni_event *event_at(uint64_t i) {
    return &chunks[i / CHUNK][i % CHUNK];
}

/* Under the lock: reads all but the last `keep`. */
static void read_all_but(uint64_t keep) {
    while (n_read + keep < n_events)
        read_times(event_at(n_read++));
}

/* ---- recording --------------------------------------------------------------------------- */

static int64_t allocated(const tni_device *d) {
    tn_memory_stats s = {.struct_size = sizeof s};
    return d && !d->is_meta && tn_memory_stats_get(d->id, &s) == TN_OK ? (int64_t)s.allocated_bytes
                                                                       : 0;
}

void tni_event_begin(tni_event *e, tni_device *device) {
    tn_profile_event *s = &e->shown;
    e->device = device;
    s->args = e->args;
    s->device = device ? device->name : "";
    s->device_ns = s->device_start_ns = -1;
    tn_stream *stream = device && !device->is_meta ? tni_stream_current(device) : NULL;
    s->stream = stream ? stream->id : 0;
    if (can_time(device)) {
        bool taken = take();
        if (!origins[device->ordinal].mark) {
            origins[device->ordinal].mark = mark(device, stream);
            origins[device->ordinal].host_ns = now_ns();
        }
        give(taken);
        e->begin = mark(device, stream);
    }
    s->bytes = allocated(device);
    s->start_ns = now_ns();
}

void tni_event_end(tni_event *e, bool work) {
    tn_profile_event *s = &e->shown;
    s->host_ns = now_ns() - s->start_ns;
    s->bytes = allocated(e->device) - s->bytes;
    if (e->begin && work)
        e->end = mark(e->device, tni_stream_current(e->device));
    else if (e->begin)
        unmark(e->device, &e->begin);
    bool taken = take();
    if (thread_generation != generation) {
        thread_generation = generation;
        thread = n_threads++;
    }
    s->thread = thread;
    uint64_t chunk = n_events / CHUNK;
    if (chunk < MAX_CHUNKS && !chunks[chunk])
        chunks[chunk] = tni_alloc(CHUNK * sizeof(tni_event));
    if (chunk < MAX_CHUNKS && chunks[chunk]) {
        tni_event *kept = event_at(n_events++);
        *kept = *e;
        kept->shown.args = kept->args;
        read_all_but(PENDING);
    } else {
        n_lost++;
        if (e->begin)
            unmark(e->device, &e->begin);
        if (e->end)
            unmark(e->device, &e->end);
    }
    give(taken);
}

/* ---- the public side --------------------------------------------------------------------- */

void tni_profile_clear(void) {
    tni_lock_take(&lock);
    read_all_but(0);
    for (uint32_t i = 0; i < TNI_MAX_DEVICES; i++)
        if (origins[i].mark)
            unmark(tni_device_at(i), &origins[i].mark);
    for (int i = 0; i < MAX_CHUNKS && chunks[i]; i++) {
        tni_free(chunks[i]);
        chunks[i] = NULL;
    }
    n_events = n_lost = n_read = 0;
    n_threads = 0;
    generation++;
    atomic_store_explicit(&started_ns, host_clock_ns(), memory_order_relaxed);
    tni_lock_give(&lock);
}

tn_status tn_profile_start(void) {
    if (tn_profile_is_on())
        return tni_fail(TN_ERR_STATE, "tn_profile_start: profiling is on already; stop it first");
    TNI_TRY(tni_lock_enter(&lock, "a profile's times are read"));
    tni_lock_give(&lock);
    TNI_TRY(tni_core_init());
    tni_profile_clear();
    return tni_profile_switch(true);
}

tn_status tn_profile_stop(void) {
    if (!tn_profile_is_on())
        return TN_OK;
    tn_status status = tni_profile_switch(false);
    bool taken = take();
    read_all_but(0);
    give(taken);
    return status;
}

tn_status tn_profile_events(void (*fn)(const tn_profile_event *event, void *user), void *user,
                            uint64_t *out_lost) {
    if (!fn)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_profile_events: fn is NULL");
    bool taken = take();
    read_all_but(0);
    uint64_t n = n_events;
    uint32_t of = generation;
    if (out_lost)
        *out_lost = n_lost;
    give(taken);
    /* fn is called with a copy and without the lock. It may call operators, whose events are not among
     * these, or begin anew, which ends the list. */
    for (uint64_t i = 0;; i++) {
        taken = take();
        bool there = of == generation && i < n && i < n_events;
        tni_event event;
        if (there)
            event = *event_at(i);
        give(taken);
        if (!there)
            return TN_OK;
        event.shown.args = event.args;
        fn(&event.shown, user);
    }
}
