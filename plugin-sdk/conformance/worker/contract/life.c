/* Init and shutdown, open and close: again and again, in any order, and what is left afterwards. */
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/contract/properties.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool load(tc_contract *k, tc_subject *s) {
    char why[TC_MESSAGE];
    bool ok = tc_subject_load(s, k->options->plugin, tc_host_table(), why);
    if (!ok)
        TC_BROKEN(k, s->broken, "%s", why);
    return ok;
}

/* init alone, with a poisoned *out_self. */
static bool init(tc_contract *k, tc_subject *s, const char *path) {
    static char poison;
    s->self = (tn_pself *)(void *)&poison;
    tc_host_running(true);
    tc_host_expect_self(NULL);
    tn_status status = s->plugin->init(tc_host_table(), path, &s->self);
    if (status == TN_OK && s->self && (void *)s->self != &poison) {
        tc_host_expect_self(s->self);
        return true;
    }
    if (tc_must(k, TNP_INIT_RESULT, status, "init"))
        TC_BROKEN(k, TNP_INIT_RESULT, "init succeeded and %s *out_self",
                  s->self ? "did not set" : "set NULL as");
    s->self = NULL;
    tc_host_running(false);
    return false;
}

static bool count(tc_contract *k, tc_subject *s, uint32_t *out) {
    *out = UINT32_MAX;
    if (!tc_must(k, TNP_COUNT_DEVICES, s->ops->count(s->self, out), "count"))
        return false;
    if (*out == UINT32_MAX)
        TC_BROKEN(k, TNP_COUNT_DEVICES, "count succeeded and did not set *out_count");
    return *out != UINT32_MAX;
}

/* ---- again and again --------------------------------------------------------------------- */

static void life_init(tc_contract *k) {
    int64_t times = tc_contract_int(k, "times");
    tc_subject s;
    tc_census early = {0};
    if (!load(k, &s))
        return;
    tc_census start = tc_census_take(0);
    for (int64_t i = 0; i < times && !tc_failed(k); i++) {
        if (!init(k, &s, k->options->plugin))
            return;
        tc_subject_close(&s);
        tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after init and shutdown");
        if (i == times / 2)
            early = tc_census_take(start.threads);
    }
    tc_census now = tc_census_take(start.threads);
    if (now.threads > start.threads)
        TC_BROKEN(k, TNP_SHUTDOWN_NO_THREADS,
                  "%lld threads run after shutdown, %lld before init; join them in shutdown",
                  (long long)now.threads, (long long)start.threads);
    if (now.descriptors > early.descriptors)
        TC_BROKEN(k, TNP_INIT_AGAIN,
                  "init and shutdown leave descriptors open: %lld more after %lld times",
                  (long long)(now.descriptors - early.descriptors), (long long)(times - times / 2));
    if (now.heap_bytes - early.heap_bytes >= 8 * (times / 2))
        TC_BROKEN(k, TNP_INIT_AGAIN,
                  "init and shutdown leave %lld bytes of malloc behind each time",
                  (long long)((now.heap_bytes - early.heap_bytes) / (times - times / 2)));
}

/* ---- options ----------------------------------------------------------------------------- */

/* What init asks for, and what one of these is answered with. One thread. */
static struct {
    char names[32][64];
    int n, garbled;
    const char *value;
} options;

static const char *garbled_option(tn_pself *self, const char *name) {
    const char *real = tc_host_table()->option(self, name);
    if (!name)
        return real;
    for (int i = 0; i < options.n; i++)
        if (strcmp(options.names[i], name) == 0)
            return i == options.garbled ? options.value : real;
    if (options.n < 32)
        snprintf(options.names[options.n++], sizeof options.names[0], "%s", name);
    return real;
}

/* init and, if that went well, shutdown. A value that cannot be used is a failure with a message.
 */
static void init_garbled(tc_contract *k, tc_subject *s, const tn_host *host) {
    char when[160];
    snprintf(when, sizeof when, "after init with option %s set to '%s'",
             options.garbled < 0 ? "(none)" : options.names[options.garbled],
             options.garbled < 0 ? "" : options.value);
    s->self = NULL;
    tc_host_running(true);
    tc_host_expect_self(NULL);
    tc_host_forget();
    tn_status status = s->plugin->init(host, k->options->plugin, &s->self);
    if (status == TN_OK) {
        tc_host_expect_self(s->self);
        tc_subject_close(s);
    } else {
        tc_host_running(false);
        if (!*tc_host_message() || tc_host_message_status() != status)
            TC_BROKEN(k, TNP_FAIL_MESSAGE,
                      "%s it failed with %s, without a host->fail of that status and a message",
                      when, tc_tn_status_name(status));
        if (s->self)
            TC_BROKEN(k, TNP_INIT_RESULT, "%s it failed and left *out_self set", when);
    }
    s->self = NULL;
    tc_lifecycle_balanced(k, TNP_INIT_RESULT, when);
}

/* Each option in turn with values that are hardly any: refused or taken, nothing is left behind. */
static void life_options(tc_contract *k) {
    static const char *const values[] = {"", "no such value", "-1", "99999999999999999999999"};
    tn_host host = *tc_host_table();
    tc_subject s;
    host.option = garbled_option;
    options.n = 0;
    options.garbled = -1;
    if (!load(k, &s))
        return;
    init_garbled(k, &s, &host);
    if (options.n == 0) {
        TC_NOT_OFFERED(k, "init asks for no option");
        return;
    }
    for (options.garbled = 0; options.garbled < options.n && !tc_failed(k); options.garbled++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            options.value = values[v];
            init_garbled(k, &s, &host);
        }
    if (!tc_failed(k) && tc_lifecycle_open(k, &s, tc_host_table(), TNP_INIT_AGAIN,
                                           "init after options that cannot be used")) {
        tc_lifecycle_probe(k, &s, false, TNP_INIT_AGAIN, "after options that cannot be used", NULL);
        tc_subject_close(&s);
    }
}

/* ---- lives ------------------------------------------------------------------------------- */

/* What may grow without being a leak: arenas of malloc, stacks that are kept. */
enum { MAPPINGS = 8, RESIDENT = 8 << 20 };

static void compare(tc_contract *k, const tc_census *a, const tc_census *b, int64_t times) {
    long long n = (long long)times;
    if (b->threads > a->threads)
        TC_BROKEN(k, TNP_INIT_AGAIN, "%lld more threads run after %lld more lives of the plugin",
                  (long long)(b->threads - a->threads), n);
    if (b->descriptors > a->descriptors)
        TC_BROKEN(k, TNP_INIT_AGAIN,
                  "%lld more descriptors are open after %lld more lives of the plugin",
                  (long long)(b->descriptors - a->descriptors), n);
    if (b->mappings - a->mappings > MAPPINGS)
        TC_BROKEN(k, TNP_INIT_AGAIN,
                  "%lld more mappings are there after %lld more lives of the plugin",
                  (long long)(b->mappings - a->mappings), n);
    if (b->resident_bytes - a->resident_bytes > RESIDENT)
        TC_BROKEN(k, TNP_INIT_AGAIN,
                  "the process has grown by %lld bytes in %lld more lives of the plugin",
                  (long long)(b->resident_bytes - a->resident_bytes), n);
}

/* What a runtime below the plugin pools grows in jumps, and the first lives fill the caches of
 * malloc itself; what is lost in each life grows all the time. The least piece of malloc is not
 * counted: LLVM, on which drivers are built, loses one for each program that it compiles. */
enum { FIRST = 9, SOME = 5, LOST = 48 };

typedef struct heap_growth {
    int64_t before, least; /* in SOME lives */
    int n;
} heap_growth;

static void watch_heap(heap_growth *g, int64_t life, int64_t heap_bytes) {
    if (life < FIRST || (life - FIRST) % SOME)
        return;
    int64_t growth = heap_bytes - g->before;
    if (life > FIRST && (g->n++ == 0 || growth < g->least))
        g->least = growth;
    g->before = heap_bytes;
}

/* The first lives may start what belongs to the process: a runtime's threads, its caches. */
static void life_cycles(tc_contract *k) {
    int64_t times = tc_contract_int(k, "times");
    tc_census start, early = {0}, now;
    heap_growth heap = {0};
    tc_subject s;
    if (!load(k, &s))
        return;
    start = tc_census_take(0);
    for (int64_t i = 0; i < times && !tc_failed(k); i++) {
        if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_INIT_AGAIN,
                               i ? "a later life" : "the first life"))
            return;
        tc_lifecycle_probe(k, &s, i < 2 || i + 1 == times, TNP_INIT_AGAIN,
                           i ? "a later life" : "the first life", NULL);
        tc_subject_close(&s);
        tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after shutdown");
        tc_arena_finish(&k->arena);
        now = tc_census_take(early.threads ? early.threads : start.threads);
        watch_heap(&heap, i, now.heap_bytes);
        if (i == 1 || (i < times / 2 && i == FIRST))
            early = now;
    }
    if (!tc_failed(k) && times > 2)
        compare(k, &early, &now, times > 20 ? times - FIRST - 1 : times - 2);
    if (heap.n >= 3 && heap.least >= LOST * SOME)
        TC_BROKEN(k, TNP_INIT_AGAIN, "each life of the plugin leaves %lld bytes of malloc behind",
                  (long long)(heap.least / SOME));
}

static void life_again(tc_contract *k) {
    uint64_t first = 0, sum = 0, properties = 0;
    uint32_t n = 0;
    for (int i = 0; i < 3 && !tc_failed(k); i++) {
        tc_subject s;
        if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_INIT_AGAIN, "init after shutdown"))
            return;
        uint64_t p = tc_properties_sum(&s, s.index);
        if (tc_lifecycle_probe(k, &s, false, TNP_INIT_AGAIN, "init after shutdown", &sum)) {
            if (i && s.n_devices != n)
                TC_BROKEN(k, TNP_INIT_AGAIN,
                          "there are %u devices after init, and were %u the first time",
                          s.n_devices, n);
            if (i && p != properties)
                TC_BROKEN(k, TNP_INIT_AGAIN,
                          "the device has other properties after init than the first time");
            if (i && sum != first)
                TC_BROKEN(k, TNP_INIT_AGAIN,
                          "a kernel gives other bits after init than the first time");
        }
        n = s.n_devices;
        first = sum;
        properties = p;
        tc_subject_close(&s);
    }
}

static void life_path_null(tc_contract *k) {
    tc_subject s;
    uint32_t n;
    if (!load(k, &s) || !init(k, &s, NULL))
        return;
    if (count(k, &s, &n) && n > k->options->device &&
        tc_must(k, TNP_INIT_PATH_NULL, s.ops->open(s.self, k->options->device, &s.device),
                "open after init(NULL)")) {
        s.ops->close(s.device);
        s.device = NULL;
    }
    tc_subject_close(&s);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after init with path NULL and shutdown");
}

/* ---- devices ----------------------------------------------------------------------------- */

enum { MOST = 16 };

static bool open_device(tc_contract *k, tc_subject *s, uint32_t index, tc_subject *out) {
    static char poison;
    *out = *s;
    out->index = index;
    out->stream = NULL;
    out->device = (tn_pdevice *)(void *)&poison;
    tn_status status = s->ops->open(s->self, index, &out->device);
    if (status == TN_OK && out->device && (void *)out->device != &poison) {
        out->alignment = (uint64_t)tc_subject_property(s, index, TN_PROP_ALIGNMENT, 64);
        out->dtypes =
            (uint64_t)tc_subject_property(s, index, TN_PROP_DTYPES, (int64_t)TN_DTYPES_ALL);
        return true;
    }
    if (tc_must(k, TNP_OPEN_DEVICE, status, "open"))
        TC_BROKEN(k, TNP_OPEN_DEVICE, "open of device %u succeeded and %s *out_device", index,
                  out->device ? "did not set" : "set NULL as");
    return false;
}

/* Every device at once; each works while the others are open, and after some were closed. */
static void life_devices(tc_contract *k) {
    tc_subject s, all[MOST];
    uint32_t n = 0, opened = 0;
    if (!load(k, &s) || !init(k, &s, k->options->plugin))
        return;
    if (count(k, &s, &n))
        for (; opened < n && opened < MOST && open_device(k, &s, opened, &all[opened]); opened++)
            if (s.ops->streams)
                tc_must(k, TNP_STREAM_CREATE,
                        s.ops->streams->create(all[opened].device, 0, &all[opened].stream),
                        "stream create");
    for (uint32_t i = 0; i < opened; i++)
        for (uint32_t j = 0; j < i; j++)
            if (all[i].device == all[j].device)
                TC_BROKEN(k, TNP_OPEN_DEVICE, "devices %u and %u are the same handle", j, i);
    for (uint32_t i = 0; i < opened && !tc_failed(k); i++)
        tc_lifecycle_probe(k, &all[i], false, TNP_OPEN_DEVICE, "a device beside other open ones",
                           NULL);
    for (uint32_t i = 0; i < opened; i++) {
        if (all[i].stream)
            s.ops->streams->destroy(all[i].stream);
        s.ops->close(all[i].device);
        for (uint32_t j = i + 1; j < opened && !tc_failed(k); j++)
            tc_lifecycle_probe(k, &all[j], false, TNP_OPEN_DEVICE,
                               "a device after another was closed", NULL);
    }
    tc_subject_close(&s);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after all devices were opened and closed");
}

/* Closed without use, again and again while the plugin goes on. */
static void life_unused(tc_contract *k) {
    tc_subject s, one;
    uint32_t n = 0;
    if (!load(k, &s) || !init(k, &s, k->options->plugin))
        return;
    if (count(k, &s, &n))
        for (uint32_t i = 0; i < n && !tc_failed(k); i++) {
            int64_t blocks = 0;
            tc_census early = {0};
            for (int times = 0; times < 10 && !tc_failed(k); times++) {
                if (!open_device(k, &s, i, &one))
                    break;
                s.ops->close(one.device);
                if (times == 4) {
                    blocks = tc_host_blocks();
                    early = tc_census_take(0);
                }
            }
            tc_census now = tc_census_take(early.threads);
            if (tc_host_blocks() > blocks)
                TC_BROKEN(k, TNP_CLOSE_RETURNS_ALL,
                          "open and close of device %u leave host memory behind; close frees what "
                          "open took",
                          i);
            if (now.descriptors > early.descriptors || now.threads > early.threads ||
                now.mappings > early.mappings + 2)
                TC_BROKEN(k, TNP_CLOSE_RETURNS_ALL,
                          "open and close of device %u leave a descriptor, a mapping or a "
                          "thread behind",
                          i);
            uint32_t again;
            if (count(k, &s, &again) && again != n)
                TC_BROKEN(k, TNP_COUNT_DEVICES, "count said %u, and %u after device %u was opened",
                          n, again, i);
        }
    tc_subject_close(&s);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED,
                          "after devices were opened and closed without use");
}

/* Before open, while open and after close; the name stays where it was. */
static void life_properties(tc_contract *k) {
    tc_subject s, one;
    uint32_t n = 0;
    if (!load(k, &s) || !init(k, &s, k->options->plugin))
        return;
    if (count(k, &s, &n))
        for (uint32_t i = 0; i < n && !tc_failed(k); i++) {
            tn_cell name = {0};
            char text[256] = "";
            tc_check_properties(k, &s, i);
            uint64_t before = tc_properties_sum(&s, i);
            bool named = s.ops->property(s.self, i, TN_PROP_NAME, &name) == TN_OK &&
                         name.tag == TN_CELL_STRING && name.v.string;
            if (named)
                snprintf(text, sizeof text, "%s", name.v.string);
            if (!open_device(k, &s, i, &one))
                break;
            tc_check_properties(k, &s, i);
            if (tc_properties_sum(&s, i) != before)
                TC_BROKEN(k, TNP_PROPERTY_STABLE, "device %u has other properties once it is open",
                          i);
            s.ops->close(one.device);
            if (tc_properties_sum(&s, i) != before)
                TC_BROKEN(k, TNP_PROPERTY_STABLE,
                          "device %u has other properties once it was closed", i);
            if (named && strncmp(text, name.v.string, sizeof text - 1) != 0)
                TC_BROKEN(k, TNP_PROPERTY_RANGE,
                          "the name of device %u was not valid until shutdown", i);
        }
    tc_subject_close(&s);
}

/* ---- other threads ----------------------------------------------------------------------- */

typedef struct errand {
    tc_contract *k;
    tc_subject s, one; /* the plugin, and its device once that is open */
} errand;

static void *errand_init(void *context) {
    errand *e = context;
    init(e->k, &e->s, e->k->options->plugin);
    return NULL;
}

static void *errand_count(void *context) {
    errand *e = context;
    uint32_t n;
    count(e->k, &e->s, &n);
    return NULL;
}

static void *errand_open(void *context) {
    errand *e = context;
    tc_contract *k = e->k;
    if (open_device(k, &e->s, k->options->device, &e->one) && e->s.ops->streams)
        tc_must(k, TNP_STREAM_CREATE, e->s.ops->streams->create(e->one.device, 0, &e->one.stream),
                "stream create");
    return NULL;
}

static void *errand_work(void *context) {
    errand *e = context;
    if (e->one.device)
        tc_lifecycle_probe(e->k, &e->one, true, TNP_THREADS_NO_AFFINITY,
                           "from another thread than init and open", NULL);
    return NULL;
}

static void *errand_close(void *context) {
    errand *e = context;
    if (e->one.stream)
        e->s.ops->streams->destroy(e->one.stream);
    if (e->one.device)
        e->s.ops->close(e->one.device);
    return NULL;
}

static void *errand_shutdown(void *context) {
    tc_subject_close(&((errand *)context)->s);
    return NULL;
}

/* Each call comes from a thread of its own, which is gone when the next one comes. */
static void life_threads(tc_contract *k) {
    static void *(*const errands[])(void *) = {errand_init,    errand_count, errand_open,
                                               errand_work,    errand_work,  errand_close,
                                               errand_shutdown};
    for (int times = 0; times < 3 && !tc_failed(k); times++) {
        errand e = {.k = k};
        if (!load(k, &e.s))
            return;
        for (size_t i = 0; i < sizeof errands / sizeof *errands; i++) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, errands[i], &e) == 0)
                pthread_join(thread, NULL);
            else
                tc_verdict_set(k->out, TC_ERROR, TNP_NONE, "a thread cannot be started");
            if (!e.s.self)
                break;
        }
        if (k->out->status == TC_FAIL) { /* in one thread other cases do the same */
            tc_verdict broken = *k->out;
            *k->out = (tc_verdict){0};
            TC_BROKEN(k, TNP_THREADS_NO_AFFINITY, "with a thread of its own for each call: %.900s",
                      broken.message);
        }
        tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED,
                              "after a life with a thread for each call");
    }
}

/* ---- fork and unload --------------------------------------------------------------------- */

static void life_fork(tc_contract *k) {
    tc_subject s;
    int ends[2];
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_FORK_SAFE, "before fork"))
        return;
    if (!(s.plugin->flags & TN_PLUGIN_FORK_SAFE)) {
        tc_subject_close(&s);
        TC_NOT_OFFERED(k, "the plugin has no TN_PLUGIN_FORK_SAFE");
        return;
    }
    tc_lifecycle_probe(k, &s, true, TNP_FORK_SAFE, "before fork", NULL);
    if (!tc_failed(k) && pipe(ends) == 0) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            tc_lifecycle_probe(k, &s, true, TNP_FORK_SAFE, "in a forked child", NULL);
            if (tc_failed(k))
                (void)!write(ends[1], k->out->message, strlen(k->out->message));
            _exit(tc_failed(k) ? 1 : 0);
        }
        close(ends[1]);
        char text[TC_VERDICT_MESSAGE] = "";
        int status = 0;
        ssize_t got = read(ends[0], text, sizeof text - 1);
        close(ends[0]);
        while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        if (child < 0)
            tc_verdict_set(k->out, TC_ERROR, TNP_NONE, "fork: %s", strerror(errno));
        else if (got > 0)
            TC_BROKEN(k, TNP_FORK_SAFE, "%.900s", text);
        else if (status != 0)
            TC_BROKEN(k, TNP_FORK_SAFE, "the plugin %s in a forked child",
                      WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "hung" : "crashed");
        tc_lifecycle_probe(k, &s, true, TNP_FORK_SAFE, "after fork, in the parent", NULL);
    }
    tc_subject_close(&s);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after fork and shutdown");
}

/* What was registered and not taken back is called when a process forks. */
static void fork_once(tc_contract *k) {
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (child > 0 && status != 0)
        TC_BROKEN(k, TNP_SHUTDOWN_UNLOADABLE,
                  "a fork after dlclose crashes in what the plugin left behind");
}

static void life_unload(tc_contract *k) {
    uint64_t first = 0, sum = 0;
    for (int i = 0; i < 4 && !tc_failed(k); i++) {
        tc_subject s;
        if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_SHUTDOWN_UNLOADABLE,
                               i ? "loaded again" : "loaded"))
            return;
        tc_lifecycle_probe(k, &s, i == 0, TNP_SHUTDOWN_UNLOADABLE, i ? "loaded again" : "loaded",
                           NULL);
        tc_lifecycle_probe(k, &s, false, TNP_SHUTDOWN_UNLOADABLE, i ? "loaded again" : "loaded",
                           &sum);
        bool unloadable = s.plugin->flags & TN_PLUGIN_UNLOADABLE;
        tc_subject_close(&s);
        if (!unloadable) {
            TC_NOT_OFFERED(k, "the plugin has no TN_PLUGIN_UNLOADABLE");
            return;
        }
        if (i && sum != first)
            TC_BROKEN(k, TNP_SHUTDOWN_UNLOADABLE,
                      "a kernel gives other bits after the object was loaded again");
        first = sum;
        if (dlclose(s.object) != 0)
            TC_BROKEN(k, TNP_SHUTDOWN_UNLOADABLE, "dlclose: %s", dlerror());
        fork_once(k);
    }
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after dlclose");
}

const tc_contract_row tc_life_rows[] = {
    {"life-init", "times=100", TC_SMOKE, life_init},
    {"life-options", "", TC_SMOKE, life_options},
    {"life-cycles", "times=4", TC_SMOKE, life_cycles},
    {"life-cycles", "times=30", TC_STANDARD, life_cycles},
    {"life-again", "", TC_STANDARD, life_again},
    {"life-path-null", "", TC_SMOKE, life_path_null},
    {"life-devices", "", TC_STANDARD, life_devices},
    {"life-unused", "", TC_SMOKE, life_unused},
    {"life-properties", "", TC_STANDARD, life_properties},
    {"life-threads", "", TC_SMOKE, life_threads},
    {"life-fork", "", TC_STANDARD, life_fork},
    {"life-unload", "", TC_STANDARD, life_unload},
    {0},
};
