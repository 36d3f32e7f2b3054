/* One line at a time in a worker, and whether two failures are the same one. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_SHRINK_TRIAL_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_SHRINK_TRIAL_H

#include "plugin-sdk/conformance/runner/run/child.h"
#include "plugin-sdk/conformance/runner/run/worker_pool.h"
#include "plugin-sdk/conformance/verdict.h"

typedef struct tc_trial {
    const tc_worker_pool_options *options;
    unsigned device;
    tc_child child;
    tc_program program;
    size_t n; /* cases that the child has run */
} tc_trial;

void tc_trial_init(tc_trial *t, const tc_worker_pool_options *options, unsigned device);
void tc_trial_finish(tc_trial *t);

/* Runs a line; a worker that died or hung is a verdict too. The worker is kept for the next line
 * unless the line fails. */
void tc_trial_run(tc_trial *t, const char *line, tc_verdict *out);
/* The same in a fresh process. */
void tc_trial_run_alone(tc_trial *t, const char *line, tc_verdict *out);

/* FAIL, CRASH or TIMEOUT. */
bool tc_trial_failed(const tc_verdict *v);

/* Whether two verdicts on a line, or on what it was made from, are the same failure (run/kind.h). */
bool tc_trial_same(const char *line, const tc_verdict *a, const tc_verdict *b);

#endif
