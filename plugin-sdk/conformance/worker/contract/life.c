/* Init and shutdown: repeated, with unusual options, and leaks across lifecycles. */
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/contract/properties.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ext/threads.h>
#include <unistd.h>

/* ---- again and again --------------------------------------------------------------------- */

static void life_init(tc_contract *k) {
    int64_t times = tc_contract_int(k, "times");
    tc_subject s;
    tc_census early = {0};
    if (!tc_lifecycle_load(k, &s))
        return;
    tc_census start = tc_census_take(0);
    for (int64_t i = 0; i < times && !tc_failed(k); i++) {
        if (!tc_lifecycle_init(k, &s, k->options->plugin))
            return;
        tc_subject_close(&s);
        tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after init and shutdown");
        if (i == times / 2)
            early = tc_census_take(start.threads);
    }
    tc_census now = tc_census_take(start.threads);
    if (now.threads > start.threads)
        TC_BROKEN(k, TNP_SHUTDOWN_NO_THREADS,
                  "%lld threads run after shutdown, %lld before init; join them in shutdown, and "
                  "start a runtime that keeps its own in `count` or later",
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
    tc_asked asked;
    int garbled; /* -1: none */
    const char *value;
    char told[1024]; /* by the last refusal */
    bool one_counts; /* "1" led to a device */
    uint64_t tables;
    uint64_t numbers; /* the device's properties where no option is garbled */
} options;

/* None that is a number or a name. */
static const char hardly_any[] = "no such value";

static const char *garbled_option(const tn_host *host, const char *name) {
    const char *real = tc_host_table()->option(host, name);
    if (!name)
        return real;
    int i = tc_asked_index(&options.asked, name);
    return i >= 0 && i == options.garbled ? options.value : real;
}

/* A life with work for many threads; how many are there afterwards. */
static int64_t live_and_count(tc_contract *k, tn_requirement requirement, const char *when,
                              int64_t before) {
    tc_subject s;
    if (tc_lifecycle_open(k, &s, tc_host_table(), requirement, when)) {
        tc_lifecycle_probe(k, &s, TC_WORK_WIDE, requirement, when, NULL);
        tc_subject_close(&s);
    }
    return tc_census_take(before).threads;
}

static const char *garbled_name(void) {
    return options.garbled < 0 ? "(none)" : options.asked.names[options.garbled];
}

/* What fails says why, each time. */
static bool said(tc_contract *k, tn_status status, const char *call) {
    if (status != TN_OK && (!*tc_host_message() || tc_host_message_status() != status))
        TC_BROKEN(
            k, TNP_FAIL_MESSAGE,
            "with option %s set to '%s' %s failed with %s, without a host->fail of that status"
            " and a message",
            garbled_name(), options.garbled < 0 ? "" : options.value, call,
            tc_tn_status_name(status));
    tc_host_forget();
    return status == TN_OK;
}

/* Where `1` gave a device and `0` is taken by init, it is a number of something, and none of it is no
 * failure. */
static void look_at_none(tc_contract *k, bool counted, uint32_t n) {
    if (strcmp(options.value, "1") == 0)
        options.one_counts = counted && n > 0;
    if (strcmp(options.value, "0") == 0 && options.one_counts && !counted)
        TC_BROKEN(k, TNP_COUNT_DEVICES,
                  "with option %s set to '0', which init takes, `count` failed with \"%s\" in the"
                  " place of TN_OK and no device; with '1' there is one",
                  garbled_name(), tc_host_message());
}

/* Whatever was asked for, one thread computes. */
static void look_at_threads(tc_contract *k, const tc_subject *s) {
    const tn_ext_threads *threads = tc_subject_extension(s, TN_EXT_THREADS);
    if (threads && threads->get_num_threads(s->self) == 0)
        TC_BROKEN(k, TNP_THREADS_LIMIT,
                  "with option %s set to '%s', which init takes, get_num_threads is 0",
                  garbled_name(), options.garbled < 0 ? "" : options.value);
}

/* What means nothing is taken for the default. */
static void look_at_numbers(tc_contract *k, const tc_subject *s, uint32_t index) {
    uint64_t numbers = tc_numbers_sum(s, index);
    if (options.garbled < 0)
        options.numbers = numbers;
    else if (strcmp(options.value, hardly_any) == 0 && numbers != options.numbers)
        TC_BROKEN(k, TNP_HOST_OPTION,
                  "with option %s set to '%s', which init takes, properties of device %u are "
                  "others than by default",
                  garbled_name(), options.value, index);
}

/* What a value led to that init has taken: the device is there or says why not, its properties are
 * what they must be, and it may work or fail. */
static void look_at_device(tc_contract *k, tc_subject *s) {
    uint32_t n = 0, index = k->options->device;
    tn_device_impl *device = NULL;
    tc_verdict *out = k->out, whatever = {0};
    bool there = false;
    look_at_threads(k, s);
    tc_host_forget();
    for (int i = 0; i < 2; i++) {
        tn_status status = s->ops->count(s->self, &n);
        if (options.garbled >= 0)
            look_at_none(k, status == TN_OK, n);
        there = said(k, status, "count") && index < n;
    }
    if (there) {
        tc_check_properties(k, s, index);
        look_at_numbers(k, s, index);
    }
    if (there && said(k, s->ops->open(s->self, index, &device), "open")) {
        s->device = device;
        tc_subject_describe(s, index);
        tc_check_largest(k, s, index);
        if (s->ops->streams && s->ops->streams->create(device, 0, &s->stream) != TN_OK) {
            s->stream = NULL;
            return;
        }
        k->out = &whatever;
        tc_lifecycle_probe(k, s, TC_WORK_SMALL, TNP_NONE, "", NULL);
        k->out = out;
    }
}

/* init and, if that went well, shutdown. A value that cannot be used is a failure with a message.
 */
static void init_garbled(tc_contract *k, tc_subject *s, const tn_host *host) {
    char when[160];
    snprintf(when, sizeof when, "after init with option %s set to '%s'", garbled_name(),
             options.garbled < 0 ? "" : options.value);
    static char poison;
    s->self = (tn_instance *)(void *)&poison;
    s->host = host;
    tc_host_begin(host);
    tc_host_forget();
    tn_status status = s->plugin->init(host, k->options->plugin, &s->self);
    if (status == TN_OK) {
        look_at_device(k, s);
        tc_subject_close(s);
    } else {
        tc_host_end(NULL);
        if (!*tc_host_message() || tc_host_message_status() != status)
            TC_BROKEN(k, TNP_FAIL_MESSAGE,
                      "%s it failed with %s, without a host->fail of that status and a message",
                      when, tc_tn_status_name(status));
        if (s->self && (void *)s->self != &poison)
            TC_BROKEN(k, TNP_INIT_RESULT, "%s it failed and left *out_self set", when);
        snprintf(options.told, sizeof options.told, "%s", tc_host_message());
    }
    if (tc_tables_sum(s->plugin) != options.tables)
        TC_BROKEN(k, TNP_TABLE_CONSTANT, "%s the tables are others", when);
    s->self = NULL;
    tc_lifecycle_balanced(k, TNP_INIT_RESULT, when);
}

/* The message of a refusal has the values that would do: each of its words in turn. */
static void init_as_told(tc_contract *k, tc_subject *s, const tn_host *host) {
    char told[sizeof options.told], *rest;
    snprintf(told, sizeof told, "%s", options.told);
    for (char *p = told; *p; p++)
        *p = isalnum((unsigned char)*p) || *p == '_' ? *p : ' ';
    for (char *word = strtok_r(told, " ", &rest); word && !tc_failed(k);
         word = strtok_r(NULL, " ", &rest)) {
        options.value = word;
        init_garbled(k, s, host);
    }
}

/* Of two bytes each character, from an even place on and from an odd one: who cuts a value after so many bytes cuts a
 * character in one of the two. */
static char wide[2][1001];

static void make_wide(void) {
    memcpy(wide[1], "a", 2);
    for (int odd = 0; odd < 2; odd++)
        for (int i = 0; i < 490; i++)
            memcpy(wide[odd] + odd + 2 * i, "\xc3\xa9", 2);
}

/* Each option in turn with values that are hardly any, and odd ones: refused or taken, nothing is left
 * behind. */
static void try_options(tc_contract *k) {
    static char longer_than_buffers[5000];
    static const char *const values[] = {"",
                                         wide[0],
                                         wide[1],
                                         hardly_any,
                                         "-1",
                                         "99999999999999999999999",
                                         "1",
                                         "0", /* behind "1": look_at_none */
                                         "1000003",
                                         "/dev/null/none",
                                         longer_than_buffers};
    tn_host host = *tc_host_table();
    tc_subject s;
    make_wide();
    host.option = garbled_option;
    options.asked.n = 0;
    options.garbled = -1;
    int64_t threads = live_and_count(k, TNP_INIT_RESULT, "before options are tried", 0);
    if (tc_failed(k) || !tc_lifecycle_load(k, &s))
        return;
    memset(longer_than_buffers, 'x', sizeof longer_than_buffers - 1);
    options.tables = tc_tables_sum(s.plugin);
    init_garbled(k, &s, &host);
    if (options.asked.n == 0) {
        TC_NOT_OFFERED(k, "init asks for no option");
        return;
    }
    for (options.garbled = 0; options.garbled < options.asked.n && !tc_failed(k);
         options.garbled++) {
        *options.told = 0;
        options.one_counts = false;
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            options.value = values[v];
            init_garbled(k, &s, &host);
        }
        init_as_told(k, &s, &host);
    }
    if (!tc_failed(k) &&
        live_and_count(k, TNP_INIT_AGAIN, "after options that cannot be used", threads) > threads)
        TC_BROKEN(k, TNP_SHUTDOWN_NO_THREADS,
                  "threads run after shutdown, where init was refused for its options before");
}

static void life_options(tc_contract *k) {
    tc_in_own_folder(k, try_options);
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

/* The first lives may start what belongs to the process: a runtime's threads, its caches. */
static void life_cycles(tc_contract *k) {
    int64_t times = tc_contract_int(k, "times");
    tc_census start, early = {0}, now;
    tc_growth heap = {0}, space = {0};
    tc_subject s;
    if (!tc_lifecycle_load(k, &s))
        return;
    start = tc_census_take(0);
    for (int64_t i = 0; i < times && !tc_failed(k); i++) {
        if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_INIT_AGAIN,
                               i ? "a later life" : "the first life"))
            return;
        tc_lifecycle_probe(k, &s, i < 2 || i + 1 == times ? TC_WORK_WIDE : TC_WORK_SMALL,
                           TNP_INIT_AGAIN, i ? "a later life" : "the first life", NULL);
        tc_subject_close(&s);
        tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after shutdown");
        tc_arena_finish(&k->arena);
        now = tc_census_take(early.threads ? early.threads : start.threads);
        tc_growth_note(&heap, i, FIRST, SOME, now.heap_bytes);
        tc_growth_note(&space, i, FIRST, SOME, now.virtual_bytes);
        if (i == 1 || (i < times / 2 && i == FIRST))
            early = now;
    }
    if (!tc_failed(k) && times > 2)
        compare(k, &early, &now, times > 20 ? times - FIRST - 1 : times - 2);
    if (tc_growth_is_loss(&space, SOME))
        TC_BROKEN(k, TNP_INIT_AGAIN,
                  "each life of the plugin leaves %lld bytes of address space mapped",
                  (long long)(space.least / SOME));
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
        if (tc_lifecycle_probe(k, &s, TC_WORK_SMALL, TNP_INIT_AGAIN, "init after shutdown", &sum)) {
            if (i && s.n_devices != n)
                TC_BROKEN(k, TNP_INIT_AGAIN,
                          "there are %u devices after init, and were %u the first time",
                          s.n_devices, n);
            if (i && p != properties)
                TC_BROKEN(k, TNP_INIT_AGAIN,
                          "the device has other properties after init than the first time");
            if (sum && first && sum != first)
                TC_BROKEN(k, TNP_INIT_AGAIN,
                          "a kernel gives other bits after init than the first time");
        }
        n = s.n_devices;
        first = sum ? sum : first;
        properties = p;
        tc_subject_close(&s);
    }
}

static void life_path_null(tc_contract *k) {
    tc_subject s;
    uint32_t n;
    if (!tc_lifecycle_load(k, &s) || !tc_lifecycle_init(k, &s, NULL))
        return;
    if (tc_lifecycle_count(k, &s, &n) && n > k->options->device &&
        tc_must(k, TNP_INIT_PATH_NULL, s.ops->open(s.self, k->options->device, &s.device),
                "open after init(NULL)")) {
        s.ops->close(s.device);
        s.device = NULL;
    }
    tc_subject_close(&s);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, "after init with path NULL and shutdown");
}

const tc_contract_row tc_life_rows[] = {
    {"life-init", "times=100", TC_SMOKE, life_init},
    {"life-options", "", TC_SMOKE, life_options},
    {"life-cycles", "times=4", TC_SMOKE, life_cycles},
    {"life-cycles", "times=30", TC_STANDARD, life_cycles},
    {"life-again", "", TC_STANDARD, life_again},
    {"life-path-null", "", TC_SMOKE, life_path_null},
    {0},
};
