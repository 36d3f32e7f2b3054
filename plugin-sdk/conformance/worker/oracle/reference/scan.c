/* Scans along a dimension. */
#include "plugin-sdk/conformance/worker/oracle/reference/reference.h"

#include <math.h>

static void cumsum_line(tc_invocation *call, int64_t first, int64_t step, int64_t n) {
    tc_expected *e = &call->outs[0];
    tc_number sum = {0, 0};
    tc_real magnitude = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t at = first + k * step;
        tc_number x = tc_in(call, 0)[at];
        sum.f += x.f;
        sum.i = tc_wrap_add(sum.i, x.i);
        magnitude += isfinite(x.f) ? fabsl(x.f) : 0;
        e->tensor.values[at] = sum;
        e->rounding[at] = (tc_real)k * tc_u(call) * magnitude; /* one after the other is the way */
    }
}

void tc_reference_cumsum(tc_invocation *call) {
    tc_each_line(call, call->args[TN_ARG_cumsum_dim].i, cumsum_line);
}
