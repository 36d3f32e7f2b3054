/* tenon/introspect.h: the registry's, the devices' and the environment's records, told in public
 * terms. */
#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "core/call/init.h"
#include "core/device/device.h"
#include "core/memory/pool.h"
#include "core/ops/operators.h"
#include "dispatcher/registry.h"
#include "loader/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <tenon/introspect.h>

/* ---- operators --------------------------------------------------------------------------- */

static const char *kind_name(const tni_op_info *info) {
    static const char *const names[] = {
        [TNI_OP_POINTWISE] = "pointwise",
        [TNI_OP_GENERAL] = "general",
        [TNI_OP_VIEW] = "view",
        [TNI_OP_COMPOSITE] = "composite",
    };
    return info ? names[info->kind] : "custom";
}

/* The handler that answers a key on every device. */
static tn_handler_fn handler_of(const tn_op *op, tn_key key) {
    return atomic_load_explicit(&op->row, memory_order_acquire)->entries[key].fn;
}

static const char *gradient_name(const tn_op *op) {
    const tni_op_info *info = tni_info(op);
    if (!info)
        return handler_of(op, TN_KEY_AUTOGRAD) == tni_autograd_handler ? "missing" : "formula";
    if (info->not_differentiable)
        return "none";
    if (info->derivative)
        return "formula";
    return info->run ? "composite" : "missing";
}

/* The operator's row of kernels, or NULL. */
static const tni_kernel_op *kernel_of(const tn_op *op) {
    const tni_op_info *info = tni_info(op);
    if (!info)
        return tni_kernel_op_added(op->name, op->schema->text);
    return info->kernel >= 0 ? tni_kernel_op_at((uint32_t)info->kernel) : NULL;
}

/* The argument with the same letter, (a) or (a!), as a result; -1 for none. */
static int32_t alias_of(const tni_schema *schema, const tni_arg *ret) {
    for (uint32_t i = 0; ret->alias && i < schema->n_args; i++)
        if (schema->args[i].alias == ret->alias)
            return (int32_t)i;
    return -1;
}

static void describe_args(const tni_schema *schema, const tni_arg *from, uint32_t n,
                          tn_arg_info *out) {
    for (uint32_t i = 0; i < n; i++) {
        out[i] = (tn_arg_info){
            .struct_size = sizeof(tn_arg_info),
            .name = from[i].name,
            .type = tni_type_name(&from[i]),
            .fallback = from[i].fallback,
            .n_ints = from[i].n_ints,
            .alias = from == schema->rets ? alias_of(schema, &from[i]) : -1,
            .optional = from[i].optional,
            .has_default = from[i].has_default,
            .keyword_only = from[i].keyword_only,
            .is_written = from[i].is_written,
        };
    }
}

static const char *form_name(const tni_schema *schema) {
    uint32_t n_written = 0;
    for (uint32_t i = 0; i < schema->n_args; i++)
        n_written += schema->args[i].is_written;
    return n_written == 0 ? "functional" : schema->args[0].is_written ? "inplace" : "out";
}

static void describe(const tn_op *op, void (*fn)(const tn_op_info *info, void *user), void *user) {
    const tni_op_info *info = tni_info(op);
    const tni_kernel_op *kernel = kernel_of(op);
    const tni_schema *schema = op->schema;
    tn_arg_info args[TNI_MAX_ARGS], rets[TNI_MAX_RETS];
    describe_args(schema, schema->args, schema->n_args, args);
    describe_args(schema, schema->rets, schema->n_rets, rets);
    tn_op_info told = {
        .struct_size = sizeof(tn_op_info),
        .name = tn_op_name(op),
        .schema = tn_op_schema(op),
        .kind = kind_name(info),
        .kernel = kernel ? kernel->name : "",
        .gradient = gradient_name(op),
        .has_decomposition =
            kernel && (info ? info->run && !info->run_for_integers
                            : handler_of(op, TN_KEY_BACKEND) != tni_backend_handler),
        .in_small_set = kernel && kernel->small,
        .function = info ? info->call : "",
        .form = form_name(schema),
        .args = args,
        .rets = rets,
        .n_args = schema->n_args,
        .n_rets = schema->n_rets,
    };
    fn(&told, user);
}

/* Is there a function to tell it to? */
static bool has_listener(bool fn, const char *call) {
    if (!fn)
        tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: fn is NULL", call);
    return fn;
}

static const tn_op *find(const char *name, bool fn, const char *call) {
    return has_listener(fn, call) && tni_core_init() == TN_OK ? tn_op_find(name) : NULL;
}

/* The operators, collected under the registry's lock so that callbacks run outside of it. */
typedef struct op_array {
    const tn_op **ops;
    uint32_t n, capacity;
} op_array;

static void collect(const tn_op *op, void *user) {
    op_array *array = user;
    if (array->n < array->capacity)
        array->ops[array->n++] = op;
}

tn_status tn_op_list(void (*fn)(const tn_op_info *info, void *user), void *user) {
    if (!has_listener(fn, "tn_op_list") || tni_core_init() != TN_OK)
        return tn_error_status();
    op_array array = {.capacity = tni_op_count()};
    array.ops = tni_calloc(array.capacity ? array.capacity : 1, sizeof(*array.ops));
    if (!array.ops)
        return tni_fail_memory("the list of operators");
    tni_op_for_each(collect, &array);
    for (uint32_t i = 0; i < array.n; i++)
        describe(array.ops[i], fn, user);
    tni_free(array.ops);
    return TN_OK;
}

tn_status tn_op_describe(const char *name, void (*fn)(const tn_op_info *info, void *user),
                         void *user) {
    const tn_op *op = find(name, fn, "tn_op_describe");
    if (!op)
        return tn_error_status();
    describe(op, fn, user);
    return TN_OK;
}

/* ---- handlers ---------------------------------------------------------------------------- */

enum { MAX_HANDLERS = 256 };

typedef struct handler_array {
    tn_op_handler_info *lines;
    uint32_t n;
} handler_array;

static void collect_handler(const tni_provenance *line, void *user) {
    handler_array *array = user;
    if (array->n == MAX_HANDLERS)
        return;
    array->lines[array->n++] = (tn_op_handler_info){
        .struct_size = sizeof(tn_op_handler_info),
        .key = tn_key_name(line->key),
        .device_type = line->device_type ? line->device_type : "",
        .origin = line->origin,
        .why = line->why,
        .active = line->active,
    };
}

tn_status tn_op_handlers(const char *name, void (*fn)(const tn_op_handler_info *info, void *user),
                         void *user) {
    const tn_op *op = find(name, fn, "tn_op_handlers");
    if (!op)
        return tn_error_status();
    handler_array array = {.lines = tni_calloc(MAX_HANDLERS, sizeof(*array.lines))};
    if (!array.lines)
        return tni_fail_memory("the list of handlers");
    tni_op_provenance(op, collect_handler, &array);
    for (uint32_t i = 0; i < array.n; i++)
        fn(&array.lines[i], user);
    tni_free(array.lines);
    return TN_OK;
}

/* ---- kernels ----------------------------------------------------------------------------- */

/* A record that serves several dtypes stands in the row of each; it is told once, at its first. */
static bool is_first_seen(const tni_kernel_row *row, tn_dtype dtype, const tni_kernel *kernel) {
    for (tn_dtype before = 0; before < dtype; before++) {
        for (const tni_kernel *k = row->by_dtype[before]; k; k = k->next) {
            if (k->run == kernel->run && k->user == kernel->user &&
                k->dtypes[0] == kernel->dtypes[0] && k->flags == kernel->flags)
                return false;
        }
    }
    return true;
}

tn_status tn_op_kernels(const char *name, void (*fn)(const tn_kernel_info *info, void *user),
                        void *user) {
    const tn_op *op = find(name, fn, "tn_op_kernels");
    if (!op)
        return tn_error_status();
    const tni_kernel_op *kernel_op = kernel_of(op);
    if (!kernel_op)
        return TN_OK;
    uint32_t index = kernel_op->index;

    for (uint32_t ordinal = 0; ordinal < TNI_MAX_DEVICES; ordinal++) {
        const tni_device *device = tni_device_at(ordinal);
        if (!device)
            break;
        const tni_kernel_table *table =
            atomic_load_explicit(&device->kernels.table, memory_order_acquire);
        if (!table || index >= table->n_rows)
            continue;
        const tni_kernel_row *row = &table->rows[index];
        for (tn_dtype dtype = 0; dtype < TN_DTYPE_COUNT; dtype++) {
            for (const tni_kernel *k = row->by_dtype[dtype]; k; k = k->next) {
                if (!is_first_seen(row, dtype, k))
                    continue;
                tn_kernel_info line = {
                    .struct_size = sizeof(line),
                    .device = device->name,
                    .kernel = kernel_op->name,
                    .origin = k->origin,
                    .dtypes = k->dtypes[0],
                    .flags = k->flags,
                };
                fn(&line, user);
            }
        }
    }
    return TN_OK;
}

/* ---- dtypes ------------------------------------------------------------------------------ */

void tn_dtype_list(void (*fn)(const tn_dtype_info *info, void *user), void *user) {
#define KIND(category) \
    ((category) == 'f'   ? "float" \
     : (category) == 'i' ? "int" \
     : (category) == 'u' ? "unsigned" \
     : (category) == 'c' ? "complex" \
                         : "bool")
#define X(NAME, value, text, size, category) \
    {sizeof(tn_dtype_info), text, KIND(category), value, size},
    static const tn_dtype_info table[] = {TN_DTYPE_MAP(X) TN_STORAGE_DTYPE_MAP(X)};
#undef X
#undef KIND
    for (size_t i = 0; has_listener(fn, "tn_dtype_list") && i < sizeof table / sizeof *table; i++)
        fn(&table[i], user);
}

/* ---- environment ------------------------------------------------------------------------- */

typedef struct env_listing {
    void (*fn)(const tn_env_info *info, void *user);
    void *user;
} env_listing;

static void list_other(const tni_other_setting *other, void *user) {
    const env_listing *l = user;
    char problem[128] = "";
    if (other->near)
        snprintf(problem, sizeof problem, "nothing reads it; did you mean %s?", other->near);
    else if (!other->is_option)
        snprintf(problem, sizeof problem,
                 "Tenon does not read it, and no plugin of that type was found");
    tn_env_info info = {
        .struct_size = sizeof info,
        .name = other->name,
        .type = other->is_option ? "option" : "",
        .fallback = "",
        .value = other->value,
        .help = other->is_option ? "option of a plugin" : "",
        .is_set = other->is_option,
        .is_guarded = true,
        .allowed = "",
        .problem = problem,
    };
    l->fn(&info, l->user);
}

/* Why what is set does not hold, or not all of it; "": it does. */
static void find_problem(tni_env_id id, char out[TNI_ALLOC_CONF_PROBLEM]) {
    const tni_env_entry *entry = &tni_env_table[id];
    *out = '\0';
    if (tni_env_is_wrong(id))
        snprintf(out, TNI_ALLOC_CONF_PROBLEM, "'%.80s' is ignored: it must be %s",
                 getenv(entry->name), entry->allowed);
    else if (id == TNI_ENV_LOG)
        tni_log_problem(out, TNI_ALLOC_CONF_PROBLEM);
    else if (id == TNI_ENV_PLUGINS || id == TNI_ENV_PLUGIN_PATH)
        tni_loader_setting_problem(entry->name, out, TNI_ALLOC_CONF_PROBLEM);
    else if (id == TNI_ENV_ALLOC_CONF)
        tni_alloc_conf_problem(tni_env(id), out);
}

void tn_env_list(void (*fn)(const tn_env_info *info, void *user), void *user) {
    if (!has_listener(fn, "tn_env_list"))
        return;
    env_listing l = {fn, user};
    for (int i = 0; i < TNI_ENV_COUNT; i++) {
        const tni_env_entry *entry = &tni_env_table[i];
        char problem[TNI_ALLOC_CONF_PROBLEM];
        find_problem((tni_env_id)i, problem);
        tn_env_info info = {
            .struct_size = sizeof(info),
            .name = entry->name,
            .type = entry->type,
            .fallback = entry->fallback,
            .value = tni_env((tni_env_id)i),
            .help = entry->help,
            .is_set = tni_env_is_set((tni_env_id)i),
            .is_guarded = entry->overrides,
            .allowed = entry->allowed,
            .problem = problem,
        };
        fn(&info, user);
    }
    tni_loader_other_settings(list_other, &l);
}
