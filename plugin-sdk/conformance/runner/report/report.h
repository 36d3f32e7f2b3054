/* What people and their tools read, made from a log. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_REPORT_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_REPORT_H

#include <argp.h>
#include <stdio.h>

#include "plugin-sdk/conformance/runner/run/log.h"

enum { TC_N_REPORTS = 4 };

typedef struct tc_report_options {
    const char *paths[TC_N_REPORTS]; /* NULL: not wanted */
    bool claimed_only;               /* JUnit and TAP leave out what is unsupported */
} tc_report_options;

/* Each writes the whole of it; whether that worked is for the stream to say. */
typedef void tc_report(const tc_log *log, const tc_report_options *options, FILE *out);

tc_report tc_report_junit;    /* the XML that CI servers read; one test suite per class */
tc_report tc_report_tap;      /* TAP 14 */
tc_report tc_report_markdown; /* levels, counts, operators x dtypes, times, failures */
tc_report tc_report_html;     /* the same, one page that needs nothing beside it */

/* Options --junit FILE and so on, in the order of tc_reports; the input is a tc_report_options. */
extern tc_report *const tc_reports[TC_N_REPORTS];
extern const struct argp tc_report_argp;

/* Writes a report to a file ("-": stdout). False with `why`. */
bool tc_report_write(const char *path, tc_report *report, const tc_log *log,
                     const tc_report_options *options, char why[TC_VERDICT_MESSAGE]);

/* Whether a result is in JUnit and TAP. */
static inline bool tc_report_has(const tc_report_options *options, const tc_result *r) {
    return !options->claimed_only || r->status != TC_UNSUPPORTED;
}

#endif
