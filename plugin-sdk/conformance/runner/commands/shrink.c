/* tenon-conform shrink: a failing case made small, and a C file of it. */
#include "plugin-sdk/conformance/runner/commands/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/runner/report/escape.h"
#include "plugin-sdk/conformance/runner/run/child.h"
#include "plugin-sdk/conformance/runner/shrink/reduce.h"
#include "plugin-sdk/conformance/runner/shrink/repro.h"
#include "plugin-sdk/conformance/runner/commands/worker_options.h"

typedef struct shrink_options {
    tc_worker_pool_options pool;
    const char *line, *out;
    double seconds;
} shrink_options;

enum { OUT = 512, SECONDS };

static const struct argp_option options[] = {
    {"out", OUT, "FILE.c", 0, "write the smallest case as a C program", 0},
    {"seconds", SECONDS, "SECONDS", 0, "what all tries together may take (600)", 0},
    {0},
};

static error_t take(int key, char *value, struct argp_state *state) {
    shrink_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->pool;
        break;
    case OUT:
        o->out = value;
        break;
    case SECONDS:
        o->seconds = tc_option_number(state, "--seconds", value, 0.01, 1e9);
        break;
    case ARGP_KEY_ARG:
        if (o->line)
            argp_error(state, "one word too many: %s", value);
        *(o->pool.plugin ? &o->line : &o->pool.plugin) = value;
        break;
    case ARGP_KEY_END:
        if (!o->line)
            argp_error(state, "the plugin or the case is missing");
        if (o->pool.n_devices != 1)
            argp_error(state, "--device: one");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_child children[] = {{&tc_worker_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    .options = options,
    .parser = take,
    .args_doc = "PLUGIN.so 'CASE LINE'",
    .doc = "Makes a failing case as small as it can. --timeout is 10.\v"
           "Exit status: 1: it fails, and was shrunk; 0: it does not fail; 2 where the command is "
           "wrong, 3 where the search could not do its work.",
    .children = children,
};

static void print_step(const char *line, const tc_verdict *v) {
    (void)v;
    printf("  %s\n", line);
    fflush(stdout);
}

static int write_file(const shrink_options *o, const char *line) {
    char why[TC_MESSAGE];
    if (!tc_repro_possible(line, why)) {
        printf("%s\n", why);
        return TC_EXIT_BAD;
    }
    FILE *out = o->out ? fopen(o->out, "w") : NULL;
    if (!o->out)
        return TC_EXIT_BAD;
    bool good = out != NULL;
    if (!good)
        snprintf(why, sizeof why, "%s", strerror(errno));
    else
        good = tc_repro_write(out, line, o->pool.devices[0], why);
    if (out && fclose(out) != 0 && good) {
        snprintf(why, sizeof why, "%s", strerror(errno));
        good = false;
    }
    if (!good) {
        fprintf(stderr, "tenon-conform shrink: %s: %s\n", o->out, why);
        return TC_EXIT_TROUBLE;
    }
    printf("written: %s\n    cc -I$(pkg-config --variable=includedir tenon-plugin) %s -ldl -lm && "
           "./a.out %s\n",
           o->out, o->out, o->pool.plugin);
    return TC_EXIT_BAD;
}

static int shrink(const shrink_options *o, tc_trial *trial) {
    char why[TC_MESSAGE];
    tc_verdict v;
    static tc_reducer r;
    tc_trial_run_alone(trial, o->line, &v);
    if (!tc_trial_failed(&v)) {
        printf("%s: %s%s%s\n", o->line, tc_status_name(v.status), *v.message ? ": " : "",
               v.message);
        return v.status == TC_ERROR ? TC_EXIT_USAGE : TC_EXIT_GOOD;
    }
    printf("%s: %s\n", tc_status_name(v.status), v.message);
    if (!tc_reduce_init(&r, trial, o->line, &v, why)) {
        fprintf(stderr, "tenon-conform shrink: %s\n", why);
        return TC_EXIT_USAGE;
    }
    r.until = tc_now() + o->seconds;
    r.step = print_step;
    tc_reduce(&r);
    if (tc_now() > r.until)
        puts("the time is over; --seconds gives more");
    char command[TC_COMMAND];
    printf("%zu of %zu changes kept\n%s: %s\n    %s\n", r.n_kept, r.n_tried,
           tc_status_name(r.verdict.status), r.verdict.message,
           tc_command_text(o->pool.plugin, o->pool.devices[0], r.line, command));
    return write_file(o, r.line);
}

int tc_command_shrink(int argc, char **argv) {
    shrink_options o = {.pool = {.timeout = 10, .jobs = 1}, .seconds = 600};
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (!tc_find_workers(&o.pool, "shrink"))
        return TC_EXIT_USAGE;
    tc_trial trial;
    tc_prepare_for_children();
    tc_trial_init(&trial, &o.pool, o.pool.devices[0]);
    int result = shrink(&o, &trial);
    tc_trial_finish(&trial);
    if (fflush(stdout) != 0 || ferror(stdout))
        result = TC_EXIT_TROUBLE;
    return result;
}
