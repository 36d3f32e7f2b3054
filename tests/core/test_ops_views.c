/* Views against their definitions, element by element; copies and conversions. */
#include "tests/core/ops_test.h"

/* ---- view and reshape -------------------------------------------------------------------- */

static void a_view_shares_memory(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(2, 3, 4));
    tn_tensor *v = tn_view(x, TN_SHAPE(6, -1));
    assert_shape(v, 6, 4);
    assert_strides(v, 4, 1);
    assert_true(tn_shares_storage(x, v));
    tn_fill_(tn_select(v, 0, 5), tn_int(-1));
    assert_elements(tn_select(tn_select(x, 0, 1), 0, 2), TN_SHAPE(4), -1, -1, -1, -1);
    assert_shape(tn_view(x, TN_SHAPE(24)), 24);
    assert_int_equal(tn_rank(tn_view(tn_ones(TN_SHAPE(1, 1)), TN_SCALAR_SHAPE)), 0);
    assert_shape(tn_view(tn_ones(TN_SCALAR_SHAPE), TN_SHAPE(1, 1)), 1, 1);
    assert_shape(tn_view(tn_ones(TN_SHAPE(0, 3)), TN_SHAPE(5, -1)), 5, 0);
}

/* Where element i (row-major) of the view lies in its storage. */
static int64_t place(tn_ints sizes, tn_ints strides, int64_t i) {
    int64_t at = 0;
    for (int64_t d = sizes.n - 1; d >= 0; d--) {
        at += i % sizes.data[d] * strides.data[d];
        i /= sizes.data[d];
    }
    return at;
}

/* The only strides that can show t in `shape`: one step along each dimension tells them. */
static bool can_be_seen_as(tn_tensor *t, tn_ints shape) {
    int64_t strides[TN_MAX_RANK], inner = 1;
    for (int64_t d = shape.n - 1; d >= 0; inner *= shape.data[d--])
        strides[d] = shape.data[d] > 1 ? place(tn_sizes(t), tn_strides(t), inner) : 0;
    for (int64_t i = 0; i < tn_numel(t); i++)
        if (place(shape, tn_ints_of(strides, shape.n), i) != place(tn_sizes(t), tn_strides(t), i))
            return false;
    return true;
}

/* A tensor with a history of random views. */
static tn_tensor *some_view(uint64_t *s) {
    tn_tensor *t = counting(TN_F32, TN_SHAPE(2, 6, 1, 4));
    for (uint32_t steps = next_case(s, 4); steps > 0; steps--) {
        int64_t rank = tn_rank(t), dim = next_case(s, (uint32_t)rank);
        switch (next_case(s, 5)) {
        case 0:
            t = tn_transpose(t, dim, next_case(s, (uint32_t)rank));
            break;
        case 1:
            if (tn_size(t, dim) % 2 == 0)
                t = tn_slice(t, dim, 0, TN_NO_INT, 2);
            break;
        case 2:
            if (tn_size(t, dim) == 1) {
                int64_t sizes[TN_MAX_RANK];
                memcpy(sizes, tn_sizes(t).data, (size_t)rank * 8);
                sizes[dim] = 2;
                t = tn_expand(t, tn_ints_of(sizes, rank));
            }
            break;
        case 3:
            t = tn_unsqueeze(t, dim);
            break;
        default:
            if (tn_size(t, dim) > 2)
                t = tn_narrow(t, dim, 1, tn_size(t, dim) - 2);
        }
    }
    return t;
}

/* The elements of t in another shape of as many. */
static tn_ints some_shape(uint64_t *s, int64_t numel, int64_t *sizes) {
    int64_t n = 0;
    while (numel > 1 && n < 5) {
        int64_t divisor = 1 + next_case(s, (uint32_t)numel);
        while (numel % divisor)
            divisor--;
        sizes[n++] = divisor;
        numel /= divisor;
    }
    sizes[n++] = numel;
    return tn_ints_of(sizes, n);
}

static void a_view_is_found_where_there_is_one(void **state) {
    uint64_t s = 1;
    int n_found = 0, n_not = 0;
    for (int i = 0; i < 400; i++) {
        tn_scope scope = tn_scope_open();
        int64_t sizes[TN_MAX_RANK];
        tn_tensor *t = some_view(&s);
        tn_ints shape = some_shape(&s, tn_numel(t), sizes);
        bool expected = can_be_seen_as(t, shape);
        double *before = values_of(t);
        tn_tensor *v = tn_view(t, shape);
        assert_int_equal(v != NULL, expected);
        if (v)
            assert_true(tn_shares_storage(v, t));
        else
            assert_error(TN_ERR_SHAPE, "tn_view: self [", "use tn_reshape", NULL);
        expected ? n_found++ : n_not++;
        tn_tensor *r = tn_reshape(t, shape);
        assert_int_equal(tn_shares_storage(r, t), expected);
        assert_values(r, shape, 0, before);
        if (v)
            assert_values(v, shape, 0, before);
        free(before);
        tn_scope_close(scope);
    }
    assert_true(n_found > 50 && n_not > 50);
}

static void a_wrong_shape_is_named(void **state) {
    tn_tensor *x = tn_ones(TN_SHAPE(2, 3));
    assert_fails(tn_view(x, TN_SHAPE(4, 2)), TN_ERR_SHAPE, "tn_view: shape [4, 2] has 8 elements",
                 "self [2, 3] has 6");
    assert_fails(tn_view(x, TN_SHAPE(4, -1)), TN_ERR_SHAPE, "-1", "[4, -1]", "self [2, 3]");
    assert_fails(tn_view(x, TN_SHAPE(-1, -1)), TN_ERR_SHAPE, "one size may be -1");
    assert_fails(tn_view(x, TN_SHAPE(-2, 3)), TN_ERR_SHAPE, "[-2, 3]");
    assert_fails(tn_reshape(x, TN_SHAPE(7)), TN_ERR_SHAPE, "tn_reshape: shape [7]");
    assert_fails(tn_reshape(tn_ones(TN_SHAPE(0)), TN_SHAPE(0, -1)), TN_ERR_SHAPE, "a size is 0");
    assert_fails(tn_view(x, tn_no_ints()), TN_ERR_SHAPE, "tn_view");
    assert_fails(tn_view(x, TN_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 6)), TN_ERR_SHAPE, "12");
    assert_fails(tn_view(x, TN_SHAPE(INT64_MAX, INT64_MAX)), TN_ERR_SHAPE, "tn_view");
    assert_fails(tn_view(tn_transpose(x, 0, 1), TN_SHAPE(6)), TN_ERR_SHAPE,
                 "tn_view: self [3, 2] with strides [1, 3] cannot be seen as [6] without a copy");
}

static void flatten_joins_dimensions(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(2, 3, 4));
    assert_shape(tn_flatten(x), 24);
    assert_shape(tn_flatten(x, 1), 2, 12);
    assert_shape(tn_flatten(x, 0, -2), 6, 4);
    assert_ptr_equal(tn_flatten(x, 1, 1), x);
    assert_shape(tn_flatten(tn_ones(TN_SCALAR_SHAPE)), 1);
    assert_false(tn_shares_storage(tn_flatten(tn_transpose(x, 0, 1)), x));
    assert_fails(tn_flatten(x, 2, 1), TN_ERR_INVALID_ARGUMENT,
                 "tn_flatten: start_dim 2 comes after");
    assert_fails(tn_flatten(x, 3), TN_ERR_SHAPE, "tn_flatten: start_dim");
}

/* ---- dimensions -------------------------------------------------------------------------- */

static void dimensions_change_places(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(2, 3, 4));
    tn_tensor *p = tn_permute(x, TN_DIMS(2, 0, -2));
    assert_shape(p, 4, 2, 3);
    assert_strides(p, 1, 12, 4);
    assert_strides(tn_transpose(x, 0, -1), 1, 4, 12);
    assert_shape(tn_transpose(x, 0, -1), 4, 3, 2);
    assert_shape(tn_t(tn_ones(TN_SHAPE(2, 3))), 3, 2);
    assert_shape(tn_t(tn_ones(TN_SHAPE(2))), 2);
    assert_int_equal(tn_rank(tn_transpose(tn_ones(TN_SCALAR_SHAPE), 0, -1)), 0);
    assert_int_equal(tn_rank(tn_permute(tn_ones(TN_SCALAR_SHAPE), TN_SCALAR_SHAPE)), 0);
    assert_fails(tn_permute(x, TN_DIMS(0, 1)), TN_ERR_INVALID_ARGUMENT, "tn_permute: dims names 2");
    assert_fails(tn_permute(x, TN_DIMS(0, 1, -2)), TN_ERR_INVALID_ARGUMENT, "dimension 1 twice");
    assert_fails(tn_permute(x, TN_DIMS(0, 1, 3)), TN_ERR_SHAPE, "tn_permute: dims: dimension 3");
    assert_fails(tn_transpose(x, 0, -4), TN_ERR_SHAPE, "tn_transpose: dim1: dimension -4");
    assert_fails(tn_t(x), TN_ERR_SHAPE, "tn_t", "tn_transpose");
}

static void dimensions_of_one_come_and_go(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(1, 3, 1, 2));
    assert_shape(tn_squeeze(x), 3, 2);
    assert_shape(tn_squeeze_dim(x, 0), 3, 1, 2);
    assert_shape(tn_squeeze_dim(x, -2), 1, 3, 2);
    assert_shape(tn_squeeze_dim(x, 1), 1, 3, 1, 2);
    assert_int_equal(tn_rank(tn_squeeze(tn_ones(TN_SHAPE(1, 1)))), 0);
    assert_int_equal(tn_rank(tn_squeeze_dim(tn_ones(TN_SCALAR_SHAPE), 0)), 0);
    tn_tensor *y = tn_ones(TN_SHAPE(3, 2));
    assert_shape(tn_unsqueeze(y, 0), 1, 3, 2);
    assert_strides(tn_unsqueeze(y, 0), 6, 2, 1);
    assert_shape(tn_unsqueeze(y, -1), 3, 2, 1);
    assert_strides(tn_unsqueeze(y, -1), 2, 1, 1);
    assert_strides(tn_unsqueeze(y, 1), 2, 2, 1);
    assert_shape(tn_unsqueeze(tn_ones(TN_SCALAR_SHAPE), -1), 1);
    assert_fails(tn_unsqueeze(y, 3), TN_ERR_SHAPE, "tn_unsqueeze: dim: dimension 3");
    assert_fails(tn_squeeze_dim(y, 2), TN_ERR_SHAPE, "tn_squeeze_dim: dim");
    tn_tensor *full = tn_ones(TN_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
    assert_fails(tn_unsqueeze(full, 0), TN_ERR_SHAPE, "tn_unsqueeze", "12");
}

static void expand_repeats_without_a_copy(void **state) {
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 1), 1, 2);
    tn_tensor *e = tn_expand(x, TN_SHAPE(2, -1, 3));
    assert_elements(e, TN_SHAPE(2, 2, 3), 1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2);
    assert_strides(e, 0, 1, 0);
    assert_shape(tn_expand(x, TN_SHAPE(2, 0)), 2, 0);
    assert_shape(tn_expand(tn_ones(TN_SCALAR_SHAPE), TN_SHAPE(2, 2)), 2, 2);
    assert_fails(tn_expand(x, TN_SHAPE(3, 3)), TN_ERR_SHAPE, "tn_expand: self [2, 1]", "[3, 3]");
    assert_fails(tn_expand(x, TN_SHAPE(-1, 2, 3)), TN_ERR_SHAPE, "tn_expand");
    assert_fails(tn_expand(x, TN_SHAPE(2)), TN_ERR_SHAPE, "tn_expand: size has 1 dimensions");
    assert_fails(tn_expand(x, TN_SHAPE(-2, 2, 3)), TN_ERR_SHAPE, "tn_expand");
}

/* ---- parts ------------------------------------------------------------------------------- */

static void select_takes_one_slice(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(2, 3));
    assert_elements(tn_select(x, 0, 1), TN_SHAPE(3), 3, 4, 5);
    assert_elements(tn_select(x, -1, -3), TN_SHAPE(2), 0, 3);
    assert_fails(tn_select(x, 1, 3), TN_ERR_INDEX_OUT_OF_RANGE,
                 "tn_select: index 3 is out of range for dimension 1 of self [2, 3]", "-3 to 2");
    assert_fails(tn_select(x, 1, -4), TN_ERR_INDEX_OUT_OF_RANGE, "tn_select: index -4");
    assert_fails(tn_select(x, 2, 0), TN_ERR_SHAPE, "tn_select: dim");
    assert_fails(tn_select(tn_ones(TN_SCALAR_SHAPE), 0, 0), TN_ERR_SHAPE, "no dimensions");
}

/* Python's rules, written another way: walk, and keep what lies inside. */
static void slice_follows_python(void **state) {
    tn_tensor *x = tn_transpose(counting(TN_F32, TN_SHAPE(2, 5)), 0, 1);
    const int64_t ends[] = {INT64_MIN + 1, -7, -5, -3, -1, 0, 1, 3, 4, 5, 6, INT64_MAX, TN_NO_INT};
    const int64_t steps[] = {1, 2, 3, 5, INT64_MAX};
    for (size_t a = 0; a < 13; a++)
        for (size_t b = 0; b < 13; b++)
            for (size_t c = 0; c < 5; c++) {
                tn_scope scope = tn_scope_open();
                double expected[10];
                int64_t n = 0, first = -1;
                for (int64_t i = 0; i < 5; i++) {
                    int64_t from = ends[a], to = ends[b];
                    bool after = from == TN_NO_INT || (from < 0 ? i - 5 >= from : i >= from);
                    bool before = to == TN_NO_INT || (to < 0 ? i - 5 < to : i < to);
                    if (!after || !before)
                        continue;
                    first = first < 0 ? i : first;
                    if ((i - first) % steps[c] == 0) {
                        expected[2 * n] = (double)i;
                        expected[2 * n++ + 1] = (double)(5 + i);
                    }
                }
                tn_tensor *s = tn_slice(x, 0, ends[a], ends[b], steps[c]);
                assert_values(s, TN_SHAPE(n, 2), 0, expected);
                tn_scope_close(scope);
            }
    assert_fails(tn_slice(x, 0, 0, 1, 0), TN_ERR_INVALID_ARGUMENT, "tn_slice: step is 0");
    assert_fails(tn_slice(x, 2), TN_ERR_SHAPE, "tn_slice: dim");
    assert_fails(tn_slice(tn_ones(TN_SCALAR_SHAPE)), TN_ERR_SHAPE, "tn_slice");
}

static void narrow_stays_inside(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(5));
    assert_elements(tn_narrow(x, 0, 1, 3), TN_SHAPE(3), 1, 2, 3);
    assert_elements(tn_narrow(x, 0, -2, 2), TN_SHAPE(2), 3, 4);
    assert_shape(tn_narrow(x, 0, 5, 0), 0);
    assert_fails(tn_narrow(x, 0, 3, 3), TN_ERR_INDEX_OUT_OF_RANGE, "tn_narrow: 3 elements from 3");
    assert_fails(tn_narrow(x, 0, -6, 1), TN_ERR_INDEX_OUT_OF_RANGE, "tn_narrow");
    assert_fails(tn_narrow(x, 0, 0, -1), TN_ERR_INDEX_OUT_OF_RANGE, "tn_narrow");
    assert_fails(tn_narrow(x, 0, 1, INT64_MAX), TN_ERR_INDEX_OUT_OF_RANGE, "tn_narrow");
}

static void diagonal_walks_two_dimensions(void **state) {
    for (int64_t offset = -5; offset <= 5; offset++) {
        tn_scope scope = tn_scope_open();
        tn_tensor *x = counting(TN_F32, TN_SHAPE(3, 2, 4));
        double expected[8];
        int64_t n = 0, length = 0;
        for (int64_t j = 0; j < 2; j++)
            for (int64_t i = 0; i < 3; i++)
                if (i + offset >= 0 && i + offset < 4)
                    expected[n++] = (double)(i * 8 + j * 4 + i + offset);
        length = n / 2;
        assert_values(tn_diagonal(x, offset, 0, -1), TN_SHAPE(2, length), 0, expected);
        assert_values(tn_diagonal(x, -offset, 2, 0), TN_SHAPE(2, length), 0, expected);
        tn_scope_close(scope);
    }
    tn_tensor *x = tn_ones(TN_SHAPE(2, 3));
    assert_shape(tn_diagonal(x, INT64_MAX), 0);
    assert_shape(tn_diagonal(x, INT64_MIN + 1), 0);
    tn_tensor *far = tn_as_strided(x, TN_SHAPE(1, 1), TN_SHAPE(INT64_MAX, INT64_MAX));
    assert_elements(tn_diagonal(far), TN_SHAPE(1), 1);
    assert_fails(tn_diagonal(x, 0, 1, -1), TN_ERR_INVALID_ARGUMENT, "tn_diagonal: dim1 and dim2");
    assert_fails(tn_diagonal(tn_ones(TN_SHAPE(2))), TN_ERR_SHAPE, "tn_diagonal: dim2");
}

/* Where places and strides do not fit in 63 bits there is no element. */
static void views_of_nothing_begin_anywhere(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(2, 3)), *parts[5];
    int64_t quarter = INT64_MAX / 4;
    tn_tensor *empty = tn_as_strided(x, TN_SHAPE(4, 0), TN_SHAPE(quarter, 1), quarter);
    assert_shape(tn_select(empty, 0, 1), 0);
    assert_shape(tn_select(empty, 0, -1), 0);
    assert_shape(tn_slice(empty, 0, 4), 0, 0);
    assert_shape(tn_slice(empty, 0, 3, TN_NO_INT, 2), 1, 0);
    assert_shape(tn_narrow(empty, 0, 2, 2), 2, 0);
    assert_ok(tn_unbind(empty, 0, parts, 4));
    assert_ok(tn_split_with_sizes(empty, TN_SHAPE(1, 3, 0), 0, parts, 3));
    tn_tensor *square = tn_as_strided(x, TN_SHAPE(2, 2, 0), TN_SHAPE(quarter, quarter, 1), quarter);
    assert_shape(tn_diagonal(square, 1, 0, 1), 0, 1);
    assert_shape(tn_diagonal(square, -1, 0, 1), 0, 1);
    tn_tensor *one = tn_as_strided(x, TN_SHAPE(1), TN_SHAPE(INT64_MAX), 1);
    assert_shape(tn_slice(one, 0, 1), 0);
    assert_elements(tn_unsqueeze(one, 0), TN_SHAPE(1, 1), 1);

    tn_tensor *bytes = tn_empty(TN_SHAPE(INT64_MAX), TN_I8, tn_device_parse("meta"));
    assert_fails(tn_as_strided(bytes, TN_SHAPE(2), TN_SHAPE(INT64_MAX)), TN_ERR_SHAPE,
                 "tn_as_strided", "63 bits");
    tn_tensor *far = tn_as_strided(bytes, TN_SHAPE(2), TN_SHAPE(INT64_MAX - 1));
    assert_shape(tn_slice(far, 0, 2), 0);
    assert_shape(tn_unsqueeze(far, 0), 1, 2);
    assert_strides(tn_view(far, TN_SHAPE(2, 1)), INT64_MAX - 1, INT64_MAX - 1);
    assert_shape(tn_view(far, TN_SHAPE(1, 2)), 1, 2);
    assert_fails(tn_view(tn_expand(far, TN_SHAPE(3, 2)), TN_SHAPE(6)), TN_ERR_SHAPE, "copy");
    assert_ok(tn_split_with_sizes(far, TN_SHAPE(1, 1, 0), 0, parts, 3));

    tn_tensor *none = tn_ones(TN_SHAPE(0));
    assert_shape(tn_view(none, TN_SHAPE(0, INT64_MAX)), 0, INT64_MAX);
    assert_fails(tn_view(none, TN_SHAPE(0, INT64_MAX, 2)), TN_ERR_SHAPE, "tn_view", "63 bits");
    assert_fails(tn_reshape(none, TN_SHAPE(INT64_MAX, 2, 0)), TN_ERR_SHAPE, "tn_reshape",
                 "63 bits");
    assert_fails(tn_view(none, TN_SHAPE(INT64_MAX, 2, -1)), TN_ERR_SHAPE, "tn_view", "63 bits");
}

static void as_strided_is_any_geometry(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(2, 3));
    assert_elements(tn_as_strided(x, TN_SHAPE(2, 2), TN_SHAPE(1, 2), 1), TN_SHAPE(2, 2), 1, 3, 2,
                    4);
    tn_tensor *far = tn_as_strided(x, TN_SHAPE(1, 2, 1), TN_SHAPE(INT64_MAX, 3, INT64_MAX));
    assert_elements(tn_neg(far), TN_SHAPE(1, 2, 1), 0, -3);
    assert_elements(tn_add(far, tn_ones(TN_SHAPE(2, 1, 1))), TN_SHAPE(2, 2, 1), 1, 4, 1, 4);
    assert_elements(tn_sum_dim(far, TN_SHAPE(1)), TN_SHAPE(1, 1), 3);
    assert_elements(tn_contiguous(tn_transpose(far, 0, 1)), TN_SHAPE(2, 1, 1), 0, 3);
    tn_tensor *row = tn_select(x, 0, 1);
    assert_elements(tn_as_strided(row, TN_SHAPE(2), TN_SHAPE(1)), TN_SHAPE(2), 3, 4);
    assert_elements(tn_as_strided(row, TN_SHAPE(2), TN_SHAPE(1), 0), TN_SHAPE(2), 0, 1);
    assert_fails(tn_as_strided(x, TN_SHAPE(3), TN_SHAPE(3)), TN_ERR_SHAPE, "as_strided", "28 bytes",
                 "24");
    assert_fails(tn_as_strided(x, TN_SHAPE(2), TN_SHAPE(-1), 1), TN_ERR_SHAPE, "negative");
    assert_fails(tn_as_strided(x, TN_SHAPE(2), TN_SHAPE(1), -1), TN_ERR_SHAPE, "negative");
    assert_fails(tn_as_strided(x, TN_SHAPE(2, 2), TN_SHAPE(1)), TN_ERR_SHAPE,
                 "2 sizes and 1 strides");
    assert_fails(tn_as_strided(x, tn_no_ints(), tn_no_ints()), TN_ERR_SHAPE, "tn_as_strided");
    tn_tensor *leaf = tn_ones(TN_SHAPE(2, 3));
    tn_set_requires_grad(leaf, true);
    assert_fails(tn_as_strided(tn_expand(leaf, TN_SHAPE(2, 2, 3)), TN_SHAPE(2), TN_SHAPE(1)),
                 TN_ERR_UNSUPPORTED, "tn_as_strided", "tn_contiguous");
}

/* Of a transposed and of a shifted self: the gradient lands where the view's elements lie. */
static void as_strided_gradients_find_their_places(void **state) {
    tn_tensor *leaf = tn_set_requires_grad(tn_ones(TN_SHAPE(2, 3)), true);
    tn_tensor *view = tn_as_strided(tn_transpose(leaf, 0, 1), TN_SHAPE(2, 2), TN_SHAPE(1, 1), 1);
    assert_int_equal(tn_backward(tn_sum(view)), TN_OK);
    assert_elements(tn_grad(leaf), TN_SHAPE(2, 3), 0, 1, 2, 1, 0, 0);
    tn_tensor *other = tn_set_requires_grad(tn_ones(TN_SHAPE(2, 3)), true);
    view = tn_as_strided(tn_select(other, 0, 1), TN_SHAPE(2), TN_SHAPE(1));
    assert_int_equal(tn_backward(tn_sum(view)), TN_OK);
    assert_elements(tn_grad(other), TN_SHAPE(2, 3), 0, 0, 0, 1, 1, 0);
}

static void several_views_at_once(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(5, 2)), *parts[6];
    assert_ok(tn_unbind(x, 0, parts, 5));
    assert_elements(parts[4], TN_SHAPE(2), 8, 9);
    assert_true(tn_shares_storage(parts[4], x));
    assert_ok(tn_unbind(x, -1, parts, 2));
    assert_elements(parts[1], TN_SHAPE(5), 1, 3, 5, 7, 9);
    assert_ok(tn_split(x, 2, 0, parts, 3));
    assert_elements(parts[1], TN_SHAPE(2, 2), 4, 5, 6, 7);
    assert_elements(parts[2], TN_SHAPE(1, 2), 8, 9);
    assert_ok(tn_split(x, INT64_MAX, 0, parts, 1));
    assert_shape(parts[0], 5, 2);
    assert_ok(tn_chunk(x, 3, 0, parts, 3));
    assert_shape(parts[2], 1, 2);
    assert_ok(tn_chunk(x, INT64_MAX, 0, parts, 5));
    assert_ok(tn_split(tn_ones(TN_SHAPE(0)), 2, 0, parts, 1));
    assert_ok(tn_unbind(tn_ones(TN_SHAPE(0)), 0, parts, 0));
    assert_int_equal(tn_split(x, 2, 0, parts, 2), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "3 results", "room for 2", NULL);
    assert_int_equal(tn_split(x, 0, 0, parts, 2), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_split: split_size is 0", NULL);
    assert_int_equal(tn_chunk(x, 0, 0, parts, 2), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_chunk: chunks is 0", NULL);
    assert_int_equal(tn_unbind(tn_ones(TN_SCALAR_SHAPE), 0, parts, 1), TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "tn_unbind", NULL);
}

static void how_many_views_there_are_is_told(void **state) {
    tn_tensor *x = tn_set_requires_grad(tn_ones(TN_SHAPE(5, 2)), true);
    int64_t alive = tni_tensors_alive();
    assert_int_equal(tn_unbind_count(x), 5);
    assert_int_equal(tn_unbind_count(x, -1), 2);
    assert_int_equal(tn_split_count(x, 2), 3);
    assert_int_equal(tn_split_count(x, INT64_MAX, 1), 1);
    assert_int_equal(tn_chunk_count(x, 4), 3); /* of 2, 2 and 1 */
    assert_int_equal(tn_chunk_count(x, INT64_MAX, 1), 2);
    assert_int_equal(tn_unbind_count(tn_ones(TN_SHAPE(0))), 0);
    assert_int_equal(tni_tensors_alive(), alive + 1);
    assert_int_equal(tn_split_count(x, 0), -1);
    assert_error(TN_ERR_INVALID_ARGUMENT, "split_size is 0", NULL);
    assert_int_equal(tn_chunk_count(x, 2, 2), -1);
    assert_string_equal(tn_error_operator(), "chunk");
    assert_error(TN_ERR_SHAPE, "dimension 2", NULL);
    assert_int_equal(tn_unbind_count(TN_NONE), -1);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_unbind_count", "self", NULL);
}

static void several_dimensions_of_one_go(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(1, 3, 1, 1));
    tn_tensor *y = tn_squeeze_dims(x, TN_SHAPE(0, -1));
    assert_shape(y, 3, 1);
    assert_true(tn_shares_storage(x, y));
    assert_shape(tn_squeeze_dims(x, TN_SHAPE(1, 2)), 1, 3, 1);
    assert_shape(tn_squeeze_dims(x, TN_SCALAR_SHAPE), 1, 3, 1, 1);
    assert_int_equal(tn_rank(tn_squeeze_dims(tn_ones(TN_SCALAR_SHAPE), TN_SHAPE(-1))), 0);
    assert_fails(tn_squeeze_dims(x, TN_SHAPE(0, -4)), TN_ERR_INVALID_ARGUMENT, "tn_squeeze_dims",
                 "dimension 0 is named twice");
    assert_fails(tn_squeeze_dims(x, TN_SHAPE(4)), TN_ERR_SHAPE, "tn_squeeze_dims");
}

static void a_tensor_says_where_to_narrow(void **state) {
    tn_tensor *x = requiring_grad(counting(TN_F32, TN_SHAPE(5)));
    tn_tensor *y = tn_narrow_tensor(x, 0, of(TN_I64, TN_SCALAR_SHAPE, -3), 2);
    assert_elements(y, TN_SHAPE(2), 2, 3);
    assert_true(tn_shares_storage(x, y));
    assert_ok(tn_backward(tn_sum(y)));
    assert_elements(tn_grad(x), TN_SHAPE(5), 0, 0, 1, 1, 0);
    tn_tensor *here = tn_ones(TN_SCALAR_SHAPE, TN_U8, tn_device_parse("cpu:0"));
    assert_elements(tn_narrow_tensor(x, -1, here, 1), TN_SHAPE(1), 1);
    assert_fails(tn_narrow_tensor(x, 0, of(TN_I64, TN_SCALAR_SHAPE, 4), 2),
                 TN_ERR_INDEX_OUT_OF_RANGE, "2 elements from 4");
    assert_fails(tn_narrow_tensor(x, 0, of(TN_I64, TN_SHAPE(1), 1), 2), TN_ERR_INVALID_ARGUMENT,
                 "tn_narrow_tensor: start", "rank 1");
    assert_fails(tn_narrow_tensor(x, 0, tn_ones(TN_SCALAR_SHAPE, TN_BOOL), 1),
                 TN_ERR_INVALID_ARGUMENT, "bool");
}

static void pieces_of_given_sizes(void **state) {
    tn_tensor *x = requiring_grad(counting(TN_F32, TN_SHAPE(2, 4))), *list[3];
    assert_int_equal(tn_split_with_sizes_count(x, TN_SHAPE(1, 0, 3), -1), 3);
    assert_ok(tn_split_with_sizes(x, TN_SHAPE(1, 0, 3), -1, list, 3));
    assert_elements(list[0], TN_SHAPE(2, 1), 0, 4);
    assert_shape(list[1], 2, 0);
    assert_elements(list[2], TN_SHAPE(2, 3), 1, 2, 3, 5, 6, 7);
    assert_true(tn_shares_storage(x, list[2]));
    assert_ok(tn_backward(tn_sum(tn_mul(list[2], list[2]))));
    assert_elements(tn_grad(x), TN_SHAPE(2, 4), 0, 2, 4, 6, 0, 10, 12, 14);
    assert_int_equal(tn_split_with_sizes_count(tn_ones(TN_SHAPE(0, 2)), TN_SCALAR_SHAPE), 0);
    assert_int_equal(tn_split_with_sizes_count(x, TN_SHAPE(1, 2), 1), -1);
    assert_error(TN_ERR_SHAPE, "tn_split_with_sizes: dim 1 of size 4", "[1, 2]", NULL);
    assert_int_equal(tn_split_with_sizes_count(x, TN_SHAPE(3, -1)), -1);
    assert_error(TN_ERR_SHAPE, "dim 0 of size 2", "[3, -1]", NULL);
    assert_int_equal(tn_split_with_sizes_count(x, TN_SHAPE(INT64_MAX, INT64_MAX, 4), 1), -1);
    assert_error(TN_ERR_SHAPE, "tn_split_with_sizes", NULL);
}

/* ---- copies and conversions -------------------------------------------------------------- */

static void copy_broadcasts_and_casts(void **state) {
    tn_tensor *x = tn_zeros(TN_SHAPE(2, 3));
    assert_ptr_equal(tn_copy_(x, of(TN_I64, TN_SHAPE(3), 1, 2, 3)), x);
    assert_elements(x, TN_SHAPE(2, 3), 1, 2, 3, 1, 2, 3);
    tn_copy_(tn_transpose(x, 0, 1), of(TN_F64, TN_SHAPE(3, 2), 1, 2, 3, 4, 5, 6));
    assert_elements(x, TN_SHAPE(2, 3), 1, 3, 5, 2, 4, 6);
    tn_copy_(tn_slice(x, 1, 1), tn_slice(x, 1, 0, 2)); /* overlapping: as if through a copy */
    assert_elements(x, TN_SHAPE(2, 3), 1, 1, 3, 2, 2, 4);
    assert_fails(tn_copy_(x, tn_ones(TN_SHAPE(2))), TN_ERR_SHAPE, "tn_copy_", "[2]", "[2, 3]");
    assert_fails(tn_copy_(tn_expand(tn_zeros(TN_SHAPE(1)), TN_SHAPE(3)), tn_ones(TN_SHAPE(3))),
                 TN_ERR_SHAPE, "tn_copy_", "tn_clone");
}

static void conversions_copy_only_what_differs(void **state) {
    tn_tensor *x = tn_transpose(of(TN_F32, TN_SHAPE(2, 2), 1.5, -2.5, 0, 3), 0, 1);
    assert_ptr_equal(tn_to(x), x);
    assert_ptr_equal(tn_to_dtype(x, TN_F32), x);
    assert_ptr_equal(tn_to_device(x, dev), x);
    assert_ptr_not_equal(tn_to(x, TN_F32, dev, true), x);
    assert_elements(tn_to_dtype(x, TN_I64), TN_SHAPE(2, 2), 1, 0, -2, 3);
    assert_elements(tn_to_dtype(x, TN_BOOL), TN_SHAPE(2, 2), 1, 0, 1, 1);
    assert_strides(tn_clone(x), 1, 2);
    assert_strides(tn_contiguous(x), 2, 1);
    assert_elements(tn_contiguous(x), TN_SHAPE(2, 2), 1.5, 0, -2.5, 3);
    tn_tensor *plain = tn_ones(TN_SHAPE(2));
    assert_ptr_equal(tn_contiguous(plain), plain);
    assert_ptr_not_equal(tn_clone(plain), plain);
}

static void tensors_move_between_devices(void **state) {
    tn_device cpu = tn_device_parse("cpu:0");
    tn_tensor *x = tn_transpose(counting(TN_F32, TN_SHAPE(2, 3)), 0, 1);
    tn_tensor *there = tn_to(x, TN_F64, cpu);
    assert_true(tn_device_equal(tn_device_of(there), cpu));
    assert_elements(there, TN_SHAPE(3, 2), 0, 3, 1, 4, 2, 5);
    tn_tensor *back = tn_to_device(there, dev);
    assert_elements(back, TN_SHAPE(3, 2), 0, 3, 1, 4, 2, 5);
    tn_tensor *target = tn_zeros(TN_SHAPE(2, 3));
    tn_copy_(tn_transpose(target, 0, 1), there);
    assert_elements(target, TN_SHAPE(2, 3), 0, 1, 2, 3, 4, 5);
}

static void fill_sets_every_element(void **state) {
    tn_tensor *x = tn_zeros(TN_SHAPE(2, 3));
    tn_fill_(tn_select(x, 1, 1), tn_float(2.5));
    assert_elements(x, TN_SHAPE(2, 3), 0, 2.5, 0, 0, 2.5, 0);
    tn_zero_(tn_select(x, 0, 1));
    assert_elements(x, TN_SHAPE(2, 3), 0, 2.5, 0, 0, 0, 0);
    assert_elements(tn_fill_(tn_zeros(TN_SHAPE(1), TN_I32), tn_float(2.9)), TN_SHAPE(1), 2);
    assert_elements(tn_fill_(tn_zeros(TN_SHAPE(1), TN_BOOL), tn_float(0.5)), TN_SHAPE(1), 1);
    assert_elements(tn_fill_(tn_zeros(TN_SHAPE(2), TN_BF16), tn_bool(true)), TN_SHAPE(2), 1, 1);
    assert_fails(tn_fill_(tn_zeros(TN_SHAPE(1), TN_I32), tn_float(NAN)), TN_ERR_DTYPE, "tn_fill_",
                 "i32");
    tn_tensor *wide = tn_expand(tn_zeros(TN_SHAPE(1)), TN_SHAPE(3));
    assert_fails(tn_fill_(wide, tn_float(1)), TN_ERR_SHAPE, "tn_fill_", "expanded");
    assert_fails(tn_zero_(wide), TN_ERR_SHAPE, "tn_zero_", "expanded");
}

static void gradients_pass_through_views(void **state) {
    tn_tensor *x = tn_ones(TN_SHAPE(2, 3, 2), TN_F64);
    tn_set_requires_grad(x, true);
    tn_tensor *y = tn_select(tn_permute(x, TN_DIMS(2, 0, 1)), 0, 1); /* [2, 3] */
    y = tn_mul(tn_slice(y, 1, 0, TN_NO_INT, 2), of(TN_F64, TN_SHAPE(2, 2), 1, 2, 3, 4));
    y = tn_reshape(tn_contiguous(tn_t(y)), TN_SHAPE(-1));
    assert_ok(tn_backward(tn_sum(tn_to_dtype(y, TN_F32))));
    assert_elements(tn_grad(x), TN_SHAPE(2, 3, 2), 0, 1, 0, 0, 0, 2, 0, 3, 0, 0, 0, 4);
}

static void channels_and_pixels(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(4, 1, 2));
    tn_tensor *wide = tn_pixel_shuffle(x, 2);
    assert_elements(wide, TN_SHAPE(1, 2, 4), 0, 2, 1, 3, 4, 6, 5, 7);
    assert_same(tn_pixel_unshuffle(wide, 2), x);
    assert_elements(tn_channel_shuffle(counting(TN_F32, TN_SHAPE(1, 4, 1)), 2), TN_SHAPE(1, 4, 1),
                    0, 2, 1, 3);
    assert_fails(tn_pixel_shuffle(x, 3), TN_ERR_SHAPE, "tn_pixel_shuffle", "4 channels",
                 "3 squared");
    assert_fails(tn_pixel_unshuffle(x, 2), TN_ERR_SHAPE, "tn_pixel_unshuffle", "1 x 2");
    assert_fails(tn_pixel_shuffle(x, 0), TN_ERR_INVALID_ARGUMENT, "rank 3", "factor is 0");
    assert_fails(tn_channel_shuffle(x, 2), TN_ERR_SHAPE, "tn_channel_shuffle", "groups 2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(a_view_shares_memory),
        OPS_TEST(a_view_is_found_where_there_is_one),
        OPS_TEST(a_wrong_shape_is_named),
        OPS_TEST(flatten_joins_dimensions),
        OPS_TEST(dimensions_change_places),
        OPS_TEST(dimensions_of_one_come_and_go),
        OPS_TEST(expand_repeats_without_a_copy),
        OPS_TEST(select_takes_one_slice),
        OPS_TEST(slice_follows_python),
        OPS_TEST(narrow_stays_inside),
        OPS_TEST(diagonal_walks_two_dimensions),
        OPS_TEST(views_of_nothing_begin_anywhere),
        OPS_TEST(as_strided_is_any_geometry),
        OPS_TEST(as_strided_gradients_find_their_places),
        OPS_TEST(several_views_at_once),
        OPS_TEST(how_many_views_there_are_is_told),
        OPS_TEST(several_dimensions_of_one_go),
        OPS_TEST(a_tensor_says_where_to_narrow),
        OPS_TEST(pieces_of_given_sizes),
        OPS_TEST(copy_broadcasts_and_casts),
        OPS_TEST(conversions_copy_only_what_differs),
        OPS_TEST(tensors_move_between_devices),
        OPS_TEST(fill_sets_every_element),
        OPS_TEST(gradients_pass_through_views),
        OPS_TEST(channels_and_pixels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
