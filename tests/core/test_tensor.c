/* The life of tensors and storages, data in and out, what a program may ask. */
#include "tests/core/core_test.h"

#include "core/tensor/tensor.h"

#include <math.h>
#include <pthread.h>

/* The fake device cannot store f64 by itself; here it can. */
static tni_device *open_storing_all(void) {
    tni_device *d = open_fake();
    d->dtypes = TN_DTYPES_ALL;
    return d;
}

static tn_tensor *make(tni_device *d, tn_dtype dtype, tn_ints shape) {
    return tni_tensor_new(d, dtype, (int32_t)shape.n, shape.data);
}

static void a_new_tensor_is_what_was_asked_for(void **state) {
    tni_device *d = open_storing_all();
    int64_t before = tni_tensors_alive();
    tn_tensor *t = make(d, TN_I16, TN_SHAPE(2, 3, 4));
    assert_non_null(t);
    assert_int_equal(tni_tensors_alive(), before + 1);
    assert_int_equal(tn_rank(t), 3);
    assert_int_equal(tn_numel(t), 24);
    assert_int_equal(tn_size(t, -1), 4);
    assert_int_equal(tn_stride(t, 0), 12);
    assert_int_equal(tn_stride(t, 1), 4);
    assert_int_equal(tn_dtype_of(t), TN_I16);
    assert_true(tn_device_equal(tn_device_of(t), d->id));
    assert_true(tn_is_contiguous(t));
    assert_int_equal(tn_storage_offset(t), 0);
    assert_int_equal(tn_version_of(t), 0);
    assert_int_equal(t->storage->bytes, 48);
    assert_int_equal(t->head.backends, d->backends);
    assert_int_equal(t->head.keys, TN_KEY_BIT(TN_KEY_INPLACE_OR_VIEW));
    assert_ptr_equal(t->view.sizes, t->sizes);
    assert_int_equal(t->view.struct_size, sizeof(tn_tensor_view));
    assert_int_equal(stats_of(d).requested_bytes, 48);
    tn_drop(t);
    assert_int_equal(tni_tensors_alive(), before);
    assert_int_equal(stats_of(d).requested_bytes, 0);
}

static void empty_and_scalar_tensors_are_tensors(void **state) {
    tni_device *d = open_storing_all();
    tn_tensor *scalar = make(d, TN_F64, TN_SCALAR_SHAPE);
    assert_int_equal(tn_rank(scalar), 0);
    assert_int_equal(tn_numel(scalar), 1);
    assert_int_equal(scalar->storage->bytes, 8);
    tn_tensor *empty = make(d, TN_F32, TN_SHAPE(2, 0, 3));
    assert_int_equal(tn_numel(empty), 0);
    assert_null(empty->storage->block);
    assert_int_equal(empty->storage->bytes, 0);
    assert_int_equal(tn_stride(empty, 0), 3);
    assert_true(tn_is_contiguous(empty));
    tn_drop(scalar);
    tn_drop(empty);
}

static void a_meta_tensor_has_no_memory(void **state) {
    tni_device *meta = tni_device_get(tn_device_parse("meta"));
    assert_non_null(meta);
    tn_tensor *t = make(meta, TN_F32, TN_SHAPE(1 << 20, 1 << 20));
    assert_non_null(t);
    assert_null(t->storage->block);
    assert_int_equal(t->storage->bytes, (uint64_t)4 << 40);
    float value = 1;
    assert_int_equal(tni_tensor_write(t, &value, 4), TN_OK);
    assert_int_equal(tni_tensor_read(t, &value, 4, "test"), TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED, "meta", "no data", NULL);
    assert_null(tn_data(t));
    tn_error_clear();
    tn_drop(t);
}

static void what_cannot_be_a_tensor_is_refused_with_its_shape(void **state) {
    tni_device *d = open_storing_all();
    assert_null(make(d, TN_F32, TN_SHAPE(2, -1)));
    assert_error(TN_ERR_SHAPE, "[2, -1]", "f32", "dimension 1", "negative", NULL);
    assert_null(make(d, TN_F64, TN_SHAPE((int64_t)1 << 40, (int64_t)1 << 30)));
    assert_error(TN_ERR_SHAPE, "[1099511627776, 1073741824]", "f64", "63 bits", NULL);
    assert_null(make(d, TN_F64, TN_SHAPE((int64_t)1 << 61)));
    assert_error(TN_ERR_SHAPE, "63 bits", NULL);
    assert_null(make(d, TN_F32, TN_SHAPE(0, INT64_MAX, INT64_MAX)));
    assert_error(TN_ERR_SHAPE, "63 bits", NULL);
    assert_null(make(d, 13, TN_SHAPE(2)));
    assert_error(TN_ERR_DTYPE, "13 is no dtype", NULL);
    assert_null(make(d, -1, TN_SHAPE(2)));
    assert_error(TN_ERR_DTYPE, "-1 is no dtype", NULL);
    int64_t ones[TN_MAX_RANK + 1];
    for (int i = 0; i <= TN_MAX_RANK; i++)
        ones[i] = 1;
    assert_null(tni_tensor_new(d, TN_F32, TN_MAX_RANK + 1, ones));
    assert_error(TN_ERR_SHAPE, "rank 13", "0 to 12", NULL);
    d->dtypes &= ~TN_DTYPE_BIT(TN_F64);
    assert_null(make(d, TN_F64, TN_SHAPE(2)));
    assert_error(TN_ERR_DTYPE, "fake:0", "f64", "[2]", NULL);
}

static void a_storage_lives_as_long_as_its_last_view(void **state) {
    tni_device *d = open_storing_all();
    int64_t before = tni_tensors_alive();
    int32_t numbers[6] = {0, 1, 2, 3, 4, 5}, three[3];
    tn_tensor *t = tni_keep_opt(tn_from_data(numbers, TN_SHAPE(2, 3), TN_I32, d->id));
    tn_scope_close(0);
    tn_tensor *row = tni_tensor_view(t, 1, (int64_t[]){3}, (int64_t[]){1}, 3);
    tn_tensor *column = tni_tensor_view(row, 1, (int64_t[]){2}, (int64_t[]){3}, 1);
    tn_tensor *alias = tni_tensor_alias(row);
    assert_true(tn_shares_storage(t, column));
    assert_int_equal(tn_storage_offset(row), 3);
    assert_int_equal(tn_storage_offset(alias), 3);
    atomic_fetch_add(&t->storage->version, 1);
    assert_int_equal(tn_version_of(column), 1);
    tn_drop(t);
    assert_int_equal(stats_of(d).requested_bytes, 24);
    assert_int_equal(tn_to_host(row, three, sizeof three), TN_OK);
    assert_memory_equal(three, numbers + 3, sizeof three);
    assert_int_equal(tn_to_host(column, three, 8), TN_OK);
    assert_int_equal(three[0], 1);
    assert_int_equal(three[1], 4);
    tn_drop(row);
    tn_drop(column);
    assert_int_equal(stats_of(d).requested_bytes, 24);
    tn_drop(alias);
    assert_int_equal(stats_of(d).requested_bytes, 0);
    assert_int_equal(tni_tensors_alive(), before);
}

static void a_view_past_the_storage_is_refused(void **state) {
    tni_device *d = open_storing_all();
    tn_tensor *t = make(d, TN_F32, TN_SHAPE(2, 3));
    assert_null(tni_tensor_view(t, 2, (int64_t[]){2, 3}, (int64_t[]){3, 1}, 1));
    assert_error(
        TN_ERR_SHAPE,
        "tn_as_strided: sizes [2, 3], strides [3, 1], offset 1 of f32 need 28 bytes, storage"
        " has 24",
        NULL);
    assert_null(tni_tensor_view(t, 1, (int64_t[]){3}, (int64_t[]){INT64_MAX / 2}, 0));
    assert_error(TN_ERR_SHAPE, "63 bits", NULL);
    assert_null(tni_tensor_view(t, 1, (int64_t[]){3}, (int64_t[]){-1}, 2));
    assert_error(TN_ERR_SHAPE, "negative", NULL);
    assert_null(tni_tensor_view(t, 1, (int64_t[]){-3}, (int64_t[]){1}, 0));
    assert_error(TN_ERR_SHAPE, "negative", NULL);
    assert_null(tni_tensor_view(t, 1, (int64_t[]){1}, (int64_t[]){1}, -1));
    assert_error(TN_ERR_SHAPE, "offset -1", NULL);
    assert_null(tni_tensor_view(t, 13, t->sizes, t->strides, 0));
    assert_error(TN_ERR_SHAPE, "rank 13", NULL);
    tn_tensor *broadcast = tni_tensor_view(t, 2, (int64_t[]){5, 6}, (int64_t[]){0, 1}, 0);
    assert_int_equal(tn_numel(broadcast), 30);
    tn_tensor *empty = tni_tensor_view(t, 2, (int64_t[]){0, 6}, (int64_t[]){7, 1}, 6);
    assert_int_equal(tn_numel(empty), 0);
    tn_drop(broadcast);
    tn_drop(empty);
    tn_drop(t);
}

static void strided_memory_is_as_large_as_its_strides_reach(void **state) {
    tni_device *d = open_storing_all();
    tn_tensor *t = tni_tensor_new_strided(d, TN_F32, 2, (int64_t[]){2, 3}, (int64_t[]){1, 2});
    assert_int_equal(t->storage->bytes, 24);
    assert_false(tn_is_contiguous(t));
    tn_drop(t);
    t = tni_tensor_new_strided(d, TN_F32, 2, (int64_t[]){2, 3}, (int64_t[]){8, 1});
    assert_int_equal(t->storage->bytes, 44);
    tn_drop(t);
    assert_null(tni_tensor_new_strided(d, TN_F32, 1, (int64_t[]){2}, (int64_t[]){-8}));
    assert_error(TN_ERR_SHAPE, "[-8]", "negative", NULL);
    assert_null(
        tni_tensor_new_strided(d, TN_F32, 2, (int64_t[]){4, 4}, (int64_t[]){INT64_MAX / 3, 1}));
    assert_error(TN_ERR_SHAPE, "63 bits", NULL);
}

static int released;
static void note_release(void *user) {
    released += *(int *)user;
}

static void foreign_memory_is_released_once_by_its_owner(void **state) {
    tni_device *d = open_storing_all();
    float numbers[4] = {1, 2, 3, 4};
    int by = 7;
    released = 0;
    tn_tensor *t = tni_tensor_foreign(d, TN_F32, 1, (int64_t[]){4}, (int64_t[]){1},
                                      (tn_memory)(uintptr_t)numbers, numbers, sizeof numbers,
                                      note_release, &by);
    assert_ptr_equal(tn_data(t), numbers);
    tn_tensor *tail = tni_tensor_view(t, 1, (int64_t[]){2}, (int64_t[]){1}, 2);
    tn_drop(t);
    assert_int_equal(released, 0);
    assert_ptr_equal(tn_data(tail), numbers + 2);
    double value;
    tn_tensor *last = tni_tensor_view(tail, 0, NULL, NULL, 3);
    assert_int_equal(tn_item(last, &value), TN_OK);
    assert_true(value == 4);
    tn_drop(last);
    tn_drop(tail);
    assert_int_equal(released, 7);
    assert_null(tni_tensor_foreign(d, TN_F64, 1, (int64_t[]){4}, (int64_t[]){1}, 1, numbers,
                                   sizeof numbers, note_release, &by));
    assert_error(TN_ERR_SHAPE, "16 bytes", "[4]", "f64", NULL);
    assert_int_equal(released, 7);
}

static void data_goes_in_and_comes_out(void **state) {
    tni_device *d = open_storing_all();
    TN_SCOPE;
    double numbers[2][3] = {{1, -2, 3}, {4, 5, 1e300}}, back[6];
    tn_tensor *t = tn_from_data(numbers, TN_SHAPE(2, 3), TN_F64, d->id);
    assert_int_equal(tn_scope_held(), 1);
    assert_int_equal(tn_to_host(t, back, sizeof back), TN_OK);
    assert_memory_equal(back, numbers, sizeof back);
    tn_tensor *turned = tni_tensor_view(t, 2, (int64_t[]){3, 2}, (int64_t[]){1, 3}, 0);
    assert_int_equal(tn_to_host(turned, back, sizeof back), TN_OK);
    assert_true(back[1] == 4 && back[4] == 3);
    tn_drop(turned);
    assert_int_equal(tn_to_host(t, back, 40), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "40 bytes", "[2, 3] of f64", "48", NULL);
    assert_int_equal(tn_to_host(t, NULL, 48), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "out is NULL", NULL);
    tn_tensor *nothing = tn_from_data(NULL, TN_SHAPE(0), TN_F32, d->id);
    assert_non_null(nothing);
    assert_int_equal(tn_to_host(nothing, NULL, 0), TN_OK);
}

static void bad_data_is_refused(void **state) {
    tni_device *d = open_storing_all();
    uint8_t bytes[3] = {0, 1, 7};
    assert_null(tn_from_data(NULL, TN_SHAPE(2), TN_F32, d->id));
    assert_error(TN_ERR_INVALID_ARGUMENT, "data is NULL", NULL);
    assert_null(tn_from_data(bytes, tn_no_ints(), TN_U8, d->id));
    assert_error(TN_ERR_INVALID_ARGUMENT, "TN_SHAPE", NULL);
    assert_null(tn_from_data(bytes, tn_ints_of(NULL, 2), TN_U8, d->id));
    assert_error(TN_ERR_INVALID_ARGUMENT, "at NULL", NULL);
    assert_null(tn_from_data(bytes, TN_SHAPE(3), TN_BOOL, d->id));
    assert_error(TN_ERR_INVALID_ARGUMENT, "element 2", "is 7", NULL);
    assert_null(tn_from_data(bytes, TN_SHAPE(3), TN_DTYPE_NONE, d->id));
    assert_error(TN_ERR_DTYPE, NULL);
    assert_null(tn_from_data(bytes, TN_SHAPE(3), TN_U8, (tn_device){63, 5}));
    assert_int_not_equal(tn_error_status(), TN_OK);
    tn_error_clear();
    assert_int_equal(tn_scope_held(), 0);
}

static void an_item_is_the_one_element(void **state) {
    tni_device *d = open_storing_all();
    TN_SCOPE;
    double value;
    int64_t whole;
    tn_scalar scalar;
    int64_t big = ((int64_t)1 << 53) + 1;
    tn_tensor *t = tn_from_data(&big, TN_SHAPE(1, 1), TN_I64, d->id);
    assert_int_equal(tn_item_i64(t, &whole), TN_OK);
    assert_int_equal(whole, big);
    float minus = -2.75f;
    t = tn_from_data(&minus, TN_SCALAR_SHAPE, TN_F32, d->id);
    assert_int_equal(tn_item(t, &value), TN_OK);
    assert_true(value == -2.75);
    assert_int_equal(tn_item_i64(t, &whole), TN_OK);
    assert_int_equal(whole, -2);
    bool yes = true;
    t = tn_from_data(&yes, TN_SCALAR_SHAPE, TN_BOOL, d->id);
    assert_int_equal(tni_tensor_scalar(t, &scalar, "test"), TN_OK);
    assert_int_equal(scalar.tag, TN_CELL_BOOL);
    assert_int_equal(tn_item(t, &value), TN_OK);
    assert_true(value == 1);
    double far = 1e19;
    t = tn_from_data(&far, TN_SCALAR_SHAPE, TN_F64, d->id);
    assert_int_equal(tn_item_i64(t, &whole), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "1e+19", NULL);
    far = NAN;
    t = tn_from_data(&far, TN_SCALAR_SHAPE, TN_F64, d->id);
    assert_int_equal(tn_item_i64(t, &whole), TN_ERR_INVALID_ARGUMENT);
    tn_error_clear();
    t = tn_from_data((float[]){1, 2}, TN_SHAPE(2), TN_F32, d->id);
    assert_int_equal(tn_item(t, &value), TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "[2]", "2 elements", NULL);
}

static void null_answers_without_a_new_error(void **state) {
    double value;
    tn_fail(TN_ERR_INTERNAL, "the first");
    assert_int_equal(tn_item(NULL, &value), TN_ERR_INTERNAL);
    assert_int_equal(tn_size(NULL, 0), -1);
    assert_null(tn_to_string(NULL));
    assert_int_equal(tn_error_suppressed(), 0);
    assert_error(TN_ERR_INTERNAL, "the first", NULL);
    assert_int_equal(tn_item(NULL, &value), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_item", "NULL", NULL);
    assert_int_equal(tn_rank(NULL), -1);
    assert_int_equal(tn_rank(TN_NONE), -1);
    assert_int_equal(tn_sizes(NULL).n, -1);
    assert_int_equal(tn_numel(NULL), -1);
    assert_int_equal(tn_dtype_of(NULL), TN_DTYPE_NONE);
    assert_int_equal(tn_device_of(NULL).type, 0);
    assert_null(tn_keep(NULL));
    assert_ptr_equal(tn_keep(TN_NONE), TN_NONE);
    tn_drop(NULL);
    tn_drop(TN_NONE);
    tn_free(NULL);
    assert_false(tn_shares_storage(NULL, NULL));
    assert_int_equal(tn_error_status(), TN_OK);
}

static void a_dimension_that_is_not_there_is_an_error(void **state) {
    tni_device *d = open_storing_all();
    tn_tensor *t = make(d, TN_F32, TN_SHAPE(2, 3));
    assert_int_equal(tn_size(t, 2), -1);
    assert_error(TN_ERR_SHAPE, "tn_size", "dimension 2", "-2 to 1", NULL);
    tn_drop(t);
    t = make(d, TN_F32, TN_SCALAR_SHAPE);
    assert_int_equal(tn_size(t, 0), -1);
    assert_error(TN_ERR_SHAPE, "rank 0", NULL);
    tn_drop(t);
}

/* Makes and drops a tensor with the n-th call of host memory or of the plugin failing, for every n
 * until none fails. */
static void no_failing_allocation_leaks_or_goes_unnoticed(void **state) {
    tni_device *d = open_storing_all();
    for (int where = 0; where < 2; where++) {
        for (uint64_t n = 1;; n++) {
            tn_empty_cache(d->id);
            uint64_t (*fail_at)(uint64_t) = where ? fake_fail_at : tni_alloc_fail_at;
            fail_at(n);
            TN_SCOPE;
            float numbers[300] = {0};
            tn_tensor *t = tn_from_data(numbers, TN_SHAPE(3, 100), TN_F32, d->id);
            char *text = tn_to_string(t);
            uint64_t made = fail_at(0);
            assert_int_equal(text == NULL, tn_error_status() != TN_OK);
            tn_string_free(text);
            tn_error_clear();
            if (made < n)
                break;
        }
    }
    tn_scope_close(0);
    assert_int_equal(tni_tensors_alive(), 0);
}

static void *make_many(void *device) {
    tn_tensor **kept = malloc(100 * sizeof *kept);
    for (int i = 0; i < 100; i++)
        kept[i] = tni_tensor_new(device, TN_F32, 1, (int64_t[]){8});
    return kept;
}

static void tensors_are_counted_over_threads(void **state) {
    tni_device *d = open_storing_all();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, make_many, d);
    void *kept[4];
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], &kept[i]);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tni_tensors_alive(), 400 - 100 * i);
        for (int k = 0; k < 100; k++)
            tn_drop(((tn_tensor **)kept[i])[k]);
        free(kept[i]);
    }
    assert_int_equal(tni_tensors_alive(), 0);
}

static void inference_tensors_take_no_part_in_autograd(void **state) {
    tni_device *d = open_storing_all();
    tni_fresh_state before = tni_fresh;
    tni_fresh = (tni_fresh_state){0, TNI_TENSOR_INFERENCE};
    tn_tensor *t = make(d, TN_F32, TN_SHAPE(2));
    tni_fresh = before;
    tn_tensor *view = tni_tensor_alias(t);
    assert_int_equal(view->head.keys, 0);
    assert_int_equal(view->flags, TNI_TENSOR_INFERENCE);
    tn_drop(t);
    tn_drop(view);
}

static void recording_a_stream_reaches_the_block(void **state) {
    fake.async = true;
    tni_device *d = open_storing_all();
    tn_stream *other = tn_stream_create(d->id, 0);
    tn_tensor *t = make(d, TN_F32, TN_SHAPE(1000));
    assert_int_equal(tn_record_stream(t, other), TN_OK);
    assert_int_equal(tn_record_stream(NULL, other), TN_ERR_INVALID_ARGUMENT);
    tn_error_clear();
    assert_int_equal(tn_record_stream(t, NULL), TN_ERR_INVALID_ARGUMENT);
    tn_error_clear();
    tni_device *meta = tni_device_get(tn_device_parse("meta"));
    tn_tensor *no_data = make(meta, TN_F32, TN_SHAPE(1));
    assert_int_equal(tn_record_stream(no_data, other), TN_ERR_DEVICE);
    assert_error(TN_ERR_DEVICE, "meta", "fake:0", NULL);
    tn_drop(no_data);
    tn_drop(t);
    tn_stream_drop(other);
}

static void an_asynchronous_error_comes_out_with_the_data(void **state) {
    fake.async = true;
    tni_device *d = open_storing_all();
    float x = 3, y = 0;
    tn_tensor *t = tn_from_data(&x, TN_SCALAR_SHAPE, TN_F32, d->id);
    fake_stream_error(tn_current_stream(d->id)->handle, TN_ERR_INDEX_OUT_OF_RANGE, "index 9");
    assert_int_equal(tn_to_host(t, &y, 4), TN_ERR_INDEX_OUT_OF_RANGE);
    assert_error(TN_ERR_INDEX_OUT_OF_RANGE, "index 9", NULL);
    assert_int_equal(tn_to_host(t, &y, 4), TN_OK);
    assert_true(y == 3);
    tn_scope_close(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_new_tensor_is_what_was_asked_for),
        TEST(empty_and_scalar_tensors_are_tensors),
        TEST(a_meta_tensor_has_no_memory),
        TEST(what_cannot_be_a_tensor_is_refused_with_its_shape),
        TEST(a_storage_lives_as_long_as_its_last_view),
        TEST(a_view_past_the_storage_is_refused),
        TEST(strided_memory_is_as_large_as_its_strides_reach),
        TEST(foreign_memory_is_released_once_by_its_owner),
        TEST(data_goes_in_and_comes_out),
        TEST(bad_data_is_refused),
        TEST(an_item_is_the_one_element),
        TEST(null_answers_without_a_new_error),
        TEST(a_dimension_that_is_not_there_is_an_error),
        TEST(no_failing_allocation_leaks_or_goes_unnoticed),
        TEST(tensors_are_counted_over_threads),
        TEST(inference_tensors_take_no_part_in_autograd),
        TEST(recording_a_stream_reaches_the_block),
        TEST(an_asynchronous_error_comes_out_with_the_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
