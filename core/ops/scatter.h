/* What the operators that read and write by index share. */
#ifndef TNI_CORE_OPS_SCATTER_H
#define TNI_CORE_OPS_SCATTER_H

#include "core/call/temps.h"

/* Places in a dimension of that size, negative ones counted from its end; what lies before the first
 * stays negative. Owned. */
tn_tensor *tni_wrap_places(tn_tensor *index, int64_t size);

#endif
