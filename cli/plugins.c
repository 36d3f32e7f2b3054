/* tenon plugins: every candidate, what became of it, and why. */
#include "cli/cli.h"
#include "cli/guard.h"
#include "cli/output.h"

#include <stdio.h>
#include <tenon/tenon.h>

static void list(const tn_plugin_info *info, void *user) {
    char abi[24] = "", note[240] = "";
    if (info->abi_version)
        snprintf(abi, sizeof(abi), "%u.%u", info->abi_version >> 16, info->abi_version & 0xffff);
    if (info->n_unknown_kernels)
        snprintf(
            note, sizeof(note),
            "%u of its kernels are for operators, or schemas of them, that this Tenon (%s) does "
            "not know; they are left out, and TENON_LOG=warn names them",
            info->n_unknown_kernels, tn_version());
    json_array_append_new(
        user,
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:s, s:I, s:I, s:I, s:o, s:o, s:o}", "state",
                  text(info->state), "id", text(info->id), "device_type", text(info->device_type),
                  "name", text(info->name), "version", text(info->version), "abi", abi, "devices",
                  (json_int_t)info->n_devices, "kernels", (json_int_t)info->n_kernels,
                  "unknown_kernels", (json_int_t)info->n_unknown_kernels, "path", text(info->path),
                  "reason", text(info->reason), "note", text(note)));
}

static int list_plugins(const options *o) {
    static const column columns[] = {
        {.heading = "STATE", .key = "state"},
        {.heading = "TYPE", .key = "device_type"},
        {.heading = "ID", .key = "id"},
        {.heading = "VERSION", .key = "version"},
        {.heading = "ABI", .key = "abi"},
        {.heading = "DEVICES", .key = "devices"},
        {.heading = "KERNELS", .key = "kernels"},
        {.heading = "PATH", .key = "path", .no = "(linked into the program)"},
        {0}};
    json_t *rows = json_array();
    tn_plugin_list(true, list, rows);
    if (o->json)
        print_json(rows);
    else
        print_table(rows, columns, 0);
    bool any = json_array_size(rows) > 0;
    json_decref(rows);
    if (!any)
        fprintf(stderr, "tenon: no plugin was found; TENON_PLUGIN_PATH names directories with "
                        "libtenon_<type>.so or libtenon_<type>_*.so\n");
    return any ? EXIT_OK : EXIT_FAILED;
}

int command_plugins(const options *o) {
    return run_with_plugins(o, list_plugins, false);
}
