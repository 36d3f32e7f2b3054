/* What is known of a device beforehand.
 *
 *     skip  kernel/neg T=f16               # more than two dimensions hang the board
 *     xfail kernel/exp T=f16 data=special  # stops at a NaN, until driver 1.2
 *     waive kernel/add T=f32 data=special [ticket=HW-12 owner=jane until=2027-06-30] # the adder
 *     waive kernel/sin [ticket=HW-9 owner=jane until=2027-06-30 firmware=1.[0-3]*] # the table
 *
 * A pattern (pattern.h), terms in brackets, and after # a reason, which must be there. `ticket`,
 * `owner` and `until` are for a waiver to have, all three; the other kinds may. `until` is the last
 * day on which the entry counts, in UTC. Every other term is a condition: what the worker says of
 * the plugin or its device under that name (TC_CONDITIONS), which the glob must match for the entry
 * to count; a name may come more than once, for either to match.
 *
 * An entry that is of no use any more is a failure, and so is a case that passes against its xfail:
 * lists only ever get shorter by someone's hand. One that expired counts no more, and says so.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_EXPECTATIONS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_EXPECTATIONS_H

#include "plugin-sdk/conformance/runner/run/json_record.h"
#include "plugin-sdk/conformance/verdict.h"
#include "plugin-sdk/conformance/runner/run/pattern.h"

typedef enum tc_expectation_kind {
    TC_EXPECT_SKIP,
    TC_EXPECT_XFAIL,
    TC_EXPECT_WAIVE
} tc_expectation_kind;

/* What conditions may be about: members of what a worker describes (worker.h). */
#define TC_CONDITIONS(X) X(id) X(version) X(type) X(name) X(device) X(firmware) X(driver)

typedef struct tc_expectation {
    tc_expectation_kind kind;
    tc_pattern *pattern;
    char *reason;   /* with the terms behind it */
    char *terms;    /* "ticket=HW-12 owner=jane until=2027-06-30"; "" where there are none */
    char *where;    /* FILE:LINE */
    char until[11]; /* "2027-06-30"; "" for ever */
    bool expired;
    bool elsewhere; /* a condition does not hold: it is of another device */
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

/* Settles which entries count: today ("2027-06-30"), on what the worker describes (NULL: nothing). */
void tc_expectations_settle(tc_expectations *expectations, const char *today,
                            const json_t *described);

/* "skip", "xfail", "waive". */
const char *tc_expectation_kind_name(tc_expectation_kind kind);

/* The entry that expired and would have spoken of this failure, marked as used, or NULL. */
const tc_expectation *tc_expectations_expired(tc_expectations *expectations, const char *line);

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
