/* What the loader's tests share. */
#define _GNU_SOURCE
#include "tests/loader/loader_test.h"

#include <ftw.h>
#include <pthread.h>
#include <sys/mman.h>

enum { MAX_TEMPS = 16, MAX_GUARDED = 64, PAGE = 4096 };

static char temps[MAX_TEMPS][64];
static int n_temps;

static struct {
    void *at;
    size_t bytes;
} guarded[MAX_GUARDED];
static int n_guarded;

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char kept_log[1 << 16];

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
    return remove(path);
}

int fresh_loader(void **state) {
    tn_log_set(-1, NULL, NULL);
    tni_loader_finish();
    tni_registry_finish();
    tn_error_clear();
    tni_alloc_fail_at(0);
    kept_log[0] = '\0';
    while (n_temps > 0) {
        nftw(temps[--n_temps], remove_one, 8, FTW_DEPTH | FTW_PHYS);
        temps[n_temps][0] = '\0';
    }
    while (n_guarded > 0) {
        n_guarded--;
        munmap(guarded[n_guarded].at, guarded[n_guarded].bytes);
    }
    static const char *const variables[] = {"TENON_PLUGINS", "TENON_PLUGIN_PATH",
                                            "TENON_PLUGINS_DISABLE", "TENON_ZOO_STRIPES"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    return 0;
}

const char *temp_dir(void) {
    assert_true(n_temps < MAX_TEMPS);
    char *dir = temps[n_temps++];
    strcpy(dir, "/tmp/tenon-test-XXXXXX");
    assert_non_null(mkdtemp(dir));
    return dir;
}

const char *in_dir(const char *dir, const char *name) {
    static char ring[32][1024];
    static int next;
    char *path = ring[next++ % 32];
    snprintf(path, sizeof ring[0], "%s/%s", dir, name);
    return path;
}

const char *zoo(const char *animal) {
    char name[128];
    snprintf(name, sizeof name, "libtenon_zoo_%s.so", animal);
    return in_dir(ZOO_DIR, name);
}

const char *copy_file(const char *from, const char *to) {
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, in)) > 0;)
        assert_int_equal(fwrite(buffer, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(to, 0755), 0);
    return to;
}

void write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
}

void search_only(const char *dirs) {
    unsetenv("TENON_PLUGINS");
    setenv("TENON_PLUGIN_PATH", dirs, 1);
}

void load_only(const char *paths) {
    setenv("TENON_PLUGINS", paths, 1);
}

typedef struct lookup {
    const char *path;
    const tni_plugin *found;
    uint32_t n;
} lookup;

static void look(const tni_plugin *plugin, void *user) {
    lookup *l = user;
    l->n++;
    if (l->path && plugin->path && strcmp(plugin->path, l->path) == 0)
        l->found = plugin;
}

const tni_plugin *candidate(const char *path) {
    lookup l = {.path = path};
    tni_loader_for_each(look, &l);
    return l.found;
}

uint32_t count_candidates(void) {
    lookup l = {0};
    tni_loader_for_each(look, &l);
    return l.n;
}

void contains(const char *file, int line, const char *text, ...) {
    va_list words;
    va_start(words, text);
    for (const char *word; (word = va_arg(words, const char *));) {
        if (!text || !strstr(text, word)) {
            print_error("'%s' is not in:\n%s\n", word, text ? text : "(null)");
            _fail(file, line);
        }
    }
    va_end(words);
}

static void keep_line(void *user, int32_t level, const char *subsystem, const char *line) {
    pthread_mutex_lock(&log_lock);
    size_t n = strlen(kept_log);
    snprintf(kept_log + n, sizeof kept_log - n, "%d %s: %s\n", level, subsystem, line);
    pthread_mutex_unlock(&log_lock);
}

void keep_log(void) {
    tn_log_set(TN_LOG_TRACE, keep_line, NULL);
}

const char *log_text(void) {
    return kept_log;
}

void *before_guard_page(const void *bytes, size_t n) {
    assert_true(n_guarded < MAX_GUARDED);
    size_t room = (n + PAGE - 1) / PAGE * PAGE;
    char *pages =
        mmap(NULL, room + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + room, PAGE, PROT_NONE), 0);
    guarded[n_guarded].at = pages;
    guarded[n_guarded++].bytes = room + PAGE;
    return memcpy(pages + room - n, bytes, n);
}
