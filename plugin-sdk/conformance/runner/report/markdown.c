/* Markdown: what a README or an issue can hold. See report.h. */
#include "plugin-sdk/conformance/runner/report/report.h"

#include <string.h>

#include "plugin-sdk/conformance/runner/run/groups.h"
#include "plugin-sdk/conformance/runner/run/summary.h"
#include "plugin-sdk/conformance/runner/report/escape.h"
#include "plugin-sdk/conformance/runner/report/figures.h"
#include "plugin-sdk/conformance/runner/report/matrix.h"

static void put_levels(const tc_log *log, FILE *out) {
    size_t i;
    const json_t *level;
    if (!log->end)
        return;
    fputs("| level | state | why not |\n| --- | --- | --- |\n", out);
    json_array_foreach(tc_log_levels(log), i, level) {
        static const char *const members[] = {"name", "state", "terms", "why"};
        static const char *const before[] = {"| ", " | ", ": ", " | "};
        for (size_t k = 0; k < sizeof members / sizeof *members; k++) {
            const char *text = tc_json_string(level, members[k]);
            fputs(k == 2 && !*text ? "" : before[k], out);
            tc_put_markdown(out, text);
        }
        fputs(" |\n", out);
    }
    fputc('\n', out);
}

static void put_words(FILE *out, const char *before, const json_t *words) {
    size_t i;
    const json_t *word;
    json_array_foreach(words, i, word) {
        fputs(i ? ", " : before, out);
        tc_put_markdown(out, json_is_string(word) ? json_string_value(word) : "?");
    }
}

/* What the device lacks for the levels, and what each thing frees. */
static void put_needs(const tc_log *log, FILE *out) {
    size_t i;
    const json_t *need;
    json_array_foreach(json_object_get(log->end, "needs"), i, need) {
        const char *item = tc_json_string(need, "item");
        fputs(i ? "* **" : "## What is missing\n\n* **", out);
        tc_put_markdown(out, *item ? item : "another reason");
        fputs("**", out);
        put_words(out, ": frees ", json_object_get(need, "frees"));
        put_words(out, "; with others ", json_object_get(need, "with_others"));
        fputc('\n', out);
    }
    if (i)
        fputc('\n', out);
}

/* What failed and is accepted, and why. */
static void put_waived(const tc_log *log, FILE *out) {
    bool any = false;
    for (size_t i = 0; i < log->n_results; i++) {
        const tc_result *r = &log->results[i];
        if (r->status != TC_WAIVED)
            continue;
        fprintf(out, "%s* `%s`  \n  ", any ? "" : "## Waived\n\n", r->line);
        tc_put_markdown(out, r->reason ? r->reason : "");
        fputc('\n', out);
        any = true;
    }
    if (any)
        fputc('\n', out);
}

static void put_matrix(const tc_log *log, FILE *out) {
    tc_matrix m;
    if (!tc_matrix_make(log, &m) || m.n_rows == 0)
        return;
    fputs("Passed of claimed cases; `-` unsupported; **bold** where something is wrong.\n\n| "
          "operator",
          out);
    for (unsigned d = 0; d < m.n_dtypes; d++)
        fprintf(out, " | %s", m.dtypes[d]);
    fputs(" |\n| ---", out);
    for (unsigned d = 0; d < m.n_dtypes; d++)
        fputs(" | ---", out);
    fputs(" |\n", out);
    for (size_t i = 0; i < m.n_rows; i++) {
        fputs("| ", out);
        tc_put_markdown(out, m.rows[i].name);
        for (unsigned d = 0; d < m.n_dtypes; d++) {
            const tc_cell *c = &m.rows[i].cells[d];
            const char *mark = c->n_bad ? "**" : "";
            if (c->n == 0)
                fputs(" | ", out);
            else if (c->n_bad == 0 && c->n_passed == 0)
                fputs(" | -", out);
            else
                fprintf(out, " | %s%zu/%zu%s", mark, c->n_passed, c->n - c->n_unsupported, mark);
        }
        fputs(" |\n", out);
    }
    fputc('\n', out);
    tc_matrix_finish(&m);
}

static void put_figures(const tc_log *log, FILE *out) {
    bool any = false;
    for (size_t i = 0; i < log->n_results; i++) {
        const tc_result *r = &log->results[i];
        char texts[TC_N_FIGURES][TC_FIGURE];
        if (!tc_was_timed(r))
            continue;
        if (!any) {
            fputs("## Timed calls\n\n| call", out);
            for (unsigned k = 0; k < TC_N_FIGURES; k++)
                fprintf(out, " | %s", tc_figure_titles[k]);
            fputs(" |\n| ---", out);
            for (unsigned k = 0; k < TC_N_FIGURES; k++)
                fputs(" | ---:", out);
            fputs(" |\n", out);
        }
        any = true;
        fputs("| ", out);
        tc_put_markdown_code(out, tc_timed_name(r));
        tc_figure_texts(&r->figures, texts);
        for (unsigned k = 0; k < TC_N_FIGURES; k++)
            fprintf(out, " | %s", texts[k]);
        fputs(" |\n", out);
    }
    if (any)
        fputc('\n', out);
}

/* The command that makes the log, and so the report, anew. */
static void put_command(const tc_log *log, FILE *out) {
    size_t i;
    const json_t *word;
    char line[TC_COMMAND] = "";
    FILE *text = fmemopen(line, sizeof line - 1, "w");
    if (!text)
        return;
    fputs("    tenon-conform run", text);
    json_array_foreach(json_object_get(log->head, "options"), i, word) {
        fputc(' ', text);
        tc_put_shell(text, json_is_string(word) ? json_string_value(word) : "?");
    }
    fclose(text);
    for (char *c = line; *c; c++)
        fputc((unsigned char)*c < 0x20 ? '?' : *c, out);
    fputs("\n\n", out);
}

static void put_fact(FILE *out, const char *title, const char *text) {
    if (!*text)
        return;
    fputs(title, out);
    tc_put_markdown(out, text);
}

static bool is_bad(const tc_result *r) {
    return tc_status_is_bad(r->status);
}

static bool is_unsupported(const tc_result *r) {
    return r->status == TC_UNSUPPORTED;
}

/* Equal failures together, with the first lines of each. */
static void put_failures(const tc_log *log, FILE *out) {
    tc_groups groups;
    char text[TC_GROUP_TEXT], subjects[1024], command[TC_COMMAND];
    if (!tc_groups_make(&groups, log, is_bad))
        return;
    fputs(groups.n + log->n_notes ? "## Failures\n\n" : "", out);
    for (size_t i = 0; i < groups.n; i++) {
        const tc_result *r = &log->results[groups.at[i]->first];
        fprintf(out, "* %zu x ", groups.at[i]->n);
        tc_put_markdown(out, tc_group_text(r, text));
        fputs("  \n  ", out);
        tc_put_markdown(out, tc_group_subjects(groups.at[i], subjects, sizeof subjects));
        fputs("  \n  ", out);
        tc_put_markdown_code(
            out, tc_command_text(tc_log_plugin(log, "path"), r->device, r->line, command));
        fputc('\n', out);
    }
    for (size_t i = 0; i < log->n_notes; i++) {
        fputs("* note: ", out);
        tc_put_markdown(out, log->notes[i]);
        fputc('\n', out);
    }
    tc_groups_finish(&groups);
}

/* What the plugin does not claim, by reason. */
static void put_unsupported(const tc_log *log, FILE *out) {
    tc_groups groups;
    char text[TC_GROUP_TEXT], subjects[1024];
    if (!tc_groups_make(&groups, log, is_unsupported) || groups.n == 0)
        return;
    fputs("## Unsupported\n\n| cases | reason | of |\n| ---: | --- | --- |\n", out);
    for (size_t i = 0; i < groups.n; i++) {
        fprintf(out, "| %zu | ", groups.at[i]->n);
        tc_group_text(&log->results[groups.at[i]->first], text);
        tc_put_markdown(out, strncmp(text, "unsupported: ", 13) == 0 ? text + 13 : text);
        fputs(" | ", out);
        tc_put_markdown(out, tc_group_subjects(groups.at[i], subjects, sizeof subjects));
        fputs(" |\n", out);
    }
    fputc('\n', out);
    tc_groups_finish(&groups);
}

void tc_report_markdown(const tc_log *log, const tc_report_options *options, FILE *out) {
    (void)options;
    char words[512];
    size_t counts[TC_N_STATUSES];
    fputs("# ", out);
    tc_put_markdown(out, tc_log_device(log));
    tc_summary_count(log, counts);
    fputs("\n\n", out);
    put_command(log, out);
    fprintf(out, "%s\n\n", tc_summary_counts(counts, 0, words, sizeof words));
    put_fact(out, "Plugin SHA-256 ", tc_log_plugin(log, "sha256"));
    put_fact(out, ", version ", tc_log_plugin(log, "version"));
    put_fact(out, ", driver ", tc_log_plugin(log, "driver"));
    put_fact(out, ", firmware ", tc_log_plugin(log, "firmware"));
    put_fact(out, ", suite ", tc_json_string(log->head, "suite"));
    fputs(log->end ? ".\n\n" : "; the run did not come to its end.\n\n", out);
    put_levels(log, out);
    put_needs(log, out);
    put_waived(log, out);
    put_matrix(log, out);
    put_figures(log, out);
    put_unsupported(log, out);
    put_failures(log, out);
}
