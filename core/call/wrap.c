/* See wrap.h, and cells.h of results. */
#include "core/call/wrap.h"
#include "base/alloc.h"

void tni_refuse(const tn_tensor *t, const char *call, const char *argument) {
    if (t == TN_NONE)
        tni_fail(TN_ERR_INVALID_ARGUMENT,
                 "%s: argument '%s' cannot be left out; TN_NONE is for optional "
                 "tensors",
                 call, argument);
    else if (tn_error_status() == TN_OK)
        tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: argument '%s' is NULL; check the call that made it",
                 call, argument);
}

void tni_refuse_ints(tn_ints v, const char *call, const char *argument) {
    if (v.n < 0)
        tni_fail(TN_ERR_SHAPE,
                 "%s: %s is left out; give a list, TN_SCALAR_SHAPE (the shape of rank 0) for an"
                 " empty one",
                 call, argument);
    else
        tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: argument '%s' is a list of %lld%s", call, argument,
                 (long long)v.n, v.data ? ", which is more than there can be" : " at NULL");
}

void tni_refuse_dtype(tn_dtype dtype, const char *call, const char *argument) {
    tni_fail(TN_ERR_DTYPE, "%s: argument '%s': %d is no dtype", call, argument, (int)dtype);
}

void tni_refuse_device(tn_device device, const char *call, const char *argument) {
    tni_fail(TN_ERR_DEVICE,
             "%s: argument '%s': {%d, %d} is no device; make one with tn_device_parse or"
             " tn_default_device",
             call, argument, device.type, device.index);
}

void tni_refuse_scalar(tn_scalar s, const char *call, const char *argument) {
    if (s.tag == TN_CELL_NONE)
        tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: argument '%s' cannot be left out", call, argument);
    else
        tni_fail(TN_ERR_INVALID_ARGUMENT,
                 "%s: argument '%s' is a cell of tag %u; make a number with tn_int, tn_float or"
                 " tn_bool",
                 call, argument, s.tag);
}

void tni_refuse_str(const char *s, const char *call, const char *argument) {
    tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: argument '%s' is NULL", call, argument);
}

tn_status tni_refuse_out(const char *call, const char *argument) {
    return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: %s is NULL", call, argument);
}

bool tni_list_ok(tn_tensor *const *list, uint64_t n, const char *call, const char *argument) {
    if (!list && n > 0) {
        tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: argument '%s' is NULL", call, argument);
        return false;
    }
    for (uint64_t i = 0; i < n; i++) {
        if (tni_not_tensor(list[i])) {
            if (tn_error_status() == TN_OK)
                tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: element %llu of '%s' is no tensor", call,
                         (unsigned long long)i, argument);
            return false;
        }
    }
    return true;
}

bool tni_list_some(tn_tensor *const *list, uint64_t n, tn_tensor **out, const char *call,
                   const char *argument) {
    if (n > TN_MAX_RANK) {
        tni_fail(TN_ERR_INVALID_ARGUMENT,
                 "%s: '%s' has %llu elements; there are %d dimensions at most", call, argument,
                 (unsigned long long)n, TN_MAX_RANK);
        return false;
    }
    for (uint64_t i = 0; list && i < n; i++) {
        out[i] = list[i] == TN_NONE ? NULL : list[i];
        if (out[i] != list[i])
            continue;
        if (!tni_list_ok(&list[i], 1, call, argument))
            return false;
    }
    return list || tni_list_ok(list, n, call, argument);
}

void tni_drop_all(tn_tensor **out, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        tni_drop(out[i]);
        out[i] = NULL;
    }
}

void tni_drop_list(tn_tensor **owned, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        tni_drop(owned[i]);
    tni_free(owned);
}

tn_status tni_take_list(tn_cell *rets, tn_tensor **outs, uint64_t n_outs, const char *call) {
    tn_tensor **list = rets[0].v.pointer;
    uint32_t n = rets[0].n;
    if (n != n_outs) {
        tni_drop_list(list, n);
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: there are %u results, but room for %llu was given", call, n,
                        (unsigned long long)n_outs);
    }
    for (uint32_t i = 0; i < n; i++)
        outs[i] = list[i];
    tni_free(list);
    return TN_OK;
}

int64_t tni_count_list(const tn_op *op, const tn_cell *args) {
    tn_thread_keys before = tni_thread_keys;
    tni_thread_keys.excluded |= TN_KEY_BIT(TN_KEY_AUTOGRAD) | TN_KEY_BIT(TN_KEY_PROFILE);
    tn_cell rets[1];
    tn_status status = tni_call(op, args, rets);
    tni_thread_keys = before;
    if (status != TN_OK) {
        tni_error_operator(op->name);
        return -1;
    }
    tni_drop_list(rets[0].v.pointer, rets[0].n);
    return rets[0].n;
}

tn_status tni_return_many(tn_cell *rets, tn_tensor **owned, uint32_t n) {
    bool all = true;
    for (uint32_t i = 0; i < n; i++)
        all = all && owned[i];
    for (uint32_t i = 0; i < n; i++) {
        if (!all)
            tni_drop(owned[i]);
        rets[i] = (tn_cell){.tag = all ? TN_CELL_TENSOR : TN_CELL_NONE,
                            .v.pointer = all ? owned[i] : NULL};
    }
    return all ? TN_OK : tni_failed();
}

tn_tensor *tni_public_failed(const char *name) {
    tni_error_operator(name);
    return NULL;
}

tn_status tni_public_status(tn_status status, tn_tensor **results, uint64_t n, const char *name) {
    bool owned = status == TN_OK;
    uint64_t n_there = 0; /* in the scope */
    while (status == TN_OK && n_there < n) {
        if (tni_scope_push(results[n_there]))
            n_there++;
        else /* which has dropped it */
            status = tni_failed();
    }
    if (status == TN_OK)
        return TN_OK;
    for (uint64_t i = 0; i < n; i++) {
        if (i > n_there && owned)
            tni_drop(results[i]);
        results[i] = NULL;
    }
    tni_error_operator(name);
    return status;
}

tn_tensor *tn_give(tn_tensor *owned) {
    return tni_not_tensor(owned) ? owned : tni_scope_push(owned);
}

void tn_free_list(tn_cell *result) {
    if (result && result->tag == TN_CELL_TENSORS)
        tni_free(result->v.pointer);
    if (result)
        *result = (tn_cell){0};
}
