/* tenon env: every environment variable that Tenon reads, and its value now; what looks like one. */
#include "cli/cli.h"
#include "cli/output.h"

#include <stdio.h>
#include <tenon/tenon.h>

static void list(const tn_env_info *info, void *user) {
    const char *from = info->is_set ? "set" : *info->problem ? "ignored" : "default";
    char meaning[320];
    snprintf(meaning, sizeof meaning, *info->allowed ? "%s (%s)" : "%s", info->help, info->allowed);
    json_array_append_new(user, json_pack("{s:o, s:o, s:o, s:o, s:b, s:s, s:o, s:o, s:o, s:s}",
                                          "name", text(info->name), "type", text(info->type),
                                          "value", text(info->value), "default",
                                          text(info->fallback), "set", info->is_set, "from", from,
                                          "help", text(info->help), "allowed", text(info->allowed),
                                          "note", text(info->problem), "meaning", meaning));
}

int command_env(const options *o) {
    static const column columns[] = {{.heading = "VARIABLE", .key = "name"},
                                     {.heading = "VALUE", .key = "value"},
                                     {.heading = "FROM", .key = "from"},
                                     {.heading = "MEANING", .key = "meaning"},
                                     {0}};
    json_t *rows = json_array();
    tn_env_list(list, rows);
    if (o->json) {
        print_json(rows);
    } else {
        print_table(rows, columns, 0);
        puts("    A plugin's own options are TENON_<TYPE>_<OPTION>, such as TENON_CPU_THREADS.");
    }
    json_decref(rows);
    return EXIT_OK;
}
