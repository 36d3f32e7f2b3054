/* What people and their tools read, made from a log. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_REPORT_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_REPORT_H

#include <stdio.h>

#include "plugin-sdk/conformance/runner/run/log.h"

/* Each writes the whole of it; whether that worked is for the stream to say. */
typedef void tc_report(const tc_log *log, FILE *out);

tc_report tc_report_junit;    /* the XML that CI servers read; one test suite per class */
tc_report tc_report_tap;      /* TAP 14 */
tc_report tc_report_markdown; /* levels, counts, operators x dtypes, times, failures */
tc_report tc_report_html;     /* the same, one page that needs nothing beside it */

/* X(option, what it writes). */
#define TC_REPORTS(X) X(junit) X(tap) X(markdown) X(html)

/* Writes a report to a file ("-": stdout). False with `why`. */
bool tc_report_write(const char *path, tc_report *report, const tc_log *log,
                     char why[TC_VERDICT_MESSAGE]);

#endif
