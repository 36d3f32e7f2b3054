/* Autograd inside the core: nodes, edges, saved tensors, a tensor's history.
 *
 * A node stands for one recorded call. It holds edges to the nodes of its inputs, the geometry of
 * its outputs, and what its backward formula needs. Nodes are reference counted: the outputs hold
 * their node, a node holds the nodes of its inputs. Destruction is iterative, so that long chains
 * do not overflow the stack.
 */
#ifndef TNI_CORE_AUTOGRAD_AUTOGRAD_H
#define TNI_CORE_AUTOGRAD_AUTOGRAD_H

#include "core/tensor/tensor.h"

#include <tenon/autograd.h>

typedef struct tni_node tni_node;

/* Where the gradient of an input goes: output `index` of `node`. node NULL: nowhere. */
typedef struct tni_edge {
    tni_node *node; /* owned reference */
    uint32_t index;
    uint32_t reserved;
} tni_edge;

typedef struct tni_checkpoint tni_checkpoint; /* checkpoint.h */

/* A tensor kept for backward. An output of the node itself is kept without its node, which would be
 * a cycle; the node is put back when it is unpacked. */
typedef struct tni_saved {
    union {
        tn_tensor *tensor;          /* owned; NULL: undefined, or released after backward */
        tni_checkpoint *checkpoint; /* of what is computed again: owned */
    };
    uint32_t version; /* of its storage when it was saved; of what is computed again, which it is */
    uint32_t output : 30; /* 1 + which output of the node it is; 0: an input */
    uint32_t again : 1;
    uint32_t released : 1;
} tni_saved;

/* Geometry of an output: gradients that arrive are summed down to it (broadcast) and cast to its
 * dtype. */
typedef struct tni_output_meta {
    tni_device *device; /* NULL: the output has no gradient (indices and the like) */
    tn_stream *stream;  /* the forward call's; kept while not the default stream */
    tn_dtype dtype;
    int32_t rank;
    int64_t sizes[TN_MAX_RANK];
} tni_output_meta;

/* What a kind of node does. Static. */
typedef struct tni_node_type {
    const char *name; /* "MulBackward" */

    /* grads[n_outputs]: borrowed, NULL is zero. Fills out[n_edges] with owned references; NULL is
     * zero. Where node->edges[i].node is NULL nothing need be computed (tni_node_needs). */
    tn_status (*backward)(tni_node *node, tn_tensor *const *grads, tn_tensor **out);

    /* Frees what the node type saved beside the saved tensors, when they are freed: after a
     * backward pass that does not retain the graph, and once more before the end; may be NULL. */
    void (*release)(tni_node *node);
    /* At the end of the node: frees `extra`; may be NULL. */
    void (*finish)(tni_node *node);
} tni_node_type;

/* Node memory:  | tni_node | edges | saved | attrs | ints |  in one block, from the slab when it
 * fits. */
struct tni_node {
    _Atomic uint32_t refs;
    uint32_t n_edges, n_outputs;
    uint16_t n_saved, n_attrs;
    uint32_t bytes_left; /* of the block, for the lists of attrs */
    uint32_t slot;       /* its place in the backward pass that owns it */
    /* Backward passes that run it now, and whether one of them freed what it saved: whoever is last
     * frees (TNI_NODE_RELEASED). */
    _Atomic uint32_t users;
    bool from_slab;
    const tni_node_type *type;
    union {
        uint64_t sequence;   /* order of recording in the thread; UINT64_MAX for accumulation */
        tni_node *next_dead; /* while it waits for destruction */
    };
    tni_edge *edges; /* one per differentiable input */
    tni_saved *saved;
    tn_cell *attrs; /* non-tensor arguments and sizes that the formula uses; lists point into the
                       block */
    void *extra;    /* of the node type */
    struct tni_hook *hooks;    /* hooks.c */
    _Atomic uint64_t owner;    /* the backward pass that `slot` belongs to; 0: none */
    tni_output_meta outputs[]; /* [n_outputs] */
};

enum { TNI_NODE_RELEASED = 1u << 31 };

/* A new node with all edges NULL and all saved empty; one reference. `int_bytes`: room for the
 * lists of attrs. */
tni_node *tni_node_new(const tni_node_type *type, uint32_t n_edges, uint32_t n_outputs,
                       uint32_t n_saved, uint32_t n_attrs, uint32_t int_bytes);
void tni_node_destroy(tni_node *node);
static inline void tni_node_drop(tni_node *n) {
    if (n && (atomic_load_explicit(&n->refs, memory_order_acquire) == 1 ||
              atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) == 1))
        tni_node_destroy(n);
}
static inline tni_node *tni_node_keep(tni_node *n) {
    atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
    return n;
}

/* Points edge i at the history of `input` (its node, or the accumulator of a leaf); leaves it NULL
 * when the input needs no gradient, is NULL or TN_NONE. */
tn_status tni_node_set_edge(tni_node *node, uint32_t i, tn_tensor *input);
/* Edges whose gradient the running pass wants (bit i; edges past 63 are always wanted): all in
 * tn_backward, in tn_gradients those that lead to its inputs. Set by the engine round each formula.
 */
extern TNI_TLS uint64_t tni_wanted_edges;
/* Does anyone want the gradient of input i? */
static inline bool tni_node_needs(const tni_node *node, uint32_t i) {
    return node->edges[i].node != NULL && (i > 63 || (tni_wanted_edges >> i & 1));
}
/* Mask of the inputs whose gradient somebody wants, of the first 32. */
static inline uint32_t tni_node_needed(const tni_node *node) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < node->n_edges && i < 32; i++)
        mask |= tni_node_needs(node, i) ? 1u << i : 0;
    return mask;
}
/* Frees what the node saved: after a pass that does not retain the graph. */
void tni_node_release(tni_node *node);

/* Saves an input, or with output > 0 the node's output number output - 1. NULL and TN_NONE are
 * saved as undefined. */
tn_status tni_node_save(tni_node *node, uint32_t i, tn_tensor *t, uint32_t output);
/* An owned reference to the saved tensor, with its history. TN_NONE where it was saved as
 * undefined; NULL with an error when it was released ("backward a second time") or changed in place
 * since (names the node and both versions). */
tn_tensor *tni_node_saved(tni_node *node, uint32_t i);
/* Copies a cell (lists included) into attr i. */
tn_status tni_node_set_attr(tni_node *node, uint32_t i, const tn_cell *cell);
static inline tn_ints tni_node_ints(const tni_node *node, uint32_t i) {
    return node->attrs[i].tag == TN_CELL_NONE
               ? tn_no_ints()
               : tn_ints_of(node->attrs[i].v.ints, (int64_t)node->attrs[i].n);
}

/* ---- a tensor's autograd state ----------------------------------------------------------- */

/* How a view came about decides what in-place on it may do. */
typedef enum tni_view_kind {
    TNI_VIEW_NONE,
    TNI_VIEW_SINGLE, /* in-place rewrites the base's history */
    TNI_VIEW_MULTI,  /* one of several outputs (split, unbind): in-place refused */
    TNI_VIEW_NO_GRAD /* made while recording was off: in-place refused if it would need history */
} tni_view_kind;

typedef struct tni_autograd {
    tn_tensor *grad;    /* owned */
    tni_node *node;     /* that made the tensor; owned; NULL for a leaf */
    uint32_t output;    /* which of the node's outputs */
    bool requires_grad; /* of a leaf */
    bool retains_grad;
    _Atomic bool saved; /* some node saved it, or a view of it, with its history */
    /* tni_fork_generation while held, for a few loads and stores round `accumulator` */
    _Atomic uint32_t lock;
    tni_node *accumulator; /* of a leaf, while some graph holds it; not owned (it unhooks itself) */
    uint32_t rebased;      /* storage version after the last write that changed the history */
    uint64_t since;        /* sequence of the first node, once the history was rewritten */
    struct tni_hook *hooks; /* of a leaf; those of other tensors hang on their node */
} tni_autograd;
_Static_assert(sizeof(tni_autograd) <= TNI_SLAB_AUTOGRAD_BYTES, "TNI_SLAB_AUTOGRAD_BYTES");

/* The state, made on demand; NULL with an error without memory. */
tni_autograd *tni_autograd_of(tn_tensor *t);
/* Called by tni_tensor_destroy when t->autograd is set. */
void tni_autograd_destroy(tn_tensor *t);

static inline uint32_t tni_version(const tn_tensor *t) {
    return atomic_load_explicit(&t->storage->version, memory_order_relaxed);
}
static inline void tni_bump_version(tn_tensor *t) {
    atomic_fetch_add_explicit(&t->storage->version, 1, memory_order_relaxed);
}

/* What a view is a view of, to autograd; NULL: it is none. */
static inline tn_tensor *tni_base(const tn_tensor *t) {
    return t->view_kind ? t->owner : NULL;
}

/* Gives a view whose storage was written the history of its base, if that changed. False with an
 * error without memory. */
bool tni_view_refresh(tn_tensor *view);
/* To be asked before t->autograd of a tensor that may be a view is read. */
static inline bool tni_view_current(tn_tensor *t) {
    return TNI_LIKELY(!t->view_kind ||
                      __atomic_load_n(&t->base_version, __ATOMIC_ACQUIRE) == tni_version(t)) ||
           tni_view_refresh(t);
}

/* Leaf marked, or made by a node (asks a view's base if it was rewritten since). */
static inline bool tni_requires_grad(tn_tensor *t) {
    return tni_view_current(t) && t->autograd && (t->autograd->node || t->autograd->requires_grad);
}

/* The accumulator of a leaf: a new reference to the one that lives, or a new one. NULL with an
 * error without memory. */
tni_node *tni_accumulator_of(tn_tensor *leaf);

/* Fills the geometry of an output. */
void tni_output_meta_fill(tni_output_meta *meta, const tn_tensor *t);

/* Makes `t` output `index` of `node` (keeps the node; fills the output's geometry; sets the key).
 */
tn_status tni_set_history(tn_tensor *t, tni_node *node, uint32_t index);
/* The same with the caller's reference to the node, which is gone afterwards in any case. */
tn_status tni_take_history(tn_tensor *t, tni_node *node, uint32_t index);
/* The same after an in-place write to t: a view rewrites its base's history. t must have passed
 * tni_check_inplace before the write. */
tn_status tni_rebase_history(tn_tensor *t, tni_node *node);
/* May t be written in place now? Refuses leaves that need a gradient, multi-output views, expanded
 * memory, inference tensors outside inference mode, each with its reason. */
tn_status tni_check_inplace(tn_tensor *t, const char *operator_name);

/* Notes that `view` is a view of `t` (of t's base, if t is a view). Called by the InplaceOrView
 * handler. */
void tni_set_view(tn_tensor *view, const tn_tensor *t, tni_view_kind kind);

/* ---- recording --------------------------------------------------------------------------- */

/* What the generator writes for an operator with a derivative. Positions are those of the schema.
 */
enum { TNI_MAX_DIFFERENTIABLE = 8, TNI_MAX_SAVED = 8, TNI_MAX_NODE_ATTRS = 16 };

typedef enum tni_attr_source {
    TNI_ATTR_CELL,      /* the argument's cell */
    TNI_ATTR_SIZES,     /* sizes of the tensor argument, as ints */
    TNI_ATTR_STRIDES,   /* its strides, as ints */
    TNI_ATTR_OFFSET,    /* its offset in its storage, in elements, as I64 */
    TNI_ATTR_DTYPE,     /* its dtype, as I64 */
    TNI_ATTR_OUT_SIZES, /* sizes of output `arg` */
    TNI_ATTR_LENGTHS /* of each element of the Tensor[] argument its size along the dimension that
                        the next argument names, as ints; 0 where it has none such */
} tni_attr_source;

typedef struct tni_derivative {
    tni_node_type node;
    uint8_t n_inputs; /* differentiable tensor arguments = edges */
    uint8_t n_saved, n_attrs;
    uint8_t is_list; /* input 0 is a Tensor[]: one edge for each element */
    uint8_t inputs[TNI_MAX_DIFFERENTIABLE];
    struct {
        uint8_t arg; /* position of the tensor argument, or of the output */
        uint8_t is_output;
        uint16_t only_for; /* mask of edges whose formulas use it: saved if one of them is wanted */
    } saved[TNI_MAX_SAVED];
    struct {
        uint8_t arg;
        uint8_t source; /* tni_attr_source */
    } attrs[TNI_MAX_NODE_ATTRS];
    uint32_t nondifferentiable_outputs; /* mask: indices and the like */
} tni_derivative;

/* The handlers of the Autograd key for an operator without a formula that has a decomposition (the
 * values are the kernel's, where the device has one, and the history is the decomposition's), and
 * for all others: with a derivative (op->info gives it), or without (records a node that fails in
 * backward, by name); and the handler of InplaceOrView. */
tn_status tni_autograd_decomposed(const tn_op *op, tn_keyset keys, const tn_cell *args,
                                  tn_cell *rets, void *user);
tn_status tni_autograd_handler(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                               void *user);
tn_status tni_inplace_or_view_handler(const tn_op *op, tn_keyset keys, const tn_cell *args,
                                      tn_cell *rets, void *user);

/* Keys that record and track, and those switched off while kernels and decompositions below
 * Autograd run: what they compute in is decided. */
enum {
    TNI_KEYS_RECORDING = TN_KEY_BIT(TN_KEY_AUTOGRAD) | TN_KEY_BIT(TN_KEY_INPLACE_OR_VIEW),
    TNI_KEYS_BELOW_AUTOGRAD = TNI_KEYS_RECORDING | TN_KEY_BIT(TN_KEY_AUTOCAST)
};

#endif
