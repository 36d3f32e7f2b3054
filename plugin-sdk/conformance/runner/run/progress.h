/* What a person sees of a run: on a terminal one line that is rewritten, elsewhere a
 * plain line now and then; failures as they come.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_PROGRESS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "plugin-sdk/conformance/runner/run/worker_pool.h"

typedef struct tc_progress {
    size_t n, done, bad;
    double work, worked; /* what all of them cost, and those that are done (schedule.h) */
    double start, shown;
    bool terminal, quiet;
} tc_progress;

void tc_progress_init(tc_progress *p, const tc_item *items, size_t n, bool quiet);
/* One is done; so many of them will not run. */
void tc_progress_done(tc_progress *p, const tc_item *item);
void tc_progress_drop(tc_progress *p, const tc_item *items, size_t n);
/* Seconds that are left at a time of tc_now's, if what is to come costs as its class does beside what
 * was done; negative: nobody knows. */
double tc_progress_left(const tc_progress *p, double now);
/* Shows where things are, at most some times a second. */
void tc_progress_tick(tc_progress *p);
/* Takes the line away, so that something else can be printed. */
void tc_progress_clear(tc_progress *p);

#endif
