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

typedef struct search {
    uint64_t serial;
    tni_record *found;
} search;

static bool is_stream(tni_watch *w, tni_record *r, void *user) {
    search *s = user;
    if (r->kind == TNI_RECORD_STREAM && r->serial == s->serial)
        s->found = r;
    return !s->found;
}

/* A stream that is gone finished its work first: NULL. */
static tni_record *stream_numbered(tni_watch *w, uint64_t serial) {
    search s = {.serial = serial};
    tni_record_each(w, is_stream, &s);
    return s.found;
}

static bool is_pending(tni_watch *w, const tni_point *p) {
    const tni_record *stream = stream_numbered(w, p->stream);
    return stream && stream->done < p->work;
}

/* Forgets the points that were passed, so that a clock is never longer than there are streams. */
static void tidy(tni_watch *w, tni_clock *c) {
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++)
        if (is_pending(w, &c->points[i]))
            c->points[kept++] = c->points[i];
    c->n = kept;
}

void tni_clock_add(tni_watch *w, tni_clock *c, uint64_t stream, uint64_t work) {
    for (size_t i = 0; i < c->n; i++) {
        if (c->points[i].stream == stream) {
            if (c->points[i].work < work)
                c->points[i].work = work;
            return;
        }
    }
    if (c->n == c->capacity)
        tidy(w, c);
    if (c->n == c->capacity && !tni_grow(&c->points, c->n, &c->capacity, sizeof *c->points)) {
        w->order_lost = true;
        return;
    }
    c->points[c->n++] = (tni_point){stream, work};
}

void tni_clock_merge(tni_watch *w, tni_clock *c, const tni_clock *from) {
    for (size_t i = 0; i < from->n; i++)
        tni_clock_add(w, c, from->points[i].stream, from->points[i].work);
}

void tni_note_work(tni_watch *w, tn_stream_impl *stream, tni_record *memory) {
    tni_record *s = tni_record_find(w, TNI_RECORD_STREAM, (uintptr_t)stream);
    if (!stream || !s)
        return;
    s->queued++;
    if (memory)
        tni_clock_add(w, &memory->clock, s->serial, s->queued);
}

void tni_mark_stream(tni_watch *w, const tni_record *stream, tni_clock *out) {
    tni_clock_add(w, out, stream->serial, stream->queued);
    tni_clock_merge(w, out, &stream->clock);
}

void tni_clock_passed(tni_watch *w, const tni_clock *c) {
    for (size_t i = 0; i < c->n; i++) {
        tni_record *s = stream_numbered(w, c->points[i].stream);
        if (s && s->done < c->points[i].work)
            s->done = c->points[i].work;
    }
}

const tni_record *tni_clock_pending(tni_watch *w, const tni_clock *c) {
    for (size_t i = 0; i < c->n && !w->order_lost; i++) {
        const tni_record *s = stream_numbered(w, c->points[i].stream);
        if (s && s->done < c->points[i].work)
            return s;
    }
    return NULL;
}
