/* tenon/introspect.h: the registry's, the devices' and the environment's records, told in public
 * terms. */
#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "core/call/init.h"
#include "core/device/device.h"
#include "core/ops/operators.h"
#include "dispatcher/registry.h"

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

static tn_op_info describe(const tn_op *op) {
    const tni_op_info *info = tni_info(op);
    const tni_kernel_op *kernel = kernel_of(op);
    return (tn_op_info){
        .struct_size = sizeof(tn_op_info),
        .name = tn_op_name(op),
        .schema = tn_op_schema(op),
        .kind = kind_name(info),
        .kernel = kernel ? kernel->name : "",
        .gradient = gradient_name(op),
        .has_decomposition =
            kernel &&
            (info ? info->run != NULL : handler_of(op, TN_KEY_BACKEND) != tni_backend_handler),
        .in_small_set = kernel && kernel->small,
    };
}

static const tn_op *find(const char *name) {
    return tni_core_init() == TN_OK ? tn_op_find(name) : NULL;
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
    tn_status status = tni_core_init();
    if (status != TN_OK)
        return status;
    op_array array = {.capacity = tni_op_count()};
    array.ops = tni_calloc(array.capacity ? array.capacity : 1, sizeof(*array.ops));
    if (!array.ops)
        return tni_fail_memory("the list of operators");
    tni_op_for_each(collect, &array);
    for (uint32_t i = 0; i < array.n; i++) {
        tn_op_info info = describe(array.ops[i]);
        fn(&info, user);
    }
    tni_free(array.ops);
    return TN_OK;
}

tn_status tn_op_describe(const char *name, void (*fn)(const tn_op_info *info, void *user),
                         void *user) {
    const tn_op *op = find(name);
    if (!op)
        return tn_error_status();
    tn_op_info info = describe(op);
    fn(&info, user);
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
    const tn_op *op = find(name);
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
    const tn_op *op = find(name);
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

/* ---- environment ------------------------------------------------------------------------- */

void tn_env_list(void (*fn)(const tn_env_info *info, void *user), void *user) {
    for (int i = 0; i < TNI_ENV_COUNT; i++) {
        const tni_env_entry *entry = &tni_env_table[i];
        tn_env_info info = {
            .struct_size = sizeof(info),
            .name = entry->name,
            .type = entry->type,
            .fallback = entry->fallback,
            .value = tni_env((tni_env_id)i),
            .help = entry->help,
            .is_set = tni_env_is_set((tni_env_id)i),
            .is_guarded = entry->overrides,
        };
        fn(&info, user);
    }
}
