/* `prepare` and `abandon` of kernels: what a cookie stands for is given back, by either way, and is
 * the call's own. */
#include "plugin-sdk/conformance/worker/contract/reach.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static bool has_prepare(const tn_kernel *kernel) {
    return kernel->prepare != NULL;
}

/* ---- a call of a record ------------------------------------------------------------------ */

typedef struct prepared {
    tc_case c;
    tc_invocation call;
    tc_placed placed;
} prepared;

/* The line's call, of that record (NULL: of any). False also of calls in place: what they have
 * changed they would find when they run again. */
static bool place(tc_contract *k, const tn_kernel *kernel, const char *line, uint64_t seed,
                  prepared *p) {
    char why[TC_MESSAGE];
    memset(p, 0, sizeof *p);
    if (!tc_case_parse(line, &p->c, why) || !tc_invocation_parse(&p->c, &k->arena, &p->call, why))
        return TC_CASE_ERROR(k->out, "%s: %s", line, why);
    p->call.seed += 0x1000003 * seed;
    if (!tc_fill_for(k->subject, &p->call, p->call.seed + seed, why))
        return TC_CASE_ERROR(k->out, "%s: %s", line, why);
    return p->call.in_place < 0 &&
           tc_place_call(k->subject, k->subject->stream, &p->call, &p->placed, k->out) &&
           (!kernel || p->placed.kernel == kernel) && tc_subject_sync(k->subject) == TN_OK;
}

/* What came out of its last run. */
static void check(tc_contract *k, prepared *p, tn_requirement requirement, const char *when) {
    tc_result result = {0};
    tc_verdict v = {0};
    if (tc_read_back(&p->placed, &result, &v)) {
        tc_check_untouched(&p->call, &result, &v);
        tc_check_outputs(&p->call, &result, k->subject, &v);
    }
    if (v.status == TC_FAIL)
        TC_BROKEN(k, requirement, "%s: %.800s", when, v.message);
}

/* ---- many times, and what is left of them ------------------------------------------------ */

enum { TIMES = 25, ROUNDS = 4 };

typedef struct turn {
    const char *name;
    bool runs;    /* else the call is abandoned */
    bool starved; /* without host memory, so that it may fail */
} turn;

/* False where `prepare` or `run` declines. */
static bool take_turn(tc_contract *k, prepared *p, const turn *t) {
    const char *op = p->call.record->op;
    tc_host_forget();
    tn_status status = tc_prepare_placed(&p->placed);
    if (status == TN_ERR_UNSUPPORTED)
        return false;
    if (!tc_must(k, TNP_KERNEL_WORKSPACE, status, "prepare"))
        return false;
    if (t->starved) {
        tc_host_fail_after(0);
        tc_run_placed(&p->placed);
        tc_host_fail_after(-1);
        tc_subject_sync(k->subject);
    } else if (!t->runs) {
        tc_abandon_placed(&p->placed);
    } else {
        status = tc_run_placed(&p->placed);
        return status != TN_ERR_UNSUPPORTED && tc_must(k, TNP_KERNEL_RESULT, status, op) &&
               tc_must(k, TNP_KERNEL_RESULT, tc_subject_sync(k->subject), op);
    }
    return true;
}

/* Of a record that took many turns: one that has run out of something declines each time, and not now and then. */
static bool takes_still(tc_contract *k, prepared *p, const turn *t) {
    enum { TRIES = 50 };
    bool takes = false;
    for (int i = 0; i < TRIES && !takes && !tc_failed(k); i++)
        takes = take_turn(k, p, t);
    return takes;
}

/* What is kept grows with each round, or not at all. */
static bool leaves_nothing(tc_contract *k, prepared *p, const turn *t) {
    int64_t blocks[ROUNDS];
    uint64_t bytes[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < TIMES; i++)
            if (!take_turn(k, p, t))
                return false;
        blocks[r] = tc_host_blocks();
        bytes[r] = tc_free_bytes(k->subject);
    }
    if (blocks[2] - blocks[1] >= TIMES && blocks[3] - blocks[2] >= TIMES)
        TC_BROKEN(k, TNP_KERNEL_ABANDON, "%s: %s %d times leaves %lld host blocks out",
                  p->call.record->op, t->name, TIMES, (long long)(blocks[3] - blocks[2]));
    if (bytes[1] > bytes[2] && bytes[1] - bytes[2] >= TIMES && bytes[2] > bytes[3] &&
        bytes[2] - bytes[3] >= TIMES)
        TC_BROKEN(k, TNP_KERNEL_ABANDON, "%s: %s %d times leaves %llu bytes fewer free",
                  p->call.record->op, t->name, TIMES, (unsigned long long)(bytes[2] - bytes[3]));
    return !tc_failed(k);
}

/* What is set aside for a call that does not run serves again, also where there is not much of it. */
static bool goes_on(tc_contract *k, prepared *p, const turn *t) {
    enum { MANY = 300 };
    for (int i = 0; i < MANY; i++)
        if (!takes_still(k, p, t))
            return tc_failed(k) ? false
                                : TC_BROKEN(k, TNP_KERNEL_ABANDON,
                                            "%s: %s more than %d times, and prepare declines",
                                            p->call.record->op, t->name, i);
    return true;
}

static void many_times(tc_contract *k, const tn_kernel *kernel, const tc_reached *reached) {
    static const turn abandoned = {"prepare and abandon", false, false},
                      run = {"prepare and run", true, false},
                      starved = {"prepare and a run without host memory", true, true};
    prepared *p = tc_arena_array(&k->arena, 1, sizeof *p);
    if (!p)
        TC_CASE_ERROR(k->out, "the host has no memory for this case");
    else if (place(k, kernel, reached->lines[0], 0, p)) {
        bool takes = leaves_nothing(k, p, &abandoned) && goes_on(k, p, &abandoned) &&
                     leaves_nothing(k, p, &run);
        if (takes)
            check(k, p, TNP_KERNEL_ABANDON, "a call after others were abandoned");
        if (takes && !tc_failed(k))
            leaves_nothing(k, p, &starved);
        if (takes && !tc_failed(k) && !takes_still(k, p, &run) && !tc_failed(k))
            TC_BROKEN(k, TNP_KERNEL_ABANDON, "%s: after calls that failed prepare or run declines",
                      p->call.record->op);
        tc_subject_sync(k->subject);
    }
    if (p)
        tc_unplace(&p->placed);
}

/* ---- another call between prepare and run ------------------------------------------------ */

/* False also where `run` declines. */
static bool runs(tc_contract *k, prepared *p) {
    tn_status status = tc_run_placed(&p->placed);
    return status != TN_ERR_UNSUPPORTED &&
           tc_must(k, TNP_KERNEL_WORKSPACE, status, p->call.record->op);
}

static bool prepare_both(prepared p[2]) {
    bool both = tc_prepare_placed(&p[0].placed) == TN_OK;
    if (both && tc_prepare_placed(&p[1].placed) != TN_OK) {
        tc_abandon_placed(&p[0].placed);
        both = false;
    }
    return both;
}

/* Two calls of one thread, both prepared before either runs: in their order, and the second one
 * first. */
static void between(tc_contract *k, const tn_kernel *kernel, const char *const lines[2]) {
    prepared *p = tc_arena_array(&k->arena, 2, sizeof *p);
    if (!p) {
        TC_CASE_ERROR(k->out, "the host has no memory for this case");
        return;
    }
    memset(p, 0, 2 * sizeof *p);
    if (place(k, kernel, lines[0], 0, &p[0]) && place(k, kernel, lines[1], 100, &p[1]))
        for (int first = 0; first < 2 && !tc_failed(k); first++) {
            bool ran[2];
            if (!prepare_both(p))
                break;
            ran[first] = runs(k, &p[first]);
            ran[1 - first] = runs(k, &p[1 - first]);
            tc_subject_sync(k->subject);
            for (int i = 0; i < 2; i++)
                if (ran[i])
                    check(k, &p[i], TNP_KERNEL_WORKSPACE, "two calls prepared before either runs");
        }
    tc_subject_sync(k->subject);
    for (int i = 0; i < 2; i++)
        tc_unplace(&p[i].placed);
}

/* The same where only the inputs differ: both have one output, which is looked at behind each. */
static void into_one(tc_contract *k, const tn_kernel *kernel, const char *line) {
    prepared *p = tc_arena_array(&k->arena, 2, sizeof *p);
    if (!p) {
        TC_CASE_ERROR(k->out, "the host has no memory for this case");
        return;
    }
    memset(p, 0, 2 * sizeof *p);
    bool ok = place(k, kernel, line, 0, &p[0]) && place(k, kernel, line, 100, &p[1]);
    for (uint32_t i = 0; ok && i < p[0].call.record->n_outs; i++)
        p[1].placed.out_views[i] = p[0].placed.out_views[i];
    for (int first = 0; ok && first < 2 && prepare_both(p); first++)
        for (int i = 0; i < 2 && !tc_failed(k); i++) {
            prepared *now = &p[i ^ first];
            tc_result result = {0};
            tc_verdict v = {0};
            if (runs(k, now) && tc_subject_sync(k->subject) == TN_OK &&
                tc_read_outs(&now->placed, &result, &v))
                tc_check_outputs(&now->call, &result, k->subject, &v);
            if (v.status == TC_FAIL)
                TC_BROKEN(k, TNP_KERNEL_WORKSPACE,
                          "two calls into one output, prepared before either runs: %.800s",
                          v.message);
        }
    tc_subject_sync(k->subject);
    for (int i = 0; i < 2; i++)
        tc_unplace(&p[i].placed);
}

/* ---- several threads --------------------------------------------------------------------- */

enum { THREADS = 4, CALLS = 12 };

typedef struct worker {
    prepared p;
    pthread_t thread;
    pthread_barrier_t *barrier;
    int turn;         /* in which it prepares the last call */
    tn_status status; /* of the first call that failed */
} worker;

/* All threads prepare at once before any runs; every third call is abandoned. The last one, whose
 * result is looked at, they prepare one after the other. */
static void *work(void *context) {
    worker *w = context;
    for (int i = 0; i < CALLS; i++) {
        tn_status status = TN_OK;
        for (int now = 0; now < THREADS; now++) {
            if (now == (i < CALLS - 1 ? 0 : w->turn))
                status = tc_prepare_placed(&w->p.placed);
            pthread_barrier_wait(w->barrier);
        }
        if (status == TN_OK && i % 3 == 1)
            tc_abandon_placed(&w->p.placed);
        else if (status == TN_OK)
            status = tc_run_placed(&w->p.placed);
        pthread_barrier_wait(w->barrier);
        w->status = w->status == TN_OK ? status : w->status;
    }
    return NULL;
}

static void run_threads(worker *w) {
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int t = 0; t < THREADS; t++) {
        w[t].barrier = &barrier;
        if (pthread_create(&w[t].thread, NULL, work, &w[t]) != 0) {
            fprintf(stderr, "contract/kernel-prepare: a thread cannot be started\n");
            _Exit(1); /* the others wait at the barrier for ever */
        }
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(w[t].thread, NULL);
    pthread_barrier_destroy(&barrier);
}

/* Calls of two kinds in turn, so that threads need plans of their own; `first` of them prepares its
 * last call first. */
static void at_once(tc_contract *k, const tn_kernel *kernel, const tc_reached *reached, int first) {
    worker *w = tc_arena_array(&k->arena, THREADS, sizeof *w);
    bool ok = w != NULL;
    if (!ok) {
        TC_CASE_ERROR(k->out, "the host has no memory for this case");
        return;
    }
    memset(w, 0, THREADS * sizeof *w);
    for (int t = 0; t < THREADS && ok; t++) {
        const char *line = reached->lines[reached->lines[1] ? t % TC_REACHING : 0];
        w[t].turn = (t + first) % THREADS;
        ok = place(k, kernel, line, (uint64_t)t * 100, &w[t].p);
    }
    if (ok)
        run_threads(w);
    tc_subject_sync(k->subject);
    for (int t = 0; t < THREADS && ok; t++)
        if (w[t].status == TN_OK)
            check(k, &w[t].p, TNP_THREADS_CONCURRENT,
                  "threads that prepare before any of them runs");
        else if (w[t].status != TN_ERR_UNSUPPORTED)
            TC_BROKEN(k, TNP_THREADS_CONCURRENT, "%s: one of %d threads that call at once got %s",
                      w[t].p.call.record->op, THREADS, tc_tn_status_name(w[t].status));
    for (int t = 0; t < THREADS; t++)
        tc_unplace(&w[t].p.placed);
}

static void threads(tc_contract *k, const tn_kernel *kernel, const tc_reached *reached) {
    for (int first = 0; first < TC_REACHING && !tc_failed(k); first++)
        at_once(k, kernel, reached, first);
}

/* ---- the cases --------------------------------------------------------------------------- */

static void each_record(tc_contract *k, void (*try)(tc_contract *k, const tn_kernel *kernel,
                                                    const tc_reached *reached)) {
    const tn_plugin *p = k->subject->plugin;
    tc_reached *reached = tc_reach_records(k, TC_SMOKE, has_prepare);
    int n = 0;
    for (uint64_t i = 0; reached && i < p->n_kernels && !tc_failed(k); i++)
        if (reached[i].lines[0]) {
            try(k, p->kernels[i], &reached[i]);
            n++;
        }
    if (n == 0)
        TC_NOT_OFFERED(k, "no kernel has prepare");
}

/* Calls that differ in one stride of many, one behind the other, with nothing allocated or freed
 * between: what is kept of a call fits the next one only where all of it is the same. */
static void alternates(tc_contract *k) {
    static const char *const pairs[][2] = {
        {"kernel/copy S=f32 D=f32 self=[2,3,2,3,2,5]/[1400,450,200,60,24,3]",
         "kernel/copy S=f32 D=f32 self=[2,3,2,3,2,5]/[1700,450,200,60,24,3]"},
        {"kernel/copy S=f32 D=f32 self=[2,3,2,3,2,5]/[1400,450,200,60,24,3]",
         "kernel/copy S=f32 D=f32 self=[2,3,2,3,2,5]/[1400,450,200,60,25,3]"},
        {"kernel/copy S=f32 D=f32 self=[4,7]/[20,2]",
         "kernel/copy S=f32 D=f32 self=[4,7]/[20,2]+3"},
        {"kernel/copy S=f32 D=f32 self=[4,7]/[20,2]", "kernel/copy S=f32 D=f32 self=[7,4]/[20,2]"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && !tc_failed(k); i++)
        between(k, NULL, pairs[i]);
}

/* Of all sizes and layouts some, each with the next. */
static void each_between(tc_contract *k) {
    enum { INTO_ONE = 1 };
    const tn_plugin *p = k->subject->plugin;
    tc_drawn *drawn = tc_reach_draw(k, TC_STANDARD, has_prepare);
    int n = 0;
    for (uint64_t i = 0; drawn && i < p->n_kernels; i++)
        for (int at = 0; at + 1 < TC_DRAWN && drawn[i].lines[at + 1] && !tc_failed(k); at++, n++)
            between(k, p->kernels[i], (const char *const *)drawn[i].lines + at);
    for (uint64_t i = 0; drawn && i < p->n_kernels; i++)
        for (int at = 0; at < INTO_ONE && drawn[i].lines[at] && !tc_failed(k); at++)
            into_one(k, p->kernels[i], drawn[i].lines[at]);
    if (n == 0)
        TC_NOT_OFFERED(k, "no kernel has prepare");
}

static void prepare(tc_contract *k) {
    const char *how = tc_contract_word(k, "how");
    if (strcmp(how, "between") == 0)
        each_between(k);
    else
        each_record(k, strcmp(how, "threads") == 0 ? threads : many_times);
}

const tc_contract_row tc_prepare_rows[] = {
    {"kernel-alternates", "", TC_SMOKE, alternates},
    {"kernel-prepare", "how=abandon", TC_SMOKE, prepare},
    {"kernel-prepare", "how=between", TC_STANDARD, prepare},
    {"kernel-prepare", "how=threads", TC_SMOKE, prepare},
    {0},
};
