/* Dense matrix products for the kernels that are made of them. */
#ifndef TNI_PLUGINS_CPU_MATMUL_H
#define TNI_PLUGINS_CPU_MATMUL_H

#include "plugins/cpu/cpu.h"

#include <stdatomic.h>

/* C [m, n] = alpha op(A) [m, k] op(B) [k, n] + beta C, row-major; `ta` and `tb` transpose. With
 * beta 0 C is not read. Runs on the calling thread; the caller brackets its calls with
 * tnc_blas_enter and tnc_blas_leave. T is float or double, as `dtype` (F32 or F64) says. */
#define tnc_gemm TNC_ISA(tnc_gemm)
void tnc_gemm(tn_dtype dtype, bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha,
              const void *a, int64_t lda, const void *b, int64_t ldb, double beta, void *c,
              int64_t ldc);

/* Between these two, BLAS calls of this thread stay on this thread. */
typedef struct tnc_blas_visit {
    int n_threads; /* OpenMP's for this thread, to be put back */
    atomic_int *seat;
} tnc_blas_visit;
tnc_blas_visit tnc_blas_enter(void);
void tnc_blas_leave(tnc_blas_visit visit);

/* False in a child of a fork that nobody announced while threads were between the two. */
bool tnc_blas_works(void);

void tnc_blas_start(void);
void tnc_blas_stop(void);

/* Around a fork, see tenon/ext/fork.h; and in a child, announced or not. */
void tnc_blas_before_fork(void);
void tnc_blas_after_fork(bool in_child);
void tnc_blas_forked(void);

#endif
