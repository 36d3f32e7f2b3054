/* Matrix products of which convolutions and their derivatives are cases.
 *
 *     C[b][m][n] = alpha * sum over k of A[b][m][k] B[b][k][n] + beta * S[b][m][n]
 *
 * m and k are grids of three dimensions, n is one. A is read where it lies, B is packed first into
 * the workspace. See device/gemm.cl. */
#ifndef TNI_PLUGINS_SHARED_GPU_GEMM_H
#define TNI_PLUGINS_SHARED_GPU_GEMM_H

#include "plugins/shared/gpu/gpu.h"

/* An operand. Strides and the offset of the first element count elements, the strides of what an
 * operand does not have are not looked at. */
typedef struct gpu_operand {
    tn_memory memory;
    tn_dtype dtype;
    int64_t offset, batch, m[3], k[3], n;
} gpu_operand;

typedef struct gpu_gemm {
    int64_t n_batch, m[3], k[3], n; /* sizes, outermost first; one of k may be 0 */
    gpu_operand a;                  /* of a dtype that is computed in: f32, f64, i32, i64 */
    gpu_operand b, c;               /* of any */
    gpu_operand s;                  /* memory 0: there is none */
    int64_t alpha, beta;            /* gpu_number of c's dtype */

    /* set by gpu_gemm_prepare */
    int64_t depth;                   /* elements of k; its outermost dimension may be cut short */
    int rows, vectors, lanes, panel; /* of a tile */
    int64_t parts, part;
    uint64_t packed_at, sums_at; /* bytes into the workspace */
} gpu_gemm;

/* Where the next piece of a call's workspace begins, in bytes. */
typedef uint64_t gpu_bump;

/* A piece of so many bytes; returns where. */
uint64_t gpu_bump_take(gpu_bump *bump, uint64_t bytes);

/* Where the piece at `at` begins in the workspace, in elements. */
int64_t gpu_piece(const tn_call *call, uint64_t at, tn_dtype dtype);

/* The dtype that `dtype` is computed in, as A must have it. */
tn_dtype gpu_computed(tn_dtype dtype);

/* How long a product takes on the device, more or less, in ns: for choosing between two forms. */
double gpu_gemm_cost(const gpu_traits *traits, const gpu_gemm *p);

/* Chooses tiles and takes what is needed of the workspace. */
void gpu_gemm_prepare(const gpu_traits *traits, gpu_gemm *p, gpu_bump *bump);

/* Packs B and multiplies. */
tn_status gpu_gemm_run(const tn_call *call, const gpu_gemm *p);

/* in [sizes of out less the zeros round it] to a dense [n, c, h, w] of gpu_computed(in.dtype). */
typedef struct gpu_pad {
    tn_memory memory; /* 0: there is none to copy, and gpu_pad_run does nothing */
    tn_dtype dtype;
    int64_t offset, strides[4];
    int64_t inside[2], before[2];
    int64_t sizes[4];
    uint64_t at; /* bytes into the workspace */
} gpu_pad;

tn_status gpu_pad_run(const tn_call *call, const gpu_pad *p);

/* A kernel that is one product, whose left factor may be a copy. */
typedef struct gpu_gemm_job {
    gpu_pad pad;
    gpu_gemm product;
    gpu_bump bump; /* what it needs of the workspace */
} gpu_gemm_job;

/* Its record: GPU_KERNEL(op, dtypes, flags, gpu_gemm_job_run, GPU_GEMM_JOB(maker)). `make`
 * is given a job of zeros. */
typedef struct gpu_gemm_maker {
    void (*make)(const tn_call *call, gpu_gemm_job *out);
} gpu_gemm_maker;

#define GPU_GEMM_JOB(maker) .prepare = gpu_gemm_job_prepare, .user = (void *)&(maker)
tn_status gpu_gemm_job_run(const tn_call *call);
tn_status gpu_gemm_job_prepare(const tn_call *call, tn_plan *out);

#endif
