/* Tables that never came from a file: every required slot left out, every size before a page that
 * cannot be read, every name and version rule. */
#include "tests/loader/loader_test.h"

#include <tenon/kernels.h>

static const tn_plugin *any_query(const tn_host *host) {
    return NULL;
}

/* Something to point slots at: only compared with NULL. Never called. */
#define ANY ((void *)(uintptr_t)any_query)

static tn_memory_ops memory;
static tn_stream_ops streams;
static tn_event_ops events;
static tn_device_ops devices;
static tn_kernel kernels[3];
static const tn_kernel *kernel_list[3];
static tn_plugin plugin;

static int whole_tables(void **state) {
    fresh_loader(NULL);
    memory = (tn_memory_ops){sizeof memory, ANY, ANY, ANY, ANY, ANY, ANY, ANY, ANY};
    streams = (tn_stream_ops){sizeof streams, ANY, ANY, ANY, ANY};
    events = (tn_event_ops){sizeof events, ANY, ANY, ANY, ANY, ANY, ANY, ANY};
    devices = (tn_device_ops){sizeof devices, ANY, ANY, ANY, ANY, ANY, &memory, &streams, &events};
    for (int i = 0; i < 3; i++) {
        kernels[i] = (tn_kernel){.struct_size = sizeof kernels[i],
                                 .op = TN_KERNEL_add,
                                 .schema_hash = TN_KERNEL_HASH_add,
                                 .dtypes = {TN_DTYPE_BIT(i)},
                                 .run = ANY};
        kernel_list[i] = &kernels[i];
    }
    plugin = (tn_plugin){
        .struct_size = sizeof plugin,
        .abi_version = TN_ABI_VERSION,
        .abi_required = TN_ABI_VERSION,
        .id = "com.acme.npu",
        .device_type = "npu",
        .name = "Acme NPU",
        .version = "1.0",
        .init = ANY,
        .shutdown = ANY,
        .devices = &devices,
        .kernels = kernel_list,
        .n_kernels = 3,
        .extension = ANY,
    };
    return 0;
}

static void accepted(const tn_plugin *table) {
    if (tni_plugin_validate(table, "here.so") != TN_OK)
        fail_msg("%s", tn_error_message());
}

/* assert_refused(words...) */
#define assert_refused(...) \
    do { \
        assert_int_equal(tni_plugin_validate(&plugin, "here.so"), TN_ERR_ABI); \
        assert_error(TN_ERR_ABI, "here.so", __VA_ARGS__); \
    } while (0)

static void whole_tables_are_accepted(void **state) {
    accepted(&plugin);
}

/* ---- required slots ---------------------------------------------------------------------- */

typedef struct slot {
    const char *name;
    void *at;
    bool required;
} slot;

#define SLOT(prefix, table, member, required) \
    { prefix #member, &(table).member, required }

static void each_slot_left_out(void **state) {
    const slot slots[] = {
        SLOT("", plugin, init, true),
        SLOT("", plugin, shutdown, true),
        SLOT("", plugin, devices, true),
        SLOT("", plugin, id, true),
        SLOT("", plugin, device_type, true),
        SLOT("", plugin, name, true),
        SLOT("", plugin, version, true),
        SLOT("", plugin, kernels, true),
        SLOT("", plugin, extension, false),
        SLOT("devices->", devices, count, true),
        SLOT("devices->", devices, open, true),
        SLOT("devices->", devices, close, true),
        SLOT("devices->", devices, property, true),
        SLOT("devices->", devices, accepts, false),
        SLOT("devices->", devices, memory, true),
        SLOT("devices->", devices, streams, false),
        SLOT("devices->", devices, events, true),
        SLOT("devices->memory->", memory, alloc, true),
        SLOT("devices->memory->", memory, dealloc, true),
        SLOT("devices->memory->", memory, copy_from_host, true),
        SLOT("devices->memory->", memory, copy_to_host, true),
        SLOT("devices->memory->", memory, copy, true),
        SLOT("devices->memory->", memory, copy_peer, false),
        SLOT("devices->memory->", memory, fill, true),
        SLOT("devices->memory->", memory, info, false),
        SLOT("devices->streams->", streams, create, true),
        SLOT("devices->streams->", streams, destroy, true),
        SLOT("devices->streams->", streams, query, true),
        SLOT("devices->streams->", streams, synchronize, true),
        SLOT("devices->events->", events, create, true),
        SLOT("devices->events->", events, destroy, true),
        SLOT("devices->events->", events, record, true),
        SLOT("devices->events->", events, wait, true),
        SLOT("devices->events->", events, query, true),
        SLOT("devices->events->", events, synchronize, true),
        SLOT("devices->events->", events, elapsed, false),
        SLOT("kernels[0] 'add': ", kernels[0], run, true),
        SLOT("kernels[0]", kernels[0], op, true),
        SLOT("", kernels[0], user, false),
        SLOT("", kernels[0], supports, false),
        SLOT("", kernels[0], prepare, false),
        SLOT("", kernels[0], abandon, false),
    };
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        whole_tables(NULL);
        memset(slots[i].at, 0, sizeof(void *));
        if (!slots[i].required)
            accepted(&plugin);
        else if (slots[i].at == (void *)&kernels[0].op)
            assert_refused("kernels[0]->op is NULL", "TN_KERNEL_");
        else
            assert_refused(slots[i].name, " is NULL");
    }
}

/* ---- sizes ------------------------------------------------------------------------------- */

/* Puts a table of `size` bytes before a guard page, with struct_size saying so. */
static void *cut(const void *table, size_t whole, size_t size) {
    char *bytes = before_guard_page(table, size < whole ? size : whole);
    uint64_t said = size;
    memcpy(bytes, &said, sizeof said);
    return bytes;
}

/* Every size from nothing to whole: read to its end and no further, refused when a required member
 * is beyond it, accepted from `minimum` on. */
static void cut_everywhere(const void **where, size_t whole, size_t minimum, const char *field) {
    const void *table = *where;
    for (size_t size = 8; size <= whole; size += 8) {
        const void *self = cut(table, whole, size);
        *where = self;
        tn_status status = tni_plugin_validate(table == &plugin ? self : &plugin, "here.so");
        *where = table;
        if (status != (size >= minimum ? TN_OK : TN_ERR_ABI))
            fail_msg("%s of %zu bytes: %s", field, size, tn_error_message());
        if (status)
            assert_error(TN_ERR_ABI, "here.so", field, "struct_size is", "sizeof(");
        fresh_loader(NULL); /* unmaps */
    }
}

#define END_OF(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

static void tables_end_where_they_say(void **state) {
    const void *self = &plugin;
    cut_everywhere(&self, sizeof plugin, END_OF(tn_plugin, devices), "tn_plugin");
    devices.streams = NULL; /* events lie behind it */
    cut_everywhere((const void **)&plugin.devices, sizeof devices, END_OF(tn_device_ops, memory),
                   "devices");
    devices.streams = &streams;
    cut_everywhere((const void **)&devices.memory, sizeof memory, END_OF(tn_memory_ops, fill),
                   "devices->memory");
    cut_everywhere((const void **)&devices.streams, sizeof streams,
                   END_OF(tn_stream_ops, synchronize), "devices->streams");
    cut_everywhere((const void **)&devices.events, sizeof events, END_OF(tn_event_ops, synchronize),
                   "devices->events");
    cut_everywhere((const void **)&kernel_list[1], sizeof kernels[1], END_OF(tn_kernel, run),
                   "kernels[1]");
}

static void impossible_sizes_are_refused(void **state) {
    static const uint64_t sizes[] = {
        0, 1, 4, 7, 12, sizeof(tn_plugin) + 4, 1 << 20, UINT64_MAX - 7};
    uint64_t *const fields[] = {&plugin.struct_size, &devices.struct_size,
                                &memory.struct_size, &streams.struct_size,
                                &events.struct_size, &kernels[2].struct_size};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t j = 0; j < sizeof fields / sizeof *fields; j++) {
            whole_tables(NULL);
            *fields[j] = sizes[i];
            assert_refused("struct_size is", "set it to sizeof(");
        }
    }
}

static void misaligned_table_is_refused(void **state) {
    plugin.devices = (const tn_device_ops *)((const char *)&devices + 4);
    assert_refused("devices is not aligned");
}

static void larger_tables_are_accepted(void **state) {
    struct {
        tn_plugin table;
        uint64_t later[100];
    } larger = {plugin, {0}};
    larger.table.struct_size = sizeof larger;
    accepted(&larger.table);
}

/* ---- versions ---------------------------------------------------------------------------- */

#define V TN_ABI_MAKE

static void any_version_since_the_oldest_fits(void **state) {
    static const struct {
        uint32_t oldest, host;
    } cores[] = {{V(1, 0), V(1, 0)}, {V(1, 0), V(1, 7)}, {V(1, 3), V(1, 7)}};
    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++) {
        uint32_t oldest = cores[i].oldest, host = cores[i].host;
        assert_null(tni_abi_misfit(oldest, host, oldest, oldest));
        assert_null(tni_abi_misfit(oldest, host, host, host));
        assert_null(tni_abi_misfit(oldest, host, host + 9, oldest));
        assert_null(tni_abi_misfit(oldest, host, host, 0));
        assert_contains(tni_abi_misfit(oldest, host, oldest - 1, oldest - 1), "rebuild it");
        assert_contains(tni_abi_misfit(oldest, host, oldest - 1, 0), "no longer taken");
        assert_contains(tni_abi_misfit(oldest, host, host + 1, host + 1), "update Tenon");
        assert_contains(tni_abi_misfit(oldest, host, V(2, 0), oldest), "tenon_plugin_query_v1");
    }
}

static void a_plugin_of_before_1_0_is_not_taken(void **state) {
    assert_contains(tni_abi_misfit(V(1, 0), V(1, 0), V(0, 11), V(0, 11)), "rebuild it");
    assert_contains(tni_abi_misfit(V(1, 0), V(1, 3), V(0, 11), 0), "rebuild it");
}

/* ---- names ------------------------------------------------------------------------------- */

static void ids_are_reverse_domain_names(void **state) {
    static const char *const good[] = {"com.acme", "com.acme.npu", "org.x-y.a_1", "a.b.c.d.e",
                                       "de.3m"};
    static const char *const bad[] = {"",          "acme",      ".acme",        "com.",
                                      "com..acme", "Com.acme",  "com.acme ",    "3m.de",
                                      "com/acme",  "com.acme@", "com.\xc3\xa4", "com.a:0"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        plugin.id = good[i];
        accepted(&plugin);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        plugin.id = bad[i];
        assert_refused("id is");
    }
    char long_id[300];
    memset(long_id, 'a', sizeof long_id);
    long_id[3] = '.';
    long_id[sizeof long_id - 1] = '\0';
    plugin.id = long_id;
    assert_refused("id is too long");
}

static void types_are_lower_case_words(void **state) {
    static const char *const good[] = {"npu", "n", "npu2", "my_npu", "opencl"};
    static const char *const bad[] = {
        "",       "NPU",  "2npu", "_npu", "my-npu",
        "my npu", "meta", "npu:", "n@m",  "abcdefghijklmnopqrstuvwxyzabcdef"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        plugin.device_type = good[i];
        accepted(&plugin);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        plugin.device_type = bad[i];
        assert_refused("(com.acme.npu)", "device_type is");
    }
}

/* ---- kernels ----------------------------------------------------------------------------- */

static void kernel_lists(void **state) {
    plugin.n_kernels = 0;
    plugin.kernels = NULL;
    accepted(&plugin);
    plugin.n_kernels = 1;
    assert_refused("kernels is NULL", "n_kernels is 1");
    plugin.kernels = kernel_list;
    plugin.n_kernels = UINT64_MAX;
    assert_refused("n_kernels is 18446744073709551615");
    plugin.n_kernels = 3;
    plugin.kernels = (const tn_kernel *const *)((const char *)kernel_list + 1);
    assert_refused("kernels is not aligned");
}

static void kernel_dtypes(void **state) {
    kernels[1].dtypes[0] = (uint64_t)1 << 40;
    assert_refused("kernels[1] 'add'", "dtypes[0] is 0x10000000000", "TN_DTYPE_BIT");
    whole_tables(NULL);
    kernels[1].dtypes[2] = 1;
    assert_refused("kernels[1] 'add'", "dtypes[2] is set", "only 1 type variable;", "leave it 0");
    whole_tables(NULL);
    kernels[1].op = TN_KERNEL_sqrt;
    kernels[1].schema_hash = TN_KERNEL_HASH_sqrt;
    kernels[1].dtypes[0] = TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_I32);
    assert_refused("kernels[1] 'sqrt'", "dtypes[0] has i32", "takes f32, f64, f16, bf16",
                   "leave the others out");
    plugin.abi_version = TN_ABI_VERSION + 1; /* in which sqrt may take more */
    accepted(&plugin);
}

static void become_copy(tn_kernel *kernel) {
    kernel->op = TN_KERNEL_copy;
    kernel->schema_hash = TN_KERNEL_HASH_copy;
    kernel->dtypes[1] = TN_DTYPE_BIT(TN_I32);
    kernel->flags = TN_KERNEL_STRIDED;
}

static void a_copy_takes_strides_and_has_two_dtypes(void **state) {
    become_copy(&kernels[1]);
    accepted(&plugin);
    kernels[1].dtypes[1] = 0;
    assert_refused("kernels[1] 'copy'", "dtypes[1] is 0", "set the mask");
    become_copy(&kernels[1]);
    kernels[1].flags = TN_KERNEL_BROADCAST;
    assert_refused("kernels[1] 'copy'", "TN_KERNEL_STRIDED", "set it");
}

static void flags_that_mean_nothing_are_warned_of(void **state) {
    keep_log();
    kernels[1].flags = UINT64_C(64) | TN_KERNEL_STRIDED;
    accepted(&plugin);
    assert_non_null(
        strstr(log_text(), "kernels[1] 'add': flags are 0x41, of which 0x40 means nothing"));
}

static tn_status choosy(const tn_call *call) {
    return TN_ERR_UNSUPPORTED;
}
static tn_status plans(const tn_call *call, tn_plan *out) {
    return TN_ERR_UNSUPPORTED;
}

/* Loads the tables, and says whether the log warned of a record that is never reached. */
static bool warned(void) {
    size_t before = strlen(log_text());
    accepted(&plugin);
    return strstr(log_text() + before, "is never reached") != NULL;
}

static void a_record_that_is_never_reached_is_warned_of(void **state) {
    keep_log();
    assert_false(warned());
    kernels[2].dtypes[0] = kernels[0].dtypes[0];
    kernels[2].op = kernels[0].op;
    kernels[2].schema_hash = kernels[0].schema_hash;
    assert_true(warned());
    kernels[2].flags = TN_KERNEL_STRIDED; /* takes more */
    assert_false(warned());
    kernels[0].flags = TN_KERNEL_STRIDED | TN_KERNEL_BROADCAST;
    assert_true(warned());
    kernels[0].supports = choosy;
    assert_false(warned());
    kernels[0].supports = NULL;
    kernels[0].prepare = plans;
    assert_false(warned());
    kernels[0].prepare = NULL;
    kernels[2].dtypes[0] |= TN_DTYPE_BIT(TN_U8);
    assert_false(warned());
    kernels[2].dtypes[0] = kernels[0].dtypes[0];
    become_copy(&kernels[0]);
    become_copy(&kernels[2]);
    assert_true(warned());
    kernels[2].dtypes[1] = TN_DTYPE_BIT(TN_I64); /* told apart by the second type variable */
    assert_false(warned());
    kernels[0].op = kernels[2].op = "entangle"; /* nothing is known of it */
    kernels[2].dtypes[1] = TN_DTYPE_BIT(TN_I32);
    assert_false(warned());
}

static void refusal_without_id_names_the_file_only(void **state) {
    plugin.id = NULL;
    assert_int_equal(tni_plugin_validate(&plugin, "/a/b.so"), TN_ERR_ABI);
    assert_error(TN_ERR_ABI, "/a/b.so: id is NULL, but required; set it to a string");
    assert_int_equal(tni_plugin_validate(NULL, "/a/b.so"), TN_ERR_ABI);
    assert_error(TN_ERR_ABI, "/a/b.so: tn_plugin is NULL");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, whole_tables, fresh_loader)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(whole_tables_are_accepted),
        TEST(each_slot_left_out),
        TEST(tables_end_where_they_say),
        TEST(impossible_sizes_are_refused),
        TEST(misaligned_table_is_refused),
        TEST(larger_tables_are_accepted),
        TEST(any_version_since_the_oldest_fits),
        TEST(a_plugin_of_before_1_0_is_not_taken),
        TEST(ids_are_reverse_domain_names),
        TEST(types_are_lower_case_words),
        TEST(kernel_lists),
        TEST(kernel_dtypes),
        TEST(a_copy_takes_strides_and_has_two_dtypes),
        TEST(flags_that_mean_nothing_are_warned_of),
        TEST(a_record_that_is_never_reached_is_warned_of),
        TEST(refusal_without_id_names_the_file_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
