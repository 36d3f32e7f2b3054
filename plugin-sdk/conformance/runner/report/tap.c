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

void tc_report_tap(const tc_log *log, FILE *out) {
    fprintf(out, "TAP version 14\n1..%zu\n", log->n_results + log->n_notes);
    for (size_t i = 0; i < log->n_results; i++) {
        const tc_result *r = &log->results[i];
        bool expected = r->status == TC_XFAIL || r->status == TC_WAIVED;
        fprintf(out, "%sok %zu - ", tc_status_is_bad(r->status) || expected ? "not " : "", i + 1);
        put_text(out, r->line);
        if (expected) {
            fputs(" # TODO ", out);
            put_text(out, r->reason ? r->reason : tc_status_name(r->status));
        } else if (r->status == TC_UNSUPPORTED) {
            fputs(" # SKIP unsupported", out);
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
        fprintf(out, "not ok %zu - ", log->n_results + i + 1);
        put_text(out, log->notes[i]);
        fputc('\n', out);
    }
    if (!log->end)
        fputs("Bail out! the run did not come to its end\n", out);
}
