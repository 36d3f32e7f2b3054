/* What the functions behind same/ how=... share. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_SAME_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_KERNEL_SAME_H

#include "plugin-sdk/conformance/worker/kernel/checks.h"

typedef struct tc_comparison {
    const tc_case *c;
    tc_subject *subject;
    tc_arena *arena;
    tc_invocation call; /* as the line has it; parsed, not yet filled */
    const tn_kernel *kernel;
    tc_verdict *out;
    tc_invocation filled; /* the first that was filled, of which later ones have the numbers */
    bool is_filled;
    bool judged; /* by what is right, which is computed; else by one another alone */
} tc_comparison;

/* Makes the line's call once more, with other bytes round the tensors; it must succeed. */
bool tc_same_call(tc_comparison *m, tc_invocation *call, tc_result *result, uint64_t surroundings);

/* Compares output k of two calls; `first` is where b's part of a begins. */
void tc_check_same(tc_arena *arena, const tc_invocation *a, const tc_result *ra, int64_t first,
                   const tc_invocation *b, const tc_result *rb, uint32_t k,
                   tn_requirement requirement, const char *difference, tc_verdict *out);

/* On one and on several host threads. */
void tc_same_host_threads(tc_comparison *m);

/* Calls that differ in one thing each, in turns. */
void tc_same_turns(tc_comparison *m);

/* Several threads on one stream, and several streams: many calls at the same time. */
void tc_same_threads(tc_comparison *m);
void tc_same_streams(tc_comparison *m);

#endif
