/* Softmax, its logarithm, and the derivatives of both. */
#include "plugin-sdk/conformance/worker/oracle/reference/reference.h"

#include <math.h>

/* The largest of a line, and sum(exp(x - max)). */
static tc_real line_max(const tc_number *x, int64_t first, int64_t step, int64_t n,
                        tc_real *out_sum) {
    tc_real max = -INFINITY;
    *out_sum = 0;
    for (int64_t k = 0; k < n; k++)
        if (!(x[first + k * step].f <= max))
            max = x[first + k * step].f;
    for (int64_t k = 0; k < n; k++)
        *out_sum += expl(x[first + k * step].f - max);
    return max;
}

/* exp(x - max): the difference is off by u |x - max|, and so is, relatively, its exponential. */
static void softmax_line(tc_invocation *call, int64_t first, int64_t step, int64_t n) {
    tc_expected *e = &call->outs[0];
    const tc_number *x = tc_in(call, 0);
    tc_real sum;
    tc_real max = line_max(x, first, step, n, &sum), u = tc_u(call);
    tc_real spread = 0; /* of the terms that count */
    for (int64_t k = 0; k < n; k++) {
        tc_real d = max - x[first + k * step].f;
        if (isfinite(d))
            spread += d * expl(-d) / sum;
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t at = first + k * step;
        tc_real value = expl(x[at].f - max) / sum;
        e->tensor.values[at].f = value;
        if (isfinite(value))
            e->rounding[at] = (tc_sum_steps(call, n) + 2 * (tc_real)call->record->ulps + 4 +
                               spread + (value > 0 ? fabsl(x[at].f - max) : 0)) *
                                  u * value +
                              tc_smallest_normal(call->types[0] == TN_F64 ? TN_F64 : TN_F32);
    }
}

void tc_reference_softmax(tc_invocation *call) {
    tc_each_line(call, call->args[TN_ARG_softmax_dim].i, softmax_line);
}

static void log_softmax_line(tc_invocation *call, int64_t first, int64_t step, int64_t n) {
    tc_expected *e = &call->outs[0];
    const tc_number *x = tc_in(call, 0);
    tc_real sum;
    tc_real max = line_max(x, first, step, n, &sum), u = tc_u(call);
    for (int64_t k = 0; k < n; k++) {
        int64_t at = first + k * step;
        tc_real value = x[at].f - max - logl(sum);
        e->tensor.values[at].f = value;
        if (isfinite(value)) /* the sum's relative error is the logarithm's absolute one */
            e->rounding[at] =
                u * ((tc_sum_steps(call, n) + 2 * (tc_real)call->record->ulps + 4) +
                     2 * fabsl(x[at].f - max) + 2 * (tc_real)call->record->ulps * logl(sum));
    }
}

void tc_reference_log_softmax(tc_invocation *call) {
    tc_each_line(call, call->args[TN_ARG_log_softmax_dim].i, log_softmax_line);
}

static void softmax_backward_line(tc_invocation *call, int64_t first, int64_t step, int64_t n) {
    tc_expected *e = &call->outs[0];
    const tc_number *grad = tc_in(call, 0), *y = tc_in(call, 1);
    tc_real sum = 0, magnitude = 0;
    for (int64_t k = 0; k < n; k++) {
        tc_real term = grad[first + k * step].f * y[first + k * step].f;
        sum += term;
        magnitude += fabsl(term);
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t at = first + k * step;
        e->tensor.values[at].f = y[at].f * (grad[at].f - sum);
        e->rounding[at] =
            fabsl(y[at].f) * tc_u(call) *
            ((tc_sum_steps(call, n) + 4) * magnitude + 4 * (fabsl(grad[at].f) + fabsl(sum)));
    }
}

void tc_reference_softmax_backward(tc_invocation *call) {
    tc_each_line(call, call->args[TN_ARG_softmax_backward_dim].i, softmax_backward_line);
}

static void log_softmax_backward_line(tc_invocation *call, int64_t first, int64_t step, int64_t n) {
    tc_expected *e = &call->outs[0];
    const tc_number *grad = tc_in(call, 0), *y = tc_in(call, 1);
    tc_real sum = 0, magnitude = 0;
    for (int64_t k = 0; k < n; k++) {
        sum += grad[first + k * step].f;
        magnitude += fabsl(grad[first + k * step].f);
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t at = first + k * step;
        e->tensor.values[at].f = grad[at].f - expl(y[at].f) * sum;
        e->rounding[at] =
            tc_u(call) *
            (expl(y[at].f) * (tc_sum_steps(call, n) + 2 * (tc_real)call->record->ulps + 4) *
                 magnitude +
             2 * fabsl(grad[at].f));
    }
}

void tc_reference_log_softmax_backward(tc_invocation *call) {
    tc_each_line(call, call->args[TN_ARG_log_softmax_backward_dim].i, log_softmax_backward_line);
}
