/* The directories that nobody names: beside the library, in a build tree, and what changes when a
 * program runs with raised privileges. Each test starts a small program of its own. */
#define _GNU_SOURCE
#include "tests/loader/loader_test.h"

#include <sys/wait.h>

static char output[1 << 14];

/* Runs a program as `user` in `directory`; its exit status. */
static int run(const char *program, const char *argv0, const char *directory, uid_t user) {
    int pipe_[2];
    assert_int_equal(pipe(pipe_), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(pipe_[1], 1);
        if (chdir(directory) != 0 || (user != geteuid() && setuid(user) != 0))
            _exit(99);
        execl(program, argv0, "zoo", (char *)NULL);
        _exit(98);
    }
    close(pipe_[1]);
    size_t n = 0;
    for (ssize_t got; (got = read(pipe_[0], output + n, sizeof output - 1 - n)) > 0;)
        n += (size_t)got;
    output[n] = '\0';
    close(pipe_[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void make_dir(const char *path) {
    assert_int_equal(mkdir(path, 0755), 0);
}

/* dir/lib/probe, and the plugin in dir/lib/tenon/plugins. */
static const char *installed_tree(const char *dir) {
    assert_int_equal(chmod(dir, 0755), 0);
    make_dir(in_dir(dir, "lib"));
    make_dir(in_dir(dir, "lib/tenon"));
    make_dir(in_dir(dir, "lib/tenon/plugins"));
    copy_file(zoo("good"), in_dir(dir, "lib/tenon/plugins/libtenon_zoo.so"));
    return copy_file(PROBE, in_dir(dir, "lib/probe"));
}

static void plugins_beside_the_library_are_found(void **state) {
    const char *dir = temp_dir();
    const char *probe = installed_tree(dir);
    assert_int_equal(run(probe, "probe", "/", geteuid()), 0);
    assert_contains(output, in_dir(dir, "lib/tenon/plugins/libtenon_zoo.so"));
    /* However the program was called, and wherever from. */
    assert_int_equal(run(probe, "./nonsense", in_dir(dir, "lib"), geteuid()), 0);
    assert_int_equal(run(probe, "", "/tmp", geteuid()), 0);
}

static void plugins_of_a_build_tree_are_found(void **state) {
    const char *dir = temp_dir();
    make_dir(in_dir(dir, "core"));
    make_dir(in_dir(dir, "plugins"));
    make_dir(in_dir(dir, "plugins/a"));
    make_dir(in_dir(dir, "plugins/b"));
    copy_file(zoo("no_alloc"), in_dir(dir, "plugins/a/libtenon_zoo.so"));
    copy_file(zoo("good"), in_dir(dir, "plugins/b/libtenon_zoo.so"));
    write_file(in_dir(dir, "plugins/c"), "no directory");
    const char *probe = copy_file(PROBE, in_dir(dir, "core/probe"));
    assert_int_equal(run(probe, "probe", "/", geteuid()), 1); /* not one by its looks alone */
    write_file(in_dir(dir, "core/.tenon-build-tree"), "");
    assert_int_equal(run(probe, "probe", "/", geteuid()), 0);
    assert_contains(output, in_dir(dir, "plugins/b/libtenon_zoo.so"));
}

enum { SOMEBODY = 65534 };

/* A set-uid root program, run by somebody else. Only root can make one. */
static const char *raised_probe(const char *dir) {
    if (geteuid() != 0)
        skip();
    const char *probe = installed_tree(dir);
    assert_int_equal(chmod(probe, 04755), 0);
    return probe;
}

static void raised_privileges_ignore_the_environment(void **state) {
    const char *dir = temp_dir();
    const char *probe = raised_probe(dir);
    load_only("/no/such.so");
    search_only("/no/such");
    setenv("TENON_PLUGINS", "/no/such.so", 1);
    int status = run(probe, "probe", "/", SOMEBODY);
    if (strstr(output, "/no/such"))
        skip(); /* a file system that honours no set-uid bit */
    assert_int_equal(status, 0);
    assert_contains(output, "TENON_PLUGINS is ignored", "TENON_PLUGIN_PATH is ignored",
                    "raised privileges", in_dir(dir, "lib/tenon/plugins/libtenon_zoo.so"));
    assert_int_equal(unlink(in_dir(dir, "lib/tenon/plugins/libtenon_zoo.so")), 0);
    assert_int_equal(run(probe, "probe", "/", SOMEBODY), 1);
    assert_contains(output, "TENON_PLUGINS and TENON_PLUGIN_PATH are ignored, because");
}

static void raised_privileges_trust_nobody_else(void **state) {
    const char *dir = temp_dir();
    const char *probe = raised_probe(dir);
    const char *plugin = in_dir(dir, "lib/tenon/plugins/libtenon_zoo.so");
    assert_int_equal(chmod(plugin, 0775), 0);
    if (run(probe, "probe", "/", SOMEBODY) == 0)
        skip();
    assert_contains(output, plugin, "may be written by its group", "chmod g-w");
    assert_int_equal(chmod(plugin, 0755), 0);
    assert_int_equal(chown(plugin, SOMEBODY, SOMEBODY), 0);
    assert_int_equal(run(probe, "probe", "/", SOMEBODY), 1);
    assert_contains(output, plugin, "belongs to user 65534", "must belong to root");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh_loader, fresh_loader)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(plugins_beside_the_library_are_found),
        TEST(plugins_of_a_build_tree_are_found),
        TEST(raised_privileges_ignore_the_environment),
        TEST(raised_privileges_trust_nobody_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
