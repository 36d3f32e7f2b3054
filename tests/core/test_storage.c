/* Storages as handles, tensors made from them, and tensors over the test's own memory. */
#include "tests/core/core_test.h"

#include "core/tensor/tensor.h"

#include <pthread.h>
#include <tenon/tenon.h>
#include <tenon/validation.h>

static tn_device cpu(void) {
    return tn_device_parse("cpu:0");
}

/* ---- handles ----------------------------------------------------------------------------- */

static void a_storage_outlives_its_tensors(void **state) {
    const float numbers[] = {1, 2, 3, 4};
    tn_tensor *t = tn_keep(tn_from_data(numbers, TN_SHAPE(2, 2), TN_F32, cpu()));
    tn_storage *s = tn_storage_keep(tn_storage_of(t));
    assert_ptr_equal(tn_storage_of(tn_select(t, 0, 1)), s);
    assert_int_equal(tn_storage_bytes(s), 16);
    assert_true(tn_device_equal(tn_storage_device(s), cpu()));
    assert_ptr_equal(tn_storage_address(s), tn_data(t));
    tn_scope_close(0);
    tn_drop(t);
    assert_int_equal(tni_tensors_alive(), 1); /* the handle */
    assert_memory_equal(tn_storage_address(s), numbers, sizeof numbers);
    assert_int_equal(tn_shutdown(), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "1 tensor is alive", "storages count", NULL);

    int64_t last;
    tn_tensor *again = tn_from_storage(s, TN_SHAPE(2), tn_no_ints(), 2, TN_F32);
    assert_non_null(again);
    tn_storage_drop(s);
    assert_int_equal(tn_item_i64(tn_select(again, 0, 1), &last), TN_OK);
    assert_int_equal(last, 4);
    tn_scope_close(0);
    assert_int_equal(tni_tensors_alive(), 0);
}

static void what_is_no_storage_is_told(void **state) {
    assert_null(tn_storage_of(NULL));
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_storage_of", NULL);
    assert_null(tn_storage_of(TN_NONE));
    assert_error(TN_ERR_INVALID_ARGUMENT, "TN_NONE", NULL);
    assert_null(tn_storage_keep(NULL));
    tn_storage_drop(NULL);
    assert_int_equal(tn_storage_bytes(NULL), 0);
    assert_int_equal(tn_storage_device(NULL).type, 0);
    assert_null(tn_storage_address(NULL));
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_storage_address", "NULL", NULL);
    assert_null(tn_from_storage(NULL, TN_SHAPE(1), tn_no_ints(), 0, TN_F32));
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_from_storage", "NULL", NULL);
    assert_int_equal(tn_error_status(), TN_OK);
}

static void memory_that_the_host_cannot_reach_has_no_address(void **state) {
    TN_SCOPE;
    tn_storage *s = tn_storage_of(tn_ones(TN_SHAPE(4), TN_F32, tn_device_parse("sim:0")));
    assert_null(tn_storage_address(s));
    assert_error(TN_ERR_UNSUPPORTED, "sim:0", NULL);
    double sum;
    tn_tensor *tail = tn_from_storage(s, TN_SHAPE(3), tn_no_ints(), 1, TN_F32);
    assert_int_equal(tn_item(tn_sum(tail), &sum), TN_OK);
    assert_true(sum == 3);
    tn_storage *empty = tn_storage_of(tn_empty(TN_SHAPE(0), TN_F32, cpu()));
    assert_null(tn_storage_address(empty));
    assert_int_equal(tn_error_status(), TN_OK);
    s = tn_storage_of(tn_empty(TN_SHAPE(3), TN_F64, tn_device_parse("meta")));
    assert_int_equal(tn_storage_bytes(s), 24);
    assert_int_equal(tn_numel(tn_from_storage(s, TN_SHAPE(6), tn_no_ints(), 0, TN_F32)), 6);
}

/* ---- tensors from storages --------------------------------------------------------------- */

static void a_tensor_from_a_storage_has_any_geometry(void **state) {
    TN_SCOPE;
    const float numbers[] = {0, 1, 2, 3, 4, 5};
    tn_tensor *t = tn_from_data(numbers, TN_SHAPE(6), TN_F32, cpu());
    tn_storage *s = tn_storage_of(t);
    tn_tensor *turned = tn_from_storage(s, TN_SHAPE(2, 2), TN_DIMS(1, 2), 1, TN_F32);
    float back[4];
    assert_int_equal(tn_to_host(turned, back, sizeof back), TN_OK);
    assert_true(back[0] == 1 && back[1] == 3 && back[2] == 2 && back[3] == 4);
    assert_true(tn_shares_storage(t, turned));
    uint64_t version = tn_version_of(t);
    tn_fill_(turned, tn_int(9));
    assert_int_equal(tn_version_of(t), version + 1);
    assert_int_equal(tn_to_host(t, back, 0), TN_ERR_INVALID_ARGUMENT);
    tn_error_clear();
    tn_tensor *bits = tn_from_storage(s, TN_SHAPE(1), tn_no_ints(), 0, TN_I64);
    assert_int_equal(tn_dtype_of(bits), TN_I64);
    int64_t value;
    assert_int_equal(tn_item_i64(bits, &value), TN_OK);
    assert_int_equal(value >> 32, 0x41100000); /* 9.0f */
}

static void what_does_not_lie_in_the_storage_is_refused(void **state) {
    TN_SCOPE;
    tn_storage *s = tn_storage_of(tn_zeros(TN_SHAPE(6), TN_F32, cpu()));
    static const struct {
        int64_t sizes[2], strides[2], offset;
    } wrong[] = {{{2, 4}, {3, 1}, 0},         {{2, 3}, {3, 1}, 1},         {{2, 2}, {1, 1}, -1},
                 {{7, 1}, {1, 1}, 0},         {{2, 2}, {-1, 1}, 3},        {{-2, 2}, {1, 1}, 0},
                 {{1, 1}, {1, 1}, INT64_MAX}, {{2, 2}, {INT64_MAX, 1}, 0}, {{1, 1}, {1, 1}, 6}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_null(tn_from_storage(s, tn_ints_of(wrong[i].sizes, 2),
                                    tn_ints_of(wrong[i].strides, 2), wrong[i].offset, TN_F32));
        assert_error(TN_ERR_SHAPE, "tn_from_storage", NULL);
    }
    assert_non_null(
        tn_from_storage(s, TN_SHAPE(0, 9), tn_no_ints(), 100, TN_F32)); /* no elements */
    assert_null(tn_from_storage(s, TN_SHAPE(4), tn_no_ints(), 0, TN_F64));
    assert_error(TN_ERR_SHAPE, "[4]", "f64", "24 bytes", NULL);
    assert_null(tn_from_storage(s, TN_SHAPE(INT64_MAX, 4), tn_no_ints(), 0, TN_F32));
    assert_error(TN_ERR_SHAPE, "63 bits", NULL);
    assert_null(tn_from_storage(s, TN_SHAPE(1), TN_DIMS(1, 1), 0, TN_F32));
    assert_error(TN_ERR_INVALID_ARGUMENT, "2 strides for 1 sizes", NULL);
    assert_null(tn_from_storage(s, tn_no_ints(), tn_no_ints(), 0, TN_F32));
    assert_error(TN_ERR_INVALID_ARGUMENT, "TN_SHAPE", NULL);
    assert_null(tn_from_storage(s, TN_SHAPE(1), tn_no_ints(), 0, TN_DTYPE_END));
    assert_error(TN_ERR_DTYPE, "no dtype", NULL);
}

static void a_storage_needs_no_memory_of_its_own(void **state) {
    tn_tensor *t = tn_keep(tn_ones(TN_SHAPE(4), TN_F32, cpu()));
    tni_alloc_fail_at(1);
    tn_storage *s = tn_storage_keep(tn_storage_of(t));
    tn_storage_drop(s);
    assert_int_equal(tni_alloc_fail_at(0), 0);
    tn_scope_close(0);
    tn_drop(t);
}

static tn_storage *handed;

static void *drop_from_other_thread(void *user) {
    for (int i = 0; i < 1000; i++)
        tn_storage_drop(tn_storage_keep(handed));
    tn_storage_drop(handed);
    return NULL;
}

static void threads_share_a_storage(void **state) {
    tn_tensor *t = tn_keep(tn_ones(TN_SHAPE(4), TN_F32, cpu()));
    tn_scope_close(0);
    pthread_t threads[2];
    handed = tn_storage_of(t);
    for (int i = 0; i < 2; i++) {
        tn_storage_keep(handed);
        pthread_create(&threads[i], NULL, drop_from_other_thread, NULL);
    }
    tn_drop(t);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(tni_tensors_alive(), 0);
}

/* ---- the test's own memory --------------------------------------------------------------- */

static int n_released;

static void note(void *context) {
    n_released += *(int *)context;
}

static void a_tensor_lies_over_the_callers_memory(void **state) {
    float numbers[6] = {0, 1, 2, 3, 4, 5};
    int by = 7;
    n_released = 0;
    tn_tensor *t = tn_from_blob(numbers, TN_SHAPE(2, 3), tn_no_ints(), TN_F32, cpu(), note, &by);
    assert_ptr_equal(tn_data(t), numbers);
    tn_tensor *turned =
        tn_from_blob(numbers + 1, TN_SHAPE(2, 2), TN_DIMS(1, 3), TN_F32, cpu(), NULL, NULL);
    tn_mul_scalar_(t, tn_int(2));
    assert_true(numbers[5] == 10);
    double sum;
    assert_int_equal(tn_item(tn_sum(turned), &sum), TN_OK);
    assert_true(sum == 2 + 8 + 4 + 10);
    tn_storage *s = tn_storage_keep(tn_storage_of(tn_select(t, 0, 1)));
    assert_ptr_equal(tn_storage_address(s), numbers);
    assert_int_equal(tn_storage_bytes(s), sizeof numbers);
    tn_scope_close(0);
    assert_int_equal(n_released, 0); /* the storage is still kept */
    tn_storage_drop(s);
    assert_int_equal(n_released, 7);
    tn_free(tn_from_blob(NULL, TN_SHAPE(0, 3), tn_no_ints(), TN_F32, cpu(), note, &by));
    assert_int_equal(n_released, 14);
}

static void a_blob_can_be_differentiated(void **state) {
    TN_SCOPE;
    float numbers[2] = {3, 4};
    tn_tensor *x = tn_set_requires_grad(
        tn_from_blob(numbers, TN_SHAPE(2), tn_no_ints(), TN_F32, cpu(), NULL, NULL), true);
    assert_int_equal(tn_backward(tn_sum(tn_mul(x, x))), TN_OK);
    float grad[2];
    assert_int_equal(tn_to_host(tn_grad(x), grad, sizeof grad), TN_OK);
    assert_true(grad[0] == 6 && grad[1] == 8);
}

static void a_wrong_blob_is_refused(void **state) {
    TN_SCOPE;
    _Alignas(8) char bytes[64] = {0};
    int by = 1;
    n_released = 0;
#define REFUSED(data, sizes, strides, dtype, device) \
    assert_null(tn_from_blob(data, sizes, strides, dtype, device, note, &by))
    REFUSED(NULL, TN_SHAPE(2), tn_no_ints(), TN_F32, cpu());
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_from_blob", "address of the first element", NULL);
    REFUSED(bytes + 2, TN_SHAPE(2), tn_no_ints(), TN_F32, cpu());
    assert_error(TN_ERR_INVALID_ARGUMENT, "a multiple of the 4 bytes of f32", NULL);
    REFUSED(bytes, TN_SHAPE(2, 2), TN_DIMS(-1, 1), TN_F32, cpu());
    assert_error(TN_ERR_SHAPE, "[-1, 1]", "not be negative", NULL);
    REFUSED(bytes, TN_SHAPE(2, -2), tn_no_ints(), TN_F32, cpu());
    assert_error(TN_ERR_SHAPE, "[2, -2]", "row-major", NULL);
    REFUSED(bytes, TN_SHAPE(INT64_MAX, 2), tn_no_ints(), TN_F32, cpu());
    assert_error(TN_ERR_SHAPE, "63 bits", NULL);
    REFUSED((void *)(UINTPTR_MAX - 7), TN_SHAPE(3), tn_no_ints(), TN_F32, cpu());
    assert_error(TN_ERR_INVALID_ARGUMENT, "address", NULL);
    REFUSED(bytes, TN_SHAPE(2), TN_DIMS(1, 1), TN_F32, cpu());
    assert_error(TN_ERR_INVALID_ARGUMENT, "2 strides for 1 sizes", NULL);
    REFUSED(bytes, tn_ints_of(NULL, 1), tn_no_ints(), TN_F32, cpu());
    assert_error(TN_ERR_INVALID_ARGUMENT, "at NULL", NULL);
    REFUSED(bytes, tn_ints_of((const int64_t[13]){0}, 13), tn_no_ints(), TN_F32, cpu());
    assert_error(TN_ERR_INVALID_ARGUMENT, "13 sizes", NULL);
    REFUSED(bytes, TN_SHAPE(2), tn_no_ints(), -1, cpu());
    assert_error(TN_ERR_DTYPE, "-1 is no dtype", NULL);
    REFUSED(bytes, TN_SHAPE(2), tn_no_ints(), TN_F32, tn_device_parse("sim:0"));
    assert_error(TN_ERR_UNSUPPORTED, "sim:0", "tn_from_data", NULL);
    /* the host's memory, and handles that are no addresses */
    tni_device_get(tn_device_parse("sim:0"))->host_memory = true;
    REFUSED(bytes, TN_SHAPE(2), tn_no_ints(), TN_F32, tn_device_parse("sim:0"));
    assert_error(TN_ERR_UNSUPPORTED, "sim:0", NULL);
    REFUSED(bytes, TN_SHAPE(2), tn_no_ints(), TN_F32, tn_device_parse("meta"));
    assert_error(TN_ERR_UNSUPPORTED, "meta", NULL);
    REFUSED(bytes, TN_SHAPE(2), tn_no_ints(), TN_F32, ((tn_device){99, 0}));
    assert_error(TN_ERR_DEVICE, "no device", NULL);
#undef REFUSED
    assert_int_equal(n_released, 0);
}

static void misaligned_storage_takes_no_wider_dtype(void **state) {
    TN_SCOPE;
    _Alignas(8) char bytes[20] = {0};
    tn_tensor *t = tn_from_blob(bytes + 4, TN_SHAPE(4), tn_no_ints(), TN_F32, cpu(), NULL, NULL);
    assert_null(tn_from_storage(tn_storage_of(t), TN_SHAPE(1), tn_no_ints(), 0, TN_F64));
    assert_error(TN_ERR_INVALID_ARGUMENT, "no multiple of the 8 bytes of f64", NULL);
}

static void validated_devices_take_no_foreign_memory(void **state) {
    float numbers[2] = {0};
    setenv("TENON_VALIDATE", "1", 1);
    tn_tensor *t = tn_from_blob(numbers, TN_SHAPE(2), tn_no_ints(), TN_F32, cpu(), NULL, NULL);
    unsetenv("TENON_VALIDATE");
    assert_null(t);
    assert_error(TN_ERR_UNSUPPORTED, "TENON_VALIDATE", NULL);
    assert_int_equal(tn_validation_count(), 0);
}

/* With streams the memory is let go only when they have passed. */
static bool passed_at_release;
static void note_passing(void *stream) {
    passed_at_release = tn_stream_query(stream) == TN_OK;
}

static void queued_work_is_waited_for(void **state) {
    fake.async = true;
    tni_device *d = open_fake();
    d->host_memory = true;
    float numbers[2] = {0}, more[2] = {1, 2};
    tn_tensor *t = tn_keep(tn_from_blob(numbers, TN_SHAPE(2), tn_no_ints(), TN_F32, d->id,
                                        note_passing, &d->default_stream));
    assert_non_null(t);
    tn_scope_close(0);
    fake_hold(true);
    assert_int_equal(tni_tensor_write(t, more, sizeof more), TN_OK);
    passed_at_release = false;
    tn_drop(t);
    assert_true(passed_at_release);
}

static void a_blob_survives_every_failing_allocation(void **state) {
    for (int streams = 0; streams < 2; streams++) {
        fake.async = streams;
        tni_device *d = open_fake();
        d->host_memory = true;
        float numbers[2] = {0};
        int by = 1;
        for (uint64_t n = 1;; n++) {
            n_released = 0;
            tni_scope_finish();
            tn_empty_cache(d->id);
            tni_alloc_fail_at(n);
            tn_tensor *t =
                tn_from_blob(numbers, TN_SHAPE(2), tn_no_ints(), TN_F32, d->id, note, &by);
            bool whole = tni_alloc_fail_at(0) < n;
            assert_int_equal(n_released, 0);
            if (!t)
                assert_error(TN_ERR_OUT_OF_MEMORY, "memory", NULL);
            tn_scope_close(0);
            assert_int_equal(n_released, t != NULL);
            if (whole)
                break;
        }
        assert_int_equal(tn_shutdown(), TN_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_storage_outlives_its_tensors),
        TEST(what_is_no_storage_is_told),
        TEST(memory_that_the_host_cannot_reach_has_no_address),
        TEST(a_tensor_from_a_storage_has_any_geometry),
        TEST(what_does_not_lie_in_the_storage_is_refused),
        TEST(a_storage_needs_no_memory_of_its_own),
        TEST(threads_share_a_storage),
        TEST(a_tensor_lies_over_the_callers_memory),
        TEST(a_blob_can_be_differentiated),
        TEST(a_wrong_blob_is_refused),
        TEST(misaligned_storage_takes_no_wider_dtype),
        TEST(validated_devices_take_no_foreign_memory),
        TEST(queued_work_is_waited_for),
        TEST(a_blob_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
