/* The stack of a worker that hangs: the runner sends a signal to each of its threads, and each
 * writes where it is to stderr. Libraries' names and offsets are for addr2line -Cfe FILE OFFSET;
 * functions that are exported have their names. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_STACK_H
#define TNI_PLUGIN_SDK_CONFORMANCE_STACK_H

#include <signal.h>

/* Out of the way of what plugins and profilers use. */
static inline int tc_stack_signal(void) {
    return SIGRTMAX - 3;
}

/* Once, in a worker, before the plugin is loaded: from then on the signal is answered. */
void tc_stack_prepare(void);

#endif
