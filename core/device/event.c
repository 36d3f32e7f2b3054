/* Events: points in streams. On a synchronous device an event is the host's clock at its record. */
#include "base/alloc.h"
#include "base/error.h"
#include "core/device/open.h"
#include "core/graph/graph.h"

#include <time.h>

struct tn_event {
    tni_device *device;
    tn_event_impl *handle; /* NULL on a synchronous device */
    bool timing;
    _Atomic bool recorded;
    _Atomic int64_t host_ns; /* of the record, on a synchronous device */
};

/* ---- idle events ------------------------------------------------------------------------- */

tn_event_impl *tni_event_take(tni_device *d, tn_status *out_status) {
    tn_event_impl *event = NULL;
    *out_status = TN_OK;
    pthread_mutex_lock(&d->lock);
    if (d->n_idle_events > 0)
        event = d->idle_events[--d->n_idle_events];
    pthread_mutex_unlock(&d->lock);
    if (event)
        return event;
    tni_error_plugin(TN_OK, NULL);
    *out_status = d->events->create(d->handle, 0, &event);
    if (!*out_status && !event)
        *out_status = TN_ERR_INTERNAL;
    return *out_status ? NULL : event;
}

void tni_event_give(tni_device *d, tn_event_impl *event) {
    pthread_mutex_lock(&d->lock);
    bool kept = d->n_idle_events < TNI_IDLE_EVENTS;
    if (kept)
        d->idle_events[d->n_idle_events++] = event;
    pthread_mutex_unlock(&d->lock);
    if (!kept)
        d->events->destroy(event);
}

void tni_events_finish(tni_device *d) {
    while (d->n_idle_events > 0)
        d->events->destroy(d->idle_events[--d->n_idle_events]);
}

/* ---- the public ones --------------------------------------------------------------------- */

static tn_status fail_null(const char *function, const char *what) {
    return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: %s is NULL", function, what);
}

tn_event *tn_event_create(tn_device device, bool timing) {
    tni_device *d = tni_device_get(device);
    if (!d || tni_device_check(d))
        return NULL;
    tn_event *e = tni_calloc(1, sizeof *e);
    if (!e)
        return tni_fail_memory_null("an event");
    e->device = d;
    e->timing = timing;
    if (!d->streams)
        return e;
    tni_error_plugin(TN_OK, NULL);
    tn_status status = d->events->create(d->handle, timing ? TN_EVENT_TIMING : 0, &e->handle);
    if (!status && e->handle)
        return e;
    tni_device_fail(d, status ? status : TN_ERR_INTERNAL, "making an event");
    tni_free(e);
    return NULL;
}

void tn_event_destroy(tn_event *e) {
    if (!e)
        return;
    if (e->handle && !atomic_load(&e->device->forked))
        e->device->events->destroy(e->handle);
    tni_free(e);
}

static int64_t host_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

tn_status tn_event_record(tn_event *e, tn_stream *stream) {
    if (!e || !stream)
        return fail_null("tn_event_record", e ? "stream" : "event");
    tni_device *d = e->device;
    if (stream->device != d)
        return tni_fail(TN_ERR_DEVICE,
                        "tn_event_record: the event is of %s and the stream of %s; make the event"
                        " on the stream's device",
                        d->name, stream->device->name);
    tn_status status = tni_device_check(d);
    if (!status)
        status = tni_capture_check(stream, "tn_event_record", "record events round a replay");
    if (status)
        return status;
    if (e->handle) {
        tni_error_plugin(TN_OK, NULL);
        status = d->events->record(e->handle, stream->handle);
        if (status)
            return tni_device_fail(d, status, "recording an event");
    } else {
        atomic_store(&e->host_ns, host_clock_ns());
    }
    atomic_store(&e->recorded, true);
    return TN_OK;
}

tn_status tn_event_wait(tn_event *e, tn_stream *stream) {
    if (!e || !stream)
        return fail_null("tn_event_wait", e ? "stream" : "event");
    tn_status status = tni_device_check(stream->device);
    if (!status)
        status = tni_capture_check(stream, "tn_event_wait", "wait for events before a replay");
    if (status || !e->handle)
        return status;
    if (!stream->handle || stream->device->plugin != e->device->plugin)
        return tn_event_synchronize(e);
    status = tni_device_check(e->device);
    if (status)
        return status;
    tni_error_plugin(TN_OK, NULL);
    status = e->device->events->wait(stream->handle, e->handle);
    return status ? tni_device_fail(stream->device, status, "waiting for an event") : TN_OK;
}

tn_status tn_event_query(tn_event *e) {
    if (!e)
        return fail_null("tn_event_query", "event");
    tn_status status = tni_device_check(e->device);
    if (status || !e->handle)
        return status;
    tni_error_plugin(TN_OK, NULL);
    status = e->device->events->query(e->handle);
    return status && status != TN_NOT_READY ? tni_device_fail(e->device, status, "asking an event")
                                            : status;
}

tn_status tn_event_synchronize(tn_event *e) {
    if (!e)
        return fail_null("tn_event_synchronize", "event");
    tn_status status = tni_device_check(e->device);
    if (status || !e->handle)
        return status;
    tni_error_plugin(TN_OK, NULL);
    status = e->device->events->synchronize(e->handle);
    return status ? tni_device_fail(e->device, status, "waiting for an event") : TN_OK;
}

/* Can the time between the two be asked for? */
static tn_status check_pair(tn_event *start, tn_event *end) {
    if (start->device != end->device)
        return tni_fail(TN_ERR_DEVICE,
                        "tn_event_elapsed: the events are of %s and %s, whose clocks have nothing"
                        " in common",
                        start->device->name, end->device->name);
    if (!start->timing || !end->timing)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_event_elapsed: the %s event was made without timing; pass true to"
                        " tn_event_create",
                        start->timing ? "end" : "start");
    if (!atomic_load(&start->recorded) || !atomic_load(&end->recorded))
        return tni_fail(TN_ERR_STATE, "tn_event_elapsed: the %s event was never recorded",
                        atomic_load(&start->recorded) ? "end" : "start");
    tn_status status = tn_event_query(start);
    if (!status)
        status = tn_event_query(end);
    if (status == TN_NOT_READY)
        return tni_fail(TN_ERR_STATE, "tn_event_elapsed: the stream has not passed both events yet;"
                                      " call tn_event_synchronize first");
    return status;
}

tn_status tn_event_elapsed(tn_event *start, tn_event *end, double *out_ns) {
    if (!out_ns)
        return fail_null("tn_event_elapsed", "out_ns");
    *out_ns = 0;
    if (!start || !end)
        return fail_null("tn_event_elapsed", start ? "end" : "start");
    tn_status status = check_pair(start, end);
    if (status)
        return status;
    tni_device *d = start->device;
    if (!start->handle) {
        *out_ns = (double)(atomic_load(&end->host_ns) - atomic_load(&start->host_ns));
        return TN_OK;
    }
    tn_status (*elapsed)(tn_event_impl *, tn_event_impl *, double *) =
        TNI_SLOT(d->events, tn_event_ops, elapsed);
    if (!elapsed)
        return tni_fail(TN_ERR_UNSUPPORTED, "tn_event_elapsed: %s cannot time its streams",
                        d->name);
    tni_error_plugin(TN_OK, NULL);
    status = elapsed(start->handle, end->handle, out_ns);
    return status ? tni_device_fail(d, status, "timing two events") : TN_OK;
}
