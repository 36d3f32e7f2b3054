/* Products by cuBLASLt, called bare; see cuda_bare.h. */
#include "bench/cuda_bare.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <string.h>

enum { WORKSPACE = 32 << 20 };

static const float one = 1, zero = 0;

#define BLAS_FUNCTIONS(X) \
    X(cublasLtCreate) \
    X(cublasLtMatmulDescCreate) \
    X(cublasLtMatrixLayoutCreate) \
    X(cublasLtMatmulPreferenceCreate) \
    X(cublasLtMatmulPreferenceSetAttribute) \
    X(cublasLtMatmulAlgoGetHeuristic) \
    X(cublasLtMatmul)

#define MEMBER(function) __typeof__(&function) function;
#define FIND(function) \
    *(void **)&cublaslt.function = dlsym(library, #function); \
    if (!cublaslt.function) \
        return bare_fail("cuBLASLt", "it lacks " #function);

static struct {
    BLAS_FUNCTIONS(MEMBER)
    cublasLtHandle_t handle;
} cublaslt;

static bool open_blas(void) {
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so",
                                        "/usr/local/cuda/lib64/libcublasLt.so", NULL};
    void *library = bare_library("TENON_CUDA_CUBLASLT", names);
    if (!library)
        return false;
    BLAS_FUNCTIONS(FIND)
    return (bare_ok(bare.cuCtxPushCurrent_v2(bare.context), "a context") &&
            cublaslt.cublasLtCreate(&cublaslt.handle) == CUBLAS_STATUS_SUCCESS &&
            bare_ok(bare.cuCtxPopCurrent_v2(&(CUcontext){NULL}), "a context")) ||
           bare_fail("cuBLASLt", "it gives no handle");
}

const char *bare_no_blas(void) {
    return cublaslt.handle || open_blas() ? NULL : bare_why();
}

typedef struct product {
    const char *dtype;
    int64_t m, n, k;
    CUdeviceptr a, b, c;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a_layout, b_layout, c_layout;
    cublasLtMatmulHeuristicResult_t chosen;
} product;

/* cuBLASLt takes columns for rows: [m, k] by [k, n] is [n, k] by [k, m] to it. The way to compute it
 * is the one that it ranks first. */
static bool product_init(product *p) {
    cudaDataType_t type = !strcmp(p->dtype, "f32")   ? CUDA_R_32F
                          : !strcmp(p->dtype, "f16") ? CUDA_R_16F
                                                     : CUDA_R_16BF;
    uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, k = (uint64_t)p->k, room = WORKSPACE;
    cublasLtMatmulPreference_t preference;
    int found = 0;
    p->a = bare_randn(p->dtype, m * k);
    p->b = bare_randn(p->dtype, k * n);
    p->c = bare_randn(p->dtype, m * n);
    if (!p->a || !p->b || !p->c || !bare_workspace(WORKSPACE))
        return false;
    if (cublaslt.cublasLtMatmulDescCreate(&p->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F) ||
        cublaslt.cublasLtMatrixLayoutCreate(&p->a_layout, type, k, m, p->k) ||
        cublaslt.cublasLtMatrixLayoutCreate(&p->b_layout, type, n, k, p->n) ||
        cublaslt.cublasLtMatrixLayoutCreate(&p->c_layout, type, n, m, p->n) ||
        cublaslt.cublasLtMatmulPreferenceCreate(&preference) ||
        cublaslt.cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room) ||
        cublaslt.cublasLtMatmulAlgoGetHeuristic(cublaslt.handle, p->operation, p->b_layout,
                                                p->a_layout, p->c_layout, p->c_layout, preference,
                                                1, &p->chosen, &found) ||
        found < 1) {
        p->operation = NULL;
        return bare_fail("cuBLASLt", "it has no way to compute the product");
    }
    return true;
}

static bool product_once(void *user) {
    product *p = user;
    return (p->operation || product_init(p)) &&
           (cublaslt.cublasLtMatmul(cublaslt.handle, p->operation, &one, (void *)p->b, p->b_layout,
                                    (void *)p->a, p->a_layout, &zero, (void *)p->c, p->c_layout,
                                    (void *)p->c, p->c_layout, &p->chosen.algo,
                                    (void *)bare_workspace(WORKSPACE), WORKSPACE,
                                    (cudaStream_t)bare.stream) == CUBLAS_STATUS_SUCCESS ||
            bare_fail("cuBLASLt", "a product failed"));
}

double bare_launch_product(uint64_t n) {
    static product p = {.dtype = "f32", .m = BENCH_SMALL, .n = BENCH_SMALL, .k = BENCH_SMALL};
    return bare_no_blas() ? -1 : bare_timed(n, 1, product_once, &p);
}

#define PRODUCT(dtype_, name, m_, n_, k_) \
    double bare_gemm_##dtype_##_##name(uint64_t times) { \
        static product p = {.dtype = #dtype_}; \
        p.m = bench_size(m_); \
        p.n = bench_size(n_); \
        p.k = bench_size(k_); \
        return bare_no_blas() ? -1 : bare_timed(times, 0, product_once, &p); \
    }
BENCH_PRODUCTS(PRODUCT)
