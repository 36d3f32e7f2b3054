/* Built programs on disk: found by the next process, and never believed when something is wrong
 * with them. A process is a device opened anew, but for two at once. */
#include "tests/opencl/rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tenon/kernels.h>
#include <unistd.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

enum { N = 1000, PATH = 256, MAX_BYTES = 4 << 20 };

extern char **environ;

static const char NO_BUILDING[] = "fail=clCreateProgramWithSource:-6";

static char folder[PATH], entry[PATH + 64];
static char content[MAX_BYTES];

/* ---- a device's life --------------------------------------------------------------------- */

/* Opens it, fills a tensor, closes it. */
static tn_status live(const char *words) {
    static float numbers[N];
    int64_t size = N;
    mini m;
    layer_say("");
    if (!mini_open(&m, rig_plugin, 0))
        fail_msg("%s", mini_error());
    layer_say(words);
    mini_tensor *out = mini_tensor_create(&m, TN_F32, 1, &size, NULL, 0);
    assert_non_null(out);
    tn_cell args[1];
    args[TN_ARG_fill_value] = mini_f64(3);
    tn_status status = mini_run(&m, mini_find(&m, "fill", TN_F32, TN_DTYPE_NONE), 1, args, 1,
                                (mini_tensor *[]){out});
    if (status == TN_OK)
        status = mini_tensor_read(&m, out, numbers);
    for (int i = 0; status == TN_OK && i < N; i++)
        assert_true(numbers[i] == 3);
    assert_true(mini_close(&m));
    return status;
}

static void assert_builds(void) {
    assert_int_not_equal(live(NO_BUILDING), TN_OK);
    assert_ok(live(""));
}

/* ---- the folder -------------------------------------------------------------------------- */

/* Entries of the folder; `entry` is one of them, and halves count too. */
static int n_entries(const char *where) {
    int n = 0;
    DIR *d = opendir(where);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') {
            snprintf(entry, sizeof entry, "%s/%.60s", where, e->d_name);
            n++;
        }
    if (d)
        closedir(d);
    return n;
}

static void remove_all(const char *where) {
    while (n_entries(where) && (unlink(entry) == 0 || rmdir(entry) == 0)) {
    }
    rmdir(where);
}

static int setup(void **state) {
    const char *tmp = getenv("TMPDIR");
    rig_setup(state);
    snprintf(folder, sizeof folder, "%.200s/tenon-cache-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder))
        return -1;
    mini_option("cache", folder);
    return 0;
}

static int teardown(void **state) {
    mini_option("cache", NULL);
    remove_all(folder);
    return rig_teardown(state);
}

static size_t read_entry(void) {
    FILE *f = fopen(entry, "rb");
    assert_non_null(f);
    size_t n = fread(content, 1, MAX_BYTES, f);
    fclose(f);
    assert_true(n > 100 && n < MAX_BYTES);
    return n;
}

static void write_entry(size_t n) {
    FILE *f = fopen(entry, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(content, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* ---- tests ------------------------------------------------------------------------------- */

static void the_next_process_does_not_build(void **state) {
    assert_int_equal(n_entries(folder), 0);
    assert_builds();
    assert_int_equal(n_entries(folder), 1);
    assert_ok(live(NO_BUILDING));
    assert_text(mini_log(), "from the cache");
    assert_int_equal(n_entries(folder), 1);
}

/* It was kept, and something was done to it: it is not used, but replaced. */
static void assert_replaced(void) {
    assert_builds();
    assert_int_equal(n_entries(folder), 1);
    assert_ok(live(NO_BUILDING));
}

static void a_truncated_file_is_replaced(void **state) {
    assert_ok(live(""));
    assert_int_equal(n_entries(folder), 1);
    size_t n = read_entry(), lengths[] = {0, 7, 16, 31, 60, n / 2, n - 8, n - 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        read_entry();
        write_entry(lengths[i]);
        assert_replaced();
    }
}

/* In the magic, the sizes, what it says it is, the binary and the hash. */
static void a_flipped_bit_is_found(void **state) {
    assert_ok(live(""));
    assert_int_equal(n_entries(folder), 1);
    size_t n = read_entry(), places[] = {0, 13, 16, 24, 40, n / 2, n - 9, n - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        read_entry();
        content[places[i]] ^= 4;
        write_entry(n);
        assert_replaced();
    }
}

static void a_file_that_others_may_write_is_not_believed(void **state) {
    assert_ok(live(""));
    assert_int_equal(n_entries(folder), 1);
    assert_int_equal(chmod(entry, 0620), 0);
    assert_replaced();
    assert_int_equal(chmod(entry, 0602), 0);
    assert_replaced();
}

static void a_link_is_not_followed(void **state) {
    char elsewhere[PATH + 80];
    assert_ok(live(""));
    assert_int_equal(n_entries(folder), 1);
    snprintf(elsewhere, sizeof elsewhere, "%s/.elsewhere", folder);
    assert_int_equal(rename(entry, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, entry), 0);
    assert_replaced();
    unlink(elsewhere);
}

/* Opened as a file is, it waits for somebody who writes. */
static void a_fifo_keeps_nobody_waiting(void **state) {
    assert_ok(live(""));
    assert_int_equal(n_entries(folder), 1);
    assert_int_equal(unlink(entry), 0);
    assert_int_equal(mkfifo(entry, 0600), 0);
    alarm(60);
    assert_replaced();
    alarm(0);
}

static void a_folder_that_others_may_write_to_is_not_used(void **state) {
    assert_ok(live(""));
    assert_int_equal(chmod(folder, 0777), 0);
    assert_builds();
    assert_text(mini_log(), "belongs to somebody else, or everyone may write to it");
    assert_int_equal(chmod(folder, 0700), 0);
    assert_ok(live(NO_BUILDING));
    if (geteuid() != 0)
        return;
    assert_int_equal(chown(folder, 12345, 0), 0);
    assert_builds();
    assert_int_equal(chown(folder, 0, 0), 0);
    assert_ok(live(NO_BUILDING));
}

/* Under a file, where no folder can be made, whoever asks. */
static void without_a_folder_programs_are_built(void **state) {
    char below[PATH + 80];
    snprintf(entry, sizeof entry, "%s/file", folder);
    write_entry(0);
    snprintf(below, sizeof below, "%s/below", entry);
    mini_option("cache", below);
    assert_builds();
    assert_builds();
    assert_int_equal(n_entries(folder), 1);
}

static void off_is_no_cache(void **state) {
    assert_ok(live(""));
    mini_option("cache", "off");
    assert_builds();
    assert_builds();
    mini_option("cache", folder);
    assert_ok(live(NO_BUILDING));
}

/* A folder that no one named is not for a driver that has its own. */
static void programs_are_kept_once(void **state) {
    char own[PATH + 80], name[256] = "";
    cl_platform_id platform;
    clGetPlatformIDs(1, &platform, NULL);
    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL);
    bool keeps = strstr(name, "Portable Computing Language");
    snprintf(own, sizeof own, "%s/tenon/opencl", folder);
    mini_option("cache", NULL);
    setenv("XDG_CACHE_HOME", folder, 1);
    assert_ok(live(""));
    assert_int_equal(n_entries(own), keeps ? 0 : 1);
    unsetenv("XDG_CACHE_HOME");
    remove_all(own);
}

static void a_failed_question_keeps_nothing(void **state) {
    assert_ok(live("fail=clGetProgramInfo:-6"));
    assert_int_equal(n_entries(folder), 0);
    assert_ok(live("fail=clGetProgramInfo:-6@2"));
    assert_int_equal(n_entries(folder), 0);
    assert_builds();
    assert_ok(live(NO_BUILDING));
}

/* The driver takes the binary, and then does not: it is built. */
static void a_binary_that_the_driver_refuses_is_built(void **state) {
    assert_ok(live(""));
    assert_ok(live("fail=clCreateProgramWithBinary:-42"));
    assert_ok(live("fail=clBuildProgram:-11@1"));
    assert_ok(live("fail=clCreateKernel:-46@1"));
    assert_int_not_equal(live("fail=clCreateKernel:-46"), TN_OK);
}

static void two_processes_at_once_do_not_mind(void **state) {
    enum { CHILDREN = 4 };
    char *const command[] = {"test", (char *)rig_plugin, NULL};
    pid_t pids[CHILDREN];
    setenv("TENON_TEST_CACHE_CHILD", folder, 1);
    for (int i = 0; i < CHILDREN; i++)
        assert_int_equal(posix_spawn(&pids[i], "/proc/self/exe", NULL, NULL, command, environ), 0);
    unsetenv("TENON_TEST_CACHE_CHILD");
    for (int i = 0; i < CHILDREN; i++) {
        int how = -1;
        assert_int_equal(waitpid(pids[i], &how, 0), pids[i]);
        assert_int_equal(how, 0);
    }
    assert_int_equal(n_entries(folder), 1);
    assert_ok(live(NO_BUILDING));
}

#define CACHE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int all_tests(void) {
    const struct CMUnitTest tests[] = {
        CACHE_TEST(the_next_process_does_not_build),
        CACHE_TEST(a_truncated_file_is_replaced),
        CACHE_TEST(a_flipped_bit_is_found),
        CACHE_TEST(a_file_that_others_may_write_is_not_believed),
        CACHE_TEST(a_link_is_not_followed),
        CACHE_TEST(a_fifo_keeps_nobody_waiting),
        CACHE_TEST(a_folder_that_others_may_write_to_is_not_used),
        CACHE_TEST(without_a_folder_programs_are_built),
        CACHE_TEST(off_is_no_cache),
        CACHE_TEST(programs_are_kept_once),
        CACHE_TEST(a_failed_question_keeps_nothing),
        CACHE_TEST(a_binary_that_the_driver_refuses_is_built),
        CACHE_TEST(two_processes_at_once_do_not_mind),
    };
    const char *child = getenv("TENON_TEST_CACHE_CHILD");
    if (!child)
        return cmocka_run_group_tests(tests, NULL, NULL);
    mini_option("cache", child);
    return live("") != TN_OK;
}
