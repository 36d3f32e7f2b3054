/* See trend.h. */
#include "plugin-sdk/conformance/runner/report/trend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/report/escape.h"
#include "plugin-sdk/conformance/runner/report/figures.h"
#include "plugin-sdk/conformance/runner/report/page.h"
#include "plugin-sdk/conformance/runner/run/summary.h"

/* ---- tables, in either form -------------------------------------------------------------- */

typedef struct fact fact;
typedef struct page {
    const tc_trend_run *runs;
    size_t n;
    bool html;
    FILE *out;
    bool open;        /* a table is */
    const fact *name; /* what each run is called by beside its number; or NULL */
} page;

/* What a head says of its run. */
struct fact {
    const char *title;
    const char *(*find)(const tc_log *log, const char *member);
    const char *member;
    bool is_name; /* a run may be called by it */
};

static void put(const page *p, const char *text) {
    if (p->html)
        tc_put_xml(p->out, text);
    else
        tc_put_markdown(p->out, text);
}

static void end_table(page *p) {
    if (p->open)
        fputs(p->html ? "</table></div>\n" : "\n", p->out);
    p->open = false;
}

/* The head of a run's column. */
static void put_run(const page *p, size_t i) {
    fprintf(p->out, "%s%zu", p->html ? "<th>" : " | ", i + 1);
    if (p->name) {
        fputs(": ", p->out);
        put(p, p->name->find(&p->runs[i].log, p->name->member));
    }
    fputs(p->html ? "</th>" : "", p->out);
}

/* A heading, a sentence, and the head of a table: the first column's title and the runs. */
static void begin_table(page *p, const char *title, const char *about, const char *first) {
    end_table(p);
    p->open = true;
    if (p->html) {
        fprintf(p->out, "<h2>%s</h2>", title);
        if (*about)
            fprintf(p->out, "<p class=soft>%s</p>", about);
        fprintf(p->out, "<div class=scroll><table><tr><th>%s</th>", first);
        for (size_t i = 0; i < p->n; i++)
            put_run(p, i);
        fputs("</tr>\n", p->out);
        return;
    }
    fprintf(p->out, "## %s\n\n%s%s| %s", title, about, *about ? "\n\n" : "", first);
    for (size_t i = 0; i < p->n; i++)
        put_run(p, i);
    fputs(" |\n| ---", p->out);
    for (size_t i = 0; i < p->n; i++)
        fputs(" | ---", p->out);
    fputs(" |\n", p->out);
}

static void begin_row(const page *p, const char *name) {
    fputs(p->html ? "<tr><th>" : "| ", p->out);
    put(p, name);
    fputs(p->html ? "</th>" : "", p->out);
}

/* Of a call. */
static void begin_code_row(const page *p, const char *name) {
    fputs(p->html ? "<tr><th class=mono>" : "| ", p->out);
    if (p->html)
        tc_put_xml(p->out, name);
    else
        tc_put_markdown_code(p->out, name);
    fputs(p->html ? "</th>" : "", p->out);
}

/* What is good or neither, and what is bad. */
static void put_cell(const page *p, const char *text, const char *bad) {
    fputs(p->html ? "<td>" : " | ", p->out);
    put(p, text);
    if (*bad) {
        fprintf(p->out, "%s%s", *text ? " " : "", p->html ? "<b class=bad>" : "**");
        put(p, bad);
        fputs(p->html ? "</b>" : "**", p->out);
    }
    fputs(p->html ? "</td>" : "", p->out);
}

static void end_row(const page *p) {
    fputs(p->html ? "</tr>\n" : " |\n", p->out);
}

/* ---- what ran ---------------------------------------------------------------------------- */

static const char *suite_of(const tc_log *log, const char *member) {
    return tc_json_string(log->head, member);
}

static const char *device_of(const tc_log *log, const char *member) {
    (void)member;
    return tc_log_device(log);
}

static const char *host_of(const tc_log *log, const char *member) {
    return tc_json_string(json_object_get(log->head, "host"), member);
}

/* All of a set, or how much of it. */
static const char *part_of(const tc_log *log, const char *member) {
    (void)member;
    size_t i;
    const json_t *word;
    const char *shard = suite_of(log, "shard");
    if (*shard)
        return shard;
    if (json_is_true(json_object_get(log->head, "part")))
        return "what was named";
    json_array_foreach(json_object_get(log->head, "options"), i, word) {
        const char *text = json_is_string(word) ? json_string_value(word) : "";
        if (strncmp(text, "--level", 7) == 0)
            return "what a level asks for";
    }
    return "all";
}

static const fact facts[] = {
    {"device", device_of, "", true},
    {"plugin", tc_log_plugin, "id", true},
    {"version", tc_log_plugin, "version", true},
    {"SHA-256", tc_log_plugin, "sha256", false},
    {"driver", tc_log_plugin, "driver", false},
    {"firmware", tc_log_plugin, "firmware", true},
    {"suite", suite_of, "suite", false},
    {"set", suite_of, "set", false},
    {"of it", part_of, "", false},
    {"time", suite_of, "time", false},
    {"CPU", host_of, "cpu", false},
};

static void put_facts(page *p) {
    begin_table(p, "Runs", "", "run");
    for (size_t f = 0; f < sizeof facts / sizeof *facts; f++) {
        bool any = false;
        for (size_t i = 0; i < p->n; i++)
            any |= *facts[f].find(&p->runs[i].log, facts[f].member) != '\0';
        if (!any)
            continue;
        begin_row(p, facts[f].title);
        for (size_t i = 0; i < p->n; i++)
            put_cell(p, facts[f].find(&p->runs[i].log, facts[f].member), "");
        end_row(p);
    }
}

/* Does it tell every run from every other? */
static bool is_telling(const page *p, const fact *f) {
    for (size_t i = 0; i < p->n; i++) {
        const char *text = f->find(&p->runs[i].log, f->member);
        if (*text == '\0')
            return false;
        for (size_t k = 0; k < i; k++)
            if (strcmp(text, f->find(&p->runs[k].log, f->member)) == 0)
                return false;
    }
    return true;
}

static const fact *find_name(const page *p) {
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (facts[i].is_name && is_telling(p, &facts[i]))
            return &facts[i];
    return NULL;
}

/* ---- levels and counts ------------------------------------------------------------------- */

static const json_t *level_of(const tc_log *log, const char *name) {
    size_t i;
    const json_t *level;
    json_array_foreach(tc_log_levels(log), i,
                       level) if (strcmp(tc_json_string(level, "name"), name) == 0) return level;
    return NULL;
}

static bool has_level_before(const page *p, size_t run, const char *name) {
    for (size_t i = 0; i < run; i++)
        if (level_of(&p->runs[i].log, name))
            return true;
    return false;
}

static void put_level(page *p, const char *name) {
    begin_row(p, name);
    for (size_t i = 0; i < p->n; i++) {
        const json_t *level = level_of(&p->runs[i].log, name);
        const char *state = level ? tc_json_string(level, "state") : "";
        char text[512];
        const char *terms = level ? tc_json_string(level, "terms") : "";
        snprintf(text, sizeof text, "%s%s%s", state, *terms ? ": " : "", terms);
        bool failed = strcmp(state, "failed") == 0;
        put_cell(p, failed ? "" : *state ? text : "not run", failed ? text : "");
    }
    end_row(p);
}

/* By the first run that has each. */
static void put_levels(page *p) {
    begin_table(p, "Levels", "", "level");
    for (size_t i = 0; i < p->n; i++) {
        size_t k;
        const json_t *level;
        json_array_foreach(tc_log_levels(&p->runs[i].log), k, level) {
            const char *name = tc_json_string(level, "name");
            if (!has_level_before(p, i, name))
                put_level(p, name);
        }
    }
    begin_row(p, "cases");
    for (size_t i = 0; i < p->n; i++) {
        const tc_log *log = &p->runs[i].log;
        char words[512];
        size_t counts[TC_N_STATUSES];
        tc_summary_count(log, counts);
        put_cell(p, tc_summary_counts(counts, 0, words, sizeof words),
                 log->end ? "" : "did not come to its end");
    }
    end_row(p);
}

/* ---- operators --------------------------------------------------------------------------- */

enum { DTYPES = 16 * (TC_MATRIX_DTYPES + 1) }; /* characters */

static const tc_matrix_row *row_of(const tc_matrix *m, const char *name) {
    size_t low = 0, high = m->n_rows;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(m->rows[middle].name, name);
        if (order == 0)
            return &m->rows[middle];
        *(order < 0 ? &low : &high) = order < 0 ? middle + 1 : middle;
    }
    return NULL;
}

/* Its dtypes in that state, as "f32 f64". Returns out. */
static char *find_dtypes(const tc_matrix *m, const tc_matrix_row *row, const char *state,
                         char out[DTYPES]) {
    size_t n = 0;
    *out = '\0';
    for (unsigned d = 0; d < m->n_dtypes; d++)
        if (strcmp(tc_cell_state(&row->cells[d]), state) == 0)
            n += (size_t)snprintf(out + n, DTYPES - n, "%s%s", n ? " " : "", m->dtypes[d]);
    return out;
}

/* Do those that tried it? */
static bool differ(const page *p, const char *name) {
    char passed[2][DTYPES], bad[2][DTYPES];
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const tc_matrix *m = &p->runs[i].matrix;
        const tc_matrix_row *row = row_of(m, name);
        if (!row)
            continue;
        find_dtypes(m, row, "pass", passed[n > 0]);
        find_dtypes(m, row, "bad", bad[n > 0]);
        if (n++ > 0 && (strcmp(passed[0], passed[1]) != 0 || strcmp(bad[0], bad[1]) != 0))
            return true;
    }
    return false;
}

/* Names of all runs in order, each once. Returns the next behind `last`, NULL behind the last. */
static const char *next_name(const page *p, const char *last) {
    const char *next = NULL;
    for (size_t i = 0; i < p->n; i++) {
        const tc_matrix *m = &p->runs[i].matrix;
        size_t r = 0;
        while (r < m->n_rows && strcmp(m->rows[r].name, last) <= 0)
            r++;
        if (r < m->n_rows && (!next || strcmp(m->rows[r].name, next) < 0))
            next = m->rows[r].name;
    }
    return next;
}

static void put_operator(page *p, const char *name) {
    begin_row(p, name);
    for (size_t i = 0; i < p->n; i++) {
        const tc_matrix *m = &p->runs[i].matrix;
        const tc_matrix_row *row = row_of(m, name);
        char passed[DTYPES] = "", bad[DTYPES] = "";
        if (row) {
            find_dtypes(m, row, "pass", passed);
            find_dtypes(m, row, "bad", bad);
        }
        put_cell(p, row && !*passed && !*bad ? "none" : passed, bad);
    }
    end_row(p);
}

static void put_operators(page *p) {
    bool any = false;
    for (const char *name = next_name(p, ""); name; name = next_name(p, name)) {
        if (!differ(p, name))
            continue;
        if (!any)
            begin_table(p, "Operators in which they differ",
                        p->html ? "Dtypes that pass; red where something is wrong."
                                : "Dtypes that pass; **bold** where something is wrong.",
                        "operator");
        any = true;
        put_operator(p, name);
    }
}

/* ---- times ------------------------------------------------------------------------------- */

static const tc_result *timed(const tc_log *log, const char *line) {
    const tc_result *r = tc_log_find(log, line);
    return r && tc_was_timed(r) ? r : NULL;
}

/* Beside the first run that has it. */
static void put_time(page *p, const char *line, double *products, size_t *counts) {
    const tc_result *base = NULL;
    bool of_first = timed(&p->runs[0].log, line) != NULL;
    begin_code_row(p, tc_timed_name(&(tc_result){.line = (char *)line}));
    for (size_t i = 0; i < p->n; i++) {
        const tc_result *r = timed(&p->runs[i].log, line);
        char took[TC_FIGURE], text[TC_FIGURE + 32] = "";
        if (r && !base) {
            snprintf(text, sizeof text, "%s", tc_duration_text(r->figures.ns, took));
            base = r;
        } else if (r) {
            bool within;
            double ratio = tc_times_as_long(&base->figures, &r->figures, &within);
            snprintf(text, sizeof text, "%s, x %.3g%s", tc_duration_text(r->figures.ns, took),
                     ratio, within ? ", within spread" : "");
            products[i] += of_first ? log(ratio) : 0;
            counts[i] += of_first;
        }
        put_cell(p, text, "");
    }
    end_row(p);
}

static bool was_told(const page *p, size_t run, const char *line) {
    for (size_t i = 0; i < run; i++)
        if (timed(&p->runs[i].log, line))
            return true;
    return false;
}

static size_t runs_that_timed(const page *p, const char *line) {
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        n += timed(&p->runs[i].log, line) != NULL;
    return n;
}

static void put_times(page *p) {
    double *products = calloc(p->n, sizeof *products); /* of the ratios, as logarithms */
    size_t *counts = calloc(p->n, sizeof *counts);
    bool any = false;
    for (size_t i = 0; i < p->n && products && counts; i++)
        for (size_t k = 0; k < p->runs[i].log.n_results; k++) {
            const tc_result *r = &p->runs[i].log.results[k];
            if (!tc_was_timed(r) || was_told(p, i, r->line) || runs_that_timed(p, r->line) < 2)
                continue;
            if (!any)
                begin_table(
                    p, "Timed calls",
                    "A call's time, and how many times that of the first run that has it: within "
                    "spread, where the runs of either log differ among themselves by as much.",
                    "call");
            any = true;
            put_time(p, r->line, products, counts);
        }
    bool has_mean = false;
    for (size_t i = 0; any && i < p->n; i++)
        has_mean |= counts[i] > 0;
    if (has_mean) {
        begin_row(p, "mean of those that run 1 has");
        for (size_t i = 0; i < p->n; i++) {
            char text[48] = "";
            if (counts[i])
                snprintf(text, sizeof text, "x %.3g of %zu calls",
                         exp(products[i] / (double)counts[i]), counts[i]);
            put_cell(p, text, "");
        }
        end_row(p);
    }
    free(products);
    free(counts);
}

void tc_trend_write(const tc_trend_run *runs, size_t n, tc_trend_form form, FILE *out) {
    page p = {.runs = runs, .n = n, .html = form == TC_TREND_HTML, .out = out};
    if (p.html)
        fprintf(out,
                "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "
                "content=\"width=device-width,initial-scale=1\"><title>Conformance of %zu "
                "runs</title><style>%s</style><main><h1>Conformance of %zu runs</h1>\n",
                n, tc_page_style, n);
    else
        fprintf(out, "# Conformance of %zu runs\n\n", n);
    put_facts(&p);
    p.name = find_name(&p);
    put_levels(&p);
    put_operators(&p);
    put_times(&p);
    end_table(&p);
    if (p.html)
        fputs("</main></html>\n", out);
}
