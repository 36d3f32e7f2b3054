/* The process looked at round every call into the plugin: a call that leaves something changed is
 * blamed by its name (TNP-94), and what it changed is put back, so that no later one is.
 *
 * Round each call only that is looked at which takes no call of the system, floating-point modes and
 * the locale; all the rest once a case (guard.h), and round each call of one that is run again for it.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_SUBJECT_WATCH_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_SUBJECT_WATCH_H

#include "plugin-sdk/process/state.h"

#include <stdbool.h>
#include <tenon/plugin.h>

typedef struct tc_watch {
    tni_process_state before;
} tc_watch;

void tc_watch_begin(tc_watch *w);
void tc_watch_end(const tc_watch *w, const char *call);

/* Has the plugin been called since it was asked last? */
bool tc_watch_called(void);

/* From now on each call is watched for everything, or for what is cheap again. */
void tc_watch_all(bool all);

/* The plugin's table of devices with each of its functions watched; one plugin at a time. */
const tn_device_ops *tc_watch_devices(const tn_device_ops *ops);

/* Functions of a record. */
tn_status tc_watch_supports(const tn_kernel *kernel, const tn_call *call);
tn_status tc_watch_prepare(const tn_kernel *kernel, const tn_call *call, tn_plan *plan);
tn_status tc_watch_run(const tn_kernel *kernel, const tn_call *call);
void tc_watch_abandon(const tn_kernel *kernel, const tn_call *call);

#endif
