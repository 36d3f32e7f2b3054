/* Times and checks one kernel call; counts the bytes and operations it needs. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_PERF_CALL_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_PERF_CALL_H

#include "plugin-sdk/conformance/worker/subject/subject.h"

/* Times the call that a line describes: OP and parameters, as in kernel/. False where it was not
 * timed; `verdict` says why: the plugin does not claim it, the output is wrong. Otherwise all of
 * `out` is filled but its ceiling. */
bool tc_time_call(tc_subject *s, const tc_case *c, tc_figures *out, tc_verdict *verdict);

/* The same for a line as text. */
bool tc_time_line(tc_subject *s, const char *line, tc_figures *out, tc_verdict *verdict);

#endif
