/* Shorthand for the boxed functions that the table names. */
#ifndef TNI_CORE_OPS_BOXED_H
#define TNI_CORE_OPS_BOXED_H

#include "core/ops/temps.h"

/* BOXED(run_x) { ... }: a function of the table, with its prototype. */
#define BOXED(name) \
    tn_status name(const tn_cell *args, tn_cell *rets); \
    tn_status name(const tn_cell *args, tn_cell *rets)
#define INFER(name) \
    tn_status name(struct tni_build *b); \
    tn_status name(struct tni_build *b)
#define RETURN(expression) return tni_temps_return(&temps, (expression), rets)

#endif
