/* One core and plugins of its own version and of the next, or of the one before it: built against this
 * version's headers, and again, with all of the core, against those of the next (next_minor.py), where
 * NEXT_CORE is defined. */
#define _GNU_SOURCE
#include "tests/loader/loader_test.h"

#include "core/device/device.h"
#include "tests/abi/pair_plugin.h"

#include <dlfcn.h>
#include <tenon/kernels.h>
#include <tenon/ops.h>
#include <tenon/validation.h>

/* Where TENON_VALIDATE is set, nothing that one side does not know is held against the other. */
static int all_fresh(void **state) {
    tn_shutdown();
    tn_validation_finding f = {.struct_size = sizeof f};
    if (tn_validation_get(0, &f) == TN_OK)
        print_message("%s: TNP-%u: %s\n", f.slot, f.requirement, f.text);
    tn_error_clear();
    assert_int_equal(tn_validation_count(), 0);
    return fresh_loader(state);
}

static const tni_plugin *load_pair(const char *file) {
    load_only(in_dir(PAIR_DIR, file));
    const tni_plugin *p = tni_loader_get("pair");
    if (!p)
        fail_msg("%s: %s", file, tn_error_message());
    return p;
}

static const pair_counts *seen_by(const tni_plugin *p) {
    const pair_counts *seen = dlsym(p->handle, "pair_seen");
    assert_non_null(seen);
    return seen;
}

/* ---- every pair works -------------------------------------------------------------------- */

/* Which of the records each version takes: add and neg always; cumsum with the hash that it knows,
 * entangle and mul of a later dtype where it knows them; acme::fuse never. */
static const struct pair {
    const char *file;
    uint32_t version, n_kernels, n_unknown;
    bool
        has_later_dtype; /* to this version's core it is a storage dtype, whatever the plugin says */
} pairs[] = {
#ifdef NEXT_CORE
    {"libpair_now.so", TN_ABI_VERSION - 1, 2, 2, false},
    {"libpair_default.so", TN_ABI_VERSION, 3, 1, false},
    {"libpair_raised.so", TN_ABI_VERSION, 5, 1, true},
    {"libpair_requires.so", TN_ABI_VERSION, 3, 1, false},
#else
    {"libpair_now.so", TN_ABI_VERSION, 3, 1, true},
    {"libpair_default.so", TN_ABI_VERSION + 1, 2, 2, true},
    {"libpair_raised.so", TN_ABI_VERSION + 1, 2, 4, true},
#endif
};
enum { N_PAIRS = sizeof pairs / sizeof *pairs, LATER_DTYPE = 10 };

static void add_works(tn_device device) {
    TN_SCOPE;
    static const float a[] = {1, 2, 3}, b[] = {10, 20, 30};
    tn_tensor *sum = tn_add(tn_from_data(a, TN_SHAPE(3), TN_F32, device),
                            tn_from_data(b, TN_SHAPE(3), TN_F32, device), tn_int(2));
    float out[3];
    if (!sum || tn_to_host(sum, out, sizeof out))
        fail_msg("%s", tn_error_message());
    assert_true(out[0] == 21 && out[1] == 42 && out[2] == 63);
}

static void streams_work(tn_device device) {
    tn_stream *stream = tn_stream_create(device, 0);
    tn_event *event = tn_event_create(device, false);
    assert_non_null(stream);
    assert_non_null(event);
    assert_int_equal(tn_event_record(event, stream), TN_OK);
    assert_int_equal(tn_event_wait(event, tn_current_stream(device)), TN_OK);
    assert_int_equal(tn_event_synchronize(event), TN_OK);
    assert_int_equal(tn_stream_synchronize(stream), TN_OK);
    tn_event_destroy(event);
    tn_stream_drop(stream);
}

static void records_are_counted(const struct pair *pair, const tni_plugin *p) {
    if (p->n_kernels != pair->n_kernels || p->n_unknown != pair->n_unknown)
        fail_msg("%s: %u records and %u unknown", pair->file, p->n_kernels, p->n_unknown);
}

static void pairs_work(void **state) {
    for (size_t i = 0; i < N_PAIRS; i++) {
        const struct pair *pair = &pairs[i];
        const tni_plugin *p = load_pair(pair->file);
        assert_int_equal(p->table->abi_version, pair->version);
        records_are_counted(pair, p);
        tn_device device = tn_device_parse("pair:0");
        add_works(device);
        streams_work(device);
        assert_true(tn_device_has_dtype(device, TN_F32));
        assert_int_equal(tn_device_has_dtype(device, LATER_DTYPE), pair->has_later_dtype);
        assert_int_equal(tni_device_get(device)->dtypes >> TN_DTYPE_COUNT,
                         TN_DTYPES_STORAGE >> TN_DTYPE_COUNT);
        tn_memory_stats stats = {.struct_size = sizeof stats};
        assert_int_equal(tn_memory_stats_get(device, &stats), TN_OK);
        const pair_counts *seen = seen_by(p);
        assert_int_equal(seen->n_calls, 1);
        assert_int_equal(seen->n_wrong, 0);
        assert_true(seen->highest_property <= TN_PROP_SPACES);
        all_fresh(NULL);
    }
}

/* ---- what one side does not know --------------------------------------------------------- */

static void fails_as_it_says(tn_device device, bool raised) {
    TN_SCOPE;
    static const float a[] = {1};
    assert_null(tn_neg(tn_from_data(a, TN_SHAPE(1), TN_F32, device)));
#ifdef NEXT_CORE
    assert_error(raised ? TN_ERR_LATER : TN_ERR_IO, "the coolant is warm");
#else
    assert_error(raised ? TN_ERR_INTERNAL : TN_ERR_IO, "the coolant is warm");
#endif
}

static void a_status_that_is_not_known_is_internal(void **state) {
    for (size_t i = 0; i < N_PAIRS; i++) {
        load_pair(pairs[i].file);
        tn_device device = tn_device_parse("pair:0");
        fails_as_it_says(device, strstr(pairs[i].file, "raised") != NULL);
        add_works(device);
        all_fresh(NULL);
    }
}

static void a_plugin_that_requires_the_next_minor_is_refused(void **state) {
#ifndef NEXT_CORE
    load_only(in_dir(PAIR_DIR, "libpair_requires.so"));
    assert_null(tni_loader_get("pair"));
    assert_error(TN_ERR_ABI, "abi_required " ABI_NEXT, "this Tenon has " ABI_NOW, "update Tenon");
#endif
}

#ifdef NEXT_CORE
/* What was added is absent in tables of the version before, and of a plugin that did not ask for it. */
static void members_that_are_not_there_are_null(void **state) {
    for (size_t i = 0; i < N_PAIRS; i++) {
        const tn_plugin *table = load_pair(pairs[i].file)->table;
        bool there = strstr(pairs[i].file, "raised") != NULL;
        const tn_device_ops *devices = table->devices;
        assert_int_equal(TNI_SLOT(table, tn_plugin, later) != NULL, there);
        assert_int_equal(TNI_SLOT(devices, tn_device_ops, later) != NULL, there);
        assert_int_equal(TNI_SLOT(devices->memory, tn_memory_ops, later) != NULL, there);
        assert_int_equal(TNI_SLOT(devices->streams, tn_stream_ops, later) != NULL, there);
        assert_int_equal(TNI_SLOT(devices->events, tn_event_ops, later) != NULL, there);
        assert_int_equal(TNI_SLOT(table->kernels[0], tn_kernel, later) != NULL, there);
        all_fresh(NULL);
    }
}

static void flags_that_are_new_are_unsupported(const char *path, const char *name) {
    load_only(path);
    const tni_device *d = tni_device_get(tn_device_parse(name));
    tn_allocation a = {
        .struct_size = sizeof a, .bytes = 64, .alignment = 64, .flags = TN_ALLOC_LATER};
    assert_int_equal(d->memory->alloc(d->handle, &a), TN_ERR_UNSUPPORTED);
    a.flags = 0;
    a.space = TN_SPACE_LATER;
    assert_int_equal(d->memory->alloc(d->handle, &a), TN_ERR_UNSUPPORTED);
    a.space = TN_SPACE_DEVICE;
    assert_int_equal(d->memory->alloc(d->handle, &a), TN_OK);
    d->memory->dealloc(d->handle, TN_SPACE_DEVICE, a.memory);
    tn_memory_info info = {.struct_size = sizeof info, .later = 5};
    if (TNI_SLOT(d->memory, tn_memory_ops, info))
        assert_int_equal(d->memory->info(d->handle, TN_SPACE_DEVICE, &info), TN_OK);
    assert_int_equal(info.struct_size, sizeof info);
    assert_int_equal(info.later, 5);
    tn_event_impl *event;
    if (d->events)
        assert_int_equal(d->events->create(d->handle, TN_EVENT_LATER, &event), TN_ERR_UNSUPPORTED);
    tn_cell value;
    assert_int_equal(d->ops->property(d->plugin->self, 0, TN_PROP_LATER, &value),
                     TN_ERR_UNSUPPORTED);
    all_fresh(NULL);
}

static void older_plugins_leave_new_flags_alone(void **state) {
    flags_that_are_new_are_unsupported(in_dir(PAIR_DIR, "libpair_now.so"), "pair:0");
    flags_that_are_new_are_unsupported(CPU_PLUGIN, "cpu:0");
    flags_that_are_new_are_unsupported(SIM_PLUGIN, "sim:0");
}
#endif

/* ---- structs of the host, with nothing readable behind ----------------------------------- */

#define GUARDED(type, ...) \
    ((type *)before_guard_page(&(type){.struct_size = sizeof(type), __VA_ARGS__}, sizeof(type)))

static tn_allocation *guarded_memory(const tni_device *d) {
    tn_allocation *a = GUARDED(tn_allocation, .bytes = 64, .alignment = 64);
    assert_int_equal(d->memory->alloc(d->handle, a), TN_OK);
    return a;
}

static tn_tensor_view *guarded_view(const tn_allocation *a) {
    static const int64_t one = 1;
    return GUARDED(tn_tensor_view, .memory = a->memory, .numel = 1, .rank = 1, .sizes = &one,
                   .strides = &one);
}

static void plugins_read_no_further_than_the_host_wrote(void **state) {
    for (size_t i = 0; i < N_PAIRS; i++) {
        const tni_plugin *p = load_pair(pairs[i].file);
        tni_device *d = tni_device_get(tn_device_parse("pair:0"));
        tn_allocation *in = guarded_memory(d), *out = guarded_memory(d),
                      *scratch = guarded_memory(d);
        tn_memory_info *info = GUARDED(tn_memory_info, 0);
        assert_int_equal(d->memory->info(d->handle, TN_SPACE_DEVICE, info), TN_OK);
        tn_stream_impl *stream;
        assert_int_equal(d->streams->create(d->handle, 0, &stream), TN_OK);

        *(float *)in->host = 3;
        const tn_kernel *add = p->table->kernels[0];
        const tn_tensor_view *outs[] = {guarded_view(out)};
        tn_cell args[] = {{.tag = TN_CELL_TENSOR, .v.view = guarded_view(in)},
                          {.tag = TN_CELL_TENSOR, .v.view = guarded_view(in)},
                          {.tag = TN_CELL_F64, .v.f64 = 1}};
        tn_call *call = GUARDED(tn_call, .device = d->handle, .stream = stream, .user = add->user,
                                .args = args, .n_args = 3, .outs = outs, .n_outs = 1);
        tn_plan *plan = GUARDED(tn_plan, 0);
        assert_int_equal(add->prepare(call, plan), TN_OK);
        call->cookie = plan->cookie;
        call->workspace = scratch->memory;
        call->workspace_bytes = plan->workspace_bytes;
        assert_int_equal(add->run(call), TN_OK);
        assert_int_equal(d->streams->synchronize(stream), TN_OK);
        assert_true(*(float *)out->host == 6);
        assert_int_equal(seen_by(p)->n_wrong, 0);

        d->streams->destroy(stream);
        d->memory->dealloc(d->handle, TN_SPACE_DEVICE, in->memory);
        d->memory->dealloc(d->handle, TN_SPACE_DEVICE, out->memory);
        d->memory->dealloc(d->handle, TN_SPACE_DEVICE, scratch->memory);
        all_fresh(NULL);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, all_fresh, all_fresh)
    const struct CMUnitTest tests[] = {
        TEST(pairs_work),
        TEST(a_status_that_is_not_known_is_internal),
        TEST(a_plugin_that_requires_the_next_minor_is_refused),
        TEST(plugins_read_no_further_than_the_host_wrote),
#ifdef NEXT_CORE
        TEST(members_that_are_not_there_are_null),
        TEST(older_plugins_leave_new_flags_alone),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
