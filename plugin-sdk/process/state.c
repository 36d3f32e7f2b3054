/* Each part of the state: how it is looked at, the words for a change of it, and how it is put back. */
#include "plugin-sdk/process/state.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fenv.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

typedef tni_process_state state;

/* Writes what was done, and says that something was. */
#define CHANGED(...) (snprintf(text, size, __VA_ARGS__), true)

/* ---- of the calling thread --------------------------------------------------------------- */

static void look_floating_point(state *s) {
    s->floating_point.rounding = fegetround();
#if defined(__x86_64__)
    uint16_t x87;
    s->floating_point.mxcsr = __builtin_ia32_stmxcsr() & 0xffc0; /* without the sticky flags */
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    s->floating_point.control = x87;
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(s->floating_point.control));
#endif
}

static bool compare_floating_point(const state *a, const state *b, char *text, size_t size) {
    if (a->floating_point.mxcsr != b->floating_point.mxcsr)
        return CHANGED("changed the floating-point environment: MXCSR from 0x%x to 0x%x (flush to"
                       " zero, denormals are zero, rounding, masks)",
                       a->floating_point.mxcsr, b->floating_point.mxcsr);
    if (a->floating_point.control != b->floating_point.control)
        return CHANGED("changed the floating-point environment: the control word from 0x%llx to"
                       " 0x%llx",
                       (unsigned long long)a->floating_point.control,
                       (unsigned long long)b->floating_point.control);
    return a->floating_point.rounding != b->floating_point.rounding &&
           CHANGED("changed the floating-point environment: the rounding mode");
}

static void restore_floating_point(const state *before) {
    fesetround(before->floating_point.rounding);
#if defined(__x86_64__)
    uint16_t x87 = (uint16_t)before->floating_point.control;
    __builtin_ia32_ldmxcsr(before->floating_point.mxcsr | (__builtin_ia32_stmxcsr() & 0x3f));
    __asm__ volatile("fldcw %0" : : "m"(x87));
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(before->floating_point.control));
#endif
}

static void look_signal_mask(state *s) {
    pthread_sigmask(SIG_SETMASK, NULL, &s->signal_mask);
}

static bool compare_signal_mask(const state *a, const state *b, char *text, size_t size) {
    for (int n = 1; n < NSIG; n++)
        if (sigismember(&a->signal_mask, n) != sigismember(&b->signal_mask, n))
            return CHANGED("changed the thread's signal mask (signal %d)", n);
    return false;
}

static void restore_signal_mask(const state *before) {
    pthread_sigmask(SIG_SETMASK, &before->signal_mask, NULL);
}

static void look_thread_name(state *s) {
    prctl(PR_GET_NAME, s->thread_name);
}

static bool compare_thread_name(const state *a, const state *b, char *text, size_t size) {
    return strcmp(a->thread_name, b->thread_name) != 0 &&
           CHANGED("renamed the calling thread from %s to %s", a->thread_name, b->thread_name);
}

static void restore_thread_name(const state *before) {
    prctl(PR_SET_NAME, before->thread_name);
}

static void look_processors(state *s) {
    if (sched_getaffinity(0, sizeof s->processors, &s->processors) != 0)
        CPU_ZERO(&s->processors);
}

static bool compare_processors(const state *a, const state *b, char *text, size_t size) {
    return !CPU_EQUAL(&a->processors, &b->processors) &&
           CHANGED("changed the processors that the thread may run on, from %d to %d of them",
                   CPU_COUNT(&a->processors), CPU_COUNT(&b->processors));
}

static void restore_processors(const state *before) {
    sched_setaffinity(0, sizeof before->processors, &before->processors);
}

/* The runtimes of gcc, clang and Intel. */
static const char *const openmps[TNI_N_OPENMPS] = {"libgomp.so.1", "libomp.so", "libomp.so.5",
                                                   "libiomp5.so"};

/* What each has to say how many threads it gives. Looking for them goes through folders, so that is
 * done again only when an object was loaded or unloaded. */
typedef struct openmp_calls {
    unsigned long long loaded, unloaded; /* objects, when it was last done */
    int (*get_max_threads[TNI_N_OPENMPS])(void);
} openmp_calls;

static int count_objects(struct dl_phdr_info *info, size_t size, void *context) {
    openmp_calls *calls = context;
    (void)size;
    calls->loaded = info->dlpi_adds;
    calls->unloaded = info->dlpi_subs;
    return 1; /* every object tells the same */
}

static void find_calls(openmp_calls *calls) {
    for (int i = 0; i < TNI_N_OPENMPS; i++) {
        void *object = dlopen(openmps[i], RTLD_LAZY | RTLD_NOLOAD);
        calls->get_max_threads[i] = NULL;
        if (object)
            *(void **)&calls->get_max_threads[i] = dlsym(object, "omp_get_max_threads");
        if (object)
            dlclose(object);
    }
}

static void look_teams(state *s) {
    static _Thread_local openmp_calls calls;
    openmp_calls before = calls;
    dl_iterate_phdr(count_objects, &calls);
    if (calls.loaded != before.loaded || calls.unloaded != before.unloaded)
        find_calls(&calls);
    for (int i = 0; i < TNI_N_OPENMPS; i++)
        s->teams[i] = calls.get_max_threads[i] ? calls.get_max_threads[i]() : 0;
}

/* Of one that was loaded meanwhile nobody had set anything. */
static bool compare_teams(const state *a, const state *b, char *text, size_t size) {
    for (int i = 0; i < TNI_N_OPENMPS; i++)
        if (a->teams[i] && b->teams[i] && a->teams[i] != b->teams[i])
            return CHANGED("changed how many threads OpenMP gives to the thread (%s), from %d to "
                           "%d",
                           openmps[i], a->teams[i], b->teams[i]);
    return false;
}

/* Calls a function of an OpenMP that is there. */
static void tell(int openmp, const char *function, int n) {
    void *object = dlopen(openmps[openmp], RTLD_LAZY | RTLD_NOLOAD);
    void (*set)(int n) = NULL;
    if (object)
        *(void **)&set = dlsym(object, function);
    if (set)
        set(n);
    if (object)
        dlclose(object);
}

static void set_teams(int openmp, int n) {
    if (n > 0)
        tell(openmp, "omp_set_num_threads", n);
}

void tni_process_let_teams_be_smaller(bool may) {
    for (int i = 0; i < TNI_N_OPENMPS; i++)
        tell(i, "omp_set_dynamic", may);
}

static void restore_teams(const state *before) {
    for (int i = 0; i < TNI_N_OPENMPS; i++)
        set_teams(i, before->teams[i]);
}

void tni_process_set_teams(int n, int before[TNI_N_OPENMPS]) {
    state now;
    look_teams(&now);
    for (int i = 0; i < TNI_N_OPENMPS; i++) {
        before[i] = now.teams[i];
        set_teams(i, before[i] ? n : 0);
    }
}

void tni_process_restore_teams(const int before[TNI_N_OPENMPS]) {
    for (int i = 0; i < TNI_N_OPENMPS; i++)
        set_teams(i, before[i]);
}

typedef struct team {
    int last;
    int (*number)(void); /* of the calling thread */
    void (*run)(void *context);
    void *context;
    bool ran;
} team;

static void as_member(void *of) {
    team *t = of;
    if (t->number() != t->last)
        return;
    t->run(t->context);
    t->ran = true;
}

/* What compilers make of a parallel region is a call of this, which the other runtimes have, too. */
bool tni_process_run_in_team(int n, void (*run)(void *context), void *context) {
    team t = {.last = n - 1, .run = run, .context = context};
    for (int i = 0; i < TNI_N_OPENMPS && !t.ran; i++) {
        void *object = dlopen(openmps[i], RTLD_LAZY | RTLD_NOLOAD);
        void (*parallel)(void (*)(void *), void *, unsigned, unsigned) = NULL;
        if (object) {
            *(void **)&parallel = dlsym(object, "GOMP_parallel");
            *(void **)&t.number = dlsym(object, "omp_get_thread_num");
        }
        if (parallel && t.number)
            parallel(as_member, &t, (unsigned)n, 0);
        if (object)
            dlclose(object);
    }
    return t.ran;
}

/* ---- of the process ---------------------------------------------------------------------- */

static void look_locale(state *s) {
    const char *name = setlocale(LC_ALL, NULL);
    if (!name)
        name = "";
    size_t n = strlen(name);
    n = n < sizeof s->locale.process ? n : sizeof s->locale.process - 1;
    memcpy(s->locale.process, name, n);
    s->locale.process[n] = '\0';
    s->locale.thread = uselocale((locale_t)0);
}

static bool compare_locale(const state *a, const state *b, char *text, size_t size) {
    if (strcmp(a->locale.process, b->locale.process) != 0)
        return CHANGED("changed the locale from %.100s to %.100s", a->locale.process,
                       b->locale.process);
    return a->locale.thread != b->locale.thread && CHANGED("changed the locale of the thread");
}

static void restore_locale(const state *before) {
    setlocale(LC_ALL, before->locale.process);
    uselocale(before->locale.thread);
}

static void look_directory(state *s) {
    if (!getcwd(s->directory, sizeof s->directory))
        s->directory[0] = '\0';
}

static bool compare_directory(const state *a, const state *b, char *text, size_t size) {
    return strcmp(a->directory, b->directory) != 0 &&
           CHANGED("changed the working directory to %.200s", b->directory);
}

static void restore_directory(const state *before) {
    (void)!chdir(before->directory);
}

static const int signals[] = {SIGHUP,  SIGINT,   SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
                              SIGFPE,  SIGUSR1,  SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM,
                              SIGCHLD, SIGCONT,  SIGTSTP, SIGTTIN, SIGTTOU, SIGURG,  SIGXCPU,
                              SIGPROF, SIGWINCH, SIGIO,   SIGSYS};
_Static_assert(sizeof signals / sizeof *signals == TNI_N_SIGNALS, "one place for each");

/* A flag of the C library's own on some machines: there once an action was set, be it the old one.
 */
enum { RESTORER = 0x04000000 };

static void look_signal_actions(state *s) {
    for (int i = 0; i < TNI_N_SIGNALS; i++) {
        sigaction(signals[i], NULL, &s->signal_actions[i]);
        s->signal_actions[i].sa_flags &= ~RESTORER;
    }
}

static bool compare_signal_actions(const state *a, const state *b, char *text, size_t size) {
    for (int i = 0; i < TNI_N_SIGNALS; i++)
        if (a->signal_actions[i].sa_handler != b->signal_actions[i].sa_handler ||
            a->signal_actions[i].sa_flags != b->signal_actions[i].sa_flags)
            return CHANGED("changed what is done on signal %d (%s)", signals[i],
                           strsignal(signals[i]));
    return false;
}

static void restore_signal_actions(const state *before) {
    for (int i = 0; i < TNI_N_SIGNALS; i++)
        sigaction(signals[i], &before->signal_actions[i], NULL);
}

/* umask() tells by changing it, and another thread may create a file at that moment. */
static void look_umask(state *s) {
    char status[1024];
    s->umask = UINT32_MAX;
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, status, sizeof status - 1);
    close(fd);
    status[n > 0 ? n : 0] = '\0';
    const char *line = strstr(status, "\nUmask:");
    if (line)
        s->umask = (uint32_t)strtoul(line + sizeof "\nUmask:" - 1, NULL, 8);
}

static bool compare_umask(const state *a, const state *b, char *text, size_t size) {
    return a->umask != b->umask && CHANGED("changed the umask from %o to %o", a->umask, b->umask);
}

static void restore_umask(const state *before) {
    if (before->umask != UINT32_MAX)
        umask(before->umask);
}

static void look_environment(state *s) {
    uint64_t sum = 7;
    for (char **e = environ; e && *e; e++)
        for (const char *c = *e;; c++) {
            sum = (sum ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
            if (!*c)
                break;
        }
    s->environment = sum;
}

static bool compare_environment(const state *a, const state *b, char *text, size_t size) {
    return a->environment != b->environment && CHANGED("changed the environment variables");
}

static void restore_environment(const state *before) {
    (void)before;
}

static const int limits[] = {RLIMIT_AS,    RLIMIT_CORE,   RLIMIT_DATA,  RLIMIT_FSIZE,
                             RLIMIT_STACK, RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_MEMLOCK};
_Static_assert(sizeof limits / sizeof *limits == TNI_N_LIMITS, "one place for each");

static void look_limits(state *s) {
    for (int i = 0; i < TNI_N_LIMITS; i++)
        getrlimit(limits[i], &s->limits[i]);
}

static bool compare_limits(const state *a, const state *b, char *text, size_t size) {
    for (int i = 0; i < TNI_N_LIMITS; i++)
        if (a->limits[i].rlim_cur > b->limits[i].rlim_cur ||
            a->limits[i].rlim_max > b->limits[i].rlim_max)
            return CHANGED("lowered a limit of the process (RLIMIT number %d)", limits[i]);
    return false;
}

static void restore_limits(const state *before) {
    for (int i = 0; i < TNI_N_LIMITS; i++)
        setrlimit(limits[i], &before->limits[i]);
}

static void look_timers(state *s) {
    for (int i = 0; i < TNI_N_TIMERS; i++)
        getitimer(i, &s->timers[i]);
}

static bool runs(const struct itimerval *timer) {
    return timer->it_value.tv_sec != 0 || timer->it_value.tv_usec != 0;
}

static bool compare_timers(const state *a, const state *b, char *text, size_t size) {
    for (int i = 0; i < TNI_N_TIMERS; i++)
        if (!runs(&a->timers[i]) && runs(&b->timers[i]))
            return CHANGED("started an interval timer");
    return false;
}

static void restore_timers(const state *before) {
    state now;
    look_timers(&now);
    for (int i = 0; i < TNI_N_TIMERS; i++)
        if (!runs(&before->timers[i]) && runs(&now.timers[i]))
            setitimer(i, &before->timers[i], NULL);
}

static void look_priority(state *s) {
    s->priority = getpriority(PRIO_PROCESS, 0);
}

static bool compare_priority(const state *a, const state *b, char *text, size_t size) {
    return a->priority != b->priority && CHANGED("changed the priority of the process");
}

static void restore_priority(const state *before) {
    setpriority(PRIO_PROCESS, 0, before->priority);
}

/* ---- the list ---------------------------------------------------------------------------- */

#define LOOK(PART, part) look_##part(s);
#define COMPARE(PART, part) \
    if (compare_##part(before, &now, text, size)) \
        return TNI_PROCESS_##PART;
#define RESTORE(PART, part) restore_##part(before);

void tni_process_look(tni_process_state *s) {
    memset(s, 0, sizeof *s);
    TNI_PROCESS_MAP(LOOK)
}

void tni_process_look_quickly(tni_process_state *s){TNI_PROCESS_QUICK_MAP(LOOK)}

tni_process_part tni_process_compare(const tni_process_state *before, char *text, size_t size) {
    tni_process_state now;
    tni_process_look(&now);
    TNI_PROCESS_MAP(COMPARE)
    return TNI_PROCESS_PARTS;
}

tni_process_part tni_process_compare_shared(const tni_process_state *before, char *text,
                                            size_t size) {
    tni_process_state now = {0}, *s = &now;
    TNI_PROCESS_SHARED_MAP(LOOK)
    now.locale.thread = before->locale.thread;
    TNI_PROCESS_SHARED_MAP(COMPARE)
    return TNI_PROCESS_PARTS;
}

tni_process_part tni_process_compare_quickly(const tni_process_state *before, char *text,
                                             size_t size) {
    tni_process_state now;
    tni_process_look_quickly(&now);
    TNI_PROCESS_QUICK_MAP(COMPARE)
    return TNI_PROCESS_PARTS;
}

void tni_process_restore(const tni_process_state *before) {
    TNI_PROCESS_MAP(RESTORE)
}

void tni_process_restore_quickly(const tni_process_state *before) {
    TNI_PROCESS_QUICK_MAP(RESTORE)
}
