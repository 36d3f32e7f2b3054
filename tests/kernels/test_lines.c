/* Operators along one dimension: cumsum, sort, softmax and its relatives. */
#include "kernels_test.h"

#include <math.h>
#include <string.h>

/* Lines that are dense, far apart, or neighbours of each other (softmax takes those 128 at once);
 * longer than what softmax keeps (2048) and than insertion sort takes (48). */
static const struct {
    int32_t rank;
    int64_t sizes[3];
    int64_t dim;
} shapes[] = {
    {0, {0}, 0},       {1, {1}, 0},       {1, {257}, 0},      {2, {5, 33}, 1},
    {2, {33, 5}, 0},   {2, {20, 150}, 0}, {3, {3, 17, 4}, 1}, {3, {2, 9, 12}, 1},
    {3, {1, 1, 3}, 1}, {2, {2, 5000}, 1}, {2, {700, 9}, 0},   {2, {64, 300}, 1},
};

/* Of an operand along a dimension: the length of a line and how far apart its elements are. */
static int64_t length_of(const operand *a, int64_t dim) {
    return a->rank ? a->sizes[dim] : 1;
}

static int64_t step_of(const operand *a, int64_t dim) {
    int64_t step = 1;
    for (int64_t d = dim + 1; d < a->rank; d++)
        step *= a->sizes[d];
    return step;
}

/* Calls `each` with all shapes in layouts that change, ending a case after each. */
static void for_shapes(const char *op, tn_dtype dtype,
                       void (*each)(tn_dtype dtype, int s, layout in, layout out)) {
    int turn = dtype;
    for (int s = 0; s < LENGTH(shapes); s++)
        for (int k = 0; k < 3; k++) {
            const layout in = (layout)(turn++ % N_LAYOUTS), out = (layout)(turn % N_OUT_LAYOUTS);
            describe("%s, dtype %d, shape %d, layouts %d, %d", op, dtype, s, in, out);
            each(dtype, s, in, out);
            case_end(NULL);
        }
}

/* ---- cumsum --------------------------------------------------------------------------------- */

static void check_cumsum(operand *a, int64_t dim, operand *z) {
    const int64_t n = length_of(a, dim), step = step_of(a, dim);
    number *expected = scratch((size_t)a->numel * sizeof *expected);
    double *scales = scratch((size_t)a->numel * sizeof *scales);
    for (int64_t i = 0; i < a->numel; i++) {
        const bool is_first = i / step % n == 0;
        const number x = a->values[i], before = is_first ? (number){0} : expected[i - step];
        expected[i] = (number){before.f + x.f, (int64_t)((uint64_t)before.i + (uint64_t)x.i)};
        scales[i] = fabs(x.f) + (is_first ? 0 : scales[i - step]);
    }
    const tn_cell args[] = {cell_of(a), mini_i64(dim)};
    assert_ok(call_kernel("cumsum", a->dtype, TN_DTYPE_NONE, 2, args, 1, &z));
    check_elements(z, expected, scales, 1);
}

static void cumsum_shape(tn_dtype dtype, int s, layout in, layout out) {
    operand *a = operand_random(dtype, shapes[s].rank, shapes[s].sizes, in,
                                is_float(dtype) ? -1 : -1e5, is_float(dtype) ? 1 : 1e5);
    check_cumsum(a, shapes[s].dim, operand_out(dtype, shapes[s].rank, shapes[s].sizes, out));
    check_untouched(a);
    a = operand_random(dtype, shapes[s].rank, shapes[s].sizes, out, -1, 1);
    check_cumsum(a, shapes[s].dim, a); /* in place */
}

static void cumsum(tn_dtype dtype) {
    for_shapes("cumsum", dtype, cumsum_shape);
}

static void running_sums_agree_with_the_reference(void **state) {
    for_dtypes("cumsum", cumsum);
    const int64_t many[] = {300, 301};
    for (tn_dtype dtype = TN_F32; dtype <= TN_I8; dtype++)
        check_cumsum(operand_random(dtype, 2, many, DENSE, -1, 1), 0,
                     operand_out(dtype, 2, many, DENSE));
}

static void long_running_sums_stay_accurate(void **state) {
    const int64_t n = 1 << 20;
    for (tn_dtype dtype = TN_F32; dtype <= TN_BF16; dtype++) {
        operand *a = operand_random(dtype, 1, &n, DENSE, 0, dtype == TN_F16 ? 0.1 : 1);
        describe("long cumsum, dtype %d", dtype);
        if (dtype != TN_F64) /* which carries in itself, as the reference does */
            check_cumsum(a, 0, operand_out(dtype, 1, &n, DENSE));
        case_end(NULL);
    }
}

/* ---- sort ----------------------------------------------------------------------------------- */

/* Below 0: a before b. NaN is the largest; zeros are equal. */
static int order(number a, number b) {
    if (isnan(a.f) || isnan(b.f))
        return (isnan(a.f) != 0) - (isnan(b.f) != 0);
    if (a.f != b.f)
        return a.f < b.f ? -1 : 1;
    return (a.i > b.i) - (a.i < b.i);
}

static void check_sort(operand *a, int64_t dim, bool descending, layout out) {
    const int64_t n = length_of(a, dim), step = step_of(a, dim);
    operand *outs[] = {operand_out(a->dtype, a->rank, a->sizes, out),
                       operand_out(TN_I64, a->rank, a->sizes, (layout)((out + 1) % N_OUT_LAYOUTS))};
    const tn_cell args[] = {cell_of(a), mini_i64(dim), mini_bool(descending)};
    assert_ok(call_kernel("sort", a->dtype, TN_DTYPE_NONE, 3, args, 2, outs));
    const char *values = elements_of(outs[0]), *elements = elements_of(a);
    const int64_t *places = elements_of(outs[1]);
    const size_t item = mini_dtype_bytes(a->dtype);
    for (int64_t i = 0; i < a->numel; i++) {
        const int64_t start = i - i / step % n * step, place = places[i];
        if (place < 0 || place >= n)
            fail_msg("%s: place %lld", description(), (long long)place);
        /* bit for bit what stood there */
        assert_memory_equal(values + (size_t)i * item,
                            elements + (size_t)(start + place * step) * item, item);
        if (i == start)
            continue;
        /* In order, and equal ones in the order they came: so all places are distinct. */
        const int64_t before = places[i - step];
        const int o = order(a->values[start + before * step], a->values[start + place * step]);
        if (o == 0 ? before >= place : (o > 0) != descending)
            fail_msg("%s: element %lld is out of order", description(), (long long)i);
    }
    /* The rest of the storage. */
    for (int k = 0; k < 2; k++) {
        const void *now = elements_of(outs[k]);
        number *same = scratch((size_t)a->numel * sizeof *same);
        for (int64_t i = 0; i < a->numel; i++)
            same[i] = get(outs[k]->dtype, now, i);
        check_elements(outs[k], same, NULL, 0);
    }
    check_untouched(a);
}

/* Few different values, so that stability shows; extremes; zeros of both signs; NaN. */
static void sort_shape(tn_dtype dtype, int s, layout in, layout out) {
    operand *a = operand_whole(dtype, shapes[s].rank, shapes[s].sizes, in, 0, 20);
    for (int64_t i = 0; i < a->numel; i++) {
        number x = {a->values[i].f - 10, dtype == TN_BOOL ? a->values[i].i : a->values[i].i - 10};
        if (i % 11 == 7)
            x = (number){NAN, INT64_MIN};
        if (i % 13 == 5)
            x = (number){i % 2 ? -0.0 : INFINITY, INT64_MAX};
        if (i % 17 == 3)
            x = (number){i % 2 ? -INFINITY : 1e-7, (int64_t)random_u64()};
        operand_set(a, i, x);
    }
    operand_upload(a);
    for (int descending = 0; descending < 2; descending++)
        check_sort(a, shapes[s].dim, descending, out);
}

static void sort(tn_dtype dtype) {
    for_shapes("sort", dtype, sort_shape);
}

static void sorting_is_stable_with_nan_largest(void **state) {
    for_dtypes("sort", sort);
}

static void many_lines_are_sorted_by_threads(void **state) {
    const int64_t sizes[] = {600, 61};
    for (int64_t dim = 0; dim < 2; dim++) {
        describe("sort on threads, dim %d", (int)dim);
        check_sort(operand_random(TN_F32, 2, sizes, DENSE, -5, 5), dim, false, DENSE);
        check_sort(operand_random(TN_I16, 2, sizes, DENSE, -5, 5), dim, true, DENSE);
    }
}

/* ---- softmax -------------------------------------------------------------------------------- */

static bool is_log; /* of the operator under test */

static const char *forward_op(void) {
    return is_log ? "log_softmax" : "softmax";
}

static const char *backward_op(void) {
    return is_log ? "log_softmax_backward" : "softmax_backward";
}

static void check_softmax(operand *a, int64_t dim, operand *z) {
    const int64_t n = length_of(a, dim), step = step_of(a, dim);
    number *expected = scratch((size_t)a->numel * sizeof *expected);
    double *scales = scratch((size_t)a->numel * sizeof *scales);
    double *max = scratch((size_t)a->numel * sizeof *max); /* at the first of a line */
    long double *sum = scratch((size_t)a->numel * sizeof *sum);
    for (int64_t i = 0; i < a->numel; i++) {
        const int64_t start = i - i / step % n * step;
        const double x = a->values[i].f;
        if (i == start) {
            max[i] = -INFINITY;
            for (int64_t k = 0; k < n; k++)
                max[i] = fmax(max[i], a->values[i + k * step].f);
            for (int64_t k = 0; k < n; k++)
                sum[i] += exp(a->values[i + k * step].f - max[i]);
        }
        const double below = x - max[start], total = (double)sum[start];
        expected[i].f = is_log ? below - log(total) : exp(below) / total;
        scales[i] =
            is_log ? fabs(x) + fabs(max[start]) + log(total) : expected[i].f * (1 + fabs(below));
    }
    const tn_cell args[] = {cell_of(a), mini_i64(dim)};
    assert_ok(call_kernel(forward_op(), a->dtype, TN_DTYPE_NONE, 2, args, 1, &z));
    check_elements(z, expected, scales, z->dtype == TN_F64 ? 64 : 4); /* f64 sums in f64 */
}

static void softmax_shape(tn_dtype dtype, int s, layout in, layout out) {
    operand *a = operand_random(dtype, shapes[s].rank, shapes[s].sizes, in, -5, 5);
    check_softmax(a, shapes[s].dim, operand_out(dtype, shapes[s].rank, shapes[s].sizes, out));
    check_untouched(a);
    a = operand_random(dtype, shapes[s].rank, shapes[s].sizes, out, -5, 5);
    check_softmax(a, shapes[s].dim, a); /* in place */
}

static void check_backward(operand *g, operand *y, int64_t dim, operand *z) {
    const int64_t n = length_of(y, dim), step = step_of(y, dim);
    number *expected = scratch((size_t)y->numel * sizeof *expected);
    double *scales = scratch((size_t)y->numel * sizeof *scales);
    long double *total = scratch((size_t)y->numel * sizeof *total);
    double *size = scratch((size_t)y->numel * sizeof *size);
    for (int64_t i = 0; i < y->numel; i++) {
        const int64_t start = i - i / step % n * step;
        for (int64_t k = 0; k < n && i == start; k++) {
            const int64_t at = i + k * step;
            const double term = g->values[at].f * (is_log ? 1 : y->values[at].f);
            total[i] += term;
            size[i] += fabs(term);
        }
        const double a = g->values[i].f, b = y->values[i].f;
        expected[i].f = (double)(is_log ? a - exp(b) * total[start] : b * (a - total[start]));
        scales[i] = is_log ? fabs(a) + exp(b) * (1 + fabs(b)) * size[start]
                           : fabs(b) * (fabs(a) + size[start]);
    }
    const tn_cell args[] = {cell_of(g), cell_of(y), mini_i64(dim)};
    assert_ok(call_kernel(backward_op(), y->dtype, TN_DTYPE_NONE, 3, args, 1, &z));
    check_elements(z, expected, scales, z->dtype == TN_F64 ? 64 : 4);
}

static void backward_shape(tn_dtype dtype, int s, layout in, layout out) {
    const int32_t rank = shapes[s].rank;
    const int64_t *sizes = shapes[s].sizes;
    const double low = is_log ? -3 : 0, high = is_log ? 0 : 1;
    for (int onto = 0; onto < 3; onto++) { /* an output of its own, or in place */
        operand *g = operand_random(dtype, rank, sizes, onto == 1 ? out : in, -2, 2);
        operand *y = operand_random(dtype, rank, sizes,
                                    onto == 2 ? out : (layout)((in + 1) % N_LAYOUTS), low, high);
        check_backward(g, y, shapes[s].dim,
                       onto == 0   ? operand_out(dtype, rank, sizes, out)
                       : onto == 1 ? g
                                   : y);
    }
}

static void softmax(tn_dtype dtype) {
    for_shapes(forward_op(), dtype, softmax_shape);
}

static void softmax_backward(tn_dtype dtype) {
    for_shapes(backward_op(), dtype, backward_shape);
}

static void softmax_and_its_relatives_agree_with_the_reference(void **state) {
    for (int k = 0; k < 2; k++) {
        is_log = k;
        for_dtypes(forward_op(), softmax);
        for_dtypes(backward_op(), softmax_backward);
    }
}

static void softmax_survives_large_and_infinite_inputs(void **state) {
    /* Rows: large, very small, one that dominates, -inf apart from one, all -inf, +inf, NaN. */
    static const double rows[][4] = {
        {80000, 79999, 0, -80000},
        {-60000, -60000, -60000, -60000},
        {0, 1000, 0, 0},
        {-INFINITY, 3, -INFINITY, -INFINITY},
        {-INFINITY, -INFINITY, -INFINITY, -INFINITY},
        {INFINITY, 0, 0, 0},
        {0, NAN, 0, 0},
    };
    static const double expected[][4] = {
        {0.73105857863000487, 0.26894142136999513, 0, 0},
        {0.25, 0.25, 0.25, 0.25},
        {0, 1, 0, 0},
        {0, 1, 0, 0},
        {NAN, NAN, NAN, NAN},
        {NAN, NAN, NAN, NAN},
        {NAN, NAN, NAN, NAN},
    };
    /* [7, 4] along its rows, and [4, 7 * 3] along its columns, where lines go side by side. */
    for (tn_dtype dtype = TN_F32; dtype <= TN_F64; dtype++)
        for (int across = 0; across < 2; across++) {
            const int64_t sizes[] = {across ? 4 : 7, across ? 21 : 4};
            operand *a = operand_create(dtype, 2, sizes, DENSE);
            operand *z = operand_out(dtype, 2, sizes, DENSE);
            number *want = scratch((size_t)a->numel * sizeof *want);
            for (int64_t i = 0; i < a->numel; i++) {
                const int64_t row = across ? i % 21 / 3 : i / 4, k = across ? i / 21 : i % 4;
                operand_set(a, i, (number){.f = rows[row][k]});
                want[i].f = expected[row][k];
            }
            operand_upload(a);
            const tn_cell args[] = {cell_of(a), mini_i64(!across)};
            describe("softmax of large numbers, dtype %d, across %d", dtype, across);
            assert_ok(call_kernel("softmax", dtype, TN_DTYPE_NONE, 2, args, 1, &z));
            check_elements(z, want, NULL, 4);
        }
}

/* ---- threads -------------------------------------------------------------------------------- */

static void results_do_not_depend_on_the_number_of_threads(void **state) {
    const int64_t sizes[] = {301, 307};
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16};
    for (int d = 0; d < LENGTH(dtypes); d++)
        for (int64_t dim = 0; dim < 2; dim++) {
            operand *a = operand_random(dtypes[d], 2, sizes, DENSE, -2, 2);
            operand *outs[] = {operand_out(dtypes[d], 2, sizes, DENSE),
                               operand_out(TN_I64, 2, sizes, DENSE)};
            const tn_cell one[] = {cell_of(a), mini_i64(dim), mini_bool(false)};
            const tn_cell two[] = {cell_of(a), cell_of(a), mini_i64(dim)};
            check_threads("cumsum", dtypes[d], 2, one, 1, outs);
            check_threads("sort", dtypes[d], 3, one, 2, outs);
            for (int k = 0; k < 2; k++) {
                is_log = k;
                check_threads(forward_op(), dtypes[d], 2, one, 1, outs);
                check_threads(backward_op(), dtypes[d], 3, two, 1, outs);
            }
            case_end(NULL);
        }
}

int test_lines(void) {
    const struct CMUnitTest tests[] = {
        TEST(running_sums_agree_with_the_reference),
        TEST(long_running_sums_stay_accurate),
        TEST(sorting_is_stable_with_nan_largest),
        TEST(many_lines_are_sorted_by_threads),
        TEST(softmax_and_its_relatives_agree_with_the_reference),
        TEST(softmax_survives_large_and_infinite_inputs),
        TEST(results_do_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
