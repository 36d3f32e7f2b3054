/* What a driver changes of the process, and what is put back. Needs no driver. */
#include "plugins/opencl/opencl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern char **environ;

static ocl_guard guard;

static int set_up(void **state) {
    setenv("GUARD_KEPT", "1", 1);
    setenv("GUARD_CHANGED", "as it was", 1);
    setenv("GUARD_REMOVED", "was here", 1);
    setenv("GUARD_EMPTY", "", 1);
    return 0;
}

static void variables_of_a_driver_are_taken_away(void **state) {
    ocl_guard_enter(&guard);
    setenv("GUARD_ADDED", "/dev/null", 1);
    setenv("GUARD_ADDED_TOO", "", 1);
    setenv("GUARD_KEPT_NOT", "x", 1); /* another's name is the beginning of it */
    ocl_guard_leave(&guard);
    assert_null(getenv("GUARD_ADDED"));
    assert_null(getenv("GUARD_ADDED_TOO"));
    assert_null(getenv("GUARD_KEPT_NOT"));
    assert_string_equal(getenv("GUARD_KEPT"), "1");
}

static void variables_that_a_driver_changed_are_changed_back(void **state) {
    ocl_guard_enter(&guard);
    setenv("GUARD_CHANGED", "otherwise", 1);
    setenv("GUARD_EMPTY", "not", 1);
    unsetenv("GUARD_REMOVED");
    ocl_guard_leave(&guard);
    assert_string_equal(getenv("GUARD_CHANGED"), "as it was");
    assert_string_equal(getenv("GUARD_EMPTY"), "");
    assert_string_equal(getenv("GUARD_REMOVED"), "was here");
}

/* Not so much as a pointer moves: another thread may be reading. */
static void variables_that_stay_are_not_touched(void **state) {
    char **list = environ, *first = environ[0], *kept = getenv("GUARD_KEPT");
    ocl_guard_enter(&guard);
    ocl_guard_leave(&guard);
    assert_ptr_equal(environ, list);
    assert_ptr_equal(environ[0], first);
    assert_ptr_equal(getenv("GUARD_KEPT"), kept);
}

/* Entries that setenv would not make: no value, no name, one name twice. */
static void odd_variables_are_left_alone(void **state) {
    static char *const odd[] = {"GUARD_BARE", "=nameless", "GUARD_TWICE=1", "GUARD_TWICE=2",
                                "GUARD_LAST=1"};
    enum { N = sizeof odd / sizeof *odd };
    char *list[N + 2] = {NULL}, **before = environ;
    memcpy(list, odd, sizeof odd);
    environ = list;
    ocl_guard_enter(&guard);
    list[N] = "GUARD_ADDED=x"; /* setenv would free the list before */
    ocl_guard_leave(&guard);
    char **after = environ;
    environ = before;
    assert_ptr_equal(after, list);
    for (int i = 0; i < N; i++)
        assert_string_equal(list[i], odd[i]);
    assert_null(list[N]);
}

static void on_signal(int number) {
    (void)number;
}

static void signal_actions_are_the_programs(void **state) {
    struct sigaction now;
    signal(SIGUSR1, on_signal);
    ocl_guard_enter(&guard);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGSEGV, on_signal);
    ocl_guard_leave(&guard);
    sigaction(SIGUSR1, NULL, &now);
    assert_ptr_equal(now.sa_handler, on_signal);
    sigaction(SIGSEGV, NULL, &now);
    assert_ptr_not_equal(now.sa_handler, on_signal);
    signal(SIGUSR1, SIG_DFL);
}

/* One that starts while the other's driver has changed something, and ends after it, does not take
 * that for the program's. */
static void *second_start(void *first_has_left) {
    ocl_guard second;
    ocl_guard_enter(&second);
    sem_wait(first_has_left);
    ocl_guard_leave(&second);
    return NULL;
}

static void two_starts_at_once_leave_nothing(void **state) {
    struct timespec moment = {.tv_nsec = 20000000};
    pthread_t other;
    sem_t has_left;
    sem_init(&has_left, 0, 0);
    ocl_guard_enter(&guard);
    setenv("GUARD_ADDED", "1", 1);
    assert_int_equal(pthread_create(&other, NULL, second_start, &has_left), 0);
    nanosleep(&moment, NULL); /* it enters, if it can */
    ocl_guard_leave(&guard);
    sem_post(&has_left);
    pthread_join(other, NULL);
    assert_null(getenv("GUARD_ADDED"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(variables_of_a_driver_are_taken_away, set_up),
        cmocka_unit_test_setup(variables_that_a_driver_changed_are_changed_back, set_up),
        cmocka_unit_test_setup(variables_that_stay_are_not_touched, set_up),
        cmocka_unit_test_setup(odd_variables_are_left_alone, set_up),
        cmocka_unit_test_setup(signal_actions_are_the_programs, set_up),
        cmocka_unit_test_setup(two_starts_at_once_leave_nothing, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
