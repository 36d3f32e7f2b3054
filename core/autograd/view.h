/* History of views: what history.c, view.c and the handlers share. */
#ifndef TNI_CORE_AUTOGRAD_VIEW_H
#define TNI_CORE_AUTOGRAD_VIEW_H

#include "core/autograd/engine.h"

/* Makes t (with state) output `index` of `node`, whose reference is taken over; moves a retained
 * gradient's hook along. */
void tni_history_point(tn_tensor *t, tni_node *node, uint32_t index);

/* A node that takes the gradient of `view` to `base`'s gradient, with its edge set. */
tni_node *tni_as_strided_node(tn_tensor *base, tn_tensor *view);

/* A node that runs `fn`, the node of an in-place write to `view`, on the view's part of the base's
 * gradient. The edges are set as before the write. */
tni_node *tni_copy_slices_node(tn_tensor *base, tn_tensor *view, tni_node *fn);

/* Before `from` becomes the history of a tensor over `storage`: makes nodes that it leads to, and
 * that saved this memory, hold it without history. Nodes up to `since` are too old to have. */
tn_status tni_break_cycles(tni_node *from, const tn_storage *storage, uint64_t since);

#endif
