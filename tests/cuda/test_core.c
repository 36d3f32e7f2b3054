/* What a program sees of CUDA devices that fail, and of forks: the core above the plugin. */
#include "tests/cuda/rig.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <tenon/plugins.h>
#include <tenon/tenon.h>
#include <unistd.h>

enum { MIB = 1 << 20, SECONDS = 60 };

static tn_device device;

static int start(void **state) {
    rig_setup(state);
    tn_error_clear();
    return 0;
}

static int stop(void **state) {
    tn_error_clear();
    tn_scope_close(0); /* of a test that failed */
    if (tn_shutdown() != TN_OK) {
        print_error("%s\n", tn_error_message());
        return -1;
    }
    return rig_teardown(state);
}

#define CORE_TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

static void open_device(void) {
    assert_int_equal(tn_plugin_load(rig_plugin), TN_OK);
    device = tn_device_parse("cuda:0");
    if (device.type == 0)
        fail_msg("%s", tn_error_message());
}

static void assert_error(tn_status status, const char *first, const char *second) {
    assert_string_equal(tn_status_name(tn_error_status()), tn_status_name(status));
    assert_text(tn_error_message(), first);
    assert_text(tn_error_message(), second);
    tn_error_clear();
}

static bool computes(tn_device where) {
    TN_SCOPE;
    double sum = 0;
    return tn_item(tn_sum(tn_neg(tn_ones(TN_SHAPE(5), TN_F32, where))), &sum) == TN_OK && sum == -5;
}

/* ---- memory ------------------------------------------------------------------------------ */

/* Kept by the caller. */
static tn_tensor *megabytes(int64_t n) {
    return tn_keep(tn_empty(TN_SHAPE(n * MIB), TN_U8, device));
}

static tn_memory_stats stats(void) {
    tn_memory_stats s = {.struct_size = sizeof s};
    assert_int_equal(tn_memory_stats_get(device, &s), TN_OK);
    return s;
}

static void fail_next(const char *function, bool always, CUresult error) {
    rig_say("fail=%s:%llu%s:%d", function, (unsigned long long)double_calls(function) + 1,
            always ? "+" : "", (int)error);
}

static void a_full_device_gives_back_its_cache_and_is_asked_again(void **state) {
    TN_SCOPE;
    open_device();
    tn_tensor *t = megabytes(30);
    assert_non_null(t);
    tn_free(t);
    tn_drop(t);
    tn_memory_stats before = stats();
    assert_true(before.reserved_bytes >= 30 * MIB);
    fail_next("cuMemAlloc_v2", false, CUDA_ERROR_OUT_OF_MEMORY);
    t = megabytes(31);
    assert_non_null(t);
    tn_memory_stats after = stats();
    assert_int_equal(after.n_retries, before.n_retries + 1);
    assert_true(after.reserved_bytes < 60 * MIB);
    tn_drop(t);
}

static void a_device_that_stays_full_is_told_with_figures_and_not_lost(void **state) {
    TN_SCOPE;
    open_device();
    tn_tensor *kept = megabytes(20);
    assert_non_null(kept);
    fail_next("cuMemAlloc_v2", true, CUDA_ERROR_OUT_OF_MEMORY);
    assert_null(megabytes(50));
    assert_text(tn_error_message(), "no memory for 50");
    assert_text(tn_error_message(), "20.00 MiB allocated");
    assert_error(TN_ERR_OUT_OF_MEMORY, "cuda:0", "are free");
    rig_say("fail=");
    tn_tensor *now = megabytes(50);
    assert_non_null(now);
    tn_drop(now);
    tn_drop(kept);
    assert_true(computes(device));
}

/* ---- kernels ----------------------------------------------------------------------------- */

static void a_kernel_that_does_not_build_is_named(void **state) {
    TN_SCOPE;
    setenv("TENON_CUDA_CACHE", "off", 1);
    open_device();
    tn_tensor *x = tn_ones(TN_SHAPE(3), TN_F32, device);
    assert_non_null(x);
    fail_next("cuModuleLoadDataEx", false, CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_null(tn_cos(x));
    assert_text(tn_error_message(), "cuda:0: tn_cos");
    assert_error(TN_ERR_INTERNAL, "loading pointwise", "CUDA_ERROR_NO_BINARY_FOR_GPU");
    assert_non_null(tn_cos(x));
    setenv("TENON_CUDA_CACHE", rig_cache, 1);
}

/* ---- a lost device ----------------------------------------------------------------------- */

static void a_lost_device_fails_every_call_and_no_other_device(void **state) {
    TN_SCOPE;
    open_device();
    tn_device other = tn_device_parse("cuda:1");
    float numbers[3];
    assert_true(computes(other));
    tn_tensor *x = tn_ones(TN_SHAPE(3), TN_F32, device);
    assert_int_equal(tn_synchronize(device), TN_OK);
    rig_say("fault=2:%d", CUDA_ERROR_ILLEGAL_ADDRESS);
    tn_tensor *y = tn_mul(tn_neg(x), x);
    assert_non_null(y);
    assert_int_equal(tn_to_host(y, numbers, sizeof numbers), TN_ERR_DEVICE_LOST);
    assert_text(tn_error_message(), "end the program");
    assert_text(tn_error_message(), "launched last: op_mul with ");
    assert_text(tn_error_message(), ", op_neg with ");
    assert_error(TN_ERR_DEVICE_LOST, "cuda:0 (", "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_null(tn_neg(x));
    assert_error(TN_ERR_DEVICE_LOST, "cuda:0", "");
    assert_null(tn_ones(TN_SHAPE(3), TN_F32, device));
    assert_error(TN_ERR_DEVICE_LOST, "cuda:0", "");
    assert_int_equal(tn_synchronize(device), TN_ERR_DEVICE_LOST);
    assert_error(TN_ERR_DEVICE_LOST, "cuda:0", "");
    assert_int_equal(tn_empty_cache(device), TN_OK);
    assert_true(computes(other));
    assert_true(computes(tn_device_parse("cpu:0")));
    tn_scope_close(0);
    assert_int_equal(tn_shutdown(), TN_OK);
    rig_forget();
}

/* ---- forks ------------------------------------------------------------------------------- */

static void must(bool ok, const char *what) {
    if (ok)
        return;
    fprintf(stderr, "child: %s: %s\n", what, tn_error_message());
    _exit(1);
}

/* A child that hangs is a failure and not a wait. It ends as programs do, through exit. */
static void assert_child(void (*body)(void)) {
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(SECONDS);
        body();
        exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void compute_on_cuda(void) {
    must(tn_plugin_load(rig_plugin) == TN_OK, "loading the plugin");
    device = tn_device_parse("cuda:0");
    must(device.type != 0, "cuda:0");
    must(computes(device), "computing on cuda:0");
    must(tn_shutdown() == TN_OK, "tn_shutdown");
}

/* Nothing of CUDA was touched before: each child has its own. */
static void a_child_of_a_program_that_did_not_use_cuda_uses_it(void **state) {
    assert_child(compute_on_cuda);
    assert_child(compute_on_cuda);
}

static void must_say_what_to_do(void) {
    must(strstr(tn_error_message(), "fork") && strstr(tn_error_message(), "exec"),
         "the message does not say what to do");
    tn_error_clear();
}

static void fail_to_use_cuda(void) {
    tn_scope_close(0); /* the parent's */
    must(!tn_ones(TN_SHAPE(3), TN_F32, device), "cuda:0 is there");
    must_say_what_to_do();
    must(computes(tn_device_parse("cpu:0")), "computing on cpu:0");
    must(tn_shutdown() == TN_OK, "tn_shutdown");
    /* The plugin starts anew, and the driver does not. */
    must(tn_plugin_load(rig_plugin) != TN_OK || tn_device_parse("cuda:0").type == 0, "cuda:0");
    must_say_what_to_do();
    must(tn_shutdown() == TN_OK, "tn_shutdown again");
}

/* CUDA is not for forked children once it was started, whichever device they want. */
static void a_child_that_opens_another_device_is_told(void **state) {
    open_device();
    assert_true(computes(device));
    device.index = 1;
    assert_child(fail_to_use_cuda);
    assert_true(computes(device));
}

static void a_child_of_a_program_that_used_cuda_is_told(void **state) {
    TN_SCOPE;
    open_device();
    assert_true(computes(device));
    tn_tensor *x = tn_ones(TN_SHAPE(3), TN_F32, device);
    assert_child(fail_to_use_cuda);
    assert_non_null(tn_neg(x));
    assert_true(computes(device));
}

int all_tests(void) {
    setenv("TENON_CUDA_DRIVER", rig_driver, 1);
    setenv("TENON_CUDA_NVRTC", rig_nvrtc, 1);
    setenv("TENON_CUDA_CACHE", rig_cache, 1);
    setenv("TENON_CUDA_CUBLASLT", "off", 1);
    setenv("TENON_CUDA_CUDNN", "off", 1);
    const struct CMUnitTest tests[] = {
        CORE_TEST(a_child_of_a_program_that_did_not_use_cuda_uses_it), /* the first */
        CORE_TEST(a_child_that_opens_another_device_is_told),
        CORE_TEST(a_child_of_a_program_that_used_cuda_is_told),
        CORE_TEST(a_full_device_gives_back_its_cache_and_is_asked_again),
        CORE_TEST(a_device_that_stays_full_is_told_with_figures_and_not_lost),
        CORE_TEST(a_kernel_that_does_not_build_is_named),
        CORE_TEST(a_lost_device_fails_every_call_and_no_other_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
