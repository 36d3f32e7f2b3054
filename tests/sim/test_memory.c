/* Device memory is out of the host's reach, ranges are checked, and memory runs out politely. */
#include "tests/sim/rig.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const tn_memory_ops *memory(void) {
    return rig.ops->memory;
}

static tn_memory allocate(uint64_t bytes) {
    tn_memory m;
    void *host;
    assert_ok(mini_alloc(rig.ops->memory, rig.device, TN_SPACE_DEVICE, bytes, &m, &host));
    assert_null(host);
    assert_true(m != 0);
    assert_int_equal(m % 256, 0);
    return m;
}

static void release(tn_memory m) {
    memory()->dealloc(rig.device, TN_SPACE_DEVICE, m);
}

static void dereferencing_a_handle_faults(void **state) {
    tn_memory m = allocate(4096);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL);
        *(volatile char *)(uintptr_t)m = 1;
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    release(m);
}

static void written_bytes_are_read_back(void **state) {
    char out[100], in[100];
    for (int i = 0; i < 100; i++)
        in[i] = (char)i;
    tn_memory a = allocate(100), b = allocate(50);
    assert_ok(memory()->copy_from_host(rig.device, rig.stream, a, 0, in, 0, 100));
    assert_ok(memory()->copy(rig.device, rig.stream, b, 10, a, 60, 40));
    assert_ok(memory()->fill(rig.device, rig.stream, b, 0, 0xab, 10));
    assert_ok(memory()->copy_to_host(rig.device, rig.stream, out, 0, b, 0, 50));
    for (int i = 0; i < 10; i++)
        assert_int_equal((unsigned char)out[i], 0xab);
    assert_memory_equal(out + 10, in + 60, 40);
    assert_ok(memory()->copy_to_host(rig.device, rig.stream, out, 0, a, 7, 0));
    release(a);
    release(b);
}

static void ranges_outside_an_allocation_are_refused(void **state) {
    char bytes[64] = {0};
    tn_memory a = allocate(64), b = allocate(64);
    assert_status(memory()->copy_from_host(rig.device, rig.stream, a, 1, bytes, 0, 64),
                  TN_ERR_INVALID_ARGUMENT);
    assert_message("[1, 65)");
    assert_message("has 64 bytes");
    assert_status(memory()->copy_to_host(rig.device, rig.stream, bytes, 0, a, 65, 0),
                  TN_ERR_INVALID_ARGUMENT);
    assert_status(memory()->fill(rig.device, rig.stream, a, UINT64_MAX, 0, 2),
                  TN_ERR_INVALID_ARGUMENT);
    assert_status(memory()->copy(rig.device, rig.stream, a, 0, b, 32, 33), TN_ERR_INVALID_ARGUMENT);
    assert_message("copy from");
    assert_status(memory()->copy(rig.device, rig.stream, a, 0, a, 8, 16), TN_ERR_INVALID_ARGUMENT);
    assert_message("overlap");
    /* A handle takes no arithmetic, and a freed one is none. */
    assert_status(memory()->copy_to_host(rig.device, rig.stream, bytes, 0, a + 8, 0, 8),
                  TN_ERR_INVALID_ARGUMENT);
    assert_message("no memory handle");
    release(b);
    assert_status(memory()->copy_to_host(rig.device, rig.stream, bytes, 0, b, 0, 8),
                  TN_ERR_INVALID_ARGUMENT);
    assert_status(memory()->copy_to_host(rig.device, NULL, bytes, 0, a, 0, 8),
                  TN_ERR_INVALID_ARGUMENT);
    assert_message("no stream");
    release(a);
}

static void a_freed_handle_is_not_given_out_again_soon(void **state) {
    tn_memory first = allocate(512);
    release(first);
    for (int i = 0; i < 100; i++) {
        tn_memory next = allocate(512);
        assert_true(next != first);
        release(next);
    }
}

static void handles_outlast_the_address_range(void **state) {
    /* The range is 1 GiB here; many times that is allocated, with some allocations in the way. */
    tn_memory kept[4], m;
    for (int i = 0; i < 4; i++) {
        m = allocate(40 << 20);
        kept[i] = allocate(1000);
        release(m);
    }
    for (int i = 0; i < 30; i++)
        release(allocate(100 << 20));
    for (int i = 0; i < 4; i++)
        release(kept[i]);
}

static void exhausted_memory_is_told_with_figures(void **state) {
    tn_memory_info info = {.struct_size = sizeof info};
    tn_memory a, b;
    void *host;
    a = allocate(100 << 20);
    assert_status(mini_alloc(rig.ops->memory, rig.device, TN_SPACE_DEVICE, 29 << 20, &b, &host),
                  TN_ERR_OUT_OF_MEMORY);
    assert_int_equal(b, 0);
    assert_message("30408704 bytes asked for");
    assert_message("104857600 of 134217728 bytes");
    assert_status(mini_alloc(rig.ops->memory, rig.device, TN_SPACE_DEVICE, UINT64_MAX, &b, &host),
                  TN_ERR_OUT_OF_MEMORY);
    assert_ok(memory()->info(rig.device, TN_SPACE_DEVICE, &info));
    assert_int_equal(info.total_bytes, 128 << 20);
    assert_int_equal(info.free_bytes, 28 << 20);
    b = allocate(28 << 20);
    release(a);
    release(b);
    assert_ok(memory()->info(rig.device, TN_SPACE_DEVICE, &info));
    assert_int_equal(info.free_bytes, 128 << 20);
}

static void a_pageable_source_is_consumed_at_once(void **state) {
    slow work = slow_create();
    tn_memory m = allocate(64);
    char bytes[64], out[64];
    memset(bytes, 1, sizeof bytes);
    slow_queue(&work, rig.stream, 2);
    assert_ok(memory()->copy_from_host(rig.device, rig.stream, m, 0, bytes, 0, 64));
    memset(bytes, 2, sizeof bytes);
    assert_ok(memory()->copy_to_host(rig.device, rig.stream, out, 0, m, 0, 64));
    assert_int_equal(out[0], 1);
    assert_int_equal(out[63], 1);
    release(m);
}

static void pinned_memory_is_used_when_the_stream_gets_there(void **state) {
    slow work = slow_create();
    tn_memory pinned, m = allocate(64);
    char *host;
    assert_ok(
        mini_alloc(rig.ops->memory, rig.device, TN_SPACE_PINNED, 128, &pinned, (void **)&host));
    assert_non_null(host);
    memset(host, 1, 64);
    memset(host + 64, 9, 64);
    slow_queue(&work, rig.stream, 25);
    assert_ok(memory()->copy_from_host(rig.device, rig.stream, m, 0, host, pinned, 64));
    assert_ok(memory()->copy_to_host(rig.device, rig.stream, host + 64, pinned, m, 0, 64));
    /* Neither has happened: both waits for the slow work. */
    assert_status(rig.ops->streams->query(rig.stream), TN_NOT_READY);
    assert_int_equal(host[64], 9);
    memset(host, 2, 64);
    assert_ok(mini_synchronize(&rig));
    assert_int_equal(host[64], 2);
    assert_int_equal(host[127], 2);
    memory()->dealloc(rig.device, TN_SPACE_PINNED, pinned);
    release(m);
}

/* Not the address decides, but what the call says. */
static void pinned_memory_that_is_not_named_is_consumed_at_once(void **state) {
    slow work = slow_create();
    tn_memory pinned, m = allocate(64);
    char *host;
    assert_ok(mini_alloc(memory(), rig.device, TN_SPACE_PINNED, 128, &pinned, (void **)&host));
    memset(host, 1, 64);
    slow_queue(&work, rig.stream, 2);
    assert_ok(memory()->copy_from_host(rig.device, rig.stream, m, 0, host, 0, 64));
    memset(host, 2, 64);
    assert_ok(memory()->copy_to_host(rig.device, rig.stream, host + 64, 0, m, 0, 64));
    assert_int_equal(host[64], 1);
    assert_int_equal(host[127], 1);
    memory()->dealloc(rig.device, TN_SPACE_PINNED, pinned);
    release(m);
}

static void what_is_called_pinned_must_be(void **state) {
    tn_device_impl *second;
    tn_stream_impl *stream;
    tn_memory pinned, m = allocate(256);
    char *host, plain[64] = {0};
    assert_ok(rig.ops->open(rig.self, 1, &second));
    assert_ok(rig.ops->streams->create(second, 0, &stream));
    tn_memory there;
    void *none;
    assert_ok(mini_alloc(memory(), second, TN_SPACE_DEVICE, 256, &there, &none));
    assert_ok(mini_alloc(memory(), rig.device, TN_SPACE_PINNED, 128, &pinned, (void **)&host));
#define REFUSED(call, part) \
    assert_status(memory()->call, TN_ERR_INVALID_ARGUMENT); \
    assert_message(part)
    REFUSED(copy_from_host(rig.device, rig.stream, m, 0, host, m, 8), "is device memory");
    REFUSED(copy_to_host(rig.device, rig.stream, host, m, m, 0, 8), "is device memory");
    REFUSED(copy_from_host(rig.device, rig.stream, m, 0, plain, pinned, 8), "do not lie in");
    REFUSED(copy_to_host(rig.device, rig.stream, plain, pinned, m, 0, 8), "do not lie in");
    REFUSED(copy_from_host(rig.device, rig.stream, m, 0, host, pinned, 129), "129 bytes");
    REFUSED(copy_to_host(rig.device, rig.stream, host + 100, pinned, m, 0, 29), "29 bytes");
    REFUSED(copy_from_host(rig.device, rig.stream, m, 0, host - 1, pinned, 8), "do not lie in");
    REFUSED(copy_from_host(second, stream, there, 0, host, pinned, 8), "no memory handle");
    /* Nor is it device memory. */
    REFUSED(copy_from_host(rig.device, rig.stream, pinned, 0, host, 0, 8), "is pinned memory");
    REFUSED(copy_to_host(rig.device, rig.stream, plain, 0, pinned, 0, 8), "is pinned memory");
    REFUSED(copy(rig.device, rig.stream, pinned, 0, m, 0, 8), "is pinned memory");
    REFUSED(copy(rig.device, rig.stream, m, 0, pinned, 0, 8), "is pinned memory");
    REFUSED(fill(rig.device, rig.stream, pinned, 0, 1, 8), "is pinned memory");
    tn_tensor_view view = {.struct_size = sizeof view, .memory = pinned, .numel = 1};
    assert_status(rig_launch("fill", rig.device, rig.stream, 1, (tn_cell[]){mini_f64(0)}, &view),
                  TN_ERR_INVALID_ARGUMENT);
    assert_message("is pinned memory");
    assert_ok(mini_synchronize(&rig));
    memory()->dealloc(rig.device, TN_SPACE_PINNED, pinned);
    memory()->dealloc(second, TN_SPACE_DEVICE, there);
    rig.ops->streams->destroy(stream);
    rig.ops->close(second);
    release(m);
}

static void pinned_memory_freed_too_early_is_an_error_of_the_stream(void **state) {
    slow work = slow_create();
    tn_memory pinned, m = allocate(64);
    void *host;
    assert_ok(mini_alloc(memory(), rig.device, TN_SPACE_PINNED, 64, &pinned, &host));
    slow_queue(&work, rig.stream, 5);
    assert_ok(memory()->copy_from_host(rig.device, rig.stream, m, 0, host, pinned, 64));
    memory()->dealloc(rig.device, TN_SPACE_PINNED, pinned);
    assert_status(mini_synchronize(&rig), TN_ERR_INVALID_ARGUMENT);
    assert_message("freed before the work ran");
    release(m);
}

static void requests_that_are_not_known_are_refused(void **state) {
    static const struct {
        tn_allocation request;
        tn_status status;
        const char *message;
    } refused[] = {
        {{.space = 2, .bytes = 8, .alignment = 1}, TN_ERR_UNSUPPORTED, "no memory space 2"},
        {{.space = -1, .bytes = 8, .alignment = 1}, TN_ERR_UNSUPPORTED, "no memory space -1"},
        {{.bytes = 8, .alignment = 1, .flags = 1}, TN_ERR_UNSUPPORTED, "flags 0x1"},
        {{.bytes = 8, .alignment = 512}, TN_ERR_UNSUPPORTED, "alignment of 512"},
        {{.bytes = 8, .alignment = 24}, TN_ERR_INVALID_ARGUMENT, "no power of two"},
        {{.bytes = 0, .alignment = 1}, TN_ERR_INVALID_ARGUMENT, "0 bytes"},
    };
    tn_memory_info info = {.struct_size = sizeof info};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        tn_allocation a = refused[i].request;
        a.struct_size = sizeof a;
        assert_status(memory()->alloc(rig.device, &a), refused[i].status);
        assert_message(refused[i].message);
        assert_true(a.memory == 0 && a.host == NULL);
    }
    assert_status(memory()->info(rig.device, 2, &info), TN_ERR_UNSUPPORTED);
    assert_ok(memory()->info(rig.device, TN_SPACE_PINNED, &info));
    assert_ok(memory()->info(rig.device, TN_SPACE_DEVICE, &info));
    assert_true(info.free_bytes == info.total_bytes);
}

static int64_t spaces(void) {
    tn_cell cell;
    assert_ok(rig.ops->property(rig.self, 0, TN_PROP_SPACES, &cell));
    return cell.v.i64;
}

static void a_device_can_be_without_pinned_memory(void **state) {
    tn_memory_info info = {.struct_size = sizeof info};
    tn_memory m;
    void *host;
    assert_true(spaces() == (1 << TN_SPACE_DEVICE | 1 << TN_SPACE_PINNED));
    assert_true(mini_close(&rig));
    mini_option("pinned", "0");
    assert_true(mini_open(&rig, rig_plugin, 0));
    assert_true(spaces() == 1 << TN_SPACE_DEVICE);
    assert_status(mini_alloc(memory(), rig.device, TN_SPACE_PINNED, 8, &m, &host),
                  TN_ERR_UNSUPPORTED);
    assert_message("TENON_SIM_PINNED");
    assert_status(memory()->info(rig.device, TN_SPACE_PINNED, &info), TN_ERR_UNSUPPORTED);
    release(allocate(8));
    mini_option("pinned", NULL);
}

/* They are where work puts its results, when it runs. */
static void device_memory_can_have_host_pointers(void **state) {
    tn_memory m;
    unsigned char *host;
    assert_true(mini_close(&rig));
    mini_option("host_pointers", "1");
    assert_true(mini_open(&rig, rig_plugin, 0));
    slow work = slow_create();
    assert_ok(mini_alloc(memory(), rig.device, TN_SPACE_DEVICE, 64, &m, (void **)&host));
    assert_non_null(host);
    assert_true((tn_memory)(uintptr_t)host != m);
    assert_int_equal(host[0], 0xfb); /* poison */
    slow_queue(&work, rig.stream, 25);
    assert_ok(memory()->fill(rig.device, rig.stream, m, 0, 7, 64));
    assert_int_equal(host[0], 0xfb);
    assert_ok(mini_synchronize(&rig));
    assert_int_equal(host[0], 7);
    host[0] = 9;
    char back;
    assert_ok(memory()->copy_to_host(rig.device, rig.stream, &back, 0, m, 0, 1));
    assert_int_equal(back, 9);
    release(m);
    mini_option("host_pointers", NULL);
}

static void freeing_what_is_no_handle_is_logged(void **state) {
    memory()->dealloc(rig.device, TN_SPACE_DEVICE, 12345);
    assert_non_null(strstr(mini_log(), "names no allocation"));
}

static int setup(void **state) {
    mini_option("memory", "128m");
    return rig_setup(state);
}

static int teardown(void **state) {
    mini_option("memory", NULL);
    return rig_teardown(state);
}

int all_tests(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(dereferencing_a_handle_faults),
        TEST(written_bytes_are_read_back),
        TEST(ranges_outside_an_allocation_are_refused),
        TEST(a_freed_handle_is_not_given_out_again_soon),
        TEST(handles_outlast_the_address_range),
        TEST(exhausted_memory_is_told_with_figures),
        TEST(a_pageable_source_is_consumed_at_once),
        TEST(pinned_memory_is_used_when_the_stream_gets_there),
        TEST(pinned_memory_that_is_not_named_is_consumed_at_once),
        TEST(what_is_called_pinned_must_be),
        TEST(pinned_memory_freed_too_early_is_an_error_of_the_stream),
        TEST(requests_that_are_not_known_are_refused),
        TEST(a_device_can_be_without_pinned_memory),
        TEST(device_memory_can_have_host_pointers),
        TEST(freeing_what_is_no_handle_is_logged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
