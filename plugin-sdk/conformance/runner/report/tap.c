/* TAP version 14 (https://testanything.org/tap-version-14-specification.html). See report.h. */
#include "plugin-sdk/conformance/runner/report/report.h"

#include "plugin-sdk/conformance/json.h"
#include "plugin-sdk/conformance/runner/run/summary.h"

/* Descriptions: # would begin a directive, \ escapes. */
static void put_text(FILE *out, const char *text) {
    for (; *text; text++) {
        if (*text == '#' || *text == '\\')
            fputc('\\', out);
        fputc((unsigned char)*text < 0x20 ? ' ' : *text, out);
    }
}

void tc_report_tap(const tc_log *log, const tc_report_options *options, FILE *out) {
    size_t n = log->n_notes, number = 0;
    for (size_t i = 0; i < log->n_results; i++)
        n += tc_report_has(options, &log->results[i]);
    fprintf(out, "TAP version 14\n1..%zu\n", n);
    for (size_t i = 0; i < log->n_results; i++) {
        const tc_result *r = &log->results[i];
        bool expected = r->status == TC_XFAIL || r->status == TC_WAIVED;
        if (!tc_report_has(options, r))
            continue;
        fprintf(out, "%sok %zu - ", tc_status_is_bad(r->status) || expected ? "not " : "",
                ++number);
        put_text(out, r->line);
        if (expected) {
            fputs(" # TODO ", out);
            put_text(out, r->reason ? r->reason : tc_status_name(r->status));
        } else if (r->status == TC_UNSUPPORTED) {
            fputs(*r->message ? " # SKIP unsupported: " : " # SKIP unsupported", out);
            put_text(out, r->message);
        }
        fputc('\n', out);
        if (tc_status_is_bad(r->status)) {
            fprintf(out, "  ---\n  status: %s\n", tc_status_name(r->status));
            if (r->requirement)
                fprintf(out, "  requirement: TNP-%u\n", r->requirement);
            fputs("  message: ", out);
            tc_json_put(out, r->message); /* JSON's strings are YAML's, too */
            fputs("\n  ...\n", out);
        }
    }
    for (size_t i = 0; i < log->n_notes; i++) {
        fprintf(out, "not ok %zu - ", ++number);
        put_text(out, log->notes[i]);
        fputc('\n', out);
    }
    if (!log->end)
        fputs("Bail out! the run did not come to its end\n", out);
}
