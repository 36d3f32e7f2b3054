/* Where plugins are looked for, in what order, which are left alone, and whom to trust. */
#define _GNU_SOURCE
#include "tests/loader/loader_test.h"

#include <dlfcn.h>
#include <sys/wait.h>

/* Was this file opened by anyone? */
static bool is_open(const char *path) {
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (handle)
        dlclose(handle);
    return handle != NULL;
}

static void scanning_opens_nothing(void **state) {
    const char *dir = temp_dir();
    const char *path = copy_file(zoo("good"), in_dir(dir, "libtenon_zoo.so"));
    search_only(dir);
    assert_int_equal(tni_loader_scan(), TN_OK);
    const tni_plugin *p = candidate(path);
    assert_non_null(p);
    assert_int_equal(p->state, TNI_PLUGIN_FOUND);
    assert_false(is_open(path));
}

static void asking_for_one_type_opens_its_files_only(void **state) {
    const char *dir = temp_dir();
    const char *npu = copy_file(zoo("good"), in_dir(dir, "libtenon_npu.so"));
    const char *npu2 = copy_file(zoo("twin"), in_dir(dir, "libtenon_npu_second.so"));
    const char *tpu = copy_file(zoo("uses_host"), in_dir(dir, "libtenon_tpu.so"));
    write_file(in_dir(dir, "libacme_runtime.so"), "no plugin");
    write_file(in_dir(dir, "libtenon_npu.so.bak"), "no plugin");
    write_file(in_dir(dir, "README"), "no plugin");
    search_only(dir);
    assert_null(tni_loader_get("npu")); /* they are named npu, but provide zoo */
    assert_error(TN_ERR_NOT_FOUND, "no working plugin for device type 'npu'", npu,
                 "provides 'zoo', which its name does not say; name it libtenon_zoo.so or "
                 "libtenon_zoo_*.so",
                 "there are plugins for ", "tpu", "(3 plugins; TENON_PLUGIN_PATH)");
    assert_true(is_open(npu));
    assert_true(is_open(npu2));
    assert_false(is_open(tpu));
    assert_int_equal(count_candidates(), 3);
}

static void misnamed_plugin_takes_no_others_type(void **state) {
    const char *dir = temp_dir();
    const char *acme = copy_file(zoo("good"), in_dir(dir, "libtenon_acme.so"));
    search_only(dir);
    assert_null(tni_loader_get("acme"));
    assert_error(TN_ERR_NOT_FOUND, acme, "provides 'zoo'", "or name the file in TENON_PLUGINS");
    assert_null(tni_loader_get("zoo"));
    assert_error(TN_ERR_NOT_FOUND, "no plugin provides device type 'zoo'", NULL);
    copy_file(zoo("twin"), in_dir(dir, "libtenon_zoo.so"));
    tni_loader_rescan();
    tni_loader_open_all();
    assert_string_equal(tni_loader_get("zoo")->table->id, "com.acme.twin");
    assert_int_equal(candidate(acme)->state, TNI_PLUGIN_REFUSED);
}

/* Behind the type comes a dot or an underscore. */
static void a_longer_type_is_another(void **state) {
    const char *dir = temp_dir();
    const char *longer = copy_file(zoo("good"), in_dir(dir, "libtenon_zoox.so"));
    search_only(dir);
    assert_null(tni_loader_get("zoo"));
    assert_error(TN_ERR_NOT_FOUND, "no plugin provides device type 'zoo'",
                 "put libtenon_zoo.so or libtenon_zoo_*.so into a directory that is searched",
                 NULL);
    assert_false(is_open(longer));
    tni_loader_open_all();
    assert_null(tni_loader_get("zoo"));
    assert_error(TN_ERR_NOT_FOUND, longer, "provides 'zoo', which its name does not say", NULL);
}

static void directories_are_searched_in_order_and_sorted(void **state) {
    const char *one = temp_dir(), *two = temp_dir();
    copy_file(zoo("good"), in_dir(one, "libtenon_zoo_z.so"));
    copy_file(zoo("twin"), in_dir(one, "libtenon_zoo_b.so"));
    copy_file(zoo("uses_host"), in_dir(two, "libtenon_zoo_a.so"));
    char dirs[256];
    snprintf(dirs, sizeof dirs, "%s:%s", one, two);
    search_only(dirs);
    const tni_plugin *p = tni_loader_get("zoo");
    assert_non_null(p);
    assert_string_equal(p->path, in_dir(one, "libtenon_zoo_b.so"));
    assert_string_equal(tni_loader_get("zoo@org.tenon.zoo.uses_host")->path,
                        in_dir(two, "libtenon_zoo_a.so"));
    fresh_loader(NULL);
    one = temp_dir(), two = temp_dir();
    copy_file(zoo("good"), in_dir(one, "libtenon_zoo_z.so"));
    copy_file(zoo("uses_host"), in_dir(two, "libtenon_zoo_a.so"));
    snprintf(dirs, sizeof dirs, "%s:%s", two, one);
    search_only(dirs);
    assert_string_equal(tni_loader_get("zoo")->table->id, "org.tenon.zoo.uses_host");
}

static void one_file_under_two_names_is_one_candidate(void **state) {
    const char *one = temp_dir(), *two = temp_dir();
    const char *real = copy_file(zoo("good"), in_dir(one, "libtenon_zoo.so"));
    assert_int_equal(symlink(real, in_dir(one, "libtenon_zoo_link.so")), 0);
    assert_int_equal(symlink(real, in_dir(two, "libtenon_zoo_other.so")), 0);
    assert_int_equal(link(real, in_dir(one, "libtenon_zoo_hard.so")), 0);
    assert_int_equal(symlink(one, in_dir(two, "again")), 0);
    char dirs[256];
    snprintf(dirs, sizeof dirs, "%s:%s:%s/again", one, two, two);
    search_only(dirs);
    assert_non_null(tni_loader_get("zoo"));
    assert_int_equal(count_candidates(), 1);
    const tni_plugin *p;
    assert_int_equal(tni_loader_load(in_dir(two, "libtenon_zoo_other.so"), &p), TN_OK);
    assert_string_equal(p->path, real);
    assert_int_equal(count_candidates(), 1);
}

static void tenon_plugins_is_exclusive(void **state) {
    const char *dir = temp_dir();
    copy_file(zoo("good"), in_dir(dir, "libtenon_zoo.so"));
    search_only(dir);
    load_only(zoo("twin"));
    assert_string_equal(tni_loader_get("zoo")->table->id, "com.acme.twin");
    assert_int_equal(count_candidates(), 1);
    assert_null(tni_loader_get("npu"));
    assert_error(TN_ERR_NOT_FOUND, "TENON_PLUGINS is set, so only the files it names",
                 "add the plugin for 'npu' to it");
}

static void tenon_plugins_may_have_any_name(void **state) {
    const char *dir = temp_dir();
    char list[1024];
    snprintf(list, sizeof list, "%s:%s", copy_file(zoo("good"), in_dir(dir, "build.out")),
             copy_file(zoo("twin"), in_dir(dir, "libtenon_acme.so")));
    load_only(list);
    assert_string_equal(tni_loader_get("zoo")->table->id, "org.tenon.zoo.good");
    fresh_loader(NULL);
    dir = temp_dir();
    load_only(copy_file(zoo("twin"), in_dir(dir, "libtenon_acme.so")));
    assert_string_equal(tni_loader_get("zoo")->table->id, "com.acme.twin");
}

static void entries_that_cannot_be_used_say_why(void **state) {
    char list[2048];
    const char *dir = temp_dir();
    snprintf(list, sizeof list, "libtenon_zoo.so:./libtenon_zoo.so::/no/such/file.so:%s:%s", dir,
             zoo("good"));
    load_only(list);
    assert_non_null(tni_loader_get("zoo")); /* the good one among them works */
    assert_null(tni_loader_get("npu"));
    assert_error(
        TN_ERR_INVALID_ARGUMENT, "libtenon_zoo.so: a relative path in TENON_PLUGINS is refused",
        "./libtenon_zoo.so: a relative path", "write the absolute path",
        "'' (TENON_PLUGINS): an empty entry names no plugin", "/no/such/file.so: no such file",
        "this is a directory", "put the directory into TENON_PLUGIN_PATH");
}

static void directories_that_cannot_be_searched_say_why(void **state) {
    char dirs[1024];
    const char *good = temp_dir(), *open = temp_dir();
    copy_file(zoo("good"), in_dir(good, "libtenon_zoo.so"));
    copy_file(zoo("twin"), in_dir(open, "libtenon_zoo_a.so"));
    assert_int_equal(chmod(open, 0777), 0);
    write_file(in_dir(good, "file"), "");
    snprintf(dirs, sizeof dirs, "plugins::.:/no/such:%s/file:%s:%s", good, open, good);
    search_only(dirs);
    assert_non_null(tni_loader_get("zoo"));
    assert_int_equal(count_candidates(), 1);
    assert_null(tni_loader_get("npu"));
    assert_error(TN_ERR_NOT_FOUND, "'plugins' (TENON_PLUGIN_PATH): a relative path is refused",
                 "'.' (TENON_PLUGIN_PATH): a relative path is refused",
                 "'' (TENON_PLUGIN_PATH): an empty entry would mean the working directory",
                 "'/no/such' (TENON_PLUGIN_PATH): no such directory", "this is no directory", open,
                 "may be written by everyone", "chmod o-w", "(1 plugin; TENON_PLUGIN_PATH)",
                 "beside libtenon", "system directory");
}

/* Root may read everything, so this runs as somebody else where it can. */
static void as_nobody(void (*fn)(void)) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(77);
        fn();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void ask_for_npu(void) {
    if (tni_loader_get("npu"))
        _exit(1);
    if (!strstr(tn_error_message(), "cannot be read: Permission denied"))
        _exit(2);
}

static void unreadable_directory_says_so(void **state) {
    const char *dir = temp_dir();
    copy_file(zoo("good"), in_dir(dir, "libtenon_npu.so"));
    search_only(dir);
    assert_int_equal(chmod(dir, 0), 0);
    as_nobody(ask_for_npu);
    assert_int_equal(chmod(dir, 0700), 0);
}

static void working_directory_is_never_searched(void **state) {
    char before[1024];
    assert_non_null(getcwd(before, sizeof before));
    const char *dir = temp_dir();
    copy_file(zoo("good"), in_dir(dir, "libtenon_npu.so"));
    assert_int_equal(chdir(dir), 0);
    assert_null(tni_loader_get("npu"));
    tn_error_clear();
    assert_int_equal(tn_plugin_load("libtenon_npu.so"), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "bare file name is refused", "give the plugin's path");
    assert_int_equal(tn_plugin_load("./libtenon_npu.so"), TN_OK);
    assert_int_equal(chdir(before), 0);
}

static void world_writable_plugin_is_refused(void **state) {
    const char *dir = temp_dir();
    const char *path = copy_file(zoo("good"), in_dir(dir, "libtenon_zoo.so"));
    assert_int_equal(chmod(path, 0777), 0);
    search_only(dir);
    assert_null(tni_loader_get("zoo"));
    assert_error(TN_ERR_STATE, path, "may be written by everyone", "chmod o-w");
    assert_false(is_open(path));
    assert_int_equal(chmod(path, 0775), 0); /* a group may */
    tni_loader_rescan();
    assert_non_null(tni_loader_get("zoo"));
}

static void trust_is_stricter_with_raised_privileges(void **state) {
    char why[4096];
    const char *dir = temp_dir();
    const char *path = copy_file(zoo("good"), in_dir(dir, "libtenon_zoo.so"));
    assert_int_equal(chmod(path, 0755), 0);
    assert_true(tni_trusted(path, false, why, sizeof why));
    assert_true(tni_trusted(path, true, why, sizeof why)); /* /tmp is sticky */
    assert_int_equal(chmod(path, 0775), 0);
    assert_true(tni_trusted(path, false, why, sizeof why));
    assert_false(tni_trusted(path, true, why, sizeof why));
    assert_contains(why, path, "its group", "chmod g-w");
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(chmod(dir, 0770), 0);
    assert_true(tni_trusted(path, false, why, sizeof why));
    assert_false(tni_trusted(path, true, why, sizeof why));
    assert_contains(why, "the directory", dir, "its group");
    assert_int_equal(chmod(dir, 0700), 0);
    if (geteuid() != 0)
        skip();
    assert_int_equal(chown(path, 12345, 0), 0);
    assert_true(tni_trusted(path, false, why, sizeof why));
    assert_false(tni_trusted(path, true, why, sizeof why));
    assert_contains(why, path, "belongs to user 12345", "must belong to root");
}

static void globs_disable_by_file_name_before_opening(void **state) {
    const char *dir = temp_dir();
    const char *path = copy_file(zoo("good"), in_dir(dir, "libtenon_zoo_a.so"));
    copy_file(zoo("twin"), in_dir(dir, "libtenon_zoo_b.so"));
    search_only(dir);
    setenv("TENON_PLUGINS_DISABLE", "nothing,libtenon_*_a.so", 1);
    assert_string_equal(tni_loader_get("zoo")->table->id, "com.acme.twin");
    assert_int_equal(candidate(path)->state, TNI_PLUGIN_DISABLED);
    assert_contains(candidate(path)->reason, path, "TENON_PLUGINS_DISABLE=nothing,libtenon_*_a.so");
    assert_false(is_open(path));
}

static void globs_disable_by_id_after_opening(void **state) {
    load_only(zoo("twin"));
    setenv("TENON_PLUGINS_DISABLE", "com.acme.*", 1);
    assert_null(tni_loader_get("zoo"));
    assert_error(TN_ERR_NOT_FOUND, zoo("twin"), "(com.acme.twin)", "disabled by id",
                 "TENON_PLUGINS_DISABLE");
    assert_int_equal(candidate(zoo("twin"))->state, TNI_PLUGIN_DISABLED);
}

static void rescan_sees_what_changed(void **state) {
    const char *dir = temp_dir();
    search_only(dir);
    assert_null(tni_loader_get("zoo"));
    tn_error_clear();
    copy_file(zoo("twin"), in_dir(dir, "libtenon_zoo_b.so"));
    assert_null(tni_loader_get("zoo")); /* asked and answered */
    tn_error_clear();
    tni_loader_rescan();
    const tni_plugin *first = tni_loader_get("zoo");
    assert_non_null(first);
    copy_file(zoo("good"), in_dir(dir, "libtenon_zoo_a.so"));
    copy_file(zoo("no_alloc"), in_dir(dir, "libtenon_zoo_c.so"));
    tni_loader_rescan();
    assert_ptr_equal(tni_loader_get("zoo"), first); /* a started plugin keeps its name */
    assert_int_equal(count_candidates(), 3);
    assert_string_equal(tni_loader_get("zoo@org.tenon.zoo.good")->key, "zoo@org.tenon.zoo.good");
    unlink(in_dir(dir, "libtenon_zoo_c.so"));
    tni_loader_rescan();
    assert_int_equal(count_candidates(), 2);
}

static void program_may_ask_again_for_a_file(void **state) {
    const char *dir = temp_dir();
    const char *path = in_dir(dir, "libtenon_zoo.so");
    assert_int_equal(tn_plugin_load(path), TN_ERR_NOT_FOUND);
    tn_error_clear();
    copy_file(zoo("good"), path);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(tn_plugin_load(path), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, path, "may be written by everyone");
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(tn_plugin_load(path), TN_OK);
    assert_int_equal(count_candidates(), 1);
    assert_non_null(tni_loader_get("zoo"));
}

static void rescan_judges_the_programs_files_too(void **state) {
    char before[1024];
    const char *dir = temp_dir(), *path = copy_file(zoo("good"), in_dir(dir, "libtenon_zoo.so"));
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(tn_plugin_load(path), TN_ERR_STATE);
    tn_error_clear();
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(tn_plugin_load("libtenon_zoo.so"), TN_ERR_INVALID_ARGUMENT);
    tn_error_clear();
    tni_loader_rescan();
    assert_null(tni_loader_get("zoo"));
    assert_error(TN_ERR_STATE, "may be written by everyone", "bare file name is refused");
    assert_false(is_open(path));
    assert_int_equal(chdir(before), 0);
    assert_int_equal(chmod(path, 0755), 0);
    tni_loader_rescan();
    assert_non_null(tni_loader_get("zoo"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh_loader, fresh_loader)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(scanning_opens_nothing),
        TEST(asking_for_one_type_opens_its_files_only),
        TEST(misnamed_plugin_takes_no_others_type),
        TEST(a_longer_type_is_another),
        TEST(directories_are_searched_in_order_and_sorted),
        TEST(one_file_under_two_names_is_one_candidate),
        TEST(tenon_plugins_is_exclusive),
        TEST(tenon_plugins_may_have_any_name),
        TEST(entries_that_cannot_be_used_say_why),
        TEST(directories_that_cannot_be_searched_say_why),
        TEST(unreadable_directory_says_so),
        TEST(working_directory_is_never_searched),
        TEST(world_writable_plugin_is_refused),
        TEST(trust_is_stricter_with_raised_privileges),
        TEST(globs_disable_by_file_name_before_opening),
        TEST(globs_disable_by_id_after_opening),
        TEST(rescan_sees_what_changed),
        TEST(program_may_ask_again_for_a_file),
        TEST(rescan_judges_the_programs_files_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
