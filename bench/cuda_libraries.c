/* Products by cuBLASLt and convolutions by cuDNN, called bare; see cuda_bare.h. */
#include "bench/cuda_bare.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { WORKSPACE = 32 << 20 };

static const float one = 1, zero = 0;

static bool is_f32(const char *dtype) {
    return !strcmp(dtype, "f32");
}

static bool is_f16(const char *dtype) {
    return !strcmp(dtype, "f16");
}

#define MEMBER(function) __typeof__(&function) function;
/* Finds `function` in `library` for the table `into`; else returns false with the reason. */
#define FIND(into, library, function) \
    *(void **)&into.function = dlsym(library, #function); \
    if (!into.function) \
        return bare_fail(#into, "it lacks " #function);

static CUdeviceptr workspace(size_t bytes) {
    static CUdeviceptr p;
    static size_t there;
    if (bytes > there) {
        if (p)
            bare.cuMemFree_v2(p);
        there = bare_ok(bare.cuMemAlloc_v2(&p, bytes), "a workspace") ? bytes : 0;
    }
    return there ? p : 0;
}

/* ---- cuBLASLt ---------------------------------------------------------------------------- */

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

#define BLAS_FUNCTIONS(X) \
    X(cublasLtCreate) \
    X(cublasLtMatmulDescCreate) \
    X(cublasLtMatrixLayoutCreate) \
    X(cublasLtMatmulPreferenceCreate) \
    X(cublasLtMatmulPreferenceSetAttribute) \
    X(cublasLtMatmulAlgoGetHeuristic) \
    X(cublasLtMatmul)

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
#define FIND_BLAS(function) FIND(cublaslt, library, function)
    BLAS_FUNCTIONS(FIND_BLAS)
    return cublaslt.cublasLtCreate(&cublaslt.handle) == CUBLAS_STATUS_SUCCESS ||
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
    cudaDataType_t type = is_f32(p->dtype)   ? CUDA_R_32F
                          : is_f16(p->dtype) ? CUDA_R_16F
                                             : CUDA_R_16BF;
    uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, k = (uint64_t)p->k, room = WORKSPACE;
    cublasLtMatmulPreference_t preference;
    int found = 0;
    p->a = bare_randn(p->dtype, m * k);
    p->b = bare_randn(p->dtype, k * n);
    p->c = bare_randn(p->dtype, m * n);
    if (!p->a || !p->b || !p->c || !workspace(WORKSPACE))
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
                                    (void *)workspace(WORKSPACE), WORKSPACE,
                                    (cudaStream_t)bare.stream) == CUBLAS_STATUS_SUCCESS ||
            bare_fail("cuBLASLt", "a product failed"));
}

#define PRODUCT(dtype_, name, m_, n_, k_) \
    double bare_gemm_##dtype_##_##name(uint64_t times) { \
        static product p = {.dtype = #dtype_}; \
        p.m = bench_size(m_); \
        p.n = bench_size(n_); \
        p.k = bench_size(k_); \
        return bare_no_blas() ? -1 : bare_timed(times, false, product_once, &p); \
    }
#else

const char *bare_no_blas(void) {
    return "built without cublasLt.h";
}

#define PRODUCT(dtype, name, m, n, k) \
    double bare_gemm_##dtype##_##name(uint64_t times) { \
        return -1; \
    }
#endif
BENCH_PRODUCTS(PRODUCT)

/* ---- cuDNN ------------------------------------------------------------------------------- */

#if __has_include(<cudnn.h>)
#include <cudnn.h>

#define DNN_FUNCTIONS(X) \
    X(cudnnCreate) \
    X(cudnnSetStream) \
    X(cudnnCreateTensorDescriptor) \
    X(cudnnSetTensor4dDescriptor) \
    X(cudnnCreateFilterDescriptor) \
    X(cudnnSetFilter4dDescriptor) \
    X(cudnnCreateConvolutionDescriptor) \
    X(cudnnSetConvolution2dDescriptor) \
    X(cudnnSetConvolutionMathType) \
    X(cudnnFindConvolutionForwardAlgorithm) \
    X(cudnnConvolutionForward)

static struct {
    DNN_FUNCTIONS(MEMBER)
    cudnnHandle_t handle;
} cudnn;

static bool open_dnn(void) {
    static const char *const names[] = {"libcudnn.so.9", "libcudnn.so",
                                        "/usr/local/cuda/lib64/libcudnn.so.9", NULL};
    void *library = bare_library("TENON_CUDA_CUDNN", names);
    if (!library)
        return false;
#define FIND_DNN(function) FIND(cudnn, library, function)
    DNN_FUNCTIONS(FIND_DNN)
    return (bare_ok(bare.cuCtxPushCurrent_v2(bare.context), "a context") &&
            cudnn.cudnnCreate(&cudnn.handle) == CUDNN_STATUS_SUCCESS &&
            cudnn.cudnnSetStream(cudnn.handle, (cudaStream_t)bare.stream) == CUDNN_STATUS_SUCCESS &&
            bare_ok(bare.cuCtxPopCurrent_v2(&(CUcontext){NULL}), "a context")) ||
           bare_fail("cuDNN", "it gives no handle");
}

const char *bare_no_dnn(void) {
    return cudnn.handle || open_dnn() ? NULL : bare_why();
}

typedef struct convolution {
    const char *dtype;
    int images, in, side, out, padding;
    CUdeviceptr x, w, y;
    cudnnTensorDescriptor_t x_layout, y_layout;
    cudnnFilterDescriptor_t w_layout;
    cudnnConvolutionDescriptor_t operation;
    cudnnConvolutionFwdAlgoPerf_t chosen;
} convolution;

/* Planes, as Tenon and PyTorch have them. The way to compute it is the fastest, which cuDNN measures. */
static bool convolution_init(convolution *c) {
    cudnnDataType_t type = is_f32(c->dtype)   ? CUDNN_DATA_FLOAT
                           : is_f16(c->dtype) ? CUDNN_DATA_HALF
                                              : CUDNN_DATA_BFLOAT16;
    int end = c->side + 2 * c->padding - 2, found = 0;
    c->x = bare_randn(c->dtype, (uint64_t)c->images * c->in * c->side * c->side);
    c->w = bare_randn(c->dtype, (uint64_t)c->out * c->in * 9);
    c->y = bare_randn(c->dtype, (uint64_t)c->images * c->out * end * end);
    if (!c->x || !c->w || !c->y)
        return false;
    if (cudnn.cudnnCreateTensorDescriptor(&c->x_layout) ||
        cudnn.cudnnSetTensor4dDescriptor(c->x_layout, CUDNN_TENSOR_NCHW, type, c->images, c->in,
                                         c->side, c->side) ||
        cudnn.cudnnCreateTensorDescriptor(&c->y_layout) ||
        cudnn.cudnnSetTensor4dDescriptor(c->y_layout, CUDNN_TENSOR_NCHW, type, c->images, c->out,
                                         end, end) ||
        cudnn.cudnnCreateFilterDescriptor(&c->w_layout) ||
        cudnn.cudnnSetFilter4dDescriptor(c->w_layout, type, CUDNN_TENSOR_NCHW, c->out, c->in, 3,
                                         3) ||
        cudnn.cudnnCreateConvolutionDescriptor(&c->operation) ||
        cudnn.cudnnSetConvolution2dDescriptor(c->operation, c->padding, c->padding, 1, 1, 1, 1,
                                              CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT) ||
        cudnn.cudnnSetConvolutionMathType(c->operation, is_f32(c->dtype) ? CUDNN_FMA_MATH
                                                                         : CUDNN_TENSOR_OP_MATH) ||
        cudnn.cudnnFindConvolutionForwardAlgorithm(cudnn.handle, c->x_layout, c->w_layout,
                                                   c->operation, c->y_layout, 1, &found,
                                                   &c->chosen) ||
        found < 1 || c->chosen.status) {
        c->operation = NULL;
        return bare_fail("cuDNN", "it has no way to compute the convolution");
    }
    return c->chosen.memory == 0 || workspace(c->chosen.memory);
}

static bool convolution_once(void *user) {
    convolution *c = user;
    if (!c->operation && !convolution_init(c))
        return false;
    CUdeviceptr space = c->chosen.memory ? workspace(c->chosen.memory) : 0;
    return cudnn.cudnnConvolutionForward(cudnn.handle, &one, c->x_layout, (void *)c->x, c->w_layout,
                                         (void *)c->w, c->operation, c->chosen.algo, (void *)space,
                                         c->chosen.memory, &zero, c->y_layout,
                                         (void *)c->y) == CUDNN_STATUS_SUCCESS ||
           bare_fail("cuDNN", "a convolution failed");
}

#define CONVOLUTION(dtype_, name, images_, in_, side_, out_, padding_) \
    double bare_conv_##dtype_##_##name(uint64_t times) { \
        static convolution c = {.dtype = #dtype_, .padding = padding_}; \
        c.images = (int)bench_size(images_); \
        c.in = (int)bench_size(in_); \
        c.side = (int)bench_size(side_); \
        c.out = (int)bench_size(out_); \
        return bare_no_dnn() ? -1 : bare_timed(times, false, convolution_once, &c); \
    }
#else

const char *bare_no_dnn(void) {
    return "built without cudnn.h";
}

#define CONVOLUTION(dtype, name, images, in, side, out, padding) \
    double bare_conv_##dtype##_##name(uint64_t times) { \
        return -1; \
    }
#endif
BENCH_CONVOLUTIONS(CONVOLUTION)
