/* Where a worker that gives no answer is. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_HANG_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_HANG_H

#include "plugin-sdk/conformance/runner/run/child.h"

enum { TC_HANG = 320 };

/* Asks each thread of the child for its stack, which goes behind what it has printed; what blocks
 * the signal is told by name and by what the kernel says it waits for. A few seconds at most. `out`
 * has the innermost calls of the first thread, "" where none answered. Returns out. */
char *tc_hang_look(tc_child *child, char out[TC_HANG]);

#endif
