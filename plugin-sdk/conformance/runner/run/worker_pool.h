/* Runs cases in workers, several at once, and finds out what a failure depends on.
 *
 * A worker runs case after case. One that dies, hangs or answers nonsense costs the case it had;
 * what failed is run again in fresh processes. What passes there is run once more after the cases
 * that went before it, ever more of them: where that fails, it is the combination that fails, else
 * the case is flaky.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_WORKER_POOL_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_WORKER_POOL_H

#include "plugin-sdk/conformance/verdict.h"

typedef struct tc_worker_pool_options {
    const char *worker;      /* path of the program */
    const char *core_worker; /* NULL: there is none */
    const char *plugin;
    unsigned device;
    unsigned jobs;   /* workers at once, at least 1 */
    double timeout;  /* seconds a case may take, before its class's patience */
    unsigned reruns; /* fresh processes in which a failure is run again */
    int signals;     /* a signalfd for SIGCHLD and what interrupts (any other signal) */
} tc_worker_pool_options;

typedef struct tc_item {
    const char *line;  /* canonical */
    unsigned schedule; /* items come in this order */
} tc_item;

typedef struct tc_worker_pool_events {
    void *context;
    /* An item's final verdict. False stops the run. */
    bool (*done)(void *context, size_t item, const tc_verdict *v);
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

/* Asks the worker what the plugin is: one JSON object in `out`. False with `why`. */
bool tc_worker_pool_describe(const tc_worker_pool_options *options, char out[TC_VERDICT_LINE + 2],
                             char why[TC_VERDICT_MESSAGE]);

#endif
