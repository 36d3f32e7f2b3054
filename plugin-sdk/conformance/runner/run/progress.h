/* What a person sees of a run: on a terminal one line that is rewritten, elsewhere a
 * plain line now and then; failures as they come.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_PROGRESS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tc_progress {
    size_t n, done, bad;
    double start, shown;
    bool terminal, quiet;
} tc_progress;

void tc_progress_init(tc_progress *p, size_t n, bool quiet);
/* Shows where things are, at most some times a second. */
void tc_progress_tick(tc_progress *p);
/* Takes the line away, so that something else can be printed. */
void tc_progress_clear(tc_progress *p);

#endif
