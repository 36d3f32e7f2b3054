/* What a finished run comes to. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_SUMMARY_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_SUMMARY_H

#include "plugin-sdk/conformance/runner/run/levels.h"
#include "plugin-sdk/conformance/runner/run/expectations.h"
#include "plugin-sdk/conformance/runner/run/log.h"
#include "plugin-sdk/conformance/runner/run/selection.h"

/* Whether a status keeps a run from being good. */
bool tc_status_is_bad(tc_status status);

/* How many of each; `counts` has TC_N_STATUSES. */
void tc_summary_count(const tc_log *log, size_t *counts);

/* "12 passed, 1 failed, 2 unsupported": passed and failed always, the others where there are some.
 * Returns out. */
char *tc_summary_counts(const size_t *counts, size_t n_skipped, char *out, size_t room);

/* The end record; NULL: no memory. `*out_good`: nothing bad, nothing unused,
 * and the levels that were asked for passed. */
json_t *tc_summary_make(const tc_log *log, const tc_selection *selection,
                        const tc_expectations *expectations, const tc_levels *levels, tc_sets sets,
                        size_t n_skipped, bool interrupted, double seconds, bool *out_good);

#endif
