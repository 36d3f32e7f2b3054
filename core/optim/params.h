/* The list of parameters of an optimizer, and the checks that all optimizers share.
 */
#ifndef TNI_CORE_OPTIM_PARAMS_H
#define TNI_CORE_OPTIM_PARAMS_H

#include "base/error.h"
#include "core/ops/operators.h"

#include <tenon/optim.h>

typedef struct tni_params {
    tn_tensor **items; /* owned references */
    uint64_t n;
    void *states; /* n of the optimizer's own, zero at first */
    size_t state_bytes;
} tni_params;

/* `call` names the function in messages. What it made before it failed is finished as the rest. */
tn_status tni_params_init(tni_params *p, const char *call, tn_tensor *const *tensors, uint64_t n,
                          size_t state_bytes);
void tni_params_finish(tni_params *p);

/* Calls `step` for every parameter that has a gradient, without recording, until one fails. */
typedef tn_status (*tni_step_fn)(const void *options, tn_tensor *param, tn_tensor *grad,
                                 void *state);
tn_status tni_params_step(const tni_params *p, tni_step_fn step, const void *options);
/* Drops every gradient. */
void tni_params_zero_grad(tni_params *p);

/* The number must be at least 0 (and finite). */
tn_status tni_option_at_least_zero(const char *call, const char *name, double value);

/* A tensor of saved state must look like its parameter. */
tn_status tni_check_state(const char *call, const char *name, const tn_tensor *param,
                          const tn_tensor *state);

#endif
