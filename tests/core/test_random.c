/* Where the generators stand; the numbers themselves are the kernels' affair. */
#include "tests/core/core_test.h"

#include "core/random/generator.h"

#include <pthread.h>

static int start(void **state) {
    unsetenv("TENON_SEED");
    tni_generators_finish();
    return fresh(state);
}

#define RANDOM_TEST(name) cmocka_unit_test_setup_teardown(name, start, leave_clean)

static void assert_takes(tni_device *d, uint64_t n_words, uint64_t seed, uint64_t offset) {
    uint64_t got_seed, got_offset;
    tni_generator_take(d, n_words, &got_seed, &got_offset);
    assert_int_equal(got_seed, seed);
    assert_int_equal(got_offset, offset);
}

static void words_are_given_out_in_blocks_of_four(void **state) {
    tni_device *d = open_fake();
    tn_manual_seed(5);
    assert_takes(d, 1, 5, 0);
    assert_takes(d, 4, 5, 1);
    assert_takes(d, 5, 5, 2);
    assert_takes(d, 0, 5, 4);
    assert_takes(d, UINT64_MAX, 5, 4);
    assert_takes(d, 0, 5, 4 + ((uint64_t)1 << 62));
}

static void devices_start_alike_and_go_on_apart(void **state) {
    fake.n_devices = 2;
    tni_device *first = open_fake();
    tn_manual_seed(7);
    assert_takes(first, 100, 7, 0);
    tni_device *second = tni_device_get(tn_device_parse("fake:1"));
    assert_takes(second, 8, 7, 0);
    assert_takes(second, 8, 7, 2);
    assert_takes(first, 8, 7, 25);
    tn_manual_seed(8);
    assert_takes(first, 1, 8, 0);
    assert_takes(second, 1, 8, 0);
}

static void the_first_seed_comes_from_the_environment(void **state) {
    tni_device *d = open_fake();
    assert_takes(d, 1, 67280421310721u, 0);
    setenv("TENON_SEED", "1234", 1);
    assert_takes(d, 1, 67280421310721u, 1);
    tni_generators_finish();
    assert_takes(d, 1, 1234, 0);
    unsetenv("TENON_SEED");
}

static void a_stream_is_saved_and_put_back(void **state) {
    tni_device *d = open_fake();
    uint64_t seed, offset;
    tn_manual_seed(9);
    assert_takes(d, 40, 9, 0);
    assert_int_equal(tn_generator_get(d->id, &seed, &offset), TN_OK);
    assert_takes(d, 4, 9, 10);
    assert_int_equal(tn_generator_set(d->id, seed, offset), TN_OK);
    assert_takes(d, 4, 9, 10);
    assert_int_equal(tn_generator_set(d->id, 3, 1000), TN_OK);
    assert_takes(d, 4, 3, 1000);
    assert_int_equal(tn_generator_get(d->id, NULL, &offset), TN_ERR_INVALID_ARGUMENT);
    tn_error_clear();
    assert_int_not_equal(tn_generator_set((tn_device){60, 0}, 3, 1000), TN_OK);
    assert_int_not_equal(tn_error_status(), TN_OK);
}

static void *draw(void *device) {
    uint64_t seed, offset;
    for (int i = 0; i < 10000; i++)
        tni_generator_take(device, 5, &seed, &offset);
    return NULL;
}

static void threads_get_ranges_of_their_own(void **state) {
    tni_device *d = open_fake();
    pthread_t threads[4];
    tn_manual_seed(1);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, draw, d);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_takes(d, 0, 1, 80000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RANDOM_TEST(words_are_given_out_in_blocks_of_four),
        RANDOM_TEST(devices_start_alike_and_go_on_apart),
        RANDOM_TEST(the_first_seed_comes_from_the_environment),
        RANDOM_TEST(a_stream_is_saved_and_put_back),
        RANDOM_TEST(threads_get_ranges_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
