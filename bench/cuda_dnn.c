/* Convolutions by cuDNN, called bare; see cuda_bare.h. */
#include "bench/cuda_bare.h"

#include <cudnn.h>
#include <dlfcn.h>
#include <string.h>

static const float one = 1, zero = 0;

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

#define MEMBER(function) __typeof__(&function) function;
#define FIND(function) \
    *(void **)&cudnn.function = dlsym(library, #function); \
    if (!cudnn.function) \
        return bare_fail("cuDNN", "it lacks " #function);

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
    DNN_FUNCTIONS(FIND)
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

/* A way that sums the products of the definition: not by a transform, whose errors are larger, and
 * which spreads an infinity to its neighbours. */
static bool is_direct(const cudnnConvolutionFwdAlgoPerf_t *way) {
    return way->status == CUDNN_STATUS_SUCCESS && way->algo != CUDNN_CONVOLUTION_FWD_ALGO_FFT &&
           way->algo != CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING &&
           way->algo != CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD &&
           way->algo != CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED;
}

/* The fastest of them, which cuDNN measures. */
static bool find_fastest(convolution *c) {
    cudnnConvolutionFwdAlgoPerf_t ways[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
    int n = 0, i = 0;
    if (cudnn.cudnnFindConvolutionForwardAlgorithm(cudnn.handle, c->x_layout, c->w_layout,
                                                   c->operation, c->y_layout,
                                                   CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &n, ways))
        return false;
    while (i < n && !is_direct(&ways[i]))
        i++;
    if (i < n)
        c->chosen = ways[i];
    return i < n;
}

/* Planes, as Tenon and PyTorch have them. */
static bool convolution_init(convolution *c) {
    cudnnDataType_t type = !strcmp(c->dtype, "f32")   ? CUDNN_DATA_FLOAT
                           : !strcmp(c->dtype, "f16") ? CUDNN_DATA_HALF
                                                      : CUDNN_DATA_BFLOAT16;
    int end = c->side + 2 * c->padding - 2;
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
        cudnn.cudnnSetConvolutionMathType(
            c->operation, !strcmp(c->dtype, "f32") ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH) ||
        !find_fastest(c)) {
        c->operation = NULL;
        return bare_fail("cuDNN", "it has no way to compute the convolution");
    }
    return c->chosen.memory == 0 || bare_workspace(c->chosen.memory);
}

static bool convolution_once(void *user) {
    convolution *c = user;
    if (!c->operation && !convolution_init(c))
        return false;
    CUdeviceptr space = c->chosen.memory ? bare_workspace(c->chosen.memory) : 0;
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
        return bare_no_dnn() ? -1 : bare_timed(times, 0, convolution_once, &c); \
    }
BENCH_CONVOLUTIONS(CONVOLUTION)
