/* What the files of the validation layer share; nobody else includes this.
 *
 *   tracker.c        a watched plugin: begun, given its tables, ended
 *   findings.c       what was found: kept, counted, logged
 *   frame.c          one call into a plugin: what holds of its answer
 *   objects.c        what is alive, and whose: one table for all plugins
 *   vector_clock.c   which queued work is known to be done
 *   aside.c          waits, reads and writes of the layer's own
 *   order.c          whether streams and events keep their order
 *   lent.c           what is lent to a call, and whether it is touched later
 *   process.c        threads, descriptors, and what a call must leave as it is
 *   slots_plugin.c   init, shutdown, extension, devices
 *   slots_memory.c   allocations and transfers
 *   slots_stream.c   streams and events;  slots_capture.c  captures and graphs
 *   slots_kernel.c   kernel calls;  tensor_views.c  the tensors in them;  witness.c  what they leave
 *                    alone;  twin.c  what their flags promise
 *   slots_host.c     what the plugin calls of the host
 *
 * Each file of slots ends in the tables of the checked forms. There is one form of a slot, whoever's it
 * stands for: it begins by asking the table of objects.c whose handle, or host, it was called with;
 * kernel calls bring their watch along, in `user`. One lock guards all records. It is never held while a
 * plugin or the host is called; a record is looked up anew after each call. Only what would touch memory
 * that is not there, or could not be told to be whose, is refused; all else is reported and handed on.
 */
#ifndef TNI_LOADER_VALIDATION_INTERNAL_H
#define TNI_LOADER_VALIDATION_INTERNAL_H

#include "base/thread.h"
#include "loader/validation/validation.h"
#include "plugin-sdk/process/census.h"
#include "plugin-sdk/process/state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <tenon/ext/capture.h>
#include <tenon/requirements.h>

enum {
    TNI_MAX_STRAYS = 64, /* threads that one plugin started, as far as they are remembered */
    TNI_GUARD_BYTES = 64 /* behind an allocation, at level 2 */
};

/* ---- order ------------------------------------------------------------------------------- */

/* A set of points in streams, one per stream: "stream 3 up to its 17th piece of work". */
typedef struct tni_point {
    uint64_t stream, serial; /* the record's key and serial */
    uint64_t work;
} tni_point;
typedef struct tni_clock {
    tni_point *points;
    size_t n, capacity;
} tni_clock;

/* ---- records ----------------------------------------------------------------------------- */

typedef enum tni_record_kind {
    TNI_RECORD_HOST, /* the table that the plugin was given */
    TNI_RECORD_SELF,
    TNI_RECORD_DEVICE,
    TNI_RECORD_STREAM,
    TNI_RECORD_EVENT,
    TNI_RECORD_GRAPH,
    TNI_RECORD_MEMORY,
    TNI_RECORD_BLOCK /* of host->alloc */
} tni_record_kind;

/* An allocation that recorded work names. */
typedef struct tni_named {
    uint64_t key, serial;
    int32_t space;
} tni_named;
typedef struct tni_names {
    tni_named *items;
    size_t n, capacity;
} tni_names;

typedef struct tni_record {
    struct tni_record *next; /* in its bucket */
    tni_watch *watch;
    tni_record_kind kind;
    bool gone;       /* destroyed; kept, so that a later call with the handle finds its plugin */
    int32_t space;   /* of memory */
    uint64_t key;    /* the handle, or the address */
    uint64_t device; /* key of the device it belongs to; 0 for others */
    uint64_t serial; /* which of its kind, from 1 */
    /* devices */
    uint32_t index;
    bool lost;
    bool host_memory;
    uint64_t max_allocation, dtypes, spaces;
    tn_stream_impl *own_stream; /* the layer's, see aside.c; NULL without */
    tn_memory hold;             /* what it fills to pass time, or 0 */
    bool waited;                /* events->wait was called */
    /* streams */
    uint64_t queued, done; /* pieces of work */
    uint64_t asked;        /* `queued` when the layer last asked for itself */
    bool captures;
    /* streams that capture, and graphs */
    tni_names names;
    /* graphs */
    uint32_t calls; /* under way */
    bool updating;  /* one of these is an update */
    /* events */
    bool marked, timing, seen_done;
    uint32_t recording;  /* records under way */
    uint64_t generation; /* records begun */
    /* devices and memory */
    uint64_t alignment;
    /* memory and blocks */
    uint64_t bytes;
    char *host;
    bool guarded;
    /* streams: what their work waits for; events: their mark; graphs: the end of the latest launch;
     * memory: work that uses it */
    tni_clock clock;
} tni_record;

/* ---- the watch --------------------------------------------------------------------------- */

typedef enum tni_watch_state {
    TNI_WATCH_LOADED, /* also after shutdown */
    TNI_WATCH_INIT,
    TNI_WATCH_STARTED,
    TNI_WATCH_SHUTDOWN
} tni_watch_state;

/* A kernel record of the plugin and the one that stands for it. */
typedef struct tni_watched_kernel {
    tn_kernel proxy;
    tn_kernel real; /* as far as its struct_size goes, else 0 */
    const tn_kernel *record;
    tni_watch *watch;
} tni_watched_kernel;

/* All that the plugin offers, read once through TN_HAS, and the host; or the proxies of both. */
typedef struct tni_tables {
    tn_host host;
    tn_plugin plugin;
    tn_device_ops devices;
    tn_memory_ops memory;
    tn_stream_ops streams;
    tn_event_ops events;
    tn_ext_capture capture;
} tni_tables;

struct tni_watch {
    int32_t level;
    char name[128]; /* the id, before it is known the end of the path */
    tni_tables real, proxy;
    const tn_host *host; /* what the plugin would be given unwatched */
    tni_watched_kernel *kernels;
    const tn_kernel **kernel_list;
    uint64_t n_kernels;

    _Atomic int state; /* tni_watch_state */
    _Atomic uint32_t one_thread;
    _Atomic uint64_t caller; /* the thread that called kernels first; TNI_MANY_CALLERS */
    _Atomic(tn_instance *) self;
    uint32_t n_devices;

    /* Under tni_records_lock. */
    uint64_t n_alive[TNI_RECORD_BLOCK + 1];
    uint64_t n_made[TNI_RECORD_BLOCK + 1];
    bool order_lost; /* no memory for a clock: nothing is said about order any more */
    pid_t strays[TNI_MAX_STRAYS];
    uint32_t n_strays;
    uint8_t files[TNI_CENSUS_FILES]; /* 1: opened inside init or count, 2: inside later calls */
};

enum { TNI_MANY_CALLERS = 1 };

/* Built against a later version? Then what it says and this one does not know is no mistake. */
static inline bool tni_is_newer(const tni_watch *w) {
    return w && w->real.plugin.abi_version > TN_ABI_VERSION;
}

/* ---- findings ---------------------------------------------------------------------------- */

enum {
    TNI_TENON = TNP_NONE,         /* in place of a requirement: the caller broke the contract */
    TNI_WARNING = (int)(1u << 30) /* or'ed to one: a sign, no proof */
};

/* Findings with the same plugin, requirement, slot, operator and format are one. The watch is
 * NULL where nobody knows which plugin it is. */
void tni_finding(const tni_watch *watch, int requirement, const char *slot, const char *op,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* ---- one call into the plugin ------------------------------------------------------------ */

typedef struct tni_frame {
    tni_watch *watch;
    const char *slot;
    const char *op; /* "" */
    bool failed;    /* host->fail was called, with ... */
    bool dry;       /* host->alloc had nothing */
    tn_status status;
    struct tni_frame *outer;
} tni_frame;

/* The calling thread is inside this call, until tni_leave. */
void tni_enter(tni_frame *frame, tni_watch *watch, const char *slot, const char *op);
void tni_leave(tni_frame *frame);
/* The innermost call that the thread is in, or NULL. */
tni_frame *tni_frame_top(void);

/* What answers a slot may give beyond TN_OK and failures with a message. */
enum {
    TNI_MAY_WAIT = 1 /* TN_NOT_READY */,
    TNI_MAY_DECLINE = 2 /* TN_ERR_UNSUPPORTED, silently */
};

/* Leaves, checks the answer, and returns it. */
tn_status tni_answer(tni_frame *frame, tn_status status, uint32_t may);

/* One call of `slot`, from entering to leaving; the value is its answer, checked. */
#define TNI_ASK(watch, slot, op, may, call) \
    __extension__({ \
        tni_frame frame_; \
        tni_enter(&frame_, watch, slot, op); \
        tni_answer(&frame_, call, may); \
    })
/* The same of one that has no answer. */
#define TNI_TELL(watch, slot, op, call) \
    do { \
        tni_frame frame_; \
        tni_enter(&frame_, watch, slot, op); \
        call; \
        tni_leave(&frame_); \
    } while (0)

/* Were the two answers to the same question one, and TN_OK or TN_ERR_UNSUPPORTED? */
void tni_judge_choice(const tni_watch *watch, int requirement, const char *slot, const char *op,
                      tn_status status, tn_status again);

/* Fails for the layer: a call that would touch what is not there. */
tn_status tni_watch_refuse(const char *what);

/* Is this the plugin's present self, between init and shutdown? Reports it when not. The watch may be
 * NULL: nobody's. */
bool tni_expect_started(tni_watch *watch, const char *slot, const tn_instance *self);

/* Around functions that are tagged one-thread. */
void tni_one_thread_enter(tni_watch *watch, const char *slot);
void tni_one_thread_leave(tni_watch *watch);

/* ---- records ----------------------------------------------------------------------------- */

extern pthread_mutex_t tni_records_lock; /* of all watches */

/* Whose handle or host table this is, or was before it was destroyed; NULL: nobody's. Takes the
 * lock. */
tni_watch *tni_watch_of(tni_record_kind kind, const void *handle);

/* Keeps a handle that `slot` gave out. Without a handle, or with another plugin's that is alive,
 * it fails: calls could not be told to be whose. These, and one of the plugin's own that is alive
 * already, are breaches of `requirement`. Takes the lock. */
tn_status tni_handle_keep(tni_watch *watch, const tni_record *like, int requirement,
                          const char *slot);

/* The others are called under the lock. */
tni_record *tni_record_find(tni_watch *watch, tni_record_kind kind, uint64_t key);
tni_record *tni_memory_find(tni_watch *watch, const void *device, int32_t space, tn_memory memory);
/* A record like this one, which says what it is of. NULL without memory. */
tni_record *tni_record_add(tni_watch *watch, const tni_record *like);
/* A handle is remembered until it is given out again or the watch ends. */
void tni_record_remove(tni_watch *watch, tni_record *record);
/* The next that is alive, the first after NULL. */
tni_record *tni_record_next(tni_watch *watch, const tni_record *after);
/* Frees them all; takes the lock. */
void tni_records_forget(tni_watch *watch);

/* Takes the lock, looks up, and copies out without the clock; false, and reported as Tenon's doing,
 * when there is no such thing (any more), it is another plugin's, or of another device (NULL: any). The
 * watch may be NULL: nobody's. */
bool tni_live_device(tni_watch *watch, const char *slot, const char *op, tn_device_impl *device,
                     tni_record *out);
bool tni_live_stream(tni_watch *watch, const char *slot, const char *op, tn_device_impl *device,
                     tn_stream_impl *stream, tni_record *out);
bool tni_live_event(tni_watch *watch, const char *slot, tn_event_impl *event, tni_record *out);
bool tni_live_graph(tni_watch *watch, const char *slot, tn_graph_impl *graph, tni_record *out);

/* What `stream` must not record answered `status`, having begun when the stream was as here. */
void tni_note_refusal(tni_watch *watch, const tni_record *stream, tn_status status,
                      const char *slot);

/* Of what the record's handle is. */
static inline tn_device_impl *tni_device_of(const tni_record *record) {
    return (tn_device_impl *)(uintptr_t)record->device;
}

/* A call to the device answered `status`, having begun when the device was `was_lost`. */
void tni_note_loss(tni_watch *watch, tn_device_impl *device, bool was_lost, tn_status status,
                   const char *slot, const char *op);

/* ---- order: under the lock of records ---------------------------------------------------- */

void tni_clock_free(tni_clock *clock);
/* All points of `from`, added to a clock. */
void tni_clock_merge(tni_watch *watch, tni_clock *clock, const tni_clock *from);

/* One more piece of work on the stream: where it stands. What a stream records is none: its place
 * is 0. */
tni_point tni_note_work(tni_watch *watch, tn_stream_impl *stream);
/* The work there uses `memory`; NULL: none. Recorded, it names it. */
void tni_note_use(tni_watch *watch, tni_point work, tni_record *memory);
/* The present end of the stream, with all it waits for, into an empty clock. */
void tni_mark_stream(tni_watch *watch, const tni_record *stream, tni_clock *out);
/* All that the clock names is done. */
void tni_clock_passed(tni_watch *watch, const tni_clock *clock);
/* The same where it was `passed`, of a clock that is freed; takes the lock. */
void tni_clock_settle(tni_watch *watch, tni_clock *clock, bool passed);
/* The first stream of which the clock names work that is not known to be done; NULL: none. */
const tni_record *tni_clock_pending(tni_watch *watch, const tni_clock *clock);

/* Adds an allocation to what is named; frees the list. */
void tni_name(tni_watch *watch, tni_names *names, tni_named memory);
void tni_names_free(tni_names *names);

/* ---- tensors in kernel calls ------------------------------------------------------------- */

/* Where the bytes of a tensor lie. */
typedef struct tni_extent {
    const tn_tensor_view *view;
    uint64_t low, high; /* in its allocation */
    char *host;         /* of the allocation, where the host may read; else NULL */
    uint64_t bytes;     /* of the allocation */
    bool dense;         /* every byte between is an element's */
    char name[32];      /* "argument 0", "output 1" */
} tni_extent;

/* Checks one view. False when the kernel must not see it: it would touch what is not there. */
bool tni_check_view(const tni_watched_kernel *kernel, const char *slot, const tn_call *call,
                    const tn_tensor_view *view, bool is_output, tni_extent *out);
/* Do the two surely share a byte? */
bool tni_extents_share(const tni_extent *a, const tni_extent *b);
bool tni_same_view(const tn_tensor_view *a, const tn_tensor_view *b);

/* ---- what the layer does on a device itself, at level 2 ---------------------------------- */

/* The stream for that; NULL on a device without streams, or when none could be had (`*out_ok` is then
 * false). */
tn_stream_impl *tni_own_stream(tni_watch *w, tn_device_impl *device, bool *out_ok);
/* Gives back what the layer has there. */
void tni_aside_finish(tni_watch *w, tn_device_impl *device);
/* Waits until all that was queued on the device is done, its errors left where they are; false
 * when that is not known, as while a stream captures. */
bool tni_still(tni_watch *w, tn_device_impl *device);
enum { TNI_A_WHILE = 8 };
/* Keeps the stream busy, unless it captures, `times` as long as it takes to fill a megabyte. */
void tni_hold(tni_watch *w, tn_device_impl *device, tn_stream_impl *stream, int times);
/* Bytes of an allocation that no work uses; `host` is its host pointer, or NULL. */
bool tni_peek(tni_watch *w, tn_device_impl *device, tn_memory memory, const char *host,
              uint64_t offset, void *out, uint64_t bytes);
bool tni_poke(tni_watch *w, tn_device_impl *device, tn_memory memory, uint64_t offset,
              const void *src, uint64_t bytes);

/* ---- order, at level 2 ------------------------------------------------------------------- */

/* After `stream` of the device was told to wait for the event of record `e`. */
void tni_watch_wait(tni_watch *w, tn_device_impl *device, tn_stream_impl *stream,
                    const tni_record *e);
/* A mark at the end of what was queued on the stream, behind a while of work; NULL: there is none. */
tn_event_impl *tni_mark_end(tni_watch *w, tn_device_impl *device, tn_stream_impl *stream);
/* The stream has answered `status` to query, or to synchronize (`waits`): was the mark passed?
 * Destroys it. */
void tni_judge_mark(tni_watch *w, tn_event_impl *mark, tn_status status, bool waits);
/* The stream has answered `status`, and nothing was queued since: an error may not come again. */
void tni_judge_error(tni_watch *w, tn_stream_impl *stream, tn_status status, const char *slot);

/* ---- what is lent to a call, at level 2 -------------------------------------------------- */

typedef struct tni_loan tni_loan;

/* Around the life of a watch of level 2. */
void tni_lending_begins(void);
void tni_lending_ends(const tni_watch *watch);
/* Reports what was touched after it was given back. */
void tni_lending_settle(const tni_watch *watch);

/* Memory for a copy of what a call is lent, until tni_lend_back: whoever touches it then breaks
 * `requirement`. NULL, with the loan: below level 2, or nothing could be had; the caller hands
 * over its own. */
void *tni_lend(const tni_watch *watch, int requirement, const char *slot, const char *op,
               uint64_t bytes, tni_loan **out);
void tni_lend_back(tni_loan *loan); /* NULL is fine */
/* A whole call, with all it points to; the call itself where it cannot be lent. */
const tn_call *tni_lend_call(const tni_watch *watch, const char *slot, const char *op,
                             const tn_call *call, tni_loan **out);

/* ---- what a kernel must leave alone, at level 2 ------------------------------------------ */

enum { TNI_MAX_VIEWS = 48 /* of one call; those of a longer list are checked one by one only */ };

/* The tensors of a call, outputs first. */
typedef struct tni_call_views {
    tni_extent at[TNI_MAX_VIEWS];
    uint32_t n, n_outs;
    bool whole;  /* none had to be left out */
    bool deadly; /* the call would touch what is not there */
} tni_call_views;

enum { TNI_NEIGHBOUR_BYTES = 64 /* compared before and behind an output */ };

typedef struct tni_witness {
    bool on, alone;
    uint64_t sums[TNI_MAX_VIEWS];
    struct tni_neighbour {
        char bytes[TNI_NEIGHBOUR_BYTES];
        uint32_t n;
    } sides[TNI_MAX_VIEWS][2]; /* before and behind each output */
} tni_witness;

/* Before the call, and after it. */
void tni_witness_begin(const tni_watched_kernel *kernel, const tn_call *call,
                       const tni_call_views *views, tni_witness *witness);
void tni_witness_end(const tni_watched_kernel *kernel, const tn_call *call,
                     const tni_call_views *views, const tni_witness *witness, bool declined);

/* The same call on dense tensors: its inputs, and the promise that it shows kept. */
typedef struct tni_twin {
    tn_requirement promise; /* TNP_NONE: there is no twin */
    char *dense[TNI_MAX_VIEWS];
} tni_twin;

/* Within tni_witness_begin and tni_witness_end, round the call, which answered `status`. */
void tni_twin_begin(const tni_watched_kernel *kernel, const tn_call *call,
                    const tni_call_views *views, const tni_witness *witness, tni_twin *out);
void tni_twin_end(const tni_watched_kernel *kernel, const tn_call *call, const tni_record *device,
                  const tni_call_views *views, tni_twin *twin, tn_status status);

/* ---- the process ------------------------------------------------------------------------- */

/* What was there before a call. */
typedef struct tni_process_before {
    tni_census census;
    tni_process_state state; /* level 2 */
} tni_process_before;

void tni_process_begin(const tni_watch *w, tni_process_before *before);
/* Reports what the call changed, at level 2, and remembers threads and descriptors that are new as
 * the plugin's; `mark` as tni_watch.files says. */
void tni_process_end(tni_watch *watch, const tni_process_before *before, const char *slot,
                     const char *op, uint8_t mark);
/* After shutdown: reports the threads and descriptors that are still there, and forgets them. */
void tni_process_settle(tni_watch *watch);

/* ---- the slots --------------------------------------------------------------------------- */

/* The checked form of each slot; members that are no functions are 0. */
extern const tn_host tni_checked_host;
extern const tn_plugin tni_checked_plugin;
extern const tn_device_ops tni_checked_devices;
extern const tn_memory_ops tni_checked_memory;
extern const tn_stream_ops tni_checked_streams;
extern const tn_event_ops tni_checked_events;
extern const tn_ext_capture tni_checked_capture;
extern const tn_kernel tni_checked_kernel; /* `user` leads to the tni_watched_kernel */

/* The table that stands for the plugin's tenon.capture/1. */
const tn_ext_capture *tni_watch_capture(tni_watch *watch, const tn_ext_capture *table);

#endif
