/* Softmax, its logarithm, and the derivatives of both. */
#include "plugin-sdk/conformance/worker/kernel/samples/lines.h"

#include <math.h>

/* Numbers whose exponentials overflow, or vanish, unless the largest is taken off first; and some
 * beside which theirs vanish then, but not their logarithms. */
static void far_from_zero(tc_operand *o, tc_random *r) {
    tc_real far = tc_below(r, 2) ? 1000 : -1000, gap = o->dtype == TN_F64 ? 800 : 200;
    for (int64_t i = 0; i < o->shape.numel; i++)
        o->values[i].f = far + tc_uniform(r, -12, 12) - (tc_below(r, 4) ? 0 : gap);
}

/* Lines of which the first part is left out, as attention masks it: longer than what a kernel takes at
 * once, all of some lines but the last element; lines of the lowest number alone, and of nothing; and of
 * these two some with an infinity. */
static void masked(tc_operand *o, int64_t dim, tc_random *r) {
    int64_t n = o->shape.sizes[dim], after = 1;
    for (int32_t d = (int32_t)dim + 1; d < o->shape.rank; d++)
        after *= o->shape.sizes[d];
    for (int64_t i = 0; i < o->shape.numel; i++) {
        int64_t line = i / (n * after) * after + i % after, end = line % 2 ? n - 1 : 2 * n / 3;
        tc_real lowest = o->dtype == TN_F64 ? -1e308L : o->dtype == TN_F16 ? -65504 : -3e38L;
        int64_t place = i / after % n;
        bool hidden = place < end;
        bool infinite = line % 8 >= 6 && place == end;
        tc_real x = hidden ? -INFINITY : tc_uniform(r, -4, 4);
        o->values[i].f = infinite        ? INFINITY
                         : line % 5 == 4 ? -INFINITY
                         : line % 3 == 2 ? lowest
                                         : x;
    }
}

static bool fill(tc_invocation *call, uint32_t arg, tc_random *r) {
    if (call->record->fill == TC_FILL_FAR && call->data == TC_DATA_NULL) {
        masked(&call->args[arg].tensor, call->args[tc_record_arg(call->record, "dim")].i, r);
        return true;
    }
    if (call->record->fill != TC_FILL_FAR || call->data != TC_DATA_WIDE)
        return false;
    far_from_zero(&call->args[arg].tensor, r);
    return true;
}

const tc_family tc_family_softmax = {"softmax", tc_lines_shapes, tc_lines_terms,
                                     fill,      tc_lines_list,   tc_lines_list_timed};
