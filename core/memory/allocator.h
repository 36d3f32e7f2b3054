/* The caching allocator: one per device, for every plugin.
 *
 * Requests are rounded and served from segments held from the device, best fit, within the pool of
 * the stream they are for; blocks are split and merged. A freed block may be handed out again at
 * once on its own stream; work of other streams it was recorded for is waited for first. In front
 * stand magazines per thread and size class, which make a hit a few nanoseconds. When the device is
 * full, unused segments are given back and the request is tried again.
 *
 * Threads: a block may be freed by another thread than allocated it. A magazine belongs to one
 * thread, which touches it without a lock; see tni_block_cache for how others empty it.
 */
#ifndef TNI_CORE_MEMORY_ALLOCATOR_H
#define TNI_CORE_MEMORY_ALLOCATOR_H

#include "base/slab.h"
#include "core/device/device.h"

typedef enum tni_block_state {
    TNI_BLOCK_LIVE,   /* handed out */
    TNI_BLOCK_CACHED, /* free, in a thread's magazine */
    TNI_BLOCK_FREE,   /* in its pool */
    TNI_BLOCK_PARKED  /* freed, but another stream may still use it */
} tni_block_state;

/* A piece of device memory. The first members are what tensors read; the rest is the allocator's.
 */
typedef struct tni_block {
    tn_memory memory; /* the segment's handle */
    uint64_t offset;  /* into it, in bytes; a multiple of the device's alignment */
    uint64_t bytes;   /* rounded */
    void *host;       /* address of the block where the host may read and write it, else NULL */
    tni_device *device;
    uint64_t requested;
    struct tni_segment *segment;
    struct tni_block *previous, *next; /* neighbours in the segment */
    struct tni_block *link;  /* in a magazine or a list; left in the tree of free blocks */
    struct tni_block *right; /* in that tree */
    struct tni_use *uses;    /* streams recorded, events waited for */
    _Atomic uint32_t state;  /* tni_block_state */
    uint32_t size_class;     /* TNI_NO_CLASS: never in a magazine */
    uint32_t ordinal;        /* of the device */
    uint32_t reserved;
} tni_block;
_Static_assert(sizeof(tni_block) <= TNI_SLAB_BLOCK_BYTES, "TNI_SLAB_BLOCK_BYTES");

tn_status tni_allocator_create(tni_device *device, struct tni_allocator **out);
/* Ends the waiting for other streams, of this and other devices: no work is queued anywhere. */
void tni_allocator_settle(struct tni_allocator *allocator);
/* Settled; all blocks were freed, and other threads are done with the device. Gives every segment
 * back. */
void tni_allocator_destroy(struct tni_allocator *allocator);
/* The same in a forked child whose parent has the device: forgets all, tells the plugin nothing. */
void tni_allocator_abandon(struct tni_allocator *allocator);
/* Round a fork: keeps other threads out; lets them in again, and in the child takes what is in the
 * magazines of those that are not there. False when another thread was in the middle of a change. */
void tni_allocator_before_fork(struct tni_allocator *allocator);
bool tni_allocator_after_fork(struct tni_allocator *allocator, bool in_child);

/* ---- magazines --------------------------------------------------------------------------- */

enum {
    TNI_SIZE_CLASSES = 128,            /* of one granule each: 512 bytes to 64 KiB */
    TNI_CACHE_BYTES = 1024 * 1024,     /* a thread keeps at most so much of one device */
    TNI_CACHE_BLOCK_BYTES = 64 * 1024, /* the largest block in a magazine */
    TNI_NO_CLASS = UINT32_MAX
};

/* A thread's magazines for one device: free blocks of its default stream, by size.
 *
 * The thread marks itself busy, looks whether the cache is locked, and works on it. Whoever wants
 * to empty it (an allocator short of memory) locks it, makes every thread of the process pass a
 * memory barrier (membarrier), and waits until it is not busy: so either the thread sees the lock,
 * or the other sees it busy, and neither needs a barrier of its own.
 *
 * The counters are written by the thread alone and read by those who want statistics. */
typedef struct tni_block_cache {
    _Atomic uint32_t busy;
    _Atomic uint32_t locked;
    uint32_t shift; /* size class of n bytes: (n - 1) >> shift */
    uint32_t reserved;
    _Atomic uint64_t held_bytes; /* in the magazines */
    _Atomic uint64_t n_allocs;   /* hits */
    _Atomic uint64_t n_frees;    /* into the magazines */
    _Atomic uint64_t requested;  /* by blocks handed out, less those taken back; wraps */
    struct tni_allocator *allocator;
    struct tni_block_cache *next, **at; /* in the allocator's list */
    struct tni_block_cache **slot;      /* the entry of its thread's table */
    tni_block *heads[TNI_SIZE_CLASSES];
} tni_block_cache;

/* The thread's caches by device ordinal; entries are NULL until one is made. */
extern TNI_TLS tni_block_cache **tni_block_caches;

tni_block *tni_block_alloc_slow(tni_device *device, tn_stream *stream, uint64_t bytes);
void tni_block_free_slow(tni_block *block);

/* A counter that one thread writes. */
static inline void tni_count(_Atomic uint64_t *counter, uint64_t n) {
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* True: the calling thread may work on its cache until tni_cache_leave. */
static inline bool tni_cache_enter(tni_block_cache *cache) {
    atomic_store_explicit(&cache->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (TNI_LIKELY(!atomic_load_explicit(&cache->locked, memory_order_acquire)))
        return true;
    atomic_store_explicit(&cache->busy, 0, memory_order_release);
    return false;
}
static inline void tni_cache_leave(tni_block_cache *cache) {
    atomic_store_explicit(&cache->busy, 0, memory_order_release);
}

/* ---- blocks ------------------------------------------------------------------------------ */

/* A block of at least `bytes` (> 0) for work on `stream`. NULL with an error whose message has the
 * figures: what was asked, what is allocated and reserved, the limit, what the scopes hold. */
static inline tni_block *tni_block_alloc(tni_device *device, tn_stream *stream, uint64_t bytes) {
    tni_block_cache *cache = tni_block_caches[device->ordinal];
    if (TNI_LIKELY(cache && stream == &device->default_stream)) {
        uint64_t size_class = (bytes - 1) >> cache->shift;
        if (TNI_LIKELY(size_class < TNI_SIZE_CLASSES && tni_cache_enter(cache))) {
            tni_block *block = cache->heads[size_class];
            if (TNI_LIKELY(block != NULL)) {
                cache->heads[size_class] = block->link;
                tni_count(&cache->held_bytes, -block->bytes);
                tni_count(&cache->n_allocs, 1);
                tni_count(&cache->requested, bytes);
                block->requested = bytes;
                atomic_store_explicit(&block->state, TNI_BLOCK_LIVE, memory_order_relaxed);
                tni_cache_leave(cache);
                return block;
            }
            tni_cache_leave(cache);
        }
    }
    return tni_block_alloc_slow(device, stream, bytes);
}

/* Never fails, and leaves the standing error alone. */
static inline __attribute__((always_inline)) void tni_block_free(tni_block *block) {
    uint32_t size_class = block->size_class;
    tni_block_cache *cache = tni_block_caches[block->ordinal];
    if (TNI_LIKELY(cache && size_class < TNI_SIZE_CLASSES &&
                   atomic_load_explicit(&cache->held_bytes, memory_order_relaxed) <
                       TNI_CACHE_BYTES &&
                   tni_cache_enter(cache))) {
        block->link = cache->heads[size_class];
        cache->heads[size_class] = block;
        tni_count(&cache->held_bytes, block->bytes);
        tni_count(&cache->n_frees, 1);
        tni_count(&cache->requested, -block->requested);
        atomic_store_explicit(&block->state, TNI_BLOCK_CACHED, memory_order_relaxed);
        tni_cache_leave(cache);
        return;
    }
    tni_block_free_slow(block);
}

/* What `stream` has of the device is a graph's from now on: free blocks serve requests for the stream
 * alone, and stay when unused segments are given back. */
void tni_pools_reserve(struct tni_allocator *allocator, tn_stream *stream);
/* No more. Blocks of it that are handed out are used by `used` too, as by tni_block_record_stream. */
void tni_pools_release(struct tni_allocator *allocator, tn_stream *stream, tn_stream *used);

/* The stream that it belongs to. What is live when that stream is gone belongs to the next. */
tn_stream *tni_block_stream(const tni_block *block);
/* The block is used by `stream` too: after its free it waits until that stream has passed the
 * present. */
tn_status tni_block_record_stream(tni_block *block, tn_stream *stream);

/* ---- pinned memory ----------------------------------------------------------------------- */

/* Gives the device's cached pinned memory back; what is in use stays. */
void tni_pinned_release(tni_device *device);
/* The handle of the pinned allocation of `device` that holds all these bytes; 0: they are memory like
 * any other to it. */
tn_memory tni_pinned_handle(const tni_device *device, const void *p, uint64_t bytes);
/* A request to the plugin. */
static inline tn_allocation tni_allocation(const tni_device *device, int32_t space,
                                           uint64_t bytes) {
    return (tn_allocation){.struct_size = sizeof(tn_allocation),
                           .bytes = bytes,
                           .alignment = device->alignment,
                           .space = space};
}
/* Gives all pinned memory back, used or not: no work is queued any more. */
void tni_pinned_finish(void);

#endif
