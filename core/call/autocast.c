/* Autocast: arguments cast as the table says (`autocast`), above Autograd, so that casts have
 * gradients.
 *
 * The operator, and what it is made of, then runs without the key: what reached it decides the
 * dtype. Operators without a policy pass, and those that they call are asked one by one. */
#include "core/call/autocast.h"
#include "base/alloc.h"
#include "core/call/temps.h"
#include "core/ops/halves.h"
#include "core/ops/operators.h"

#include <tenon/autocast.h>

#include <string.h>

enum { AUTOCAST = TN_KEY_BIT(TN_KEY_AUTOCAST) };

static TNI_TLS tn_dtype low = TN_DTYPE_NONE;

tn_dtype tn_set_autocast(tn_dtype dtype) {
    tn_dtype before = low;
    if (dtype != TN_F16 && dtype != TN_BF16 && dtype != TN_DTYPE_NONE) {
        tni_fail(
            TN_ERR_DTYPE,
            "tn_set_autocast: the dtype is %s; it must be f16 or bf16, or TN_DTYPE_NONE, which "
            "switches it off",
            tn_dtype_name(dtype));
        return before;
    }
    low = dtype;
    if (dtype == TN_DTYPE_NONE)
        tni_thread_keys.included &= ~(uint32_t)AUTOCAST;
    else
        tni_thread_keys.included |= AUTOCAST;
    return before;
}

tn_dtype tn_autocast(void) {
    return low;
}

static bool takes_part(const tn_tensor *t) {
    return !tni_not_tensor(t) && tni_is_float(t->view.dtype) && t->view.dtype != TN_F64;
}

/* The cells of a call, as they will be. */
typedef struct casting {
    const tn_op *op;
    tn_cell cells[TNI_MAX_ARGS];
    tn_tensor **lists[TNI_MAX_ARGS]; /* owned arrays in place of the caller's; tensors borrowed */
    tni_temps temps;
} casting;

static void finish(casting *c) {
    for (uint32_t i = 0; i < c->op->n_list_args; i++)
        tni_free(c->lists[i]);
    tni_temps_finish(&c->temps);
}

/* The widest of the tensors that take part: two different halves meet in f32. */
static tn_dtype widest(const casting *c) {
    tn_dtype found = TN_DTYPE_NONE;
    for (uint32_t i = 0; i < (uint32_t)c->op->n_tensor_args + c->op->n_list_args; i++) {
        uint32_t n;
        tn_tensor *const *list = tni_arg_tensors(&c->cells[c->op->tensor_args[i]], &n);
        for (uint32_t j = 0; j < n; j++)
            if (takes_part(list[j]))
                found = found == TN_DTYPE_NONE ? list[j]->view.dtype
                                               : tn_promote(found, list[j]->view.dtype);
    }
    return found;
}

/* Where the operator takes a dtype for its result and none is given, f32 is. */
static bool tell_dtype(casting *c) {
    for (uint32_t i = 0; i < c->op->schema->n_args; i++) {
        if (c->op->schema->args[i].type != TNI_TYPE_DTYPE)
            continue;
        tn_cell *cell = &c->cells[i];
        if (cell->tag == TN_CELL_NONE || cell->v.i64 == TN_DTYPE_NONE) {
            if (widest(c) != TN_DTYPE_NONE)
                *cell = (tn_cell){.tag = TN_CELL_I64, .v.i64 = TN_F32};
        }
        return true;
    }
    return false;
}

static tn_status cast_list(casting *c, uint32_t list, tn_cell *cell, tn_dtype dtype) {
    uint32_t n = cell->n;
    tn_tensor *const *from = cell->v.pointer;
    tn_tensor **to = c->lists[list] = tni_alloc((n ? n : 1) * sizeof *to);
    if (!to)
        return tni_fail_memory("a list of tensors");
    cell->v.pointer = to;
    for (uint32_t j = 0; j < n; j++) {
        bool casts = takes_part(from[j]) && from[j]->view.dtype != dtype;
        to[j] = casts ? tni_own(&c->temps, tni_to_dtype(from[j], dtype)) : from[j];
        if (casts && !to[j])
            return tni_failed();
    }
    return TN_OK;
}

static tn_status cast(casting *c, tn_dtype dtype) {
    const tn_op *op = c->op;
    for (uint32_t i = 0; i < op->n_tensor_args; i++) {
        tn_cell *cell = &c->cells[op->tensor_args[i]];
        tn_tensor *t = cell->tag == TN_CELL_TENSOR ? cell->v.pointer : NULL;
        if (!t || !takes_part(t) || t->view.dtype == dtype)
            continue;
        cell->v.pointer = tni_own(&c->temps, tni_to_dtype(t, dtype));
        if (!cell->v.pointer)
            return tni_failed();
    }
    for (uint32_t i = 0; i < op->n_list_args; i++)
        TNI_TRY(cast_list(c, i, &c->cells[op->tensor_args[op->n_tensor_args + i]], dtype));
    return TN_OK;
}

static tn_status apply(casting *c, tni_autocast policy) {
    if (policy == TNI_AUTOCAST_LOW)
        return cast(c, low);
    if (policy == TNI_AUTOCAST_WIDEST)
        return cast(c, widest(c));
    return tell_dtype(c) ? TN_OK : cast(c, TN_F32);
}

tn_status tni_autocast_handler(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                               void *user) {
    if (low == TN_DTYPE_NONE) /* who included the key has not said what to cast to */
        return tni_dispatch(op, tn_keyset_below(keys, TN_KEY_AUTOCAST), args, rets);
    casting c = {.op = op};
    memcpy(c.cells, args, op->schema->n_args * sizeof *args);
    tn_thread_keys before = tni_thread_keys;
    tni_thread_keys.excluded |= AUTOCAST;
    tn_status status = apply(&c, (tni_autocast)tni_info(op)->autocast);
    if (status == TN_OK) {
        /* what is cast may ask for other keys than what it was made of */
        tn_keyset now = tni_keyset_of(op, c.cells);
        now.keys = (now.keys | before.included) & ~before.excluded;
        status = tni_dispatch(op, tn_keyset_below(now, TN_KEY_AUTOCAST), c.cells, rets);
    }
    tni_thread_keys = before;
    finish(&c);
    return status;
}
