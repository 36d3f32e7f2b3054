/* What `tenon-conform run` was asked. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_COMMANDS_RUN_OPTIONS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_COMMANDS_RUN_OPTIONS_H

#include "plugin-sdk/conformance/runner/commands/worker_options.h"
#include "plugin-sdk/conformance/runner/report/report.h"
#include "plugin-sdk/conformance/sets.h"

enum { TC_MOST_WORDS = 256 };

/* Values of an option that may be given more than once. */
typedef struct tc_words {
    const char *at[TC_MOST_WORDS];
    size_t n;
} tc_words;

typedef struct tc_run_options {
    tc_worker_pool_options pool;
    size_t stop_after;        /* 0: never */
    unsigned shard, n_shards; /* shard is 1 to n_shards; 0 of 0: all of it */
    tc_sets sets;             /* 0: what the levels take, or standard */
    const char *log, *resume;
    tc_words filters, cases, case_files, lists, levels;
    tc_report_options reports;
    bool torch; /* PyTorch's tests, too */
    bool quiet;
} tc_run_options;

/* Ends the program where they make no sense. */
void tc_run_options_read(int argc, char **argv, tc_run_options *out);

#endif
