/* The chip at its strictest: poison, memory freed too early, failures and loss on demand, and an
 * order of streams that shows a forgotten wait. */
#include "tests/sim/rig.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t one[] = {1};

static const tn_memory_ops *memory(void) {
    return rig.ops->memory;
}

static tn_memory allocate(tn_device_impl *device, uint64_t bytes) {
    tn_memory m;
    void *host;
    assert_ok(mini_alloc(rig.ops->memory, device, TN_SPACE_DEVICE, bytes, &m, &host));
    return m;
}

static void release(tn_device_impl *device, tn_memory m) {
    memory()->dealloc(device, TN_SPACE_DEVICE, m);
}

static void open_with(const char *option, const char *value) {
    mini_option(option, value);
    if (!mini_open(&rig, rig_plugin, 0))
        fail_msg("%s=%s: %s", option, value, mini_error());
}

static void close_without(const char *option) {
    mini_option(option, NULL);
    assert_true(mini_close(&rig));
}

static void bad_values_are_refused_by_name(void **state) {
    static const char *const bad[][3] = {
        {"poison", "2", "0 or 1"},
        {"poison", "on", "0 or 1"},
        {"pinned", "no", "0 or 1"},
        {"host_pointers", "2", "0 or 1"},
        {"seed", "-1", "18446744073709551615"},
        {"seed", "18446744073709551616", "18446744073709551615"},
        {"delay", "1000001", "1000000"},
        {"delay", "1ms", "1000000"},
        {"fail", "alloc", "alloc:7"},
        {"fail", "alloc:0", "alloc:7"},
        {"fail", "alloc:x", "alloc:7"},
        {"fail", "alloc:1,", "alloc:7"},
        {"fail", "frob:1", "alloc:7"},
        {"fail", "alloc:1,alloc:2", "alloc:7"},
        {"fail", "alloc:1;run:2", "alloc:7"},
        {"lose", "x", "device:number"},
        {"lose", "8:1", "device:number"},
        {"lose", "0:", "device:number"},
        {"lose", "1,2", "device:number"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mini_option(bad[i][0], bad[i][1]);
        if (mini_open(&rig, rig_plugin, 0))
            fail_msg("%s=%s was taken", bad[i][0], bad[i][1]);
        assert_message("TENON_SIM_");
        assert_message(bad[i][0]);
        assert_message(bad[i][1]);
        assert_message(bad[i][2]);
        mini_option(bad[i][0], NULL);
    }
    assert_int_equal(mini_outstanding(), 0);
}

static void fresh_memory_is_poison_in_every_dtype(void **state) {
    union {
        unsigned char bytes[64];
        uint16_t u16[32];
        float f32[16];
        double f64[8];
        int64_t i64[8];
        int32_t i32[16];
    } x;
    void *host;
    tn_memory pinned;
    open_with("poison", "1");
    tn_memory m = allocate(rig.device, sizeof x);
    assert_ok(memory()->copy_to_host(rig.device, rig.stream, &x, 0, m, 0, sizeof x));
    for (int i = 0; i < 8; i++)
        assert_true(isnan(x.f64[i]) && isnan(x.f32[2 * i]) && x.i64[i] > INT64_MAX / 2 &&
                    x.i32[i] > INT32_MAX / 2 && x.bytes[i] > 1);
    assert_true((x.u16[0] & 0x7c00) == 0x7c00 && (x.u16[0] & 0x3ff)); /* f16 */
    assert_true((x.u16[0] & 0x7f80) == 0x7f80 && (x.u16[0] & 0x7f));  /* bf16 */
    assert_ok(mini_alloc(rig.ops->memory, rig.device, TN_SPACE_PINNED, 16, &pinned, &host));
    assert_memory_equal(host, &x, 16);
    memory()->dealloc(rig.device, TN_SPACE_PINNED, pinned);
    release(rig.device, m);
    close_without("poison");
}

static void freed_pinned_memory_faults(void **state) {
    tn_memory pinned;
    char *host;
    assert_true(mini_open(&rig, rig_plugin, 0));
    assert_ok(
        mini_alloc(rig.ops->memory, rig.device, TN_SPACE_PINNED, 10000, &pinned, (void **)&host));
    memset(host, 1, 10000);
    memory()->dealloc(rig.device, TN_SPACE_PINNED, pinned);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL);
        _exit(*(volatile char *)(host + 9999));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_true(mini_close(&rig));
}

static void memory_freed_under_queued_work_is_an_error_of_the_stream(void **state) {
    char handle[32];
    assert_true(mini_open(&rig, rig_plugin, 0));
    slow work = slow_create();
    tn_memory m = allocate(rig.device, 64);
    slow_queue(&work, rig.stream, 25);
    assert_ok(memory()->fill(rig.device, rig.stream, m, 0, 0, 64));
    release(rig.device, m);
    assert_status(mini_synchronize(&rig), TN_ERR_INVALID_ARGUMENT);
    snprintf(handle, sizeof handle, "%#llx", (unsigned long long)m);
    assert_message(handle);
    assert_message("was freed before");
    assert_ok(mini_synchronize(&rig));
    assert_true(mini_close(&rig));
}

static void extents_that_overflow_are_refused(void **state) {
    assert_true(mini_open(&rig, rig_plugin, 0));
    mini_tensor *x = mini_tensor_create(&rig, TN_F32, 1, one, NULL, 0);
    const int64_t sizes[] = {INT64_C(1) << 40, INT64_C(1) << 40};
    const int64_t strides[] = {INT64_C(1) << 40, 1};
    tn_tensor_view view = x->view;
    view.rank = 2;
    view.sizes = sizes;
    view.strides = strides;
    const tn_cell args[] = {mini_f64(1)};
    assert_status(rig_launch("fill", rig.device, rig.stream, 1, args, &view), TN_ERR_SHAPE);
    assert_message("further than any memory");
    assert_true(mini_close(&rig));
}

static void the_nth_call_fails_and_no_other(void **state) {
    tn_memory m, none;
    void *host;
    char bytes[8] = {0};
    mini_option("fail", "alloc:2,write:*,sync:2,kernel:1,run:2");
    assert_true(mini_open(&rig, rig_plugin, 0));
    m = allocate(rig.device, 64);
    assert_status(mini_alloc(rig.ops->memory, rig.device, TN_SPACE_DEVICE, 64, &none, &host),
                  TN_ERR_OUT_OF_MEMORY);
    assert_message("call 2 of alloc fails, as TENON_SIM_FAIL asks");
    release(rig.device, allocate(rig.device, 64));
    for (int i = 0; i < 3; i++)
        assert_status(memory()->copy_from_host(rig.device, rig.stream, m, 0, bytes, 0, 8),
                      TN_ERR_INTERNAL);
    int64_t stride = 1;
    tn_tensor_view view = {.struct_size = sizeof view,
                           .memory = m,
                           .numel = 1,
                           .dtype = TN_F32,
                           .rank = 1,
                           .sizes = one,
                           .strides = &stride};
    const tn_cell args[] = {mini_f64(1)};
    assert_ok(rig_launch("fill", rig.device, rig.stream, 1, args, &view));
    assert_status(rig_launch("fill", rig.device, rig.stream, 1, args, &view), TN_ERR_INTERNAL);
    assert_ok(memory()->copy_to_host(rig.device, rig.stream, bytes, 0, m, 0, 8));
    assert_status(mini_synchronize(&rig), TN_ERR_INTERNAL); /* of the kernel, told late */
    assert_message("kernel 1 of sim:0");
    assert_status(mini_synchronize(&rig), TN_ERR_INTERNAL);
    assert_message("call 2 of sync");
    assert_ok(mini_synchronize(&rig));
    release(rig.device, m);
    close_without("fail");
}

/* Also while work is left, and until it is opened again. */
static void a_lost_device_says_so_before_anything_else(void **state) {
    tn_stream_impl *other;
    tn_event_impl *event;
    tn_memory none;
    void *host;
    open_with("lose", "0:4");
    slow work = slow_create(); /* two commands */
    assert_ok(rig.ops->streams->create(rig.device, 0, &other));
    assert_ok(rig.ops->events->create(rig.device, 0, &event));
    slow_queue(&work, rig.stream, 1);
    assert_ok(rig.ops->events->record(event, rig.stream));
    /* The fourth is this fill, as a rule; the work or the mark where threads came late. */
    tn_status status = memory()->fill(rig.device, other, work.a->view.memory, 0, 0, 8);
    while (status == TN_OK)
        status = rig.ops->streams->synchronize(other);
    assert_int_equal(status, TN_ERR_DEVICE_LOST);
    assert_status(rig.ops->streams->query(rig.stream), TN_ERR_DEVICE_LOST);
    assert_status(rig.ops->events->query(event), TN_ERR_DEVICE_LOST);
    assert_status(mini_alloc(memory(), rig.device, 99, 0, &none, &host), TN_ERR_DEVICE_LOST);
    mini_tensors_free(&rig);
    rig.ops->events->destroy(event);
    rig.ops->streams->destroy(other);
    rig.ops->streams->destroy(rig.stream);
    rig.ops->close(rig.device);

    assert_ok(rig.ops->open(rig.self, 0, &rig.device));
    assert_ok(rig.ops->streams->create(rig.device, 0, &rig.stream));
    tn_memory m = allocate(rig.device, 8);
    assert_ok(memory()->fill(rig.device, rig.stream, m, 0, 1, 8));
    assert_ok(mini_synchronize(&rig));
    release(rig.device, m);
    close_without("lose");
}

static void a_lost_device_fails_and_others_go_on(void **state) {
    tn_device_impl *second;
    tn_stream_impl *stream;
    tn_event_impl *event;
    tn_memory m, pinned, none;
    void *host;
    char bytes[8];
    double ns;
    tn_memory_info info = {.struct_size = sizeof info};
    open_with("lose", "0:3");
    const tn_event_ops *events = rig.ops->events;
    assert_ok(rig.ops->open(rig.self, 1, &second));
    assert_ok(rig.ops->streams->create(second, 0, &stream));
    assert_ok(events->create(rig.device, TN_EVENT_TIMING, &event));
    tn_memory there = allocate(second, 8);
    m = allocate(rig.device, 8);
    assert_ok(mini_alloc(rig.ops->memory, rig.device, TN_SPACE_PINNED, 8, &pinned, &host));
    for (int i = 0; i < 2; i++)
        assert_ok(memory()->fill(rig.device, rig.stream, m, 0, 1, 8));
    assert_ok(mini_synchronize(&rig));
    assert_ok(events->record(event, rig.stream)); /* the third */
    assert_ok(rig.ops->streams->synchronize(stream));
    for (int i = 0; i < 2; i++)
        assert_status(mini_synchronize(&rig), TN_ERR_DEVICE_LOST);
    assert_message("sim:0 is lost");

    assert_status(rig.ops->streams->query(rig.stream), TN_ERR_DEVICE_LOST);
    assert_status(mini_alloc(rig.ops->memory, rig.device, TN_SPACE_DEVICE, 8, &none, &host),
                  TN_ERR_DEVICE_LOST);
    assert_status(memory()->copy_from_host(rig.device, rig.stream, m, 0, bytes, 0, 8),
                  TN_ERR_DEVICE_LOST);
    assert_status(memory()->copy_to_host(rig.device, rig.stream, bytes, 0, m, 0, 8),
                  TN_ERR_DEVICE_LOST);
    assert_status(memory()->copy(rig.device, rig.stream, m, 0, m, 4, 4), TN_ERR_DEVICE_LOST);
    assert_status(memory()->fill(rig.device, rig.stream, m, 0, 0, 8), TN_ERR_DEVICE_LOST);
    assert_status(memory()->info(rig.device, TN_SPACE_DEVICE, &info), TN_ERR_DEVICE_LOST);
    assert_status(memory()->copy_peer(second, stream, there, 0, rig.device, m, 0, 8),
                  TN_ERR_DEVICE_LOST);
    assert_status(events->query(event), TN_ERR_DEVICE_LOST);
    assert_status(events->synchronize(event), TN_ERR_DEVICE_LOST);
    assert_status(events->record(event, rig.stream), TN_ERR_DEVICE_LOST);
    assert_status(events->wait(rig.stream, event), TN_ERR_DEVICE_LOST);
    assert_status(events->elapsed(event, event, &ns), TN_ERR_DEVICE_LOST);

    assert_status(events->wait(stream, event), TN_ERR_DEVICE_LOST); /* of two devices either */
    for (int i = 0; i < 10; i++)
        assert_ok(memory()->fill(second, stream, there, 0, 7, 8));
    assert_ok(memory()->copy_to_host(second, stream, bytes, 0, there, 0, 8));
    assert_int_equal(bytes[7], 7);
    assert_ok(rig.ops->streams->synchronize(stream));

    release(rig.device, m);
    memory()->dealloc(rig.device, TN_SPACE_PINNED, pinned);
    events->destroy(event);
    rig.ops->streams->destroy(stream);
    release(second, there);
    rig.ops->close(second);
    close_without("lose");
}

/* One stream fills, another copies what was filled; the host may forget the wait between them.
 * Returns what the copy saw. */
static unsigned char two_streams(bool waits) {
    tn_stream_impl *other;
    tn_event_impl *event;
    unsigned char seen = 0;
    assert_ok(rig.ops->streams->create(rig.device, 0, &other));
    assert_ok(rig.ops->events->create(rig.device, 0, &event));
    tn_memory x = allocate(rig.device, 1), y = allocate(rig.device, 1);
    assert_ok(memory()->fill(rig.device, rig.stream, x, 0, 42, 1));
    assert_ok(rig.ops->events->record(event, rig.stream));
    if (waits)
        assert_ok(rig.ops->events->wait(other, event));
    assert_ok(memory()->copy(rig.device, other, y, 0, x, 0, 1));
    assert_ok(memory()->copy_to_host(rig.device, other, &seen, 0, y, 0, 1));
    assert_ok(mini_synchronize(&rig));
    rig.ops->events->destroy(event);
    rig.ops->streams->destroy(other);
    release(rig.device, x);
    release(rig.device, y);
    return seen;
}

static void a_forgotten_wait_is_caught(void **state) {
    static const char *const seeds[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    int caught = 0;
    mini_option("delay", "20000");
    for (int i = 0; i < 10; i++) {
        open_with("seed", seeds[i]);
        assert_int_equal(two_streams(true), 42);
        caught += two_streams(false) != 42;
        close_without("seed");
    }
    mini_option("delay", NULL);
    if (caught < 9)
        fail_msg("caught with %d of 10 seeds", caught);
}

int all_tests(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_values_are_refused_by_name),
        cmocka_unit_test(fresh_memory_is_poison_in_every_dtype),
        cmocka_unit_test(freed_pinned_memory_faults),
        cmocka_unit_test(memory_freed_under_queued_work_is_an_error_of_the_stream),
        cmocka_unit_test(extents_that_overflow_are_refused),
        cmocka_unit_test(the_nth_call_fails_and_no_other),
        cmocka_unit_test(a_lost_device_says_so_before_anything_else),
        cmocka_unit_test(a_lost_device_fails_and_others_go_on),
        cmocka_unit_test(a_forgotten_wait_is_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
