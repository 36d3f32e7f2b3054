/* What a driver changes of the process, and what is put back. Needs no driver. */
#include "plugins/opencl/opencl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static ocl_guard guard;

#define DRIVERS "HWLOC_PLUGINS_PATH"

static int set_up(void **state) {
    unsetenv(DRIVERS);
    return setenv("GUARD_PROGRAMS", "1", 1);
}

static void a_variable_of_a_driver_is_taken_away(void **state) {
    ocl_guard_enter(&guard);
    setenv(DRIVERS, "/dev/null", 1);
    ocl_guard_leave(&guard);
    assert_null(getenv(DRIVERS));
}

static void a_variable_that_a_driver_changed_is_changed_back(void **state) {
    static const char *const values[] = {"as it was", ""};
    for (int i = 0; i < 2; i++) {
        setenv(DRIVERS, values[i], 1);
        ocl_guard_enter(&guard);
        setenv(DRIVERS, "otherwise", 1);
        ocl_guard_leave(&guard);
        assert_string_equal(getenv(DRIVERS), values[i]);
        ocl_guard_enter(&guard);
        unsetenv(DRIVERS);
        ocl_guard_leave(&guard);
        assert_string_equal(getenv(DRIVERS), values[i]);
    }
}

/* Of another thread, while a driver compiles. */
static void what_the_program_sets_meanwhile_stays(void **state) {
    ocl_guard_enter(&guard);
    setenv("GUARD_NEW", "1", 1);
    setenv("GUARD_PROGRAMS", "2", 1);
    ocl_guard_leave(&guard);
    assert_string_equal(getenv("GUARD_NEW"), "1");
    assert_string_equal(getenv("GUARD_PROGRAMS"), "2");
    unsetenv("GUARD_NEW");
}

static void a_variable_that_stays_is_not_touched(void **state) {
    setenv(DRIVERS, "as it was", 1);
    const char *kept = getenv(DRIVERS);
    ocl_guard_enter(&guard);
    ocl_guard_leave(&guard);
    assert_ptr_equal(getenv(DRIVERS), kept);
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
    setenv(DRIVERS, "1", 1);
    assert_int_equal(pthread_create(&other, NULL, second_start, &has_left), 0);
    nanosleep(&moment, NULL); /* it enters, if it can */
    ocl_guard_leave(&guard);
    sem_post(&has_left);
    pthread_join(other, NULL);
    assert_null(getenv(DRIVERS));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_variable_of_a_driver_is_taken_away, set_up),
        cmocka_unit_test_setup(a_variable_that_a_driver_changed_is_changed_back, set_up),
        cmocka_unit_test_setup(what_the_program_sets_meanwhile_stays, set_up),
        cmocka_unit_test_setup(a_variable_that_stays_is_not_touched, set_up),
        cmocka_unit_test_setup(signal_actions_are_the_programs, set_up),
        cmocka_unit_test_setup(two_starts_at_once_leave_nothing, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
