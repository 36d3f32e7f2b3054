/* See lifecycle.h. */
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"

#include <dlfcn.h>

#include "plugin-sdk/conformance/worker/kernel/checks.h"
#include "plugin-sdk/process/census.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void *tc_lifecycle_object(tc_contract *k, tn_plugin_query_fn *out_query) {
    void *object = dlopen(k->options->plugin, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        TC_BROKEN(k, TNP_ENTRY_SELF_CONTAINED, "dlopen with RTLD_NOW | RTLD_LOCAL: %s", dlerror());
        return NULL;
    }
    *(void **)out_query = dlsym(object, TN_PLUGIN_QUERY_NAME);
    if (!*out_query)
        TC_BROKEN(k, TNP_ENTRY_ONLY_SYMBOL, "the object does not export " TN_PLUGIN_QUERY_NAME);
    return *out_query ? object : NULL;
}

const tn_plugin *tc_lifecycle_query(tc_contract *k) {
    tn_plugin_query_fn query;
    if (!tc_lifecycle_object(k, &query))
        return NULL;
    const tn_plugin *plugin = query(tc_host_table());
    if (!plugin)
        TC_BROKEN(k, TNP_ENTRY_HOST_VERSIONS,
                  TN_PLUGIN_QUERY_NAME " returned NULL for a whole host of this version");
    return plugin;
}

bool tc_lifecycle_open(tc_contract *k, tc_subject *s, const tn_host *host,
                       tn_requirement requirement, const char *when) {
    char why[TC_MESSAGE];
    bool opened = tc_subject_open(s, k->options->plugin, k->options->device, host, why);
    if (!opened)
        tc_verdict_set(k->out, s->broken ? TC_FAIL : TC_ERROR,
                       s->broken && requirement ? requirement : s->broken, "%s: %s", when, why);
    return opened;
}

int tc_asked_index(tc_asked *asked, const char *name) {
    enum { ROOM = sizeof asked->names / sizeof *asked->names };
    int i = 0;
    while (i < asked->n && strcmp(asked->names[i], name) != 0)
        i++;
    if (i == ROOM)
        return -1;
    if (i == asked->n)
        snprintf(asked->names[asked->n++], sizeof *asked->names, "%s", name);
    return i;
}

static int remove_entry(const char *path, const struct stat *s, int type, struct FTW *where) {
    (void)s, (void)type, (void)where;
    return remove(path);
}

void tc_in_own_folder(tc_contract *k, void (*run)(tc_contract *k)) {
    char folder[] = "/tmp/tenon-conform-XXXXXX";
    int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (before < 0 || !mkdtemp(folder) || chdir(folder) != 0)
        TC_CASE_ERROR(k->out, "no folder can be made in /tmp: %s", strerror(errno));
    else
        run(k);
    if (before >= 0 && fchdir(before) == 0)
        nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    if (before >= 0)
        close(before);
}

/* ---- single calls --------------------------------------------------------------------- */

bool tc_lifecycle_load(tc_contract *k, tc_subject *s) {
    char why[TC_MESSAGE];
    bool ok = tc_subject_load(s, k->options->plugin, tc_host_table(), why);
    if (!ok)
        TC_BROKEN(k, s->broken, "%s", why);
    return ok;
}

/* init alone, with a poisoned *out_self. */
bool tc_lifecycle_init(tc_contract *k, tc_subject *s, const char *path) {
    static char poison;
    s->self = (tn_instance *)(void *)&poison;
    tc_host_begin(tc_host_table());
    s->host = tc_host_table();
    tn_status status = s->plugin->init(tc_host_table(), path, &s->self);
    if (status == TN_OK && s->self && (void *)s->self != &poison) {
        return true;
    }
    if (tc_must(k, TNP_INIT_RESULT, status, "init"))
        TC_BROKEN(k, TNP_INIT_RESULT, "init succeeded and %s *out_self",
                  s->self ? "did not set" : "set NULL as");
    s->self = NULL;
    tc_host_end(NULL);
    return false;
}

bool tc_lifecycle_count(tc_contract *k, tc_subject *s, uint32_t *out) {
    *out = UINT32_MAX;
    if (!tc_must(k, TNP_COUNT_DEVICES, s->ops->count(s->self, out), "count"))
        return false;
    if (*out == UINT32_MAX)
        TC_BROKEN(k, TNP_COUNT_DEVICES, "count succeeded and did not set *out_count");
    return *out != UINT32_MAX;
}

bool tc_lifecycle_open_device(tc_contract *k, tc_subject *s, uint32_t index, tc_subject *out) {
    static char poison;
    *out = *s;
    out->stream = NULL;
    out->device = (tn_device_impl *)(void *)&poison;
    tn_status status = s->ops->open(s->self, index, &out->device);
    if (status == TN_OK && out->device && (void *)out->device != &poison) {
        tc_subject_describe(out, index);
        return true;
    }
    return tc_must(k, TNP_OPEN_DEVICE, status, "open") &&
           TC_BROKEN(k, TNP_OPEN_DEVICE, "open of device %u succeeded and %s *out_device", index,
                     out->device ? "did not set" : "set NULL as");
}

/* ---- a piece of work --------------------------------------------------------------------- */

enum { N_CALLS = 4 };

static const char *const calls[][N_CALLS] = {
    [TC_WORK_SMALL] =
        {
            "kernel/add T=f32 self=[5,13] other=[5,13] alpha=2 data=exact",
            "kernel/mul T=f32 self=[5,13] other=[5,13] data=exact",
            "kernel/copy S=f32 D=f32 self=[5,13] data=exact",
            "kernel/fill T=f32 value=3 out=[5,13] data=exact",
        },
    [TC_WORK_WIDE] =
        {
            "kernel/add T=f32 self=[512,300] other=[512,300] alpha=2 data=exact",
            "kernel/mul T=f32 self=[512,300] other=[512,300] data=exact",
            "kernel/copy S=f32 D=f32 self=[512,300] data=exact",
            "kernel/fill T=f32 value=3 out=[512,300] data=exact",
        },
    [TC_WORK_PRODUCT] =
        {
            "kernel/bmm T=f32 self=[1,40,30] mat2=[1,30,20] data=exact",
            "kernel/bmm T=f64 self=[1,40,30] mat2=[1,30,20] data=exact",
        },
};

const tn_kernel *tc_lifecycle_call(tc_contract *k, tc_subject *s, tc_probe work,
                                   tc_invocation *call) {
    char why[TC_MESSAGE];
    for (int i = 0; i < N_CALLS && calls[work][i]; i++) {
        /* The invocation's strings point into the case. */
        tc_case *c = tc_arena_array(&k->arena, 1, sizeof *c);
        const tn_kernel *kernel;
        if (!c || !tc_case_parse(calls[work][i], c, why) ||
            !tc_invocation_parse(c, &k->arena, call, why) ||
            !tc_fill_for(s, call, call->seed, why)) {
            TC_CASE_ERROR(k->out, "%s: %s", calls[work][i], c ? why : "the host has no memory");
            return NULL;
        }
        if (tc_find_kernel(s, call, NULL, &kernel) == TC_CLAIMED)
            return kernel;
    }
    return NULL;
}

static uint64_t add_bytes(uint64_t sum, const void *bytes, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        sum = (sum ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static void run_call(tc_contract *k, tc_subject *s, tc_probe work, tc_verdict *v, uint64_t *sum) {
    tc_invocation call;
    tc_result result;
    if (!tc_lifecycle_call(k, s, work, &call) || !tc_execute(s, &call, &result, v))
        return;
    if (!tc_check_success(&call, &result, v))
        return;
    tc_check_untouched(&call, &result, v);
    tc_check_outputs(&call, &result, s, v);
    *sum = add_bytes(UINT64_C(0xcbf29ce484222325), result.outs[0], call.outs[0].tensor.bytes);
}

static void transfer(tc_subject *s, tc_verdict *v) {
    enum { BYTES = 1000, FROM = 100, FILLED = 77 };
    unsigned char there[BYTES], back[BYTES];
    char reason[TC_MESSAGE];
    tn_memory memory = 0;
    void *host;
    for (int i = 0; i < BYTES; i++)
        there[i] = (unsigned char)(i * 7 + 3);
    memset(back, 0, sizeof back);
    tn_status status = tc_alloc(s, TN_SPACE_DEVICE, BYTES, &memory, &host);
    if (status != TN_OK || !memory) {
        tc_verdict_set(v, TC_FAIL, TNP_ALLOC_HANDLE, "alloc of %d bytes: %s", BYTES,
                       tc_reason(status, reason));
        return;
    }
    status = s->memory->copy_from_host(s->device, s->stream, memory, 0, there, 0, BYTES);
    if (status == TN_OK)
        status = s->memory->fill(s->device, s->stream, memory, FROM, 0x5a, FILLED);
    if (status == TN_OK)
        status = s->memory->copy_to_host(s->device, s->stream, back, 0, memory, 0, BYTES);
    tn_status later = tc_subject_sync(s);
    s->memory->dealloc(s->device, TN_SPACE_DEVICE, memory);
    memset(there + FROM, 0x5a, FILLED);
    if (status != TN_OK || later != TN_OK)
        tc_verdict_set(v, TC_FAIL, TNP_TRANSFER_RANGE, "a small transfer: %s",
                       tc_reason(status != TN_OK ? status : later, reason));
    else if (memcmp(there, back, BYTES) != 0)
        tc_verdict_set(v, TC_FAIL, TNP_TRANSFER_RANGE,
                       "a small transfer came back with other bytes");
}

bool tc_lifecycle_probe(tc_contract *k, tc_subject *s, tc_probe work, tn_requirement requirement,
                        const char *when, uint64_t *out_sum) {
    tc_verdict v = {0};
    uint64_t sum = 0;
    transfer(s, &v);
    if (v.status == TC_PASS)
        run_call(k, s, work, &v, &sum);
    if (out_sum)
        *out_sum = sum;
    if (v.status == TC_FAIL)
        TC_BROKEN(k, requirement ? requirement : v.requirement, "%s: %.800s", when, v.message);
    else if (v.status == TC_ERROR)
        TC_CASE_ERROR(k->out, "%.900s", v.message);
    return v.status != TC_FAIL && v.status != TC_ERROR;
}

/* ---- what the process holds -------------------------------------------------------------- */

static int64_t lines(const char *path) {
    int64_t n = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    for (int c; (c = fgetc(file)) != EOF;)
        n += c == '\n';
    fclose(file);
    return n;
}

/* Address space, and what of it is in memory. */
static void sizes(tc_census *c) {
    long long all = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return;
    if (fscanf(file, "%lld %lld", &all, &pages) != 2)
        all = pages = 0;
    fclose(file);
    c->virtual_bytes = all * sysconf(_SC_PAGESIZE);
    c->resident_bytes = pages * sysconf(_SC_PAGESIZE);
}

tc_census tc_census_take(int64_t threads) {
    /* A thread that was joined may be listed for a moment longer. */
    struct timespec moment = {.tv_nsec = 2000000};
    tni_census census;
    tni_census_take(&census);
    for (int i = 0; i < 25 && census.n_threads > threads; i++) {
        nanosleep(&moment, NULL);
        tni_census_take(&census);
    }
    struct mallinfo2 heap = mallinfo2();
    tc_census taken = {
        .threads = census.n_threads,
        .descriptors = census.n_files,
        .mappings = lines("/proc/self/maps"),
        .heap_bytes = (int64_t)(heap.uordblks + heap.hblkhd),
    };
    sizes(&taken);
    return taken;
}

void tc_growth_note(tc_growth *g, int64_t time, int64_t first, int64_t step, int64_t now) {
    if (time < first || (time - first) % step)
        return;
    int64_t growth = now - g->before;
    if (time > first && (g->n++ == 0 || growth < g->least))
        g->least = growth;
    g->before = now;
}

bool tc_growth_is_loss(const tc_growth *g, int64_t step) {
    return g->n >= 3 && g->least >= step * (64 << 10);
}

bool tc_lifecycle_balanced(tc_contract *k, tn_requirement requirement, const char *when) {
    int64_t blocks = tc_host_blocks();
    if (blocks != 0)
        TC_BROKEN(
            k, requirement,
            "%s: %lld blocks (%lld bytes) of host->alloc are left; free all by the end of shutdown",
            when, (long long)blocks, (long long)tc_host_bytes());
    return blocks == 0;
}

/* ---- tables ------------------------------------------------------------------------------ */

static uint64_t add_table(uint64_t sum, const void *table, uint64_t known) {
    uint64_t size;
    if (!table)
        return sum + 1;
    memcpy(&size, table, sizeof size);
    return add_bytes(sum, table, size < known ? size : known);
}

static uint64_t add_text(uint64_t sum, const char *text) {
    return text ? add_bytes(sum, text, strlen(text) + 1) : sum + 1;
}

uint64_t tc_tables_sum(const tn_plugin *p) {
    uint64_t sum = add_table(UINT64_C(0xcbf29ce484222325), p, sizeof *p);
    sum = add_text(add_text(sum, p->id), p->device_type);
    sum = add_text(add_text(sum, p->name), p->version);
    sum = add_table(sum, p->devices, sizeof *p->devices);
    sum = add_table(sum, p->devices->memory, sizeof *p->devices->memory);
    sum = add_table(sum, p->devices->streams, sizeof *p->devices->streams);
    sum = add_table(sum, p->devices->events, sizeof *p->devices->events);
    for (uint64_t i = 0; i < p->n_kernels; i++) {
        sum = add_bytes(sum, &p->kernels[i], sizeof p->kernels[i]);
        sum = add_table(sum, p->kernels[i], sizeof *p->kernels[i]);
        sum = add_text(sum, p->kernels[i]->op);
    }
    return sum;
}
