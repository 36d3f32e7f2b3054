/* kernel/OP: one call of a kernel, everything about it checked. */
#include "kernel_case.h"

#include "checks.h"

#include <stdio.h>

static void run_call(tc_subject *s, tc_invocation *call, tc_verdict *out) {
    char why[TC_MESSAGE];
    tc_result result;
    const tn_kernel *kernel = tc_claimed_kernel(s, call, out);
    if (!kernel)
        return;
    if (!tc_invocation_fill(call, call->seed ^ 0x5eed, why)) {
        tc_verdict_set(out, TC_ERROR, 0, "%s", why);
        return;
    }
    if (!tc_execute(s, kernel, call, &result, out))
        return;
    if (tc_check_refusal(call, &result, out))
        return;
    if (!tc_check_success(call, &result, out))
        return;
    tc_check_untouched(call, &result, out);
    tc_check_outputs(call, &result, s, out);
    tc_check_host(out);
}

static void run(const tc_case *c, const tc_options *options, tc_verdict *out) {
    char why[TC_MESSAGE];
    tc_arena arena = {NULL};
    tc_invocation call;
    tc_subject *s = tc_subject_shared(options, out);
    if (!s)
        return;
    if (tc_invocation_parse(c, &arena, &call, why))
        run_call(s, &call, out);
    else
        tc_verdict_set(out, TC_ERROR, 0, "%s", why);
    tc_arena_finish(&arena);
}

static void list_record(const tc_record *record, tc_set set, tc_sink *sink, uint32_t type,
                        tn_dtype *types) {
    if (type == record->n_types) {
        record->family->list(record, types, set, sink);
        return;
    }
    for (types[type] = 0; types[type] < TN_DTYPE_COUNT; types[type]++)
        if (record->dtypes[type] & TN_DTYPE_BIT(types[type]))
            list_record(record, set, sink, type + 1, types);
}

static void list(tc_set set, tc_sink *sink) {
    tn_dtype types[TN_KERNEL_MAX_TYPES];
    for (uint32_t i = 0; i < tc_n_records; i++)
        list_record(&tc_records[i], set, sink, 0, types);
}

const tc_class tc_class_kernel = {.name = "kernel", .list = list, .run = run};
