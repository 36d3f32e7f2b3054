/* A product as cuBLASLt is told of it. */
#include "plugins/cuda/blaslt.h"

#include <dlfcn.h>

/* What any algorithm may take; what the chosen one takes is less, and often nothing. */
enum { MAX_WORKSPACE = 32 << 20 };

const char *cuda_blaslt_find(void *library, cuda_blaslt_functions *out) {
#define FIND(function) \
    *(void **)&out->function = dlsym(library, #function); \
    if (!out->function) \
        return #function;
    CUDA_BLASLT_FUNCTIONS(FIND)
#undef FIND
    return NULL;
}

static cudaDataType_t type_of(int64_t dtype) {
    return dtype == TN_F64   ? CUDA_R_64F
           : dtype == TN_F32 ? CUDA_R_32F
           : dtype == TN_F16 ? CUDA_R_16F
                             : CUDA_R_16BF;
}

/* ---- descriptors ------------------------------------------------------------------------- */

#define TRY(call) \
    do { \
        cublasStatus_t status_ = (call); \
        if (status_ != CUBLAS_STATUS_SUCCESS) \
            return status_; \
    } while (0)

static cublasStatus_t describe_operation(const cuda_blaslt_functions *f, bool tf32,
                                         cuda_blaslt_plan *plan) {
    const cuda_product *p = &plan->product;
    bool is_f64 = p->dtype == TN_F64;
    TRY(f->cublasLtMatmulDescCreate(&plan->operation,
                                    is_f64                       ? CUBLAS_COMPUTE_64F
                                    : p->dtype == TN_F32 && tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                 : CUBLAS_COMPUTE_32F,
                                    is_f64 ? CUDA_R_64F : CUDA_R_32F));
    int32_t a = p->a.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
            b = p->b.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    TRY(f->cublasLtMatmulDescSetAttribute(plan->operation, CUBLASLT_MATMUL_DESC_TRANSA, &a,
                                          sizeof a));
    TRY(f->cublasLtMatmulDescSetAttribute(plan->operation, CUBLASLT_MATMUL_DESC_TRANSB, &b,
                                          sizeof b));
    if (p->adds != CUDA_ADDS_BIAS || plan->copies_bias)
        return CUBLAS_STATUS_SUCCESS;
    /* What the algorithm is chosen by is the alignment, all that calls have in common. */
    uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    int32_t type = type_of(p->dtype);
    plan->bias = (uint64_t)p->c.alignment;
    TRY(f->cublasLtMatmulDescSetAttribute(plan->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                          sizeof epilogue));
    TRY(f->cublasLtMatmulDescSetAttribute(plan->operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                                          &type, sizeof type));
    return f->cublasLtMatmulDescSetAttribute(plan->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                             &plan->bias, sizeof plan->bias);
}

static cublasStatus_t describe_matrix(const cuda_blaslt_functions *f, const cuda_product *p,
                                      const cuda_matrix *matrix, int64_t rows, int64_t columns,
                                      cublasLtMatrixLayout_t *out) {
    bool turned = matrix->is_transposed;
    TRY(f->cublasLtMatrixLayoutCreate(out, type_of(p->dtype), (uint64_t)(turned ? columns : rows),
                                      (uint64_t)(turned ? rows : columns), matrix->ld));
    if (p->batch == 1)
        return CUBLAS_STATUS_SUCCESS;
    int32_t batch = (int32_t)p->batch;
    TRY(f->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                            sizeof batch));
    return f->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                               &matrix->step, sizeof matrix->step);
}

cublasStatus_t cuda_blaslt_describe(const cuda_blaslt_functions *f, bool tf32,
                                    cuda_blaslt_plan *plan) {
    const cuda_product *p = &plan->product;
    TRY(describe_operation(f, tf32, plan));
    TRY(describe_matrix(f, p, &p->a, p->m, p->k, &plan->a));
    TRY(describe_matrix(f, p, &p->b, p->k, p->n, &plan->b));
    TRY(describe_matrix(f, p, &p->d, p->m, p->n, &plan->d));
    if (p->adds == CUDA_ADDS_MATRIX)
        return describe_matrix(f, p, &p->c, p->m, p->n, &plan->c);
    plan->c = plan->d;
    return CUBLAS_STATUS_SUCCESS;
}

void cuda_blaslt_forget(const cuda_blaslt_functions *f, cuda_blaslt_plan *plan) {
    if (plan->c && plan->c != plan->d)
        f->cublasLtMatrixLayoutDestroy(plan->c);
    if (plan->d)
        f->cublasLtMatrixLayoutDestroy(plan->d);
    if (plan->b)
        f->cublasLtMatrixLayoutDestroy(plan->b);
    if (plan->a)
        f->cublasLtMatrixLayoutDestroy(plan->a);
    if (plan->operation)
        f->cublasLtMatmulDescDestroy(plan->operation);
}

/* ---- the algorithm ----------------------------------------------------------------------- */

/* Sums that are split are added up in f32, or f64, and always in the same order: a scheme that
 * works in the output, in its type and in the order in which parts are done, is not among them. */
static cublasStatus_t prefer(const cuda_blaslt_functions *f, const cuda_product *p,
                             cublasLtMatmulPreference_t preference) {
    uint64_t room = MAX_WORKSPACE;
    uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const cuda_matrix *matrices[] = {&p->a, &p->b, p->adds == CUDA_ADDS_MATRIX ? &p->c : &p->d,
                                     &p->d};
    static const cublasLtMatmulPreferenceAttributes_t names[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    TRY(f->cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room));
    TRY(f->cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes));
    for (int i = 0; i < 4; i++) {
        uint32_t alignment = (uint32_t)matrices[i]->alignment;
        TRY(f->cublasLtMatmulPreferenceSetAttribute(preference, names[i], &alignment,
                                                    sizeof alignment));
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cuda_blaslt_choose(const cuda_blaslt_functions *f, cublasLtHandle_t handle,
                                  cuda_blaslt_plan *plan) {
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t best = {.state = CUBLAS_STATUS_NOT_SUPPORTED};
    int n = 0;
    TRY(f->cublasLtMatmulPreferenceCreate(&preference));
    cublasStatus_t status = prefer(f, &plan->product, preference);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = f->cublasLtMatmulAlgoGetHeuristic(handle, plan->operation, plan->a, plan->b,
                                                   plan->c, plan->d, preference, 1, &best, &n);
    f->cublasLtMatmulPreferenceDestroy(preference);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (n == 0 || best.workspaceSize > MAX_WORKSPACE)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    plan->algorithm = best.algo;
    plan->workspace_bytes = best.workspaceSize;
    return best.state;
}

/* Most of its algorithms that cut sums (of H100s all but those that are Hopper's own) add the parts up,
 * store the sum, and add the bias to what is stored. Not so a matrix C. */
bool cuda_blaslt_rounds_twice(const cuda_blaslt_functions *f, const cuda_blaslt_plan *plan) {
    const cuda_product *p = &plan->product;
    uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    size_t bytes = 0;
    if (p->adds != CUDA_ADDS_BIAS || plan->copies_bias || p->dtype == TN_F32 || p->dtype == TN_F64)
        return false;
    cublasStatus_t status = f->cublasLtMatmulAlgoConfigGetAttribute(
        &plan->algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme, &bytes);
    return status != CUBLAS_STATUS_SUCCESS || scheme != CUBLASLT_REDUCTION_SCHEME_NONE;
}
