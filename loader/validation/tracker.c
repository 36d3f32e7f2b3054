/* A watched plugin: where its tables and the ones that stand for them are kept. */
#include "base/alloc.h"
#include "base/env.h"
#include "base/fork.h"
#include "base/log.h"
#include "loader/validation/internal.h"

#include <stdio.h>
#include <string.h>
#include <tenon/validation.h>

tni_watch tni_watches[TNI_MAX_WATCHES] = {
    [0 ... TNI_MAX_WATCHES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `used` */

int32_t tn_validation_level(void) {
    int64_t level = tni_env_i64(TNI_ENV_VALIDATE);
    return level <= 0 ? 0 : level == 1 ? 1 : 2;
}

TNI_FORK_MUTEX(WATCHES, lock, tni_fork_no_mend)

static void fork_before_WATCH(void) {
    for (int i = 0; i < TNI_MAX_WATCHES; i++)
        pthread_mutex_lock(&tni_watches[i].lock);
}

static void fork_after_WATCH(bool in_child) {
    for (int i = TNI_MAX_WATCHES - 1; i >= 0; i--)
        pthread_mutex_unlock(&tni_watches[i].lock);
}

TNI_FORK_PART(WATCH)

/* ---- begin and end ----------------------------------------------------------------------- */

static void set_name(tni_watch *w, const char *text) {
    size_t n = strlen(text);
    snprintf(w->name, sizeof w->name, "%s",
             n < sizeof w->name ? text : text + n + 1 - sizeof w->name);
}

/* w->proxy: w->real, with proxies for the slots that are there. */
static void stand_in(tni_watch *w) {
    const tni_tables *proxies = tni_proxies_of[w - tni_watches];
    w->proxy = w->real;
#define X(N, table, slot, ...) \
    if (w->real.table.slot) \
        w->proxy.table.slot = proxies->table.slot;
    TNI_SLOTS(X, )
#undef X
}

tni_watch *tni_watch_begin(const char *where, const tn_host *host) {
    int32_t level = tn_validation_level();
    if (level == 0)
        return NULL;
    tni_watch *w = NULL;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < TNI_MAX_WATCHES && tni_watches[i].used)
        i++;
    if (i < TNI_MAX_WATCHES) {
        w = &tni_watches[i];
        w->used = true;
        w->level = level;
        set_name(w, where);
        w->host = host;
        w->real = (tni_tables){.host = *host};
        stand_in(w);
    }
    pthread_mutex_unlock(&lock);
    if (!w)
        tni_log_line(TN_LOG_WARN, "validation",
                     "%s is not checked: %d plugins are already, and no more can be; load fewer"
                     " (TENON_PLUGINS)",
                     where, TNI_MAX_WATCHES);
    return w;
}

const tn_host *tni_watch_host(tni_watch *w) {
    return &w->proxy.host;
}

static void free_kernels(tni_watch *w) {
    tni_free(w->kernels);
    tni_free(w->kernel_list);
    w->kernels = NULL;
    w->kernel_list = NULL;
    w->n_kernels = 0;
}

static bool forget(tni_watch *w, tni_record *r, void *user) {
    tni_record_remove(w, r);
    return true;
}

void tni_watch_end(tni_watch *w) {
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    tni_record_each(w, forget, NULL);
    free_kernels(w);
    memset(w->n_made, 0, sizeof w->n_made);
    memset(w->files, 0, sizeof w->files);
    w->n_strays = 0;
    w->order_lost = false;
    atomic_store(&w->state, TNI_WATCH_LOADED);
    atomic_store(&w->caller, 0);
    atomic_store(&w->one_thread, 0);
    w->self = NULL;
    w->n_devices = 0;
    pthread_mutex_unlock(&w->lock);
    pthread_mutex_lock(&lock);
    w->used = false;
    pthread_mutex_unlock(&lock);
}

/* ---- tables ------------------------------------------------------------------------------ */

/* As much of a table as its writer and this header both know; the rest is 0. */
static void read_table(void *out, size_t size, const void *table) {
    uint64_t there = *(const uint64_t *)table;
    memset(out, 0, size);
    memcpy(out, table, there < size ? there : size);
    if (there > size)
        *(uint64_t *)out = size;
}
#define READ(out, table) read_table(out, sizeof *(out), table)

static bool wrap_kernels(tni_watch *w) {
    uint64_t n = w->real.plugin.n_kernels;
    free_kernels(w); /* of a first attempt, which had no memory later on */
    if (n == 0)
        return true;
    w->kernels = tni_calloc(n, sizeof *w->kernels);
    w->kernel_list = tni_calloc(n, sizeof *w->kernel_list);
    if (!w->kernels || !w->kernel_list)
        return false;
    w->n_kernels = n;
    for (uint64_t i = 0; i < n; i++) {
        tni_watched_kernel *k = &w->kernels[i];
        k->watch = w;
        k->record = w->real.plugin.kernels[i];
        READ(&k->real, k->record);
        k->proxy = k->real;
        k->proxy.user = k;
        if (k->real.run)
            k->proxy.run = tni_watched_run;
        if (k->real.supports)
            k->proxy.supports = tni_watched_kernel_supports;
        if (k->real.workspace)
            k->proxy.workspace = tni_watched_workspace;
        w->kernel_list[i] = &k->proxy;
    }
    return true;
}

const tn_plugin *tni_watch_tables(tni_watch *w, const tn_plugin *table) {
    if (!w)
        return table;
    set_name(w, table->id);
    if (w->n_alive[TNI_RECORD_BLOCK])
        tni_finding(w, TNP_ENTRY_PURE, TN_PLUGIN_QUERY_NAME, "",
                    "allocated host memory; it must be pure, as it may be called any number of"
                    " times");
    READ(&w->real.plugin, table);
    READ(&w->real.devices, table->devices);
    READ(&w->real.memory, table->devices->memory);
    if (w->real.devices.streams)
        READ(&w->real.streams, w->real.devices.streams);
    if (w->real.devices.events)
        READ(&w->real.events, w->real.devices.events);
    if (!wrap_kernels(w)) {
        free_kernels(w);
        return NULL;
    }
    stand_in(w);
    w->proxy.plugin.devices = &w->proxy.devices;
    w->proxy.plugin.kernels = w->kernel_list;
    w->proxy.devices.memory = &w->proxy.memory;
    w->proxy.devices.streams = w->real.devices.streams ? &w->proxy.streams : NULL;
    w->proxy.devices.events = w->real.devices.events ? &w->proxy.events : NULL;
    tni_log_line(TN_LOG_INFO, "validation", "%s is checked at level %d", w->name, w->level);
    return &w->proxy.plugin;
}
