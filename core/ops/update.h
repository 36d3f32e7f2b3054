/* Arithmetic that steps of optimizers share: in f32 where the tensors are halves, without recording,
 * with numbers that are known now or stand in memory when a captured step runs. */
#ifndef TNI_CORE_OPS_UPDATE_H
#define TNI_CORE_OPS_UPDATE_H

#include "core/call/temps.h"
#include "core/ops/operators.h"

enum { TNI_UPDATE_TENSORS = 5 };

/* A number of the step's: known now, or found in a 0-dim tensor when the work runs. */
typedef struct tni_factor {
    double now;
    tn_tensor *later;
} tni_factor;

/* Element i of a tensor of them. */
tni_factor tni_factor_later(tni_temps *temps, tn_tensor *factors, int64_t i);
/* t *= f */
tn_tensor *tni_scale(tni_temps *temps, tn_tensor *t, tni_factor f);
/* t * f */
tn_tensor *tni_times(tni_temps *temps, tn_tensor *t, tni_factor f);
/* t -= x * f */
tn_tensor *tni_subtract_scaled(tni_temps *temps, tn_tensor *t, tn_tensor *x, tni_factor f);
/* average = beta * average + (1 - beta) * x, in place */
tn_tensor *tni_average(tni_temps *temps, tn_tensor *average, tn_tensor *x, double beta);
/* average = beta * average + (1 - beta) * x * x, in place */
tn_tensor *tni_average_square(tni_temps *temps, tn_tensor *average, tn_tensor *x, double beta);

/* The tensors of one step: t[0] the parameter, t[1] its gradient, which is only read, then the
 * state. In the place of halves, where eps would be 0 and averages would lose what is added to them,
 * t has copies in f32. */
typedef struct tni_update {
    tni_temps *temps;
    uint32_t n;
    tn_tensor *given[TNI_UPDATE_TENSORS], *t[TNI_UPDATE_TENSORS];
    tn_thread_keys before;
} tni_update;

/* Nothing is recorded until tni_update_end: what is written are leaves. */
void tni_update_begin(tni_update *u, tni_temps *temps, tn_tensor *const *given, uint32_t n);
/* maximize ? -t[1] : t[1], plus penalty * t[0]; t[1] itself where there is nothing to do. */
tn_tensor *tni_update_grad(const tni_update *u, bool maximize, double penalty);
/* Stores what was computed in copies and drops all temporaries. `last` NULL: something failed. */
tn_status tni_update_end(tni_update *u, const tn_tensor *last);

#endif
