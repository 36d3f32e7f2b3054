/* Two hosts in one process that use the same object: two programs' worth of Tenon, or Tenon beside a
 * bridge to something else. */
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/kernel/execute.h"

#include <pthread.h>
#include <string.h>
#include <tenon/ext/capture.h>
#include <tenon/ext/threads.h>
#include <time.h>

enum { PROBES = 6 };

/* One host's life in a thread of its own, with a contract of its own. */
typedef struct tenant {
    tc_contract k;
    tc_verdict verdict;
    tn_host host;
    tc_subject s;
    uint64_t sum;      /* of what its first work came to */
    int64_t n_options; /* how many it was asked for */
    pthread_t thread;
    bool runs;
} tenant;

static bool move_in(tenant *t, const tc_contract *k, const char *when) {
    t->k = (tc_contract){.c = k->c, .options = k->options, .out = &t->verdict};
    t->host = *tc_host_table();
    int64_t asked = tc_host_options_asked();
    bool is_open = tc_lifecycle_open(&t->k, &t->s, &t->host, TNP_INIT_TWICE, when);
    t->n_options = tc_host_options_asked() - asked;
    return is_open;
}

/* Options are a host's own, so each is asked for them. */
static void check_asked(tenant *t, int64_t n_first) {
    if (t->n_options < n_first)
        TC_BROKEN(&t->k, TNP_INIT_TWICE,
                  "the first host was asked for %lld options, another one for %lld: what one has "
                  "set does not hold for others",
                  (long long)n_first, (long long)t->n_options);
}

/* A little of all that has objects of its own: streams, events, pinned memory, graphs. */
static void use_objects(tenant *t) {
    tc_contract *k = &t->k;
    const tc_subject *s = &t->s;
    const tn_stream_ops *streams = s->ops->streams;
    const tn_ext_capture *ext = tc_subject_extension(s, TN_EXT_CAPTURE);
    tn_stream_impl *stream = NULL;
    tn_event_impl *event = NULL;
    tn_graph_impl *graph = NULL;
    tn_memory pinned, memory;
    void *host;
    if (!streams || streams->create(s->device, 0, &stream) != TN_OK)
        return;
    if (tc_must(k, TNP_INIT_TWICE, s->ops->events->create(s->device, 0, &event), "create")) {
        tc_must(k, TNP_INIT_TWICE, s->ops->events->record(event, s->stream), "record");
        tc_must(k, TNP_INIT_TWICE, s->ops->events->wait(stream, event), "wait");
        tc_must(k, TNP_INIT_TWICE, streams->synchronize(stream), "synchronize");
        s->ops->events->destroy(event);
    }
    if (s->spaces >> TN_SPACE_PINNED & 1 &&
        tc_alloc(s, TN_SPACE_PINNED, 1000, &pinned, &host) == TN_OK)
        s->memory->dealloc(s->device, TN_SPACE_PINNED, pinned);
    if (ext && tc_alloc(s, TN_SPACE_DEVICE, 1000, &memory, &host) == TN_OK) {
        tn_status began = ext->begin(stream);
        if (began != TN_ERR_UNSUPPORTED &&
            tc_must(&t->k, TNP_INIT_TWICE, began, "begin of a capture")) {
            s->memory->fill(s->device, stream, memory, 0, 1, 1000);
            if (tc_must(&t->k, TNP_INIT_TWICE, ext->end(stream, &graph), "end of a capture")) {
                tc_must(k, TNP_INIT_TWICE, ext->launch(graph, stream), "launch");
                ext->destroy(graph);
            }
        }
        tc_must(k, TNP_INIT_TWICE, streams->synchronize(stream), "synchronize");
        s->memory->dealloc(s->device, TN_SPACE_DEVICE, memory);
    }
    streams->destroy(stream);
}

/* Does what was done before, to the same bits. */
static void work(tenant *t, const char *when) {
    uint64_t sum = 0;
    tc_lifecycle_probe(&t->k, &t->s, TC_WORK_WIDE, TNP_INIT_TWICE, when, NULL);
    tc_lifecycle_probe(&t->k, &t->s, TC_WORK_SMALL, TNP_INIT_TWICE, when, &sum);
    tc_arena_finish(&t->k.arena);
    if (t->sum && sum && sum != t->sum)
        TC_BROKEN(&t->k, TNP_INIT_TWICE, "%s: a kernel gives other bits than before", when);
    t->sum = sum ? sum : t->sum;
    use_objects(t);
}

/* What is refused on a stream that captures is so on that stream alone. */
static void work_beside_capture(tenant *captures, tenant *works) {
    const tc_subject *s = &captures->s;
    const tn_ext_capture *ext = tc_subject_extension(s, TN_EXT_CAPTURE);
    tn_stream_impl *stream = NULL;
    if (!ext || !s->ops->streams || s->ops->streams->create(s->device, 0, &stream) != TN_OK)
        return;
    if (ext->begin(stream) == TN_OK) {
        work(works, "while a stream of another host captures");
        ext->abandon(stream);
    }
    s->ops->streams->destroy(stream);
}

static void *work_on(void *context) {
    tenant *t = context;
    for (int i = 0; i < PROBES && !tc_failed(&t->k); i++)
        work(t, "while another host used the plugin from another thread");
    return NULL;
}

static void at_once(tenant *a, tenant *b) {
    tenant *both[] = {a, b};
    for (int i = 0; i < 2; i++)
        both[i]->runs = pthread_create(&both[i]->thread, NULL, work_on, both[i]) == 0;
    for (int i = 0; i < 2; i++)
        if (both[i]->runs)
            pthread_join(both[i]->thread, NULL);
}

static uint64_t time_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What others than the caller compute during some calls, in hundredths of what all do: the least of a few
 * tries, since threads that have no work any more may look for some. */
static uint64_t share_of_others(tenant *t) {
    enum { TRIES = 4, WORK_NS = 30000000 };
    tc_invocation call;
    tc_placed placed = {0};
    uint64_t least = 100;
    if (t->s.stream || !tc_lifecycle_call(&t->k, &t->s, TC_WORK_WIDE, &call) ||
        !tc_place_call(&t->s, t->s.stream, &call, &placed, t->k.out))
        return 0; /* queues work on threads of their own */
    for (int i = 0; i < TRIES; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        uint64_t all = time_of(CLOCK_PROCESS_CPUTIME_ID), own = time_of(CLOCK_THREAD_CPUTIME_ID);
        while (time_of(CLOCK_THREAD_CPUTIME_ID) - own < WORK_NS && tc_call_placed(&placed) == TN_OK)
            ;
        own = time_of(CLOCK_THREAD_CPUTIME_ID) - own;
        all = time_of(CLOCK_PROCESS_CPUTIME_ID) - all;
        uint64_t share = all > own ? 100 * (all - own) / all : 0;
        least = share < least ? share : least;
    }
    tc_unplace(&placed);
    return least;
}

/* One computes on one thread, whatever the other one may use. */
static void limit_threads(tenant *a, tenant *b, const tn_ext_threads *x, const tn_ext_threads *y) {
    enum { MUCH = 25 };
    uint32_t n = x->get_num_threads(a->s.self);
    tc_must(&a->k, TNP_THREADS_LIMIT, x->set_num_threads(a->s.self, 1), "set_num_threads");
    tc_must(&b->k, TNP_THREADS_LIMIT, y->set_num_threads(b->s.self, 3), "set_num_threads");
    uint64_t share = share_of_others(a);
    if (share > MUCH)
        TC_BROKEN(
            &b->k, TNP_INIT_TWICE,
            "set_num_threads(3) of another self: one that was told to use 1 has others compute "
            "%llu %% of its calls",
            (unsigned long long)share);
    tc_must(&a->k, TNP_THREADS_LIMIT, x->set_num_threads(a->s.self, n), "set_num_threads");
}

/* What one host sets is its own. */
static void set_threads(tenant *a, tenant *b) {
    const tn_ext_threads *x = tc_subject_extension(&a->s, TN_EXT_THREADS);
    const tn_ext_threads *y = tc_subject_extension(&b->s, TN_EXT_THREADS);
    if (!x || !y)
        return;
    uint32_t n = x->get_num_threads(a->s.self), m = n == 1 ? 2 : 1;
    tc_must(&b->k, TNP_THREADS_LIMIT, y->set_num_threads(b->s.self, m), "set_num_threads");
    if (x->get_num_threads(a->s.self) != n)
        TC_BROKEN(&b->k, TNP_INIT_TWICE,
                  "set_num_threads of one self changed the number of another's threads");
    else
        limit_threads(a, b, x, y);
}

static void two_hosts(tc_contract *k) {
    static tenant a, b;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    const tn_plugin *plugin = tc_lifecycle_query(k);
    if (!plugin)
        return;
    uint64_t tables = tc_tables_sum(plugin);
    if (move_in(&a, k, "for the first of two hosts")) {
        work(&a, "alone");
        if (!tc_failed(&a.k) && move_in(&b, k, "while another host's self lives")) {
            if (a.s.self == b.s.self)
                TC_BROKEN(k, TNP_INIT_TWICE, "init gave out the same self twice");
            check_asked(&b, a.n_options);
            set_threads(&a, &b);
            work(&b, "beside another host");
            work(&a, "after another host had started the plugin, too");
            work_beside_capture(&a, &b);
            at_once(&a, &b);
            tc_subject_close(&b.s);
            work(&a, "after another host had shut the plugin down");
            if (!tc_failed(&a.k) && !tc_failed(&b.k) &&
                move_in(&b, k, "for a host that comes again")) {
                check_asked(&b, a.n_options);
                tc_subject_close(&a.s);
                work(&b, "after the first host had shut the plugin down");
                tc_subject_close(&b.s);
            }
        }
        if (a.s.self)
            tc_subject_close(&a.s);
    }
    if (tc_tables_sum(plugin) != tables)
        TC_BROKEN(k, TNP_INIT_TWICE, "the plugin's tables are not what query answered");
    for (int i = 0; i < 2; i++) {
        const tenant *t = i ? &b : &a;
        if (tc_failed(&t->k))
            tc_verdict_set(k->out, t->verdict.status, t->verdict.requirement, "%.900s",
                           t->verdict.message);
    }
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after two hosts");
}

const tc_contract_row tc_two_hosts_rows[] = {
    {"life-two-hosts", "", TC_STANDARD, two_hosts},
    {0},
};
