/* tenon-conform needs: what a device lacks for a level, as one list to work from. */
#include "plugin-sdk/conformance/runner/commands/commands.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "plugin-sdk/conformance/runner/commands/run_options.h"
#include "plugin-sdk/conformance/runner/run/child.h"
#include "plugin-sdk/conformance/runner/run/levels.h"
#include "plugin-sdk/conformance/runner/run/progress.h"
#include "plugin-sdk/conformance/runner/run/worker_pool.h"

enum { FILTER = 512, LEVEL, JSON };

typedef struct needs {
    tc_worker_pool_options pool;
    const char *level_name;
    bool json;
    tc_words filters;
    tc_levels levels;
    const tc_level *level;
    tc_selection selection;
    tc_item *items;
    size_t n_items;
    tc_log log;
    tc_progress progress;
} needs;

static const struct argp_option options[] = {
    {"level", LEVEL, "LEVEL", 0, "for which level (core)", 1},
    {"filter", FILTER, "PATTERN", 0, "only of cases it finds: 'operator/abs'; repeatable", 1},
    {"json", JSON, NULL, 0, "print the list as JSON", 1},
    {"jobs", 'j', "N", 0, "workers at once (1)", 2},
    {0},
};

static bool say(const char *what) {
    fprintf(stderr, "tenon-conform needs: %s\n", what);
    return false;
}

static error_t take(int key, char *value, struct argp_state *state) {
    needs *n = state->input;
    switch (key) {
    case LEVEL:
        n->level_name = value;
        break;
    case FILTER:
        if (n->filters.n == TC_MOST_WORDS)
            argp_error(state, "too many filters; a regular expression /a|b/ joins some");
        n->filters.at[n->filters.n++] = value;
        break;
    case JSON:
        n->json = true;
        break;
    case 'j':
        n->pool.jobs = tc_option_whole(state, "--jobs", value, 1, 256);
        break;
    case ARGP_KEY_ARG:
        if (n->pool.plugin)
            argp_error(state, "one plugin at a time; %s is too many", value);
        n->pool.plugin = value;
        break;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &n->pool;
        break;
    case ARGP_KEY_END:
        if (!n->pool.plugin)
            argp_error(state, "the plugin is missing");
        if (n->pool.n_devices != 1)
            argp_error(state, "--device: one");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* The cases that every one must pass for the level, as far as a filter finds them. */
static bool select_cases(needs *n) {
    char why[TC_VERDICT_MESSAGE];
    tc_pattern *patterns[TC_MOST_WORDS];
    size_t n_patterns = 0;
    bool good = true;
    if (!n->pool.core_worker)
        return say("tenon-conform-core is not found, which runs operators; --core-worker says "
                   "where it is");
    if (!tc_levels_builtin(&n->levels, why))
        return say(why);
    if (!(n->level = tc_levels_find(&n->levels, n->level_name)))
        return say("no level is so named; load, memory, core, full, train and perf are");
    if (!tc_level_has_every(n->level))
        return say("it tells which kernels operators lack, for levels core and train; what another "
                   "level misses, `tenon-conform run --level` says at its end");
    if (!tc_selection_add_sets(&n->selection, tc_level_sets(&n->levels, n->level), NULL,
                               n->pool.core_worker, why))
        return say(why);
    tc_selection_settle(&n->selection);
    tc_selection_order(&n->selection);
    n->items = calloc(n->selection.n + 1, sizeof *n->items);
    if (!n->items)
        return say("no memory for the cases");
    for (; good && n_patterns < n->filters.n; n_patterns += good)
        if (!(patterns[n_patterns] = tc_pattern_create(n->filters.at[n_patterns], why)))
            good = say(why);
    for (size_t i = 0; good && i < n->selection.n; i++) {
        const tc_candidate *c = &n->selection.at[i];
        bool found = n_patterns == 0;
        for (size_t k = 0; k < n_patterns && !found; k++)
            found = tc_pattern_finds(patterns[k], c->line);
        if (found && tc_level_wants(&n->levels, n->level, c->line))
            n->items[n->n_items++] = (tc_item){c->line, c->schedule};
    }
    while (n_patterns)
        tc_pattern_destroy(patterns[--n_patterns]);
    if (good && n->n_items == 0)
        say("--filter finds none of the cases that the level asks to pass; `tenon-conform list "
            "--filter` says whether there is such a case, and 'operator/*' finds all operators");
    return good;
}

static bool done(void *context, size_t item, unsigned device, const tc_verdict *v) {
    needs *n = context;
    tc_progress_done(&n->progress, &n->items[item]);
    return tc_log_add(&n->log, n->items[item].line, v, v->status, NULL) || say("no memory");
}

static bool note(void *context, const char *text) {
    tc_progress_clear(&((needs *)context)->progress);
    fprintf(stderr, "note: %s\n", text);
    return true;
}

static bool given_up(void *context, size_t first, size_t count, const char *why) {
    needs *n = context;
    tc_progress_clear(&n->progress);
    tc_progress_drop(&n->progress, n->items + first, count);
    fprintf(stderr, "%zu cases from `%s` on do not run: %s\n", count, n->items[first].line, why);
    return true;
}

static void tick(void *context) {
    tc_progress_tick(&((needs *)context)->progress);
}

/* Cases in workers, as `run` has them; what fails is not run again. */
static bool run_cases(needs *n, bool *out_interrupted) {
    sigset_t set;
    tc_prepare_for_children();
    sigemptyset(&set);
    static const int taken[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        sigaddset(&set, taken[i]);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return say(strerror(errno));
    n->pool.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (n->pool.signals < 0)
        return say(strerror(errno));
    tc_worker_pool_events events = {n, done, given_up, note, tick};
    tc_progress_init(&n->progress, n->items, n->n_items, false);
    tc_worker_pool_end end = tc_worker_pool_run(n->items, n->n_items, &n->pool, &events);
    tc_progress_clear(&n->progress);
    close(n->pool.signals);
    *out_interrupted = end == TC_WORKER_POOL_INTERRUPTED;
    return end != TC_WORKER_POOL_STOPPED;
}

static int print(const needs *n) {
    tc_needs list = {0};
    if (!tc_level_needs(&n->levels, n->level, &n->log, &list)) {
        tc_needs_finish(&list);
        say("no memory for the list");
        return TC_EXIT_TROUBLE;
    }
    tc_needs_settle(&list);
    if (n->json) {
        json_t *made = tc_needs_json(&list);
        json_dumpf(made, stdout, JSON_INDENT(1));
        puts("");
        json_decref(made);
    } else if (list.n == 0) {
        printf("nothing is missing for level %s: %zu cases passed\n", n->level->title, n->n_items);
    } else {
        printf("for level %s %zu kernels, pairs of copy or dtypes are missing; without them %zu of "
               "operators and dtypes do not run:\n\n",
               n->level->title, list.n_items, list.n_targets);
        tc_needs_print(&list, stdout);
    }
    int result = list.n ? TC_EXIT_BAD : TC_EXIT_GOOD;
    tc_needs_finish(&list);
    return fflush(stdout) == 0 ? result : TC_EXIT_TROUBLE;
}

int tc_command_needs(int argc, char **argv) {
    static const struct argp_child children[] = {{&tc_worker_argp, 0, NULL, 3}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = take,
        .args_doc = "PLUGIN.so",
        .doc = "Lists what a device lacks for a level: kernels with their dtypes, pairs of copy, "
               "dtypes that it cannot store; under each the operators that it frees, and those "
               "that lack something else beside it.\v"
               "Exit status: 0 where nothing is missing, 1 where something is, 2 where the command "
               "is wrong, 3 where the cases could not be run, 4 where a filter finds none, 130 "
               "where it was interrupted.",
        .children = children,
    };
    static needs n;
    bool interrupted = false;
    int result = TC_EXIT_USAGE;
    n = (needs){.pool = {.jobs = 1, .timeout = 60}, .level_name = "core"};
    argp_parse(&argp, argc, argv, 0, NULL, &n);
    if (tc_find_workers(&n.pool, "needs") && select_cases(&n))
        result = n.n_items == 0                 ? TC_EXIT_NOTHING
                 : !run_cases(&n, &interrupted) ? TC_EXIT_TROUBLE
                 : interrupted                  ? TC_EXIT_INTERRUPTED
                                                : print(&n);
    tc_log_finish(&n.log);
    tc_levels_finish(&n.levels);
    tc_selection_finish(&n.selection);
    free(n.items);
    return result;
}
