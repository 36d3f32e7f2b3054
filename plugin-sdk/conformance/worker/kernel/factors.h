/* Numbers for what adds products up: those that leave the normal numbers, and those whose sums lie halfway between
 * two numbers of the dtype. All of it is exact. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_FACTORS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_FACTORS_H

#include "plugin-sdk/conformance/worker/kernel/record.h"

static inline bool tc_is_faint(tc_data data) {
    return data >= TC_DATA_FAINT && data <= TC_DATA_FAINT_LEFT;
}

/* Element i of argument a, of data that is faint; x is what it is in data=exact, sums have so many terms. Those before
 * it are there already. */
tc_number tc_faint(const tc_invocation *call, uint32_t a, int64_t i, int64_t terms, tc_number x,
                   tc_random *r);

/* The same for sums that are ties, of positive whole numbers; of what is added to them x remains. */
tc_number tc_tie(const tc_invocation *call, uint32_t a, int64_t terms, tc_number x, tc_random *r);

#endif
