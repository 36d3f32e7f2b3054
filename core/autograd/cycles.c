/* Graphs that would hold themselves.
 *
 * A node may hold a tensor it saved; a write in place then gives that tensor a history that may
 * lead back to the node. Such a node can only fail in backward, since what it saved is overwritten,
 * but the cycle would never be freed. So a write looks for nodes in its own history that saved the
 * memory it overwrites, and lets them hold the memory alone. The search starts only for tensors
 * that were ever saved, and ends at nodes that are older than the tensor's history. */
#include "core/autograd/pass.h"
#include "core/autograd/view.h"

static tn_status let_go(tni_node *node, const tn_storage *storage) {
    for (uint32_t i = 0; i < node->n_saved; i++) {
        tni_saved *s = &node->saved[i];
        tn_tensor *t = s->tensor;
        if (!t || s->again || t->storage != storage || (!t->autograd && !t->owner))
            continue;
        s->tensor = tni_tensor_alias(t);
        if (!s->tensor) {
            s->tensor = t;
            return tni_failed();
        }
        tni_drop(t);
    }
    return TN_OK;
}

tn_status tni_break_cycles(tni_node *from, const tn_storage *storage, uint64_t since) {
    bool far = false;
    for (uint32_t e = 0; e < from->n_edges && !far; e++)
        far = from->edges[e].node && from->edges[e].node->sequence > since &&
              from->edges[e].node->n_edges;
    if (!far)
        return let_go(from, storage);
    tni_pass *pass = tni_pass_begin();
    if (!pass)
        return TN_ERR_OUT_OF_MEMORY;
    uint32_t i = tni_pass_add(pass, from);
    tn_status status = i == TNI_NO_SLOT ? TN_ERR_OUT_OF_MEMORY : TN_OK;
    if (status == TN_OK)
        pass->queue[pass->n_queue++] = i;
    while (pass->n_queue > 0 && status == TN_OK) {
        tni_node *node = pass->slots[pass->queue[--pass->n_queue]].node;
        status = let_go(node, storage);
        for (uint32_t e = 0; e < node->n_edges && status == TN_OK; e++) {
            tni_node *next = node->edges[e].node;
            if (!next || next->sequence <= since || !next->n_edges ||
                tni_pass_find(pass, next) != TNI_NO_SLOT)
                continue;
            i = tni_pass_add(pass, next);
            if (i == TNI_NO_SLOT)
                status = TN_ERR_OUT_OF_MEMORY;
            else
                pass->queue[pass->n_queue++] = i;
        }
    }
    tni_pass_end(pass);
    return status;
}
