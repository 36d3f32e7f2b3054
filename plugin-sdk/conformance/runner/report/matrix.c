/* See matrix.h. */
#include "plugin-sdk/conformance/runner/report/matrix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Narrow to wide, as people look for them; others follow as they come. */
static const char *const order[] = {"f32", "f64", "f16", "bf16", "bool",
                                    "u8",  "i8",  "i16", "i32",  "i64"};

const char *tc_cell_state(const tc_cell *c) {
    return c->n == 0 ? "" : c->n_bad ? "bad" : c->n_passed ? "pass" : "unsupported";
}

void tc_matrix_finish(tc_matrix *m) {
    free(m->rows);
    *m = (tc_matrix){0};
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const tc_matrix_row *)a)->name, ((const tc_matrix_row *)b)->name);
}

static tc_matrix_row *row_of(tc_matrix *m, const char *name) {
    for (size_t i = m->n_rows; i-- > 0;) /* lines of one operator stand together */
        if (strcmp(m->rows[i].name, name) == 0)
            return &m->rows[i];
    tc_matrix_row *rows = realloc(m->rows, (m->n_rows + 1) * sizeof *rows);
    if (!rows)
        return NULL;
    m->rows = rows;
    memset(&rows[m->n_rows], 0, sizeof *rows);
    snprintf(rows[m->n_rows].name, TC_MATRIX_NAME, "%s", name);
    return &rows[m->n_rows++];
}

static int column_of(tc_matrix *m, const char *dtype) {
    for (unsigned i = 0; i < m->n_dtypes; i++)
        if (strcmp(m->dtypes[i], dtype) == 0)
            return (int)i;
    if (m->n_dtypes == TC_MATRIX_DTYPES)
        return -1;
    snprintf(m->dtypes[m->n_dtypes], sizeof *m->dtypes, "%.15s", dtype);
    return (int)m->n_dtypes++;
}

static void drop_empty_columns(tc_matrix *m) {
    unsigned kept = 0;
    for (unsigned d = 0; d < m->n_dtypes; d++) {
        size_t n = 0;
        for (size_t i = 0; i < m->n_rows; i++)
            n += m->rows[i].cells[d].n;
        if (n == 0)
            continue;
        memmove(m->dtypes[kept], m->dtypes[d], sizeof *m->dtypes);
        for (size_t i = 0; i < m->n_rows; i++)
            m->rows[i].cells[kept] = m->rows[i].cells[d];
        kept++;
    }
    m->n_dtypes = kept;
}

bool tc_matrix_make(const tc_log *log, tc_matrix *out) {
    *out = (tc_matrix){0};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        column_of(out, order[i]);
    for (size_t i = 0; i < log->n_results; i++) {
        const tc_result *r = &log->results[i];
        tc_case c;
        char why[TC_MESSAGE];
        if (!tc_case_parse(r->line, &c, why) ||
            (strcmp(c.class, "kernel") != 0 && strcmp(c.class, "same") != 0 &&
             strcmp(c.class, "refuse") != 0 && strcmp(c.class, "operator") != 0))
            continue;
        const char *dtype = tc_case_get(&c, "T");
        dtype = dtype ? dtype : tc_case_get(&c, "S");
        int column = dtype ? column_of(out, dtype) : -1;
        if (column < 0)
            continue;
        tc_matrix_row *row = row_of(out, c.subject);
        if (!row) {
            tc_matrix_finish(out);
            return false;
        }
        tc_cell *cell = &row->cells[column];
        cell->n++;
        if (r->status == TC_PASS) {
            cell->n_passed++;
            if (r->measured && r->share > cell->share)
                cell->share = r->share;
        } else if (r->status == TC_UNSUPPORTED) {
            cell->n_unsupported++;
        } else {
            cell->n_bad++;
        }
    }
    drop_empty_columns(out);
    if (out->n_rows)
        qsort(out->rows, out->n_rows, sizeof *out->rows, by_name);
    return true;
}
