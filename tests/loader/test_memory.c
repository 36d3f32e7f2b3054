/* Each allocation of search, load, start and report fails in turn: an error or success, never a
 * crash, never a leak, and afterwards all can be had that the failure did not concern. */
#include "tests/loader/loader_test.h"

/* The worst that happens between process start and a device: several places, several candidates,
 * one that fails, one that is refused, options. */
static const tni_plugin *everything(void) {
    tn_plugin_set_option("zoo", "stripes", "7");
    tn_error_clear();
    return tni_loader_get("zoo");
}

static void use_three_plugins(void) {
    static char list[4096];
    snprintf(list, sizeof list, "%s:%s:%s:/no/such.so:", zoo("no_alloc"), zoo("init_fails"),
             zoo("uses_host"));
    load_only(list);
}

static void use_a_directory(void) {
    const char *dir = temp_dir();
    char dirs[256];
    copy_file(zoo("no_symbol"), in_dir(dir, "libtenon_zoo_a.so"));
    copy_file(zoo("options"), in_dir(dir, "libtenon_zoo_b.so"));
    snprintf(dirs, sizeof dirs, "relative:%s:/no/such", dir);
    search_only(dirs);
}

static void use_nothing_that_works(void) {
    static char list[4096];
    snprintf(list, sizeof list, "%s:%s:relative.so", zoo("init_fails"), zoo("no_dtypes"));
    load_only(list);
}

static void fail_each(void (*setup)(void), bool works) {
    uint64_t made = 1;
    for (uint64_t n = 1; n <= made + 1; n++) {
        fresh_loader(NULL);
        setup();
        tn_error_clear();
        int64_t before = tni_alloc_outstanding();
        tni_alloc_fail_at(n);
        const tni_plugin *p = everything();
        made = tni_alloc_fail_at(0);
        assert_int_equal(tn_error_status() == TN_OK, p != NULL);
        if (p)
            assert_true(works && p->state == TNI_PLUGIN_READY);
        else
            assert_true(tn_error_message()[0] != '\0');
        tn_error_clear();
        /* The memory is back: what failed for the lack of it can be had after a rescan at most. */
        tni_loader_rescan();
        p = everything();
        assert_int_equal(p != NULL, works);
        tni_loader_finish();
        tni_registry_finish();
        tn_error_clear();
        assert_int_equal(tni_alloc_outstanding(), before);
    }
    assert_true(made > 10);
    print_message("%d allocations failed in turn\n", (int)made);
}

static void plugins_by_name(void **state) {
    fail_each(use_three_plugins, true);
}

static void plugins_in_a_directory(void **state) {
    fail_each(use_a_directory, true);
}

static void report_of_what_is_missing(void **state) {
    fail_each(use_nothing_that_works, false);
}

static void program_loads_by_hand(void **state) {
    uint64_t made = 1;
    for (uint64_t n = 1; n <= made + 1; n++) {
        fresh_loader(NULL);
        int64_t before = tni_alloc_outstanding();
        tni_alloc_fail_at(n);
        assert_int_not_equal(tn_plugin_load("/no/such.so"), TN_OK);
        tn_error_clear();
        tn_status status = tn_plugin_load(zoo("good"));
        made = tni_alloc_fail_at(0);
        assert_int_equal(tn_error_status(), status);
        tn_error_clear();
        assert_int_equal(tn_plugin_load(zoo("good")), TN_OK);
        tni_loader_finish();
        tni_registry_finish();
        assert_int_equal(tni_alloc_outstanding(), before);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh_loader, fresh_loader)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(plugins_by_name),
        TEST(plugins_in_a_directory),
        TEST(report_of_what_is_missing),
        TEST(program_loads_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
