/* Dense matrix products for the kernels that are made of them. */
#ifndef TNI_PLUGINS_CPU_GEMM_H
#define TNI_PLUGINS_CPU_GEMM_H

#include "plugins/cpu/cpu.h"

#include <stdatomic.h>

/* A matrix: element [i, j] is data[i * row + j * column]. */
typedef struct tnc_matrix {
    char *data;
    int64_t row, column; /* strides in elements */
    tn_dtype dtype;
} tnc_matrix;

static inline char *tnc_element(const tnc_matrix *x, int64_t i, int64_t j) {
    return x->data + (i * x->row + j * x->column) * tnc_dtype_bytes(x->dtype);
}

/* C [m, n] = alpha op(A) [m, k] op(B) [k, n] + beta C, row-major; `ta` and `tb` transpose. With
 * beta 0 C is not read. Runs on the calling thread; the caller brackets its calls with
 * tnc_blas_enter and tnc_blas_leave. T is float or double, as `dtype` (F32 or F64) says. */
#define tnc_gemm TNC_ISA(tnc_gemm)
void tnc_gemm(tn_dtype dtype, bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha,
              const void *a, int64_t lda, const void *b, int64_t ldb, double beta, void *c,
              int64_t ldc);

/* C = alpha A B + beta C with plain loops: any strides, F32, F64 and integers, whose scalars are I64
 * cells. With beta 0 C is not read. */
#define tnc_gemm_loops TNC_ISA(tnc_gemm_loops)
void tnc_gemm_loops(tn_dtype dtype, int64_t m, int64_t n, int64_t k, const tn_cell *alpha,
                    const tnc_matrix *a, const tnc_matrix *b, const tn_cell *beta,
                    const tnc_matrix *c);

/* A scalar as a double. */
static inline double tnc_number(const tn_cell *cell) {
    return cell->tag == TN_CELL_F64 ? cell->v.f64 : (double)cell->v.i64;
}

/* Between these two, BLAS calls of this thread stay on this thread. */
typedef struct tnc_blas_visit {
    int n_threads; /* OpenMP's for this thread, to be put back */
    atomic_int *seat;
} tnc_blas_visit;
tnc_blas_visit tnc_blas_enter(void);
void tnc_blas_leave(tnc_blas_visit visit);

/* False in a child of a fork that nobody announced while threads were between the two. */
bool tnc_blas_works(void);

/* Of the library, with the processor it has chosen its kernels for; "" without one. */
const char *tnc_blas_version(void);
void tnc_blas_start(void);
void tnc_blas_stop(void);

/* Around a fork, see tenon/ext/fork.h; and in a child, announced or not. */
void tnc_blas_before_fork(void);
void tnc_blas_after_fork(bool in_child);
void tnc_blas_forked(void);

#endif
