/* Tensors saved for backward, and the check that nobody wrote to them in between. */
#include "core/autograd/checkpoint.h"
#include "core/autograd/view.h"

tn_status tni_node_save(tni_node *node, uint32_t i, tn_tensor *t, uint32_t output) {
    tni_saved *s = &node->saved[i];
    if (!t || t == TN_NONE)
        return TN_OK;
    if (TNI_UNLIKELY(t->flags & TNI_TENSOR_INFERENCE))
        return tni_fail(TN_ERR_STATE,
                        "%s: a tensor made in inference mode cannot be saved for backward, since "
                        "writes to it are not counted; use a tn_clone of it",
                        node->type->name);
    if (TNI_UNLIKELY(tni_checkpoint_running != NULL)) {
        bool taken;
        tn_status status = tni_checkpoint_save(s, t, output, &taken);
        if (status != TN_OK || taken)
            return status;
    }
    if (output || !tni_requires_grad(t)) {
        /* An output holds the node, and what has no history may get one that leads here: only the
         * memory is held in return. */
        t = tni_tensor_alias(t);
        if (TNI_UNLIKELY(!t))
            return tni_failed();
        s->output = output;
    } else {
        /* A leaf is never written while it requires a gradient. */
        tni_autograd *a = t->autograd;
        tni_autograd *root = t->view_kind ? t->owner->autograd : a;
        if (a->node && root && !atomic_load_explicit(&root->saved, memory_order_relaxed))
            atomic_store_explicit(&root->saved, true, memory_order_relaxed);
        tni_keep(t);
    }
    s->tensor = t;
    s->version = tni_version(t);
    return TN_OK;
}

tn_tensor *tni_node_saved(tni_node *node, uint32_t i) {
    tni_saved *s = &node->saved[i];
    tn_tensor *t = s->tensor;
    if (TNI_UNLIKELY(!t)) {
        if (!s->released)
            return TN_NONE;
        return tni_fail_null(
            TN_ERR_STATE,
            "%s: backward through the graph a second time, but what it saved was freed "
            "after the first; ask the first pass to retain the graph "
            "(tn_backward_full with retain_graph)",
            node->type->name);
    }
    uint32_t version = s->version;
    if (TNI_UNLIKELY(s->again) && !(t = tni_checkpoint_saved(s, &version)))
        return NULL;
    if (TNI_UNLIKELY(tni_version(t) != version))
        return tni_fail_null(
            TN_ERR_STATE,
            "%s: %s of shape %s, saved for backward, was written in place since: it is at "
            "version %u, expected %u; write to a tn_clone of it, or write before it is used",
            node->type->name, s->output ? "an output" : "a tensor", TNI_SHAPE_OF(t), tni_version(t),
            version);
    if (!s->output || !tni_grad_mode())
        return tni_keep(t);
    /* Recording: the output gets its node back. */
    t = tni_tensor_alias(t);
    if (t && tni_set_saved_history(t, node, s->output - 1) != TN_OK) {
        tni_drop(t);
        t = NULL;
    }
    return t;
}
