/* Reductions: the output has the input's rank, with size 1 in the reduced dimensions. */
#include "plugin-sdk/conformance/worker/oracle/reference/reference.h"

#include <math.h>

tc_real tc_sum_steps(const tc_invocation *call, int64_t n) {
    tc_real blocks = n <= 1 ? 0 : 32 + ceill(log2l((tc_real)n)); /* up to 32 in a row, then pairs */
    bool widest = call->types[0] == TN_F64; /* nothing is wider to carry one after the other in */
    return widest && n > blocks ? (tc_real)n : blocks;
}

/* Which output element input element i belongs to. */
static int64_t group_of(const tc_invocation *call, int64_t i) {
    const tc_shape *in = &call->args[0].tensor.shape, *out = &call->outs[0].tensor.shape;
    int64_t at = 0, stride = 1;
    for (int32_t d = in->rank - 1; d >= 0; d--) {
        int64_t index = i % in->sizes[d];
        i /= in->sizes[d];
        at += (out->sizes[d] == 1 ? 0 : index) * stride;
        stride *= out->sizes[d];
    }
    return at;
}

static int64_t group_size(const tc_invocation *call) {
    return call->args[0].tensor.shape.numel / call->outs[0].tensor.shape.numel;
}

void tc_reference_sum(tc_invocation *call) {
    tc_expected *e = &call->outs[0];
    tc_real steps = tc_sum_steps(call, group_size(call)) * tc_u(call);
    for (int64_t i = 0; i < call->args[0].tensor.shape.numel; i++) {
        tc_number x = tc_in(call, 0)[i];
        int64_t at = group_of(call, i);
        e->tensor.values[at].f += x.f;
        e->tensor.values[at].i = tc_wrap_add(e->tensor.values[at].i, x.i);
        if (isfinite(x.f))
            e->rounding[at] += steps * fabsl(x.f);
    }
}

void tc_reference_prod(tc_invocation *call) {
    tc_expected *e = &call->outs[0];
    for (int64_t at = 0; at < e->tensor.shape.numel; at++)
        e->tensor.values[at] = (tc_number){1, 1};
    for (int64_t i = 0; i < call->args[0].tensor.shape.numel; i++) {
        tc_number *r = &e->tensor.values[group_of(call, i)];
        r->f *= tc_in(call, 0)[i].f;
        r->i = tc_wrap_mul(r->i, tc_in(call, 0)[i].i);
    }
    for (int64_t at = 0; at < e->tensor.shape.numel; at++)
        if (isfinite(e->tensor.values[at].f))
            e->rounding[at] =
                (tc_real)group_size(call) * tc_u(call) * fabsl(e->tensor.values[at].f);
}

/* Is a before b, where what comes first is kept? NaN is before all numbers. */
static bool before(tc_number a, tc_number b, bool largest) {
    if (isnan(a.f) || isnan(b.f))
        return isnan(a.f) && !isnan(b.f);
    return largest ? a.f > b.f || a.i > b.i : a.f < b.f || a.i < b.i;
}

/* The extreme of each group and its place along the (one) reduced dimension. */
static void extreme(tc_invocation *call, bool largest, bool place) {
    const tc_shape *in = &call->args[0].tensor.shape;
    tc_number *r = tc_out(call, 0);
    int64_t n_out = call->outs[0].tensor.shape.numel;
    int64_t *best = tc_arena_array(call->arena, (uint64_t)n_out, sizeof *best);
    if (!best)
        return;
    for (int64_t at = 0; at < n_out; at++)
        best[at] = -1;
    for (int64_t i = 0; i < in->numel; i++) {
        int64_t *b = &best[group_of(call, i)];
        if (*b < 0 || before(tc_in(call, 0)[i], tc_in(call, 0)[*b], largest))
            *b = i;
    }
    int64_t after = place ? tc_lines_of(in, call->args[1].i).after : 1;
    for (int64_t at = 0; at < n_out; at++)
        r[at] = place ? (tc_number){0, best[at] / after % in->sizes[call->args[1].i]}
                      : tc_in(call, 0)[best[at]];
}

void tc_reference_amax(tc_invocation *call) {
    extreme(call, true, false);
}

void tc_reference_amin(tc_invocation *call) {
    extreme(call, false, false);
}

void tc_reference_argmax(tc_invocation *call) {
    extreme(call, true, true);
}

void tc_reference_argmin(tc_invocation *call) {
    extreme(call, false, true);
}

/* Two passes. The error of a right kernel: T. Chan, G. Golub, R. LeVeque, Algorithms for Computing
 * the Sample Variance, The American Statistician 37, 1983: n u for the sum of squares, and n u
 * |mean| for the mean, which enters squared and, through Welford's updates, times the deviation. */
void tc_reference_var(tc_invocation *call) {
    tc_expected *e = &call->outs[0];
    int64_t n = group_size(call), n_out = e->tensor.shape.numel;
    tc_real *mean = tc_arena_array(call->arena, (uint64_t)n_out, sizeof *mean);
    tc_real *square = tc_arena_array(call->arena, (uint64_t)n_out, sizeof *square);
    if (!mean || !square)
        return;
    for (int64_t i = 0; i < call->args[0].tensor.shape.numel; i++)
        mean[group_of(call, i)] += tc_in(call, 0)[i].f / (tc_real)n;
    for (int64_t i = 0; i < call->args[0].tensor.shape.numel; i++) {
        int64_t at = group_of(call, i);
        tc_real d = tc_in(call, 0)[i].f - mean[at];
        square[at] += d * d;
    }
    tc_real left = (tc_real)n - (tc_real)call->args[TN_ARG_var_correction].f;
    tc_real divisor = left > 0 ? left : 0, u = tc_u(call);
    tc_real steps = tc_sum_steps(call, n) + 4;
    for (int64_t at = 0; at < n_out; at++) {
        tc_real value = square[at] / divisor;
        e->tensor.values[at].f = value;
        if (!isfinite(value)) {
            e->error[at] = n > 1 && divisor == 0 && square[at] < 1e-12L
                               ? INFINITY
                               : 0; /* 0 / 0 or rest / 0; one element leaves no rest */
            continue;
        }
        tc_real off = steps * u * fabsl(mean[at]);
        e->rounding[at] =
            2 * steps * u * value + 2 * off * sqrtl(value) + off * off * (tc_real)n / divisor;
    }
}
