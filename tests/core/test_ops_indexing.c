/* Reading, writing and joining by index, against loops over elements. */
#include "tests/core/ops_test.h"

/* The element of `values` (row-major in `sizes`) at `index`. */
static int64_t at(tn_ints sizes, const int64_t *index) {
    int64_t place = 0;
    for (int64_t d = 0; d < sizes.n; d++)
        place = place * sizes.data[d] + index[d];
    return place;
}

static void unravel(tn_ints sizes, int64_t i, int64_t *index) {
    for (int64_t d = sizes.n - 1; d >= 0; d--) {
        index[d] = i % sizes.data[d];
        i /= sizes.data[d];
    }
}

/* ---- gather and scatter ------------------------------------------------------------------ */

/* index no larger than self outside dim, src no smaller than index; all of random sizes. */
static void gather_and_scatter_add_go_by_index(void **state) {
    uint64_t s = 3;
    for (int turn = 0; turn < 60; turn++) {
        tn_scope scope = tn_scope_open();
        int64_t rank = 1 + next_case(&s, 3), dim = next_case(&s, (uint32_t)rank);
        int64_t self_sizes[3], index_sizes[3], src_sizes[3], n_index = 1;
        for (int64_t d = 0; d < rank; d++) {
            self_sizes[d] = 1 + next_case(&s, 4);
            index_sizes[d] =
                d == dim ? 1 + next_case(&s, 5) : 1 + next_case(&s, (uint32_t)self_sizes[d]);
            src_sizes[d] = index_sizes[d] + next_case(&s, 2);
            n_index *= index_sizes[d];
        }
        tn_ints of_self = tn_ints_of(self_sizes, rank), of_index = tn_ints_of(index_sizes, rank);
        tn_ints of_src = tn_ints_of(src_sizes, rank);
        double index[256], expected[256];
        for (int64_t i = 0; i < n_index; i++)
            index[i] = next_case(&s, (uint32_t)self_sizes[dim]);
        tn_tensor *self = counting(TN_F32, of_self), *src = counting(TN_F32, of_src);
        tn_tensor *where =
            of_values(turn % 2 ? TN_I64 : TN_I32, of_index, index, (uint64_t)n_index);
        int64_t said = turn % 3 ? dim : dim - rank;

        for (int64_t i = 0; i < n_index; i++) {
            int64_t place[3];
            unravel(of_index, i, place);
            place[dim] = (int64_t)index[i];
            expected[i] = (double)at(of_self, place);
        }
        assert_values(tn_gather(self, said, where), of_index, 0, expected);

        for (int64_t i = 0; i < tn_numel(self); i++)
            expected[i] = (double)i;
        for (int64_t i = 0; i < n_index; i++) {
            int64_t place[3];
            unravel(of_index, i, place);
            double value = (double)at(of_src, place);
            place[dim] = (int64_t)index[i];
            expected[at(of_self, place)] += value;
        }
        tn_tensor *sum = tn_scatter_add(self, said, where, src);
        assert_values(sum, of_self, 0, expected);
        assert_ptr_equal(tn_scatter_add_(self, said, where, src), self);
        assert_values(self, of_self, 0, expected);
        tn_scope_close(scope);
    }
}

static void scatter_without_indices_is_a_copy(void **state) {
    tn_tensor *x = of(TN_F32, TN_SHAPE(2), 1, 2), *none = tn_empty(TN_SHAPE(0), TN_I64);
    tn_tensor *y = tn_scatter_add(x, 0, none, tn_empty(TN_SHAPE(0)));
    assert_elements(y, TN_SHAPE(2), 1, 2);
    assert_false(tn_shares_storage(x, y));
    assert_elements(tn_index_add(x, 0, none, tn_empty(TN_SHAPE(0))), TN_SHAPE(2), 1, 2);
    assert_shape(tn_gather(x, 0, none), 0);
    assert_shape(tn_index_select(tn_ones(TN_SHAPE(2, 3)), 1, none), 2, 0);
}

static void indices_of_rank_zero(void **state) {
    tn_tensor *x = tn_ones(TN_SCALAR_SHAPE), *zero = tn_zeros(TN_SCALAR_SHAPE, TN_I64);
    assert_elements(tn_gather(x, 0, zero), TN_SCALAR_SHAPE, 1);
    assert_elements(tn_scatter_add(x, -1, zero, x), TN_SCALAR_SHAPE, 2);
    assert_elements(tn_index_select(x, 0, zero), TN_SCALAR_SHAPE, 1);
    assert_elements(tn_index_add(x, 0, zero, x, tn_float(3)), TN_SCALAR_SHAPE, 4);
    assert_elements(tn_index_select(of(TN_F32, TN_SHAPE(2), 5, 6), 0, zero), TN_SHAPE(1), 5);
    assert_fails(tn_index_select(x, 0, tn_zeros(TN_SHAPE(3), TN_I64)), TN_ERR_SHAPE,
                 "tn_index_select", "[3]", "one element");
    assert_fails(tn_index_add(x, 0, tn_zeros(TN_SHAPE(3), TN_I64), x), TN_ERR_SHAPE,
                 "tn_index_add");
}

static void wrong_indices_are_refused(void **state) {
    tn_tensor *x = tn_ones(TN_SHAPE(2, 3));
    tn_tensor *wide = tn_zeros(TN_SHAPE(3, 3), TN_I64), *flat = tn_zeros(TN_SHAPE(2), TN_I64);
    assert_fails(tn_gather(x, 1, wide), TN_ERR_SHAPE, "tn_gather: index [3, 3]", "self [2, 3]",
                 "outside dim");
    assert_fails(tn_gather(x, 1, flat), TN_ERR_SHAPE, "tn_gather: index [2]");
    assert_fails(tn_gather(x, 2, wide), TN_ERR_SHAPE, "tn_gather");
    assert_fails(tn_gather(x, 0, tn_zeros(TN_SHAPE(2, 3))), TN_ERR_DTYPE, "tn_gather", "f32");
    assert_fails(tn_scatter_add(x, 0, wide, x), TN_ERR_SHAPE, "tn_scatter_add: index [3, 3]",
                 "src");
    assert_fails(tn_scatter_add(x, 0, wide, tn_ones(TN_SHAPE(3, 3), TN_F64)), TN_ERR_DTYPE,
                 "src is f64", "self is f32");
    assert_fails(tn_index_select(x, 0, wide), TN_ERR_SHAPE, "index must be of rank 0 or 1");
    assert_fails(tn_index_add(x, 0, flat, tn_ones(TN_SHAPE(2, 2))), TN_ERR_SHAPE,
                 "tn_index_add: source [2, 2]", "self [2, 3]");
}

static void slices_are_read_and_added(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(2, 3)), *i = of(TN_I64, TN_SHAPE(4), 2, 0, 2, 1);
    assert_elements(tn_index_select(x, -1, i), TN_SHAPE(2, 4), 2, 0, 2, 1, 5, 3, 5, 4);
    assert_elements(tn_index_select(tn_t(x), 0, i), TN_SHAPE(4, 2), 2, 5, 0, 3, 2, 5, 1, 4);
    tn_tensor *ones = tn_ones(TN_SHAPE(2, 4));
    assert_elements(tn_index_add(x, 1, i, ones, tn_float(0.5)), TN_SHAPE(2, 3), 0.5, 1.5, 3, 3.5,
                    4.5, 6);
    tn_index_add_(tn_t(x), 0, i, tn_t(ones), tn_int(-1));
    assert_elements(x, TN_SHAPE(2, 3), -1, 0, 0, 2, 3, 3);
    tn_tensor *rows = tn_embedding(x, of(TN_I64, TN_SHAPE(2, 1), 1, 0));
    assert_elements(rows, TN_SHAPE(2, 1, 3), 2, 3, 3, -1, 0, 0);
    assert_shape(tn_embedding(x, tn_empty(TN_SHAPE(2, 0), TN_I64)), 2, 0, 3);
    assert_fails(tn_embedding(tn_ones(TN_SHAPE(2)), i), TN_ERR_SHAPE, "tn_embedding", "[2]");
    tn_tensor *whole = tn_index_add(of(TN_I64, TN_SHAPE(2), 1, 2), 0, of(TN_I64, TN_SHAPE(1), 1),
                                    of(TN_I64, TN_SHAPE(1), 5), tn_int(2));
    assert_elements(whole, TN_SHAPE(2), 1, 12);
}

static void gradients_of_an_embedding_are_left_out_or_shared(void **state) {
    const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16};
    tn_tensor *i = of(TN_I32, TN_SHAPE(2, 3), 1, 3, 1, 0, 3, 3);
    for (int d = 0; d < 3; d++) {
        tn_tensor *grad = tn_to_dtype(counting(TN_F32, TN_SHAPE(2, 3, 2)), dtypes[d]);
        tn_tensor *w = requiring_grad(counting(dtypes[d], TN_SHAPE(4, 2)));
        tn_tensor *y = tn_embedding(w, i, 1);
        assert_elements(y, TN_SHAPE(2, 3, 2), 2, 3, 6, 7, 2, 3, 0, 1, 6, 7, 6, 7);
        assert_ok(tn_backward(tn_sum(tn_mul(y, grad))));
        assert_elements(tn_grad(w), TN_SHAPE(4, 2), 6, 7, 0, 0, 0, 0, 20, 23);
        w = requiring_grad(tn_detach(w));
        assert_ok(tn_backward(tn_sum(tn_mul(tn_embedding(w, i, 0, true), grad))));
        assert_close(tn_grad(w), 4e-3, TN_SHAPE(4, 2), 0, 0, 2, 3, 0, 0, 20. / 3, 23. / 3);
        w = requiring_grad(tn_detach(w));
        assert_ok(tn_backward(tn_sum(tn_embedding(w, tn_slice(i, 0, 0, 0), -1, true))));
        assert_elements(tn_grad(w), TN_SHAPE(4, 2), 0, 0, 0, 0, 0, 0, 0, 0);
    }
    /* how often: 300 times 1/300 in f16, whose eps is 1/1024 */
    tn_tensor *w = requiring_grad(tn_ones(TN_SHAPE(1, 1), TN_F16));
    tn_tensor *y = tn_embedding(w, tn_zeros(TN_SHAPE(300), TN_I64), -1, true);
    assert_ok(tn_backward(tn_sum(y)));
    assert_elements(tn_grad(w), TN_SHAPE(1, 1), 1);
    assert_fails(tn_embedding(w, i, 1), TN_ERR_INDEX_OUT_OF_RANGE, "tn_embedding: padding_idx is 1",
                 "1 rows");
}

/* ---- masks ------------------------------------------------------------------------------- */

static void nonzero_lists_places(void **state) {
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 3), 0, NAN, 0, -1, 0, 2);
    assert_elements(tn_nonzero(x), TN_SHAPE(3, 2), 0, 1, 1, 0, 1, 2);
    assert_elements(tn_nonzero(tn_t(x)), TN_SHAPE(3, 2), 0, 1, 1, 0, 2, 1);
    assert_int_equal(tn_dtype_of(tn_nonzero(x)), TN_I64);
    assert_shape(tn_nonzero(tn_zeros(TN_SHAPE(2, 3))), 0, 2);
    assert_shape(tn_nonzero(tn_zeros(TN_SHAPE(2, 0))), 0, 2);
    assert_shape(tn_nonzero(tn_ones(TN_SCALAR_SHAPE)), 1, 0);
    assert_shape(tn_nonzero(tn_zeros(TN_SCALAR_SHAPE)), 0, 0);
    assert_elements(tn_nonzero(of(TN_BOOL, TN_SHAPE(3), 1, 0, 1)), TN_SHAPE(2, 1), 0, 2);
}

static void masked_select_broadcasts(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(2, 3));
    assert_elements(tn_masked_select(x, of(TN_BOOL, TN_SHAPE(3), 1, 0, 1)), TN_SHAPE(4), 0, 2, 3,
                    5);
    assert_elements(
        tn_masked_select(of(TN_F32, TN_SHAPE(2), 7, 8), of(TN_BOOL, TN_SHAPE(2, 1), 0, 1)),
        TN_SHAPE(2), 7, 8);
    assert_shape(tn_masked_select(x, tn_zeros(TN_SHAPE(2, 3), TN_BOOL)), 0);
    assert_shape(tn_masked_select(tn_ones(TN_SHAPE(0)), tn_ones(TN_SHAPE(0), TN_BOOL)), 0);
    assert_elements(tn_masked_fill_scalar(x, of(TN_BOOL, TN_SHAPE(3), 1, 0, 0), tn_float(-1)),
                    TN_SHAPE(2, 3), -1, 1, 2, -1, 4, 5);
    assert_fails(tn_masked_select(x, x), TN_ERR_DTYPE, "tn_masked_select: mask is f32");
    assert_fails(tn_masked_select(x, tn_ones(TN_SHAPE(2), TN_BOOL)), TN_ERR_SHAPE,
                 "[2, 3] and [2]");
}

static void numbers_stand_beside_a_condition(void **state) {
    tn_tensor *c = of(TN_BOOL, TN_SHAPE(2, 1), 1, 0), *x = of(TN_I32, TN_SHAPE(2), 5, 6);
    assert_tensor(tn_where_scalarother(c, x, tn_int(-1)), TN_I32, TN_SHAPE(2, 2), 0, 5, 6, -1, -1);
    assert_tensor(tn_where_scalarself(c, tn_float(0.5), x), TN_F32, TN_SHAPE(2, 2), 0, 0.5, 0.5, 5,
                  6);
    assert_tensor(tn_where_scalarself(c, tn_int(300), tn_to_dtype(x, TN_U8)), TN_U8, TN_SHAPE(2, 2),
                  0, 44, 44, 5, 6);
    assert_tensor(tn_where_scalar(c, tn_int(2), tn_int(-3)), TN_I64, TN_SHAPE(2, 1), 0, 2, -3);
    assert_tensor(tn_where_scalar(c, tn_float(0.5), tn_int(1)), TN_F32, TN_SHAPE(2, 1), 0, 0.5, 1);
    assert_tensor(tn_where_scalar(c, tn_bool(false), tn_bool(true)), TN_BOOL, TN_SHAPE(2, 1), 0, 0,
                  1);
    assert_tensor(tn_where_scalar(tn_ones(TN_SCALAR_SHAPE, TN_BOOL), tn_int(7), tn_int(8)), TN_I64,
                  TN_SCALAR_SHAPE, 0, 7);
    assert_shape(tn_where_scalar(tn_ones(TN_SHAPE(0), TN_BOOL), tn_int(7), tn_int(8)), 0);
    tn_tensor *y = requiring_grad(of(TN_F16, TN_SHAPE(2, 2), 1, 2, NAN, 4));
    tn_tensor *z = tn_where_scalarother(c, y, tn_float(0.1));
    assert_tensor(z, TN_F16, TN_SHAPE(2, 2), 1e-4, 1, 2, 0.1, 0.1);
    assert_ok(tn_backward(tn_sum(z)));
    assert_elements(tn_grad(y), TN_SHAPE(2, 2), 1, 1, 0, 0);
}

static void a_tensor_of_rank_zero_fills_a_mask(void **state) {
    tn_tensor *x = requiring_grad(of(TN_F32, TN_SHAPE(4), 1, NAN, 3, 4));
    tn_tensor *mask = of(TN_BOOL, TN_SHAPE(4), 0, 1, 1, 0);
    tn_tensor *value = requiring_grad(of(TN_F64, TN_SCALAR_SHAPE, 0.1));
    tn_tensor *y = tn_masked_fill(x, mask, value);
    assert_tensor(y, TN_F32, TN_SHAPE(4), 1e-7, 1, 0.1, 0.1, 4);
    assert_ok(tn_backward(tn_sum(tn_mul_scalar(y, tn_int(3)))));
    assert_elements(tn_grad(x), TN_SHAPE(4), 3, 0, 0, 3);
    assert_tensor(tn_grad(value), TN_F64, TN_SCALAR_SHAPE, 0, 6);
    assert_elements(tn_masked_fill(tn_ones(TN_SHAPE(1)), mask, value), TN_SHAPE(4), 1, 0.1f, 0.1f,
                    1);
    assert_fails(tn_masked_fill(x, mask, x), TN_ERR_SHAPE, "tn_masked_fill: value", "rank 0",
                 "[4]");
}

static void masks_are_filled_in_place(void **state) {
    tn_tensor *x = of(TN_I64, TN_SHAPE(4), 1, 2, 3, 4),
              *mask = of(TN_BOOL, TN_SHAPE(4), 0, 1, 1, 0);
    assert_ptr_equal(tn_masked_fill_(x, mask, of(TN_F32, TN_SCALAR_SHAPE, 7.9)), x);
    assert_elements(x, TN_SHAPE(4), 1, 7, 7, 4);
    tn_tensor *odd = tn_slice(x, 0, 1, 4, 2);
    assert_ptr_equal(tn_masked_fill_scalar_(odd, tn_slice(mask, 0, 0, 2), tn_int(-1)), odd);
    assert_elements(x, TN_SHAPE(4), 1, 7, 7, -1);
    tn_tensor *leaf = requiring_grad(of(TN_F32, TN_SHAPE(2), 3, 4)), *y = tn_mul(leaf, leaf);
    tn_masked_fill_scalar_(y, of(TN_BOOL, TN_SHAPE(2), 1, 0), tn_int(9));
    assert_elements(y, TN_SHAPE(2), 9, 16);
    assert_ok(tn_backward(tn_sum(y)));
    assert_elements(tn_grad(leaf), TN_SHAPE(2), 0, 8);
    assert_fails(tn_masked_fill_scalar_(tn_ones(TN_SHAPE(1)), mask, tn_int(1)), TN_ERR_SHAPE, "[4]",
                 "[1]");
}

static void places_come_by_dimension(void **state) {
    tn_tensor *list[2];
    assert_ok(tn_nonzero_numpy(of(TN_F32, TN_SHAPE(2, 2), 0, 3, -1, NAN), list, 2));
    assert_tensor(list[0], TN_I64, TN_SHAPE(3), 0, 0, 1, 1);
    assert_tensor(list[1], TN_I64, TN_SHAPE(3), 0, 1, 0, 1);
    assert_ok(tn_nonzero_numpy(tn_ones(TN_SCALAR_SHAPE), list, 1));
    assert_tensor(list[0], TN_I64, TN_SHAPE(1), 0, 0);
    assert_ok(tn_nonzero_numpy(tn_zeros(TN_SCALAR_SHAPE), list, 1));
    assert_shape(list[0], 0);
}

static void triangles(void **state) {
    const int64_t far[] = {-5, -2, -1, 0, 1, 2, 3, 7, INT64_MAX, INT64_MIN + 1};
    for (size_t k = 0; k < sizeof far / sizeof *far; k++) {
        tn_scope scope = tn_scope_open();
        double lower[12], upper[12];
        for (int64_t i = 0; i < 12; i++) {
            int64_t row = i / 4 % 3, column = i % 4;
            lower[i] = column - row <= far[k] ? (double)i + 1 : 0;
            upper[i] = column - row >= far[k] ? (double)i + 1 : 0;
        }
        tn_tensor *x = tn_add_scalar(counting(TN_F32, TN_SHAPE(1, 3, 4)), tn_int(1));
        assert_values(tn_tril(x, far[k]), TN_SHAPE(1, 3, 4), 0, lower);
        assert_values(tn_triu(x, far[k]), TN_SHAPE(1, 3, 4), 0, upper);
        tn_scope_close(scope);
    }
    tn_tensor *poison = of(TN_F32, TN_SHAPE(2, 2), 1, NAN, 2, 3);
    assert_elements(tn_tril(poison), TN_SHAPE(2, 2), 1, 0, 2, 3);
    assert_elements(tn_triu(tn_ones(TN_SHAPE(2, 2), TN_BOOL)), TN_SHAPE(2, 2), 1, 1, 0, 1);
    assert_fails(tn_tril(tn_ones(TN_SHAPE(2))), TN_ERR_SHAPE, "tn_tril", "2 dimensions");
}

/* ---- joining ----------------------------------------------------------------------------- */

static void cat_joins_along_a_dimension(void **state) {
    tn_tensor *a = of(TN_F32, TN_SHAPE(2, 1), 1, 2),
              *b = tn_t(of(TN_F32, TN_SHAPE(2, 2), 3, 4, 5, 6));
    tn_tensor *list[] = {a, b, tn_empty(TN_SHAPE(0)), tn_empty(TN_SHAPE(2, 0))};
    assert_elements(tn_cat(list, 4, -1), TN_SHAPE(2, 3), 1, 3, 5, 2, 4, 6);
    tn_tensor *same[] = {b, b};
    assert_elements(tn_cat(same, 2, 0), TN_SHAPE(4, 2), 3, 5, 4, 6, 3, 5, 4, 6);
    tn_tensor *mixed[] = {of(TN_I64, TN_SHAPE(1), 1), of(TN_F32, TN_SHAPE(1), 2.5),
                          of(TN_BOOL, TN_SHAPE(1), 1)};
    assert_elements(tn_cat(mixed, 3), TN_SHAPE(3), 1, 2.5, 1);
    assert_int_equal(tn_dtype_of(tn_cat(mixed, 3)), TN_F32);
    tn_tensor *empty[] = {tn_empty(TN_SHAPE(0), TN_I32), tn_empty(TN_SHAPE(0), TN_I64)};
    assert_shape(tn_cat(empty, 2), 0);
    tn_tensor *long_one = tn_expand(tn_ones(TN_SHAPE(1)), TN_SHAPE(INT64_C(1) << 62));
    tn_tensor *too_long[] = {long_one, long_one};
    assert_fails(tn_cat(too_long, 2), TN_ERR_SHAPE, "tn_cat", "dimension 0", "2^63");
    assert_int_equal(tn_dtype_of(tn_cat(empty, 2)), TN_I64);
    tn_tensor *bad[] = {a, tn_ones(TN_SHAPE(3, 1))}, *scalars[] = {tn_ones(TN_SCALAR_SHAPE)};
    assert_fails(tn_cat(bad, 2, 1), TN_ERR_SHAPE, "tn_cat: tensor 1 is [3, 1]", "[2, 1]",
                 "dimension 1");
    assert_fails(tn_cat(bad, 2, 2), TN_ERR_SHAPE, "tn_cat: dim");
    assert_fails(tn_cat(scalars, 1), TN_ERR_SHAPE, "tn_cat", "tn_stack");
    assert_fails(tn_cat(NULL, 0), TN_ERR_INVALID_ARGUMENT, "tn_cat: there is no tensor");
}

static void stack_adds_a_dimension(void **state) {
    tn_tensor *a = of(TN_F32, TN_SHAPE(2), 1, 2), *b = of(TN_F32, TN_SHAPE(2), 3, 4),
              *list[] = {a, b, a};
    assert_elements(tn_stack(list, 2), TN_SHAPE(2, 2), 1, 2, 3, 4);
    assert_elements(tn_stack(list, 3, -1), TN_SHAPE(2, 3), 1, 3, 1, 2, 4, 2);
    tn_tensor *bad[] = {a, tn_ones(TN_SHAPE(1))};
    assert_fails(tn_stack(bad, 2), TN_ERR_SHAPE, "tn_stack: tensor 1 is [1], but tensor 0 is [2]");
    assert_fails(tn_stack(list, 2, 2), TN_ERR_SHAPE, "tn_stack: dim");
    assert_fails(tn_stack(NULL, 0), TN_ERR_INVALID_ARGUMENT, "tn_stack");
}

enum { MANY = 150 };

/* The rows of a sequence, some used and some not, there and back. */
static void many_pieces_have_gradients(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(MANY, 2)), *rows[MANY], *pieces[MANY / 2];
    double expected[2 * MANY] = {0};
    tn_set_requires_grad(x, true);
    assert_ok(tn_unbind(x, 0, rows, MANY));
    assert_ok(tn_split(x, 2, 0, pieces, MANY / 2));
    tn_tensor *sum = tn_mul_scalar(tn_sum(tn_stack(rows, MANY)), tn_float(2));
    sum = tn_add(sum, tn_sum(tn_mul(rows[3], rows[3])));
    sum = tn_add(sum, tn_sum(pieces[7]));
    tn_tensor *again[] = {pieces[0], tn_empty(TN_SHAPE(0)), pieces[0]};
    sum = tn_add(sum, tn_sum(tn_slice(tn_cat(again, 3), 0, 0, 3)));
    assert_ok(tn_backward(sum));
    for (int i = 0; i < 2 * MANY; i++)
        expected[i] = 2 + (i / 2 == 3 ? 2.0 * i : 0) + (i / 4 == 7) + (i / 4 == 0) + (i < 2);
    assert_values(tn_grad(x), TN_SHAPE(MANY, 2), 0, expected);
}

static void gradients_of_unused_pieces_are_zero(void **state) {
    tn_tensor *x = counting(TN_F64, TN_SHAPE(2, 3)), *columns[3];
    tn_set_requires_grad(x, true);
    assert_ok(tn_unbind(x, -1, columns, 3));
    assert_ok(tn_backward(tn_sum(columns[1])));
    assert_elements(tn_grad(x), TN_SHAPE(2, 3), 0, 1, 0, 0, 1, 0);
}

static void tensors_of_two_devices_are_not_joined(void **state) {
    tn_tensor *list[] = {tn_ones(TN_SHAPE(1)),
                         tn_ones(TN_SHAPE(1), TN_F32, tn_device_parse("cpu:0"))};
    assert_fails(tn_cat(list, 2), TN_ERR_DEVICE, "tn_cat", "sim:0", "cpu:0", "tn_to_device");
}

static void classes_as_rows(void **state) {
    tn_tensor *x = of(TN_I64, TN_SHAPE(3), 1, 0, 2);
    assert_elements(tn_one_hot(x, -1), TN_SHAPE(3, 3), 0, 1, 0, 1, 0, 0, 0, 0, 1);
    assert_elements(tn_one_hot(x, 2), TN_SHAPE(3, 2), 0, 1, 1, 0, 0, 0);
    assert_fails(tn_one_hot(of(TN_F32, TN_SHAPE(1), 1), -1), TN_ERR_DTYPE, "tn_one_hot", "f32");
    assert_fails(tn_one_hot(x, 0), TN_ERR_INVALID_ARGUMENT, "tn_one_hot", "num_classes is 0");
    assert_fails(tn_one_hot(of(TN_I64, TN_SHAPE(1), -3), -1), TN_ERR_INVALID_ARGUMENT, "tn_one_hot",
                 "-3");
    tn_tensor *none = tn_empty(TN_SHAPE(0), TN_I64);
    assert_fails(tn_one_hot(none, -1), TN_ERR_INVALID_ARGUMENT, "tn_one_hot", "0 elements");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(gather_and_scatter_add_go_by_index),
        OPS_TEST(scatter_without_indices_is_a_copy),
        OPS_TEST(indices_of_rank_zero),
        OPS_TEST(wrong_indices_are_refused),
        OPS_TEST(slices_are_read_and_added),
        OPS_TEST(gradients_of_an_embedding_are_left_out_or_shared),
        OPS_TEST(nonzero_lists_places),
        OPS_TEST(masked_select_broadcasts),
        OPS_TEST(numbers_stand_beside_a_condition),
        OPS_TEST(a_tensor_of_rank_zero_fills_a_mask),
        OPS_TEST(masks_are_filled_in_place),
        OPS_TEST(places_come_by_dimension),
        OPS_TEST(triangles),
        OPS_TEST(cat_joins_along_a_dimension),
        OPS_TEST(stack_adds_a_dimension),
        OPS_TEST(many_pieces_have_gradients),
        OPS_TEST(gradients_of_unused_pieces_are_zero),
        OPS_TEST(classes_as_rows),
        cmocka_unit_test_prestate_setup_teardown(tensors_of_two_devices_are_not_joined, on_device,
                                                 leave_device, "sim:0"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
