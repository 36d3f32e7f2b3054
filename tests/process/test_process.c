/* Each part of the process's state that a plugin could change is noticed, and nothing else is. */

/* cmocka wants these before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plugin-sdk/process/census.h"
#include "plugin-sdk/process/state.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- one change for each part ------------------------------------------------------------ */

static void round_up(void) {
    fesetround(FE_UPWARD);
}
#if defined(__x86_64__)
static void flush_to_zero(void) {
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8000);
}
static void shorten_x87(void) {
    uint16_t word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    word &= (uint16_t)~0x300;
    __asm__ volatile("fldcw %0" : : "m"(word));
}
#endif
static void block_a_signal(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}
static void rename_thread(void) {
    prctl(PR_SET_NAME, "renamed");
}
static void set_locale(void) {
    setlocale(LC_NUMERIC, "C.UTF-8");
}
static void set_thread_locale(void) {
    uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}
static void go_away(void) {
    if (chdir("/proc") != 0)
        _exit(3);
}
static void ignore_a_signal(void) {
    signal(SIGUSR2, SIG_IGN);
}
static void restart_after_a_signal(void) {
    struct sigaction action = {.sa_handler = SIG_DFL, .sa_flags = SA_RESTART};
    sigaction(SIGSYS, &action, NULL);
}
static void give_up_a_processor(void) {
    cpu_set_t set;
    int first = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 2) /* it has no other */
        _exit(0);
    while (!CPU_ISSET(first, &set))
        first++;
    CPU_CLR(first, &set);
    sched_setaffinity(0, sizeof set, &set);
}
static void (*set_team)(int n);
static int (*get_team)(void);
static void take_a_larger_team(void) {
    if (!set_team) /* there is no OpenMP */
        _exit(0);
    set_team(get_team() + 3);
}
static void mask_files(void) {
    umask(0123);
}
static void set_a_variable(void) {
    setenv("TENON_TEST_OF_PROCESS", "1", 1);
}
static void lower_a_limit(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur--;
    setrlimit(RLIMIT_NOFILE, &limit);
}
static void raise_a_limit(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_CORE, &limit);
}
static void start_a_timer(void) {
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = 1000}, NULL);
}
static void be_nice(void) {
    if (nice(1) == -1)
        _exit(3);
}
static void nothing(void) {}

typedef struct change {
    tni_process_part part;
    void (*make)(void);
    const char *words;
} change;

static const change changes[] = {
    {TNI_PROCESS_FLOATING_POINT, round_up, "changed the floating-point environment"},
#if defined(__x86_64__)
    {TNI_PROCESS_FLOATING_POINT, flush_to_zero, "MXCSR"},
    {TNI_PROCESS_FLOATING_POINT, shorten_x87, "the control word"},
#endif
    {TNI_PROCESS_SIGNAL_MASK, block_a_signal, "changed the thread's signal mask"},
    {TNI_PROCESS_THREAD_NAME, rename_thread, "to renamed"},
    {TNI_PROCESS_PROCESSORS, give_up_a_processor, "changed the processors"},
    {TNI_PROCESS_TEAMS, take_a_larger_team, "changed how many threads OpenMP gives"},
    {TNI_PROCESS_LOCALE, set_locale, "changed the locale from C to LC_"},
    {TNI_PROCESS_LOCALE, set_thread_locale, "changed the locale of the thread"},
    {TNI_PROCESS_DIRECTORY, go_away, "changed the working directory to /proc"},
    {TNI_PROCESS_SIGNAL_ACTIONS, ignore_a_signal, "changed what is done on signal 12"},
    {TNI_PROCESS_SIGNAL_ACTIONS, restart_after_a_signal, "changed what is done on signal"},
    {TNI_PROCESS_UMASK, mask_files, "to 123"},
    {TNI_PROCESS_ENVIRONMENT, set_a_variable, "changed the environment variables"},
    {TNI_PROCESS_LIMITS, lower_a_limit, "lowered a limit"},
    {TNI_PROCESS_TIMERS, start_a_timer, "started an interval timer"},
    {TNI_PROCESS_PRIORITY, be_nice, "changed the priority"},
    {TNI_PROCESS_PARTS, raise_a_limit, ""},
    {TNI_PROCESS_PARTS, nothing, ""},
};
enum { N_CHANGES = sizeof changes / sizeof *changes };

/* In a child, since some of it cannot be put back. */
static int noticed(const change *c) {
    pid_t child = fork();
    if (child == 0) {
        tni_process_state before;
        char text[256] = "";
        tni_process_look(&before);
        c->make();
        tni_process_part part = tni_process_compare(&before, text, sizeof text);
        if (part != c->part || !strstr(text, c->words))
            fprintf(stderr, "part %d, text '%s'\n", (int)part, text);
        _exit(part != c->part ? 1 : !strstr(text, c->words) ? 2 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void each_change_is_noticed_as_what_it_is(void **state) {
    for (int i = 0; i < N_CHANGES; i++) {
        int answer = noticed(&changes[i]);
        if (answer != 0)
            fail_msg("change %d of part %d, '%s': %d", i, (int)changes[i].part, changes[i].words,
                     answer);
    }
}

static void each_part_has_a_change(void **state) {
    for (int part = 0; part < TNI_PROCESS_PARTS; part++) {
        int i = 0;
        while (i < N_CHANGES && changes[i].part != (tni_process_part)part)
            i++;
        if (i == N_CHANGES)
            fail_msg("nothing here changes part %d", part);
    }
}

/* What the quick look sees, and that alone. */
static bool is_quick(tni_process_part part) {
    return part == TNI_PROCESS_FLOATING_POINT || part == TNI_PROCESS_LOCALE;
}

/* Each change made, noticed or not by a quick look, and put back. What a process may not put back of
 * itself stays. */
static int put_back(const change *c) {
    pid_t child = fork();
    if (child == 0) {
        tni_process_state before, quick;
        char text[256];
        bool stays = c->part == TNI_PROCESS_ENVIRONMENT || c->part == TNI_PROCESS_PRIORITY;
        tni_process_look(&before);
        tni_process_look_quickly(&quick);
        c->make();
        tni_process_part part = tni_process_compare_quickly(&quick, text, sizeof text);
        if (part != (is_quick(c->part) ? c->part : TNI_PROCESS_PARTS))
            _exit(1);
        tni_process_restore_quickly(&quick);
        if (tni_process_compare_quickly(&quick, text, sizeof text) != TNI_PROCESS_PARTS)
            _exit(2);
        c->make();
        tni_process_restore(&before);
        _exit(!stays && tni_process_compare(&before, text, sizeof text) != TNI_PROCESS_PARTS ? 3
                                                                                             : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void each_change_is_put_back(void **state) {
    for (int i = 0; i < N_CHANGES; i++) {
        int answer = put_back(&changes[i]);
        if (answer != 0)
            fail_msg("change %d of part %d, '%s': %d", i, (int)changes[i].part, changes[i].words,
                     answer);
    }
}

static void a_directory_that_is_gone_is_no_change(void **state) {
    char gone[] = "/tmp/tenon-process-XXXXXX";
    assert_non_null(mkdtemp(gone));
    pid_t child = fork();
    if (child == 0) {
        tni_process_state before;
        char text[256];
        if (chdir(gone) != 0 || rmdir(gone) != 0)
            _exit(3);
        tni_process_look(&before);
        _exit(tni_process_compare(&before, text, sizeof text) != TNI_PROCESS_PARTS);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- the census -------------------------------------------------------------------------- */

static void *wait_for(void *mutex) {
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    return NULL;
}

static void threads_and_descriptors_are_counted(void **state) {
    tni_census before, during, after;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_t first, second;
    pthread_mutex_lock(&mutex);
    /* ThreadSanitizer starts one of its own beside the first. */
    assert_int_equal(pthread_create(&first, NULL, wait_for, &mutex), 0);
    tni_census_take(&before);
    assert_true(tni_census_has_thread(&before, getpid()) && before.files[1]);

    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(pthread_create(&second, NULL, wait_for, &mutex), 0);
    tni_census_take(&during);
    assert_int_equal(during.n_threads, before.n_threads + 1);
    assert_int_equal(during.n_files, before.n_files + 1);
    assert_true(during.files[fd] && !before.files[fd]);
    assert_false(tni_census_has_thread(&before, during.threads[during.n_threads - 1]));

    close(fd);
    pthread_mutex_unlock(&mutex);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    tni_census_take(&after);
    assert_int_equal(after.n_files, before.n_files);
    assert_false(after.files[fd]);
}

int main(void) {
    void *openmp = dlopen("libgomp.so.1", RTLD_LAZY);
    if (openmp) {
        *(void **)&set_team = dlsym(openmp, "omp_set_num_threads");
        *(void **)&get_team = dlsym(openmp, "omp_get_max_threads");
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_change_is_noticed_as_what_it_is),
        cmocka_unit_test(each_part_has_a_change),
        cmocka_unit_test(each_change_is_put_back),
        cmocka_unit_test(a_directory_that_is_gone_is_no_change),
        cmocka_unit_test(threads_and_descriptors_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
