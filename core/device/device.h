/* Devices, streams and events inside the core: one object for each open device of any plugin.
 *
 * Devices are opened on first demand and stay open until tn_shutdown. A tni_device * may be kept by
 * anything that lives inside the library.
 */
#ifndef TNI_CORE_DEVICE_DEVICE_H
#define TNI_CORE_DEVICE_DEVICE_H

#include "base/thread.h"
#include "core/device/kernel_table.h"
#include "loader/loader.h"
#include "dispatcher/registry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenon/device.h>

struct tni_allocator;

/* Enough to say what was running when an asynchronous error is found: the names of the operators
 * that were enqueued since the last point at which all was well. */
enum { TNI_STREAM_TRAIL = 8 };

struct tn_stream {
    _Atomic uint32_t refs;
    uint32_t id; /* dense per device; 0 is the default stream */
    struct tni_device *device;
    tn_stream_impl *handle;   /* NULL on a synchronous device */
    _Atomic uint32_t n_trail; /* operators since the last good point */
    _Atomic(const char *) trail[TNI_STREAM_TRAIL];
    struct tn_stream *next;  /* in the device's list, by rising id */
    struct tni_pools *pools; /* the allocator's, with its lock; they hold a reference */
    bool reserved;           /* with the same lock: what is free in its pools is a graph's */
    _Atomic bool captures;   /* its work is recorded, and does not run (core/graph) */
};

/* Events of a device that are not in use, for waits that nobody sees. */
enum { TNI_IDLE_EVENTS = 16 };

typedef struct tni_device {
    tn_device id;
    uint32_t ordinal;         /* dense over all open devices, for thread tables */
    int backend;              /* 0..63 */
    uint64_t backends;        /* 1 << backend */
    const tni_plugin *plugin; /* NULL for meta, the device without data */
    tn_device_impl *handle;
    const tn_device_ops *ops;
    const tn_memory_ops *memory;
    const tn_stream_ops *streams; /* NULL: synchronous */
    const tn_event_ops *events;   /* NULL: synchronous */
    tni_kernel_set kernels;
    struct tni_allocator *allocator;
    tn_stream default_stream;
    uint64_t dtypes;         /* mask it can store */
    uint64_t flushes;        /* mask of those whose subnormal numbers it may take for zero */
    uint64_t alignment;      /* of allocations */
    uint64_t max_allocation; /* 0 = no limit */
    uint64_t spaces;         /* mask of tn_memory_space it serves */
    bool host_memory;        /* device memory is host memory */
    bool is_meta;
    bool is_cpu;                    /* type "cpu": its 0-dim tensors mix with any device */
    _Atomic bool lost;              /* every later call fails */
    char name[64];                  /* "npu@com.acme:0" */
    char product[256];              /* printable, whatever the plugin has said */
    const struct tn_ext_fork *fork; /* NULL: the plugin need not be told */
    _Atomic bool forked;            /* opened by the parent of this process; `lost` is set too */
    pthread_mutex_t lock;           /* guards what follows */
    tn_stream *made;                /* all streams but the default one */
    uint32_t n_idle_events;
    tn_event_impl *idle_events[TNI_IDLE_EVENTS];
} tni_device;

enum { TNI_MAX_DEVICES = 256 }; /* over all types */

/* The open device, or NULL with an error (opens it when it is not yet open). */
tni_device *tni_device_get(tn_device id);
/* By ordinal; NULL past the last. */
tni_device *tni_device_at(uint32_t ordinal);

/* A kernel that a program gave to the devices of one type: those that are open and those that will
 * be.
 */
typedef struct tni_program_kernel {
    tni_registration_head head;
    struct tni_program_kernel *next; /* newest last */
    const tni_kernel_op *op;
    tn_kernel record;
    tni_outputs_fn outputs;
    tn_registration *handler;      /* of a custom operator: what leads calls to its kernels */
    uint64_t ids[TNI_MAX_DEVICES]; /* in the kernel set of each device, by ordinal */
    char *origin;                  /* behind device_type */
    char device_type[];
} tni_program_kernel;

/* NULL with an error. `record` is copied. */
tni_program_kernel *tni_program_kernel_add(const char *device_type, const tni_kernel_op *op,
                                           const tn_kernel *record, tni_outputs_fn outputs,
                                           const char *origin);
/* Takes it from all devices and frees it. */
void tni_program_kernel_remove(tni_program_kernel *kernel);

/* TN_ERR_STATE in a forked child of a process that had opened the device; TN_ERR_DEVICE_LOST
 * after loss. Asked before anything is sent to the device. One load in the good case. */
tn_status tni_device_unusable(tni_device *device);
static inline tn_status tni_device_check(tni_device *device) {
    if (TNI_LIKELY(!atomic_load_explicit(&device->lost, memory_order_relaxed)))
        return TN_OK;
    return tni_device_unusable(device);
}

/* Turns the status of a plugin call into the standing error ("npu:0: <what>: <plugin's message>");
 * notices device loss. Returns the status. */
tn_status tni_device_fail(tni_device *device, tn_status status, const char *what);

/* For calls that tell nobody of a failure: notices device loss. Returns the status. */
static inline tn_status tni_device_notice(tni_device *device, tn_status status) {
    if (status == TN_ERR_DEVICE_LOST)
        atomic_store(&device->lost, true);
    return status;
}

/* The calling thread's stream. */
extern TNI_TLS tn_stream **tni_current_streams; /* by ordinal; NULL entries: the default stream */
extern TNI_TLS uint32_t tni_n_current_streams;
static inline tn_stream *tni_stream_current(tni_device *device) {
    if (TNI_LIKELY(device->ordinal >= tni_n_current_streams))
        return &device->default_stream;
    tn_stream *s = tni_current_streams[device->ordinal];
    return s ? s : &device->default_stream;
}

/* Notes that `operator_name` was enqueued (static string). Cheap; racing threads may lose a name.
 */
static inline void tni_stream_note(tn_stream *stream, const char *operator_name) {
    if (stream->handle) {
        uint32_t n = atomic_load_explicit(&stream->n_trail, memory_order_relaxed);
        atomic_store_explicit(&stream->trail[n % TNI_STREAM_TRAIL], operator_name,
                              memory_order_relaxed);
        atomic_store_explicit(&stream->n_trail, n + 1, memory_order_relaxed);
    }
}

static inline bool tni_stream_captures(const tn_stream *stream) {
    return atomic_load_explicit(&stream->captures, memory_order_relaxed);
}

/* Makes `stream` wait for all work queued on `source` so far (events; the host waits where the two
 * belong to different plugins). A no-op for the same stream and for synchronous devices. */
tn_status tni_stream_wait_stream(tn_stream *stream, tn_stream *source);

/* An unrecorded event of the device, and giving it back. NULL with the plugin's message kept for
 * tni_device_fail; `*out_status` says why. The device must not be synchronous. */
tn_event_impl *tni_event_take(tni_device *device, tn_status *out_status);
void tni_event_give(tni_device *device, tn_event_impl *event);

/* Waits until all work queued on `stream` so far is done, without taking the stream's error from
 * whoever synchronises it. True at once on a synchronous or lost device; false when the wait could
 * not be made. Sets no error. */
bool tni_stream_drain(tn_stream *stream);

/* Makes later work on `stream` wait for what is queued on `source`, a stream of the same device.
 * False when that could not be done. Sets no error, and does not wait. */
bool tni_stream_follow(tn_stream *stream, tn_stream *source);

/* Calls fn with every stream of the device, each kept for the call, without a lock. */
void tni_device_for_each_stream(tni_device *device, void (*fn)(tn_stream *stream, void *user),
                                void *user);

/* Closes every device: synchronises, empties caches, destroys streams, closes. */
void tni_devices_finish(void);

#endif
