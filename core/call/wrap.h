/* The halves of the generated wrappers that are the same for every operator. */
#ifndef TNI_CORE_CALL_WRAP_H
#define TNI_CORE_CALL_WRAP_H

#include "core/call/cells.h"

/* ---- what a cell can hold given and is not left out ------------------------------------- */

static inline bool tni_given_tensor(const tn_tensor *t) {
    return !tni_not_tensor(t);
}
static inline bool tni_ok_tensor(const tn_tensor *t) {
    return t != NULL;
}
static inline bool tni_ok_ints(tn_ints v) {
    return v.n <= 0 || (v.data && v.n <= INT32_MAX);
}
static inline bool tni_given_ints(tn_ints v) {
    return v.n >= 0 && tni_ok_ints(v);
}
static inline bool tni_given_dtype(tn_dtype dtype) {
    return tni_is_dtype(dtype);
}
static inline bool tni_ok_dtype(tn_dtype dtype) {
    return tni_given_dtype(dtype) || dtype == TN_DTYPE_NONE;
}
static inline bool tni_given_device(tn_device d) {
    return d.type > 0 && d.type <= TNI_MAX_BACKENDS && d.index >= 0;
}
static inline bool tni_ok_device(tn_device d) {
    return tni_given_device(d) || (d.type == 0 && d.index == 0);
}
static inline bool tni_given_scalar(tn_scalar s) {
    return s.tag == TN_CELL_I64 || s.tag == TN_CELL_F64 || s.tag == TN_CELL_BOOL;
}
static inline bool tni_ok_scalar(tn_scalar s) {
    return tni_given_scalar(s) || s.tag == TN_CELL_NONE;
}
static inline bool tni_given_str(const char *s) {
    return s != NULL;
}

/* ---- what is said of the rest ----------------------------------------------------------- */

/* Sets an error for TN_NONE; a NULL has its error already. */
void tni_refuse(const tn_tensor *t, const char *call, const char *argument);
void tni_refuse_ints(tn_ints v, const char *call, const char *argument);
void tni_refuse_dtype(tn_dtype dtype, const char *call, const char *argument);
void tni_refuse_device(tn_device device, const char *call, const char *argument);
void tni_refuse_scalar(tn_scalar s, const char *call, const char *argument);
void tni_refuse_str(const char *s, const char *call, const char *argument);
tn_status tni_refuse_out(const char *call, const char *argument);
/* No element NULL, the pointer there; sets an error where one is needed. */
bool tni_list_ok(tn_tensor *const *list, uint64_t n, const char *call, const char *argument);
/* The same for Tensor?[], one element for each dimension at most: TN_NONE, left out, becomes the
 * NULL that cells have there. */
bool tni_list_some(tn_tensor *const *list, uint64_t n, tn_tensor **out, const char *call,
                   const char *argument);
/* Moves a Tensor[] result into the caller's array, whose length must fit. */
tn_status tni_take_list(tn_cell *rets, tn_tensor **outs, uint64_t n_outs, const char *call);

/* How many results an operator that returns Tensor[] gives; -1 with an error. It is run for that,
 * unseen by autograd and the profiler. */
int64_t tni_count_list(const tn_op *op, const tn_cell *args);

/* A public result goes to the scope. */
tn_tensor *tni_public_failed(const char *name);
static inline tn_tensor *tni_public(tn_tensor *owned, const char *name) {
    return TNI_LIKELY(owned != NULL) ? tni_scope_push(owned) : tni_public_failed(name);
}
/* An argument that was written is returned without a reference. */
static inline tn_tensor *tni_public_written(tn_tensor *owned, const char *name) {
    if (TNI_UNLIKELY(!owned))
        return tni_public_failed(name);
    tni_drop(owned);
    return owned;
}
/* Several results: all go to the scope, or none. */
tn_status tni_public_status(tn_status status, tn_tensor **results, uint64_t n, const char *name);

#endif
