/* Losses. The likelihood of target classes has a kernel for what most programs ask of it; all else is
 * made of other operators, and autograd looks through it. The few calls that a training step makes
 * here are counted.
 */

#include "core/ops/dims.h"
#include "core/ops/functions.h"
#include "core/ops/halves.h"

#include <string.h>

typedef enum reduction { REDUCE_NONE = 'n', REDUCE_SUM = 's', REDUCE_MEAN = 'm' } reduction;

/* The word is one of the table's choices. */
static reduction reduction_of(const tn_cell *cell) {
    return (reduction)cell->v.string[0];
}

static tn_tensor *reduced(tni_temps *tmp, tn_tensor *t, reduction how) {
    if (how == REDUCE_NONE)
        return t;
    return tni_then(tmp, how == REDUCE_SUM ? tni_sum(t, TN_DTYPE_NONE) : tni_mean(t, TN_DTYPE_NONE),
                    t);
}

/* ---- classes ----------------------------------------------------------------------------- */

typedef struct class_loss {
    const char *call;
    tn_tensor *weight; /* [C], or NULL */
    reduction how;
    int64_t ignore_index;
    double smoothing;
} class_loss;

static tn_status check_classes(const class_loss *l, const tn_tensor *self,
                               const tn_tensor *target) {
    int32_t rank = self->view.rank, lead = rank > 1;
    if (tni_is_float(target->view.dtype) || target->view.dtype == TN_BOOL)
        return tni_fail(TN_ERR_DTYPE, "%s: targets must be integers that name classes, but are %s",
                        l->call, tn_dtype_name(target->view.dtype));
    bool fits = rank >= 1 && target->view.rank == rank - 1 &&
                (!lead || (self->sizes[0] == target->sizes[0] &&
                           memcmp(self->sizes + 2, target->sizes + 1,
                                  (size_t)(rank - 2) * sizeof *self->sizes) == 0));
    if (!fits)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: input %s and target %s do not fit; input is [N, C, ...] and target "
                        "[N, ...], or [C] and a target of rank 0",
                        l->call, TNI_SHAPE_OF_SIZES(rank, self->sizes), TNI_SHAPE_OF(target));
    if (l->weight && (l->weight->view.rank != 1 || l->weight->sizes[0] != self->sizes[lead]))
        return tni_fail(TN_ERR_SHAPE,
                        "%s: weight must have shape [%lld], one for each class, but has %s",
                        l->call, (long long)self->sizes[lead], TNI_SHAPE_OF(l->weight));
    return TN_OK;
}

/* Each target's weight, in the shape of `classes` [N, 1, ...]. */
static tn_tensor *weights_of(const class_loss *l, tni_temps *tmp, tn_tensor *classes) {
    tn_tensor *flat = tni_own(tmp, tni_flatten(classes, 0, -1));
    tn_tensor *w = tni_own(tmp, tni_index_select(l->weight, 0, flat));
    return w ? tni_own(tmp, tni_reshape(w, tni_sizes(classes))) : NULL;
}

/* Uniform smoothing over classes: (1 - s) * picked + s / C * sum of weighted logs. */
static tn_tensor *smoothed(const class_loss *l, tni_temps *tmp, tn_tensor *logs, tn_tensor *picked,
                           int32_t dim) {
    tn_tensor *all = logs;
    if (l->weight)
        all = tni_own(tmp, tni_mul(logs, tni_along(tmp, l->weight, dim, logs->view.rank)));
    tn_tensor *sum = tni_own(tmp, tni_sum_dim(all, TN_SHAPE(dim), true, TN_DTYPE_NONE));
    picked = tni_own(tmp, tni_mul_scalar(picked, tn_float(1 - l->smoothing)));
    double share = l->smoothing / (double)logs->sizes[dim];
    return tni_own(tmp, tni_add(picked, sum, tn_float(share)));
}

/* Minus the losses of logs [N, C, ...] or [C] of checked shapes, target [N, ...], in the shape of logs
 * with C = 1. Ignored targets pick class 0 and are masked afterwards, so that neither their index nor
 * an infinite log of theirs matters. *out_counted: what each target counts in a mean, a bool or its
 * weight. */
static tn_tensor *picked(const class_loss *l, tni_temps *tmp, tn_tensor *logs, tn_tensor *target,
                         tn_tensor **out_counted) {
    int32_t dim = logs->view.rank > 1;
    tn_tensor *classes = tni_own(tmp, tni_unsqueeze(target, dim));
    tn_tensor *valid = tni_own(tmp, tni_ne_scalar(classes, tn_int(l->ignore_index)));
    classes = tni_own(tmp, tni_mul(classes, valid));
    tn_tensor *x = tni_widened(tmp, tni_own(tmp, tni_gather(logs, dim, classes)));
    tn_tensor *w = NULL, *zero = tni_own(tmp, tni_zero_of(x));
    if (l->weight) {
        w = tni_widened(tmp, weights_of(l, tmp, classes));
        x = tni_own(tmp, tni_mul(x, w));
    }
    if (l->smoothing != 0)
        x = smoothed(l, tmp, logs, x, dim);
    *out_counted = w && l->how == REDUCE_MEAN ? tni_own(tmp, tni_where(valid, w, zero)) : valid;
    return tni_own(tmp, tni_where(valid, x, zero));
}

/* Halves are added up in f32, where the sum and the number of targets fit. */
static tn_dtype summed_in(const tn_tensor *logs) {
    return tni_is_half(logs->view.dtype) ? TN_F32 : logs->view.dtype;
}

static tn_status composed_losses(const class_loss *l, tn_tensor *logs, tn_tensor *target,
                                 tn_cell *rets) {
    tni_temps tmp = {0};
    tn_dtype dtype = summed_in(logs);
    tn_tensor *counted, *out = picked(l, &tmp, logs, target, &counted);
    out = tni_own(&tmp, l->how == REDUCE_NONE ? tni_squeeze_dim(out, logs->view.rank > 1)
                                              : tni_sum(out, dtype));
    if (l->how == REDUCE_MEAN)
        out = tni_own(&tmp, tni_div(out, tni_own(&tmp, tni_sum(counted, dtype))));
    out = tni_own(&tmp, tni_neg(out));
    return tni_temps_return(&tmp, tni_as_dtype(&tmp, out, logs->view.dtype), rets);
}

/* logs and target of checked shapes. */
static tn_status class_losses(const class_loss *l, tn_tensor *logs, tn_tensor *target,
                              tn_cell *rets) {
    if (!logs)
        return tni_failed();
    if (l->weight || l->smoothing != 0 || l->how == REDUCE_NONE || logs->view.rank > 2 ||
        !tni_is_float(logs->view.dtype))
        return composed_losses(l, logs, target, rets);
    tn_tensor *out, *total_weight;
    TNI_TRY(tni_nll_loss_forward(logs, target, l->how == REDUCE_MEAN, l->ignore_index, &out,
                                 &total_weight));
    tni_drop(total_weight);
    return tni_return(rets, out);
}

/* ---- the kernels' operators ------------------------------------------------------------- */

/* A tensor [N, C] or [C], and a target for each row. */
static tn_status check_rows(const tni_build *b, const char *name, tn_ints sizes,
                            const tn_tensor *target) {
    if ((sizes.n == 1 || sizes.n == 2) && target->view.rank == sizes.n - 1 &&
        (sizes.n == 1 || target->sizes[0] == sizes.data[0]))
        return TN_OK;
    return tni_build_fail(b, TN_ERR_SHAPE,
                          "%s %s and target %s do not fit; they are [N, C] and [N], or [C] and a "
                          "target of rank 0",
                          name, TNI_SHAPE_OF_INTS(sizes), TNI_SHAPE_OF(target));
}

/* Kernel argument i, of rank 0, or of rank 1 if there is a row of it for each target. */
static tn_status lift(tni_build *b, uint32_t i, bool rows) {
    tn_tensor *t = b->kargs[i].v.pointer;
    if (!rows)
        t = tni_build_lift(b, t);
    else if (t->view.rank == 1)
        t = tni_build_view(b, t, 2, TN_SHAPE(1, t->sizes[0]).data, TN_SHAPE(0, t->strides[0]).data);
    if (!t)
        return tni_failed();
    b->kargs[i] = tni_cell_tensor(t);
    return TN_OK;
}

/* nll_loss_forward(self, target, mean, ignore_index) */
tn_status tni_infer_nll_loss_forward(tni_build *b) {
    const tn_tensor *self = tni_build_tensor(b, 0), *target = tni_build_tensor(b, 1);
    TNI_TRY(check_rows(b, "self", tni_sizes(self), target));
    for (uint32_t i = 0; i < 2; i++) {
        tni_build_out(b, i, 0, NULL);
        tni_build_kernel_out(b, i, 1, TN_SHAPE(1).data);
        TNI_TRY(lift(b, i, i == 0));
    }
    b->decomposes = self->view.numel == 0;
    return TN_OK;
}

/* nll_loss_backward(grad_output, target, total_weight, input_size, mean, ignore_index) */
tn_status tni_infer_nll_loss_backward(tni_build *b) {
    static const char *const names[] = {"grad_output", "", "total_weight"};
    const tn_tensor *target = tni_build_tensor(b, 1);
    tn_ints sizes = tni_arg_ints(&b->args[3]);
    TNI_TRY(check_rows(b, "input_size", sizes, target));
    for (uint32_t i = 0; i < 3; i++) {
        const tn_tensor *t = tni_build_tensor(b, i);
        if (i != 1 && t->view.rank != 0)
            return tni_build_fail(b, TN_ERR_SHAPE, "%s has shape %s, but must have rank 0",
                                  names[i], TNI_SHAPE_OF(t));
        TNI_TRY(lift(b, i, false));
    }
    int64_t n_classes = sizes.data[sizes.n - 1];
    if (n_classes < 0)
        return tni_build_fail(b, TN_ERR_SHAPE, "input_size %s has a negative size",
                              TNI_SHAPE_OF_INTS(sizes));
    tni_build_out(b, 0, (int32_t)sizes.n, sizes.data);
    if (sizes.n == 1)
        tni_build_kernel_out(b, 0, 2, TN_SHAPE(1, n_classes).data);
    b->kargs[TN_ARG_nll_loss_backward_n_classes] = tni_cell_i64(n_classes);
    return TN_OK;
}

tn_status tni_run_nll_loss_forward(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *target = tni_arg_tensor(&args[1]);
    bool mean = args[2].v.boolean;
    class_loss l = {.call = "tn_nll_loss_forward",
                    .how = mean ? REDUCE_MEAN : REDUCE_SUM,
                    .ignore_index = args[3].v.i64};
    tni_temps tmp = {0};
    tn_dtype dtype = summed_in(self);
    tn_tensor *valid, *out = picked(&l, &tmp, self, target, &valid);
    tn_tensor *results[2] = {NULL, tni_own(&tmp, tni_sum(valid, TN_I64))};
    out = tni_own(&tmp, tni_sum(out, dtype));
    if (mean)
        out = tni_own(&tmp, tni_div(out, tni_own(&tmp, tni_to_dtype(results[1], dtype))));
    out = tni_own(&tmp, tni_neg(out));
    results[0] = out ? tni_as_dtype(&tmp, out, self->view.dtype) : NULL;
    return tni_temps_return_many(&tmp, results, 2, rets);
}

/* -grad_output, and divided by the number of targets where the loss is their mean; halves as f32. */
static tn_tensor *share(tni_temps *tmp, tn_tensor *grad_output, tn_tensor *total_weight,
                        bool mean) {
    tn_tensor *x = tni_widened(tmp, grad_output);
    x = tni_own(tmp, tni_neg(x));
    return x && mean ? tni_own(tmp, tni_div(x, tni_as_dtype(tmp, total_weight, x->view.dtype))) : x;
}

tn_status tni_run_nll_loss_backward(const tn_cell *args, tn_cell *rets) {
    tn_tensor *grad = tni_arg_tensor(&args[0]), *target = tni_arg_tensor(&args[1]);
    tn_tensor *total_weight = tni_arg_tensor(&args[2]);
    tn_ints sizes = tni_arg_ints(&args[3]);
    int32_t dim = sizes.n > 1;
    tni_temps tmp = {0};
    tn_tensor *classes = tni_own(&tmp, tni_unsqueeze(target, dim));
    tn_tensor *valid = tni_own(&tmp, tni_ne_scalar(classes, tn_int(args[5].v.i64)));
    classes = tni_own(&tmp, tni_mul(classes, valid));
    tn_tensor *x = share(&tmp, grad, total_weight, args[4].v.boolean);
    x = x ? tni_as_dtype(&tmp, x, grad->view.dtype) : NULL;
    x = tni_own(&tmp, tni_where(valid, x, tni_own(&tmp, tni_zero_of(x))));
    tn_tensor *zeros = tni_own(&tmp, tni_zeros(sizes, grad->view.dtype, grad->device->id));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_scatter_add(zeros, dim, classes, x)), rets);
}

/* The gradient of nll_loss_backward by grad_output: `grad` is added up where targets are. */
tn_tensor *tni_nll_loss_double_backward(tn_tensor *grad, tn_tensor *target, tn_tensor *total_weight,
                                        bool mean, int64_t ignore_index) {
    if (!grad || !target || !total_weight)
        return NULL;
    tni_temps tmp = {0};
    tn_tensor *x = tni_widened(&tmp, grad), *out, *counted;
    if (!x || tni_nll_loss_forward(x, target, false, ignore_index, &out, &counted) != TN_OK) {
        tni_temps_finish(&tmp);
        return NULL;
    }
    tni_drop(counted);
    out = tni_own(&tmp, out);
    if (mean)
        out = tni_own(&tmp, tni_div(out, tni_as_dtype(&tmp, total_weight, out->view.dtype)));
    return tni_temps_keep(&tmp, out ? tni_as_dtype(&tmp, out, grad->view.dtype) : NULL);
}

/* ---- the operators ----------------------------------------------------------------------- */

/* nll_loss(self, target, weight, reduction, ignore_index) */
tn_status tni_run_nll_loss(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *target = tni_arg_tensor(&args[1]);
    class_loss l = {.call = "tn_nll_loss",
                    .weight = tni_arg_tensor(&args[2]),
                    .how = reduction_of(&args[3]),
                    .ignore_index = args[4].v.i64};
    TNI_TRY(check_classes(&l, self, target));
    return class_losses(&l, self, target, rets);
}

/* Targets that are probabilities of the classes, in the shape of the logits. */
static tn_status probability_losses(const class_loss *l, tn_tensor *self, tn_tensor *target,
                                    tn_cell *rets) {
    int32_t dim = self->view.rank > 1;
    double n_classes = (double)self->sizes[dim];
    tni_temps tmp = {0};
    tn_tensor *x = tni_own(&tmp, tni_log_softmax(self, dim, TN_DTYPE_NONE)), *p = target;
    if (l->smoothing != 0) {
        p = tni_own(&tmp, tni_mul_scalar(p, tn_float(1 - l->smoothing)));
        p = tni_then(&tmp, tni_add_scalar(p, tn_float(l->smoothing / n_classes), tn_int(1)), p);
    }
    x = tni_then(&tmp, tni_mul(x, p), x);
    if (l->weight)
        x = tni_then(&tmp, tni_mul(x, tni_along(&tmp, l->weight, dim, self->view.rank)), x);
    x = tni_then(&tmp,
                 l->how == REDUCE_NONE ? tni_sum_dim(x, TN_SHAPE(dim), false, TN_DTYPE_NONE)
                                       : tni_sum(x, TN_DTYPE_NONE),
                 x);
    if (l->how == REDUCE_MEAN)
        x = tni_own(&tmp, tni_div_scalar(x, tn_float((double)self->view.numel / n_classes)));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_neg(x)), rets);
}

/* cross_entropy(self, target, weight, reduction, ignore_index, label_smoothing) */
tn_status tni_run_cross_entropy(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *target = tni_arg_tensor(&args[1]);
    class_loss l = {.call = "tn_cross_entropy",
                    .weight = tni_arg_tensor(&args[2]),
                    .how = reduction_of(&args[3]),
                    .ignore_index = args[4].v.i64,
                    .smoothing = args[5].v.f64};
    if (!(l.smoothing >= 0 && l.smoothing <= 1))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_cross_entropy: label_smoothing is %g; it must lie in [0, 1]",
                        l.smoothing);
    if (tni_is_float(target->view.dtype) && self->view.rank > 0 && tni_same_shape(self, target))
        return probability_losses(&l, self, target, rets);
    TNI_TRY(check_classes(&l, self, target));
    tn_tensor *logs = tni_log_softmax(self, self->view.rank > 1, TN_DTYPE_NONE);
    tn_status status = class_losses(&l, logs, target, rets);
    tni_drop(logs);
    return status;
}

/* ---- differences ------------------------------------------------------------------------- */

/* For the table: the loss as the word says. */
tn_tensor *tni_reduced(tn_tensor *loss, const char *how) {
    if (!loss || *how == REDUCE_NONE)
        return tni_keep_opt(loss);
    return *how == REDUCE_SUM ? tni_sum(loss, TN_DTYPE_NONE) : tni_mean(loss, TN_DTYPE_NONE);
}

/* Does t broadcast to x's shape? */
static bool fits_into(const tn_tensor *t, const tn_tensor *x) {
    int32_t rank;
    int64_t sizes[TN_MAX_RANK];
    return tni_broadcast(x->view.rank, x->sizes, t->view.rank, t->sizes, &rank, sizes) &&
           tni_has_shape(x, rank, sizes);
}

/* binary_cross_entropy_with_logits(self = x, target = t, weight = w, pos_weight = p, reduction):
 * with s = log(1 + exp(-|x|)), which is -log(sigmoid(x)) less max(-x, 0),
 *
 *     max(x, 0) - x * t + s,  with pos_weight (1 - t) * x + (1 + (p - 1) * t) * (max(-x, 0) + s)
 *
 * max and |x| are written with `where` on one condition, so that their derivatives at 0 add up to
 * the 1/2 - t that is right there. */
tn_status tni_run_bce_with_logits(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = tni_arg_tensor(&args[0]), *target = tni_arg_tensor(&args[1]);
    tn_tensor *weight = tni_arg_tensor(&args[2]), *pos_weight = tni_arg_tensor(&args[3]);
    const char *call = "tn_binary_cross_entropy_with_logits";
    for (int i = 2; i < 4; i++) {
        const tn_tensor *t = tni_arg_tensor(&args[i]);
        if (t && !fits_into(t, x))
            return tni_fail(TN_ERR_SHAPE, "%s: %s of shape %s does not broadcast to the input's %s",
                            call, i == 2 ? "weight" : "pos_weight", TNI_SHAPE_OF(t),
                            TNI_SHAPE_OF(x));
    }
    if (!tni_same_shape(x, target))
        return tni_fail(TN_ERR_SHAPE,
                        "%s: target has shape %s, but must have that of the input, %s", call,
                        TNI_SHAPE_OF(target), TNI_SHAPE_OF(x));
    if (!tni_is_float(x->view.dtype))
        return tni_fail(TN_ERR_DTYPE, "%s: not defined for %s; cast with tn_to_dtype", call,
                        tn_dtype_name(x->view.dtype));
    tni_temps tmp = {0};
    tn_tensor *negative = tni_own(&tmp, tni_lt_scalar(x, tn_int(0)));
    tn_tensor *zero = tni_own(&tmp, tni_zero_of(x)), *minus = tni_own(&tmp, tni_neg(x));
    tn_tensor *loss = tni_own(&tmp, pos_weight ? tni_where(negative, minus, zero) /* max(-x, 0) */
                                               : tni_where(negative, zero, x));   /* max(x, 0) */
    tn_tensor *tail = tni_then(&tmp, tni_where(negative, x, minus), minus);       /* -|x| */
    tail = tni_then(&tmp, tni_exp(tail), tail);
    tail = tni_then(&tmp, tni_log1p(tail), tail);
    if (pos_weight) {
        tail = tni_then(&tmp, tni_add(tail, loss, tn_int(1)), tail);
        tn_tensor *more = tni_own(&tmp, tni_add_scalar(pos_weight, tn_int(-1), tn_int(1)));
        more = tni_then(&tmp, tni_mul(more, target), more);
        more = tni_then(&tmp, tni_add_scalar(more, tn_int(1), tn_int(1)), more);
        tail = tni_then(&tmp, tni_mul(tail, more), tail);
        loss = x;
    }
    tn_tensor *product = tni_own(&tmp, tni_mul(x, target));
    loss = tni_then(&tmp, tni_sub(loss, product, tn_int(1)), loss);
    loss = tni_then(&tmp, tni_add(loss, tail, tn_int(1)), loss);
    if (weight)
        loss = tni_then(&tmp, tni_mul(loss, weight), loss);
    return tni_temps_return(&tmp, reduced(&tmp, loss, reduction_of(&args[4])), rets);
}
