/* Calls in one order and, after close and open, in the opposite one, with what the plugin keeps on disk
 * from the first time: what is kept for one call serves no other that it does not fit. */
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/contract/reach.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A folder for plugins that ask for an option `cache`; "" where there is none. */
static char folder[256];

static const char *option(const tn_host *host, const char *name) {
    if (name && strcmp(name, "cache") == 0 && *folder)
        return folder;
    return tc_host_table()->option(host, name);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    return remove(path);
}

/* Kernels of one element at a time are many and alike; of them those in f32. */
static bool is_wanted(const tn_kernel *kernel) {
    const tc_record *record = tc_record_find(kernel->op);
    return record && (!record->pointwise || kernel->dtypes[0] & TN_DTYPE_BIT(TN_F32));
}

static void run_line(tc_contract *k, tc_subject *s, const char *line) {
    char why[TC_MESSAGE];
    tc_case c;
    tc_invocation *call = tc_arena_array(&k->arena, 1, sizeof *call);
    tc_placed placed = {0};
    tc_result result = {0};
    tc_verdict v = {0};
    if (!call || !tc_case_parse(line, &c, why) || !tc_invocation_parse(&c, &k->arena, call, why) ||
        !tc_fill_for(s, call, call->seed, why)) {
        TC_CASE_ERROR(k->out, "%s: %s", line, call ? why : "no memory");
        return;
    }
    if (tc_place_call(s, s->stream, call, &placed, &v) && tc_call_placed(&placed) == TN_OK &&
        tc_subject_sync(s) == TN_OK && tc_read_back(&placed, &result, &v)) {
        tc_check_untouched(call, &result, &v);
        tc_check_outputs(call, &result, s, &v);
    }
    if (v.status == TC_FAIL)
        TC_BROKEN(k, TNP_KERNEL_RESULT, "calls in another order than before: %.700s", v.message);
    tc_subject_sync(s);
    tc_unplace(&placed);
}

static void live(tc_contract *k, const tn_host *host, int turn) {
    tc_subject s, *before = k->subject;
    if (!tc_lifecycle_open(k, &s, host, TNP_INIT_TWICE, "to call kernels in some order"))
        return;
    k->subject = &s;
    tc_reached *reached = tc_reach_records(k, TC_SMOKE, is_wanted);
    for (uint64_t i = 0; reached && i < s.plugin->n_kernels && !tc_failed(k); i++) {
        uint64_t at = turn == 0 ? i : s.plugin->n_kernels - 1 - i;
        const char *line = reached[at].lines[turn && reached[at].lines[1] ? 1 : 0];
        if (line)
            run_line(k, &s, line);
    }
    k->subject = before;
    tc_subject_close(&s);
}

static void orders(tc_contract *k) {
    tn_host host = *tc_host_table();
    host.option = option;
    const char *place = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tenon-conform-XXXXXX", place ? place : "/tmp");
    if (!mkdtemp(folder))
        *folder = '\0';
    for (int turn = 0; turn < 2 && !tc_failed(k); turn++)
        live(k, &host, turn);
    if (*folder)
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const tc_contract_row tc_order_rows[] = {
    {"life-orders", "", TC_STANDARD, orders},
    {0},
};
