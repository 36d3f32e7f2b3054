/* Compatibility with hosts that offer less, or more, than this one: older, cut, larger, newer. */
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Opens with `host`, works, closes. The host must do. */
static void live(tc_contract *k, const tn_host *host, tn_requirement requirement,
                 const char *when) {
    tc_subject s;
    if (!tc_lifecycle_open(k, &s, host, requirement, when))
        return;
    tc_lifecycle_probe(k, &s, TC_WORK_SMALL, requirement, when, NULL);
    tc_subject_close(&s);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, when);
}

/* The table ends, before a page that cannot be read, where `end` says. */
static void older_host(tc_contract *k) {
    uint64_t whole = offsetof(tn_host, extension);
    tn_host *host = tc_host_poor_create(whole);
    if (!host) {
        TC_CASE_ERROR(k->out, "the host has no memory for a guarded table");
        return;
    }
    live(k, host, TNP_HOST_EXTENSION_OPTIONAL, "with a host table that ends before extension");
    tc_host_poor_destroy(host);
}

/* Tables too short to work with: the query answers NULL, or the plugin does without. */
static void cut_host(tc_contract *k) {
    tn_plugin_query_fn query;
    if (!tc_lifecycle_object(k, &query))
        return;
    for (uint64_t bytes = offsetof(tn_host, extension); bytes >= 16; bytes -= 8) {
        char when[TC_MESSAGE];
        tn_host *host = tc_host_poor_create(bytes);
        if (!host) {
            TC_CASE_ERROR(k->out, "the host has no memory for a guarded table");
            return;
        }
        snprintf(when, sizeof when, "with a host table of %llu bytes, which the query accepted",
                 (unsigned long long)bytes);
        if (query(host))
            live(k, host, TNP_HOST_STRUCT_SIZE, when);
        tc_host_poor_destroy(host);
    }
}

/* A table of its own for each life: what the query saw, and what an earlier `init` was given, is
 * gone when the next one comes. */
static void another_host(tc_contract *k) {
    tn_plugin_query_fn query;
    if (!tc_lifecycle_object(k, &query))
        return;
    tn_host *hosts[3]; /* at once, for none is to lie where an earlier one lay */
    for (int i = 0; i < 3; i++)
        if (!(hosts[i] = tc_host_poor_create(sizeof(tn_host))))
            TC_CASE_ERROR(k->out, "the host has no memory for a guarded table");
    if (!tc_failed(k))
        query(hosts[0]);
    for (int i = 0; i < 3; i++) {
        if (i > 0 && !tc_failed(k))
            live(k, hosts[i], TNP_INIT_AGAIN,
                 "with a host table of its own, where the earlier ones are gone");
        tc_host_poor_destroy(hosts[i]);
    }
}

static const void *no_extension(const tn_host *host, const char *id) {
    (void)host, (void)id;
    return NULL;
}

static const char *no_option(const tn_host *host, const char *name) {
    (void)host, (void)name;
    return NULL;
}

static void no_extensions(tc_contract *k) {
    tn_host host = *tc_host_table();
    host.extension = NULL;
    live(k, &host, TNP_HOST_EXTENSION_OPTIONAL, "with a host whose extension is NULL");
    host.extension = no_extension;
    live(k, &host, TNP_HOST_EXTENSION_OPTIONAL, "with a host whose extension answers NULL");
}

static void no_options(tc_contract *k) {
    tn_host host = *tc_host_table();
    host.option = no_option;
    live(k, &host, TNP_HOST_OPTION, "with a host of which no option is set");
}

/* A host of a later minor version: more members than this plugin knows, which it must not read. */
static void larger_host(tc_contract *k) {
    struct {
        tn_host host;
        unsigned char more[256];
    } large;
    memset(&large, 0xc3, sizeof large);
    large.host = *tc_host_table();
    large.host.struct_size = sizeof large;
    live(k, &large.host, TNP_HOST_STRUCT_SIZE,
         "with a host table that is larger than known, with garbage behind");
}

static void newer_host(tc_contract *k) {
    tn_host host = *tc_host_table();
    tn_plugin_query_fn query;
    if (!tc_lifecycle_object(k, &query))
        return;
    host.abi_version++;
    bool accepted = query(&host) != NULL;
    if (accepted)
        live(k, &host, TNP_ENTRY_HOST_VERSIONS, "with a host of the next minor version");
    else
        TC_BROKEN(k, TNP_ENTRY_HOST_VERSIONS,
                  "the plugin refuses a host of version %u.%u, which is newer than it needs",
                  host.abi_version >> 16, host.abi_version & 0xffff);
}

/* What one host has got stays as it is while hosts of every other kind ask. */
static void other_hosts(tc_contract *k) {
    enum { MORE = 64 };
    tn_plugin_query_fn query;
    const tn_plugin *plugin = tc_lifecycle_query(k);
    if (!plugin || !tc_lifecycle_object(k, &query))
        return;
    uint64_t before = tc_tables_sum(plugin);
    for (uint64_t bytes = 16; bytes <= sizeof(tn_host) + MORE && !tc_failed(k); bytes += 8)
        for (uint32_t newer = 0; newer < 2; newer++) {
            struct {
                tn_host host;
                unsigned char more[MORE];
            } other = {.host = *tc_host_table()};
            other.host.struct_size = bytes;
            other.host.abi_version += newer;
            query(&other.host);
            if (tc_tables_sum(plugin) != before)
                TC_BROKEN(k, TNP_TABLE_CONSTANT,
                          "the table that one host had got changed when another, of version %u.%u "
                          "with a table of %llu bytes, asked for its own",
                          other.host.abi_version >> 16, other.host.abi_version & 0xffff,
                          (unsigned long long)bytes);
        }
}

const tc_contract_row tc_host_compatibility_rows[] = {
    {"host-others", "", TC_SMOKE, other_hosts},
    {"host-older", "", TC_SMOKE, older_host},
    {"host-cut", "", TC_STANDARD, cut_host},
    {"host-another", "", TC_SMOKE, another_host},
    {"host-extension", "", TC_STANDARD, no_extensions},
    {"host-options", "", TC_STANDARD, no_options},
    {"host-larger", "", TC_STANDARD, larger_host},
    {"host-newer", "", TC_STANDARD, newer_host},
    {0},
};
