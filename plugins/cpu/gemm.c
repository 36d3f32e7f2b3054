/* One dense matrix product on one thread: plain loops, and BLAS where it can. */
#include "plugins/cpu/gemm.h"
#include "plugins/cpu/iterate.h"

#ifdef TNC_HAVE_OPENBLAS
#include <cblas.h>
#endif

/* ---- plain loops: any strides, any type -------------------------------------------------- */

/* n elements of row i, from column j on: where they are, or copied to `packed`. */
static const void *dense_row(const tnc_matrix *x, int64_t i, int64_t j, int64_t n, void *packed) {
    return tnc_load_run(packed, tnc_element(x, i, j), x->column * tnc_dtype_bytes(x->dtype), n,
                        x->dtype);
}

/* C = alpha A B + beta C. Rows of C in fours, columns in blocks that stay in registers. */
enum { LOOP_ROWS = 4, LOOP_COLUMNS = 64 };

#define LOOP_GEMM(sfx, T, U) \
    static void loop_gemm_##sfx(int64_t m, int64_t n, int64_t k, U alpha, const tnc_matrix *a, \
                                const tnc_matrix *b, U beta, const tnc_matrix *c) { \
        for (int64_t j0 = 0; j0 < n; j0 += LOOP_COLUMNS) \
            for (int64_t i0 = 0; i0 < m; i0 += LOOP_ROWS) { \
                int64_t columns = tnc_min(LOOP_COLUMNS, n - j0); \
                int64_t rows = tnc_min(LOOP_ROWS, m - i0); \
                U sum[LOOP_ROWS][LOOP_COLUMNS] = {{0}}; \
                T packed[LOOP_COLUMNS]; \
                for (int64_t p = 0; p < k; p++) { \
                    const T *row = dense_row(b, p, j0, columns, packed); \
                    const T *left = (const T *)tnc_element(a, i0, p); \
                    for (int64_t i = 0; i < rows; i++) { \
                        U x = (U)left[i * a->row]; \
                        for (int64_t j = 0; j < columns; j++) \
                            sum[i][j] += x * (U)row[j]; \
                    } \
                } \
                for (int64_t i = 0; i < rows; i++) { \
                    T *out = (T *)tnc_element(c, i0 + i, j0); \
                    for (int64_t j = 0; j < columns; j++) { \
                        U base = beta == 0 ? 0 : beta * (U)out[j * c->column]; \
                        out[j * c->column] = (T)(base + alpha * sum[i][j]); \
                    } \
                } \
            } \
    }
LOOP_GEMM(f32, float, float)
LOOP_GEMM(f64, double, double)
#define LOOP_GEMM_INT(sfx, T, U, DT) LOOP_GEMM(sfx, T, U)
TNC_INT_TYPES(LOOP_GEMM_INT)

void tnc_gemm_loops(tn_dtype dtype, int64_t m, int64_t n, int64_t k, const tn_cell *alpha,
                    const tnc_matrix *a, const tnc_matrix *b, const tn_cell *beta,
                    const tnc_matrix *c) {
    switch (dtype) {
    case TN_F32:
        loop_gemm_f32(m, n, k, (float)tnc_number(alpha), a, b, (float)tnc_number(beta), c);
        return;
    case TN_F64:
        loop_gemm_f64(m, n, k, tnc_number(alpha), a, b, tnc_number(beta), c);
        return;
#define LOOP_CASE(sfx, T, U, DT) \
    case TN_##DT: \
        loop_gemm_##sfx(m, n, k, (U)alpha->v.i64, a, b, (U)beta->v.i64, c); \
        return;
        TNC_INT_TYPES(LOOP_CASE)
    default:
        return;
    }
}

/* ---- BLAS -------------------------------------------------------------------------------- */

#ifdef TNC_HAVE_OPENBLAS
#define GEMM_BLAS(sfx, T, letter) \
    static void blas_gemm_##sfx(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, \
                                const T *a, int64_t lda, const T *b, int64_t ldb, T beta, T *c, \
                                int64_t ldc) { \
        if (n == 1) { \
            cblas_##letter##gemv(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, (int)(ta ? k : m), \
                                 (int)(ta ? m : k), alpha, a, (int)lda, b, tb ? 1 : (int)ldb, \
                                 beta, c, (int)ldc); \
        } else if (m == 1) { \
            cblas_##letter##gemv(CblasRowMajor, tb ? CblasNoTrans : CblasTrans, (int)(tb ? n : k), \
                                 (int)(tb ? k : n), alpha, b, (int)ldb, a, ta ? (int)lda : 1, \
                                 beta, c, 1); \
        } else { \
            cblas_##letter##gemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, \
                                 tb ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, alpha, a, \
                                 (int)lda, b, (int)ldb, beta, c, (int)ldc); \
        } \
    }
GEMM_BLAS(f32, float, s)
GEMM_BLAS(f64, double, d)
#endif

void tnc_gemm(tn_dtype dtype, bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha,
              const void *a, int64_t lda, const void *b, int64_t ldb, double beta, void *c,
              int64_t ldc) {
#ifdef TNC_HAVE_OPENBLAS
    if (dtype == TN_F32 && tnc_blas_works()) {
        blas_gemm_f32(ta, tb, m, n, k, (float)alpha, a, lda, b, ldb, (float)beta, c, ldc);
        return;
    }
    if (dtype == TN_F64 && tnc_blas_works()) {
        blas_gemm_f64(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        return;
    }
#endif
    tnc_matrix left = {(char *)(uintptr_t)a, ta ? 1 : lda, ta ? lda : 1, dtype};
    tnc_matrix right = {(char *)(uintptr_t)b, tb ? 1 : ldb, tb ? ldb : 1, dtype};
    tnc_matrix out = {c, ldc, 1, dtype};
    tn_cell factor = {.tag = TN_CELL_F64, .v.f64 = alpha},
            share = {.tag = TN_CELL_F64, .v.f64 = beta};
    tnc_gemm_loops(dtype, m, n, k, &factor, &left, &right, &share, &out);
}
