/* CUDA without Tenon: the driver, NVRTC, cuBLASLt and cuDNN, called as a program would that has
 * nothing else. What cuda.c measures Tenon beside. The libraries are opened as the plugin opens
 * them, by name or as TENON_CUDA_... says, in the primary context that Tenon uses. */
#ifndef TNI_BENCH_CUDA_BARE_H
#define TNI_BENCH_CUDA_BARE_H

#include "bench/device.h"

#include <cuda.h>

/* In the name of a device of the tests' double of the driver (tests/cuda/double), for which figures
 * are taken to count instructions alone. */
#define BARE_DOUBLE "driver double"

#define BARE_DRIVER_FUNCTIONS(X) \
    X(cuInit) \
    X(cuDriverGetVersion) \
    X(cuGetErrorName) \
    X(cuDeviceGet) \
    X(cuDeviceGetAttribute) \
    X(cuDevicePrimaryCtxRetain) \
    X(cuCtxPushCurrent_v2) \
    X(cuCtxPopCurrent_v2) \
    X(cuStreamCreateWithPriority) \
    X(cuStreamSynchronize) \
    X(cuMemAlloc_v2) \
    X(cuMemFree_v2) \
    X(cuMemcpyHtoDAsync_v2) \
    X(cuMemcpyDtoHAsync_v2) \
    X(cuMemcpyDtoDAsync_v2) \
    X(cuStreamBeginCapture_v2) \
    X(cuStreamEndCapture) \
    X(cuGraphInstantiateWithFlags) \
    X(cuGraphLaunch) \
    X(cuModuleLoadDataEx) \
    X(cuModuleGetFunction) \
    X(cuLaunchKernel)

typedef struct bare_driver {
#define BARE_MEMBER(function) __typeof__(&function) function;
    BARE_DRIVER_FUNCTIONS(BARE_MEMBER)
#undef BARE_MEMBER
    CUcontext context;
    CUstream stream;
    int version;      /* 13000: 13.0 */
    int architecture; /* 90: compute capability 9.0 */
} bare_driver;

extern bare_driver bare;

/* A file that device code is kept in, for processes that are not to wait for NVRTC; NULL: none. */
extern const char *bare_image;

/* Opens the driver and the device of that number; false with bare_why(). */
bool bare_open(int index);

/* Why something failed last. */
const char *bare_why(void);
bool bare_fail(const char *what, const char *why); /* false */
bool bare_ok(CUresult error, const char *what);    /* else false, and bare_why() */

/* The library that the variable names, else the first of `names` that there is, NULL ends them. */
void *bare_library(const char *variable, const char *const *names);

/* Memory with random numbers of a dtype of "f32", "f16", "bf16"; 0 when it failed. In the context. */
CUdeviceptr bare_randn(const char *dtype, uint64_t elements);

/* Memory of so many bytes, the same at each call that does not ask for more; 0 when it failed. In the
 * context. */
CUdeviceptr bare_workspace(uint64_t bytes);

/* Around n times `once(user)` on the bare stream: the seconds until the device is done with them, or,
 * where each queues so many `launches`, not 0, until the calls have returned: in groups, as in
 * device_rows.c. Negative when it failed. */
double bare_timed(uint64_t n, uint64_t launches, bool (*once)(void *user), void *user);

/* The same as rows of device.c; launch-backward is as many launches. */
double bare_launch_add(uint64_t n);
double bare_launch_chain(uint64_t n);
double bare_launch_replay(uint64_t n);
double bare_launch_copy(uint64_t n);
double bare_launch_backward(uint64_t n);
double bare_copy(uint64_t n);

/* From nothing to a result on the host. */
bool bare_first_result(void);

/* ---- libraries (cuda_blas.c, cuda_dnn.c) ------------------------------------------------- */

/* bare_no_...: NULL, or why there is none. BARE_...: the row's side. */
#ifdef CUDA_HAS_BLASLT
const char *bare_no_blas(void);
double bare_launch_product(uint64_t n);
#define BARE_PRODUCT(dtype, name) bare_gemm_##dtype##_##name
#define BARE_DECLARE_PRODUCT(dtype, name, m, n, k) double BARE_PRODUCT(dtype, name)(uint64_t times);
BENCH_PRODUCTS(BARE_DECLARE_PRODUCT)
#else
static inline const char *bare_no_blas(void) {
    return "this build found no cublasLt.h";
}
#define bare_launch_product NULL
#define BARE_PRODUCT(dtype, name) NULL
#endif
#ifdef CUDA_HAS_DNN
const char *bare_no_dnn(void);
#define BARE_CONVOLUTION(dtype, name) bare_conv_##dtype##_##name
#define BARE_DECLARE_CONVOLUTION(dtype, name, images, in, side, out, padding) \
    double BARE_CONVOLUTION(dtype, name)(uint64_t times);
BENCH_CONVOLUTIONS(BARE_DECLARE_CONVOLUTION)
#else
static inline const char *bare_no_dnn(void) {
    return "this build found no cudnn.h";
}
#define BARE_CONVOLUTION(dtype, name) NULL
#endif

#endif
