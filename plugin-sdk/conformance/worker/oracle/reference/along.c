/* Operators that work along one dimension: each line by itself. */
#include "plugin-sdk/conformance/worker/oracle/reference/reference.h"

#include <math.h>

/* Calls f for each line: `at` of its elements are at at[0], at[0] + step, … */
static void each_line(tc_invocation *call, int64_t dim,
                      void (*f)(tc_invocation *call, int64_t first, int64_t step, int64_t n)) {
    tc_lines l = tc_lines_of(&call->args[0].tensor.shape, dim);
    for (int64_t b = 0; b < l.before; b++)
        for (int64_t a = 0; a < l.after; a++)
            f(call, b * l.n * l.after + a, l.after, l.n);
}

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
    each_line(call, call->args[TN_ARG_cumsum_dim].i, cumsum_line);
}

/* NaN is the largest; equals keep their order. */
static bool sorts_before(tc_number a, tc_number b, bool descending) {
    if (isnan(a.f) || isnan(b.f))
        return descending ? isnan(a.f) && !isnan(b.f) : !isnan(a.f) && isnan(b.f);
    return descending ? a.f > b.f || a.i > b.i : a.f < b.f || a.i < b.i;
}

/* A stable merge of two sorted halves, from `from` to `to`. */
static void merge(const tc_number *x, const int64_t *from, int64_t *to, int64_t low, int64_t middle,
                  int64_t high, bool descending) {
    int64_t a = low, b = middle;
    for (int64_t k = low; k < high; k++) {
        bool right = a >= middle || (b < high && sorts_before(x[from[b]], x[from[a]], descending));
        to[k] = from[right ? b++ : a++];
    }
}

static void sort_line(tc_invocation *call, int64_t first, int64_t step, int64_t n) {
    bool descending = call->args[TN_ARG_sort_descending].boolean;
    const tc_number *x = tc_in(call, 0);
    int64_t *order = tc_arena_array(call->arena, (uint64_t)n, sizeof *order);
    int64_t *next = tc_arena_array(call->arena, (uint64_t)n, sizeof *next);
    if (!order || !next)
        return;
    for (int64_t k = 0; k < n; k++)
        order[k] = first + k * step;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t low = 0; low < n; low += 2 * width) {
            int64_t middle = low + width < n ? low + width : n;
            int64_t high = low + 2 * width < n ? low + 2 * width : n;
            merge(x, order, next, low, middle, high, descending);
        }
        int64_t *swap = order;
        order = next, next = swap;
    }
    for (int64_t k = 0; k < n; k++) {
        tc_out(call, 0)[first + k * step] = x[order[k]];
        tc_out(call, 1)[first + k * step].i = (order[k] - first) / step;
    }
}

void tc_reference_sort(tc_invocation *call) {
    each_line(call, call->args[TN_ARG_sort_dim].i, sort_line);
}

/* ---- softmax ----------------------------------------------------------------------------- */

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
            e->rounding[at] = (tc_sum_steps(n) + 2 * (tc_real)call->record->ulps + 4 + spread +
                               (value > 0 ? fabsl(x[at].f - max) : 0)) *
                                  u * value +
                              tc_smallest_normal(call->types[0] == TN_F64 ? TN_F64 : TN_F32);
    }
}

void tc_reference_softmax(tc_invocation *call) {
    each_line(call, call->args[TN_ARG_softmax_dim].i, softmax_line);
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
                u * ((tc_sum_steps(n) + 2 * (tc_real)call->record->ulps + 4) +
                     2 * fabsl(x[at].f - max) + 2 * (tc_real)call->record->ulps * logl(sum));
    }
}

void tc_reference_log_softmax(tc_invocation *call) {
    each_line(call, call->args[TN_ARG_log_softmax_dim].i, log_softmax_line);
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
            ((tc_sum_steps(n) + 4) * magnitude + 4 * (fabsl(grad[at].f) + fabsl(sum)));
    }
}

void tc_reference_softmax_backward(tc_invocation *call) {
    each_line(call, call->args[TN_ARG_softmax_backward_dim].i, softmax_backward_line);
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
            (expl(y[at].f) * (tc_sum_steps(n) + 2 * (tc_real)call->record->ulps + 4) * magnitude +
             2 * fabsl(grad[at].f));
    }
}

void tc_reference_log_softmax_backward(tc_invocation *call) {
    each_line(call, call->args[TN_ARG_log_softmax_backward_dim].i, log_softmax_backward_line);
}
