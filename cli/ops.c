/* tenon ops: the operators; tenon ops NAME: who answers each of its calls, and why. */
#include "cli/cli.h"
#include "cli/devices.h"
#include "cli/guard.h"
#include "cli/output.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>

/* ---- all of them ------------------------------------------------------------------------- */

/* JSON has no infinities: those are texts. */
static json_t *make_number(double value) {
    char words[32];
    snprintf(words, sizeof(words), "%g", value);
    return isfinite(value) ? json_real(value) : text(words);
}

static json_t *make_default(const tn_arg_info *arg) {
    const tn_cell *cell = &arg->fallback;
    json_t *list;
    switch (cell->tag) {
    case TN_CELL_I64:
        return strcmp(arg->type, "ScalarType") == 0 ? text(tn_dtype_name((tn_dtype)cell->v.i64))
                                                    : json_integer(cell->v.i64);
    case TN_CELL_F64:
        return make_number(cell->v.f64);
    case TN_CELL_BOOL:
        return json_boolean(cell->v.boolean);
    case TN_CELL_STRING:
        return text(cell->v.string);
    case TN_CELL_INTS:
        list = json_array();
        for (uint32_t i = 0; i < cell->n; i++)
            json_array_append_new(list, json_integer(cell->v.ints[i]));
        return list;
    default:
        return json_null();
    }
}

static json_t *make_arg(const tn_arg_info *arg) {
    json_t *made = json_pack("{s:o, s:o, s:b, s:b, s:b}", "name", text(arg->name), "type",
                             text(arg->type), "optional", arg->optional, "keyword_only",
                             arg->keyword_only, "mutable", arg->is_written);
    if (arg->n_ints)
        json_object_set_new(made, "n", json_integer(arg->n_ints));
    if (arg->has_default)
        json_object_set_new(made, "default", make_default(arg));
    return made;
}

static json_t *make_ret(const tn_arg_info *ret, const tn_arg_info *args) {
    return json_pack("{s:o, s:o, s:o, s:b}", "name", text(ret->name), "type", text(ret->type),
                     "argument", ret->alias < 0 ? json_null() : text(args[ret->alias].name),
                     "mutable", ret->is_written);
}

static json_t *make_op(const tn_op_info *info) {
    json_t *args = json_array(), *rets = json_array();
    for (uint32_t i = 0; i < info->n_args; i++)
        json_array_append_new(args, make_arg(&info->args[i]));
    for (uint32_t i = 0; i < info->n_rets; i++)
        json_array_append_new(rets, make_ret(&info->rets[i], info->args));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:o}", "name",
                     text(info->name), "schema", text(info->schema), "kind", text(info->kind),
                     "gradient", text(info->gradient), "kernel", text(info->kernel), "small_set",
                     info->in_small_set, "decomposition", info->has_decomposition, "function",
                     text(info->function), "form", text(info->form), "args", args, "returns", rets);
}

static void list(const tn_op_info *info, void *user) {
    json_array_append_new(user, make_op(info));
}

static int list_all(const options *o) {
    static const column columns[] = {
        {.heading = "NAME", .key = "name"},         {.heading = "KIND", .key = "kind"},
        {.heading = "GRADIENT", .key = "gradient"}, {.heading = "KERNEL", .key = "kernel"},
        {.heading = "SCHEMA", .key = "schema"},     {0}};
    json_t *rows = json_array();
    tn_status status = tn_op_list(list, rows);
    if (o->json)
        print_json(rows);
    else
        print_table(rows, columns, 0);
    json_decref(rows);
    return status == TN_OK ? EXIT_OK : report_failure();
}

/* ---- one of them ------------------------------------------------------------------------- */

static const struct {
    uint64_t flag;
    const char *name;
} flags[] = {{TN_KERNEL_STRIDED, "strided"},   {TN_KERNEL_BROADCAST, "broadcast"},
             {TN_KERNEL_IN_PLACE, "in-place"}, {TN_KERNEL_INDEX64, "index64"},
             {TN_KERNEL_SCALARS, "scalars"},   {TN_KERNEL_DETERMINISTIC, "deterministic"}};

static void flags_text(uint64_t mask, char *out, size_t size) {
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags) && used < size; i++) {
        if (mask & flags[i].flag)
            used +=
                (size_t)snprintf(out + used, size - used, "%s%s", used ? " " : "", flags[i].name);
    }
}

static void add_handler(const tn_op_handler_info *line, void *user) {
    json_array_append_new(user, json_pack("{s:o, s:o, s:o, s:o, s:b, s:s}", "key", text(line->key),
                                          "device_type", text(line->device_type), "origin",
                                          text(line->origin), "why", text(line->why), "active",
                                          line->active, "note",
                                          line->active ? "" : "hidden by a newer one"));
}

static void add_kernel(const tn_kernel_info *line, void *user) {
    char dtypes[96], takes[128];
    flags_text(line->flags, takes, sizeof(takes));
    json_array_append_new(user, json_pack("{s:o, s:o, s:s, s:s, s:o}", "device", text(line->device),
                                          "kernel", text(line->kernel), "dtypes",
                                          dtypes_text(line->dtypes, dtypes, sizeof(dtypes)),
                                          "flags", takes, "origin", text(line->origin)));
}

/* The open devices that have no kernel among these. */
static json_t *find_without(const json_t *devices, const json_t *kernels) {
    json_t *without = json_array(), *device, *kernel;
    size_t i, k;
    json_array_foreach(devices, i, device) {
        bool found = false;
        json_array_foreach(kernels, k, kernel) found |=
            json_equal(json_object_get(kernel, "device"), device);
        if (!found)
            json_array_append(without, device);
    }
    return without;
}

typedef struct described {
    json_t *devices, *ops;
} described;

/* Adds an operator, with its handlers and kernels. */
static void describe(const tn_op_info *info, void *user) {
    const described *d = user;
    json_t *op = make_op(info), *handlers = json_array(), *kernels = json_array();
    (void)tn_op_handlers(info->name, add_handler, handlers);
    (void)tn_op_kernels(info->name, add_kernel, kernels);
    json_object_set_new(op, "handlers", handlers);
    json_object_set_new(op, "kernels", kernels);
    json_object_set_new(op, "without",
                        *info->kernel ? find_without(d->devices, kernels) : json_array());
    json_array_append_new(d->ops, op);
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

static void show(const json_t *op) {
    static const column handlers[] = {{.heading = "KEY", .key = "key"},
                                      {.heading = "DEVICE", .key = "device_type", .no = "any"},
                                      {.heading = "ORIGIN", .key = "origin"},
                                      {.heading = "WHY", .key = "why"},
                                      {0}};
    static const column kernels[] = {
        {.heading = "DEVICE", .key = "device"}, {.heading = "KERNEL", .key = "kernel"},
        {.heading = "ORIGIN", .key = "origin"}, {.heading = "DTYPES", .key = "dtypes"},
        {.heading = "TAKES", .key = "flags"},   {0}};
    const char *schema, *kind, *gradient, *kernel, *function, *form;
    int in_small_set, has_decomposition;
    if (json_unpack((json_t *)op, "{s:s, s:s, s:s, s:s, s:b, s:b, s:s, s:s}", "schema", &schema,
                    "kind", &kind, "gradient", &gradient, "kernel", &kernel, "small_set",
                    &in_small_set, "decomposition", &has_decomposition, "function", &function,
                    "form", &form) != 0)
        return; /* no memory made it */
    printf("%s\n", schema);
    printf("  kind           %s, %s\n", kind, form);
    if (*function)
        printf("  in C           %s\n", function);
    printf("  gradient       %s\n", gradient_text(gradient));
    if (*kernel)
        printf("  kernel         %s%s\n", kernel,
               in_small_set ? ", of the small set that every device has" : "");
    else
        printf("  kernel         none: it calls other operators, or makes views\n");
    if (*kernel)
        printf("  decomposition  %s\n",
               has_decomposition ? "yes, where a device has no kernel" : "no");
    printf("\n");
    print_table(json_object_get(op, "handlers"), handlers, 2);
    if (!*kernel)
        return;
    printf("\n");
    if (json_array_size(json_object_get(op, "kernels")) > 0)
        print_table(json_object_get(op, "kernels"), kernels, 2);
    else
        printf("  no device has the kernel '%s'%s\n", kernel,
               has_decomposition ? "; the decomposition runs" : "");
    const json_t *device;
    size_t i;
    json_array_foreach(json_object_get(op, "without"), i, device)
        printf("  %s has none: %s\n", json_string_value(device),
               has_decomposition ? "the decomposition runs" : "TENON_FALLBACK decides");
    if (json_array_size(json_object_get(op, "without")) > 0 && strcmp(form, "functional") == 0)
        printf("  `tenon-conform needs PLUGIN.so --filter 'operator/%.*s'` says what a device "
               "lacks for it\n",
               (int)strcspn(schema, "("), schema);
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

static void note_device(const char *name, tn_device device, const char *plugin, void *user) {
    if (device.type)
        json_array_append_new(user, text(name));
}

static int show_one(const options *o) {
    search s = {.wanted = o->arguments[0]};
    if (tn_op_list(match, &s) != TN_OK)
        return report_failure();
    if (s.n_matches == 0)
        return not_found(&s);
    described d = {json_array(), json_array()};
    for_each_device(note_device, d.devices); /* kernels are known of open devices */

    json_t *ops = d.ops, *op;
    tn_status status = TN_OK;
    for (int i = 0; i < s.n_matches && status == TN_OK; i++)
        status = tn_op_describe(s.matches[i], describe, &d);
    size_t i;
    if (status == TN_OK && o->json)
        print_json(ops);
    json_array_foreach(ops, i, op) {
        if (o->json)
            break;
        printf(i ? "\n" : "");
        show(op);
    }
    json_decref(ops);
    json_decref(d.devices);
    return status == TN_OK ? EXIT_OK : report_failure();
}

int command_ops(const options *o) {
    return o->arguments[0] ? run_with_plugins(o, show_one, true) : list_all(o);
}
