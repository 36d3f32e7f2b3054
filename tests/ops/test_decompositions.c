/* Every decomposition against the kernel, on the reference CPU: first with its kernels, then in the same
 * process with TENON_KERNELS_DISABLE, which leaves those of the small set.
 *
 *   test_decompositions [OPERATOR]
 *
 * Pointwise operators get special values, all pairs and triples of them; those of one tensor every
 * bit pattern of f16 and bf16 too. The others get their samples of operators.toml, as they are and
 * with special values strewn in. How far the two may be apart follows from the table's tolerance. */
#define _GNU_SOURCE /* setenv */
#include "plugin-sdk/conformance/worker/core/sample.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ------------------------------------------------------------------------------ */

static const double special[] = {
    0,    -0.0,  1,     -1,      0.5,     -0.5, 1.5,      -2.5,      3,       -3.7,     1e-3,
    -0.3, 0.7,   10,    -12,     88,      -90,  100.5,    -1e4,      40000,   1e-20,    -1e-30,
    1e30, -1e20, 65504, 0x1p-24, 0x1p-14, NAN,  INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, FLT_MIN,
};
enum { N_SPECIAL = sizeof special / sizeof *special, N_MODERATE = 13, N_WHOLE = 9 };
static const double whole[N_WHOLE] = {0, 1, -1, 2, -3, 7, 100, -128, 127};

typedef enum data { DATA_SPECIAL, DATA_PATTERNS, DATA_SAMPLE, DATA_STREWN, N_DATA } data;

typedef struct point {
    const tc_operator *op;
    tn_dtype dtype;
    data data;
} point;

static bool is_float(tn_dtype dtype) {
    return (TN_DTYPES_FLOAT >> dtype) & 1;
}
static bool is_half(tn_dtype dtype) {
    return dtype == TN_F16 || dtype == TN_BF16;
}

/* Formulas whose steps overflow, or lose a small term, where the kernel's do not: they agree on
 * numbers near 1, as kernels.toml asks of kernels (extremes = false). */
static bool is_moderate(const char *name) {
    static const char *const names[] = {"addcmul",       "addcdiv",       "sigmoid_backward",
                                        "tanh_backward", "silu_backward", "gelu_backward"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* All combinations of the values, in the place of the sample's tensors. */
static tn_tensor *combination(const point *p, uint32_t which, uint32_t n_tensors, bool mask) {
    const double *values = is_float(p->dtype) ? special : whole;
    int64_t n = !is_float(p->dtype)                         ? N_WHOLE
                : n_tensors > 2 || is_moderate(p->op->name) ? N_MODERATE
                                                            : N_SPECIAL;
    int64_t numel = 1, period = 1;
    for (uint32_t i = 0; i < n_tensors; i++)
        numel *= n;
    for (uint32_t i = 0; i < which; i++)
        period *= n;
    double *v = malloc((size_t)numel * sizeof *v);
    for (int64_t i = 0; i < numel; i++)
        v[i] = mask ? i / period % 2 : values[i / period % n];
    tn_tensor *t = tn_from_data(v, TN_SHAPE(numel), TN_F64, tn_device_parse("cpu:0"));
    free(v);
    return tn_to_dtype(t, mask ? TN_BOOL : p->dtype);
}

static tn_tensor *patterns(tn_dtype dtype) {
    static uint16_t bits[65536];
    for (uint32_t i = 0; i < 65536; i++)
        bits[i] = (uint16_t)i;
    return tn_from_data(bits, TN_SHAPE(65536), dtype, tn_device_parse("cpu:0"));
}

/* The sample's tensors with their values; special ones strewn in make few elements of the result
 * NaN, not all. */
static tn_tensor *sampled(const point *p, const tc_input *in, uint32_t which) {
    double *v = malloc(((size_t)in->numel + 1) * sizeof *v);
    for (int64_t i = 0; i < in->numel; i++) {
        v[i] = in->reals[i];
        bool strewn = p->data == DATA_STREWN && in->fill <= FILL_APART && (i + which) % 5 == 3;
        if (strewn && is_float(in->dtype) && p->op->tolerance == TC_TOLERANCE_DOT)
            v[i] =
                special[(size_t)(i + which) % N_MODERATE]; /* 0 * inf of padding is the kernel's */
        else if (strewn && is_float(in->dtype))
            v[i] = special[(size_t)(i / 5 * 7 + which * 3) % N_SPECIAL];
    }
    tn_tensor *t =
        tn_from_data(v, tn_ints_of(in->sizes, in->rank), TN_F64, tn_device_parse("cpu:0"));
    free(v);
    return tn_to_dtype(t, in->dtype);
}

/* ---- one call ---------------------------------------------------------------------------- */

typedef struct result {
    bool failed;
    char why[256];
    uint32_t n;
    tn_dtype dtype[4];
    int64_t numel[4];
    double *values[4];
} result;

static result compute(const point *p) {
    TN_SCOPE;
    result r = {0};
    static tc_sample s;
    s = (tc_sample){.dtype = p->dtype, .scale = 1, .state = 88172645463325252u};
    tn_device cpu = tn_device_parse("cpu:0");
    const tn_op *op = tn_op_find(p->op->name);
    tn_error_clear();
    r.failed = !op || !tc_sample_init(&s, p->op, cpu);
    for (uint32_t i = 0; i < s.n_inputs && !r.failed; i++) {
        tc_input *in = &s.inputs[i];
        tn_tensor *t = p->data == DATA_PATTERNS ? patterns(p->dtype)
                       : p->data == DATA_SPECIAL
                           ? combination(p, i, s.n_inputs, in->fill == FILL_MASK)
                           : sampled(p, in, i);
        *in->cell = (tn_cell){.tag = TN_CELL_TENSOR, .v.pointer = t};
        r.failed = !t;
    }
    tc_sample_gather(&s);
    tn_cell rets[4] = {{0}};
    r.failed = r.failed || tn_op_call(op, s.args, tn_op_n_args(op), rets) != TN_OK;
    for (uint32_t i = 0; i < tn_op_n_rets(op) && !r.failed; i++) {
        tn_tensor *t = tn_give(rets[i].v.pointer);
        size_t n = (size_t)tn_numel(t);
        r.dtype[r.n] = tn_dtype_of(t);
        r.numel[r.n] = (int64_t)n;
        r.values[r.n] = malloc((n + 1) * sizeof(double));
        r.failed = tn_to_host(tn_to_dtype(t, TN_F64), r.values[r.n++], n * sizeof(double)) != TN_OK;
    }
    if (r.failed)
        snprintf(r.why, sizeof r.why, "%s", tn_error_message());
    tc_sample_finish(&s);
    return r;
}

/* ---- comparison -------------------------------------------------------------------------- */

static double ulp(tn_dtype dtype, double x) {
    int bits = dtype == TN_F64 ? 53 : dtype == TN_F32 ? 24 : dtype == TN_F16 ? 11 : 8;
    int exponent = dtype == TN_F64 ? -1022 : dtype == TN_F16 ? -14 : -126;
    if (x != 0 && isfinite(x) && ilogb(x) > exponent)
        exponent = ilogb(x);
    return ldexp(1, exponent - bits + 1);
}

/* How far the decomposition may be from the kernel's r. Halves are rounded once from nearly the same
 * f32, so the next one is as far as it goes; where terms cancel, by what f32 has of the terms. */
static double bound(const point *p, tn_dtype dtype, double r, double largest) {
    static const double units[] = {
        [TC_TOLERANCE_EXACT] = 0, [TC_TOLERANCE_ULP2] = 2, [TC_TOLERANCE_ULP4] = 8,
        [TC_TOLERANCE_SUM] = 16,  [TC_TOLERANCE_DOT] = 16, [TC_TOLERANCE_COMPOSITE] = 32};
    double n = units[p->op->tolerance];
    if (n == 0)
        return 0;
    tn_dtype in = is_half(dtype) ? TN_F32 : dtype;
    double steps = n * ulp(in, r);
    if ((p->op->flags & TC_CANCELS) || p->op->tolerance > TC_TOLERANCE_ULP4)
        steps = n * ulp(in, fmax(fabs(r), largest));
    return is_half(dtype) ? fmax(ulp(dtype, r), steps) : steps;
}

static unsigned differences(const point *p, const result *kernel, const result *steps) {
    static const char *const names[] = {"special values", "all patterns", "the sample",
                                        "the sample with special values"};
    unsigned n = 0;
    if (kernel->failed != steps->failed) {
        printf("%s %s, %s: with the kernel '%s', without '%s'\n", p->op->name,
               tn_dtype_name(p->dtype), names[p->data], kernel->why, steps->why);
        return 1;
    }
    for (uint32_t k = 0; k < kernel->n && !kernel->failed; k++) {
        double largest = 0, worst = 0;
        int64_t at = -1;
        for (int64_t i = 0; i < kernel->numel[k]; i++)
            if (isfinite(kernel->values[k][i]) && p->data != DATA_PATTERNS &&
                p->data != DATA_SPECIAL)
                largest = fmax(largest, fabs(kernel->values[k][i]));
        if (p->data == DATA_PATTERNS || p->data == DATA_SPECIAL)
            largest = 16; /* of the terms that cancel, which for other numbers do not */
        for (int64_t i = 0; i < kernel->numel[k]; i++) {
            double a = kernel->values[k][i], b = steps->values[k][i];
            if (a == b || (isnan(a) && isnan(b)))
                continue;
            /* the mean of a row with infinities, of which the results are NaN */
            if (k > 0 && !isfinite(a) && !isfinite(b))
                continue;
            double limit = is_float(kernel->dtype[k]) ? bound(p, kernel->dtype[k], a, largest) : 0;
            double off = isfinite(a) && isfinite(b) ? fabs(a - b) / fmax(limit, DBL_MIN) : INFINITY;
            n += off > 1;
            if (off > 1 && off > worst) {
                worst = off;
                at = i;
            }
        }
        if (at >= 0)
            printf("%s(%s) %s, %s: element %lld of output %u is %.9g, in steps %.9g (%.3g of the "
                   "bound)\n",
                   p->op->name, p->op->text, tn_dtype_name(p->dtype), names[p->data], (long long)at,
                   k, kernel->values[k][at], steps->values[k][at], worst);
    }
    return n > 0;
}

/* ---- all of them ------------------------------------------------------------------------- */

static void note_decomposition(const tn_op_info *info, void *user) {
    *(bool *)user = info->has_decomposition;
}

static bool takes(const point *p) {
    bool pointwise = p->op->flags & TC_POINTWISE;
    uint32_t n = 0;
    tc_sample s = {.dtype = p->dtype, .scale = 1};
    p->op->make(&s);
    n = s.n_inputs;
    if (p->data == DATA_PATTERNS)
        return pointwise && n == 1 && is_half(p->dtype) && p->op->index == 0;
    if (p->data == DATA_SPECIAL)
        return pointwise && p->op->index == 0;
    return !pointwise && (p->data == DATA_SAMPLE || is_float(p->dtype));
}

int main(int argc, char **argv) {
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16, TN_I64, TN_I8, TN_U8};
    enum { MAX_POINTS = 8192 };
    static point points[MAX_POINTS];
    static result kernel[MAX_POINTS];
    unsigned n = 0, failed = 0, compared = 0;
    for (uint32_t i = 0; i < tc_n_operators; i++) {
        bool decomposes = false;
        if (argc > 1 && strcmp(argv[1], tc_operators[i].name) != 0)
            continue;
        tn_op_describe(tc_operators[i].name, note_decomposition, &decomposes);
        for (unsigned d = 0; decomposes && d < sizeof dtypes / sizeof *dtypes; d++) {
            for (int k = 0; k < N_DATA; k++) {
                point p = {&tc_operators[i], dtypes[d], (data)k};
                if (takes(&p) && n < MAX_POINTS)
                    points[n++] = p;
            }
        }
    }
    for (unsigned i = 0; i < n; i++)
        kernel[i] = compute(&points[i]);
    tn_error_clear();
    tn_shutdown();
    setenv("TENON_KERNELS_DISABLE", "*/*", 1);
    for (unsigned i = 0; i < n; i++) {
        result steps = compute(&points[i]);
        failed += differences(&points[i], &kernel[i], &steps);
        compared += !steps.failed;
        for (uint32_t k = 0; k < 4; k++) {
            free(steps.values[k]);
            free(kernel[i].values[k]);
        }
    }
    printf("%u compared, %u failed\n", compared, failed);
    tn_error_clear();
    tn_shutdown();
    return failed > 0 || compared == 0;
}
