/* tenon-conform diff: cases whose status differs between two logs, and how long timed ones took in
 * both, as in
 *
 *     pass -> fail           kernel/add T=f32 self=[3,4] other=[3,4]
 *     unsupported -> (none)  kernel/exp T=f64 self=[7]
 *     x 0.52      31.2 us -> 16.2 us       perf/softmax T=f32 dim=1 self=[64,10]
 *
 * A time that differs by less than the runs of either log did among themselves has a ~ for its x.
 */
#include "plugin-sdk/conformance/runner/commands/commands.h"

#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/report/figures.h"
#include "plugin-sdk/conformance/runner/run/summary.h"

static bool read(const char *path, tc_log *log) {
    char why[TC_VERDICT_MESSAGE];
    if (!tc_log_read(path, log, why)) {
        fprintf(stderr, "tenon-conform diff: %s\n", why);
        return false;
    }
    if (log->truncated)
        fprintf(stderr, "%s: its end was cut; it has %zu whole cases\n", path, log->n_results);
    tc_log_sort(log);
    return true;
}

static void put_times(const tc_result *x, const tc_result *y) {
    const tc_figures *a = &x->figures, *b = &y->figures;
    bool within;
    double ratio = tc_times_as_long(a, b, &within);
    char before[TC_FIGURE], after[TC_FIGURE], times[2 * TC_FIGURE + 8];
    snprintf(times, sizeof times, "%s -> %s", tc_duration_text(a->ns, before),
             tc_duration_text(b->ns, after));
    printf("%c %-8.3g  %-24s %s\n", within ? '~' : 'x', ratio, times, y->line);
}

/* Bad where it was not, or not tried any more where it passed. */
static bool is_worse(const tc_result *x, const tc_result *y) {
    if (!y)
        return false;
    if (tc_status_is_bad(y->status))
        return !x || !tc_status_is_bad(x->status);
    return x && x->status == TC_PASS && y->status == TC_UNSUPPORTED;
}

static error_t take(int key, char *value, struct argp_state *state) {
    const char **logs = state->input;
    if (key == ARGP_KEY_ARG && state->arg_num < 2)
        logs[state->arg_num] = value;
    else if (key == ARGP_KEY_ARG || (key == ARGP_KEY_END && state->arg_num < 2))
        argp_error(state, "two logs are compared");
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

int tc_command_diff(int argc, char **argv) {
    static const struct argp argp = {
        .parser = take,
        .args_doc = "LOG1 LOG2",
        .doc = "Prints the cases whose status differs between two logs, and how many times as long "
               "each timed case takes in LOG2, with ~ where its runs differ as much.\v"
               "Exit status: 0; 1 where a status differs, 2 where the command is wrong, 3 where a "
               "file cannot be read.",
    };
    const char *logs[2];
    argp_parse(&argp, argc, argv, 0, NULL, logs);
    tc_log a = {0}, b = {0};
    if (!read(logs[0], &a) || !read(logs[1], &b)) {
        tc_log_finish(&a);
        return TC_EXIT_TROUBLE;
    }
    size_t i = 0, k = 0, n_changed = 0, n_worse = 0, n_timed = 0;
    double product = 0; /* of the ratios, as a logarithm */
    while (i < a.n_results || k < b.n_results) {
        int order = i == a.n_results   ? 1
                    : k == b.n_results ? -1
                                       : strcmp(a.results[i].line, b.results[k].line);
        const tc_result *x = order <= 0 ? &a.results[i++] : NULL;
        const tc_result *y = order >= 0 ? &b.results[k++] : NULL;
        if (x && y && tc_was_timed(x) && tc_was_timed(y)) {
            put_times(x, y);
            product += log(y->figures.ns / x->figures.ns);
            n_timed++;
        }
        if (x && y && x->status == y->status)
            continue;
        char change[64];
        snprintf(change, sizeof change, "%s -> %s", x ? tc_status_name(x->status) : "(none)",
                 y ? tc_status_name(y->status) : "(none)");
        printf("%-26s %s\n", change, (x ? x : y)->line);
        n_changed++;
        n_worse += is_worse(x, y);
    }
    if (n_timed)
        printf("%zu timed in both, x %.3g in the mean\n", n_timed, exp(product / (double)n_timed));
    printf("%zu changed, %zu of them for the worse\n", n_changed, n_worse);
    bool printed = fflush(stdout) == 0 && !ferror(stdout);
    tc_log_finish(&a);
    tc_log_finish(&b);
    return !printed ? TC_EXIT_TROUBLE : n_changed ? TC_EXIT_BAD : TC_EXIT_GOOD;
}
