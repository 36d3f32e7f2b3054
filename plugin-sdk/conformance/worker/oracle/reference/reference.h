/* Helpers of the reference implementations of kernel operators.
 *
 * A reference is slow and obvious: it follows the operator's text in kernels.toml element by
 * element, in long double or 64-bit integers, over row-major values, and never looks at strides. It
 * fills, for each output element, the value and how far a right kernel may be off:
 *
 *     error      always: the function's own inaccuracy (record's ulps)
 *     rounding   where the arithmetic is not exact: n * u * sum |term|, after
 *                N. Higham, Accuracy and Stability of Numerical Algorithms, ch. 3 and 4
 *
 * Half a unit of the output's dtype comes on top (oracle/compare.c).
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_ORACLE_REFERENCE_REFERENCE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_ORACLE_REFERENCE_REFERENCE_H

#include "plugin-sdk/conformance/worker/kernel/record.h"

/* Values of argument a and of output k, row-major. */
static inline const tc_number *tc_in(const tc_invocation *call, int a) {
    return call->args[a].tensor.values;
}

static inline tc_number *tc_out(tc_invocation *call, int k) {
    return call->outs[k].tensor.values;
}

static inline bool tc_floating(const tc_invocation *call) {
    return tc_is_float(call->types[0]);
}

/* The unit roundoff of the call's arithmetic. */
static inline tc_real tc_u(const tc_invocation *call) {
    return tc_unit(call->types[0]);
}

/* `ulps` units in the last place of the arithmetic's dtype, at x. */
static inline tc_real tc_ulps(const tc_invocation *call, double ulps, tc_real x) {
    return (tc_real)ulps * tc_spacing(call->types[0] == TN_F64 ? TN_F64 : TN_F32, x);
}

/* A tensor of [before, n, after]: what lies along dimension `dim`. */
typedef struct tc_lines {
    int64_t before, n, after;
} tc_lines;

static inline tc_lines tc_lines_of(const tc_shape *s, int64_t dim) {
    tc_lines l = {1, s->rank ? s->sizes[dim] : 1, 1};
    for (int32_t d = 0; d < s->rank; d++) {
        if (d < dim)
            l.before *= s->sizes[d];
        if (d > dim)
            l.after *= s->sizes[d];
    }
    return l;
}

/* Calls f for each line of the first argument along `dim`: its n elements are `step` apart, from
 * `first` on. */
static inline void tc_each_line(tc_invocation *call, int64_t dim,
                                void (*f)(tc_invocation *call, int64_t first, int64_t step,
                                          int64_t n)) {
    tc_lines l = tc_lines_of(&call->args[0].tensor.shape, dim);
    for (int64_t b = 0; b < l.before; b++)
        for (int64_t a = 0; a < l.after; a++)
            f(call, b * l.n * l.after + a, l.after, l.n);
}

/* Sums of n terms in any sensible order (pairwise, in blocks, in lanes): their rounding is at most
 * this often u * sum |term|. */
tc_real tc_sum_steps(const tc_invocation *call, int64_t n);

/* Two's complement. */
static inline int64_t tc_wrap_add(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t tc_wrap_mul(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

#endif
