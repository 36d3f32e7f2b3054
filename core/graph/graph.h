/* Graphs inside the core: recorded work, the memory that it names, and the values that change from
 * one replay to the next.
 *
 * A capture runs on a stream of the graph's own. The pools of that stream are then the graph's memory:
 * nobody else allocates for the stream, and the allocator leaves them alone while the graph lives.
 *
 * What changes from step to step cannot be an argument, which is recorded as it is. It is read from
 * device memory instead: a source fills its values on the host before each launch, and one copy in
 * stream order brings them over.
 */
#ifndef TNI_CORE_GRAPH_GRAPH_H
#define TNI_CORE_GRAPH_GRAPH_H

#include "core/tensor/tensor.h"

#include <tenon/ext/capture.h>
#include <tenon/graph.h>

/* Whoever has values that change. It is embedded in what its owner allocates. */
typedef struct tni_graph_source {
    struct tni_graph_source *next;
    /* Writes those of the next launch to where tni_graph_values said. */
    void (*fill)(struct tni_graph_source *source);
    /* That launch was queued. */
    void (*launched)(struct tni_graph_source *source);
    void (*destroy)(struct tni_graph_source *source);
} tni_graph_source;

enum { TNI_GRAPH_VALUES = 256 };

/* Values in device memory, of 8 bytes each. */
typedef struct tni_graph_block {
    struct tni_graph_block *next;
    tn_tensor *tensor; /* i64[TNI_GRAPH_VALUES] */
    uint32_t used;
    int64_t host[TNI_GRAPH_VALUES]; /* the next launch's */
} tni_graph_block;

/* Storages that recorded work names, by hash of the address. */
typedef struct tni_graph_storages {
    tn_storage **slots;
    uint64_t n, capacity; /* a power of two, or 0 */
} tni_graph_storages;

struct tn_graph {
    tni_device *device;
    const tn_ext_capture *ext;
    tn_graph_impl *handle; /* NULL while it is captured */
    tn_stream *stream;     /* that captured; has the memory */
    tn_stream *last; /* that it was launched on last; before, the current one at the capture */
    tni_graph_storages storages;
    tni_graph_block *blocks; /* the newest first */
    tni_graph_source *sources;
    struct tni_graph_random *random; /* a source, NULL while nothing was drawn */

    /* While it is captured. */
    const char *op;   /* the outermost operator under way */
    tn_status failed; /* why there will be no graph */
    char message[512];
};

/* The graph that the calling thread captures, or NULL. */
extern TNI_TLS tn_graph *tni_capturing;

/* The handler of the key Capture, which the thread's calls pass meanwhile. */
tn_status tni_capture_handler(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                              void *user);

/* Fails with TN_ERR_STATE, and with it the calling thread's capture: `what` ("tn_item") cannot be
 * captured, and what to do instead. */
tn_status tni_capture_refuse(const char *what, const char *instead);
/* The standing error, of `device`, is the end of the calling thread's capture. */
void tni_capture_note_failure(const tni_device *device);
/* The same as tni_capture_refuse where `stream` captures, else TN_OK. */
static inline tn_status tni_capture_check(const tn_stream *stream, const char *what,
                                          const char *instead) {
    return TNI_LIKELY(!tni_stream_captures(stream)) ? TN_OK : tni_capture_refuse(what, instead);
}

/* ---- for what is captured ---------------------------------------------------------------- */

/* `n` values of 4 or 8 bytes as a tensor of rank 1, owned, and where a source puts them: `dtype`s one
 * behind the other. NULL with an error. */
tn_tensor *tni_graph_values(tn_graph *graph, tn_dtype dtype, int64_t n, void **out_host);
void tni_graph_add_source(tn_graph *graph, tni_graph_source *source);

/* What random_bits_from takes in the place of a generator's seed and offset, borrowed; reserves as
 * tni_generator_take does, for each launch. NULL with an error. */
tn_tensor *tni_graph_random_state(tn_graph *graph, uint64_t n_words, int64_t *out_offset);

/* Leaves the capture for work that is to be done once and now, such as an optimizer's first state. */
typedef struct tni_capture_pause {
    tn_graph *graph;
    tn_thread_keys keys;
} tni_capture_pause;
tn_status tni_capture_leave(tni_capture_pause *pause);
void tni_capture_enter(const tni_capture_pause *pause);

/* A graph with nothing recorded. NULL with an error. */
tn_graph *tni_graph_create(tni_device *device, const tn_ext_capture *ext);
/* How many graphs there are, for tn_shutdown. */
int64_t tni_graphs_alive(void);

#endif
