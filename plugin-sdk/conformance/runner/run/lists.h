/* What is known of a device beforehand.
 *
 *     skip kernel/conv2d T=f64          # not run: takes an hour without hardware f64
 *     xfail kernel/exp T=f16 data=edges # flushes denormals; issue 17; until 1.2
 *     waive contract/alloc-until-full   # the simulator's memory has no end
 *
 * A pattern (pattern.h), and after # a reason, which must be there. An entry that is of no use any
 * more is a failure, and so is a case that passes against its xfail: lists only ever get shorter by
 * someone's hand.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_LISTS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_LISTS_H

#include "plugin-sdk/conformance/verdict.h"
#include "plugin-sdk/conformance/runner/run/pattern.h"

typedef enum tc_list_kind { TC_LIST_SKIP, TC_LIST_XFAIL, TC_LIST_WAIVE } tc_list_kind;

typedef struct tc_entry {
    tc_list_kind kind;
    tc_pattern *pattern;
    char *reason;
    char *where; /* FILE:LINE */
    bool used;
    size_t n_lines, n_ran; /* of the set's lines it finds; how many of them ran */
} tc_entry;

typedef struct tc_lists {
    tc_entry *entries;
    size_t n;
} tc_lists;

/* Adds a file's entries. False with `why`, which names file and line. */
bool tc_lists_read(tc_lists *lists, const char *path, char why[TC_VERDICT_MESSAGE]);
/* The same from text; `name` stands for the path. */
bool tc_lists_read_text(tc_lists *lists, const char *name, const char *text,
                        char why[TC_VERDICT_MESSAGE]);
void tc_lists_finish(tc_lists *lists);

/* "skip", "xfail", "waive". */
const char *tc_list_kind_name(tc_list_kind kind);

/* The first skip that finds the line, marked as used, or NULL. */
const tc_entry *tc_lists_skip(tc_lists *lists, const char *line);

/* What the first xfail or waive that finds the line makes of a status. *out_entry is the entry
 * where it changed something. */
tc_status tc_lists_judge(tc_lists *lists, const char *line, tc_status status,
                         const tc_entry **out_entry);

/* Counts a line of the set, and whether it ran, for tc_entry_unused. */
void tc_lists_count(tc_lists *lists, const char *line, bool ran);

/* Whether the entry did nothing though all it speaks of ran (or nothing is left of it). */
bool tc_entry_unused(const tc_entry *e);

#endif
