/* What the files of core/memory share: the allocator, its pools and segments.
 *
 * A segment is one allocation of the plugin, cut into blocks that form a list by offset. Each
 * stream has two pools, of small and of large blocks; a pool's free blocks stand in a tree by size.
 * On a synchronous device every block is the default stream's.
 *
 * All of it is guarded by the allocator's lock, but for the magazines.
 */
#ifndef TNI_CORE_MEMORY_POOL_H
#define TNI_CORE_MEMORY_POOL_H

#include "base/fork.h"
#include "core/memory/allocator.h"

/* TENON_ALLOC_CONF. */
typedef struct tni_alloc_conf {
    uint64_t small_max;        /* requests up to this come from small segments, in bytes */
    uint64_t small_segment;    /* size of those */
    uint64_t large_min;        /* requests from this on have a segment of their own */
    uint64_t large_segment;    /* the size of segments between the two */
    uint64_t large_round;      /* segments of their own are multiples of this */
    uint64_t max_split;        /* blocks of this and more are not split; UINT64_MAX: all may be */
    uint64_t limit;            /* 0: none */
    uint32_t power2_divisions; /* large requests are rounded to this fraction of a power of two */
    double gc_threshold;       /* 0: no garbage collection */
    bool magazines;
} tni_alloc_conf;

/* Reads a setting such as "max_split_size_mb:64,magazines:off"; what is unknown or no value is
 * logged and left at its default. */
void tni_alloc_conf_parse(const char *text, tni_alloc_conf *out);
/* Says the first thing that is wrong with one; "": nothing. */
enum { TNI_ALLOC_CONF_PROBLEM = 768 };
void tni_alloc_conf_problem(const char *text, char out[TNI_ALLOC_CONF_PROBLEM]);

typedef struct tni_pool {
    struct tni_pools *of;
    tni_block *free; /* root of the tree, by (bytes, segment, offset) */
    bool small;
} tni_pool;

/* A stream's. */
typedef struct tni_pools {
    struct tni_pools *next;
    tn_stream *stream; /* kept, unless it is the default stream */
    uint32_t n_segments;
    bool given_up; /* of a stream that is gone: its segments go to another one's pools */
    tni_pool small, large;
} tni_pools;

typedef struct tni_segment {
    struct tni_segment *next, *previous; /* of the allocator, in the order they were made */
    tni_pool *pool;
    tni_block *first;
    tn_memory memory;
    void *host;
    uint64_t bytes;
    uint64_t serial;
    uint32_t n_free;    /* blocks in the pool's tree */
    uint64_t last_used; /* the allocator's clock when a block of it was last handed out */
} tni_segment;

typedef struct tni_allocator {
    tni_device *device;
    tni_alloc_conf conf;
    uint64_t granule; /* every block is a multiple of it, in bytes */
    uint32_t shift;   /* log2 of it */

    tni_lock lock;    /* guards what follows */
    tni_pools *pools; /* first the default stream's */
    tni_segment *segments, *last_segment;
    tni_block *parked; /* by `link` */
    tni_block *late;   /* by `link`: freed in a log function that ran under the lock */
    tni_block_cache *caches;
    bool caches_torn;    /* fork could not keep threads out of them */
    uint64_t clock;      /* counts requests that reached the pools */
    uint64_t n_segments; /* made so far */

    /* Figures. `live` counts what lies in magazines too; what the threads' caches counted is added
     * and taken away when asked. */
    uint64_t live_bytes, live_requested, parked_bytes, reserved_bytes;
    uint64_t allocated_peak, active_peak, reserved_peak;
    uint64_t n_allocations, n_frees;
    uint64_t n_device_allocs, n_device_frees;
    uint64_t n_retries, n_out_of_memory;
} tni_allocator;

void tni_allocator_lock(tni_allocator *a);
void tni_allocator_unlock(tni_allocator *a);
/* The lock for what a program asks. TN_ERR_STATE in a log function that runs under it. */
tn_status tni_allocator_enter(tni_allocator *a);

/* Brings everything that is free together, waiting for streams, and gives the device all that it
 * can have (allocator.c). */
void tni_cache_release(tni_allocator *a);

/* ---- pool.c ------------------------------------------------------------------------------ */

/* The pools of a stream, made when it has none. NULL without memory; no error is set. */
tni_pools *tni_pools_of(tni_allocator *a, tn_stream *stream);

/* Takes the best fit for `bytes` out of the pool, split if that leaves a useful rest; NULL when
 * nothing fits. */
tni_block *tni_pool_take(tni_allocator *a, tni_pool *pool, uint64_t bytes);
/* Puts a block back and joins it with its free neighbours. */
void tni_pool_put(tni_block *block);

/* A new segment from the plugin, whole in the pool. */
typedef enum tni_segment_result {
    TNI_SEGMENT_MADE,
    TNI_SEGMENT_FULL,  /* no device memory; the reason is kept for tni_error_take_plugin */
    TNI_SEGMENT_FAILED /* the reason is the standing error */
} tni_segment_result;
tni_segment_result tni_segment_create(tni_allocator *a, tni_pool *pool, uint64_t bytes);
/* Gives all wholly free segments back to the plugin, after the work that may still use them. */
void tni_segments_release(tni_allocator *a);
/* The same, least recently used first, until `enough` bytes were given back. */
void tni_segments_collect(tni_allocator *a, uint64_t enough);
/* Lets a stream have what belongs to streams that nobody can use any more: segments whole, with the
 * blocks of them that are live. Its later work waits for theirs. */
void tni_pools_adopt(tni_allocator *a, tni_pools *to);
/* Gives every segment back, whatever its blocks' state, or with `forget` only frees what the host
 * keeps of it; drops the pools' streams. No work is queued. */
void tni_pools_destroy(tni_allocator *a, bool forget);

/* ---- magazine.c -------------------------------------------------------------------------- */

/* Makes the calling thread's cache for the allocator's device, if there is memory. */
void tni_cache_create(tni_allocator *a);
/* Moves the calling thread's blocks to their pools: all, or every second one. */
void tni_cache_drain(tni_allocator *a, tni_block_cache *cache, bool all);
/* The same, all, for every thread's. */
void tni_caches_drain(tni_allocator *a);
/* Empties and frees every cache. */
void tni_caches_destroy(tni_allocator *a);
/* For a fork: keeps other threads out of their caches, and lets them in again. */
void tni_caches_hold(tni_allocator *a);
void tni_caches_let_go(tni_allocator *a, bool in_child);
/* In the child: what threads that are not there had goes back to the pools. */
void tni_caches_adopt(tni_allocator *a);
/* Held by the caches of all threads, for statistics. */
typedef struct tni_cache_sums {
    uint64_t held_bytes, n_allocs, n_frees;
    uint64_t requested; /* wraps */
} tni_cache_sums;
tni_cache_sums tni_caches_sum(const tni_allocator *a);

/* ---- parked.c ---------------------------------------------------------------------------- */

/* Notes that the block is used by another stream; false without memory. */
bool tni_block_add_use(tni_block *block, tn_stream *stream);
/* Parks a freed block until the streams recorded for it have passed the present. */
void tni_block_park(tni_allocator *a, tni_block *block);
/* Puts back what is passed; with `wait` waits for all of it. */
void tni_parked_process(tni_allocator *a, bool wait);
/* Puts all back: no work is queued any more. With `forget` the events are left as they are. */
void tni_parked_finish(tni_allocator *a, bool forget);

/* ---- stats.c ----------------------------------------------------------------------------- */

/* To be called when live, parked or held bytes have grown. */
void tni_peaks_update(tni_allocator *a);
/* "1.50 MiB" */
enum { TNI_BYTES_TEXT = 32 };
char *tni_bytes_text(uint64_t bytes, char out[TNI_BYTES_TEXT]);

#endif
