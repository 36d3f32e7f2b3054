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

enum { TC_MOST_DEVICES = 64 };

typedef struct tc_worker_pool_options {
    const char *worker;      /* path of the program */
    const char *core_worker; /* NULL: there is none */
    const char *plugin;
    unsigned devices[TC_MOST_DEVICES]; /* worker i is on devices[i % n_devices] */
    unsigned n_devices;                /* at least 1; 0: all there are, to be found out */
    unsigned jobs;                     /* workers at once, at least 1 */
    double timeout;                    /* seconds a case may take, before its class's patience */
    unsigned reruns;                   /* fresh processes in which a failure is run again */
    unsigned give_up;                  /* equal crashes of a class in a row that end it; 0: never */
    const char *output;                /* file for what workers print in cases that fail; or NULL */
    int signals; /* a signalfd for SIGCHLD and what interrupts (any other signal) */
} tc_worker_pool_options;

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

/* Asks the worker what the plugin and a device of it are: one JSON object in `out`. False with `why`. */
bool tc_worker_pool_describe(const tc_worker_pool_options *options, unsigned device,
                             char out[TC_VERDICT_LINE + 2], char why[TC_VERDICT_MESSAGE]);

#endif
