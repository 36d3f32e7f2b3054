/* What the layer does on a device itself, at level 2: it waits for work, and reads and writes
 * memory. On a device with streams all of it is on a stream of the layer's own, which waits for
 * the others by events: asking these would take from the caller the errors that they report once. */
#include "loader/validation/internal.h"

#include <string.h>

enum {
    MAX_STREAMS = 64,    /* of a device; with more of them nothing is waited for */
    HOLD_BYTES = 1 << 20 /* what is filled to keep a stream busy */
};

tn_stream_impl *tni_own_stream(tni_watch *w, tn_device_impl *device, bool *out_ok) {
    *out_ok = true;
    if (!w->real.devices.streams)
        return NULL;
    pthread_mutex_lock(&tni_records_lock);
    tni_record *d = tni_record_find(w, TNI_RECORD_DEVICE, (uintptr_t)device);
    tn_stream_impl *stream = d ? d->own_stream : NULL;
    pthread_mutex_unlock(&tni_records_lock);
    if (stream)
        return stream;
    if (w->real.streams.create(device, 0, &stream) != TN_OK || !stream)
        return *out_ok = false, NULL;
    pthread_mutex_lock(&tni_records_lock);
    d = tni_record_find(w, TNI_RECORD_DEVICE, (uintptr_t)device);
    tn_stream_impl *other = d ? d->own_stream : NULL;
    if (d && !other)
        d->own_stream = stream;
    pthread_mutex_unlock(&tni_records_lock);
    if (!other)
        return stream;
    w->real.streams.destroy(stream); /* another thread was first */
    return other;
}

void tni_aside_finish(tni_watch *w, tn_device_impl *device) {
    pthread_mutex_lock(&tni_records_lock);
    tni_record *d = tni_record_find(w, TNI_RECORD_DEVICE, (uintptr_t)device);
    tn_stream_impl *stream = d ? d->own_stream : NULL;
    tn_memory memory = d ? d->hold : 0;
    if (d) {
        d->own_stream = NULL;
        d->hold = 0;
    }
    pthread_mutex_unlock(&tni_records_lock);
    if (stream)
        w->real.streams.destroy(stream);
    if (memory)
        w->real.memory.dealloc(device, TN_SPACE_DEVICE, memory);
}

/* ---- waiting ----------------------------------------------------------------------------- */

/* The device's streams; false when there are too many, or one captures. */
static bool list_streams(tni_watch *w, tn_device_impl *device, tn_stream_impl **out,
                         uint32_t *out_n) {
    bool ok = true;
    *out_n = 0;
    pthread_mutex_lock(&tni_records_lock);
    for (tni_record *r = NULL; (r = tni_record_next(w, r));) {
        if (r->kind != TNI_RECORD_STREAM || r->device != (uintptr_t)device)
            continue;
        ok = ok && !r->captures && *out_n < MAX_STREAMS;
        if (ok)
            out[(*out_n)++] = (tn_stream_impl *)(uintptr_t)r->key;
    }
    pthread_mutex_unlock(&tni_records_lock);
    return ok;
}

bool tni_still(tni_watch *w, tn_device_impl *device) {
    tn_stream_impl *streams[MAX_STREAMS];
    tn_event_impl *mark = NULL;
    uint32_t n;
    bool ok;
    tn_stream_impl *own = tni_own_stream(w, device, &ok);
    if (!own)
        return ok;
    if (!list_streams(w, device, streams, &n) || w->real.events.create(device, 0, &mark) != TN_OK ||
        !mark)
        return false;
    for (uint32_t i = 0; i < n && ok; i++)
        ok = w->real.events.record(mark, streams[i]) == TN_OK &&
             w->real.events.wait(own, mark) == TN_OK;
    ok = ok && w->real.streams.synchronize(own) == TN_OK;
    w->real.events.destroy(mark);
    return ok;
}

/* Fills some memory of the layer's own, which nobody reads. */
void tni_hold(tni_watch *w, tn_device_impl *device, tn_stream_impl *stream, int times) {
    pthread_mutex_lock(&tni_records_lock);
    tni_record *d = tni_record_find(w, TNI_RECORD_DEVICE, (uintptr_t)device);
    const tni_record *s = tni_record_find(w, TNI_RECORD_STREAM, (uintptr_t)stream);
    bool captures = s && s->captures;
    tn_memory memory = d ? d->hold : 0;
    tn_allocation made = {.struct_size = sizeof made,
                          .bytes = HOLD_BYTES,
                          .alignment = d ? d->alignment : 1,
                          .space = TN_SPACE_DEVICE};
    pthread_mutex_unlock(&tni_records_lock);
    if (captures)
        return;
    if (!memory) {
        if (w->real.memory.alloc(device, &made) != TN_OK || !made.memory)
            return;
        pthread_mutex_lock(&tni_records_lock);
        d = tni_record_find(w, TNI_RECORD_DEVICE, (uintptr_t)device);
        memory = d ? d->hold : 0;
        if (d && !memory)
            d->hold = made.memory;
        pthread_mutex_unlock(&tni_records_lock);
        if (memory)
            w->real.memory.dealloc(device, TN_SPACE_DEVICE, made.memory);
        else
            memory = made.memory;
    }
    for (int i = 0; i < times; i++)
        if (w->real.memory.fill(device, stream, memory, 0, (uint8_t)i, HOLD_BYTES) != TN_OK)
            return;
}

/* ---- memory ------------------------------------------------------------------------------ */

bool tni_peek(tni_watch *w, tn_device_impl *device, tn_memory memory, const char *host,
              uint64_t offset, void *out, uint64_t bytes) {
    if (host) {
        memcpy(out, host + offset, bytes);
        return true;
    }
    bool ok;
    tn_stream_impl *own = tni_own_stream(w, device, &ok);
    return ok && w->real.memory.copy_to_host(device, own, out, 0, memory, offset, bytes) == TN_OK;
}

bool tni_poke(tni_watch *w, tn_device_impl *device, tn_memory memory, uint64_t offset,
              const void *src, uint64_t bytes) {
    bool ok;
    tn_stream_impl *own = tni_own_stream(w, device, &ok);
    return ok &&
           w->real.memory.copy_from_host(device, own, memory, offset, src, 0, bytes) == TN_OK &&
           (!own || w->real.streams.synchronize(own) == TN_OK);
}
