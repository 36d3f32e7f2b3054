/* What the operators that read and write by index share. */
#ifndef TNI_CORE_OPS_SCATTER_H
#define TNI_CORE_OPS_SCATTER_H

#include "core/call/temps.h"

/* Whole numbers as i64: index itself, or a cast of i32, u16, u32 or u64 that the list owns; NULL with an
 * error for others, which calls the argument `name`. */
tn_tensor *tni_whole_index(tni_temps *temps, tn_tensor *index, const char *call, const char *name);
/* Places in a dimension of that size, negative ones counted from its end; what lies before the
 * first stays negative. Owned. */
tn_tensor *tni_wrap_places(tn_tensor *index, int64_t size);

#endif
