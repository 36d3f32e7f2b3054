/* Streams and events. */
#include "base/error.h"
#include "loader/validation/internal.h"

#include <inttypes.h>

/* ---- making and destroying --------------------------------------------------------------- */

static void drop(tni_watch *w, tni_record_kind kind, const void *handle) {
    pthread_mutex_lock(&tni_records_lock);
    tni_record *r = tni_record_find(w, kind, (uintptr_t)handle);
    if (r && kind == TNI_RECORD_STREAM)
        tni_clock_passed(w, &r->clock); /* its work is finished, and with it what that waits for */
    if (r)
        tni_record_remove(w, r);
    pthread_mutex_unlock(&tni_records_lock);
}

static tn_status stream_create(tn_device_impl *device, int32_t priority, tn_stream_impl **out) {
    tni_watch *w = tni_watch_of(TNI_RECORD_DEVICE, device);
    tni_record d;
    const char *slot = "streams->create";
    if (!tni_live_device(w, slot, "", device, &d))
        return tni_watch_refuse("streams->create: the device is not open");
    tni_process_before process;
    tni_process_begin(w, &process);
    tn_status status = TNI_ASK(w, slot, NULL, 0, w->real.streams.create(device, priority, out));
    tni_process_end(w, &process, slot, "", 2);
    tni_note_loss(w, device, d.lost, status, slot, "");
    if (status != TN_OK)
        return status;
    tni_record like = {
        .kind = TNI_RECORD_STREAM, .key = (uintptr_t)*out, .device = (uintptr_t)device};
    status = tni_handle_keep(w, &like, TNP_STREAM_CREATE, slot);
    if (status != TN_OK && *out) {
        w->real.streams.destroy(*out);
        *out = NULL;
    }
    return status;
}

static void stream_destroy(tn_stream_impl *stream) {
    tni_watch *w = tni_watch_of(TNI_RECORD_STREAM, stream);
    tni_record s;
    if (!tni_live_stream(w, "streams->destroy", "", NULL, stream, &s))
        return;
    if (s.captures)
        tni_finding(w, TNI_TENON, "streams->destroy", "",
                    "the stream captures; a capture is ended or abandoned before");
    /* Before the call: after it the handle may be another stream's. */
    drop(w, TNI_RECORD_STREAM, stream);
    TNI_TELL(w, "streams->destroy", NULL, w->real.streams.destroy(stream));
}

static tn_status event_create(tn_device_impl *device, uint32_t flags, tn_event_impl **out) {
    tni_watch *w = tni_watch_of(TNI_RECORD_DEVICE, device);
    tni_record d;
    const char *slot = "events->create";
    if (!tni_live_device(w, slot, "", device, &d))
        return tni_watch_refuse("events->create: the device is not open");
    if (flags & ~(uint32_t)TN_EVENT_TIMING)
        tni_finding(w, TNI_TENON, slot, "", "flags %#x have bits that are no TN_EVENT_*", flags);
    tn_status status = TNI_ASK(w, slot, NULL, 0, w->real.events.create(device, flags, out));
    tni_note_loss(w, device, d.lost, status, slot, "");
    if (status != TN_OK)
        return status;
    tni_record like = {.kind = TNI_RECORD_EVENT,
                       .key = (uintptr_t)*out,
                       .device = (uintptr_t)device,
                       .timing = flags & TN_EVENT_TIMING};
    status = tni_handle_keep(w, &like, TNP_EVENT_CREATE, slot);
    if (status != TN_OK && *out) {
        w->real.events.destroy(*out);
        *out = NULL;
    }
    return status;
}

static void event_destroy(tn_event_impl *event) {
    tni_watch *w = tni_watch_of(TNI_RECORD_EVENT, event);
    tni_record e;
    if (!tni_live_event(w, "events->destroy", event, &e))
        return;
    drop(w, TNI_RECORD_EVENT, event);
    TNI_TELL(w, "events->destroy", NULL, w->real.events.destroy(event));
}

/* ---- what has been passed ---------------------------------------------------------------- */

/* The present end of a stream, or the mark of an event, as a clock of the caller's. */
static void clock_of(tni_watch *w, tni_record_kind kind, const void *handle, tni_clock *out) {
    pthread_mutex_lock(&tni_records_lock);
    const tni_record *r = tni_record_find(w, kind, (uintptr_t)handle);
    if (r && kind == TNI_RECORD_STREAM)
        tni_mark_stream(w, r, out);
    else if (r)
        tni_clock_merge(w, out, &r->clock);
    pthread_mutex_unlock(&tni_records_lock);
}

static tn_status ask_stream(tn_stream_impl *stream, bool waits) {
    tni_watch *w = tni_watch_of(TNI_RECORD_STREAM, stream);
    tni_record s;
    const char *slot = waits ? "streams->synchronize" : "streams->query";
    if (!tni_live_stream(w, slot, "", NULL, stream, &s))
        return tni_watch_refuse("streams->query or synchronize: the stream is not alive");
    tni_clock clock = {0};
    clock_of(w, TNI_RECORD_STREAM, stream, &clock);
    tn_event_impl *mark = tni_mark_end(w, tni_device_of(&s), stream);
    tn_status status =
        TNI_ASK(w, slot, NULL, waits ? 0 : TNI_MAY_WAIT,
                waits ? w->real.streams.synchronize(stream) : w->real.streams.query(stream));
    if (mark)
        tni_judge_mark(w, mark, status, waits);
    if (w->level >= 2 && atomic_load(&w->caller) != TNI_MANY_CALLERS && !s.captures)
        tni_judge_error(w, stream, status, slot);
    tni_clock_settle(w, &clock,
                     status != TN_NOT_READY && status != TN_ERR_DEVICE_LOST &&
                         !(s.captures && status == TN_ERR_STATE));
    tni_note_refusal(w, &s, status, slot);
    tni_note_loss(w, tni_device_of(&s), s.lost, status, slot, "");
    return status;
}

static tn_status stream_query(tn_stream_impl *stream) {
    return ask_stream(stream, false);
}

static tn_status stream_synchronize(tn_stream_impl *stream) {
    return ask_stream(stream, true);
}

/* ---- events ------------------------------------------------------------------------------ */

static void record_begins(tni_watch *w, tn_event_impl *event) {
    pthread_mutex_lock(&tni_records_lock);
    tni_record *e = tni_record_find(w, TNI_RECORD_EVENT, (uintptr_t)event);
    if (e) {
        e->recording++;
        e->generation++;
        e->seen_done = false;
    }
    pthread_mutex_unlock(&tni_records_lock);
}

static void record_ends(tni_watch *w, tn_event_impl *event, tn_stream_impl *stream,
                        tn_status status) {
    pthread_mutex_lock(&tni_records_lock);
    tni_record *e = tni_record_find(w, TNI_RECORD_EVENT, (uintptr_t)event);
    tni_record *s = tni_record_find(w, TNI_RECORD_STREAM, (uintptr_t)stream);
    if (e)
        e->recording--;
    if (e && s && status == TN_OK) {
        tni_note_work(w, stream);
        e->marked = true;
        e->clock.n = 0;
        tni_mark_stream(w, s, &e->clock);
    }
    pthread_mutex_unlock(&tni_records_lock);
}

static tn_status event_record(tn_event_impl *event, tn_stream_impl *stream) {
    tni_watch *w = tni_watch_of(TNI_RECORD_EVENT, event);
    tni_record e, s;
    const char *slot = "events->record";
    if (!tni_live_event(w, slot, event, &e) || !tni_live_stream(w, slot, "", NULL, stream, &s))
        return tni_watch_refuse("events->record: event or stream is not alive");
    if (e.device != s.device)
        tni_finding(w, TNI_TENON, slot, "", "the stream is of another device than the event");
    if (w->level >= 2 && !e.timing)
        tni_hold(w, tni_device_of(&s), stream, TNI_A_WHILE); /* for tni_watch_wait */
    record_begins(w, event);
    tn_status status = TNI_ASK(w, slot, NULL, 0, w->real.events.record(event, stream));
    record_ends(w, event, stream, status);
    tni_note_refusal(w, &s, status, slot);
    tni_note_loss(w, tni_device_of(&s), s.lost, status, slot, "");
    return status;
}

static tn_status event_wait(tn_stream_impl *stream, tn_event_impl *event) {
    tni_watch *w = tni_watch_of(TNI_RECORD_STREAM, stream);
    tni_record e, s;
    const char *slot = "events->wait";
    if (!tni_live_event(w, slot, event, &e) || !tni_live_stream(w, slot, "", NULL, stream, &s))
        return tni_watch_refuse("events->wait: event or stream is not alive");
    tni_clock mark = {0};
    clock_of(w, TNI_RECORD_EVENT, event, &mark);
    tn_status status = TNI_ASK(w, slot, NULL, 0, w->real.events.wait(stream, event));
    pthread_mutex_lock(&tni_records_lock);
    tni_record *r = tni_record_find(w, TNI_RECORD_STREAM, (uintptr_t)stream);
    if (r && status == TN_OK) {
        tni_clock_merge(w, &r->clock, &mark);
        r->queued++;
    }
    tni_clock_free(&mark);
    pthread_mutex_unlock(&tni_records_lock);
    if (w->level >= 2 && status == TN_OK && !s.captures)
        tni_watch_wait(w, tni_device_of(&s), stream, &e);
    tni_note_refusal(w, &s, status, slot);
    tni_note_loss(w, tni_device_of(&s), s.lost, status, slot, "");
    return status;
}

/* The plugin said that the event was passed, or not yet: does it fit what it said before? Only
 * where no record came between. */
static void judge_event(tni_watch *w, tn_event_impl *event, const tni_record *before, bool ready,
                        const char *slot) {
    bool undone = false, unmarked = false;
    pthread_mutex_lock(&tni_records_lock);
    tni_record *e = tni_record_find(w, TNI_RECORD_EVENT, (uintptr_t)event);
    if (e && !before->recording && !e->recording && e->generation == before->generation &&
        e->serial == before->serial) {
        undone = !ready && before->seen_done;
        unmarked = !ready && before->generation == 0;
        e->seen_done = e->seen_done || ready;
    }
    pthread_mutex_unlock(&tni_records_lock);
    if (undone)
        tni_finding(w, TNP_EVENT_QUERY, slot, "",
                    "answered TN_NOT_READY after TN_OK, and the event was not recorded in between");
    else if (unmarked)
        tni_finding(w, TNP_EVENT_CREATE, slot, "",
                    "answered TN_NOT_READY for an event that was never recorded");
}

static tn_status ask_event(tn_event_impl *event, bool waits) {
    tni_watch *w = tni_watch_of(TNI_RECORD_EVENT, event);
    tni_record e;
    const char *slot = waits ? "events->synchronize" : "events->query";
    if (!tni_live_event(w, slot, event, &e))
        return tni_watch_refuse("events->query or synchronize: the event is not alive");
    tni_clock clock = {0};
    clock_of(w, TNI_RECORD_EVENT, event, &clock);
    tn_status status =
        TNI_ASK(w, slot, NULL, waits ? 0 : TNI_MAY_WAIT,
                waits ? w->real.events.synchronize(event) : w->real.events.query(event));
    tni_clock_settle(w, &clock, status == TN_OK);
    if (status == TN_OK || (status == TN_NOT_READY && !waits))
        judge_event(w, event, &e, status == TN_OK, slot);
    return status;
}

static tn_status event_query(tn_event_impl *event) {
    return ask_event(event, false);
}

static tn_status event_synchronize(tn_event_impl *event) {
    return ask_event(event, true);
}

static tn_status event_elapsed(tn_event_impl *start, tn_event_impl *end, double *out) {
    tni_watch *w = tni_watch_of(TNI_RECORD_EVENT, start);
    tni_record a, b;
    const char *slot = "events->elapsed";
    if (!tni_live_event(w, slot, start, &a) || !tni_live_event(w, slot, end, &b))
        return tni_watch_refuse("events->elapsed: an event is not alive");
    if (!a.timing || !b.timing)
        tni_finding(w, TNI_TENON, slot, "", "an event was made without TN_EVENT_TIMING");
    tn_status status = TNI_ASK(w, slot, NULL, 0, w->real.events.elapsed(start, end, out));
    if (status == TN_OK && !(a.marked && b.marked))
        tni_finding(w, TNP_EVENT_ELAPSED, slot, "",
                    "answered TN_OK for an event that was never recorded");
    return status;
}

/* ---- the tables -------------------------------------------------------------------------- */

const tn_stream_ops tni_checked_streams = {
    .create = stream_create,
    .destroy = stream_destroy,
    .query = stream_query,
    .synchronize = stream_synchronize,
};
TN_LAST_MEMBER(tn_stream_ops, synchronize);

const tn_event_ops tni_checked_events = {
    .create = event_create,
    .destroy = event_destroy,
    .record = event_record,
    .wait = event_wait,
    .query = event_query,
    .synchronize = event_synchronize,
    .elapsed = event_elapsed,
};
TN_LAST_MEMBER(tn_event_ops, elapsed);
