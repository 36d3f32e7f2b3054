/* The classes of cases that tenon-conform itself runs, as a worker. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_SUITE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_SUITE_H

#include "plugin-sdk/conformance/worker/worker.h"

extern const tc_class tc_class_kernel, tc_class_same, tc_class_refuse; /* one kernel */
extern const tc_class tc_class_contract, tc_class_process; /* what plugin.h says beyond */
extern const tc_class tc_class_perf;

extern const tc_suite tc_builtin_suite;

#endif
