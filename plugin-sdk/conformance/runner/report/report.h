/* What people and their tools read, made from a log. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_REPORT_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_REPORT_H

#include <argp.h>
#include <stdio.h>

#include "plugin-sdk/conformance/runner/run/log.h"

/* Each writes the whole of it; whether that worked is for the stream to say. */
typedef void tc_report(const tc_log *log, FILE *out);

tc_report tc_report_junit;    /* the XML that CI servers read; one test suite per class */
tc_report tc_report_tap;      /* TAP 14 */
tc_report tc_report_markdown; /* levels, counts, operators x dtypes, times, failures */
tc_report tc_report_html;     /* the same, one page that needs nothing beside it */

/* Options --junit FILE and so on, in the order of tc_reports; the input is an array of
 * TC_N_REPORTS paths. */
enum { TC_N_REPORTS = 4 };
extern tc_report *const tc_reports[TC_N_REPORTS];
extern const struct argp tc_report_argp;

/* Writes a report to a file ("-": stdout). False with `why`. */
bool tc_report_write(const char *path, tc_report *report, const tc_log *log,
                     char why[TC_VERDICT_MESSAGE]);

#endif
