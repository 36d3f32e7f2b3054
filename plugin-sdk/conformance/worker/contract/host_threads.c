/* contract/host-threads-beyond: more host threads are asked for than any machine has. A plugin takes as many as it can,
 * and what kernels make room for follows from those. */
#include "plugin-sdk/conformance/worker/contract/contract.h"
#include "plugin-sdk/conformance/worker/kernel/caller.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"
#include "plugin-sdk/conformance/worker/suite.h"

#include <tenon/ext/threads.h>

typedef struct caller {
    tc_sink sink;
    tc_contract *k;
    const tc_record *record; /* of the line before */
    uint32_t n;              /* threads that were asked for */
} caller;

static bool prepares(const tc_subject *s, const tc_invocation *call) {
    const tn_kernel *kernel;
    return tc_find_kernel(s, call, NULL, &kernel) == TC_CLAIMED && kernel->prepare;
}

/* The first line of each operator, where its kernel has something to prepare. */
static void call_first(tc_sink *sink, const char *line) {
    caller *w = (caller *)sink;
    tc_subject *s = w->k->subject;
    tc_arena arena = {NULL};
    tc_case c;
    tc_invocation call;
    tc_result result;
    tc_verdict v = {.status = TC_PASS};
    char why[TC_MESSAGE];
    bool good = !tc_failed(w->k) && tc_case_parse(line, &c, why) &&
                tc_record_find(c.subject) != w->record &&
                tc_invocation_parse(&c, &arena, &call, why);
    if (good)
        w->record = call.record;
    if (good && prepares(s, &call) && tc_fill_for(s, &call, call.seed, why) &&
        tc_execute(s, &call, &result, &v) && tc_check_success(&call, &result, &v)) {
        tc_check_untouched(&call, &result, &v);
        tc_check_outputs(&call, &result, s, &v);
    }
    if (v.status == TC_FAIL || v.status == TC_ERROR)
        tc_verdict_set(w->k->out, v.status, v.requirement,
                       "after set_num_threads(%u): `%.300s`: %s", w->n, line, v.message);
    tc_arena_finish(&arena);
}

static void ask_for(tc_contract *k, const tn_ext_threads *threads, uint32_t n) {
    tn_instance *self = k->subject->self;
    if (!tc_must(k, TNP_THREADS_LIMIT, threads->set_num_threads(self, n),
                 "set_num_threads of more than there are"))
        return;
    uint32_t got = threads->get_num_threads(self);
    if (got < 1 || got > n)
        TC_BROKEN(k, TNP_THREADS_LIMIT,
                  "after set_num_threads(%u) get_num_threads says %u: as many as the plugin can, "
                  "one at least, and no more",
                  n, got);
}

static void beyond(tc_contract *k) {
    static const uint32_t counts[] = {1000, UINT32_C(1) << 16, UINT32_C(1) << 31, UINT32_MAX};
    enum { N_COUNTS = sizeof counts / sizeof *counts };
    const tn_ext_threads *threads = tc_subject_extension(k->subject, TN_EXT_THREADS);
    if (!threads) {
        TC_NOT_OFFERED(k, "no tenon.threads/1");
        return;
    }
    uint32_t before = threads->get_num_threads(k->subject->self);
    for (int i = 0; i < N_COUNTS && !tc_failed(k); i++) {
        caller w = {.sink = {call_first}, .k = k, .n = counts[i]};
        ask_for(k, threads, counts[i]);
        if (i == 0 || i == N_COUNTS - 1)
            tc_class_kernel.list(TC_SMOKE, &w.sink);
    }
    threads->set_num_threads(k->subject->self, before);
}

const tc_contract_row tc_host_thread_rows[] = {
    {"host-threads-beyond", "", TC_STANDARD, beyond},
    {0},
};
