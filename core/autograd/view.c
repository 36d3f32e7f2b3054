/* Views and writes in place.
 *
 * A view remembers its root base. A write to a view is a write to the base: the base's new node,
 * CopySlices, takes the gradient of the whole, runs the operator's formula on the view's part of
 * it, and passes the rest through. The view itself, and any sibling when it is next asked, then
 * gets its history from the base, as an AsStrided node.
 *
 * Both nodes see the base as the one-dimensional memory from its first to its last element, so that
 * any strides of base and view work, and every step is an operator that can be differentiated. */
#include "core/autograd/view.h"
#include "base/fork.h"
#include "core/ops/functions.h"

enum { BASE_SIZES, BASE_STRIDES, VIEW_SIZES, VIEW_STRIDES, OFFSET, EXTENT, N_GEOMETRY };

static int64_t extent(int32_t rank, const int64_t *sizes, const int64_t *strides) {
    int64_t last = 0;
    for (int32_t i = 0; i < rank; i++) {
        if (sizes[i] == 0)
            return 0;
        last += (sizes[i] - 1) * strides[i];
    }
    return last + 1;
}

static uint32_t geometry_bytes(const tn_tensor *base, const tn_tensor *view) {
    return (uint32_t)(2 * (base->view.rank + view->view.rank)) * (uint32_t)sizeof(int64_t);
}

static tn_status set_geometry(tni_node *node, const tn_tensor *base, const tn_tensor *view) {
    int64_t offset = tni_offset_elements(view) - tni_offset_elements(base);
    int64_t whole = extent(base->view.rank, base->sizes, base->strides);
    int64_t part = extent(view->view.rank, view->sizes, view->strides);
    if (part == 0)
        offset = 0;
    if (offset < 0 || offset + part > whole)
        return tni_fail(TN_ERR_UNSUPPORTED,
                        "%s: the view reaches past the tensor it was made from, so a write in "
                        "place has no gradient; use operators that make new tensors",
                        node->type->name);
    const tn_cell cells[N_GEOMETRY] = {
        [BASE_SIZES] = tni_cell_ints(tn_ints_of(base->sizes, base->view.rank)),
        [BASE_STRIDES] = tni_cell_ints(tn_ints_of(base->strides, base->view.rank)),
        [VIEW_SIZES] = tni_cell_ints(tn_ints_of(view->sizes, view->view.rank)),
        [VIEW_STRIDES] = tni_cell_ints(tn_ints_of(view->strides, view->view.rank)),
        [OFFSET] = tni_cell_i64(offset),
        [EXTENT] = tni_cell_i64(whole),
    };
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < N_GEOMETRY && status == TN_OK; i++)
        status = tni_node_set_attr(node, i, &cells[i]);
    return status;
}

static tn_tensor *whole_of(tni_node *node, tn_tensor *flat) {
    return tni_as_strided(flat, tni_node_ints(node, BASE_SIZES), tni_node_ints(node, BASE_STRIDES),
                          0);
}
static tn_tensor *part_of(tni_node *node, tn_tensor *flat) {
    return tni_as_strided(flat, tni_node_ints(node, VIEW_SIZES), tni_node_ints(node, VIEW_STRIDES),
                          node->attrs[OFFSET].v.i64);
}

/* ---- the two nodes ----------------------------------------------------------------------- */

static tn_status as_strided_backward(tni_node *node, tn_tensor *const *grads, tn_tensor **out) {
    if (!grads[0] || !tni_node_needs(node, 0))
        return TN_OK;
    out[0] = tni_as_strided_backward(grads[0], tni_node_ints(node, BASE_SIZES),
                                     tni_node_ints(node, BASE_STRIDES), 0,
                                     tni_node_ints(node, VIEW_SIZES),
                                     tni_node_ints(node, VIEW_STRIDES), node->attrs[OFFSET].v.i64);
    return out[0] ? TN_OK : tni_failed();
}

static const tni_node_type as_strided_type = {"AsStridedBackward", as_strided_backward, NULL, NULL};

/* The base as it is now is given by the caller's edge: before or after the base was rebased. */
static tni_node *as_strided_to(tn_tensor *base, tn_tensor *view, tni_edge edge) {
    tni_node *node =
        tni_node_new(&as_strided_type, 1, 1, 0, N_GEOMETRY, geometry_bytes(base, view));
    if (!node)
        return NULL;
    if (set_geometry(node, base, view) != TN_OK) {
        tni_node_drop(node);
        return NULL;
    }
    if (edge.node)
        tni_node_keep(edge.node);
    node->edges[0] = edge;
    tni_output_meta_fill(&node->outputs[0], view);
    return node;
}

/* The CopySlices that runs its formula on this thread. */
static TNI_TLS tni_node *running;

/* The formula alone would be a second way to what lies before the write, beside that by way of the
 * whole: gradients would not be added up in between, and one would free what the other needs. */
tn_status tni_set_saved_history(tn_tensor *t, tni_node *fn, uint32_t index) {
    if (!running || running->extra != fn || index != 0)
        return tni_set_history(t, fn, index);
    uint32_t lists = 0;
    for (uint32_t i = 0; i < N_GEOMETRY; i++)
        if (running->attrs[i].tag == TN_CELL_INTS)
            lists += (uint32_t)(running->attrs[i].n * sizeof(int64_t));
    tni_node *part = tni_node_new(&as_strided_type, 1, 1, 0, N_GEOMETRY, lists);
    if (!part)
        return tni_failed();
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < N_GEOMETRY && status == TN_OK; i++)
        status = tni_node_set_attr(part, i, &running->attrs[i]);
    if (status != TN_OK) {
        tni_node_drop(part);
        return status;
    }
    part->edges[0] = (tni_edge){tni_node_keep(running), 0, 0};
    return tni_take_history(t, part, 0);
}

static tn_status copy_slices_backward(tni_node *node, tn_tensor *const *grads, tn_tensor **out) {
    tni_node *fn = node->extra, *outer = running;
    tn_tensor *grad = grads[0];
    if (!grad)
        return TN_OK;
    int64_t n = node->attrs[EXTENT].v.i64;
    tn_tensor *flat = tni_zeros(tn_ints_of(&n, 1), grad->view.dtype, grad->device->id);
    tn_tensor *whole = whole_of(node, flat);
    tn_tensor *filled = tni_copy_(whole, grad, false);
    tn_tensor *part = part_of(node, flat);
    tn_tensor *slice = tni_clone(part);
    tn_status status = filled && slice ? TN_OK : tni_failed();
    if (status == TN_OK) {
        running = node;
        status = fn->type->backward(fn, &slice, out);
        running = outer;
    }
    if (status == TN_OK && tni_node_needs(node, 0)) {
        /* What the write left of the old values: the formula's answer for self, or nothing. */
        tn_tensor *written = out[0] ? tni_copy_(part, out[0], false) : tni_zero_(part);
        tni_drop(out[0]);
        out[0] = written ? whole_of(node, flat) : NULL;
        tni_drop(written);
        status = out[0] ? TN_OK : tni_failed();
    }
    tni_drop(slice);
    tni_drop(part);
    tni_drop(filled);
    tni_drop(whole);
    tni_drop(flat);
    return status;
}

static void copy_slices_release(tni_node *node) {
    tni_node_release(node->extra);
}
static void copy_slices_finish(tni_node *node) {
    tni_node_drop(node->extra);
}

static const tni_node_type copy_slices_type = {"CopySlices", copy_slices_backward,
                                               copy_slices_release, copy_slices_finish};

/* Takes the gradient of `base` after the write to `view` that `fn` stands for; keeps fn. */
static tni_node *copy_slices_of(tn_tensor *base, tn_tensor *view, tni_node *fn) {
    tni_node *node =
        tni_node_new(&copy_slices_type, fn->n_edges, 1, 0, N_GEOMETRY, geometry_bytes(base, view));
    if (!node)
        return NULL;
    node->extra = tni_node_keep(fn);
    if (set_geometry(node, base, view) != TN_OK || tni_gradient_edge(base, &node->edges[0])) {
        tni_node_drop(node);
        return NULL;
    }
    for (uint32_t i = 1; i < fn->n_edges; i++) {
        node->edges[i] = fn->edges[i];
        if (node->edges[i].node)
            tni_node_keep(node->edges[i].node);
    }
    tni_output_meta_fill(&node->outputs[0], base);
    return node;
}

/* ---- tracking ---------------------------------------------------------------------------- */

void tni_set_view(tn_tensor *view, const tn_tensor *t, tni_view_kind kind) {
    if (!view->owner || !tni_is_float(view->view.dtype) || (t->flags & TNI_TENSOR_INFERENCE) ||
        (tni_fresh.flags & TNI_TENSOR_INFERENCE))
        return;
    view->view_kind = t->view_kind > TNI_VIEW_SINGLE ? t->view_kind : kind;
    view->base_version = tni_version(view);
    /* So that the Autograd handler sees it, and asks, after the base was rewritten. */
    view->head.keys |= TN_KEY_BIT(TN_KEY_AUTOGRAD);
}

/* Several threads may ask one view. */
static pthread_mutex_t refresh_lock = PTHREAD_MUTEX_INITIALIZER;

TNI_FORK_MUTEX(VIEWS, refresh_lock, tni_fork_no_mend)

bool tni_view_refresh(tn_tensor *view) {
    bool ok = true;
    pthread_mutex_lock(&refresh_lock);
    uint32_t version = tni_version(view);
    if (view->base_version != version) {
        const tni_autograd *of = view->owner->autograd;
        tni_node *stale = NULL;
        if (of && of->node && (int32_t)(of->rebased - view->base_version) > 0) {
            tni_node *node = as_strided_to(view->owner, view, (tni_edge){of->node, of->output, 0});
            tni_autograd *a = node ? tni_autograd_of(view) : NULL;
            ok = a != NULL;
            if (!ok) {
                tni_node_drop(node);
            } else {
                stale = a->node;
                a->node = NULL;
                tni_history_point(view, node, 0);
            }
        }
        if (ok)
            __atomic_store_n(&view->base_version, version, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&refresh_lock);
        tni_node_drop(stale);
        return ok;
    }
    pthread_mutex_unlock(&refresh_lock);
    return ok;
}

tn_status tni_rebase_history(tn_tensor *t, tni_node *node) {
    tni_autograd *a = tni_autograd_of(t);
    if (!a)
        return TN_ERR_OUT_OF_MEMORY;
    tni_output_meta_fill(&node->outputs[0], t);
    tn_tensor *base = tni_base(t);
    tni_autograd *root = base ? tni_autograd_of(base) : a;
    if (!root)
        return TN_ERR_OUT_OF_MEMORY;
    if (!root->since)
        root->since = root->node ? root->node->sequence : node->sequence;
    if (root->saved) {
        TNI_TRY(tni_break_cycles(node, t->storage, root->since));
    }
    if (!base) {
        tni_history_point(t, tni_node_keep(node), 0);
        a->rebased = tni_version(t);
        return TN_OK;
    }
    tni_node *whole = copy_slices_of(base, t, node);
    tni_node *part = whole ? as_strided_to(base, t, (tni_edge){whole, 0, 0}) : NULL;
    if (!part) {
        tni_node_drop(whole);
        return tni_failed();
    }
    tni_history_point(base, whole, 0);
    root->rebased = tni_version(t);
    tni_history_point(t, part, 0);
    return TN_OK;
}

/* ---- what may be written ----------------------------------------------------------------- */

static bool repeats(const tn_tensor_view *v) {
    for (int32_t i = 0; i < v->rank; i++)
        if (v->sizes[i] > 1 && v->strides[i] == 0)
            return true;
    return false;
}

tn_status tni_check_inplace(tn_tensor *t, const char *operator_name) {
    if (!t || t == TN_NONE)
        return TN_OK;
    if (t->flags & TNI_TENSOR_INFERENCE)
        return tni_fail(TN_ERR_STATE,
                        "%s: a tensor made in inference mode takes no part in autograd and cannot "
                        "be written here; write to a tn_clone of it",
                        operator_name);
    if (repeats(&t->view))
        return tni_fail(TN_ERR_STATE,
                        "%s: several elements of an expanded tensor share one place in memory, so "
                        "it cannot be written in place; write to a tn_clone of it",
                        operator_name);
    if (!tni_view_current(t))
        return tni_failed();
    const tn_tensor *base = tni_base(t);
    if (base) {
        const tni_autograd *b = base->autograd;
        if (t->view_kind == TNI_VIEW_MULTI)
            return tni_fail(TN_ERR_STATE,
                            "%s: one of several views that an operator returned together (unbind, "
                            "split, chunk) cannot be written in place; take it with tn_select or "
                            "tn_slice, or write to a tn_clone of it",
                            operator_name);
        if (t->view_kind == TNI_VIEW_NO_GRAD)
            return tni_fail(TN_ERR_STATE,
                            "%s: a view made while recording was off cannot be written in place "
                            "while it is on; make the view where recording is on, or write under "
                            "TN_NO_GRAD",
                            operator_name);
        if (b && b->requires_grad && !b->node)
            return tni_fail(TN_ERR_STATE,
                            "%s: a view of a leaf that requires a gradient cannot be written in "
                            "place; use TN_NO_GRAD, or write to a view of its tn_clone",
                            operator_name);
        if (!tni_is_dense(&base->view) && tni_may_overlap(&base->view))
            return tni_fail(TN_ERR_STATE,
                            "%s: the tensor that this view was made from has elements that share "
                            "memory, so a view of it cannot be written in place; clone it first",
                            operator_name);
    }
    const tni_autograd *a = t->autograd;
    if (a && a->requires_grad && !a->node)
        return tni_fail(TN_ERR_STATE,
                        "%s: a leaf that requires a gradient cannot be written in place; use "
                        "TN_NO_GRAD or clone it",
                        operator_name);
    return TN_OK;
}
