/* Streams: made, counted, listed by their device; what a query or a wait tells of their work. */
#include "base/alloc.h"
#include "base/error.h"
#include "core/device/open.h"
#include "core/graph/graph.h"

#include <stdio.h>
#include <tenon/ext/native.h>

/* ---- the device's list ------------------------------------------------------------------- */

static tn_status init(tn_stream *s, tni_device *d, int32_t priority) {
    *s = (tn_stream){.refs = 1, .device = d};
    if (!d->streams)
        return TN_OK;
    tni_error_plugin(TN_OK, NULL);
    tn_status status = d->streams->create(d->handle, priority, &s->handle);
    if (status)
        return tni_device_fail(d, status, "making a stream");
    if (!s->handle)
        return tni_fail(TN_ERR_INTERNAL,
                        "%s: streams->create returned TN_OK and no stream; the plugin (%s) must"
                        " set *out_stream",
                        d->name, d->plugin->table->id);
    return TN_OK;
}

tn_status tni_streams_init(tni_device *d) {
    d->made = NULL;
    return init(&d->default_stream, d, 0);
}

/* With the lowest number that is free. */
static void list(tn_stream *s) {
    tni_device *d = s->device;
    pthread_mutex_lock(&d->lock);
    tn_stream **at = &d->made;
    s->id = 1;
    while (*at && (*at)->id == s->id) {
        s->id++;
        at = &(*at)->next;
    }
    s->next = *at;
    *at = s;
    pthread_mutex_unlock(&d->lock);
}

static void destroy(tn_stream *s) {
    tni_device *d = s->device;
    pthread_mutex_lock(&d->lock);
    tn_stream **at = &d->made;
    while (*at && *at != s)
        at = &(*at)->next;
    if (*at)
        *at = s->next;
    pthread_mutex_unlock(&d->lock);
    if (s->handle && !atomic_load(&d->forked))
        d->streams->destroy(s->handle);
    tni_free(s);
}

/* Takes a reference unless the last one was given back already. */
static bool keep_if_alive(tn_stream *s) {
    uint32_t n = atomic_load(&s->refs);
    while (n > 0)
        if (atomic_compare_exchange_weak(&s->refs, &n, n + 1))
            return true;
    return false;
}

/* The listed stream with the lowest id from `id` on, kept; NULL when there is none. */
static tn_stream *next_from(tni_device *d, uint32_t id) {
    pthread_mutex_lock(&d->lock);
    tn_stream *s = d->made;
    while (s && (s->id < id || !keep_if_alive(s)))
        s = s->next;
    pthread_mutex_unlock(&d->lock);
    return s;
}

void tni_device_for_each_stream(tni_device *d, void (*fn)(tn_stream *, void *), void *user) {
    fn(&d->default_stream, user);
    for (tn_stream *s = next_from(d, 1); s;) {
        uint32_t id = s->id;
        fn(s, user);
        tn_stream_drop(s);
        s = next_from(d, id + 1);
    }
}

void tni_streams_finish(tni_device *d) {
    while (d->made)
        destroy(d->made);
    if (d->default_stream.handle && !atomic_load(&d->forked))
        d->streams->destroy(d->default_stream.handle);
    d->default_stream.handle = NULL;
}

/* ---- life -------------------------------------------------------------------------------- */

tn_stream *tn_stream_create(tn_device device, int32_t priority) {
    tni_device *d = tni_device_get(device);
    if (!d || tni_device_check(d))
        return NULL;
    tn_stream *s = tni_alloc_aligned(sizeof *s, 64);
    if (!s)
        return tni_fail_memory_null("a stream");
    if (init(s, d, priority)) {
        tni_free(s);
        return NULL;
    }
    list(s);
    return s;
}

/* The default stream lives as long as its device and is not counted. */
tn_stream *tn_stream_keep(tn_stream *s) {
    if (s && s != &s->device->default_stream)
        atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void tn_stream_drop(tn_stream *s) {
    if (s && s != &s->device->default_stream &&
        atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1)
        destroy(s);
}

static tn_status fail_null(const char *function) {
    return tni_fail(TN_ERR_INVALID_ARGUMENT,
                    "%s: stream is NULL; take one from tn_stream_create or tn_current_stream",
                    function);
}

tn_device tn_stream_device(const tn_stream *s) {
    return s ? s->device->id : tn_no_device();
}

int64_t tn_stream_id(const tn_stream *s) {
    return s ? (int64_t)s->id : -1;
}

void *tn_stream_native(tn_stream *s) {
    if (!s || !s->handle || tni_device_check(s->device))
        return NULL;
    const tn_ext_native *native = tni_device_extension(s->device, TN_EXT_NATIVE);
    return native ? native->stream(s->handle) : NULL;
}

/* ---- what became of the work ------------------------------------------------------------- */

enum { TRAIL_TEXT = 160 };

/* "gather, sum and add were enqueued since the last good point" */
static void describe_trail(tn_stream *s, char *out, size_t size) {
    uint32_t n = atomic_load_explicit(&s->n_trail, memory_order_relaxed);
    uint32_t first = n > TNI_STREAM_TRAIL ? n - TNI_STREAM_TRAIL : 0;
    if (n == 0) {
        snprintf(out, size, "no operator was enqueued since the last good point");
        return;
    }
    size_t used = 0;
    if (first)
        used = (size_t)snprintf(out, size, "%u operators, ", first);
    for (uint32_t i = first; i < n && used < size; i++) {
        const char *name =
            atomic_load_explicit(&s->trail[i % TNI_STREAM_TRAIL], memory_order_relaxed);
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > first ? ", " : "",
                                 name ? name : "?");
    }
    if (used < size)
        snprintf(out + used, size - used, " %s enqueued since the last good point",
                 n == 1 ? "was" : "were");
}

/* Turns what query or synchronize answered into the standing error; all work so far is then
 * accounted for. */
static tn_status account(tn_stream *s, tn_status status) {
    if (status == TN_NOT_READY)
        return status;
    if (status) {
        char trail[TNI_STREAM_TRAIL * 48 + TRAIL_TEXT], what[TNI_STREAM_TRAIL * 48 + 256];
        describe_trail(s, trail, sizeof trail);
        snprintf(what, sizeof what, "work on stream %u failed (%s)", s->id, trail);
        status = tni_device_fail(s->device, status, what);
    }
    atomic_store_explicit(&s->n_trail, 0, memory_order_relaxed);
    return status;
}

static tn_status check(tn_stream *s, const char *what) {
    tn_status status = tni_device_check(s->device);
    return status ? status : tni_capture_check(s, what, "ask or wait after a replay");
}

tn_status tn_stream_query(tn_stream *s) {
    if (!s)
        return fail_null("tn_stream_query");
    tn_status status = check(s, "tn_stream_query");
    if (status || !s->handle)
        return status;
    tni_error_plugin(TN_OK, NULL);
    return account(s, s->device->streams->query(s->handle));
}

tn_status tn_stream_synchronize(tn_stream *s) {
    if (!s)
        return fail_null("tn_stream_synchronize");
    tn_status status = check(s, "tn_stream_synchronize");
    if (status || !s->handle)
        return status;
    tni_error_plugin(TN_OK, NULL);
    status = s->device->streams->synchronize(s->handle);
    if (status == TN_NOT_READY)
        return tni_fail(TN_ERR_INTERNAL,
                        "%s: streams->synchronize answered TN_NOT_READY; the plugin"
                        " (%s) must wait there",
                        s->device->name, s->device->plugin->table->id);
    return account(s, status);
}

static void synchronize_one(tn_stream *s, void *user) {
    tn_status *first = user;
    if (tni_stream_captures(s)) /* nothing of it runs */
        return;
    tn_status status = tn_stream_synchronize(s);
    if (!*first)
        *first = status;
}

tn_status tn_synchronize(tn_device device) {
    tni_device *d = tni_device_get(device);
    if (!d)
        return tn_error_status();
    tn_status status = tni_device_check(d);
    if (!status && d->streams)
        status = tni_capture_check(tni_stream_current(d), "tn_synchronize", "wait after a replay");
    if (!status && d->streams)
        tni_device_for_each_stream(d, synchronize_one, &status);
    return status;
}

/* ---- waiting ----------------------------------------------------------------------------- */

/* Waits for what `source` has queued so far: `waiting` does, or where it is NULL the host. */
static tn_status await(tni_device *d, tn_stream *source, tn_stream *waiting) {
    tn_status status = TN_ERR_STATE;
    if (tni_stream_captures(source) || (waiting && tni_stream_captures(waiting)))
        return status;
    tn_event_impl *event = tni_event_take(d, &status);
    if (event) {
        status = d->events->record(event, source->handle);
        if (!status)
            status =
                waiting ? d->events->wait(waiting->handle, event) : d->events->synchronize(event);
        tni_event_give(d, event);
    }
    tni_error_plugin(TN_OK, NULL);
    return status;
}

bool tni_stream_drain(tn_stream *s) {
    tni_device *d = s->device;
    if (!s->handle || atomic_load(&d->lost))
        return true;
    tn_status status = await(d, s, NULL);
    return !tni_device_notice(d, status) || status == TN_ERR_DEVICE_LOST;
}

bool tni_stream_follow(tn_stream *s, tn_stream *source) {
    tni_device *d = s->device;
    return !s->handle || atomic_load(&d->lost) || !tni_device_notice(d, await(d, source, s));
}

/* The host waits for `source`, whose errors stay with it. */
static tn_status wait_on_host(tn_stream *source) {
    if (tni_stream_drain(source))
        return tni_device_check(source->device);
    return tn_stream_synchronize(source);
}

static const char one_stream[] = "a capture has one stream; let others wait after a replay";

tn_status tni_stream_wait_stream(tn_stream *s, tn_stream *source) {
    if (s == source || !source->handle)
        return TN_OK;
    tni_device *d = source->device;
    tn_status status = tni_device_check(d);
    if (!status)
        status = tni_device_check(s->device);
    if (!status)
        status = tni_capture_check(source, "waiting for a stream", one_stream);
    if (!status)
        status = tni_capture_check(s, "waiting for a stream", one_stream);
    if (status)
        return status;
    if (!s->handle || s->device->plugin != d->plugin)
        return wait_on_host(source);
    tn_event_impl *event = tni_event_take(d, &status);
    if (!event)
        return tni_device_fail(d, status, "making an event");
    status = d->events->record(event, source->handle);
    if (status) {
        status = tni_device_fail(d, status, "recording an event");
    } else {
        status = d->events->wait(s->handle, event);
        if (status)
            status = tni_device_fail(s->device, status, "waiting for an event");
    }
    tni_event_give(d, event);
    return status;
}
