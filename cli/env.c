/* tenon env: every environment variable that Tenon reads, and its value now. */
#include "cli/cli.h"
#include "cli/output.h"

#include <tenon/tenon.h>

static void list(const tn_env_info *info, void *user) {
    json_array_append_new(user, json_pack("{s:o, s:o, s:o, s:o, s:b, s:o}", "name",
                                          text(info->name), "type", text(info->type), "value",
                                          text(info->value), "default", text(info->fallback), "set",
                                          info->is_set, "help", text(info->help)));
}

int command_env(const options *o) {
    static const column columns[] = {
        {.heading = "VARIABLE", .key = "name"},
        {.heading = "VALUE", .key = "value"},
        {.heading = "FROM", .key = "set", .yes = "set", .no = "default"},
        {.heading = "MEANING", .key = "help"},
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
