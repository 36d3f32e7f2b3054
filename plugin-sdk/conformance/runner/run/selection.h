/* The lines of a set, and which of them are to run.
 *
 * Lines are kept in canonical form, each once, in the order in which they run.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_SELECTION_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_SELECTION_H

#include "plugin-sdk/conformance/sets.h"
#include "plugin-sdk/conformance/verdict.h"
#include "plugin-sdk/conformance/runner/run/pattern.h"

typedef struct tc_candidate {
    char *line;
    unsigned schedule;
    bool in_set;   /* the set has it; else it was only asked for */
    bool asked;    /* a level that is asked for speaks of it */
    bool selected; /* it is to run */
    bool ran;
    size_t order;
} tc_candidate;

typedef struct tc_selection {
    tc_candidate *at; /* by line once tc_selection_settle was called */
    size_t n, room;
} tc_selection;

void tc_selection_finish(tc_selection *selection);

/* Adds a line, which may be any form of it. False with `why`: no case, or no memory. */
bool tc_selection_add(tc_selection *selection, const char *line, bool in_set,
                      char why[TC_VERDICT_MESSAGE]);

/* Adds the lines of sets: the worker program's, NULL for the built-in ones, and the core worker's
 * where there is one. */
bool tc_selection_add_sets(tc_selection *selection, tc_sets sets, const char *worker,
                           const char *core_worker, char why[TC_VERDICT_MESSAGE]);

/* Adds the lines of a set that another worker program lists. */
bool tc_selection_add_program(tc_selection *selection, tc_set set, const char *program,
                              char why[TC_VERDICT_MESSAGE]);

/* Adds the lines of a file, blank ones and what stands behind # left out. */
bool tc_selection_add_file(tc_selection *selection, const char *path, char why[TC_VERDICT_MESSAGE]);

/* Sorts by line, so that tc_selection_find works, and drops what is there twice. */
void tc_selection_settle(tc_selection *selection);
tc_candidate *tc_selection_find(tc_selection *selection, const char *line);

/* Back into the order of running. */
void tc_selection_order(tc_selection *selection);

#endif
