/* Which queued work is known to be done.
 *
 * Each stream counts its pieces of work. A clock says "up to which piece" for several streams: what
 * a stream's work waits for, what an event marks, what uses an allocation. When the host has waited
 * for a mark, all that its clock names is done. Without memory for a clock nothing is said about
 * order any more, rather than something wrong. */
#include "base/alloc.h"
#include "loader/validation/internal.h"

void tni_clock_free(tni_clock *c) {
    tni_free(c->points);
    *c = (tni_clock){0};
}

/* Where the work is not known to be done. A stream that is gone finished its work first. */
static tni_record *pending_at(tni_watch *w, const tni_point *p) {
    tni_record *s = tni_record_find(w, TNI_RECORD_STREAM, p->stream);
    return s && s->serial == p->serial && s->done < p->work ? s : NULL;
}

/* Forgets the points that were passed, so that a clock is never longer than there are streams. */
static void tidy(tni_watch *w, tni_clock *c) {
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++)
        if (pending_at(w, &c->points[i]))
            c->points[kept++] = c->points[i];
    c->n = kept;
}

/* One more point, or a later one in the same stream. */
static void add(tni_watch *w, tni_clock *c, tni_point p) {
    for (size_t i = 0; i < c->n; i++) {
        tni_point *q = &c->points[i];
        if (q->stream == p.stream && q->serial == p.serial) {
            q->work = q->work < p.work ? p.work : q->work;
            return;
        }
    }
    if (c->n == c->capacity)
        tidy(w, c);
    if (c->n == c->capacity && !tni_grow(&c->points, c->n, &c->capacity, sizeof *c->points)) {
        w->order_lost = true;
        return;
    }
    c->points[c->n++] = p;
}

void tni_clock_merge(tni_watch *w, tni_clock *c, const tni_clock *from) {
    for (size_t i = 0; i < from->n; i++)
        add(w, c, from->points[i]);
}

/* Up to here in the stream. */
static tni_point end_of(const tni_record *stream) {
    return (tni_point){stream->key, stream->serial, stream->queued};
}

tni_point tni_note_work(tni_watch *w, tn_stream_impl *stream) {
    tni_record *s = stream ? tni_record_find(w, TNI_RECORD_STREAM, (uintptr_t)stream) : NULL;
    if (!s)
        return (tni_point){0};
    if (s->captures)
        return (tni_point){s->key, s->serial, 0};
    s->queued++;
    return end_of(s);
}

void tni_note_use(tni_watch *w, tni_point work, tni_record *memory) {
    if (!work.stream || !memory)
        return;
    tni_record *s = work.work ? NULL : tni_record_find(w, TNI_RECORD_STREAM, work.stream);
    if (s)
        tni_name(w, &s->names, (tni_named){memory->key, memory->serial, memory->space});
    else if (work.work)
        add(w, &memory->clock, work);
}

void tni_mark_stream(tni_watch *w, const tni_record *stream, tni_clock *out) {
    add(w, out, end_of(stream));
    tni_clock_merge(w, out, &stream->clock);
}

void tni_clock_passed(tni_watch *w, const tni_clock *c) {
    for (size_t i = 0; i < c->n; i++) {
        tni_record *s = pending_at(w, &c->points[i]);
        if (s)
            s->done = c->points[i].work;
    }
}

void tni_clock_settle(tni_watch *w, tni_clock *clock, bool passed) {
    pthread_mutex_lock(&tni_records_lock);
    if (passed)
        tni_clock_passed(w, clock);
    tni_clock_free(clock);
    pthread_mutex_unlock(&tni_records_lock);
}

const tni_record *tni_clock_pending(tni_watch *w, const tni_clock *c) {
    const tni_record *s = NULL;
    for (size_t i = 0; i < c->n && !s && !w->order_lost; i++)
        s = pending_at(w, &c->points[i]);
    return s;
}
