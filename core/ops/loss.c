/* Losses. All are made of other operators, and autograd looks through them; the few calls that a
 * training step makes here are counted.
 */

#include "core/ops/functions.h"

#include <string.h>

typedef enum reduction { REDUCE_NONE = 'n', REDUCE_SUM = 's', REDUCE_MEAN = 'm' } reduction;

/* The word is one of the table's choices. */
static reduction reduction_of(const tn_cell *cell) {
    return (reduction)cell->v.string[0];
}

/* Consumes t. */
static tn_tensor *reduced(tn_tensor *t, reduction how) {
    if (how == REDUCE_NONE)
        return t;
    return tni_then(how == REDUCE_SUM ? tni_sum(t, TN_DTYPE_NONE) : tni_mean(t, TN_DTYPE_NONE), t);
}

/* ---- classes ---------------------------------------------------------------------------- */

typedef struct class_loss {
    const char *call;
    tn_tensor *weight; /* [C], or NULL */
    reduction how;
    int64_t ignore_index;
    double smoothing;
} class_loss;

static tn_status check_classes(const class_loss *l, const tn_tensor *self,
                               const tn_tensor *target) {
    char text[2][TNI_SHAPE_TEXT];
    int32_t rank = self->view.rank, lead = rank > 1;
    if (tni_is_float(target->view.dtype) || target->view.dtype == TN_BOOL)
        return tni_fail(TN_DTYPE, "%s: targets must be integers that name classes, but are %s",
                        l->call, tn_dtype_name(target->view.dtype));
    bool fits = rank >= 1 && target->view.rank == rank - 1 &&
                (!lead || (self->sizes[0] == target->sizes[0] &&
                           memcmp(self->sizes + 2, target->sizes + 1,
                                  (size_t)(rank - 2) * sizeof *self->sizes) == 0));
    if (!fits)
        return tni_fail(TN_SHAPE,
                        "%s: input %s and target %s do not fit; input is [N, C, ...] and target "
                        "[N, ...], or [C] and a target of rank 0",
                        l->call, tni_shape_text(rank, self->sizes, text[0]),
                        tni_shape_text(target->view.rank, target->sizes, text[1]));
    if (l->weight && (l->weight->view.rank != 1 || l->weight->sizes[0] != self->sizes[lead]))
        return tni_fail(TN_SHAPE,
                        "%s: weight must have shape [%lld], one for each class, but has %s",
                        l->call, (long long)self->sizes[lead],
                        tni_shape_text(l->weight->view.rank, l->weight->sizes, text[0]));
    return TN_OK;
}

/* Each target's weight, in the shape of `classes` [N, 1, ...]. */
static tn_tensor *weights_of(const class_loss *l, tn_tensor *classes) {
    tn_tensor *flat = tni_flatten(classes, 0, -1);
    tn_tensor *w = tni_then(tni_index_select(l->weight, 0, flat), flat);
    return classes ? tni_then(tni_reshape(w, tn_ints_of(classes->sizes, classes->view.rank)), w)
                   : NULL;
}

/* Uniform smoothing over classes: (1 - s) * picked + s / C * sum of weighted logs; consumes picked.
 */
static tn_tensor *smoothed(const class_loss *l, tn_tensor *logs, tn_tensor *picked, int32_t dim) {
    tn_tensor *all = tni_keep(logs);
    if (l->weight) {
        int64_t shape[TN_MAX_RANK];
        for (int32_t d = 0; d < logs->view.rank; d++)
            shape[d] = d == dim ? logs->sizes[dim] : 1;
        tn_tensor *w = tni_reshape(l->weight, tn_ints_of(shape, logs->view.rank));
        all = tni_then2(tni_mul(logs, w), all, w);
    }
    all = tni_then(tni_sum_dim(all, TN_SHAPE(dim), true, TN_DTYPE_NONE), all);
    picked = tni_then(tni_mul_scalar(picked, tn_float(1 - l->smoothing)), picked);
    double share = l->smoothing / (double)logs->sizes[dim];
    return tni_then2(tni_add(picked, all, tn_float(share)), picked, all);
}

/* logs [N, C, ...] or [C] of checked shapes, target [N, ...]. Ignored targets pick class 0 and are
 * masked afterwards, so that neither their index nor an infinite log of theirs matters. */
static tn_status class_losses(const class_loss *l, tn_tensor *logs, tn_tensor *target,
                              tn_cell *rets) {
    if (!logs)
        return tni_failed();
    int32_t dim = logs->view.rank > 1;
    tn_tensor *classes = tni_unsqueeze(target, dim);
    tn_tensor *valid = tni_ne_scalar(classes, tn_int(l->ignore_index));
    classes = tni_then(tni_mul(classes, valid), classes);
    tn_tensor *picked = tni_gather(logs, dim, classes);
    tn_tensor *w = NULL, *zero = tni_zero_of(logs);
    if (l->weight) {
        w = weights_of(l, classes);
        picked = tni_then(tni_mul(picked, w), picked);
    }
    if (l->smoothing != 0)
        picked = smoothed(l, logs, picked, dim);
    picked = tni_then(tni_where(valid, picked, zero), picked);

    /* halves are added up in f32, where the sum and the number of targets fit */
    tn_dtype dtype = tni_is_half(logs->view.dtype) ? TN_F32 : logs->view.dtype;
    tn_tensor *out;
    if (l->how == REDUCE_NONE)
        out = tni_then(tni_squeeze_dim(picked, dim), picked);
    else
        out = tni_then(tni_sum(picked, dtype), picked);
    if (l->how == REDUCE_MEAN) {
        tn_tensor *counted = w ? tni_where(valid, w, zero) : tni_keep_opt(valid);
        tn_tensor *n = tni_sum(counted, dtype);
        tni_drop(counted);
        out = tni_then2(tni_div(out, n), out, n);
    }
    tni_drop(zero);
    tni_drop(w);
    tni_drop(valid);
    tni_drop(classes);
    out = tni_then(tni_neg(out), out);
    return tni_return(rets, tni_as_dtype(out, logs->view.dtype));
}

/* nll_loss(self, target, weight, reduction, ignore_index) */
tn_status tni_run_nll_loss(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *target = tni_arg_tensor(&args[1]);
    class_loss l = {.call = "tn_nll_loss",
                    .weight = tni_arg_tensor(&args[2]),
                    .how = reduction_of(&args[3]),
                    .ignore_index = args[4].v.i64};
    tn_status status = check_classes(&l, self, target);
    return status == TN_OK ? class_losses(&l, self, target, rets) : status;
}

/* Targets that are probabilities of the classes, in the shape of the logits. */
static tn_status probability_losses(const class_loss *l, tn_tensor *self, tn_tensor *target,
                                    tn_cell *rets) {
    int32_t rank = self->view.rank, dim = rank > 1;
    int64_t n_classes = self->sizes[dim];
    tn_tensor *logs = tni_log_softmax(self, dim, TN_DTYPE_NONE), *p = tni_keep(target);
    if (l->smoothing != 0) {
        p = tni_then(tni_mul_scalar(p, tn_float(1 - l->smoothing)), p);
        double share = l->smoothing / (double)n_classes;
        p = tni_then(tni_add_scalar(p, tn_float(share), tn_int(1)), p);
    }
    tn_tensor *x = tni_then2(tni_mul(logs, p), logs, p);
    if (l->weight) {
        int64_t shape[TN_MAX_RANK];
        for (int32_t d = 0; d < rank; d++)
            shape[d] = d == dim ? n_classes : 1;
        tn_tensor *w = tni_reshape(l->weight, tn_ints_of(shape, rank));
        x = tni_then2(tni_mul(x, w), x, w);
    }
    if (l->how == REDUCE_NONE)
        x = tni_then(tni_sum_dim(x, TN_SHAPE(dim), false, TN_DTYPE_NONE), x);
    else
        x = tni_then(tni_sum(x, TN_DTYPE_NONE), x);
    if (l->how == REDUCE_MEAN)
        x = tni_then(tni_div_scalar(x, tn_float((double)self->view.numel / (double)n_classes)), x);
    return tni_return(rets, tni_then(tni_neg(x), x));
}

static bool same_shape(const tn_tensor *a, const tn_tensor *b) {
    return a->view.rank == b->view.rank &&
           memcmp(a->sizes, b->sizes, (size_t)a->view.rank * sizeof *a->sizes) == 0;
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
        return tni_fail(TN_INVALID_ARGUMENT,
                        "tn_cross_entropy: label_smoothing is %g; it must lie in [0, 1]",
                        l.smoothing);
    if (tni_is_float(target->view.dtype) && self->view.rank > 0 && same_shape(self, target))
        return probability_losses(&l, self, target, rets);
    tn_status status = check_classes(&l, self, target);
    if (status != TN_OK)
        return status;
    tn_tensor *logs = tni_log_softmax(self, self->view.rank > 1, TN_DTYPE_NONE);
    status = class_losses(&l, logs, target, rets);
    tni_drop(logs);
    return status;
}

/* ---- differences ------------------------------------------------------------------------ */

/* mse_loss(self, target, reduction) */
tn_status tni_run_mse_loss(const tn_cell *args, tn_cell *rets) {
    tn_tensor *d = tni_sub(tni_arg_tensor(&args[0]), tni_arg_tensor(&args[1]), tn_int(1));
    return tni_return(rets, reduced(tni_then(tni_mul(d, d), d), reduction_of(&args[2])));
}

/* binary_cross_entropy_with_logits(self = x, target = t, reduction):
 * max(x, 0) - x * t + log(1 + exp(-|x|)). max and |x| are written with `where` on one condition, so
 * that their derivatives at 0 add up to the 1/2 - t that is right there. */
tn_status tni_run_bce_with_logits(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = tni_arg_tensor(&args[0]), *target = tni_arg_tensor(&args[1]);
    const char *call = "tn_binary_cross_entropy_with_logits";
    if (!same_shape(x, target)) {
        char text[2][TNI_SHAPE_TEXT];
        return tni_fail(TN_SHAPE, "%s: target has shape %s, but must have that of the input, %s",
                        call, tni_shape_text(target->view.rank, target->sizes, text[0]),
                        tni_shape_text(x->view.rank, x->sizes, text[1]));
    }
    if (!tni_is_float(x->view.dtype))
        return tni_fail(TN_DTYPE, "%s: not defined for %s; cast with tn_to_dtype", call,
                        tn_dtype_name(x->view.dtype));
    tn_tensor *negative = tni_lt_scalar(x, tn_int(0)), *zero = tni_zero_of(x), *minus = tni_neg(x);
    tn_tensor *loss = tni_where(negative, zero, x);                              /* max(x, 0) */
    tn_tensor *tail = tni_then2(tni_where(negative, x, minus), negative, minus); /* -|x| */
    tni_drop(zero);
    tail = tni_then(tni_exp(tail), tail);
    tail = tni_then(tni_log1p(tail), tail);
    tn_tensor *product = tni_mul(x, target);
    loss = tni_then2(tni_sub(loss, product, tn_int(1)), loss, product);
    loss = tni_then2(tni_add(loss, tail, tn_int(1)), loss, tail);
    return tni_return(rets, reduced(loss, reduction_of(&args[2])));
}
