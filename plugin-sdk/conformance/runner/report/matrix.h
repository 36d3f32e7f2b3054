/* Operators x dtypes, from a log's cases of kernels. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_MATRIX_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_REPORT_MATRIX_H

#include "plugin-sdk/conformance/runner/run/log.h"

enum { TC_MATRIX_DTYPES = 16, TC_MATRIX_NAME = 64 };

typedef struct tc_cell {
    size_t n, n_passed, n_unsupported, n_bad;
    double share; /* the largest of passed cases, as a share of the bound */
} tc_cell;

typedef struct tc_matrix_row {
    char name[TC_MATRIX_NAME];
    tc_cell cells[TC_MATRIX_DTYPES];
} tc_matrix_row;

typedef struct tc_matrix {
    char dtypes[TC_MATRIX_DTYPES][16]; /* those that occur */
    unsigned n_dtypes;
    tc_matrix_row *rows; /* by name */
    size_t n_rows;
} tc_matrix;

/* False: no memory. */
bool tc_matrix_make(const tc_log *log, tc_matrix *out);
void tc_matrix_finish(tc_matrix *matrix);

/* "", "pass", "unsupported", "bad": nothing ran; some passed and nothing was bad; all unsupported;
 * something failed in any way, listed or not. */
const char *tc_cell_state(const tc_cell *cell);

#endif
