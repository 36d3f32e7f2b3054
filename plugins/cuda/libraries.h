/* Libraries of NVIDIA's whose kernels stand before our own: cuBLASLt for products, cuDNN for
 * convolutions. Each is opened for the first call that it may take, since mapping it takes longer than
 * all else that a first result needs, and may be missing. What a library cannot do, or fails to make
 * ready, is left to the next record. */
#ifndef TNI_PLUGINS_CUDA_LIBRARIES_H
#define TNI_PLUGINS_CUDA_LIBRARIES_H

#include "plugins/cuda/cuda.h"
#include "plugins/shared/gpu/gpu.h"

/* X(library): those that the plugin was built with headers of; a file here for each. */
#ifdef CUDA_HAS_BLASLT
#define CUDA_WITH_BLASLT(X) X(blaslt)
#else
#define CUDA_WITH_BLASLT(X)
#endif
#ifdef CUDA_HAS_DNN
#define CUDA_WITH_DNN(X) X(dnn)
#else
#define CUDA_WITH_DNN(X)
#endif
#define CUDA_LIBRARIES(X) CUDA_WITH_BLASLT(X) CUDA_WITH_DNN(X)

#define CUDA_LIBRARY_DECLARE(library) \
    /* NULL: no host memory. Where the library itself is missing the log says why, at the first call. */ \
    cuda_##library *cuda_##library##_create(tn_device_impl *device); \
    void cuda_##library##_destroy(cuda_##library *library); \
    extern const gpu_family cuda_family_##library;
CUDA_LIBRARIES(CUDA_LIBRARY_DECLARE)
#undef CUDA_LIBRARY_DECLARE

/* Fills in device->libraries. */
tn_status cuda_libraries_create(tn_device_impl *device);
void cuda_libraries_destroy(tn_device_impl *device);

/* All records of the plugin, those of libraries first; made at the first call. [any-thread] */
const tn_kernel *const *cuda_records(uint64_t *out_n);

/* May products and convolutions of f32 be computed from factors of 10 bits (TENON_CUDA_TF32=1)? */
bool cuda_tf32_allowed(const tn_instance *self);

/* Writes a line to the log: "cuda:0: ...". */
void cuda_log(const tn_device_impl *device, tn_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A library failed to queue work, as it says in `what`: the status, with a message. Where the driver
 * has an error of its own, it is that. */
tn_status cuda_library_failed(tn_stream_impl *stream, const char *what);

#endif
