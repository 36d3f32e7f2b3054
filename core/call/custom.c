/* Kernels of operators that programs define: registering them, and the way of a call to one.
 *
 * Such an operator has a row of kernels like the kernel operators of plugins, under its own name
 * and schema, and with its first kernel for a device type a Backend handler there. The handler
 * finds the kernel by dtype and adapts the call to it; what no kernel takes goes to the handler for
 * every device type, which stands in the same dispatch row. */
#include "base/alloc.h"
#include "core/call/call.h"
#include "core/profile/profile.h"

#include <string.h>
#include <tenon/custom.h>

/* ---- a call ------------------------------------------------------------------------------ */

typedef struct custom_call {
    const tn_op *op;
    tni_device *device;
    const tni_kernel *kernel;
    tni_adaptation adaptation; /* TNI_AS_IS, then TNI_BY_FLAGS */
    bool copied;
    const tn_cell *args;
    tn_tensor *first; /* tensor argument that was given */
    tn_cell cells[TNI_MAX_ARGS];
    tn_output outputs[TNI_MAX_RETS];
    tni_temps temps;
} custom_call;

static bool is_tensor_arg(const tni_arg *arg) {
    return arg->type == TNI_TYPE_TENSOR || arg->type == TNI_TYPE_TENSORS;
}

static tn_tensor *first_tensor(const tn_op *op, const tn_cell *args) {
    for (uint32_t i = 0; i < op->schema->n_args; i++) {
        uint32_t n = 0;
        tn_tensor *const *list =
            is_tensor_arg(&op->schema->args[i]) ? tni_arg_tensors(&args[i], &n) : NULL;
        for (uint32_t j = 0; j < n; j++)
            if (list[j])
                return list[j];
    }
    return NULL;
}

/* Dtypes, devices and sizes of all tensors against what the kernel says of itself. */
static bool takes_tensors(const custom_call *c, const tni_kernel *kernel) {
    uint32_t position = 0;
    for (uint32_t i = 0; i < c->op->schema->n_args; i++) {
        if (!is_tensor_arg(&c->op->schema->args[i]))
            continue;
        uint64_t mask = position < TN_KERNEL_MAX_TYPES ? kernel->dtypes[position] : 0;
        uint32_t n;
        tn_tensor *const *list = tni_arg_tensors(&c->args[i], &n);
        for (uint32_t j = 0; j < n; j++) {
            const tn_tensor *t = list[j];
            if (!t)
                continue;
            bool fits = mask ? (mask & TN_DTYPE_BIT(t->view.dtype)) != 0
                             : t->view.dtype == c->first->view.dtype;
            if (!fits || t->device != c->device ||
                (t->view.numel > INT32_MAX && !(kernel->flags & TN_KERNEL_INDEX64)))
                return false;
        }
        position++;
    }
    return true;
}

/* ---- its outputs ------------------------------------------------------------------------- */

static void output_like(tn_output *out, const tn_tensor *t) {
    out->dtype = t->view.dtype;
    out->rank = t->view.rank;
    memcpy(out->sizes, t->sizes, (size_t)t->view.rank * sizeof *t->sizes);
}

static tn_status broadcast(custom_call *c) {
    tn_output *out = &c->outputs[0];
    for (uint32_t i = 0; i < c->op->schema->n_args; i++) {
        if (c->args[i].tag != TN_CELL_TENSOR)
            continue;
        const tn_tensor *t = c->args[i].v.pointer;
        int64_t sizes[TN_MAX_RANK];
        int32_t rank;
        if (!tni_broadcast(out->rank, out->sizes, t->view.rank, t->sizes, &rank, sizes))
            return tni_fail(TN_ERR_SHAPE, "%s: shapes do not broadcast: %s and %s of argument '%s'",
                            c->op->name, TNI_SHAPE_OF_SIZES(out->rank, out->sizes), TNI_SHAPE_OF(t),
                            c->op->schema->args[i].name);
        out->rank = rank;
        memcpy(out->sizes, sizes, (size_t)rank * sizeof *sizes);
    }
    for (uint32_t i = 1; i < c->op->schema->n_rets; i++)
        c->outputs[i] = c->outputs[0];
    return TN_OK;
}

static tn_status find_outputs(custom_call *c) {
    for (uint32_t i = 0; i < c->op->schema->n_rets; i++)
        output_like(&c->outputs[i], c->first);
    if (!c->kernel->outputs)
        return broadcast(c);
    tn_status status = c->kernel->outputs(c->args, c->outputs, c->kernel->user);
    if (status != TN_OK && tn_error_status() == TN_OK)
        tni_fail(status, "%s: the outputs function of %s failed without a message", c->op->name,
                 c->kernel->origin);
    return status;
}

/* ---- its arguments ----------------------------------------------------------------------- */

static tn_tensor *expand(custom_call *c, tn_tensor *t) {
    const tn_output *to = &c->outputs[0];
    int64_t strides[TN_MAX_RANK];
    int32_t missing = to->rank - t->view.rank;
    for (int32_t d = 0; d < to->rank; d++)
        strides[d] = d < missing || t->sizes[d - missing] == 1 ? 0 : t->strides[d - missing];
    return tni_own(&c->temps,
                   tni_tensor_view(t, to->rank, to->sizes, strides, tni_offset_elements(t)));
}

static const tn_tensor_view *adapt_tensor(custom_call *c, tn_tensor *t) {
    const tn_output *to = &c->outputs[0];
    bool is_expanded = !tni_has_shape(t, to->rank, to->sizes);
    if (!c->kernel->outputs && is_expanded)
        t = expand(c, t);
    if (t && (!tni_kernel_takes(c->kernel, &t->view) ||
              (tni_is_far(&t->view) && !(c->kernel->flags & TN_KERNEL_INDEX64)))) {
        c->copied = true;
        if (c->adaptation != TNI_AS_IS)
            t = tni_own(&c->temps, tni_contiguous_data(t));
    }
    return t ? &t->view : NULL;
}

/* The views of a list, in an array to be freed with tni_free. */
static tn_status adapt_list(custom_call *c, tn_cell *cell) {
    tn_tensor *const *list = cell->v.pointer;
    const tn_tensor_view **views = tni_calloc(cell->n ? cell->n : 1, sizeof *views);
    cell->v.views = views;
    if (!views)
        return tni_fail_memory("an argument of a kernel");
    for (uint32_t j = 0; j < cell->n; j++)
        if (list[j] && !(views[j] = adapt_tensor(c, list[j])))
            return tni_failed();
    return TN_OK;
}

static tn_status adapt_args(custom_call *c) {
    const tni_schema *schema = c->op->schema;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < schema->n_args; i++) {
        tn_cell *cell = &c->cells[i];
        *cell = c->args[i];
        if (cell->tag == TN_CELL_TENSOR && status == TN_OK) {
            cell->v.view = adapt_tensor(c, cell->v.pointer);
            status = cell->v.view ? TN_OK : tni_failed();
        } else if (cell->tag == TN_CELL_TENSORS) {
            if (status == TN_OK)
                status = adapt_list(c, cell);
            else
                cell->v.views = NULL; /* nothing to free */
        } else if (schema->args[i].type == TNI_TYPE_SCALAR && cell->tag != TN_CELL_NONE) {
            *cell = tni_kernel_scalar(*cell, c->first->view.dtype);
        }
    }
    return status;
}

static void finish(custom_call *c) {
    for (uint32_t i = 0; i < c->op->schema->n_args; i++)
        if (c->cells[i].tag == TN_CELL_TENSORS)
            tni_free((void *)(uintptr_t)c->cells[i].v.views);
    tni_temps_finish(&c->temps);
    c->temps.n = 0; /* for the next record's turn */
    c->temps.before = NULL;
}

/* ---- the call itself --------------------------------------------------------------------- */

static bool any_empty_argument(const custom_call *c) {
    for (uint32_t i = 0; i < c->op->schema->n_args; i++) {
        uint32_t n = 0;
        tn_tensor *const *list =
            is_tensor_arg(&c->op->schema->args[i]) ? tni_arg_tensors(&c->args[i], &n) : NULL;
        for (uint32_t j = 0; j < n; j++)
            if (list[j] && list[j]->view.numel == 0)
                return true;
    }
    return false;
}

/* TNI_NOT_SUPPORTED: not for this kernel. */
static tn_status run(custom_call *c, tn_tensor **results) {
    uint32_t n = c->op->schema->n_rets;
    tn_status status = find_outputs(c);
    bool are_empty = true, are_huge = false;
    for (uint32_t i = 0; i < n && status == TN_OK; i++) {
        const tn_output *out = &c->outputs[i];
        results[i] = tni_tensor_new(c->device, out->dtype, out->rank, out->sizes);
        if (!results[i])
            return tni_failed();
        are_empty = are_empty && results[i]->view.numel == 0;
        are_huge = are_huge || results[i]->view.numel > INT32_MAX;
    }
    if (status != TN_OK || are_empty)
        return status;
    if ((are_huge && !(c->kernel->flags & TN_KERNEL_INDEX64)) || any_empty_argument(c))
        return TNI_NOT_SUPPORTED;
    c->copied = false;
    status = adapt_args(c);
    const tn_tensor_view *outs[TNI_MAX_RETS];
    for (uint32_t i = 0; i < n; i++)
        outs[i] = &results[i]->view;
    if (status == TN_OK && c->copied == (c->adaptation == TNI_AS_IS))
        status = TNI_NOT_SUPPORTED; /* another turn's, or had already */
    if (status == TN_OK) {
        tni_note_kernel(c->kernel);
        status =
            tni_invoke(c->device, c->kernel, c->op->name, c->cells, c->op->schema->n_args, outs, n);
    }
    finish(c);
    return status;
}

/* What answers on every device type; at the end the core's handler, which knows no kernel. */
static tn_status go_below(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets) {
    const tni_row *row = atomic_load_explicit(&op->row, memory_order_acquire);
    const tni_entry *entry = &row->entries[TN_KEY_BACKEND];
    return entry->fn ? entry->fn(op, keys, args, rets, entry->user)
                     : tni_custom_unanswered(op, args, rets);
}

/* The Backend handler of operators that a program defined and gave kernels: the kernel, else what
 * answers on every device. `user` is the row of its kernels. */
static tn_status kernel_handler(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                                void *user) {
    custom_call c;
    c.op = op;
    c.args = args;
    c.temps.n = 0;
    c.temps.before = NULL;
    c.first = first_tensor(op, args);
    if (!c.first)
        return go_below(op, keys, args, rets);
    c.device = tni_call_device(op, args);
    if (!c.device)
        return tni_failed();
    const tni_kernel_table *table =
        atomic_load_explicit(&c.device->kernels.table, memory_order_acquire);
    for (c.adaptation = TNI_AS_IS; table && c.adaptation <= TNI_BY_FLAGS; c.adaptation++) {
        c.kernel = tni_kernel_lookup(table, (uint32_t)(uintptr_t)user, c.first->view.dtype);
        for (; c.kernel; c.kernel = c.kernel->next) {
            tn_tensor *results[TNI_MAX_RETS] = {NULL};
            tn_status status = takes_tensors(&c, c.kernel) ? run(&c, results) : TNI_NOT_SUPPORTED;
            if (status == TN_OK)
                return tni_return_many(rets, results, op->schema->n_rets);
            for (uint32_t i = 0; i < op->schema->n_rets; i++)
                tni_drop(results[i]);
            if (status != TNI_NOT_SUPPORTED)
                return status;
        }
    }
    return go_below(op, keys, args, rets);
}

tn_status tni_custom_unanswered(const tn_op *op, const tn_cell *args, tn_cell *rets) {
    const tn_tensor *first = first_tensor(op, args);
    tni_device *device =
        first ? tni_call_device(op, args)
              : tni_factory_device(op->device_arg >= 0 ? tni_arg_device(&args[op->device_arg])
                                                       : tn_no_device());
    if (!device)
        return tni_failed();
    if (device->is_meta)
        return tni_fail(TN_ERR_UNSUPPORTED,
                        "%s: nothing says what its results on %s are; register a Backend handler "
                        "for it that calls other operators",
                        op->name, device->name);
    return tni_fallback(op, device, first ? first->view.dtype : TN_DTYPE_NONE, args, rets);
}

/* ---- registering ------------------------------------------------------------------------- */

static void drop(tn_registration *registration) {
    tni_program_kernel *k = (tni_program_kernel *)registration;
    tn_registration_drop(k->handler);
    tni_program_kernel_remove(k);
}

/* Why an operator cannot have kernels, or NULL. */
static const char *why_not(const tn_op *op, tn_outputs_fn outputs) {
    const tni_schema *schema = op->schema;
    if (op->n_tensor_args + op->n_list_args == 0)
        return "has no tensor argument, which a kernel is chosen by";
    if (!outputs && op->n_list_args > 0)
        return "has a list of tensors, so its kernels need an outputs function";
    for (uint32_t i = 0; i < schema->n_args; i++)
        if (schema->args[i].is_written)
            return "writes an argument, but a kernel only fills new tensors; define the operator "
                   "that returns its result, and write this one as a handler that copies it";
    for (uint32_t i = 0; i < schema->n_rets; i++)
        if (schema->rets[i].type != TNI_TYPE_TENSOR || schema->rets[i].alias)
            return "returns something else than new tensors";
    return schema->n_rets ? NULL : "returns nothing";
}

/* The row of kernels of a program's operator; `*out` is the operator. NULL with an error. */
static const tni_kernel_op *custom_row(const char *name, tn_outputs_fn outputs, const tn_op **out) {
    const tn_op *op = *out = tn_op_find(name);
    if (!op)
        return NULL;
    const tni_op_info *info = tni_info(op);
    const char *why = info ? NULL : why_not(op, outputs);
    if (info && info->kernel >= 0)
        tni_fail(TN_ERR_INVALID_ARGUMENT,
                 "tn_kernel_register: %s is an operator of Tenon's; its kernels are those of the "
                 "kernel operator '%s' (tenon/kernels.h)",
                 op->name, tni_kernel_op_at((uint32_t)info->kernel)->name);
    else if (info)
        tni_fail(TN_ERR_INVALID_ARGUMENT,
                 "tn_kernel_register: %s is an operator of Tenon's that calls others, and has no "
                 "kernels",
                 op->name);
    else if (why)
        tni_fail(TN_ERR_UNSUPPORTED, "tn_kernel_register: %s %s", op->name, why);
    return info || why ? NULL : tni_kernel_op_define(op->name, op->schema->text);
}

tn_registration *tn_kernel_register(const char *device_type, const tn_kernel *record,
                                    tn_outputs_fn outputs, const char *origin) {
    if (!tni_registry_ready())
        return NULL;
    if (!device_type || !record || !TN_HAS(record, tn_kernel, run) || !record->op)
        return tni_fail_null(
            TN_ERR_INVALID_ARGUMENT,
            "tn_kernel_register: it takes a device type, and a record with struct_size and op");
    tn_kernel copy = {0};
    memcpy(&copy, record, record->struct_size < sizeof copy ? record->struct_size : sizeof copy);
    copy.struct_size = sizeof copy;

    const tn_op *op = NULL;
    const tni_kernel_op *row = tni_kernel_op_find(record->op);
    if (!row || row->index >= TNI_KERNEL_COUNT) {
        row = custom_row(record->op, outputs, &op);
        if (row && copy.schema_hash == 0)
            copy.schema_hash = row->hash;
    } else if (outputs) {
        tni_fail(TN_ERR_INVALID_ARGUMENT,
                 "tn_kernel_register: %s is a kernel operator of tenon/kernels.h, whose outputs "
                 "the core knows; leave the outputs function out",
                 row->name);
        row = NULL;
    }
    if (!row || tni_kernel_check(row, &copy) != TN_OK)
        return NULL;

    if (!origin)
        origin = "unnamed";
    tni_program_kernel *k = tni_program_kernel_add(device_type, row, &copy, outputs, origin);
    if (k && op) {
        k->handler = tn_handler_register(op, TN_KEY_BACKEND, device_type, kernel_handler,
                                         (void *)(uintptr_t)row->index, origin);
        if (!k->handler) {
            tni_program_kernel_remove(k);
            return NULL;
        }
    }
    if (k)
        k->head.drop = drop;
    return (tn_registration *)k;
}
