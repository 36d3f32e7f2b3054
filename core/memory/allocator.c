/* Requests that miss the magazines: rounding, the search for memory, and what is said when there is
 * none. */
#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "core/graph/graph.h"
#include "core/memory/pool.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- life -------------------------------------------------------------------------------- */

void tni_allocator_lock(tni_allocator *a) {
    tni_lock_take(&a->lock);
}

tn_status tni_allocator_enter(tni_allocator *a) {
    return tni_lock_enter(&a->lock, "device memory is allocated or freed");
}

static void put_back(tni_allocator *a, tni_block *b) {
    if (b->uses)
        tni_block_park(a, b);
    else
        tni_pool_put(b);
}

void tni_allocator_unlock(tni_allocator *a) {
    for (tni_block *b; (b = a->late);) {
        a->late = b->link;
        put_back(a, b);
    }
    tni_lock_give(&a->lock);
}

tn_status tni_allocator_create(tni_device *device, tni_allocator **out) {
    *out = NULL;
    tni_allocator *a = tni_calloc(1, sizeof *a);
    if (!a)
        return tni_fail_memory("a caching allocator");
    a->device = device;
    tni_alloc_conf_parse(tni_env(TNI_ENV_ALLOC_CONF), &a->conf);
    a->granule = device->alignment > 512 ? device->alignment : 512;
    a->shift = (uint32_t)__builtin_ctzll(a->granule);
    if (!tni_pools_of(a, &device->default_stream)) {
        tni_free(a);
        return tni_fail_memory("a caching allocator");
    }
    a->lock = (tni_lock)TNI_LOCK_INITIALIZER;
    *out = a;
    return TN_OK;
}

static void finish(tni_allocator *a, bool forget) {
    tni_caches_destroy(a);
    tni_parked_finish(a, forget);
    tni_pools_destroy(a, forget);
    pthread_mutex_destroy(&a->lock.mutex);
    tni_free(a);
}

void tni_allocator_settle(tni_allocator *a) {
    tni_parked_finish(a, false);
}

void tni_allocator_destroy(tni_allocator *a) {
    finish(a, false);
}

void tni_allocator_abandon(tni_allocator *a) {
    finish(a, true);
}

void tni_allocator_before_fork(tni_allocator *a) {
    tni_fork_take(&a->lock);
    if (tni_lock_is_mine(&a->lock))
        tni_caches_hold(a);
}

bool tni_allocator_after_fork(tni_allocator *a, bool in_child) {
    if (tni_lock_is_mine(&a->lock))
        tni_caches_let_go(a, in_child);
    bool whole = tni_fork_give(&a->lock, in_child);
    /* Not where this thread is in the middle of a change itself. */
    if (in_child && whole && !tni_lock_is_mine(&a->lock))
        tni_caches_adopt(a);
    return whole;
}

/* ---- sizes ------------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t n, uint64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

/* What a block for `bytes` has; bytes is at most INT64_MAX. */
static uint64_t block_bytes(const tni_allocator *a, uint64_t bytes) {
    uint32_t divisions = a->conf.power2_divisions;
    if (divisions > 0 && bytes > a->conf.small_max) {
        uint64_t power = UINT64_C(1) << (63 - __builtin_clzll(bytes));
        uint64_t step = power / divisions;
        if (step > a->granule)
            bytes = round_up(bytes, step);
    }
    return round_up(bytes, a->granule);
}

/* The segment to ask the device for when a block of `bytes` is wanted. */
static uint64_t segment_bytes(const tni_allocator *a, uint64_t bytes) {
    const tni_alloc_conf *c = &a->conf;
    uint64_t n = bytes <= c->small_max  ? c->small_segment
                 : bytes < c->large_min ? c->large_segment
                                        : round_up(bytes, c->large_round);
    n = round_up(n < bytes ? bytes : n, a->granule);
    uint64_t max = a->device->max_allocation;
    return max && n > max ? bytes : n;
}

/* ---- finding memory ---------------------------------------------------------------------- */

/* Before the cache grows past its share of the device, what was not used for long is given back. */
static void collect_garbage(tni_allocator *a, uint64_t bytes) {
    if (a->conf.gc_threshold <= 0)
        return;
    uint64_t total = a->conf.limit;
    tni_device *d = a->device;
    tn_status (*info)(tn_device_impl *, int32_t, tn_memory_info *) =
        TNI_SLOT(d->memory, tn_memory_ops, info);
    tn_memory_info figures = {.struct_size = sizeof figures};
    if (!total && info && info(d->handle, TN_SPACE_DEVICE, &figures) == TN_OK)
        total = figures.total_bytes;
    tni_error_plugin(TN_OK, NULL);
    uint64_t share = (uint64_t)((double)total * a->conf.gc_threshold);
    if (total && a->reserved_bytes + bytes > share)
        tni_segments_collect(a, a->reserved_bytes + bytes - share);
}

void tni_cache_release(tni_allocator *a) {
    tni_caches_drain(a);
    tni_parked_process(a, true);
    tni_pools_adopt(a, a->pools);
    tni_segments_release(a);
}

/* A block from a new segment. The device is asked for a segment of the usual size; when it is full,
 * the cache is given back, and in the end just the block is asked for. */
static tni_segment_result grow(tni_allocator *a, tni_pool *pool, uint64_t bytes, tni_block **out) {
    uint64_t segment = segment_bytes(a, bytes);
    collect_garbage(a, segment);
    tni_segment_result result = tni_segment_create(a, pool, segment);
    if (result == TNI_SEGMENT_FULL) {
        a->n_retries++;
        tni_log_line(TN_LOG_INFO, "memory", "%s: full; the cache is given back", a->device->name);
        tni_cache_release(a);
        *out = tni_pool_take(a, pool, bytes);
        if (*out)
            return TNI_SEGMENT_MADE;
        result = tni_segment_create(a, pool, segment);
        if (result == TNI_SEGMENT_FULL && segment > bytes)
            result = tni_segment_create(a, pool, bytes);
    }
    if (result == TNI_SEGMENT_MADE)
        *out = tni_pool_take(a, pool, bytes);
    return result;
}

/* The figures of a request that failed, and after them the plugin's own words. */
static void fail_full(tni_allocator *a, uint64_t requested, uint64_t bytes) {
    tni_device *d = a->device;
    enum { T = TNI_BYTES_TEXT };
    char asked[T], rounded[T], allocated[T], reserved[T], parked[T], limit[T], space[T], total[T];
    char device_text[128] = "", limit_text[64] = "", what[1024];
    tni_cache_sums caches = tni_caches_sum(a);
    tn_status (*info)(tn_device_impl *, int32_t, tn_memory_info *) =
        TNI_SLOT(d->memory, tn_memory_ops, info);
    tn_memory_info figures = {.struct_size = sizeof figures};
    if (info && info(d->handle, TN_SPACE_DEVICE, &figures) == TN_OK && figures.total_bytes)
        snprintf(device_text, sizeof device_text, ", %s of %s free on the device",
                 tni_bytes_text(figures.free_bytes, space),
                 tni_bytes_text(figures.total_bytes, total));
    if (a->conf.limit)
        snprintf(limit_text, sizeof limit_text, ", limit %s", tni_bytes_text(a->conf.limit, limit));
    uint64_t held = tn_scope_held();
    snprintf(what, sizeof what,
             "no memory for %s (%s rounded): %s allocated, %s waiting for streams, %s held from the"
             " device%s%s; the scopes of this thread hold %" PRIu64 " %s; %s",
             tni_bytes_text(requested, asked), tni_bytes_text(bytes, rounded),
             tni_bytes_text(a->live_bytes - caches.held_bytes, allocated),
             tni_bytes_text(a->parked_bytes, parked), tni_bytes_text(a->reserved_bytes, reserved),
             limit_text, device_text, held, held == 1 ? "tensor" : "tensors",
             a->conf.limit && bytes > a->conf.limit ? "raise the limit with tn_memory_set_limit"
             : held > 0 ? "close scopes earlier (TN_SCOPE in a loop's body) or use smaller batches"
                        : "drop tensors you no longer need or use smaller batches");
    tni_device_fail(d, TN_ERR_OUT_OF_MEMORY, what);
    a->n_out_of_memory++;
}

static tni_block *find(tni_allocator *a, tni_pool *pool, uint64_t requested, uint64_t bytes) {
    if (a->parked)
        tni_parked_process(a, false);
    tni_block *b = tni_pool_take(a, pool, bytes);
    if (b)
        return b;
    if (a->pools->next) {
        tni_pools_adopt(a, pool->of);
        b = tni_pool_take(a, pool, bytes);
        if (b)
            return b;
    }
    if (grow(a, pool, bytes, &b) == TNI_SEGMENT_FULL)
        fail_full(a, requested, bytes);
    return b;
}

/* ---- the calls --------------------------------------------------------------------------- */

/* Marks the block as handed out. */
static void hand_out(tni_allocator *a, tni_block *b, uint64_t requested) {
    uint64_t size_class = (b->bytes >> a->shift) - 1;
    bool may_cache = b->segment->pool->of == a->pools && size_class < TNI_SIZE_CLASSES &&
                     b->bytes <= TNI_CACHE_BLOCK_BYTES;
    b->size_class = may_cache ? (uint32_t)size_class : TNI_NO_CLASS;
    b->requested = requested;
    b->uses = NULL;
    atomic_store_explicit(&b->state, TNI_BLOCK_LIVE, memory_order_relaxed);
    a->live_bytes += b->bytes;
    a->live_requested += requested;
    a->n_allocations++;
    tni_peaks_update(a);
    if (may_cache)
        tni_cache_create(a);
}

static tni_block *alloc_on(tni_allocator *a, tn_stream *stream, uint64_t requested) {
    uint64_t bytes = block_bytes(a, requested);
    uint64_t max = a->device->max_allocation;
    if (max && bytes > max) {
        char asked[TNI_BYTES_TEXT], most[TNI_BYTES_TEXT];
        return tni_fail_null(
            TN_ERR_OUT_OF_MEMORY,
            "%s: %s in one piece were asked for, and the device's largest allocation is %s;"
            " split the tensor",
            a->device->name, tni_bytes_text(requested, asked), tni_bytes_text(max, most));
    }
    if (tni_allocator_enter(a))
        return NULL;
    tni_pools *pools = tni_pools_of(a, stream);
    tni_block *b = NULL;
    if (!pools)
        tni_fail_memory("a stream's pool of device memory");
    else
        b = find(a, bytes <= a->conf.small_max ? &pools->small : &pools->large, requested, bytes);
    if (b)
        hand_out(a, b, requested);
    tni_allocator_unlock(a);
    return b;
}

tni_block *tni_block_alloc_slow(tni_device *d, tn_stream *stream, uint64_t bytes) {
    if (tni_device_check(d))
        return NULL;
    if (!d->allocator)
        return tni_fail_null(TN_ERR_UNSUPPORTED, "%s: this device has no memory", d->name);
    if (bytes == 0)
        bytes = 1;
    if (bytes > (uint64_t)INT64_MAX / 2)
        return tni_fail_null(TN_ERR_OUT_OF_MEMORY,
                             "%s: %" PRIu64 " bytes are more than any device has", d->name, bytes);
    /* Without queues all streams are one, and share their blocks. */
    if (!d->streams && stream != &d->default_stream)
        return tni_block_alloc(d, &d->default_stream, bytes);
    tni_block *b = alloc_on(d->allocator, stream, bytes);
    if (!b)
        tni_capture_note_failure(d);
    return b;
}

void tni_block_free_slow(tni_block *b) {
    tni_allocator *a = b->device->allocator;
    if (atomic_load_explicit(&b->device->forked, memory_order_relaxed))
        return; /* the lock may be held by a thread of the parent */
    bool inside = tni_lock_is_mine(&a->lock);
    if (!inside)
        tni_allocator_lock(a);
    a->live_bytes -= b->bytes;
    a->live_requested -= b->requested;
    a->n_frees++;
    if (inside) {
        b->link = a->late;
        a->late = b;
        return;
    }
    tni_block_cache *c = b->uses ? NULL : tni_block_caches[b->ordinal];
    if (c && atomic_load_explicit(&c->held_bytes, memory_order_relaxed) >= TNI_CACHE_BYTES)
        tni_cache_drain(a, c, false);
    put_back(a, b);
    tni_allocator_unlock(a);
}
