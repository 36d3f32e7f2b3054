/* Pointwise operators out of the small set, where one expression in the table does not say it. */

#include "core/ops/functions.h"
#include "core/ops/halves.h"

#include <math.h>
#include <string.h>

/* Half the angle twice, tan(a / 2) = t / (1 + sqrt(1 + t^2)), from t in [0, 1]; what is left is below
 * tan(pi / 16), where the series of atan ends after a few terms. */
tn_status tni_run_atan(const tn_cell *args, tn_cell *rets) {
    enum { LAST = 21 };
    tni_temps tmp = {0};
    tn_tensor *x = tni_arg_tensor(&args[0]);
    tn_tensor *size = tni_own(&tmp, tni_abs(x));
    tn_tensor *far = tni_own(&tmp, tni_gt_scalar(size, tn_int(1)));
    tn_tensor *t = tni_own(&tmp, tni_where(far, tni_own(&tmp, tni_reciprocal(size)), size));
    for (int i = 0; i < 2; i++) {
        tn_tensor *square = tni_own(&tmp, tni_mul(t, t));
        square = tni_then(&tmp, tni_add_scalar(square, tn_int(1), tn_int(1)), square);
        tn_tensor *root = tni_then(&tmp, tni_sqrt(square), square);
        root = tni_then(&tmp, tni_add_scalar(root, tn_int(1), tn_int(1)), root);
        t = tni_own(&tmp, tni_div(t, root));
    }
    tn_tensor *z = tni_own(&tmp, tni_mul(t, t)), *series = NULL;
    for (int n = LAST; n > 0; n -= 2) {
        tn_scalar term = tn_float((n % 4 == 1 ? 4.0 : -4.0) / n); /* four times: the halves */
        if (!series)
            series = tni_own(&tmp, tni_mul_scalar(z, term));
        else if (n > 1)
            series = tni_then(&tmp, tni_add_scalar(series, term, tn_int(1)), series);
        else
            break;
        if (n < LAST)
            series = tni_then(&tmp, tni_mul(series, z), series);
    }
    tn_tensor *whole = tni_own(&tmp, tni_mul_scalar(t, tn_int(4)));
    tn_tensor *angle = tni_own(&tmp, tni_add(whole, tni_own(&tmp, tni_mul(series, t)), tn_int(1)));
    tn_tensor *rest =
        tni_own(&tmp, tni_rsub_scalar(angle, tn_float(1.5707963267948966), tn_int(1)));
    angle = tni_own(&tmp, tni_where(far, rest, angle));
    tn_tensor *with_sign = tni_own(&tmp, tni_where(tni_own(&tmp, tni_lt_scalar(x, tn_int(0))),
                                                   tni_own(&tmp, tni_neg(angle)), angle));
    tn_tensor *small = tni_own(&tmp, tni_lt_scalar(size, tn_float(1e-9))); /* zeros, tiny ones */
    return tni_temps_return(&tmp, tni_own(&tmp, tni_where(small, x, with_sign)), rets);
}

tn_status tni_run_square(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *x = tni_arg_tensor(&args[0]);
    if (x->view.dtype == TN_BOOL) /* a count of truths, as sums are */
        x = tni_own(&tmp, tni_to_dtype(x, TN_I64));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_mul(x, x)), rets);
}

tn_status tni_run_bitwise_not(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *x = tni_arg_tensor(&args[0]);
    if (tni_is_float(x->view.dtype))
        return tni_fail(TN_ERR_DTYPE, "tn_bitwise_not: not defined for %s",
                        tn_dtype_name(x->view.dtype));
    if (x->view.dtype == TN_BOOL)
        return tni_temps_return(&tmp, tni_own(&tmp, tni_logical_not(x)), rets);
    tn_tensor *ones =
        tni_own(&tmp, tni_full(TN_SCALAR_SHAPE, tn_int(-1), x->view.dtype, x->device->id));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_bitwise_xor(x, ones)), rets);
}

/* A bound brought into the range of an integer dtype. */
static tn_scalar saturated(tn_dtype dtype, tn_scalar bound) {
    if (tni_is_float(dtype))
        return bound;
    int bits = 8 * (int)tni_dtype_size(dtype) - (dtype != TN_U8);
    int64_t highest = (int64_t)(((uint64_t)1 << bits) - 1), value = tni_scalar_i64(bound);
    int64_t lowest = dtype == TN_U8 ? 0 : -highest - 1;
    return tn_int(value < lowest ? lowest : value > highest ? highest : value);
}

/* x where it is not beyond the bound, else the bound; NaN where either is. */
static tn_tensor *bounded(tni_temps *list, tn_tensor *x, tn_scalar bound, bool from_below) {
    if (bound.tag == TN_CELL_NONE || !x)
        return x;
    if (isnan(tni_scalar_f64(bound)))
        return tni_own(list, tni_mul_scalar(x, bound));
    tn_tensor *limit = tni_own(list, tni_full(TN_SCALAR_SHAPE, saturated(x->view.dtype, bound),
                                              x->view.dtype, x->device->id));
    tn_tensor *beyond = tni_own(list, from_below ? tni_lt(x, limit) : tni_lt(limit, x));
    return tni_own(list, tni_where(beyond, limit, x));
}

tn_status tni_run_clamp(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *x = tni_arg_tensor(&args[0]);
    if (args[1].tag == TN_CELL_NONE && args[2].tag == TN_CELL_NONE)
        return tni_temps_return(&tmp, tni_own(&tmp, tni_clone(x)), rets);
    x = bounded(&tmp, x, args[1], true);
    return tni_temps_return(&tmp, bounded(&tmp, x, args[2], false), rets);
}

/* maximum(self, min), or without that bound self. */
static tn_tensor *raised(tni_temps *list, tn_tensor *self, tn_tensor *min) {
    return tni_not_tensor(min) ? self : tni_own(list, tni_maximum(self, min));
}

/* round(self, decimals): with the power of ten that is a whole number */
tn_status tni_run_round_decimals(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = tni_arg_tensor(&args[0]);
    int64_t decimals = args[1].v.i64;
    tn_scalar power = tn_float(pow(10, fabs((double)decimals)));
    if (!tni_is_float(x->view.dtype))
        return tni_fail(TN_ERR_DTYPE,
                        "tn_round_decimals: not defined for %s; cast with tn_to_dtype",
                        tn_dtype_name(x->view.dtype));
    tni_temps tmp = {0};
    x = tni_own(&tmp, decimals < 0 ? tni_div_scalar(x, power) : tni_mul_scalar(x, power));
    x = tni_then(&tmp, tni_round(x), x);
    x = tni_then(&tmp, decimals < 0 ? tni_mul_scalar(x, power) : tni_div_scalar(x, power), x);
    return tni_temps_return(&tmp, x, rets);
}

/* div(self, other, rounding_mode). Of integers the floor, raised where something is left and the
 * quotient is negative. */
tn_status tni_run_div_tensor_mode(const tn_cell *args, tn_cell *rets) {
    tn_tensor *a = tni_arg_tensor(&args[0]), *b = tni_arg_tensor(&args[1]);
    tni_temps tmp = {0};
    if (args[2].v.string[0] == 'f')
        return tni_return(rets, tni_floor_divide(a, b));
    if (tni_is_float(tn_promote(a->view.dtype, b->view.dtype))) {
        tn_tensor *quotient = tni_own(&tmp, tni_div(a, b));
        return tni_temps_return(&tmp, tni_own(&tmp, tni_trunc(quotient)), rets);
    }
    tn_tensor *low = tni_own(&tmp, tni_floor_divide(a, b));
    tn_tensor *rest = tni_own(&tmp, tni_remainder(a, b));
    tn_tensor *negative = tni_own(&tmp, tni_ne(tni_own(&tmp, tni_lt_scalar(a, tn_int(0))),
                                               tni_own(&tmp, tni_lt_scalar(b, tn_int(0)))));
    tn_tensor *raised =
        tni_own(&tmp, tni_bitwise_and(negative, tni_own(&tmp, tni_ne_scalar(rest, tn_int(0)))));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_add(low, raised, tn_int(1))), rets);
}

/* ---- activations ------------------------------------------------------------------------- */

/* ---- for formulas ------------------------------------------------------------------------ */

/* The scalar as a zero-dimensional tensor of the dtype in which it would meet t. */
tn_tensor *tni_scalar_beside(tn_tensor *t, tn_scalar value) {
    if (!t)
        return NULL;
    tn_cell cell = tni_cell_tensor(t);
    tni_promotion promotion = TNI_NO_PROMOTION;
    tni_promotion_add(&promotion, &cell);
    tni_promotion_add(&promotion, &value);
    return tni_full(TN_SCALAR_SHAPE, value, tni_promotion_result(&promotion), t->device->id);
}

/* A zero-dimensional zero of t's dtype and device. */
tn_tensor *tni_zero_of(tn_tensor *t) {
    return t ? tni_zeros(TN_SCALAR_SHAPE, t->view.dtype, t->device->id) : NULL;
}

/* t * factor, or t itself (kept) when the factor is one. */
tn_tensor *tni_scaled(tn_tensor *t, tn_scalar factor) {
    if (!t)
        return NULL;
    return tni_scalar_is_one(factor) ? tni_keep(t) : tni_mul_scalar(t, factor);
}

/* ---- derivatives ------------------------------------------------------------------------- */

/* self ^ exponent * log(self), 0 where self is 0 and the exponent is not negative */
tn_tensor *tni_pow_backward_exponent(tn_tensor *grad, tn_tensor *self, tn_tensor *exponent,
                                     tn_tensor *result) {
    tni_temps tmp = {0};
    grad = tni_widened(&tmp, grad);
    if (result)
        self =
            tni_as_dtype(&tmp, self, tni_is_half(result->view.dtype) ? TN_F32 : result->view.dtype);
    tn_tensor *flat =
        tni_own(&tmp, tni_bitwise_and(tni_own(&tmp, tni_eq_scalar(self, tn_int(0))),
                                      tni_own(&tmp, tni_ge_scalar(exponent, tn_int(0)))));
    tn_tensor *slope = tni_own(&tmp, tni_mul(result, tni_own(&tmp, tni_log(self))));
    slope = tni_own(&tmp, tni_where(flat, tni_own(&tmp, tni_zero_of(slope)), slope));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_mul(grad, slope)));
}

tn_tensor *tni_pow_scalar_backward(tn_tensor *grad, tn_tensor *self, tn_scalar exponent) {
    double e = tni_scalar_f64(exponent);
    if (e == 0)
        return grad ? tni_zeros_like(grad, TN_DTYPE_NONE, tn_no_device()) : NULL;
    tni_temps tmp = {0};
    grad = tni_widened(&tmp, grad);
    self = tni_widened(&tmp, self);
    tn_scalar less = exponent.tag == TN_CELL_F64 ? tn_float(e - 1) : tn_int(exponent.v.i64 - 1);
    tn_tensor *slope =
        tni_own(&tmp, tni_mul_scalar(tni_own(&tmp, tni_pow_scalar(self, less)), exponent));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_mul(grad, slope)));
}

/* Nothing passes at a bound, as nothing passes beyond it. */
tn_tensor *tni_clamp_backward(tn_tensor *grad, tn_tensor *self, tn_scalar min, tn_scalar max) {
    tni_temps tmp = {0};
    tn_tensor *in = min.tag != TN_CELL_NONE ? tni_own(&tmp, tni_gt_scalar(self, min)) : NULL;
    if (max.tag != TN_CELL_NONE) {
        tn_tensor *below = tni_own(&tmp, tni_lt_scalar(self, max));
        in = in ? tni_own(&tmp, tni_bitwise_and(in, below)) : below;
    }
    return tni_temps_keep(&tmp,
                          in ? tni_own(&tmp, tni_where(in, grad, tni_own(&tmp, tni_zero_of(grad))))
                             : tni_own(&tmp, tni_keep_opt(grad)));
}

static tn_tensor *extremum_backward(tn_tensor *grad, tn_tensor *self, tn_tensor *other,
                                    tn_tensor *(*loses)(tn_tensor *, tn_tensor *)) {
    tni_temps tmp = {0};
    tn_tensor *half = tni_own(&tmp, tni_mul_scalar(grad, tn_float(0.5)));
    tn_tensor *shared = tni_own(&tmp, tni_where(tni_own(&tmp, tni_eq(self, other)), half, grad));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_where(tni_own(&tmp, loses(self, other)),
                                                        tni_own(&tmp, tni_zero_of(grad)), shared)));
}

tn_tensor *tni_maximum_backward(tn_tensor *grad, tn_tensor *self, tn_tensor *other) {
    return extremum_backward(grad, self, other, tni_lt);
}

tn_tensor *tni_minimum_backward(tn_tensor *grad, tn_tensor *self, tn_tensor *other) {
    return extremum_backward(grad, self, other, tni_gt);
}

/* ---- of clamp by tensors: through minimum, then maximum ---------------------------------- */

/* The gradient by maximum(self, min). */
static tn_tensor *through_max(tni_temps *list, tn_tensor *grad, tn_tensor *self, tn_tensor *min,
                              tn_tensor *max) {
    if (max == TN_NONE)
        return grad;
    return tni_own(list, tni_minimum_backward(grad, raised(list, self, min), max));
}

tn_tensor *tni_clamp_tensor_backward(tn_tensor *grad, tn_tensor *self, tn_tensor *min,
                                     tn_tensor *max) {
    tni_temps tmp = {0};
    grad = through_max(&tmp, grad, self, min, max);
    if (min != TN_NONE)
        grad = tni_own(&tmp, tni_maximum_backward(grad, self, min));
    return tni_temps_keep(&tmp, grad);
}

tn_tensor *tni_clamp_tensor_backward_min(tn_tensor *grad, tn_tensor *self, tn_tensor *min,
                                         tn_tensor *max) {
    tni_temps tmp = {0};
    grad = through_max(&tmp, grad, self, min, max);
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_maximum_backward(grad, min, self)));
}

tn_tensor *tni_clamp_tensor_backward_max(tn_tensor *grad, tn_tensor *self, tn_tensor *min,
                                         tn_tensor *max) {
    tni_temps tmp = {0};
    tn_tensor *x = raised(&tmp, self, min);
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_minimum_backward(grad, max, x)));
}
