/* See call.h. */
#include "plugin-sdk/conformance/worker/perf/call.h"

#include "plugin-sdk/conformance/worker/kernel/checks.h"
#include "plugin-sdk/conformance/worker/oracle/compare.h"
#include "plugin-sdk/conformance/worker/perf/tiled_oracle.h"
#include "plugin-sdk/conformance/worker/perf/stopwatch.h"

#include <stdio.h>

/* ---- what a call must do ----------------------------------------------------------------- */

static double bytes_of(const tc_operand *o) {
    const tc_shape *s = &o->shape;
    int64_t there = s->extent - s->offset; /* fewer than its elements where these are shared */
    return (double)(there < s->numel ? there : s->numel) * (double)tc_dtype_bytes(o->dtype);
}

/* Inputs and outputs, each once. Of what is picked from, as much as is picked. */
static double bytes_moved(const tc_invocation *call) {
    bool picks = call->record->family == &tc_family_index && !call->record->adds;
    double n = 0;
    for (uint32_t k = 0; k < call->record->n_outs; k++)
        n += bytes_of(&call->outs[k].tensor);
    for (uint32_t a = 0; a < call->record->n_args; a++)
        if (call->record->args[a].kind == TC_ARG_TENSOR && !call->args[a].none &&
            call->scalar != (int32_t)a)
            n += bytes_of(picks && a == 0 ? &call->outs[0].tensor : &call->args[a].tensor);
    return n;
}

/* Products and sums, where they are what the call is about. */
static double operations(const tc_invocation *call) {
    const tc_family *family = call->record->family;
    if (family != &tc_family_matmul && family != &tc_family_convolution)
        return 0;
    return 2 * (double)call->outs[0].tensor.shape.numel * (double)family->terms(call);
}

/* ---- timing it --------------------------------------------------------------------------- */

typedef struct timed_call {
    tc_subject *subject;
    tc_invocation part, whole; /* the arena of the whole is emptied after each run */
    tc_placed placed;
    unsigned char *good[TC_MAX_OUTS];
} timed_call;

/* What is written over the outputs is the pattern that the images have had from the start. */
static bool spoil(void *context, tc_verdict *verdict) {
    timed_call *t = context;
    tc_subject *s = t->subject;
    char reason[TC_MESSAGE];
    tn_status status = TN_OK;
    for (uint32_t k = 0; k < t->whole.record->n_outs && status == TN_OK; k++) {
        const tc_operand *o = &t->whole.outs[k].tensor;
        status = s->memory->copy_from_host(s->device, s->stream, t->placed.out_views[k].memory, 0,
                                           o->image, 0, o->bytes);
    }
    if (status == TN_OK)
        status = tc_subject_sync(s);
    if (status != TN_OK)
        tc_verdict_set(verdict, TC_FAIL, TNP_TRANSFER_RANGE, "write of a tensor: %s",
                       tc_reason(status, reason));
    return status == TN_OK;
}

/* With `prepare`, as the core calls it each time; the workspace is there. */
static tn_status call(void *context) {
    timed_call *t = context;
    const tn_kernel *kernel = t->placed.kernel;
    tn_plan plan = {.struct_size = sizeof plan};
    tn_status status = kernel->prepare ? kernel->prepare(&t->placed.tn, &plan) : TN_OK;
    t->placed.tn.cookie = plan.cookie;
    return status == TN_OK ? kernel->run(&t->placed.tn) : status;
}

static void check(void *context, tc_result *result, tc_verdict *verdict) {
    timed_call *t = context;
    if (tc_check_success(&t->whole, result, verdict) && tc_read_outs(&t->placed, result, verdict)) {
        tc_check_untouched(&t->whole, result, verdict);
        tc_tiled_check(&t->part, &t->whole, result, t->subject, t->good, verdict);
        tc_check_host(verdict);
    }
    tc_arena_finish(t->whole.arena);
}

/* Inputs and what lies round the workspace, once all runs are over. */
static bool check_rest(timed_call *t, tc_verdict *verdict) {
    tc_result result = {.run = TN_OK};
    if (tc_read_back(&t->placed, &result, verdict))
        tc_check_untouched(&t->whole, &result, verdict);
    return verdict->status == TC_PASS;
}

static bool time_placed(timed_call *t, tc_figures *out, tc_verdict *verdict) {
    tc_subject *s = t->subject;
    tc_timed what = {t, spoil, call, check};
    char reason[TC_MESSAGE];
    bool good = tc_place_call(s, s->stream, &t->whole, &t->placed, verdict);
    tn_status status = good ? tc_call_placed(&t->placed) : TN_OK; /* finds who takes it */
    if (status == TN_ERR_UNSUPPORTED)
        good = tc_verdict_set(verdict, TC_UNSUPPORTED, TNP_NONE,
                              "prepare or run of every record declines this call");
    else if (tc_excuses(verdict, TNP_KERNEL_RESULT, status, t->whole.record->op))
        good = false;
    else if (status != TN_OK)
        good = tc_verdict_set(verdict, TC_FAIL, TNP_KERNEL_RESULT, "%s: %s", t->whole.record->op,
                              tc_reason(status, reason));
    good = good && tc_time(s, &what, out, verdict) && check_rest(t, verdict);
    if (!good)
        tc_subject_sync(s);
    tc_unplace(&t->placed);
    return good;
}

bool tc_time_call(tc_subject *s, const tc_case *c, tc_figures *out, tc_verdict *verdict) {
    char why[TC_MESSAGE];
    tc_arena arena = {NULL}, of_a_run = {NULL};
    timed_call *t = tc_arena_array(&arena, 1, sizeof *t);
    bool good = t && tc_invocation_parse(c, &arena, &t->whole, why);
    if (!t)
        TC_CASE_ERROR(verdict, "the host has no memory");
    else if (!good)
        TC_CASE_ERROR(verdict, "%s", why);
    good = good && tc_claimed_kernel(s, &t->whole, verdict);
    if (good && !tc_tiled_make(c, &arena, &t->part, &t->whole, why)) {
        TC_CASE_ERROR(verdict, "%s", why);
        good = false;
    }
    if (good) {
        t->subject = s;
        t->whole.arena = &of_a_run;
        out->bytes = bytes_moved(&t->whole);
        out->flop = operations(&t->whole);
        good = time_placed(t, out, verdict);
        if (good)
            tc_check_conclusive(&t->part, s->flushes, verdict);
    }
    tc_arena_finish(&of_a_run);
    tc_arena_finish(&arena);
    return good;
}

bool tc_time_line(tc_subject *s, const char *line, tc_figures *out, tc_verdict *verdict) {
    tc_case c;
    char why[TC_MESSAGE];
    if (tc_case_parse(line, &c, why))
        return tc_time_call(s, &c, out, verdict);
    return TC_CASE_ERROR(verdict, "no case: %s", why);
}
