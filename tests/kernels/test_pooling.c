/* Pooling and its derivatives, over windows of every geometry. */
#include "kernels_test.h"

#include <math.h>
#include <string.h>

static const struct geometry {
    int64_t n, c, h, w, kernel[2], stride[2], padding[2], dilation[2];
    bool ceil_mode, count_padding;
} geometries[] = {
    {1, 1, 1, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}, false, true},
    {2, 3, 8, 12, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false, true},  /* the common case */
    {2, 3, 9, 35, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false, false}, /* which leaves a row over */
    {2, 3, 9, 11, {2, 2}, {2, 2}, {0, 0}, {1, 1}, true, false},
    {2, 2, 7, 9, {3, 2}, {2, 1}, {1, 1}, {1, 1}, false, true},
    {2, 2, 7, 9, {3, 2}, {2, 3}, {1, 1}, {1, 1}, true, false},
    {1, 2, 10, 11, {3, 3}, {1, 2}, {1, 1}, {2, 3}, false, true},   /* dilation: max only */
    {2, 3, 8, 9, {3, 2}, {2, 3}, {1, 1}, {1, 1}, true, true},      /* past the padding */
    {1, 2, 6, 6, {6, 6}, {1, 1}, {0, 0}, {1, 1}, false, true},     /* one window */
    {1, 2, 5, 5, {2, 2}, {3, 3}, {0, 0}, {1, 1}, false, true},     /* gaps between windows */
    {30, 20, 14, 14, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false, true}, /* for threads */
};

static const struct geometry *g;

static int64_t in_size(int d) {
    return d ? g->w : g->h;
}

static int64_t out_size(int d) {
    const int64_t reach = g->dilation[d] * (g->kernel[d] - 1) + 1;
    const int64_t room = in_size(d) + 2 * g->padding[d] - reach;
    int64_t out = (room + (g->ceil_mode ? g->stride[d] - 1 : 0)) / g->stride[d] + 1;
    if (g->ceil_mode && (out - 1) * g->stride[d] >= in_size(d) + g->padding[d])
        out--; /* a window must start on the input or in the padding before it */
    return out;
}

static void sizes_of(int64_t *in, int64_t *out) {
    const int64_t in_[] = {g->n, g->c, g->h, g->w};
    const int64_t out_[] = {g->n, g->c, out_size(0), out_size(1)};
    memcpy(in, in_, sizeof in_);
    memcpy(out, out_, sizeof out_);
}

/* Where tap k of output `at` of a plane lies: an index of the plane, or -1. */
static int64_t tap(int64_t at, int64_t k) {
    const int64_t y =
        at / out_size(1) * g->stride[0] - g->padding[0] + k / g->kernel[1] * g->dilation[0];
    const int64_t x =
        at % out_size(1) * g->stride[1] - g->padding[1] + k % g->kernel[1] * g->dilation[1];
    return y < 0 || y >= g->h || x < 0 || x >= g->w ? -1 : y * g->w + x;
}

/* What a mean of output `at` is divided by. */
static double divisor(int64_t at) {
    const int64_t place[] = {at / out_size(1), at % out_size(1)};
    int64_t inside = 0, with_padding = 1;
    for (int64_t k = 0; k < g->kernel[0] * g->kernel[1]; k++)
        inside += tap(at, k) >= 0;
    for (int d = 0; d < 2; d++) {
        const int64_t begin = place[d] * g->stride[d] - g->padding[d];
        const int64_t end = begin + g->kernel[d], limit = in_size(d) + g->padding[d];
        with_padding *= (end < limit ? end : limit) - begin;
    }
    return (double)(g->count_padding ? with_padding : inside);
}

static void check_max(operand *x) {
    int64_t in[4], out[4];
    sizes_of(in, out);
    operand *outs[] = {operand_out(x->dtype, 4, out, SHIFTED),
                       operand_out(TN_I64, 4, out, SHIFTED)};
    const int64_t n = outs[0]->numel, plane = g->h * g->w, pixels = out[2] * out[3];
    number *values = scratch((size_t)n * sizeof *values);
    number *places = scratch((size_t)n * sizeof *places);
    for (int64_t i = 0; i < n; i++) {
        places[i].i = -1;
        for (int64_t k = 0; k < g->kernel[0] * g->kernel[1]; k++) {
            const int64_t at = tap(i % pixels, k);
            if (at < 0)
                continue;
            const number v = x->values[i / pixels * plane + at], best = values[i];
            if (places[i].i < 0 ||
                (!isnan(best.f) && (isnan(v.f) || v.f > best.f || v.i > best.i))) {
                values[i] = v;
                places[i].i = at;
            }
        }
    }
    const tn_cell args[] = {cell_of(x),
                            mini_ints(g->kernel, 2),
                            mini_ints(g->stride, 2),
                            mini_ints(g->padding, 2),
                            mini_ints(g->dilation, 2),
                            mini_bool(g->ceil_mode)};
    assert_ok(call_kernel("max_pool2d", x->dtype, TN_DTYPE_NONE, 6, args, 2, outs));
    check_elements(outs[0], values, NULL, 0);
    check_elements(outs[1], places, NULL, 0);
    check_untouched(x);
}

/* Few values, so that there are equals; every ninth is NaN in every third plane. */
static void max_pool(tn_dtype dtype) {
    for (int k = 0; k < LENGTH(geometries); k++)
        for (int nan = 0; nan < 2; nan++) {
            int64_t in[4], out[4];
            g = &geometries[k];
            sizes_of(in, out);
            operand *x = operand_whole(dtype, 4, in, nan ? SHIFTED : DENSE, 0, 9);
            for (int64_t i = 0; nan && i < x->numel; i++)
                operand_set(x, i,
                            (number){i % 9 == 4 ? NAN : x->values[i].f - 20, x->values[i].i - 20});
            operand_upload(x);
            describe("max_pool2d, dtype %d, geometry %d, NaN %d", dtype, k, nan);
            check_max(x);
            case_end(NULL);
        }
}

static void maxima_and_their_places_are_the_first_ones(void **state) {
    for_dtypes("max_pool2d", max_pool);
}

static void a_window_in_the_padding_alone_has_no_place(void **state) {
    static const struct geometry alone = {1, 1, 1, 1, {2, 2}, {1, 1}, {1, 1}, {2, 2}, false, true};
    const int64_t one[] = {1, 1, 1, 1};
    static const tn_dtype dtypes[] = {TN_F32, TN_F16, TN_I8, TN_U8};
    g = &alone;
    for (int d = 0; d < LENGTH(dtypes); d++) {
        operand *x = operand_whole(dtypes[d], 4, one, DENSE, 3, 3);
        operand *outs[] = {operand_out(dtypes[d], 4, one, DENSE),
                           operand_out(TN_I64, 4, one, DENSE)};
        const tn_cell args[] = {cell_of(x),
                                mini_ints(g->kernel, 2),
                                mini_ints(g->stride, 2),
                                mini_ints(g->padding, 2),
                                mini_ints(g->dilation, 2),
                                mini_bool(false)};
        describe("max_pool2d of padding, dtype %d", dtypes[d]);
        assert_ok(call_kernel("max_pool2d", dtypes[d], TN_DTYPE_NONE, 6, args, 2, outs));
        check_elements(outs[0], &(number){-INFINITY, dtypes[d] == TN_I8 ? INT8_MIN : 0}, NULL, 0);
        check_elements(outs[1], &(number){.i = -1}, NULL, 0);
    }
}

static void max_backward(tn_dtype dtype) {
    for (int k = 0; k < LENGTH(geometries); k++) {
        int64_t in[4], out[4];
        g = &geometries[k];
        sizes_of(in, out);
        const int64_t plane = g->h * g->w, pixels = out[2] * out[3];
        operand *y = operand_whole(dtype, 4, out, DENSE, -9, 9);
        operand *places = operand_whole(TN_I64, 4, out, DENSE, 0, plane - 1); /* any, with equals */
        operand *x = operand_out(dtype, 4, in, SHIFTED);
        number *expected = scratch((size_t)x->numel * sizeof *expected);
        for (int64_t i = 0; i < y->numel; i++)
            expected[i / pixels * plane + places->values[i].i].f += y->values[i].f;
        const tn_cell args[] = {cell_of(y), cell_of(places), mini_ints(in, 4)};
        describe("max_pool2d_backward, dtype %d, geometry %d", dtype, k);
        assert_ok(call_kernel("max_pool2d_backward", dtype, TN_DTYPE_NONE, 3, args, 1, &x));
        check_elements(x, expected, NULL, SAME);
        case_end(NULL);
    }
}

static void gradients_go_where_the_maxima_stood(void **state) {
    for_dtypes("max_pool2d_backward", max_backward);
}

static void a_place_out_of_range_is_an_error(void **state) {
    static const int64_t wrong[] = {96, -1, INT64_MAX, INT64_MIN};
    for (tn_dtype dtype = TN_F32; dtype <= TN_BF16; dtype++)
        for (int k = 0; k < LENGTH(wrong); k++) {
            int64_t in[4], out[4];
            g = &geometries[1];
            sizes_of(in, out);
            operand *y = operand_whole(dtype, 4, out, DENSE, -9, 9);
            operand *places = operand_whole(TN_I64, 4, out, DENSE, 0, 95);
            operand_set(places, places->numel / 2, (number){.i = wrong[k]});
            operand_upload(places);
            operand *x = operand_out(dtype, 4, in, DENSE);
            const tn_cell args[] = {cell_of(y), cell_of(places), mini_ints(in, 4)};
            describe("max_pool2d_backward, place %lld", (long long)wrong[k]);
            assert_int_equal(
                call_kernel("max_pool2d_backward", dtype, TN_DTYPE_NONE, 3, args, 1, &x),
                TN_INDEX_OUT_OF_RANGE);
            assert_non_null(strstr(mini_error(), "out of range"));
            check_untouched(x);
            case_end(NULL);
        }
}

static uint32_t mean_attributes(tn_cell *args, uint32_t n) {
    args[n++] = mini_ints(g->kernel, 2);
    args[n++] = mini_ints(g->stride, 2);
    args[n++] = mini_ints(g->padding, 2);
    args[n++] = mini_bool(g->ceil_mode);
    args[n++] = mini_bool(g->count_padding);
    return n;
}

static void mean(tn_dtype dtype) {
    for (int k = 0; k < LENGTH(geometries); k++) {
        int64_t in[4], out[4];
        g = &geometries[k];
        sizes_of(in, out);
        if (g->dilation[0] != 1)
            continue;
        operand *x = operand_whole(dtype, 4, in, SHIFTED, -9, 9);
        operand *y = operand_out(dtype, 4, out, DENSE);
        const int64_t plane = g->h * g->w, pixels = out[2] * out[3];
        number *expected = scratch((size_t)y->numel * sizeof *expected);
        for (int64_t i = 0; i < y->numel; i++) {
            for (int64_t t = 0; t < g->kernel[0] * g->kernel[1]; t++)
                if (tap(i % pixels, t) >= 0)
                    expected[i].f += x->values[i / pixels * plane + tap(i % pixels, t)].f;
            expected[i].f /= divisor(i % pixels);
        }
        tn_cell args[MAX_ARGS] = {cell_of(x)};
        describe("avg_pool2d, dtype %d, geometry %d", dtype, k);
        assert_ok(
            call_kernel("avg_pool2d", dtype, TN_DTYPE_NONE, mean_attributes(args, 1), args, 1, &y));
        check_elements(y, expected, NULL, 1);
        check_untouched(x);
        case_end(NULL);
    }
}

static void means_agree_with_the_reference(void **state) {
    for_dtypes("avg_pool2d", mean);
}

static void mean_backward(tn_dtype dtype) {
    for (int k = 0; k < LENGTH(geometries); k++) {
        int64_t in[4], out[4];
        g = &geometries[k];
        sizes_of(in, out);
        if (g->dilation[0] != 1)
            continue;
        operand *y = operand_whole(dtype, 4, out, SHIFTED, -9, 9);
        operand *x = operand_out(dtype, 4, in, DENSE);
        const int64_t plane = g->h * g->w, pixels = out[2] * out[3];
        number *expected = scratch((size_t)x->numel * sizeof *expected);
        double *scales = scratch((size_t)x->numel * sizeof *scales);
        for (int64_t i = 0; i < y->numel; i++)
            for (int64_t t = 0; t < g->kernel[0] * g->kernel[1]; t++)
                if (tap(i % pixels, t) >= 0) {
                    const int64_t to = i / pixels * plane + tap(i % pixels, t);
                    expected[to].f += y->values[i].f / divisor(i % pixels);
                    scales[to] += fabs(y->values[i].f) / divisor(i % pixels);
                }
        tn_cell args[MAX_ARGS] = {cell_of(y), mini_ints(in, 4)};
        describe("avg_pool2d_backward, dtype %d, geometry %d", dtype, k);
        assert_ok(call_kernel("avg_pool2d_backward", dtype, TN_DTYPE_NONE, mean_attributes(args, 2),
                              args, 1, &x));
        check_elements(x, expected, scales, 4);
        case_end(NULL);
    }
}

static void gradients_of_means_are_shared_out(void **state) {
    for_dtypes("avg_pool2d_backward", mean_backward);
}

static void the_mean_of_a_large_plane_stays_accurate(void **state) {
    static const struct geometry whole = {1,      1,      300,    300,   {300, 300},
                                          {1, 1}, {0, 0}, {1, 1}, false, true};
    int64_t in[4], out[4];
    g = &whole;
    sizes_of(in, out);
    operand *x = operand_random(TN_F32, 4, in, DENSE, 0.1, 0.1),
            *y = operand_out(TN_F32, 4, out, 0);
    tn_cell args[MAX_ARGS] = {cell_of(x)};
    describe("avg_pool2d of 300 x 300");
    assert_ok(
        call_kernel("avg_pool2d", TN_F32, TN_DTYPE_NONE, mean_attributes(args, 1), args, 1, &y));
    check_elements(y, x->values, NULL, 1);
}

static void results_do_not_depend_on_the_number_of_threads(void **state) {
    for (tn_dtype dtype = TN_F32; dtype <= TN_F16; dtype++) {
        int64_t in[4], out[4];
        g = &geometries[LENGTH(geometries) - 1];
        sizes_of(in, out);
        operand *x = operand_random(dtype, 4, in, DENSE, -2, 2);
        operand *places = operand_whole(TN_I64, 4, out, DENSE, 0, g->h * g->w - 1);
        operand *outs[] = {operand_out(dtype, 4, out, DENSE), operand_out(TN_I64, 4, out, DENSE)};
        operand *back = operand_out(dtype, 4, in, DENSE);
        const tn_cell args[] = {cell_of(x),
                                mini_ints(g->kernel, 2),
                                mini_ints(g->stride, 2),
                                mini_ints(g->padding, 2),
                                mini_ints(g->dilation, 2),
                                mini_bool(g->ceil_mode)};
        check_threads("max_pool2d", dtype, 6, args, 2, outs);
        operand *y = operand_random(dtype, 4, out, DENSE, -2, 2);
        const tn_cell max_args[] = {cell_of(y), cell_of(places), mini_ints(in, 4)};
        check_threads("max_pool2d_backward", dtype, 3, max_args, 1, &back);
        tn_cell mean_args[MAX_ARGS] = {cell_of(x)};
        check_threads("avg_pool2d", dtype, mean_attributes(mean_args, 1), mean_args, 1, outs);
        tn_cell back_args[MAX_ARGS] = {cell_of(y), mini_ints(in, 4)};
        check_threads("avg_pool2d_backward", dtype, mean_attributes(back_args, 2), back_args, 1,
                      &back);
        case_end(NULL);
    }
}

int test_pooling(void) {
    const struct CMUnitTest tests[] = {
        TEST(maxima_and_their_places_are_the_first_ones),
        TEST(a_window_in_the_padding_alone_has_no_place),
        TEST(gradients_go_where_the_maxima_stood),
        TEST(a_place_out_of_range_is_an_error),
        TEST(means_agree_with_the_reference),
        TEST(gradients_of_means_are_shared_out),
        TEST(the_mean_of_a_large_plane_stays_accurate),
        TEST(results_do_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
