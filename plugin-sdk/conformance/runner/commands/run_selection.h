/* Which cases a run is asked for. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_COMMANDS_RUN_SELECTION_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_COMMANDS_RUN_SELECTION_H

#include "plugin-sdk/conformance/runner/commands/run_options.h"
#include "plugin-sdk/conformance/runner/run/levels.h"
#include "plugin-sdk/conformance/runner/run/selection.h"

/* Reads the levels and marks those asked for, settles the sets, and selects lines by levels, cases,
 * filters and shard. `lister`: the worker whose cases are listed, or NULL. False where that cannot be
 * done; it was said on stderr. */
bool tc_run_select(tc_run_options *options, const char *lister, tc_levels *levels,
                   tc_selection *selection);

/* Says on stderr, as `tenon-conform run` does. False. */
bool tc_run_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
