/* tenon/ext/native.h: extension "tenon.native/1", offered by plugins over a driver whose objects a
 * program may want to use beside Tenon (its own kernels, another library on the same queue).
 *
 * What is returned belongs to the plugin and is not retained for the caller: a context lives as long
 * as the device is open, a stream as the stream, an address as the allocation, and is the same each
 * time. Work that the caller puts on a native stream is in order with Tenon's and counts as the
 * stream's: query and synchronize see it, and so does an event recorded behind it. What becomes of
 * such work while the stream captures is the driver's affair. */
#ifndef TENON_EXT_NATIVE_H
#define TENON_EXT_NATIVE_H

#include <tenon/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TN_EXT_NATIVE "tenon.native/1"

typedef struct tn_ext_native {
    uint64_t struct_size;

    /* Whose objects these are, for who must cast them: "opencl", "cuda", "hip", "level_zero",
     * "metal", or a name that begins with the vendor's prefix. */
    const char *api;

    /* The context that the device was opened in (cl_context, CUcontext). [any-thread] [device open]
     * [required] */
    void *(*context)(tn_device_impl *device);

    /* The queue of a stream (cl_command_queue, CUstream). [any-thread] [device open] [required] */
    void *(*stream)(tn_stream_impl *stream);

    /* What the driver calls the allocation: an address (CUdeviceptr), or an object's (cl_mem); 0
     * for handle 0. [any-thread] [device open] [required] */
    uint64_t (*memory)(tn_device_impl *device, tn_memory memory);
} tn_ext_native;

TN_LAST_MEMBER(tn_ext_native, memory);

#ifdef __cplusplus
}
#endif

#endif /* TENON_EXT_NATIVE_H */
