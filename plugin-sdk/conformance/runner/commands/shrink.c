/* tenon-conform shrink: a failing case made small, and a C file of it. */
#include "plugin-sdk/conformance/runner/commands/commands.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/report/escape.h"
#include "plugin-sdk/conformance/runner/run/child.h"
#include "plugin-sdk/conformance/runner/run/progress.h"
#include "plugin-sdk/conformance/runner/shrink/reduce.h"
#include "plugin-sdk/conformance/runner/shrink/repro.h"
#include "plugin-sdk/conformance/runner/commands/worker_paths.h"

typedef struct options {
    tc_worker_pool_options pool;
    const char *line, *out;
    double seconds;
} options;

static int usage(const char *problem, const char *word) {
    fprintf(stderr,
            "tenon-conform shrink: %s%s\n"
            "usage: tenon-conform shrink PLUGIN.so 'CASE' [--device N] [--out FILE.c]\n"
            "                            [--timeout SECONDS] [--seconds SECONDS]\n"
            "                            [--worker PROGRAM] [--core-worker PROGRAM]\n"
            "makes a failing case as small as it can; exit status 1: it fails, and was shrunk;\n"
            "0: it does not fail\n",
            problem, word);
    return TC_EXIT_USAGE;
}

static bool read_seconds(const char *text, double *out) {
    char why[TC_MESSAGE];
    return tc_read_number(text, out, why) && *out > 0 && *out < 1e9;
}

static int read_options(int argc, char **argv, options *o) {
    int64_t device;
    char why[TC_MESSAGE];
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            if (o->line)
                return usage("one word too many: ", argv[i]);
            *(o->pool.plugin ? &o->line : &o->pool.plugin) = argv[i];
            continue;
        }
        const char *name = argv[i], *value = argv[i + 1];
        if (!value)
            return usage("a value is missing after ", name);
        i++;
        if (strcmp(name, "--device") == 0) {
            if (!tc_read_int(value, &device, why) || device < 0 || device > 1000)
                return usage("--device N: not ", value);
            o->pool.device = (unsigned)device;
        } else if (strcmp(name, "--out") == 0) {
            o->out = value;
        } else if (strcmp(name, "--timeout") == 0) {
            if (!read_seconds(value, &o->pool.timeout))
                return usage("--timeout SECONDS: not ", value);
        } else if (strcmp(name, "--seconds") == 0) {
            if (!read_seconds(value, &o->seconds))
                return usage("--seconds SECONDS: not ", value);
        } else if (strcmp(name, "--worker") == 0) {
            o->pool.worker = value;
        } else if (strcmp(name, "--core-worker") == 0) {
            o->pool.core_worker = value;
        } else {
            return usage("no option: ", name);
        }
    }
    return o->line ? TC_EXIT_GOOD : usage("the plugin or the case is missing", "");
}

static void print_step(const char *line, const tc_verdict *v) {
    (void)v;
    printf("  %s\n", line);
    fflush(stdout);
}

static int write_file(const options *o, const char *line) {
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
        good = tc_repro_write(out, line, o->pool.device, why);
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

static int shrink(const options *o, tc_trial *trial) {
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
    if (!tc_reduce_init(&r, trial, o->line, &v, why))
        return usage(why, "");
    r.until = tc_now() + o->seconds;
    r.step = print_step;
    tc_reduce(&r);
    if (tc_now() > r.until)
        puts("the time is over; --seconds gives more");
    char command[TC_COMMAND];
    printf("%zu of %zu changes kept\n%s: %s\n    %s\n", r.n_kept, r.n_tried,
           tc_status_name(r.verdict.status), r.verdict.message,
           tc_command_text(o->pool.plugin, r.line, command));
    return write_file(o, r.line);
}

int tc_command_shrink(int argc, char **argv) {
    char own[PATH_MAX], core[PATH_MAX], real[PATH_MAX];
    options o = {.pool = {.timeout = 10, .jobs = 1}, .seconds = 600};
    int result = read_options(argc, argv, &o);
    if (result != TC_EXIT_GOOD)
        return result;
    if (!realpath(o.pool.plugin, real)) {
        fprintf(stderr, "tenon-conform shrink: %s: %s\n", o.pool.plugin, strerror(errno));
        return TC_EXIT_USAGE;
    }
    o.pool.plugin = real;
    if (!o.pool.worker)
        o.pool.worker = tc_own_path(own, sizeof own);
    if (!o.pool.core_worker)
        o.pool.core_worker = tc_core_path(core, sizeof core);
    if (!o.pool.worker) {
        fputs("tenon-conform shrink: /proc is needed to start workers\n", stderr);
        return TC_EXIT_TROUBLE;
    }
    tc_trial trial;
    tc_prepare_for_children();
    tc_trial_init(&trial, &o.pool);
    result = shrink(&o, &trial);
    tc_trial_finish(&trial);
    if (fflush(stdout) != 0 || ferror(stdout))
        result = TC_EXIT_TROUBLE;
    return result;
}
