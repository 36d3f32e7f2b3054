/* Calling operators from inside the library, and reading and returning cells.
 *
 * tni_add(a, b, alpha) and its like (list.h, generated) take what tn_add takes and return an owned
 * reference; they touch no scope. NULL arguments give NULL, so a chain is checked once at its end.
 */
#ifndef TNI_CORE_OPS_H
#define TNI_CORE_OPS_H

#include "base/error.h"
#include "core/ops/list.h"
#include "core/ops/op.h"

/* Defines all operators and their handlers; once, on the first use of the library. */
tn_status tni_core_init_slow(void);
extern _Atomic bool tni_core_ready;
static inline tn_status tni_core_init(void) {
    return TNI_LIKELY(atomic_load_explicit(&tni_core_ready, memory_order_acquire))
               ? TN_OK
               : tni_core_init_slow();
}

/* ---- cells ------------------------------------------------------------------------------- */

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
static inline double tni_scalar_f64(tn_scalar s) {
    return s.tag == TN_CELL_F64 ? s.v.f64 : (double)s.v.i64;
}
static inline int64_t tni_scalar_i64(tn_scalar s) {
    return s.tag == TN_CELL_F64 ? (int64_t)s.v.f64 : s.v.i64;
}
static inline tn_scalar tni_scalar_neg(tn_scalar s) {
    return s.tag == TN_CELL_F64 ? tn_float(-s.v.f64) : tn_int(-s.v.i64);
}
static inline bool tni_scalar_is_one(tn_scalar s) {
    return s.tag == TN_CELL_F64 ? s.v.f64 == 1.0 : s.v.i64 == 1;
}

/* ---- references that may be TN_NONE or NULL ---------------------------------------------- */

static inline tn_tensor *tni_keep_some(tn_tensor *t) {
    return t && t != TN_NONE ? tni_keep(t) : t;
}
static inline void tni_drop_some(tn_tensor *t) {
    if (t != TN_NONE)
        tni_drop(t);
}
static inline tn_tensor *tni_as_some(tn_tensor *t) {
    return t ? t : TN_NONE;
}

/* The status of the standing error, TN_INTERNAL if there is none: for code that got a NULL. */
tn_status tni_failed(void);

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
void tni_drop_list(tn_tensor **owned, uint32_t n);

/* ---- work on data ------------------------------------------------------------------------ */

/* Has each element of `self`, which is to be written, memory of its own? Otherwise TN_SHAPE, said
 * in the name of `call`. */
bool tni_check_distinct(const char *call, const tn_tensor *self);

/* dst = src: broadcast, cast, any strides, any devices. Knows nothing of autograd. */
tn_status tni_copy_data(tn_tensor *dst, tn_tensor *src);
/* Sets every element. */
tn_status tni_fill_data(tn_tensor *dst, tn_scalar value);
/* Another dtype (or self, kept); without history. */
tn_tensor *tni_cast_data(tn_tensor *t, tn_dtype dtype);

/* A zero-dimensional zero of t's dtype and device. */
tn_tensor *tni_zero_of(tn_tensor *t);
tn_device tni_device_of(tn_tensor *t);
/* t * factor, or t itself (kept) when the factor is one. */
tn_tensor *tni_scaled(tn_tensor *t, tn_scalar factor);

/* What the device argument of a factory means: the device, or the default device. NULL with an
 * error. */
tni_device *tni_factory_device(tn_device device);

/* The device of a call: of the first tensor argument; 0-dim CPU tensors defer to others. */
tni_device *tni_call_device(const tn_op *op, const tn_cell *args);

/* The dtype PyTorch's result_type gives for these arguments (tensors and scalars). */
typedef struct tni_promotion {
    tn_dtype dims, zero_dim, scalars; /* TN_DTYPE_NONE where there was none */
} tni_promotion;
void tni_promotion_add(tni_promotion *p, const tn_cell *cell);
tn_dtype tni_promotion_result(const tni_promotion *p);

#endif
