/* kernel/OP: one call of a kernel, everything about it checked. */
#include "kernel_case.h"

#include "checks.h"

#include <stdio.h>
#include <string.h>

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

/* Passes a family's lines on, and adds the first few that can be computed in place once more so.
 * The pointwise family has such lines of its own. */
enum { LOOKED_AT = 12, IN_PLACE = 3 };

typedef struct forms {
    tc_sink sink;
    tc_sink *to;
    const tc_record *record;
    int lines, emitted;
} forms;

static void add_in_place(forms *f, const char *line, const char *argument) {
    char text[TC_MAX_LINE], why[TC_MESSAGE];
    tc_arena arena = {NULL};
    tc_invocation call;
    tc_case c;
    const int n = snprintf(text, sizeof text, "%s in-place=%s", line, argument);
    if (n < (int)sizeof text && tc_case_parse(text, &c, why) &&
        tc_invocation_parse(&c, &arena, &call, why)) {
        f->to->line(f->to, text);
        f->emitted++;
    }
    tc_arena_finish(&arena);
}

static void pass_on(tc_sink *sink, const char *line) {
    forms *f = (forms *)sink;
    f->to->line(f->to, line);
    if (f->record->pointwise || strstr(line, "data=") || strchr(line, '/') != strrchr(line, '/') ||
        f->lines++ >= LOOKED_AT)
        return;
    for (uint32_t a = 0; a < f->record->n_args && f->emitted < IN_PLACE; a++)
        if (f->record->args[a].kind == TC_ARG_TENSOR)
            add_in_place(f, line, f->record->args[a].name);
}

static void list_record(const tc_record *record, tc_set set, tc_sink *sink, uint32_t type,
                        tn_dtype *types) {
    if (type == record->n_types) {
        forms f = {.sink = {pass_on}, .to = sink, .record = record};
        if (set == TC_PERF) /* nobody wants the time of these */
            record->family->list(record, types, set, sink);
        else
            record->family->list(record, types, set, &f.sink);
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
