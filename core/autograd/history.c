/* The autograd state of a tensor, and which node made it. */
#include "core/autograd/engine.h"
#include "core/autograd/view.h"

#include <string.h>

tni_autograd *tni_autograd_of(tn_tensor *t) {
    if (TNI_LIKELY(!t->autograd)) {
        tni_autograd *a = tni_slab_alloc(TNI_SLAB_AUTOGRAD);
        if (TNI_UNLIKELY(!a))
            return tni_fail_memory_null("a tensor's autograd state");
        memset(a, 0, sizeof *a);
        t->autograd = a;
    }
    return t->autograd;
}

void tni_autograd_destroy(tn_tensor *t) {
    tni_autograd *a = t->autograd;
    if (TNI_UNLIKELY(a->retains_grad))
        tni_retain_hook_remove(t);
    if (TNI_UNLIKELY(tni_hooks_any(&a->hooks)))
        tni_hooks_destroy(&a->hooks);
    t->autograd = NULL;
    tni_drop(a->grad);
    tni_node_drop(a->node);
    tni_slab_free(TNI_SLAB_AUTOGRAD, a);
}

void tni_output_meta_fill(tni_output_meta *meta, const tn_tensor *t) {
    tni_device *device = t->device;
    tn_stream *stream = tni_stream_current(device);
    tn_stream *before = meta->stream;
    tni_device *of = meta->device;
    if (TNI_UNLIKELY(stream != &device->default_stream))
        tn_stream_keep(stream);
    meta->device = device;
    meta->stream = stream;
    meta->dtype = t->view.dtype;
    meta->rank = t->view.rank;
    for (int32_t i = 0; i < t->view.rank; i++)
        meta->sizes[i] = t->sizes[i];
    if (TNI_UNLIKELY(before && before != &of->default_stream))
        tn_stream_drop(before);
}

tn_status tni_set_history(tn_tensor *t, tni_node *node, uint32_t index) {
    return tni_take_history(t, tni_node_keep(node), index);
}

tn_status tni_take_history(tn_tensor *t, tni_node *node, uint32_t index) {
    tni_autograd *a = tni_autograd_of(t);
    if (TNI_UNLIKELY(!a)) {
        tni_node_drop(node);
        return TN_ERR_OUT_OF_MEMORY;
    }
    tni_output_meta_fill(&node->outputs[index], t);
    tni_history_point(t, node, index);
    return TN_OK;
}

void tni_history_point(tn_tensor *t, tni_node *node, uint32_t index) {
    tni_autograd *a = t->autograd;
    tni_node *before = a->node;
    if (TNI_UNLIKELY(a->retains_grad))
        tni_retain_hook_remove(t);
    a->node = node;
    a->output = index;
    a->requires_grad = false;
    if (t->view_kind)
        __atomic_store_n(&t->base_version, tni_version(t), __ATOMIC_RELEASE);
    if (!(t->head.keys & TN_KEY_BIT(TN_KEY_AUTOGRAD))) /* of a view it is, and others may read */
        t->head.keys |= TN_KEY_BIT(TN_KEY_AUTOGRAD);
    tni_node_drop(before);
    /* Without memory for the hook the gradient is not retained; the graph is right all the same. */
    if (TNI_UNLIKELY(a->retains_grad))
        tni_retain_hook_add(t);
}

tn_status tni_gradient_edge(tn_tensor *t, tni_edge *out) {
    *out = (tni_edge){0};
    if (!tni_view_current(t))
        return tni_failed();
    tni_autograd *a = t->autograd;
    if (!a)
        return TN_OK;
    if (a->node) {
        *out = (tni_edge){tni_node_keep(a->node), a->output, 0};
    } else if (a->requires_grad) {
        out->node = tni_accumulator_of(t);
        if (!out->node)
            return tni_failed();
    }
    return TN_OK;
}
