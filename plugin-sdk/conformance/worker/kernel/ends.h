/* Numbers at the ends of what a function is right for. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_ENDS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_ENDS_H

#include "plugin-sdk/conformance/worker/kernel/record.h"

/* Of a function of one number whose elements have all exponents (TC_DATA_EXPONENTS), filled and computed: where the
 * result overflows, becomes subnormal, zero or no number, those next to that on either side and some near it take the
 * place of others. Other calls stay as they are. False where there is no memory. */
bool tc_add_ends(tc_invocation *call);

#endif
