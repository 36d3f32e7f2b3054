/* What is known of a device beforehand.
 *
 *     skip  kernel/neg T=f16               # more than two dimensions hang the board
 *     xfail kernel/exp T=f16 data=special  # stops at a NaN, until driver 1.2
 *     waive kernel/add T=f32 data=special  # the adder of this stepping; stays as it is
 *
 * A pattern (pattern.h), and after # a reason, which must be there. An entry that is of no use any
 * more is a failure, and so is a case that passes against its xfail: lists only ever get shorter by
 * someone's hand.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_EXPECTATIONS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_EXPECTATIONS_H

#include "plugin-sdk/conformance/verdict.h"
#include "plugin-sdk/conformance/runner/run/pattern.h"

typedef enum tc_expectation_kind {
    TC_EXPECT_SKIP,
    TC_EXPECT_XFAIL,
    TC_EXPECT_WAIVE
} tc_expectation_kind;

typedef struct tc_expectation {
    tc_expectation_kind kind;
    tc_pattern *pattern;
    char *reason;
    char *where; /* FILE:LINE */
    bool used;
    size_t n_lines, n_ran; /* of the set's lines it finds; how many of them ran */
} tc_expectation;

typedef struct tc_expectations {
    tc_expectation *entries;
    size_t n;
} tc_expectations;

/* Adds a file's entries. False with `why`, which names file and line. */
bool tc_expectations_read(tc_expectations *expectations, const char *path,
                          char why[TC_VERDICT_MESSAGE]);
/* The same from text; `name` stands for the path. */
bool tc_expectations_read_text(tc_expectations *expectations, const char *name, const char *text,
                               char why[TC_VERDICT_MESSAGE]);
void tc_expectations_finish(tc_expectations *expectations);

/* "skip", "xfail", "waive". */
const char *tc_expectation_kind_name(tc_expectation_kind kind);

/* The first skip that finds the line, marked as used, or NULL. */
const tc_expectation *tc_expectations_skip(tc_expectations *expectations, const char *line);

/* What the first xfail or waive that finds the line makes of a status. *out_entry is the entry
 * where it changed something. */
tc_status tc_expectations_judge(tc_expectations *expectations, const char *line, tc_status status,
                                const tc_expectation **out_entry);

/* Counts a line of the set, and whether it ran, for tc_expectation_unused. */
void tc_expectations_count(tc_expectations *expectations, const char *line, bool ran);

/* Whether the entry did nothing though all it speaks of ran (or nothing is left of it). */
bool tc_expectation_unused(const tc_expectation *e);

#endif
