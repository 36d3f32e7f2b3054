/* See report.h. */
#include "plugin-sdk/conformance/runner/report/report.h"

#include <errno.h>
#include <string.h>

tc_report *const tc_reports[TC_N_REPORTS] = {tc_report_junit, tc_report_tap, tc_report_markdown,
                                             tc_report_html};

enum { FIRST = 1024, CLAIMED = FIRST + TC_N_REPORTS }; /* keys of the options, in that order */

static const struct argp_option options[] = {
    {"junit", FIRST, "FILE", 0, "the XML that CI servers read", 0},
    {"tap", FIRST + 1, "FILE", 0, "the Test Anything Protocol", 0},
    {"markdown", FIRST + 2, "FILE", 0, "for a README or an issue", 0},
    {"html", FIRST + 3, "FILE", 0, "one page with nothing beside it", 0},
    {"without-unsupported", CLAIMED, NULL, 0, "leave out of JUnit and TAP what is unsupported", 0},
    {0},
};

static error_t take(int key, char *value, struct argp_state *state) {
    tc_report_options *o = state->input;
    if (key < FIRST || key > CLAIMED)
        return ARGP_ERR_UNKNOWN;
    if (key == CLAIMED)
        o->claimed_only = true;
    else
        o->paths[key - FIRST] = value;
    return 0;
}

const struct argp tc_report_argp = {.options = options, .parser = take};

bool tc_report_write(const char *path, tc_report *report, const tc_log *log,
                     const tc_report_options *o, char why[TC_VERDICT_MESSAGE]) {
    bool standard = strcmp(path, "-") == 0;
    FILE *out = standard ? stdout : fopen(path, "we");
    errno = out ? 0 : errno;
    if (out)
        report(log, o, out);
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
