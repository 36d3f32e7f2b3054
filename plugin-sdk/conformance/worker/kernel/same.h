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
} tc_comparison;

/* Several threads on one stream, and several streams: many calls at the same time. */
void tc_same_threads(tc_comparison *m);
void tc_same_streams(tc_comparison *m);

#endif
