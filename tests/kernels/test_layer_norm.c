/* layer_norm and its derivative. */
#include "kernels_test.h"

#include <math.h>

/* Rows shorter and longer than a block (512) and than the lanes of a sum (32). */
static const struct {
    int32_t rank;
    int64_t sizes[3];
    int64_t n_dims;
} shapes[] = {
    {1, {1}, 1},        {1, {7}, 1},       {2, {5, 33}, 1},   {2, {3, 1300}, 1},
    {3, {2, 4, 40}, 2}, {3, {2, 3, 4}, 3}, {3, {4, 3, 1}, 1}, {2, {200, 130}, 1},
};

enum { N_SHAPES = LENGTH(shapes) };

/* Sizes of the normalised part, of what is left with ones in place of it, and elements of a row. */
static int64_t split(int s, int64_t *out_row, int64_t *out_stats) {
    int64_t n = 1, first = shapes[s].rank - shapes[s].n_dims;
    for (int64_t d = 0; d < shapes[s].rank; d++) {
        out_stats[d] = d < first ? shapes[s].sizes[d] : 1;
        if (d >= first) {
            out_row[d - first] = shapes[s].sizes[d];
            n *= shapes[s].sizes[d];
        }
    }
    return n;
}

/* Mean and 1 / sqrt(variance + eps) of n numbers. */
static void moments(const number *x, int64_t n, double eps, double *out_mean, double *out_rstd) {
    long double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i].f;
    const long double mean = sum / (long double)n;
    for (int64_t i = 0; i < n; i++)
        squares += (x[i].f - mean) * (x[i].f - mean);
    *out_mean = (double)mean;
    *out_rstd = (double)(1 / sqrtl(squares / (long double)n + eps));
}

static void forward(operand *x, int s, bool has_weight, bool has_bias, operand *out) {
    int64_t row[3], stats[3];
    const int64_t n = split(s, row, stats);
    const int32_t n_dims = (int32_t)shapes[s].n_dims;
    const double eps = 1e-5;
    operand *w = has_weight ? operand_random(x->dtype, n_dims, row, DENSE, -2, 2) : NULL;
    operand *b = has_bias ? operand_random(x->dtype, n_dims, row, DENSE, -2, 2) : NULL;
    operand *outs[] = {out, operand_out(x->dtype, x->rank, stats, DENSE),
                       operand_out(x->dtype, x->rank, stats, DENSE)};
    number *y = scratch((size_t)x->numel * sizeof *y);
    number *means = scratch((size_t)(x->numel / n) * sizeof *means);
    number *rstds = scratch((size_t)(x->numel / n) * sizeof *rstds);
    double *scales = scratch((size_t)x->numel * sizeof *scales);
    double *mean_scales = scratch((size_t)(x->numel / n) * sizeof *mean_scales);
    for (int64_t r = 0; r < x->numel / n; r++) {
        double mean, rstd;
        moments(x->values + r * n, n, eps, &mean, &rstd);
        means[r].f = mean;
        rstds[r].f = rstd;
        for (int64_t i = 0; i < n; i++) {
            const double v = x->values[r * n + i].f, weight = w ? w->values[i].f : 1;
            const double bias = b ? b->values[i].f : 0;
            y[r * n + i].f = (v - mean) * rstd * weight + bias;
            scales[r * n + i] = (fabs(v) + fabs(mean)) * rstd * fabs(weight) + fabs(bias);
            mean_scales[r] += fabs(v) / (double)n;
        }
    }
    const tn_cell args[] = {cell_of(x), cell_of(w), cell_of(b), mini_i64(n_dims), mini_f64(eps)};
    assert_ok(call_kernel("layer_norm", x->dtype, TN_DTYPE_NONE, 5, args, 3, outs));
    check_elements(out, y, scales, 4);
    check_elements(outs[1], means, mean_scales, 2);
    check_elements(outs[2], rstds, NULL, x->dtype == TN_F64 ? 1000 : 4);
    if (out != x)
        check_untouched(x);
    if (w)
        check_untouched(w);
}

static void each_forward(tn_dtype dtype) {
    for (int s = 0; s < N_SHAPES; s++)
        for (int k = 0; k < 4; k++) {
            const layout l = k % 2 ? SHIFTED : DENSE;
            describe("layer_norm, dtype %d, shape %d, variant %d", dtype, s, k);
            operand *x = operand_random(dtype, shapes[s].rank, shapes[s].sizes, l, 10, 14);
            forward(x, s, k & 1, k & 2,
                    k == 3 ? x : operand_out(dtype, shapes[s].rank, shapes[s].sizes, l));
            case_end(NULL);
        }
}

static void normalised_rows_agree_with_the_reference(void **state) {
    for_dtypes("layer_norm", each_forward);
}

static void backward(tn_dtype dtype, int s, bool has_weight, int onto) {
    int64_t row[3], stats[3];
    const int64_t n = split(s, row, stats);
    const int32_t n_dims = (int32_t)shapes[s].n_dims, rank = shapes[s].rank;
    operand *g = operand_random(dtype, rank, shapes[s].sizes, DENSE, -2, 2);
    operand *x = operand_random(dtype, rank, shapes[s].sizes, SHIFTED, 3, 5);
    operand *w = has_weight ? operand_random(dtype, n_dims, row, DENSE, -2, 2) : NULL;
    operand *mean = operand_random(dtype, rank, stats, DENSE, 3.5, 4.5); /* need not be x's */
    operand *rstd = operand_random(dtype, rank, stats, DENSE, 0.5, 2);
    operand *z = onto == 0 ? operand_out(dtype, rank, shapes[s].sizes, DENSE) : onto == 1 ? g : x;
    number *expected = scratch((size_t)x->numel * sizeof *expected);
    double *scales = scratch((size_t)x->numel * sizeof *scales);
    for (int64_t r = 0; r < x->numel / n; r++) {
        const double m = mean->values[r].f, q = rstd->values[r].f;
        double sum = 0, product = 0, size = 0;
        for (int64_t i = 0; i < n; i++) {
            const double t = g->values[r * n + i].f * (w ? w->values[i].f : 1);
            sum += t / (double)n;
            product += t * (x->values[r * n + i].f - m) * q / (double)n;
            size += fabs(t) * (1 + 5 * q) / (double)n;
        }
        for (int64_t i = 0; i < n; i++) {
            const double t = g->values[r * n + i].f * (w ? w->values[i].f : 1);
            const double hat = (x->values[r * n + i].f - m) * q;
            expected[r * n + i].f = q * (t - sum - hat * product);
            scales[r * n + i] = q * (fabs(t) + size * (1 + fabs(hat)));
        }
    }
    const tn_cell args[] = {cell_of(g),    cell_of(x), cell_of(mean),
                            cell_of(rstd), cell_of(w), mini_i64(n_dims)};
    assert_ok(call_kernel("layer_norm_backward", dtype, TN_DTYPE_NONE, 6, args, 1, &z));
    check_elements(z, expected, scales, 4);
}

static void each_backward(tn_dtype dtype) {
    for (int s = 0; s < N_SHAPES; s++)
        for (int k = 0; k < 6; k++) {
            describe("layer_norm_backward, dtype %d, shape %d, variant %d", dtype, s, k);
            backward(dtype, s, k % 2, k / 2);
            case_end(NULL);
        }
}

static void the_derivative_agrees_with_the_reference(void **state) {
    for_dtypes("layer_norm_backward", each_backward);
}

static void a_row_far_from_zero_keeps_its_variance(void **state) {
    const int64_t sizes[] = {2, 600};
    operand *x = operand_random(TN_F32, 2, sizes, DENSE, 1e6, 1e6 + 1);
    operand *outs[] = {operand_out(TN_F32, 2, sizes, DENSE),
                       operand_out(TN_F32, 2, (int64_t[]){2, 1}, DENSE),
                       operand_out(TN_F32, 2, (int64_t[]){2, 1}, DENSE)};
    const tn_cell args[] = {cell_of(x), mini_none(), mini_none(), mini_i64(1), mini_f64(0)};
    number rstds[2];
    double mean;
    for (int r = 0; r < 2; r++)
        moments(x->values + r * 600, 600, 0, &mean, &rstds[r].f);
    assert_ok(call_kernel("layer_norm", TN_F32, TN_DTYPE_NONE, 5, args, 3, outs));
    check_elements(outs[2], rstds, NULL, 16);
}

static void a_constant_row_is_no_nan(void **state) {
    /* Values whose sums round: the variance must come out as 0 or just above, never below. */
    for (int64_t n = 3; n < 600; n += 67)
        for (int k = 1; k < 40; k++) {
            operand *x = operand_create(TN_F32, 1, &n, DENSE), *y = operand_out(TN_F32, 1, &n, 0);
            operand *outs[] = {y, operand_out(TN_F32, 1, (int64_t[]){1}, DENSE),
                               operand_out(TN_F32, 1, (int64_t[]){1}, DENSE)};
            for (int64_t i = 0; i < n; i++)
                operand_set(x, i, (number){.f = k / 7.0});
            operand_upload(x);
            const tn_cell args[] = {cell_of(x), mini_none(), mini_none(), mini_i64(1), mini_f64(0)};
            assert_ok(call_kernel("layer_norm", TN_F32, TN_DTYPE_NONE, 5, args, 3, outs));
            const double rstd = get(TN_F32, elements_of(outs[2]), 0).f;
            if (!(rstd > 1e4))
                fail_msg("%lld times %g: rstd %g", (long long)n, k / 7.0, rstd);
            case_end(NULL);
        }
}

static void results_do_not_depend_on_the_number_of_threads(void **state) {
    const int64_t sizes[] = {301, 307}, stats[] = {301, 1};
    for (tn_dtype dtype = TN_F32; dtype <= TN_F16; dtype++) {
        operand *x = operand_random(dtype, 2, sizes, DENSE, -2, 2);
        operand *m = operand_random(dtype, 2, stats, DENSE, 0.5, 1);
        operand *outs[] = {operand_out(dtype, 2, sizes, DENSE), operand_out(dtype, 2, stats, DENSE),
                           operand_out(dtype, 2, stats, DENSE)};
        const tn_cell args[] = {cell_of(x), mini_none(), mini_none(), mini_i64(1), mini_f64(1e-5)};
        const tn_cell backward_args[] = {cell_of(x), cell_of(x),  cell_of(m),
                                         cell_of(m), mini_none(), mini_i64(1)};
        check_threads("layer_norm", dtype, 5, args, 3, outs);
        check_threads("layer_norm_backward", dtype, 6, backward_args, 1, outs);
        case_end(NULL);
    }
}

int test_layer_norm(void) {
    const struct CMUnitTest tests[] = {
        TEST(normalised_rows_agree_with_the_reference),
        TEST(the_derivative_agrees_with_the_reference),
        TEST(a_row_far_from_zero_keeps_its_variance),
        TEST(a_constant_row_is_no_nan),
        TEST(results_do_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
