/* Operators on tensors of storage dtypes, which ask for the key.
 *
 * One that the table says moves elements runs on their carriers, integers of the same size, and what
 * comes of it is seen as the storage dtype again. An element of 16 bytes has two carriers, 8 bytes
 * apart in tensors of the same shape: the operator runs once for each. Views pass, and composites of
 * such operators, which are asked in turn; anything else would compute. */
#include "core/call/storage_dtype.h"
#include "base/alloc.h"
#include "core/call/copy.h"
#include "core/call/host_copy.h"
#include "core/call/promote.h"
#include "core/call/temps.h"
#include "core/ops/operators.h"

#include <string.h>

/* ---- may it run? ------------------------------------------------------------------------- */

/* Arguments, as a mask, whose elements must be of one dtype: those that move, and what is written. */
static uint32_t moved_args(const tni_op_info *info) {
    return info->moved | info->written;
}

/* The storage dtype among the arguments of `mask`, or TN_DTYPE_NONE. */
static tn_dtype find_storage_dtype(const tn_op *op, const tn_cell *args, uint32_t mask) {
    for (uint32_t i = 0; i < op->schema->n_args; i++) {
        uint32_t n = 0;
        tn_tensor *const *list = tni_arg_tensors(&args[i], &n);
        for (uint32_t j = 0; mask >> i & 1 && j < n; j++)
            if (list[j] && tni_is_storage_dtype(list[j]->view.dtype))
                return list[j]->view.dtype;
    }
    return TN_DTYPE_NONE;
}

static tn_status refuse(const tn_op *op, const tn_cell *args) {
    return tni_fail(TN_ERR_DTYPE,
                    "%s: not defined for %s, which is stored, moved and converted only; convert it"
                    " with tn_to_dtype first",
                    tni_info(op)->call, tn_dtype_name(find_storage_dtype(op, args, ~0u)));
}

static tn_status refuse_mixed(const tn_op *op, tn_dtype dtype, const char *other) {
    return tni_fail(TN_ERR_DTYPE,
                    "%s: expected one dtype, but got %s and %s; convert one with tn_to_dtype",
                    tni_info(op)->call, tn_dtype_name(dtype), other);
}

/* Nothing is lost of a number, and nothing promoted to one. */
static tn_status check_one_dtype(const tn_op *op, const tn_cell *args, tn_dtype dtype) {
    uint32_t mask = moved_args(tni_info(op));
    for (uint32_t i = 0; i < op->schema->n_args; i++) {
        uint32_t n = 0;
        tn_tensor *const *list = tni_arg_tensors(&args[i], &n);
        for (uint32_t j = 0; mask >> i & 1 && j < n; j++)
            if (list[j] && list[j]->view.dtype != dtype)
                return refuse_mixed(op, dtype, tn_dtype_name(list[j]->view.dtype));
        if (mask >> i & 1 && args[i].tag == TN_CELL_F64 && !tni_is_complex(dtype))
            return refuse_mixed(op, dtype, "a floating number");
    }
    return TN_OK;
}

/* ---- on carriers ------------------------------------------------------------------------- */

/* The cells of a call on the carriers of one part. */
typedef struct carried {
    tn_dtype dtype;
    tni_carrier carrier;
    int32_t part;
    tn_cell cells[TNI_MAX_ARGS];
    tn_tensor **lists[TNI_MAX_ARGS]; /* owned arrays in place of the caller's; tensors in `temps` */
    tni_temps temps;
} carried;

static void finish(carried *c) {
    for (uint32_t i = 0; i < TNI_MAX_ARGS; i++)
        tni_free(c->lists[i]);
    tni_temps_finish(&c->temps);
}

static tn_tensor *carry(carried *c, tn_tensor *t) {
    return tni_own(&c->temps, tni_tensor_part(t, c->carrier.dtype, c->part));
}

static tn_status carry_list(carried *c, uint32_t arg) {
    tn_cell *cell = &c->cells[arg];
    tn_tensor *const *from = cell->v.pointer;
    tn_tensor **to = c->lists[arg] = tni_alloc((cell->n ? cell->n : 1) * sizeof *to);
    if (!to)
        return tni_fail_memory("a list of tensors");
    cell->v.pointer = to;
    for (uint32_t j = 0; j < cell->n; j++) {
        to[j] = from[j] ? carry(c, from[j]) : NULL;
        if (from[j] && !to[j])
            return tni_failed();
    }
    return TN_OK;
}

static tn_status carry_arg(carried *c, uint32_t arg) {
    tn_cell *cell = &c->cells[arg];
    int64_t bits[2] = {0, 0};
    switch (cell->tag) {
    case TN_CELL_TENSOR:
        cell->v.pointer = carry(c, cell->v.pointer);
        return cell->v.pointer ? TN_OK : tni_failed();
    case TN_CELL_TENSORS:
        return carry_list(c, arg);
    case TN_CELL_I64:
    case TN_CELL_F64:
    case TN_CELL_BOOL:
        tni_store_scalar(bits, c->dtype, *cell);
        *cell = tni_element(bits, c->carrier.dtype, c->part);
        return TN_OK;
    default:
        return TN_OK;
    }
}

/* The operator on part `part`; *out is its result, owned. */
static tn_status run_part(const tn_op *op, const tn_cell *args, tn_dtype dtype, int32_t part,
                          tn_tensor **out) {
    carried c = {.dtype = dtype, .carrier = tni_carrier_of(dtype), .part = part};
    memcpy(c.cells, args, op->schema->n_args * sizeof *args);
    tn_status status = TN_OK;
    uint32_t mask = moved_args(tni_info(op));
    for (; mask && status == TN_OK; mask &= mask - 1)
        status = carry_arg(&c, (uint32_t)__builtin_ctz(mask));
    if (status == TN_OK) {
        tn_keyset keys = tni_keyset_of(op, c.cells);
        keys.keys = (keys.keys | tni_thread_keys.included) & ~tni_thread_keys.excluded;
        tn_cell rets[TNI_MAX_RETS];
        status = tni_dispatch(op, tn_keyset_below(keys, TN_KEY_STORAGE_DTYPE), c.cells, rets);
        *out = status == TN_OK ? rets[0].v.pointer : NULL;
    }
    finish(&c);
    return status;
}

/* Fresh results in carriers become one tensor of `dtype`; NULL with an error. */
static tn_tensor *join(tn_tensor *const *parts, tn_dtype dtype) {
    tni_carrier carrier = tni_carrier_of(dtype);
    tn_tensor *first = parts[0];
    if (carrier.n == 1)
        return tni_tensor_part(first, dtype, 0);
    tn_tensor *whole = tni_tensor_new(first->device, dtype, first->view.rank, first->sizes);
    for (int32_t i = 0; whole && i < carrier.n; i++) {
        tn_tensor *place = tni_tensor_part(whole, carrier.dtype, i);
        if (!place || tni_copy_data(place, parts[i]) != TN_OK) {
            tni_drop(whole);
            whole = NULL;
        }
        tni_drop(place);
    }
    return whole;
}

static tn_status run_parts(const tn_op *op, const tn_cell *args, tn_dtype dtype, tn_cell *rets) {
    tn_tensor *parts[2] = {NULL, NULL};
    tn_status status = check_one_dtype(op, args, dtype);
    for (int32_t i = 0; i < tni_carrier_of(dtype).n && status == TN_OK; i++)
        status = run_part(op, args, dtype, i, &parts[i]);
    uint32_t written = tni_info(op)->written; /* the result is it, then */
    if (status == TN_OK)
        status = tni_return(rets, written ? tni_keep(args[__builtin_ctz(written)].v.pointer)
                                          : join(parts, dtype));
    tni_drop(parts[0]);
    tni_drop(parts[1]);
    return status;
}

/* ---- promotion --------------------------------------------------------------------------- */

/* Do tensors among the arguments that move have several dtypes, and does the operator promote? */
static bool is_mixed(const tn_op *op, const tn_cell *args) {
    const tni_op_info *info = tni_info(op);
    tn_dtype first = TN_DTYPE_NONE;
    if (info->kernel < 0 || info->type_rule != TNI_TYPES_PROMOTE || info->written)
        return false;
    for (uint32_t mask = info->moved; mask; mask &= mask - 1) {
        const tn_tensor *t = tni_arg_tensor(&args[__builtin_ctz(mask)]);
        if (t && first != TN_DTYPE_NONE && t->view.dtype != first)
            return true;
        first = t ? t->view.dtype : first;
    }
    return false;
}

/* The call on what the tensors promote to, which need not be of a storage dtype. Autograd comes after this. */
static tn_status run_promoted(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets) {
    tn_cell cells[TNI_MAX_ARGS];
    tni_temps temps = {0};
    tni_promotion promotion = TNI_NO_PROMOTION;
    memcpy(cells, args, op->schema->n_args * sizeof *args);
    for (uint32_t mask = tni_info(op)->moved; mask; mask &= mask - 1)
        tni_promotion_add(&promotion, &args[__builtin_ctz(mask)]);
    tn_dtype dtype = tni_promotion_result(&promotion);
    tn_status status = TN_OK;
    if (dtype == TN_DTYPE_NONE)
        status = tni_fail(TN_ERR_DTYPE,
                          "%s: the tensors' dtypes promote to none; convert them to one with"
                          " tn_to_dtype",
                          tni_info(op)->call);
    for (uint32_t mask = tni_info(op)->moved; mask && status == TN_OK; mask &= mask - 1) {
        tn_cell *cell = &cells[__builtin_ctz(mask)];
        *cell = tni_cell_tensor(tni_own(&temps, tni_to_dtype(cell->v.pointer, dtype)));
        status = cell->v.pointer ? TN_OK : tni_failed();
    }
    if (status == TN_OK)
        status = tni_is_storage_dtype(dtype)
                     ? run_parts(op, cells, dtype, rets)
                     : tni_dispatch(op, tn_keyset_below(keys, TN_KEY_STORAGE_DTYPE), cells, rets);
    tni_temps_finish(&temps);
    return status;
}

/* ---- indices ----------------------------------------------------------------------------- */

/* Arguments, as a mask, that are indices: those that the kernel takes as i64, of a composite what is called so. */
static uint32_t index_args(const tn_op *op) {
    const tni_op_info *info = tni_info(op);
    uint32_t mask = 0;
    for (uint32_t i = 0; info->kernel < 0 && i < op->n_tensor_args; i++)
        if (strcmp(op->schema->args[op->tensor_args[i]].name, "index") == 0)
            mask |= 1u << op->tensor_args[i];
    for (uint32_t i = 0; info->kernel >= 0 && i < tni_kernel_types_of[info->kernel].n_args; i++)
        if (tni_kernel_types_of[info->kernel].args[i] == TN_KERNEL_FIXED(TN_I64) &&
            info->kernel_args[i] < TNI_ARG_CONSTANT)
            mask |= 1u << info->kernel_args[i];
    return mask;
}

/* Unsigned indices as the kernel has them; what else is of a storage dtype is refused. */
static tn_status run_on_indices(const tn_op *op, tn_keyset below, const tn_cell *args,
                                tn_cell *rets) {
    tn_cell cells[TNI_MAX_ARGS];
    tni_temps temps = {0};
    tn_status status = TN_OK;
    memcpy(cells, args, op->schema->n_args * sizeof *args);
    for (uint32_t mask = index_args(op); mask && status == TN_OK; mask &= mask - 1) {
        tn_cell *cell = &cells[__builtin_ctz(mask)];
        tn_tensor *t = tni_arg_tensor(cell);
        if (!t || !tni_is_storage_dtype(t->view.dtype) || tni_is_complex(t->view.dtype))
            continue;
        *cell = tni_cell_tensor(tni_own(&temps, tni_cast_data(t, TN_I64)));
        status = cell->v.pointer ? TN_OK : tni_failed();
    }
    if (status == TN_OK)
        status = find_storage_dtype(op, cells, ~0u) == TN_DTYPE_NONE
                     ? tni_dispatch(op, below, cells, rets)
                     : refuse(op, cells);
    tni_temps_finish(&temps);
    return status;
}

tn_status tni_storage_dtype_handler(const tn_op *op, tn_keyset keys, const tn_cell *args,
                                    tn_cell *rets, void *user) {
    const tni_op_info *info = tni_info(op);
    tn_dtype dtype =
        info && info->moved ? find_storage_dtype(op, args, moved_args(info)) : TN_DTYPE_NONE;
    if (dtype != TN_DTYPE_NONE)
        return is_mixed(op, args) ? run_promoted(op, keys, args, rets)
                                  : run_parts(op, args, dtype, rets);
    tn_keyset below = tn_keyset_below(keys, TN_KEY_STORAGE_DTYPE);
    /* a program's operator knows what it can do, and an index is converted */
    bool passes = !info || info->moved || info->kind == TNI_OP_VIEW || info->passes_storage;
    return passes ? tni_dispatch(op, below, args, rets) : run_on_indices(op, below, args, rets);
}
