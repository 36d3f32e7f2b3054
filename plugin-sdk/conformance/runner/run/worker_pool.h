/* Runs cases in workers, several at once, and finds out what a failure depends on.
 *
 * A worker runs case after case. One that dies, hangs or answers nonsense costs the case it had;
 * what failed is run again in fresh processes. What passes there is run once more after the cases
 * that went before it, ever more of them: where that fails, it is the combination that fails, else
 * the case is flaky.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_WORKER_POOL_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_WORKER_POOL_H

#include "plugin-sdk/conformance/runner/run/worker_program.h"

typedef struct tc_item {
    const char *line;  /* canonical */
    unsigned schedule; /* items come in this order */
} tc_item;

typedef struct tc_worker_pool_events {
    void *context;
    /* An item's final verdict, found on the device. False stops the run. */
    bool (*done)(void *context, size_t item, unsigned device, const tc_verdict *v);
    /* Items that will not run, since their class is given up: `why` says for what. False stops the
     * run. */
    bool (*given_up)(void *context, size_t first, size_t n, const char *why);
    /* A worker misbehaved where no case can be blamed: it died between cases, or at its end. */
    bool (*note)(void *context, const char *text);
    /* Called now and then; NULL: not at all. */
    void (*tick)(void *context);
} tc_worker_pool_events;

typedef enum tc_worker_pool_end {
    TC_WORKER_POOL_DONE,
    TC_WORKER_POOL_STOPPED,
    TC_WORKER_POOL_INTERRUPTED
} tc_worker_pool_end;

/* No worker is left when it returns. */
tc_worker_pool_end tc_worker_pool_run(const tc_item *items, size_t n,
                                      const tc_worker_pool_options *options,
                                      const tc_worker_pool_events *events);

#endif
