/* tenon/device.h: devices, streams, events, memory figures.
 *
 * A device is written "type:index": "cpu:0", "npu:1"; "npu" means npu:0, "npu@com.acme:0" picks the
 * plugin by id where two have the type. "meta" has shapes and no data. Streams and events are
 * reference counted objects of their device; on a device that computes synchronously they exist and
 * are always done. Every function may be called from any thread; "current" is per thread.
 */
#ifndef TENON_DEVICE_H
#define TENON_DEVICE_H

#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices ----------------------------------------------------------------------------- */

/* Opens the device, loading its plugin if needed. A device that is not there is an error that lists
 * every plugin tried and its reason; {0, 0} is returned then. */
TN_API tn_device tn_device_parse(const char *name);
/* What tn_set_default_device set, else TENON_DEVICE, else cpu:0. {0, 0} with an error if it is not
 * there. */
TN_API tn_device tn_default_device(void);
/* For the calling thread's process: all threads see it. */
TN_API tn_status tn_set_default_device(tn_device device);
/* "npu:1" into `out` of `size` bytes; returns out. */
TN_API char *tn_device_name(tn_device device, char *out, uint64_t size);
/* The product's name, such as "Intel(R) Xeon(R)"; "" for none. Valid until tn_shutdown. */
TN_API const char *tn_device_product(tn_device device);
/* How many devices of a type there are; 0 with an error when its plugin does not work. */
TN_API uint32_t tn_device_count(const char *type);
TN_API bool tn_device_equal(tn_device a, tn_device b);
/* Can the device store elements of this dtype? */
TN_API bool tn_device_has_dtype(tn_device device, tn_dtype dtype);
/* May its kernels take subnormal numbers of this dtype for zero? */
TN_API bool tn_device_flushes_subnormals(tn_device device, tn_dtype dtype);
/* Waits for all work on the device; reports errors of that work. */
TN_API tn_status tn_synchronize(tn_device device);

/* The packed form of a device in an I64 cell of a boxed call. */
static inline int64_t tn_device_pack(tn_device device) {
    return TN_CAST(int64_t, (TN_CAST(uint64_t, TN_CAST(uint32_t, device.type)) << 32) |
                                TN_CAST(uint32_t, device.index));
}
static inline tn_device tn_device_unpack(int64_t packed) {
    tn_device d;
    d.type = TN_CAST(int32_t, packed >> 32);
    d.index = TN_CAST(int32_t, packed & 0xffffffff);
    return d;
}

/* Host threads that kernels may use (devices that compute on the host). n >= 1. */
TN_API tn_status tn_set_num_threads(uint32_t n);
TN_API uint32_t tn_get_num_threads(void);

/* ---- streams and events ------------------------------------------------------------------ */

typedef struct tn_stream tn_stream;
typedef struct tn_event tn_event;

TN_API tn_stream *tn_stream_create(tn_device device, int32_t priority);
TN_API tn_stream *tn_stream_keep(tn_stream *stream);
TN_API void tn_stream_drop(tn_stream *stream);
/* The calling thread's stream of the device (borrowed), and setting it. Setting keeps a reference.
 */
TN_API tn_stream *tn_current_stream(tn_device device);
TN_API tn_status tn_set_current_stream(tn_stream *stream);
TN_API tn_device tn_stream_device(const tn_stream *stream);
/* Its number on its device: 0 is the default stream, others count from 1; a number is used again
 * after its stream is gone. -1 for NULL. */
TN_API int64_t tn_stream_id(const tn_stream *stream);
/* TN_OK when all work is done, TN_NOT_READY, or the error of the work, once, with the operators
 * that were enqueued since the last good point. */
TN_API tn_status tn_stream_query(tn_stream *stream);
TN_API tn_status tn_stream_synchronize(tn_stream *stream);
/* Queue of the underlying API, or NULL. */
TN_API void *tn_stream_native(tn_stream *stream);

TN_API tn_event *tn_event_create(tn_device device, bool timing);
TN_API void tn_event_destroy(tn_event *event);
TN_API tn_status tn_event_record(tn_event *event, tn_stream *stream);
/* Work queued on `stream` from now on waits for the event; the devices may differ, also in plugin
 * (then the host waits). */
TN_API tn_status tn_event_wait(tn_event *event, tn_stream *stream);
TN_API tn_status tn_event_query(tn_event *event);
TN_API tn_status tn_event_synchronize(tn_event *event);
TN_API tn_status tn_event_elapsed(tn_event *start, tn_event *end, double *out_ns);

/* The storage of `t` is used on `stream` too: it is not reused before that stream has passed this
 * point. Needed when a tensor made on one stream is used on another and dropped. */
TN_API tn_status tn_record_stream(tn_tensor *t, tn_stream *stream);

/* ---- memory ------------------------------------------------------------------------------ */

/* Small blocks that threads keep for themselves count as free. Peaks are taken when memory is not
 * to be had there, so they may miss up to 1 MiB per thread. */
typedef struct tn_memory_stats {
    uint64_t struct_size;                     /* set by the caller */
    uint64_t allocated_bytes, allocated_peak; /* in live tensors */
    uint64_t reserved_bytes, reserved_peak;   /* held from the device */
    uint64_t active_bytes, active_peak;       /* live, or waiting for a stream */
    uint64_t requested_bytes;                 /* live, before rounding */
    uint64_t n_allocations, n_frees;          /* by tensors, since the start */
    uint64_t n_device_allocs, n_device_frees; /* by the cache, from the device */
    uint64_t n_retries, n_out_of_memory;      /* cache released and tried again; still failed */
    uint64_t limit_bytes;                     /* 0: none */
} tn_memory_stats;

TN_API tn_status tn_memory_stats_get(tn_device device, tn_memory_stats *out);
TN_API tn_status tn_memory_reset_peaks(tn_device device);
/* Gives every unused cached segment back to the device. */
TN_API tn_status tn_empty_cache(tn_device device);
/* At most `bytes` are held from the device; 0: no limit. */
TN_API tn_status tn_memory_set_limit(tn_device device, uint64_t bytes);
/* Segments and blocks as JSON; free with tn_string_free. */
TN_API char *tn_memory_snapshot(tn_device device);

/* Pinned host memory of the device, cached; NULL with an error. */
TN_API void *tn_pinned_alloc(tn_device device, uint64_t bytes);
TN_API void tn_pinned_free(void *p);
/* The device for which the memory around p was pinned, also where p points into its middle; {0, 0},
 * without an error, where tn_pinned_alloc did not give it out or it was freed. */
TN_API tn_device tn_pinned_owner(const void *p);

/* ---- the end ----------------------------------------------------------------------------- */

/* Closes devices and shuts plugins down. Optional: at exit the system takes everything back. Fails
 * with TN_ERR_STATE, and does nothing, while tensors are alive. Destroy events and drop streams before:
 * those that are left are gone with their devices. Other threads must be done with Tenon; the
 * library can be used again afterwards, also by them. In a forked child see tenon/tenon.h. */
TN_API tn_status tn_shutdown(void);

#ifdef __cplusplus
}
#endif

#endif /* TENON_DEVICE_H */
