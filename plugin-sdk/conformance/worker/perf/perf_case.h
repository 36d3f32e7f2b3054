/* The class of timed cases.
 *
 *     perf/OP …               a line of kernel/, timed and checked
 *     perf/ceiling-launch     what a call costs at least: the smallest kernel
 *     perf/ceiling-copy       bytes a second: memory->copy of a large buffer, read and written
 *     perf/ceiling-multiply T=f32     operations a second: the best of several matrix products
 *
 * No time fails a case; a wrong output does.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_PERF_PERF_CASE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_PERF_PERF_CASE_H

#include "plugin-sdk/conformance/worker/worker.h"

extern const tc_class tc_class_perf;

#endif
