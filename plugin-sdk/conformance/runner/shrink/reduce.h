/* Makes a failing line smaller as long as it fails the same way.
 *
 * Greedy: each kind of change is tried in turn, the first that still fails is kept, until none is.
 * Each kept change makes the line smaller, so it ends.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_SHRINK_REDUCE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_SHRINK_REDUCE_H

#include "plugin-sdk/conformance/worker/kernel/draft.h"
#include "plugin-sdk/conformance/runner/shrink/trial.h"

typedef struct tc_reducer {
    tc_trial *trial;
    tc_verdict wanted; /* how the line fails */
    tc_draft draft;
    char line[TC_MAX_LINE]; /* the smallest so far */
    tc_verdict verdict;     /* of that line */
    size_t n_tried, n_kept;
    double until;                                        /* tc_now() at which to stop */
    void (*step)(const char *line, const tc_verdict *v); /* each change that is kept; or NULL */
} tc_reducer;

/* Starts with a line that was found to fail as `wanted` says. False with `why`. */
bool tc_reduce_init(tc_reducer *r, tc_trial *trial, const char *line, const tc_verdict *wanted,
                    char why[TC_MESSAGE]);
void tc_reduce(tc_reducer *r);

#endif
