/* The boxed call: cells checked against the schema, defaults filled in, then the dispatch; and what
 * happens when nobody answers. */
#include "base/error.h"
#include "dispatcher/internal.h"

#include <stdio.h>
#include <string.h>

TNI_TLS tn_thread_keys tni_thread_keys;

tn_thread_keys tn_thread_keys_get(void) {
    return tni_thread_keys;
}

void tn_thread_keys_set(tn_thread_keys state) {
    tni_thread_keys = state;
}

static void clear(const tn_op *op, tn_cell *rets) {
    for (uint32_t i = 0; i < op->schema->n_rets; i++)
        rets[i] = (tn_cell){.tag = TN_CELL_NONE};
}

/* A failed tensor passes through: the error that stands already says why. */
static bool is_failed_argument(const tn_op *op, const tn_cell *args, uint32_t n_args) {
    for (uint32_t i = 0; i < op->n_tensor_args; i++) {
        uint32_t at = op->tensor_args[i];
        if (at < n_args && args[at].tag == TN_CELL_TENSOR && !args[at].v.pointer)
            return true;
    }
    return false;
}

/* Is it what the schema asks for, as most cells are, and nothing to convert? What is not goes the way of
 * tni_schema_check, which also says why. */
static inline bool fits_plainly(const tni_arg *arg, const tn_cell *cell) {
    switch (cell->tag) {
    case TN_CELL_TENSOR:
        return arg->type == TNI_TYPE_TENSOR && cell->v.pointer;
    case TN_CELL_I64:
        return arg->type == TNI_TYPE_SCALAR || arg->type == TNI_TYPE_INT;
    case TN_CELL_F64:
        return arg->type == TNI_TYPE_SCALAR || arg->type == TNI_TYPE_FLOAT;
    case TN_CELL_BOOL:
        return arg->type == TNI_TYPE_SCALAR || arg->type == TNI_TYPE_BOOL;
    default:
        return false;
    }
}

/* The cells as a handler expects them: every one there, ints where a float or int[N] is asked for
 * converted. `ints` is room for repeated ones. */
static tn_status complete(const tn_op *op, const tn_cell *args, uint32_t n_args, tn_cell *out,
                          int64_t (*ints)[TNI_MAX_INTS]) {
    const tni_schema *schema = op->schema;
    if (n_args > schema->n_args)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: takes %u arguments, got %u: %s", op->name,
                       schema->n_args, n_args, schema->text);
    for (uint32_t i = 0; i < schema->n_args; i++) {
        const tni_arg *arg = &schema->args[i];
        if (TNI_LIKELY(i < n_args && fits_plainly(arg, &args[i]))) {
            out[i] = args[i];
            continue;
        }
        if (i >= n_args && !arg->has_default)
            return tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: argument %u '%s' is missing: %s", op->name,
                           i + 1, arg->name, schema->text);
        if (i >= n_args || (args[i].tag == TN_CELL_NONE && arg->has_default)) {
            out[i] = arg->fallback;
            continue;
        }
        TNI_TRY(tni_schema_check(schema, i, &args[i]));
        out[i] = args[i];
        if (args[i].tag != TN_CELL_I64)
            continue;
        if (arg->type == TNI_TYPE_FLOAT) {
            out[i] = (tn_cell){.tag = TN_CELL_F64, .v.f64 = (double)args[i].v.i64};
        } else if (arg->type == TNI_TYPE_INTS) {
            for (uint32_t j = 0; j < arg->n_ints; j++)
                ints[i][j] = args[i].v.i64;
            out[i] = (tn_cell){.tag = TN_CELL_INTS, .n = arg->n_ints, .v.ints = ints[i]};
        }
    }
    return TN_OK;
}

tn_status tn_op_call(const tn_op *op, const tn_cell *args, uint32_t n_args, tn_cell *rets) {
    if (!op)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_op_call: the operator is NULL");
    if ((n_args && !args) || (op->schema->n_rets && !rets))
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: the array of %s is NULL", op->name,
                       n_args && !args ? "arguments" : "returns");
    clear(op, rets);
    if (tn_error_status() != TN_OK && is_failed_argument(op, args, n_args))
        return tn_error_status();

    tn_cell cells[TNI_MAX_ARGS];
    int64_t ints[TNI_MAX_ARGS][TNI_MAX_INTS];
    tn_status status = complete(op, args, n_args, cells, ints);
    if (status == TN_OK)
        status = tni_call(op, cells, rets);
    if (status != TN_OK) {
        clear(op, rets);
        tni_error_operator(op->name);
    }
    return status;
}

tn_status tn_op_redispatch(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets) {
    if (TNI_UNLIKELY(!op || (!args && op->schema->n_args) || (!rets && op->schema->n_rets)))
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_op_redispatch: the %s NULL",
                       !op     ? "operator is"
                       : !args ? "arguments are"
                               : "returns are");
    return tni_dispatch(op, keys, args, rets);
}

/* Appends to a text of fixed size, as much as fits. */
static void append(char *text, size_t size, const char *more) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", more);
}

const char *tn_key_name(tn_key key) {
    static const char *const names[TN_KEY_COUNT] = {
#define NAME(NAME_, name, text) name,
        TN_KEY_MAP(NAME)
#undef NAME
    };
    return (uint32_t)key < TN_KEY_COUNT ? names[key] : "";
}

static tn_status unhandled(const tn_op *op, const tni_row *row, tn_keyset keys) {
    if (row == &tni_row_dropped)
        return tn_fail(TN_ERR_STATE, "%s: the operator was unregistered", op->name);

    char asked[128] = "", backends[256] = "";
    /* every call asks for Profile and Check, so that says nothing */
    for (int key = TN_KEY_PROFILE - 1; key >= 0; key--) {
        if (keys.keys & TN_KEY_BIT(key)) {
            append(asked, sizeof asked, *asked ? ", " : "");
            append(asked, sizeof asked, tn_key_name((tn_key)key));
        }
    }
    for (int id = 0; id < TNI_MAX_BACKENDS; id++) {
        const char *name = keys.backends >> id & 1 ? tni_backend_name(id) : NULL;
        if (name) {
            append(backends, sizeof backends, *backends ? ", '" : "'");
            append(backends, sizeof backends, name);
            append(backends, sizeof backends, "'");
        }
    }
    bool is_one = (keys.backends & (keys.backends - 1)) == 0;
    return tn_fail(TN_ERR_UNSUPPORTED,
                   "%s: no handler for keys {%s} on %s%s; register one with tn_handler_register,"
                   " or use a device that has the operator",
                   op->name, asked,
                   !keys.backends ? "no device"
                   : is_one       ? "device type "
                                  : "device types ",
                   backends);
}

tn_status tni_dispatch_slow(const tn_op *op, const tni_row *row, tn_keyset keys,
                            const tn_cell *args, tn_cell *rets) {
    for (uint32_t here = keys.keys & row->handled; here;) {
        uint32_t key = (uint32_t)__builtin_clz(here) ^ 31;
        tni_entry entry = tni_row_entry(row, (tn_key)key, keys.backends);
        if (entry.fn) {
            tn_keyset left = {keys.backends, keys.keys & ((2u << key) - 1), 0};
            return entry.fn(op, left, args, rets, entry.user);
        }
        here &= ~TN_KEY_BIT(key);
    }
    return unhandled(op, row, keys);
}
