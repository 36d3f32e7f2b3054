/* Compares results with the reference, within the bounds of outcome.h. */
#include "plugin-sdk/conformance/worker/core/outcome.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bits of a significand, the implied one included. */
static int n_bits(tn_dtype dtype) {
    return dtype == TN_F64 ? 53 : dtype == TN_F32 ? 24 : dtype == TN_F16 ? 11 : 8;
}

static double unit(tn_dtype dtype) {
    return ldexp(1, -n_bits(dtype));
}

/* Distance of two neighbours at x. */
static double ulp(tn_dtype dtype, double x) {
    int exponent = tc_least_exponent(dtype);
    if (x != 0 && isfinite(x) && ilogb(x) > exponent)
        exponent = ilogb(x);
    return ldexp(1, exponent - n_bits(dtype) + 1);
}

double tc_bound(const tc_scale *s, double r, double m) {
    if (s->cancels)
        r = fmax(fabs(r), fmax(s->largest, s->input));
    double wide = s->dtype == TN_F64 ? 2 : 1, u = unit(s->dtype);
    double accumulator = s->dtype == TN_F64 ? unit(TN_F64) : unit(TN_F32);
    bool narrow = n_bits(s->dtype) < n_bits(TN_F32);
    double between = s->steps ? 3 * u * fmax(fabs(r), m) : 0;
    switch (s->tolerance) {
    case TC_TOLERANCE_EXACT:
        return 0;
    case TC_TOLERANCE_ULP2:
        return wide * ((narrow ? 1 : 2) * ulp(s->dtype, r) + between);
    case TC_TOLERANCE_ULP4:
        return wide * ((!narrow ? 4 : s->cancels ? 2 : 1) * ulp(s->dtype, r) + between);
    case TC_TOLERANCE_SUM:
    case TC_TOLERANCE_DOT:
        return wide * (0.51 * ulp(s->dtype, r) + s->n * accumulator * fmax(fabs(r), m) + between);
    default:
        return wide * (16 * u * fmax(fabs(r), s->largest) + 16 * u * u * s->input +
                       (s->is_sensitive ? 4 * u * m : 0) + ulp(s->dtype, 0));
    }
}

int64_t tc_wrap(int64_t x, tn_dtype dtype) {
    switch (dtype) {
    case TN_I8:
        return (int8_t)x;
    case TN_U8:
        return (uint8_t)x;
    case TN_I16:
        return (int16_t)x;
    case TN_I32:
        return (int32_t)x;
    case TN_BOOL:
        return x != 0;
    default:
        return x;
    }
}

double tc_clip(double x, tn_dtype dtype) {
    double top = ldexp(2 - 2 * unit(dtype), dtype == TN_F16 ? 15 : dtype == TN_F64 ? 1023 : 127);
    return fabs(x) > top * (1 + unit(dtype) / 2) ? copysign(INFINITY, x) : x;
}

/* To the nearest of the dtype, ties to even. */
static double rounded(double x, tn_dtype dtype) {
    if (dtype == TN_F64 || !isfinite(x))
        return x;
    double step = ulp(dtype, x);
    return tc_clip(nearbyint(x / step) * step, dtype);
}

static void wrong(tc_verdict *v, const tc_operator *op, uint32_t output, int64_t element,
                  const char *expected, const char *got) {
    v->worst = element;
    v->measured = true;
    tc_verdict_set(v, TC_FAIL, TNP_NONE, "%s(%s): output %u, element %lld: expected %s, got %s",
                   op->name, op->text, output, (long long)element, expected, got);
}

static void compare_wholes(const tc_operator *op, uint32_t i, const tc_result *got,
                           const tc_result *ref, tc_verdict *v) {
    bool from_reals = (TN_DTYPES_FLOAT & TN_DTYPE_BIT(ref->dtype)) != 0;
    for (int64_t e = 0; e < got->numel; e++) {
        int64_t r = tc_wrap(from_reals ? llrint(ref->reals[e]) : ref->wholes[e], got->dtype);
        if (got->wholes[e] == r)
            continue;
        char expected[32], seen[32];
        snprintf(expected, sizeof expected, "%lld", (long long)r);
        snprintf(seen, sizeof seen, "%lld", (long long)got->wholes[e]);
        wrong(v, op, i, e, expected, seen);
        return;
    }
}

static void compare_reals(const tc_operator *op, const tc_scale *s, uint32_t i,
                          const tc_result *got, const tc_result *ref, const tc_result *magnitude,
                          tc_verdict *v) {
    double bias = 0, worst_share = -1;
    for (int64_t e = 0; e < got->numel; e++) {
        double g = got->reals[e], r = tc_clip(ref->reals[e], got->dtype), share = 0;
        if (s->tolerance == TC_TOLERANCE_EXACT && !s->steps)
            r = rounded(r, got->dtype);
        double limit = tc_bound(s, r, magnitude ? fabs(magnitude->reals[e]) : fabs(r));
        if (s->tolerance == TC_TOLERANCE_EXACT && s->steps)
            limit = 2 * ulp(s->dtype, r);
        if (isnan(r) || isnan(g))
            share = isnan(r) == isnan(g) ? 0 : INFINITY;
        else if (g != r && !(g == 0 && fabs(r) - limit <= s->most_flushed))
            share = limit > 0 && isfinite(g) && isfinite(r) ? fabs(g - r) / limit : INFINITY;
        if (isfinite(share) && limit > 0 && isfinite(g - r))
            bias += (g - r) / limit / (double)got->numel;
        if (share > worst_share) {
            worst_share = share;
            if (share > v->share || !v->measured) {
                v->measured = true;
                v->share = share;
                v->worst = e;
            }
        }
        if (!(share <= 1) && v->status == TC_PASS) {
            char expected[96], seen[96];
            snprintf(expected, sizeof expected, "%.17g within %.3g", r, limit);
            snprintf(seen, sizeof seen, "%.17g (%.3g of the bound)", g, share);
            wrong(v, op, i, e, expected, seen);
        }
    }
    if (fabs(bias) > fabs(v->bias))
        v->bias = bias;
}

static bool same_shape(const tc_result *a, const tc_result *b) {
    return a->rank == b->rank &&
           memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof *a->sizes) == 0;
}

bool tc_is_sensitive(const tc_operator *op) {
    return op->tolerance == TC_TOLERANCE_COMPOSITE && !(op->flags & TC_CANCELS);
}

void tc_add_sensitivity(const tc_outcome *reference, tc_outcome *moved, tc_outcome *out) {
    if (moved->status != TN_OK || moved->n != reference->n)
        return;
    for (uint32_t i = 0; i < moved->n; i++) {
        const tc_result *r = &reference->results[i], *m = &moved->results[i];
        for (int64_t e = 0; m->numel == r->numel && e < m->numel; e++) {
            double s = fabs(m->reals[e] - r->reals[e]) / TC_DISTURBANCE,
                   before = out->n ? out->results[i].reals[e] : 0;
            m->reals[e] = fmax(isfinite(s) ? s : 0, before);
        }
    }
    tc_outcome before = *out;
    *out = *moved;
    *moved = before;
}

static double longest(const tc_sample *s) {
    double n = 1;
    for (uint32_t i = 0; i < s->n_inputs; i++)
        n = fmax(n, (double)s->inputs[i].numel);
    return fmin(n, 512);
}

void tc_compare(const tc_operator *op, const tc_sample *s, const tc_outcome *got,
                const tc_outcome *shape, const tc_outcome *reference, const tc_outcome *magnitude,
                tc_verdict *v) {
    const tc_outcome *like = shape ? shape : reference;
    if (got->n != like->n || got->n != reference->n) {
        tc_verdict_set(v, TC_FAIL, TNP_NONE, "%s(%s): %u results, expected %u", op->name, op->text,
                       got->n, like->n);
        return;
    }
    for (uint32_t i = 0; i < got->n; i++) {
        const tc_result *g = &got->results[i], *r = &reference->results[i];
        if (!same_shape(g, &like->results[i]) || !same_shape(g, r)) {
            tc_verdict_set(v, TC_FAIL, TNP_NONE,
                           "%s(%s): output %u has another shape than on the CPU", op->name,
                           op->text, i);
            return;
        }
        if (shape && g->dtype != shape->results[i].dtype) {
            tc_verdict_set(v, TC_FAIL, TNP_NONE, "%s(%s): output %u is %s, expected %s", op->name,
                           op->text, i, tn_dtype_name(g->dtype),
                           tn_dtype_name(shape->results[i].dtype));
            return;
        }
        if (!(TN_DTYPES_FLOAT & TN_DTYPE_BIT(g->dtype))) {
            compare_wholes(op, i, g, r, v);
            continue;
        }
        bool has_m = magnitude && magnitude->status == TN_OK && magnitude->n == got->n &&
                     magnitude->results[i].numel == g->numel;
        tc_scale how = {.tolerance = op->tolerance,
                        .steps = (op->flags & TC_COMPOSITE) && !(op->flags & TC_RANDOM),
                        .dtype = g->dtype,
                        .n = longest(s)};
        how.cancels = (op->flags & TC_CANCELS) != 0;
        how.is_sensitive = has_m && tc_is_sensitive(op);
        if (got->in_steps && op->tolerance != TC_TOLERANCE_EXACT)
            how.tolerance = TC_TOLERANCE_COMPOSITE;
        how.most_flushed =
            s->flushes & TN_DTYPE_BIT(g->dtype) ? ldexp(1, tc_least_exponent(g->dtype)) : -INFINITY;
        for (uint32_t t = 0; t < s->n_inputs; t++)
            for (int64_t e = 0; e < s->inputs[t].numel; e++)
                how.input = fmax(how.input, fabs(s->inputs[t].reals[e]));
        for (int64_t e = 0; e < g->numel; e++)
            how.largest = fmax(how.largest, isfinite(r->reals[e]) ? fabs(r->reals[e]) : 0);
        compare_reals(op, &how, i, g, r, has_m ? &magnitude->results[i] : NULL, v);
    }
}
