/* The class of timed cases.
 *
 *     perf/OP …               a line of kernel/, timed and checked
 *     perf/ceiling-launch     what a call costs at least: the smallest kernel
 *     perf/ceiling-copy       bytes a second: memory->copy of a large buffer, read and written
 *     perf/ceiling-multiply T=f32     operations a second: the best of several matrix products
 *
 * No time fails a case; a wrong output does.
 */

#include "plugin-sdk/conformance/worker/suite.h"
#include "plugin-sdk/conformance/worker/kernel/record.h"
#include "plugin-sdk/conformance/worker/perf/call.h"
#include "plugin-sdk/conformance/worker/perf/ceilings.h"

#include <stdio.h>
#include <string.h>

static const char prefix[] = "ceiling-";

/* The dtype that a case works in: of its first type variable. */
static bool dtype_of(const tc_case *c, tn_dtype *out, tc_verdict *verdict) {
    const char *text = tc_case_get(c, "T");
    char why[TC_MESSAGE];
    if (!text)
        text = tc_case_get(c, "S");
    if (text && tc_read_dtype(text, out, why))
        return true;
    return TC_CASE_ERROR(verdict, "%s/%s needs T=DTYPE", c->class, c->subject);
}

static void run_ceiling(tc_subject *s, const tc_case *c, tc_verdict *out) {
    tn_dtype dtype = TN_DTYPE_NONE;
    for (unsigned i = TC_CEILING_LAUNCH; i < TC_N_CEILINGS; i++)
        if (strcmp(c->subject + strlen(prefix), tc_ceiling_name((tc_ceiling)i)) == 0) {
            if (i != TC_CEILING_MULTIPLY || dtype_of(c, &dtype, out))
                tc_ceiling_measure(s, (tc_ceiling)i, dtype, &out->figures, out);
            return;
        }
    TC_CASE_ERROR(out, "there is no case perf/%s", c->subject);
}

static void run(const tc_case *c, const tc_options *options, tc_verdict *out) {
    tn_dtype dtype;
    tc_subject *s = tc_subject_shared(options, out);
    if (!s)
        return;
    if (strncmp(c->subject, prefix, strlen(prefix)) == 0)
        run_ceiling(s, c, out);
    else if (dtype_of(c, &dtype, out) && tc_time_call(s, c, &out->figures, out))
        tc_ceiling_compare(s, dtype, &out->figures);
    if (out->status != TC_PASS)
        out->figures = (tc_figures){0};
}

/* ---- lines: those that the families have for TC_PERF ------------------------------------- */

typedef struct relay {
    tc_sink sink;
    tc_sink *to;
} relay;

static void rename_class(tc_sink *sink, const char *line) {
    relay *r = (relay *)sink;
    char text[TC_MAX_LINE];
    snprintf(text, sizeof text, "perf%s", strchr(line, '/'));
    r->to->line(r->to, text);
}

static void list(tc_set set, tc_sink *sink) {
    static const char *const ceilings[] = {
        "perf/ceiling-launch",         "perf/ceiling-copy",
        "perf/ceiling-multiply T=f32", "perf/ceiling-multiply T=f64",
        "perf/ceiling-multiply T=f16", "perf/ceiling-multiply T=bf16",
    };
    relay r = {{rename_class}, sink};
    for (size_t i = 0; i < sizeof ceilings / sizeof *ceilings; i++)
        sink->line(sink, ceilings[i]);
    tc_class_kernel.list(set, &r.sink);
}

const tc_class tc_class_perf = {.name = "perf", .list = list, .run = run, .timed = true};
