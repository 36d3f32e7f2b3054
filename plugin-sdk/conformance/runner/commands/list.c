/* tenon-conform list: the lines of a set. */
#include "plugin-sdk/conformance/runner/commands/commands.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/run/selection.h"
#include "plugin-sdk/conformance/runner/commands/worker_options.h"

enum { SET = 256, FILTER, WORKER, CORE_WORKER, MOST = 64 };

typedef struct list_options {
    tc_sets sets;
    const char *worker, *core_worker;
    tc_pattern *filters[MOST];
    size_t n_filters;
} list_options;

static const struct argp_option options[] = {
    {"set", SET, "SET", 0, "smoke, standard (as a rule), exhaustive or perf", 0},
    {"filter", FILTER, "PATTERN", 0, "only lines it finds; repeatable", 0},
    {"worker", WORKER, "PROGRAM", 0,
     "a worker whose cases are listed in place of the built-in ones", 0},
    {"core-worker", CORE_WORKER, "PROGRAM", 0, "where tenon-conform-core is", 0},
    {0},
};

static error_t take(int key, char *value, struct argp_state *state) {
    list_options *o = state->input;
    char why[TC_MESSAGE];
    switch (key) {
    case SET:
        if (!tc_sets_find(value, &o->sets))
            argp_error(state, "no set is named %s", value);
        break;
    case FILTER:
        if (o->n_filters == MOST)
            argp_error(state, "too many filters; a regular expression /a|b/ joins some");
        if (!(o->filters[o->n_filters++] = tc_pattern_create(value, why)))
            argp_error(state, "--filter: %s", why);
        break;
    case WORKER:
        o->worker = value;
        break;
    case CORE_WORKER:
        o->core_worker = value;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int tc_command_list(int argc, char **argv) {
    static const struct argp argp = {
        .options = options,
        .parser = take,
        .doc = "Prints the lines of a set of cases.\v"
               "Exit status: 0; 2 where the command is wrong, 3 where the lines cannot be listed.",
    };
    list_options o = {.sets = TC_SET_BIT(TC_STANDARD), .core_worker = tc_find_core_worker()};
    char why[TC_VERDICT_MESSAGE];
    int result = TC_EXIT_GOOD;
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    tc_selection selection = {0};
    if (!tc_selection_add_sets(&selection, o.sets, o.worker, o.core_worker, why)) {
        fprintf(stderr, "tenon-conform list: %s\n", why);
        result = TC_EXIT_TROUBLE;
    }
    if (result == TC_EXIT_GOOD) {
        tc_selection_settle(&selection);
        tc_selection_order(&selection);
        for (size_t i = 0; i < selection.n; i++) {
            bool found = o.n_filters == 0;
            for (size_t k = 0; k < o.n_filters && !found; k++)
                found = tc_pattern_finds(o.filters[k], selection.at[i].line);
            if (found)
                puts(selection.at[i].line);
        }
        if (fflush(stdout) != 0 || ferror(stdout)) {
            fprintf(stderr, "tenon-conform list: stdout: %s\n", strerror(errno));
            result = TC_EXIT_TROUBLE;
        }
    }
    tc_selection_finish(&selection);
    while (o.n_filters)
        tc_pattern_destroy(o.filters[--o.n_filters]);
    return result;
}
