/* What a finished run comes to. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_JUDGE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_JUDGE_H

#include "plugin-sdk/conformance/runner/run/levels.h"
#include "plugin-sdk/conformance/runner/run/lists.h"
#include "plugin-sdk/conformance/runner/run/log.h"
#include "plugin-sdk/conformance/runner/run/plan.h"

/* Whether a status keeps a run from being good. */
bool tc_status_is_bad(tc_status status);

/* How many of each; `counts` has TC_N_STATUSES. */
void tc_count(const tc_log *log, size_t *counts);

/* "12 passed, 1 failed, 2 unsupported": passed and failed always, the others where there are some.
 * Returns out. */
char *tc_counts_words(const size_t *counts, size_t n_skipped, char *out, size_t room);

/* The end record, as JSON; free() it. NULL: no memory. `*out_good`: nothing bad, nothing unused,
 * and the levels that were asked for passed. */
char *tc_judge(const tc_log *log, const tc_plan *plan, const tc_lists *lists,
               const tc_levels *levels, tc_sets sets, size_t n_skipped, bool interrupted,
               double seconds, bool *out_good);

#endif
