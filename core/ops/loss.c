/* Losses, as compositions. */
#include "core/ops/boxed.h"

#include <string.h>

typedef enum reduction { NONE, MEAN, SUM, UNKNOWN } reduction;

static reduction read_reduction(const char *call, const tn_cell *cell) {
    const char *text = cell->v.string;
    if (strcmp(text, "mean") == 0)
        return MEAN;
    if (strcmp(text, "sum") == 0)
        return SUM;
    if (strcmp(text, "none") == 0)
        return NONE;
    tni_fail(TN_INVALID_ARGUMENT, "%s: reduction is '%s'; it must be 'mean', 'sum' or 'none'", call,
             text);
    return UNKNOWN;
}

static tn_tensor *reduced(tni_temps *list, tn_tensor *loss, reduction how) {
    return how == MEAN  ? tni_own(list, tni_mean(loss, TN_DTYPE_NONE))
           : how == SUM ? tni_own(list, tni_sum(loss, TN_DTYPE_NONE))
                        : loss;
}

/* Checks logits [N, C] and classes [N]. */
static tn_status check_classes(const char *call, const tn_tensor *self, const tn_tensor *target,
                               const tn_tensor *weight) {
    char a[TNI_SHAPE_TEXT], b[TNI_SHAPE_TEXT];
    if (self->view.rank != 2 || target->view.rank != 1 || target->sizes[0] != self->sizes[0])
        return tni_fail(TN_SHAPE, "%s: self %s and target %s must be [N, C] and [N]", call,
                        tni_shape_text(self->view.rank, self->sizes, a),
                        tni_shape_text(target->view.rank, target->sizes, b));
    if (target->view.dtype != TN_I64)
        return tni_fail(TN_DTYPE, "%s: target holds class indices and must be i64, but is %s", call,
                        tn_dtype_name(target->view.dtype));
    if (weight != TN_NONE && (weight->view.rank != 1 || weight->sizes[0] != self->sizes[1]))
        return tni_fail(TN_SHAPE, "%s: weight must be [%lld], one for each class", call,
                        (long long)self->sizes[1]);
    return TN_OK;
}

/* nll_loss(self [N, C], target [N], weight [C], reduction, ignore_index) */
BOXED(run_nll_loss) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *target = tni_arg_tensor(&args[1]);
    tn_tensor *weight = tni_arg_some(&args[2]);
    int64_t ignored = args[4].v.i64;
    reduction how = read_reduction("tn_nll_loss", &args[3]);
    if (how == UNKNOWN || check_classes("tn_nll_loss", self, target, weight) != TN_OK)
        return tni_failed();
    tni_temps temps = {0};
    tn_tensor *counts = OWN(tni_ne_scalar(target, tn_int(ignored))); /* [N] bool */
    tn_tensor *safe = OWN(tni_where(counts, target, OWN(tni_zero_of(target))));
    tn_tensor *column = OWN(tni_unsqueeze(safe, 1));
    tn_tensor *picked = OWN(tni_squeeze_dim(OWN(tni_gather(self, 1, column)), 1)); /* [N] */
    tn_tensor *factor = OWN(tni_to_dtype(counts, self->view.dtype));
    if (weight != TN_NONE)
        factor = OWN(tni_mul(factor, OWN(tni_index_select(weight, 0, safe))));
    /* where, not a product: what is ignored may be infinite */
    tn_tensor *kept = OWN(tni_where(counts, picked, OWN(tni_zero_of(picked))));
    tn_tensor *loss = OWN(tni_neg(OWN(tni_mul(kept, factor))));
    if (how == MEAN)
        loss = OWN(tni_div(OWN(tni_sum(loss, TN_DTYPE_NONE)), OWN(tni_sum(factor, TN_DTYPE_NONE))));
    else if (how == SUM)
        loss = OWN(tni_sum(loss, TN_DTYPE_NONE));
    RETURN(loss);
}

/* cross_entropy(self, target, weight, reduction, ignore_index, label_smoothing). With smoothing s
 * the target is 1 - s of its class and s / C of every class (Szegedy et al., 2016). */
BOXED(run_cross_entropy) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *target = tni_arg_tensor(&args[1]);
    tn_tensor *weight = tni_arg_some(&args[2]);
    double smoothing = args[5].v.f64;
    reduction how = read_reduction("tn_cross_entropy", &args[3]);
    if (how == UNKNOWN || check_classes("tn_cross_entropy", self, target, weight) != TN_OK)
        return tni_failed();
    if (!(smoothing >= 0 && smoothing <= 1))
        return tni_fail(TN_INVALID_ARGUMENT,
                        "tn_cross_entropy: label_smoothing is %g; it must lie "
                        "in [0, 1]",
                        smoothing);
    tni_temps temps = {0};
    tn_tensor *logs = OWN(tni_log_softmax(self, 1, TN_DTYPE_NONE));
    tn_tensor *hard = OWN(tni_nll_loss(logs, target, weight, args[3].v.string, args[4].v.i64));
    if (smoothing == 0)
        RETURN(hard);
    tn_tensor *counts = OWN(tni_ne_scalar(target, tn_int(args[4].v.i64)));
    tn_tensor *weighted = weight == TN_NONE ? logs : OWN(tni_mul(logs, weight));
    tn_tensor *all = OWN(tni_neg(OWN(tni_sum_dim(weighted, TN_SHAPE(1), false, TN_DTYPE_NONE))));
    all = OWN(tni_where(counts, all, OWN(tni_zero_of(all))));
    if (how == MEAN) {
        tn_tensor *factor = OWN(tni_to_dtype(counts, self->view.dtype));
        if (weight != TN_NONE) {
            tn_tensor *safe = OWN(tni_where(counts, target, OWN(tni_zero_of(target))));
            factor = OWN(tni_mul(factor, OWN(tni_index_select(weight, 0, safe))));
        }
        all = OWN(tni_div(OWN(tni_sum(all, TN_DTYPE_NONE)), OWN(tni_sum(factor, TN_DTYPE_NONE))));
    } else {
        all = reduced(&temps, all, how);
    }
    tn_tensor *soft = OWN(tni_mul_scalar(all, tn_float(smoothing / (double)self->sizes[1])));
    RETURN(OWN(tni_add(OWN(tni_mul_scalar(hard, tn_float(1 - smoothing))), soft, tn_int(1))));
}

BOXED(run_mse_loss) {
    reduction how = read_reduction("tn_mse_loss", &args[2]);
    if (how == UNKNOWN)
        return tni_failed();
    tni_temps temps = {0};
    tn_tensor *distance =
        OWN(tni_sub(tni_arg_tensor(&args[0]), tni_arg_tensor(&args[1]), tn_int(1)));
    RETURN(reduced(&temps, OWN(tni_mul(distance, distance)), how));
}

/* max(x, 0) - x t + log(1 + exp(-|x|)) */
BOXED(run_bce_with_logits) {
    tn_tensor *x = tni_arg_tensor(&args[0]), *target = tni_arg_tensor(&args[1]);
    reduction how = read_reduction("tn_binary_cross_entropy_with_logits", &args[2]);
    if (how == UNKNOWN)
        return tni_failed();
    tni_temps temps = {0};
    tn_tensor *positive = OWN(tni_relu(x));
    tn_tensor *product = OWN(tni_mul(x, target));
    tn_tensor *tail = OWN(tni_log1p(OWN(tni_exp(OWN(tni_neg(OWN(tni_abs(x))))))));
    tn_tensor *loss = OWN(tni_add(OWN(tni_sub(positive, product, tn_int(1))), tail, tn_int(1)));
    RETURN(reduced(&temps, loss, how));
}
