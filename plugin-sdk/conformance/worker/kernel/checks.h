/* Filling a call for a subject, and checks that apply to every kernel call, whatever it computes. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_CHECKS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_CHECKS_H

#include "plugin-sdk/conformance/worker/kernel/execute.h"

/* Fills a call for the subject: tc_invocation_fill, without numbers that it may take for others. */
bool tc_fill_for(const tc_subject *s, tc_invocation *call, uint64_t surroundings,
                 char why[TC_MESSAGE]);

/* Is it of nothing but subnormal numbers, which the subject may take for zero? */
bool tc_is_flushed_away(const tc_subject *s, const tc_invocation *call);

/* The call succeeded; otherwise fails `out`. */
bool tc_check_success(const tc_invocation *call, const tc_result *result, tc_verdict *out);

/* `run` declined: it has queued and written nothing, outputs included. */
bool tc_check_declined(const tc_invocation *call, const tc_result *result, tc_verdict *out);

/* Inputs, holes, guards and the workspace's guards are as they were. */
void tc_check_untouched(const tc_invocation *call, const tc_result *result, tc_verdict *out);

/* The outputs are what they must be, and would not have passed if they were not. */
void tc_check_outputs(const tc_invocation *call, const tc_result *result, const tc_subject *s,
                      tc_verdict *out);

/* What the plugin did to the host table meanwhile. */
void tc_check_host(tc_verdict *out);

#endif
