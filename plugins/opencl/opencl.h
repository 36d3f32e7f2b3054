/* The objects of the OpenCL plugin and what its files ask of each other.
 *
 * An open device has a context of its own; a stream is an in-order command queue; an event is the
 * marker that was queued last for it; memory is a cl_mem, whose address serves as the handle, and
 * an offset that only kernels and transfers ever add. platform.c finds the devices, device.c opens
 * one, memory.c, transfer.c, stream.c and event.c fill the tables of tenon/plugin.h, program.c and
 * launch.c that of plugins/shared/gpu/driver.h; capture.c records streams.
 *
 * There are no globals but a lock in guard.c: everything hangs on tn_instance. Host memory comes from
 * the host. */
#ifndef TNI_PLUGINS_OPENCL_OPENCL_H
#define TNI_PLUGINS_OPENCL_OPENCL_H

#include "plugins/shared/gpu/cache.h"
#include "plugins/shared/gpu/driver.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/plugin.h>

enum {
    OCL_MESSAGE = 600, /* bytes of an error message */
    OCL_NAME = 160,    /* of a device's name */
    OCL_MAX_DEVICES = 64,
    OCL_STAGE_BYTES = 128 << 10, /* half of what a stream stages small transfers in */
};

/* A device that can be used, and what is asked about it most. */
typedef struct ocl_found {
    cl_platform_id platform;
    cl_device_id id;
    cl_device_type type;
    bool is_simulator;
    char name[OCL_NAME], platform_name[OCL_NAME];
    char driver[3 * OCL_NAME]; /* versions of platform, device and driver */
    uint64_t memory_bytes, max_allocation, alignment;
    gpu_traits traits;
    bool is_pocl;
    bool divides_exactly; /* f32 division and roots can be rounded correctly */
    bool has_subnormals;  /* of f32 */
} ocl_found;

/* A pinned allocation, and where it is mapped: unmapping asks for that. */
typedef struct ocl_pinned {
    struct ocl_pinned *next;
    cl_mem memory;
    void *host;
} ocl_pinned;

struct tn_instance {
    const tn_host *host;
    gpu_cache cache; /* of built programs */

    pthread_mutex_t lock; /* guards what follows, until `searched` */
    bool searched;
    tn_status search_status;
    uint32_t n_found;
    ocl_found found[OCL_MAX_DEVICES];
    char reason[OCL_MESSAGE]; /* what was found and is not used, and why */
    bool is_broken;           /* one of these is a driver that fails */
};

typedef struct ocl_programs ocl_programs;
typedef struct ocl_recording ocl_recording;

struct tn_device_impl {
    gpu_device gpu; /* first: see driver.h */
    tn_instance *self;
    uint32_t index;
    const ocl_found *found;
    cl_context context;
    cl_command_queue transfers; /* maps pinned memory, and makes allocations real */
    ocl_programs *programs;
    atomic_bool has_unsaved; /* a program was launched that the cache does not have */
    atomic_bool lost;
    _Atomic uint64_t n_freed; /* allocations that were freed so far */

    pthread_mutex_t lock; /* guards what follows */
    uint64_t used_bytes;
    ocl_pinned *pinned;
};

/* Half of a stream's staging memory, and the last transfer that reads it. */
typedef struct ocl_stage {
    char *data;
    uint64_t used;
    cl_event last;
} ocl_stage;

struct tn_stream_impl {
    tn_device_impl *device;
    cl_command_queue queue;
    _Atomic uint32_t queued;      /* how often something was, modulo 2^32 */
    _Atomic(const void *) feeder; /* the ocl_thread_mark of who queued last */
    atomic_bool is_lent;          /* the program has the queue, and may queue more at any time */
    atomic_bool may_fail;         /* something was queued that may set the error word */
    cl_mem error_word;            /* int[4]: code, argument, and the index in two halves */
    _Atomic(ocl_recording *) recording; /* while the stream captures; set to NULL under the lock */

    pthread_mutex_t lock;   /* guards what follows */
    cl_command_queue times; /* of what is timed for events, or NULL */
    cl_mem timed;           /* what is filled there */
    uint32_t seen;          /* of `queued`: what lies before `mark`, or is known to be done */
    cl_event mark;          /* the end of the queue when `query` last looked */
    ocl_stage stages[2];
    int stage; /* the one that is being filled */
};

struct tn_event_impl {
    tn_device_impl *device;
    uint32_t flags;
    pthread_mutex_t lock; /* guards what follows */
    cl_event mark;        /* NULL before the first record */
    cl_event timed;       /* follows it and has the time; NULL without TN_EVENT_TIMING */
    cl_command_queue queue;
};

/* ---- errors (error.c) -------------------------------------------------------------------- */

/* Hands the formatted message to the host and returns `status`. */
tn_status ocl_fail(const tn_instance *self, tn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for an error of the driver, which is named: "opencl:0 (NAME): what: CL_...". Errors
 * after which nothing works any more make the device lost; once it is, that is what is said. */
tn_status ocl_fail_driver(tn_device_impl *device, cl_int error, const char *what);

const char *ocl_error_name(cl_int error);

/* TN_ERR_DEVICE_LOST, with a message, once the device is lost. */
tn_status ocl_check_lost(tn_device_impl *device);

static inline bool ocl_is_lost(tn_device_impl *device) {
    return atomic_load_explicit(&device->lost, memory_order_relaxed);
}

/* ---- what drivers change (guard.c) ------------------------------------------------------- */

/* Round every call in which a driver starts or compiles. One thread of the process at a time is
 * between the two, so nothing else is waited for there. */
enum { OCL_VARIABLES = 1 };
typedef struct ocl_guard {
    char *variables[OCL_VARIABLES]; /* as they were; NULL: not set */
} ocl_guard;

void ocl_guard_enter(ocl_guard *guard);
void ocl_guard_leave(ocl_guard *guard);

/* ---- devices (platform.c, device.c) ------------------------------------------------------ */

/* Looks for devices, once; afterwards self->found does not change. */
tn_status ocl_search(tn_instance *self);

extern const tn_device_ops ocl_device_ops;

/* Kernels on it (program.c, launch.c). */
extern const gpu_driver ocl_driver;

/* ---- memory (memory.c, transfer.c) ------------------------------------------------------- */

extern const tn_memory_ops ocl_memory_ops;

/* Host memory for an object of the plugin. On failure tells the host and returns NULL; the caller
 * returns TN_ERR_OUT_OF_MEMORY. */
void *ocl_host_alloc(const tn_instance *self, uint64_t bytes, const char *what);

tn_status ocl_copy_from_host(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                             uint64_t dst_offset, const void *src, tn_memory src_pinned,
                             uint64_t bytes);
tn_status ocl_copy_to_host(tn_device_impl *device, tn_stream_impl *stream, void *dst,
                           tn_memory dst_pinned, tn_memory src, uint64_t src_offset,
                           uint64_t bytes);
tn_status ocl_copy(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                   uint64_t dst_offset, tn_memory src, uint64_t src_offset, uint64_t bytes);
tn_status ocl_fill(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                   uint64_t dst_offset, uint8_t value, uint64_t bytes);

static inline cl_mem ocl_mem(tn_memory memory) {
    return (cl_mem)(uintptr_t)memory;
}

/* ---- streams and events (stream.c, event.c) ---------------------------------------------- */

extern const tn_stream_ops ocl_stream_ops;
extern const tn_event_ops ocl_event_ops;

extern _Thread_local char ocl_thread_mark; /* each thread's has another address */

/* To be called after something was queued. */
static inline void ocl_stream_queued(tn_stream_impl *stream) {
    atomic_store_explicit(&stream->feeder, &ocl_thread_mark, memory_order_relaxed);
    atomic_fetch_add_explicit(&stream->queued, 1, memory_order_release);
}

/* The same where the driver answered `error` to it. */
tn_status ocl_queued(tn_stream_impl *stream, cl_int error, const char *what);

static inline bool ocl_is_capturing(tn_stream_impl *stream) {
    return atomic_load_explicit(&stream->recording, memory_order_relaxed);
}

/* TN_ERR_STATE, with a message, while the stream captures; `what` cannot be recorded. The second says so in any case. */
tn_status ocl_check_not_capturing(tn_stream_impl *stream, const char *what);
tn_status ocl_fail_capturing(const tn_stream_impl *stream, const char *what);

#endif
