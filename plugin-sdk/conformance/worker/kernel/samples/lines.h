/* Shape rule and samples of operators that work along one dimension, keeping the shape: scan, sort
 * and softmax. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_SAMPLES_LINES_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_SAMPLES_LINES_H

#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

/* Members of tc_family. */
bool tc_lines_shapes(tc_invocation *call, char why[TC_MESSAGE]);
int64_t tc_lines_terms(const tc_invocation *call);
void tc_lines_list(const tc_sampler *m);
void tc_lines_list_timed(const tc_sampler *m);

#endif
