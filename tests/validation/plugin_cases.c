/* What plugins do wrong, each fault brought out by a call that is right. */
#include "tests/validation/findings.h"

#include <tenon/ext/capture.h>

static void only_start(void) {
    start();
    stop();
}

void open_and_close(void) {
    open_all();
    close_all();
}

static void ask_nothing(void) {
    start();
    if (p)
        p->devices->open(p->self, 0, &device);
    if (p && device)
        p->devices->close(device);
    device = NULL;
    stop();
}

static void open_two(void) {
    open_all();
    p->devices->open(p->self, 1, &second);
    if (second != device)
        p->devices->close(second);
    close_all();
}

static void alloc_more(tn_allocation other) {
    open_all();
    p->devices->memory->alloc(device, &other);
    if (other.memory != memory)
        p->devices->memory->dealloc(device, other.space, other.memory);
    close_all();
}

static void alloc_two(void) {
    alloc_more(request(TN_SPACE_DEVICE, 100));
}

static void alloc_pinned(void) {
    alloc_more(request(TN_SPACE_PINNED, 100));
}

static void alloc_aligned(void) {
    tn_allocation other = request(TN_SPACE_DEVICE, 100);
    other.alignment = 256;
    alloc_more(other);
}

static void write_all(void) {
    char bytes[256] = {0};
    open_all();
    p->devices->memory->copy_from_host(device, stream, memory, 0, bytes, 0, sizeof bytes);
    close_all();
}

void write_twice(void) {
    char bytes[16] = {0};
    open_all();
    p->devices->memory->copy_from_host(device, stream, memory, 0, bytes, 0, sizeof bytes);
    p->devices->memory->copy_from_host(device, stream, memory, 0, bytes, 0, sizeof bytes);
    close_all();
}

static void ask_info(void) {
    open_all();
    tn_memory_info info = {.struct_size = sizeof info};
    p->devices->memory->info(device, TN_SPACE_PINNED, &info);
    close_all();
}

static void make_stream(void) {
    open_all();
    close_all();
}

static void make_event(void) {
    open_all();
    tn_event_impl *event = NULL;
    p->devices->events->create(device, 0, &event);
    if (event)
        p->devices->events->destroy(event);
    close_all();
}

static void query_unrecorded(void) {
    open_all();
    tn_event_impl *event;
    p->devices->events->create(device, 0, &event);
    p->devices->events->query(event);
    p->devices->events->destroy(event);
    close_all();
}

static void query_twice(void) {
    open_all();
    tn_event_impl *event;
    p->devices->events->create(device, 0, &event);
    p->devices->events->record(event, stream);
    p->devices->events->query(event);
    p->devices->events->query(event);
    p->devices->events->destroy(event);
    close_all();
}

static void time_unrecorded(void) {
    open_all();
    tn_event_impl *event;
    double ns;
    p->devices->events->create(device, TN_EVENT_TIMING, &event);
    p->devices->events->elapsed(event, event, &ns);
    p->devices->events->destroy(event);
    close_all();
}

static void synchronize_it(void) {
    open_all();
    p->devices->streams->synchronize(stream);
    close_all();
}

/* ---- captures ---------------------------------------------------------------------------- */

static void capture_twice(void) {
    tn_graph_impl *graphs[2] = {NULL, NULL};
    open_all();
    const tn_ext_capture *ext = p->table->extension(p->self, TN_EXT_CAPTURE);
    for (int i = 0; i < 2; i++) {
        ext->begin(stream);
        ext->end(stream, &graphs[i]);
    }
    for (int i = 0; i < 2; i++)
        if (graphs[i] && (i == 0 || graphs[1] != graphs[0]))
            ext->destroy(graphs[i]);
    close_all();
}

static void end_nothing(void) {
    tn_graph_impl *graph;
    open_all();
    const tn_ext_capture *ext = p->table->extension(p->self, TN_EXT_CAPTURE);
    assert_int_equal(ext->begin(stream), TN_OK);
    ext->abandon(stream);
    if (ext->end(stream, &graph) == TN_OK)
        ext->destroy(graph);
    close_all();
}

/* All that a capturing stream refuses. What it names is not used by the graph. */
static void ask_capturing(void) {
    char bytes[8] = {0};
    tn_event_impl *event;
    tn_graph_impl *empty, *graph;
    open_all();
    tn_allocation other = request(TN_SPACE_DEVICE, 8), there = request(TN_SPACE_DEVICE, 8);
    const tn_memory_ops *m = p->devices->memory;
    const tn_ext_capture *ext = p->table->extension(p->self, TN_EXT_CAPTURE);
    p->devices->open(p->self, 1, &second);
    assert_int_equal(m->alloc(device, &other), TN_OK);
    assert_int_equal(m->alloc(second, &there), TN_OK);
    p->devices->events->create(device, 0, &event);
    ext->begin(stream);
    ext->end(stream, &empty);
    ext->begin(stream);
    m->copy_from_host(device, stream, other.memory, 0, bytes, 0, 8);
    m->copy_to_host(device, stream, bytes, 0, other.memory, 0, 8);
    m->copy_peer(device, stream, other.memory, 0, second, there.memory, 0, 8);
    p->devices->streams->query(stream);
    p->devices->streams->synchronize(stream);
    p->devices->events->record(event, stream);
    p->devices->events->wait(stream, event);
    ext->begin(stream);
    ext->launch(empty, stream);
    assert_int_equal(ext->end(stream, &graph), TN_OK);
    p->devices->streams->synchronize(stream);
    m->dealloc(device, TN_SPACE_DEVICE, other.memory);
    ext->launch(graph, stream);
    ext->destroy(graph);
    ext->destroy(empty);
    p->devices->events->destroy(event);
    m->dealloc(second, TN_SPACE_DEVICE, there.memory);
    p->devices->close(second);
    close_all();
}

#define REFUSES(slot) \
    { "refuses nothing", ask_capturing, TNP_CAPTURE_REFUSES, slot, "captures", ASYNC, 1 }

const finding_case plugin_cases[] = {
    {"no self", only_start, TNP_INIT_RESULT, "init", "out_self", SYNC, 1},
    {"fails and keeps", only_start, TNP_INIT_RESULT, "init", "1 blocks", SYNC, 1},
    {"allocates early", only_start, 3, TN_PLUGIN_QUERY_NAME, "pure", SYNC, 1},
    {"knows all", only_start, TNP_EXTENSION_ANSWERS, "extension", "tenon.unknown/1", SYNC, 1},
    {"bad alignment", only_start, TNP_HOST_ALLOC_RETURNED, "host->alloc", "48", SYNC, 1},
    {"keeps a block", only_start, TNP_HOST_ALLOC_RETURNED, "shutdown", "1000 bytes", SYNC, 1},
    {"frees twice", only_start, TNP_HOST_ALLOC_RETURNED, "host->dealloc", "before", SYNC, 1},
    {"another host", only_start, TNP_HOST_ARGUMENT, "host->log_message", "init was given", SYNC, 1},
    {"no host", only_start, TNP_HOST_ARGUMENT, "host->option", "init was given", SYNC, 1},
    {"asks too early", only_start, TNP_HOST_OPTION, "host->option", "before init", SYNC, 1},
    {"starts a thread", only_start, TNP_SHUTDOWN_NO_THREADS, "shutdown", "started inside", SYNC, 1},
    {"opens a file", open_and_close, TNP_CLOSE_RETURNS_ALL, "devices->close", "descriptor", SYNC,
     1},
    {"open is silent", ask_nothing, TNP_FAIL_MESSAGE, "devices->open", "IO and no message", SYNC,
     1},
    {"no device", ask_nothing, TNP_OPEN_DEVICE, "devices->open", "NULL", SYNC, 1},
    {"one device", open_two, TNP_OPEN_DEVICE, "devices->open", "still open", SYNC, 1},
    {"changes", open_and_close, TNP_PROPERTY_STABLE, "devices->property", "two ways", SYNC, 1},
    {"writes unasked", open_and_close, TNP_PROPERTY_UNKNOWN, "devices->property", "out_value", SYNC,
     1},
    {"odd alignment", open_and_close, TNP_PROPERTY_RANGE, "devices->property", "power of two", SYNC,
     1},
    {"wrong tag", open_and_close, TNP_PROPERTY_RANGE, "devices->property", "tag", SYNC, 1},
    {"no name", open_and_close, TNP_PROPERTY_RANGE, "devices->property", "empty", SYNC, 1},
    {"third space", open_and_close, TNP_PROPERTY_RANGE, "devices->property", "known spaces", SYNC,
     1},
    {"a list of spaces", open_and_close, TNP_PROPERTY_RANGE, "devices->property", "n of the cell",
     SYNC, 1},
    {"no handle", alloc_two, TNP_ALLOC_HANDLE, "memory->alloc", "handle 0", SYNC, 1},
    {"same handle", alloc_two, TNP_ALLOC_HANDLE, "memory->alloc", "alive already", SYNC, 1},
    {"same handle", alloc_pinned, TNP_ALLOC_HANDLE, "memory->alloc", "alive already", SYNC, 1},
    {"overlaps", alloc_two, TNP_ALLOC_HANDLE, "memory->alloc", "overlaps", SYNC, 1},
    {"misaligned", open_and_close, TNP_ALLOC_ALIGNMENT, "memory->alloc", "aligned to 64", SYNC, 1},
    {"aligns to 64", alloc_aligned, TNP_ALLOC_ALIGNMENT, "memory->alloc", "aligned to 256", SYNC,
     1},
    {"no host pointer", open_and_close, TNP_PROPERTY_UNIFIED_MEMORY, "memory->alloc",
     "UNIFIED_MEMORY", SYNC, 1},
    {"no host pointer", alloc_pinned, TNP_ALLOC_HOST_POINTER, "memory->alloc", "pinned", SYNC, 1},
    {"changes request", open_and_close, TNP_HOST_STRUCT_SIZE, "memory->alloc", "struct_size", SYNC,
     1},
    {"hides pinned", alloc_pinned, TNP_MEMORY_SPACES, "memory->alloc", "served space 1", SYNC, 1},
    {"hides pinned", ask_info, TNP_MEMORY_SPACES, "memory->info", "served space 1", SYNC, 1},
    {"changes size", ask_info, TNP_HOST_STRUCT_SIZE, "memory->info", "struct_size", SYNC, 1},
    {"more than all", ask_info, TNP_MEMORY_INFO, "memory->info", "101", SYNC, 1},
    {"silent", write_all, TNP_FAIL_MESSAGE, "memory->copy_from_host", "no message", SYNC, 1},
    {"other status", write_all, TNP_FAIL_MESSAGE, "memory->copy_from_host", "told host->fail IO",
     SYNC, 1},
    {"fails with ok", write_all, TNP_FAIL_MESSAGE, "host->fail", "TN_OK", SYNC, 1},
    {"dry", write_all, TNP_HOST_ALLOC_FAILURE, "memory->copy_from_host", "OUT_OF_MEMORY", SYNC, 1},
    {"no status", write_all, TNP_STATUS_CODES, "memory->copy_from_host", "99", SYNC, 1},
    {"not ready", write_all, TNP_NOT_READY_QUERIES_ONLY, "memory->copy_from_host", "only a query",
     SYNC, 1},
    {"not ready", synchronize_it, TNP_NOT_READY_QUERIES_ONLY, "streams->synchronize",
     "only a query", ASYNC, 1},
    {"comes back", write_twice, TNP_DEVICE_LOST_FAILS, "memory->copy_from_host", "lost before",
     SYNC, 1},
    {"keeps src", write_all, TNP_WRITE_CONSUMES_SOURCE, "memory->copy_from_host", "not pinned",
     SYNC, 2},
    {"writes behind", write_all, TNP_KERNEL_WRITES_OUTPUTS_ONLY, "memory->dealloc", "behind", SYNC,
     2},
    {"no stream", make_stream, TNP_STREAM_CREATE, "streams->create", "NULL", ASYNC, 1},
    {"no event", make_event, TNP_EVENT_CREATE, "events->create", "NULL", ASYNC, 1},
    {"never done", query_unrecorded, TNP_EVENT_CREATE, "events->query", "never recorded", ASYNC, 1},
    {"undone", query_twice, TNP_EVENT_QUERY, "events->query", "in between", ASYNC, 1},
    {"times nothing", time_unrecorded, TNP_EVENT_ELAPSED, "events->elapsed", "never recorded",
     ASYNC, 1},
    {"no graph", capture_twice, TNP_CAPTURE_RECORDS, "capture->end", "NULL", ASYNC, 1},
    {"same graph", capture_twice, TNP_CAPTURE_RECORDS, "capture->end", "still open", ASYNC, 1},
    {"fails with a graph", capture_twice, TNP_CAPTURE_RECORDS, "capture->end", "not NULL", ASYNC,
     1},
    {"captures once", capture_twice, TNP_CAPTURE_RECORDS, "capture->begin", "does not capture",
     ASYNC, 1},
    {"ends nothing", end_nothing, TNP_CAPTURE_REFUSES, "capture->end", "does not capture", ASYNC,
     1},
    REFUSES("memory->copy_from_host"),
    REFUSES("memory->copy_to_host"),
    REFUSES("memory->copy_peer"),
    REFUSES("streams->query"),
    REFUSES("streams->synchronize"),
    REFUSES("events->record"),
    REFUSES("events->wait"),
    REFUSES("capture->begin"),
    REFUSES("capture->launch"),
    {"sets a locale", only_start, TNP_PROCESS_STATE_KEPT, "init", "locale", SYNC, 2},
};
const int n_plugin_cases = sizeof plugin_cases / sizeof *plugin_cases;
