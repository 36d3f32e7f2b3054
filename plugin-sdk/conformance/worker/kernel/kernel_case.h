/* The classes of cases that call one kernel: kernel/, same/ and refuse/. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_KERNEL_CASE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_KERNEL_CASE_H

#include "plugin-sdk/conformance/worker/worker.h"

extern const tc_class tc_class_kernel, tc_class_same, tc_class_refuse;

#endif
