/* tenon-conform report: reports made from a log. */
#include "plugin-sdk/conformance/runner/commands/commands.h"

#include <stdio.h>

#include "plugin-sdk/conformance/runner/report/report.h"

typedef struct report_options {
    const char *log, *reports[TC_N_REPORTS];
} report_options;

static error_t take(int key, char *value, struct argp_state *state) {
    report_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = o->reports;
        break;
    case ARGP_KEY_ARG:
        if (o->log)
            argp_error(state, "more than one log: %s", value);
        o->log = value;
        break;
    case ARGP_KEY_END:
        if (!o->log)
            argp_error(state, "the log is missing");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int tc_command_report(int argc, char **argv) {
    static const struct argp_child children[] = {{&tc_report_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .parser = take,
        .args_doc = "LOG",
        .doc = "Makes reports of a log (FILE -: stdout); without one, prints its last line.\v"
               "Exit status: 0; 2 where the command is wrong, 3 where a file cannot be read or "
               "written.",
        .children = children,
    };
    report_options o = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    const char *path = o.log;
    char why[TC_VERDICT_MESSAGE];
    tc_log log;
    if (!tc_log_read(path, &log, why)) {
        fprintf(stderr, "tenon-conform report: %s\n", why);
        return TC_EXIT_TROUBLE;
    }
    if (log.truncated)
        fprintf(stderr, "%s: its end was cut; good up to byte %jd, that is %zu cases\n", path,
                (intmax_t)log.whole, log.n_results);
    int result = TC_EXIT_GOOD;
    bool any = false;
    for (size_t i = 0; i < TC_N_REPORTS; i++) {
        any |= o.reports[i] != NULL;
        if (o.reports[i] && !tc_report_write(o.reports[i], tc_reports[i], &log, why)) {
            fprintf(stderr, "tenon-conform report: %s\n", why);
            result = TC_EXIT_TROUBLE;
        }
    }
    if (!any) {
        if (*tc_json_string(log.end, "summary"))
            puts(tc_json_string(log.end, "summary"));
        else
            printf("%zu cases; the run did not come to its end\n", log.n_results);
    }
    tc_log_finish(&log);
    return result;
}
