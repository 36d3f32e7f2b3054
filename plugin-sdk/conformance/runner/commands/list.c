/* tenon-conform list: the lines of a set. */
#include "plugin-sdk/conformance/runner/commands/commands.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/run/overview.h"
#include "plugin-sdk/conformance/runner/run/selection.h"
#include "plugin-sdk/conformance/runner/commands/worker_options.h"

enum { SET = 256, FILTER, WORKER, CORE_WORKER };

typedef struct list_options {
    tc_sets sets; /* 0: none was named */
    const char *worker, *core_worker;
    tc_filters filters;
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
        if (!tc_filters_add(&o->filters, value, why))
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

static int print_lines(const list_options *o, const tc_selection *selection) {
    size_t counts[TC_MOST_FILTERS] = {0};
    int result = TC_EXIT_GOOD;
    for (size_t i = 0; i < selection->n; i++) {
        bool found = o->filters.n == 0;
        for (size_t k = 0; k < o->filters.n; k++) {
            bool finds = tc_pattern_finds(o->filters.at[k], selection->at[i].line);
            counts[k] += finds;
            found |= finds;
        }
        if (found)
            puts(selection->at[i].line);
    }
    for (size_t k = 0; k < o->filters.n; k++)
        if (counts[k] == 0) {
            tc_overview_missing(selection, o->filters.at[k]->text, stderr);
            result = TC_EXIT_NOTHING;
        }
    return result;
}

static void explain(const tc_selection *selection) {
    printf("The standard set has %zu cases; `tenon-conform list --set standard` prints them:\n",
           selection->n);
    tc_overview_put(selection, stdout);
    fputs("Other sets are smoke, exhaustive and perf. Some of a set:\n"
          "    tenon-conform list --filter 'kernel/add T=f32'\n"
          "    tenon-conform list --set smoke --filter contract\n",
          stdout);
}

int tc_command_list(int argc, char **argv) {
    static const struct argp argp = {
        .options = options,
        .parser = take,
        .doc =
            "Prints the lines of a set of cases; without --set and --filter, how many there are.\v"
            "Exit status: 0; 2 where the command is wrong, 3 where the lines cannot be listed, 4 "
            "where a filter finds none.",
    };
    list_options o = {.core_worker = tc_find_core_worker()};
    char why[TC_VERDICT_MESSAGE];
    int result = TC_EXIT_GOOD;
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    tc_selection selection = {0};
    bool named = o.sets || o.filters.n;
    o.sets = o.sets ? o.sets : TC_SET_BIT(TC_STANDARD);
    if (!tc_selection_add_sets(&selection, o.sets, o.worker, o.core_worker, why)) {
        fprintf(stderr, "tenon-conform list: %s\n", why);
        result = TC_EXIT_TROUBLE;
    }
    if (result == TC_EXIT_GOOD) {
        tc_selection_settle(&selection);
        tc_selection_order(&selection);
        if (named)
            result = print_lines(&o, &selection);
        else
            explain(&selection);
        if (fflush(stdout) != 0 || ferror(stdout)) {
            fprintf(stderr, "tenon-conform list: stdout: %s\n", strerror(errno));
            result = TC_EXIT_TROUBLE;
        }
    }
    tc_selection_finish(&selection);
    tc_filters_finish(&o.filters);
    return result;
}
