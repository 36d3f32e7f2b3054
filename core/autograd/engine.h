/* What the files of autograd share among themselves: accumulators, hooks, one backward pass, and
 * the keys under which formulas and callbacks run.
 */
#ifndef TNI_CORE_AUTOGRAD_ENGINE_H
#define TNI_CORE_AUTOGRAD_ENGINE_H

#include "core/autograd/autograd.h"
#include "base/error.h"

/* ---- accumulators ------------------------------------------------------------------------ */

/* The node at the end of an edge to a leaf; extra is the leaf, owned. */
extern const tni_node_type tni_accumulate_type;

static inline tn_tensor *tni_accumulator_leaf(const tni_node *node) {
    return node->extra;
}

/* Called when the last reference seems gone: true when the accumulator is to be destroyed. */
bool tni_accumulator_unhook(tni_node *node);

/* Adds `grad` (consumed) to the leaf's gradient. */
tn_status tni_accumulate(tn_tensor *leaf, tn_tensor *grad, bool create_graph);
/* Makes `grad` (a reference, or NULL) the leaf's, and returns what was: not while another thread adds to that. */
tn_tensor *tni_exchange_grad(tn_tensor *leaf, tn_tensor *grad);

/* ---- hooks ------------------------------------------------------------------------------- */

typedef struct tni_hook tni_hook;

/* Has the list a hook? Asked without the lock, as nearly all have none. */
static inline bool tni_hooks_any(tni_hook *const *list) {
    return __atomic_load_n(list, __ATOMIC_RELAXED) != NULL;
}

/* Frees a list with its node or leaf. */
void tni_hooks_destroy(tni_hook **list);

/* Calls the hooks on output `output` of a node, or with a leaf's list, in order of registration.
 * *grad (owned, not NULL) is replaced by what they return. Also hands it to a tensor that retains
 * its gradient. */
tn_status tni_hooks_run(tni_hook **list, uint32_t output, tn_tensor **grad, bool create_graph);

/* Calls the node hooks after a node's backward; entries of grads (owned) may be replaced. */
tn_status tni_hooks_run_node(tni_node *node, tn_tensor **grads, bool create_graph);

/* Anomaly mode's hook, which sees nothing and keeps where the node was recorded. False where there
 * is no memory. */
bool tni_hooks_add_trace(tni_hook **list, void *trace, void (*destroy)(void *user));
/* NULL: it has none. */
const void *tni_hooks_trace(tni_hook *const *list);

/* A tensor that retains its gradient: hangs it on its node, takes it off (of the old node). */
tn_status tni_retain_hook_add(tn_tensor *t);
void tni_retain_hook_remove(tn_tensor *t);

/* ---- anomaly mode ------------------------------------------------------------------------ */

extern atomic_bool tni_anomaly;

/* Keeps the call stack with a new node, if there is memory for it; returns the node. */
tni_node *tni_anomaly_recorded(tni_node *node);

/* Fails where the gradient that arrives at a node has a NaN: the operators before it made none. */
tn_status tni_anomaly_arrived(tni_node *node, tn_tensor *const *grads);

/* Fails where one of the gradients of a node's inputs has a NaN. */
tn_status tni_anomaly_check(tni_node *node, tn_tensor *const *outs);

/* ---- backward ---------------------------------------------------------------------------- */

/* A wish for the gradient that arrives at output `index` of `node`. */
typedef struct tni_capture {
    tni_node *node; /* owned */
    uint32_t index;
    uint32_t next;   /* 1 + the next capture at the same node; 0: none */
    tn_tensor *grad; /* owned; NULL: none arrived */
} tni_capture;

/* Runs one pass. roots[i] is where grads[i] (owned, consumed in any case) arrives. Without captures
 * the leaves accumulate; with captures they do not, and only what leads there runs. */
tn_status tni_engine_run(const tni_edge *roots, tn_tensor **grads, uint64_t n_roots,
                         tni_capture *captures, uint64_t n_captures, bool retain_graph,
                         bool create_graph);

/* Where the gradient of t arrives: its node, or its accumulator. Owned node; NULL without an error
 * when t needs no gradient. */
tn_status tni_gradient_edge(tn_tensor *t, tni_edge *out);

/* `*grad` (owned) summed, cast and moved to what `meta` says; replaced. `source` names the node
 * that made it. */
tn_status tni_fit_grad(tn_tensor **grad, const tni_output_meta *meta, const char *source);

/* sum + grad, in place where nobody can see it; consumes both, returns owned or NULL. */
tn_tensor *tni_add_grads(tn_tensor *sum, tn_tensor *grad, bool create_graph);

/* ---- keys -------------------------------------------------------------------------------- */

/* Formulas: recording as asked; without it nothing need be tracked, since their temporaries are
 * their own. They compute in the dtypes of what was saved, whatever the thread casts. */
static inline tn_thread_keys tni_keys_formula(bool create_graph) {
    tn_thread_keys before = tni_thread_keys;
    tni_thread_keys.excluded |= TNI_KEYS_BELOW_AUTOGRAD;
    if (create_graph)
        tni_thread_keys.excluded &= ~(uint32_t)TNI_KEYS_RECORDING;
    return before;
}
/* A user's function: recording as asked; views and versions are tracked. */
static inline tn_thread_keys tni_keys_callback(bool create_graph) {
    tn_thread_keys before = tni_thread_keys;
    tni_thread_keys.excluded &= ~(uint32_t)TNI_KEYS_RECORDING;
    if (!create_graph)
        tni_thread_keys.excluded |= TN_KEY_BIT(TN_KEY_AUTOGRAD);
    return before;
}
static inline bool tni_grad_mode(void) {
    return !(tni_thread_keys.excluded & TN_KEY_BIT(TN_KEY_AUTOGRAD));
}

#endif
