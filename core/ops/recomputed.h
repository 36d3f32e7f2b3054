/* Gradients that are made of a result that has no history, such as a mean or a logarithm of a sum. */
#ifndef TNI_CORE_OPS_RECOMPUTED_H
#define TNI_CORE_OPS_RECOMPUTED_H

#include "core/call/temps.h"

/* constant + (again - again): its value, to the last bit, with the history of what was computed
 * again. The list owns it. */
tn_tensor *tni_with_history(tni_temps *temps, tn_tensor *constant, tn_tensor *again);

#endif
