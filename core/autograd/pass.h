/* The workspace of one backward pass: which nodes it reaches, how many gradients each still waits
 * for, and the gradients themselves.
 *
 * A node remembers its place in the pass that owns it, which one compare-and-swap claims, so that
 * looking a node up is a load. A node that another pass owns at that moment goes into a hash table
 * of the pass instead. Workspaces are kept per thread: a pass over a small graph allocates nothing.
 */
#ifndef TNI_CORE_AUTOGRAD_PASS_H
#define TNI_CORE_AUTOGRAD_PASS_H

#include "core/autograd/engine.h"

enum { TNI_NO_SLOT = UINT32_MAX };

typedef struct tni_slot {
    tni_node *node;
    uint32_t waits;   /* gradients that are still to come: edges from nodes that have not run */
    uint32_t grads;   /* of its outputs, in tni_pass.grads */
    uint32_t capture; /* 1 + the first capture here; 0: none */
    uint32_t edge;    /* of the search for captures: the next edge to look at */
    bool visited, runs;
} tni_slot;

typedef struct tni_pass {
    uint64_t id; /* of the pass under way */
    tni_slot *slots;
    tn_tensor **grads; /* owned; NULL is zero */
    uint32_t *queue;   /* room for every slot: a stack while counting, then the ready heap */
    tn_tensor **outs;  /* what a formula returns */
    uint32_t *foreign; /* hash table of 1 + slot; nodes that another pass owns */
    uint32_t n_slots, n_grads, n_queue, n_foreign, foreign_capacity;
    size_t slots_capacity, grads_capacity, outs_capacity;
} tni_pass;

/* A workspace, empty, with an id of its own; NULL with an error without memory. */
tni_pass *tni_pass_begin(void);
/* Drops what is left and gives the nodes back. */
void tni_pass_end(tni_pass *pass);

/* The slot of a node, or TNI_NO_SLOT. */
uint32_t tni_pass_find_foreign(const tni_pass *pass, const tni_node *node);
static inline uint32_t tni_pass_find(const tni_pass *pass, const tni_node *node) {
    if (TNI_LIKELY(atomic_load_explicit(&node->owner, memory_order_relaxed) == pass->id))
        return node->slot;
    return pass->n_foreign ? tni_pass_find_foreign(pass, node) : (uint32_t)TNI_NO_SLOT;
}

/* Adds a node that has no slot yet; TNI_NO_SLOT with an error without memory. Pointers to slots
 * and grads are void afterwards. */
uint32_t tni_pass_add(tni_pass *pass, tni_node *node);

/* Room for n results of a formula, all NULL; NULL with an error without memory. */
tn_tensor **tni_pass_outs(tni_pass *pass, uint32_t n);

/* The ready heap: the node recorded last comes first. */
void tni_pass_push(tni_pass *pass, uint32_t slot);
uint32_t tni_pass_pop(tni_pass *pass);

#endif
