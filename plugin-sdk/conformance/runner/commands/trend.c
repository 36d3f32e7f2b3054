/* tenon-conform trend: several logs beside each other, as a page. */
#include "plugin-sdk/conformance/runner/commands/commands.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/report/trend.h"

enum { HTML = 512 };

static const struct argp_option options[] = {
    {"html", HTML, NULL, 0, "one page with nothing beside it, in place of Markdown", 0},
    {0},
};

typedef struct trend_options {
    const char **logs; /* room for every word */
    size_t n;
    tc_trend_form form;
} trend_options;

static error_t take(int key, char *value, struct argp_state *state) {
    trend_options *o = state->input;
    if (key == HTML)
        o->form = TC_TREND_HTML;
    else if (key == ARGP_KEY_ARG)
        o->logs[o->n++] = value;
    else if (key == ARGP_KEY_END && o->n < 2)
        argp_error(state, "two logs are shown beside each other, or more");
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static bool read(const char *path, tc_trend_run *run) {
    char why[TC_VERDICT_MESSAGE];
    bool good = tc_log_read(path, &run->log, why);
    if (good && run->log.truncated)
        fprintf(stderr, "%s: its end was cut; it has %zu whole cases\n", path, run->log.n_results);
    if (good)
        tc_log_sort(&run->log);
    if (good && !tc_matrix_make(&run->log, &run->matrix)) {
        snprintf(why, sizeof why, "%s: no memory for the table of its operators", path);
        good = false;
    }
    if (!good)
        fprintf(stderr, "tenon-conform trend: %s\n", why);
    return good;
}

int tc_command_trend(int argc, char **argv) {
    static const struct argp argp = {
        .options = options,
        .parser = take,
        .args_doc = "LOG...",
        .doc =
            "Prints, as Markdown, several runs beside each other, in the order given: releases of "
            "a plugin, chips, plugins. What ran, the levels, the operators in which they "
            "differ, and how long calls took that more than one has timed.\v"
            "Exit status: 0; 2 where the command is wrong, 3 where a file cannot be read or the "
            "page not be written.",
    };
    trend_options o = {.logs = calloc((size_t)argc + 1, sizeof *o.logs)};
    tc_trend_run *runs = calloc((size_t)argc + 1, sizeof *runs);
    bool good = o.logs && runs;
    if (good)
        argp_parse(&argp, argc, argv, 0, NULL, &o);
    for (size_t i = 0; i < o.n && good; i++)
        good = read(o.logs[i], &runs[i]);
    if (good) {
        tc_trend_write(runs, o.n, o.form, stdout);
        good = fflush(stdout) == 0 && !ferror(stdout);
        if (!good)
            perror("tenon-conform trend: stdout");
    }
    for (size_t i = 0; i < o.n; i++) {
        tc_log_finish(&runs[i].log);
        tc_matrix_finish(&runs[i].matrix);
    }
    free(runs);
    free(o.logs);
    return good ? TC_EXIT_GOOD : TC_EXIT_TROUBLE;
}
