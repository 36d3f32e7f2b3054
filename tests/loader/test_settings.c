/* Texts from outside, what is wrong in the environment, and files that a program leaves out. */
#define _GNU_SOURCE
#include "tests/loader/loader_test.h"

#include "base/text.h"

static void printable(const char *from, const char *to) {
    char text[64];
    snprintf(text, sizeof text, "%s", from);
    tni_text_make_printable(text);
    assert_string_equal(text, to);
}

static void no_byte_changes_a_terminal(void **state) {
    printable("plain, ~ and \xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\xb3",
              "plain, ~ and \xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\xb3");
    printable("two\n\tlines", "two\n\tlines");
    printable("\x1b[31m\x07\r\x7f", "?[31m???");
    printable("\xc2\x9b"
              "31m",
              "??31m");                                     /* CSI of C1 as UTF-8 */
    printable("\xff\xfe\xc0\xaf \x80", "???? ?");           /* no UTF-8 */
    printable("\xed\xa0\x80 \xf5\x80\x80\x80", "??? ????"); /* surrogates, beyond U+10FFFF */
    printable("cut \xe2\x82", "cut ??");
}

static void errors_and_log_lines_are_printable(void **state) {
    keep_log();
    tni_log_line(TN_LOG_WARN, "loader", "a \x1b[2J of %s", "\xff");
    assert_contains(log_text(), "1 loader: a ?[2J of ?\n");
    tni_fail(TN_ERR_IO, "no \x1b]0;%s", "\xfe");
    assert_string_equal(tn_error_message(), "no ?]0;?");
    tn_error_clear();
}

static void a_near_word_is_found(void **state) {
    assert_true(tni_text_is_near("DEVCE", "DEVICE"));
    assert_true(tni_text_is_near("DEVICES", "DEVICE"));
    assert_true(tni_text_is_near("DEIVCE", "DEVICE"));
    assert_true(tni_text_is_near("LOG_LEVEL", "LOG"));
    assert_true(tni_text_is_near("LAG", "LOG"));
    assert_false(tni_text_is_near("LEGS", "LOG"));
    assert_false(tni_text_is_near("MEMORY", "DEVICE"));
    assert_false(tni_text_is_near("", "DEVICE"));
    assert_false(tni_text_is_near("DEVICE", ""));
}

static uint32_t lines_of_env(void) {
    uint32_t n = 0;
    for (const char *at = log_text(); (at = strstr(at, "1 env: ")); at++)
        n++;
    return n;
}

static void what_is_wrong_is_said_once(void **state) {
    keep_log();
    setenv("TENON_VALIDATE", "perhaps", 1);
    search_only(temp_dir());
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tni_loader_scan(), TN_OK);
        tni_loader_rescan();
    }
    assert_contains(log_text(),
                    "TENON_VALIDATE=perhaps is ignored, and 0 used: it must be 0, 1 or 2");
    assert_int_equal(lines_of_env(), 1);
    unsetenv("TENON_VALIDATE");
}

static void options_that_were_not_asked_for_are_told(void **state) {
    keep_log();
    setenv("TENON_ZOO_STRIPES", "7", 1);
    setenv("TENON_ZOO_STRIPE", "8", 1);
    load_only(zoo("options"));
    assert_non_null(tni_loader_get("zoo"));
    unsetenv("TENON_ZOO_STRIPE");
    assert_contains(
        log_text(),
        "TENON_ZOO_STRIPE is set, but org.tenon.zoo.options has no such option; did you "
        "mean stripes; it has: ");
    assert_null(strstr(log_text(), "TENON_ZOO_STRIPES is"));
}

static void a_file_that_is_excluded_is_not_opened(void **state) {
    const char *dir = temp_dir();
    const char *bad = copy_file(zoo("good"), in_dir(dir, "libtenon_zoo_a.so"));
    copy_file(zoo("twin"), in_dir(dir, "libtenon_zoo_b.so"));
    search_only(dir);
    assert_int_equal(tn_plugin_exclude(bad, "it ended a process"),
                     TN_ERR_NOT_FOUND); /* not searched yet */
    tn_error_clear();
    assert_int_equal(tni_loader_scan(), TN_OK);
    assert_int_equal(tn_plugin_exclude(bad, "it ended a process"), TN_OK);
    assert_string_equal(tni_loader_get("zoo")->table->id, "com.acme.twin");
    assert_int_equal(candidate(bad)->state, TNI_PLUGIN_FAILED);
    assert_contains(candidate(bad)->reason, bad, "it ended a process");
    assert_null(candidate(bad)->handle);
    assert_null(tni_loader_get("npu"));
    assert_error(TN_ERR_NOT_FOUND, "it ended a process");
    assert_int_equal(tn_plugin_exclude(bad, "twice"), TN_ERR_NOT_FOUND);
    assert_error(TN_ERR_NOT_FOUND, bad, "not opened");
    assert_int_equal(tn_plugin_exclude(NULL, "x"), TN_ERR_INVALID_ARGUMENT);
    tn_error_clear();
    assert_int_equal(tn_plugin_exclude(bad, NULL), TN_ERR_INVALID_ARGUMENT);
    tn_error_clear();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh_loader, fresh_loader)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(no_byte_changes_a_terminal),
        TEST(errors_and_log_lines_are_printable),
        TEST(a_near_word_is_found),
        TEST(what_is_wrong_is_said_once),
        TEST(options_that_were_not_asked_for_are_told),
        TEST(a_file_that_is_excluded_is_not_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
