/* What is alive of a plugin: by handle, in one table. */
#include "base/alloc.h"
#include "loader/validation/internal.h"

#include <inttypes.h>

static const char *const kind_names[] = {"device", "stream", "event", "memory", "block"};

static tni_record **bucket_of(tni_watch *w, uint64_t key) {
    return &w->buckets[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
}
_Static_assert(TNI_RECORD_BUCKETS == 1 << (64 - 54), "the shift of bucket_of");

tni_record *tni_record_find(tni_watch *w, tni_record_kind kind, uint64_t key) {
    tni_record *r = *bucket_of(w, key);
    while (r && (r->key != key || r->kind != kind))
        r = r->next;
    return r;
}

tni_record *tni_memory_find(tni_watch *w, const void *device, int32_t space, tn_memory memory) {
    tni_record *r = *bucket_of(w, memory);
    while (r && (r->key != memory || r->kind != TNI_RECORD_MEMORY || r->space != space ||
                 r->device != (uintptr_t)device))
        r = r->next;
    return r;
}

tni_record *tni_memory_of(tni_watch *w, const void *device, tn_memory memory) {
    tni_record *r = tni_memory_find(w, device, TN_SPACE_DEVICE, memory);
    return r ? r : tni_memory_find(w, device, TN_SPACE_PINNED, memory);
}

tni_record *tni_record_add(tni_watch *w, tni_record_kind kind, uint64_t key, uint64_t device) {
    tni_record *r = tni_calloc(1, sizeof *r);
    if (!r)
        return NULL;
    tni_record **bucket = bucket_of(w, key);
    r->kind = kind;
    r->key = key;
    r->device = device;
    r->serial = ++w->n_made[kind];
    r->next = *bucket;
    *bucket = r;
    w->n_alive[kind]++;
    return r;
}

void tni_record_remove(tni_watch *w, tni_record *r) {
    tni_record **at = bucket_of(w, r->key);
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    w->n_alive[r->kind]--;
    tni_clock_free(&r->clock);
    tni_free(r);
}

void tni_record_each(tni_watch *w, bool (*fn)(tni_watch *, tni_record *, void *), void *user) {
    for (int i = 0; i < TNI_RECORD_BUCKETS; i++) {
        for (tni_record *r = w->buckets[i], *next; r; r = next) {
            next = r->next;
            if (!fn(w, r, user))
                return;
        }
    }
}

/* ---- handles that must be alive ---------------------------------------------------------- */

typedef enum verdict { FOUND, MISSING, FOREIGN } verdict;

static verdict look_up(tni_watch *w, tni_record_kind kind, const void *handle, const void *device,
                       tni_record *out) {
    pthread_mutex_lock(&w->lock);
    const tni_record *r = tni_record_find(w, kind, (uintptr_t)handle);
    verdict v = !r ? MISSING : device && r->device != (uintptr_t)device ? FOREIGN : FOUND;
    if (r) {
        *out = *r;
        out->clock = (tni_clock){0};
        out->next = NULL;
    }
    pthread_mutex_unlock(&w->lock);
    return v;
}

static bool check(tni_watch *w, const char *slot, const char *op, tni_record_kind kind,
                  const void *handle, const void *device, tni_record *out) {
    verdict v = look_up(w, kind, handle, device, out);
    const char *name = kind_names[kind];
    if (v == MISSING)
        tni_finding(w, TNI_TENON, slot, op,
                    "%s %p is not alive: it was %s before, or this plugin never gave it out", name,
                    handle, kind == TNI_RECORD_DEVICE ? "closed" : "destroyed");
    else if (v == FOREIGN)
        tni_finding(w, TNI_TENON, slot, op,
                    "%s %p (the plugin's %s number %" PRIu64 ") is of another device than the call",
                    name, handle, name, out->serial);
    return v == FOUND;
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

void tni_note_loss(tni_watch *w, tn_device_impl *device, bool was_lost, tn_status status,
                   const char *slot, const char *op) {
    if (was_lost && status != TN_ERR_DEVICE_LOST)
        tni_finding(w, TNP_DEVICE_LOST_FAILS, slot, op,
                    "answered %d on a device that it had called lost before", status);
    if (was_lost || status != TN_ERR_DEVICE_LOST)
        return;
    pthread_mutex_lock(&w->lock);
    tni_record *r = tni_record_find(w, TNI_RECORD_DEVICE, (uintptr_t)device);
    if (r)
        r->lost = true;
    pthread_mutex_unlock(&w->lock);
}
