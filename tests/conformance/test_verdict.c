/* Verdicts as JSON, there and back, and JSON from anywhere. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "plugin-sdk/conformance/case.h"
#include "plugin-sdk/conformance/json.h"
#include "plugin-sdk/conformance/runner/run/json_record.h"
#include "plugin-sdk/conformance/verdict.h"

static void a_verdict_comes_back_as_it_was(void **state) {
    tc_verdict v = {.status = TC_INCONCLUSIVE,
                    .requirement = 12,
                    .measured = true,
                    .share = INFINITY,
                    .bias = -0.25,
                    .worst = 123456789,
                    .milliseconds = 1.5,
                    .figures = {.ns = 12.5,
                                .spread = 0.25,
                                .device_ns = 11,
                                .bytes = 1e12,
                                .flop = 2e12,
                                .bound = TC_CEILING_COPY,
                                .share = 0.5},
                    .message = "at \"self\"\\[3]\n\ttab \xc3\xa9"};
    tc_verdict back;
    char json[TC_VERDICT_LINE], line[TC_MAX_LINE];
    size_t n = tc_verdict_write(&v, "kernel/add T=f32", json);
    assert_int_equal(n, strlen(json));
    assert_null(strchr(json, '\n'));
    assert_true(tc_verdict_read(json, &back, line));
    assert_string_equal(line, "kernel/add T=f32");
    assert_int_equal(back.status, TC_INCONCLUSIVE);
    assert_int_equal(back.requirement, 12);
    assert_true(back.measured && isinf(back.share) && back.bias == -0.25);
    assert_int_equal(back.worst, 123456789);
    assert_string_equal(back.message, v.message);
    const tc_figures *f = &back.figures;
    assert_true(f->ns == 12.5 && f->spread == 0.25 && f->device_ns == 11);
    assert_true(f->bytes == 1e12 && f->flop == 2e12 && f->share == 0.5);
    assert_int_equal(f->bound, TC_CEILING_COPY);
}

static void the_longest_verdict_fits(void **state) {
    tc_verdict v = {.status = TC_FAIL, .measured = true, .share = NAN, .bias = -INFINITY};
    double long_one = -1.2345678901234e-300;
    v.figures = (tc_figures){-long_one,           long_one, long_one, long_one, long_one,
                             TC_CEILING_MULTIPLY, long_one};
    char json[TC_VERDICT_LINE], line[TC_MAX_LINE], back[TC_MAX_LINE];
    tc_verdict read;
    memset(v.message, 1, sizeof v.message - 1);
    memset(line, 2, sizeof line - 1);
    line[sizeof line - 1] = '\0';
    assert_in_range(tc_verdict_write(&v, line, json), 1, TC_VERDICT_LINE - 1);
    assert_true(tc_verdict_read(json, &read, back));
    assert_string_equal(line, back);
}

static void the_first_failure_stays(void **state) {
    tc_verdict v = {0};
    tc_verdict_set(&v, TC_UNSUPPORTED, 0, "none");
    tc_verdict_set(&v, TC_FAIL, 3, "first %d", 1);
    tc_verdict_set(&v, TC_ERROR, 4, "second");
    tc_verdict_set(&v, TC_PASS, 0, "%s", "");
    assert_int_equal(v.status, TC_FAIL);
    assert_int_equal(v.requirement, 3);
    assert_string_equal(v.message, "first 1");
}

static void status_names_are_found(void **state) {
    tc_status s;
    for (int i = 0; i < TC_N_STATUSES; i++) {
        assert_true(tc_status_find(tc_status_name((tc_status)i), &s));
        assert_int_equal(s, i);
    }
    assert_false(tc_status_find("passed", &s));
}

static void what_is_no_verdict_is_refused(void **state) {
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "null",
        "{}",
        "{\"case\":3,\"status\":\"pass\"}",
        "{\"case\":\"a/b\",\"status\":\"good\"}",
        "{\"case\":\"a/b\",\"status\":\"pass\"} x",
        "{\"case\":\"a/b\",\"status\":\"pass\",}",
        "{\"case\":\"a/b\" \"status\":\"pass\"}",
        "{\"case\":\"a/b\",\"status\":\"pass\"",
        "{\"case\":\"a/b\",\"status\":\"pass\",\"ms\":01x}",
        "{\"case\":\"a/\\q\",\"status\":\"pass\"}",
        "{\"case\":\"a/\\u12\",\"status\":\"pass\"}",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tc_verdict v;
        char line[TC_MAX_LINE];
        if (tc_verdict_read(texts[i], &v, line))
            fail_msg("taken: %s", texts[i]);
    }
}

static void every_start_of_a_verdict_is_refused(void **state) {
    const char whole[] = "{\"case\":\"a/b\",\"x\":[1,{\"y\":null}],\"status\":\"fail\",\"ms\":1e-3,"
                         "\"message\":\"\\u00e9\\ud83d\\ude00\\n\"}";
    tc_verdict v;
    char line[TC_MAX_LINE];
    assert_true(tc_verdict_read(whole, &v, line));
    assert_string_equal(v.message, "\xc3\xa9\xf0\x9f\x98\x80\n");
    for (size_t n = 0; n < sizeof whole - 1; n++) {
        char *start = strndup(whole, n); /* exactly so long: a look behind it is seen */
        assert_non_null(start);
        assert_false(tc_verdict_read(start, &v, line));
        free(start);
    }
}

static void bytes_that_are_no_text_become_text(void **state) {
    char out[64];
    tc_json_quote("a\xff\xc0\x80\xed\xa0\x80z", out, sizeof out);
    json_t *value = json_loads(out, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    json_decref(value);
    assert_non_null(strstr(out, "\xef\xbf\xbd"));
    assert_null(strchr(out, '\xff'));
    assert_int_equal(tc_json_quote("\xc3\xa9\xc3\xa9", out, 6), 4); /* no half characters */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_verdict_comes_back_as_it_was),
        cmocka_unit_test(the_longest_verdict_fits),
        cmocka_unit_test(the_first_failure_stays),
        cmocka_unit_test(status_names_are_found),
        cmocka_unit_test(what_is_no_verdict_is_refused),
        cmocka_unit_test(every_start_of_a_verdict_is_refused),
        cmocka_unit_test(bytes_that_are_no_text_become_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
