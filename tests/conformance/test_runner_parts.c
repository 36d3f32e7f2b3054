/* Patterns, expectations and levels: the runner's parts that need no process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "plugin-sdk/conformance/runner/run/progress.h"
#include "plugin-sdk/conformance/runner/run/schedule.h"
#include "plugin-sdk/conformance/runner/run/summary.h"

static bool finds(const char *pattern, const char *line) {
    char why[TC_MESSAGE];
    tc_pattern *p = tc_pattern_create(pattern, why);
    assert_non_null(p);
    bool found = tc_pattern_finds(p, line);
    tc_pattern_destroy(p);
    return found;
}

static void patterns_find_what_they_say(void **state) {
    const char *line = "kernel/add T=f32 alpha=2 self=[3,4]/[1,3]+2";
    assert_true(finds("kernel/add", line));
    assert_true(finds("kernel/*", line));
    assert_true(finds("*", line));
    assert_true(finds("  self=*  " + 2, "self=x"));
    assert_true(finds("kernel/a?d   self=[3,4]* T=f?2", line));
    assert_true(finds(line, line));
    assert_true(finds("/alpha=[12] self/", line));
    assert_false(finds("kernel/ad", line));
    assert_false(finds("kernel/add T=f3", line));
    assert_false(finds("kernel/add T=f32 beta=1", line));
    assert_false(finds("/^add/", line));
    assert_true(finds("a*b*c", "axxbxbxc"));
    assert_false(finds("a*b*c", "axxbxbx"));
    assert_true(finds("kernel/* self=[3,4]/[1,3]*", line));
    assert_false(finds("kernel/* alpha=[2]", line)); /* brackets are sizes, no set of letters */
}

static void what_is_no_pattern_says_why(void **state) {
    static const char *const texts[] = {"", "  ", "kernel/add f32", "/(/", "/", "/abc"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char why[TC_MESSAGE] = "";
        assert_null(tc_pattern_create(texts[i], why));
        assert_true(*why);
    }
}

static void expectations_change_statuses(void **state) {
    tc_expectations expectations = {0};
    char why[TC_VERDICT_MESSAGE];
    const tc_expectation *entry;
    assert_true(
        tc_expectations_read_text(&expectations, "name",
                                  "# comment\n\nskip a/slow # takes an hour\n"
                                  "xfail a/x* T=f16 # flushes\n"
                                  "waive a/w [ticket=X owner=me until=2030-01-31] # accepted",
                                  why));
    assert_int_equal(expectations.n, 3);
    assert_non_null(tc_expectations_skip(&expectations, "a/slow T=f32"));
    assert_null(tc_expectations_skip(&expectations, "a/x T=f16"));
    assert_int_equal(tc_expectations_judge(&expectations, "a/x T=f16", TC_CRASH, &entry), TC_XFAIL);
    assert_string_equal(entry->where, "name:4");
    assert_string_equal(entry->reason, "flushes");
    assert_int_equal(tc_expectations_judge(&expectations, "a/x T=f16", TC_PASS, &entry), TC_XPASS);
    assert_int_equal(tc_expectations_judge(&expectations, "a/x T=f32", TC_FAIL, &entry), TC_FAIL);
    assert_int_equal(tc_expectations_judge(&expectations, "a/x T=f16", TC_UNSUPPORTED, &entry),
                     TC_UNSUPPORTED);
    assert_int_equal(tc_expectations_judge(&expectations, "a/w", TC_PASS, &entry), TC_PASS);
    assert_true(tc_expectation_unused(&expectations.entries[2]));
    tc_expectations_count(&expectations, "a/w", false); /* what did not run says nothing */
    assert_false(tc_expectation_unused(&expectations.entries[2]));
    assert_int_equal(tc_expectations_judge(&expectations, "a/w", TC_ERROR, &entry), TC_ERROR);
    assert_int_equal(tc_expectations_judge(&expectations, "a/w", TC_FLAKY, &entry), TC_WAIVED);
    tc_expectations_finish(&expectations);
}

static void wrong_entries_name_their_line(void **state) {
    static const char *const texts[] = {"x\n",
                                        "\nskip a/b\n",
                                        "\nskip a/b #  \n",
                                        "\nskip # why\n",
                                        "\nwaive a/b word # why\n",
                                        "\nskipa/b # why\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tc_expectations expectations = {0};
        char why[TC_VERDICT_MESSAGE] = "";
        assert_false(tc_expectations_read_text(&expectations, "f", texts[i], why));
        assert_memory_equal(why, i == 0 ? "f:1: " : "f:2: ", 5);
        tc_expectations_finish(&expectations);
    }
}

/* ---- levels ------------------------------------------------------------------------------ */

typedef struct world {
    tc_levels levels;
    tc_selection selection;
    tc_log log;
} world;

static void ran(world *w, const char *line, tc_status status) {
    char why[TC_VERDICT_MESSAGE];
    tc_verdict v = {.status = status};
    assert_true(tc_selection_add(&w->selection, line, true, why));
    w->selection.at[w->selection.n - 1].ran = true;
    assert_non_null(
        tc_log_add(&w->log, w->selection.at[w->selection.n - 1].line, &v, status, NULL));
}

static tc_level_state judged(world *w, const char *name, tc_set set) {
    char why[TC_VERDICT_MESSAGE];
    const tc_level *level = tc_levels_find(&w->levels, name);
    assert_non_null(level);
    return tc_level_judge(&w->levels, level, TC_SET_BIT(set), &w->selection, &w->log, why);
}

static void add_level(world *w, const char *name, const char *text) {
    char why[TC_VERDICT_MESSAGE];
    if (!tc_levels_add(&w->levels, name, text, why))
        fail_msg("%s", why);
}

static void finish(world *w) {
    tc_levels_finish(&w->levels);
    tc_selection_finish(&w->selection);
    tc_log_finish(&w->log);
}

static void a_level_needs_a_pass_of_each_and_no_failure(void **state) {
    world w = {0};
    add_level(&w, "one", "version 1\nset smoke\nrequire a/*\nclean a/*\n");
    add_level(&w, "two", "version 1\ntitle Two\nset standard\nincludes one\nrequire b/x T=f32\n");
    assert_int_equal(judged(&w, "one", TC_STANDARD), TC_LEVEL_NOT_RUN);
    ran(&w, "a/u", TC_UNSUPPORTED);
    assert_int_equal(judged(&w, "one", TC_STANDARD), TC_LEVEL_FAILED);
    ran(&w, "a/p", TC_PASS);
    assert_int_equal(judged(&w, "one", TC_SMOKE), TC_LEVEL_PASSED);
    assert_int_equal(judged(&w, "Two", TC_STANDARD), TC_LEVEL_NOT_RUN);
    ran(&w, "b/x T=f32", TC_PASS);
    assert_int_equal(judged(&w, "two", TC_STANDARD), TC_LEVEL_PASSED);
    assert_int_equal(judged(&w, "two", TC_SMOKE), TC_LEVEL_NOT_RUN);
    ran(&w, "a/known", TC_XFAIL);
    assert_int_equal(judged(&w, "two", TC_STANDARD), TC_LEVEL_FAILED);
    finish(&w);
}

static void a_waived_failure_is_counted(void **state) {
    world w = {0};
    add_level(&w, "one", "version 1\nset smoke\nrequire a/*\nclean a/*\nclean b/*\n");
    add_level(&w, "two", "version 1\nincludes one\nevery c/* in f32\n");
    ran(&w, "a/p", TC_PASS);
    ran(&w, "b/x", TC_WAIVED);
    ran(&w, "c/x T=f32", TC_WAIVED);
    ran(&w, "d/x", TC_WAIVED);
    assert_int_equal(judged(&w, "two", TC_STANDARD), TC_LEVEL_PASSED);
    assert_int_equal(tc_level_waived(&w.levels, tc_levels_find(&w.levels, "one"), &w.log), 1);
    assert_int_equal(tc_level_waived(&w.levels, tc_levels_find(&w.levels, "two"), &w.log), 2);
    finish(&w);
}

static void every_case_of_a_dtype_is_to_pass(void **state) {
    static const char *const lines[] = {"c/x T=f16", "c/x T=f32 how=decomposed",
                                        "c/x T=f32 invalid=size", "d/x T=f32"};
    world w = {0};
    char why[TC_VERDICT_MESSAGE];
    add_level(&w, "one", "version 1\nevery c/* in f32 i64\n");
    const tc_level *level = tc_levels_find(&w.levels, "one");
    assert_int_equal(judged(&w, "one", TC_STANDARD), TC_LEVEL_NOT_RUN);
    ran(&w, "c/y T=f32", TC_PASS);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        ran(&w, lines[i], TC_UNSUPPORTED);
    assert_int_equal(judged(&w, "one", TC_STANDARD), TC_LEVEL_PASSED);
    assert_int_equal(tc_level_dtypes(level), TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_I64));
    ran(&w, "c/x T=bf16", TC_PASS);
    assert_int_equal(tc_level_also(level, &w.selection, &w.log), TN_DTYPE_BIT(TN_BF16));
    assert_true(tc_selection_add(&w.selection, "c/later T=bf16", true, why));
    assert_int_equal(tc_level_also(level, &w.selection, &w.log), 0);
    assert_int_equal(judged(&w, "one", TC_STANDARD), TC_LEVEL_PASSED);
    assert_true(tc_selection_add(&w.selection, "c/later T=i64", true, why));
    assert_int_equal(judged(&w, "one", TC_STANDARD), TC_LEVEL_NOT_RUN);
    ran(&w, "c/x T=i64 layout=strided", TC_UNSUPPORTED);
    assert_int_equal(judged(&w, "one", TC_STANDARD), TC_LEVEL_FAILED);
    finish(&w);
}

static void all_that_is_required_is_told_at_once(void **state) {
    world w = {0};
    char why[TC_VERDICT_MESSAGE];
    add_level(&w, "one", "version 1\nrequire a/x\nrequire a/y\nrequire a/z\n");
    ran(&w, "a/x", TC_UNSUPPORTED);
    ran(&w, "a/y", TC_PASS);
    ran(&w, "a/z", TC_UNSUPPORTED);
    assert_int_equal(tc_level_judge(&w.levels, &w.levels.at[0], TC_SET_BIT(TC_STANDARD),
                                    &w.selection, &w.log, why),
                     TC_LEVEL_FAILED);
    assert_string_equal(why, "none of the cases of `a/x` passed; nor of `a/z`");
    finish(&w);
}

static void a_level_of_which_a_part_ran_is_not_run(void **state) {
    world w = {0};
    char why[TC_VERDICT_MESSAGE];
    add_level(&w, "one", "version 1\nrequire a/*\nclean a/*\n");
    ran(&w, "a/p", TC_PASS);
    assert_true(tc_selection_add(&w.selection, "a/later", true, why));
    assert_int_equal(judged(&w, "one", TC_STANDARD), TC_LEVEL_NOT_RUN);
    finish(&w);
}

static void groups_ask_for_each_operator(void **state) {
    world w = {0};
    add_level(&w, "all", "version 1\nrequire kernel/@all T=f32\n");
    size_t n = w.levels.at[0].n_demands;
    assert_true(n > 60);
    for (size_t i = 0; i < n; i++) {
        char line[TC_MAX_LINE];
        assert_int_equal(judged(&w, "all", TC_STANDARD), TC_LEVEL_NOT_RUN);
        /* random_bits has no f32: what the set has of it will do. */
        const char *subject = w.levels.at[0].demands[i].pattern->subject;
        snprintf(line, sizeof line, "%s T=%s", subject,
                 strcmp(subject, "kernel/random_bits") ? "f32" : "i32");
        ran(&w, line, TC_PASS);
    }
    assert_int_equal(judged(&w, "all", TC_STANDARD), TC_LEVEL_PASSED);
    finish(&w);
}

static void sets_add_up(void **state) {
    char name[TC_SETS_NAME];
    tc_sets sets = 0;
    assert_true(tc_sets_find("perf+standard", &sets));
    assert_string_equal(tc_sets_name(sets, name), "standard+perf");
    assert_true(tc_sets_have(sets, TC_SMOKE) && tc_sets_have(sets, TC_STANDARD));
    assert_true(tc_sets_have(sets, TC_PERF) && !tc_sets_have(sets, TC_EXHAUSTIVE));
    assert_false(tc_sets_have(TC_SET_BIT(TC_PERF), TC_SMOKE));
    assert_false(tc_sets_have(TC_SET_BIT(TC_EXHAUSTIVE), TC_PERF));
    assert_int_equal(tc_sets_join(sets, TC_SET_BIT(TC_SMOKE)), sets);
    static const char *const wrong[] = {"", "+", "perf+", "perf,standard", "standard "};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(tc_sets_find(wrong[i], &sets));
}

static void perf_takes_a_set_of_its_own(void **state) {
    world w = {0};
    add_level(&w, "low", "version 1\nset smoke\nrequire a/*\n");
    add_level(&w, "perf", "version 1\nset perf\nincludes low\nrequire perf/*\n");
    assert_int_equal(tc_level_sets(&w.levels, tc_levels_find(&w.levels, "perf")),
                     TC_SET_BIT(TC_SMOKE) | TC_SET_BIT(TC_PERF));
    ran(&w, "a/p", TC_PASS);
    ran(&w, "perf/x", TC_UNSUPPORTED);
    assert_int_equal(judged(&w, "perf", TC_PERF), TC_LEVEL_FAILED);
    ran(&w, "perf/y", TC_PASS);
    assert_int_equal(judged(&w, "perf", TC_STANDARD), TC_LEVEL_NOT_RUN);
    char why[TC_VERDICT_MESSAGE];
    assert_int_equal(tc_level_judge(&w.levels, &w.levels.at[1],
                                    TC_SET_BIT(TC_SMOKE) | TC_SET_BIT(TC_PERF), &w.selection,
                                    &w.log, why),
                     TC_LEVEL_PASSED);
    finish(&w);
}

static void wrong_levels_are_refused(void **state) {
    static const char *const texts[] = {"require a/b\n",
                                        "version 0\nrequire a/b\n",
                                        "version 1\n",
                                        "version 1\nclean a/b\n",
                                        "version 1\nincludes none\n",
                                        "version 1\nrequire\n",
                                        "version 1\nrequire kernel/@big\n",
                                        "version 1\nset huge\nrequire a/b\n",
                                        "version 1\nevery a/b in f99\n",
                                        "version 1\nallow a/b\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        world w = {0};
        char why[TC_VERDICT_MESSAGE] = "";
        assert_false(tc_levels_add(&w.levels, "bad", texts[i], why));
        assert_memory_equal(why, "level bad:", 10);
        finish(&w);
    }
}

static void built_in_levels_are_read(void **state) {
    world w = {0};
    char why[TC_VERDICT_MESSAGE];
    if (!tc_levels_builtin(&w.levels, why))
        fail_msg("%s", why);
    static const char *const names[] = {"Load", "Memory", "Core", "Full", "Train", "Perf"};
    assert_int_equal(w.levels.n, 6);
    for (unsigned i = 0; i < 6; i++)
        assert_string_equal(w.levels.at[i].title, names[i]);
    finish(&w);
}

static void time_left_knows_that_few_slow_cases_come_first(void **state) {
    static const char *const lines[] = {"process/load", "process/life", "kernel/add", "kernel/mul"};
    tc_item items[4];
    for (int i = 0; i < 4; i++)
        items[i] = (tc_item){lines[i], tc_schedule_of(lines[i])};
    double process = tc_schedule_get(items[0].schedule)->cost,
           kernel = tc_schedule_get(items[2].schedule)->cost;
    tc_progress p;
    assert_true(process > 10 * kernel);
    tc_progress_init(&p, items, 4, true);
    assert_true(tc_progress_left(&p, p.start + 1) < 0);
    tc_progress_done(&p, &items[0]);
    assert_float_equal(tc_progress_left(&p, p.start + 3), 3 * (process + 2 * kernel) / process,
                       1e-9);
    tc_progress_drop(&p, items + 2, 1);
    assert_int_equal(p.n, 3);
    assert_float_equal(tc_progress_left(&p, p.start + 3), 3 * (process + kernel) / process, 1e-9);
    tc_progress_done(&p, &items[1]);
    tc_progress_done(&p, &items[3]);
    assert_true(tc_progress_left(&p, p.start + 5) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_find_what_they_say),
        cmocka_unit_test(what_is_no_pattern_says_why),
        cmocka_unit_test(expectations_change_statuses),
        cmocka_unit_test(wrong_entries_name_their_line),
        cmocka_unit_test(a_level_needs_a_pass_of_each_and_no_failure),
        cmocka_unit_test(a_waived_failure_is_counted),
        cmocka_unit_test(every_case_of_a_dtype_is_to_pass),
        cmocka_unit_test(all_that_is_required_is_told_at_once),
        cmocka_unit_test(a_level_of_which_a_part_ran_is_not_run),
        cmocka_unit_test(groups_ask_for_each_operator),
        cmocka_unit_test(sets_add_up),
        cmocka_unit_test(perf_takes_a_set_of_its_own),
        cmocka_unit_test(wrong_levels_are_refused),
        cmocka_unit_test(built_in_levels_are_read),
        cmocka_unit_test(time_left_knows_that_few_slow_cases_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
