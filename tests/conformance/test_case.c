/* Lines of cases: what is read, what is refused, what makes two lines the same case. */
#include "plugin-sdk/conformance/case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The last two stay. */
static const tc_case *parsed(const char *line) {
    static tc_case cases[2];
    static int turn;
    char why[TC_MESSAGE] = "";
    turn = !turn;
    if (!tc_case_parse(line, &cases[turn], why))
        fail_msg("%s: %s", line, why);
    return &cases[turn];
}

static void refused(const char *line, const char *reason) {
    tc_case c;
    char why[TC_MESSAGE] = "";
    if (tc_case_parse(line, &c, why))
        fail_msg("'%s' was taken", line);
    if (!strstr(why, reason))
        fail_msg("'%s': '%s' does not say '%s'", line, why, reason);
}

static void a_line_has_a_subject_and_parameters(void **state) {
    const tc_case *c = parsed("  kernel/add  self=[3,4]/[1,3]+2 \t T=f32\n");
    char line[TC_MAX_LINE];
    assert_string_equal(c->class, "kernel");
    assert_string_equal(c->subject, "add");
    assert_int_equal(c->n_params, 2);
    assert_string_equal(tc_case_get(c, "self"), "[3,4]/[1,3]+2");
    assert_string_equal(tc_case_get(c, "T"), "f32");
    assert_null(tc_case_get(c, "other"));
    assert_string_equal(tc_case_line(c, line), "kernel/add T=f32 self=[3,4]/[1,3]+2");
    c = parsed("contract/memory-huge");
    assert_int_equal(c->n_params, 0);
}

static void the_canonical_line_is_its_own(void **state) {
    char once[TC_MAX_LINE], twice[TC_MAX_LINE];
    const tc_case *c =
        parsed("kernel/sum self=[2,3] dim=[0] T=f16 keepdim=true data=exact seed=ff");
    tc_case_line(c, once);
    const tc_case *d = parsed(once);
    assert_string_equal(tc_case_line(d, twice), once);
    assert_int_equal(c->seed, d->seed);
}

static void the_seed_follows_from_the_case(void **state) {
    uint64_t a = parsed("kernel/add T=f32 self=[3,4]")->seed;
    assert_int_equal(parsed("kernel/add   self=[3,4] T=f32")->seed, a);
    uint64_t b = parsed("kernel/add T=f32 self=[3,5]")->seed;
    assert_true(a != b);
    assert_true(__builtin_popcountll(a ^ b) > 10); /* far apart, not next to each other */
    assert_int_equal(parsed("kernel/add T=f32 self=[3,4] seed=00ff")->seed, 0xff);
}

static void what_is_no_line_is_refused(void **state) {
    refused("", "empty");
    refused("  \t", "empty");
    refused("add", "class and subject");
    refused("kernel/", "names");
    refused("/add", "names");
    refused("kernel/add T", "name=value");
    refused("kernel/add T=", "a value");
    refused("kernel/add =f32", "a name");
    refused("kernel/add T=f32 T=f64", "twice");
    refused("kernel/add T=f32;rm", "letters, digits");
    refused("kernel/add T=\"f32\"", "letters, digits");
    refused("kernel/add seed=xyz", "hexadecimal");
    refused("kernel/add seed=12345678901234567", "hexadecimal");
    char line[TC_MAX_LINE + 8] = "kernel/add";
    for (int i = 0; i <= TC_MAX_PARAMS; i++)
        sprintf(line + strlen(line), " p%d=1", i);
    refused(line, "more than 24");
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    refused(line, "characters");
}

static tc_shape shape_of(const char *text) {
    tc_shape s;
    char why[TC_MESSAGE] = "", again[128];
    if (!tc_read_shape(text, &s, why))
        fail_msg("%s: %s", text, why);
    tc_shape back;
    assert_true(tc_read_shape(tc_write_shape(&s, again, sizeof again), &back, why));
    assert_memory_equal(&s, &back, sizeof s);
    return s;
}

static void shapes_know_their_places(void **state) {
    tc_shape s = shape_of("[3,4]");
    assert_int_equal(s.rank, 2);
    assert_int_equal(s.numel, 12);
    assert_int_equal(s.extent, 12);
    assert_int_equal(s.strides[0], 4);
    assert_false(s.placed);
    s = shape_of("[3,4]/[1,3]+2");
    assert_int_equal(s.strides[1], 3);
    assert_int_equal(s.offset, 2);
    assert_int_equal(s.extent, 14);
    s = shape_of("[2,3]+5");
    assert_int_equal(s.strides[0], 3);
    assert_int_equal(s.extent, 11);
    s = shape_of("[]");
    assert_int_equal(s.rank, 0);
    assert_int_equal(s.numel, 1);
    s = shape_of("[2,0,3]");
    assert_int_equal(s.numel, 0);
    assert_int_equal(s.extent, 0);
    s = shape_of("[5,7]/[0,1]");
    assert_int_equal(s.extent, 7);
}

static void wrong_shapes_are_refused(void **state) {
    static const char *const wrong[] = {
        "",
        "3",
        "[3",
        "[3,]",
        "[,3]",
        "[3]x",
        "[3]/[1,2]",
        "[3,4]/[1]",
        "[-1]",
        "[3]/[-1]",
        "[3]+-1",
        "[3]/",
        "[3]+",
        "[4294967296,4294967296]",
        "[4294967296,2,4294967296]+5",
        "[3]/[9223372036854775807]",
        "[1,1,1,1,1,1,1,1,1,1,1,1,1]",
        "[99999999999999999999]",
        "[3]+9223372036854775807",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tc_shape s;
        char why[TC_MESSAGE] = "";
        if (tc_read_shape(wrong[i], &s, why))
            fail_msg("'%s' was taken", wrong[i]);
        assert_non_null(strstr(why, wrong[i]));
    }
}

static void values_are_read_whole(void **state) {
    char why[TC_MESSAGE];
    double x;
    bool b;
    int64_t i, ints[TC_MAX_RANK];
    int32_t n;
    tn_dtype dtype;
    assert_true(tc_read_number("-0.5e-3", &x, why) && x == -0.5e-3);
    assert_true(tc_read_number("inf", &x, why) && isinf(x));
    assert_true(tc_read_number("nan", &x, why) && isnan(x));
    assert_false(tc_read_number("1x", &x, why));
    assert_true(tc_read_int("-9223372036854775808", &i, why) && i == INT64_MIN);
    assert_false(tc_read_int("9223372036854775808", &i, why));
    assert_false(tc_read_int("1.5", &i, why));
    assert_true(tc_read_bool("true", &b, why) && b);
    assert_true(tc_read_bool("false", &b, why) && !b);
    assert_false(tc_read_bool("1", &b, why));
    assert_true(tc_read_ints("[0,-1]", ints, &n, why) && n == 2 && ints[1] == -1);
    assert_true(tc_read_ints("[]", ints, &n, why) && n == 0);
    assert_true(tc_read_dtype("bf16", &dtype, why) && dtype == TN_BF16);
    assert_false(tc_read_dtype("f31", &dtype, why));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_a_subject_and_parameters),
        cmocka_unit_test(the_canonical_line_is_its_own),
        cmocka_unit_test(the_seed_follows_from_the_case),
        cmocka_unit_test(what_is_no_line_is_refused),
        cmocka_unit_test(shapes_know_their_places),
        cmocka_unit_test(wrong_shapes_are_refused),
        cmocka_unit_test(values_are_read_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
