/* The lines of a set, and which of them are to run.
 *
 * Lines are kept in canonical form, each once, in the order in which they run.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_PLAN_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_PLAN_H

#include "plugin-sdk/conformance/sets.h"
#include "plugin-sdk/conformance/verdict.h"
#include "plugin-sdk/conformance/runner/run/pattern.h"

typedef struct tc_planned {
    char *line;
    unsigned route;
    bool in_set;   /* the set has it; else it was only asked for */
    bool asked;    /* a level that is asked for speaks of it */
    bool selected; /* it is to run */
    bool ran;
    size_t order;
} tc_planned;

typedef struct tc_plan {
    tc_planned *at; /* by line once tc_plan_settle was called */
    size_t n, room;
} tc_plan;

void tc_plan_finish(tc_plan *plan);

/* Adds a line, which may be any form of it. False with `why`: no case, or no memory. */
bool tc_plan_add(tc_plan *plan, const char *line, bool in_set, char why[TC_VERDICT_MESSAGE]);

/* Adds the lines of sets: the worker program's, NULL for the built-in ones, and the core worker's
 * where there is one. */
bool tc_plan_add_sets(tc_plan *plan, tc_sets sets, const char *worker, const char *core_worker,
                      char why[TC_VERDICT_MESSAGE]);

/* Adds the lines of a file, blank ones and what stands behind # left out. */
bool tc_plan_add_file(tc_plan *plan, const char *path, char why[TC_VERDICT_MESSAGE]);

/* Sorts by line, so that tc_plan_find works, and drops what is there twice. */
void tc_plan_settle(tc_plan *plan);
tc_planned *tc_plan_find(tc_plan *plan, const char *line);

/* Back into the order of running. */
void tc_plan_order(tc_plan *plan);

#endif
