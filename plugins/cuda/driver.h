/* The driver's functions, found at run time: the plugin loads where there is no driver, and says so. */
#ifndef TNI_PLUGINS_CUDA_DRIVER_H
#define TNI_PLUGINS_CUDA_DRIVER_H

#include <cuda.h>

/* X(function): by the name that the driver exports, "_v2" included. A driver that lacks one is too
 * old. */
#define CUDA_DRIVER_FUNCTIONS(X) \
    X(cuInit) \
    X(cuDriverGetVersion) \
    X(cuGetErrorName) \
    X(cuGetErrorString) \
    X(cuDeviceGetCount) \
    X(cuDeviceGet) \
    X(cuDeviceGetName) \
    X(cuDeviceGetAttribute) \
    X(cuDeviceTotalMem_v2) \
    X(cuDeviceCanAccessPeer) \
    X(cuDevicePrimaryCtxRetain) \
    X(cuDevicePrimaryCtxRelease_v2) \
    X(cuCtxPushCurrent_v2) \
    X(cuCtxPopCurrent_v2) \
    X(cuCtxGetCurrent) \
    X(cuCtxSetCurrent) \
    X(cuCtxEnablePeerAccess) \
    X(cuMemGetInfo_v2) \
    X(cuMemAlloc_v2) \
    X(cuMemFree_v2) \
    X(cuMemHostAlloc) \
    X(cuMemFreeHost) \
    X(cuPointerGetAttribute) \
    X(cuMemcpyHtoDAsync_v2) \
    X(cuMemcpyDtoHAsync_v2) \
    X(cuMemcpyDtoDAsync_v2) \
    X(cuMemcpyPeerAsync) \
    X(cuMemsetD8Async) \
    X(cuStreamCreateWithPriority) \
    X(cuStreamDestroy_v2) \
    X(cuStreamQuery) \
    X(cuStreamSynchronize) \
    X(cuStreamWaitEvent) \
    X(cuStreamBeginCapture_v2) \
    X(cuStreamEndCapture) \
    X(cuEventCreate) \
    X(cuEventDestroy_v2) \
    X(cuEventRecord) \
    X(cuEventQuery) \
    X(cuEventSynchronize) \
    X(cuEventElapsedTime) \
    X(cuModuleLoadDataEx) \
    X(cuModuleUnload) \
    X(cuModuleGetFunction) \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
    X(cuLaunchKernel) \
    X(cuGraphInstantiateWithFlags) \
    X(cuGraphLaunch) \
    X(cuGraphExecUpdate_v2) \
    X(cuGraphExecDestroy) \
    X(cuGraphDestroy)

/* The members bear the names of the functions; cuda.h turns some into those of a later version, here
 * as where they are called. */
typedef struct cuda_driver {
    void *library;
#define CUDA_DRIVER_MEMBER(function) __typeof__(&function) function;
    CUDA_DRIVER_FUNCTIONS(CUDA_DRIVER_MEMBER)
#undef CUDA_DRIVER_MEMBER
} cuda_driver;

#endif
