/* The thread that cases of kernels run on: its stack is what a kernel has to get by with. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_CALLER_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_CALLER_H

#include "plugin-sdk/conformance/worker/worker.h"

typedef void tc_run(const tc_case *c, const tc_options *options, tc_verdict *out);

/* Runs a case on that thread, and fails it where more than 1 MiB of the stack was used. One thread
 * serves all cases, since a plugin may keep what is dear for each thread that calls it; where there
 * can be none the case runs here. */
void tc_run_on_small_stack(tc_run *run, const tc_case *c, const tc_options *options,
                           tc_verdict *out);

/* A kernel is called from the frame of the function that calls this. */
void tc_caller_calls(void);

/* Ends the thread, if there is one. */
void tc_caller_end(void);

#endif
