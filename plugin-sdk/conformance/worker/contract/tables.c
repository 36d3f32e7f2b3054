/* The plugin's tables: sizes, required members, names and versions, constancy. */
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <tenon/ext/capture.h>
#include <tenon/ext/fork.h>
#include <tenon/ext/native.h>
#include <tenon/ext/threads.h>

/* ---- tables ------------------------------------------------------------------------------ */

/* Has it the tables of this header? Those of a later one, or of an older target, have other sizes. */
static bool is_of_this(const tn_plugin *p) {
    return p->abi_version == TN_ABI_VERSION && p->abi_required == TN_ABI_VERSION;
}

/* Tables that the plugin fills; true where `bytes` of it may be read. */
static bool check_size(tc_contract *k, const void *table, const char *name, uint64_t known,
                       bool exactly) {
    uint64_t size;
    if ((uint64_t)table % 8)
        return TC_BROKEN(k, TNP_TABLE_STRUCT_SIZE, "%s lies at %p, which is not aligned to 8 bytes",
                         name, table);
    memcpy(&size, table, sizeof size);
    if (exactly && size != known)
        TC_BROKEN(k, TNP_TABLE_STRUCT_SIZE,
                  "struct_size of %s is %llu; in the header of version %u.%u it is %llu", name,
                  (unsigned long long)size, TN_ABI_MAJOR, TN_ABI_MINOR, (unsigned long long)known);
    else if (size < 8 || size % 8 || size > 4096)
        TC_BROKEN(k, TNP_TABLE_STRUCT_SIZE,
                  "struct_size of %s is %llu, which is no size of a table", name,
                  (unsigned long long)size);
    return size >= 8 && size <= 4096;
}

#define NEED(table, type, member) \
    do { \
        if (!TN_HAS(table, type, member) || !(table)->member) \
            TC_BROKEN(k, TNP_TABLE_REQUIRED_MEMBERS, \
                      #type "." #member " is required, and is not set"); \
    } while (0)

static void check_memory(tc_contract *k, const tn_memory_ops *m) {
    NEED(m, tn_memory_ops, alloc);
    NEED(m, tn_memory_ops, dealloc);
    NEED(m, tn_memory_ops, copy_from_host);
    NEED(m, tn_memory_ops, copy_to_host);
    NEED(m, tn_memory_ops, copy);
    NEED(m, tn_memory_ops, fill);
}

static void check_streams(tc_contract *k, const tn_stream_ops *s) {
    NEED(s, tn_stream_ops, create);
    NEED(s, tn_stream_ops, destroy);
    NEED(s, tn_stream_ops, query);
    NEED(s, tn_stream_ops, synchronize);
}

static void check_events(tc_contract *k, const tn_event_ops *e) {
    NEED(e, tn_event_ops, create);
    NEED(e, tn_event_ops, destroy);
    NEED(e, tn_event_ops, record);
    NEED(e, tn_event_ops, wait);
    NEED(e, tn_event_ops, query);
    NEED(e, tn_event_ops, synchronize);
}

static void check_devices(tc_contract *k, const tn_device_ops *d, bool exactly) {
    if (!d || !check_size(k, d, "tn_device_ops", sizeof *d, exactly))
        return;
    NEED(d, tn_device_ops, count);
    NEED(d, tn_device_ops, open);
    NEED(d, tn_device_ops, close);
    NEED(d, tn_device_ops, property);
    NEED(d, tn_device_ops, memory);
    if (TN_HAS(d, tn_device_ops, memory) && d->memory &&
        check_size(k, d->memory, "tn_memory_ops", sizeof *d->memory, exactly))
        check_memory(k, d->memory);
    if (!TN_HAS(d, tn_device_ops, streams) || !d->streams)
        return;
    if (check_size(k, d->streams, "tn_stream_ops", sizeof *d->streams, exactly))
        check_streams(k, d->streams);
    NEED(d, tn_device_ops, events);
    if (TN_HAS(d, tn_device_ops, events) && d->events &&
        check_size(k, d->events, "tn_event_ops", sizeof *d->events, exactly))
        check_events(k, d->events);
}

static void check_kernels(tc_contract *k, const tn_plugin *p) {
    if (p->n_kernels > 0 && !p->kernels)
        TC_BROKEN(k, TNP_TABLE_REQUIRED_MEMBERS, "n_kernels is %llu, and kernels is NULL",
                  (unsigned long long)p->n_kernels);
    for (uint64_t i = 0; p->kernels && i < p->n_kernels; i++) {
        const tn_kernel *kernel = p->kernels[i];
        if (!kernel)
            TC_BROKEN(k, TNP_TABLE_REQUIRED_MEMBERS, "kernels[%llu] is NULL",
                      (unsigned long long)i);
        else if (check_size(k, kernel, "tn_kernel", sizeof *kernel, is_of_this(p))) {
            NEED(kernel, tn_kernel, op);
            NEED(kernel, tn_kernel, run);
        }
    }
}

static void load_tables(tc_contract *k) {
    const tn_plugin *p = tc_lifecycle_query(k);
    if (!p || !check_size(k, p, "tn_plugin", sizeof *p, is_of_this(p)))
        return;
    if (!TN_HAS(p, tn_plugin, n_kernels)) {
        TC_BROKEN(k, TNP_TABLE_REQUIRED_MEMBERS, "tn_plugin ends before n_kernels");
        return;
    }
    NEED(p, tn_plugin, init);
    NEED(p, tn_plugin, shutdown);
    NEED(p, tn_plugin, devices);
    check_devices(k, p->devices, is_of_this(p));
    check_kernels(k, p);
}

/* ---- names and versions ------------------------------------------------------------------ */

static bool is_part(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool is_reverse_domain(const char *id) {
    uint64_t n = strnlen(id, 128);
    int parts = 1;
    for (uint64_t i = 0; i < n; i++) {
        bool dot = id[i] == '.';
        if (!dot && !is_part(id[i]))
            return false;
        if (dot && (i == 0 || i + 1 == n || id[i + 1] == '.'))
            return false;
        parts += dot;
    }
    return n <= 127 && parts >= 2;
}

static bool is_type(const char *type) {
    uint64_t n = strnlen(type, 32);
    for (uint64_t i = 0; i < n; i++)
        if (!(type[i] >= 'a' && type[i] <= 'z') &&
            (i == 0 || !((type[i] >= '0' && type[i] <= '9') || type[i] == '_')))
            return false;
    return n >= 1 && n <= 31 && strcmp(type, "meta") != 0;
}

static void check_text(tc_contract *k, const char *member, const char *text) {
    uint64_t n = text ? strnlen(text, 256) : 0;
    if (n < 1 || n > 255)
        TC_BROKEN(k, TNP_PLUGIN_NAME_TEXT, "tn_plugin.%s has %s bytes; it has 1 to 255", member,
                  n ? "more than 255" : "no");
    else if (!tc_is_utf8(text))
        TC_BROKEN(k, TNP_PLUGIN_NAME_TEXT, "tn_plugin.%s is no UTF-8", member);
}

static void load_names(tc_contract *k) {
    const tn_plugin *p = tc_lifecycle_query(k);
    if (!p)
        return;
    if (!p->id || !is_reverse_domain(p->id))
        TC_BROKEN(k, TNP_PLUGIN_ID,
                  "tn_plugin.id '%.140s' is no reverse domain name of 2 parts or more, of at "
                  "most 127 letters a-z, digits, - and _",
                  p->id ? p->id : "NULL");
    if (!p->device_type || !is_type(p->device_type))
        TC_BROKEN(k, TNP_PLUGIN_DEVICE_TYPE,
                  "tn_plugin.device_type '%.40s' is not [a-z][a-z0-9_]*, of at most 31 "
                  "letters, or is meta",
                  p->device_type ? p->device_type : "NULL");
    check_text(k, "name", p->name);
    check_text(k, "version", p->version);
    if (p->abi_version < TN_ABI_OLDEST || p->abi_required > TN_ABI_VERSION)
        TC_BROKEN(k, TNP_PLUGIN_ABI_VERSION,
                  "tn_plugin.abi_version is %u.%u; this host has %u.%u and takes %u.%u or later; "
                  "build it against that header",
                  p->abi_version >> 16, p->abi_version & 0xffff, TN_ABI_MAJOR, TN_ABI_MINOR,
                  TN_ABI_OLDEST >> 16, TN_ABI_OLDEST & 0xffff);
    if (p->abi_required > p->abi_version)
        TC_BROKEN(k, TNP_PLUGIN_ABI_VERSION,
                  "tn_plugin.abi_required %u.%u is above abi_version %u.%u", p->abi_required >> 16,
                  p->abi_required & 0xffff, p->abi_version >> 16, p->abi_version & 0xffff);
    if (p->abi_version <= TN_ABI_VERSION &&
        (p->flags & ~(uint64_t)(TN_PLUGIN_FORK_SAFE | TN_PLUGIN_UNLOADABLE)))
        TC_BROKEN(k, TNP_TABLE_RESERVED_ZERO,
                  "tn_plugin.flags are 0x%llx; not all of them are TN_PLUGIN_*",
                  (unsigned long long)p->flags);
}

/* In capitals from `from` on, as an id is compared byte by byte; false where it stays what it was. */
static bool to_capitals(char *out, size_t room, const char *id, size_t from) {
    snprintf(out, room, "%s", id);
    for (char *at = out + from; *at; at++)
        *at = (char)toupper((unsigned char)*at);
    return strcmp(out, id) != 0;
}

/* Ids that are nearly one that the plugin may know; none of them is given out before the version of an
 * extension has three digits. */
static void ask_for_near(tc_contract *k, const tc_subject *s, const char *id) {
    static const char *const behind[] = {" ", "999", "x", "/", "/1", ".1"};
    char near[64];
    size_t n = sizeof behind / sizeof *behind;
    for (size_t i = 0; i < n + 2 * strlen(id); i++) {
        if (i < n)
            snprintf(near, sizeof near, "%s%s", id, behind[i]);
        else if (i < n + strlen(id)) /* cut short, from nothing on */
            snprintf(near, sizeof near, "%.*s", (int)(i - n), id);
        else if (!to_capitals(near, sizeof near, id, i - n - strlen(id)))
            continue;
        if (s->plugin->extension(s->self, near))
            TC_BROKEN(k, TNP_EXTENSION_ANSWERS, "extension answered a table to \"%s\"", near);
    }
}

static void load_extension(tc_contract *k) {
    static const char *const unknown[] = {"tenon.nonsense/1", "/", "x", "TENON.THREADS/1"};
    static const char *const ids[] = {TN_EXT_THREADS, TN_EXT_FORK, TN_EXT_NATIVE, TN_EXT_CAPTURE};
    tc_subject s;
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_NONE, "to ask for extensions"))
        return;
    if (!TN_HAS(s.plugin, tn_plugin, extension) || !s.plugin->extension) {
        tc_subject_close(&s);
        TC_NOT_OFFERED(k, "the plugin has no extensions");
        return;
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (s.plugin->extension(s.self, unknown[i]))
            TC_BROKEN(k, TNP_EXTENSION_ANSWERS, "extension answered a table to \"%s\"", unknown[i]);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const void *table = s.plugin->extension(s.self, ids[i]);
        ask_for_near(k, &s, ids[i]);
        if (s.plugin->extension(s.self, ids[i]) != table)
            TC_BROKEN(k, TNP_EXTENSION_ANSWERS,
                      "extension answered differently when asked again for %s", ids[i]);
    }
    const tn_ext_threads *threads = s.plugin->extension(s.self, TN_EXT_THREADS);
    if (threads && (threads->struct_size < sizeof *threads || !threads->set_num_threads ||
                    !threads->get_num_threads))
        TC_BROKEN(k, TNP_TABLE_REQUIRED_MEMBERS, TN_EXT_THREADS " lacks a function");
    const tn_ext_fork *forks = s.plugin->extension(s.self, TN_EXT_FORK);
    if (forks && (forks->struct_size < sizeof *forks || !forks->before || !forks->after))
        TC_BROKEN(k, TNP_TABLE_REQUIRED_MEMBERS, TN_EXT_FORK " lacks a function");
    tc_subject_close(&s);
}

static void load_life(tc_contract *k) {
    tc_subject s;
    const tn_plugin *p = tc_lifecycle_query(k);
    uint64_t before = p ? tc_tables_sum(p) : 0;
    if (!p || !tc_lifecycle_open(k, &s, tc_host_table(), TNP_NONE,
                                 "a life of which the tables are watched"))
        return;
    if (tc_tables_sum(p) != before)
        TC_BROKEN(k, TNP_TABLE_CONSTANT, "init, count, open or stream changed the plugin's tables");
    tc_lifecycle_probe(k, &s, TC_WORK_SMALL, TNP_NONE, "a life of which the tables are watched",
                       NULL);
    if (tc_tables_sum(p) != before)
        TC_BROKEN(k, TNP_TABLE_CONSTANT, "transfers and a kernel changed the plugin's tables");
    tc_subject_close(&s);
    if (tc_tables_sum(p) != before)
        TC_BROKEN(k, TNP_TABLE_CONSTANT, "close or shutdown changed the plugin's tables");
}

const tc_contract_row tc_table_rows[] = {
    {"load-tables", "", TC_SMOKE, load_tables},
    {"load-names", "", TC_SMOKE, load_names},
    {"load-extension", "", TC_SMOKE, load_extension},
    {"load-life", "", TC_SMOKE, load_life},
    {0},
};
