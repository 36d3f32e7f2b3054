/* refuse/OP bad=N at=I: a valid call, one index of which is set to N. The refusal must be clean: it
 * touches no memory, is reported once, and the device goes on.
 */
#include "plugin-sdk/conformance/worker/suite.h"

#include "plugin-sdk/conformance/worker/kernel/caller.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The argument that holds indices, or -1. */
static int32_t index_arg(const tc_record *record) {
    for (uint32_t a = 0; a < record->n_args; a++)
        if (tc_holds_indices(&record->args[a]))
            return (int32_t)a;
    return -1;
}

/* How many places an index may name. */
static int64_t places(const tc_invocation *call) {
    int32_t dim = tc_record_arg(call->record, "dim"),
            size = tc_record_arg(call->record, "input_size"),
            classes = tc_record_arg(call->record, "n_classes");
    if (size >= 0)
        return call->args[size].ints[2] * call->args[size].ints[3];
    if (classes >= 0)
        return call->args[classes].i;
    return call->args[0].tensor.shape.sizes[dim >= 0 ? call->args[dim].i : 1];
}

static bool is_valid(const tc_invocation *call, int64_t index) {
    int32_t ignored = tc_record_arg(call->record, "ignore_index");
    return (index >= 0 && index < places(call)) || (ignored >= 0 && call->args[ignored].i == index);
}

static bool spoil(const tc_case *c, tc_invocation *call, char why[TC_MESSAGE]) {
    int32_t a = index_arg(call->record);
    const char *bad = tc_case_get(c, "bad"), *at = tc_case_get(c, "at");
    int64_t value, place;
    if (a < 0 || !bad || !at)
        return tc_why(why, TC_MESSAGE, "refuse/ needs an operator with indices, bad=N and at=I");
    if (!tc_read_int(bad, &value, why) || !tc_read_int(at, &place, why))
        return false;
    tc_operand *o = &call->args[a].tensor;
    if (place < 0 || place >= o->shape.numel)
        return tc_why(why, TC_MESSAGE, "at=%s: there are %" PRId64 " indices", at, o->shape.numel);
    o->values[place].i = value;
    tc_operand_settle(o);
    if (is_valid(call, value))
        return tc_why(why, TC_MESSAGE, "bad=%s: that is a valid index", bad);
    if (o->values[place].i != value) { /* another element has the same place */
        return tc_why(why, TC_MESSAGE, "at=%s: indices with places of their own are needed", at);
    }
    return true;
}

static void check_refusal(const tc_invocation *call, const tc_result *result, const tc_subject *s,
                          tc_verdict *out) {
    tn_status reported = result->run != TN_OK ? result->run : result->sync;
    if (reported == TN_OK)
        tc_verdict_set(out, TC_FAIL, TNP_KERNEL_INDEX_RANGE,
                       "%s: an index out of range was not reported", call->record->op);
    else if (reported != TN_ERR_INDEX_OUT_OF_RANGE)
        tc_verdict_set(
            out, TC_FAIL, TNP_KERNEL_INDEX_RANGE,
            "%s: an index out of range was reported as %s, not TN_ERR_INDEX_OUT_OF_RANGE",
            call->record->op, result->message);
    else if (s->stream && result->run != TN_OK)
        tc_verdict_set(out, TC_FAIL, TNP_KERNEL_INDEX_RANGE,
                       "%s: an index that the device finds is reported by the stream, not by run",
                       call->record->op);
    else if (result->run != TN_OK && result->sync != TN_OK)
        tc_verdict_set(out, TC_FAIL, TNP_STREAM_ERROR_ONCE, "%s: the error was reported twice",
                       call->record->op);
    else if (strstr(result->message, "no message"))
        tc_verdict_set(out, TC_FAIL, TNP_FAIL_MESSAGE, "%s: the refusal has no message",
                       call->record->op);
    tc_check_untouched(call, result, out);
}

static void run_call(const tc_case *c, tc_subject *s, tc_invocation *call, tc_verdict *out) {
    char why[TC_MESSAGE];
    tc_result result;
    tc_invocation valid;
    if (!tc_claimed_kernel(s, call, out))
        return;
    if (!tc_invocation_fill_inputs(call, call->seed, why) || !spoil(c, call, why) ||
        !tc_invocation_parse(c, call->arena, &valid, why) ||
        !tc_fill_for(s, &valid, call->seed + 1, why)) {
        TC_CASE_ERROR(out, "%s", why);
        return;
    }
    if (!tc_execute(s, call, &result, out))
        return;
    check_refusal(call, &result, s, out);
    if (!tc_execute(s, &valid, &result, out))
        return;
    if (result.run != TN_OK || result.sync != TN_OK)
        tc_verdict_set(out, TC_FAIL, TNP_STREAM_ERROR_ONCE,
                       "%s: after the refusal a valid call fails: %s", call->record->op,
                       result.message);
    else
        tc_check_outputs(&valid, &result, s, out);
}

static void run_here(const tc_case *c, const tc_options *options, tc_verdict *out) {
    char why[TC_MESSAGE];
    tc_arena arena = {NULL};
    tc_invocation call;
    tc_subject *s = tc_subject_shared(options, out);
    if (!s)
        return;
    if (tc_invocation_parse(c, &arena, &call, why))
        run_call(c, s, &call, out);
    else
        TC_CASE_ERROR(out, "%s", why);
    tc_check_host(out);
    tc_arena_finish(&arena);
}

static void run(const tc_case *c, const tc_options *options, tc_verdict *out) {
    if (tc_subject_shared(options, out))
        tc_run_on_small_stack(run_here, c, options, out);
}

/* ---- lines ------------------------------------------------------------------------------- */

typedef struct relay {
    tc_sink sink;
    tc_sink *to;
    tc_arena arena;
    uint64_t n;
} relay;

static void emit(relay *r, const char *line, int64_t bad, int64_t at) {
    char text[TC_MAX_LINE];
    snprintf(text, sizeof text, "refuse%.900s bad=%" PRId64 " at=%" PRId64, strchr(line, '/'), bad,
             at);
    r->to->line(r->to, text);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void choose(tc_sink *sink, const char *line) {
    relay *r = (relay *)sink;
    char why[TC_MESSAGE];
    tc_case c;
    tc_invocation call;
    if (!tc_case_parse(line, &c, why) || !tc_invocation_parse(&c, &r->arena, &call, why) ||
        tc_is_extra(&c, &call) || index_arg(call.record) < 0 ||
        tc_has_zero_stride(&call.args[index_arg(call.record)].tensor.shape))
        return;
    int64_t n = places(&call), last = call.args[index_arg(call.record)].tensor.shape.numel - 1;
    const int64_t bad[] = {n, -1, n + 1000, INT64_MAX, INT64_MIN, -n, (int64_t)1 << 32};
    const int64_t at[] = {last, 0, last / 2};
    /* Where blocks, lanes and words of flags begin and end. */
    static const int64_t edges[] = {31, 32, 63, 64, 255, 256, 511, 512, 1023, 1024, 4095, 65535};
    uint64_t k = r->n++;
    if (!is_valid(&call, bad[k % COUNT(bad)]))
        emit(r, line, bad[k % COUNT(bad)], at[k % COUNT(at)]);
    for (size_t i = 0; last >= 512 && i < COUNT(edges); i++)
        if (edges[i] < last && (last < 5000 || edges[i] > 4000) && /* long ones take long */
            !is_valid(&call, bad[i % 2]))
            emit(r, line, bad[i % 2], edges[i]);
}

static void list(tc_set set, tc_sink *sink) {
    relay r = {.sink = {choose}, .to = sink};
    tc_class_kernel.list(set, &r.sink);
    tc_arena_finish(&r.arena);
}

const tc_class tc_class_refuse = {.name = "refuse", .list = list, .run = run};
