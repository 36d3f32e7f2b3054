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
} tni_params;

/* `call` names the function in messages. On failure nothing is held. */
tn_status tni_params_init(tni_params *p, const char *call, tn_tensor *const *tensors, uint64_t n);
void tni_params_finish(tni_params *p);

/* Drops every gradient. */
void tni_params_zero_grad(tni_params *p);

/* The number must be at least 0 (and finite). */
tn_status tni_option_at_least_zero(const char *call, const char *name, double value);

/* A tensor of saved state must look like its parameter. */
tn_status tni_check_state(const char *call, const char *name, const tn_tensor *param,
                          const tn_tensor *state);

#endif
