/* NVRTC, the compiler of device code, found at run time. */
#ifndef TNI_PLUGINS_CUDA_NVRTC_H
#define TNI_PLUGINS_CUDA_NVRTC_H

#include <nvrtc.h>
#include <stdbool.h>
#include <tenon/plugin.h>

#define CUDA_NVRTC_FUNCTIONS(X) \
    X(nvrtcVersion) \
    X(nvrtcGetErrorString) \
    X(nvrtcGetNumSupportedArchs) \
    X(nvrtcGetSupportedArchs) \
    X(nvrtcCreateProgram) \
    X(nvrtcCompileProgram) \
    X(nvrtcDestroyProgram) \
    X(nvrtcGetProgramLogSize) \
    X(nvrtcGetProgramLog) \
    X(nvrtcGetCUBINSize) \
    X(nvrtcGetCUBIN) \
    X(nvrtcGetPTXSize) \
    X(nvrtcGetPTX)

typedef struct cuda_nvrtc {
    void *library;
    int newest; /* architecture that it knows: 120 for compute capability 12.0 */
#define CUDA_NVRTC_MEMBER(function) __typeof__(&function) function;
    CUDA_NVRTC_FUNCTIONS(CUDA_NVRTC_MEMBER)
#undef CUDA_NVRTC_MEMBER
} cuda_nvrtc;

/* Opens it, once; NULL, with a message, where there is none. [any-thread] */
const cuda_nvrtc *cuda_nvrtc_open(tn_instance *self);

/* What came of a compilation: an image that the driver loads, from the host's memory. */
typedef struct cuda_image {
    unsigned char *data;
    uint64_t bytes;
} cuda_image;

/* Compiles `text` for a compute capability of `major`.`minor`: machine code, or, for a device that is
 * newer than NVRTC, PTX, which the driver compiles. */
tn_status cuda_nvrtc_compile(tn_instance *self, const char *name, const char *text,
                             const char *options, int major, int minor, cuda_image *out);

#endif
