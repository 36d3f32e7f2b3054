/* tenon dtypes: the element types, with the numbers that programs without our headers need. */
#include "cli/cli.h"
#include "cli/output.h"

#include <tenon/introspect.h>

static void list(const tn_dtype_info *info, void *user) {
    json_array_append_new(user, json_pack("{s:o, s:i, s:i, s:o}", "name", text(info->name),
                                          "number", (int)info->dtype, "bytes", (int)info->bytes,
                                          "kind", text(info->kind)));
}

int command_dtypes(const options *o) {
    static const column columns[] = {{.heading = "NAME", .key = "name"},
                                     {.heading = "NUMBER", .key = "number"},
                                     {.heading = "BYTES", .key = "bytes"},
                                     {.heading = "KIND", .key = "kind"},
                                     {0}};
    json_t *rows = json_array();
    tn_dtype_list(list, rows);
    if (o->json)
        print_json(rows);
    else
        print_table(rows, columns, 0);
    json_decref(rows);
    return EXIT_OK;
}
