/* History of views: what history.c, view.c and the handlers share. */
#ifndef TNI_CORE_AUTOGRAD_VIEW_H
#define TNI_CORE_AUTOGRAD_VIEW_H

#include "core/autograd/engine.h"

/* Makes t (with state) output `index` of `node`, whose reference is taken over; moves a retained
 * gradient's hook along. */
void tni_history_point(tn_tensor *t, tni_node *node, uint32_t index);

/* Gives t, an output of `fn` that it saved, its history back: `fn` itself, or, while `fn` runs on
 * this thread for a write to a view, the view's part of the tensor that was written to. */
tn_status tni_set_saved_history(tn_tensor *t, tni_node *fn, uint32_t index);

/* Before `from` becomes the history of a tensor over `storage`: makes nodes that it leads to, and
 * that saved this memory, hold it without history. Nodes up to `since` are too old to have. */
tn_status tni_break_cycles(tni_node *from, const tn_storage *storage, uint64_t since);

#endif
