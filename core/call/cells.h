/* Arguments and results of a call: values into cells, and out of them. */
#ifndef TNI_CORE_CALL_CELLS_H
#define TNI_CORE_CALL_CELLS_H

#include "base/error.h"
#include "core/tensor/tensor.h"

/* ---- into a cell ------------------------------------------------------------------------- */

static inline tn_cell tni_cell_tensor(tn_tensor *t) {
    tn_cell c = {.tag = TN_CELL_TENSOR};
    if (t == TN_NONE || !t)
        c.tag = TN_CELL_NONE;
    c.v.pointer = t;
    return c;
}
static inline tn_cell tni_cell_i64(int64_t value) {
    return (tn_cell){.tag = TN_CELL_I64, .v.i64 = value};
}
static inline tn_cell tni_cell_f64(double value) {
    return (tn_cell){.tag = TN_CELL_F64, .v.f64 = value};
}
static inline tn_cell tni_cell_bool(bool value) {
    return (tn_cell){.tag = TN_CELL_BOOL, .v.boolean = value};
}
static inline tn_cell tni_cell_ints(tn_ints v) {
    return v.n < 0 ? (tn_cell){0}
                   : (tn_cell){.tag = TN_CELL_INTS, .n = (uint32_t)v.n, .v.ints = v.data};
}
static inline tn_cell tni_cell_opt_int(int64_t value) {
    return value == TN_NO_INT ? (tn_cell){0} : tni_cell_i64(value);
}
static inline tn_cell tni_cell_dtype(tn_dtype dtype) {
    return dtype == TN_DTYPE_NONE ? (tn_cell){0} : tni_cell_i64(dtype);
}
static inline tn_cell tni_cell_device(tn_device device) {
    return device.type == 0 ? (tn_cell){0} : tni_cell_i64(tn_device_pack(device));
}
static inline tn_cell tni_cell_string(const char *s) {
    return s ? (tn_cell){.tag = TN_CELL_STRING, .v.string = s} : (tn_cell){0};
}

/* ---- out of a cell ----------------------------------------------------------------------- */

static inline tn_tensor *tni_arg_tensor(const tn_cell *cell) {
    return cell->tag == TN_CELL_TENSOR ? cell->v.pointer : NULL;
}
/* One tensor, or those of a list; none when it was left out. */
static inline tn_tensor *const *tni_arg_tensors(const tn_cell *cell, uint32_t *out_n) {
    *out_n = cell->tag == TN_CELL_TENSORS ? cell->n : cell->tag == TN_CELL_TENSOR;
    return cell->tag == TN_CELL_TENSORS ? cell->v.pointer : (tn_tensor *const *)&cell->v.pointer;
}
static inline tn_ints tni_arg_ints(const tn_cell *cell) {
    return cell->tag == TN_CELL_INTS ? tn_ints_of(cell->v.ints, cell->n) : tn_no_ints();
}
/* An optional tensor, as the C functions take it: TN_NONE where it was left out. */
static inline tn_tensor *tni_arg_some(const tn_cell *cell) {
    return cell->tag == TN_CELL_TENSOR ? cell->v.pointer : TN_NONE;
}
static inline int64_t tni_arg_int(const tn_cell *cell) {
    return cell->tag == TN_CELL_NONE ? TN_NO_INT : cell->v.i64;
}
static inline tn_dtype tni_arg_dtype(const tn_cell *cell) {
    return cell->tag == TN_CELL_NONE ? TN_DTYPE_NONE : (tn_dtype)cell->v.i64;
}
static inline tn_device tni_arg_device(const tn_cell *cell) {
    return cell->tag == TN_CELL_NONE ? tn_no_device() : tn_device_unpack(cell->v.i64);
}

/* ---- scalars ----------------------------------------------------------------------------- */

static inline double tni_scalar_f64(tn_scalar s) {
    return s.tag == TN_CELL_F64 ? s.v.f64 : (double)s.v.i64;
}
/* What no integer holds, NaN included, becomes the most negative one, as x86 converts it. */
static inline int64_t tni_scalar_i64(tn_scalar s) {
    if (s.tag != TN_CELL_F64)
        return s.v.i64;
    return s.v.f64 >= -0x1p63 && s.v.f64 < 0x1p63 ? (int64_t)s.v.f64 : INT64_MIN;
}
/* The most negative integer wraps to itself, as it does in integer tensors. */
static inline tn_scalar tni_scalar_neg(tn_scalar s) {
    return s.tag == TN_CELL_F64 ? tn_float(-s.v.f64) : tn_int((int64_t)(0 - (uint64_t)s.v.i64));
}
static inline bool tni_scalar_is_one(tn_scalar s) {
    return s.tag == TN_CELL_F64 ? s.v.f64 == 1.0 : s.v.i64 == 1;
}

/* ---- results ----------------------------------------------------------------------------- */

/* Makes an owned tensor (or NULL) the result of a boxed function. */
static inline tn_status tni_return(tn_cell *rets, tn_tensor *owned) {
    rets[0] = (tn_cell){.tag = owned ? TN_CELL_TENSOR : TN_CELL_NONE, .v.pointer = owned};
    return TNI_LIKELY(owned != NULL) ? TN_OK : tni_failed();
}
/* The same for n results: all or, if one is NULL, none. */
tn_status tni_return_many(tn_cell *rets, tn_tensor **owned, uint32_t n);
/* For Tensor[]: takes over the array (of tni_alloc) and the references in it. */
static inline tn_status tni_return_list(tn_cell *rets, tn_tensor **owned, uint32_t n) {
    rets[0] = (tn_cell){.tag = TN_CELL_TENSORS, .n = n, .v.pointer = owned};
    return TN_OK;
}
/* Drops n results and clears them. */
void tni_drop_all(tn_tensor **out, uint32_t n);
/* Drops the elements of a list, and the list. */
void tni_drop_list(tn_tensor **owned, uint32_t n);

#endif
