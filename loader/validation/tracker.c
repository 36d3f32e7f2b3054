/* A watched plugin: where its tables and the ones that stand for them are kept. */
#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "loader/validation/internal.h"

#include <stdio.h>
#include <string.h>
#include <tenon/validation.h>

int32_t tn_validation_level(void) {
    return *tni_env(TNI_ENV_VALIDATE) - '0';
}

/* ---- begin and end ----------------------------------------------------------------------- */

static void set_name(tni_watch *w, const char *text) {
    size_t n = strlen(text);
    snprintf(w->name, sizeof w->name, "%s",
             n < sizeof w->name ? text : text + n + 1 - sizeof w->name);
}

/* Reads `table` as far as its writer and this header both know it, the rest being 0, and makes the one
 * that stands for it: each function that is there gives way to its checked form. The members of tables
 * are words; those of `checked` that are no functions are 0. */
static void take_table(void *real, void *proxy, const void *checked, size_t size,
                       const void *table) {
    uint64_t there = *(const uint64_t *)table;
    memset(real, 0, size);
    memcpy(real, table, there < size ? there : size);
    if (there > size)
        *(uint64_t *)real = size;
    memcpy(proxy, real, size);
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t function, instead;
        memcpy(&function, (char *)real + at, sizeof function);
        memcpy(&instead, (const char *)checked + at, sizeof instead);
        if (function && instead)
            memcpy((char *)proxy + at, &instead, sizeof instead);
    }
}
#define TAKE(w, member, table) \
    take_table(&(w)->real.member, &(w)->proxy.member, &tni_checked_##member, \
               sizeof(w)->real.member, table)

const tn_ext_capture *tni_watch_capture(tni_watch *w, const tn_ext_capture *table) {
    pthread_mutex_lock(&tni_records_lock);
    if (!w->real.capture.struct_size) /* other threads may be reading it */
        TAKE(w, capture, table);
    pthread_mutex_unlock(&tni_records_lock);
    return &w->proxy.capture;
}

bool tni_watch_begin(const char *where, const tn_host *host, tni_watch **out) {
    int32_t level = tn_validation_level();
    if (level == 0 || *out)
        return true;
    tni_watch *w = tni_calloc(1, sizeof *w);
    if (!w)
        return false;
    w->level = level;
    set_name(w, where);
    w->host = host;
    TAKE(w, host, host);
    pthread_mutex_lock(&tni_records_lock);
    bool known =
        tni_record_add(w, &(tni_record){.kind = TNI_RECORD_HOST, .key = (uintptr_t)&w->proxy.host});
    pthread_mutex_unlock(&tni_records_lock);
    if (known && level >= 2)
        tni_lending_begins();
    if (known)
        *out = w;
    else
        tni_free(w);
    return known;
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

void tni_watch_end(tni_watch *w) {
    if (!w)
        return;
    if (w->level >= 2)
        tni_lending_ends(w);
    tni_records_forget(w);
    free_kernels(w);
    tni_free(w);
}

/* ---- tables ------------------------------------------------------------------------------ */

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
        take_table(&k->real, &k->proxy, &tni_checked_kernel, sizeof k->real, k->record);
        k->proxy.user = k;
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
    TAKE(w, plugin, table);
    TAKE(w, devices, table->devices);
    TAKE(w, memory, table->devices->memory);
    if (w->real.devices.streams)
        TAKE(w, streams, w->real.devices.streams);
    if (w->real.devices.events)
        TAKE(w, events, w->real.devices.events);
    if (!wrap_kernels(w)) {
        free_kernels(w);
        return NULL;
    }
    w->proxy.plugin.devices = &w->proxy.devices;
    w->proxy.plugin.kernels = w->kernel_list;
    w->proxy.devices.memory = &w->proxy.memory;
    w->proxy.devices.streams = w->real.devices.streams ? &w->proxy.streams : NULL;
    w->proxy.devices.events = w->real.devices.events ? &w->proxy.events : NULL;
    tni_log_line(TN_LOG_INFO, "validation", "%s is checked at level %d", w->name, w->level);
    return &w->proxy.plugin;
}
