/* Sorting along a dimension, with indices. */
#include "plugin-sdk/conformance/worker/kernel/samples/lines.h"

#include <math.h>

/* Values that meet, without which sorting does not show whether it is stable; among integers the ends of their
 * range, whose negatives are others. */
static void few_values(tc_operand *o, tc_random *r) {
    const int64_t ends[] = {tc_int_min(o->dtype), tc_int_max(o->dtype)};
    for (int64_t i = 0; i < o->shape.numel; i++) {
        bool is_end = !tc_is_float(o->dtype) && tc_below(r, 8) == 0;
        int64_t low = tc_is_float(o->dtype) || tc_int_min(o->dtype) ? -3 : 0;
        int64_t x = is_end ? ends[tc_below(r, 2)] : tc_integer(r, low, 3);
        o->values[i] = (tc_number){(tc_real)x, x};
    }
}

/* Zeros and NaNs of both signs, each several times: all zeros are equal, and all NaNs; and the numbers next to
 * what comes before or behind all others. */
static void few_specials(tc_operand *o, tc_random *r) {
    tc_real last = tc_largest(o->dtype), tiny = tc_spacing(o->dtype, 0);
    const tc_real values[] = {0,        -0.0L,    NAN,       copysignl(NAN, -1),
                              1,        INFINITY, -INFINITY, -0x1p-14L,
                              0x1p-14L, -1,       last,      -last,
                              tiny,     -tiny};
    for (int64_t i = 0; i < o->shape.numel; i++)
        o->values[i].f = values[tc_below(r, sizeof values / sizeof *values)];
}

static bool fill(tc_invocation *call, uint32_t arg, tc_random *r) {
    tc_operand *o = &call->args[arg].tensor;
    bool special = call->data == TC_DATA_SPECIAL && tc_is_float(o->dtype);
    if (special)
        few_specials(o, r);
    else if (call->data == TC_DATA_EXACT)
        few_values(o, r);
    return special || call->data == TC_DATA_EXACT;
}

/* What is in order already, either way, with equals in it. */
static void list(const tc_sampler *m) {
    static const char *const lines[] = {"self=[3,70] dim=1", "self=[70,3] dim=0",
                                        "self=[5003] dim=0"};
    tc_lines_list(m);
    for (int k = 0; m->set != TC_SMOKE && k < 4 * TC_LENGTH(lines); k++) {
        tc_line l = tc_line_start(m);
        tc_line_add(&l, "%s descending=%s data=%s", lines[k / 4], k & 1 ? "true" : "false",
                    k & 2 ? "falling" : "rising");
        tc_emit(m, l);
    }
}

const tc_family tc_family_sort = {"sort", tc_lines_shapes,    tc_lines_terms, fill,
                                  list,   tc_lines_list_timed};
