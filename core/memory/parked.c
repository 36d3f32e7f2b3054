/* Blocks that several streams use: after their free they wait here until the other streams have
 * passed the moment of the free. */
#include "base/alloc.h"
#include "base/error.h"
#include "core/memory/pool.h"

/* A stream that uses a block; after the free, the event waited for. */
typedef struct tni_use {
    struct tni_use *next;
    tn_stream *stream;    /* kept */
    tn_event_impl *event; /* of the stream's device */
} tni_use;

static bool uses(const tni_block *b, const tn_stream *stream) {
    for (const tni_use *u = b->uses; u; u = u->next)
        if (u->stream == stream)
            return true;
    return false;
}

bool tni_block_add_use(tni_block *b, tn_stream *stream) {
    if (uses(b, stream))
        return true;
    tni_use *u = tni_alloc(sizeof *u);
    if (!u)
        return false;
    *u = (tni_use){.next = b->uses, .stream = tn_stream_keep(stream)};
    b->uses = u;
    b->size_class = TNI_NO_CLASS;
    return true;
}

static tn_stream *stream_of(const tni_block *b) {
    return b->segment->pool->of->stream;
}

tn_stream *tni_block_stream(const tni_block *b) {
    tni_allocator *a = b->device->allocator;
    bool inside = tni_lock_is_mine(&a->lock);
    if (!inside)
        tni_allocator_lock(a);
    tn_stream *stream = stream_of(b);
    if (!inside)
        tni_allocator_unlock(a);
    return stream;
}

tn_status tni_block_record_stream(tni_block *b, tn_stream *stream) {
    if (!stream->handle)
        return TN_OK;
    tn_status status = tni_device_check(stream->device);
    tni_allocator *a = b->device->allocator;
    if (!status)
        status = tni_allocator_enter(a);
    if (status)
        return status;
    bool added = stream == stream_of(b) || tni_block_add_use(b, stream);
    tni_allocator_unlock(a);
    return added ? TN_OK : tni_fail_memory("a note that a block is used on another stream");
}

/* Marks the present end of the use's stream. An event that could not be had or recorded (the stream
 * captures) is tried again when the block is looked at next; until then the block stays parked. */
static bool mark(tni_use *u) {
    tni_device *d = u->stream->device;
    tn_status status;
    if (tni_stream_captures(u->stream))
        return false;
    tn_event_impl *event = tni_event_take(d, &status);
    if (event)
        status = d->events->record(event, u->stream->handle);
    if (!tni_device_notice(d, status)) {
        u->event = event;
        return true;
    }
    if (event)
        tni_event_give(d, event);
    return false;
}

static bool passed(tni_use *u, bool wait) {
    tni_device *d = u->stream->device;
    if (atomic_load(&d->lost))
        return true;
    if (!u->event && !mark(u))
        return atomic_load(&d->lost);
    tn_status status = wait ? d->events->synchronize(u->event) : d->events->query(u->event);
    return !tni_device_notice(d, status) || status == TN_ERR_DEVICE_LOST;
}

static void use_free(tni_use *u) {
    if (u->event)
        tni_event_give(u->stream->device, u->event);
    tn_stream_drop(u->stream);
    tni_free(u);
}

/* Frees the uses whose streams are past; true when none is left. */
static bool settle(tni_block *b, bool wait) {
    for (tni_use **at = &b->uses, *u; (u = *at);) {
        if (passed(u, wait)) {
            *at = u->next;
            use_free(u);
        } else {
            at = &u->next;
        }
    }
    return !b->uses;
}

void tni_block_park(tni_allocator *a, tni_block *b) {
    for (tni_use *u = b->uses; u; u = u->next)
        if (!atomic_load(&u->stream->device->lost))
            mark(u);
    a->parked_bytes += b->bytes;
    atomic_store_explicit(&b->state, TNI_BLOCK_PARKED, memory_order_relaxed);
    b->link = a->parked;
    a->parked = b;
    tni_error_plugin(TN_OK, NULL);
}

void tni_parked_process(tni_allocator *a, bool wait) {
    for (tni_block **at = &a->parked, *b; (b = *at);) {
        if (!settle(b, wait)) {
            at = &b->link;
            continue;
        }
        *at = b->link;
        a->parked_bytes -= b->bytes;
        tni_pool_put(b);
    }
    tni_error_plugin(TN_OK, NULL);
}

void tni_parked_finish(tni_allocator *a, bool forget) {
    for (tni_block *b; (b = a->parked);) {
        for (tni_use *u; (u = b->uses);) {
            b->uses = u->next;
            if (forget)
                u->event = NULL;
            use_free(u);
        }
        a->parked = b->link;
        a->parked_bytes -= b->bytes;
        tni_pool_put(b);
    }
}
