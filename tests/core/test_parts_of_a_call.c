/* What a call is put together from: temporaries and their one owner, lists of integers, and the
 * growing text that reports are written with. */
#include "base/text.h"
#include "core/call/call.h"
#include "tests/core/core_test.h"

static tni_device *device;

static tn_tensor *one(void) {
    return tni_tensor_new(device, TN_F32, 0, NULL);
}

static void temporaries_are_dropped_with_their_list(void **state) {
    device = open_fake();
    int64_t before = tni_tensors_alive();
    tni_temps tmp = {0};
    for (int i = 0; i < 5 * TNI_TEMPS_ROOM; i++)
        assert_non_null(tni_own(&tmp, one()));
    assert_int_equal(tni_tensors_alive(), before + 5 * TNI_TEMPS_ROOM);
    assert_null(tni_own(&tmp, NULL));
    assert_ptr_equal(tni_own(&tmp, TN_NONE), TN_NONE);
    tni_temps_finish(&tmp);
    assert_int_equal(tni_tensors_alive(), before);
}

static void what_a_step_used_is_dropped_at_once(void **state) {
    device = open_fake();
    int64_t before = tni_tensors_alive();
    tn_tensor *borrowed = one();
    tni_temps tmp = {0};
    tn_tensor *x = tni_own(&tmp, one());
    for (int i = 0; i < 3 * TNI_TEMPS_ROOM; i++)
        tni_own(&tmp, one());
    x = tni_then(&tmp, one(), x);
    assert_int_equal(tni_tensors_alive(), before + 2 + 3 * TNI_TEMPS_ROOM);
    x = tni_then(&tmp, NULL, x);
    assert_null(x);
    x = tni_then(&tmp, one(), borrowed); /* of somebody else: stays */
    assert_ptr_equal(tni_temps_keep(&tmp, x), x);
    assert_int_equal(tni_tensors_alive(), before + 2);
    tni_drop(x);
    tni_drop(borrowed);
}

static void a_result_is_owned_once_whosever_it_was(void **state) {
    device = open_fake();
    int64_t before = tni_tensors_alive();
    tn_tensor *borrowed = one();
    tni_temps tmp = {0};
    tn_tensor *results[2] = {borrowed, tni_own(&tmp, one())};
    tn_cell rets[2];
    assert_int_equal(tni_temps_return_many(&tmp, results, 2, rets), TN_OK);
    tni_drop(borrowed);
    assert_int_equal(tni_tensors_alive(), before + 2);
    tni_drop(rets[0].v.pointer);
    tni_drop(rets[1].v.pointer);
    assert_int_equal(tni_tensors_alive(), before);
}

static void lists_beyond_their_room_are_refused(void **state) {
    static const tni_op_info info = {.call = "tn_any"};
    static const int64_t numbers[TNI_BUILD_INTS] = {7};
    tni_build b = {.info = &info};
    assert_int_equal(tni_build_list(&b, 0, tn_ints_of(numbers, 4)), TN_OK);
    assert_int_equal(b.kargs[0].v.ints[0], 7);
    assert_int_equal(tni_build_list(&b, 1, tn_ints_of(numbers, TNI_BUILD_INTS)), TN_ERR_INTERNAL);
    assert_error(TN_ERR_INTERNAL, "tn_any", NULL);
    assert_int_equal(tni_build_list(&b, 1, tn_ints_of(numbers, TNI_BUILD_INTS - 4)), TN_OK);
}

static void json_strings_are_escaped_and_valid(void **state) {
    tni_text t = {0};
    tni_text_add(&t, "%d ", 12);
    tni_text_add_json(
        &t, "a\"\\\n\x01 \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 \xc3 \xe0\x80\x80 \xed\xa0\x80 \xff");
    assert_false(t.failed);
    assert_string_equal(t.data, "12 \"a\\\"\\\\\\u000a\\u0001 \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 "
                                "\\ufffd \\ufffd\\ufffd\\ufffd \\ufffd\\ufffd\\ufffd \\ufffd\"");
    tni_free(t.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(temporaries_are_dropped_with_their_list), TEST(what_a_step_used_is_dropped_at_once),
        TEST(a_result_is_owned_once_whosever_it_was),  TEST(lists_beyond_their_room_are_refused),
        TEST(json_strings_are_escaped_and_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
