/* The driver's functions that the double has, by the names that it exports them under: what is
 * counted, and what can be made to fail. */
#ifndef TNI_TESTS_CUDA_DOUBLE_FUNCTIONS_H
#define TNI_TESTS_CUDA_DOUBLE_FUNCTIONS_H

/* X(function). cuEventElapsedTime stands for its second version, too, which does the same. */
#define DOUBLE_FUNCTIONS(X) \
    X(cuInit) \
    X(cuDriverGetVersion) \
    X(cuGetErrorName) \
    X(cuGetErrorString) \
    X(cuDeviceGetCount) \
    X(cuDeviceGet) \
    X(cuDeviceGetName) \
    X(cuDeviceGetUuid_v2) \
    X(cuDeviceGetAttribute) \
    X(cuDeviceTotalMem_v2) \
    X(cuDeviceCanAccessPeer) \
    X(cuDevicePrimaryCtxRetain) \
    X(cuDevicePrimaryCtxRelease_v2) \
    X(cuDevicePrimaryCtxGetState) \
    X(cuCtxCreate_v2) \
    X(cuCtxCreate_v4) \
    X(cuCtxDestroy_v2) \
    X(cuCtxPushCurrent_v2) \
    X(cuCtxPopCurrent_v2) \
    X(cuCtxGetCurrent) \
    X(cuCtxSetCurrent) \
    X(cuCtxGetDevice) \
    X(cuCtxSynchronize) \
    X(cuCtxGetStreamPriorityRange) \
    X(cuCtxEnablePeerAccess) \
    X(cuCtxDisablePeerAccess) \
    X(cuMemGetInfo_v2) \
    X(cuMemAlloc_v2) \
    X(cuMemFree_v2) \
    X(cuMemGetAddressRange_v2) \
    X(cuMemHostAlloc) \
    X(cuMemFreeHost) \
    X(cuMemHostRegister_v2) \
    X(cuMemHostUnregister) \
    X(cuMemHostGetDevicePointer_v2) \
    X(cuPointerGetAttribute) \
    X(cuPointerGetAttributes) \
    X(cuMemcpyHtoD_v2) \
    X(cuMemcpyDtoH_v2) \
    X(cuMemcpyHtoDAsync_v2) \
    X(cuMemcpyDtoHAsync_v2) \
    X(cuMemcpyDtoDAsync_v2) \
    X(cuMemcpyPeerAsync) \
    X(cuMemsetD8Async) \
    X(cuMemsetD32Async) \
    X(cuStreamCreate) \
    X(cuStreamCreateWithPriority) \
    X(cuStreamDestroy_v2) \
    X(cuStreamGetCtx) \
    X(cuStreamGetFlags) \
    X(cuStreamGetPriority) \
    X(cuStreamQuery) \
    X(cuStreamSynchronize) \
    X(cuStreamWaitEvent) \
    X(cuStreamBeginCapture_v2) \
    X(cuStreamEndCapture) \
    X(cuStreamIsCapturing) \
    X(cuStreamGetCaptureInfo_v2) \
    X(cuStreamGetCaptureInfo_v3) \
    X(cuThreadExchangeStreamCaptureMode) \
    X(cuEventCreate) \
    X(cuEventDestroy_v2) \
    X(cuEventRecord) \
    X(cuEventQuery) \
    X(cuEventSynchronize) \
    X(cuEventElapsedTime) \
    X(cuModuleLoadData) \
    X(cuModuleLoadDataEx) \
    X(cuModuleUnload) \
    X(cuModuleGetFunction) \
    X(cuFuncGetAttribute) \
    X(cuFuncSetAttribute) \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
    X(cuLaunchKernel) \
    X(cuLaunchHostFunc) \
    X(cuGraphInstantiateWithFlags) \
    X(cuGraphLaunch) \
    X(cuGraphExecUpdate_v2) \
    X(cuGraphExecDestroy) \
    X(cuGraphGetNodes) \
    X(cuGraphDestroy) \
    X(double_stream_enqueue)

typedef enum function_name {
#define DOUBLE_FUNCTION_NAME(function) CALL_##function,
    DOUBLE_FUNCTIONS(DOUBLE_FUNCTION_NAME)
#undef DOUBLE_FUNCTION_NAME
        N_FUNCTIONS
} function_name;

#endif
