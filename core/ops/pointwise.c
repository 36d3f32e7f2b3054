/* Pointwise operators out of the small set, where one expression in the table does not say it. */

#include "core/ops/functions.h"
#include "core/ops/halves.h"

#include <math.h>
#include <string.h>

/* (0 < x) - (x < 0); NaN stays */
tn_status tni_run_sign(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *x = tni_arg_tensor(&args[0]);
    tn_tensor *up =
        tni_own(&tmp, tni_to_dtype(tni_own(&tmp, tni_gt_scalar(x, tn_int(0))), x->view.dtype));
    tn_tensor *down =
        tni_own(&tmp, tni_to_dtype(tni_own(&tmp, tni_lt_scalar(x, tn_int(0))), x->view.dtype));
    tn_tensor *sign = tni_own(&tmp, tni_add(up, down, tn_int(-1)));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_where(tni_own(&tmp, tni_eq(x, x)), sign, x)),
                            rets);
}

/* W. Kahan's: with u = exp(x), (u - 1) (x / log(u)) is exp(x) - 1 to nearly full accuracy, as the
 * errors of u - 1 and log(u) cancel (HP-15C Advanced Functions Handbook, 1982). */
tn_status tni_run_expm1(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *x = tni_arg_tensor(&args[0]);
    tn_tensor *u = tni_own(&tmp, tni_exp(x));
    tn_tensor *less = tni_own(&tmp, tni_add_scalar(u, tn_int(-1), tn_int(1)));
    tn_tensor *log_u = tni_own(&tmp, tni_log(u));
    tn_tensor *exact = tni_own(&tmp, tni_mul(less, tni_own(&tmp, tni_div(x, log_u))));
    /* u rounded to 1: the result is x; u - 1 rounded to -1, or infinite: that is the result */
    tn_tensor *large = tni_own(&tmp, tni_bitwise_or(tni_own(&tmp, tni_eq_scalar(less, tn_int(-1))),
                                                    tni_own(&tmp, tni_eq(less, u))));
    tn_tensor *result = tni_own(&tmp, tni_where(large, less, exact));
    return tni_temps_return(
        &tmp, tni_own(&tmp, tni_where(tni_own(&tmp, tni_eq_scalar(u, tn_int(1))), x, result)),
        rets);
}

/* The same source: with u = 1 + x, log(u) (x / (u - 1)). */
tn_status tni_run_log1p(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *x = tni_arg_tensor(&args[0]);
    tn_tensor *u = tni_own(&tmp, tni_add_scalar(x, tn_int(1), tn_int(1)));
    tn_tensor *less = tni_own(&tmp, tni_add_scalar(u, tn_int(-1), tn_int(1)));
    tn_tensor *log_u = tni_own(&tmp, tni_log(u));
    tn_tensor *exact = tni_own(&tmp, tni_mul(log_u, tni_own(&tmp, tni_div(x, less))));
    tn_tensor *result =
        tni_own(&tmp, tni_where(tni_own(&tmp, tni_eq(u, less)), log_u, exact)); /* infinite */
    return tni_temps_return(
        &tmp, tni_own(&tmp, tni_where(tni_own(&tmp, tni_eq_scalar(u, tn_int(1))), x, result)),
        rets);
}

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

/* The angle of the larger side by the smaller, brought into its half and quarter. Which zero `other` is
 * shows in its reciprocal. */
tn_status tni_run_atan2(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *y = tni_arg_tensor(&args[0]), *x = tni_arg_tensor(&args[1]);
    tn_tensor *up = tni_own(&tmp, tni_abs(y)), *side = tni_own(&tmp, tni_abs(x));
    tn_tensor *steep = tni_own(&tmp, tni_gt(up, side));
    tn_tensor *large = tni_own(&tmp, tni_where(steep, up, side));
    tn_tensor *part = tni_own(&tmp, tni_where(steep, side, up));
    /* 0 by 0 is 0, infinity by infinity 1 */
    tn_tensor *one = tni_own(&tmp, tni_ones_like(large, TN_DTYPE_NONE, tn_no_device()));
    tn_tensor *quotient = tni_own(&tmp, tni_div(part, large));
    tn_tensor *none = tni_own(&tmp, tni_eq_scalar(large, tn_int(0)));
    quotient = tni_own(&tmp, tni_where(none, part, quotient));
    tn_tensor *endless = tni_own(&tmp, tni_eq_scalar(part, tn_float(INFINITY)));
    quotient = tni_own(&tmp, tni_where(endless, one, quotient));
    tn_tensor *angle = tni_own(&tmp, tni_atan(quotient));
    angle = tni_own(
        &tmp,
        tni_where(steep,
                  tni_own(&tmp, tni_rsub_scalar(angle, tn_float(1.5707963267948966), tn_int(1))),
                  angle));
    tn_tensor *left =
        tni_own(&tmp, tni_bitwise_or(tni_own(&tmp, tni_lt_scalar(x, tn_int(0))),
                                     tni_own(&tmp, tni_eq_scalar(tni_own(&tmp, tni_reciprocal(x)),
                                                                 tn_float(-INFINITY)))));
    angle = tni_own(
        &tmp,
        tni_where(left,
                  tni_own(&tmp, tni_rsub_scalar(angle, tn_float(3.141592653589793), tn_int(1))),
                  angle));
    tn_tensor *below =
        tni_own(&tmp, tni_bitwise_or(tni_own(&tmp, tni_lt_scalar(y, tn_int(0))),
                                     tni_own(&tmp, tni_eq_scalar(tni_own(&tmp, tni_reciprocal(y)),
                                                                 tn_float(-INFINITY)))));
    angle = tni_own(&tmp, tni_where(below, tni_own(&tmp, tni_neg(angle)), angle));
    /* NaN of either */
    tn_tensor *sum = tni_own(&tmp, tni_add(x, y, tn_int(1)));
    tn_tensor *whole =
        tni_own(&tmp, tni_bitwise_and(tni_own(&tmp, tni_eq(x, x)), tni_own(&tmp, tni_eq(y, y))));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_where(whole, angle, sum)), rets);
}

/* floor(x), raised where more than 1/2 is left, or just that and it is odd */
tn_status tni_run_round(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *x = tni_arg_tensor(&args[0]);
    tn_tensor *low = tni_own(&tmp, tni_floor(x));
    tn_tensor *rest = tni_own(&tmp, tni_sub(x, low, tn_int(1)));
    tn_tensor *half_low =
        tni_own(&tmp, tni_floor(tni_own(&tmp, tni_mul_scalar(low, tn_float(0.5)))));
    tn_tensor *odd = tni_own(&tmp, tni_ne(tni_own(&tmp, tni_mul_scalar(half_low, tn_int(2))), low));
    tn_tensor *tie =
        tni_own(&tmp, tni_bitwise_and(tni_own(&tmp, tni_eq_scalar(rest, tn_float(0.5))), odd));
    tn_tensor *up =
        tni_own(&tmp, tni_bitwise_or(tni_own(&tmp, tni_gt_scalar(rest, tn_float(0.5))), tie));
    tn_tensor *raised = tni_own(&tmp, tni_add_scalar(low, tn_int(1), tn_int(1)));
    tn_tensor *result = tni_own(&tmp, tni_where(up, raised, low));
    tn_tensor *zero = tni_own(&tmp, tni_mul_scalar(x, tn_int(0))); /* of x's sign */
    tn_tensor *vanishes = tni_own(&tmp, tni_eq_scalar(result, tn_int(0)));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_where(vanishes, zero, result)), rets);
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

tn_status tni_run_clamp_tensor(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *x = tni_arg_tensor(&args[0]);
    tn_tensor *min = tni_arg_tensor(&args[1]), *max = tni_arg_tensor(&args[2]);
    if (!min && !max)
        return tni_return(rets, tni_clone(x));
    x = raised(&tmp, x, min);
    return tni_temps_return(&tmp, max ? tni_own(&tmp, tni_minimum(x, max)) : x, rets);
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

/* Of floats what |self| leaves by |other|, which is exact, with self's sign; of integers, whose sizes may
 * overflow, what remainder leaves without the divisor that it added. */
tn_status tni_run_fmod(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *a = tni_arg_tensor(&args[0]), *b = tni_arg_tensor(&args[1]);
    tn_tensor *negative = tni_own(&tmp, tni_lt_scalar(a, tn_int(0)));
    if (!tni_is_float(tn_promote(a->view.dtype, b->view.dtype))) {
        tn_tensor *rest = tni_own(&tmp, tni_remainder(a, b));
        tn_tensor *differ =
            tni_own(&tmp, tni_ne(negative, tni_own(&tmp, tni_lt_scalar(b, tn_int(0)))));
        tn_tensor *left = tni_own(&tmp, tni_ne_scalar(rest, tn_int(0)));
        tn_tensor *less = tni_own(&tmp, tni_sub(rest, b, tn_int(1)));
        tn_tensor *added = tni_own(&tmp, tni_bitwise_and(differ, left));
        return tni_temps_return(&tmp, tni_own(&tmp, tni_where(added, less, rest)), rets);
    }
    tn_tensor *rest =
        tni_own(&tmp, tni_remainder(tni_own(&tmp, tni_abs(a)), tni_own(&tmp, tni_abs(b))));
    tn_tensor *signed_rest = tni_own(&tmp, tni_where(negative, tni_own(&tmp, tni_neg(rest)), rest));
    tn_tensor *none = tni_own(&tmp, tni_eq_scalar(rest, tn_int(0)));
    tn_tensor *zero = tni_own(&tmp, tni_mul_scalar(a, tn_int(0))); /* of a's sign */
    return tni_temps_return(&tmp, tni_own(&tmp, tni_where(none, zero, signed_rest)), rets);
}

/* where(self < other, self, other), and NaN if either is */
tn_status tni_run_minimum(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *a = tni_arg_tensor(&args[0]), *b = tni_arg_tensor(&args[1]);
    tn_tensor *smaller = tni_own(&tmp, tni_where(tni_own(&tmp, tni_lt(a, b)), a, b));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_where(tni_own(&tmp, tni_eq(a, a)), smaller, a)),
                            rets);
}

/* ---- activations ------------------------------------------------------------------------- */

/* 1 / (1 + e) or e / (1 + e), with e = exp(-|x|), which does not overflow */
tn_status tni_run_sigmoid(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *x = tni_arg_tensor(&args[0]);
    tn_tensor *negative = tni_own(&tmp, tni_lt_scalar(x, tn_int(0)));
    tn_tensor *e = tni_own(&tmp, tni_where(negative, x, tni_own(&tmp, tni_neg(x))));
    e = tni_then(&tmp, tni_exp(e), e);
    tn_tensor *one =
        tni_own(&tmp, tni_full(TN_SCALAR_SHAPE, tn_int(1), x->view.dtype, x->device->id));
    tn_tensor *part = tni_own(&tmp, tni_where(negative, e, one));
    e = tni_then(&tmp, tni_add_scalar(e, tn_int(1), tn_int(1)), e);
    return tni_temps_return(&tmp, tni_own(&tmp, tni_div(part, e)), rets);
}

tn_status tni_run_silu_backward(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *grad = tni_arg_tensor(&args[0]), *x = tni_arg_tensor(&args[1]);
    tn_tensor *s = tni_own(&tmp, tni_sigmoid(x));
    tn_tensor *slope =
        tni_own(&tmp, tni_mul(x, tni_own(&tmp, tni_rsub_scalar(s, tn_int(1), tn_int(1)))));
    slope = tni_own(&tmp, tni_mul(s, tni_own(&tmp, tni_add_scalar(slope, tn_int(1), tn_int(1)))));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_mul(grad, slope)), rets);
}

/* Of gelu's `approximate`, which is one of the table's choices. */
static bool is_tanh(const tn_cell *cell) {
    return cell->v.string[0] == 't';
}

/* tanh(sqrt(2 / pi) (x + 0.044715 x^3)), Hendrycks and Gimpel, arXiv:1606.08415 */
static tn_tensor *tanh_part(tni_temps *list, tn_tensor *x) {
    tni_temps tmp = {0};
    tn_tensor *cube = tni_own(&tmp, tni_mul(tni_own(&tmp, tni_mul(x, x)), x));
    tn_tensor *inner = tni_own(&tmp, tni_add(x, cube, tn_float(0.044715)));
    tn_tensor *result =
        tni_own(&tmp, tni_tanh(tni_own(&tmp, tni_mul_scalar(inner, tn_float(0.7978845608028654)))));
    return tni_own(list, tni_temps_keep(&tmp, result));
}

/* erf(x / sqrt(2)) */
static tn_tensor *erf_part(tni_temps *list, tn_tensor *x) {
    tn_tensor *scaled = tni_own(list, tni_mul_scalar(x, tn_float(0.7071067811865476)));
    return tni_own(list, tni_erf(scaled));
}

tn_status tni_run_gelu(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *x = tni_arg_tensor(&args[0]);
    bool tanh = is_tanh(&args[1]);
    tn_tensor *part = tanh ? tanh_part(&tmp, x) : erf_part(&tmp, x);
    tn_tensor *weight =
        tni_own(&tmp, tni_mul_scalar(tni_own(&tmp, tni_add_scalar(part, tn_int(1), tn_int(1))),
                                     tn_float(0.5)));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_mul(x, weight)), rets);
}

tn_status tni_run_gelu_backward(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *grad = tni_arg_tensor(&args[0]), *x = tni_arg_tensor(&args[1]);
    bool tanh = is_tanh(&args[2]);
    tn_tensor *part = tanh ? tanh_part(&tmp, x) : erf_part(&tmp, x);
    tn_tensor *weight =
        tni_own(&tmp, tni_mul_scalar(tni_own(&tmp, tni_add_scalar(part, tn_int(1), tn_int(1))),
                                     tn_float(0.5)));
    tn_tensor *square = tni_own(&tmp, tni_mul(x, x)), *density;
    if (tanh) {
        /* x / 2 (1 - t^2) sqrt(2 / pi) (1 + 3 * 0.044715 x^2) */
        tn_tensor *inner = tni_own(&tmp, tni_mul_scalar(square, tn_float(3 * 0.044715)));
        inner = tni_own(&tmp, tni_add_scalar(inner, tn_int(1), tn_int(1)));
        tn_tensor *rest = tni_own(
            &tmp, tni_rsub_scalar(tni_own(&tmp, tni_mul(part, part)), tn_int(1), tn_int(1)));
        density = tni_own(&tmp, tni_mul_scalar(tni_own(&tmp, tni_mul(rest, inner)),
                                               tn_float(0.3989422804014327)));
    } else {
        /* the normal density */
        density = tni_own(&tmp, tni_exp(tni_own(&tmp, tni_mul_scalar(square, tn_float(-0.5)))));
        density = tni_own(&tmp, tni_mul_scalar(density, tn_float(0.3989422804014327)));
    }
    return tni_temps_return(
        &tmp,
        tni_own(&tmp,
                tni_mul(grad, tni_own(&tmp, tni_add(weight, tni_own(&tmp, tni_mul(x, density)),
                                                    tn_int(1))))),
        rets);
}

/* ---- for formulas ------------------------------------------------------------------------ */

/* The scalar as a zero-dimensional tensor of the dtype in which it would meet t. */
tn_tensor *tni_scalar_beside(tn_tensor *t, tn_scalar value) {
    if (!t)
        return NULL;
    tn_cell cell = tni_cell_tensor(t);
    tni_promotion promotion = {TN_DTYPE_NONE, TN_DTYPE_NONE, TN_DTYPE_NONE};
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

/* exponent * self ^ (exponent - 1), 0 where the exponent is 0 */
tn_tensor *tni_pow_backward_self(tn_tensor *grad, tn_tensor *self, tn_tensor *exponent) {
    tni_temps tmp = {0};
    grad = tni_widened(&tmp, grad);
    self = tni_widened(&tmp, self);
    exponent = tni_widened(&tmp, exponent);
    tn_tensor *less = tni_own(&tmp, tni_add_scalar(exponent, tn_int(-1), tn_int(1)));
    tn_tensor *slope = tni_own(&tmp, tni_mul(exponent, tni_own(&tmp, tni_pow(self, less))));
    tn_tensor *zero = tni_own(&tmp, tni_eq_scalar(exponent, tn_int(0)));
    slope = tni_own(&tmp, tni_where(zero, tni_own(&tmp, tni_zero_of(slope)), slope));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_mul(grad, slope)));
}

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
