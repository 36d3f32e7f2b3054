/* See life.h. */
#include "tests/cuda/life.h"

#include <dlfcn.h>

enum {
    N = LIFE_N,
    BYTES = LIFE_BYTES,
    LARGE = LIFE_LARGE,
    STREAMS = LIFE_STREAMS,
    NUMBERS = LARGE / sizeof(float)
};

const tn_plugin *life_plugin;

static float numbers[NUMBERS];
static int64_t indices[N]; /* backwards */

void life_load(void) {
    void *object = dlopen(rig_plugin, RTLD_NOW | RTLD_LOCAL);
    tn_plugin_query_fn query;
    assert_non_null(object);
    *(void **)&query = dlsym(object, TN_PLUGIN_QUERY_NAME);
    life_plugin = query(mini_host_table());
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = (float)(i + 1);
    for (int i = 0; i < N; i++)
        indices[i] = N - 1 - i;
}

/* ---- steps ------------------------------------------------------------------------------- */

static void look_at_context(life *l) {
    int depth;
    CUcontext current = double_current(&depth);
    if ((current != l->context || depth != l->depth) && !l->wrong[0])
        snprintf(l->wrong, sizeof l->wrong, "%s leaves another context current", l->step);
}

static tn_status look(life *l, const char *names, const char *step, tn_status status) {
    l->step = step;
    l->names = names;
    look_at_context(l);
    return status;
}

#define STEP(names, call) \
    do { \
        tn_status status_ = look(l, names, #call, call); \
        if (status_ != TN_OK) \
            return status_; \
    } while (0)

#define STEP_QUERY(names, call) \
    do { \
        tn_status status_ = look(l, names, #call, call); \
        if (status_ != TN_OK && status_ != TN_NOT_READY) \
            return status_; \
    } while (0)

/* The first `n` of `found` are those from `first` on, each `step` behind the other, times `factor`. */
static void compare(life *l, const float *found, int n, const float *first, int step,
                    float factor) {
    for (int i = 0; i < n && !l->wrong[0]; i++)
        if (found[i] != factor * first[i * step])
            snprintf(l->wrong, sizeof l->wrong, "behind %s number %d is %g, not %g", l->step, i,
                     (double)found[i], (double)(factor * first[i * step]));
}

/* ---- a life ------------------------------------------------------------------------------ */

static tn_status allocate(tn_device_impl *device, int32_t space, uint64_t bytes, tn_memory *out,
                          void **out_host) {
    return mini_alloc(life_plugin->devices->memory, device, space, bytes, out, out_host);
}

static tn_status open_all(life *l) {
    const tn_host *host = l->host ? l->host : mini_host_table();
    const tn_device_ops *ops = l->m.ops = life_plugin->devices;
    tn_cell cell;
    uint32_t n = 0;
    l->m.plugin = life_plugin;
    STEP("start the CUDA plugin", life_plugin->init(host, NULL, &l->m.self));
    l->capture = life_plugin->extension(l->m.self, TN_EXT_CAPTURE);
    STEP("CUDA driver", ops->count(l->m.self, &n));
    STEP("there is no cuda:0", ops->property(l->m.self, 0, TN_PROP_NAME, &cell));
    STEP("there is no cuda:1", ops->property(l->m.self, 1, TN_PROP_COMPUTE_UNITS, &cell));
    STEP("cuda:0 (|a device", ops->open(l->m.self, 0, &l->m.device));
    STEP("cuda:1 (|a device", ops->open(l->m.self, 1, &l->peer));
    return TN_OK;
}

static tn_status create_all(life *l) {
    const tn_device_ops *ops = life_plugin->devices;
    void *none;
    for (int i = 0; i < STREAMS; i++)
        STEP("a stream", ops->streams->create(l->m.device, (i - 1) * 100, &l->streams[i]));
    l->m.stream = l->streams[0];
    STEP("a stream", ops->streams->create(l->peer, 0, &l->peer_stream));
    STEP("an event", ops->events->create(l->m.device, TN_EVENT_TIMING, &l->start));
    STEP("an event", ops->events->create(l->m.device, TN_EVENT_TIMING, &l->end));
    tn_memory *small[] = {&l->in, &l->negated, &l->index, &l->selected, &l->copied};
    const char *names = "allocating memory|bytes are wanted";
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        STEP(names, allocate(l->m.device, TN_SPACE_DEVICE, 2 * BYTES, small[i], &none));
    STEP(names, allocate(l->m.device, TN_SPACE_DEVICE, LARGE, &l->large, &none));
    STEP(names, allocate(l->peer, TN_SPACE_DEVICE, BYTES, &l->peer_memory, &none));
    STEP("allocating pinned memory",
         allocate(l->m.device, TN_SPACE_PINNED, LARGE, &l->pinned, &l->host_memory));
    return TN_OK;
}

/* Forth and back again. */
static tn_status transfer(life *l) {
    const tn_memory_ops *memory = life_plugin->devices->memory;
    tn_device_impl *device = l->m.device;
    tn_stream_impl *stream = l->m.stream;
    tn_memory_info info = {.struct_size = sizeof info};
    STEP("free memory", memory->info(device, TN_SPACE_DEVICE, &info));
    STEP("copy_from_host", memory->copy_from_host(device, stream, l->large, 0, numbers, 0, LARGE));
    STEP("copy_to_host", memory->copy_to_host(device, stream, l->results, 0, l->large, 0, LARGE));
    compare(l, l->results, NUMBERS, numbers, 1, 1);
    memcpy(l->host_memory, numbers, LARGE);
    STEP("fill", memory->fill(device, stream, l->large, 0, 7, LARGE));
    STEP("copy_from_host",
         memory->copy_from_host(device, stream, l->large, BYTES, l->host_memory, l->pinned, BYTES));
    STEP("copy", memory->copy(device, stream, l->large, 0, l->large, BYTES, BYTES));
    STEP("copy_to_host",
         memory->copy_to_host(device, stream, l->host_memory, l->pinned, l->large, 0, BYTES));
    STEP("work of a stream", life_plugin->devices->streams->synchronize(stream));
    compare(l, l->host_memory, N, numbers, 1, 1);
    return TN_OK;
}

static tn_status compute(life *l) {
    const tn_memory_ops *memory = life_plugin->devices->memory;
    tn_device_impl *device = l->m.device;
    tn_stream_impl *stream = l->m.stream;
    STEP("copy_from_host", memory->copy_from_host(device, stream, l->in, 0, numbers, 0, BYTES));
    STEP("copy_from_host",
         memory->copy_from_host(device, stream, l->index, 0, indices, 0, sizeof indices));
    STEP("op_neg|pointwise", rig_negate(&l->m, stream, l->in, l->negated, N));
    STEP("gather_i32|index", rig_select(&l->m, stream, l->negated, l->index, l->selected, N));
    return TN_OK;
}

/* From a stream to another, from there to the other device. */
static tn_status hand_over(life *l) {
    const tn_memory_ops *memory = life_plugin->devices->memory;
    const tn_event_ops *events = life_plugin->devices->events;
    double ns;
    STEP("recording an event", events->record(l->start, l->m.stream));
    STEP("waiting for an event", events->wait(l->streams[1], l->start));
    STEP("copy", memory->copy(l->m.device, l->streams[1], l->copied, 0, l->selected, 0, BYTES));
    STEP("recording an event", events->record(l->end, l->streams[1]));
    STEP("waiting for an event", events->wait(l->peer_stream, l->end));
    STEP("copy_peer", memory->copy_peer(l->peer, l->peer_stream, l->peer_memory, 0, l->m.device,
                                        l->copied, 0, BYTES));
    STEP("copy_to_host",
         memory->copy_to_host(l->peer, l->peer_stream, l->results, 0, l->peer_memory, 0, BYTES));
    compare(l, l->results, N, &numbers[N - 1], -1, -1);
    STEP_QUERY("query of an event", events->query(l->end));
    STEP("waiting for an event", events->synchronize(l->end));
    STEP("the time between two events", events->elapsed(l->start, l->end, &ns));
    STEP_QUERY("work of a stream", life_plugin->devices->streams->query(l->m.stream));
    STEP("work of a stream", life_plugin->devices->streams->synchronize(l->m.stream));
    return TN_OK;
}

/* `in`, negated, backwards, in pinned memory. */
static tn_status record(life *l, tn_memory in, tn_graph_impl **out) {
    const tn_memory_ops *memory = life_plugin->devices->memory;
    tn_device_impl *device = l->m.device;
    tn_stream_impl *stream = l->streams[2];
    STEP("a capture", l->capture->begin(stream));
    STEP("fill", memory->fill(device, stream, l->negated, 0, 0, BYTES));
    STEP("op_neg|pointwise", rig_negate(&l->m, stream, in, l->negated, N));
    STEP("gather_i32|index", rig_select(&l->m, stream, l->negated, l->index, l->selected, N));
    STEP("copy", memory->copy(device, stream, l->copied, 0, l->selected, 0, BYTES));
    STEP("copy_to_host",
         memory->copy_to_host(device, stream, l->host_memory, l->pinned, l->copied, 0, BYTES));
    STEP("capture|making a graph|move_error", l->capture->end(stream, out));
    return TN_OK;
}

static tn_status replay(life *l) {
    const tn_stream_ops *streams = life_plugin->devices->streams;
    STEP("launching a graph", l->capture->launch(l->graph, l->streams[1]));
    STEP("launching a graph", l->capture->launch(l->graph, l->streams[0]));
    STEP("work of a stream", streams->synchronize(l->streams[0]));
    compare(l, l->host_memory, N, &numbers[N - 1], -1, -1);
    STEP("updating a graph", l->capture->update(l->graph, l->another));
    STEP("launching a graph", l->capture->launch(l->graph, l->streams[1]));
    STEP("work of a stream", streams->synchronize(l->streams[1]));
    compare(l, l->host_memory, N, &numbers[N - 1], -1, 1);
    return TN_OK;
}

/* One graph negates the numbers, and the other what is in `large` by then: the numbers, negated. */
static tn_status record_and_replay(life *l) {
    const tn_memory_ops *memory = life_plugin->devices->memory;
    tn_status status = record(l, l->in, &l->graph);
    if (status == TN_OK)
        status = record(l, l->large, &l->another);
    if (status != TN_OK)
        return status;
    for (int i = 0; i < N; i++)
        l->results[i] = -numbers[i];
    STEP("copy_from_host",
         memory->copy_from_host(l->m.device, l->m.stream, l->large, 0, l->results, 0, BYTES));
    return replay(l);
}

tn_status life_live(life *l) {
    static tn_status (*const parts[])(life *) = {open_all, create_all, transfer,
                                                 compute,  hand_over,  record_and_replay};
    tn_status status = TN_OK;
    l->context = double_current(&l->depth);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == TN_OK; i++)
        status = parts[i](l);
    return status;
}

void life_end(life *l) {
    const tn_device_ops *ops = life_plugin->devices;
    const tn_memory memory[] = {l->in, l->negated, l->index, l->selected, l->copied, l->large};
    for (int i = 0; i < STREAMS; i++)
        if (l->streams[i])
            l->capture->abandon(l->streams[i]);
    if (l->graph)
        l->capture->destroy(l->graph);
    if (l->another)
        l->capture->destroy(l->another);
    ops->events->destroy(l->start);
    ops->events->destroy(l->end);
    for (int i = 0; i < STREAMS; i++)
        ops->streams->destroy(l->streams[i]);
    ops->streams->destroy(l->peer_stream);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        if (memory[i])
            ops->memory->dealloc(l->m.device, TN_SPACE_DEVICE, memory[i]);
    if (l->pinned)
        ops->memory->dealloc(l->m.device, TN_SPACE_PINNED, l->pinned);
    if (l->peer_memory)
        ops->memory->dealloc(l->peer, TN_SPACE_DEVICE, l->peer_memory);
    if (l->m.device)
        ops->close(l->m.device);
    if (l->peer)
        ops->close(l->peer);
    if (l->m.self)
        life_plugin->shutdown(l->m.self);
    l->step = "the teardown";
    look_at_context(l);
}

/* ---- a device ---------------------------------------------------------------------------- */

tn_status life_use(tn_device_impl *device) {
    const tn_device_ops *ops = life_plugin->devices;
    tn_stream_impl *stream = NULL;
    tn_memory memory = 0;
    void *none;
    uint8_t bytes[64] = {0};
    tn_status status = ops->streams->create(device, 0, &stream);
    if (status == TN_OK)
        status = allocate(device, TN_SPACE_DEVICE, sizeof bytes, &memory, &none);
    if (status == TN_OK)
        status = ops->memory->fill(device, stream, memory, 0, 9, sizeof bytes);
    if (status == TN_OK)
        status = ops->memory->copy_to_host(device, stream, bytes, 0, memory, 0, sizeof bytes);
    if (status == TN_OK)
        status = ops->streams->synchronize(stream);
    if (status == TN_OK && bytes[sizeof bytes - 1] != 9)
        status = TN_ERR_INTERNAL;
    ops->streams->destroy(stream);
    if (memory)
        ops->memory->dealloc(device, TN_SPACE_DEVICE, memory);
    return status;
}
