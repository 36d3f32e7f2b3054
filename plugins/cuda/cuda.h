/* The objects of the CUDA plugin and what its files ask of each other.
 *
 * An open device holds the primary context of its GPU, so that a program's own CUDA code shares its
 * memory; a stream is a CUstream that does not wait for the legacy one; an event is a CUevent; memory
 * is an address. search.c finds the devices, device.c opens one, memory.c, transfer.c, stream.c and
 * event.c fill the tables of tenon/plugin.h, program.c and launch.c that of
 * plugins/shared/gpu/driver.h; capture.c records streams.
 *
 * Nothing is linked: the driver, NVRTC and the libraries are opened when they are needed (library.c),
 * each by its own name or as an option says. There are no globals: everything hangs on tn_instance.
 * Host memory comes from the host. */
#ifndef TNI_PLUGINS_CUDA_CUDA_H
#define TNI_PLUGINS_CUDA_CUDA_H

#include "plugins/cuda/driver.h"
#include "plugins/cuda/nvrtc.h"
#include "plugins/shared/gpu/cache.h"
#include "plugins/shared/gpu/driver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/plugin.h>

enum {
    CUDA_MESSAGE = 800, /* bytes of an error message */
    CUDA_NAME = 160,    /* of a device's name */
    CUDA_MAX_DEVICES = 64,
    CUDA_ALIGNMENT = 256,         /* of what the driver allocates */
    CUDA_STAGE_BYTES = 128 << 10, /* half of what a stream stages small transfers in */
    CUDA_RECENT = 16              /* launches that a stream remembers, a power of two */
};

/* A device that can be used, and what is asked about it most. */
typedef struct cuda_found {
    CUdevice id;
    int major, minor; /* its compute capability */
    char name[CUDA_NAME];
    uint64_t memory_bytes;
    gpu_traits traits;
} cuda_found;

struct tn_instance {
    const tn_host *host;
    gpu_cache cache; /* of built programs */

    pthread_mutex_t lock; /* guards what follows, until `searched` */
    bool searched;
    tn_status search_status;
    int driver_version;   /* 12040: 12.4 */
    char driver_text[24]; /* the same, as people write it */
    cuda_driver driver;
    uint32_t n_found;
    cuda_found found[CUDA_MAX_DEVICES];
    char reason[CUDA_MESSAGE]; /* what was found and is not used, and why */

    pthread_mutex_t nvrtc_lock; /* guards what follows, until nvrtc.library is set */
    cuda_nvrtc nvrtc;
};

typedef struct cuda_programs cuda_programs;
typedef struct cuda_recording cuda_recording;

/* Libraries whose kernels come before our own (libraries.h). */
typedef struct cuda_blaslt cuda_blaslt;
typedef struct cuda_dnn cuda_dnn;
typedef struct cuda_libraries {
    cuda_blaslt *blaslt;
    cuda_dnn *dnn;
} cuda_libraries;

struct tn_device_impl {
    gpu_device gpu; /* first: see plugins/shared/gpu/driver.h */
    tn_instance *self;
    const cuda_driver *driver;
    uint32_t index;
    const cuda_found *found;
    CUcontext context;
    cuda_programs *programs;
    cuda_libraries libraries;
    gpu_kernel *move_error; /* of graphs (capture.c), or NULL */
    atomic_bool lost;
    pthread_mutex_t streams_lock;
    tn_stream_impl *streams; /* under the lock: the latest first */
    _Atomic uint64_t peers;  /* devices, by index, whose memory is reached from here */
    _Atomic int64_t n_allocations;
};

/* Half of a stream's staging memory, and the last transfer that reads it. */
typedef struct cuda_stage {
    char *data; /* pinned */
    uint64_t used;
    CUevent last;
} cuda_stage;

struct tn_stream_impl {
    tn_device_impl *device;
    CUstream stream;
    atomic_bool may_fail;                /* something was queued that may set the error word */
    _Atomic(cuda_recording *) recording; /* while the stream captures */
    int32_t
        *error_word; /* [4], pinned: code, the dimension's size, and the index in two halves. Its
                            address is the same for the device */
    tn_stream_impl *previous, *next; /* of the device's */
    _Atomic(const gpu_kernel *) recent[CUDA_RECENT];
    _Atomic uint32_t n_recent;

    pthread_rwlock_t
        gate; /* who begins a capture is alone; what is never captured goes on together */
    pthread_mutex_t lock; /* guards what follows */
    cuda_stage stages[2];
    int stage; /* the one that is being filled */
};

struct tn_event_impl {
    tn_device_impl *device;
    uint32_t flags;
    CUevent event;
    atomic_bool is_recorded;
};

/* ---- errors (error.c) -------------------------------------------------------------------- */

/* Hands the formatted message to the host and returns `status`. */
tn_status cuda_fail(const tn_instance *self, tn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for an error of the driver, which is named: "cuda:0 (NAME): what: CUDA_ERROR_...: text".
 * Errors after which nothing works any more make the device lost, and the latest launches of its
 * streams are named; once it is, that is what is said. */
tn_status cuda_fail_driver(tn_device_impl *device, CUresult error, const char *what);

/* The same for work of a stream with another device: only the one is lost whose error it is. */
tn_status cuda_fail_between(tn_stream_impl *stream, tn_device_impl *other, CUresult error,
                            const char *what);

/* TN_ERR_DEVICE_LOST, with a message, once the device is lost. */
tn_status cuda_check_lost(tn_device_impl *device);

static inline bool cuda_is_lost(tn_device_impl *device) {
    return atomic_load_explicit(&device->lost, memory_order_relaxed);
}

/* ---- libraries (library.c) --------------------------------------------------------------- */

/* Opens the library that option `option` (TENON_CUDA_...) gives the path of, else the first of `names`
 * (NULL ends them) that there is. NULL, and why in `reason`, where there is none or the option says
 * "off". */
void *cuda_library_open(const tn_instance *self, const char *option, const char *const *names,
                        char *reason, size_t room);
void cuda_library_close(void *library);

/* ---- contexts (device.c) ----------------------------------------------------------------- */

/* Around calls of the driver: the device's context is the thread's until `leave`, which puts back
 * what was. */
typedef struct cuda_scope {
    const cuda_driver *driver;
    CUresult error; /* of entering; what follows is not to be called then */
    CUcontext before;
    bool is_pushed;
} cuda_scope;

cuda_scope cuda_enter(tn_device_impl *device);
void cuda_leave(const cuda_scope *scope);

/* A call in the context of `device`; the value is its CUresult, or that of entering. */
#define CUDA_INSIDE(device, call) \
    __extension__({ \
        cuda_scope scope_ = cuda_enter(device); \
        CUresult error_ = scope_.error; \
        if (error_ == CUDA_SUCCESS) { \
            error_ = (call); \
            cuda_leave(&scope_); \
        } \
        error_; \
    })
/* The same of the driver's `function`. */
#define CUDA_CALL(device, function, ...) \
    CUDA_INSIDE(device, (device)->driver->function(__VA_ARGS__))

/* ---- devices (search.c, device.c) -------------------------------------------------------- */

/* Looks for devices, once; afterwards self->found does not change. */
tn_status cuda_search(tn_instance *self);

extern const tn_device_ops cuda_device_ops;

/* ---- kernels (program.c, launch.c) ------------------------------------------------------- */

extern const gpu_driver cuda_gpu_driver;

struct gpu_kernel {
    CUfunction function;
    unsigned busy;    /* groups of GPU_GROUP that keep the device busy */
    const char *name; /* of the entry */
    const char *options;
};

tn_status cuda_programs_create(tn_device_impl *device);
void cuda_programs_destroy(tn_device_impl *device);

/* Builds device->move_error, unless it was. [any-thread] */
tn_status cuda_move_error_build(tn_device_impl *device, const gpu_source *source);

/* gpu_driver.build and .release. */
tn_status cuda_kernel_build(tn_device_impl *device, const gpu_variant *variant, gpu_kernel **out);
void cuda_kernel_release(tn_device_impl *device, gpu_kernel *kernel);

/* ---- memory (memory.c, transfer.c) ------------------------------------------------------- */

extern const tn_memory_ops cuda_memory_ops;

/* Host memory for an object of the plugin. On failure tells the host and returns NULL; the caller
 * returns TN_ERR_OUT_OF_MEMORY. */
void *cuda_host_alloc(const tn_instance *self, uint64_t bytes, const char *what);

tn_status cuda_copy_from_host(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                              uint64_t dst_offset, const void *src, tn_memory src_pinned,
                              uint64_t bytes);
tn_status cuda_copy_to_host(tn_device_impl *device, tn_stream_impl *stream, void *dst,
                            tn_memory dst_pinned, tn_memory src, uint64_t src_offset,
                            uint64_t bytes);
tn_status cuda_copy(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                    uint64_t dst_offset, tn_memory src, uint64_t src_offset, uint64_t bytes);
tn_status cuda_copy_peer(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                         uint64_t dst_offset, tn_device_impl *src_device, tn_memory src,
                         uint64_t src_offset, uint64_t bytes);
tn_status cuda_fill(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                    uint64_t dst_offset, uint8_t value, uint64_t bytes);

/* ---- streams and events (stream.c, event.c) ---------------------------------------------- */

extern const tn_stream_ops cuda_stream_ops;
extern const tn_event_ops cuda_event_ops;

/* What is queued, for the message should it be the last. It lives as long as the device. */
static inline void cuda_remember(tn_stream_impl *stream, const gpu_kernel *k) {
    uint32_t n = atomic_load_explicit(&stream->n_recent, memory_order_relaxed);
    atomic_store_explicit(&stream->recent[n % CUDA_RECENT], k, memory_order_relaxed);
    atomic_store_explicit(&stream->n_recent, n + 1, memory_order_relaxed);
}

/* What kernels report to; cuMemFreeHost frees it. In the context. */
CUresult cuda_error_word_create(tn_device_impl *device, int32_t **out);

/* Round what cannot be captured: from TN_OK to leaving no capture of the stream begins, which the driver would break
 * off. TN_ERR_STATE, with a message, while one is under way. */
tn_status cuda_enter_uncaptured(tn_stream_impl *stream, const char *what);
void cuda_leave_uncaptured(tn_stream_impl *stream);

/* TN_ERR_STATE, and says that `what` cannot be captured. */
tn_status cuda_fail_capturing(const tn_stream_impl *stream, const char *what);

#endif
