/* What a failure is about, so that equal ones are known. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_KIND_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_KIND_H

#include "plugin-sdk/conformance/case.h"
#include "plugin-sdk/conformance/verdict.h"

/* Status, requirement and the first words of the message, without numbers, what stands in
 * parentheses, and the name of the line's subject. Of a crash how the worker ended, with its
 * number; of a time-out that alone. Returns out. */
char *tc_kind(const char *line, tc_status status, uint32_t requirement, const char *message,
              char out[TC_MESSAGE]);

#endif
