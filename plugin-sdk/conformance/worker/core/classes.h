/* The classes of cases that run through libtenon (decision 0008). */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CORE_CLASSES_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CORE_CLASSES_H

#include "plugin-sdk/conformance/worker/worker.h"

extern const tc_class tc_operator_class, tc_gradient_class, tc_train_class;

#endif
