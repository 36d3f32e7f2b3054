/* cuBLASLt's functions, found at run time, and what is made of them for a product. */
#ifndef TNI_PLUGINS_CUDA_BLASLT_H
#define TNI_PLUGINS_CUDA_BLASLT_H

#include "plugins/cuda/plans.h"
#include "plugins/cuda/product.h"

#include <cublasLt.h>

#define CUDA_BLASLT_FUNCTIONS(X) \
    X(cublasLtGetVersion) \
    X(cublasLtGetStatusName) \
    X(cublasLtCreate) \
    X(cublasLtDestroy) \
    X(cublasLtMatmulDescCreate) \
    X(cublasLtMatmulDescDestroy) \
    X(cublasLtMatmulDescSetAttribute) \
    X(cublasLtMatrixLayoutCreate) \
    X(cublasLtMatrixLayoutDestroy) \
    X(cublasLtMatrixLayoutSetAttribute) \
    X(cublasLtMatmulPreferenceCreate) \
    X(cublasLtMatmulPreferenceDestroy) \
    X(cublasLtMatmulPreferenceSetAttribute) \
    X(cublasLtMatmulAlgoGetHeuristic) \
    X(cublasLtMatmulAlgoConfigGetAttribute) \
    X(cublasLtMatmul)

typedef struct cuda_blaslt_functions {
#define CUDA_BLASLT_MEMBER(function) __typeof__(&function) function;
    CUDA_BLASLT_FUNCTIONS(CUDA_BLASLT_MEMBER)
#undef CUDA_BLASLT_MEMBER
} cuda_blaslt_functions;

typedef struct cuda_blaslt_plan {
    cuda_plan base;
    cuda_product product; /* the key */
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, c, d; /* c: d's, unless a matrix is added */
    cublasLtMatmulAlgo_t algorithm;
    uint64_t workspace_bytes;
    bool copies_bias;     /* it is copied to D first, and added as a matrix that is there */
    pthread_mutex_t lock; /* with a bias: guards `bias` and what `operation` says of it */
    uint64_t bias;
} cuda_blaslt_plan;

/* Finds the functions in `library`; the name of one that is missing, or NULL. */
const char *cuda_blaslt_find(void *library, cuda_blaslt_functions *out);

/* Describes `plan->product` to the library; what was made before an error is in the plan. */
cublasStatus_t cuda_blaslt_describe(const cuda_blaslt_functions *f, bool tf32,
                                    cuda_blaslt_plan *plan);

/* Lets it choose how to compute it; CUBLAS_STATUS_NOT_SUPPORTED where it does not know. */
cublasStatus_t cuda_blaslt_choose(const cuda_blaslt_functions *f, cublasLtHandle_t handle,
                                  cuda_blaslt_plan *plan);

/* Would what it has chosen round the product of halves before it adds the bias? */
bool cuda_blaslt_rounds_twice(const cuda_blaslt_functions *f, const cuda_blaslt_plan *plan);

/* Frees what describing made. */
void cuda_blaslt_forget(const cuda_blaslt_functions *f, cuda_blaslt_plan *plan);

#endif
