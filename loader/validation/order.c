/* Level 2: do streams and events keep their order? The layer sets marks of its own, events that
 * it records where it wants to know, and compares what the plugin says of them with what it says
 * to the caller. */
#include "base/error.h"
#include "loader/validation/internal.h"

#include <time.h>

enum { TRIES = 5, FIRST_HOLD = 8, LONGER = 4 /* times, each try */ };

/* How long a wait is watched at most, while its event is not done. */
static const int64_t WATCH_NS = 50000000;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* ---- waits ------------------------------------------------------------------------------- */

/* Is the event the one it was, not recorded since? */
static bool is_same_mark(tni_watch *w, tn_event_impl *event, const tni_record *before) {
    if (!before)
        return true; /* our own */
    pthread_mutex_lock(&tni_records_lock);
    const tni_record *e = tni_record_find(w, TNI_RECORD_EVENT, (uintptr_t)event);
    bool same = e && !before->recording && !e->recording && e->serial == before->serial &&
                e->generation == before->generation;
    pthread_mutex_unlock(&tni_records_lock);
    return same;
}

/* A mark behind the wait may not be passed before the event is. */
static bool overtakes(tni_watch *w, tn_device_impl *device, tn_stream_impl *stream,
                      tn_event_impl *event, const tni_record *e) {
    tn_event_impl *mark = NULL;
    bool broken = false;
    int64_t until = now_ns() + WATCH_NS;
    if (w->real.events.create(device, 0, &mark) != TN_OK || !mark)
        return false;
    bool watches = w->real.events.record(mark, stream) == TN_OK;
    while (watches && !broken && now_ns() < until) {
        bool passed = w->real.events.query(mark) == TN_OK;
        watches = w->real.events.query(event) == TN_NOT_READY && is_same_mark(w, event, e);
        broken = passed && watches;
        if (!broken) /* threads of the device's may need this processor */
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    w->real.events.destroy(mark);
    return broken;
}

/* Streams of the layer's own, one of which waits for the other while that is surely busy. */
static bool try_waits(tni_watch *w, tn_device_impl *device) {
    tn_stream_impl *first = NULL, *second = NULL;
    tn_event_impl *event = NULL;
    bool broken = false;
    bool ok = w->real.streams.create(device, 0, &first) == TN_OK && first &&
              w->real.streams.create(device, 0, &second) == TN_OK && second &&
              w->real.events.create(device, 0, &event) == TN_OK && event;
    for (int i = 0, times = FIRST_HOLD; ok && !broken && i < TRIES; i++, times *= LONGER) {
        tni_hold(w, device, first, times);
        ok = w->real.events.record(event, first) == TN_OK &&
             w->real.events.wait(second, event) == TN_OK;
        broken = ok && overtakes(w, device, second, event, NULL);
    }
    if (event)
        w->real.events.destroy(event);
    if (second)
        w->real.streams.destroy(second);
    if (first)
        w->real.streams.destroy(first);
    return broken;
}

void tni_watch_wait(tni_watch *w, tn_device_impl *device, tn_stream_impl *stream,
                    const tni_record *e) {
    pthread_mutex_lock(&tni_records_lock);
    tni_record *d = tni_record_find(w, TNI_RECORD_DEVICE, (uintptr_t)device);
    bool is_first = d && !d->waited;
    if (d)
        d->waited = true;
    pthread_mutex_unlock(&tni_records_lock);
    if ((is_first && try_waits(w, device)) ||
        overtakes(w, device, stream, (tn_event_impl *)(uintptr_t)e->key, e))
        tni_finding(w, TNP_EVENT_WAIT, "events->wait", "",
                    "work that was queued behind a wait was done before the event was");
}

/* ---- what streams say -------------------------------------------------------------------- */

/* Once for what was queued, so that who asks again and again sees an end. */
tn_event_impl *tni_mark_end(tni_watch *w, tn_device_impl *device, tn_stream_impl *stream) {
    tn_event_impl *mark = NULL;
    pthread_mutex_lock(&tni_records_lock);
    tni_record *r = tni_record_find(w, TNI_RECORD_STREAM, (uintptr_t)stream);
    bool is_new = w->level >= 2 && r && !r->captures && r->asked != r->queued;
    if (is_new)
        r->asked = r->queued;
    pthread_mutex_unlock(&tni_records_lock);
    if (!is_new)
        return NULL;
    tni_hold(w, device, stream, TNI_A_WHILE);
    if (w->real.events.create(device, 0, &mark) != TN_OK || !mark)
        return NULL;
    if (w->real.events.record(mark, stream) == TN_OK)
        return mark;
    w->real.events.destroy(mark);
    return NULL;
}

void tni_judge_mark(tni_watch *w, tn_event_impl *mark, tn_status status, bool waits) {
    if (status == TN_OK && w->real.events.query(mark) == TN_NOT_READY)
        tni_finding(w, waits ? TNP_STREAM_SYNCHRONIZE : TNP_STREAM_QUERY,
                    waits ? "streams->synchronize" : "streams->query", "",
                    "answered TN_OK, and an event that was recorded at the stream's end before is"
                    " not done");
    w->real.events.destroy(mark);
}

void tni_judge_error(tni_watch *w, tn_stream_impl *stream, tn_status status, const char *slot) {
    if (status == TN_OK || status == TN_NOT_READY || status == TN_ERR_DEVICE_LOST)
        return;
    if (w->real.streams.synchronize(stream) == status)
        tni_finding(w, TNP_STREAM_ERROR_ONCE, slot, "",
                    "%s was reported, and is reported again though nothing was queued since",
                    tn_status_name(status));
}
