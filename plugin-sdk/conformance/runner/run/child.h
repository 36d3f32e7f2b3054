/* One process of a worker program, and what comes out of it.
 *
 * It has a process group of its own, so that what it starts ends with it; of its stdout and stderr
 * head and end are kept, which are shown with a failure.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_CHILD_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "plugin-sdk/conformance/case.h"
#include "plugin-sdk/conformance/verdict.h"
#include "plugin-sdk/conformance/runner/run/output.h"

typedef struct tc_child {
    pid_t pid; /* 0: not running */
    int in, verdicts, output;
    char line[TC_VERDICT_LINE + 2]; /* what came on the descriptor for verdicts */
    size_t n_line;
    tc_output printed; /* on stdout and stderr */
} tc_child;

typedef enum tc_read {
    TC_READ_NOTHING, /* come back later */
    TC_READ_LINE,    /* `line` is one, without its newline */
    TC_READ_GARBAGE, /* more than a line, or longer than any line: `line` has its start */
    TC_READ_END,     /* the other end was closed */
} tc_read;

/* Once, before the first: children must find 0 to 3 taken by us and leave no core files, and one
 * that ends must not end this process. */
void tc_prepare_for_children(void);

typedef struct tc_child_kind {
    bool counts_heap; /* looks at how much malloc has given out */
    bool has_company; /* shares the processors with other workers */
} tc_child_kind;

/* Starts argv[0] (a path). False with `why` filled where that cannot be done. */
bool tc_child_start(tc_child *child, char *const argv[], tc_child_kind kind, char why[TC_MESSAGE]);

/* Sends a line. False where nobody reads it any more. */
bool tc_child_send(tc_child *child, const char *line);

/* Ends the child's stdin: a worker comes to its end. */
void tc_child_close_in(tc_child *child);

tc_read tc_child_read(tc_child *child);

/* Takes what has been printed. */
void tc_child_drain(tc_child *child);

/* Whether it has ended of itself by now, with what waitpid says. */
bool tc_child_ended(tc_child *child, int *out_status);

/* Kills it and what it started, if they live, and closes everything. */
void tc_child_stop(tc_child *child);

/* Words for what waitpid says. Returns out. */
char *tc_child_words(int status, char out[TC_MESSAGE]);

#endif
