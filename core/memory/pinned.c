/* Pinned host memory: allocations of powers of two, kept for reuse. A device that pins none gets
 * plain memory, which transfers treat as any.
 *
 * Which copies use a piece of pinned memory is not followed. When it is freed, every stream of its
 * device is marked, and it is handed out again when all have passed their marks. To other devices it
 * is memory like any, which no transfer uses once its call has returned.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "core/memory/pool.h"

#include <inttypes.h>
#include <stdio.h>

enum { MIN_LOG2 = 9, N_BUCKETS = 256 };

typedef struct mark {
    struct mark *next;
    tn_stream *stream; /* kept */
    tn_event_impl *event;
} mark;

typedef struct pinned {
    struct pinned *next; /* in its bucket while it is in use, else in the list of free ones */
    tni_device *device;
    void *host;
    tn_memory memory; /* 0: plain */
    uint32_t log2_bytes;
    bool unmarked; /* some stream could not be marked: to be tried again */
    mark *marks;
} pinned;

static tni_lock lock = TNI_LOCK_INITIALIZER;
static pinned *in_use[N_BUCKETS]; /* by address */
static _Atomic uint32_t n_in_use; /* read without the lock: transfers ask each time */
static pinned *idle;              /* freed, maybe still marked */

/* What another thread was changing is left. */
static void mend(bool whole) {
    for (int i = 0; i < N_BUCKETS && !whole; i++)
        in_use[i] = NULL;
    idle = whole ? idle : NULL;
    if (!whole)
        atomic_store(&n_in_use, 0);
}

TNI_FORK_LOCK(PINNED, lock, mend)

static pinned **bucket_of(const void *host) {
    uint64_t hash = ((uint64_t)(uintptr_t)host >> 6) * UINT64_C(0x9e3779b97f4a7c15);
    return &in_use[hash >> 56];
}

/* ---- marks ------------------------------------------------------------------------------- */

static void mark_free(mark *m) {
    if (m->event)
        tni_event_give(m->stream->device, m->event);
    tn_stream_drop(m->stream);
    tni_free(m);
}

static void mark_stream(tn_stream *s, void *user) {
    pinned *p = user;
    tni_device *d = s->device;
    if (!s->handle || atomic_load(&d->lost) || p->unmarked || tni_stream_captures(s))
        return;
    mark *m = tni_calloc(1, sizeof *m);
    tn_status status;
    p->unmarked = true;
    if (!m)
        return;
    m->stream = tn_stream_keep(s);
    m->event = tni_event_take(d, &status);
    if (m->event)
        status = d->events->record(m->event, s->handle);
    p->unmarked = tni_device_notice(d, status) && status != TN_ERR_DEVICE_LOST;
    if (!status) {
        m->next = p->marks;
        p->marks = m;
    } else {
        mark_free(m);
    }
}

static void mark_all(pinned *p) {
    if (p->memory)
        tni_device_for_each_stream(p->device, mark_stream, p);
    tni_error_plugin(TN_OK, NULL);
}

/* Have all streams passed? */
static bool passed(pinned *p, bool wait) {
    if (p->unmarked) {
        p->unmarked = false;
        mark_all(p);
    }
    for (mark *m; (m = p->marks);) {
        tni_device *d = m->stream->device;
        tn_status status = TN_OK;
        if (!atomic_load(&d->lost))
            status = wait ? d->events->synchronize(m->event) : d->events->query(m->event);
        if (tni_device_notice(d, status) && status != TN_ERR_DEVICE_LOST)
            return false;
        p->marks = m->next;
        mark_free(m);
    }
    return !p->unmarked;
}

/* ---- taking and giving back -------------------------------------------------------------- */

static void destroy(pinned *p) {
    tni_device *d = p->device;
    if (!p->memory)
        tni_free(p->host);
    else if (!atomic_load(&d->forked))
        d->memory->dealloc(d->handle, TN_SPACE_PINNED, p->memory);
    tni_free(p);
}

static pinned *take_idle(tni_device *d, uint32_t log2_bytes) {
    for (pinned **at = &idle, *p; (p = *at); at = &p->next) {
        if (p->device != d || p->log2_bytes != log2_bytes || !passed(p, false))
            continue;
        *at = p->next;
        return p;
    }
    return NULL;
}

static void release(tni_device *d) {
    for (pinned **at = &idle, *p; (p = *at);) {
        if (p->device != d || !passed(p, true)) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        destroy(p);
    }
}

static pinned *fail(tni_device *d, pinned *p, tn_status status, uint64_t bytes) {
    char what[96], text[TNI_BYTES_TEXT];
    snprintf(what, sizeof what, "allocating %s of pinned host memory", tni_bytes_text(bytes, text));
    tni_device_fail(d, status, what);
    tni_free(p);
    return NULL;
}

static pinned *make(tni_device *d, uint32_t log2_bytes) {
    uint64_t bytes = UINT64_C(1) << log2_bytes;
    pinned *p = tni_calloc(1, sizeof *p);
    if (!p)
        return tni_fail_memory_null("pinned host memory");
    p->device = d;
    p->log2_bytes = log2_bytes;
    if (!(d->spaces & 1u << TN_SPACE_PINNED)) {
        p->host = tni_alloc_aligned(bytes, d->alignment > 64 ? d->alignment : 64);
        if (p->host)
            return p;
        tni_free(p);
        return tni_fail_memory_null("host memory for transfers");
    }
    for (int attempt = 0;; attempt++) {
        tni_error_plugin(TN_OK, NULL);
        tn_allocation made = tni_allocation(d, TN_SPACE_PINNED, bytes);
        tn_status status = d->memory->alloc(d->handle, &made);
        if (status == TN_ERR_OUT_OF_MEMORY && attempt == 0) {
            release(d);
            continue;
        }
        if (status)
            return fail(d, p, status, bytes);
        p->memory = made.memory;
        p->host = made.host;
        break;
    }
    if (p->memory && p->host)
        return p;
    if (p->memory)
        d->memory->dealloc(d->handle, TN_SPACE_PINNED, p->memory);
    tni_error_plugin(TN_ERR_INTERNAL,
                     "memory->alloc returned TN_OK without a handle or without a host"
                     " pointer; both are required of pinned memory");
    return fail(d, p, TN_ERR_INTERNAL, bytes);
}

void *tn_pinned_alloc(tn_device device, uint64_t bytes) {
    tni_device *d = tni_device_get(device);
    if (!d || tni_device_check(d))
        return NULL;
    if (!d->allocator)
        return tni_fail_null(TN_ERR_UNSUPPORTED,
                             "%s: this device has no memory, so none can be pinned for it",
                             d->name);
    if (bytes > UINT64_C(1) << 46)
        return tni_fail_null(TN_ERR_OUT_OF_MEMORY,
                             "%s: %" PRIu64 " bytes of pinned memory are more than any host"
                             " has",
                             d->name, bytes);
    uint32_t log2_bytes = MIN_LOG2;
    while (UINT64_C(1) << log2_bytes < bytes)
        log2_bytes++;
    tni_lock_take(&lock);
    pinned *p = take_idle(d, log2_bytes);
    if (!p)
        p = make(d, log2_bytes);
    if (p) {
        pinned **bucket = bucket_of(p->host);
        p->next = *bucket;
        *bucket = p;
        atomic_fetch_add_explicit(&n_in_use, 1, memory_order_relaxed);
    }
    void *host = p ? p->host : NULL;
    tni_error_plugin(TN_OK, NULL);
    tni_lock_give(&lock);
    return host;
}

void tn_pinned_free(void *host) {
    if (!host)
        return;
    tni_lock_take(&lock);
    pinned **at = bucket_of(host);
    while (*at && (*at)->host != host)
        at = &(*at)->next;
    pinned *p = *at;
    if (p) {
        *at = p->next;
        atomic_fetch_sub_explicit(&n_in_use, 1, memory_order_relaxed);
        mark_all(p);
        p->next = idle;
        idle = p;
    }
    tni_lock_give(&lock);
    if (!p)
        tni_fail(TN_ERR_INVALID_ARGUMENT,
                 "tn_pinned_free: %p was not returned by tn_pinned_alloc, or was freed already",
                 host);
}

/* The one in use that has the address in it, or NULL. Under the lock. */
static const pinned *find_around(uintptr_t at) {
    for (int i = 0; i < N_BUCKETS; i++)
        for (const pinned *p = in_use[i]; p; p = p->next)
            if (at - (uintptr_t)p->host < UINT64_C(1) << p->log2_bytes)
                return p;
    return NULL;
}

tn_device tn_pinned_owner(const void *p) {
    tni_lock_take(&lock);
    const pinned *around = find_around((uintptr_t)p);
    tn_device owner = around ? around->device->id : tn_no_device();
    tni_lock_give(&lock);
    return owner;
}

tn_memory tni_pinned_handle(const tni_device *d, const void *p, uint64_t bytes) {
    if (TNI_LIKELY(atomic_load_explicit(&n_in_use, memory_order_relaxed) == 0))
        return 0;
    tni_lock_take(&lock);
    const pinned *around = find_around((uintptr_t)p);
    bool inside =
        around && around->device == d &&
        bytes <= (UINT64_C(1) << around->log2_bytes) - ((uintptr_t)p - (uintptr_t)around->host);
    tn_memory memory = inside ? around->memory : 0;
    tni_lock_give(&lock);
    return memory;
}

void tni_pinned_release(tni_device *d) {
    tni_lock_take(&lock);
    release(d);
    tni_error_plugin(TN_OK, NULL);
    tni_lock_give(&lock);
}

static void destroy_list(pinned *p) {
    for (pinned *next; p; p = next) {
        next = p->next;
        for (mark *m; (m = p->marks);) {
            p->marks = m->next;
            if (atomic_load(&m->stream->device->forked))
                m->event = NULL;
            mark_free(m);
        }
        destroy(p);
    }
}

void tni_pinned_finish(void) {
    tni_lock_take(&lock);
    for (int i = 0; i < N_BUCKETS; i++) {
        destroy_list(in_use[i]);
        in_use[i] = NULL;
    }
    atomic_store(&n_in_use, 0);
    destroy_list(idle);
    idle = NULL;
    tni_lock_give(&lock);
}
