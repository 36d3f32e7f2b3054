/* Pinned host memory: used again when streams have passed, given back, never lost. */
#include "tests/core/allocator_test.h"

static void test_pinned_memory_is_reused_when_streams_have_passed(void **state) {
    fake.async = true;
    tni_device *d = open_fake();
    fake_hold(true);
    void *a = tn_pinned_alloc(d->id, 5000);
    assert_non_null(a);
    memset(a, 1, 5000);
    assert_int_equal(fake_count().live_pinned_bytes, 8192);
    tn_pinned_free(a);
    void *b = tn_pinned_alloc(d->id, 5000);
    assert_ptr_not_equal(a, b);
    fake_advance(d->default_stream.handle);
    void *c = tn_pinned_alloc(d->id, 8192);
    assert_ptr_equal(c, a);
    tn_pinned_free(b);
    tn_pinned_free(c);
    tn_pinned_free(NULL);
    tn_pinned_free(c);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_pinned_free", NULL);
    assert_int_equal(tn_empty_cache(d->id), TN_OK);
    assert_int_equal(fake_count().live_pinned_bytes, 0);
}

static void test_pinned_memory_survives_failures(void **state) {
    fake.async = true;
    tni_device *d = open_fake();
    fake_fail_at(1); /* the first answer is taken for a full device */
    void *a = tn_pinned_alloc(d->id, 100);
    assert_non_null(a);
    tni_alloc_fail_at(1);
    assert_null(tn_pinned_alloc(d->id, 100));
    assert_error(TN_ERR_OUT_OF_MEMORY, "pinned", NULL);
    tni_alloc_fail_at(1); /* no memory for the mark */
    tn_pinned_free(a);
    tni_alloc_fail_at(0);
    assert_int_equal(tn_error_status(), TN_OK);
    assert_ptr_equal(tn_pinned_alloc(d->id, 100), a);
    fake_fail_at(1);
    tn_pinned_free(a);
    fake_fail_at(0);
    assert_null(tn_pinned_alloc(d->id, UINT64_MAX));
    assert_error(TN_ERR_OUT_OF_MEMORY, "fake:0", NULL);
    assert_non_null(tn_pinned_alloc(d->id, 0)); /* shutdown takes back what was not freed */
}

static void test_the_owner_of_pinned_memory_is_known(void **state) {
    fake.n_devices = 2;
    tni_device *d = open_fake();
    tn_device second = tn_device_parse("fake:1");
    char *a = tn_pinned_alloc(d->id, 5000), *b = tn_pinned_alloc(second, 100);
    assert_true(tn_device_equal(tn_pinned_owner(a), d->id));
    assert_true(tn_device_equal(tn_pinned_owner(a + 4999), d->id));
    assert_true(tn_device_equal(tn_pinned_owner(b + 50), second));
    assert_int_equal(tn_pinned_owner(&d).type, 0);
    assert_int_equal(tn_pinned_owner(NULL).type, 0);
    tn_pinned_free(a);
    assert_int_equal(tn_pinned_owner(a).type, 0);
    assert_int_equal(tn_error_status(), TN_OK);
    tn_pinned_free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_pinned_memory_is_reused_when_streams_have_passed),
        TEST(test_pinned_memory_survives_failures),
        TEST(test_the_owner_of_pinned_memory_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
