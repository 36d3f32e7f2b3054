/* tenon env: every environment variable that Tenon reads, and what holds now. */
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/table.h"

#include <tenon/tenon.h>

static void list_json(const tn_env_info *info, void *user) {
    json_object_open(NULL);
    json_string("name", info->name);
    json_string("type", info->type);
    json_string("value", info->value);
    json_string("default", info->fallback);
    json_bool("set", info->is_set);
    json_string("help", info->help);
    json_object_close();
}

static void list_row(const tn_env_info *info, void *user) {
    const char *cells[] = {info->name, info->value, info->is_set ? "set" : "default", info->help,
                           NULL};
    table_row(user, cells);
}

int command_env(const struct options *options) {
    static const char *const headings[] = {"VARIABLE", "VALUE", "FROM", "MEANING", NULL};
    if (options->json) {
        json_array_open(NULL);
        tn_env_list(list_json, NULL);
        json_array_close();
        return EXIT_OK;
    }
    table *t = table_create(headings);
    tn_env_list(list_row, t);
    table_note(t, "A plugin's own options are TENON_<TYPE>_<OPTION>, such as TENON_CPU_THREADS.");
    table_print(t, 0);
    table_destroy(t);
    return EXIT_OK;
}
