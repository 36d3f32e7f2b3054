/* The classes of cases that tenon-conform itself runs, as a worker. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_SUITE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_SUITE_H

#include "plugin-sdk/conformance/worker/worker.h"

extern const tc_suite tc_builtin_suite;

#endif
