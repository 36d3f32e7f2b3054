/* Leaves: the node that stands for one in the graph, and the sum of what arrives there.
 *
 * A leaf knows its accumulator without holding it, a graph holds accumulators and through them
 * leaves. Handing out and destroying meet at the leaf's lock: a count that has reached zero is
 * never raised again, and one that has been raised in time keeps the accumulator alive. */
#include "core/autograd/engine.h"
#include "base/fork.h"
#include "core/ops/operators.h"

#include <sched.h>

static tn_status no_formula(tni_node *node, tn_tensor *const *grads, tn_tensor **out) {
    return tni_fail(TN_ERR_INTERNAL, "%s has no formula; the engine calls tni_accumulate",
                    node->type->name);
}

static void finish(tni_node *node) {
    tni_drop(tni_accumulator_leaf(node));
}

const tni_node_type tni_accumulate_type = {"AccumulateGrad", no_formula, NULL, finish};

/* In a forked child a lock of an earlier generation is held by nobody. What it guards is right
 * between any two stores. */
static void lock(tni_autograd *a) {
    uint32_t held = tni_fork_generation;
    while (atomic_exchange_explicit(&a->lock, held, memory_order_acquire) == held)
        sched_yield();
}
static void unlock(tni_autograd *a) {
    atomic_store_explicit(&a->lock, 0, memory_order_release);
}

tni_node *tni_accumulator_of(tn_tensor *leaf) {
    tni_autograd *a = leaf->autograd;
    lock(a);
    tni_node *node = a->accumulator;
    if (node && atomic_load_explicit(&node->refs, memory_order_relaxed) > 0) {
        tni_node_keep(node);
    } else {
        node = tni_node_new(&tni_accumulate_type, 0, 1, 0, 0, 0);
        if (node) {
            node->sequence = UINT64_MAX; /* leaves first, so that gradients die early */
            node->extra = tni_keep(leaf);
            tni_output_meta_fill(&node->outputs[0], leaf);
            a->accumulator = node;
        }
    }
    unlock(a);
    return node;
}

/* Entered with one reference, seen by a reader that found the count at one, or with none left. */
bool tni_accumulator_unhook(tni_node *node) {
    tni_autograd *a = tni_accumulator_leaf(node)->autograd;
    lock(a);
    bool dies = atomic_load_explicit(&node->refs, memory_order_relaxed) == 0 ||
                atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) == 1;
    if (dies && a->accumulator == node)
        a->accumulator = NULL;
    unlock(a);
    return dies;
}

/* Is the engine the only one to hold t and its memory, which `maker` made, and may that therefore be
 * written? */
static bool is_alone(tn_tensor *t, tn_tensor *maker) {
    return atomic_load_explicit(&t->refs, memory_order_acquire) == 1 &&
           atomic_load_explicit(&maker->refs, memory_order_acquire) == 1 &&
           atomic_load_explicit(&t->storage->refs, memory_order_acquire) == 1 &&
           t->storage == &maker->own && t->storage->block && !(t->flags & TNI_TENSOR_INFERENCE) &&
           tni_is_dense(&t->view);
}

static bool is_exclusive(tn_tensor *t) {
    return is_alone(t, t);
}

tn_tensor *tni_add_grads(tn_tensor *sum, tn_tensor *grad, bool create_graph) {
    tn_tensor *result;
    if (!create_graph && is_exclusive(sum))
        result = tni_add_(sum, grad, tn_int(1));
    else if (!create_graph && is_exclusive(grad))
        result = tni_add_(grad, sum, tn_int(1));
    else
        result = tni_add(sum, grad, tn_int(1));
    tni_drop(sum);
    tni_drop(grad);
    return result;
}

/* A leaf may be shared by graphs that run in several threads. Few enough that fork, which takes them
 * all, stays within what ThreadSanitizer's deadlock detector can follow: 64 locks of a thread. */
enum { N_LOCKS = 16 };
static tni_lock locks[N_LOCKS] = {[0 ... N_LOCKS - 1] = TNI_LOCK_INITIALIZER};

static void fork_before_ACCUMULATE(void) {
    for (int i = 0; i < N_LOCKS; i++)
        tni_fork_take(&locks[i]);
}

static void fork_after_ACCUMULATE(bool in_child) {
    for (int i = N_LOCKS - 1; i >= 0; i--)
        tni_fork_give(&locks[i], in_child);
}

TNI_FORK_PART(ACCUMULATE)

/* Is t all that is left of the tensor that made its memory, a view of every byte of that? So comes the
 * gradient of a weight that was transposed, or of a bias that was added to rows. */
static bool is_last_view(tn_tensor *t) {
    return t->owner && t->view_kind == TNI_VIEW_NONE && is_alone(t, t->owner) &&
           (uint64_t)(t->view.numel * tni_dtype_size(t->view.dtype)) == t->storage->bytes;
}

/* Does it lie as a gradient of the leaf should: with its strides, or, where those leave gaps, contiguous? */
static bool lies_like(const tn_tensor *leaf, const tn_tensor *grad) {
    bool same = true;
    for (int32_t i = 0; same && i < grad->view.rank; i++)
        same = grad->sizes[i] == 1 || grad->strides[i] == leaf->strides[i];
    return same || (tni_is_contiguous(&grad->view) && !tni_is_dense(&leaf->view));
}

/* The gradient that becomes the leaf's own: where nobody else can write to it and it lies as it should,
 * `grad` itself, or, so that no history comes along, another view of its memory; else a copy, which
 * keeps its strides. */
static tn_tensor *first_gradient(tn_tensor *leaf, tn_tensor *grad, bool create_graph) {
    bool is_free = !create_graph && lies_like(leaf, grad);
    bool is_own = is_free && is_exclusive(grad);
    if (is_own && !grad->autograd)
        return grad;
    tn_tensor *own =
        is_own || (is_free && is_last_view(grad)) ? tni_tensor_alias(grad) : tni_clone(grad);
    tni_drop(grad);
    return own;
}

tn_tensor *tni_exchange_grad(tn_tensor *leaf, tn_tensor *grad) {
    tni_lock *mutex = &locks[((uintptr_t)leaf >> 6) % N_LOCKS];
    bool nested = tni_lock_is_mine(mutex);
    if (!nested)
        tni_lock_take(mutex);
    tn_tensor *before = leaf->autograd->grad;
    leaf->autograd->grad = grad;
    if (!nested)
        tni_lock_give(mutex);
    return before;
}

tn_status tni_accumulate(tn_tensor *leaf, tn_tensor *grad, bool create_graph) {
    tni_autograd *a = leaf->autograd;
    tni_lock *mutex = &locks[((uintptr_t)leaf >> 6) % N_LOCKS];
    /* A handler that sees the addition may itself call backward. */
    bool nested = tni_lock_is_mine(mutex);
    if (!nested)
        tni_lock_take(mutex);
    tn_tensor *before = a->grad, *after;
    if (!before) {
        after = first_gradient(leaf, grad, create_graph);
    } else if (!create_graph && tni_is_dense(&before->view)) {
        /* In place, although others may hold it: that is what .grad means. */
        after = tni_add_(before, grad, tn_int(1));
        tni_bump_version(before);
        tni_drop(grad);
    } else {
        after = tni_add(before, grad, tn_int(1));
        tni_drop(grad);
    }
    tn_status status = after ? TN_OK : tni_failed();
    if (after) {
        a->grad = after;
        tni_drop(before);
    }
    if (!nested)
        tni_lock_give(mutex);
    return status;
}
