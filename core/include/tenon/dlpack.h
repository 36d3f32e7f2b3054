/* tenon/dlpack.h: tensors to and from other libraries in the same process, without a copy.
 *
 * DLPack 1.3, the exchange format of the array libraries (https://dmlc.github.io/dlpack). Not part
 * of tenon/tenon.h. The structs below have DLPack's layout and names; where a program includes
 * dlpack's own header, before this one, its definitions are used. What a language binding adds is
 * the capsule around the pointer; the exchange table of 1.3, which is about Python objects, is the
 * Python package's.
 *
 * Neither direction waits for or orders queued work: before handing out a tensor of a device with
 * streams, synchronise, or make the consumer's stream wait. Functions and deleters may be called
 * from any thread.
 */
#ifndef TENON_DLPACK_H
#define TENON_DLPACK_H

#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- DLPack's declarations --------------------------------------------------------------- */

#ifndef DLPACK_MAJOR_VERSION

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 3

/* Of DLManagedTensorVersioned.flags: must not be written; the consumer is the only owner; each
 * element of less than a byte has a byte of its own. */
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL)

enum { /* DLDevice.device_type */
       kDLCPU = 1,
       kDLCUDA = 2,
       kDLCUDAHost = 3, /* pinned */
       kDLOpenCL = 4,   /* data is a cl_mem */
       kDLVulkan = 7,
       kDLMetal = 8,
       kDLVPI = 9,
       kDLROCM = 10,
       kDLROCMHost = 11, /* pinned */
       kDLExtDev = 12,   /* any other; means something to its producer alone */
       kDLCUDAManaged = 13,
       kDLOneAPI = 14,
       kDLWebGPU = 15,
       kDLHexagon = 16,
       kDLMAIA = 17,
       kDLTrn = 18
};

enum { /* DLDataType.code, of those that Tenon has */
       kDLInt = 0,
       kDLUInt = 1,
       kDLFloat = 2,
       kDLBfloat = 4,
       kDLComplex = 5, /* the real part, then the imaginary one */
       kDLBool = 6     /* of 8 bits */
};

typedef struct DLPackVersion {
    uint32_t major; /* another one is another layout: only the deleter may be called then */
    uint32_t minor; /* more numbers of devices and dtypes */
} DLPackVersion;

typedef struct DLDevice {
    int32_t device_type; /* kDL* */
    int32_t device_id;
} DLDevice;

typedef struct DLDataType {
    uint8_t code;
    uint8_t bits;   /* of one lane */
    uint16_t lanes; /* 1 */
} DLDataType;

typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;       /* [ndim] */
    int64_t *strides;     /* [ndim], in elements; before 1.2 NULL was row-major */
    uint64_t byte_offset; /* of the first element from data */
} DLTensor;

typedef struct DLManagedTensor { /* of before 1.0 */
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self); /* frees self too; may be NULL */
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self); /* frees self too; may be NULL */
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

#endif /* DLPACK_MAJOR_VERSION */

/* ---- out --------------------------------------------------------------------------------- */

/* The device as DLPack numbers it: "cpu" is {kDLCPU, 0}, "cuda", "opencl", "rocm", "vulkan", "metal",
 * "webgpu" and "hexagon" have their numbers, every other type is kDLExtDev. {0, 0} with an error for
 * no device and for meta, which has no data. */
TN_API DLDevice tn_dlpack_device(tn_device device);

/* t's memory as DLPack describes it; the consumer calls (*out)->deleter once, which gives back
 * the reference to t that it holds. `flags`: 0, or DLPACK_FLAG_BITMASK_READ_ONLY and _IS_COPIED
 * for the consumer to see. `data` is the address of the first element where memory has addresses
 * (CPU, CUDA, ROCm), elsewhere the plugin's handle with byte_offset beside it. TN_ERR_STATE for a
 * tensor that requires a gradient, whose history would not see what a consumer writes: give
 * tn_detach of it. TN_ERR_UNSUPPORTED on meta. On failure *out is NULL. */
TN_API tn_status tn_to_dlpack(tn_tensor *t, uint64_t flags, DLManagedTensorVersioned **out);
/* The same for consumers of before 1.0. */
TN_API tn_status tn_to_dlpack_legacy(tn_tensor *t, DLManagedTensor **out);

/* ---- in ---------------------------------------------------------------------------------- */

/* Tensors of Tenon are writable, aligned to their elements, and have no negative strides. What is
 * not like that can be had as a copy only, and so can everything while TENON_VALIDATE is set. */
typedef enum tn_dlpack_copy {
    TN_DLPACK_SHARE = 0,          /* fails with TN_ERR_UNSUPPORTED where a copy would be needed */
    TN_DLPACK_COPY_IF_NEEDED = 1, /* shares if it can */
    TN_DLPACK_COPY = 2            /* always */
} tn_dlpack_copy;

/* A tensor over what another library, or Tenon, hands out. Memory of the host (kDLCPU, kDLCUDAHost,
 * kDLROCMHost) is a tensor on cpu:0; that of other devices is TN_ERR_UNSUPPORTED, unless Tenon made it:
 * then the tensor shares the storage on whatever device it has. Takes `managed` over: its deleter is
 * called when the last tensor of the storage is gone, or now if it was copied. On failure (NULL with
 * an error) it stays the caller's, who calls the deleter; also where its major version is not 1.
 * Belongs to the scope. */
TN_API tn_tensor *tn_from_dlpack(DLManagedTensorVersioned *managed, tn_dlpack_copy copy);
TN_API tn_tensor *tn_from_dlpack_legacy(DLManagedTensor *managed, tn_dlpack_copy copy);

#ifdef __cplusplus
}
#endif

#endif /* TENON_DLPACK_H */
