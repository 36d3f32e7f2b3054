/* A graph's life after its capture: its values, its replays, its end. */
#include "core/graph/graph.h"
#include "base/alloc.h"
#include "base/error.h"
#include "core/random/generator.h"

static _Atomic int64_t alive;

int64_t tni_graphs_alive(void) {
    return atomic_load(&alive);
}

/* ---- life -------------------------------------------------------------------------------- */

tn_graph *tni_graph_create(tni_device *d, const tn_ext_capture *ext) {
    tn_graph *g = tni_calloc(1, sizeof *g);
    if (!g)
        return tni_fail_memory_null("a graph");
    g->device = d;
    g->ext = ext;
    g->stream = tn_stream_create(d->id, 0);
    if (!g->stream) {
        tni_free(g);
        return NULL;
    }
    g->last = tn_stream_keep(tni_stream_current(d));
    tni_pools_reserve(d->allocator, g->stream);
    atomic_fetch_add(&alive, 1);
    return g;
}

/* What the graph kept alive may be freed with it, while a run of it is still queued. */
static void drop_storages(tn_graph *g) {
    bool lost = atomic_load(&g->device->lost);
    for (uint64_t i = 0; i < g->storages.capacity; i++) {
        tn_storage *storage = g->storages.slots[i];
        if (storage && storage->block && !lost)
            tni_block_record_stream(storage->block, g->last);
        tn_storage_drop(storage);
    }
    tni_free(g->storages.slots);
}

void tn_graph_destroy(tn_graph *g) {
    if (!g)
        return;
    tni_device *d = g->device;
    bool forked = atomic_load(&d->forked);
    if (g->handle && !forked)
        g->ext->destroy(g->handle);
    for (tni_graph_source *s = g->sources, *next; s; s = next) {
        next = s->next;
        s->destroy(s);
    }
    for (tni_graph_block *b = g->blocks, *next; b; b = next) {
        next = b->next;
        tni_drop(b->tensor);
        tni_free(b);
    }
    drop_storages(g);
    /* Its stream has waited for nothing so far, and whoever gets the memory next waits for that. */
    tni_stream_follow(g->stream, g->last);
    if (!forked)
        tni_pools_release(d->allocator, g->stream, g->last);
    tn_stream_drop(g->stream);
    tn_stream_drop(g->last);
    tni_free(g);
    atomic_fetch_sub(&alive, 1);
}

tn_device tn_graph_device(const tn_graph *g) {
    return g ? g->device->id : tn_no_device();
}

/* ---- values ------------------------------------------------------------------------------ */

static tni_graph_block *block_create(tn_graph *g) {
    static const int64_t n = TNI_GRAPH_VALUES;
    tni_graph_block *b = tni_calloc(1, sizeof *b);
    if (!b)
        return tni_fail_memory_null("the values of a graph");
    /* Not of the graph's memory, where work that is recorded already may write. */
    tni_capture_pause pause;
    if (tni_capture_leave(&pause) == TN_OK) {
        b->tensor = tni_tensor_new(g->device, TN_I64, 1, &n);
        tni_capture_enter(&pause);
    }
    if (!b->tensor) {
        tni_free(b);
        return NULL;
    }
    b->next = g->blocks;
    return g->blocks = b;
}

tn_tensor *tni_graph_values(tn_graph *g, tn_dtype dtype, int64_t n, void **out_host) {
    static const int64_t stride = 1;
    tni_graph_block *b = g->blocks;
    if (!b || b->used + n > TNI_GRAPH_VALUES)
        b = block_create(g);
    if (!b)
        return NULL;
    uint64_t at = b->used * sizeof b->host[0];
    tn_tensor *t =
        tni_tensor_over(b->tensor->storage, dtype, 1, &n, &stride, n, b->tensor->view.offset + at);
    if (t)
        b->used += (uint32_t)n;
    *out_host = (char *)b->host + at;
    return t;
}

void tni_graph_add_source(tn_graph *g, tni_graph_source *source) {
    source->next = g->sources;
    g->sources = source;
}

/* ---- random numbers ---------------------------------------------------------------------- */

/* Seed and offset of the device's generator, with which each launch draws as one call of the captured
 * function would have. */
typedef struct tni_graph_random {
    tni_graph_source source;
    tni_device *device;
    tn_tensor *state;  /* i64[2]: seed, offset */
    uint64_t *host;    /* the next launch's */
    uint64_t n_blocks; /* of four words, that a launch draws */
} tni_graph_random;

static void fill_random(tni_graph_source *source) {
    tni_graph_random *r = (tni_graph_random *)source;
    tni_generator_take(r->device, 4 * r->n_blocks, &r->host[0], &r->host[1]);
}

static void random_launched(tni_graph_source *source) {}

static void random_destroy(tni_graph_source *source) {
    tni_graph_random *r = (tni_graph_random *)source;
    tni_drop(r->state);
    tni_free(r);
}

tn_tensor *tni_graph_random_state(tn_graph *g, uint64_t n_words, int64_t *out_offset) {
    tni_graph_random *r = g->random;
    if (!r) {
        void *host;
        r = tni_calloc(1, sizeof *r);
        if (!r)
            return tni_fail_memory_null("the random numbers of a graph");
        r->state = tni_graph_values(g, TN_I64, 2, &host);
        if (!r->state) {
            tni_free(r);
            return NULL;
        }
        r->source = (tni_graph_source){
            .fill = fill_random, .launched = random_launched, .destroy = random_destroy};
        r->device = g->device;
        r->host = host;
        tni_graph_add_source(g, &r->source);
        g->random = r;
    }
    *out_offset = (int64_t)r->n_blocks;
    r->n_blocks += n_words / 4 + (n_words % 4 != 0);
    return r->state;
}

/* ---- replay ------------------------------------------------------------------------------ */

/* Runs of a graph are one behind the other, and so are the copies of values before them. */
static tn_status follow_last(tn_graph *g, tn_stream *stream) {
    if (stream == g->last)
        return TN_OK;
    TNI_TRY(tni_stream_wait_stream(stream, g->last));
    tn_stream_drop(g->last);
    g->last = tn_stream_keep(stream);
    return TN_OK;
}

static tn_status bring_values(tn_graph *g) {
    tn_status status = TN_OK;
    for (tni_graph_source *s = g->sources; s; s = s->next)
        s->fill(s);
    for (tni_graph_block *b = g->blocks; b && status == TN_OK; b = b->next)
        status = tni_tensor_write(b->tensor, b->host, b->used * sizeof b->host[0]);
    return status;
}

tn_status tn_graph_replay(tn_graph *g) {
    if (!g)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_graph_replay: the graph is NULL; take one "
                                                 "from tn_graph_capture");
    if (tni_capturing)
        return tni_capture_refuse("tn_graph_replay", "capture what the graph does, or replay it "
                                                     "beside the other graph");
    TNI_TRY(tni_device_check(g->device));
    tn_stream *stream = tni_stream_current(g->device);
    TNI_TRY(follow_last(g, stream));
    TNI_TRY(bring_values(g));
    tni_stream_note(stream, "tn_graph_replay");
    tni_error_plugin(TN_OK, NULL);
    tn_status status = g->ext->launch(g->handle, stream->handle);
    if (status != TN_OK)
        return tni_device_fail(g->device, status, "tn_graph_replay");
    for (tni_graph_source *s = g->sources; s; s = s->next)
        s->launched(s);
    return TN_OK;
}
