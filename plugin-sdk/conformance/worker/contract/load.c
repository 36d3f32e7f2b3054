/* Loading: what the file exports, and what dlopen and the query do. No case calls init but the one
 * whose question needs it. */
#include "plugin-sdk/conformance/worker/contract/capture.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/contract/object.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the file ---------------------------------------------------------------------------- */

typedef struct exports {
    tc_contract *k;
    const tn_plugin *plugin; /* NULL: the query has failed */
    bool query;
} exports;

/* Names that linkers themselves put into every object. */
static bool of_the_linker(const char *name) {
    static const char *const names[] = {"_init", "_fini", "_edata", "_end", "__bss_start"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* The entry of any major. */
static bool is_query(const char *name) {
    static const char stem[] = "tenon_plugin_query_v";
    const char *digits = name + sizeof stem - 1;
    return strncmp(name, stem, sizeof stem - 1) == 0 && *digits >= '1' && *digits <= '9' &&
           strspn(digits, "0123456789") == strlen(digits);
}

/* Entries of other interfaces by which one object may be found. */
static bool of_another_interface(const char *name) {
    static const char *const names[] = {"GetPjrtApi", "CreateEpFactories", "ReleaseEpFactory"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return strncmp(name, "PyInit_", 7) == 0 || strncmp(name, "ggml_backend_", 13) == 0;
}

/* acme_open, ACME_OPEN, acme2open and acmeOpen begin with `acme`; acmeopen may be another's. */
static bool begins_with(const char *name, const char *prefix, size_t n) {
    char next = name[strnlen(name, n)];
    return n > 1 && strncasecmp(name, prefix, n) == 0 &&
           (next == '_' || (next >= '0' && next <= '9') || (next >= 'A' && next <= 'Z'));
}

/* The vendor's: a part of the plugin's id behind the first, or its device type. What begins with
 * Tenon's own prefixes is his only as tenon_<device type>. */
static bool of_the_vendor(const tn_plugin *p, const char *name) {
    static const char tenon[] = "tenon_";
    if (!p)
        return false;
    if (strncmp(name, tenon, sizeof tenon - 1) == 0)
        return begins_with(name + sizeof tenon - 1, p->device_type, strlen(p->device_type));
    if (strncmp(name, "tn_", 3) == 0 || strncmp(name, "tni_", 4) == 0)
        return false;
    for (const char *part = strchr(p->id, '.'); part; part = strchr(part + 1, '.'))
        if (begins_with(name, part + 1, strcspn(part + 1, ".")))
            return true;
    return begins_with(name, p->device_type, strlen(p->device_type));
}

static void check_symbol(void *context, const char *name, bool defined) {
    exports *e = context;
    if (defined && strcmp(name, TN_PLUGIN_QUERY_NAME) == 0)
        e->query = true;
    else if (defined && !of_the_linker(name) && !is_query(name) && !of_another_interface(name) &&
             !of_the_vendor(e->plugin, name))
        TC_BROKEN(e->k, TNP_ENTRY_ONLY_SYMBOL,
                  "the object exports %.200s; link it with -fvisibility=hidden and an export list, "
                  "or let what it exports begin with the vendor's prefix, such as %.31s_",
                  name, e->plugin ? e->plugin->device_type : "acme");
    else if (!defined && (strncmp(name, "tn_", 3) == 0 || strncmp(name, "tni_", 4) == 0 ||
                          strncmp(name, "tenon_", 6) == 0))
        TC_BROKEN(e->k, TNP_ENTRY_SELF_CONTAINED,
                  "the object needs %.200s of Tenon, which no host has for it", name);
}

static void load_symbols(tc_contract *k) {
    char why[TC_MESSAGE];
    exports e = {.k = k, .plugin = tc_lifecycle_query(k)};
    if (!tc_object_symbols(k->options->plugin, check_symbol, &e, why))
        TC_BROKEN(k, TNP_ENTRY_ONLY_SYMBOL, "%s", why);
    else if (!e.query)
        TC_BROKEN(k, TNP_ENTRY_ONLY_SYMBOL, "the object does not export " TN_PLUGIN_QUERY_NAME);
}

/* ---- dlopen and query -------------------------------------------------------------------- */

static void load_quiet(tc_contract *k) {
    tc_capture out, err;
    char text[64], errors[64];
    tn_plugin_query_fn query;
    const tn_plugin *plugin = NULL;
    int64_t allocations = tc_host_allocations();
    if (!tc_capture_start(&out, 1) || !tc_capture_start(&err, 2)) {
        TC_CASE_ERROR(k->out, "stdout and stderr cannot be captured");
        return;
    }
    tc_census before = tc_census_take(0);
    bool opened = tc_lifecycle_object(k, &query) != NULL;
    tc_census loaded = tc_census_take(before.threads);
    struct mallinfo2 heap = mallinfo2();
    if (opened)
        plugin = query(tc_host_table());
    struct mallinfo2 later = mallinfo2();
    tc_census queried = tc_census_take(loaded.threads);
    int64_t n_errors = tc_capture_stop(&err, errors), n_text = tc_capture_stop(&out, text);
    if (!opened)
        return;
    if (!plugin)
        TC_BROKEN(k, TNP_ENTRY_HOST_VERSIONS,
                  TN_PLUGIN_QUERY_NAME " returned NULL for a whole host of this version");
    if (tc_host_allocations() != allocations)
        TC_BROKEN(k, TNP_ENTRY_PURE, "dlopen or " TN_PLUGIN_QUERY_NAME " called host->alloc");
    if (later.uordblks + later.hblkhd != heap.uordblks + heap.hblkhd)
        TC_BROKEN(k, TNP_ENTRY_PURE, TN_PLUGIN_QUERY_NAME " allocated %lld bytes",
                  (long long)(later.uordblks + later.hblkhd - heap.uordblks - heap.hblkhd));
    if (loaded.threads > before.threads)
        TC_BROKEN(k, TNP_ENTRY_SELF_CONTAINED,
                  "dlopen started %lld threads; start them in open, not in a constructor",
                  (long long)(loaded.threads - before.threads));
    if (queried.threads > loaded.threads)
        TC_BROKEN(k, TNP_ENTRY_PURE, TN_PLUGIN_QUERY_NAME " started %lld threads",
                  (long long)(queried.threads - loaded.threads));
    if (queried.descriptors > loaded.descriptors)
        TC_BROKEN(k, TNP_ENTRY_PURE, TN_PLUGIN_QUERY_NAME " left a file open");
    if (n_text > 0 || n_errors > 0)
        TC_BROKEN(k, TNP_NO_OUTPUT, "dlopen or " TN_PLUGIN_QUERY_NAME " printed to %s: %s",
                  n_text > 0 ? "stdout" : "stderr", n_text > 0 ? text : errors);
}

/* ---- hardware ---------------------------------------------------------------------------- */

/* Files of /dev that are no hardware. */
static bool is_device(const char *path) {
    static const char *const harmless[] = {"null", "zero",    "full", "random", "urandom",
                                           "tty",  "console", "ptmx", "pts/",   "shm/"};
    if (strncmp(path, "/dev/", 5) != 0)
        return false;
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (strncmp(path + 5, harmless[i], strlen(harmless[i])) == 0)
            return false;
    return true;
}

/* How many files of devices the process has open or mapped; `name` is that of one. */
static int64_t devices_in_use(char name[128]) {
    char path[300];
    int64_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *e; dir && (e = readdir(dir));) {
        ssize_t got = readlinkat(dirfd(dir), e->d_name, path, sizeof path - 1);
        path[got > 0 ? got : 0] = '\0';
        if (is_device(path)) {
            n++;
            snprintf(name, 128, "%.120s", path);
        }
    }
    if (dir)
        closedir(dir);
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(path, sizeof path, maps)) {
        const char *file = strchr(path, '/');
        if (file && is_device(file)) {
            n++;
            snprintf(name, 128, "%.*s", (int)strcspn(file, "\n") % 120, file);
        }
    }
    if (maps)
        fclose(maps);
    return n;
}

/* A driver is reached through its file. What was opened and closed again is not seen. */
static void load_hardware(tc_contract *k) {
    char name[128] = "", why[TC_MESSAGE];
    tc_subject s;
    int64_t before = devices_in_use(name);
    if (!tc_subject_load(&s, k->options->plugin, tc_host_table(), why)) {
        TC_BROKEN(k, s.broken, "%s", why);
        return;
    }
    int64_t loaded = devices_in_use(name);
    if (loaded > before)
        TC_BROKEN(k, TNP_ENTRY_PURE,
                  "dlopen or " TN_PLUGIN_QUERY_NAME " opened %s; leave that to count", name);
    s.host = tc_host_table();
    tc_host_begin(s.host);
    if (!tc_must(k, TNP_INIT_RESULT, s.plugin->init(tc_host_table(), k->options->plugin, &s.self),
                 "init"))
        return;
    if (devices_in_use(name) > loaded)
        TC_BROKEN(k, TNP_INIT_NO_HARDWARE, "init opened %s; leave that to count", name);
    tc_subject_close(&s);
}

/* ---- query ------------------------------------------------------------------------------- */

enum { N_THREADS = 4, N_QUERIES = 100, N_PROCESSES = 200 };

/* Exit statuses, such as no other has. */
typedef enum answer { THE_SAME, NO_TABLE = 100, OTHER_TABLES, CHANGING_TABLE, NO_THREAD } answer;

typedef struct asker {
    pthread_t thread;
    atomic_int *ready; /* those that will ask */
    int n;
    tn_plugin_query_fn query;
    const tn_plugin *plugin;
    uint64_t sum;
    bool same;
} asker;

/* They spin: who sleeps at a barrier wakes when another has its answer. */
static void *ask(void *context) {
    asker *a = context;
    atomic_fetch_add(a->ready, 1);
    for (unsigned i = 1; atomic_load_explicit(a->ready, memory_order_relaxed) < a->n; i++)
        if (i % 1024 == 0)
            sched_yield();
    a->plugin = a->query(tc_host_table());
    a->sum = a->plugin ? tc_tables_sum(a->plugin) : 0;
    a->same = true;
    for (int i = 0; i < N_QUERIES; i++)
        a->same &= a->query(tc_host_table()) == a->plugin;
    return NULL;
}

static answer ask_at_once(tn_plugin_query_fn query, int n) {
    asker askers[N_THREADS];
    atomic_int ready = 0;
    for (int i = 0; i < n; i++) {
        askers[i] = (asker){.ready = &ready, .n = n, .query = query};
        if (pthread_create(&askers[i].thread, NULL, ask, &askers[i]) != 0)
            return NO_THREAD; /* the process ends, and with it who waits */
    }
    for (int i = 0; i < n; i++)
        pthread_join(askers[i].thread, NULL);
    const tn_plugin *plugin = query(tc_host_table());
    uint64_t sum = plugin ? tc_tables_sum(plugin) : 0;
    for (int i = 0; i < n; i++)
        if (!askers[i].plugin)
            return NO_TABLE;
        else if (!askers[i].same || askers[i].plugin != plugin)
            return OTHER_TABLES;
        else if (askers[i].sum != sum)
            return CHANGING_TABLE;
    return THE_SAME;
}

/* False once it is known what is wrong. */
static bool take_answer(tc_contract *k, int status, int n) {
    switch (WIFEXITED(status) ? WEXITSTATUS(status) : -1) {
    case THE_SAME:
        return true;
    case NO_TABLE:
        return TC_BROKEN(k, TNP_ENTRY_PURE,
                         TN_PLUGIN_QUERY_NAME " returned NULL when asked from a thread");
    case OTHER_TABLES:
        return TC_BROKEN(k, TNP_ENTRY_PURE, TN_PLUGIN_QUERY_NAME " returned different tables");
    case CHANGING_TABLE:
        return TC_BROKEN(k, TNP_ENTRY_PURE,
                         "the table was not the same for %d threads that asked at once", n);
    case NO_THREAD:
        TC_CASE_ERROR(k->out, "a thread cannot be started");
        return false;
    default:
        return TC_BROKEN(k, TNP_ENTRY_PURE,
                         "a process of which %d threads asked at once ended: %s %d", n,
                         WIFEXITED(status) ? "exit status" : "signal",
                         WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    }
}

/* The first queries of a process come from several threads at once; in many processes, for how
 * closely they meet is chance. */
static void load_query(tc_contract *k) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int n = cores < 2 ? 2 : cores < N_THREADS ? (int)cores : N_THREADS;
    tn_plugin_query_fn query;
    if (!tc_lifecycle_object(k, &query))
        return;
    bool good = true;
    for (int i = 0; i < N_PROCESSES && good; i++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit((int)ask_at_once(query, n));
        if (child < 0 || waitpid(child, &status, 0) != child) {
            TC_CASE_ERROR(k->out, "a process cannot be started: %s", strerror(errno));
            return;
        }
        good = take_answer(k, status, n);
    }
}

static void load_older_host(tc_contract *k) {
    tn_plugin_query_fn query;
    const tn_plugin *plugin = tc_lifecycle_query(k);
    if (!plugin || !tc_lifecycle_object(k, &query))
        return;
    uint32_t required = plugin->abi_required;
    const uint32_t versions[] = {0, required - 1};
    for (size_t i = 0; required > 0 && i < 2; i++) {
        tn_host older = *tc_host_table();
        older.abi_version = versions[i];
        if (query(&older))
            TC_BROKEN(k, TNP_ENTRY_HOST_VERSIONS,
                      TN_PLUGIN_QUERY_NAME
                      " returned a table to a host of version %u.%u, "
                      "older than the plugin's abi_required %u.%u; return NULL",
                      versions[i] >> 16, versions[i] & 0xffff, required >> 16, required & 0xffff);
    }
    if (query(tc_host_table()) != plugin)
        TC_BROKEN(k, TNP_ENTRY_PURE,
                  "after the query of an older host that of this one gets another table");
}

const tc_contract_row tc_load_rows[] = {
    {"load-symbols", "", TC_SMOKE, load_symbols},       {"load-quiet", "", TC_SMOKE, load_quiet},
    {"load-hardware", "", TC_SMOKE, load_hardware},     {"load-query", "", TC_SMOKE, load_query},
    {"load-older-host", "", TC_SMOKE, load_older_host}, {0},
};
