/* Shapes and strides as numbers. */
#include "tests/core/core_test.h"

#include "core/tensor/tensor.h"

#define LIST(...) ((int64_t[]){__VA_ARGS__})

static tn_tensor_view view_of(int32_t rank, const int64_t *sizes, const int64_t *strides) {
    tn_tensor_view v = {.dtype = TN_F32, .rank = rank, .sizes = sizes, .strides = strides};
    v.numel = 1;
    for (int32_t i = 0; i < rank; i++)
        v.numel *= sizes[i];
    return v;
}

static void strides_of_row_major(void **state) {
    int64_t strides[3];
    tni_contiguous_strides(3, LIST(2, 3, 4), strides);
    assert_memory_equal(strides, LIST(12, 4, 1), sizeof strides);
    tni_contiguous_strides(3, LIST(2, 0, 4), strides);
    assert_memory_equal(strides, LIST(4, 4, 1), sizeof strides);
}

static void counting_elements_notices_overflow(void **state) {
    int64_t n;
    assert_true(tni_numel(0, NULL, 8, &n));
    assert_int_equal(n, 1);
    assert_true(tni_numel(3, LIST(2, 0, 4), 8, &n));
    assert_int_equal(n, 0);
    assert_true(tni_numel(1, LIST(INT64_MAX), 1, &n));
    assert_false(tni_numel(1, LIST(INT64_MAX), 2, &n));
    assert_false(tni_numel(2, LIST((int64_t)1 << 32, (int64_t)1 << 31), 1, &n));
    assert_false(tni_numel(2, LIST(2, -3), 1, &n));
}

static void contiguity_ignores_dimensions_of_one(void **state) {
    tn_tensor_view v = view_of(3, LIST(2, 1, 3), LIST(3, 77, 1));
    assert_true(tni_is_contiguous(&v));
    v = view_of(2, LIST(3, 2), LIST(1, 3));
    assert_false(tni_is_contiguous(&v));
    v = view_of(2, LIST(2, 3), LIST(4, 1));
    assert_false(tni_is_contiguous(&v));
    v = view_of(2, LIST(0, 3), LIST(9, 9));
    assert_true(tni_is_contiguous(&v));
    v = view_of(0, NULL, NULL);
    assert_true(tni_is_contiguous(&v));
}

static void dense_is_any_order_without_holes(void **state) {
    tn_tensor_view v = view_of(3, LIST(3, 2, 4), LIST(1, 12, 3));
    assert_true(tni_is_dense(&v));
    v = view_of(2, LIST(2, 3), LIST(4, 1));
    assert_false(tni_is_dense(&v));
    v = view_of(2, LIST(2, 3), LIST(0, 1));
    assert_false(tni_is_dense(&v));
    v = view_of(2, LIST(2, 2), LIST(1, 1));
    assert_false(tni_is_dense(&v));
}

static void overlap_within_a_view(void **state) {
    tn_tensor_view v = view_of(2, LIST(2, 3), LIST(4, 1));
    assert_false(tni_may_overlap(&v));
    v = view_of(2, LIST(2, 3), LIST(0, 1));
    assert_true(tni_may_overlap(&v));
    v = view_of(2, LIST(2, 3), LIST(2, 1));
    assert_true(tni_may_overlap(&v));
    v = view_of(3, LIST(3, 2, 4), LIST(1, 12, 3));
    assert_false(tni_may_overlap(&v));
    v = view_of(2, LIST(1, 3), LIST(0, 2));
    assert_false(tni_may_overlap(&v));
}

static void overlap_between_views(void **state) {
    tni_device *d = open_fake();
    tn_tensor *t = tni_tensor_new(d, TN_F32, 1, LIST(10));
    tn_tensor *low = tni_tensor_view(t, 1, LIST(5), LIST(1), 0);
    tn_tensor *high = tni_tensor_view(t, 1, LIST(5), LIST(1), 5);
    tn_tensor *middle = tni_tensor_view(t, 1, LIST(5), LIST(1), 3);
    tn_tensor *same = tni_tensor_view(t, 1, LIST(5), LIST(1), 3);
    tn_tensor *empty = tni_tensor_view(t, 1, LIST(0), LIST(1), 3);
    tn_tensor *other = tni_tensor_new(d, TN_F32, 1, LIST(10));
    assert_false(tni_partial_overlap(low, high));
    assert_true(tni_partial_overlap(low, middle));
    assert_true(tni_partial_overlap(t, middle));
    assert_false(tni_partial_overlap(same, middle));
    assert_false(tni_partial_overlap(t, t));
    assert_false(tni_partial_overlap(t, empty));
    assert_false(tni_partial_overlap(t, other));
    uint64_t begin, end;
    tni_view_extent(&middle->view, &begin, &end);
    assert_int_equal(begin, t->storage->offset + 12);
    assert_int_equal(end, t->storage->offset + 32);
    tn_tensor *all[] = {t, low, high, middle, same, empty, other};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tn_drop(all[i]);
}

static void dimensions_wrap(void **state) {
    assert_int_equal(tni_wrap_dim(-1, 3, "x"), 2);
    assert_int_equal(tni_wrap_dim(2, 3, "x"), 2);
    assert_int_equal(tni_wrap_dim(0, 0, "x"), 0);
    assert_int_equal(tni_wrap_dim(-1, 0, "x"), 0);
    assert_int_equal(tni_wrap_dim(3, 3, "tn_sum: dim"), -1);
    assert_error(TN_ERR_SHAPE, "tn_sum: dim", "dimension 3", "rank 3", "-3 to 2", NULL);
    assert_int_equal(tni_wrap_dim(INT64_MIN, 3, "x"), -1);
    assert_error(TN_ERR_SHAPE, NULL);
}

static void shapes_as_text(void **state) {
    char text[TNI_SHAPE_TEXT];
    assert_string_equal(tni_shape_text(0, NULL, text), "[]");
    assert_string_equal(tni_shape_text(2, LIST(2, -3), text), "[2, -3]");
    int64_t wide[TN_MAX_RANK];
    for (int i = 0; i < TN_MAX_RANK; i++)
        wide[i] = INT64_MIN;
    assert_true(strlen(tni_shape_text(TN_MAX_RANK, wide, text)) < TNI_SHAPE_TEXT);
}

static void broadcasting(void **state) {
    int64_t out[TN_MAX_RANK];
    int32_t rank;
    assert_true(tni_broadcast(3, LIST(2, 1, 4), 2, LIST(3, 1), &rank, out));
    assert_int_equal(rank, 3);
    assert_memory_equal(out, LIST(2, 3, 4), 3 * sizeof *out);
    assert_true(tni_broadcast(0, NULL, 2, LIST(0, 1), &rank, out));
    assert_memory_equal(out, LIST(0, 1), 2 * sizeof *out);
    assert_true(tni_broadcast(1, LIST(1), 1, LIST(0), &rank, out));
    assert_int_equal(out[0], 0);
    assert_false(tni_broadcast(1, LIST(2), 1, LIST(0), &rank, out));
    assert_false(tni_broadcast(2, LIST(2, 3), 1, LIST(2), &rank, out));
    assert_int_equal(tn_error_status(), TN_OK);
    int64_t in_place[TN_MAX_RANK] = {3, 1};
    assert_true(tni_broadcast(2, in_place, 3, LIST(5, 3, 4), &rank, in_place));
    assert_memory_equal(in_place, LIST(5, 3, 4), 3 * sizeof *out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(strides_of_row_major),
        TEST(counting_elements_notices_overflow),
        TEST(contiguity_ignores_dimensions_of_one),
        TEST(dense_is_any_order_without_holes),
        TEST(overlap_within_a_view),
        TEST(overlap_between_views),
        TEST(dimensions_wrap),
        TEST(shapes_as_text),
        TEST(broadcasting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
