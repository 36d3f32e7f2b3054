/* What the driver calls its errors. */
#include "tests/cuda/double/inside.h"

/* X(what follows CUDA_ERROR_, the sentence) */
#define ERRORS(X) \
    X(INVALID_VALUE, "invalid argument") \
    X(OUT_OF_MEMORY, "out of memory") \
    X(NOT_INITIALIZED, "initialization error") \
    X(DEINITIALIZED, "driver shutting down") \
    X(DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable") \
    X(NO_DEVICE, "no CUDA-capable device is detected") \
    X(INVALID_DEVICE, "invalid device ordinal") \
    X(INVALID_IMAGE, "device kernel image is invalid") \
    X(INVALID_CONTEXT, "invalid device context") \
    X(NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device") \
    X(ECC_UNCORRECTABLE, "uncorrectable ECC error encountered") \
    X(PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices") \
    X(INVALID_PTX, "a PTX JIT compilation failed") \
    X(NVLINK_UNCORRECTABLE, "uncorrectable NVLink error detected during the execution") \
    X(UNSUPPORTED_PTX_VERSION, "the provided PTX was compiled with an unsupported toolchain.") \
    X(INVALID_HANDLE, "invalid resource handle") \
    X(ILLEGAL_STATE, "the operation cannot be performed in the present state") \
    X(NOT_FOUND, "named symbol not found") \
    X(NOT_READY, "device not ready") \
    X(ILLEGAL_ADDRESS, "an illegal memory access was encountered") \
    X(LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch") \
    X(LAUNCH_TIMEOUT, "the launch timed out and was terminated") \
    X(PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled") \
    X(PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled") \
    X(CONTEXT_IS_DESTROYED, "context is destroyed") \
    X(ASSERT, "device-side assert triggered") \
    X(HOST_MEMORY_ALREADY_REGISTERED, "part or all of the memory range is already registered") \
    X(HOST_MEMORY_NOT_REGISTERED, "the memory range was not registered") \
    X(HARDWARE_STACK_ERROR, "hardware stack error") \
    X(ILLEGAL_INSTRUCTION, "an illegal instruction was encountered") \
    X(MISALIGNED_ADDRESS, "misaligned address") \
    X(INVALID_ADDRESS_SPACE, "operation not supported on this address space") \
    X(INVALID_PC, "invalid program counter") \
    X(LAUNCH_FAILED, "unspecified launch failure") \
    X(NOT_PERMITTED, "operation not permitted") \
    X(NOT_SUPPORTED, "operation not supported") \
    X(STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing") \
    X(STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture") \
    X(STREAM_CAPTURE_MERGE, "operation would result in a merge of separate capture sequences") \
    X(STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began") \
    X(STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work") \
    X(STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream") \
    X(STREAM_CAPTURE_IMPLICIT, "operation would make the legacy stream depend on a capturing one") \
    X(CAPTURED_EVENT, "operation not permitted on an event last recorded in a capturing stream") \
    X(STREAM_CAPTURE_WRONG_THREAD, "attempt to terminate a capture from another thread") \
    X(GRAPH_EXEC_UPDATE_FAILURE, "the graph update was not performed") \
    X(EXTERNAL_DEVICE, "an asynchronous error has occurred in an external device") \
    X(UNKNOWN, "unknown error")

static const struct {
    CUresult error;
    const char *name, *sentence;
} errors[] = {{CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
#define ERROR_ROW(name, sentence) {CUDA_ERROR_##name, "CUDA_ERROR_" #name, sentence},
              ERRORS(ERROR_ROW)
#undef ERROR_ROW
};

static CUresult tell(function_name function, CUresult asked, bool name, const char **out) {
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    /* A forked child may ask, too, and after the end. */
    CUresult error = enter(function, NEEDS_NOTHING, NULL);
    if (!error)
        leave(CUDA_SUCCESS);
    else if (error != CUDA_ERROR_NOT_INITIALIZED && error != CUDA_ERROR_DEINITIALIZED)
        return error;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].error == asked)
            *out = name ? errors[i].name : errors[i].sentence;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char **out) {
    return tell(CALL_cuGetErrorName, error, true, out);
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char **out) {
    return tell(CALL_cuGetErrorString, error, false, out);
}
