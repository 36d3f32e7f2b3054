/* tenon plugins: every candidate, what became of it, and why. */
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/table.h"

#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>

typedef struct listing {
    bool json;
    table *table;
    int n_found, n_broken;
} listing;

static bool is_broken(const tn_plugin_info *info) {
    return strcmp(info->state, "refused") == 0 || strcmp(info->state, "failed") == 0;
}

static void version_text(uint32_t version, char *out, size_t size) {
    out[0] = '\0';
    if (version)
        snprintf(out, size, "%u.%u", version >> 16, version & 0xffff);
}

static void list_json(const tn_plugin_info *info) {
    char abi[24];
    version_text(info->abi_version, abi, sizeof(abi));
    json_object_open(NULL);
    json_string("state", info->state);
    json_string("id", info->id);
    json_string("device_type", info->device_type);
    json_string("name", info->name);
    json_string("version", info->version);
    json_string("abi", abi);
    json_number("devices", info->n_devices);
    json_number("kernels", info->n_kernels);
    json_number("unknown_kernels", info->n_unknown_kernels);
    json_string("path", info->path);
    json_string("reason", info->reason);
    json_object_close();
}

static void list_row(const tn_plugin_info *info, table *t) {
    char abi[24], devices[24] = "", kernels[24] = "";
    version_text(info->abi_version, abi, sizeof(abi));
    if (strcmp(info->state, "ready") == 0)
        snprintf(devices, sizeof(devices), "%u", info->n_devices);
    if (*info->id)
        snprintf(kernels, sizeof(kernels), "%u", info->n_kernels);
    const char *path = *info->path ? info->path : "(linked into the program)";
    const char *cells[] = {info->state, info->device_type, info->id, info->version, abi,
                           devices,     kernels,           path,     NULL};
    table_row(t, cells);
    if (*info->reason)
        table_note(t, info->reason);
    if (info->n_unknown_kernels) {
        char note[160];
        snprintf(note, sizeof(note),
                 "%u of its kernels are for operators that this Tenon (%s) does not know; they are "
                 "left out",
                 info->n_unknown_kernels, tn_version());
        table_note(t, note);
    }
}

static void list_plugin(const tn_plugin_info *info, void *user) {
    listing *l = user;
    l->n_found++;
    l->n_broken += is_broken(info);
    if (l->json)
        list_json(info);
    else
        list_row(info, l->table);
}

int command_plugins(const struct options *options) {
    static const char *const headings[] = {"STATE",   "TYPE",    "ID",   "VERSION", "ABI",
                                           "DEVICES", "KERNELS", "PATH", NULL};
    listing l = {.json = options->json};
    if (l.json) {
        json_array_open(NULL);
        tn_plugin_list(true, list_plugin, &l);
        json_array_close();
    } else {
        l.table = table_create(headings);
        tn_plugin_list(true, list_plugin, &l);
        table_print(l.table, 0);
        table_destroy(l.table);
    }
    if (l.n_found == 0)
        fprintf(stderr, "tenon: no plugin was found; TENON_PLUGIN_PATH names directories with "
                        "libtenon_<type>*.so\n");
    return l.n_found > 0 ? EXIT_OK : EXIT_FAILED;
}
