/* What is alive, and of which plugin: by handle, in one table.
 *
 * Most slots are handed nothing but a handle, so a handle says whose call it is. That of a thing which
 * is gone still does: its record stays behind, until the handle is given out again or the watch ends. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/fork.h"
#include "loader/validation/internal.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const kind_names[] = {"host",  "self",  "device", "stream",
                                         "event", "graph", "memory", "block"};

enum { BUCKET_BITS = 10, N_BUCKETS = 1 << BUCKET_BITS };
static tni_record *buckets[N_BUCKETS];

pthread_mutex_t tni_records_lock = PTHREAD_MUTEX_INITIALIZER;

TNI_FORK_MUTEX(RECORDS, tni_records_lock, tni_fork_no_mend)

static tni_record **bucket_of(uint64_t key) {
    return &buckets[(key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - BUCKET_BITS)];
}

/* Of any plugin with w NULL. */
static tni_record *find(const tni_watch *w, tni_record_kind kind, uint64_t key, bool gone) {
    tni_record *r = *bucket_of(key);
    while (r && (r->key != key || r->kind != kind || r->gone != gone || (w && r->watch != w)))
        r = r->next;
    return r;
}

tni_record *tni_record_find(tni_watch *w, tni_record_kind kind, uint64_t key) {
    return find(w, kind, key, false);
}

tni_record *tni_memory_find(tni_watch *w, const void *device, int32_t space, tn_memory memory) {
    tni_record *r = *bucket_of(memory);
    while (r && (r->key != memory || r->kind != TNI_RECORD_MEMORY || r->space != space ||
                 r->device != (uintptr_t)device || r->watch != w))
        r = r->next;
    return r;
}

static void take_out(tni_record *r) {
    tni_record **at = bucket_of(r->key);
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    tni_clock_free(&r->clock);
    tni_names_free(&r->names);
    tni_free(r);
}

tni_record *tni_record_add(tni_watch *w, const tni_record *like) {
    tni_record *r = tni_alloc(sizeof *r);
    if (!r)
        return NULL;
    tni_record *before = find(NULL, like->kind, like->key, true);
    if (before)
        take_out(before);
    tni_record **bucket = bucket_of(like->key);
    *r = *like;
    r->watch = w;
    r->serial = ++w->n_made[r->kind];
    r->next = *bucket;
    *bucket = r;
    w->n_alive[r->kind]++;
    return r;
}

void tni_record_remove(tni_watch *w, tni_record *r) {
    w->n_alive[r->kind]--;
    r->gone = true;
    tni_clock_free(&r->clock);
    tni_names_free(&r->names);
    if (r->kind > TNI_RECORD_GRAPH)
        take_out(r);
}

tni_record *tni_record_next(tni_watch *w, const tni_record *after) {
    tni_record **bucket = after ? bucket_of(after->key) : buckets;
    for (tni_record *r = after ? after->next : *bucket;; r = *bucket) {
        while (r && (r->watch != w || r->gone))
            r = r->next;
        if (r || ++bucket == buckets + N_BUCKETS)
            return r;
    }
}

void tni_records_forget(tni_watch *w) {
    pthread_mutex_lock(&tni_records_lock);
    for (int i = 0; i < N_BUCKETS; i++) {
        for (tni_record *r = buckets[i], *next; r; r = next) {
            next = r->next;
            if (r->watch == w)
                take_out(r);
        }
    }
    pthread_mutex_unlock(&tni_records_lock);
}

/* ---- handles ----------------------------------------------------------------------------- */

tni_watch *tni_watch_of(tni_record_kind kind, const void *handle) {
    pthread_mutex_lock(&tni_records_lock);
    const tni_record *r = find(NULL, kind, (uintptr_t)handle, false);
    if (!r)
        r = find(NULL, kind, (uintptr_t)handle, true);
    tni_watch *w = r ? r->watch : NULL;
    pthread_mutex_unlock(&tni_records_lock);
    return w;
}

tn_status tni_handle_keep(tni_watch *w, const tni_record *like, int requirement, const char *slot) {
    const char *kind = kind_names[like->kind];
    char owner[sizeof w->name];
    if (!like->key) {
        tni_finding(w, requirement, slot, "", "succeeded with *out_%s NULL", kind);
        return tni_error_plugin(TN_ERR_INTERNAL, "a call succeeded and gave out no handle");
    }
    pthread_mutex_lock(&tni_records_lock);
    const tni_record *twin = find(NULL, like->kind, like->key, false);
    bool is_own = !twin || twin->watch == w;
    uint64_t serial = twin ? twin->serial : 0;
    snprintf(owner, sizeof owner, "%s", twin ? twin->watch->name : "");
    bool kept = is_own && tni_record_add(w, like);
    pthread_mutex_unlock(&tni_records_lock);
    if (twin)
        tni_finding(w, requirement, slot, "",
                    "gave out the handle %#" PRIx64 ", which is that of %s number %" PRIu64
                    " of %s, still open",
                    like->key, kind, serial, owner);
    if (!is_own)
        return tni_error_plugin(TN_ERR_INTERNAL, "a call gave out the handle of another plugin");
    return kept ? TN_OK
                : tni_error_plugin(TN_ERR_OUT_OF_MEMORY, "no host memory to check a handle");
}

/* NULL as device: any. */
static bool check(tni_watch *w, const char *slot, const char *op, tni_record_kind kind,
                  const void *handle, const void *device, tni_record *out) {
    const char *name = kind_names[kind];
    pthread_mutex_lock(&tni_records_lock);
    const tni_record *r = w ? tni_record_find(w, kind, (uintptr_t)handle) : NULL;
    if (r) {
        const tni_record *d = tni_record_find(w, TNI_RECORD_DEVICE, r->device);
        *out = *r;
        out->lost = r->lost || (d && d->lost);
        out->clock = (tni_clock){0};
        out->names = (tni_names){0};
    }
    pthread_mutex_unlock(&tni_records_lock);
    if (r && (!device || out->device == (uintptr_t)device))
        return true;
    if (r)
        tni_finding(w, TNI_TENON, slot, op,
                    "%s %p (the plugin's %s number %" PRIu64 ") is of another device than the call",
                    name, handle, name, out->serial);
    else
        tni_finding(w, TNI_TENON, slot, op, "%s %p is not alive: it was %s before, or %s", name,
                    handle, kind == TNI_RECORD_DEVICE ? "closed" : "destroyed",
                    w ? "this plugin never gave it out" : "it is no plugin's");
    return false;
}

bool tni_live_device(tni_watch *w, const char *slot, const char *op, tn_device_impl *device,
                     tni_record *out) {
    return check(w, slot, op, TNI_RECORD_DEVICE, device, NULL, out);
}

bool tni_live_stream(tni_watch *w, const char *slot, const char *op, tn_device_impl *device,
                     tn_stream_impl *stream, tni_record *out) {
    return check(w, slot, op, TNI_RECORD_STREAM, stream, device, out);
}

bool tni_live_event(tni_watch *w, const char *slot, tn_event_impl *event, tni_record *out) {
    return check(w, slot, "", TNI_RECORD_EVENT, event, NULL, out);
}

bool tni_live_graph(tni_watch *w, const char *slot, tn_graph_impl *graph, tni_record *out) {
    return check(w, slot, "", TNI_RECORD_GRAPH, graph, NULL, out);
}

void tni_note_refusal(tni_watch *w, const tni_record *stream, tn_status status, const char *slot) {
    if (!stream->captures || status == TN_ERR_STATE || status == TN_ERR_DEVICE_LOST)
        return;
    pthread_mutex_lock(&tni_records_lock);
    const tni_record *r = tni_record_find(w, TNI_RECORD_STREAM, stream->key);
    bool captures = r && r->captures; /* no other thread has ended it meanwhile */
    pthread_mutex_unlock(&tni_records_lock);
    if (captures)
        tni_finding(w, TNP_CAPTURE_REFUSES, slot, "",
                    "answered %s on a stream that captures; it must be STATE",
                    tn_status_name(status));
}

void tni_note_loss(tni_watch *w, tn_device_impl *device, bool was_lost, tn_status status,
                   const char *slot, const char *op) {
    if (was_lost && status != TN_ERR_DEVICE_LOST)
        tni_finding(w, TNP_DEVICE_LOST_FAILS, slot, op,
                    "answered %d on a device that it had called lost before", status);
    if (was_lost || status != TN_ERR_DEVICE_LOST)
        return;
    pthread_mutex_lock(&tni_records_lock);
    tni_record *r = tni_record_find(w, TNI_RECORD_DEVICE, (uintptr_t)device);
    if (r)
        r->lost = true;
    pthread_mutex_unlock(&tni_records_lock);
}
