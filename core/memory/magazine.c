/* Magazines: the caches of blocks that each thread has for itself, and how they are emptied. */
#include "base/alloc.h"
#include "core/memory/pool.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What a thread without caches has. */
static tni_block_cache *none[TNI_MAX_DEVICES];

TNI_TLS tni_block_cache **tni_block_caches = none;

/* ---- making one -------------------------------------------------------------------------- */

static void unlink_cache(tni_block_cache *c) {
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    *c->slot = NULL;
}

/* Adds what the cache counted to the allocator's own figures. */
static void retire(tni_allocator *a, tni_block_cache *c) {
    a->n_allocations += atomic_load_explicit(&c->n_allocs, memory_order_relaxed);
    a->n_frees += atomic_load_explicit(&c->n_frees, memory_order_relaxed);
    a->live_requested += atomic_load_explicit(&c->requested, memory_order_relaxed);
    unlink_cache(c);
    tni_free(c);
}

static void leave(void) {
    tni_block_cache **table = tni_block_caches;
    for (int i = 0; i < TNI_MAX_DEVICES; i++) {
        tni_block_cache *c = table[i];
        if (!c)
            continue;
        tni_allocator *a = c->allocator;
        tni_allocator_lock(a);
        tni_cache_drain(a, c, true);
        retire(a, c);
        tni_allocator_unlock(a);
    }
    tni_block_caches = none;
    tni_free(table);
}

/* The thread's end frees blocks, so the slabs must still be there: they register first. */
static bool enter(void) {
    if (tni_block_caches != none)
        return true;
    tni_block_cache **table = tni_calloc(TNI_MAX_DEVICES, sizeof *table);
    if (!table || !tni_slab_thread_init() || !tni_thread_at_exit(leave)) {
        tni_free(table);
        return false;
    }
    tni_block_caches = table;
    return true;
}

void tni_cache_create(tni_allocator *a) {
    uint32_t ordinal = a->device->ordinal;
    if (!a->conf.magazines || !enter() || tni_block_caches[ordinal])
        return;
    tni_block_cache *c = tni_alloc_aligned(sizeof *c, 64);
    if (!c)
        return;
    *c = (tni_block_cache){.shift = a->shift,
                           .allocator = a,
                           .next = a->caches,
                           .at = &a->caches,
                           .slot = &tni_block_caches[ordinal]};
    if (c->next)
        c->next->at = &c->next;
    a->caches = c;
    *c->slot = c;
}

/* ---- emptying ---------------------------------------------------------------------------- */

void tni_cache_drain(tni_allocator *a, tni_block_cache *c, bool all) {
    uint64_t moved = 0;
    for (int i = 0; i < TNI_SIZE_CLASSES; i++) {
        tni_block **at = &c->heads[i];
        while (*at) {
            tni_block *b = *at;
            *at = b->link;
            moved += b->bytes;
            tni_pool_put(b);
            if (!all && *at)
                at = &(*at)->link;
        }
    }
    tni_count(&c->held_bytes, -moved);
    a->live_bytes -= moved;
}

/* Every thread of the process passes a full memory barrier. */
static bool barrier_everywhere(void) {
    static _Atomic bool registered;
    if (!atomic_load(&registered)) {
        if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0)
            return false;
        atomic_store(&registered, true);
    }
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/* Keeps threads out of their caches. False where the system has no such barrier: other threads'
 * magazines then stay as they are until the threads end. */
static bool lock_caches(tni_allocator *a) {
    for (tni_block_cache *c = a->caches; c; c = c->next)
        atomic_store_explicit(&c->locked, 1, memory_order_relaxed);
    if (!barrier_everywhere())
        return false;
    for (tni_block_cache *c = a->caches; c; c = c->next)
        while (atomic_load_explicit(&c->busy, memory_order_acquire))
            sched_yield();
    return true;
}

static void unlock_caches(tni_allocator *a) {
    for (tni_block_cache *c = a->caches; c; c = c->next)
        atomic_store_explicit(&c->locked, 0, memory_order_release);
}

void tni_caches_drain(tni_allocator *a) {
    tni_block_cache *mine = tni_block_caches[a->device->ordinal];
    bool others = a->caches && (a->caches != mine || mine->next);
    if (others && lock_caches(a)) {
        for (tni_block_cache *c = a->caches; c; c = c->next)
            tni_cache_drain(a, c, true);
    } else if (mine) {
        tni_cache_drain(a, mine, true);
    }
    if (others)
        unlock_caches(a);
}

void tni_caches_destroy(tni_allocator *a) {
    for (tni_block_cache *c; (c = a->caches);) {
        tni_cache_drain(a, c, true);
        retire(a, c);
    }
}

/* ---- forks ------------------------------------------------------------------------------- */

void tni_caches_hold(tni_allocator *a) {
    a->caches_torn = a->caches && !lock_caches(a);
}

void tni_caches_let_go(tni_allocator *a, bool in_child) {
    const tni_block_cache *mine = tni_block_caches[a->device->ordinal];
    for (tni_block_cache *c = a->caches; c && in_child && a->caches_torn; c = c->next) {
        if (c == mine)
            continue;
        for (int i = 0; i < TNI_SIZE_CLASSES; i++)
            c->heads[i] = NULL;
        atomic_store_explicit(&c->busy, 0, memory_order_relaxed);
    }
    unlock_caches(a);
}

void tni_caches_adopt(tni_allocator *a) {
    const tni_block_cache *mine = tni_block_caches[a->device->ordinal];
    for (tni_block_cache *c = a->caches, *next; c; c = next) {
        next = c->next;
        if (c == mine)
            continue;
        tni_cache_drain(a, c, true);
        retire(a, c);
    }
}

/* ---- figures ----------------------------------------------------------------------------- */

tni_cache_sums tni_caches_sum(const tni_allocator *a) {
    tni_cache_sums sum = {0};
    for (const tni_block_cache *c = a->caches; c; c = c->next) {
        sum.held_bytes += atomic_load_explicit(&c->held_bytes, memory_order_relaxed);
        sum.n_allocs += atomic_load_explicit(&c->n_allocs, memory_order_relaxed);
        sum.n_frees += atomic_load_explicit(&c->n_frees, memory_order_relaxed);
        sum.requested += atomic_load_explicit(&c->requested, memory_order_relaxed);
    }
    return sum;
}
