/* What the double's files share. One lock guards all of it; work runs without the lock. Handles are
 * numbers that never come back, looked up at each use, so that one that was destroyed, or is of
 * another kind, is told from one that lives. */
#ifndef TNI_TESTS_CUDA_DOUBLE_INSIDE_H
#define TNI_TESTS_CUDA_DOUBLE_INSIDE_H

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include "tests/cuda/double/double.h"
#include "tests/cuda/double/functions.h"
#include "tests/cuda/double/ptx.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MAX_DEVICES = 8, MAX_RULES = 32, MAX_TEXT = 512 };

typedef struct context context;
typedef struct stream stream;
typedef struct work work;
typedef struct graph graph;
typedef struct capture capture;

/* Zeroed host memory. There is always some: the double gives up rather than report its own lack. */
void *take(size_t n, size_t bytes);
void *take_again(void *old, size_t n, size_t bytes);

/* ---- handles ----------------------------------------------------------------------------- */

/* Kinds beside those of double_kind. */
enum { OBJECT_FUNCTION = DOUBLE_KINDS };

/* The first member of everything that has a handle. */
typedef struct object {
    unsigned kind;
    uint64_t handle;
    context *context;               /* NULL: of none, as graphs */
    struct object *previous, *next; /* of its context */
} object;

void object_init(object *object, unsigned kind, context *context);
void object_finish(object *object);
/* NULL where the handle is of nothing that lives, or of another kind. */
void *object_find(const void *handle, unsigned kind);
void *object_handle(const object *object);
/* One of that kind, or NULL. */
object *object_any(unsigned kind);
void objects_forget(void);

/* ---- calls ------------------------------------------------------------------------------- */

/* What a call asks for before it does anything. */
enum {
    NEEDS_NOTHING = 0,
    NEEDS_INIT = 1,
    NEEDS_CONTEXT = 2, /* a current one, broken or not */
    NEEDS_SOUND = 4,   /* one without an error, which sticks */
    UNSAFE = 8,        /* not while there is a capture that minds */
    NEEDS_ALL = NEEDS_INIT | NEEDS_CONTEXT | NEEDS_SOUND,
};

/* Counts the call and takes the lock; the current context is in `out` where the call needs one. What
 * is not CUDA_SUCCESS is to be returned as it is: the lock is given back. */
CUresult enter(function_name function, unsigned needs, context **out);
/* Gives the lock back and returns `result`. */
CUresult leave(CUresult result);

/* Between the two ThreadSanitizer looks away from the calling thread, where that was asked for. With
 * the lock. */
void look_away(void);
void look_again(void);

/* Errors after which a context answers nothing else. */
bool sticks(CUresult error);

/* Waits, with the lock, for something to have changed; tells those who do. */
void wait_for_change(void);
void tell_change(void);

/* ---- devices and contexts ---------------------------------------------------------------- */

typedef struct limits {
    int threads_per_sm, blocks_per_sm;
    int shared_per_sm, shared_per_block, shared_optin, shared_reserved; /* bytes */
} limits;

/* Beside a device of the API, which is an ordinal. */
typedef struct gpu {
    int ordinal;
    uint64_t used;               /* bytes */
    uint64_t first, end, cursor; /* of its part of the addresses; where the next search begins */
    context *primary;
    unsigned n_retained;
    CUresult lost; /* CUDA_SUCCESS: it is not */
} gpu;

struct context {
    object head;
    gpu *device;
    CUresult error;
    bool primary;
    object objects; /* a ring, of which this is the head */
    stream *legacy, *streams;
    context *peers[MAX_DEVICES]; /* whose memory kernels of this context reach */
    context *next;
};

/* CUDA_ERROR_INVALID_DEVICE, or the device. */
CUresult device_find(CUdevice ordinal, gpu **out);
limits device_limits(void);
/* CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED, or the calling thread's. */
CUresult context_current(context **out);
CUresult context_find(CUcontext handle, context **out);
void context_destroy(context *context);
/* Does a kernel in `context` reach what `owner` allocated? */
bool context_reaches(const context *context, const struct context *owner);
void context_break(context *context, CUresult error);

/* ---- memory ------------------------------------------------------------------------------ */

/* Device memory: `begin` is an address of the device, and what it holds lies at host_of(begin). Pinned
 * memory has one address for both. */
typedef struct range {
    uint64_t begin, end;
    context *context;
    bool pinned, registered, is_portable;
} range;

bool memory_reserve(void);
void memory_release(void);
/* The range that all of [address, address + bytes) lies in, or NULL. */
const range *memory_find(uint64_t address, uint64_t bytes);
unsigned char *memory_host(uint64_t address);
void memory_forget(context *context);
uint64_t memory_alive(bool pinned);
/* Does the host see [pointer, pointer + bytes), as far as the double knows? Not device memory. */
bool memory_is_host(const void *pointer, size_t bytes);

/* ---- work -------------------------------------------------------------------------------- */

/* What a stream does in its turn, or a graph's node does at every launch. */
struct work {
    int references;
    /* What cuGraphExecUpdate compares: the kind, and what of it may not change. */
    CUgraphNodeType type;
    uint64_t fixed;
    CUresult (*run)(work *work, context *context); /* without the lock */
    void (*finish)(work *work);                    /* with it; NULL: nothing to give back */
};

/* `bytes` of a struct that begins with a work, with one reference. */
void *work_create(size_t bytes, CUgraphNodeType type, CUresult (*run)(work *, context *),
                  void (*finish)(work *));
work *work_keep(work *work);
void work_drop(work *work);

/* Nodes in an order that their dependencies allow: a node comes after those it depends on. */
typedef struct node {
    work *work;
    uint32_t n_after, *after;
} node;

/* What a launch of a graph does: does not change, so that launches under way keep theirs. */
typedef struct plan {
    int references;
    uint32_t n_nodes;
    node *nodes;
} plan;

void plan_drop(plan *plan);
CUresult plan_run(plan *plan, context *context, uint64_t *random);

/* A place in a stream: what comes before it there, and then its work, if any. */
typedef struct item {
    int references;
    bool done;
    uint64_t time; /* ns, once done */
    work *work;
    plan *plan;
    struct item **after; /* of other streams */
    size_t n_after;
    struct item *next;
} item;

item *item_keep(item *item);
void item_drop(item *item);
void item_wait(item *item);

/* ---- streams and events ------------------------------------------------------------------ */

struct stream {
    object head;
    unsigned flags;
    int priority;
    pthread_t thread;
    bool started, closing, ended;
    pthread_cond_t arrived;
    item *first, *last; /* not done */
    item *latest;       /* NULL: nothing yet */
    uint64_t random;
    /* Where the capture stands that this stream is part of. */
    capture *capture;
    uint32_t n_frontier, *frontier;
    stream *next;
};

typedef struct event {
    object head;
    unsigned flags;
    item *item;        /* NULL: never recorded, which is done */
    uint64_t captured; /* 0, or the capture it was last recorded in, and where that stood */
    uint32_t n_frontier, *frontier;
} event;

stream *stream_create(context *context, unsigned flags, int priority);
/* NULL is the context's legacy stream. CUDA_ERROR_INVALID_HANDLE where there is none of this handle,
 * CUDA_ERROR_CONTEXT_IS_DESTROYED or the context's error where it cannot be used. */
CUresult stream_find(CUstream handle, context *current, stream **out);
/* Queues work, of which it takes the reference; in a stream that captures, as a node. */
CUresult stream_submit(stream *stream, work *work);
/* Queues without a look at captures. What comes back is the stream's to drop. */
item *stream_push(stream *stream, work *work, plan *plan, item *after);
void stream_wait(stream *stream);
/* Waits for what streams have now: of one context; of all that reach `owner`'s memory (NULL: of
 * all). */
void context_wait(const context *context);
void contexts_wait(const context *owner);
void streams_close(context *context);

/* ---- modules ----------------------------------------------------------------------------- */

typedef struct module {
    object head;
    int references;
    bool unloaded;
    ptx_module *code;
    struct entry *functions;
} module;

/* A kernel of a module: what a CUfunction is. */
typedef struct entry {
    object head;
    module *module;
    const ptx_kernel *kernel;
    ptx_facts facts;
    uint32_t max_dynamic_shared;
    char *name;
    struct entry *next;
} entry;

void module_drop(module *module);
void module_unload(module *module);

/* ---- captures and graphs ----------------------------------------------------------------- */

struct capture {
    uint64_t id;
    CUstreamCaptureMode mode;
    uint64_t thread;
    stream *origin;
    graph *graph;
    bool invalid;
    capture *next;
};

struct graph {
    object head;
    uint32_t n_nodes, room;
    node *nodes;
};

/* What an unsafe call of the calling thread is answered with. */
CUresult capture_minds(void);
/* What a use of `stream` that does not enqueue is answered with: it cannot be captured. */
CUresult capture_refuses(stream *stream);
/* Work for a stream: CUDA_SUCCESS with `out` false where it is not captured and may be queued. Takes
 * the reference to `work` where `out` is true, or it fails. */
CUresult capture_add(stream *stream, work *work, bool *out);
/* A call that the capture cannot hold: what it is answered with. */
CUresult capture_fail(capture *capture, CUresult error);
CUresult capture_record(stream *stream, event *event);
CUresult capture_wait(stream *stream, event *event, unsigned flags, bool *out);
/* The stream goes away. */
void capture_leave(stream *stream);
uint32_t graph_add(graph *graph, work *work, uint32_t n_after, const uint32_t *after);
graph *graph_create(void);
void graph_destroy(graph *graph);
void graphs_forget(void);

/* ---- everything -------------------------------------------------------------------------- */

typedef struct rule {
    function_name function;
    uint64_t at; /* 0: from none on */
    bool always;
    CUresult error;
} rule;

typedef struct settings {
    int n_devices, major, minor, n_sms, version;
    uint64_t memory, seed, delay; /* bytes, ns */
    bool no_peers, no_kernels, talks, races, races_fail, is_opaque;
    rule rules[MAX_RULES];
    int n_rules;
    rule fault;
    struct {
        int device;
        uint64_t at;
        CUresult error;
    } lose;
    char report[MAX_TEXT];
} settings;

enum { MAX_RESULTS = 1000 };

typedef struct driver_state {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned n_waiting;
    atomic_bool forked;
    bool initialised, ending, ended, held;
    bool bad_words;
    settings settings;
    gpu devices[MAX_DEVICES];
    context *contexts;
    capture *captures;
    uint64_t n_captures, n_streams;
    uint64_t calls[N_FUNCTIONS], all_calls, results[MAX_RESULTS];
    uint64_t alive[DOUBLE_KINDS + 1], abandoned[DOUBLE_KINDS + 1];
    uint64_t n_waits, n_kernels, n_launches, n_races;
    char last_fault[MAX_TEXT];
} driver_state;

extern driver_state driver;

/* The context whose work the calling thread runs; NULL outside. */
extern _Thread_local context *running;
/* Whether a host function runs on the calling thread, which may not call the driver. */
extern _Thread_local bool in_host_function;

/* Of the calling thread, unlike that of any other; the device's clock, in ns; the next of a sequence
 * of random numbers. */
uint64_t thread_number(void);
uint64_t now(void);
uint64_t random_next(uint64_t *state);
void settings_read(void);
void write_report(void);
/* A line on stderr, where that was asked for. */
__attribute__((format(printf, 1, 2))) void talk(const char *format, ...);

#endif
