/* kernel/OP: one kernel call, checked in full. */
#include "plugin-sdk/conformance/worker/suite.h"

#include "plugin-sdk/conformance/worker/kernel/caller.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"
#include "plugin-sdk/conformance/worker/kernel/draw.h"
#include "plugin-sdk/conformance/worker/kernel/factors.h"
#include "plugin-sdk/conformance/worker/kernel/forms.h"
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"
#include "plugin-sdk/conformance/worker/oracle/compare.h"

/* What is left to see is nothing. */
static void set_flushed(tc_verdict *out) {
    *out = (tc_verdict){.status = TC_PASS};
    tc_verdict_set(out, TC_UNSUPPORTED, TNP_NONE, "subnormal numbers may be zero on the device");
}

static void run_call(tc_subject *s, tc_invocation *call, bool drawn, tc_verdict *out) {
    char why[TC_MESSAGE];
    tc_result result;
    const tn_kernel *kernel;
    if (tc_find_kernel(s, call, NULL, &kernel) != TC_NO_SHAPE && !tc_claimed_kernel(s, call, out))
        return;
    if (tc_is_flushed_away(s, call)) {
        set_flushed(out);
        return;
    }
    if (call->data == TC_DATA_ORDERED && kernel && !(kernel->flags & TN_KERNEL_DETERMINISTIC)) {
        tc_verdict_set(out, TC_UNSUPPORTED, TNP_NONE,
                       "the kernel does not declare TN_KERNEL_DETERMINISTIC");
        return;
    }
    if (!tc_fill_for(s, call, call->seed ^ 0x5eed, why)) {
        TC_CASE_ERROR(out, "%s", why);
        return;
    }
    if (!tc_execute(s, call, &result, out))
        return;
    if (!tc_check_success(call, &result, out))
        return;
    tc_check_untouched(call, &result, out);
    tc_check_outputs(call, &result, s, out);
    if (out->status == TC_FAIL && tc_needed_flags(call) & TN_KERNEL_INDEX64)
        out->requirement = TNP_KERNEL_INDEX64;
    if (drawn && out->status == TC_INCONCLUSIVE) /* nobody chose its numbers */
        *out = (tc_verdict){.status = TC_PASS};
    if (out->status == TC_INCONCLUSIVE && s->flushes) {
        tc_verdict where_they_count = {.status = TC_PASS};
        tc_check_conclusive(call, 0, &where_they_count);
        if (where_they_count.status == TC_PASS)
            set_flushed(out);
    }
    tc_check_host(out);
}

/* Where the line does not say. Most bytes that nobody may touch are looked at afterwards where tensors lie apart;
 * what is only read is seen at a fence. */
static tc_memory memory_of(const tc_invocation *call) {
    static const tc_memory by_seed[] = {TC_MEMORY_APART, TC_MEMORY_FENCED, TC_MEMORY_FENCED,
                                        TC_MEMORY_FENCED_BEFORE};
    return by_seed[call->seed >> 32 & 3];
}

static void run_here(const tc_case *c, const tc_options *options, tc_verdict *out) {
    char why[TC_MESSAGE];
    tc_arena arena = {NULL};
    tc_invocation call;
    tc_subject *s = tc_subject_shared(options, out);
    if (!s)
        return;
    bool good = tc_invocation_parse(c, &arena, &call, why);
    if (good && !call.memory)
        call.memory = memory_of(&call);
    if (good)
        run_call(s, &call, tc_case_get(c, "drawn") != NULL, out);
    else
        TC_CASE_ERROR(out, "%s", why);
    tc_arena_finish(&arena);
}

static void run(const tc_case *c, const tc_options *options, tc_verdict *out) {
    if (tc_subject_shared(options, out))
        tc_run_on_small_stack(run_here, c, options, out);
}

/* Lines that are drawn from those of the standard set. */
enum { DRAWN = 6, DRAWN_MORE = 64 };

typedef struct collector {
    tc_sink sink;
    tc_urn urn;
} collector;

static void collect(tc_sink *sink, const char *line) {
    tc_urn_add(&((collector *)sink)->urn, line);
}

static void add_drawn(const tc_record *record, const tn_dtype *types, tc_set set, tc_sink *to) {
    collector c = {.sink = {collect}, .urn = {.record = record}};
    tc_sampler m = {record, types, TC_STANDARD, &c.sink};
    record->family->list(&m);
    tc_urn_draw(&c.urn, 0, set == TC_EXHAUSTIVE ? DRAWN_MORE : DRAWN, to);
    tc_urn_stretch(&c.urn, types, to);
    tc_urn_finish(&c.urn);
}

static void list_record(const tc_record *record, tc_set set, tc_sink *sink, uint32_t type,
                        tn_dtype *types) {
    if (type == record->n_types) {
        tc_forms f = tc_forms_start(record, types[0], set, sink);
        bool more = set == TC_STANDARD || set == TC_EXHAUSTIVE;
        tc_sampler m = {record, types, set, more ? &f.sink : sink};
        if (set != TC_PERF)
            record->family->list(&m);
        else if (tc_is_timed(&m))
            record->family->list_timed(&m);
        if (more)
            add_drawn(record, types, set, sink);
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
