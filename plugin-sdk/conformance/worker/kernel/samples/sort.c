/* Sorting along a dimension, with indices. */
#include "plugin-sdk/conformance/worker/kernel/samples/lines.h"

/* Values that meet, without which sorting does not show whether it is stable. */
static void few_values(tc_operand *o, tc_random *r) {
    for (int64_t i = 0; i < o->shape.numel; i++) {
        int64_t low = tc_is_float(o->dtype) || tc_int_min(o->dtype) ? -3 : 0;
        int64_t x = tc_integer(r, low, 3);
        o->values[i] = (tc_number){(tc_real)x, x};
    }
}

static bool fill(tc_invocation *call, uint32_t arg, tc_random *r) {
    if (call->data != TC_DATA_EXACT)
        return false;
    few_values(&call->args[arg].tensor, r);
    return true;
}

const tc_family tc_family_sort = {"sort", tc_lines_shapes, tc_lines_terms,
                                  fill,   tc_lines_list,   tc_lines_list_timed};
