/* Measured peak rates of a device, to which figures are compared.
 *
 * Each is measured when it is first asked for, and kept as long as the process lives.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_PERF_CEILINGS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_PERF_CEILINGS_H

#include "plugin-sdk/conformance/worker/subject/subject.h"

/* The figures of the call that showed a ceiling: bytes / ns of a copy, ns of the smallest kernel,
 * flop / ns of the best matrix product of a dtype (TN_DTYPE_NONE for the others). False with the
 * verdict filled where it could not be measured. */
bool tc_ceiling_measure(tc_subject *s, tc_ceiling ceiling, tn_dtype dtype, tc_figures *out,
                        tc_verdict *verdict);

/* Fills `bound` and `share`: which ceiling leaves the call the least room. */
void tc_ceiling_compare(tc_subject *s, tn_dtype dtype, tc_figures *figures);

#endif
