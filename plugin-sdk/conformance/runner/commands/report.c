/* tenon-conform report: reports made from a log. */
#include "plugin-sdk/conformance/runner/commands/commands.h"

#include <stdio.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/report/report.h"
#include "plugin-sdk/conformance/runner/commands/run_options.h"

static int usage(const char *problem, const char *word) {
    fprintf(stderr,
            "tenon-conform report: %s%s\n"
            "usage: tenon-conform report LOG [--junit FILE] [--tap FILE] [--html FILE]\n"
            "                                [--markdown FILE]         (-: stdout)\n",
            problem, word);
    return TC_EXIT_USAGE;
}

int tc_command_report(int argc, char **argv) {
    const char *path = NULL, *wanted[TC_N_REPORTS] = {0};
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        if (argv[i][0] != '-') {
            if (path)
                return usage("more than one log: ", argv[i]);
            path = argv[i];
            continue;
        }
        while (k < TC_N_REPORTS && strcmp(argv[i] + 1 + (argv[i][1] == '-'), tc_report_names[k]))
            k++;
        if (k == TC_N_REPORTS)
            return usage("no option: ", argv[i]);
        if (i + 1 == argc)
            return usage("a file is missing after ", argv[i]);
        wanted[k] = argv[++i];
    }
    if (!path)
        return usage("the log is missing", "");

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
        any |= wanted[i] != NULL;
        if (wanted[i] && !tc_report_write(wanted[i], tc_reports[i], &log, why)) {
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
