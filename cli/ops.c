/* tenon ops: the operators; tenon ops NAME: who answers each of its calls, and why. */
#include "cli/cli.h"
#include "cli/devices.h"
#include "cli/json.h"
#include "cli/table.h"

#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>

/* ---- all of them ------------------------------------------------------------------------- */

static void list_json(const tn_op_info *info, void *user) {
    json_object_open(NULL);
    json_string("name", info->name);
    json_string("schema", info->schema);
    json_string("kind", info->kind);
    json_string("gradient", info->gradient);
    json_string("kernel", info->kernel);
    json_bool("small_set", info->in_small_set);
    json_bool("decomposition", info->has_decomposition);
    json_object_close();
}

static void list_row(const tn_op_info *info, void *user) {
    const char *cells[] = {info->name,   info->kind,   info->gradient,
                           info->kernel, info->schema, NULL};
    table_row(user, cells);
}

static int list_all(const struct options *options) {
    static const char *const headings[] = {"NAME", "KIND", "GRADIENT", "KERNEL", "SCHEMA", NULL};
    tn_status status;
    if (options->json) {
        json_array_open(NULL);
        status = tn_op_list(list_json, NULL);
        json_array_close();
    } else {
        table *t = table_create(headings);
        status = tn_op_list(list_row, t);
        table_print(t, 0);
        table_destroy(t);
    }
    return status == TN_OK ? EXIT_OK : report_failure();
}

/* ---- one of them ------------------------------------------------------------------------- */

static const struct {
    uint32_t flag;
    const char *name;
} flags[] = {{TN_KERNEL_STRIDED, "strided"},     {TN_KERNEL_BROADCAST, "broadcast"},
             {TN_KERNEL_IN_PLACE, "in-place"},   {TN_KERNEL_INDEX64, "index64"},
             {TN_KERNEL_SCALARS, "scalars"},     {TN_KERNEL_DETERMINISTIC, "deterministic"},
             {TN_KERNEL_CAPTURE_SAFE, "capture"}};

static void flags_text(uint32_t mask, char *out, size_t size) {
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags) && used < size; i++) {
        if (mask & flags[i].flag)
            used +=
                (size_t)snprintf(out + used, size - used, "%s%s", used ? " " : "", flags[i].name);
    }
}

static void handler_json(const tn_op_handler_info *line, void *user) {
    json_object_open(NULL);
    json_string("key", line->key);
    json_string("device_type", line->device_type);
    json_string("origin", line->origin);
    json_string("why", line->why);
    json_bool("active", line->active);
    json_object_close();
}

static void handler_row(const tn_op_handler_info *line, void *user) {
    char why[256];
    snprintf(why, sizeof(why), "%s%s", line->why, line->active ? "" : " (hidden by a newer one)");
    const char *cells[] = {line->key, *line->device_type ? line->device_type : "any", line->origin,
                           why, NULL};
    table_row(user, cells);
}

static void kernel_json(const tn_kernel_info *line, void *user) {
    char dtypes[96], takes[128];
    flags_text(line->flags, takes, sizeof(takes));
    json_object_open(NULL);
    json_string("device", line->device);
    json_string("kernel", line->kernel);
    json_string("dtypes", dtypes_text(line->dtypes, dtypes, sizeof(dtypes)));
    json_string("flags", takes);
    json_string("origin", line->origin);
    json_object_close();
}

typedef struct kernel_listing {
    table *table;
    int n;
} kernel_listing;

static void kernel_row(const tn_kernel_info *line, void *user) {
    kernel_listing *l = user;
    char dtypes[96], takes[128];
    flags_text(line->flags, takes, sizeof(takes));
    const char *cells[] = {line->device, line->kernel,
                           line->origin, dtypes_text(line->dtypes, dtypes, sizeof(dtypes)),
                           takes,        NULL};
    table_row(l->table, cells);
    l->n++;
}

static const char *gradient_text(const char *gradient) {
    if (strcmp(gradient, "formula") == 0)
        return "by its own formula";
    if (strcmp(gradient, "composite") == 0)
        return "through the operators it calls";
    if (strcmp(gradient, "none") == 0)
        return "its results never need one";
    return "none: backward through it fails, by name";
}

static void show_json(const tn_op_info *info, void *user) {
    json_object_open(NULL);
    json_string("name", info->name);
    json_string("schema", info->schema);
    json_string("kind", info->kind);
    json_string("gradient", info->gradient);
    json_string("kernel", info->kernel);
    json_bool("small_set", info->in_small_set);
    json_bool("decomposition", info->has_decomposition);
    json_array_open("handlers");
    (void)tn_op_handlers(info->name, handler_json, NULL);
    json_array_close();
    json_array_open("kernels");
    (void)tn_op_kernels(info->name, kernel_json, NULL);
    json_array_close();
    json_object_close();
}

static void show_handlers(const char *name) {
    static const char *const headings[] = {"KEY", "DEVICE", "ORIGIN", "WHY", NULL};
    table *t = table_create(headings);
    (void)tn_op_handlers(name, handler_row, t);
    printf("\n");
    table_print(t, 2);
    table_destroy(t);
}

static void show_kernels(const tn_op_info *info) {
    static const char *const headings[] = {"DEVICE", "KERNEL", "ORIGIN", "DTYPES", "TAKES", NULL};
    kernel_listing l = {.table = table_create(headings)};
    (void)tn_op_kernels(info->name, kernel_row, &l);
    printf("\n");
    if (l.n > 0)
        table_print(l.table, 2);
    else
        printf("  no device has the kernel '%s'%s\n", info->kernel,
               info->has_decomposition ? "; the decomposition runs" : "");
    table_destroy(l.table);
}

static void show(const tn_op_info *info, void *user) {
    printf("%s\n", info->schema);
    printf("  kind           %s\n", info->kind);
    printf("  gradient       %s\n", gradient_text(info->gradient));
    if (*info->kernel)
        printf("  kernel         %s%s\n", info->kernel,
               info->in_small_set ? ", of the small set that every device has" : "");
    else
        printf("  kernel         none: it calls other operators, or makes views\n");
    if (*info->kernel)
        printf("  decomposition  %s\n",
               info->has_decomposition ? "yes, where a device has no kernel" : "no");
    show_handlers(info->name);
    if (*info->kernel)
        show_kernels(info);
}

/* ---- finding it -------------------------------------------------------------------------- */

enum { MAX_MATCHES = 64, MAX_HINTS = 8 };

typedef struct search {
    const char *wanted;
    const char *matches[MAX_MATCHES];
    const char *hints[MAX_HINTS]; /* names that contain what was asked for */
    int n_matches, n_hints;
} search;

/* "add" is add, add.Tensor, add.Scalar, add.out and add_.Tensor; "add.Tensor" is only itself. */
static bool is_match(const char *name, const char *wanted) {
    size_t n = strlen(wanted);
    if (strncmp(name, wanted, n) != 0)
        return false;
    if (strchr(wanted, '.'))
        return name[n] == '\0';
    if (name[n] == '_')
        n++;
    return name[n] == '\0' || name[n] == '.';
}

static void match(const tn_op_info *info, void *user) {
    search *s = user;
    if (is_match(info->name, s->wanted) && s->n_matches < MAX_MATCHES)
        s->matches[s->n_matches++] = info->name;
    else if (strstr(info->name, s->wanted) && s->n_hints < MAX_HINTS)
        s->hints[s->n_hints++] = info->name;
}

static int not_found(const search *s) {
    fprintf(stderr, "tenon: there is no operator '%s'", s->wanted);
    for (int i = 0; i < s->n_hints; i++)
        fprintf(stderr, "%s %s", i == 0 ? "; there is" : ",", s->hints[i]);
    fprintf(stderr, "%s\n", s->n_hints ? "" : "; `tenon ops` lists all");
    return EXIT_FAILED;
}

static void nothing(const char *name, tn_device device, const char *plugin, void *user) {}

static int show_one(const struct options *options) {
    search s = {.wanted = options->arguments[0]};
    if (tn_op_list(match, &s) != TN_OK)
        return report_failure();
    if (s.n_matches == 0)
        return not_found(&s);
    for_each_device(nothing, NULL); /* kernels are known of open devices */

    if (options->json)
        json_array_open(NULL);
    for (int i = 0; i < s.n_matches; i++) {
        if (i > 0 && !options->json)
            printf("\n");
        if (tn_op_describe(s.matches[i], options->json ? show_json : show, NULL) != TN_OK)
            return report_failure();
    }
    if (options->json)
        json_array_close();
    return EXIT_OK;
}

int command_ops(const struct options *options) {
    return options->arguments[0] ? show_one(options) : list_all(options);
}
