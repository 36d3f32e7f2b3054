/* Pools and segments: best fit, splitting, joining, and the traffic with the plugin. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "core/memory/pool.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- the tree of free blocks ------------------------------------------------------------- */

/* A treap by (bytes, segment, offset), so that of equal blocks the one in the oldest segment is
 * taken and the young ones run empty. */

static bool before(const tni_block *a, const tni_block *b) {
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes;
    if (a->segment != b->segment)
        return a->segment->serial < b->segment->serial;
    return a->offset < b->offset;
}

static uint64_t priority(const tni_block *b) {
    return ((uint64_t)(uintptr_t)b >> 6) * UINT64_C(0x9e3779b97f4a7c15);
}

static void tree_insert(tni_block **at, tni_block *b) {
    b->segment->n_free++;
    while (*at && priority(*at) >= priority(b))
        at = before(b, *at) ? &(*at)->link : &(*at)->right;
    tni_block *t = *at, **low = &b->link, **high = &b->right;
    *at = b;
    while (t) {
        if (before(b, t)) {
            *high = t;
            high = &t->link;
            t = *high;
        } else {
            *low = t;
            low = &t->right;
            t = *low;
        }
    }
    *low = *high = NULL;
}

static void tree_remove(tni_block **at, tni_block *b) {
    b->segment->n_free--;
    while (*at != b)
        at = before(b, *at) ? &(*at)->link : &(*at)->right;
    tni_block *low = b->link, *high = b->right;
    while (low && high) {
        if (priority(low) > priority(high)) {
            *at = low;
            at = &low->right;
            low = *at;
        } else {
            *at = high;
            at = &high->link;
            high = *at;
        }
    }
    *at = low ? low : high;
}

/* The first of at least `bytes`. */
static tni_block *tree_find(tni_block *t, uint64_t bytes) {
    tni_block *best = NULL;
    while (t) {
        if (t->bytes >= bytes) {
            best = t;
            t = t->link;
        } else {
            t = t->right;
        }
    }
    return best;
}

/* ---- pools ------------------------------------------------------------------------------- */

tni_pools *tni_pools_of(tni_allocator *a, tn_stream *stream) {
    if (stream->pools)
        return stream->pools;
    tni_pools *p = tni_calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->stream = tn_stream_keep(stream);
    p->small = (tni_pool){.of = p, .small = true};
    p->large = (tni_pool){.of = p};
    tni_pools **last = &a->pools;
    while (*last)
        last = &(*last)->next;
    *last = p;
    return stream->pools = p;
}

static void pools_free(tni_pools *p) {
    p->stream->pools = NULL;
    tn_stream_drop(p->stream);
    tni_free(p);
}

/* ---- blocks ------------------------------------------------------------------------------ */

/* Is what is left after `bytes` worth a block of its own? */
static bool should_split(const tni_allocator *a, const tni_pool *pool, const tni_block *b,
                         uint64_t bytes) {
    uint64_t rest = b->bytes - bytes;
    return pool->small ? rest >= a->granule : rest > a->conf.small_max && bytes < a->conf.max_split;
}

/* Cuts the end off; without host memory the block stays whole, which is as right. */
static void split(tni_pool *pool, tni_block *b, uint64_t bytes) {
    tni_block *rest = tni_slab_alloc(TNI_SLAB_BLOCK);
    if (!rest)
        return;
    *rest = *b;
    rest->offset += bytes;
    rest->bytes -= bytes;
    if (b->host)
        rest->host = (char *)b->host + bytes;
    rest->previous = b;
    if (rest->next)
        rest->next->previous = rest;
    b->next = rest;
    b->bytes = bytes;
    atomic_store_explicit(&rest->state, TNI_BLOCK_FREE, memory_order_relaxed);
    tree_insert(&pool->free, rest);
}

/* Large blocks that may not be split are kept for requests near their size. */
static bool may_serve(const tni_allocator *a, const tni_pool *pool, const tni_block *b,
                      uint64_t bytes) {
    if (pool->small || b->bytes < a->conf.max_split)
        return true;
    return bytes >= a->conf.max_split && b->bytes - bytes <= a->conf.large_segment;
}

tni_block *tni_pool_take(tni_allocator *a, tni_pool *pool, uint64_t bytes) {
    tni_block *b = tree_find(pool->free, bytes);
    if (!b || !may_serve(a, pool, b, bytes))
        return NULL;
    tree_remove(&pool->free, b);
    if (should_split(a, pool, b, bytes))
        split(pool, b, bytes);
    b->segment->last_used = ++a->clock;
    return b;
}

static bool is_free(const tni_block *b) {
    return b && atomic_load_explicit(&b->state, memory_order_relaxed) == TNI_BLOCK_FREE;
}

/* Joins `b` with its right neighbour. */
static void join(tni_block *b) {
    tni_block *gone = b->next;
    b->bytes += gone->bytes;
    b->next = gone->next;
    if (b->next)
        b->next->previous = b;
    tni_slab_free(TNI_SLAB_BLOCK, gone);
}

void tni_pool_put(tni_block *b) {
    tni_pool *pool = b->segment->pool;
    if (is_free(b->next)) {
        tree_remove(&pool->free, b->next);
        join(b);
    }
    if (is_free(b->previous)) {
        b = b->previous;
        tree_remove(&pool->free, b);
        join(b);
    }
    b->requested = 0;
    atomic_store_explicit(&b->state, TNI_BLOCK_FREE, memory_order_relaxed);
    tree_insert(&pool->free, b);
}

/* ---- segments ---------------------------------------------------------------------------- */

static tni_segment_result fail_host(tni_segment *s, tni_block *b) {
    tni_free(s);
    if (b)
        tni_slab_free(TNI_SLAB_BLOCK, b);
    tni_fail_memory("a segment of device memory");
    return TNI_SEGMENT_FAILED;
}

/* Asks the plugin. */
static tni_segment_result allocate(tni_allocator *a, uint64_t bytes, tn_memory *out_memory,
                                   void **out_host) {
    tni_device *d = a->device;
    *out_memory = 0;
    *out_host = NULL;
    tni_error_plugin(TN_OK, NULL);
    tn_allocation made = tni_allocation(d, TN_SPACE_DEVICE, bytes);
    tn_status status = d->memory->alloc(d->handle, &made);
    if (status == TN_ERR_OUT_OF_MEMORY)
        return TNI_SEGMENT_FULL;
    if (!status && made.memory) {
        *out_memory = made.memory;
        *out_host = made.host;
        return TNI_SEGMENT_MADE;
    }
    char what[64];
    snprintf(what, sizeof what, "allocating %" PRIu64 " bytes", bytes);
    if (!status)
        tni_error_plugin(TN_ERR_INTERNAL,
                         "memory->alloc returned TN_OK and the handle 0, which means"
                         " no memory; the plugin must return another");
    tni_device_fail(d, status ? status : TN_ERR_INTERNAL, what);
    return TNI_SEGMENT_FAILED;
}

static void append(tni_allocator *a, tni_segment *s) {
    s->serial = ++a->n_segments;
    s->previous = a->last_segment;
    if (s->previous)
        s->previous->next = s;
    else
        a->segments = s;
    a->last_segment = s;
    s->pool->of->n_segments++;
    a->reserved_bytes += s->bytes;
    a->n_device_allocs++;
    if (a->reserved_bytes > a->reserved_peak)
        a->reserved_peak = a->reserved_bytes;
}

tni_segment_result tni_segment_create(tni_allocator *a, tni_pool *pool, uint64_t bytes) {
    tni_device *d = a->device;
    if (a->conf.limit && (bytes > a->conf.limit || a->reserved_bytes > a->conf.limit - bytes)) {
        tni_error_plugin(TN_ERR_OUT_OF_MEMORY, "the limit would be passed");
        return TNI_SEGMENT_FULL;
    }
    tni_segment *s = tni_calloc(1, sizeof *s);
    tni_block *b = s ? tni_slab_alloc(TNI_SLAB_BLOCK) : NULL;
    if (!b)
        return fail_host(s, b);
    tni_segment_result result = allocate(a, bytes, &s->memory, &s->host);
    if (result != TNI_SEGMENT_MADE) {
        tni_slab_free(TNI_SLAB_BLOCK, b);
        tni_free(s);
        return result;
    }
    s->bytes = bytes;
    s->pool = pool;
    s->first = b;
    *b = (tni_block){
        .memory = s->memory,
        .bytes = bytes,
        .host = s->host,
        .device = d,
        .segment = s,
        .state = TNI_BLOCK_FREE,
        .size_class = TNI_NO_CLASS,
        .ordinal = d->ordinal,
    };
    append(a, s);
    tree_insert(&pool->free, b);
    tni_log_line(TN_LOG_DEBUG, "memory",
                 "%s: segment of %" PRIu64 " bytes for stream %u, %" PRIu64 " held", d->name, bytes,
                 pool->of->stream->id, a->reserved_bytes);
    return TNI_SEGMENT_MADE;
}

/* Takes the segment out of the lists; its blocks are the caller's. */
static void unlink_segment(tni_allocator *a, tni_segment *s) {
    *(s->previous ? &s->previous->next : &a->segments) = s->next;
    *(s->next ? &s->next->previous : &a->last_segment) = s->previous;
    s->pool->of->n_segments--;
}

static bool is_unused(const tni_segment *s) {
    return is_free(s->first) && !s->first->next;
}

/* Gives a wholly free segment, which no queued work uses, back to the plugin. */
static void segment_destroy(tni_allocator *a, tni_segment *s) {
    tni_device *d = a->device;
    tree_remove(&s->pool->free, s->first);
    unlink_segment(a, s);
    a->reserved_bytes -= s->bytes;
    a->n_device_frees++;
    d->memory->dealloc(d->handle, TN_SPACE_DEVICE, s->memory);
    tni_slab_free(TNI_SLAB_BLOCK, s->first);
    tni_free(s);
}

void tni_segments_release(tni_allocator *a) {
    for (tni_pools *p = a->pools; p; p = p->next) {
        if (p->stream->reserved)
            continue;
        bool drained = false;
        for (tni_segment *s = a->segments, *next; s; s = next) {
            next = s->next;
            if (s->pool->of != p || !is_unused(s))
                continue;
            drained = drained || tni_stream_drain(p->stream);
            if (!drained)
                break;
            segment_destroy(a, s);
        }
    }
}

void tni_segments_collect(tni_allocator *a, uint64_t enough) {
    for (uint64_t done = 0; done < enough;) {
        tni_segment *oldest = NULL;
        for (tni_segment *s = a->segments; s; s = s->next)
            if (is_unused(s) && !s->pool->of->stream->reserved &&
                (!oldest || s->last_used < oldest->last_used))
                oldest = s;
        if (!oldest || !tni_stream_drain(oldest->pool->of->stream))
            return;
        done += oldest->bytes;
        segment_destroy(a, oldest);
    }
}

/* ---- graphs ------------------------------------------------------------------------------ */

void tni_pools_reserve(tni_allocator *a, tn_stream *stream) {
    tni_allocator_lock(a);
    stream->reserved = true;
    tni_allocator_unlock(a);
}

void tni_pools_release(tni_allocator *a, tn_stream *stream, tn_stream *used) {
    tni_allocator_lock(a);
    stream->reserved = false;
    for (tni_segment *s = a->segments; s; s = s->next)
        for (tni_block *b = s->pool->of->stream == stream ? s->first : NULL; b; b = b->next)
            if (atomic_load_explicit(&b->state, memory_order_relaxed) == TNI_BLOCK_LIVE &&
                !tni_block_add_use(b, used))
                tni_stream_drain(used);
    tni_allocator_unlock(a);
}

/* ---- streams that are gone --------------------------------------------------------------- */

/* Nobody but the pools holds the stream: no more work comes to it. */
static bool is_orphan(const tni_pools *p) {
    return p->stream != &p->stream->device->default_stream &&
           atomic_load_explicit(&p->stream->refs, memory_order_acquire) == 1;
}

/* What is live in it goes to the new pool when it is freed. */
static void move_segment(tni_segment *s, tni_pools *to) {
    tni_pool *from = s->pool;
    s->pool = from->small ? &to->small : &to->large;
    to->n_segments++;
    uint32_t left = s->n_free;
    for (tni_block *b = s->first; b && left > 0; b = b->next) {
        if (!is_free(b))
            continue;
        tree_remove(&from->free, b);
        tree_insert(&s->pool->free, b);
        left--;
    }
}

void tni_pools_adopt(tni_allocator *a, tni_pools *to) {
    bool any = false;
    for (tni_pools *p = a->pools->next; p; p = p->next) {
        p->given_up =
            p != to && is_orphan(p) && (!p->n_segments || tni_stream_follow(to->stream, p->stream));
        any = any || p->given_up;
    }
    if (!any)
        return;
    for (tni_segment *s = a->segments; s; s = s->next)
        if (s->pool->of->given_up)
            move_segment(s, to);
    for (tni_pools **at = &a->pools->next, *p; (p = *at);) {
        if (p->given_up) {
            *at = p->next;
            pools_free(p);
        } else {
            at = &p->next;
        }
    }
}

void tni_pools_destroy(tni_allocator *a, bool forget) {
    tni_device *d = a->device;
    for (tni_segment *s = a->segments, *next; s; s = next) {
        next = s->next;
        if (!forget)
            d->memory->dealloc(d->handle, TN_SPACE_DEVICE, s->memory);
        for (tni_block *b = s->first, *after; b; b = after) {
            after = b->next;
            tni_slab_free(TNI_SLAB_BLOCK, b);
        }
        tni_free(s);
    }
    for (tni_pools *p = a->pools, *next; p; p = next) {
        next = p->next;
        pools_free(p);
    }
}
