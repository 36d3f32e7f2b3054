/* See run_options.h. */
#include "plugin-sdk/conformance/runner/commands/run_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/commands/commands.h"

enum {
    FILTER = 512,
    CASES,
    LISTS,
    LEVEL,
    SHARD,
    RERUNS,
    STOP,
    GIVE_UP,
    LOG,
    RESUME,
    OUTPUT,
    QUIET,
    SET,
    TORCH
};

static const struct argp_option options[] = {
    {"set", SET, "SET", 0, "smoke, standard (as a rule), exhaustive or perf; standard+perf is both",
     1},
    {"torch", TORCH, NULL, 0,
     "PyTorch's own tests of operators, too, through the Python package tenon-torch", 1},
    {"filter", FILTER, "PATTERN", 0,
     "only cases it finds: 'kernel/add T=f32', '/regex/'; repeatable", 1},
    {"cases", CASES, "FILE", 0, "only the lines of this file (-: stdin); repeatable", 1},
    {"lists", LISTS, "FILE", 0, "skip, xfail and waive entries; repeatable", 1},
    {"level", LEVEL, "LEVEL", 0,
     "run only what this level asks, of the set that it takes, and succeed only if it passes; "
     "repeatable",
     1},
    {"shard", SHARD, "I/N", 0, "the I-th of N parts of that, to run elsewhere; see report", 1},
    {"jobs", 'j', "N", 0, "workers at once (1; one for each device)", 2},
    {"reruns", RERUNS, "N", 0, "fresh processes in which a failure is run again (2)", 2},
    {"stop-after-failures", STOP, "N", 0, "then stop", 2},
    {"give-up-after", GIVE_UP, "N", 0,
     "equal crashes in a row, time-outs a quarter of that, end their class (20; 0: never)", 2},
    {"log", LOG, "FILE", 0, "write a log", 3},
    {"resume", RESUME, "FILE", 0, "go on with a log", 3},
    {"output", OUTPUT, "FILE", 0,
     "where all that workers print in cases that fail is added, and stacks (LOG.output)", 3},
    {"quiet", QUIET, NULL, 0, "print the last line and failures only", 3},
    {0},
};

static void put(const struct argp_state *state, tc_words *words, const char *word) {
    if (words->n == TC_MOST_WORDS)
        argp_error(state, "too many of one kind; --cases FILE has room for more: %s", word);
    words->at[words->n++] = word;
}

static error_t take(int key, char *value, struct argp_state *state) {
    tc_run_options *o = state->input;
    switch (key) {
    case SET:
        if (!tc_sets_find(value, &o->sets))
            argp_error(state, "no set is named %s", value);
        break;
    case FILTER:
        put(state, &o->filters, value);
        break;
    case CASES:
        put(state, &o->case_files, value);
        break;
    case LISTS:
        put(state, &o->lists, value);
        break;
    case LEVEL:
        put(state, &o->levels, value);
        break;
    case 'j':
        o->pool.jobs = tc_option_whole(state, "--jobs", value, 1, 256);
        break;
    case RERUNS:
        o->pool.reruns = tc_option_whole(state, "--reruns", value, 0, 1000000000);
        break;
    case STOP:
        o->stop_after = tc_option_whole(state, "--stop-after-failures", value, 1, 1000000000);
        break;
    case GIVE_UP:
        o->pool.give_up = tc_option_whole(state, "--give-up-after", value, 0, 1000000000);
        break;
    case SHARD: {
        int n = 0;
        if (sscanf(value, "%u/%u%n", &o->shard, &o->n_shards, &n) != 2 || value[n] ||
            o->shard < 1 || o->shard > o->n_shards || o->n_shards > 10000)
            argp_error(state, "--shard: I/N, as 1/4 to 4/4, not '%s'", value);
        break;
    }
    case OUTPUT:
        o->pool.output = value;
        break;
    case LOG:
        o->log = value;
        break;
    case RESUME:
        o->resume = value;
        break;
    case QUIET:
        o->quiet = true;
        break;
    case TORCH:
        o->torch = true;
        break;
    case ARGP_KEY_ARG:
        if (o->pool.plugin)
            put(state, &o->cases, value);
        else
            o->pool.plugin = value;
        break;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->pool;
        state->child_inputs[1] = &o->reports;
        break;
    case ARGP_KEY_END:
        if (!o->pool.plugin)
            argp_error(state, "the plugin is missing");
        if (o->log && o->resume && strcmp(o->log, o->resume) != 0)
            argp_error(state, "--resume goes on with its own file; --log is another: %s", o->log);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

void tc_run_options_read(int argc, char **argv, tc_run_options *out) {
    static const struct argp_child children[] = {
        {&tc_worker_argp, 0, NULL, 2}, {&tc_report_argp, 0, "Reports (FILE -: stdout)", 4}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = take,
        .args_doc = "PLUGIN.so ['CASE LINE']...",
        .doc = "Runs cases on a plugin's devices, in worker processes.\v"
               "--timeout is 60; training takes 20 times that. "
               "Exit status: 0 where nothing is wrong and the levels that were asked for passed, 1 "
               "where something is wrong, 2 where the command is, 3 where the run could not do its "
               "work, 4 where no case is what was asked for, 130 where it was interrupted.",
        .children = children,
    };
    *out = (tc_run_options){.pool = {.jobs = 0, .reruns = 2, .timeout = 60, .give_up = 20}};
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, out);
}
