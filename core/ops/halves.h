/* Halves are computed in f32: a formula of several steps widens its inputs and narrows the result. The
 * decompositions of the table need not (tni_run_as does it for them), composites of their own do. */
#ifndef TNI_CORE_OPS_HALVES_H
#define TNI_CORE_OPS_HALVES_H

#include "core/call/temps.h"
#include "core/ops/operators.h"

/* t itself, or where it has another dtype, a cast of it that the list owns. */
tn_tensor *tni_as_dtype(tni_temps *temps, tn_tensor *t, tn_dtype dtype);
/* The same, from a half to f32. */
tn_tensor *tni_widened(tni_temps *temps, tn_tensor *t);
/* The same, owned. */
tn_tensor *tni_wide(tn_tensor *t);

/* The largest number of a floating dtype. */
double tni_largest_finite(tn_dtype dtype);

#endif
