/* Which record of the plugin serves a call: the core's choice, not the suite's own. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_CHOOSE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_CHOOSE_H

#include "plugin-sdk/conformance/worker/kernel/record.h"
#include "plugin-sdk/conformance/worker/subject/subject.h"

/* Why a plugin need not run a call. */
typedef enum tc_claim { TC_CLAIMED, TC_NO_DTYPE, TC_NO_FLAG, TC_NO_SHAPE } tc_claim;

/* The record that takes the call as it is: in the order of the table the first whose dtypes and
 * flags fit and whose `supports` does not decline, which is asked without memory. `after` is the
 * one to go on behind, of which `prepare` or `run` has declined; NULL: from the beginning. With
 * TC_NO_FLAG `out` is one that lacks flags. */
tc_claim tc_find_kernel(const tc_subject *s, const tc_invocation *call, const tn_kernel *after,
                        const tn_kernel **out);

/* The first record behind `after` whose dtypes and flags fit, whatever `supports` says. */
const tn_kernel *tc_next_fitting(const tc_subject *s, const tc_invocation *call,
                                 const tn_kernel *after);

/* The first that takes it; NULL with `out` UNSUPPORTED and what is not claimed. */
const tn_kernel *tc_claimed_kernel(const tc_subject *s, const tc_invocation *call, tc_verdict *out);

/* The flags that a kernel must have to be handed this call as it is. */
uint64_t tc_needed_flags(const tc_invocation *call);

/* An argument that is no tensor, or arrives as none, as kernels get it. */
tn_cell tc_value_cell(const tc_invocation *call, uint32_t a);

/* A tensor as kernels see it; `memory` may be 0. */
tn_tensor_view tc_operand_view(const tc_operand *o, tn_memory memory);

#endif
