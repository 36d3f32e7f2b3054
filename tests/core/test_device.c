/* Devices: names, opening once, the default, forks, loss, threads, the end. */
#include "tests/core/core_test.h"

#include <pthread.h>
#include <sys/wait.h>

static void assert_no_device(tn_device d) {
    assert_int_equal(d.type, 0);
    assert_int_equal(d.index, 0);
}

/* ---- names ------------------------------------------------------------------------------- */

static void test_a_device_is_opened_by_its_name(void **state) {
    fake.n_devices = 2;
    tni_device *d = open_fake();
    assert_string_equal(d->name, "fake:0");
    assert_ptr_equal(tni_device_get(tn_device_parse("fake")), d);
    assert_ptr_equal(tni_device_get(tn_device_parse("fake@org.tenon:0")), d);
    tn_device other = tn_device_parse("fake:1");
    assert_false(tn_device_equal(other, d->id));
    assert_true(tn_device_equal(tn_device_unpack(tn_device_pack(other)), other));
    char name[64];
    assert_string_equal(tn_device_name(other, name, sizeof name), "fake:1");
    assert_string_equal(tn_device_name(other, name, 4), "fak");
    assert_string_equal(tn_device_name(tn_no_device(), name, sizeof name), "(none)");
    assert_string_equal(tn_device_product(other), "Fake device");
    assert_int_equal(tn_device_count("fake"), 2);
    assert_true(tn_device_has_dtype(other, TN_F32));
    assert_false(tn_device_has_dtype(other, TN_F64));
    assert_false(tn_device_has_dtype(other, TN_DTYPE_NONE));
    assert_true(tn_device_flushes_subnormals(other, TN_F32));
    assert_false(tn_device_flushes_subnormals(other, TN_F16));
    assert_false(tn_device_flushes_subnormals(other, TN_DTYPE_NONE));
    assert_int_equal(tni_device_get(other)->ordinal, 1);
    assert_ptr_equal(tni_device_at(0), d);
    assert_null(tni_device_at(2));
}

static void test_what_is_no_name_is_refused(void **state) {
    static const char *const bad[] = {
        "", ":", ":0", "fake:", "fake:x", "fake:-1", "fake:0x1", "fake:999999999", "fake:1:2"};
    open_fake();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_no_device(tn_device_parse(bad[i]));
        assert_error(TN_ERR_INVALID_ARGUMENT, bad[i], NULL);
    }
    assert_no_device(tn_device_parse("Fake:0"));
    assert_error(TN_ERR_INVALID_ARGUMENT, "'Fake' is no device type", NULL);
    assert_no_device(tn_device_parse(NULL));
    assert_error(TN_ERR_INVALID_ARGUMENT, "npu:1", NULL);
}

static void test_an_index_out_of_range_says_what_there_is(void **state) {
    open_fake();
    assert_no_device(tn_device_parse("fake:3"));
    assert_error(TN_ERR_DEVICE, "fake:3: there is 1 device of type fake (fake:0)", NULL);
    assert_no_device(tn_device_parse("meta:1"));
    assert_error(TN_ERR_DEVICE, "there is 1 device of type meta (meta:0)", NULL);
    assert_no_device(tn_device_parse("sim:2"));
    assert_error(TN_ERR_DEVICE, "there are 2 devices of type sim (sim:0 to sim:1)", NULL);
    tn_device fake_5 = tn_device_parse("fake");
    fake_5.index = 5;
    assert_null(tni_device_get(fake_5));
    assert_error(TN_ERR_DEVICE, "fake:5", "1 device", NULL);
    assert_null(tni_device_get((tn_device){77, 0}));
    assert_error(TN_ERR_DEVICE, "tn_device_parse", NULL);
    assert_null(tni_device_get(tn_no_device()));
    assert_error(TN_ERR_DEVICE, "{0, 0}", NULL);
}

static void test_a_type_without_devices_gives_its_reason(void **state) {
    fake.n_devices = 0;
    assert_int_equal(tn_plugin_register(fake_query), TN_OK);
    assert_no_device(tn_device_parse("fake:0"));
    assert_error(TN_ERR_DEVICE, "fake:0", "no devices found", NULL);
    assert_int_equal(tn_device_count("fake"), 0);
    assert_int_equal(tn_error_status(), TN_OK);
}

static void test_a_missing_plugin_is_the_loaders_error(void **state) {
    assert_no_device(tn_device_parse("nosuch:0"));
    assert_error(TN_ERR_NOT_FOUND, "nosuch", NULL);
    assert_int_equal(tn_device_count("nosuch"), 0);
    assert_error(TN_ERR_NOT_FOUND, "nosuch", NULL);
    assert_int_equal(tn_device_count(NULL), 0);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_device_count", NULL);
}

static void test_opening_that_fails_can_be_tried_again(void **state) {
    assert_int_equal(tn_plugin_register(fake_query), TN_OK);
    fake.open_fails = TN_ERR_UNSUPPORTED;
    assert_no_device(tn_device_parse("fake:0"));
    assert_error(TN_ERR_UNSUPPORTED, "fake:0: opening the device: the fake device does not open",
                 NULL);
    fake.open_fails = TN_OK;
    fake.alignment = 3;
    assert_no_device(tn_device_parse("fake:0"));
    assert_error(TN_ERR_ABI, "TN_PROP_ALIGNMENT is 3", "org.tenon.fake", NULL);
    fake.alignment = 64;
    assert_int_not_equal(tn_device_parse("fake:0").type, 0);
}

static void test_opening_survives_each_failing_host_allocation(void **state) {
    fake.async = true;
    assert_int_equal(tn_plugin_register(fake_query), TN_OK);
    tn_device_count("fake");
    tn_device d = tn_no_device();
    int failures = 0;
    for (uint64_t n = 1; d.type == 0; n++) {
        tni_alloc_fail_at(n);
        d = tn_device_parse("fake:0");
        tni_alloc_fail_at(0);
        failures += d.type == 0;
        if (d.type == 0)
            assert_int_equal(tn_error_status(), TN_ERR_OUT_OF_MEMORY);
        tn_error_clear();
    }
    assert_true(failures >= 3);
    tn_shutdown();
    fresh(state);
    fake.async = true;
    assert_int_equal(tn_plugin_register(fake_query), TN_OK);
    for (uint64_t n = 1; n <= 1; n++) { /* the default stream is all that can fail at opening */
        fake_fail_at(n);
        assert_no_device(tn_device_parse("fake:0"));
        assert_error(TN_ERR_OUT_OF_MEMORY, "making a stream", "told to fail", NULL);
    }
    assert_int_not_equal(tn_device_parse("fake:0").type, 0);
}

static void *parse_fake(void *arg) {
    tn_device *d = arg;
    *d = tn_device_parse("fake:0");
    return NULL;
}

static void test_a_device_is_opened_once_by_many_threads(void **state) {
    assert_int_equal(tn_plugin_register(fake_query), TN_OK);
    pthread_t threads[4];
    tn_device devices[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, parse_fake, &devices[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++)
        assert_true(devices[i].type > 0 && tn_device_equal(devices[i], devices[0]));
    assert_int_equal(fake_count().n_devices, 1);
}

static void test_product_is_printable(void **state) {
    char long_name[400];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    fake.n_devices = 2;
    fake.product = "Fast\033[31m\xff chip";
    open_fake();
    assert_string_equal(tn_device_product(tn_device_parse("fake:0")), "Fast?[31m? chip");
    fake.product = long_name;
    assert_int_equal(strlen(tn_device_product(tn_device_parse("fake:1"))), 255);
}

static void test_meta_has_no_memory(void **state) {
    tn_device id = tn_device_parse("meta");
    tni_device *d = tni_device_get(id);
    assert_non_null(d);
    assert_true(d->is_meta);
    assert_string_equal(d->name, "meta:0");
    assert_int_equal(tn_device_count("meta"), 1);
    assert_string_equal(tn_device_product(id), "");
    assert_true(tn_device_has_dtype(id, TN_BF16));
    assert_int_equal(tn_synchronize(id), TN_OK);
    assert_int_equal(tn_stream_synchronize(tn_current_stream(id)), TN_OK);
    assert_null(tni_block_alloc(d, &d->default_stream, 16));
    assert_error(TN_ERR_UNSUPPORTED, "meta:0", NULL);
    assert_null(tn_pinned_alloc(id, 16));
    assert_error(TN_ERR_UNSUPPORTED, "meta:0", NULL);
    assert_null(tn_memory_snapshot(id));
    assert_error(TN_ERR_UNSUPPORTED, "meta:0", NULL);
    assert_int_equal(tn_empty_cache(id), TN_ERR_UNSUPPORTED);
}

/* ---- the default device ------------------------------------------------------------------ */

static void test_the_default_device_comes_from_the_environment(void **state) {
    tni_device *d = open_fake();
    setenv("TENON_DEVICE", "fake:0", 1);
    assert_true(tn_device_equal(tn_default_device(), d->id));
    tn_device meta = tn_device_parse("meta");
    assert_int_equal(tn_set_default_device(meta), TN_OK);
    assert_true(tn_device_equal(tn_default_device(), meta));
    assert_int_equal(tn_set_default_device((tn_device){50, 0}), TN_ERR_DEVICE);
    assert_error(TN_ERR_DEVICE, NULL);
    assert_true(tn_device_equal(tn_default_device(), meta));
}

static void test_a_bad_TENON_DEVICE_is_named_in_the_error(void **state) {
    open_fake();
    setenv("TENON_DEVICE", "fake:7", 1);
    assert_no_device(tn_default_device());
    assert_error(TN_ERR_DEVICE, "TENON_DEVICE=fake:7: ", "there is 1 device", NULL);
    setenv("TENON_DEVICE", "nosuch", 1);
    assert_no_device(tn_default_device());
    assert_error(TN_ERR_NOT_FOUND, "TENON_DEVICE=nosuch: ", NULL);
    setenv("TENON_DEVICE", "fake", 1);
    assert_int_not_equal(tn_default_device().type, 0);
}

static void test_a_standing_error_outlives_a_failing_default(void **state) {
    setenv("TENON_DEVICE", "nosuch", 1);
    tni_fail(TN_ERR_SHAPE, "the first error");
    assert_no_device(tn_default_device());
    assert_int_equal(tn_error_suppressed(), 1);
    assert_error(TN_ERR_SHAPE, "the first error", NULL);
}

/* ---- forks ------------------------------------------------------------------------------- */

/* Runs fn in a forked child; true when it returned true. */
static bool in_child(bool (*fn)(tni_device *), tni_device *d) {
    pid_t pid = fork();
    if (pid == 0)
        _exit(fn(d) ? 0 : 1);
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static tni_block *live_block;

static bool child_is_refused(tni_device *d) {
    uint64_t before = fake_count().n_frees;
    bool ok = tni_block_alloc(d, &d->default_stream, 1 << 20) == NULL;
    ok = ok && tn_error_status() == TN_ERR_STATE && strstr(tn_error_message(), "forked");
    ok = ok && tn_synchronize(d->id) == TN_ERR_STATE;
    ok = ok && tn_stream_create(d->id, 0) == NULL;
    ok = ok && tn_empty_cache(d->id) == TN_ERR_STATE;
    ok = ok && tn_memory_snapshot(d->id) == NULL;
    tni_block_free(live_block);
    tn_error_clear();
    ok = ok && tn_shutdown() == TN_OK;
    return ok && fake_count().n_frees == before;
}

static bool child_works(tni_device *d) {
    tni_block *b = tni_block_alloc(d, &d->default_stream, 3 << 20);
    bool ok = b && tn_synchronize(d->id) == TN_OK;
    tni_block_free(b);
    tni_block_free(live_block);
    ok = ok && tn_shutdown() == TN_OK;
    fake_counts c = fake_count();
    return ok && c.n_allocs == c.n_frees;
}

static void test_a_forked_child_is_refused(void **state) {
    fake.async = true;
    tni_device *d = open_fake();
    live_block = tni_block_alloc(d, &d->default_stream, 100);
    assert_true(in_child(child_is_refused, d));
    assert_int_equal(tn_synchronize(d->id), TN_OK);
    tni_block_free(live_block);
}

static bool child_was_told(tni_device *d) {
    fake_counts c = fake_count();
    return c.n_before_fork == 1 && c.n_after_fork[1] == 1 && c.n_after_fork[0] == 0;
}

static bool child_was_told_nothing(tni_device *d) {
    fake_counts c = fake_count();
    return c.n_before_fork == 0 && c.n_after_fork[1] == 0;
}

static void test_a_fork_safe_plugin_is_told_of_forks(void **state) {
    fake.fork_safe = true;
    fake.n_devices = 2;
    assert_true(in_child(child_was_told_nothing, NULL)); /* no device is open */
    tni_device *d = open_fake();
    assert_int_equal(tn_device_parse("fake:1").index, 1);
    assert_non_null(tni_device_get(tn_device_parse("fake:1")));
    assert_true(in_child(child_was_told, d));
    fake_counts c = fake_count();
    assert_int_equal(c.n_before_fork, 1);
    assert_int_equal(c.n_after_fork[0], 1);
    assert_int_equal(c.n_after_fork[1], 0);
}

static void test_a_plugin_that_is_not_fork_safe_is_told_nothing(void **state) {
    assert_true(in_child(child_was_told_nothing, open_fake()));
}

static void test_a_fork_safe_plugin_works_in_the_child(void **state) {
    fake.fork_safe = true;
    tni_device *d = open_fake();
    live_block = tni_block_alloc(d, &d->default_stream, 100);
    assert_true(in_child(child_works, d));
    tni_block_free(live_block);
}

/* ---- loss -------------------------------------------------------------------------------- */

static void test_a_lost_device_fails_cleanly_and_takes_back(void **state) {
    fake.async = true;
    fake.n_devices = 2;
    tni_device *d = open_fake(), *other = tni_device_get(tn_device_parse("fake:1"));
    tni_block *b = tni_block_alloc(d, &d->default_stream, 4 << 20);
    assert_non_null(b);
    tn_stream *s = tn_stream_create(d->id, 0);
    assert_int_equal(tni_block_record_stream(b, s), TN_OK);
    void *pinned = tn_pinned_alloc(d->id, 1000);
    fake_lose();
    assert_int_equal(tn_synchronize(d->id), TN_ERR_DEVICE_LOST);
    assert_error(TN_ERR_DEVICE_LOST, "fake:0", "the fake device was lost", NULL);
    assert_true(atomic_load(&d->lost));
    assert_false(atomic_load(&other->lost));
    assert_null(tni_block_alloc(d, &d->default_stream, 1));
    assert_error(TN_ERR_DEVICE_LOST, "fake:0: the device was lost", NULL);
    assert_null(tn_pinned_alloc(d->id, 5));
    assert_error(TN_ERR_DEVICE_LOST, NULL);
    tni_block_free(b);
    tn_pinned_free(pinned);
    assert_int_equal(tn_error_status(), TN_OK);
    assert_int_equal(tn_empty_cache(d->id), TN_OK);
    assert_int_equal(fake_count().live_bytes, 0);
    assert_int_equal(fake_count().live_pinned_bytes, 0);
    tn_stream_drop(s);
}

static void test_loss_is_noticed_by_an_allocation(void **state) {
    tni_device *d = open_fake();
    fake_lose();
    assert_null(tni_block_alloc(d, &d->default_stream, 1));
    assert_error(TN_ERR_DEVICE_LOST, "fake:0: allocating", NULL);
    assert_true(atomic_load(&d->lost));
}

/* ---- threads ----------------------------------------------------------------------------- */

static void test_the_number_of_threads_reaches_plugins(void **state) {
    assert_int_equal(tn_set_num_threads(0), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_set_num_threads", NULL);
    assert_true(tn_get_num_threads() >= 1);
    setenv("TENON_NUM_THREADS", "5", 1);
    assert_int_equal(tn_get_num_threads(), 5);
    open_fake();
    assert_int_equal(fake.threads, 5);
    assert_int_equal(tn_set_num_threads(3), TN_OK);
    assert_int_equal(fake.threads, 3);
    assert_int_equal(tn_get_num_threads(), 3);
}

static void test_a_device_opened_later_learns_the_number(void **state) {
    assert_int_equal(tn_set_num_threads(2), TN_OK);
    open_fake();
    assert_int_equal(fake.threads, 2);
}

static void test_without_a_wish_the_device_decides(void **state) {
    open_fake();
    assert_int_equal(fake.threads, 0);
    assert_int_equal(tn_get_num_threads(), 7);
}

/* ---- the end ----------------------------------------------------------------------------- */

static void test_the_library_can_be_used_again(void **state) {
    for (int i = 0; i < 3; i++) {
        fake.async = true;
        tni_device *d = open_fake();
        tni_block *b = tni_block_alloc(d, &d->default_stream, 100);
        assert_non_null(b);
        tni_block_free(b);
        assert_int_equal(tn_shutdown(), TN_OK);
        fake_counts c = fake_count();
        assert_int_equal(c.n_allocs, c.n_frees);
        assert_int_equal(c.n_devices, 0);
    }
}

static void test_shutdown_waits_for_the_last_tensor(void **state) {
    tni_device *d = open_fake();
    int64_t sizes[] = {2, 3};
    tn_tensor *kept = tni_tensor_new(d, TN_F32, 2, sizes),
              *held = tni_tensor_new(d, TN_F32, 2, sizes);
    assert_non_null(tni_scope_push(held));
    assert_int_equal(tn_shutdown(), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "2 tensors are alive (1 held by this thread's scopes)", NULL);
    tni_drop(kept);
    assert_int_equal(tn_shutdown(), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "1 tensor is alive (1 held", NULL);
    assert_int_equal(tn_synchronize(d->id), TN_OK); /* nothing was shut down */
    tn_scope_close(0);
    assert_int_equal(tn_shutdown(), TN_OK);
}

/* Uses the library, waits until it was shut down and started again, and uses it once more. */
typedef struct bystander {
    tni_device *_Atomic device;
    _Atomic int stage;
    bool ok;
} bystander;

static bool use(tni_device *d) {
    tn_stream *s = tn_stream_create(d->id, 0);
    bool ok = s && tn_set_current_stream(s) == TN_OK && tn_current_stream(d->id) == s;
    tn_stream_drop(s);
    tni_block *b = tni_block_alloc(d, &d->default_stream, 100);
    ok = ok && b;
    tni_block_free(b);
    b = tni_block_alloc(d, &d->default_stream, 3 << 20);
    ok = ok && b;
    tni_block_free(b);
    return ok;
}

static void *stand_by(void *arg) {
    bystander *t = arg;
    t->ok = use(t->device);
    atomic_store(&t->stage, 1);
    while (atomic_load(&t->stage) != 2)
        usleep(100);
    tni_device *d = t->device;
    t->ok = t->ok && (!d || (tn_current_stream(d->id) == &d->default_stream && use(d)));
    return NULL;
}

static void outlive_shutdown(bool use_again) {
    fake.async = true;
    bystander t = {.device = open_fake()};
    pthread_t thread;
    pthread_create(&thread, NULL, stand_by, &t);
    while (atomic_load(&t.stage) != 1)
        usleep(100);
    assert_int_equal(tn_shutdown(), TN_OK);
    t.device = use_again ? open_fake() : NULL;
    atomic_store(&t.stage, 2);
    pthread_join(thread, NULL);
    assert_true(t.ok);
}

static void test_a_thread_may_outlive_a_shutdown(void **state) {
    outlive_shutdown(false);
}

static void test_a_thread_may_go_on_after_a_shutdown(void **state) {
    outlive_shutdown(true);
}

/* ---- the simulated chip ------------------------------------------------------------------ */

static void test_the_simulated_chip_opens(void **state) {
    tni_device *d = tni_device_get(tn_device_parse("sim:1"));
    assert_non_null(d);
    assert_int_equal(d->alignment, 256);
    assert_non_null(d->streams);
    assert_string_equal(d->product, "Tenon simulated chip");
    assert_int_equal(tn_device_count("sim"), 2);
}

/* A log function that asks for devices while one is opened is told so, and the opening goes on. */
static int n_told;

static void ask_for_devices(void *user, int32_t level, const char *subsystem, const char *line) {
    if (!strstr(line, "fake:1 is open"))
        return;
    n_told++;
    assert_int_equal(tn_device_parse("fake:2").type, 0);
    assert_error(TN_ERR_STATE, "log function", "a device is opened", NULL);
    assert_int_equal(tn_shutdown(), TN_ERR_STATE);
    tn_error_clear();
    assert_int_equal(tn_device_parse("fake:0").index, 0); /* is open */
    assert_int_equal(tn_error_status(), TN_OK);
}

static void test_a_log_function_may_ask_for_devices(void **state) {
    fake.n_devices = 3;
    open_fake();
    n_told = 0;
    tn_log_set(TN_LOG_INFO, ask_for_devices, NULL);
    tn_device d = tn_device_parse("fake:1");
    tn_log_set(-1, NULL, NULL);
    assert_int_equal(d.index, 1);
    assert_int_equal(n_told, 1);
    assert_int_equal(tn_error_status(), TN_OK);
    assert_int_equal(tn_device_parse("fake:2").index, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_a_device_is_opened_by_its_name),
        TEST(test_what_is_no_name_is_refused),
        TEST(test_an_index_out_of_range_says_what_there_is),
        TEST(test_a_type_without_devices_gives_its_reason),
        TEST(test_a_missing_plugin_is_the_loaders_error),
        TEST(test_opening_that_fails_can_be_tried_again),
        TEST(test_opening_survives_each_failing_host_allocation),
        TEST(test_a_device_is_opened_once_by_many_threads),
        TEST(test_product_is_printable),
        TEST(test_meta_has_no_memory),
        TEST(test_the_default_device_comes_from_the_environment),
        TEST(test_a_bad_TENON_DEVICE_is_named_in_the_error),
        TEST(test_a_standing_error_outlives_a_failing_default),
        TEST(test_a_forked_child_is_refused),
        TEST(test_a_fork_safe_plugin_works_in_the_child),
        TEST(test_a_fork_safe_plugin_is_told_of_forks),
        TEST(test_a_plugin_that_is_not_fork_safe_is_told_nothing),
        TEST(test_a_lost_device_fails_cleanly_and_takes_back),
        TEST(test_loss_is_noticed_by_an_allocation),
        TEST(test_the_number_of_threads_reaches_plugins),
        TEST(test_a_device_opened_later_learns_the_number),
        TEST(test_without_a_wish_the_device_decides),
        TEST(test_the_library_can_be_used_again),
        TEST(test_shutdown_waits_for_the_last_tensor),
        TEST(test_a_thread_may_outlive_a_shutdown),
        TEST(test_a_thread_may_go_on_after_a_shutdown),
        TEST(test_the_simulated_chip_opens),
        TEST(test_a_log_function_may_ask_for_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
