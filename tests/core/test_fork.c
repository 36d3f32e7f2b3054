/* Forks: a child of threads that are idle, busy or stuck computes, makes threads of its own, shuts
 * down and ends. Each child has an alarm, so that one that hangs is a failure and not a wait. */
#include "tests/core/core_test.h"

#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <tenon/tenon.h>

enum { N_FORKS = 16, SECONDS = 60 };
enum { N_THREADS = 6 };

/* Tests in which threads allocate as the process forks. */
#define BUSY "test_a_child_of_threads_*"

/* ---- what a child does ------------------------------------------------------------------- */

/* Sums, products and gradients of a few sizes, with known values. */
static bool computes(void) {
    TN_SCOPE;
    for (int64_t n = 2; n <= 66; n += 32) {
        tn_tensor *x = tn_set_requires_grad(tn_full(TN_SHAPE(n, n), tn_float(2)), true);
        tn_tensor *loss = tn_sum(tn_relu(tn_matmul(x, tn_add(tn_ones_like(x), tn_zeros_like(x)))));
        double value = 0, slope = 0;
        if (tn_backward(loss) || tn_item(loss, &value) || tn_item(tn_sum(tn_grad(x)), &slope))
            return false;
        if (value != 2.0 * (double)(n * n * n) || slope != (double)(n * n * n))
            return false;
    }
    return true;
}

static void *compute_in_thread(void *user) {
    atomic_int *n_right = user;
    for (int i = 0; i < 2; i++)
        atomic_fetch_add(n_right, computes());
    return NULL;
}

/* Threads of whom the first have the memory that the parent's threads had. */
static bool threads_compute(void) {
    pthread_t threads[N_THREADS];
    atomic_int n_right = 0;
    for (int i = 0; i < N_THREADS; i++)
        if (pthread_create(&threads[i], NULL, compute_in_thread, &n_right))
            return false;
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    return n_right == 2 * N_THREADS;
}

static void must(bool ok, const char *what) {
    if (ok)
        return;
    fprintf(stderr, "child: %s: %s\n", what, tn_error_message());
    _exit(1);
}

/* All of it, twice over: after tn_shutdown the library starts anew. */
static void live(void) {
    for (int round = 0; round < 2; round++) {
        must(computes(), "computing");
        must(threads_compute(), "computing in threads");
        must(tni_tensors_alive() >= 0, "counting tensors");
        must(tn_shutdown() == TN_OK, "tn_shutdown");
    }
}

/* Such a crash may not come again: it says where it was. */
static void say_where(int number) {
    void *frames[64];
    backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
    signal(number, SIG_DFL);
    raise(number);
}

static pid_t fork_with_alarm(void) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGABRT, say_where);
        signal(SIGSEGV, say_where);
        alarm(SECONDS);
    }
    return pid;
}

/* Says what went wrong with a child. */
static bool ends_well(pid_t pid) {
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return false;
    if (WIFSIGNALED(status))
        fprintf(stderr, "child: %s (signal %d)\n", WTERMSIG(status) == SIGALRM ? "hung" : "crashed",
                WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool child_is_well(void (*body)(void)) {
    pid_t pid = fork_with_alarm();
    if (pid == 0) {
        body();
        _exit(0);
    }
    return ends_well(pid);
}

/* ---- threads of the parent --------------------------------------------------------------- */

typedef void (*work)(uint32_t i);

static atomic_bool stop;
static atomic_int n_running;
static tn_tensor *leaf; /* of all threads */

static void *work_until_stop(void *fn) {
    work work_once = *(work *)fn;
    work_once(0);
    atomic_fetch_add(&n_running, 1);
    for (uint32_t i = 1; !atomic_load(&stop); i++)
        work_once(i);
    return NULL;
}

static void live_without_leaf(void) {
    tn_drop(leaf);
    live();
}

/* Forks again and again while threads do what `works` says, by turns. */
static void fork_beside(work *works, int n_works, int n_forks) {
    pthread_t threads[N_THREADS];
    atomic_store(&stop, false);
    atomic_store(&n_running, 0);
    leaf = tn_keep(tn_set_requires_grad(tn_full(TN_SHAPE(8), tn_float(1)), true));
    tn_scope_close(0);
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_until_stop, &works[i % n_works]),
                         0);
    while (atomic_load(&n_running) < N_THREADS)
        sched_yield();
    bool well = true;
    for (int i = 0; i < n_forks && well; i++)
        well = child_is_well(live_without_leaf);
    atomic_store(&stop, true);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    tn_drop(leaf);
    tn_scope_close(0);
    tn_profile_stop();
    assert_true(well);
}

static void idle(uint32_t i) {
    if (i > 0) {
        usleep(1000);
        return;
    }
    computes();
    tn_ones(TN_SHAPE(4)); /* stays with the thread's scope */
    tn_drop(tn_keep(leaf));
}

static void operators(uint32_t i) {
    computes();
}

static void large_and_small(uint32_t i) {
    TN_SCOPE;
    tn_tensor *kept[40];
    for (int k = 0; k < 40; k++)
        kept[k] = tn_keep(tn_zeros(TN_SHAPE((int64_t)(i * 37 + (uint32_t)k * 911) % 40000 + 1)));
    for (int k = 0; k < 40; k++)
        tn_drop(kept[k]);
    if (i % 16 == 0)
        tn_empty_cache(tn_default_device());
}

/* A leaf, a view and hooks that all threads have in common. */
static void shared_gradients(uint32_t i) {
    TN_SCOPE;
    tn_tensor *y = tn_mul(leaf, tn_rand(TN_SHAPE(8)));
    tn_tensor *part = tn_narrow(y, 0, 1, 3);
    tn_add_(part, tn_ones(TN_SHAPE(3)));
    tn_retain_grad(y);
    tn_backward(tn_sum(y));
}

static void *compute_once(void *user) {
    computes();
    return NULL;
}

static void threads_that_end(uint32_t i) {
    pthread_t thread;
    if (!pthread_create(&thread, NULL, compute_once, NULL))
        pthread_join(thread, NULL);
}

static void drop_line(void *user, int32_t level, const char *subsystem, const char *line) {}

static void ignore_plugin(const tn_plugin_info *info, void *user) {}

static void ignore_op(const tn_op_info *info, void *user) {}

static void lists_and_logs(uint32_t i) {
    tn_log_set(i % 8 ? TN_LOG_WARN : TN_LOG_TRACE, drop_line, NULL);
    tn_plugin_list(false, ignore_plugin, NULL);
    tn_device_count("sim");
    tn_device_count(i % 2 ? "nosuch" : "cpu");
    tn_error_clear();
    if (i % 8 == 0)
        tn_op_list(ignore_op, NULL);
}

static void registrations(uint32_t i) {
    char schema[64];
    snprintf(schema, sizeof schema, "fork::op%lu(Tensor self) -> Tensor",
             (unsigned long)pthread_self() % 100000);
    tn_registration *op = NULL;
    tn_op_define(schema, "test", &op);
    if (op)
        tn_registration_drop(op);
    tn_error_clear();
}

static void ignore_event(const tn_profile_event *event, void *user) {}

static void profiles(uint32_t i) {
    computes();
    if (i % 4 == 0) {
        tn_profile_start();
        computes();
        tn_profile_events(ignore_event, NULL, NULL);
        tn_profile_stop();
    }
    tn_error_clear();
}

static void streams(uint32_t i) {
    TN_SCOPE;
    tn_device sim = tn_device_parse("sim:0");
    tn_stream *before = tn_current_stream(sim), *s = tn_stream_create(sim, 0);
    if (!s)
        return;
    tn_set_current_stream(s);
    tn_tensor *x = tn_ones(TN_SHAPE(64), TN_F32, sim);
    tn_add(x, x);
    if (i % 4 == 0)
        tn_pinned_free(tn_pinned_alloc(sim, 4096));
    tn_set_current_stream(before);
    tn_stream_drop(s);
}

static void test_a_child_of_idle_threads(void **state) {
    fork_beside((work[]){idle}, 1, N_FORKS / 2);
}

static void test_a_child_of_threads_that_call_operators(void **state) {
    fork_beside((work[]){operators}, 1, N_FORKS);
}

static void test_a_child_of_threads_that_allocate(void **state) {
    fork_beside((work[]){large_and_small}, 1, N_FORKS);
}

static void test_a_child_of_threads_that_share_gradients(void **state) {
    fork_beside((work[]){shared_gradients}, 1, N_FORKS);
}

static void test_a_child_of_threads_that_come_and_go(void **state) {
    fork_beside((work[]){threads_that_end}, 1, N_FORKS);
}

static void test_a_child_of_threads_that_look_for_plugins_and_log(void **state) {
    fork_beside((work[]){lists_and_logs, registrations}, 2, N_FORKS);
    tn_log_set(-1, NULL, NULL);
}

static void test_a_child_of_threads_that_profile(void **state) {
    fork_beside((work[]){profiles}, 1, N_FORKS);
}

static void test_a_child_of_threads_on_streams(void **state) {
    fork_beside((work[]){streams}, 1, N_FORKS);
}

static void test_a_child_of_threads_that_do_all_of_it(void **state) {
    fork_beside((work[]){operators, shared_gradients, threads_that_end, lists_and_logs, profiles,
                         large_and_small},
                6, N_FORKS);
    tn_log_set(-1, NULL, NULL);
}

/* ---- threads at their end ---------------------------------------------------------------- */

static pthread_key_t first_key; /* before the library's: glibc calls its destructor first */

static void stay_at_end(void *user) {
    atomic_fetch_add(&n_running, 1);
    while (!atomic_load(&stop))
        usleep(1000);
}

static void *compute_and_stay(void *user) {
    pthread_setspecific(first_key, &first_key);
    computes();
    return NULL;
}

static void live_in_threads(void) {
    must(threads_compute(), "computing in threads at once");
    live();
}

static void test_a_child_of_ending_threads(void **state) {
    pthread_t threads[N_THREADS];
    atomic_store(&stop, false);
    atomic_store(&n_running, 0);
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, compute_and_stay, NULL), 0);
    while (atomic_load(&n_running) < N_THREADS)
        sched_yield();
    bool well = child_is_well(live_in_threads);
    atomic_store(&stop, true);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(well);
}

/* ---- generations ------------------------------------------------------------------------- */

static work of_generations; /* what their threads do */

/* A thread that has begun. */
static bool begin_thread(pthread_t *out) {
    atomic_store(&n_running, 0);
    if (pthread_create(out, NULL, work_until_stop, &of_generations))
        return false;
    while (atomic_load(&n_running) == 0)
        sched_yield();
    return true;
}

static void live_and_fork(void) {
    pthread_t thread;
    must(computes(), "computing");
    must(begin_thread(&thread), "a thread");
    for (int i = 0; i < 5; i++) {
        must(child_is_well(live), "its child");
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    live();
}

static void generations(work of) {
    leaf = NULL;
    of_generations = of;
    computes();
    atomic_store(&stop, false);
    assert_true(child_is_well(live_and_fork));
    pthread_t thread;
    assert_true(begin_thread(&thread));
    bool well = child_is_well(live_and_fork);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    assert_true(well);
}

static void test_a_child_of_a_child(void **state) {
    generations(idle);
}

static void test_a_child_of_threads_that_forks(void **state) {
    generations(operators);
}

/* ---- forks inside of calls --------------------------------------------------------------- */

static pid_t forked; /* 0: not yet; -1: this is the child */

static void fork_at_line(void *user, int32_t level, const char *subsystem, const char *line) {
    if (forked || !strstr(line, user))
        return;
    forked = fork_with_alarm();
    if (forked == 0)
        forked = -1;
}

/* Forks inside the log function, at a line that has `text`; both go on from there. */
static void fork_at(char *text) {
    forked = 0;
    tn_log_set(TN_LOG_TRACE, fork_at_line, text);
    bool right = computes();
    tn_log_set(-1, NULL, NULL);
    if (forked == -1) {
        must(right, "going on after the fork");
        live();
        _exit(0);
    }
    assert_true(forked > 0);
    assert_true(right);
    assert_true(ends_well(forked));
    assert_int_equal(tn_shutdown(), TN_OK);
}

static void test_a_fork_while_a_plugin_is_loaded(void **state) {
    fork_at(" provides 'cpu'");
}

static void test_a_fork_while_a_device_is_opened(void **state) {
    fork_at("cpu:0 is open");
}

static tn_tensor *fork_in_hook(tn_tensor *grad, void *user) {
    forked = fork_with_alarm();
    if (forked == 0)
        forked = -1;
    return tn_mul(grad, tn_full(TN_SHAPE(3), tn_float(2)));
}

static void test_a_fork_in_a_hook(void **state) {
    atomic_store(&stop, false);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, work_until_stop, &(work){operators}), 0);
    tn_scope scope = tn_scope_open();
    tn_tensor *x = tn_set_requires_grad(tn_ones(TN_SHAPE(3)), true);
    tn_tensor *y = tn_add(x, x);
    tn_registration *hook = tn_register_hook(y, fork_in_hook, NULL, NULL);
    double slope = 0;
    tn_status status = tn_backward(tn_sum(y));
    if (status == TN_OK)
        status = tn_item(tn_sum(tn_grad(x)), &slope);
    tn_registration_drop(hook);
    tn_scope_close(scope);
    if (forked == -1) {
        must(status == TN_OK && slope == 12, "going on with backward");
        live();
        _exit(0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(status, TN_OK);
    assert_true(slope == 12);
    assert_true(ends_well(forked));
}

/* ---- what cannot be whole ---------------------------------------------------------------- */

static pthread_mutex_t of_program = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool waiting;

/* As in a program whose log takes a lock that its other threads hold as they fork. */
static void wait_at_line(void *user, int32_t level, const char *subsystem, const char *line) {
    if (!strstr(line, user))
        return;
    atomic_store(&waiting, true);
    pthread_mutex_lock(&of_program);
    pthread_mutex_unlock(&of_program);
}

static void *open_sim(void *user) {
    tn_device_parse("sim:0");
    return NULL;
}

static void live_without_new_plugins(void) {
    tn_log_set(-1, NULL, NULL);
    must(computes(), "computing");
    must(tn_device_parse("sim:0").type == 0, "opening was to fail");
    must(tn_error_status() == TN_ERR_STATE && strstr(tn_error_message(), "forked"), "the message");
    tn_error_clear();
    must(threads_compute(), "computing in threads");
    must(tn_shutdown() == TN_OK, "tn_shutdown");
}

static void live_without_devices(void) {
    tn_log_set(-1, NULL, NULL);
    must(!computes(), "computing was to fail");
    must(tn_error_status() == TN_ERR_STATE && strstr(tn_error_message(), "forked"), "the message");
    tn_error_clear();
    must(tn_shutdown() == TN_OK, "tn_shutdown");
    must(computes(), "computing anew");
}

/* Forks while another thread stands in the log function and waits for this one. */
static void fork_beside_stuck(char *line, void (*body)(void)) {
    pthread_t thread;
    assert_true(computes());
    atomic_store(&waiting, false);
    pthread_mutex_lock(&of_program);
    tn_log_set(TN_LOG_TRACE, wait_at_line, line);
    assert_int_equal(pthread_create(&thread, NULL, open_sim, NULL), 0);
    while (!atomic_load(&waiting))
        sched_yield();
    bool well = child_is_well(body);
    pthread_mutex_unlock(&of_program);
    pthread_join(thread, NULL);
    tn_log_set(-1, NULL, NULL);
    assert_true(well);
}

static void test_a_child_of_a_thread_stuck_in_loading(void **state) {
    fork_beside_stuck(" provides 'sim'", live_without_new_plugins);
}

static void test_a_child_of_a_thread_stuck_in_opening(void **state) {
    fork_beside_stuck("sim:0 is open", live_without_devices);
}

static tn_device sim;

static void live_without_sim(void) {
    must(tn_device_parse("sim:0").type == 0, "naming it was to fail");
    tn_error_clear();
    must(!tn_ones(TN_SHAPE(3), TN_F32, sim), "a tensor there was to fail");
    must(tn_error_status() == TN_ERR_STATE && strstr(tn_error_message(), "forked"), "the message");
    tn_error_clear();
    must(tn_synchronize(sim) == TN_ERR_STATE, "waiting was to fail");
    tn_error_clear();
    live();
}

static void test_a_child_of_a_plugin_that_is_not_fork_safe(void **state) {
    sim = tn_device_parse("sim:0");
    assert_int_equal(tn_profile_start(), TN_OK);
    TN_SCOPE;
    for (int i = 0; i < 20; i++)
        tn_ones(TN_SHAPE(3), TN_F32, sim);
    tn_scope_close(0);
    assert_true(child_is_well(live_without_sim));
    assert_int_equal(tn_profile_stop(), TN_OK);
}

/* ---- figures ----------------------------------------------------------------------------- */

static atomic_int n_ready;

static void *hold_tensors(void *user) {
    for (int i = 0; i < 5; i++)
        tn_ones(TN_SHAPE(100));
    {
        TN_SCOPE; /* 40 blocks for the thread's magazine */
        for (int i = 0; i < 40; i++)
            tn_zeros(TN_SHAPE(128));
    }
    atomic_fetch_add(&n_ready, 1);
    while (!atomic_load(&stop))
        usleep(1000);
    return NULL;
}

static uint64_t held_before;

static void count(void) {
    must(tni_tensors_alive() == 5 * N_THREADS, "tensors of the other threads");
    tn_memory_stats s = {.struct_size = sizeof s};
    must(tn_memory_stats_get(tn_default_device(), &s) == TN_OK, "figures");
    must(s.allocated_bytes == held_before, "what the magazines held is free");
#ifndef TNI_HARD /* there a segment has room for less, and threads one after the other share it */
    {
        TN_SCOPE; /* out of what they held, without more from the device */
        for (int i = 0; i < 40 * N_THREADS; i++)
            tn_zeros(TN_SHAPE(128));
        tn_memory_stats after = {.struct_size = sizeof after};
        tn_memory_stats_get(tn_default_device(), &after);
        must(after.reserved_bytes == s.reserved_bytes, "blocks of magazines are used again");
    }
#endif
    tn_tensor *kept = tn_keep(tn_ones(TN_SHAPE(3)));
    tn_scope_close(0);
    must(tni_tensors_alive() == 5 * N_THREADS + 1, "one tensor more");
    must(tn_shutdown() == TN_ERR_STATE, "tn_shutdown with a tensor alive was to fail");
    must(strstr(tn_error_message(), "1 tensor is alive") != NULL, "the message");
    tn_error_clear();
    tn_drop(kept);
    live();
    must(tni_tensors_alive() == 5 * N_THREADS, "the same in the end");
}

static void test_tensors_and_memory_of_the_other_threads(void **state) {
    pthread_t threads[N_THREADS];
    atomic_store(&stop, false);
    atomic_store(&n_ready, 0);
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hold_tensors, NULL), 0);
    while (atomic_load(&n_ready) < N_THREADS)
        sched_yield();
    tn_memory_stats s = {.struct_size = sizeof s};
    assert_int_equal(tn_memory_stats_get(tn_default_device(), &s), TN_OK);
    held_before = s.allocated_bytes;
    bool well = child_is_well(count) && child_is_well(count);
    atomic_store(&stop, true);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(well);
}

int main(int argc, char **argv) {
    setenv("OMP_WAIT_POLICY", "passive", 0); /* or threads spin that others wait for */
    pthread_key_create(&first_key, stay_at_end);
    if (argc > 1 && strcmp(argv[1], "busy") == 0)
        cmocka_set_test_filter(BUSY);
    else
        cmocka_set_skip_filter(BUSY);
    const struct CMUnitTest tests[] = {
        TEST(test_a_child_of_idle_threads),
        TEST(test_a_child_of_threads_that_call_operators),
        TEST(test_a_child_of_threads_that_allocate),
        TEST(test_a_child_of_threads_that_share_gradients),
        TEST(test_a_child_of_threads_that_come_and_go),
        TEST(test_a_child_of_threads_that_look_for_plugins_and_log),
        TEST(test_a_child_of_threads_that_profile),
        TEST(test_a_child_of_threads_on_streams),
        TEST(test_a_child_of_threads_that_do_all_of_it),
        TEST(test_a_child_of_ending_threads),
        TEST(test_a_child_of_a_child),
        TEST(test_a_child_of_threads_that_forks),
        TEST(test_a_fork_while_a_plugin_is_loaded),
        TEST(test_a_fork_while_a_device_is_opened),
        TEST(test_a_fork_in_a_hook),
        TEST(test_a_child_of_a_thread_stuck_in_loading),
        TEST(test_a_child_of_a_thread_stuck_in_opening),
        TEST(test_a_child_of_a_plugin_that_is_not_fork_safe),
        TEST(test_tensors_and_memory_of_the_other_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
