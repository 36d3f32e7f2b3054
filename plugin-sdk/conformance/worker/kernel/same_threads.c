/* same/ how=host-threads: results on one and on several threads, and how many threads really worked.
 *
 * The scheduler says of each thread how long it ran. A call is made often enough that one which is only
 * woken has run for next to nothing. */
#include "plugin-sdk/conformance/worker/kernel/same.h"
#include "plugin-sdk/process/state.h"

#include <pthread.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <tenon/ext/threads.h>
#include <time.h>
#include <unistd.h>

enum { MOST_THREADS = 512, ROUNDS = 4, WORK_NS = 500000, MOST_CALLS = 50, TRIES = 3 };

typedef struct ran {
    int n;
    struct {
        int tid;
        uint64_t ns;
    } at[MOST_THREADS];
} ran;

/* False where the system does not say. The calling thread's own time comes from its clock: the
 * scheduler's lags behind while it runs. */
static bool look(ran *out) {
    DIR *tasks = opendir("/proc/self/task");
    out->n = 0;
    for (struct dirent *d; tasks && (d = readdir(tasks));) {
        char path[64];
        struct timespec own;
        int tid = atoi(d->d_name);
        if (tid <= 0 || out->n == MOST_THREADS)
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", tid);
        FILE *file = fopen(path, "re");
        uint64_t ns = 0;
        bool known = file && fscanf(file, "%" SCNu64, &ns) == 1;
        if (file)
            fclose(file);
        if (tid == (int)syscall(SYS_gettid) && clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own) == 0)
            ns = (uint64_t)own.tv_sec * 1000000000u + (uint64_t)own.tv_nsec;
        if (known) {
            out->at[out->n].tid = tid;
            out->at[out->n++].ns = ns;
        }
    }
    if (tasks)
        closedir(tasks);
    return out->n > 0;
}

static uint64_t since(const ran *before, const ran *now, int i) {
    for (int k = 0; k < before->n; k++)
        if (before->at[k].tid == now->at[i].tid)
            return now->at[i].ns - before->at[k].ns;
    return now->at[i].ns;
}

/* Threads that ran for a fifth of the busiest one's time, and more. */
static uint32_t busy(const ran *before, const ran *now) {
    uint64_t most = 0;
    uint32_t n = 0;
    for (int i = 0; i < now->n; i++)
        most = since(before, now, i) > most ? since(before, now, i) : most;
    for (int i = 0; i < now->n; i++)
        n += since(before, now, i) > most / 5;
    return n;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Does any other thread run, or would it if it got a processor? */
static bool others_run(void) {
    DIR *tasks = opendir("/proc/self/task");
    bool run = false;
    for (struct dirent *d; tasks && (d = readdir(tasks));) {
        char path[64], text[128] = "";
        int tid = atoi(d->d_name);
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
        FILE *file = tid > 0 && tid != (int)syscall(SYS_gettid) ? fopen(path, "re") : NULL;
        if (file) {
            const char *name_end = fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
            run |= name_end && strncmp(name_end, ") R", 3) == 0;
            fclose(file);
        }
    }
    if (tasks)
        closedir(tasks);
    return run;
}

/* Waits until what other threads had begun before is over: some wait for more work without sleeping,
 * and on a machine with much else to do that takes long. */
static void let_others_end(void) {
    struct timespec moment = {.tv_nsec = 1000000};
    for (int i = 0; i < 2000 && others_run(); i++)
        nanosleep(&moment, NULL);
}

/* Has this call given what the first one did: every bit of it where the kernel says so, else what is right? */
static void check_agrees(tc_comparison *m, tc_invocation *first_call, const tc_result *first,
                         tc_invocation *call, const tc_result *result, const char *between) {
    if (m->judged) {
        tc_check_outputs(call, result, m->subject, m->out);
        return;
    }
    for (uint32_t k = 0; k < call->record->n_outs; k++)
        tc_check_same(m->arena, first_call, first, 0, call, result, k, TNP_KERNEL_DETERMINISTIC,
                      between, m->out);
}

/* The call again and again, for a while: threads that share what they should not meet now and then. */
static void call_often(tc_comparison *m, tc_placed *p, const tc_result *first) {
    uint64_t end = now_ns() + WORK_NS;
    tn_status status = TN_OK;
    bool wrote = false;
    for (int i = 0; i < MOST_CALLS && now_ns() < end && status == TN_OK; i++) {
        status = tc_call_placed(p);
        wrote = wrote || status != TN_ERR_UNSUPPORTED;
        tc_subject_sync(m->subject);
    }
    if (!wrote) /* and nothing was written */
        return;
    tc_result again = {0};
    if (tc_read_outs(p, &again, m->out))
        check_agrees(m, p->call, first, p->call, &again,
                     "from one call on several host threads to another");
}

/* How many threads these calls keep busy; 0 where nobody can say. */
static uint32_t count(tc_comparison *m, tc_invocation *call, const tc_result *first) {
    tc_placed p;
    ran *looks = tc_arena_array(m->arena, 2, sizeof *looks);
    uint32_t n = 0;
    if (!looks)
        return 0;
    let_others_end();
    if (tc_place_call(m->subject, m->subject->stream, call, &p, m->out) &&
        tc_subject_sync(m->subject) == TN_OK && look(&looks[0])) {
        for (int i = 0; i < ROUNDS && m->out->status == TC_PASS; i++)
            call_often(m, &p, first);
        if (look(&looks[1]))
            n = busy(&looks[0], &looks[1]);
    }
    tc_unplace(&p);
    return n;
}

/* On a device with streams others than those of kernels may be busy: their queues, and the caller. */
static void check_threads(tc_comparison *m, tc_invocation *call, const tc_result *first,
                          uint32_t limit) {
    uint32_t least = UINT32_MAX;
    for (int i = 0; i < TRIES && least > limit && !m->subject->stream && call->in_place < 0; i++) {
        uint32_t n = count(m, call, first);
        least = n < least ? n : least;
    }
    if (least != UINT32_MAX && least > limit)
        tc_verdict_set(m->out, TC_FAIL, TNP_THREADS_LIMIT,
                       "%s: %u threads were busy with it where set_num_threads had said %u",
                       call->record->op, least, limit);
}

/* How many threads are busy with calls prepared for `then` and run with `now`. */
static uint32_t count_prepared(tc_comparison *m, const tn_ext_threads *threads, tc_placed *p,
                               uint32_t then, uint32_t now) {
    ran *looks = tc_arena_array(m->arena, 2, sizeof *looks);
    tn_instance *self = m->subject->self;
    bool ok = looks != NULL;
    let_others_end();
    ok = ok && look(&looks[0]);
    uint64_t end = now_ns() + ROUNDS * WORK_NS;
    for (int i = 0; i < ROUNDS * MOST_CALLS && ok && now_ns() < end; i++) {
        threads->set_num_threads(self, then);
        ok = tc_prepare_placed(p) == TN_OK;
        threads->set_num_threads(self, now);
        ok = ok && tc_run_placed(p) == TN_OK;
    }
    return ok && look(&looks[1]) ? busy(&looks[0], &looks[1]) : 0;
}

/* Those that run keep to the limit that holds then. */
static void check_limit_of_run(tc_comparison *m, const tn_ext_threads *threads, tc_placed *p,
                               uint32_t then, uint32_t now) {
    uint32_t least = UINT32_MAX;
    for (int i = 0; i < TRIES && least > now; i++) {
        uint32_t n = count_prepared(m, threads, p, then, now);
        least = n < least ? n : least;
    }
    if (least > now)
        tc_verdict_set(m->out, TC_FAIL, TNP_THREADS_LIMIT,
                       "%s: %u threads were busy with calls that were prepared while %u were "
                       "allowed and run while %u were",
                       p->call->record->op, least, then, now);
}

/* A call prepared while `then` threads are allowed and run while `now` are: what it has prepared must
 * do. */
static void check_prepared_before(tc_comparison *m, const tn_ext_threads *threads,
                                  tc_invocation *call, const tc_result *first, uint32_t then,
                                  uint32_t now) {
    tc_placed p;
    tc_result result = {0};
    threads->set_num_threads(m->subject->self, then);
    bool ok = tc_place_call(m->subject, m->subject->stream, call, &p, m->out) &&
              tc_prepare_placed(&p) == TN_OK;
    threads->set_num_threads(m->subject->self, now);
    tn_status status = ok ? tc_run_placed(&p) : TN_OK, later = tc_subject_sync(m->subject);
    ok = ok && status != TN_ERR_UNSUPPORTED;
    if (ok && (status != TN_OK || later != TN_OK))
        tc_verdict_set(m->out, TC_FAIL, TNP_KERNEL_RESULT,
                       "%s: prepared for %u host threads and run with %u it fails: %s",
                       call->record->op, then, now, tc_host_message());
    else if (ok && tc_read_back(&p, &result, m->out)) {
        tc_check_untouched(call, &result, m->out);
        check_agrees(m, call, first, call, &result,
                     "from a call to one that was prepared for other host threads");
        if (now < then && !m->subject->stream && call->in_place < 0 && m->out->status == TC_PASS)
            check_limit_of_run(m, threads, &p, then, now);
    }
    tc_unplace(&p);
}

typedef struct setter {
    tn_instance *self;
    const tn_ext_threads *threads;
    uint32_t n;
    tn_status status;
} setter;

static void *set(void *context) {
    setter *s = context;
    s->status = s->threads->set_num_threads(s->self, s->n);
    return NULL;
}

/* The limit is the plugin's, and not that of the thread that sets it. */
static tn_status set_on_another_thread(tn_instance *self, const tn_ext_threads *threads,
                                       uint32_t n) {
    setter s = {self, threads, n, TN_OK};
    pthread_t thread;
    if (pthread_create(&thread, NULL, set, &s) == 0)
        pthread_join(thread, NULL);
    else
        set(&s);
    return s.status;
}

/* Numbers that come out otherwise in another mode of the processor: the smallest, which may be taken for 0, and sums that are
 * rounded, to either side. Enough for so many threads to have a part each. */
static bool fill_for_modes(tc_arena *arena, tc_invocation *add, uint32_t n_threads) {
    enum { PART = 40000 };
    char why[TC_MESSAGE], line[TC_MAX_LINE];
    tc_case c;
    snprintf(line, sizeof line, "kernel/add T=f32 alpha=1 other=[%u] self=[%u]",
             n_threads * PART + 3, n_threads * PART + 3);
    if (!tc_case_parse(line, &c, why) || !tc_invocation_parse(&c, arena, add, why) ||
        !tc_invocation_fill_inputs(add, 1, why))
        return false;
    for (int a = 0; a < 2; a++) {
        tc_operand *o = &add->args[a].tensor;
        for (int64_t i = 0; i < o->shape.numel; i++) {
            tc_real sign = i % 4 < 2 ? 1 : -1;
            o->values[i].f = sign * (i % 2 ? (tc_real)(i % 1000 + 1) * 0x1p-149L
                                     : a   ? 0x1.8p-24L
                                           : 1);
        }
        tc_operand_settle(o);
    }
    add->record->reference(add);
    return true;
}

enum { MOST_HOST_THREADS = 8 };

/* The call for so many threads, which is the same for all lines: filled once. NULL: no memory. */
static const tc_invocation *call_for_modes(uint32_t n_threads) {
    static struct {
        tc_arena arena;
        tc_invocation add;
        bool filled;
    } kept[MOST_HOST_THREADS + 1];
    if (!kept[n_threads].filled) {
        kept[n_threads].filled =
            fill_for_modes(&kept[n_threads].arena, &kept[n_threads].add, n_threads);
        if (!kept[n_threads].filled)
            tc_arena_finish(&kept[n_threads].arena);
    }
    return kept[n_threads].filled ? &kept[n_threads].add : NULL;
}

/* The plugin's own threads are as they were when a call is over; of operators of one rounding the calls themselves show
 * it. Of the others a third of the lines tries it, which takes longer than most calls. */
static void check_modes(tc_comparison *m, uint32_t n_threads) {
    bool plain = m->call.record->pointwise && m->call.record->ulps <= 0;
    bool tries = !plain && m->c->seed / 64 % 3 == 0;
    const tc_invocation *kept = tries ? call_for_modes(n_threads) : NULL;
    if (!kept)
        return;
    tc_arena arena = {NULL}; /* of what comes out */
    tc_invocation add = *kept;
    tc_result result = {0};
    tc_verdict v = {.status = TC_PASS};
    add.arena = &arena;
    if (tc_claimed_kernel(m->subject, &add, &v) && tc_execute(m->subject, &add, &result, &v) &&
        tc_check_success(&add, &result, &v))
        tc_check_outputs(&add, &result, m->subject, &v);
    if (v.status == TC_FAIL)
        tc_verdict_set(m->out, TC_FAIL, TNP_PROCESS_STATE_KEPT,
                       "%s: after it on %u host threads sums come out otherwise (%s); a thread's "
                       "modes are put back before its work is over",
                       m->call.record->op, n_threads, v.message);
    tc_arena_finish(&arena);
}

typedef struct member {
    tc_comparison *m;
    tc_invocation call;
    tc_result result;
    bool ok;
} member;

static void call_as_member(void *of) {
    member *t = of;
    t->ok = tc_same_call(t->m, &t->call, &t->result, t->m->call.seed + 7);
}

/* From a program's own parallel region, by the last of more threads than a kernel may use: what a plugin asks OpenMP of the
 * calling thread is about the program's team there. */
static void check_in_team(tc_comparison *m, const tn_ext_threads *threads,
                          tc_invocation *first_call, const tc_result *first) {
    enum { MAY_USE = 2, TEAM = 4 };
    member t = {.m = m};
    threads->set_num_threads(m->subject->self, MAY_USE);
    if (tni_process_run_in_team(TEAM, call_as_member, &t) && t.ok)
        check_agrees(
            m, first_call, first, &t.call, &t.result,
            "between a call from a plain thread and one from a parallel region of the program");
}

void tc_same_host_threads(tc_comparison *m) {
    static const uint32_t several[] = {3, 2, MOST_HOST_THREADS, 4};
    uint32_t counts[] = {1, several[m->c->seed / 16 % 4]}; /* or as many as the plugin can */
    tc_invocation calls[2];
    tc_result results[2];
    tn_instance *self = m->subject->self;
    const tn_ext_threads *threads = tc_subject_extension(m->subject, TN_EXT_THREADS);
    if (!threads) {
        tc_verdict_set(m->out, TC_UNSUPPORTED, TNP_NONE, "no tenon.threads/1");
        return;
    }
    uint32_t before = threads->get_num_threads(self);
    bool ok = true;
    m->judged = !(m->kernel->flags & TN_KERNEL_DETERMINISTIC);
    for (int i = 0; i < 2 && ok; i++) {
        tn_status status = set_on_another_thread(self, threads, counts[i]);
        uint32_t got = threads->get_num_threads(self);
        if (status != TN_OK || got < 1 || got > counts[i])
            tc_verdict_set(m->out, TC_FAIL, TNP_THREADS_LIMIT,
                           "%u threads were set, and get_num_threads says %u", counts[i], got);
        else
            counts[i] = got;
        ok = tc_same_call(m, &calls[i], &results[i], m->call.seed + (uint64_t)i);
        if (ok)
            check_threads(m, &calls[i], &results[i], counts[i]);
    }
    if (ok && m->kernel->prepare && m->out->status == TC_PASS) {
        check_prepared_before(m, threads, &calls[0], &results[0], 1, counts[1]);
        check_prepared_before(m, threads, &calls[0], &results[0], counts[1], 1);
    }
    if (ok && m->out->status == TC_PASS) {
        threads->set_num_threads(self, counts[1]);
        check_modes(m, counts[1]);
    }
    if (ok && m->out->status == TC_PASS)
        check_in_team(m, threads, &calls[0], &results[0]);
    threads->set_num_threads(self, before);
    if (ok)
        check_agrees(m, &calls[0], &results[0], &calls[1], &results[1],
                     "between one host thread and several");
}
