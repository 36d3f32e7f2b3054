/* See compare.h. */
#include "plugin-sdk/conformance/worker/oracle/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* How far element i may be off before rounding to the dtype. */
static tc_real slack_of(const tc_invocation *call, const tc_expected *e, int64_t i) {
    /* Whole numbers of fewer than 22 bits, and sums of them, are exact in f32. */
    bool exact = call->whole && fabsl(e->tensor.values[i].f) < 0x1p22L;
    tc_real value = e->tensor.values[i].f;
    tc_real own = 0; /* of the reference, which is but 11 bits more precise than f64 */
    if (e->tensor.dtype == TN_F64 && isfinite(value) && value != (tc_real)(double)value)
        own = 0x1p-63L * fabsl(value);
    return e->error[i] + own + (exact ? 0 : e->rounding[i]);
}

static void bounds(tn_dtype dtype, tc_real value, tc_real slack, tc_real *out_low,
                   tc_real *out_high) {
    bool none = isinf(slack);
    *out_low = none ? -INFINITY : tc_round(dtype, (tc_number){value - slack, 0}).f;
    *out_high = none ? INFINITY : tc_round(dtype, (tc_number){value + slack, 0}).f;
}

void tc_bounds(const tc_invocation *call, uint32_t k, int64_t i, tc_real *out_low,
               tc_real *out_high) {
    const tc_expected *e = &call->outs[k];
    bounds(e->tensor.dtype, e->tensor.values[i].f, slack_of(call, e, i), out_low, out_high);
}

/* Up to where a result may be zero that a device flushes: a function is often a number times another one (of silu's
 * x * sigmoid(x) x is up to 745), which is subnormal sooner. Those of f16 are computed in f32. */
static tc_real most_flushed(const tc_record *record, tn_dtype dtype) {
    bool has_steps = record->ulps > 0 && dtype != TN_F16;
    return (has_steps ? 0x1p10L : 1) * tc_smallest_normal(dtype);
}

static bool accepts_float(const tc_invocation *call, const tc_expected *e, int64_t i, tc_real slack,
                          tc_real got, uint64_t flushes) {
    tn_dtype dtype = e->tensor.dtype;
    tc_real value = e->tensor.values[i].f, low, high;
    if (isinf(slack))
        return true; /* unspecified */
    if (isnan(value) || isnan(got))
        return isnan(value) && isnan(got);
    if (got == value && value != 0)
        return true; /* also where the bound of an infinity is no number */
    if (got != 0 && fabsl(got - value) <= slack)
        return true; /* rounding the bounds leaves it between them */
    bounds(dtype, value, slack, &low, &high);
    if (got == 0 && low == 0 && high == 0 && value == 0 && call->record->zero_signed)
        return signbit(got) == signbit(value);
    if (got >= low && got <= high)
        return true;
    return (flushes & TN_DTYPE_BIT(dtype)) && got == 0 &&
           fabsl(value) - slack <= most_flushed(call->record, dtype);
}

static bool accepts_int(const tc_expected *e, int64_t i, int64_t got) {
    if (e->tensor.dtype == TN_BOOL && got > 1) /* a byte that is no truth value */
        return false;
    return isinf(e->error[i]) || got == tc_round(e->tensor.dtype, e->tensor.values[i]).i;
}

bool tc_accepts(const tc_invocation *call, uint32_t k, int64_t i, tc_number got, uint64_t flushes) {
    const tc_expected *e = &call->outs[k];
    return tc_is_float(e->tensor.dtype)
               ? accepts_float(call, e, i, slack_of(call, e, i), got.f, flushes)
               : accepts_int(e, i, got.i);
}

/* ---- messages ---------------------------------------------------------------------------- */

static void place_text(const tc_shape *s, int64_t i, char *out, size_t room) {
    int64_t index[TC_MAX_RANK];
    for (int32_t d = s->rank - 1; d >= 0; d--) {
        index[d] = i % s->sizes[d];
        i /= s->sizes[d];
    }
    size_t at = (size_t)snprintf(out, room, "[");
    for (int32_t d = 0; d < s->rank && at < room; d++)
        at += (size_t)snprintf(out + at, room - at, "%s%" PRId64, d ? ", " : "", index[d]);
    if (at < room)
        snprintf(out + at, room - at, "]");
}

static void number_text(tn_dtype dtype, tc_number x, char out[48]) {
    if (tc_is_float(dtype))
        snprintf(out, 48, "%.*Lg", dtype == TN_F64 ? 17 : 9, x.f);
    else
        snprintf(out, 48, "%" PRId64, x.i);
}

static void fail_at(const tc_invocation *call, uint32_t k, int64_t i, tc_number got,
                    int64_t n_wrong, tc_verdict *out) {
    const tc_expected *e = &call->outs[k];
    tn_dtype dtype = e->tensor.dtype;
    char place[160], expected[48], exact[48], there[48], limit[128] = "";
    place_text(&e->tensor.shape, i, place, sizeof place);
    number_text(dtype, tc_round(dtype, e->tensor.values[i]), expected);
    number_text(TN_F64, e->tensor.values[i], exact);
    number_text(dtype, got, there);
    if (tc_is_float(dtype))
        snprintf(limit, sizeof limit, " (exactly %s, give or take %.3Lg)", exact,
                 slack_of(call, e, i));
    tc_verdict_set(out, TC_FAIL, TNP_KERNEL_RESULT,
                   "%s: output %u (%s) is wrong in %" PRId64 " of %" PRId64
                   " elements, first at %s: expected %s%s, got %s",
                   call->record->op, k, tc_dtype_name(dtype), n_wrong, e->tensor.shape.numel, place,
                   expected, limit, there);
}

bool tc_has_bounds(const tc_invocation *call, char why[TC_MESSAGE]) {
    for (uint32_t k = 0; k < call->record->n_outs; k++) {
        const tc_expected *e = &call->outs[k];
        for (int64_t i = 0; tc_is_float(e->tensor.dtype) && i < e->tensor.shape.numel; i++) {
            /* of an infinity it may be no number */
            bool is_known = !isnan(e->error[i] + e->rounding[i]);
            if (!(e->error[i] < 0 || e->rounding[i] < 0) &&
                (is_known || !isfinite(e->tensor.values[i].f)))
                continue;
            char place[160];
            place_text(&e->tensor.shape, i, place, sizeof place);
            return tc_why(why, TC_MESSAGE,
                          "%s: a mistake of the suite: output %u (%s) may be off by %.3Lg and %.3Lg"
                          " at %s",
                          call->record->op, k, tc_dtype_name(e->tensor.dtype), e->error[i],
                          e->rounding[i], place);
        }
    }
    return true;
}

/* ---- comparison -------------------------------------------------------------------------- */

/* The error as a share of slack and half a spacing; signed. */
static inline tc_real share_of(tn_dtype dtype, tc_real value, tc_real slack, tc_real got) {
    tc_real off = got - value;
    if (off == 0 || !isfinite(off) || !isfinite(slack))
        return 0;
    return off / (slack + tc_spacing(dtype, value) / 2);
}

typedef struct comparison {
    int64_t first, n_wrong;
    tc_real sum, most; /* of the shares; the largest, at `worst` */
    int64_t worst;
} comparison;

static inline void compare_float(tn_dtype dtype, const tc_invocation *call, const tc_expected *e,
                                 int64_t i, tc_real got, uint64_t flushes, comparison *c) {
    tc_real slack = slack_of(call, e, i), value = e->tensor.values[i].f;
    bool close = got != 0 && fabsl(got - value) <= slack; /* what accepts_float mostly says */
    if (!close && !accepts_float(call, e, i, slack, got, flushes) && c->n_wrong++ == 0)
        c->first = i;
    tc_real share = share_of(dtype, value, slack, got);
    c->sum += share;
    if (fabsl(share) > c->most) {
        c->most = fabsl(share);
        c->worst = i;
    }
}

/* With a dtype that the compiler knows: this runs for each element of each output. */
static inline __attribute__((always_inline)) comparison
compare(tn_dtype dtype, const tc_invocation *call, const tc_expected *e, const unsigned char *image,
        uint64_t flushes) {
    const tc_shape *s = &e->tensor.shape;
    comparison c = {.most = -1};
    for (tc_runs r = tc_runs_start(s); r.first < s->numel; tc_runs_on(&r))
        for (int64_t j = 0; j < r.n; j++) {
            int64_t i = r.first + j;
            tc_number got = tc_load(dtype, image, r.place + j * r.stride);
            if (tc_is_float(dtype))
                compare_float(dtype, call, e, i, got.f, flushes, &c);
            else if (!accepts_int(e, i, got.i) && c.n_wrong++ == 0)
                c.first = i;
        }
    return c;
}

void tc_compare(const tc_invocation *call, uint32_t k, const unsigned char *image, uint64_t flushes,
                tc_verdict *out) {
    const tc_expected *e = &call->outs[k];
    const tc_shape *s = &e->tensor.shape;
    tn_dtype dtype = e->tensor.dtype;
    bool is_float = tc_is_float(dtype);
    comparison c = {0};
    switch (dtype) {
#define COMPARE(NAME, value, name, bytes, category) \
    case value: \
        c = compare(value, call, e, image, flushes); \
        break;
        TN_DTYPE_MAP(COMPARE)
#undef COMPARE
    }
    if (is_float && (!out->measured || c.most > out->share)) {
        out->share = (double)c.most;
        out->worst = c.worst;
    }
    out->measured |= is_float;
    if (out->measured && k == 0)
        out->bias = (double)(c.sum / (tc_real)s->numel);
    if (c.n_wrong)
        fail_at(call, k, c.first, tc_load(dtype, image, tc_place(s, c.first)), c.n_wrong, out);
}

/* ---- distrust ---------------------------------------------------------------------------- */

typedef tc_number wrong_answer(const tc_expected *e, int64_t i);

static tc_number all_zero(const tc_expected *e, int64_t i) {
    (void)e, (void)i;
    return (tc_number){0, 0};
}

static tc_number next_element(const tc_expected *e, int64_t i) {
    return e->tensor.values[(i + 1) % e->tensor.shape.numel];
}

static tc_number too_large(const tc_expected *e, int64_t i) {
    tc_number x = e->tensor.values[i];
    return (tc_number){x.f * (1 + 0x1p-6L), (int64_t)((uint64_t)x.i + 1)}; /* the largest wraps */
}

/* Would an output of such elements pass? */
static bool passes(const tc_invocation *call, uint32_t k, wrong_answer *wrong, uint64_t flushes) {
    const tc_expected *e = &call->outs[k];
    for (int64_t i = 0; i < e->tensor.shape.numel; i++)
        if (!tc_accepts(call, k, i, tc_round(e->tensor.dtype, wrong(e, i)), flushes))
            return false;
    return true;
}

/* Elements of an output may rightly be equal where inputs are broadcast, or there are none. */
static bool may_be_constant(const tc_invocation *call) {
    bool constant = call->scalar < 0;
    if (!constant || tc_is_null(call->data))
        return true;
    for (uint32_t a = 0; a < call->record->n_args; a++)
        if (call->record->args[a].kind == TC_ARG_TENSOR && !call->args[a].none) {
            if (tc_has_zero_stride(&call->args[a].tensor.shape))
                return true;
            constant = false;
        }
    return constant;
}

void tc_check_conclusive(const tc_invocation *call, uint64_t flushes, tc_verdict *out) {
    enum { FEW = 6 }; /* elements that may by chance, or by right, all be zero or equal */
    bool constant = may_be_constant(call);
    if (call->record->constant || call->sharing || call->inner) /* x - x is 0 */
        return;
    for (uint32_t k = 0; k < call->record->n_outs; k++) {
        if (call->outs[k].tensor.shape.numel < FEW)
            continue;
        const char *which =
            passes(call, k, all_zero, flushes)                    ? "all zero"
            : passes(call, k, next_element, flushes) && !constant ? "moved by one element"
            : passes(call, k, too_large, flushes) && call->outs[k].tensor.dtype != TN_BOOL &&
                    !tc_is_null(call->data) /* all of it 0 or NaN */
                ? "1/64 too large"
                : NULL;
        if (which)
            tc_verdict_set(
                out, TC_INCONCLUSIVE, TNP_NONE,
                "%s: output %u would have passed %s too, so that this case proves nothing",
                call->record->op, k, which);
    }
}
