/* embedding and embedding_bag: rows of a matrix, and what bags of them give. */

#include "core/ops/functions.h"
#include "core/ops/halves.h"
#include "core/ops/scatter.h"

#include <math.h>
#include <string.h>

/* embedding(weight [V, D], indices [...]) -> [..., D] */
tn_status tni_run_embedding(const tn_cell *args, tn_cell *rets) {
    tn_tensor *weight = tni_arg_tensor(&args[0]), *indices = tni_arg_tensor(&args[1]);
    if (weight->view.rank != 2 || indices->view.rank >= TN_MAX_RANK)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_embedding: weight must be a matrix [rows, columns] and indices of "
                        "rank below %d, but weight is %s and indices of rank %d",
                        TN_MAX_RANK, TNI_SHAPE_OF(weight), indices->view.rank);
    if (args[2].v.i64 >= weight->sizes[0])
        return tni_fail(TN_ERR_INDEX_OUT_OF_RANGE,
                        "tn_embedding: padding_idx is %lld, but weight has %lld rows",
                        (long long)args[2].v.i64, (long long)weight->sizes[0]);
    tni_temps tmp = {0};
    int64_t shape[TN_MAX_RANK];
    memcpy(shape, indices->sizes, (size_t)indices->view.rank * sizeof *shape);
    shape[indices->view.rank] = weight->sizes[1];
    tn_tensor *flat = tni_own(&tmp, tni_reshape(indices, TN_SHAPE(-1)));
    tn_tensor *rows = tni_own(&tmp, tni_index_select(weight, 0, flat));
    return tni_temps_return(
        &tmp, tni_own(&tmp, tni_reshape(rows, tn_ints_of(shape, indices->view.rank + 1))), rets);
}

/* The gradient of embedding by its weight, of shape `sizes`; differentiable. Halves are counted and
 * divided in f32. */
tn_tensor *tni_embedding_backward(tn_tensor *grad, tn_tensor *indices, tn_ints sizes,
                                  int64_t padding_idx, bool scale_grad_by_freq) {
    if (!grad || !indices)
        return NULL;
    tni_temps tmp = {0};
    tn_device device = grad->device->id;
    tn_tensor *flat = tni_own(&tmp, tni_reshape(indices, TN_SHAPE(-1)));
    tn_tensor *column = tni_own(&tmp, tni_reshape(indices, TN_SHAPE(-1, 1)));
    tn_tensor *rows =
        tni_own(&tmp, tni_reshape(grad, TN_SHAPE(indices->view.numel, sizes.data[1])));
    if (padding_idx >= 0)
        rows = tni_own(
            &tmp, tni_masked_fill_scalar(
                      rows, tni_own(&tmp, tni_eq_scalar(column, tn_int(padding_idx))), tn_int(0)));
    if (scale_grad_by_freq)
        rows = tni_widened(&tmp, rows);
    if (scale_grad_by_freq && flat && rows) {
        tn_dtype dtype = rows->view.dtype;
        tn_tensor *once = tni_own(&tmp, tni_ones(tni_sizes(flat), dtype, device));
        tn_tensor *count = tni_own(&tmp, tni_zeros(TN_SHAPE(sizes.data[0]), dtype, device));
        count = tni_own(&tmp, tni_index_add(count, 0, flat, once, tn_int(1)));
        count = tni_own(&tmp, tni_index_select(count, 0, flat));
        rows = tni_own(&tmp, tni_div(rows, tni_own(&tmp, tni_unsqueeze(count, 1))));
    }
    tn_tensor *zeros = rows ? tni_own(&tmp, tni_zeros(sizes, rows->view.dtype, device)) : NULL;
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_index_add(zeros, 0, flat, rows, tn_int(1))));
}

/* embedding_dense_backward(grad_output [..., D], indices [...], num_weights, padding_idx,
 * scale_grad_by_freq) -> [num_weights, D] */
tn_status tni_run_embedding_dense_backward(const tn_cell *args, tn_cell *rets) {
    tn_tensor *grad = tni_arg_tensor(&args[0]), *indices = tni_arg_tensor(&args[1]);
    int32_t rank = indices->view.rank;
    bool fits = grad->view.rank == rank + 1;
    for (int32_t d = 0; fits && d < rank; d++)
        fits = grad->sizes[d] == indices->sizes[d];
    if (!fits)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_embedding_dense_backward: grad_output %s must be shaped like indices "
                        "%s, with a dimension of rows behind",
                        TNI_SHAPE_OF(grad), TNI_SHAPE_OF_SIZES(rank, indices->sizes));
    if (!tni_is_float(grad->view.dtype))
        return tni_fail(TN_ERR_DTYPE,
                        "tn_embedding_dense_backward: grad_output is %s; it must be floating",
                        tn_dtype_name(grad->view.dtype));
    if (args[2].v.i64 < 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_embedding_dense_backward: num_weights is %lld; it must not be negative",
                        (long long)args[2].v.i64);
    tni_temps tmp = {0};
    tn_tensor *result = tni_own(
        &tmp, tni_embedding_backward(grad, indices, TN_SHAPE(args[2].v.i64, grad->sizes[rank]),
                                     args[3].v.i64, args[4].v.boolean));
    if (result)
        result = tni_as_dtype(&tmp, result, grad->view.dtype);
    return tni_temps_return(&tmp, result, rets);
}

/* ---- embedding_bag ----------------------------------------------------------------------- */

typedef struct bags {
    tn_tensor *weight, *indices, *offsets, *per_sample; /* the last NULL: left out */
    int64_t mode, padding, n, n_bags;                   /* n: of indices */
    bool by_freq, is_last_given;
} bags;

enum { BAG_SUM, BAG_MEAN, BAG_MAX };

static tn_status bags_init(bags *b, tni_temps *tmp, const tn_cell *args) {
    static const char call[] = "tn_embedding_bag";
    *b = (bags){.weight = tni_arg_tensor(&args[0]),
                .indices = tni_arg_tensor(&args[1]),
                .offsets = tni_arg_tensor(&args[2]),
                .per_sample = tni_arg_tensor(&args[6])};
    b->by_freq = args[3].v.boolean;
    b->mode = args[4].v.i64;
    b->is_last_given = args[7].v.boolean;
    b->padding = args[8].v.i64;
    b->n = b->indices->view.numel;
    b->n_bags = b->offsets->view.numel - b->is_last_given;
    if (b->weight->view.rank != 2 || b->indices->view.rank != 1 || b->offsets->view.rank != 1)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: weight must be a matrix, indices and offsets of rank 1, but their "
                        "ranks are %d, %d and %d",
                        call, b->weight->view.rank, b->indices->view.rank, b->offsets->view.rank);
    b->indices = tni_whole_index(tmp, b->indices, call, "indices");
    b->offsets = b->indices ? tni_whole_index(tmp, b->offsets, call, "offsets") : NULL;
    if (!b->offsets)
        return tni_failed();
    if (!tni_is_float(b->weight->view.dtype))
        return tni_fail(TN_ERR_DTYPE, "%s: weight is %s; it must be floating", call,
                        tn_dtype_name(b->weight->view.dtype));
    if (b->mode < BAG_SUM || b->mode > BAG_MAX)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: mode is %lld; it must be 0 (sum), 1 (mean) or 2 (max)", call,
                        (long long)b->mode);
    if (args[5].v.boolean)
        return tni_fail(TN_ERR_UNSUPPORTED, "%s: there are no sparse gradients; leave sparse false",
                        call);
    if (b->by_freq && b->mode == BAG_MAX)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: scale_grad_by_freq does not go with mode 2 (max)", call);
    if (b->n_bags < 0)
        return tni_fail(TN_ERR_SHAPE, "%s: with include_last_offset there is one offset at least",
                        call);
    if (b->n_bags == 0 && b->n > 0)
        return tni_fail(TN_ERR_SHAPE, "%s: offsets name no bag for the %lld indices", call,
                        (long long)b->n);
    if (b->padding >= b->weight->sizes[0])
        return tni_fail(TN_ERR_INDEX_OUT_OF_RANGE,
                        "%s: padding_idx is %lld, but weight has %lld rows", call,
                        (long long)b->padding, (long long)b->weight->sizes[0]);
    if (!b->per_sample)
        return TN_OK;
    if (b->mode != BAG_SUM)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: per_sample_weights go with mode 0 (sum) alone", call);
    if (b->per_sample->view.rank != 1 || b->per_sample->view.numel != b->n ||
        b->per_sample->view.dtype != b->weight->view.dtype)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: per_sample_weights must be of rank 1, as long as indices (%lld), and "
                        "%s as weight",
                        call, (long long)b->n, tn_dtype_name(b->weight->view.dtype));
    return TN_OK;
}

/* The bag of each index: how many offsets lie at or before it. What comes before the first bag, or
 * after an offset that ends the last, is in none, and so out of range. */
static tn_tensor *bag_of(tni_temps *tmp, const bags *b) {
    tn_device device = b->indices->device->id;
    tn_tensor *one = tni_own(tmp, tni_ones_like(b->offsets, TN_I64, tn_no_device()));
    tn_tensor *starts = tni_own(tmp, tni_zeros(TN_SHAPE(b->n + 1), TN_I64, device));
    starts = tni_own(tmp, tni_scatter_add(starts, 0, b->offsets, one));
    tn_tensor *count = tni_own(tmp, tni_cumsum(starts, 0, TN_DTYPE_NONE));
    count = tni_own(tmp, tni_add_scalar(count, tn_int(-1), tn_int(1)));
    return tni_own(tmp, tni_slice(count, 0, 0, b->n, 1));
}

/* Sums of rows [n, ...] by bag. */
static tn_tensor *bag_sums(tni_temps *tmp, const bags *b, tn_tensor *bag, tn_tensor *rows) {
    if (!rows)
        return NULL;
    tn_ints sizes =
        rows->view.rank == 1 ? TN_SHAPE(b->n_bags) : TN_SHAPE(b->n_bags, rows->sizes[1]);
    tn_tensor *zeros = tni_own(tmp, tni_zeros(sizes, rows->view.dtype, rows->device->id));
    return tni_own(tmp, tni_index_add(zeros, 0, bag, rows, tn_int(1)));
}

/* The rows of weight that hold the largest of each bag, [bags, D]: of the first that does; 0 where
 * a bag is empty. */
static tn_tensor *bag_rows(tni_temps *tmp, const bags *b, tn_tensor *bag, tn_tensor *counts) {
    int64_t columns = b->weight->sizes[1];
    tn_ints full = TN_SHAPE(b->n, columns), out = TN_SHAPE(b->n_bags, columns);
    tn_device device = b->weight->device->id;
    tn_tensor *plain = tni_own(tmp, tni_detach(b->weight));
    tn_tensor *rows = tni_own(tmp, tni_index_select(plain, 0, b->indices));
    if (!rows || b->n == 0)
        return rows ? tni_own(tmp, tni_zeros(out, TN_I64, device)) : NULL;
    tn_tensor *wide = tni_own(tmp, tni_expand(tni_own(tmp, tni_unsqueeze(bag, 1)), full));
    tn_tensor *use = tni_own(tmp, tni_expand(tni_own(tmp, tni_unsqueeze(counts, 1)), full));
    tn_tensor *low =
        tni_own(tmp, tni_full_like(rows, tn_float(-INFINITY), TN_DTYPE_NONE, tn_no_device()));
    rows = tni_own(tmp, tni_where(use, rows, low));
    tn_tensor *most = tni_own(tmp, tni_zeros(out, b->weight->view.dtype, device));
    most = tni_own(tmp, tni_scatter_reduce_two(most, 0, wide, rows, "amax", false));
    most = tni_own(tmp, tni_index_select(most, 0, bag));
    tn_tensor *hit = tni_own(tmp, tni_eq(rows, most));
    hit = tni_own(tmp, tni_bitwise_or(hit, tni_own(tmp, tni_isnan(rows))));
    hit = tni_own(tmp, tni_bitwise_and(hit, use));
    /* the first hit: the least place, n where there is none */
    tn_tensor *place =
        tni_own(tmp, tni_unsqueeze(tni_own(tmp, tni_arange(tn_int(b->n), TN_I64, device)), 1));
    tn_tensor *none = tni_own(tmp, tni_full(TN_SCALAR_SHAPE, tn_int(b->n), TN_I64, device));
    place = tni_own(tmp, tni_where(hit, place, none));
    tn_tensor *first = tni_own(tmp, tni_full(out, tn_int(b->n), TN_I64, device));
    first = tni_own(tmp, tni_scatter_reduce_two(first, 0, wide, place, "amin", true));
    /* index n: row 0 */
    tn_tensor *list[2] = {b->indices, tni_own(tmp, tni_zeros(TN_SHAPE(1), TN_I64, device))};
    tn_tensor *names = list[1] ? tni_own(tmp, tni_cat(list, 2, 0)) : NULL;
    first = tni_own(tmp, tni_reshape(first, TN_SHAPE(-1)));
    return tni_own(tmp, tni_reshape(tni_own(tmp, tni_index_select(names, 0, first)), out));
}

/* embedding_bag(weight [V, D], indices [n], offsets [bags], scale_grad_by_freq, mode, sparse,
 * per_sample_weights, include_last_offset, padding_idx) -> output [bags, D], offset2bag, bag_size,
 * max_indices */
tn_status tni_run_embedding_bag(const tn_cell *args, tn_cell *rets) {
    bags b;
    tni_temps tmp = {0};
    if (bags_init(&b, &tmp, args) != TN_OK)
        return tni_temps_return(&tmp, NULL, rets);
    tn_dtype dtype = b.weight->view.dtype;
    tn_tensor *bag = bag_of(&tmp, &b);
    tn_tensor *counts = bag ? tni_own(&tmp, tni_ne_scalar(b.indices, tn_int(b.padding))) : NULL;
    tn_tensor *size =
        bag_sums(&tmp, &b, bag, counts ? tni_own(&tmp, tni_to_dtype(counts, TN_I64)) : NULL);
    tn_tensor *output = NULL, *largest = size;
    if (b.mode == BAG_MAX && size) {
        largest = bag_rows(&tmp, &b, bag, counts);
        tn_tensor *full = tni_own(&tmp, tni_unsqueeze(size, 1));
        full = tni_own(&tmp, tni_gt_scalar(full, tn_int(0)));
        tn_tensor *zero = tni_own(&tmp, tni_zero_of(b.weight));
        /* of a weight without rows the bags are empty, and there is nothing to take */
        if (b.weight->sizes[0] > 0)
            output = tni_own(
                &tmp, tni_where(full, tni_own(&tmp, tni_gather(b.weight, 0, largest)), zero));
        else
            output = tni_own(&tmp, tni_zeros(TN_SHAPE(b.n_bags, b.weight->sizes[1]), dtype,
                                             b.weight->device->id));
    } else if (size) {
        tn_tensor *rows = tni_own(&tmp, tni_embedding(b.weight, b.indices, b.padding, b.by_freq));
        rows = tni_widened(&tmp, rows);
        if (b.per_sample)
            rows = tni_own(
                &tmp,
                tni_mul(rows, tni_own(&tmp, tni_unsqueeze(tni_widened(&tmp, b.per_sample), 1))));
        if (b.padding >= 0)
            rows = tni_own(&tmp, tni_where(tni_own(&tmp, tni_unsqueeze(counts, 1)), rows,
                                           tni_own(&tmp, tni_zero_of(rows))));
        output = bag_sums(&tmp, &b, bag, rows);
        if (b.mode == BAG_MEAN && output) {
            tn_tensor *by = tni_own(&tmp, tni_clamp_min(size, tn_int(1)));
            by = by ? tni_own(&tmp, tni_to_dtype(by, output->view.dtype)) : NULL;
            output = tni_own(&tmp, tni_div(output, tni_own(&tmp, tni_unsqueeze(by, 1))));
        }
        output = output ? tni_as_dtype(&tmp, output, dtype) : NULL;
    }
    tn_tensor *results[4] = {output, bag ? tni_own(&tmp, tni_contiguous(bag)) : NULL, size,
                             largest && largest == size ? tni_own(&tmp, tni_clone(size)) : largest};
    return tni_temps_return_many(&tmp, results, 4, rets);
}
