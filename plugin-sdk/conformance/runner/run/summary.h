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
typedef struct tc_summary {
    tc_log *log;
    tc_selection *selection; /* `asked` of its candidates is changed */
    const tc_expectations *expectations;
    const tc_levels *levels;
    tc_sets sets;
    bool whole; /* all of the sets ran: each level is judged, else those that were asked for */
    bool shard; /* no level can be judged */
    bool interrupted;
    size_t n_skipped;
    double seconds;
} tc_summary;

json_t *tc_summary_make(const tc_summary *summary, bool *out_good);

#endif
