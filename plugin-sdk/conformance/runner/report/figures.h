/* What was measured of timed cases, in words. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_FIGURES_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_FIGURES_H

#include <string.h>

#include "plugin-sdk/conformance/runner/run/log.h"

enum { TC_FIGURE = 32, TC_N_FIGURES = 6 };

/* Titles of the columns. */
extern const char *const tc_figure_titles[TC_N_FIGURES];

/* The columns of a result that was timed: time per call as the host sees it, the runs' spread, time
 * per call on the device, GB/s, GFLOP/s, the share of the nearest ceiling. "" where there is none.
 */
void tc_figure_texts(const tc_figures *f, char out[TC_N_FIGURES][TC_FIGURE]);

/* 0.0000123 s as "12.3 us". Returns out. */
char *tc_duration_text(double ns, char out[TC_FIGURE]);

/* How many times as long it took after as before; whether the runs of either differ among themselves
 * by as much. */
double tc_times_as_long(const tc_figures *before, const tc_figures *after, bool *out_within);

/* Whether a result was timed. */
static inline bool tc_was_timed(const tc_result *r) {
    return r->figures.ns > 0;
}

/* The line without its class, which is the same for all of them. */
static inline const char *tc_timed_name(const tc_result *r) {
    const char *slash = strchr(r->line, '/');
    return slash ? slash + 1 : r->line;
}

#endif
