/* Writing by index, and indexing by lists of tensors of which some are left out. */
#include "tests/core/ops_test.h"

/* Comes with the next use of what was made, on a device that works behind the program. */
#define assert_out_of_range(expression) \
    do { \
        double number; \
        tn_tensor *made = (expression); \
        assert_true(!made || tn_item(tn_sum(made), &number) != TN_OK); \
        assert_int_equal(tn_error_status(), TN_ERR_INDEX_OUT_OF_RANGE); \
        tn_error_clear(); \
    } while (0)

static void the_last_of_equal_places_wins(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(3)), *i = of(TN_I64, TN_SHAPE(4), 2, 0, 2, 0);
    tn_tensor *src = of(TN_F32, TN_SHAPE(5), 10, 11, 12, -0.0, 99);
    tn_tensor *y = tn_scatter_src(x, 0, i, src);
    assert_elements(y, TN_SHAPE(3), 0, 1, 12);
    double *values = values_of(y);
    assert_true(signbit(values[0])); /* bits move, nothing is added */
    free(values);
    assert_elements(tn_index_copy(x, 0, i, tn_slice(src, 0, 0, 4)), TN_SHAPE(3), 0, 1, 12);
    tn_tensor *list[] = {i};
    assert_elements(tn_index_put(x, list, 1, tn_slice(src, 0, 0, 4)), TN_SHAPE(3), 0, 1, 12);
    assert_elements(tn_index_put(x, list, 1, tn_ones(TN_SHAPE(1)), true), TN_SHAPE(3), 2, 1, 4);

    src = requiring_grad(src);
    assert_ok(tn_backward(tn_sum(tn_scatter_src(x, 0, i, src))));
    assert_elements(tn_grad(src), TN_SHAPE(5), 0, 0, 1, 1, 0);
}

static void runs_are_reduced(void **state) {
    tn_tensor *x = tn_full(TN_SHAPE(3), tn_int(2), TN_I64);
    tn_tensor *i = of(TN_I32, TN_SHAPE(5), 1, 0, 1, 1, 0),
              *src = of(TN_I64, TN_SHAPE(5), 3, 4, 5, 6, 7);
    assert_elements(tn_scatter_reduce_two(x, 0, i, src, "prod"), TN_SHAPE(3), 56, 180, 2);
    assert_elements(tn_scatter_reduce_two(x, 0, i, src, "amin", false), TN_SHAPE(3), 4, 3, 2);
    assert_elements(tn_scatter_reduce_two(x, 0, i, src, "mean"), TN_SHAPE(3), 4, 4, 2);
    assert_elements(tn_scatter_reduce_two(x, 0, i, src, "sum", false), TN_SHAPE(3), 11, 14, 2);
}

static void what_is_left_out_of_a_list_keeps_a_dimension(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(2, 3)), *i = of(TN_I64, TN_SHAPE(2), -1, 0);
    tn_tensor *list[] = {TN_NONE, i}, *failed[] = {NULL, i}, *many[TN_MAX_RANK + 1];
    assert_elements(tn_index(x, list, 2), TN_SHAPE(2, 2), 2, 0, 5, 3);
    assert_elements(tn_index(x, list, 1), TN_SHAPE(2, 3), 0, 1, 2, 3, 4, 5);
    assert_elements(tn_index(x, NULL, 0), TN_SHAPE(2, 3), 0, 1, 2, 3, 4, 5);
    assert_fails(tn_index(x, failed, 2), TN_ERR_INVALID_ARGUMENT, "tn_index", "element 0");
    assert_fails(tn_cat(list, 2), TN_ERR_INVALID_ARGUMENT, "tn_cat", "element 0"); /* Tensor[] */
    assert_fails(tn_index(x, list + 1, 1 + (uint64_t)UINT32_MAX), TN_ERR_INVALID_ARGUMENT,
                 "dimensions at most");
    for (int k = 0; k <= TN_MAX_RANK; k++)
        many[k] = TN_NONE;
    assert_fails(tn_index(x, many, TN_MAX_RANK + 1), TN_ERR_INVALID_ARGUMENT, "tn_index",
                 "dimensions at most");

    /* a boxed call has NULL for it */
    tn_tensor *boxed[] = {NULL, i};
    tn_cell cells[] = {{.tag = TN_CELL_TENSOR, .v.pointer = x},
                       {.tag = TN_CELL_TENSORS, .n = 2, .v.pointer = boxed}};
    tn_cell ret;
    assert_ok(tn_op_call(tn_op_find("index.Tensor"), cells, 2, &ret));
    assert_elements(tn_give(ret.v.pointer), TN_SHAPE(2, 2), 2, 0, 5, 3);
}

static void masks_and_places_index_together(void **state) {
    tn_tensor *x = counting(TN_F64, TN_SHAPE(2, 3, 2));
    tn_tensor *mask = of(TN_BOOL, TN_SHAPE(2, 3), 0, 1, 0, 1, 1, 0),
              *one = of(TN_I64, TN_SHAPE(1), 1);
    tn_tensor *list[] = {mask, one}, *whole[] = {of(TN_BOOL, TN_SCALAR_SHAPE, 0)};
    x = requiring_grad(x);
    tn_tensor *y = tn_index(x, list, 2);
    assert_elements(y, TN_SHAPE(3), 3, 7, 9);
    assert_ok(tn_backward(tn_sum(tn_mul(y, y))));
    assert_elements(tn_grad(x), TN_SHAPE(2, 3, 2), 0, 0, 0, 6, 0, 0, 0, 14, 0, 18, 0, 0);
    assert_shape(tn_index(x, whole, 1), 0, 2, 3, 2);
    tn_tensor *z = tn_index_put(tn_detach(x), list, 1, tn_full(TN_SHAPE(2), tn_int(-1), TN_F64));
    assert_elements(z, TN_SHAPE(2, 3, 2), 0, 1, -1, -1, 4, 5, -1, -1, -1, -1, 10, 11);
}

static void places_of_others_are_out_of_range(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(3, 4));
    tn_tensor *list[] = {of(TN_I64, TN_SHAPE(1), 1), of(TN_I64, TN_SHAPE(1), 4)};
    assert_out_of_range(tn_index(x, list, 2));
    list[1] = of(TN_I64, TN_SHAPE(1), -5);
    assert_out_of_range(tn_index(x, list, 2));
    assert_out_of_range(tn_index_put(x, list, 2, tn_ones(TN_SCALAR_SHAPE)));
    assert_out_of_range(tn_take(x, of(TN_I64, TN_SHAPE(1), -13)));
    tn_tensor *all = tn_full(TN_SHAPE(3, 4), tn_bool(true));
    assert_out_of_range(tn_masked_scatter(x, all, tn_ones(TN_SHAPE(11))));
    assert_fails(tn_scatter_value(tn_ones(TN_SHAPE(0)), 0, of(TN_I64, TN_SHAPE(1), 0), tn_int(1)),
                 TN_ERR_INDEX_OUT_OF_RANGE, "tn_scatter_value", "no elements");
    tn_tensor *none = tn_ones(TN_SHAPE(0)), *first = of(TN_I64, TN_SHAPE(1), 0);
    assert_fails(tn_scatter_add(none, 0, first, tn_ones(TN_SHAPE(1))), TN_ERR_INDEX_OUT_OF_RANGE,
                 "tn_scatter_add", "no elements");
    assert_fails(tn_index_add(none, 0, first, tn_ones(TN_SHAPE(1))), TN_ERR_INDEX_OUT_OF_RANGE,
                 "tn_index_add", "no elements");
}

static void a_put_shares_nothing_with_its_arguments(void **state) {
    tn_tensor *x = tn_zeros(TN_SHAPE(2, 3)), *values = tn_ones(TN_SHAPE(2, 3));
    tn_tensor *none[] = {TN_NONE};
    tn_tensor *y = tn_index_put(x, none, 1, values);
    tn_zero_(values);
    assert_elements(y, TN_SHAPE(2, 3), 1, 1, 1, 1, 1, 1);
}

static void slices_that_do_not_fit_are_refused(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(3, 2)), *index = of(TN_I64, TN_SHAPE(2), 0, 2);
    tn_tensor *source = counting(TN_F32, TN_SHAPE(2, 2));
    assert_elements(tn_index_reduce(x, 0, index, source, "amax"), TN_SHAPE(3, 2), 0, 1, 2, 3, 4, 5);
    assert_fails(tn_index_reduce(x, 1, index, source, "amax"), TN_ERR_SHAPE, "tn_index_reduce",
                 "[3, 2]");
    assert_fails(tn_index_reduce(x, 0, of(TN_I64, TN_SHAPE(3), 0, 1, 2), source, "amax"),
                 TN_ERR_SHAPE, "tn_index_reduce", "index [3]");
    assert_fails(tn_index_reduce(x, 2, index, source, "amax"), TN_ERR_SHAPE, "tn_index_reduce");
    assert_null(tn_index_reduce(x, 0, index, source, "sum"));
    assert_error(TN_ERR_INVALID_ARGUMENT, "amax", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(the_last_of_equal_places_wins),
        OPS_TEST(runs_are_reduced),
        OPS_TEST(what_is_left_out_of_a_list_keeps_a_dimension),
        OPS_TEST(masks_and_places_index_together),
        OPS_TEST(places_of_others_are_out_of_range),
        OPS_TEST(a_put_shares_nothing_with_its_arguments),
        OPS_TEST(slices_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
