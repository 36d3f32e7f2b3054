/* contract/record-newer: a host of a later version of the interface, whose calls, views and plans have members behind
 * those that there are. A plugin reads and writes what it knows. */
#include "plugin-sdk/conformance/worker/contract/reach.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"

static void call_as_newer(tc_contract *k, const char *line, tc_arena *arena, tc_verdict *v) {
    char why[TC_MESSAGE];
    tc_case c;
    tc_invocation call;
    tc_result result;
    if (!tc_case_parse(line, &c, why) || !tc_invocation_parse(&c, arena, &call, why) ||
        !tc_fill_for(k->subject, &call, call.seed, why))
        return;
    call.newer = true;
    if (tc_execute(k->subject, &call, &result, v) && tc_check_success(&call, &result, v)) {
        tc_check_untouched(&call, &result, v);
        tc_check_outputs(&call, &result, k->subject, v);
    }
}

void tc_record_newer(tc_contract *k) {
    tc_reached *reached = tc_reach_records(k, TC_SMOKE, NULL);
    for (uint64_t i = 0; reached && i < k->subject->plugin->n_kernels && !tc_failed(k); i++)
        for (int j = 0; j < TC_REACHING && reached[i].lines[j] && !tc_failed(k); j++) {
            tc_arena arena = {NULL};
            tc_verdict v = {.status = TC_PASS};
            call_as_newer(k, reached[i].lines[j], &arena, &v);
            tc_arena_finish(&arena);
            if (v.status == TC_FAIL)
                TC_BROKEN(
                    k, TNP_HOST_STRUCT_SIZE,
                    "`%.200s`, of a host whose structs have more members than there are: %.600s",
                    reached[i].lines[j], v.message);
        }
}
