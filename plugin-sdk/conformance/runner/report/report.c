/* See report.h. */
#include "plugin-sdk/conformance/runner/report/report.h"

#include <errno.h>
#include <string.h>

tc_report *const tc_reports[TC_N_REPORTS] = {tc_report_junit, tc_report_tap, tc_report_markdown,
                                             tc_report_html};

enum { FIRST = 1024 }; /* keys of the options, in that order */

static const struct argp_option options[] = {
    {"junit", FIRST, "FILE", 0, "the XML that CI servers read", 0},
    {"tap", FIRST + 1, "FILE", 0, "the Test Anything Protocol", 0},
    {"markdown", FIRST + 2, "FILE", 0, "for a README or an issue", 0},
    {"html", FIRST + 3, "FILE", 0, "one page with nothing beside it", 0},
    {0},
};

static error_t take(int key, char *value, struct argp_state *state) {
    if (key < FIRST || key >= FIRST + TC_N_REPORTS)
        return ARGP_ERR_UNKNOWN;
    ((const char **)state->input)[key - FIRST] = value;
    return 0;
}

const struct argp tc_report_argp = {.options = options, .parser = take};

bool tc_report_write(const char *path, tc_report *report, const tc_log *log,
                     char why[TC_VERDICT_MESSAGE]) {
    bool standard = strcmp(path, "-") == 0;
    FILE *out = standard ? stdout : fopen(path, "we");
    errno = out ? 0 : errno;
    if (out)
        report(log, out);
    bool good = out && fflush(out) == 0 && !ferror(out);
    int error = errno;
    if (out && !standard && fclose(out) != 0 && good) {
        good = false;
        error = errno;
    }
    if (!good)
        snprintf(why, TC_VERDICT_MESSAGE, "%s: %s", path, strerror(error ? error : EIO));
    return good;
}
