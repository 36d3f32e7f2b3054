/* What each level asks for, read from levels/NAME.txt.
 *
 *     version 1
 *     title Core
 *     set standard                      the least set of cases that shows it, or perf
 *     includes memory                   all that level asks, too
 *     require kernel/@small T=f32       for each operator of the small set a matching case passed
 *     require contract/stream*          at least one matching case passed
 *     every operator/?* in f32 i64      of the cases with T= one of these each passed
 *     every train/?*                    each matching case passed
 *     clean kernel/?*                   matching cases pass or are unsupported, nothing else
 *
 * Patterns are pattern.h's; @small and @all stand for each of the names of TN_KERNEL_TABLE, and
 * where the set has no case of an operator with the parameters asked, any case of it will do.
 * `every` leaves out calls that are to be refused (invalid=), and those by way of a decomposition
 * that the device need not have (how=). A level that has an `every` with dtypes is told with them,
 * and with the others in which all of it passed.
 *
 * A level holds of what ran only: where a case of the set that it speaks of did not run, it is `not
 * run`. A failure that is waived counts as a pass, and the level says how many there are.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_LEVELS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_LEVELS_H

#include "plugin-sdk/conformance/sets.h"
#include "plugin-sdk/conformance/verdict.h"
#include "plugin-sdk/conformance/runner/run/log.h"
#include "plugin-sdk/conformance/runner/run/needs.h"
#include "plugin-sdk/conformance/runner/run/pattern.h"
#include "plugin-sdk/conformance/runner/run/selection.h"

enum { TC_MAX_LEVELS = 16 };

typedef enum tc_demand_kind { TC_REQUIRE, TC_EVERY, TC_CLEAN } tc_demand_kind;

typedef struct tc_demand {
    tc_demand_kind kind;
    tc_pattern *pattern;
    tc_pattern *fallback; /* where the set has nothing of the pattern; or NULL */
    uint64_t dtypes;      /* of TC_EVERY, a mask; 0: whatever T= is */
} tc_demand;

typedef struct tc_level {
    char *name, *title;
    unsigned version;
    tc_set set;
    unsigned includes[TC_MAX_LEVELS]; /* indices of levels before it */
    unsigned n_includes;
    tc_demand *demands;
    size_t n_demands;
    bool asked; /* the run is there to show it */
} tc_level;

typedef struct tc_levels {
    tc_level at[TC_MAX_LEVELS];
    unsigned n;
} tc_levels;

/* The levels that are built in, in their order: NULL-terminated names and texts (generated). */
typedef struct tc_level_text {
    const char *name, *text;
} tc_level_text;
extern const tc_level_text tc_level_texts[];

/* Adds a level; the ones it includes are there already. False with `why`: NAME:LINE: what. */
bool tc_levels_add(tc_levels *levels, const char *name, const char *text,
                   char why[TC_VERDICT_MESSAGE]);
/* All built-in ones. */
bool tc_levels_builtin(tc_levels *levels, char why[TC_VERDICT_MESSAGE]);
void tc_levels_finish(tc_levels *levels);
/* By name or title, in any case; NULL where there is none. */
tc_level *tc_levels_find(tc_levels *levels, const char *name);

/* The sets that it takes to show a level and those it includes. */
tc_sets tc_level_sets(const tc_levels *levels, const tc_level *level);

/* Does the level itself, not one that it includes, ask for every case of some kind? */
bool tc_level_has_every(const tc_level *level);

/* Marks the lines of the selection that the level, or one it includes, speaks of
 * (tc_candidate.asked). */
void tc_level_ask(const tc_levels *levels, const tc_level *level, tc_selection *selection);

typedef enum tc_level_state { TC_LEVEL_PASSED, TC_LEVEL_FAILED, TC_LEVEL_NOT_RUN } tc_level_state;

/* "passed", "failed", "not run". */
const char *tc_level_state_name(tc_level_state state);

/* Judges one level, with those it includes. `why` says what is missing, "" where it passed.
 * The selection has what is in the set and what ran; the log what became of it. */
tc_level_state tc_level_judge(const tc_levels *levels, const tc_level *level, tc_sets sets,
                              const tc_selection *selection, const tc_log *log,
                              char why[TC_VERDICT_MESSAGE]);

/* Is it a case that an `every` of the level, or of those it includes, asks to pass? */
bool tc_level_wants(const tc_levels *levels, const tc_level *level, const char *line);

/* Adds what keeps an `every` of the level, or of those it includes, from holding. False: no memory. */
bool tc_level_needs(const tc_levels *levels, const tc_level *level, const tc_log *log,
                    tc_needs *needs);

/* How many of the failures that it speaks of are waived. */
size_t tc_level_waived(const tc_levels *levels, const tc_level *level, const tc_log *log);
/* The dtypes that it names, and the others in which all that its `every` speaks of passed. */
uint64_t tc_level_dtypes(const tc_level *level);
uint64_t tc_level_also(const tc_level *level, const tc_selection *selection, const tc_log *log);

#endif
