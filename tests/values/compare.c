/* See compare.h. Bounds are those of the conformance suite (outcome.h), which go by the table's
 * tolerances. */
#include "tests/values/compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Codes of scales and errors: half binary exponents, but for these. */
enum { CODE_ANYTHING = INT16_MAX, CODE_NOTHING = INT16_MIN };

const tc_operator *promised(const char *name) {
    for (uint32_t i = 0; i < tc_n_operators; i++) {
        const tc_operator *op = &tc_operators[i];
        if (strcmp(op->name, name) == 0 || (op->inplace && strcmp(op->inplace, name) == 0) ||
            (op->out && strcmp(op->out, name) == 0))
            return op;
    }
    return NULL;
}

static void fail(comparison *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    out->failed = true;
    vsnprintf(out->why, sizeof out->why, format, args);
    va_end(args);
}

static bool is_float(tn_dtype dtype) {
    return (TN_DTYPES_FLOAT & TN_DTYPE_BIT(dtype)) != 0;
}

static int16_t code_at(const uint8_t *codes, int64_t i) {
    int16_t code;
    memcpy(&code, codes + i * 2, sizeof code);
    return code;
}

static double magnitude(int16_t code) {
    return code == CODE_NOTHING ? 0 : exp2(code / 2.0);
}

/* ---- elements as they are ---------------------------------------------------------------- */

static void show(const void *data, tn_dtype dtype, int64_t i, char out[48]) {
    if (is_float(dtype))
        snprintf(out, 48, "%.17g", real_at(data, dtype, i));
    else
        snprintf(out, 48, "%lld", (long long)whole_at(data, dtype, i));
}

static void compare_bits(const promise *p, const expected *e, const uint8_t *got, comparison *out) {
    size_t size = (size_t)tn_dtype_size(e->dtype);
    bool signs_zero = !p->op || (p->op->flags & TC_SIGNED_ZERO);
    for (int64_t i = 0; i < e->numel && !out->failed; i++) {
        if (memcmp(got + (size_t)i * size, e->data + (size_t)i * size, size) == 0)
            continue;
        if (is_float(e->dtype)) {
            double a = real_at(got, e->dtype, i), b = real_at(e->data, e->dtype, i);
            if ((isnan(a) && isnan(b)) || (a == 0 && b == 0 && !signs_zero))
                continue;
        }
        char want[48], have[48];
        show(e->data, e->dtype, i, want);
        show(got, e->dtype, i, have);
        fail(out, "element %lld is %s, expected %s", (long long)i, have, want);
    }
}

/* ---- numbers within a bound -------------------------------------------------------------- */

/* Infinity as the number after the largest: what rounds to the one may be a step from the other. */
static double stepped(double x, tn_dtype dtype) {
    if (!isinf(x) || dtype == TN_F64)
        return x;
    return copysign(ldexp(1, dtype == TN_F16 ? 16 : 128), x);
}

/* Bounds of a gradient: halves are rounded once, from steps that saved halves, of several products (attention)
 * such as cancel then; of f64 nothing better is known than its terms (expect.py). */
static tc_scale scale_of_gradient(const promise *p, const expected *e) {
    bool is_half = e->dtype == TN_F16 || e->dtype == TN_BF16;
    bool products = p->op && p->op->tolerance == TC_TOLERANCE_DOT && (p->op->flags & TC_COMPOSITE);
    return (tc_scale){.tolerance =
                          is_half && !products ? TC_TOLERANCE_ULP4 : TC_TOLERANCE_COMPOSITE,
                      .steps = is_half,
                      .cancels = e->dtype == TN_F64,
                      .is_sensitive = true};
}

static tc_scale scale_of_result(const promise *p) {
    tc_tolerance tolerance = p->op ? p->op->tolerance : TC_TOLERANCE_EXACT;
    bool in_steps = p->in_steps && tolerance != TC_TOLERANCE_EXACT;
    bool cancels = p->op && (p->op->flags & TC_CANCELS);
    return (tc_scale){.tolerance = in_steps ? TC_TOLERANCE_COMPOSITE : tolerance,
                      .steps = p->op && (p->op->flags & TC_COMPOSITE),
                      .cancels = cancels,
                      .is_sensitive = tolerance == TC_TOLERANCE_COMPOSITE && !cancels};
}

static tc_scale scale_of(const promise *p, const expected *e, const uint8_t *wide,
                         tn_dtype stored) {
    tc_scale s = p->is_gradient ? scale_of_gradient(p, e) : scale_of_result(p);
    s.dtype = e->dtype;
    s.n = fmin(p->n, 512);
    for (int64_t i = 0; e->how == EXPECT_LARGEST && i < e->numel; i++) {
        double r = fabs(tc_clip(real_at(wide, stored, i), e->dtype));
        s.largest = fmax(s.largest, isfinite(r) ? r : 0);
    }
    return s;
}

static void compare_reals(const promise *p, const expected *e, const uint8_t *got,
                          comparison *out) {
    tn_dtype stored = e->dtype == TN_F64 ? TN_F64 : TN_F32;
    const uint8_t *scales = e->data + e->numel * tn_dtype_size(stored);
    const uint8_t *errors = scales + e->numel * (int64_t)sizeof(int16_t);
    tc_scale s = scale_of(p, e, e->data, stored);
    for (int64_t i = 0; i < e->numel && !out->failed; i++) {
        double g = real_at(got, e->dtype, i);
        double r = tc_clip(real_at(e->data, stored, i), e->dtype);
        int16_t error = code_at(errors, i);
        if (error == CODE_ANYTHING) {
            out->n_anything++;
            continue;
        }
        if (isnan(r) || isnan(g)) {
            if (isnan(r) != isnan(g))
                fail(out, "element %lld is %.9g, expected %.9g", (long long)i, g, r);
            continue;
        }
        if (g == r)
            continue;
        double m = magnitude(code_at(scales, i));
        s.input = s.cancels ? m : 0;
        double near = stepped(r, e->dtype), off = fabs(stepped(g, e->dtype) - near);
        double limit = isfinite(near) ? tc_bound(&s, near, m) : 0;
        if (off <= limit)
            continue;
        if (isfinite(near) && off <= 2 * magnitude(error))
            out->is_no_better = true;
        else
            fail(out, "element %lld is %.17g, expected %.17g within %.3g (PyTorch is off by %.3g)",
                 (long long)i, g, r, limit, magnitude(error));
    }
}

/* ---- a tensor ---------------------------------------------------------------------------- */

/* Changes an element in the middle, to something else that is far from it. */
static bool disturb_element(const expected *e, uint8_t *data) {
    int64_t i = e->numel / 2;
    size_t size = (size_t)tn_dtype_size(e->dtype);
    if (e->how == EXPECT_ELEMENT || e->how == EXPECT_LARGEST) {
        const uint8_t *errors =
            e->data + e->numel * (tn_dtype_size(e->dtype) < 4 ? 4 : (int64_t)size) + e->numel * 2;
        if (code_at(errors, i) == CODE_ANYTHING)
            return false;
    }
    if (!is_float(e->dtype)) {
        data[(size_t)i * size] ^= 1;
        return true;
    }
    double x = real_at(data, e->dtype, i);
    x = isfinite(x) ? x * 1.3 + 0.4 : 1;
    store_real(data, e->dtype, i, x);
    return true;
}

static void compare_data(const promise *p, const expected *e, tn_tensor *got, bool disturb,
                         comparison *out) {
    uint64_t bytes = (uint64_t)e->numel * (uint64_t)tn_dtype_size(e->dtype);
    uint8_t *data = malloc((size_t)bytes + 1);
    if (!data || tn_to_host(got, data, bytes) != TN_OK) {
        fail(out, "reading it: %s", tn_error_message());
        free(data);
        return;
    }
    if (disturb && e->numel)
        out->is_disturbed |= disturb_element(e, data);
    if (e->how == EXPECT_BITS)
        compare_bits(p, e, data, out);
    else
        compare_reals(p, e, data, out);
    free(data);
}

void compare(const promise *p, const expected *e, tn_tensor *got, bool disturb, comparison *out) {
    tn_ints sizes = tn_sizes(got);
    if (tn_dtype_of(got) != e->dtype)
        fail(out, "it is %s, expected %s", tn_dtype_name(tn_dtype_of(got)),
             tn_dtype_name(e->dtype));
    else if (sizes.n != e->rank ||
             memcmp(sizes.data, e->sizes, (size_t)e->rank * sizeof *e->sizes) != 0)
        fail(out, "it has another shape: rank %lld, %lld elements", (long long)sizes.n,
             (long long)tn_numel(got));
    else if (e->how != EXPECT_SHAPE)
        compare_data(p, e, got, disturb, out);
}
