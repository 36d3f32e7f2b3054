/* See caller.h. The stack is larger than what may be used of it: so too much is told, with how much it
 * was, and does not end the process. What has been touched is told by which of its pages there are. */
#include "plugin-sdk/conformance/worker/kernel/caller.h"
#include "plugin-sdk/process/state.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define INSTRUMENTED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INSTRUMENTED 1
#endif

/* ALLOWED is for kernels, from where they are called on. */
enum { STACK = 16 << 20, ALLOWED = 1 << 20 };

static struct caller {
    bool alive;
    pthread_t thread;
    char *stack;  /* its lowest byte */
    char *called; /* the lowest frame from which a kernel was called since the case began */
    sem_t begin,
        end;     /* of a case; no lock is held as a thread wakes, on which it would wait again */
    tc_run *run; /* NULL: the thread ends */
    const tc_case *c;
    const tc_options *options;
    tc_verdict *out;
} caller;

static void wait_for(sem_t *event) {
    while (sem_wait(event) != 0) /* a signal came */
        ;
}

/* What is this thread's own; the rest is the process's, at which others look. */
typedef struct own_state {
    sigset_t mask;
    char name[16];
} own_state;

static void look(own_state *s) {
    memset(s, 0, sizeof *s);
    pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
    prctl(PR_GET_NAME, s->name);
}

static void check_thread(const own_state *before) {
    own_state now;
    look(&now);
    if (memcmp(before, &now, sizeof now) == 0)
        return;
    pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
    prctl(PR_SET_NAME, before->name);
    tc_verdict_set(caller.out, TC_FAIL, TNP_PROCESS_STATE_KEPT,
                   "%s: a call changed the calling thread's %s; put it back before it returns",
                   caller.c->subject, strcmp(before->name, now.name) ? "name" : "signal mask");
}

/* One case in eight comes from a thread for which OpenMP has more threads than there are processors:
 * a number that nobody would set, and that is to be found again. In half of them OpenMP may give fewer than it is asked for. */
static void run_crowded(void) {
    char line[TC_MAX_LINE];
    uint32_t sum = 0;
    for (const char *at = tc_case_line(caller.c, line); *at; at++)
        sum = sum * 31 + (unsigned char)*at;
    int before[TNI_N_OPENMPS] = {0};
    if (sum % 8 != 0) {
        caller.run(caller.c, caller.options, caller.out);
        return;
    }
    int crowd = 2 * (int)sysconf(_SC_NPROCESSORS_ONLN) + 1, left[TNI_N_OPENMPS];
    tni_process_set_teams(crowd, before);
    bool smaller = sum % 16 == 0;
    if (smaller)
        tni_process_let_teams_be_smaller(true);
    caller.run(caller.c, caller.options, caller.out);
    if (smaller)
        tni_process_let_teams_be_smaller(false);
    tni_process_set_teams(0, left);
    for (int i = 0; i < TNI_N_OPENMPS; i++)
        if (before[i] && left[i] && left[i] != crowd)
            tc_verdict_set(
                caller.out, TC_FAIL, TNP_PROCESS_STATE_KEPT,
                "%s: a call changed how many threads OpenMP gives to the calling thread, "
                "from %d to %d; put it back before it returns",
                caller.c->subject, crowd, left[i]);
    tni_process_restore_teams(before);
}

static void *serve(void *unused) {
    own_state mine;
    (void)unused;
    look(&mine);
    for (;;) {
        wait_for(&caller.begin);
        if (!caller.run)
            return NULL;
        run_crowded();
        check_thread(&mine);
        sem_post(&caller.end);
    }
}

static bool start(void) {
    pthread_attr_t attributes;
    if (caller.alive)
        return true;
    caller.stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (caller.stack == MAP_FAILED)
        return false;
    madvise(caller.stack, STACK, MADV_NOHUGEPAGE); /* which would bring what nobody touched */
    pthread_attr_init(&attributes);
    sem_init(&caller.begin, 0, 0);
    sem_init(&caller.end, 0, 0);
    caller.alive = pthread_attr_setstack(&attributes, caller.stack, STACK) == 0 &&
                   pthread_create(&caller.thread, &attributes, serve, NULL) == 0;
    pthread_attr_destroy(&attributes);
    if (!caller.alive)
        munmap(caller.stack, STACK);
    return caller.alive;
}

void tc_caller_calls(void) {
    char *frame = __builtin_frame_address(0);
    bool here = caller.alive && frame > caller.stack && frame < caller.stack + STACK;
    if (here && (!caller.called || frame < caller.called))
        caller.called = frame;
}

/* Bytes below that frame, down to the lowest page that was touched, where these are more than
 * allowed; 0: none was. */
static uint64_t too_deep(void) {
#ifdef INSTRUMENTED
    return 0; /* frames are larger than the plugin's own */
#else
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (!caller.called)
        return 0;
    uint64_t room = (uint64_t)(caller.called - ALLOWED - caller.stack) / page * page;
    static unsigned char touched[STACK / 4096];
    if (mincore(caller.stack, room, touched) != 0)
        return 0;
    for (uint64_t i = 0; i < room / page; i++)
        if (touched[i] & 1) {
            madvise(caller.stack, room, MADV_DONTNEED);
            return (uint64_t)(caller.called - caller.stack) - i * page;
        }
    return 0;
#endif
}

void tc_run_on_small_stack(tc_run *run, const tc_case *c, const tc_options *options,
                           tc_verdict *out) {
    if (!start()) {
        run(c, options, out);
        return;
    }
    caller.c = c;
    caller.options = options;
    caller.out = out;
    caller.run = run;
    caller.called = NULL;
    sem_post(&caller.begin);
    wait_for(&caller.end);
    uint64_t used = too_deep();
    if (used)
        tc_verdict_set(out, TC_FAIL, TNP_KERNEL_STACK,
                       "%s: the call used %llu KiB of the calling thread's stack; a kernel gets by "
                       "with %d KiB",
                       c->subject, (unsigned long long)used >> 10, ALLOWED >> 10);
}

void tc_caller_end(void) {
    if (!caller.alive)
        return;
    caller.run = NULL;
    sem_post(&caller.begin);
    pthread_join(caller.thread, NULL);
    sem_destroy(&caller.begin);
    sem_destroy(&caller.end);
    munmap(caller.stack, STACK);
    caller.alive = false;
}
