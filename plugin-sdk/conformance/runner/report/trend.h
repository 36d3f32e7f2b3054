/* Several runs beside each other: releases of a plugin, chips, plugins. A column for each, in the
 * order given. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_TREND_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_TREND_H

#include "plugin-sdk/conformance/runner/report/matrix.h"

/* A run, and what is looked up in it. */
typedef struct tc_trend_run {
    tc_log log; /* sorted */
    tc_matrix matrix;
} tc_trend_run;

typedef enum tc_trend_form { TC_TREND_MARKDOWN, TC_TREND_HTML } tc_trend_form;

/* Writes all of it: what ran, levels, counts, the operators in which the runs differ, and the calls
 * that were timed in more than one. Whether that worked is for the stream to say. */
void tc_trend_write(const tc_trend_run *runs, size_t n, tc_trend_form form, FILE *out);

#endif
