/* JUnit XML, in the form that Jenkins, GitLab and GitHub's actions read. See report.h. */
#include "plugin-sdk/conformance/runner/report/report.h"

#include <string.h>

#include "plugin-sdk/conformance/runner/run/summary.h"
#include "plugin-sdk/conformance/runner/report/escape.h"

static void put_case(FILE *out, const tc_result *r, int n_class) {
    char class[TC_MAX_LINE];
    snprintf(class, sizeof class, "%.*s", n_class, r->line);
    fputs("    <testcase classname=\"", out);
    tc_put_xml(out, class);
    fputs("\" name=\"", out);
    tc_put_xml(out, r->line);
    fprintf(out, "\" time=\"%.6f\"", r->milliseconds / 1e3);
    const char *element = r->status == TC_PASS           ? NULL
                          : !tc_status_is_bad(r->status) ? "skipped"
                          : r->status == TC_ERROR        ? "error"
                                                         : "failure";
    if (!element) {
        fputs("/>\n", out);
        return;
    }
    fprintf(out, "><%s type=\"%s\" message=\"%s", element, tc_status_name(r->status),
            tc_status_name(r->status));
    if (r->requirement)
        fprintf(out, ": TNP-%u", r->requirement);
    fputs(*r->message ? ": " : "", out);
    tc_put_xml(out, r->message);
    if (r->reason) {
        fputs(" (listed: ", out);
        tc_put_xml(out, r->reason);
        fputc(')', out);
    }
    fputs("\"/></testcase>\n", out);
}

static void put_suite(const tc_log *log, const tc_report_options *options, FILE *out,
                      const char *class, size_t n_class) {
    size_t n = 0, n_failures = 0, n_errors = 0, n_skipped = 0;
    double ms = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < log->n_results; i++) {
            const tc_result *r = &log->results[i];
            if (strcspn(r->line, "/ ") != n_class || memcmp(r->line, class, n_class) != 0 ||
                !tc_report_has(options, r))
                continue;
            if (pass == 1) {
                put_case(out, r, (int)n_class);
                continue;
            }
            n++;
            ms += r->milliseconds;
            n_errors += r->status == TC_ERROR;
            n_failures += tc_status_is_bad(r->status) && r->status != TC_ERROR;
            n_skipped += !tc_status_is_bad(r->status) && r->status != TC_PASS;
        }
        if (pass == 0) {
            char name[TC_MAX_LINE];
            snprintf(name, sizeof name, "%.*s", (int)n_class, class);
            fputs("  <testsuite name=\"", out);
            tc_put_xml(out, name);
            fprintf(out,
                    "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
                    "skipped=\"%zu\" time=\"%.6f\">\n",
                    n, n_failures, n_errors, n_skipped, ms / 1e3);
        }
    }
    fputs("  </testsuite>\n", out);
}

void tc_report_junit(const tc_log *log, const tc_report_options *options, FILE *out) {
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tenon-conform ", out);
    tc_put_xml(out, tc_log_device(log));
    fputs("\">\n", out);
    for (size_t i = 0; i < log->n_results; i++) {
        const char *line = log->results[i].line;
        size_t n = strcspn(line, "/ ");
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++) /* the class is seen early, so this ends early */
            seen = strcspn(log->results[k].line, "/ ") == n &&
                   memcmp(log->results[k].line, line, n) == 0;
        if (!seen)
            put_suite(log, options, out, line, n);
    }
    /* What no case can be blamed for still fails the run. */
    if (log->n_notes) {
        fprintf(out, "  <testsuite name=\"workers\" tests=\"%zu\" errors=\"%zu\">\n", log->n_notes,
                log->n_notes);
        for (size_t i = 0; i < log->n_notes; i++) {
            fprintf(out, "    <testcase classname=\"workers\" name=\"note %zu\"><error message=\"",
                    i + 1);
            tc_put_xml(out, log->notes[i]);
            fputs("\"/></testcase>\n", out);
        }
        fputs("  </testsuite>\n", out);
    }
    fputs("</testsuites>\n", out);
}
