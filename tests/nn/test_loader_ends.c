/* Loaders where something goes wrong or ends: errors of callbacks, the end at any time, copies. */
#define _GNU_SOURCE
#include "tests/nn/numbers.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- errors of callbacks ----------------------------------------------------------------- */

static void an_error_comes_in_its_batchs_turn_wherever_it_is(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 10);
    for (int w = 0; w < 3; w++)
        for (int64_t at = 0; at < 10; at++) {
            tn_data_loader *l = loader_of(
                &d, (tn_data_loader_options){.batch_size = 3, .n_workers = worker_counts[w]});
            atomic_store(&n.fails_at, at);
            assert_ok(tn_data_loader_set_state(l, &(tn_data_loader_state){0}));
            trace t;
            follow(l, (int)at / 3, &t);
            assert_int_equal(t.n, at / 3 * 3);
            char sample[32];
            snprintf(sample, sizeof sample, "sample %d: ", (int)at);
            for (int again = 0; again < 2; again++) {
                tn_data_batch b;
                memset(&b, 1, sizeof b);
                assert_int_equal(tn_data_loader_next(l, &b), TN_ERR_IO);
                assert_error(TN_ERR_IO, "tn_data_loader_next: ", sample, "a page is torn out",
                             NULL);
                assert_true(b.n == 0 && b.n_fields == 0 && !b.fields[0] && !b.indices);
                tn_data_loader_state stands;
                assert_ok(tn_data_loader_get_state(l, &stands));
                assert_int_equal(stands.position, at / 3 * 3);
            }
            /* Past it, and once it is mended. */
            if (at < 9) {
                assert_ok(tn_data_loader_set_state(l, &(tn_data_loader_state){0, 0, at + 1}));
                follow(l, 1, &t);
                assert_int_equal(t.at[0], at + 1);
            }
            atomic_store(&n.fails_at, -1);
            assert_ok(tn_data_loader_set_state(l, &(tn_data_loader_state){0, 0, at / 3 * 3}));
            follow(l, 1, &t);
            assert_int_equal(t.at[0], at / 3 * 3);
            tn_data_loader_destroy(l);
        }
}

static void the_next_call_tries_again(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 4);
    for (int w = 0; w < 3; w++) {
        atomic_store(&n.fails_at, 0);
        tn_data_loader *l =
            loader_of(&d, (tn_data_loader_options){.batch_size = 2, .n_workers = worker_counts[w]});
        tn_data_batch b;
        assert_int_equal(tn_data_loader_next(l, &b), TN_ERR_IO);
        assert_error(TN_ERR_IO, "sample 0", NULL);
        atomic_store(&n.fails_at, -1);
        /* Workers may have read ahead, and failed, before that. */
        tn_status status = tn_data_loader_next(l, &b);
        if (status != TN_OK) {
            tn_error_clear();
            status = tn_data_loader_next(l, &b);
        }
        assert_ok(status);
        check_batch(&b);
        tn_data_loader_destroy(l);
    }
}

static void callbacks_that_break_rules_are_told_all_the_same(void **state) {
    static const struct {
        tn_status status, told;
        const char *text, *says;
    } cases[] = {{TN_ERR_SHAPE, TN_ERR_SHAPE, NULL, "sample 1: sizes, strides or ranks"},
                 {TN_NOT_READY, TN_NOT_READY, NULL, "sample 1: work is still running"},
                 {(tn_status)77, TN_ERR_INTERNAL, NULL, "returned 77, which is no tn_status"},
                 {(tn_status)-1, TN_ERR_INTERNAL, NULL, "returned -1, which is no tn_status"},
                 {TN_ERR_IO, TN_ERR_IO, "100% of %s\n", "100% of %s"}};
    numbers n;
    tn_dataset d = dataset_of(&n, 4);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int w = 0; w < 2; w++) {
            n.status = cases[i].status;
            n.text = cases[i].text;
            atomic_store(&n.fails_at, 1);
            tn_data_loader *l = loader_of(
                &d, (tn_data_loader_options){.batch_size = 2, .n_workers = worker_counts[w]});
            tn_data_batch b;
            assert_int_equal(tn_data_loader_next(l, &b), cases[i].told);
            assert_error(cases[i].told, cases[i].says, NULL);
            /* An error that stands stays the first one. */
            tn_fail(TN_ERR_DTYPE, "an older one");
            assert_int_equal(tn_data_loader_next(l, &b), cases[i].told);
            assert_error(TN_ERR_DTYPE, "an older one", NULL);
            tn_data_loader_destroy(l);
        }
    /* Success with an error left behind is success. */
    n.status = TN_OK;
    tn_data_loader *l = loader_of(&d, (tn_data_loader_options){.batch_size = 2});
    trace t;
    follow(l, 2, &t);
    assert_int_equal(tn_error_status(), TN_OK);
    tn_data_loader_destroy(l);
}

static void an_error_of_a_transform_comes_like_the_datasets(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 4);
    if (!tn_device_has_dtype(dev, TN_F64))
        skip();
    int64_t fails_at = 2;
    for (uint32_t workers = 0; workers < 2; workers++) {
        tn_data_loader_options o = drawing(&fails_at);
        o.n_workers = workers;
        tn_data_loader *l = loader_of(&d, o);
        tn_data_batch b;
        assert_int_equal(tn_data_loader_next(l, &b), TN_ERR_UNSUPPORTED);
        assert_error(TN_ERR_UNSUPPORTED, "sample 2: sample with a beard", NULL);
        tn_data_loader_destroy(l);
    }
}

static tn_data_loader *own;

static tn_status call_own_loader(void *user, int64_t index, void *const *out) {
    tn_data_batch b;
    tn_data_loader *l;
    while (!(l = __atomic_load_n(&own, __ATOMIC_ACQUIRE)))
        usleep(100);
    tn_data_loader_destroy(l);
    if (tn_error_status() != TN_ERR_STATE)
        return tn_fail(TN_ERR_INTERNAL, "destroyed");
    tn_error_clear();
    tn_status status = tn_data_loader_set_state(l, &(tn_data_loader_state){0});
    return status == TN_ERR_STATE ? tn_data_loader_next(l, &b) : TN_ERR_INTERNAL;
}

static void a_callback_that_calls_its_loader_is_refused(void **state) {
    for (uint32_t workers = 0; workers < 2; workers++) {
        numbers n;
        tn_dataset d = dataset_of(&n, 4);
        d.read = call_own_loader;
        own = NULL;
        tn_data_loader *l =
            loader_of(&d, (tn_data_loader_options){.batch_size = 2, .n_workers = workers});
        __atomic_store_n(&own, l, __ATOMIC_RELEASE);
        tn_data_batch b;
        assert_int_equal(tn_data_loader_next(l, &b), TN_ERR_STATE);
        assert_error(TN_ERR_STATE, "from a callback of this very loader", NULL);
        tn_data_loader_destroy(l);
    }
}

/* Makes tensors, for which each thread has a scope. */
static tn_status read_by_operators(void *user, int64_t index, void *const *out) {
    uint64_t held = tn_scope_held();
    tn_tensor *t = tn_mul_scalar(
        tn_full(TN_SHAPE(2), tn_int(index), TN_F32, tn_device_parse("cpu:0")), tn_float(2));
    tn_status status = tn_to_host(t, out[1], 2 * sizeof(float));
    *(int64_t *)out[0] = (int64_t)held;
    return status;
}

static void callbacks_may_call_operators(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 6);
    d.read = read_by_operators;
    for (int w = 0; w < 3; w++) {
        tn_data_loader *l =
            loader_of(&d, (tn_data_loader_options){.batch_size = 6, .n_workers = worker_counts[w]});
        uint64_t held = tn_scope_held();
        tn_data_batch b;
        assert_ok(tn_data_loader_next(l, &b));
        assert_int_equal(tn_scope_held(), held + 2);
        assert_elements(tn_select(b.fields[1], 1, 0), TN_SHAPE(6), 0, 2, 4, 6, 8, 10);
        if (worker_counts[w]) /* scopes of its own, which each sample leaves empty */
            assert_elements(b.fields[0], TN_SHAPE(6), 0, 0, 0, 0, 0, 0);
        tn_data_loader_destroy(l);
    }
}

/* ---- ends -------------------------------------------------------------------------------- */

static void a_loader_can_end_at_any_time(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 9);
    for (int w = 0; w < 3; w++)
        for (int calls = 0; calls < 8; calls++) {
            tn_data_loader *l = loader_of(
                &d, (tn_data_loader_options){
                        .batch_size = 2, .shuffle = calls % 2, .n_workers = worker_counts[w]});
            trace t;
            follow(l, calls, &t);
            if (calls == 5)
                usleep(2000); /* the ring is full */
            tn_data_loader_destroy(l);
        }
    tn_data_loader_destroy(NULL);
}

static atomic_int n_waiting;
static tn_status read_slowly(void *user, int64_t index, void *const *out) {
    atomic_fetch_add(&n_waiting, 1);
    usleep(20000);
    return read_number(user, index, out);
}

/* A worker in the middle of a batch stops at its next sample. */
static void the_end_waits_for_one_sample_only(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 100000);
    d.read = read_slowly;
    atomic_store(&n_waiting, 0);
    tn_data_loader *l =
        loader_of(&d, (tn_data_loader_options){.batch_size = 50000, .n_workers = 2});
    while (atomic_load(&n_waiting) < 2)
        usleep(100);
    assert_ok(tn_data_loader_set_state(l, &(tn_data_loader_state){0, 0, 50000}));
    while (atomic_load(&n_waiting) < 4)
        usleep(100);
    tn_data_loader_destroy(l);
    assert_in_range(atomic_load(&n.n_reads), 4, 1000);
}

static tn_status read_signals(void *user, int64_t index, void *const *out) {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    *(int64_t *)out[0] = sigismember(&blocked, SIGUSR1) + sigismember(&blocked, SIGTERM);
    memset(out[1], 0, 8);
    return TN_OK;
}

static void workers_take_no_signals(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 2);
    d.read = read_signals;
    tn_data_loader *l = loader_of(&d, (tn_data_loader_options){.batch_size = 2, .n_workers = 1});
    tn_data_batch b;
    assert_ok(tn_data_loader_next(l, &b));
    assert_elements(b.fields[0], TN_SHAPE(2), 2, 2);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    assert_int_equal(sigismember(&blocked, SIGUSR1), 0);
    tn_data_loader_destroy(l);
}

/* In the child of a fork there are no workers; a loader without goes on. */
static void a_forked_child_can_end_its_parents_loaders(void **state) {
    if (strcmp(*state, "cpu:0") != 0)
        return;
    numbers n;
    tn_dataset d = dataset_of(&n, 9);
    tn_data_loader *with = loader_of(&d, (tn_data_loader_options){.batch_size = 2, .n_workers = 3});
    tn_data_loader *without = loader_of(&d, (tn_data_loader_options){.batch_size = 2});
    trace t;
    follow(with, 2, &t);
    follow(without, 2, &t);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        tn_data_batch b;
        bool good = tn_data_loader_next(with, &b) == TN_ERR_STATE &&
                    strstr(tn_error_message(), "not in a forked child");
        tn_error_clear();
        good = good && tn_data_loader_next(without, &b) == TN_OK && b.n == 2 && b.indices[0] == 4;
        tn_data_loader_destroy(with);
        tn_data_loader_destroy(without);
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    follow(with, 1, &t);
    assert_trace(&t, 4, 5);
    tn_data_loader_destroy(with);
    tn_data_loader_destroy(without);
}

/* ---- copies ------------------------------------------------------------------------------ */

/* On a chip whose streams overtake each other no batch is read before it is there, and none is
 * overwritten by the next one of its slot. */
static int on_slow_sim(void **state) {
    setenv("TENON_SIM_DELAY", "300", 1);
    *state = "sim:0";
    return on_device(state);
}

static int leave_slow_sim(void **state) {
    unsetenv("TENON_SIM_DELAY");
    return leave_device(state);
}

static void copies_are_awaited_by_streams_and_slots(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 64);
    for (uint32_t workers = 0; workers < 3; workers++) {
        TN_SCOPE;
        tn_data_loader *l =
            loader_of(&d, (tn_data_loader_options){
                              .batch_size = 2, .n_workers = workers, .prefetch = workers ? 1 : 0});
        tn_stream *own_stream = tn_stream_create(dev, 0), *before = tn_current_stream(dev);
        tn_tensor *sums[32];
        for (int i = 0; i < 32; i++) {
            tn_data_batch b;
            assert_ok(tn_set_current_stream(i % 2 ? own_stream : before));
            assert_ok(tn_data_loader_next(l, &b));
            assert_ptr_equal(tn_current_stream(dev), i % 2 ? own_stream : before);
            sums[i] = tn_sum(b.fields[1]);
            tn_free(b.fields[0]);
            tn_free(b.fields[1]);
        }
        for (int i = 0; i < 32; i++) { /* 2 i, 2 i + 1/2, 2 i + 1, 2 i + 3/2 */
            assert_ok(tn_set_current_stream(i % 2 ? own_stream : before));
            assert_close(sums[i], 0, TN_SCALAR_SHAPE, 8 * i + 3);
        }
        assert_ok(tn_set_current_stream(before));
        tn_data_loader_destroy(l);
        tn_stream_drop(own_stream);
    }
}

/* What fails on the way to the device is tried again by the next call. */
static int on_failing_sim(void **state) {
    setenv("TENON_SIM_FAIL", "write:2,record:3,wait:2", 1);
    *state = "sim:0";
    return on_device(state);
}

static int leave_failing_sim(void **state) {
    unsetenv("TENON_SIM_FAIL");
    return leave_device(state);
}

static void a_copy_that_fails_is_made_again(void **state) {
    numbers n;
    tn_dataset d = dataset_of(&n, 12);
    for (uint32_t workers = 0; workers < 2; workers++) {
        tn_data_loader *l =
            loader_of(&d, (tn_data_loader_options){.batch_size = 3, .n_workers = workers});
        int failures = 0;
        for (int i = 0; i < 4;) {
            TN_SCOPE;
            tn_data_batch b;
            tn_status status = tn_data_loader_next(l, &b);
            if (status != TN_OK) {
                assert_true(b.n == 0 && ++failures < 9);
                assert_int_equal(tn_error_status(), status);
                tn_error_clear();
                continue;
            }
            assert_int_equal(tn_error_status(), TN_OK);
            assert_int_equal(b.indices[0], 3 * i++);
            check_batch(&b);
        }
        assert_true(failures > 0 || workers > 0);
        tn_data_loader_destroy(l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(an_error_comes_in_its_batchs_turn_wherever_it_is),
        OPS_TEST(the_next_call_tries_again),
        OPS_TEST(callbacks_that_break_rules_are_told_all_the_same),
        OPS_TEST(an_error_of_a_transform_comes_like_the_datasets),
        OPS_TEST(a_callback_that_calls_its_loader_is_refused),
        OPS_TEST(callbacks_may_call_operators),
        OPS_TEST(a_loader_can_end_at_any_time),
        OPS_TEST(the_end_waits_for_one_sample_only),
        OPS_TEST(workers_take_no_signals),
        OPS_TEST(a_forked_child_can_end_its_parents_loaders),
        cmocka_unit_test_setup_teardown(copies_are_awaited_by_streams_and_slots, on_slow_sim,
                                        leave_slow_sim),
        cmocka_unit_test_setup_teardown(a_copy_that_fails_is_made_again, on_failing_sim,
                                        leave_failing_sim),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
