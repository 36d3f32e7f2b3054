/* See report.h. */
#include "plugin-sdk/conformance/runner/report/report.h"

#include <errno.h>
#include <string.h>

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
