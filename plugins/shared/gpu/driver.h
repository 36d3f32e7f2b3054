/* What a plugin brings so that the operators here run on its devices: one gpu_driver, and a
 * gpu_device at the head of its struct tn_device_impl. plugins/opencl is such a plugin.
 *
 * A driver knows nothing of operators. It is asked to make a kernel of device code once for each
 * variant (launch.c remembers which there are), and to queue it as often as it is called. Its own
 * errors are told to the host where they happen; a status other than TN_OK is handed on as it is. */
#ifndef TNI_PLUGINS_SHARED_GPU_DRIVER_H
#define TNI_PLUGINS_SHARED_GPU_DRIVER_H

#include "plugins/shared/try.h"

#include <stdbool.h>

enum {
    GPU_MAX_MEMORY = 8,     /* tensors of a launch */
    GPU_GROUP = 256,        /* work items of a group, as many as every device takes */
    GPU_LOCAL = 32 << 10,   /* bytes of local memory, of which every device has so many */
    GPU_OPTIONS = 256,      /* bytes of a variant's options */
    GPU_MAX_GROUPS = 65535, /* of a launch along its second and third dimension; 2^31 - 1 along the
                               first */
    GPU_ARGUMENTS = 1024    /* bytes of a launch's arguments, 8 for each memory and the parameters;
                             every device takes so many */
};

/* What decides which variant a device is given. */
typedef struct gpu_traits {
    bool is_cpu; /* one work item is one thread with vector units, and local memory is no nearer
                    than any other */
    bool has_f64;
    uint32_t compute_units;
    uint32_t unit_items; /* work items that a compute unit has at once; 0: nobody knows */
    uint32_t max_group;  /* work items, at least GPU_GROUP */
    uint32_t warp;       /* work items, neighbours by LOCAL_ID(0), that read each other's registers:
                              32, which is WARP in device code; 0: none do */
    uint32_t local_bytes;  /* of a group's local memory, at least GPU_LOCAL */
    uint32_t vector_bytes; /* of a CPU's vector registers: 16, 32 or 64 */
} gpu_traits;

/* A file of device code, in the dialect of device/dialect.h. */
typedef struct gpu_source {
    const char *name, *text;
} gpu_source;

/* Device code with its macros chosen: "-DT=f32 -DOP=add". */
typedef struct gpu_variant {
    const gpu_source *source;
    const char *entry; /* the kernel's name there */
    const char *options;
} gpu_variant;

/* What a driver made of a variant. */
typedef struct gpu_kernel gpu_kernel;

/* A kernel's arguments, and how many work items run it. */
typedef struct gpu_launch {
    uint32_t n_memory;
    tn_memory memory[GPU_MAX_MEMORY]; /* the first arguments */
    const void *parameters;           /* the last, by value */
    uint64_t parameter_bytes;
    uint64_t groups[3]; /* work groups, 0 is 1 */
    bool goes_on; /* work items go on behind the last: fewer groups, of GPU_GROUP, do as well */
    uint64_t local[3]; /* work items of a group, 0 is 1 */
    bool may_fail;     /* takes the stream's error word, GLOBAL i32 *, after the memory; see
                           report_index in device/dialect.h */
} gpu_launch;

typedef struct gpu_driver {
    /* Makes a kernel. For one device one thread at a time is in it. */
    tn_status (*build)(tn_device_impl *device, const gpu_variant *variant, gpu_kernel **out);

    /* Gives it back, when the device is closed. [any-thread] */
    void (*release)(tn_device_impl *device, gpu_kernel *kernel);

    /* Queues a launch; what `launch` points to is consumed when it returns. [any-thread] */
    tn_status (*launch)(tn_stream_impl *stream, gpu_kernel *kernel, const gpu_launch *launch);
} gpu_driver;

typedef struct gpu_kernel_table gpu_kernel_table;

/* The first member of struct tn_device_impl: a pointer to the one is a pointer to the other. */
typedef struct gpu_device {
    const tn_host *host;
    const gpu_driver *driver;
    const gpu_traits *traits;
    gpu_kernel_table *kernels; /* those that were built */
} gpu_device;

/* Fills it in when a device is opened; TN_ERR_OUT_OF_MEMORY has been told to the host. */
tn_status gpu_device_init(gpu_device *device, const tn_host *host, const gpu_driver *driver,
                          const gpu_traits *traits);

/* Releases all kernels; of a device that was not filled in there are none. */
void gpu_device_finish(gpu_device *device);

/* Options as text to stand before device code: "#define T f32" for "-DT=f32". NVRTC reads a header
 * of its own with the options in force, and has a `template <typename T>` there; before the text,
 * macros come after it. Writes what `room` holds, a NUL at its end, and returns the bytes that all
 * of it takes. */
uint64_t gpu_macros(const char *options, char *out, uint64_t room);

static inline const gpu_traits *gpu_device_traits(const tn_device_impl *device) {
    return ((const gpu_device *)device)->traits;
}

#endif
