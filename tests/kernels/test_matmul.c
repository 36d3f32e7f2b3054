/* bmm and addmm. Most inputs are small whole numbers, whose sums are exact in f32 and f64, so that
 * every element must be right to the last bit, rounded once where it is f16 or bf16. */
#include "kernels_test.h"

#include <math.h>
#include <string.h>

/* Products small enough for plain loops and not; one row or column (gemv); tiles of 256 and one
 * more; depths beyond what is packed at once (2048); outputs of one element. */
static const struct {
    int64_t b, m, k, n;
} shapes[] = {
    {1, 1, 1, 1},    {2, 3, 4, 5},    {1, 1, 300, 1},   {3, 1, 40, 70},   {2, 70, 40, 1},
    {1, 17, 65, 33}, {40, 4, 5, 6},   {1, 257, 20, 30}, {1, 30, 20, 259}, {1, 20, 2100, 9},
    {1, 1, 9, 1100}, {1, 1100, 9, 1}, {5, 16, 16, 16},
};

/* How a matrix of a batch lies: sizes [b, r, c]. */
typedef enum arrangement {
    ROW_MAJOR,
    COLUMN_MAJOR,
    ROWS_APART,   /* row-major with a gap after each row */
    BOTH_STRIDED, /* neither stride is one */
    ONE_MATRIX,   /* the batch has a stride of zero */
    ONE_ROW,      /* rows have */
    ONE_COLUMN,
    N_ARRANGEMENTS,
    N_OUT_ARRANGEMENTS = ONE_MATRIX
} arrangement;

static void strides_of(arrangement a, const int64_t *sizes, int64_t *out) {
    const int64_t r = sizes[1], c = sizes[2];
    const int64_t table[N_ARRANGEMENTS][3] = {
        [ROW_MAJOR] = {r * c, c, 1},
        [COLUMN_MAJOR] = {r * c, 1, r},
        [ROWS_APART] = {r * (c + 3), c + 3, 1},
        [BOTH_STRIDED] = {r * c * 2 + 5, c * 2, 2},
        [ONE_MATRIX] = {0, c, 1},
        [ONE_ROW] = {c, 0, 1},
        [ONE_COLUMN] = {r, 1, 0},
    };
    memcpy(out, table[a], sizeof table[a]);
}

static operand *matrix(tn_dtype dtype, int32_t rank, const int64_t *sizes, arrangement a,
                       int64_t limit) {
    int64_t strides[3];
    strides_of(a, sizes, strides);
    operand *o = operand_strided(dtype, rank, sizes + 3 - rank, strides + 3 - rank);
    for (int64_t i = 0; i < o->numel; i++) {
        const int64_t x = (int64_t)(random_u64() % (uint64_t)(2 * limit + 1)) - limit;
        operand_set(o, i, (number){(double)x, x});
    }
    operand_upload(o);
    return o;
}

/* An output: full of NaN. */
static operand *result(tn_dtype dtype, int32_t rank, const int64_t *sizes, arrangement a) {
    operand *o = matrix(dtype, rank, sizes, a, 0);
    const size_t item = mini_dtype_bytes(dtype);
    for (int64_t i = 0; i < o->numel; i++)
        memset(o->bytes + (size_t)o->places[i] * item, 0xff, item);
    operand_upload(o);
    return o;
}

/* Element (i, j) of matrix b of a product, and the sum of the terms' sizes. */
static number inner(const operand *a, const operand *b, int64_t batch, int64_t i, int64_t j,
                    int64_t m, int64_t k, int64_t n, double *out_scale) {
    number sum = {0};
    *out_scale = 0;
    for (int64_t p = 0; p < k; p++) {
        const number x = a->values[(batch * m + i) * k + p], y = b->values[(batch * k + p) * n + j];
        sum.f += x.f * y.f;
        sum.i = (int64_t)((uint64_t)sum.i + (uint64_t)x.i * (uint64_t)y.i);
        *out_scale += fabs(x.f * y.f);
    }
    return sum;
}

static void check_bmm(operand *a, operand *b, operand *c, double ulps) {
    const int64_t m = c->sizes[1], k = a->sizes[2], n = c->sizes[2];
    number *expected = scratch((size_t)c->numel * sizeof *expected);
    double *scales = scratch((size_t)c->numel * sizeof *scales);
    for (int64_t e = 0; e < c->numel; e++)
        expected[e] = inner(a, b, e / n / m, e / n % m, e % n, m, k, n, &scales[e]);
    const tn_cell args[] = {cell_of(a), cell_of(b)};
    assert_ok(call_kernel("bmm", c->dtype, TN_DTYPE_NONE, 2, args, 1, &c));
    check_elements(c, expected, scales, ulps);
    check_untouched(a);
    check_untouched(b);
}

static void bmm(tn_dtype dtype) {
    int turn = dtype;
    for (int s = 0; s < LENGTH(shapes); s++) {
        const int64_t a_sizes[] = {shapes[s].b, shapes[s].m, shapes[s].k};
        const int64_t b_sizes[] = {shapes[s].b, shapes[s].k, shapes[s].n};
        const int64_t c_sizes[] = {shapes[s].b, shapes[s].m, shapes[s].n};
        const bool is_large = shapes[s].m * shapes[s].k * shapes[s].n > 100000;
        const int n_turns = is_large ? 6 : N_ARRANGEMENTS * N_ARRANGEMENTS;
        for (int t = 0; t < n_turns; t++, turn++) {
            const arrangement x = (arrangement)(turn % N_ARRANGEMENTS);
            const arrangement y = (arrangement)(turn / N_ARRANGEMENTS % N_ARRANGEMENTS);
            const arrangement z = (arrangement)((turn + t) % N_OUT_ARRANGEMENTS);
            describe("bmm, dtype %d, shape %d, arrangements %d, %d, %d", dtype, s, x, y, z);
            check_bmm(matrix(dtype, 3, a_sizes, x, 4), matrix(dtype, 3, b_sizes, y, 4),
                      result(dtype, 3, c_sizes, z), SAME);
            case_end(NULL);
        }
    }
}

static void products_of_whole_numbers_are_exact(void **state) {
    for_dtypes("bmm", bmm);
}

static void products_of_fractions_are_close(void **state) {
    const int64_t a_sizes[] = {2, 70, 300}, b_sizes[] = {2, 300, 65}, c_sizes[] = {2, 70, 65};
    for (tn_dtype dtype = TN_F32; dtype <= TN_BF16; dtype++) {
        describe("bmm of fractions, dtype %d", dtype);
        check_bmm(operand_random(dtype, 3, a_sizes, DENSE, -1, 1),
                  operand_random(dtype, 3, b_sizes, PERMUTED, -1, 1),
                  operand_out(dtype, 3, c_sizes, STEPPED), dtype <= TN_F64 ? 16 : 1);
    }
}

static void half_precision_accumulates_in_f32(void **state) {
    /* 2100 times 1 x 1, past where f16 and bf16 count by ones; the packed depth is split. */
    const int64_t a_sizes[] = {1, 2, 2100}, b_sizes[] = {1, 2100, 3}, c_sizes[] = {1, 2, 3};
    for (tn_dtype dtype = TN_F16; dtype <= TN_BF16; dtype++) {
        describe("a long product, dtype %d", dtype);
        check_bmm(operand_whole(dtype, 3, a_sizes, DENSE, 1, 1),
                  operand_whole(dtype, 3, b_sizes, DENSE, 1, 1),
                  operand_out(dtype, 3, c_sizes, DENSE), 0);
    }
}

static void nan_and_infinity_reach_their_row_only(void **state) {
    for (int small = 0; small < 2; small++) { /* plain loops, and BLAS */
        const int64_t n = small ? 5 : 40, square[] = {1, n, n};
        operand *a = matrix(TN_F32, 3, square, ROW_MAJOR, 3);
        operand *b = operand_whole(TN_F32, 3, square, DENSE, 1, 3);
        operand_set(a, 2 * n + 1, (number){.f = NAN});
        operand_set(a, 3 * n + 1, (number){.f = INFINITY});
        operand_upload(a);
        describe("NaN in bmm of %d", (int)n);
        check_bmm(a, b, result(TN_F32, 3, square, ROW_MAJOR), SAME);
    }
}

/* ---- addmm ---------------------------------------------------------------------------------- */

static void check_addmm(operand *s, operand *a, operand *b, operand *c, double beta, double alpha,
                        bool is_integer) {
    const int64_t m = c->sizes[0], n = c->sizes[1], k = a->sizes[1];
    number *expected = scratch((size_t)c->numel * sizeof *expected);
    double *scales = scratch((size_t)c->numel * sizeof *scales);
    for (int64_t e = 0; e < c->numel; e++) {
        const number sum = inner(a, b, 0, e / n, e % n, m, k, n, &scales[e]);
        expected[e].f = alpha * sum.f + (beta == 0 ? 0 : beta * s->values[e].f);
        expected[e].i = (int64_t)((uint64_t)(int64_t)alpha * (uint64_t)sum.i +
                                  (uint64_t)(int64_t)beta * (uint64_t)s->values[e].i);
        scales[e] = fabs(alpha) * scales[e] + fabs(beta) * fabs(s->values[e].f);
    }
    const tn_cell args[] = {cell_of(s), cell_of(a), cell_of(b),
                            is_integer ? mini_i64((int64_t)beta) : mini_f64(beta),
                            is_integer ? mini_i64((int64_t)alpha) : mini_f64(alpha)};
    assert_ok(call_kernel("addmm", c->dtype, TN_DTYPE_NONE, 5, args, 1, &c));
    check_elements(c, expected, scales, SAME);
    check_untouched(s);
}

static void addmm(tn_dtype dtype) {
    static const double factors[][2] = {{1, 1}, {0, 1}, {2, -3}, {-1, 2}};
    int turn = dtype;
    for (int s = 0; s < LENGTH(shapes); s++) {
        const int64_t a_sizes[] = {1, shapes[s].m, shapes[s].k};
        const int64_t b_sizes[] = {1, shapes[s].k, shapes[s].n};
        const int64_t c_sizes[] = {1, shapes[s].m, shapes[s].n};
        for (int t = 0; t < 12; t++, turn++) {
            const arrangement x = (arrangement)(turn % N_ARRANGEMENTS);
            const arrangement y = (arrangement)((turn + t) % N_ARRANGEMENTS);
            const arrangement z = (arrangement)(turn % N_OUT_ARRANGEMENTS);
            const arrangement w = (arrangement)((turn + 2) % N_ARRANGEMENTS);
            const double beta = factors[t % 4][0], alpha = factors[t % 4][1];
            operand *self = matrix(dtype, 2, c_sizes, w, 9);
            for (int64_t i = 0; beta == 0 && i < self->numel; i++) /* not read */
                operand_set(self, i, (number){NAN, self->values[i].i});
            operand_upload(self);
            describe("addmm, dtype %d, shape %d, beta %g, arrangements %d, %d, %d, %d", dtype, s,
                     beta, x, y, z, w);
            check_addmm(self, matrix(dtype, 2, a_sizes, x, 4), matrix(dtype, 2, b_sizes, y, 4),
                        result(dtype, 2, c_sizes, z), beta, alpha, !is_float(dtype));
            case_end(NULL);
        }
    }
}

static void addmm_scales_and_adds(void **state) {
    for_dtypes("addmm", addmm);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void results_do_not_depend_on_the_number_of_threads(void **state) {
    const int64_t a_sizes[] = {2, 300, 270}, b_sizes[] = {2, 270, 520}, c_sizes[] = {2, 300, 520};
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_I32};
    for (int d = 0; d < LENGTH(dtypes); d++) {
        operand *a = operand_random(dtypes[d], 3, a_sizes, DENSE, -1, 1);
        operand *b = operand_random(dtypes[d], 3, b_sizes, DENSE, -1, 1);
        const tn_cell args[] = {cell_of(a), cell_of(b)};
        operand *c = operand_out(dtypes[d], 3, c_sizes, DENSE);
        check_threads("bmm", dtypes[d], 2, args, 1, &c);
        case_end(NULL);
    }
}

int test_matmul(void) {
    const struct CMUnitTest tests[] = {
        TEST(products_of_whole_numbers_are_exact),
        TEST(products_of_fractions_are_close),
        TEST(half_precision_accumulates_in_f32),
        TEST(nan_and_infinity_reach_their_row_only),
        TEST(addmm_scales_and_adds),
        TEST(results_do_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
