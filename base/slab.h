/* Type-stable slabs: fixed-size objects with a free list per thread in front of a shared one.
 *
 * The memory of a freed object stays memory of that type until the slab is trimmed, and an
 * allocation that hits the thread's list is a load and a store. Objects may be freed by another
 * thread than made them. In the hard build every object is an allocation of its own, so that
 * sanitizers see its life and failing allocations reach it.
 */
#ifndef TNI_BASE_SLAB_H
#define TNI_BASE_SLAB_H

#include "base/thread.h"

#include <stddef.h>
#include <stdint.h>
#include <tenon/plugin.h>

typedef enum tni_slab_id {
    TNI_SLAB_TENSOR,
    TNI_SLAB_AUTOGRAD, /* a tensor's autograd state */
    TNI_SLAB_NODE,     /* autograd nodes up to one size */
    TNI_SLAB_BLOCK,    /* the caching allocator's blocks */
    TNI_SLAB_COUNT
} tni_slab_id;

enum {
    TNI_SLAB_TENSOR_BYTES = 320 + (sizeof(tn_tensor_view) + 63) / 64 * 64,
    TNI_SLAB_AUTOGRAD_BYTES = 128,
    TNI_SLAB_NODE_BYTES = 512,
    TNI_SLAB_BLOCK_BYTES = 128
};

typedef struct tni_magazine {
    void *head; /* first word of a free object points to the next */
    uint32_t n;
} tni_magazine;

extern TNI_TLS tni_magazine tni_magazines[TNI_SLAB_COUNT];

/* The slow halves: refill and flush the thread's list. */
void *tni_slab_refill(tni_slab_id id);
void tni_slab_flush(tni_slab_id id);
size_t tni_slab_bytes(tni_slab_id id);

enum { TNI_MAGAZINE_MAX = 128 };

#if defined(TNI_HARD)
#include "base/alloc.h"
static inline void *tni_slab_alloc(tni_slab_id id) {
    return tni_alloc_aligned(tni_slab_bytes(id), 64);
}
static inline void tni_slab_free(tni_slab_id id, void *p) {
    (void)id;
    tni_free(p);
}
#else
/* An object of the slab, uninitialised, aligned to 64; NULL without memory. */
static inline void *tni_slab_alloc(tni_slab_id id) {
    tni_magazine *m = &tni_magazines[id];
    void *p = m->head;
    if (TNI_UNLIKELY(!p))
        return tni_slab_refill(id);
    m->head = *(void **)p;
    m->n--;
    return p;
}

static inline void tni_slab_free(tni_slab_id id, void *p) {
    tni_magazine *m = &tni_magazines[id];
    *(void **)p = m->head;
    m->head = p;
    if (TNI_UNLIKELY(++m->n > TNI_MAGAZINE_MAX))
        tni_slab_flush(id);
}
#endif

/* Makes the thread's end give its lists back. Call it before tni_thread_at_exit of a function that
 * frees objects, since those run in reverse order. False without memory. */
_Bool tni_slab_thread_init(void);

/* Gives back to the system all chunks, when no object of any slab is alive (at tn_shutdown). */
void tni_slab_release_all(void);

#endif
