/* See pass.h. */
#include "core/autograd/pass.h"
#include "base/alloc.h"

#include <string.h>

/* Ids: the high bits are the thread's, so that a pass costs no shared counter. */
static _Atomic uint64_t n_threads;
static TNI_TLS uint64_t next_id;

static TNI_TLS tni_pass *kept; /* the thread's workspace while no pass uses it */
static TNI_TLS bool exit_registered;

enum { FIRST_SLOTS = 64, FIRST_GRADS = 128, FIRST_OUTS = 32, KEEP_SLOTS = 1 << 16 };

static void workspace_free(tni_pass *pass) {
    tni_free(pass->slots);
    tni_free(pass->grads);
    tni_free(pass->queue);
    tni_free(pass->outs);
    tni_free(pass->foreign);
    tni_free(pass);
}

static void forget_thread(void) {
    if (kept)
        workspace_free(kept);
    kept = NULL;
    exit_registered = false;
}

static tni_pass *workspace_new(void) {
    tni_pass *pass = tni_calloc(1, sizeof *pass);
    if (!pass)
        return NULL;
    pass->slots_capacity = FIRST_SLOTS;
    pass->grads_capacity = FIRST_GRADS;
    pass->outs_capacity = FIRST_OUTS;
    pass->slots = tni_alloc(FIRST_SLOTS * sizeof *pass->slots);
    pass->queue = tni_alloc(FIRST_SLOTS * sizeof *pass->queue);
    pass->grads = tni_alloc(FIRST_GRADS * sizeof *pass->grads);
    pass->outs = tni_alloc(FIRST_OUTS * sizeof *pass->outs);
    if (!pass->slots || !pass->queue || !pass->grads || !pass->outs) {
        workspace_free(pass);
        return NULL;
    }
    return pass;
}

tni_pass *tni_pass_begin(void) {
    tni_pass *pass = kept;
    kept = NULL;
    if (TNI_UNLIKELY(!pass) && !(pass = workspace_new()))
        return tni_fail_memory_null("the workspace of a backward pass");
    if (TNI_UNLIKELY(next_id == 0))
        next_id = (atomic_fetch_add(&n_threads, 1) + 1) << 40;
    pass->id = next_id++;
    return pass;
}

void tni_pass_end(tni_pass *pass) {
    for (uint32_t i = 0; i < pass->n_grads; i++)
        if (pass->grads[i])
            tni_drop(pass->grads[i]);
    for (uint32_t i = 0; i < pass->n_slots; i++) {
        tni_node *node = pass->slots[i].node;
        if (TNI_LIKELY(atomic_load_explicit(&node->owner, memory_order_relaxed) == pass->id))
            atomic_store_explicit(&node->owner, 0, memory_order_release);
    }
    bool keep = !kept && pass->slots_capacity <= KEEP_SLOTS;
    if (keep && !exit_registered)
        keep = exit_registered = tni_thread_at_exit(forget_thread);
    if (pass->foreign && pass->n_foreign)
        memset(pass->foreign, 0, pass->foreign_capacity * sizeof *pass->foreign);
    pass->n_grads = pass->n_slots = pass->n_queue = pass->n_foreign = 0;
    if (keep)
        kept = pass;
    else
        workspace_free(pass);
}

/* ---- nodes that another pass owns -------------------------------------------------------- */

static uint32_t place_of(const tni_pass *pass, const tni_node *node) {
    uint32_t mask = pass->foreign_capacity - 1;
    uint32_t at = (uint32_t)(((uintptr_t)node >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (pass->foreign[at] && pass->slots[pass->foreign[at] - 1].node != node)
        at = (at + 1) & mask;
    return at;
}

uint32_t tni_pass_find_foreign(const tni_pass *pass, const tni_node *node) {
    uint32_t found = pass->foreign[place_of(pass, node)];
    return found ? found - 1 : (uint32_t)TNI_NO_SLOT;
}

static bool foreign_insert(tni_pass *pass, uint32_t slot) {
    if (2 * (pass->n_foreign + 1) > pass->foreign_capacity) {
        uint32_t *old = pass->foreign, n = pass->foreign_capacity;
        uint32_t more = n ? 2 * n : 64;
        uint32_t *grown = tni_calloc(more, sizeof *grown);
        if (!grown)
            return false;
        pass->foreign = grown;
        pass->foreign_capacity = more;
        for (uint32_t i = 0; i < n; i++)
            if (old[i])
                grown[place_of(pass, pass->slots[old[i] - 1].node)] = old[i];
        tni_free(old);
    }
    pass->foreign[place_of(pass, pass->slots[slot].node)] = slot + 1;
    pass->n_foreign++;
    return true;
}

/* ---- slots ------------------------------------------------------------------------------- */

static bool make_room(tni_pass *pass, uint32_t n_outputs) {
    size_t queue_capacity = pass->slots_capacity; /* both have the same room */
    uint64_t n_grads = pass->n_grads + (uint64_t)n_outputs;
    return n_grads < TNI_NO_SLOT && pass->n_slots < TNI_NO_SLOT &&
           (TNI_LIKELY(pass->n_slots < pass->slots_capacity) ||
            (tni_reserve(&pass->queue, pass->n_slots + 1, &queue_capacity, sizeof *pass->queue) &&
             tni_grow(&pass->slots, pass->n_slots, &pass->slots_capacity, sizeof *pass->slots))) &&
           (TNI_LIKELY(n_grads <= pass->grads_capacity) ||
            tni_reserve(&pass->grads, n_grads, &pass->grads_capacity, sizeof *pass->grads));
}

uint32_t tni_pass_add(tni_pass *pass, tni_node *node) {
    if (TNI_UNLIKELY(!make_room(pass, node->n_outputs))) {
        tni_fail_memory("the workspace of a backward pass");
        return TNI_NO_SLOT;
    }
    uint32_t i = pass->n_slots;
    pass->slots[i] = (tni_slot){.node = node, .grads = pass->n_grads};
    uint64_t nobody = 0;
    if (TNI_LIKELY(atomic_compare_exchange_strong_explicit(
            &node->owner, &nobody, pass->id, memory_order_acquire, memory_order_relaxed))) {
        node->slot = i;
    } else if (!foreign_insert(pass, i)) {
        tni_fail_memory("the workspace of a backward pass");
        return TNI_NO_SLOT;
    }
    pass->n_slots++;
    for (uint32_t k = 0; k < node->n_outputs; k++)
        pass->grads[pass->n_grads++] = NULL;
    return i;
}

tn_tensor **tni_pass_outs(tni_pass *pass, uint32_t n) {
    if (TNI_UNLIKELY(n > pass->outs_capacity) &&
        !tni_reserve(&pass->outs, n, &pass->outs_capacity, sizeof *pass->outs))
        return tni_fail_memory_null("the workspace of a backward pass");
    for (uint32_t i = 0; i < n; i++)
        pass->outs[i] = NULL;
    return pass->outs;
}

/* ---- the heap ---------------------------------------------------------------------------- */

static inline uint64_t order(const tni_pass *pass, uint32_t slot) {
    return pass->slots[slot].node->sequence;
}

void tni_pass_push(tni_pass *pass, uint32_t slot) {
    uint32_t *heap = pass->queue, i = pass->n_queue++;
    uint64_t key = order(pass, slot);
    while (i > 0 && order(pass, heap[(i - 1) / 2]) < key) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = slot;
}

uint32_t tni_pass_pop(tni_pass *pass) {
    uint32_t *heap = pass->queue, top = heap[0];
    uint32_t n = --pass->n_queue, last = heap[n], i = 0;
    if (n == 0)
        return top;
    uint64_t key = order(pass, last);
    for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && order(pass, heap[child + 1]) > order(pass, heap[child]))
            child++;
        if (order(pass, heap[child]) <= key)
            break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}
