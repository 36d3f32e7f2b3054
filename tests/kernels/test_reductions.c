/* Reductions over any dimensions of any layout, long ones too. */
#include "kernels_test.h"

#include <math.h>
#include <string.h>

/* What a reference knows of one output after some of its elements, in order. */
typedef struct partial {
    int64_t n;
    long double f, sum_of_sizes; /* sum, product, extreme; sum of |x| */
    int64_t i, index;
    bool is_nan;
} partial;

typedef struct reduction {
    const char *op;
    void (*add)(partial *p, number x, int64_t index);
    double low, high;
    double ulps, f64_ulps; /* f64_ulps: of a wider accumulator there is none */
    bool one_dim;
} reduction;

static void add_sum(partial *p, number x, int64_t index) {
    p->f += x.f;
    p->sum_of_sizes += fabs(x.f);
    p->i = (int64_t)((uint64_t)p->i + (uint64_t)x.i);
}

static void add_product(partial *p, number x, int64_t index) {
    p->f = p->n ? p->f * x.f : x.f;
    p->i = p->n ? (int64_t)((uint64_t)p->i * (uint64_t)x.i) : x.i;
    p->sum_of_sizes = fabsl(p->f);
}

static void take(partial *p, number x, int64_t index) {
    p->f = x.f;
    p->i = x.i;
    p->is_nan = isnan(x.f);
    p->index = index;
}

/* The first of equals, the first NaN. */
static void add_largest(partial *p, number x, int64_t index) {
    if (p->n == 0 || (!p->is_nan && (isnan(x.f) || x.f > p->f || x.i > p->i)))
        take(p, x, index);
}

static void add_smallest(partial *p, number x, int64_t index) {
    if (p->n == 0 || (!p->is_nan && (isnan(x.f) || x.f < p->f || x.i < p->i)))
        take(p, x, index);
}

static const reduction reductions[] = {
    {"sum", add_sum, -1, 1, 8, 64, false},
    {"prod", add_product, 0.97, 1.03, 8, 20000, false},
    {"amax", add_largest, -50, 50, 0, 0, false},
    {"amin", add_smallest, -50, 50, 0, 0, false},
    {"argmax", add_largest, -50, 50, 0, 0, true},
    {"argmin", add_smallest, -50, 50, 0, 0, true},
};

static const reduction *row;

/* Index in a tensor where the dimensions of `dims` have size 1, and in the reduced range. */
static void split(const operand *a, uint64_t dims, int64_t i, int64_t *out_kept,
                  int64_t *out_reduced) {
    int64_t kept_stride = 1, reduced_stride = 1;
    *out_kept = *out_reduced = 0;
    for (int32_t d = a->rank - 1; d >= 0; d--) {
        const int64_t at = i % a->sizes[d];
        i /= a->sizes[d];
        if (dims >> d & 1) {
            *out_reduced += at * reduced_stride;
            reduced_stride *= a->sizes[d];
        } else {
            *out_kept += at * kept_stride;
            kept_stride *= a->sizes[d];
        }
    }
}

static operand *out_of(const operand *a, uint64_t dims, tn_dtype dtype, layout l) {
    int64_t sizes[MINI_MAX_RANK];
    for (int32_t d = 0; d < a->rank; d++)
        sizes[d] = dims >> d & 1 ? 1 : a->sizes[d];
    return operand_out(dtype, a->rank, sizes, l);
}

static uint32_t list_of(uint64_t dims, int64_t *out) {
    uint32_t n = 0;
    for (int64_t d = 0; d < MINI_MAX_RANK; d++)
        if (dims >> d & 1)
            out[n++] = d;
    return n;
}

static void check_reduction(operand *a, uint64_t dims, layout l) {
    operand *z = out_of(a, dims, row->one_dim ? TN_I64 : a->dtype, l);
    partial *partials = scratch((size_t)z->numel * sizeof *partials);
    for (int64_t i = 0; i < a->numel; i++) {
        int64_t kept, reduced;
        split(a, dims, i, &kept, &reduced);
        row->add(&partials[kept], a->values[i], reduced);
        partials[kept].n++;
    }
    number *expected = scratch((size_t)z->numel * sizeof *expected);
    double *scales = scratch((size_t)z->numel * sizeof *scales);
    for (int64_t i = 0; i < z->numel; i++) {
        expected[i] = (number){(double)partials[i].f, partials[i].i};
        if (row->one_dim)
            expected[i].i = partials[i].index;
        scales[i] = (double)partials[i].sum_of_sizes;
    }
    int64_t list[MINI_MAX_RANK];
    const uint32_t n = list_of(dims, list);
    const tn_cell args[] = {cell_of(a),
                            row->one_dim ? mini_i64(n ? list[0] : 0) : mini_ints(list, n)};
    assert_ok(call_kernel(row->op, a->dtype, TN_DTYPE_NONE, 2, args, 1, &z));
    check_elements(z, expected, scales,
                   a->dtype == TN_F64                     ? row->f64_ulps
                   : a->dtype == TN_F32 || row->ulps == 0 ? row->ulps
                                                          : 1);
    check_untouched(a);
}

/* Small and with dimensions of one; rows longer than a lane's share (512) and than a chunk (16384);
 * columns narrower and wider than a group (256); few outputs, so that the range is cut. */
static const struct {
    int32_t rank;
    int64_t sizes[5];
} shapes[] = {
    {1, {1}},        {1, {37}},         {2, {7, 300}},        {2, {300, 7}},
    {3, {4, 5, 6}},  {4, {3, 1, 4, 5}}, {2, {40, 700}},       {2, {3, 20011}},
    {2, {20011, 3}}, {3, {2, 400, 30}}, {5, {2, 3, 4, 5, 3}},
};

/* Integers of few values, so that there are equals; floating numbers as the row says. */
static operand *input(tn_dtype dtype, int32_t rank, const int64_t *sizes, layout l) {
    return operand_random(dtype, rank, sizes, l, is_float(dtype) ? row->low : -9,
                          is_float(dtype) ? row->high : 9);
}

static void every_shape(tn_dtype dtype) {
    int turn = 0;
    for (int s = 0; s < LENGTH(shapes); s++)
        for (uint64_t dims = 1; dims < 1u << shapes[s].rank; dims++) {
            if (row->one_dim && (dims & (dims - 1)) != 0)
                continue;
            const layout l = (layout)(turn++ % N_LAYOUTS), m = (layout)(turn % N_OUT_LAYOUTS);
            describe("%s, dtype %d, shape %d, dims %#llx, layouts %d, %d", row->op, dtype, s,
                     (unsigned long long)dims, l, m);
            check_reduction(input(dtype, shapes[s].rank, shapes[s].sizes, l), dims, m);
            case_end(NULL);
        }
    describe("%s, dtype %d, rank 0", row->op, dtype);
    check_reduction(input(dtype, 0, NULL, DENSE), 0, DENSE);
}

static void reductions_agree_with_the_reference(void **state) {
    for (int i = 0; i < LENGTH(reductions); i++) {
        row = &reductions[i];
        for_dtypes(row->op, every_shape);
    }
}

/* ---- special values ------------------------------------------------------------------------- */

/* NaN, infinities and zeros of both signs at every place of rows and columns. */
static void special(tn_dtype dtype) {
    static const double values[] = {NAN, INFINITY, -INFINITY, 0, -0.0};
    static const int64_t places[] = {0, 1, 31, 32, 100, 511, 512, 699};
    if (!is_float(dtype))
        return;
    for (int v = 0; v < LENGTH(values); v++)
        for (int across = 0; across < 2; across++) {
            const int64_t sizes[] = {across ? 700 : 9, across ? 9 : 700};
            operand *a = input(dtype, 2, sizes, DENSE);
            for (int64_t line = 0; line < LENGTH(places); line++)
                for (int64_t k = places[line]; k < 700; k += 97)
                    operand_set(a, across ? k * 9 + line : line * 700 + k,
                                (number){.f = values[v]});
            operand_upload(a);
            describe("%s, dtype %d, special value %d, %s", row->op, dtype, v,
                     across ? "columns" : "rows");
            check_reduction(a, across ? 1 : 2, DENSE);
            case_end(NULL);
        }
}

static void special_values_are_carried(void **state) {
    for (int i = 0; i < LENGTH(reductions); i++) {
        row = &reductions[i];
        for_dtypes(row->op, special);
    }
}

static void a_sum_of_negative_zeros_is_one(void **state) {
    const int64_t sizes[] = {3, 700};
    for (tn_dtype dtype = TN_F32; dtype <= TN_BF16; dtype++)
        for (int64_t dim = 0; dim < 2; dim++) {
            operand *a = operand_create(dtype, 2, sizes, DENSE);
            for (int64_t i = 0; i < a->numel; i++)
                operand_set(a, i, (number){.f = -0.0});
            operand_upload(a);
            operand *z = out_of(a, 1u << dim, dtype, DENSE);
            number *expected = scratch((size_t)z->numel * sizeof *expected);
            for (int64_t i = 0; i < z->numel; i++)
                expected[i].f = -0.0;
            const tn_cell args[] = {cell_of(a), mini_ints(&dim, 1)};
            describe("sum of -0, dtype %d, dim %d", dtype, (int)dim);
            assert_ok(call_kernel("sum", dtype, TN_DTYPE_NONE, 2, args, 1, &z));
            check_elements(z, expected, NULL, 0);
        }
}

/* ---- var ------------------------------------------------------------------------------------ */

static void check_variance(operand *a, uint64_t dims, double correction, layout l) {
    operand *z = out_of(a, dims, a->dtype, l);
    const int64_t n = a->numel / z->numel;
    long double *mean = scratch((size_t)z->numel * sizeof *mean);
    long double *squares = scratch((size_t)z->numel * sizeof *squares);
    number *expected = scratch((size_t)z->numel * sizeof *expected);
    int64_t kept, reduced;
    for (int64_t i = 0; i < a->numel; i++) {
        split(a, dims, i, &kept, &reduced);
        mean[kept] += a->values[i].f;
    }
    for (int64_t i = 0; i < z->numel; i++)
        mean[i] /= (long double)n;
    for (int64_t i = 0; i < a->numel; i++) {
        split(a, dims, i, &kept, &reduced);
        squares[kept] += (a->values[i].f - mean[kept]) * (a->values[i].f - mean[kept]);
    }
    double *scales = scratch((size_t)z->numel * sizeof *scales);
    for (int64_t i = 0; i < z->numel; i++) {
        expected[i].f = (double)(squares[i] / fmaxl(0, (long double)n - correction));
        scales[i] = expected[i].f;
        if (a->dtype == TN_F64) /* nothing wider: the distances lose what the mean has */
            scales[i] += sqrt(expected[i].f) * fabs((double)mean[i]);
    }
    int64_t list[MINI_MAX_RANK];
    const tn_cell args[] = {cell_of(a), mini_ints(list, list_of(dims, list)), mini_f64(correction)};
    assert_ok(call_kernel("var", a->dtype, TN_DTYPE_NONE, 3, args, 1, &z));
    check_elements(z, expected, scales, a->dtype == TN_F64 ? 64 : 2);
}

static void variance(tn_dtype dtype) {
    int turn = 0;
    for (int s = 1; s < LENGTH(shapes); s++)
        for (uint64_t dims = 1; dims < 1u << shapes[s].rank; dims++) {
            const layout l = (layout)(turn++ % N_OUT_LAYOUTS), m = (layout)(turn % N_OUT_LAYOUTS);
            /* Far from 0: the plain formula, a difference of squares, would lose all digits. */
            operand *a = operand_random(dtype, shapes[s].rank, shapes[s].sizes, l, 100, 101.5);
            describe("var, dtype %d, shape %d, dims %#llx, layouts %d, %d", dtype, s,
                     (unsigned long long)dims, l, m);
            check_variance(a, dims, turn % 2, m);
            case_end(NULL);
        }
}

static void variances_agree_with_two_passes(void **state) {
    for_dtypes("var", variance);
}

static void the_variance_of_too_few_is_not_a_number(void **state) {
    const int64_t sizes[] = {3, 1}, two[] = {3, 2};
    check_variance(operand_random(TN_F32, 2, sizes, DENSE, 0, 1), 2, 1, DENSE); /* 0 / 0 */
    check_variance(operand_random(TN_F32, 2, two, DENSE, 0, 1), 2, 2, DENSE);   /* x / 0 */
    check_variance(operand_random(TN_F32, 2, two, DENSE, 0, 1), 2, 3.5, DENSE);
}

/* ---- long ones ------------------------------------------------------------------------------ */

static void long_sums_stay_accurate(void **state) {
    /* One accumulator of the dtype's own would be off by percents, or stop growing. */
    const int64_t n = 1 << 20, zero = 0;
    for (tn_dtype dtype = TN_F32; dtype <= TN_BF16; dtype++) {
        const double x = dtype == TN_F16 ? 0.01 : 0.1;
        operand *a = operand_create(dtype, 1, &n, DENSE);
        for (int64_t i = 0; i < n; i++)
            operand_set(a, i, (number){.f = x});
        operand_upload(a);
        operand *z = out_of(a, 1, dtype, DENSE);
        const tn_cell args[] = {cell_of(a), mini_ints(&zero, 1)};
        describe("long sum, dtype %d", dtype);
        assert_ok(call_kernel("sum", dtype, TN_DTYPE_NONE, 2, args, 1, &z));
        check_elements(z, &(number){.f = a->values[0].f * (double)n}, NULL,
                       dtype == TN_F64 ? 1000 : 2);
        case_end(NULL);
    }
}

static void on_threads(tn_dtype dtype) {
    static const int64_t sizes[][3] = {{1, 1, 150001}, {90001, 2, 1}, {40, 60, 70}};
    for (int s = 0; s < LENGTH(sizes); s++) {
        operand *a = input(dtype, 3, sizes[s], DENSE);
        for (int64_t dim = 0; dim < 3; dim++) {
            operand *z = out_of(a, 1u << dim, row->one_dim ? TN_I64 : dtype, DENSE);
            const tn_cell args[] = {cell_of(a), row->one_dim ? mini_i64(dim) : mini_ints(&dim, 1)};
            check_threads(row->op, dtype, 2, args, 1, &z);
        }
        case_end(NULL);
    }
}

static void results_do_not_depend_on_the_number_of_threads(void **state) {
    for (int i = 0; i < LENGTH(reductions); i++) {
        row = &reductions[i];
        on_threads(TN_F32);
        on_threads(TN_BF16);
        on_threads(TN_I32);
    }
}

int test_reductions(void) {
    const struct CMUnitTest tests[] = {
        TEST(reductions_agree_with_the_reference),
        TEST(special_values_are_carried),
        TEST(a_sum_of_negative_zeros_is_one),
        TEST(variances_agree_with_two_passes),
        TEST(the_variance_of_too_few_is_not_a_number),
        TEST(long_sums_stay_accurate),
        TEST(results_do_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
