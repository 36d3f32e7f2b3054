/* What `tenon-conform run` was asked. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_VERBS_RUN_OPTIONS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_VERBS_RUN_OPTIONS_H

#include <limits.h>

#include "plugin-sdk/conformance/runner/report/report.h"
#include "plugin-sdk/conformance/sets.h"
#include "plugin-sdk/conformance/verdict.h"

enum { TC_MOST_WORDS = 256, TC_N_REPORTS = 4 };

typedef struct tc_run_options {
    char plugin[PATH_MAX]; /* real path */
    unsigned device, jobs, reruns;
    size_t stop_after; /* 0: never */
    double timeout;
    tc_sets sets; /* 0: what the levels take, or standard */
    const char *log, *resume, *worker, *core_worker;
    const char *filters[TC_MOST_WORDS], *cases[TC_MOST_WORDS], *case_files[TC_MOST_WORDS],
        *lists[TC_MOST_WORDS], *levels[TC_MOST_WORDS];
    size_t n_filters, n_cases, n_case_files, n_lists, n_levels;
    const char *reports[TC_N_REPORTS]; /* in the order of TC_REPORTS; NULL: not wanted */
    bool quiet;
} tc_run_options;

/* The reports' names and functions, in the order of TC_REPORTS. */
extern const char *const tc_report_names[TC_N_REPORTS];
extern tc_report *const tc_reports[TC_N_REPORTS];

/* False where they make no sense; that was said on stderr. */
bool tc_run_options_read(int argc, char **argv, tc_run_options *out);

#endif
