/* The main loop of a worker, and the suite of cases that it runs.
 *
 *     PROGRAM list --set smoke|standard|exhaustive|perf
 *         the lines of a set, one a line, to stdout
 *     PROGRAM describe --plugin PATH [--device N]
 *         one JSON object and a newline to descriptor 3
 *     PROGRAM work --plugin PATH [--device N]
 *         cases from stdin, verdicts to descriptor 3
 *
 * `work` reads a line, runs the case, writes the verdict and a newline, until stdin ends. Before
 * the first case it moves stdin and descriptor 3 out of the plugin's reach (close-on-exec, high
 * numbers; stdin becomes /dev/null), and asks to be killed when the runner dies. stdout and stderr
 * stay the runner's business.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_WORKER_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_WORKER_H

#include <stdio.h>

#include "plugin-sdk/conformance/case.h"
#include "plugin-sdk/conformance/sets.h"
#include "plugin-sdk/conformance/verdict.h"

/* What `work` was started with. */
typedef struct tc_options {
    const char *plugin; /* real path of the shared object */
    uint32_t device;    /* index among the plugin's devices */
} tc_options;

/* Takes the lines of a set as they are made. */
typedef struct tc_sink {
    void (*line)(struct tc_sink *sink, const char *line);
} tc_sink;

/* A class of cases (decision 0008). */
typedef struct tc_class {
    const char *name;
    /* The lines that a set has beyond the smaller ones; may repeat theirs. May be NULL. */
    void (*list)(tc_set set, tc_sink *sink);
    /* Runs one case. `out` comes as a PASS without message; the time is taken by the loop. */
    void (*run)(const tc_case *c, const tc_options *options, tc_verdict *out);
    bool timed; /* its cases are the set perf, and in no other */
} tc_class;

typedef struct tc_suite {
    const tc_class *const *classes;
    uint32_t n_classes;
    void (*finish)(void); /* when stdin ends: close what cases left open; may be NULL */
    /* Opens the plugin and writes what it says of itself as one JSON object on one line, with what
     * is known of: "id", "version", "type", "name" (the plugin's), "device" (the device's name),
     * "driver", "firmware" (their versions), "n_devices", "records" (kernels offered). Where it
     * cannot be opened, {"error": "..."}. May be NULL. */
    void (*describe)(const tc_options *options, FILE *out);
    /* Runs a case of one of the classes; NULL: by the class's `run` alone. */
    void (*run)(const tc_class *class, const tc_case *c, const tc_options *options,
                tc_verdict *out);
} tc_suite;

/* The lines of a set, those of smaller ones included, class by class; a line may come twice. */
void tc_suite_list(const tc_suite *suite, tc_set set, tc_sink *sink);

/* The verbs above, for main: returns its exit status (0; 1 where a descriptor fails; 2 for a usage
 * error). `argv[0]` is the verb. */
int tc_worker_main(int argc, char **argv, const tc_suite *suite);

/* Parses and runs one line, as `work` does: the case's class is looked up and its verdict filled,
 * an ERROR where the line is no case or no class has that name. */
void tc_run_line(const tc_suite *suite, const char *line, const tc_options *options,
                 tc_verdict *out);

#endif
