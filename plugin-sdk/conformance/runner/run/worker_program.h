/* The programs that run cases, and what all of them are started with. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_WORKER_PROGRAM_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_WORKER_PROGRAM_H

#include "plugin-sdk/conformance/runner/run/child.h"
#include "plugin-sdk/conformance/runner/run/schedule.h"

enum { TC_MOST_DEVICES = 64 };

typedef struct tc_worker_pool_options {
    const char *worker;       /* path of the program */
    const char *core_worker;  /* NULL: there is none */
    const char *torch_worker; /* likewise */
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

/* Starts the program that runs cases of a schedule on a device; `command` is "work" or "describe".
 * False with `why`. */
bool tc_worker_start(const tc_worker_pool_options *options, tc_child *child,
                     const tc_schedule *schedule, const char *command, unsigned device,
                     char why[TC_MESSAGE]);

/* Asks what the plugin and a device of it are: one JSON object in `out`. False with `why`. */
bool tc_worker_describe(const tc_worker_pool_options *options, unsigned device,
                        char out[TC_VERDICT_LINE + 2], char why[TC_VERDICT_MESSAGE]);

#endif
