/* Forking while devices are open, unloading the object after shutdown, and ending without it. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/kernel/execute.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tenon/ext/fork.h>
#include <unistd.h>

/* Another host's instance of the same object, while there is one. */
static const tc_subject *beside;

static void announce(const tc_subject *s, bool is_before, bool in_child) {
    const tn_ext_fork *ext = s ? tc_subject_extension(s, TN_EXT_FORK) : NULL;
    if (ext && is_before)
        ext->before(s->self);
    else if (ext)
        ext->after(s->self, in_child);
}

/* As cores fork, each for its own instances; `s` NULL: before anything was loaded. */
static pid_t announced_fork(const tc_subject *s) {
    fflush(NULL);
    announce(s, true, false);
    announce(beside, true, false);
    pid_t child = fork();
    announce(s, false, child == 0);
    announce(beside, false, child == 0);
    return child;
}

/* Forks; the failure of what the child does is the case's. */
static void in_child(tc_contract *k, tc_subject *s, void (*work)(void *context), void *context,
                     tn_requirement requirement, const char *when) {
    int ends[2];
    if (pipe(ends) != 0) {
        TC_CASE_ERROR(k->out, "pipe: %s", strerror(errno));
        return;
    }
    pid_t child = announced_fork(s);
    if (child == 0) {
        alarm(20);
        work(context);
        if (tc_failed(k))
            (void)!write(ends[1], k->out->message, strlen(k->out->message));
        _exit(k->out->status == TC_UNSUPPORTED ? 2 : tc_failed(k) ? 1 : 0);
    }
    close(ends[1]);
    char text[TC_VERDICT_MESSAGE] = "";
    int status = 0;
    ssize_t got = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (child < 0)
        TC_CASE_ERROR(k->out, "fork: %s", strerror(errno));
    else if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
        TC_NOT_OFFERED(k, "%.900s", text);
    else if (got > 0)
        TC_BROKEN(k, requirement, "%s: %.900s", when, text);
    else if (status != 0)
        TC_BROKEN(k, requirement, "the plugin %s %s",
                  WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "hung" : "crashed", when);
}

static bool open_fork_safe(tc_contract *k, tc_subject *s) {
    if (!tc_lifecycle_open(k, s, tc_host_table(), TNP_FORK_SAFE, "before fork"))
        return false;
    if (s->plugin->flags & TN_PLUGIN_FORK_SAFE)
        return true;
    tc_subject_close(s);
    return TC_NOT_OFFERED(k, "the plugin has no TN_PLUGIN_FORK_SAFE");
}

typedef struct probe_context {
    tc_contract *k;
    tc_subject *s;
} probe_context;

static void probe(void *context) {
    probe_context *p = context;
    tc_lifecycle_probe(p->k, p->s, TC_WORK_WIDE, TNP_FORK_SAFE, "some work", NULL);
}

/* The child has a life of its own to end: what is gone of its parent's threads is not waited for. */
static void probe_and_end(void *context) {
    probe_context *p = context;
    probe(context);
    tc_subject_close(p->s);
}

static void life_fork(tc_contract *k) {
    tc_subject s;
    probe_context context = {k, &s};
    if (!open_fork_safe(k, &s))
        return;
    probe(&context);
    if (!tc_failed(k))
        in_child(k, &s, probe, &context, TNP_FORK_SAFE, "in a forked child");
    if (!tc_failed(k))
        in_child(k, &s, probe_and_end, &context, TNP_FORK_SAFE,
                 "in a forked child that closes its devices and shuts down");
    if (!tc_failed(k))
        tc_lifecycle_probe(k, &s, TC_WORK_WIDE, TNP_FORK_SAFE, "after fork, in the parent", NULL);
    tc_subject_close(&s);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after fork and shutdown");
}

/* The fork of a process with two hosts, which both announce it. */
static void life_fork_two_hosts(tc_contract *k) {
    tc_subject s, other;
    tn_host host = *tc_host_table();
    probe_context context = {k, &s};
    if (!open_fork_safe(k, &s))
        return;
    if (tc_lifecycle_open(k, &other, &host, TNP_INIT_TWICE, "beside another host")) {
        beside = &other;
        in_child(k, &s, probe, &context, TNP_FORK_SAFE, "in a forked child of two hosts");
        beside = NULL;
        context.s = &other;
        if (!tc_failed(k))
            probe(&context);
        tc_subject_close(&other);
    }
    tc_subject_close(&s);
}

/* ---- forks while other threads are in the plugin ----------------------------------------- */

/* Threads that do little but call, half of them to move bytes, half of them to multiply; and one
 * that forks, of which the children do both. */
enum { LABORERS = 4, FORKS = 150 };

typedef struct laborer {
    tc_contract k; /* of its own */
    tc_verdict verdict;
    tc_subject *s;
    tc_invocation call;
    tc_placed placed;
    bool multiplies; /* the plugin has the kernel */
    atomic_bool *over;
    pthread_t thread;
} laborer;

static void prepare(laborer *l, const tc_contract *k, tc_subject *s, atomic_bool *over) {
    *l = (laborer){.s = s, .over = over};
    l->k = (tc_contract){.c = k->c, .options = k->options, .out = &l->verdict};
    l->multiplies = tc_lifecycle_call(&l->k, s, TC_WORK_PRODUCT, &l->call) &&
                    tc_place_call(s, s->stream, &l->call, &l->placed, &l->verdict) &&
                    tc_call_placed(&l->placed) == TN_OK;
    l->multiplies = tc_subject_sync(s) == TN_OK && l->multiplies;
}

static void finish(laborer *l) {
    tc_unplace(&l->placed);
    tc_arena_finish(&l->k.arena);
}

static void check(laborer *l, tn_status status, const char *what) {
    char reason[TC_MESSAGE];
    if (status != TN_OK)
        TC_BROKEN(&l->k, TNP_FORK_SAFE, "%s beside forks: %.800s", what, tc_reason(status, reason));
}

static void transfer(laborer *l) {
    tc_subject *s = l->s;
    static const char bytes[1000];
    tn_memory memory = 0;
    void *host;
    tn_status status = tc_alloc(s, TN_SPACE_DEVICE, sizeof bytes, &memory, &host);
    if (status == TN_OK) {
        status = s->memory->copy_from_host(s->device, s->stream, memory, 0, bytes, 0, sizeof bytes);
        tn_status later = tc_subject_sync(s);
        s->memory->dealloc(s->device, TN_SPACE_DEVICE, memory);
        status = status == TN_OK ? later : status;
    }
    check(l, status, "a transfer");
}

static void multiply(laborer *l) {
    if (!l->multiplies)
        return;
    tn_status status = tc_call_placed(&l->placed);
    tn_status later = tc_subject_sync(l->s);
    bool declines = status == TN_ERR_UNSUPPORTED; /* now, and not before */
    check(l, status == TN_OK || declines ? later : status, "a kernel");
}

static void *transfer_on(void *context) {
    laborer *l = context;
    while (!atomic_load(l->over) && !tc_failed(&l->k))
        transfer(l);
    return NULL;
}

static void *multiply_on(void *context) {
    laborer *l = context;
    while (l->multiplies && !atomic_load(l->over) && !tc_failed(&l->k))
        multiply(l);
    return NULL;
}

static void do_both(void *context) {
    laborer *l = context;
    transfer(l);
    multiply(l);
}

static void life_fork_busy(tc_contract *k) {
    static laborer all[LABORERS + 1];
    laborer *forking = &all[LABORERS];
    tc_subject s;
    atomic_bool over = false;
    int n = 0;
    if (!open_fork_safe(k, &s))
        return;
    for (int i = 0; i <= LABORERS; i++)
        prepare(&all[i], k, &s, &over);
    for (; n < LABORERS; n++)
        if (pthread_create(&all[n].thread, NULL, n % 2 ? multiply_on : transfer_on, &all[n]) != 0)
            break;
    for (int i = 0; i < FORKS && !tc_failed(&forking->k); i++)
        in_child(&forking->k, &s, do_both, forking, TNP_FORK_SAFE,
                 "in a child that was forked while other threads called it");
    atomic_store(&over, true);
    for (int i = 0; i < n; i++)
        pthread_join(all[i].thread, NULL);
    for (int i = 0; i <= LABORERS; i++) {
        if (tc_failed(&all[i].k))
            tc_verdict_set(k->out, all[i].verdict.status, all[i].verdict.requirement, "%.900s",
                           all[i].verdict.message);
        finish(&all[i]);
    }
    tc_subject_close(&s);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after forks and shutdown");
}

/* ---- forks of two hosts at once ---------------------------------------------------------- */

/* Each host forks for itself, from a thread of its own: one is told of its fork while the other is
 * between `before` and `after`, and each child is told once. */
enum { HOSTS = 2, FORKS_EACH = 60 };

static void *fork_on(void *context) {
    laborer *l = context;
    for (int i = 0; i < FORKS_EACH && !atomic_load(l->over) && !tc_failed(&l->k); i++)
        in_child(&l->k, l->s, do_both, l, TNP_FORK_SAFE,
                 "in a child that was forked while another host forked");
    if (tc_failed(&l->k))
        atomic_store(l->over, true);
    return NULL;
}

static void fork_at_once(tc_contract *k, tc_subject s[HOSTS]) {
    static laborer all[HOSTS];
    atomic_bool over = false;
    int n = 0;
    for (int i = 0; i < HOSTS; i++)
        prepare(&all[i], k, &s[i], &over);
    for (; n < HOSTS; n++)
        if (pthread_create(&all[n].thread, NULL, fork_on, &all[n]) != 0)
            break;
    for (int i = 0; i < n; i++)
        pthread_join(all[i].thread, NULL);
    for (int i = 0; i < HOSTS; i++) {
        do_both(&all[i]); /* in the parent nobody is held up for ever */
        if (tc_failed(&all[i].k))
            tc_verdict_set(k->out, all[i].verdict.status, all[i].verdict.requirement, "%.900s",
                           all[i].verdict.message);
        finish(&all[i]);
    }
}

static void life_fork_at_once(tc_contract *k) {
    tc_subject s[HOSTS];
    tn_host host = *tc_host_table();
    if (!open_fork_safe(k, &s[0]))
        return;
    if (tc_lifecycle_open(k, &s[1], &host, TNP_INIT_TWICE, "beside another host")) {
        fork_at_once(k, s);
        tc_subject_close(&s[1]);
    }
    tc_subject_close(&s[0]);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after two hosts forked at once");
}

/* ---- unloading --------------------------------------------------------------------------- */

/* What was registered and not taken back is called when a process forks. */
static void fork_once(tc_contract *k) {
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (child > 0 && status != 0)
        TC_BROKEN(k, TNP_SHUTDOWN_UNLOADABLE,
                  "a fork after dlclose crashes in what the plugin left behind");
}

static void life_unload(tc_contract *k) {
    uint64_t first = 0, sum = 0;
    for (int i = 0; i < 4 && !tc_failed(k); i++) {
        tc_subject s;
        if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_SHUTDOWN_UNLOADABLE,
                               i ? "loaded again" : "loaded"))
            return;
        tc_lifecycle_probe(k, &s, i == 0 ? TC_WORK_WIDE : TC_WORK_SMALL, TNP_SHUTDOWN_UNLOADABLE,
                           i ? "loaded again" : "loaded", NULL);
        tc_lifecycle_probe(k, &s, TC_WORK_SMALL, TNP_SHUTDOWN_UNLOADABLE,
                           i ? "loaded again" : "loaded", &sum);
        bool unloadable = s.plugin->flags & TN_PLUGIN_UNLOADABLE;
        tc_subject_close(&s);
        if (!unloadable) {
            TC_NOT_OFFERED(k, "the plugin has no TN_PLUGIN_UNLOADABLE");
            return;
        }
        if (i && sum != first)
            TC_BROKEN(k, TNP_SHUTDOWN_UNLOADABLE,
                      "a kernel gives other bits after the object was loaded again");
        first = sum;
        if (dlclose(s.object) != 0)
            TC_BROKEN(k, TNP_SHUTDOWN_UNLOADABLE, "dlclose: %s", dlerror());
        fork_once(k);
    }
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after dlclose");
}

/* ---- threads that outlive the object ----------------------------------------------------- */

enum { CALLERS = 3 };

/* A thread that calls the plugin while it is there, and ends when it is gone. */
typedef struct caller {
    tc_contract k; /* of its own */
    tc_verdict verdict;
    tc_subject *s;
    sem_t called, gone;
    pthread_t thread;
} caller;

/* Calls that fail: what a plugin keeps for a thread it may keep for its messages. */
static void call_in_vain(const tc_subject *s) {
    tn_memory memory;
    void *host;
    tn_device_impl *none;
    tn_cell cell;
    tc_alloc(s, (tn_memory_space)0x7f, 64, &memory, &host);
    tc_alloc_any(s, TN_SPACE_DEVICE, UINT64_C(1) << 62, &memory, &host);
    s->ops->open(s->self, UINT32_MAX, &none);
    s->ops->property(s->self, s->index, TN_PROP_VENDOR - 1, &cell);
}

static void *call_and_stay(void *context) {
    caller *c = context;
    tc_lifecycle_probe(&c->k, c->s, TC_WORK_SMALL, TNP_NONE, "from another thread", NULL);
    call_in_vain(c->s);
    tc_arena_finish(&c->k.arena);
    sem_post(&c->called);
    sem_wait(&c->gone);
    return NULL;
}

static void unload_under_threads(void *context) {
    static caller callers[CALLERS];
    tc_contract *k = context;
    tc_subject s;
    int n = 0;
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_SHUTDOWN_UNLOADABLE, "loaded"))
        return;
    if (!(s.plugin->flags & TN_PLUGIN_UNLOADABLE)) {
        TC_NOT_OFFERED(k, "the plugin has no TN_PLUGIN_UNLOADABLE");
        return;
    }
    for (; n < CALLERS; n++) {
        caller *c = &callers[n];
        c->s = &s;
        c->k = (tc_contract){.c = k->c, .options = k->options, .out = &c->verdict};
        sem_init(&c->called, 0, 0);
        sem_init(&c->gone, 0, 0);
        if (pthread_create(&c->thread, NULL, call_and_stay, c) != 0)
            break;
        sem_wait(&c->called); /* one after the other: what is checked here is their end */
        if (tc_failed(&c->k))
            TC_BROKEN(k, c->verdict.requirement, "%.900s", c->verdict.message);
    }
    tc_subject_close(&s);
    if (dlclose(s.object) != 0)
        TC_BROKEN(k, TNP_SHUTDOWN_UNLOADABLE, "dlclose: %s", dlerror());
    for (int i = 0; i < n; i++) {
        sem_post(&callers[i].gone);
        pthread_join(callers[i].thread, NULL);
    }
}

static void life_unload_threads(tc_contract *k) {
    in_child(k, NULL, unload_under_threads, k, TNP_SHUTDOWN_UNLOADABLE,
             "when a thread that had called it ended after dlclose; take back what is kept for "
             "threads (keys, destructors) in shutdown");
}

/* ---- the end without shutdown ------------------------------------------------------------ */

/* Two streams with work that is not done. */
static void queue_much(tc_contract *k, tc_subject *s) {
    tc_subject *was = k->subject;
    k->subject = s;
    tc_work work;
    tc_buffer b;
    tn_stream_impl *stream = NULL;
    if (tc_work_create(k, s, &work) && tc_buffer_create(k, s, TN_SPACE_DEVICE, 5000, &b) &&
        (!s->ops->streams || tc_stream_create(k, s, 0, &stream))) {
        tc_work_hold(k, &work, s->stream, 0.3);
        tc_work_hold(k, &work, stream, 0.3);
        for (int i = 0; i < 100; i++)
            tc_buffer_fill(k, &b, stream, i);
    }
    k->subject = was;
}

/* That, and a thread in a kernel: exit, as programs end. */
static void exit_at_work(void *context) {
    static laborer one;
    tc_contract *k = context;
    tc_subject s;
    atomic_bool over = false;
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_NONE, "loaded"))
        return;
    prepare(&one, k, &s, &over);
    multiply(&one);
    queue_much(k, &s);
    if (!tc_failed(k))
        exit(0);
}

static void life_exit(tc_contract *k) {
    in_child(k, NULL, exit_at_work, k, TNP_EXIT_WITHOUT_SHUTDOWN,
             "when the process ended without shutdown, with work in its queues");
}

/* With AddressSanitizer in the runner nothing runs at this exit: to its search for leaks, what the
 * threads held that a forked child does not have is lost. */
static void just_exit(void *context) {
    (void)context;
#ifdef __SANITIZE_ADDRESS__
    _exit(0);
#else
    exit(0);
#endif
}

/* A child that wants nothing of the device, as of fork and a failed exec. */
static void exit_of_a_child(void *context) {
    tc_contract *k = context;
    tc_subject s;
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_NONE, "loaded"))
        return;
    queue_much(k, &s);
    if (!tc_failed(k))
        in_child(k, &s, just_exit, NULL, TNP_EXIT_WITHOUT_SHUTDOWN,
                 "when a forked child exited, with work in the parent's queues");
    if (!tc_failed(k))
        tc_lifecycle_probe(k, &s, TC_WORK_SMALL, TNP_EXIT_WITHOUT_SHUTDOWN,
                           "in the parent of a child that exited", NULL);
    tc_subject_close(&s);
}

static void life_exit_child(tc_contract *k) {
    in_child(k, NULL, exit_of_a_child, k, TNP_EXIT_WITHOUT_SHUTDOWN,
             "when a process had a child that exited");
}

const tc_contract_row tc_fork_rows[] = {
    {"life-fork", "", TC_STANDARD, life_fork},
    {"life-fork-two-hosts", "", TC_STANDARD, life_fork_two_hosts},
    {"life-fork-busy", "", TC_STANDARD, life_fork_busy},
    {"life-fork-at-once", "", TC_STANDARD, life_fork_at_once},
    {"life-unload", "", TC_STANDARD, life_unload},
    {"life-unload-threads", "", TC_SMOKE, life_unload_threads},
    {"life-exit", "", TC_SMOKE, life_exit},
    {"life-exit-child", "", TC_STANDARD, life_exit_child},
    {0},
};
