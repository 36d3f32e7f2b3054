/* The handler of InplaceOrView, which stands on the path of views and of operators that write:
 * tells autograd what is a view of what, and counts the versions of what is written. */
#include "core/autograd/engine.h"
#include "core/call/op_info.h"

static void track_views(const tni_op_info *info, const tn_cell *args, const tn_cell *rets) {
    const tn_tensor *self = args[0].v.pointer;
    tni_view_kind kind = !tni_grad_mode()   ? TNI_VIEW_NO_GRAD
                         : info->multi_view ? TNI_VIEW_MULTI
                                            : TNI_VIEW_SINGLE;
    if (TNI_LIKELY(rets[0].tag == TN_CELL_TENSOR)) {
        if (TNI_LIKELY(rets[0].v.pointer != self))
            tni_set_view(rets[0].v.pointer, self, kind);
        return;
    }
    tn_tensor *const *list = rets[0].v.pointer;
    for (uint32_t i = 0; i < rets[0].n; i++)
        tni_set_view(list[i], self, kind);
}

static void bump(const tn_cell *cell) {
    if (cell->tag == TN_CELL_TENSOR) {
        tni_bump_version(cell->v.pointer);
    } else if (cell->tag == TN_CELL_TENSORS) {
        tn_tensor *const *list = cell->v.pointer;
        for (uint32_t i = 0; i < cell->n; i++)
            if (list[i])
                tni_bump_version(list[i]);
    }
}

tn_status tni_inplace_or_view_handler(const tn_op *op, tn_keyset keys, const tn_cell *args,
                                      tn_cell *rets, void *user) {
    const tni_op_info *info = tni_info(op);
    tn_status status = tni_dispatch(op, tn_keyset_below(keys, TN_KEY_INPLACE_OR_VIEW), args, rets);
    if (TNI_UNLIKELY(status != TN_OK))
        return status;
    if (TNI_LIKELY(info && info->kind == TNI_OP_VIEW)) {
        if (!info->not_differentiable)
            track_views(info, args, rets);
    } else if (info) {
        for (uint32_t mask = info->written; mask; mask &= mask - 1)
            bump(&args[__builtin_ctz(mask)]);
    } else {
        for (uint32_t i = 0; i < op->schema->n_args; i++)
            if (op->schema->args[i].is_written)
                bump(&args[i]);
    }
    return TN_OK;
}
