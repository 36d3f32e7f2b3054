/* gather, scatter_add, index_select, index_add: places read from a tensor, right ones and wrong. */
#include "kernels_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of gather and scatter_add. The index may be smaller than self in other dimensions, and src larger
 * than the index everywhere. */
static const struct {
    int32_t rank;
    int64_t self[3], index[3], src[3];
    int64_t dim;
} shapes[] = {
    {0, {0}, {0}, {0}, 0},
    {1, {9}, {30}, {33}, 0},
    {1, {1}, {1}, {1}, 0},
    {2, {6, 5}, {11, 5}, {11, 6}, 0},
    {2, {6, 5}, {4, 9}, {4, 9}, 1},
    {3, {4, 6, 5}, {3, 8, 2}, {4, 9, 3}, 1},
    {3, {4, 3, 5}, {4, 3, 7}, {4, 3, 7}, 2},
    {2, {300, 70}, {150, 70}, {150, 70}, 0}, /* for threads */
    {2, {70, 300}, {70, 150}, {70, 150}, 1},
};

/* Where logical element i of a tensor of `sizes` lies in one of `in`, at `at` along dim. */
static int64_t position(int32_t rank, const int64_t *sizes, const int64_t *in, int64_t dim,
                        int64_t at, int64_t i) {
    int64_t result = 0, stride = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        result += (d == dim ? at : i % sizes[d]) * stride;
        stride *= in[d];
        i /= sizes[d];
    }
    return result;
}

static operand *indices(int32_t rank, const int64_t *sizes, int64_t n, layout l) {
    return operand_whole(TN_I64, rank, sizes, l, 0, n - 1);
}

/* `sum` + x, in the dtype's own arithmetic where that wraps; bool: or. */
static void add(number *sum, double *scale, number x, double alpha) {
    sum->f += alpha * x.f;
    sum->i = (int64_t)((uint64_t)sum->i + (uint64_t)(int64_t)alpha * (uint64_t)x.i);
    *scale += fabs(alpha * x.f);
}

/* ---- gather --------------------------------------------------------------------------------- */

static void gather(tn_dtype dtype) {
    for (int s = 0; s < LENGTH(shapes); s++)
        for (int l = 0; l < N_LAYOUTS; l++) {
            const int32_t rank = shapes[s].rank;
            const int64_t *sizes = shapes[s].index, dim = shapes[s].dim;
            const int64_t n = rank ? shapes[s].self[dim] : 1;
            operand *self = operand_random(dtype, rank, shapes[s].self, (layout)l, -100, 100);
            operand *index = indices(rank, sizes, n, (layout)((l + 1) % N_LAYOUTS));
            operand *z = operand_out(dtype, rank, sizes, (layout)(l % N_OUT_LAYOUTS));
            number *expected = scratch((size_t)z->numel * sizeof *expected);
            for (int64_t i = 0; i < z->numel; i++)
                expected[i] =
                    self->values[position(rank, sizes, shapes[s].self, dim, index->values[i].i, i)];
            const tn_cell args[] = {cell_of(self), mini_i64(dim), cell_of(index)};
            describe("gather, dtype %d, shape %d, layout %d", dtype, s, l);
            assert_ok(call_kernel("gather", dtype, TN_DTYPE_NONE, 3, args, 1, &z));
            check_elements(z, expected, NULL, 0);
            check_untouched(self);
            check_untouched(index);
            case_end(NULL);
        }
}

static void gathered_elements_are_those_named(void **state) {
    for_dtypes("gather", gather);
}

/* ---- scatter_add ---------------------------------------------------------------------------- */

static void scatter_add(tn_dtype dtype) {
    for (int s = 0; s < LENGTH(shapes); s++)
        for (int l = 0; l < N_LAYOUTS; l++) {
            const int32_t rank = shapes[s].rank;
            const int64_t *sizes = shapes[s].index, dim = shapes[s].dim;
            const int64_t n = rank ? shapes[s].self[dim] : 1;
            operand *self = operand_random(dtype, rank, shapes[s].self, (layout)l, -1, 1);
            operand *index = indices(rank, sizes, n, (layout)((l + 2) % N_LAYOUTS));
            operand *src =
                operand_random(dtype, rank, shapes[s].src, (layout)((l + 3) % N_LAYOUTS), -1, 1);
            operand *z = operand_out(dtype, rank, shapes[s].self, (layout)(l % N_OUT_LAYOUTS));
            number *expected = scratch((size_t)z->numel * sizeof *expected);
            double *scales = scratch((size_t)z->numel * sizeof *scales);
            for (int64_t i = 0; i < z->numel; i++)
                add(&expected[i], &scales[i], self->values[i], 1);
            for (int64_t i = 0; i < index->numel; i++) {
                const int64_t to =
                    position(rank, sizes, shapes[s].self, dim, index->values[i].i, i);
                const int64_t from = position(rank, sizes, shapes[s].src, -1, 0, i);
                add(&expected[to], &scales[to], src->values[from], 1);
            }
            const tn_cell args[] = {cell_of(self), mini_i64(dim), cell_of(index), cell_of(src)};
            describe("scatter_add, dtype %d, shape %d, layout %d", dtype, s, l);
            assert_ok(call_kernel("scatter_add", dtype, TN_DTYPE_NONE, 4, args, 1, &z));
            check_elements(z, expected, scales, dtype == TN_F64 || dtype == TN_F32 ? 8 : 1);
            check_untouched(self);
            check_untouched(src);
            case_end(NULL);
        }
}

static void scattered_elements_add_up(void **state) {
    for_dtypes("scatter_add", scatter_add);
}

static void half_precision_adds_in_f32(void **state) {
    /* 3000 times 0.01 onto one element: f16 and bf16 themselves would stop far below 30. */
    for (tn_dtype dtype = TN_F16; dtype <= TN_BF16; dtype++)
        for (int which = 0; which < 2; which++) {
            const int64_t n = 3000, one = 1;
            operand *self = operand_whole(dtype, 1, &one, DENSE, 0, 0);
            operand *index = operand_whole(TN_I64, 1, &n, DENSE, 0, 0);
            operand *src = operand_random(dtype, 1, &n, DENSE, 0.01, 0.01);
            operand *z = operand_out(dtype, 1, &one, DENSE);
            const tn_cell args[] = {cell_of(self), mini_i64(0), cell_of(index), cell_of(src),
                                    mini_f64(1)};
            describe("3000 additions, dtype %d, operator %d", dtype, which);
            assert_ok(call_kernel(which ? "index_add" : "scatter_add", dtype, TN_DTYPE_NONE,
                                  which ? 5 : 4, args, 1, &z));
            check_elements(z, &(number){.f = 3000 * src->values[0].f}, NULL, 1);
        }
}

static void additions_are_in_order_on_any_number_of_threads(void **state) {
    /* Deterministic: in row-major order of the index, on any number of threads. */
    const int64_t sizes[] = {2000, 40}, out[] = {3, 40};
    operand *index = indices(2, sizes, 3, DENSE);
    operand *src = operand_random(TN_F32, 2, sizes, DENSE, -1e3, 1e-3);
    operand *self = operand_random(TN_F32, 2, out, DENSE, -1, 1);
    float *sums = scratch(120 * sizeof *sums);
    for (int i = 0; i < 120; i++)
        sums[i] = (float)self->values[i].f;
    for (int64_t i = 0; i < index->numel; i++)
        sums[index->values[i].i * 40 + i % 40] += (float)src->values[i].f;
    const tn_cell args[] = {cell_of(self), mini_i64(0), cell_of(index), cell_of(src)};
    for (uint32_t threads = 1; threads <= 4; threads++) {
        operand *z = operand_out(TN_F32, 2, out, DENSE);
        use_threads(threads);
        assert_ok(call_kernel("scatter_add", TN_F32, TN_DTYPE_NONE, 4, args, 1, &z));
        assert_memory_equal(elements_of(z), sums, 120 * sizeof *sums);
    }
    use_threads(THREADS);
}

/* ---- index_select and index_add ------------------------------------------------------------- */

static const struct {
    int32_t rank;
    int64_t self[3];
    int64_t dim, n;
} slices[] = {
    {1, {9}, 0, 20},        {2, {6, 5}, 0, 11},   {2, {6, 5}, 1, 3},
    {3, {4, 6, 5}, 1, 8},   {3, {4, 1, 5}, 1, 2}, {3, {3, 2, 700}, 0, 5},
    {2, {900, 40}, 0, 600}, {0, {0}, 0, 1},       {2, {40, 900}, 1, 600},
};

/* Sizes of slice s with n in place of its dimension. */
static void sliced(int s, int64_t *out) {
    memcpy(out, slices[s].self, sizeof slices[s].self);
    if (slices[s].rank)
        out[slices[s].dim] = slices[s].n;
}

/* Index along dim of logical element i of a tensor of `sizes`. */
static int64_t along(int32_t rank, const int64_t *sizes, int64_t dim, int64_t i) {
    for (int32_t d = rank - 1; d > dim; d--)
        i /= sizes[d];
    return rank ? i % sizes[dim] : 0;
}

static void index_select(tn_dtype dtype) {
    for (int s = 0; s < LENGTH(slices); s++)
        for (int l = 0; l < N_LAYOUTS; l++) {
            const int32_t rank = slices[s].rank;
            const int64_t dim = slices[s].dim, n = rank ? slices[s].self[dim] : 1;
            int64_t sizes[3];
            sliced(s, sizes);
            operand *self = operand_random(dtype, rank, slices[s].self, (layout)l, -100, 100);
            operand *index = indices(1, &slices[s].n, n, l % 2 ? STEPPED : DENSE);
            operand *z = operand_out(dtype, rank, sizes, (layout)(l % N_OUT_LAYOUTS));
            number *expected = scratch((size_t)z->numel * sizeof *expected);
            for (int64_t i = 0; i < z->numel; i++) {
                const int64_t at = index->values[along(rank, sizes, dim, i)].i;
                expected[i] = self->values[position(rank, sizes, slices[s].self, dim, at, i)];
            }
            const tn_cell args[] = {cell_of(self), mini_i64(dim), cell_of(index)};
            describe("index_select, dtype %d, shape %d, layout %d", dtype, s, l);
            assert_ok(call_kernel("index_select", dtype, TN_DTYPE_NONE, 3, args, 1, &z));
            check_elements(z, expected, NULL, 0);
            check_untouched(self);
            case_end(NULL);
        }
}

static void selected_slices_are_those_named(void **state) {
    for_dtypes("index_select", index_select);
}

static void index_add(tn_dtype dtype) {
    for (int s = 0; s < LENGTH(slices); s++)
        for (int l = 0; l < N_LAYOUTS; l++) {
            const int32_t rank = slices[s].rank;
            const int64_t dim = slices[s].dim, n = rank ? slices[s].self[dim] : 1;
            const double alpha = l % 3 ? -2 : 1;
            int64_t sizes[3];
            sliced(s, sizes);
            operand *self = operand_random(dtype, rank, slices[s].self, (layout)l, -1, 1);
            operand *index = indices(1, &slices[s].n, n, l % 2 ? SHIFTED : DENSE);
            operand *source =
                operand_random(dtype, rank, sizes, (layout)((l + 1) % N_LAYOUTS), -1, 1);
            operand *z = operand_out(dtype, rank, slices[s].self, (layout)(l % N_OUT_LAYOUTS));
            number *expected = scratch((size_t)z->numel * sizeof *expected);
            double *scales = scratch((size_t)z->numel * sizeof *scales);
            for (int64_t i = 0; i < z->numel; i++)
                add(&expected[i], &scales[i], self->values[i], 1);
            for (int64_t i = 0; i < source->numel; i++) {
                const int64_t at = index->values[along(rank, sizes, dim, i)].i;
                const int64_t to = position(rank, sizes, slices[s].self, dim, at, i);
                add(&expected[to], &scales[to], source->values[i], alpha);
            }
            const tn_cell args[] = {cell_of(self), mini_i64(dim), cell_of(index), cell_of(source),
                                    is_float(dtype) ? mini_f64(alpha) : mini_i64((int64_t)alpha)};
            describe("index_add, dtype %d, shape %d, layout %d", dtype, s, l);
            assert_ok(call_kernel("index_add", dtype, TN_DTYPE_NONE, 5, args, 1, &z));
            check_elements(z, expected, scales, dtype == TN_F64 || dtype == TN_F32 ? 8 : 1);
            check_untouched(self);
            check_untouched(source);
            case_end(NULL);
        }
}

static void added_slices_add_up(void **state) {
    for_dtypes("index_add", index_add);
}

static void results_do_not_depend_on_the_number_of_threads(void **state) {
    const int64_t sizes[] = {301, 307}, n = 301;
    operand *self = operand_random(TN_F32, 2, sizes, DENSE, -1, 1);
    operand *index = indices(2, sizes, 301, DENSE), *line = indices(1, &n, 301, DENSE);
    operand *z = operand_out(TN_F32, 2, sizes, DENSE);
    const tn_cell all[] = {cell_of(self), mini_i64(0), cell_of(index), cell_of(self)};
    const tn_cell slice[] = {cell_of(self), mini_i64(0), cell_of(line), cell_of(self), mini_f64(2)};
    check_threads("gather", TN_F32, 3, all, 1, &z);
    check_threads("scatter_add", TN_F32, 4, all, 1, &z);
    check_threads("index_select", TN_F32, 3, slice, 1, &z);
    check_threads("index_add", TN_F32, 5, slice, 1, &z);
}

/* ---- indices out of range ------------------------------------------------------------------- */

/* One wrong index among many, at the start, in the middle or at the end: the error is told, nothing
 * is written, and the next call is not blamed. */
static void refuse(const char *op, int64_t wrong, int64_t place, bool strided) {
    const int64_t n = 40000, size = 10;
    operand *self = operand_random(TN_F32, 1, &size, DENSE, -1, 1);
    operand *index = operand_whole(TN_I64, 1, &n, strided ? STEPPED : DENSE, 0, size - 1);
    operand_set(index, place, (number){.i = wrong});
    operand_upload(index);
    operand *source = operand_random(TN_F32, 1, &n, DENSE, -1, 1);
    const bool adds = strstr(op, "add");
    operand *z = operand_out(TN_F32, 1, adds ? &size : &n, DENSE);
    const tn_cell args[] = {cell_of(self), mini_i64(0), cell_of(index), cell_of(source),
                            mini_f64(1)};
    const uint32_t n_args = !adds ? 3 : strcmp(op, "index_add") == 0 ? 5 : 4;
    describe("%s, index %lld at %lld", op, (long long)wrong, (long long)place);
    assert_int_equal(call_kernel(op, TN_F32, TN_DTYPE_NONE, n_args, args, 1, &z),
                     TN_INDEX_OUT_OF_RANGE);
    char text[64];
    snprintf(text, sizeof text, "index %lld is out of range", (long long)wrong);
    if (!strstr(mini_error(), text) || !strstr(mini_error(), op))
        fail_msg("%s: the message is '%s'", description(), mini_error());
    check_untouched(z);
    check_untouched(self);
    operand_set(index, place, (number){.i = 0});
    operand_upload(index);
    assert_ok(call_kernel(op, TN_F32, TN_DTYPE_NONE, n_args, args, 1, &z));
    case_end(NULL);
}

static void an_index_out_of_range_is_an_error_and_writes_nothing(void **state) {
    static const char *const ops[] = {"gather", "scatter_add", "index_select", "index_add"};
    static const int64_t wrong[] = {10, -1, INT64_MAX, INT64_MIN};
    static const int64_t places[] = {0, 17777, 39999};
    for (int o = 0; o < LENGTH(ops); o++)
        for (int w = 0; w < LENGTH(wrong); w++)
            for (int p = 0; p < LENGTH(places); p++)
                refuse(ops[o], wrong[w], places[p], (w + p) % 2);
}

int test_indexing(void) {
    const struct CMUnitTest tests[] = {
        TEST(gathered_elements_are_those_named),
        TEST(scattered_elements_add_up),
        TEST(half_precision_adds_in_f32),
        TEST(additions_are_in_order_on_any_number_of_threads),
        TEST(selected_slices_are_those_named),
        TEST(added_slices_add_up),
        TEST(results_do_not_depend_on_the_number_of_threads),
        TEST(an_index_out_of_range_is_an_error_and_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
