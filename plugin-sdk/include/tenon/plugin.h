/* tenon/plugin.h: everything a device plugin and the Tenon core say to each other.
 *
 * A plugin is one shared object that exports one function, tenon_plugin_query_v1. It links against
 * nothing of Tenon: what it may call is in the host table it is handed, what it offers is in the
 * tables it returns. This header needs no other header of Tenon and compiles as C99, C11, C17 and
 * C++11 to C++23. The kernel operators a plugin can implement are listed in tenon/kernels.h;
 * authors in C++ find guards and builders in tenon/plugin.hpp.
 *
 * Rules that hold for every struct here
 *   - The first member is `struct_size`, set by whoever fills the struct. A reader tests the member
 *     it wants with TN_HAS(), never the whole size, so old and new work together in both
 *     directions. The two exceptions are tn_cell, whose 16 bytes are frozen, and the handles.
 *   - Members are fixed-width and 8-byte aligned, there is no tail padding, and members are only
 *     ever added at the end. A function pointer that is NULL is a feature that is absent.
 *   - Arrays that cross the boundary are arrays of pointers, so that an element may grow; one of
 *     no elements may be NULL.
 *   - Strings are UTF-8 (a path: the bytes that the system has), NUL-terminated. What the plugin's
 *     tables point to stays while the object is mapped, what a property answers until the shutdown
 *     of that instance; what a call hands over is borrowed for that call, unless its contract says
 *     otherwise.
 *   - No call uses an object while it is being destroyed, or afterwards.
 *
 * Names: operators without "::", extension ids that begin with "tenon.", every enumerator and every
 * bit of a flag that is not named here belong to Tenon. A vendor's operators are "vendor::op", his
 * properties start at TN_PROP_VENDOR, his extension ids begin with his reverse domain name, and
 * symbols that his object exports beside tenon_plugin_query_v1 (and later vN) begin with his prefix
 * or belong to another plugin interface.
 *
 * What an older side does with what it does not know. A value added later reaches it thus:
 *   memory space, bit of tn_allocation.flags or of an event's flags, property
 *                                 TN_ERR_UNSUPPORTED, and nothing has happened
 *   status                        read as TN_ERR_INTERNAL
 *   bit of a plugin's or a kernel's flags, member at the end of a struct       ignored
 *   bit of a set of dtypes        masked away
 *   dtype, cell tag, layout       never sent to a side that did not declare it
 *   operator                      the record is skipped and counted
 *
 * Errors: a function that can fail returns a tn_status. Before it returns an error it calls, on the
 * thread that called it, host->fail with a message that says what went wrong and what the user can
 * do, unless its contract says that none is needed; the host copies the message at once and adds
 * plugin, device and operator. No error object crosses. What a call gives through a pointer holds on
 * TN_OK alone; after a failure it is as it was, or cleared. A call that failed has taken nothing: no
 * memory, handle or charge is left of it, and nothing is queued, but by a kernel's `run`, whose outputs
 * are open then. TN_ERR_DEVICE_LOST comes before every other answer: where
 * a device is gone, each call on it that can fail says so, queries with work left and those of
 * events and transfers of no bytes included, and of a call with two devices where either is;
 * property, accepts, supports and prepare may answer as before. A call that is being made when it
 * goes, one that waits included, returns, with this error or as if the device had gone a moment
 * later. Other devices go on: what waits there for a lost one waits no longer, and a copy from it
 * that was queued there brings anything, or is an error of its stream. A lost device may be closed
 * and opened again.
 *
 * Loading the object and every call leave the calling thread's floating-point modes (flags that
 * arithmetic raises may stay raised), signal mask, name, processors that it may run on and what a
 * driver or runtime keeps per thread (a current context, a number of threads) as they found them,
 * and so the process's locale, working directory, signal handlers, umask, environment variables,
 * timers and priority, and lower none of its limits. A plugin changes none of these of the process
 * even for a while, since other threads would see it; where its driver does, it puts them back.
 * What kernels compute for a thread whose floating-point modes are not the usual ones is open.
 * errno means nothing.
 * Nothing is written to standard output: what a plugin has to say goes to host->log_message. The
 * process may end without shutdown: then threads of the plugin may run while its static objects are
 * destroyed, and must bear it. A forked child may end so, too, whatever the plugin says of forks.
 *
 * Each slot of each table ends its contract with three tags:
 *   [any-thread]    may be called by several threads at once, also for the same object; what queues
 *                   work, and what never blocks, is not held up by a thread that waits in another
 *   [one-thread]    a host never makes two such calls at once for the same plugin; another host may
 *   [loaded]        after dlopen; nothing else has been called
 *   [plugin init]   between init and shutdown
 *   [device open]   for a device that is open (streams, events and memory belong to one)
 *   [required] / [optional]
 *
 * Versions: a plugin is refused when it was built before TN_ABI_OLDEST, when it requires a newer host
 * (abi_required), and when its tables are of a major version that has another entry; else any two
 * work together. What 1.x keeps is in docs/vendor/compatibility.md.
 */
#ifndef TENON_PLUGIN_H
#define TENON_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TN_ABI_MAJOR 1u
#define TN_ABI_MINOR 0u
#define TN_ABI_MAKE(major, minor) ((major)*65536u + (minor))
#define TN_ABI_VERSION TN_ABI_MAKE(TN_ABI_MAJOR, TN_ABI_MINOR)

/* The oldest plugin that a core of this version takes. */
#define TN_ABI_OLDEST TN_ABI_MAKE(1u, 0u)

/* The oldest Tenon that the plugin is to work with, and what it says in tn_plugin.abi_required: what
 * came later is hidden here, so that a newer header by itself shuts nobody out. To use something
 * newer where the host has it, define TN_ABI_TARGET as its version before this header, leave
 * abi_required at the oldest version that will do, and ask with TN_HAS. */
#ifndef TN_ABI_TARGET
#define TN_ABI_TARGET TN_ABI_OLDEST
#endif
#if TN_ABI_TARGET > TN_ABI_VERSION
#error "TN_ABI_TARGET is newer than this tenon/plugin.h"
#endif

#ifdef __cplusplus
#define TN_SIZEOF_MEMBER(type, member) sizeof(type::member)
#else
#define TN_SIZEOF_MEMBER(type, member) sizeof(((const type *)0)->member)
#endif

/* Is `member` inside the struct that `p` points to, as its writer knew it? Asked of each member of
 * tn_host and tn_memory_info, which may be shorter than here; what else a host fills is never
 * shorter than in version 1.0. */
#define TN_HAS(p, type, member) \
    ((p)->struct_size >= offsetof(type, member) + TN_SIZEOF_MEMBER(type, member))

/* ---- statuses ---------------------------------------------------------------------------- */

/* X(NAME, value, name, when to use it); the arity is frozen */
#define TN_STATUS_MAP(X) \
    X(OK, 0, "OK", "success") \
    X(ERR_INVALID_ARGUMENT, 1, "INVALID_ARGUMENT", \
      "the caller passed something that can never work") \
    X(ERR_SHAPE, 2, "SHAPE", "sizes, strides or ranks do not fit each other or the storage") \
    X(ERR_DTYPE, 3, "DTYPE", "an element type is not accepted here") \
    X(ERR_DEVICE, 4, "DEVICE", "tensors on devices that cannot be mixed, or no such device") \
    X(ERR_OUT_OF_MEMORY, 5, "OUT_OF_MEMORY", \
      "host or device memory is exhausted; the call may be tried again") \
    X(ERR_UNSUPPORTED, 6, "UNSUPPORTED", "valid, but this device, kernel or build cannot do it") \
    X(ERR_NOT_FOUND, 7, "NOT_FOUND", "a name, file, symbol or plugin does not exist") \
    X(ERR_INDEX_OUT_OF_RANGE, 8, "INDEX_OUT_OF_RANGE", \
      "an index read from a tensor lies outside its dimension") \
    X(NOT_READY, 9, "NOT_READY", \
      "work is still running; only a query answers this, and it is no error") \
    X(ERR_STATE, 10, "STATE", \
      "right call, wrong time: freed graph, closed device, changed saved tensor") \
    X(ERR_DEVICE_LOST, 11, "DEVICE_LOST", \
      "the device is gone; every later call on it fails with this") \
    X(ERR_ABI, 12, "ABI", "tables or versions of plugin and host do not match") \
    X(ERR_IO, 13, "IO", \
      "a file could not be read or written, or its content is not what it claims") \
    X(ERR_INTERNAL, 14, "INTERNAL", "a bug in Tenon or in a plugin")

typedef int32_t tn_status;
enum tn_status_code {
#define TN_STATUS_ENUM(NAME, value, name, text) TN_##NAME = value,
    TN_STATUS_MAP(TN_STATUS_ENUM)
#undef TN_STATUS_ENUM
        TN_STATUS_COUNT = 15 /* of this header; what crossed the boundary may be newer */
};

/* ---- element types ----------------------------------------------------------------------- */

/* X(NAME, value, name, bytes, category); category: f floating, i signed, u unsigned, b bool. The
 * arity is frozen. Elements lie as the host would have them, in its byte order; a bool is 0 or 1. */
#define TN_DTYPE_MAP(X) \
    X(F32, 0, "f32", 4, 'f') \
    X(F64, 1, "f64", 8, 'f') \
    X(F16, 2, "f16", 2, 'f') \
    X(BF16, 3, "bf16", 2, 'f') \
    X(I8, 4, "i8", 1, 'i') \
    X(I16, 5, "i16", 2, 'i') \
    X(I32, 6, "i32", 4, 'i') \
    X(I64, 7, "i64", 8, 'i') \
    X(U8, 8, "u8", 1, 'u') \
    X(BOOL, 9, "bool", 1, 'b')

typedef int32_t tn_dtype;
enum tn_dtype_code {
#define TN_DTYPE_ENUM(NAME, value, name, bytes, category) TN_##NAME = value,
    TN_DTYPE_MAP(TN_DTYPE_ENUM)
#undef TN_DTYPE_ENUM
        TN_DTYPE_COUNT = 10, /* of this header; what crossed the boundary may be newer */
    TN_DTYPE_NONE = -1       /* "not given"; never seen by a plugin */
};

/* Numbers that are taken, for dtypes of later versions; as above, c: complex. An element is whole
 * bytes: types of 4 bits come in pairs. */
#define TN_DTYPE_RESERVED_MAP(X) \
    X(U16, 10, "u16", 2, 'u') \
    X(U32, 11, "u32", 4, 'u') \
    X(U64, 12, "u64", 8, 'u') \
    X(C32, 13, "c32", 4, 'c') \
    X(C64, 14, "c64", 8, 'c') \
    X(C128, 15, "c128", 16, 'c') \
    X(F8_E4M3FN, 16, "f8_e4m3fn", 1, 'f') \
    X(F8_E5M2, 17, "f8_e5m2", 1, 'f') \
    X(F8_E4M3FNUZ, 18, "f8_e4m3fnuz", 1, 'f') \
    X(F8_E5M2FNUZ, 19, "f8_e5m2fnuz", 1, 'f') \
    X(F8_E8M0FNU, 20, "f8_e8m0fnu", 1, 'f') \
    X(F4_E2M1FN_X2, 21, "f4_e2m1fn_x2", 1, 'f') \
    X(I4_X2, 22, "i4_x2", 1, 'i') \
    X(U4_X2, 23, "u4_x2", 1, 'u')

/* A set of dtypes is a mask with one bit per dtype. The sets named here never grow, since a plugin
 * that is compiled again must not claim what it was not written for; new sets get new names. */
#define TN_DTYPE_BIT(dtype) (UINT64_C(1) << (dtype))
#define TN_DTYPES_FLOAT \
    (TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64) | TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16))
#define TN_DTYPES_INT \
    (TN_DTYPE_BIT(TN_I8) | TN_DTYPE_BIT(TN_I16) | TN_DTYPE_BIT(TN_I32) | TN_DTYPE_BIT(TN_I64) | \
     TN_DTYPE_BIT(TN_U8))
#define TN_DTYPES_NUMBER (TN_DTYPES_FLOAT | TN_DTYPES_INT)
#define TN_DTYPES_ALL (TN_DTYPES_NUMBER | TN_DTYPE_BIT(TN_BOOL))

/* ---- handles ----------------------------------------------------------------------------- */

/* Incomplete here; a plugin completes them in its own source (`struct tn_device_impl { ... };`) and so
 * needs no cast. The host only stores and returns them. A handle is not NULL, and none of its type that
 * is alive is the same, of whichever plugin: it is the address of something of the plugin's. Plugins in
 * C++ that are linked into one program give the types names of their own first (`#define
 * tn_device_impl acme_device` before this header), since C++ takes two types of one name for one. */
typedef struct tn_instance tn_instance;       /* an initialised plugin */
typedef struct tn_device_impl tn_device_impl; /* an open device */
typedef struct tn_stream_impl tn_stream_impl; /* an in-order queue of a device */
typedef struct tn_event_impl tn_event_impl;   /* a point in a stream */

/* A memory handle: whatever names an allocation on the device (an address, a cl_mem, an index).
 * Zero is "no memory". Handles are not addresses to the host: it keeps offsets apart. Those of all
 * spaces of a device are one name space, and may be given out again once freed. Handles of
 * TN_SPACE_PINNED appear in copy_from_host, copy_to_host and dealloc alone. */
typedef uint64_t tn_memory;

/* No kernel sees a tensor of more dimensions. */
#define TN_MAX_RANK 12

/* ---- values ------------------------------------------------------------------------------ */

/* A tensor as a kernel sees it. Sizes and strides count elements, offset counts bytes. Strides are
 * never negative; a stride of zero (broadcast) reaches only kernels that declare it, in inputs. The
 * stride of a dimension of one element means nothing and may be any such number, 0 included, for any
 * kernel. Rank 0 is one element; kernels.h says who sees it. Every element lies inside the allocation.
 * No two elements of outputs share a byte, though one's may lie between another's. */
typedef struct tn_tensor_view {
    uint64_t struct_size;
    tn_memory memory;
    uint64_t offset; /* of the first element from the start of the allocation, in bytes; a multiple
                        of the element's size */
    int64_t numel;   /* product of sizes; at least 1 in every kernel call */
    tn_dtype dtype;
    int32_t rank;
    const int64_t *sizes;   /* [rank] */
    const int64_t *strides; /* [rank]; NULL where layout is not 0 */
    uint32_t layout;        /* 0 strided; other values are for formats of later versions */
    uint32_t reserved;      /* 0 */
} tn_tensor_view;

/* The tagged value, 16 bytes, frozen for ever. */
typedef struct tn_cell {
    uint32_t tag; /* tn_cell_tag */
    uint32_t n;   /* number of elements of a list, else 0; a list of none may be NULL */
    union {
        int64_t i64;
        double f64;
        int64_t boolean; /* 0 or 1 */
        const int64_t *ints;
        const double *floats;
        const char *string;
        const tn_tensor_view *view; /* TN_CELL_TENSOR in a kernel call */
        const tn_tensor_view *const
            *views; /* TN_CELL_TENSORS in a kernel call; elements may be NULL */
        void *pointer;
    } v;
} tn_cell;

enum tn_cell_tag {
    TN_CELL_NONE = 0, /* an optional value that was left out */
    TN_CELL_TENSOR = 1,
    TN_CELL_TENSORS = 2,
    TN_CELL_I64 = 3,
    TN_CELL_F64 = 4,
    TN_CELL_BOOL = 5,
    TN_CELL_INTS = 6,
    TN_CELL_STRING = 7,
    TN_CELL_FLOATS = 8 /* in the schema of no operator yet */
};

/* ---- the host's side --------------------------------------------------------------------- */

typedef enum tn_log_level {
    TN_LOG_ERROR = 0,
    TN_LOG_WARN = 1,
    TN_LOG_INFO = 2,
    TN_LOG_DEBUG = 3,
    TN_LOG_TRACE = 4
} tn_log_level;

/* What a plugin may call. There is a table for each plugin of each host: the one that `query` and
 * `init` are given, which is there until `shutdown` has returned; a host may keep it inside an object
 * of its own. Each function takes it as the first argument. */
typedef struct tn_host {
    uint64_t struct_size;
    uint32_t abi_version; /* TN_ABI_VERSION of the core */
    uint32_t reserved;    /* 0 */

    /* Host memory, `alignment` a power of two; NULL when there is none. Take it here, so that
     * failing allocations can be tested; what libraries take for themselves is theirs. [any-thread]
     * [loaded] [required] */
    void *(*alloc)(const struct tn_host *host, uint64_t bytes, uint64_t alignment);

    /* Gives back what alloc returned; NULL is allowed. [any-thread] [loaded] [required] */
    void (*dealloc)(const struct tn_host *host, void *p);

    /* Writes one line to Tenon's log, with the plugin's id; `level` is a tn_log_level.
     * [any-thread] [loaded] [required] */
    void (*log_message)(const struct tn_host *host, int32_t level, const char *message);

    /* Keeps `message` for the calling thread as the reason of the failure that is about to be
     * returned, or of a count of zero, and returns `status`:
     * `return host->fail(host, TN_ERR_IO, "...")`. The text is copied. [any-thread] [loaded]
     * [required] */
    tn_status (*fail)(const struct tn_host *host, tn_status status, const char *message);

    /* The value of option `name` for this plugin, or NULL. Option `threads` of plugin type `npu` is
     * the environment variable TENON_NPU_THREADS; programs can set options before the plugin is
     * loaded, not later. The string is valid until shutdown. [any-thread] [plugin init]
     * [required] */
    const char *(*option)(const struct tn_host *host, const char *name);

    /* A host-side extension table, or NULL; id such as "tenon.trace/1". [any-thread] [loaded]
     * [optional] */
    const void *(*extension)(const struct tn_host *host, const char *id);
} tn_host;

/* ---- memory ------------------------------------------------------------------------------ */

typedef enum tn_memory_space {
    TN_SPACE_DEVICE = 0, /* the device's own memory, where tensors live; every device has it */
    TN_SPACE_PINNED =
        1 /* host memory that the device reaches directly; offered by TN_PROP_SPACES */
} tn_memory_space;

/* A request for memory, and what came of it. */
typedef struct tn_allocation {
    uint64_t struct_size;
    uint64_t bytes;     /* in: at least 1 */
    uint64_t alignment; /* in: a power of two, the device's alignment property or more; what is more
                           than can be served: TN_ERR_UNSUPPORTED */
    int32_t space;      /* in: tn_memory_space; one that is not offered: TN_ERR_UNSUPPORTED */
    uint32_t flags;     /* in: none yet; a bit that is not known: TN_ERR_UNSUPPORTED */
    tn_memory memory;   /* out: not 0 */
    void *host;         /* out: where the host may read and write it, else NULL; never NULL for
                           TN_SPACE_PINNED */
} tn_allocation;

typedef struct tn_memory_info {
    uint64_t struct_size;
    uint64_t total_bytes; /* 0 when unknown */
    uint64_t free_bytes; /* what alloc can still give out in all, in the driver's units, whoever has
                             the rest; not always at once, where it is in pieces; 0 when unknown */
} tn_memory_info;

/* Raw memory of one device. The core caches, splits and reuses allocations; the plugin need not.
 * `stream` is NULL on a device without streams: then the call is complete when it returns.
 *
 * Where an allocation has a host pointer, the host touches those bytes only when the work that uses
 * them is known to be done, by a query or synchronize of the stream or of an event; they are
 * coherent then, without a flush. Memory that is not gives no pointer. On a device with
 * TN_PROP_UNIFIED_MEMORY whose handles are addresses the host may also pass addresses that alloc did
 * not give out (a tensor over the caller's memory). */
typedef struct tn_memory_ops {
    uint64_t struct_size;

    /* Serves `allocation`. Fails with TN_ERR_OUT_OF_MEMORY and no side effect. [any-thread] [device
     * open] [required] */
    tn_status (*alloc)(tn_device_impl *device, tn_allocation *allocation);

    /* Frees an allocation, never 0, that alloc gave in `space`, with what the plugin keeps for it
     * on the host. The core has made sure that no queued work uses it. On a lost device it releases
     * host resources and does nothing else. [any-thread] [device open] [required] */
    void (*dealloc)(tn_device_impl *device, int32_t space, tn_memory memory);

    /* Host to device, in stream order. With `src_pinned` 0, `src` is consumed before the call
     * returns, whatever memory it is, for which it may wait. Else [src, src + bytes) lies in
     * `src_pinned`, an allocation of TN_SPACE_PINNED of this device: it is read in stream order,
     * and stays untouched until the stream has passed. No bytes: nothing happens; handles and
     * pointers are good ones all the same, and offset and pinned address may be the end of the
     * allocation; here and in all that follows. [any-thread] [device open] [required] */
    tn_status (*copy_from_host)(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                                uint64_t dst_offset, const void *src, tn_memory src_pinned,
                                uint64_t bytes);

    /* Device to host, in stream order. With `dst_pinned` 0 the bytes are there when the call
     * returns, whatever memory `dst` is. Else [dst, dst + bytes) lies in `dst_pinned`, an allocation
     * of TN_SPACE_PINNED of this device, and is complete when the stream has passed. An error of
     * earlier work stays for query and synchronize, which the host asks before it trusts the bytes.
     * [any-thread] [device open] [required] */
    tn_status (*copy_to_host)(tn_device_impl *device, tn_stream_impl *stream, void *dst,
                              tn_memory dst_pinned, tn_memory src, uint64_t src_offset,
                              uint64_t bytes);

    /* Device to device on one device, in stream order; the ranges do not overlap. [any-thread]
     * [device open] [required] */
    tn_status (*copy)(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                      uint64_t dst_offset, tn_memory src, uint64_t src_offset, uint64_t bytes);

    /* From `src_device` to `device`, two of this plugin, in order on `stream` of `device`; the
     * core has made `stream` wait for the source. Absent or TN_ERR_UNSUPPORTED, which needs no
     * message: the core stages through the host. [any-thread] [device open] [optional] */
    tn_status (*copy_peer)(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                           uint64_t dst_offset, tn_device_impl *src_device, tn_memory src,
                           uint64_t src_offset, uint64_t bytes);

    /* Sets every byte of a range, in stream order. [any-thread] [device open] [required] */
    tn_status (*fill)(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                      uint64_t dst_offset, uint8_t value, uint64_t bytes);

    /* How much memory of `space` there is, and how much of it `alloc` could give;
     * `out->struct_size` is set by the caller, and stays. A space that is not offered:
     * TN_ERR_UNSUPPORTED. [any-thread] [device open] [optional] */
    tn_status (*info)(tn_device_impl *device, int32_t space, tn_memory_info *out);
} tn_memory_ops;

/* ---- streams and events ------------------------------------------------------------------ */

/* A device without streams leaves tn_device_ops.streams NULL: everything it does is complete when
 * the call returns. With streams, events are required too. */
typedef struct tn_stream_ops {
    uint64_t struct_size;

    /* A new in-order queue, as many as there is memory for. `priority`: any number, 0 normal, less
     * is more urgent; a hint, brought into the range that the device has. It has room for 200
     * kernels, copies, fills and transfers with pinned memory at least, a launch of a graph
     * counting as what was recorded, and beside them for 200 waits and records, taken together,
     * whatever other streams hold; when it is full, queueing anything may wait until there is room
     * again. [any-thread] [device open] [required] */
    tn_status (*create)(tn_device_impl *device, int32_t priority, tn_stream_impl **out_stream);

    /* Frees a queue; work still in it is finished first, behind all that it waits for, for which
     * the call may wait. An error that nobody asked for is forgotten. [any-thread] [device open]
     * [required] */
    void (*destroy)(tn_stream_impl *stream);

    /* TN_OK: all work is done, waits for events and launches of graphs included; TN_NOT_READY: not
     * yet, also when an error is known already; else the first error of work queued since the last
     * query or synchronize that reported one, with the message of that one; of several the others
     * are dropped. An error is reported once, and by nothing but these two; work behind it still
     * runs. Never blocks. [any-thread] [device open] [required] */
    tn_status (*query)(tn_stream_impl *stream);

    /* Waits until all work queued so far is done, however much others go on to queue, and reports
     * an error of it as query does; one of work that is queued meanwhile now or later. [any-thread]
     * [device open] [required] */
    tn_status (*synchronize)(tn_stream_impl *stream);
} tn_stream_ops;

enum {
    TN_EVENT_TIMING =
        1u /* elapsed will be asked for; a bit that is not known: TN_ERR_UNSUPPORTED */
};

typedef struct tn_event_ops {
    uint64_t struct_size;

    /* A new event, not yet recorded; `flags` of TN_EVENT_*. [any-thread] [device open]
     * [required] */
    tn_status (*create)(tn_device_impl *device, uint32_t flags, tn_event_impl **out_event);

    /* Frees an event; streams that wait for it still do. [any-thread] [device open] [required] */
    void (*destroy)(tn_event_impl *event);

    /* Records the present end of `stream`, which is of the event's device; what was recorded before
     * is forgotten, unless the call fails. The event is complete when the work before that point is
     * done, which is also when a clock is read for it. Of two threads that record it at once either
     * is the last. [any-thread] [device open] [required] */
    tn_status (*record)(tn_event_impl *event, tn_stream_impl *stream);

    /* Makes work queued on `stream` from now on wait for what the event recorded last; the stream
     * may be of another device of this plugin. Never blocks the host. An event that was never
     * recorded is complete. [any-thread] [device open] [required] */
    tn_status (*wait)(tn_stream_impl *stream, tn_event_impl *event);

    /* TN_OK when the event is complete, else TN_NOT_READY; errors of the work before it stay with
     * the stream, here and in synchronize. Never blocks. [any-thread] [device open] [required] */
    tn_status (*query)(tn_event_impl *event);

    /* Waits until the event is complete; recorded again meanwhile, for any of these points, and not
     * longer than for the latest at the time of the call. [any-thread] [device open] [required] */
    tn_status (*synchronize)(tn_event_impl *event);

    /* Device time in nanoseconds between the points that two events of one device recorded, both
     * made with TN_EVENT_TIMING, right to a microsecond or a thousandth of it, whichever is more,
     * also when a day lies between; negative when `end` was passed first. TN_ERR_STATE when one was
     * made without it, is not complete, or was never recorded, and for events of two devices. Never
     * waits. [any-thread] [device open] [optional] */
    tn_status (*elapsed)(tn_event_impl *start, tn_event_impl *end, double *out_ns);
} tn_event_ops;

/* ---- kernels ----------------------------------------------------------------------------- */

/* One call of a kernel. All tensors have at least one element; the core has promoted dtypes,
 * broadcast shapes, filled in defaults, made dimensions non-negative and allocated the outputs. What
 * an output holds before the call is open (NaN, perhaps) and not read, where it is no input too. */
typedef struct tn_call {
    uint64_t struct_size;
    tn_device_impl *device;
    tn_stream_impl *stream;            /* NULL on a device without streams */
    void *user;                        /* tn_kernel.user */
    const tn_cell *args;               /* [n_args], as the kernel operator's schema says */
    const tn_tensor_view *const *outs; /* [n_outs] */
    uint32_t n_args;
    uint32_t n_outs;
    tn_memory workspace;       /* what prepare asked for, or 0 */
    uint64_t workspace_offset; /* a multiple of the device's alignment */
    uint64_t workspace_bytes;  /* as prepare said */
    uint64_t cookie;           /* of prepare, else 0 */
} tn_call;

/* What a kernel takes beyond the plainest case. A flag widens what the core may send or count on:
 * to ignore one is always safe. Without a flag the core adapts the call: it makes inputs
 * contiguous, materialises broadcasts, computes into a temporary, fills a scalar into a tensor,
 * splits large calls. A kernel without flags therefore sees contiguous tensors (row-major, no zero
 * strides) of an extent below 2^31; no output shares memory with another tensor, while inputs may be
 * the same tensor, or share memory in any way. f32 products and their sums are computed in f32 at least.
 *
 * Bit 64 is never given again: it was a promise about capture that said too little. */
/* any non-negative strides, inputs and outputs */
#define TN_KERNEL_STRIDED UINT64_C(1)
/* inputs with strides of zero */
#define TN_KERNEL_BROADCAST UINT64_C(2)
/* an output may be exactly an input (same view), whichever argument of its dtype and sizes that is,
 * or several that are all that view; it shares no byte with another, whose elements may lie between
 * its own where both take strides */
#define TN_KERNEL_IN_PLACE UINT64_C(4)
/* tensors of an extent, 1 + sum of (size - 1) * stride, of 2^31 elements or more */
#define TN_KERNEL_INDEX64 UINT64_C(8)
/* pointwise: at most one Tensor argument may arrive as I64, F64 or BOOL cell instead of a tensor */
#define TN_KERNEL_SCALARS UINT64_C(16)
/* the same call (sizes, strides, attributes, bytes of the inputs; tensors that begin at the device's
 * alignment) gives the same bits, every time, whichever host thread makes it, and several at once */
#define TN_KERNEL_DETERMINISTIC UINT64_C(32)

enum { TN_KERNEL_MAX_TYPES = 8 };

/* What a kernel needs for one call. */
typedef struct tn_plan {
    uint64_t struct_size;     /* set by the host; the others are 0 when prepare is called */
    uint64_t workspace_bytes; /* scratch device memory; 0: none */
    uint64_t cookie;          /* anything: it is handed back in tn_call.cookie */
} tn_plan;

/* A kernel offered for one kernel operator (tenon/kernels.h) and the dtypes it handles.
 *
 * Several records may serve one operator. They are tried in their order: first for one that takes
 * the call as it is, then for one that takes it adapted. A record is passed over when its dtypes or
 * flags do not fit, when `supports` or `prepare` answers TN_ERR_UNSUPPORTED, or when `run` does so
 * having queued and written nothing; when none is left, the operator's decomposition runs. A record
 * that can never be reached, since an earlier one takes all that it takes, is a mistake. */
typedef struct tn_kernel {
    uint64_t struct_size;
    const char *op;       /* "add", never NULL; one the core does not know is skipped and counted */
    uint64_t schema_hash; /* TN_KERNEL_HASH_...; a record with another is skipped and counted */
    uint64_t dtypes[TN_KERNEL_MAX_TYPES]; /* accepted dtypes of each type variable, of those that
                                             the operator takes; 0 = not used */
    uint64_t flags;                       /* TN_KERNEL_* */
    void *user;                           /* handed back in tn_call.user */

    /* Queues the work on call->stream and returns; on a device without streams does the work. The
     * first call of its kind may take long (a program is built) but waits for no work. An
     * index out of range, found on the device, reaches no memory (what the outputs hold is open,
     * all of them; nothing else has changed): it sets the stream's error, reported as
     * TN_ERR_INDEX_OUT_OF_RANGE by the next query or synchronize; without streams `run` returns it.
     * TN_ERR_UNSUPPORTED, with nothing queued and nothing written, passes the record over, and
     * needs no message. Stays within workspace_bytes. Gets by with 1 MiB of the calling thread's
     * stack. [any-thread] [device open] [required] */
    tn_status (*run)(const tn_call *call);

    /* Can this kernel take these shapes, strides and attributes? Pure: same question, same answer;
     * looks at no memory. `call->outs` is set; stream and memory handles may be 0, the workspace is
     * not there yet. TN_OK or TN_ERR_UNSUPPORTED, which needs no message. [any-thread] [device
     * open] [optional] */
    tn_status (*supports)(const tn_call *call);

    /* The call is about to be made and all of it is valid but for the workspace: says in `out` what
     * `run` needs, on any number of host threads. `run` follows on this thread, other calls perhaps
     * between them, with the same cells and views, though they may lie elsewhere, and out->cookie in
     * call->cookie; what the cookie stands for is used up then, whatever `run` answers. Where it
     * does not follow (no memory for the workspace), `abandon` does. `run` is never called without it.
     * TN_ERR_UNSUPPORTED, now or always, passes the record over, and needs no message. [any-thread]
     * [device open] [optional] */
    tn_status (*prepare)(const tn_call *call, tn_plan *out);

    /* Releases what the cookie stands for. [any-thread] [device open] [optional] */
    void (*abandon)(const tn_call *call);
} tn_kernel;

/* ---- devices ----------------------------------------------------------------------------- */

typedef enum tn_device_property {
    TN_PROP_NAME = 0,           /* STRING: the product's name, for people, not empty; valid until
                                       shutdown of the instance */
    TN_PROP_ALIGNMENT = 1,      /* I64: alignment of allocations in bytes, a power of two [64] */
    TN_PROP_MAX_ALLOCATION = 2, /* I64: the largest single allocation in bytes, not more than the
                                       device has: no more is asked for in one, and so much may be
                                       out of memory; 0 = no limit but that [0] */
    TN_PROP_COMPUTE_UNITS = 3,  /* I64: cores, multiprocessors, at least 1; for information [1] */
    TN_PROP_DTYPES = 4,         /* I64: mask of dtypes the device can store and copy
                                       [TN_DTYPES_ALL] */
    TN_PROP_UNIFIED_MEMORY = 5, /* BOOL: device memory is ordinary host memory: every allocation
                                       has a host pointer, and once synchronized host reads are cheap
                                       [0] */
    TN_PROP_FLUSHES_SUBNORMALS = 6, /* I64: mask of the floating dtypes whose subnormal numbers
                                       kernels may take for zero, in and out [none] */
    TN_PROP_SPACES = 7,             /* I64: mask, 1 << tn_memory_space, of what alloc serves
                                       [1 << TN_SPACE_DEVICE]; without TN_SPACE_PINNED the core hands
                                       out plain host memory */
    TN_PROP_DRIVER_VERSION = 8,     /* STRING: of the driver or library that the plugin drives the
                                       device with, for people, not empty; valid until shutdown of the
                                       instance [unknown] */
    TN_PROP_FIRMWARE_VERSION = 9,   /* STRING: of what runs on the device itself; the same
                                       [unknown] */
    TN_PROP_VENDOR = 0x40000000     /* properties from here on are the vendor's own */
} tn_device_property;

typedef struct tn_device_ops {
    uint64_t struct_size;

    /* How many devices can be used, the same until shutdown; zero, with TN_OK, where there is none:
     * what the call has told host->fail is then what users are shown as the reason. A driver that
     * fails to start is a failure with a message. Must not create contexts. [one-thread] [plugin
     * init] [required] */
    tn_status (*count)(tn_instance *self, uint32_t *out_count);

    /* Opens device `index`, which this instance has not open; TN_ERR_DEVICE, with *out_device NULL,
     * when there is none of that index. [one-thread] [plugin init] [required] */
    tn_status (*open)(tn_instance *self, uint32_t index, tn_device_impl **out_device);

    /* Closes a device; its streams, events and memory were released before. [one-thread]
     * [device open] [required] */
    void (*close)(tn_device_impl *device);

    /* A tn_device_property of device `index`, which is below the count, open or not.
     * TN_ERR_UNSUPPORTED: the default, given in brackets above, holds, *out_value is left alone,
     * and no message is needed. The same each time until shutdown, open or not, on any thread.
     * Another thread may be in count or open. [any-thread] [plugin init] [required] */
    tn_status (*property)(tn_instance *self, uint32_t index, int32_t property, tn_cell *out_value);

    /* Does this device run `kernel`? Devices of one plugin may differ (f64, f16, memory). Asked
     * once per record when a device is opened; TN_OK or TN_ERR_UNSUPPORTED, without a message.
     * Absent: every device runs every kernel. [one-thread] [device open] [optional] */
    tn_status (*accepts)(tn_device_impl *device, const tn_kernel *kernel);

    const tn_memory_ops *memory;  /* required */
    const tn_stream_ops *streams; /* NULL: a synchronous device */
    const tn_event_ops *events;   /* required with streams */
} tn_device_ops;

/* ---- the plugin -------------------------------------------------------------------------- */

enum {
    TN_PLUGIN_FORK_SAFE = 1u, /* open devices still work in a forked child, see tenon/ext/fork.h;
                                 without it the core makes no call in the child */
    TN_PLUGIN_UNLOADABLE = 2u /* after shutdown the object may be dlclosed */
};

typedef struct tn_plugin {
    uint64_t struct_size;
    uint32_t abi_version;    /* TN_ABI_VERSION the plugin was built against */
    uint32_t abi_required;   /* the oldest host it works with: TN_ABI_TARGET */
    uint64_t flags;          /* TN_PLUGIN_* */
    const char *id;          /* reverse domain name, unique: "com.acme.npu"; at most 127 bytes */
    const char *device_type; /* what users write before the colon: [a-z][a-z0-9_]*, at most 31 */
    const char *name;        /* for people; at most 255 bytes */
    const char *version;     /* the plugin's own; at most 255 bytes */

    /* Starts the plugin. `path` is the real path of its shared object, or NULL when linked
     * statically. Cheap; hardware is first touched by devices->count. Called again after shutdown,
     * and while other instances live: a process may have several hosts that use the same object,
     * each from its own threads, and what one does the others cannot see, but for what is left of
     * the device. `*out_self` is not NULL
     * and no other plugin's. Must not call back into Tenon but through `host`. [one-thread]
     * [loaded] [required] */
    tn_status (*init)(const tn_host *host, const char *path, tn_instance **out_self);

    /* Ends it; all devices were closed. When it returns no thread that the plugin started runs and
     * no process that it started is left; what a runtime below it keeps for good does not grow from
     * one init to the next. [one-thread] [plugin init] [required] */
    void (*shutdown)(tn_instance *self);

    const tn_device_ops *devices;    /* required */
    const tn_kernel *const *kernels; /* [n_kernels], none NULL */
    uint64_t n_kernels;

    /* A plugin-side extension table, the same each time, or NULL; see tenon/ext/. Must answer NULL
     * to any id it does not know. [any-thread] [plugin init] [optional] */
    const void *(*extension)(tn_instance *self, const char *id);
} tn_plugin;

/* ---- the entry --------------------------------------------------------------------------- */

#if defined(__GNUC__)
#define TN_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define TN_PLUGIN_EXPORT
#endif

/* The symbol by which a plugin is found. Define TN_PLUGIN_QUERY before including this header to
 * rename it, for a plugin that is linked into the program and registered with tn_plugin_register. */
#ifndef TN_PLUGIN_QUERY
#define TN_PLUGIN_QUERY tenon_plugin_query_v1
#endif
#define TN_PLUGIN_QUERY_NAME "tenon_plugin_query_v1"

typedef const tn_plugin *(*tn_plugin_query_fn)(const tn_host *host);

/* Returns the plugin's table, or NULL when it cannot work with `host`. What it returned, and all
 * that is reached from there, stays as it is while the object is mapped. Pure, cheap, repeatable:
 * no hardware, no threads, no allocation, nothing printed. [any-thread] [loaded] [required] */
TN_PLUGIN_EXPORT const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host);

/* ---- layout, checked wherever this header is compiled ------------------------------------ */

/* Each assertion names the last member: its end must be the end of the struct. */
#if defined(__cplusplus)
#define TN_LAYOUT_ASSERT(cond, text) static_assert(cond, text)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define TN_LAYOUT_ASSERT(cond, text) _Static_assert(cond, text)
#else
#define TN_LAYOUT_ASSERT(cond, text) struct tn_layout_assert
#endif
#define TN_LAST_MEMBER(type, last) \
    TN_LAYOUT_ASSERT(sizeof(type) == offsetof(type, last) + TN_SIZEOF_MEMBER(type, last), \
                     #type ": " #last " must be the last member, without tail padding")

TN_LAYOUT_ASSERT(sizeof(tn_cell) == 16, "tn_cell is frozen at 16 bytes");
TN_LAYOUT_ASSERT(sizeof(void *) == 8, "tenon/plugin.h is for 64-bit machines");
TN_LAST_MEMBER(tn_tensor_view, reserved);
TN_LAST_MEMBER(tn_host, extension);
TN_LAST_MEMBER(tn_allocation, host);
TN_LAST_MEMBER(tn_memory_info, free_bytes);
TN_LAST_MEMBER(tn_memory_ops, info);
TN_LAST_MEMBER(tn_stream_ops, synchronize);
TN_LAST_MEMBER(tn_event_ops, elapsed);
TN_LAST_MEMBER(tn_call, cookie);
TN_LAST_MEMBER(tn_plan, cookie);
TN_LAST_MEMBER(tn_kernel, abandon);
TN_LAST_MEMBER(tn_device_ops, events);
TN_LAST_MEMBER(tn_plugin, extension);

#ifdef __cplusplus
}
#endif

#endif /* TENON_PLUGIN_H */
