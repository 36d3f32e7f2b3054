/* What Tenon itself could do wrong with memory, streams, events and devices. */
#include "tests/validation/findings.h"

#include <pthread.h>
#include <tenon/ext/capture.h>

static const char eight[8];

static void free_twice(void) {
    open_all();
    tn_memory old = memory;
    p->devices->memory->dealloc(device, TN_SPACE_DEVICE, memory);
    p->devices->memory->dealloc(device, TN_SPACE_DEVICE, old);
    memory = 0;
    close_all();
}

static void free_pinned_as_device(void) {
    open_all();
    p->devices->memory->dealloc(device, TN_SPACE_PINNED, memory);
    close_all();
}

static void leave_memory(void) {
    open_all();
    tn_memory left = memory;
    p->devices->close(device);
    brittle.host->dealloc(brittle.host, (void *)(uintptr_t)left);
    stop();
}

static void leave_device(void) {
    open_all();
    p->devices->memory->dealloc(device, TN_SPACE_DEVICE, memory);
    stop();
}

static void open_index(void) {
    open_all();
    tn_cell value;
    p->devices->property(p->self, 5, TN_PROP_NAME, &value);
    close_all();
}

static void write_freed(void) {
    open_all();
    assert_int_equal(p->devices->memory->copy_from_host(device, stream, memory + 8, 0, eight, 0, 8),
                     TN_ERR_STATE);
    close_all();
}

static void write_outside(void) {
    open_all();
    assert_int_equal(p->devices->memory->copy_from_host(device, stream, memory, 250, eight, 0, 8),
                     TN_ERR_STATE);
    close_all();
}

static void copy_overlapping(void) {
    open_all();
    p->devices->memory->copy(device, stream, memory, 8, memory, 0, 16);
    close_all();
}

static void closed_device(void) {
    open_all();
    tn_device_impl *old = device;
    tn_allocation other = request(TN_SPACE_DEVICE, 8);
    const tni_plugin *q = p;
    p->devices->memory->dealloc(device, TN_SPACE_DEVICE, memory);
    p->devices->close(device);
    assert_int_equal(q->devices->memory->alloc(old, &other), TN_ERR_STATE);
    stop();
}

static void ask_for(uint64_t bytes, uint64_t alignment, int32_t space, uint32_t flags) {
    open_all();
    tn_allocation other = request(space, bytes);
    other.alignment = alignment;
    other.flags = flags;
    if (p->devices->memory->alloc(device, &other) == TN_OK)
        p->devices->memory->dealloc(device, space, other.memory);
    close_all();
}

static void alloc_nothing(void) {
    ask_for(0, 64, TN_SPACE_DEVICE, 0);
}

static void align_less(void) {
    ask_for(8, 32, TN_SPACE_DEVICE, 0);
}

static void align_oddly(void) {
    ask_for(8, 96, TN_SPACE_DEVICE, 0);
}

static void alloc_flags(void) {
    ask_for(8, 64, TN_SPACE_DEVICE, 2);
}

static void alloc_elsewhere(void) {
    ask_for(8, 64, 2, 0);
}

static void info_elsewhere(void) {
    open_all();
    tn_memory_info info = {.struct_size = sizeof info};
    p->devices->memory->info(device, 2, &info);
    close_all();
}

/* ---- pinned memory ----------------------------------------------------------------------- */

static tn_allocation pinned;

static tn_status write_from(const void *src, tn_memory from) {
    return p->devices->memory->copy_from_host(device, stream, memory, 0, src, from, 8);
}

static tn_status read_to(void *dst, tn_memory to) {
    return p->devices->memory->copy_to_host(device, stream, dst, to, memory, 0, 8);
}

static void open_pinned(void) {
    open_all();
    pinned = request(TN_SPACE_PINNED, 64);
    assert_int_equal(p->devices->memory->alloc(device, &pinned), TN_OK);
}

static void close_pinned(void) {
    p->devices->memory->dealloc(device, TN_SPACE_PINNED, pinned.memory);
    close_all();
}

void transfer_pinned(void) {
    open_pinned();
    char *end = (char *)pinned.host + 56;
    assert_int_equal(write_from(end, pinned.memory), TN_OK);
    assert_int_equal(read_to(end, pinned.memory), TN_OK);
    assert_int_equal(write_from(end, 0), TN_OK);
    assert_int_equal(read_to(end, 0), TN_OK);
    close_pinned();
}

#define REFUSED(name, what) \
    static void name(void) { \
        open_pinned(); \
        assert_int_equal(what, TN_ERR_STATE); \
        close_pinned(); \
    }
REFUSED(write_beyond, write_from((char *)pinned.host + 57, pinned.memory))
REFUSED(write_before, write_from((char *)pinned.host - 1, pinned.memory))
REFUSED(read_beyond, read_to((char *)pinned.host + 57, pinned.memory))
REFUSED(write_from_device, write_from((char *)(uintptr_t)memory, memory))
REFUSED(copy_to_pinned, p->devices->memory->copy(device, stream, pinned.memory, 0, memory, 0, 8))
REFUSED(copy_pinned, p->devices->memory->copy(device, stream, memory, 0, pinned.memory, 0, 8))
REFUSED(fill_pinned, p->devices->memory->fill(device, stream, pinned.memory, 0, 0, 8))

static void write_from_anothers(void) {
    open_all();
    p->devices->open(p->self, 1, &second);
    pinned = request(TN_SPACE_PINNED, 64);
    assert_int_equal(p->devices->memory->alloc(second, &pinned), TN_OK);
    assert_int_equal(write_from(pinned.host, pinned.memory), TN_ERR_STATE);
    p->devices->memory->dealloc(second, TN_SPACE_PINNED, pinned.memory);
    p->devices->close(second);
    close_all();
}

static void free_pinned_in_use(void) {
    open_pinned();
    write_from(pinned.host, pinned.memory);
    close_pinned();
}

/* ---- streams and events ------------------------------------------------------------------ */

static void no_stream(void) {
    open_all();
    p->devices->memory->fill(device, NULL, memory, 0, 0, 8);
    close_all();
}

static void destroyed_stream(void) {
    open_all();
    tn_stream_impl *old = stream;
    p->devices->streams->destroy(stream);
    stream = NULL;
    assert_int_equal(p->devices->streams->query(old), TN_ERR_STATE);
    close_all();
}

static void destroyed_event(void) {
    open_all();
    tn_event_impl *event;
    p->devices->events->create(device, 0, &event);
    p->devices->events->destroy(event);
    assert_int_equal(p->devices->events->query(event), TN_ERR_STATE);
    close_all();
}

static void foreign_stream(void) {
    open_all();
    tn_allocation other = request(TN_SPACE_DEVICE, 64);
    p->devices->open(p->self, 1, &second);
    p->devices->memory->alloc(second, &other);
    assert_int_equal(p->devices->memory->fill(second, stream, other.memory, 0, 0, 8), TN_ERR_STATE);
    p->devices->memory->dealloc(second, TN_SPACE_DEVICE, other.memory);
    p->devices->close(second);
    close_all();
}

static void foreign_record(void) {
    open_all();
    tn_event_impl *event;
    p->devices->open(p->self, 1, &second);
    p->devices->events->create(second, 0, &event);
    p->devices->events->record(event, stream);
    p->devices->events->destroy(event);
    p->devices->close(second);
    close_all();
}

static void free_in_use(void) {
    open_all();
    p->devices->memory->fill(device, stream, memory, 0, 0, 8);
    p->devices->memory->dealloc(device, TN_SPACE_DEVICE, memory);
    memory = 0;
    close_all();
}

/* The same in order: one stream waits for the other, and the host for it. */
void free_after_wait(void) {
    open_all();
    tn_stream_impl *other;
    tn_event_impl *event;
    p->devices->streams->create(device, 0, &other);
    p->devices->events->create(device, 0, &event);
    p->devices->memory->fill(device, other, memory, 0, 0, 8);
    p->devices->events->record(event, other);
    p->devices->events->wait(stream, event);
    p->devices->streams->synchronize(stream);
    p->devices->memory->dealloc(device, TN_SPACE_DEVICE, memory);
    memory = 0;
    p->devices->events->destroy(event);
    p->devices->streams->destroy(other);
    close_all();
}

/* A graph that fills the allocation. */
static tn_graph_impl *graph;

static const tn_ext_capture *capture(uint64_t bytes) {
    const tn_ext_capture *ext = p->table->extension(p->self, TN_EXT_CAPTURE);
    assert_int_equal(ext->begin(stream), TN_OK);
    assert_int_equal(p->devices->memory->fill(device, stream, memory, 0, 1, bytes), TN_OK);
    assert_int_equal(ext->end(stream, &graph), TN_OK);
    return ext;
}

static const tn_ext_capture *capture_fill(void) {
    return capture(256);
}

/* What holds memory that is freed then is waited for: the host knows when launches are over by those
 * behind them, and by the end of their graph. */
void use_graphs(void) {
    open_all();
    tn_stream_impl *other;
    tn_allocation first = request(TN_SPACE_DEVICE, 64);
    p->devices->streams->create(device, 0, &other);
    assert_int_equal(p->devices->memory->alloc(device, &first), TN_OK);
    tn_memory second_one = memory;
    memory = first.memory;
    const tn_ext_capture *ext = capture(64);
    tn_graph_impl *updated = graph;
    memory = second_one;
    capture(256);
    assert_int_equal(ext->launch(updated, other), TN_OK);
    assert_int_equal(ext->launch(updated, stream), TN_OK);
    assert_int_equal(p->devices->streams->synchronize(stream), TN_OK);
    assert_int_equal(ext->update(updated, graph), TN_OK);
    p->devices->memory->dealloc(device, TN_SPACE_DEVICE, first.memory);
    assert_int_equal(ext->launch(updated, other), TN_OK);
    assert_int_equal(ext->launch(graph, stream), TN_OK);
    ext->destroy(graph);
    ext->destroy(updated);
    p->devices->memory->dealloc(device, TN_SPACE_DEVICE, memory);
    memory = 0;
    p->devices->streams->destroy(other);
    close_all();
}

static void launch_updated(void) {
    open_all();
    const tn_ext_capture *ext = capture_fill();
    tn_graph_impl *updated = graph;
    tn_allocation other = request(TN_SPACE_DEVICE, 256);
    tn_memory before = memory;
    assert_int_equal(p->devices->memory->alloc(device, &other), TN_OK);
    memory = other.memory;
    capture_fill();
    ext->update(updated, graph);
    ext->destroy(graph);
    p->devices->memory->dealloc(device, TN_SPACE_DEVICE, memory);
    memory = before;
    ext->launch(updated, stream);
    ext->destroy(updated);
    close_all();
}

static void update_elsewhere(void) {
    open_all();
    const tn_ext_capture *ext = capture_fill();
    tn_graph_impl *there;
    tn_stream_impl *on;
    p->devices->open(p->self, 1, &second);
    p->devices->streams->create(second, 0, &on);
    assert_int_equal(ext->begin(on), TN_OK);
    assert_int_equal(ext->end(on, &there), TN_OK);
    ext->update(graph, there);
    ext->destroy(there);
    ext->destroy(graph);
    p->devices->streams->destroy(on);
    p->devices->close(second);
    close_all();
}

static void *update_it(void *from) {
    const tn_ext_capture *ext = p->table->extension(p->self, TN_EXT_CAPTURE);
    ext->update(graph, from);
    return NULL;
}

/* With the fault the two calls meet inside the plugin. */
static void update_at_once(void) {
    pthread_t thread;
    open_all();
    const tn_ext_capture *ext = capture_fill();
    tn_graph_impl *from = graph;
    capture_fill();
    assert_int_equal(pthread_create(&thread, NULL, update_it, from), 0);
    if (!brittle.fault)
        pthread_join(thread, NULL);
    ext->update(graph, from);
    if (brittle.fault)
        pthread_join(thread, NULL);
    ext->destroy(from);
    ext->destroy(graph);
    close_all();
}

static void destroy_capturing(void) {
    open_all();
    const tn_ext_capture *ext = p->table->extension(p->self, TN_EXT_CAPTURE);
    assert_int_equal(ext->begin(stream), TN_OK);
    p->devices->streams->destroy(stream);
    stream = NULL;
    close_all();
}

static void launch_destroyed(void) {
    open_all();
    const tn_ext_capture *ext = capture_fill();
    assert_int_equal(ext->launch(graph, stream), TN_OK);
    p->devices->streams->synchronize(stream);
    ext->destroy(graph);
    assert_int_equal(ext->launch(graph, stream), TN_ERR_STATE);
    close_all();
}

static void launch_elsewhere(void) {
    tn_stream_impl *there;
    open_all();
    const tn_ext_capture *ext = capture_fill();
    p->devices->open(p->self, 1, &second);
    p->devices->streams->create(second, 0, &there);
    assert_int_equal(ext->launch(graph, there), TN_ERR_STATE);
    p->devices->streams->destroy(there);
    p->devices->close(second);
    ext->destroy(graph);
    close_all();
}

static void launch_after_free(void) {
    open_all();
    const tn_ext_capture *ext = capture_fill();
    p->devices->memory->dealloc(device, TN_SPACE_DEVICE, memory);
    memory = 0;
    ext->launch(graph, stream);
    ext->destroy(graph);
    close_all();
}

static void free_launched(void) {
    open_all();
    const tn_ext_capture *ext = capture_fill();
    ext->launch(graph, stream);
    p->devices->memory->dealloc(device, TN_SPACE_DEVICE, memory);
    memory = 0;
    ext->destroy(graph);
    close_all();
}

static void leave_graph(void) {
    open_all();
    capture_fill();
    close_all();
}

static void *open_second(void *unused) {
    p->devices->open(p->self, 1, &second);
    return NULL;
}

/* With the fault the two calls meet inside the plugin. */
static void open_at_once(void) {
    pthread_t thread;
    start();
    assert_int_equal(pthread_create(&thread, NULL, open_second, NULL), 0);
    if (!brittle.fault)
        pthread_join(thread, NULL);
    p->devices->open(p->self, 0, &device);
    if (brittle.fault)
        pthread_join(thread, NULL);
    p->devices->close(device);
    p->devices->close(second);
    stop();
}

const finding_case caller_cases[] = {
    {NULL, free_twice, 0, "memory->dealloc", "not alive", SYNC, 1},
    {NULL, free_pinned_as_device, 0, "memory->dealloc", "another space", SYNC, 1},
    {NULL, leave_memory, 0, "devices->close", "256 bytes", SYNC, 1},
    {NULL, leave_device, 0, "shutdown", "1 devices", SYNC, 1},
    {NULL, open_index, 0, "devices->property", "index 5", SYNC, 1},
    {NULL, write_freed, 0, "memory->copy_from_host", "not alive", SYNC, 1},
    {NULL, write_outside, 0, "memory->copy_from_host", "leave allocation", SYNC, 1},
    {NULL, copy_overlapping, 0, "memory->copy", "overlap", SYNC, 1},
    {NULL, closed_device, 0, "memory->alloc", "closed", SYNC, 1},
    {NULL, alloc_nothing, 0, "memory->alloc", "0 bytes", SYNC, 1},
    {NULL, align_less, 0, "memory->alloc", "alignment of 32", SYNC, 1},
    {NULL, align_oddly, 0, "memory->alloc", "alignment of 96", SYNC, 1},
    {NULL, alloc_flags, 0, "memory->alloc", "flags 0x2", SYNC, 1},
    {NULL, alloc_elsewhere, 0, "memory->alloc", "space 2", SYNC, 1},
    {NULL, info_elsewhere, 0, "memory->info", "space 2", SYNC, 1},
    {NULL, write_beyond, 0, "memory->copy_from_host", "must be pinned", SYNC, 1},
    {NULL, write_before, 0, "memory->copy_from_host", "must be pinned", SYNC, 1},
    {NULL, read_beyond, 0, "memory->copy_to_host", "must be pinned", SYNC, 1},
    {NULL, write_from_device, 0, "memory->copy_from_host", "must be pinned", SYNC, 1},
    {NULL, write_from_anothers, 0, "memory->copy_from_host", "must be pinned", SYNC, 1},
    {NULL, copy_to_pinned, 0, "memory->copy", "or pinned", SYNC, 1},
    {NULL, copy_pinned, 0, "memory->copy", "or pinned", SYNC, 1},
    {NULL, fill_pinned, 0, "memory->fill", "or pinned", SYNC, 1},
    {NULL, free_pinned_in_use, 0, "memory->dealloc", "nobody waited", ASYNC, 1},
    {NULL, no_stream, 0, "memory->fill", "stream is NULL", ASYNC, 1},
    {NULL, destroyed_stream, 0, "streams->query", "destroyed", ASYNC, 1},
    {NULL, destroyed_event, 0, "events->query", "destroyed", ASYNC, 1},
    {NULL, foreign_stream, 0, "memory->fill", "another device", ASYNC, 1},
    {NULL, foreign_record, 0, "events->record", "another device", ASYNC, 1},
    {NULL, free_in_use, 0, "memory->dealloc", "nobody waited", ASYNC, 1},
    {NULL, launch_destroyed, 0, "capture->launch", "destroyed before", ASYNC, 1},
    {NULL, launch_elsewhere, 0, "capture->launch", "another device", ASYNC, 1},
    {NULL, launch_after_free, 0, "capture->launch", "was freed", ASYNC, 1},
    {NULL, free_launched, 0, "memory->dealloc", "nobody waited", ASYNC, 1},
    {NULL, leave_graph, 0, "devices->close", "1 graphs", ASYNC, 1},
    {NULL, launch_updated, 0, "capture->launch", "was freed", ASYNC, 1},
    {NULL, update_elsewhere, 0, "capture->update", "two devices", ASYNC, 1},
    {NULL, destroy_capturing, 0, "streams->destroy", "captures", ASYNC, 1},
    {"updates meet", update_at_once, 0, "capture->update", "another call", ASYNC, 1},
    {"meets", open_at_once, 0, "devices->open", "one-thread", SYNC, 1},
};
const int n_caller_cases = sizeof caller_cases / sizeof *caller_cases;
