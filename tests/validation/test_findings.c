/* Every finding of the validation layer, brought about once.
 *
 * A case is what a caller does, with the plugin's fault that makes it a finding. With a fault, the
 * same is done without it first, and nothing may be found then. Cases without a fault are what
 * Tenon itself could do wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "brittle.h"
#include "dispatcher/loader/loader.h"
#include "dispatcher/registry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/plugins.h>
#include <tenon/validation.h>
#include <unistd.h>

/* ---- the plugin, as the rest of Tenon has it --------------------------------------------------
 */

static const tni_plugin *p;
static tn_pdevice *device, *second;
static tn_pstream *stream;
static tn_memory memory;
static void *memory_host;

static void start(void) {
    assert_int_equal(tn_plugin_register(brittle_query), TN_OK);
    p = tni_loader_get("brittle");
    tn_error_clear();
}

static void stop(void) {
    tni_loader_finish();
    tni_registry_finish();
    p = NULL;
}

/* One device with one allocation, and a stream if it has such. */
static void open_all(void) {
    start();
    tn_cell value;
    for (int32_t i = 0; i <= TN_PROP_HOST_MEMORY; i++)
        p->devices->property(p->self, 0, i, &value);
    assert_int_equal(p->devices->open(p->self, 0, &device), TN_OK);
    stream = NULL;
    if (p->devices->streams)
        p->devices->streams->create(device, 0, &stream);
    assert_int_equal(p->devices->memory->alloc(device, TN_SPACE_DEVICE, 256, &memory, &memory_host),
                     TN_OK);
}

static void close_all(void) {
    if (stream)
        p->devices->streams->synchronize(stream);
    if (memory)
        p->devices->memory->free(device, TN_SPACE_DEVICE, memory);
    if (stream)
        p->devices->streams->destroy(stream);
    p->devices->close(device);
    stop();
}

/* ---- what callers do ---------------------------------------------------------------------------
 */

static void only_start(void) {
    start();
    stop();
}

static void open_and_close(void) {
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

static void alloc_two(void) {
    open_all();
    tn_memory other;
    void *host;
    p->devices->memory->alloc(device, TN_SPACE_DEVICE, 100, &other, &host);
    if (other != memory)
        p->devices->memory->free(device, TN_SPACE_DEVICE, other);
    close_all();
}

static void alloc_pinned(void) {
    open_all();
    tn_memory other;
    void *host;
    p->devices->memory->alloc(device, TN_SPACE_PINNED, 100, &other, &host);
    p->devices->memory->free(device, TN_SPACE_PINNED, other);
    close_all();
}

static void write_all(void) {
    char bytes[256] = {0};
    open_all();
    p->devices->memory->write(device, stream, memory, 0, bytes, sizeof bytes);
    close_all();
}

static void write_twice(void) {
    char bytes[16] = {0};
    open_all();
    p->devices->memory->write(device, stream, memory, 0, bytes, sizeof bytes);
    p->devices->memory->write(device, stream, memory, 0, bytes, sizeof bytes);
    close_all();
}

static void ask_info(void) {
    open_all();
    tn_memory_info info = {.struct_size = sizeof info};
    p->devices->memory->info(device, &info);
    close_all();
}

static void make_stream(void) {
    open_all();
    close_all();
}

static void make_event(void) {
    open_all();
    tn_pevent *event = NULL;
    p->devices->events->create(device, 0, &event);
    if (event)
        p->devices->events->destroy(event);
    close_all();
}

static void query_unrecorded(void) {
    open_all();
    tn_pevent *event;
    p->devices->events->create(device, 0, &event);
    p->devices->events->query(event);
    p->devices->events->destroy(event);
    close_all();
}

static void query_twice(void) {
    open_all();
    tn_pevent *event;
    p->devices->events->create(device, 0, &event);
    p->devices->events->record(event, stream);
    p->devices->events->query(event);
    p->devices->events->query(event);
    p->devices->events->destroy(event);
    close_all();
}

static void time_unrecorded(void) {
    open_all();
    tn_pevent *event;
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

/* ---- kernel calls ------------------------------------------------------------------------------
 */

static int64_t sizes[2] = {2, 4}, strides[2] = {4, 1};
static tn_tensor_view in, out, third;
static tn_cell args[3];
static const tn_tensor_view *outs[2] = {&out, &out};
static tn_call call;

/* f32 tensors of 2 x 4 at 0, 64 and 128 of the allocation. */
static tn_tensor_view view_at(uint64_t offset) {
    return (tn_tensor_view){.struct_size = sizeof in,
                            .memory = memory,
                            .offset = offset,
                            .numel = 8,
                            .dtype = TN_F32,
                            .rank = 2,
                            .sizes = sizes,
                            .strides = strides};
}

static void prepare(uint32_t kernel) {
    open_all();
    sizes[0] = 2, sizes[1] = 4, strides[0] = 4, strides[1] = 1;
    in = view_at(0), out = view_at(64), third = view_at(128);
    memset(args, 0, sizeof args);
    args[0] = (tn_cell){.tag = TN_CELL_TENSOR, .v.view = &in};
    call = (tn_call){.struct_size = sizeof call,
                     .device = device,
                     .stream = stream,
                     .user = p->table->kernels[kernel]->user,
                     .args = args,
                     .outs = outs,
                     .n_args = 1,
                     .n_outs = 1};
    if (kernel == BRITTLE_ADD) {
        args[1] = (tn_cell){.tag = TN_CELL_TENSOR, .v.view = &third};
        args[2] = (tn_cell){.tag = TN_CELL_F64, .v.f64 = 1};
        call.n_args = 3;
    }
}

static tn_status run_it(uint32_t kernel) {
    return p->table->kernels[kernel]->run(&call);
}

static void run_neg(void) {
    prepare(BRITTLE_NEG);
    run_it(BRITTLE_NEG);
    close_all();
}

static void ask_neg(void) {
    uint64_t bytes;
    prepare(BRITTLE_NEG);
    p->table->kernels[BRITTLE_NEG]->supports(&call);
    p->table->kernels[BRITTLE_NEG]->workspace(&call, &bytes);
    close_all();
}

static void ask_device(void) {
    open_all();
    for (uint64_t i = 0; i < p->table->n_kernels; i++)
        p->devices->supports(device, p->table->kernels[i]);
    close_all();
}

/* NEG with one line that makes the call wrong. */
#define WRONG(name, kernel, ...) \
    static void name(void) { \
        prepare(kernel); \
        __VA_ARGS__; \
        run_it(kernel); \
        close_all(); \
    }
#define REFUSED(name, kernel, ...) \
    static void name(void) { \
        prepare(kernel); \
        __VA_ARGS__; \
        assert_int_equal(run_it(kernel), TN_STATE); \
        close_all(); \
    }
REFUSED(view_past_end, BRITTLE_NEG, in.offset = 240)
REFUSED(view_in_freed, BRITTLE_NEG, in.memory += 1)
REFUSED(view_negative, BRITTLE_NEG, strides[0] = -4)
REFUSED(view_rank, BRITTLE_NEG, in.rank = 13)
REFUSED(view_null, BRITTLE_NEG, args[0].v.view = NULL)
REFUSED(workspace_outside, BRITTLE_NEG, call.workspace = memory; call.workspace_bytes = 512)
WRONG(workspace_misaligned, BRITTLE_NEG, call.workspace = memory; call.workspace_bytes = 8;
      call.workspace_offset = 136)
WRONG(view_numel, BRITTLE_NEG, in.numel = 7)
WRONG(view_offset, BRITTLE_NEG, in.offset = 2)
WRONG(view_layout, BRITTLE_NEG, in.layout = 3)
WRONG(dtype_outside, BRITTLE_NEG, in.dtype = TN_I32)
WRONG(strided, BRITTLE_NEG, sizes[1] = 2; in.numel = out.numel = 4)
WRONG(broadcast, BRITTLE_WHERE, strides[0] = 0; out.strides = (int64_t[]){4, 1};
      args[1] = args[2] = args[0]; third.dtype = TN_BOOL; third.strides = out.strides;
      args[0].v.view = &third; call.n_args = 3)
WRONG(output_broadcast, BRITTLE_NEG, strides[0] = 0; in.strides = (int64_t[]){4, 1})
WRONG(in_place, BRITTLE_PLAIN_NEG, out.offset = 0)
WRONG(partly_in_place, BRITTLE_NEG, out.offset = 16)
WRONG(two_scalars, BRITTLE_ADD, args[0] = args[1] = args[2])
WRONG(a_scalar, BRITTLE_NEG, args[0] = (tn_cell){.tag = TN_CELL_F64})
WRONG(a_tag, BRITTLE_ADD, args[2].tag = 77)
WRONG(n_outs_, BRITTLE_NEG, call.n_outs = 2; out = view_at(64))

/* ---- what Tenon could do wrong ------------------------------------------------------------------
 */

static void free_twice(void) {
    open_all();
    tn_memory old = memory;
    p->devices->memory->free(device, TN_SPACE_DEVICE, memory);
    p->devices->memory->free(device, TN_SPACE_DEVICE, old);
    memory = 0;
    close_all();
}

static void free_pinned_as_device(void) {
    open_all();
    p->devices->memory->free(device, TN_SPACE_PINNED, memory);
    close_all();
}

static void leave_memory(void) {
    open_all();
    tn_memory left = memory;
    p->devices->close(device);
    brittle.host->free((void *)(uintptr_t)left);
    stop();
}

static void leave_device(void) {
    open_all();
    p->devices->memory->free(device, TN_SPACE_DEVICE, memory);
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
    assert_int_equal(p->devices->memory->write(device, stream, memory + 8, 0, &call, 8), TN_STATE);
    close_all();
}

static void write_outside(void) {
    open_all();
    assert_int_equal(p->devices->memory->write(device, stream, memory, 250, &call, 8), TN_STATE);
    close_all();
}

static void copy_overlapping(void) {
    open_all();
    p->devices->memory->copy(device, stream, memory, 8, memory, 0, 16);
    close_all();
}

static void closed_device(void) {
    open_all();
    tn_pdevice *old = device;
    tn_memory other;
    void *host;
    const tni_plugin *q = p;
    p->devices->memory->free(device, TN_SPACE_DEVICE, memory);
    p->devices->close(device);
    assert_int_equal(q->devices->memory->alloc(old, TN_SPACE_DEVICE, 8, &other, &host), TN_STATE);
    stop();
}

static void alloc_nothing(void) {
    open_all();
    tn_memory other;
    void *host;
    p->devices->memory->alloc(device, TN_SPACE_DEVICE, 0, &other, &host);
    p->devices->memory->free(device, TN_SPACE_DEVICE, other);
    close_all();
}

static void no_stream(void) {
    open_all();
    p->devices->memory->fill(device, NULL, memory, 0, 0, 8);
    close_all();
}

static void destroyed_stream(void) {
    open_all();
    tn_pstream *old = stream;
    p->devices->streams->destroy(stream);
    stream = NULL;
    assert_int_equal(p->devices->streams->query(old), TN_STATE);
    close_all();
}

static void destroyed_event(void) {
    open_all();
    tn_pevent *event;
    p->devices->events->create(device, 0, &event);
    p->devices->events->destroy(event);
    assert_int_equal(p->devices->events->query(event), TN_STATE);
    close_all();
}

static void foreign_stream(void) {
    open_all();
    tn_memory other;
    void *host;
    p->devices->open(p->self, 1, &second);
    p->devices->memory->alloc(second, TN_SPACE_DEVICE, 64, &other, &host);
    assert_int_equal(p->devices->memory->fill(second, stream, other, 0, 0, 8), TN_STATE);
    p->devices->memory->free(second, TN_SPACE_DEVICE, other);
    p->devices->close(second);
    close_all();
}

static void foreign_record(void) {
    open_all();
    tn_pevent *event;
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
    p->devices->memory->free(device, TN_SPACE_DEVICE, memory);
    memory = 0;
    close_all();
}

/* The same in order: one stream waits for the other, and the host for it. */
static void free_after_wait(void) {
    open_all();
    tn_pstream *other;
    tn_pevent *event;
    p->devices->streams->create(device, 0, &other);
    p->devices->events->create(device, 0, &event);
    p->devices->memory->fill(device, other, memory, 0, 0, 8);
    p->devices->events->record(event, other);
    p->devices->events->wait(stream, event);
    p->devices->streams->synchronize(stream);
    p->devices->memory->free(device, TN_SPACE_DEVICE, memory);
    memory = 0;
    p->devices->events->destroy(event);
    p->devices->streams->destroy(other);
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

/* ---- the cases ----------------------------------------------------------------------------------
 */

enum { SYNC, ASYNC };

typedef struct finding_case {
    const char *fault;
    void (*act)(void);
    uint32_t requirement;
    const char *slot, *word;
    int async, level;
} finding_case;

static const finding_case cases[] = {
    {"no self", only_start, 21, "init", "out_self", SYNC, 1},
    {"fails and keeps", only_start, 21, "init", "1 blocks", SYNC, 1},
    {"allocates early", only_start, 3, TN_PLUGIN_QUERY_NAME, "pure", SYNC, 1},
    {"knows all", only_start, 13, "extension", "tenon.unknown/1", SYNC, 1},
    {"bad alignment", only_start, 14, "host->alloc", "48", SYNC, 1},
    {"keeps a block", only_start, 14, "shutdown", "1000 bytes", SYNC, 1},
    {"frees twice", only_start, 14, "host->free", "before", SYNC, 1},
    {"self inside init", only_start, 17, "host->log", "NULL there", SYNC, 1},
    {"wrong self", only_start, 17, "host->option", "init gave out", SYNC, 1},
    {"asks too early", only_start, 18, "host->option", "before init", SYNC, 1},
    {"starts a thread", only_start, 25, "shutdown", "started inside", SYNC, 1},
    {"opens a file", open_and_close, 31, "devices->close", "descriptor", SYNC, 1},
    {"open is silent", ask_nothing, 16, "devices->open", "IO and no message", SYNC, 1},
    {"no device", ask_nothing, 30, "devices->open", "NULL", SYNC, 1},
    {"one device", open_two, 30, "devices->open", "still open", SYNC, 1},
    {"changes", open_and_close, 32, "devices->property", "two ways", SYNC, 1},
    {"writes unasked", open_and_close, 33, "devices->property", "out_value", SYNC, 1},
    {"odd alignment", open_and_close, 34, "devices->property", "power of two", SYNC, 1},
    {"wrong tag", open_and_close, 34, "devices->property", "tag", SYNC, 1},
    {"device is moody", ask_device, 36, "devices->supports", "same question", SYNC, 1},
    {"no handle", alloc_two, 37, "memory->alloc", "handle 0", SYNC, 1},
    {"same handle", alloc_two, 37, "memory->alloc", "alive already", SYNC, 1},
    {"overlaps", alloc_two, 37, "memory->alloc", "overlaps", SYNC, 1},
    {"misaligned", open_and_close, 38, "memory->alloc", "aligned to 64", SYNC, 1},
    {"no host pointer", open_and_close, 35, "memory->alloc", "HOST_MEMORY", SYNC, 1},
    {"no host pointer", alloc_pinned, 40, "memory->alloc", "pinned", SYNC, 1},
    {"changes size", ask_info, 6, "memory->info", "struct_size", SYNC, 1},
    {"more than all", ask_info, 50, "memory->info", "101", SYNC, 1},
    {"silent", write_all, 16, "memory->write", "no message", SYNC, 1},
    {"other status", write_all, 16, "memory->write", "told host->fail IO", SYNC, 1},
    {"fails with ok", write_all, 16, "host->fail", "TN_OK", SYNC, 1},
    {"dry", write_all, 15, "memory->write", "OUT_OF_MEMORY", SYNC, 1},
    {"no status", write_all, 85, "memory->write", "99", SYNC, 1},
    {"not ready", write_all, 86, "memory->write", "only a query", SYNC, 1},
    {"not ready", synchronize_it, 86, "streams->synchronize", "only a query", ASYNC, 1},
    {"comes back", write_twice, 88, "memory->write", "lost before", SYNC, 1},
    {"writes behind", write_all, 71, "memory->free", "behind", SYNC, 2},
    {"no stream", make_stream, 52, "streams->create", "NULL", ASYNC, 1},
    {"no event", make_event, 59, "events->create", "NULL", ASYNC, 1},
    {"never done", query_unrecorded, 59, "events->query", "never recorded", ASYNC, 1},
    {"undone", query_twice, 61, "events->query", "in between", ASYNC, 1},
    {"times nothing", time_unrecorded, 65, "events->elapsed", "never recorded", ASYNC, 1},
    {"silent", run_neg, 16, "kernel->run", "no message", SYNC, 1},
    {"declines", run_neg, 75, "kernel->run", "let through", SYNC, 1},
    {"moody", ask_neg, 74, "kernel->supports", "same question", SYNC, 1},
    {"answers shape", ask_neg, 74, "kernel->supports", "SHAPE", SYNC, 1},
    {"greedy", ask_neg, 76, "kernel->workspace", "more than", SYNC, 1},
    {"writes inputs", run_neg, 71, "kernel->run", "argument 0", SYNC, 2},
    {"writes beside", run_neg, 71, "kernel->run", "behind output 0", SYNC, 2},
    {"rounds", run_neg, 94, "kernel->run", "floating-point", SYNC, 2},
    {"goes away", run_neg, 94, "kernel->run", "working directory", SYNC, 2},
    {"blocks signals", run_neg, 94, "kernel->run", "signal mask", SYNC, 2},
    {"sets a locale", only_start, 94, "init", "locale", SYNC, 2},
    {NULL, view_past_end, 0, "kernel->run", "leave allocation", SYNC, 1},
    {NULL, view_in_freed, 0, "kernel->run", "not alive", SYNC, 1},
    {NULL, view_negative, 0, "kernel->run", "stride -4", SYNC, 1},
    {NULL, view_rank, 0, "kernel->run", "rank 13", SYNC, 1},
    {NULL, view_null, 0, "kernel->run", "view is NULL", SYNC, 1},
    {NULL, view_numel, 0, "kernel->run", "numel is 7", SYNC, 1},
    {NULL, view_offset, 0, "kernel->run", "no multiple of the element", SYNC, 1},
    {NULL, view_layout, 0, "kernel->run", "layout 3", SYNC, 1},
    {NULL, workspace_outside, 0, "kernel->run", "leaves its allocation", SYNC, 1},
    {NULL, workspace_misaligned, 0, "kernel->run", "workspace_offset 136", SYNC, 1},
    {NULL, dtype_outside, 0, "kernel->run", "dtype", SYNC, 1},
    {NULL, strided, 0, "kernel->run", "TN_KERNEL_STRIDED", SYNC, 1},
    {NULL, broadcast, 0, "kernel->run", "TN_KERNEL_BROADCAST", SYNC, 1},
    {NULL, output_broadcast, 0, "kernel->run", "output one", SYNC, 1},
    {NULL, in_place, 0, "kernel->run", "TN_KERNEL_IN_PLACE", SYNC, 1},
    {NULL, partly_in_place, 0, "kernel->run", "share memory", SYNC, 1},
    {NULL, two_scalars, 0, "kernel->run", "2 tensor arguments", SYNC, 1},
    {NULL, a_scalar, 0, "kernel->run", "TN_KERNEL_SCALARS", SYNC, 1},
    {NULL, a_tag, 0, "kernel->run", "tag 77", SYNC, 1},
    {NULL, n_outs_, 0, "kernel->run", "2 outputs", SYNC, 1},
    {NULL, free_twice, 0, "memory->free", "not alive", SYNC, 1},
    {NULL, free_pinned_as_device, 0, "memory->free", "another space", SYNC, 1},
    {NULL, leave_memory, 0, "devices->close", "256 bytes", SYNC, 1},
    {NULL, leave_device, 0, "shutdown", "1 devices", SYNC, 1},
    {NULL, open_index, 0, "devices->property", "index 5", SYNC, 1},
    {NULL, write_freed, 0, "memory->write", "not alive", SYNC, 1},
    {NULL, write_outside, 0, "memory->write", "leave allocation", SYNC, 1},
    {NULL, copy_overlapping, 0, "memory->copy", "overlap", SYNC, 1},
    {NULL, closed_device, 0, "memory->alloc", "closed", SYNC, 1},
    {NULL, alloc_nothing, 0, "memory->alloc", "0 bytes", SYNC, 1},
    {NULL, no_stream, 0, "memory->fill", "stream is NULL", ASYNC, 1},
    {NULL, destroyed_stream, 0, "streams->query", "destroyed", ASYNC, 1},
    {NULL, destroyed_event, 0, "events->query", "destroyed", ASYNC, 1},
    {NULL, foreign_stream, 0, "memory->fill", "another device", ASYNC, 1},
    {NULL, foreign_record, 0, "events->record", "another device", ASYNC, 1},
    {NULL, free_in_use, 0, "memory->free", "nobody waited", ASYNC, 1},
    {"meets", open_at_once, 0, "devices->open", "one-thread", SYNC, 1},
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* ---- running them -------------------------------------------------------------------------------
 */

static char here[4096];

static void act(const finding_case *c, const char *fault) {
    char level[2] = {(char)('0' + c->level), '\0'};
    setenv("TENON_VALIDATE", level, 1);
    brittle = (brittle_settings){.fault = fault, .async = c->async == ASYNC};
    device = second = NULL;
    c->act();
    brittle_clean();
    assert_int_equal(chdir(here), 0);
    tn_error_clear();
}

static void print_findings(void) {
    tn_validation_finding f = {.struct_size = sizeof f};
    for (uint64_t i = 0; i < tn_validation_count(); i++) {
        assert_int_equal(tn_validation_get(i, &f), TN_OK);
        print_error("TNP-%u %s %s x%llu: %s\n", f.requirement, f.slot, f.op,
                    (unsigned long long)f.count, f.text);
    }
}

static void expect_nothing(const char *what) {
    if (tn_validation_count() == 0)
        return;
    print_findings();
    fail_msg("%s: findings, and there should be none", what);
}

static void expect(const finding_case *c, const char *what) {
    tn_validation_finding f = {.struct_size = sizeof f};
    for (uint64_t i = 0; i < tn_validation_count(); i++) {
        assert_int_equal(tn_validation_get(i, &f), TN_OK);
        if (f.requirement == c->requirement && strcmp(f.slot, c->slot) == 0 &&
            strstr(f.text, c->word)) {
            /* What comes up before the table is known bears the place that the plugin is from. */
            assert_true(strcmp(f.plugin, "org.tenon.brittle") == 0 || strchr(f.plugin, '('));
            tn_validation_clear();
            return;
        }
    }
    print_findings();
    fail_msg("%s: no finding TNP-%u of %s with '%s'", what, c->requirement, c->slot, c->word);
}

/* What a thread keeps from its first call on is there before anything is counted. */
static int warm_up(void **state) {
    const finding_case c = {"silent", open_and_close, 0, "", "", SYNC, 1};
    act(&c, NULL);
    tni_error_plugin(TN_OK, NULL);
    tn_validation_clear();
    return 0;
}

static void run_case(void **state) {
    const finding_case *c = *state;
    tn_validation_clear();
    int64_t before = tni_alloc_outstanding();
    if (c->fault) {
        act(c, NULL);
        expect_nothing("without the fault");
    }
    act(c, c->fault);
    expect(c, c->fault ? c->fault : "caller");
    tni_host_table()->free(brittle.kept);
    brittle.kept = NULL;
    assert_int_equal(tni_alloc_outstanding(), before);
}

static void memory_freed_in_order_is_no_finding(void **state) {
    const finding_case c = {NULL, free_after_wait, 0, "", "", ASYNC, 1};
    tn_validation_clear();
    act(&c, NULL);
    expect_nothing("in order");
}

static void a_repeated_finding_is_counted(void **state) {
    const finding_case c = {"silent", write_twice, 16, "memory->write", "", SYNC, 1};
    tn_validation_finding f = {.struct_size = sizeof f};
    tn_validation_clear();
    act(&c, c.fault);
    assert_int_equal(tn_validation_count(), 1);
    assert_int_equal(tn_validation_get(0, &f), TN_OK);
    assert_int_equal(f.count, 2);
    assert_int_equal(tn_validation_get(1, &f), TN_INDEX_OUT_OF_RANGE);
    tn_error_clear();
    tn_validation_clear();
    assert_int_equal(tn_validation_count(), 0);
}

static char logged[4096];

static void keep_line(void *user, int32_t level, const char *subsystem, const char *line) {
    snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%d %s %s\n", level,
             subsystem, line);
}

static void a_finding_is_logged_once_and_summed_up(void **state) {
    const finding_case c = {"silent", write_twice, 16, "memory->write", "", SYNC, 1};
    tn_validation_clear();
    logged[0] = '\0';
    tn_log_set(TN_LOG_WARN, keep_line, NULL);
    act(&c, c.fault);
    tn_log_set(-1, NULL, NULL);
    const char *first = strstr(logged, "0 validation TNP-16: org.tenon.brittle, memory->write: ");
    assert_non_null(first);
    assert_null(strstr(first + strlen("0 validation TNP-16"), "TNP-16"));
    assert_non_null(strstr(logged, "1 distinct findings"));
    tn_validation_clear();
}

static void nothing_stands_between_when_it_is_off(void **state) {
    setenv("TENON_VALIDATE", "0", 1);
    brittle = (brittle_settings){.async = true};
    start();
    const tn_plugin *table = brittle_query(tni_host_table());
    assert_ptr_equal(p->table, table);
    assert_ptr_equal(p->devices, table->devices);
    assert_ptr_equal(p->table->kernels, table->kernels);
    assert_ptr_equal(p->devices->memory, table->devices->memory);
    assert_ptr_equal(brittle.host, tni_host_table());
    stop();
    setenv("TENON_VALIDATE", "1", 1);
    start();
    assert_ptr_not_equal(p->table, table);
    assert_ptr_not_equal(brittle.host, tni_host_table());
    stop();
    expect_nothing("on");
}

/* Eight plugins can be watched at once. Here the same one comes again and again. */
static void watches_are_given_back(void **state) {
    const finding_case c = {NULL, open_and_close, 0, "", "", ASYNC, 2};
    tn_validation_clear();
    for (int i = 0; i < 20; i++)
        act(&c, NULL);
    expect_nothing("again and again");
}

static void *work(void *user) {
    tn_pstream *own;
    tn_pevent *event;
    tn_memory mine;
    void *host;
    for (int i = 0; i < 100; i++) {
        p->devices->streams->create(device, 0, &own);
        p->devices->events->create(device, 0, &event);
        p->devices->memory->alloc(device, TN_SPACE_DEVICE, 64, &mine, &host);
        p->devices->memory->fill(device, own, mine, 0, 1, 64);
        p->devices->events->record(event, own);
        p->devices->events->wait(stream, event);
        p->devices->events->query(event);
        p->devices->streams->synchronize(own);
        p->devices->memory->free(device, TN_SPACE_DEVICE, mine);
        p->devices->events->destroy(event);
        p->devices->streams->destroy(own);
    }
    return NULL;
}

static void several_threads_are_no_finding(void **state) {
    pthread_t threads[4];
    setenv("TENON_VALIDATE", "2", 1);
    tn_validation_clear();
    brittle = (brittle_settings){.async = true};
    open_all();
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    close_all();
    expect_nothing("several threads");
}

int main(void) {
    static struct CMUnitTest tests[N_CASES + 6];
    static char names[N_CASES][96];
    assert_non_null(getcwd(here, sizeof here));
    tn_log_set(-1, NULL, NULL);
    for (int i = 0; i < N_CASES; i++) {
        snprintf(names[i], sizeof names[i], "TNP-%u %s: %s", cases[i].requirement, cases[i].slot,
                 cases[i].fault ? cases[i].fault : cases[i].word);
        tests[i] = (struct CMUnitTest){names[i], run_case, NULL, NULL, (void *)&cases[i]};
    }
    const struct CMUnitTest others[] = {
        cmocka_unit_test(memory_freed_in_order_is_no_finding),
        cmocka_unit_test(a_repeated_finding_is_counted),
        cmocka_unit_test(a_finding_is_logged_once_and_summed_up),
        cmocka_unit_test(nothing_stands_between_when_it_is_off),
        cmocka_unit_test(watches_are_given_back),
        cmocka_unit_test(several_threads_are_no_finding),
    };
    memcpy(tests + N_CASES, others, sizeof others);
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
