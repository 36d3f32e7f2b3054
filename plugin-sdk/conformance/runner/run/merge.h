/* The logs of one run's shards as one. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_MERGE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_MERGE_H

#include "plugin-sdk/conformance/runner/run/summary.h"

/* Adds a log to what was merged; `from` is finished. The first begins it: its head is taken, without
 * its shard. False with `why`: another plugin, suite or set, or a shard that was there before. */
bool tc_merge_add(tc_log *into, tc_log *from, char why[TC_VERDICT_MESSAGE]);

/* Judges what was merged as one run: marks what ran in the selection, which has the lines of the
 * sets and is settled here, and makes the end. False with `why`: a case ran twice, no memory. */
bool tc_merge_end(tc_log *merged, tc_selection *selection, const tc_levels *levels, tc_sets sets,
                  bool *out_good, char why[TC_VERDICT_MESSAGE]);

#endif
