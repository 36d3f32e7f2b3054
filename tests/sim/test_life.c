/* Start, end, options, and what happens when the host runs out of memory at any moment. */
#include "tests/sim/rig.h"

#include <tenon/ext/capture.h>

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int entries_of(const char *path) {
    int n = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static int n_threads(void) {
    return entries_of("/proc/self/task");
}

static int n_files(void) {
    return entries_of("/proc/self/fd");
}

/* Lines of /proc/self/maps that are a device's reservation: private, with no access, large. */
static int n_reservations(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int n = 0;
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long long from, to;
        char access[8];
        if (sscanf(line, "%llx-%llx %7s", &from, &to, access) == 3)
            n += strcmp(access, "---p") == 0 && to - from == 16ull << 30;
    }
    fclose(maps);
    return n;
}

static void the_tables_say_who_it_is(void **state) {
    assert_true(mini_open(&rig, rig_plugin, 0));
    assert_string_equal(rig.plugin->id, "org.tenon.sim");
    assert_string_equal(rig.plugin->device_type, "sim");
    assert_null(rig.plugin->extension(rig.self, "tenon.unknown/1"));
    tn_cell value;
    assert_ok(rig.ops->property(rig.self, 1, TN_PROP_ALIGNMENT, &value));
    assert_int_equal(value.v.i64, 256);
    assert_ok(rig.ops->property(rig.self, 0, TN_PROP_NAME, &value));
    assert_int_equal(value.tag, TN_CELL_STRING);
    assert_status(rig.ops->property(rig.self, 0, TN_PROP_UNIFIED_MEMORY, &value),
                  TN_ERR_UNSUPPORTED);
    assert_status(rig.ops->property(rig.self, 0, 999, &value), TN_ERR_UNSUPPORTED);
    assert_status(rig.ops->property(rig.self, 2, TN_PROP_ALIGNMENT, &value), TN_ERR_DEVICE);
    assert_true(mini_close(&rig));
}

static void a_host_that_is_too_old_gets_no_plugin(void **state) {
    assert_true(mini_open(&rig, rig_plugin, 0));
    tn_plugin_query_fn query;
    *(void **)&query = dlsym(rig.object, TN_PLUGIN_QUERY_NAME);
    tn_host host = *mini_host_table();
    assert_non_null(query(&host));
    host.abi_version = TN_ABI_MAKE(0, 8);
    assert_null(query(&host));
    host = *mini_host_table();
    host.struct_size = offsetof(tn_host, option);
    assert_null(query(&host));
    assert_null(query(NULL));
    assert_true(mini_close(&rig));
}

/* And the one that captured work draws random numbers with. */
static void the_kernels_are_the_small_set(void **state) {
    assert_true(mini_open(&rig, rig_plugin, 0));
    static const struct {
        const char *name;
        uint64_t hash;
        int small;
    } table[] = {
#define ENTRY(name, hash, small, kind, schema) {#name, hash, small},
        TN_KERNEL_TABLE(ENTRY)
#undef ENTRY
    };
    uint64_t n_expected = 0;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const tn_kernel *kernel = mini_find(&rig, table[i].name, TN_DTYPE_NONE, TN_DTYPE_NONE);
        bool expected = table[i].small || strcmp(table[i].name, TN_KERNEL_random_bits_from) == 0;
        if (!expected != !kernel)
            fail_msg("%s: expected %d, offered %d", table[i].name, expected, kernel != NULL);
        if (kernel)
            assert_true(kernel->schema_hash == table[i].hash);
        n_expected += expected;
    }
    assert_int_equal(rig.plugin->n_kernels, n_expected);
    assert_true(mini_close(&rig));
}

static void options_are_obeyed_or_refused(void **state) {
    static const char *const bad_counts[] = {"9", "-1", "two", "1x", " 1"};
    static const char *const bad_memory[] = {"0", "-5", "2t", "12mm", "g", "99999999999g", "2000g"};
    uint32_t n;
    for (size_t i = 0; i < sizeof bad_counts / sizeof bad_counts[0]; i++) {
        mini_option("devices", bad_counts[i]);
        assert_false(mini_open(&rig, rig_plugin, 0));
        assert_message("TENON_SIM_DEVICES");
    }
    mini_option("devices", "0");
    assert_false(mini_open(&rig, rig_plugin, 0));
    assert_message("the plugin has 0");
    mini_option("devices", "8");
    assert_true(mini_open(&rig, rig_plugin, 7));
    assert_ok(rig.ops->count(rig.self, &n));
    assert_int_equal(n, 8);
    assert_true(mini_close(&rig));
    mini_option("devices", NULL);

    for (size_t i = 0; i < sizeof bad_memory / sizeof bad_memory[0]; i++) {
        mini_option("memory", bad_memory[i]);
        assert_false(mini_open(&rig, rig_plugin, 0));
        assert_message("TENON_SIM_MEMORY");
    }
    tn_memory_info info = {.struct_size = sizeof info};
    mini_option("memory", "3k");
    assert_true(mini_open(&rig, rig_plugin, 0));
    assert_ok(rig.ops->memory->info(rig.device, TN_SPACE_DEVICE, &info));
    assert_int_equal(info.total_bytes, 3072);
    assert_true(mini_close(&rig));
    mini_option("memory", NULL);
    assert_int_equal(mini_outstanding(), 0);
}

static void a_hundred_starts_leave_nothing_behind(void **state) {
    int threads = 0, files = 0;
    for (int i = 0; i < 100; i++) {
        tn_device_impl *second;
        tn_stream_impl *streams[3];
        assert_true(mini_open(&rig, rig_plugin, 0));
        assert_ok(rig.ops->open(rig.self, 1, &second));
        for (int k = 0; k < 3; k++)
            assert_ok(rig.ops->streams->create(second, 0, &streams[k]));
        array a = array_create(TN_F32, 1, (int64_t[]){10});
        assert_ok(mini_tensor_write(&rig, a.tensor, a.host));
        free(a.host);
        for (int k = 0; k < 3; k++)
            rig.ops->streams->destroy(streams[k]);
        rig.ops->close(second);
        assert_true(mini_close(&rig));
        if (i == 0) {
            threads = n_threads();
            files = n_files();
        }
    }
    assert_int_equal(n_threads(), threads);
    assert_int_equal(n_files(), files);
    assert_int_equal(n_reservations(), 0);
}

static void closing_with_memory_alive_is_logged_and_frees_it(void **state) {
    tn_memory m;
    void *host;
    assert_true(mini_open(&rig, rig_plugin, 0));
    assert_int_equal(n_reservations(), 1);
    assert_ok(mini_alloc(rig.ops->memory, rig.device, TN_SPACE_DEVICE, 100, &m, &host));
    assert_ok(mini_alloc(rig.ops->memory, rig.device, TN_SPACE_PINNED, 100, &m, &host));
    assert_true(mini_close(&rig));
    assert_non_null(
        strstr(mini_log(), "closed with 0 streams, 0 events, 0 graphs and 2 allocations alive"));
}

/* ---- every allocation fails once --------------------------------------------------------- */

/* A life in which every function that can run out of memory is called. A call that fails for want
 * of memory is made again and must then work, so it left nothing half done. */
struct life {
    const tn_plugin *plugin;
    const tn_device_ops *ops;
    tn_instance *self;
    tn_device_impl *device, *second;
    tn_stream_impl *stream;
    tn_event_impl *event;
    int n_refused; /* calls that failed with TN_ERR_OUT_OF_MEMORY */
};

#define TWICE(life, call) \
    do { \
        tn_status status_ = (call); \
        if (status_ == TN_ERR_OUT_OF_MEMORY) { \
            assert_message("memory"); \
            (life)->n_refused++; \
            status_ = (call); \
        } \
        if (status_ != TN_OK) \
            fail_msg("%s: status %d, %s", #call, status_, mini_error()); \
    } while (0)

static tn_tensor_view view_of(tn_memory memory, tn_dtype dtype, const int64_t *size,
                              const int64_t *stride) {
    return (tn_tensor_view){.struct_size = sizeof(tn_tensor_view),
                            .memory = memory,
                            .numel = *size,
                            .dtype = dtype,
                            .rank = 1,
                            .sizes = size,
                            .strides = stride};
}

/* Without memory there is no graph, and the stream is an ordinary one again. */
static tn_status captured(struct life *life, const tn_ext_capture *ext, tn_memory memory,
                          tn_graph_impl **out) {
    TWICE(life, ext->begin(life->stream));
    TWICE(life, life->ops->memory->fill(life->device, life->stream, memory, 0, 2, 560));
    return ext->end(life->stream, out);
}

static void capture(struct life *life, tn_memory memory) {
    const tn_ext_capture *ext = life->plugin->extension(life->self, TN_EXT_CAPTURE);
    tn_graph_impl *graph;
    TWICE(life, captured(life, ext, memory, &graph));
    TWICE(life, ext->launch(graph, life->stream));
    ext->destroy(graph);
}

static void live(struct life *life) {
    const tn_memory_ops *memory = life->ops->memory;
    int64_t size = 70, stride = 1;
    tn_memory blocks[70], pinned, there;
    char bytes[560] = {0};
    void *host, *ignored;

    TWICE(life, life->plugin->init(mini_host_table(), NULL, &life->self));
    TWICE(life, life->ops->open(life->self, 0, &life->device));
    TWICE(life, life->ops->open(life->self, 1, &life->second));
    TWICE(life, life->ops->streams->create(life->device, 0, &life->stream));
    TWICE(life, life->ops->events->create(life->device, 0, &life->event));
    for (int i = 0; i < 70; i++) /* the table grows on the way */
        TWICE(life,
              mini_alloc(memory, life->device, TN_SPACE_DEVICE, 3 * 560, &blocks[i], &ignored));
    TWICE(life, mini_alloc(memory, life->second, TN_SPACE_DEVICE, 560, &there, &ignored));
    TWICE(life, mini_alloc(memory, life->device, TN_SPACE_PINNED, 560, &pinned, &host));
    TWICE(life, memory->copy_from_host(life->device, life->stream, blocks[0], 0, bytes, 0, 560));
    TWICE(life,
          memory->copy_from_host(life->device, life->stream, blocks[1], 0, host, pinned, 560));
    TWICE(life, memory->copy(life->device, life->stream, blocks[2], 0, blocks[1], 0, 560));
    TWICE(life,
          memory->copy_peer(life->device, life->stream, blocks[3], 0, life->second, there, 0, 560));
    TWICE(life, memory->fill(life->device, life->stream, blocks[4], 0, 1, 560));
    TWICE(life, life->ops->events->record(life->event, life->stream));
    TWICE(life, life->ops->events->wait(life->stream, life->event));
    for (uint64_t k = 0; k < life->plugin->n_kernels; k++)
        if (strcmp(life->plugin->kernels[k]->op, "sort") == 0) {
            tn_tensor_view in = view_of(blocks[0], TN_F32, &size, &stride);
            tn_tensor_view values = view_of(blocks[5], TN_F32, &size, &stride);
            tn_tensor_view indices = view_of(blocks[6], TN_I64, &size, &stride);
            const tn_cell args[] = {
                {.tag = TN_CELL_TENSOR, .v.view = &in}, mini_i64(0), mini_bool(false)};
            const tn_tensor_view *outs[] = {&values, &indices};
            tn_call call = {.struct_size = sizeof call,
                            .device = life->device,
                            .stream = life->stream,
                            .user = life->plugin->kernels[k]->user,
                            .args = args,
                            .outs = outs,
                            .n_args = 3,
                            .n_outs = 2,
                            .workspace = blocks[7]};
            tn_plan plan = {.struct_size = sizeof plan};
            TWICE(life, life->plugin->kernels[k]->prepare(&call, &plan));
            call.workspace_bytes = plan.workspace_bytes;
            TWICE(life, life->plugin->kernels[k]->run(&call));
        }
    capture(life, blocks[4]);
    TWICE(life, memory->copy_to_host(life->device, life->stream, bytes, 0, blocks[6], 0, 560));
    TWICE(life, memory->copy_to_host(life->device, life->stream, host, pinned, blocks[6], 0, 560));
    TWICE(life, life->ops->streams->synchronize(life->stream));
    assert_int_equal(((int64_t *)bytes)[69], 69);
    assert_memory_equal(bytes, host, 560);

    for (int i = 0; i < 70; i++)
        memory->dealloc(life->device, TN_SPACE_DEVICE, blocks[i]);
    memory->dealloc(life->second, TN_SPACE_DEVICE, there);
    memory->dealloc(life->device, TN_SPACE_PINNED, pinned);
    life->ops->events->destroy(life->event);
    life->ops->streams->destroy(life->stream);
    life->ops->close(life->second);
    life->ops->close(life->device);
    life->plugin->shutdown(life->self);
}

static void each_failed_allocation_is_survived(void **state) {
    assert_true(mini_open(&rig, rig_plugin, 0));
    struct life life = {.plugin = rig.plugin, .ops = rig.ops};
    assert_true(mini_close(&rig));
    int64_t before = mini_outstanding();
    int n = 0;
    do {
        life.n_refused = 0;
        mini_fail_alloc_after(n);
        live(&life);
        mini_fail_alloc_after(-1);
        assert_int_equal(mini_outstanding(), before);
        n++;
    } while (life.n_refused == 1);
    assert_int_equal(life.n_refused, 0);
    assert_true(n > 80); /* the loop did not end early */
}

int all_tests(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tables_say_who_it_is),
        cmocka_unit_test(a_host_that_is_too_old_gets_no_plugin),
        cmocka_unit_test(the_kernels_are_the_small_set),
        cmocka_unit_test(options_are_obeyed_or_refused),
        cmocka_unit_test(a_hundred_starts_leave_nothing_behind),
        cmocka_unit_test(each_failed_allocation_is_survived),
        cmocka_unit_test(closing_with_memory_alive_is_logged_and_frees_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
