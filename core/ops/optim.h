/* What optimizer steps compute on the host before the device is asked. */
#ifndef TNI_CORE_OPS_OPTIM_H
#define TNI_CORE_OPS_OPTIM_H

#include <stdint.h>

/* The factors of fused_adamw_from_; step counts from 1. */
void tni_adamw_factors(double lr, double beta1, double beta2, double weight_decay, int64_t step,
                       double out[3]);

#endif
