/* Sampling planes at the places of a grid. */
#include "core/ops/functions.h"

typedef enum mode { BILINEAR, NEAREST, BICUBIC, N_MODES } mode;
typedef enum padding { ZEROS, BORDER, REFLECTION, N_PADDINGS } padding;

/* One of the two dimensions of a plane. */
typedef struct axis {
    int64_t size;
    padding padding;
    bool align_corners;
    /* of each point [N, 1, points]: which elements it is made of, whether they are there, and
     * how much of each */
    int32_t n_taps;
    tn_tensor *place[4], *is_inside[4], *weight[4];
} axis;

/* ---- places ------------------------------------------------------------------------------ */

/* a * x + b */
static tn_tensor *scaled_and_moved(tni_temps *tmp, tn_tensor *x, double a, double b) {
    x = tni_own(tmp, tni_mul_scalar(x, tn_float(a)));
    return tni_own(tmp, tni_add_scalar(x, tn_float(b), tn_int(1)));
}

/* x within [0, size - 1], NaN at 0. The ends have no gradient. */
static tn_tensor *clipped(tni_temps *tmp, const axis *along, tn_tensor *x) {
    double last = (double)(along->size - 1);
    tn_tensor *is_above = tni_own(tmp, tni_gt_scalar(x, tn_int(0)));
    x = tni_own(tmp, tni_where_scalarother(is_above, x, tn_float(0)));
    tn_tensor *is_below = tni_own(tmp, tni_lt_scalar(x, tn_float(last)));
    return tni_own(tmp, tni_where_scalarother(is_below, x, tn_float(last)));
}

/* x mirrored at both ends, as often as it takes: at the middles of the outer elements with
 * align_corners, else at their edges. */
static tn_tensor *mirrored(tni_temps *tmp, const axis *along, tn_tensor *x) {
    double low = along->align_corners ? 0 : -0.5;
    double span = (double)(along->align_corners ? along->size - 1 : along->size);
    if (span == 0)
        return tni_own(tmp, tni_zeros_like(x, TN_DTYPE_NONE, tn_no_device()));
    x = tni_own(tmp, tni_add_scalar(x, tn_float(-low), tn_int(1)));
    tn_tensor *is_before = tni_own(tmp, tni_lt_scalar(x, tn_int(0)));
    x = tni_own(tmp, tni_where(is_before, tni_own(tmp, tni_neg(x)), x));
    x = tni_own(tmp, tni_remainder_scalar(x, tn_float(2 * span)));
    tn_tensor *is_there = tni_own(tmp, tni_lt_scalar(x, tn_float(span)));
    tn_tensor *back = tni_own(tmp, tni_rsub_scalar(x, tn_float(2 * span), tn_int(1)));
    x = tni_own(tmp, tni_where(is_there, x, back));
    return tni_own(tmp, tni_add_scalar(x, tn_float(low), tn_int(1)));
}

static tn_tensor *padded(tni_temps *tmp, const axis *along, tn_tensor *x) {
    if (along->padding == REFLECTION)
        x = mirrored(tmp, along, x);
    return along->padding == ZEROS ? x : clipped(tmp, along, x);
}

/* The element at x, of whole numbers; index 0 where there is none. */
static void set_tap(tni_temps *tmp, axis *along, tn_tensor *x, tn_tensor *weight) {
    int32_t i = along->n_taps++;
    tn_tensor *is_from = tni_own(tmp, tni_ge_scalar(x, tn_int(0)));
    tn_tensor *is_to = tni_own(tmp, tni_lt_scalar(x, tn_float((double)along->size)));
    along->is_inside[i] = tni_own(tmp, tni_bitwise_and(is_from, is_to));
    x = tni_own(tmp, tni_where_scalarother(along->is_inside[i], x, tn_int(0)));
    along->place[i] = tni_own(tmp, tni_to_dtype(x, TN_I64));
    along->weight[i] = weight;
}

/* ((a x + b) x + c) x + d */
static tn_tensor *polynomial(tni_temps *tmp, tn_tensor *x, double a, double b, double c, double d) {
    tn_tensor *sum = scaled_and_moved(tmp, x, a, b);
    sum = tni_own(tmp, tni_mul(sum, x));
    sum = tni_own(tmp, tni_add_scalar(sum, tn_float(c), tn_int(1)));
    sum = tni_own(tmp, tni_mul(sum, x));
    return tni_own(tmp, tni_add_scalar(sum, tn_float(d), tn_int(1)));
}

/* Keys' (1981) kernel with a = -0.75, as of upsample_bicubic2d. */
static void set_cubic(tni_temps *tmp, axis *along, tn_tensor *before, tn_tensor *t) {
    double a = -0.75;
    tn_tensor *rest = scaled_and_moved(tmp, t, -1, 1);
    for (int32_t i = 0; i < 4; i++) {
        tn_tensor *x = i < 2 ? t : rest;
        tn_tensor *weight;
        if (i == 1 || i == 2)
            weight = polynomial(tmp, x, a + 2, -(a + 3), 0, 1);
        else
            weight = polynomial(tmp, scaled_and_moved(tmp, x, 1, 1), a, -5 * a, 8 * a, -4 * a);
        tn_tensor *at = tni_own(tmp, tni_add_scalar(before, tn_int(i - 1), tn_int(1)));
        set_tap(tmp, along, padded(tmp, along, at), weight);
    }
}

/* The elements that each point's coordinate [N, 1, points] in [-1, 1] asks for. */
static void set_taps(tni_temps *tmp, axis *along, mode how, tn_tensor *x) {
    double half = (double)(along->align_corners ? along->size - 1 : along->size) / 2;
    x = tni_own(tmp, tni_add_scalar(x, tn_int(1), tn_int(1)));
    x = scaled_and_moved(tmp, x, half, along->align_corners ? 0 : -0.5);
    if (how != BICUBIC)
        x = padded(tmp, along, x);
    /* places are whole, and so have no gradient */
    tn_tensor *still = tni_own(tmp, x ? tni_detach(x) : NULL);
    if (how == NEAREST) {
        set_tap(tmp, along, tni_own(tmp, tni_round(still)), NULL);
        return;
    }
    tn_tensor *before = tni_own(tmp, tni_floor(still));
    tn_tensor *t = tni_own(tmp, tni_sub(x, before, tn_int(1)));
    if (how == BICUBIC) {
        set_cubic(tmp, along, before, t);
        return;
    }
    set_tap(tmp, along, before, scaled_and_moved(tmp, t, -1, 1));
    set_tap(tmp, along, tni_own(tmp, tni_add_scalar(before, tn_int(1), tn_int(1))), t);
}

/* ---- elements ---------------------------------------------------------------------------- */

/* The elements [N, C, points] of flat planes at tap i across and j down, 0 where there is none;
 * owned. */
static tn_tensor *picked(tn_tensor *flat, const axis axes[2], int32_t i, int32_t j, tn_ints sizes) {
    tni_temps tmp = {0};
    tn_tensor *is_inside =
        tni_own(&tmp, tni_bitwise_and(axes[0].is_inside[i], axes[1].is_inside[j]));
    tn_tensor *row = tni_own(&tmp, tni_mul_scalar(axes[1].place[j], tn_int(axes[0].size)));
    tn_tensor *index = tni_own(&tmp, tni_add(row, axes[0].place[i], tn_int(1)));
    index = tni_own(&tmp, tni_expand(index, sizes));
    tn_tensor *found = tni_own(&tmp, tni_gather(flat, 2, index));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_where_scalarother(is_inside, found, tn_int(0))));
}

/* sum + part * weight, owned, where it takes over sum (NULL: none yet) and part. */
static tn_tensor *with_part(tn_tensor *sum, tn_tensor *part, tn_tensor *weight) {
    tn_tensor *more = sum ? tni_addcmul(sum, part, weight, tn_int(1)) : tni_mul(part, weight);
    tni_drop(sum);
    tni_drop(part);
    return more;
}

/* All taps across, then all such rows down; owned. */
static tn_tensor *blended(tn_tensor *flat, const axis axes[2], tn_ints sizes) {
    tn_tensor *sum = NULL;
    for (int32_t j = 0; j < axes[1].n_taps; j++) {
        tn_tensor *row = NULL;
        for (int32_t i = 0; i < axes[0].n_taps; i++) {
            row = with_part(row, picked(flat, axes, i, j, sizes), axes[0].weight[i]);
            if (!row)
                break;
        }
        sum = row ? with_part(sum, row, axes[1].weight[j]) : (tni_drop(sum), NULL);
        if (!sum)
            break;
    }
    return sum;
}

static tn_status check(const tn_tensor *input, const tn_tensor *grid, const tn_cell *args) {
    if (input->view.rank != 4 || grid->view.rank != 4 || grid->sizes[3] != 2 ||
        grid->sizes[0] != input->sizes[0] || input->sizes[2] == 0 || input->sizes[3] == 0)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_grid_sampler_2d: input %s and grid %s do not fit; they are [N, C, H, "
                        "W] with H and W above 0, and [N, rows, columns, 2] with the same N",
                        TNI_SHAPE_OF(input), TNI_SHAPE_OF(grid));
    if (input->view.dtype != grid->view.dtype || !tni_is_float(input->view.dtype))
        return tni_fail(TN_ERR_DTYPE,
                        "tn_grid_sampler_2d: input is %s and grid is %s; they must be of one "
                        "floating dtype",
                        tn_dtype_name(input->view.dtype), tn_dtype_name(grid->view.dtype));
    if ((uint64_t)args[2].v.i64 >= N_MODES)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_grid_sampler_2d: interpolation_mode is %lld; it must be 0 (bilinear), "
                        "1 (nearest) or 2 (bicubic)",
                        (long long)args[2].v.i64);
    if ((uint64_t)args[3].v.i64 >= N_PADDINGS)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_grid_sampler_2d: padding_mode is %lld; it must be 0 (zeros), 1 "
                        "(border) or 2 (reflection)",
                        (long long)args[3].v.i64);
    return TN_OK;
}

/* grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners) */
tn_status tni_run_grid_sampler_2d(const tn_cell *args, tn_cell *rets) {
    tn_tensor *input = tni_arg_tensor(&args[0]), *grid = tni_arg_tensor(&args[1]);
    TNI_TRY(check(input, grid, args));
    const int64_t *in = input->sizes, *to = grid->sizes;
    int64_t points;
    tni_temps tmp = {0};
    axis axes[2];
    if (!tni_mul_i64(to[1], to[2], &points)) /* one of them may be 0 */
        points = 0;
    for (int32_t k = 0; k < 2; k++) {
        axes[k] = (axis){.size = in[3 - k],
                         .padding = (padding)args[3].v.i64,
                         .align_corners = args[4].v.boolean};
        tn_tensor *x = tni_own(&tmp, tni_select(grid, 3, k));
        x = tni_own(&tmp, tni_reshape(x, TN_SHAPE(to[0], 1, points)));
        set_taps(&tmp, &axes[k], (mode)args[2].v.i64, x);
    }
    tn_tensor *flat = tni_own(&tmp, tni_reshape(input, TN_SHAPE(in[0], in[1], in[2] * in[3])));
    tn_ints sizes = TN_SHAPE(in[0], in[1], points);
    tn_tensor *result = tni_own(&tmp, args[2].v.i64 == NEAREST ? picked(flat, axes, 0, 0, sizes)
                                                               : blended(flat, axes, sizes));
    return tni_temps_return(
        &tmp, tni_own(&tmp, tni_reshape(result, TN_SHAPE(in[0], in[1], to[1], to[2]))), rets);
}
