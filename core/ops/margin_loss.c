/* Losses of pairs and of margins: how far apart what belongs apart is, and what belongs
 * together. All of them are other operators, and autograd looks through them. */
#include "core/call/promote.h"
#include "core/ops/functions.h"
#include "core/ops/halves.h"
#include "core/ops/scatter.h"

#include <math.h>
#include <string.h>

/* The first `n` arguments, tensors, in the floating dtype that they promote to. False with an
 * error. */
static bool take_floats(tni_temps *tmp, const tn_cell *args, int n, tn_tensor **out) {
    tn_dtype dtype = tni_common_float(args, (1u << n) - 1);
    bool is_well = true;
    for (int i = 0; i < n; i++) {
        out[i] = tni_as_dtype(tmp, tni_arg_tensor(&args[i]), dtype);
        is_well &= out[i] != NULL;
    }
    return is_well;
}

/* reduction as the word says, and the end of the call. */
static tn_status finish(tni_temps *tmp, tn_tensor *loss, const tn_cell *how, tn_cell *rets) {
    return tni_temps_return(tmp, tni_own(tmp, tni_reduced(loss, how->v.string)), rets);
}

static tn_status check_ranks(const char *call, const char *names, const tn_cell *args) {
    const tn_tensor *t[3];
    char text[3][TNI_SHAPE_TEXT];
    for (int i = 0; i < 3; i++) {
        t[i] = tni_arg_tensor(&args[i]);
        tni_shape_text(t[i]->view.rank, t[i]->sizes, text[i]);
    }
    if (t[0]->view.rank == t[1]->view.rank && t[0]->view.rank == t[2]->view.rank)
        return TN_OK;
    return tni_fail(TN_ERR_SHAPE, "%s: %s must have one rank, but have shapes %s, %s and %s", call,
                    names, text[0], text[1], text[2]);
}

/* ---- pairs ------------------------------------------------------------------------------- */

/* cosine_similarity(x1, x2, dim, eps): the product of both over their lengths, eps at least */
tn_status tni_run_cosine_similarity(const tn_cell *args, tn_cell *rets) {
    const tn_tensor *x1 = tni_arg_tensor(&args[0]), *x2 = tni_arg_tensor(&args[1]);
    int32_t rank;
    int64_t sizes[TN_MAX_RANK];
    if (!tni_broadcast(x1->view.rank, x1->sizes, x2->view.rank, x2->sizes, &rank, sizes))
        return tni_fail(TN_ERR_SHAPE, "tn_cosine_similarity: shapes %s and %s do not broadcast",
                        TNI_SHAPE_OF(x1), TNI_SHAPE_OF(x2));
    int32_t at = tni_wrap_dim(args[2].v.i64, rank, "tn_cosine_similarity: dim");
    if (at < 0)
        return tni_failed();
    tni_temps tmp = {0};
    tn_tensor *x[2];
    if (!take_floats(&tmp, args, 2, x))
        return tni_temps_return(&tmp, NULL, rets);
    tn_ints dim = TN_SHAPE(at);
    for (int i = 0; i < 2; i++) {
        x[i] = tni_own(&tmp, tni_expand(x[i], tn_ints_of(sizes, rank)));
        tn_tensor *length = tni_own(&tmp, tni_norm_scalaropt_dim(x[i], tn_int(2), dim, true));
        length = tni_own(&tmp, tni_clamp_min(length, args[3]));
        x[i] = tni_own(&tmp, tni_div(x[i], length));
    }
    tn_tensor *product = tni_own(&tmp, tni_mul(x[0], x[1]));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_sum_dim(product, dim, false, TN_DTYPE_NONE)),
                            rets);
}

/* cosine_embedding_loss(input1, input2, target, margin, reduction) */
tn_status tni_run_cosine_embedding_loss(const tn_cell *args, tn_cell *rets) {
    static const double epsilon = 1e-12; /* on the squares, so that no root is taken of 0 */
    const tn_tensor *input1 = tni_arg_tensor(&args[0]), *input2 = tni_arg_tensor(&args[1]);
    const tn_tensor *given = tni_arg_tensor(&args[2]);
    int32_t at = given->view.rank;
    if (at > 1 || input1->view.rank != at + 1 || input2->view.rank != at + 1)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_cosine_embedding_loss: inputs must be [N, features] beside a target "
                        "[N], or [features] beside one of rank 0, but have shapes %s and %s beside "
                        "%s",
                        TNI_SHAPE_OF(input1), TNI_SHAPE_OF(input2),
                        TNI_SHAPE_OF_SIZES(at, given->sizes));
    tni_temps tmp = {0};
    tn_tensor *x[2], *target = tni_arg_tensor(&args[2]);
    if (!take_floats(&tmp, args, 2, x))
        return tni_temps_return(&tmp, NULL, rets);
    tn_dtype dtype = x[0]->view.dtype; /* of the inputs alone: the target is but compared */
    tn_ints dim = TN_SHAPE(at);
    tn_tensor *length[2];
    for (int i = 0; i < 2; i++) {
        x[i] = tni_widened(&tmp, x[i]);
        tn_tensor *square = tni_own(&tmp, tni_mul(x[i], x[i]));
        square = tni_own(&tmp, tni_sum_dim(square, dim, false, TN_DTYPE_NONE));
        length[i] = tni_own(&tmp, tni_add_scalar(square, tn_float(epsilon), tn_int(1)));
    }
    tn_tensor *cosine = tni_own(&tmp, tni_mul(x[0], x[1]));
    cosine = tni_own(&tmp, tni_sum_dim(cosine, dim, false, TN_DTYPE_NONE));
    tn_tensor *lengths = tni_own(&tmp, tni_mul(length[0], length[1]));
    cosine = tni_own(&tmp, tni_div(cosine, tni_own(&tmp, tni_sqrt(lengths))));
    tn_tensor *near = tni_own(&tmp, tni_rsub_scalar(cosine, tn_int(1), tn_int(1)));
    tn_tensor *far = tni_own(&tmp, tni_sub_scalar(cosine, args[3], tn_int(1)));
    far = tni_own(&tmp, tni_clamp_min(far, tn_int(0)));
    tn_tensor *same = tni_own(&tmp, tni_eq_scalar(target, tn_int(1)));
    tn_tensor *other = tni_own(&tmp, tni_eq_scalar(target, tn_int(-1)));
    far = tni_own(&tmp, tni_where_scalarother(other, far, tn_int(0)));
    tn_tensor *loss = tni_own(&tmp, tni_where(same, near, far));
    loss = tni_own(&tmp, tni_reduced(loss, args[4].v.string));
    return tni_temps_return(&tmp, tni_as_dtype(&tmp, loss, dtype), rets);
}

/* margin_ranking_loss(input1, input2, target, margin, reduction) */
tn_status tni_run_margin_ranking_loss(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *x[3];
    if (check_ranks("tn_margin_ranking_loss", "input1, input2 and target", args) != TN_OK ||
        !take_floats(&tmp, args, 3, x))
        return tni_temps_return(&tmp, NULL, rets);
    tn_tensor *loss = tni_own(&tmp, tni_sub(x[0], x[1], tn_int(1)));
    loss = tni_then(&tmp, tni_mul(x[2], loss), loss);
    loss = tni_then(&tmp, tni_rsub_scalar(loss, args[3], tn_int(1)), loss);
    loss = tni_then(&tmp, tni_clamp_min(loss, tn_int(0)), loss);
    return finish(&tmp, loss, &args[4], rets);
}

/* triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction) */
tn_status tni_run_triplet_margin_loss(const tn_cell *args, tn_cell *rets) {
    const char *call = "tn_triplet_margin_loss";
    double margin = args[3].v.f64, p = args[4].v.f64, eps = args[5].v.f64;
    if (!(margin > 0))
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: margin is %g; it must be above 0", call,
                        margin);
    tni_temps tmp = {0};
    tn_tensor *x[3];
    if (check_ranks(call, "anchor, positive and negative", args) != TN_OK ||
        !take_floats(&tmp, args, 3, x))
        return tni_temps_return(&tmp, NULL, rets);
    tn_tensor *near = tni_own(&tmp, tni_pairwise_distance(x[0], x[1], p, eps, false));
    tn_tensor *far = tni_own(&tmp, tni_pairwise_distance(x[0], x[2], p, eps, false));
    if (args[6].v.boolean) {
        tn_tensor *other = tni_own(&tmp, tni_pairwise_distance(x[1], x[2], p, eps, false));
        far = tni_own(&tmp, tni_minimum(far, other));
    }
    tn_tensor *loss = tni_own(&tmp, tni_sub(near, far, tn_int(1)));
    loss = tni_then(&tmp, tni_add_scalar(loss, tn_float(margin), tn_int(1)), loss);
    loss = tni_then(&tmp, tni_clamp_min(loss, tn_int(0)), loss);
    return finish(&tmp, loss, &args[7], rets);
}

/* ---- classes ----------------------------------------------------------------------------- */

/* self as [N, C] and target as i64 [N] or, with `many`, [N, C]; both may lack N. */
static bool take_classes(tni_temps *tmp, const char *call, const tn_cell *args, bool many,
                         tn_tensor **self, tn_tensor **target) {
    const tn_tensor *x = tni_arg_tensor(&args[0]), *t = tni_arg_tensor(&args[1]);
    int32_t rank = x->view.rank;
    int64_t n = rank == 2 ? x->sizes[0] : 1, classes = rank > 0 ? x->sizes[rank - 1] : 1;
    bool fits = rank <= 2 && classes > 0;
    if (many)
        fits = fits &&
               (tni_same_shape(x, t) || (rank < 2 && t->view.rank < 2 && t->view.numel == classes));
    else
        fits = fits && t->view.numel == n && (t->view.rank == 1 || (rank < 2 && t->view.rank == 0));
    if (!fits) {
        tni_fail(TN_ERR_SHAPE,
                 "%s: input %s and target %s do not fit; input is [N, C] and target [N%s], or "
                 "input [C] and target %s, with a class at least",
                 call, TNI_SHAPE_OF_SIZES(rank, x->sizes), TNI_SHAPE_OF(t), many ? ", C" : "",
                 many ? "[C]" : "of rank 0");
        return false;
    }
    *target = tni_whole_index(tmp, tni_arg_tensor(&args[1]), call, "target");
    if (!*target || !take_floats(tmp, args, 1, self))
        return false;
    *self = tni_own(tmp, tni_reshape(*self, TN_SHAPE(n, classes)));
    *target = tni_own(tmp, tni_reshape(*target, TN_SHAPE(n, many ? classes : 1)));
    return *self && *target;
}

/* Losses [N] in the shape that belongs to the input. */
static tn_tensor *as_given(tni_temps *tmp, tn_tensor *losses, bool is_single) {
    return is_single ? tni_own(tmp, tni_reshape(losses, TN_SCALAR_SHAPE)) : losses;
}

/* multi_margin_loss(self, target, p, margin, weight, reduction): the mean over classes of
 * max(0, margin - self[target] + self[class])^p, without the target's own */
tn_status tni_run_multi_margin_loss(const tn_cell *args, tn_cell *rets) {
    const char *call = "tn_multi_margin_loss";
    tn_tensor *weight = tni_arg_tensor(&args[4]), *self, *target;
    double p = tni_scalar_f64(args[2]);
    if (p != 1 && p != 2)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: p is %g; it must be 1 or 2", call, p);
    tni_temps tmp = {0};
    if (!take_classes(&tmp, call, args, false, &self, &target))
        return tni_temps_return(&tmp, NULL, rets);
    int64_t classes = self->sizes[1];
    if (weight && (weight->view.rank != 1 || weight->sizes[0] != classes)) {
        tni_fail(TN_ERR_SHAPE, "%s: weight must have shape [%lld], one for each class, but has %s",
                 call, (long long)classes, TNI_SHAPE_OF(weight));
        return tni_temps_return(&tmp, NULL, rets);
    }
    tn_tensor *own = tni_own(&tmp, tni_gather(self, 1, target));
    tn_tensor *loss = tni_own(&tmp, tni_sub(self, own, tn_int(1)));
    loss = tni_then(&tmp, tni_add_scalar(loss, args[3], tn_int(1)), loss);
    loss = tni_then(&tmp, tni_clamp_min(loss, tn_int(0)), loss);
    if (p == 2)
        loss = tni_own(&tmp, tni_mul(loss, loss));
    if (weight) {
        tn_tensor *flat = tni_own(&tmp, tni_reshape(target, TN_SHAPE(-1)));
        tn_tensor *w = tni_own(&tmp, tni_index_select(weight, 0, flat));
        loss = tni_own(&tmp, tni_mul(loss, tni_own(&tmp, tni_unsqueeze(w, 1))));
    }
    tn_tensor *names = tni_own(&tmp, tni_arange(tn_int(classes), TN_I64, self->device->id));
    tn_tensor *other = tni_own(&tmp, tni_ne(names, target));
    loss = tni_own(&tmp, tni_where_scalarother(other, loss, tn_int(0)));
    loss = tni_own(&tmp, tni_mean_dim(loss, TN_SHAPE(1), false, TN_DTYPE_NONE));
    return finish(&tmp, as_given(&tmp, loss, tni_arg_tensor(&args[1])->view.rank == 0), &args[5],
                  rets);
}

/* multilabel_margin_loss(self, target, reduction): target names classes, up to the first -1; the
 * sum over them, and over all others, of max(0, 1 - self[named] + self[other]), over the number
 * of classes */
tn_status tni_run_multilabel_margin_loss(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self, *target;
    tni_temps tmp = {0};
    if (!take_classes(&tmp, "tn_multilabel_margin_loss", args, true, &self, &target))
        return tni_temps_return(&tmp, NULL, rets);
    double classes = (double)self->sizes[1];
    tn_tensor *ends = tni_own(&tmp, tni_eq_scalar(target, tn_int(-1)));
    ends = tni_own(&tmp, tni_cumsum(ends, 1, TN_I64));
    tn_tensor *counts = tni_own(&tmp, tni_eq_scalar(ends, tn_int(0)));
    tn_tensor *named = tni_own(&tmp, tni_where_scalarother(counts, target, tn_int(0)));
    tn_tensor *zeros = tni_own(&tmp, tni_zeros_like(target, TN_DTYPE_NONE, tn_no_device()));
    tn_tensor *times = counts ? tni_own(&tmp, tni_to_dtype(counts, TN_I64)) : NULL;
    times = tni_own(&tmp, tni_scatter_add(zeros, 1, named, times));
    tn_tensor *other = tni_own(&tmp, tni_eq_scalar(times, tn_int(0)));
    tn_tensor *own = tni_own(&tmp, tni_gather(self, 1, named));
    own = tni_own(&tmp, tni_unsqueeze(own, 2)); /* [N, named, 1] */
    tn_tensor *loss = tni_own(&tmp, tni_unsqueeze(self, 1));
    loss = tni_own(&tmp, tni_sub(loss, own, tn_int(1)));
    loss = tni_then(&tmp, tni_add_scalar(loss, tn_int(1), tn_int(1)), loss);
    loss = tni_then(&tmp, tni_clamp_min(loss, tn_int(0)), loss);
    tn_tensor *pairs = tni_own(&tmp, tni_bitwise_and(tni_own(&tmp, tni_unsqueeze(counts, 2)),
                                                     tni_own(&tmp, tni_unsqueeze(other, 1))));
    loss = tni_then(&tmp, tni_where_scalarother(pairs, loss, tn_int(0)), loss);
    loss = tni_then(&tmp, tni_sum_dim(loss, TN_SHAPE(1, 2), false, TN_DTYPE_NONE), loss);
    loss = tni_then(&tmp, tni_div_scalar(loss, tn_float(classes)), loss);
    return finish(&tmp, as_given(&tmp, loss, tni_arg_tensor(&args[0])->view.rank < 2), &args[2],
                  rets);
}

/* ---- a normal distribution --------------------------------------------------------------- */

/* gaussian_nll_loss(input, target, var, full, eps, reduction). var is eps at least; its gradient
 * goes through to all of it, as in PyTorch. */
tn_status tni_run_gaussian_nll_loss(const tn_cell *args, tn_cell *rets) {
    const tn_tensor *input = tni_arg_tensor(&args[0]), *given = tni_arg_tensor(&args[2]);
    double eps = args[4].v.f64;
    int32_t rank = input->view.rank, differ = 0;
    bool lacks_last = given->view.rank == rank - 1;
    for (int32_t d = 0; d < rank && given->view.rank == rank; d++)
        differ += input->sizes[d] == given->sizes[d] ? 0 : given->sizes[d] == 1 ? 1 : 2;
    for (int32_t d = 0; d < rank - 1 && lacks_last; d++)
        lacks_last = input->sizes[d] == given->sizes[d];
    if (!lacks_last && (given->view.rank != rank || differ > 1) && given->view.rank != 0)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_gaussian_nll_loss: var has shape %s; it must have that of input, %s, "
                        "with one size 1 or without the last, or be of rank 0",
                        TNI_SHAPE_OF(given), TNI_SHAPE_OF_SIZES(rank, input->sizes));
    tni_temps tmp = {0};
    tn_tensor *x[3];
    if (!take_floats(&tmp, args, 3, x))
        return tni_temps_return(&tmp, NULL, rets);
    tn_tensor *var = lacks_last ? tni_own(&tmp, tni_unsqueeze(x[2], -1)) : x[2];
    tn_tensor *low = tni_own(&tmp, tni_lt_scalar(var, tn_float(eps)));
    tn_tensor *least = tni_own(&tmp, tni_sub(var, tni_own(&tmp, tni_detach(var)), tn_int(1)));
    least = tni_own(&tmp, tni_add_scalar(least, tn_float(eps), tn_int(1)));
    var = tni_own(&tmp, tni_where(low, least, var));
    tn_tensor *loss = tni_own(&tmp, tni_sub(x[0], x[1], tn_int(1)));
    loss = tni_own(&tmp, tni_mul(loss, loss));
    loss = tni_then(&tmp, tni_div(loss, var), loss);
    loss = tni_then(&tmp, tni_add(loss, tni_own(&tmp, tni_log(var)), tn_int(1)), loss);
    loss = tni_then(&tmp, tni_mul_scalar(loss, tn_float(0.5)), loss);
    if (args[3].v.boolean)
        loss = tni_then(
            &tmp, tni_add_scalar(loss, tn_float(0.5 * log(6.283185307179586)), tn_int(1)), loss);
    return finish(&tmp, loss, &args[5], rets);
}
