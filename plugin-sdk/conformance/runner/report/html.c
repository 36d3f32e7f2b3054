/* One page that needs nothing beside it: no scripts, fonts or pictures from elsewhere. What it says
 * is in the markup; the script only hides rows. See report.h.
 */
#include "plugin-sdk/conformance/runner/report/report.h"

#include <stdlib.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/run/groups.h"
#include "plugin-sdk/conformance/runner/run/summary.h"
#include "plugin-sdk/conformance/runner/report/escape.h"
#include "plugin-sdk/conformance/runner/report/figures.h"
#include "plugin-sdk/conformance/runner/report/matrix.h"
#include "plugin-sdk/conformance/runner/report/page.h"

enum { SLOWEST = 12, WORST = 12 };

static const char script[] =
    "var q=document.getElementById('q'),s=document.getElementById('s'),"
    "n=document.getElementById('n');function f(){var t=q.value.toLowerCase().split(/\\s+/),k=0;"
    "document.querySelectorAll('.case').forEach(function(c){var x=c.textContent.toLowerCase();"
    "var y=(!s.value||c.dataset.s==s.value)&&t.every(function(w){return x.indexOf(w)>=0});"
    "c.hidden=!y;k+=y});n.textContent=k+' shown'}"
    "if(q){q.oninput=f;s.onchange=f;f()}";

static void put_member(FILE *out, const char *title, const json_t *object, const char *member) {
    const char *text = tc_json_string(object, member);
    if (!*text)
        return;
    fprintf(out, "<tr><th>%s</th><td class=mono>", title);
    tc_put_xml(out, text);
    fputs("</td></tr>", out);
}

static void put_levels(FILE *out, const tc_log *log) {
    size_t i;
    const json_t *level;
    fputs("<div class=cards>", out);
    json_array_foreach(tc_log_levels(log), i, level) {
        const char *state = tc_json_string(level, "state");
        fputs("<div class=card><b>", out);
        tc_put_xml(out, tc_json_string(level, "name"));
        fprintf(out, "</b><span class=%s>",
                strcmp(state, "passed") == 0   ? "good"
                : strcmp(state, "failed") == 0 ? "bad"
                                               : "soft");
        tc_put_xml(out, state);
        fputs("</span><small>", out);
        tc_put_xml(out, tc_json_string(level, "terms"));
        tc_put_xml(out, tc_json_string(level, "why"));
        fputs("</small></div>", out);
    }
    fputs("</div>", out);
}

static void put_matrix(FILE *out, const tc_log *log) {
    tc_matrix m;
    if (!tc_matrix_make(log, &m)) {
        fputs("<p class=bad>No memory for the table of operators.</p>", out);
        return;
    }
    if (m.n_rows > 0) {
        fputs("<h2>Operators</h2><p class=soft>Passed of claimed cases. Grey: unsupported; red: "
              "something is wrong.</p><div class=scroll><table class=m><tr><th>operator</th>",
              out);
        for (unsigned d = 0; d < m.n_dtypes; d++) {
            fputs("<th>", out);
            tc_put_xml(out, m.dtypes[d]);
            fputs("</th>", out);
        }
        fputs("</tr>\n", out);
        for (size_t i = 0; i < m.n_rows; i++) {
            fputs("<tr><th class=mono>", out);
            tc_put_xml(out, m.rows[i].name);
            fputs("</th>", out);
            for (unsigned d = 0; d < m.n_dtypes; d++) {
                const tc_cell *c = &m.rows[i].cells[d];
                fprintf(out, "<td class=\"%s\"", tc_cell_state(c));
                if (c->share > 0)
                    fprintf(out, " title=\"worst error: %.3g of its bound\"", c->share);
                if (c->n == 0)
                    fputs("></td>", out);
                else if (c->n == c->n_unsupported)
                    fputs(">&ndash;</td>", out);
                else
                    fprintf(out, ">%zu/%zu</td>", c->n_passed, c->n - c->n_unsupported);
            }
            fputs("</tr>\n", out);
        }
        fputs("</table></div>", out);
    }
    tc_matrix_finish(&m);
}

/* ---- the first of an order --------------------------------------------------------------- */

static double share_of(const tc_result *r) {
    return r->measured ? r->share : 0;
}

static double time_of(const tc_result *r) {
    return r->milliseconds;
}

/* Indices of the results with the largest values, largest first. */
static size_t largest(const tc_log *log, double (*value)(const tc_result *), size_t most,
                      size_t *out) {
    size_t n = 0;
    for (size_t i = 0; i < log->n_results; i++) {
        double v = value(&log->results[i]);
        if (!(v > 0))
            continue;
        size_t at = n;
        while (at > 0 && value(&log->results[out[at - 1]]) < v)
            at--;
        if (at == most)
            continue;
        n += n < most;
        memmove(out + at + 1, out + at, (n - at - 1) * sizeof *out);
        out[at] = i;
    }
    return n;
}

static void put_worst(FILE *out, const tc_log *log) {
    size_t at[WORST], n = largest(log, share_of, WORST, at);
    if (n == 0)
        return;
    fputs("<h2>Largest errors</h2><p class=soft>As a share of what the bound allows; at most 1 "
          "passes.</p><div class=scroll><table class=n>",
          out);
    for (size_t i = 0; i < n; i++) {
        const tc_result *r = &log->results[at[i]];
        double width = r->share < 1 ? 100 * r->share : 100;
        fprintf(out,
                "<tr><td>%.3g</td><td><span class=\"bar%s\"><i style=\"width:%.0f%%\"></i></span>"
                "</td><td class=mono>",
                r->share, r->share > 1 ? " over" : "", width);
        tc_put_xml(out, r->line);
        fputs("</td></tr>\n", out);
    }
    fputs("</table></div>", out);
}

static void put_figures(FILE *out, const tc_log *log) {
    bool any = false;
    for (size_t i = 0; i < log->n_results; i++) {
        const tc_result *r = &log->results[i];
        char texts[TC_N_FIGURES][TC_FIGURE];
        if (!tc_was_timed(r))
            continue;
        if (!any) {
            fputs("<h2>Timed calls</h2><p class=soft>Median of some runs, whose outputs were "
                  "checked. "
                  "The ceiling is what copying, multiplying or the smallest call showed of this "
                  "device; what lies in caches may exceed it.</p>"
                  "<div class=scroll><table class=f><tr><th>call</th>",
                  out);
            for (unsigned k = 0; k < TC_N_FIGURES; k++)
                fprintf(out, "<th>%s</th>", tc_figure_titles[k]);
            fputs("</tr>\n", out);
        }
        any = true;
        fputs("<tr><td class=mono>", out);
        tc_put_xml(out, tc_timed_name(r));
        fputs("</td>", out);
        tc_figure_texts(&r->figures, texts);
        for (unsigned k = 0; k < TC_N_FIGURES; k++)
            fprintf(out, "<td>%s</td>", texts[k]);
        fputs("</tr>\n", out);
    }
    if (any)
        fputs("</table></div>", out);
}

static void put_slowest(FILE *out, const tc_log *log) {
    size_t at[SLOWEST], n = largest(log, time_of, SLOWEST, at);
    if (n == 0)
        return;
    fputs("<h2>Slowest cases</h2><div class=scroll><table class=n>", out);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "<tr><td>%.3g ms</td><td class=mono>", log->results[at[i]].milliseconds);
        tc_put_xml(out, log->results[at[i]].line);
        fputs("</td></tr>\n", out);
    }
    fputs("</table></div>", out);
}

static bool is_told(const tc_result *r) {
    return r->status != TC_PASS && r->status != TC_UNSUPPORTED;
}

/* One case with its message, and the command that repeats it. */
static void put_case(FILE *out, const tc_log *log, const tc_result *r) {
    char command[TC_COMMAND];
    fprintf(out, "<p><b class=%s>%s</b>", tc_status_is_bad(r->status) ? "bad" : "soft",
            tc_status_name(r->status));
    if (r->requirement)
        fprintf(out, " <span class=soft>TNP-%u %s</span>", r->requirement,
                tc_requirement_name(r->requirement));
    fputs(" ", out);
    tc_put_xml(out, r->message);
    fputs("</p>", out);
    if (r->reason) {
        fputs("<p class=soft>listed: ", out);
        tc_put_xml(out, r->reason);
        fputs("</p>", out);
    }
    fputs("<code>", out);
    tc_put_xml(out, tc_command_text(tc_log_plugin(log, "path"), r->device, r->line, command));
    fputs("</code>", out);
}

/* Equal ones are one entry: the first, and how many of what. */
static void put_groups(FILE *out, const tc_log *log) {
    tc_groups groups;
    char subjects[1024];
    if (!tc_groups_make(&groups, log, is_told)) {
        fputs("<p class=bad>No memory for the failures.</p>", out);
        return;
    }
    for (size_t i = 0; i < groups.n; i++) {
        const tc_result *r = &log->results[groups.at[i]->first];
        fprintf(out, "<div class=case data-s=%s>", tc_status_name(r->status));
        if (groups.at[i]->n > 1) {
            fprintf(out, "<p><b>%zu equal</b>: ", groups.at[i]->n);
            tc_put_xml(out, tc_group_subjects(groups.at[i], subjects, sizeof subjects));
            fputs("; the first:</p>", out);
        }
        put_case(out, log, r);
        fputs("</div>\n", out);
    }
    tc_groups_finish(&groups);
}

static bool is_unsupported(const tc_result *r) {
    return r->status == TC_UNSUPPORTED;
}

/* What the plugin does not claim, by reason. */
static void put_unsupported(FILE *out, const tc_log *log) {
    tc_groups groups;
    char subjects[1024];
    if (!tc_groups_make(&groups, log, is_unsupported) || groups.n == 0)
        return;
    fputs("<h2>Unsupported</h2><div class=scroll><table class=n>", out);
    for (size_t i = 0; i < groups.n; i++) {
        fprintf(out, "<tr><td>%zu</td><td>", groups.at[i]->n);
        tc_put_xml(out, log->results[groups.at[i]->first].message);
        fputs("</td><td class=mono>", out);
        tc_put_xml(out, tc_group_subjects(groups.at[i], subjects, sizeof subjects));
        fputs("</td></tr>\n", out);
    }
    fputs("</table></div>", out);
    tc_groups_finish(&groups);
}

static void put_failures(FILE *out, const tc_log *log) {
    size_t counts[TC_N_STATUSES], n = 0;
    tc_summary_count(log, counts);
    for (size_t i = 0; i < log->n_results; i++)
        n += is_told(&log->results[i]);
    if (n + log->n_notes == 0)
        return;
    fputs("<h2>What did not pass</h2><div class=tools><input id=q type=search "
          "placeholder=\"Filter: words of the line or message\" aria-label=Filter>"
          "<select id=s aria-label=Status><option value=\"\">every status</option>",
          out);
    for (unsigned i = 0; i < TC_N_STATUSES; i++)
        if (counts[i] && i != TC_PASS && i != TC_UNSUPPORTED)
            fprintf(out, "<option value=%s>%s (%zu)</option>", tc_status_name((tc_status)i),
                    tc_status_name((tc_status)i), counts[i]);
    fputs("</select></div><p class=soft id=n></p>\n", out);
    put_groups(out, log);
    for (size_t i = 0; i < log->n_notes; i++) {
        fputs("<div class=case data-s=note><p><b class=bad>note</b> ", out);
        tc_put_xml(out, log->notes[i]);
        fputs("</p></div>\n", out);
    }
}

void tc_report_html(const tc_log *log, const tc_report_options *options, FILE *out) {
    (void)options;
    char words[512];
    size_t counts[TC_N_STATUSES];
    const char *device = tc_log_device(log);
    tc_summary_count(log, counts);
    fputs("<!doctype html><html lang=en><meta charset=utf-8>"
          "<meta name=viewport content=\"width=device-width,initial-scale=1\"><title>",
          out);
    tc_put_xml(out, device);
    fprintf(out, ": conformance</title><style>%s</style><main><h1>", tc_page_style);
    tc_put_xml(out, device);
    fprintf(out, "</h1><p class=soft>%s%s</p>\n", tc_summary_counts(counts, 0, words, sizeof words),
            log->end ? "" : "; the run did not come to its end");
    put_levels(out, log);
    put_failures(out, log);
    put_matrix(out, log);
    put_figures(out, log);
    put_worst(out, log);
    put_slowest(out, log);
    put_unsupported(out, log);
    fputs("<h2>What ran</h2><div class=scroll><table>", out);
    const json_t *plugin = json_object_get(log->head, "plugin");
    const json_t *host = json_object_get(log->head, "host");
    put_member(out, "plugin", plugin, "path");
    put_member(out, "SHA-256", plugin, "sha256");
    put_member(out, "id", plugin, "id");
    put_member(out, "version", plugin, "version");
    put_member(out, "driver", plugin, "driver");
    put_member(out, "firmware", plugin, "firmware");
    put_member(out, "suite", log->head, "suite");
    put_member(out, "shard", log->head, "shard");
    put_member(out, "set", log->head, "set");
    put_member(out, "time", log->head, "time");
    put_member(out, "kernel", host, "kernel");
    put_member(out, "CPU", host, "cpu");
    fprintf(out, "</table></div></main><script>%s</script></html>\n", script);
}
