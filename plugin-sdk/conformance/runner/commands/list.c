/* tenon-conform list: the lines of a set. */
#include "plugin-sdk/conformance/runner/commands/commands.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/run/selection.h"
#include "plugin-sdk/conformance/runner/commands/worker_paths.h"

static int usage(const char *problem, const char *word) {
    fprintf(
        stderr,
        "tenon-conform list: %s%s\n"
        "usage: tenon-conform list [--set smoke|standard|exhaustive|perf] [--filter PATTERN]...\n"
        "                          [--worker PROGRAM] [--core-worker PROGRAM]\n",
        problem, word);
    return TC_EXIT_USAGE;
}

int tc_command_list(int argc, char **argv) {
    tc_sets sets = TC_SET_BIT(TC_STANDARD);
    enum { MOST = 64 };
    tc_pattern *filters[MOST];
    size_t n_filters = 0;
    char core_path[PATH_MAX], why[TC_VERDICT_MESSAGE];
    const char *worker = NULL, *core = tc_core_path(core_path, sizeof core_path);
    int result = TC_EXIT_GOOD;
    for (int i = 1; i < argc && result == TC_EXIT_GOOD; i += 2) {
        const char *value = argv[i + 1];
        if (!value)
            result = usage("a value is missing after ", argv[i]);
        else if (strcmp(argv[i], "--worker") == 0)
            worker = value;
        else if (strcmp(argv[i], "--core-worker") == 0)
            core = value;
        else if (strcmp(argv[i], "--set") == 0)
            result = tc_sets_find(value, &sets) ? result : usage("no set is named ", value);
        else if (strcmp(argv[i], "--filter") != 0)
            result = usage("no option: ", argv[i]);
        else if (n_filters == MOST)
            result = usage("too many filters; a regular expression /a|b/ joins some", "");
        else if ((filters[n_filters] = tc_pattern_create(value, why)))
            n_filters++;
        else
            result = usage("--filter: ", why);
    }
    tc_selection selection = {0};
    if (result == TC_EXIT_GOOD && !tc_selection_add_sets(&selection, sets, worker, core, why)) {
        fprintf(stderr, "tenon-conform list: %s\n", why);
        result = TC_EXIT_TROUBLE;
    }
    if (result == TC_EXIT_GOOD) {
        tc_selection_settle(&selection);
        tc_selection_order(&selection);
        for (size_t i = 0; i < selection.n; i++) {
            bool found = n_filters == 0;
            for (size_t k = 0; k < n_filters && !found; k++)
                found = tc_pattern_finds(filters[k], selection.at[i].line);
            if (found)
                puts(selection.at[i].line);
        }
        if (fflush(stdout) != 0 || ferror(stdout)) {
            fprintf(stderr, "tenon-conform list: stdout: %s\n", strerror(errno));
            result = TC_EXIT_TROUBLE;
        }
    }
    tc_selection_finish(&selection);
    while (n_filters)
        tc_pattern_destroy(filters[--n_filters]);
    return result;
}
