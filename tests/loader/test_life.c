/* Starting, naming, options, shutting down, and what a plugin may do meanwhile. */
#define _GNU_SOURCE
#include "tests/loader/loader_test.h"
#include "tests/loader/linked.h"

/* `fail` is a macro of cmocka: a call of host->fail needs parentheses round the slot. */
#include <dlfcn.h>
#include <sys/wait.h>

static int fresh(void **state) {
    linked_init = NULL;
    linked_count = NULL;
    return fresh_loader(state);
}

static const char *both(const char *a, const char *b) {
    static char list[2048];
    snprintf(list, sizeof list, "%s:%s", zoo(a), zoo(b));
    return list;
}

/* ---- several plugins --------------------------------------------------------------------- */

static void first_of_two_has_the_plain_name(void **state) {
    load_only(both("twin", "good"));
    keep_log();
    const tni_plugin *first = tni_loader_get("zoo");
    assert_string_equal(first->table->id, "com.acme.twin");
    assert_string_equal(first->key, "zoo");
    assert_contains(log_text(), "several plugins provide 'zoo': com.acme.twin is used",
                    "org.tenon.zoo.good is reached as 'zoo@org.tenon.zoo.good'");
    const tni_plugin *second = tni_loader_get("zoo@org.tenon.zoo.good");
    assert_string_equal(second->key, "zoo@org.tenon.zoo.good");
    assert_int_not_equal(first->backend, second->backend);
    assert_string_equal(tni_backend_name(first->backend), "zoo");
    assert_string_equal(tni_backend_name(second->backend), "zoo@org.tenon.zoo.good");
    assert_ptr_equal(tni_loader_get("zoo@com.acme.twin"), first);
}

static void id_selects_whichever_comes_first(void **state) {
    const char *orders[] = {both("twin", "good"), NULL};
    for (int i = 0; i < 2; i++) {
        fresh(NULL);
        load_only(i == 0 ? orders[0] : both("good", "twin"));
        const tni_plugin *p = tni_loader_get("zoo@com.acme.twin");
        assert_non_null(p);
        assert_string_equal(p->table->id, "com.acme.twin");
        assert_string_equal(p->key, i == 0 ? "zoo" : "zoo@com.acme.twin");
        assert_ptr_equal(tni_loader_get("zoo@com.acme"), p); /* the first parts will do */
        assert_string_equal(tni_loader_get("zoo@org.tenon.zoo.good")->table->id,
                            "org.tenon.zoo.good");
    }
}

static void id_that_fits_nobody_or_two_is_an_error(void **state) {
    load_only(both("good", "uses_host"));
    assert_null(tni_loader_get("zoo@com.acme"));
    assert_error(TN_ERR_NOT_FOUND, "no plugin 'com.acme' provides device type 'zoo'",
                 "as 'zoo@org.tenon.zoo.good'", "as 'zoo@org.tenon.zoo.uses_host'");
    assert_null(tni_loader_get("zoo@org.tenon"));
    assert_error(TN_ERR_INVALID_ARGUMENT, "'zoo@org.tenon' may be org.tenon.zoo.good or"
                                          " org.tenon.zoo.uses_host; write the whole id");
}

static void plugin_that_works_is_preferred(void **state) {
    static const char *const useless[] = {"init_fails", "count_fails", "no_hardware"};
    for (int i = 0; i < 3; i++) {
        fresh(NULL);
        load_only(both(useless[i], "twin"));
        keep_log();
        const tni_plugin *p = tni_loader_get("zoo");
        assert_string_equal(p->table->id, "com.acme.twin");
        assert_contains(log_text(), "'zoo' is served by com.acme.twin, because org.tenon.zoo.",
                        useless[i]);
        /* Without hardware a plugin is started all the same, and so has the name. */
        assert_string_equal(p->key, i < 2 ? "zoo" : "zoo@com.acme.twin");
    }
}

static void things_that_are_no_type(void **state) {
    static const char *const bad[] = {"", "NPU", "npu:0", "npu@", "@com.acme", "a b", NULL};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(tni_loader_get(bad[i]));
        assert_error(TN_ERR_INVALID_ARGUMENT, "is no device type; write one like 'npu'");
    }
    assert_null(tni_loader_get("meta"));
    assert_error(TN_ERR_INVALID_ARGUMENT, "'meta' is Tenon's own");
}

/* ---- failures ---------------------------------------------------------------------------- */

static int calls;

static tn_status fail_and_count(const tn_host *host) {
    calls++;
    return (host->fail)(host, TN_ERR_IO, "the linked device is asleep");
}

static void failure_is_kept_and_not_tried_again(void **state) {
    calls = 0;
    linked_init = fail_and_count;
    assert_int_equal(tn_plugin_register(linked_query), TN_OK);
    for (int i = 0; i < 3; i++) {
        assert_null(tni_loader_get("linked"));
        assert_error(TN_ERR_IO, "(linked into the program) (org.tenon.zoo.linked): init failed: the"
                                " linked device is asleep");
    }
    assert_int_equal(calls, 1);
    tni_loader_rescan();
    linked_init = NULL;
    const tni_plugin *p = tni_loader_get("linked");
    assert_non_null(p);
    assert_null(p->reason);
    assert_int_equal(p->n_devices, 2);
}

static tn_status leave_a_message_and_succeed(const tn_host *host) {
    (host->fail)(host, TN_ERR_IO, "an old message");
    return TN_OK;
}

static tn_status fail_silently(uint32_t *out_count) {
    return TN_ERR_DEVICE_LOST;
}

static void old_message_is_not_the_reason_of_a_new_failure(void **state) {
    linked_init = leave_a_message_and_succeed;
    linked_count = fail_silently;
    assert_int_equal(tn_plugin_register(linked_query), TN_OK);
    assert_null(tni_loader_get("linked"));
    assert_int_equal(tn_error_status(), TN_ERR_DEVICE_LOST);
    assert_null(strstr(tn_error_message(), "an old message"));
    tn_error_clear();
}

static void callers_error_stands(void **state) {
    tni_fail(TN_ERR_SHAPE, "from before");
    load_only(both("init_fails", "good"));
    assert_non_null(tni_loader_get("zoo"));
    assert_error(TN_ERR_SHAPE, "from before");
}

static void no_devices_is_no_failure(void **state) {
    load_only(zoo("no_hardware"));
    const tni_plugin *p = tni_loader_get("zoo");
    assert_non_null(p);
    assert_int_equal(p->state, TNI_PLUGIN_READY);
    assert_int_equal(p->n_devices, 0);
    assert_contains(p->reason, "no devices found (driver reported none)");
}

/* ---- options ----------------------------------------------------------------------------- */

static void option_comes_from_the_environment(void **state) {
    load_only(zoo("options"));
    setenv("TENON_ZOO_STRIPES", "7", 1);
    assert_non_null(tni_loader_get("zoo"));
}

static void option_that_was_set_wins(void **state) {
    load_only(zoo("options"));
    setenv("TENON_ZOO_STRIPES", "1", 1);
    assert_int_equal(tn_plugin_set_option("zoo", "stripes", "3"), TN_OK);
    assert_int_equal(tn_plugin_set_option("zoo", "stripes", "7"), TN_OK);
    assert_non_null(tni_loader_get("zoo"));
    assert_int_equal(tn_plugin_set_option("zoo", "stripes", "8"), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "a plugin for 'zoo' is running already", "'stripes'");
    assert_int_equal(tn_plugin_set_option("zoo", NULL, "8"), TN_ERR_INVALID_ARGUMENT);
    tn_error_clear();
}

static void option_of_one_of_two_plugins(void **state) {
    load_only(both("good", "options"));
    assert_int_equal(tn_plugin_set_option("zoo", "stripes", "1"), TN_OK);
    assert_int_equal(tn_plugin_set_option("zoo@org.tenon.zoo.options", "stripes", "7"), TN_OK);
    assert_non_null(tni_loader_get("zoo@org.tenon.zoo.options"));
}

static tn_status ask_for_own_options(const tn_host *host) {
    /* Tenon's own variables are nobody's option, whatever a plugin's type is called. */
    const char *a = host->option(host, "threads-per.core");
    return a && strcmp(a, "4") == 0 && !host->option(host, "none") && !host->option(host, NULL)
               ? TN_OK
               : TN_ERR_INTERNAL;
}

static void option_names_become_capitals(void **state) {
    setenv("TENON_LINKED_THREADS_PER_CORE", "4", 1);
    linked_init = ask_for_own_options;
    assert_int_equal(tn_plugin_register(linked_query), TN_OK);
    assert_non_null(tni_loader_get("linked"));
    unsetenv("TENON_LINKED_THREADS_PER_CORE");
}

/* ---- the host table ---------------------------------------------------------------------- */

static tn_status log_without_a_message(const tn_host *host) {
    host->log_message(host, 99, NULL);
    return TN_OK;
}

static void host_log_names_the_plugin(void **state) {
    keep_log();
    load_only(zoo("uses_host"));
    assert_non_null(tni_loader_get("zoo"));
    assert_contains(log_text(), "2 plugin: org.tenon.zoo.uses_host: the cage is open");
    linked_init = log_without_a_message;
    assert_int_equal(tn_plugin_register(linked_query), TN_OK);
    assert_non_null(tni_loader_get("linked"));
    assert_contains(log_text(), "4 plugin: org.tenon.zoo.linked: (no message)");
}

static void host_memory_is_aligned_and_counted(void **state) {
    assert_int_equal(tn_plugin_register(linked_query), TN_OK);
    assert_non_null(tni_loader_get("linked"));
    const tn_host *host = linked_host;
    assert_int_equal(host->struct_size, sizeof *host);
    assert_int_equal(host->abi_version, TN_ABI_VERSION);
    int64_t before = tni_alloc_outstanding();
    for (uint64_t alignment = 1; alignment <= 4096; alignment *= 2) {
        void *p = host->alloc(host, alignment == 8 ? 0 : 100, alignment);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % alignment, 0);
        host->dealloc(host, p);
    }
    assert_null(host->alloc(host, 100, 24));
    assert_null(host->alloc(host, UINT64_MAX - 8, 64));
    host->dealloc(host, NULL);
    assert_int_equal(tni_alloc_outstanding(), before);
    assert_null(host->extension(host, "tenon.trace/1"));
    assert_null(host->extension(host, NULL));
}

/* ---- inside ------------------------------------------------------------------------------ */

static tn_status call_the_loader(const tn_host *host) {
    if (tni_loader_get("zoo"))
        return TN_ERR_INTERNAL;
    tn_status status = (host->fail)(host, tn_error_status(), tn_error_message());
    tn_error_clear();
    return status;
}

static void loader_called_from_init_fails_cleanly(void **state) {
    linked_init = call_the_loader;
    assert_int_equal(tn_plugin_register(linked_query), TN_OK);
    assert_null(tni_loader_get("linked"));
    assert_error(TN_ERR_STATE, "init failed", "called from inside itself");
}

static void load_from_callback(const tn_plugin_info *info, void *user) {
    *(tn_status *)user = tn_plugin_load(zoo("good"));
}

static void loader_called_from_a_callback_fails_cleanly(void **state) {
    tn_status status = TN_OK;
    assert_int_equal(tn_plugin_register(linked_query), TN_OK);
    tn_plugin_list(false, load_from_callback, &status);
    assert_int_equal(status, TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "callback of tn_plugin_list");
}

static void note_info(const tn_plugin_info *info, void *user) {
    char *text = user;
    size_t n = strlen(text);
    snprintf(text + n, 4096 - n, "%s|%s|%s|%s|%u|%u|%u|%s\n", info->state,
             tni_file_name(info->path), info->id, info->device_type, info->n_devices,
             info->n_kernels, info->n_unknown_kernels, info->reason);
}

static void list_tells_of_every_candidate(void **state) {
    char text[4096] = "";
    load_only(both("no_alloc", "unknown_kernel"));
    assert_int_equal(tn_plugin_register(linked_query), TN_OK);
    tn_plugin_list(false, note_info, text);
    assert_contains(text, "loaded||org.tenon.zoo.linked|linked|0|2|0|\n",
                    "found|libtenon_zoo_no_alloc.so|||0|0|0|\n");
    text[0] = '\0';
    tn_plugin_list(true, note_info, text);
    assert_contains(
        text, "ready||org.tenon.zoo.linked|linked|2|2|0|\n",
        "refused|libtenon_zoo_no_alloc.so|||0|0|0|/",
        "ready|libtenon_zoo_unknown_kernel.so|org.tenon.zoo.unknown_kernel|zoo|1|1|1|\n");
    assert_int_equal(tn_error_status(), TN_OK);
}

/* ---- the program's own ------------------------------------------------------------------- */

static void registered_and_loaded_plugins_come_first(void **state) {
    const tni_plugin *p, *again;
    load_only(zoo("good"));
    assert_int_equal(tni_loader_scan(), TN_OK);
    assert_int_equal(tni_loader_load(zoo("twin"), &p), TN_OK);
    assert_int_equal(p->state, TNI_PLUGIN_LOADED); /* not started */
    assert_ptr_equal(tni_loader_get("zoo"), p);
    assert_int_equal(tni_loader_load(zoo("twin"), &again), TN_OK);
    assert_ptr_equal(again, p);
    assert_int_equal(tni_loader_register(linked_query, &p), TN_OK);
    assert_null(p->path);
    assert_int_equal(tni_loader_register(linked_query, &again), TN_OK);
    assert_ptr_equal(again, p);
    assert_int_equal(tn_plugin_load(zoo("no_alloc")), TN_ERR_ABI);
    assert_error(TN_ERR_ABI, "devices->memory->alloc is NULL");
    assert_int_equal(tn_plugin_load("/no/such.so"), TN_ERR_NOT_FOUND);
    assert_error(TN_ERR_NOT_FOUND, "/no/such.so: no such file");
    assert_int_equal(tn_plugin_load(NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "path is NULL");
    assert_int_equal(tn_plugin_register(NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "query is NULL");
    /* The search includes what the program loaded, and nothing twice. */
    tni_loader_rescan();
    assert_int_equal(count_candidates(), 4 + 1);
}

/* ---- the end ----------------------------------------------------------------------------- */

static void finish_shuts_down_backwards_and_forgets(void **state) {
    load_only(both("good", "twin"));
    assert_non_null(tni_loader_get("zoo@com.acme.twin"));
    int starts = *(int *)tni_loader_get("zoo@org.tenon.zoo.good")->self;
    keep_log();
    tni_loader_finish();
    const char *good = strstr(log_text(), "org.tenon.zoo.good: shut down");
    const char *twin = strstr(log_text(), "com.acme.twin: shut down");
    assert_non_null(good);
    assert_true(twin > good);
    load_only(zoo("good"));
    assert_int_equal(count_candidates(), 1);
    const tni_plugin *p = tni_loader_get("zoo"); /* usable again */
    assert_non_null(p);
    assert_int_equal(*(int *)p->self, starts + 1); /* the same object */
}

static bool is_open(const char *path) {
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (handle)
        dlclose(handle);
    return handle != NULL;
}

static void only_plugins_that_say_so_are_closed(void **state) {
    load_only(both("good", "unloadable"));
    tni_loader_open_all();
    assert_true(is_open(zoo("unloadable")));
    tni_loader_finish();
    assert_false(is_open(zoo("unloadable")));
    assert_true(is_open(zoo("good")));
}

/* ---- fork -------------------------------------------------------------------------------- */

static int in_child(int (*fn)(void)) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(fn());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static const tni_plugin *parents;

static int child_of_good(void) {
    if (!tni_plugin_forked(parents))
        return 1;
    if (tni_loader_get("zoo"))
        return 2;
    if (!strstr(tn_error_message(), "was started before this process was forked"))
        return 3;
    tni_loader_finish(); /* must not call the plugin */
    return strstr(log_text(), "shut down") ? 4 : 0;
}

static int child_of_fork_safe(void) {
    return tni_plugin_forked(parents) || tni_loader_get("zoo") != parents;
}

static int child_without_started_plugin(void) {
    return !tni_loader_get("zoo");
}

static void started_plugins_do_not_outlive_a_fork(void **state) {
    keep_log();
    load_only(zoo("good"));
    assert_int_equal(tni_loader_scan(), TN_OK);
    assert_int_equal(in_child(child_without_started_plugin), 0);
    parents = tni_loader_get("zoo");
    assert_false(tni_plugin_forked(parents));
    assert_int_equal(in_child(child_of_good), 0);
    assert_ptr_equal(tni_loader_get("zoo"), parents);
}

static void fork_safe_plugins_do(void **state) {
    load_only(zoo("fork_safe"));
    parents = tni_loader_get("zoo");
    assert_int_equal(in_child(child_of_fork_safe), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, fresh)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(first_of_two_has_the_plain_name),
        TEST(id_selects_whichever_comes_first),
        TEST(id_that_fits_nobody_or_two_is_an_error),
        TEST(plugin_that_works_is_preferred),
        TEST(things_that_are_no_type),
        TEST(failure_is_kept_and_not_tried_again),
        TEST(old_message_is_not_the_reason_of_a_new_failure),
        TEST(callers_error_stands),
        TEST(no_devices_is_no_failure),
        TEST(option_comes_from_the_environment),
        TEST(option_that_was_set_wins),
        TEST(option_of_one_of_two_plugins),
        TEST(option_names_become_capitals),
        TEST(host_log_names_the_plugin),
        TEST(host_memory_is_aligned_and_counted),
        TEST(loader_called_from_init_fails_cleanly),
        TEST(loader_called_from_a_callback_fails_cleanly),
        TEST(list_tells_of_every_candidate),
        TEST(registered_and_loaded_plugins_come_first),
        TEST(finish_shuts_down_backwards_and_forgets),
        TEST(only_plugins_that_say_so_are_closed),
        TEST(started_plugins_do_not_outlive_a_fork),
        TEST(fork_safe_plugins_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
