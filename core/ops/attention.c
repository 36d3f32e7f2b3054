/* Attention: what the keys that a query resembles say (Vaswani et al., 2017).
 *
 * Where a device has the kernels, scaled_dot_product_flash_attention does it, and keeps no score. Else
 * all of it is other operators, and autograd looks through them: the scores of every query and key
 * are there once at a time; what else there is has the size of an argument, or of the mask. */
#include "core/call/call.h"
#include "core/ops/functions.h"
#include "core/ops/halves.h"
#include "core/ops/recomputed.h"

#include <math.h>
#include <string.h>

static const char call[] = "tn_scaled_dot_product_attention";

typedef struct attention {
    tn_tensor *query, *key, *value, *mask; /* the last NULL: left out */
    double dropout, scale;
    bool causal, grouped;
} attention;

static tn_status fail_shapes(const attention *a, const char *rule) {
    return tni_fail(TN_ERR_SHAPE, "%s: query %s, key %s and value %s do not fit; %s", call,
                    TNI_SHAPE_OF(a->query), TNI_SHAPE_OF(a->key), TNI_SHAPE_OF(a->value), rule);
}

/* The size of a dimension that is counted from the end. */
static int64_t size_at(const tn_tensor *t, int32_t from_end) {
    return t->sizes[t->view.rank - from_end];
}

static bool has_rank(const attention *a, int32_t rank) {
    return a->query->view.rank >= rank && a->key->view.rank >= rank && a->value->view.rank >= rank;
}

/* Do the dimensions before the last `n` of all three broadcast? */
static bool batches_fit(const attention *a, int32_t n) {
    int32_t rank;
    int64_t sizes[TN_MAX_RANK];
    return tni_broadcast(a->query->view.rank - n, a->query->sizes, a->key->view.rank - n,
                         a->key->sizes, &rank, sizes) &&
           tni_broadcast(rank, sizes, a->value->view.rank - n, a->value->sizes, &rank, sizes);
}

static tn_status check_shapes(const attention *a) {
    if (!has_rank(a, 2))
        return fail_shapes(a, "each is [..., places, features]");
    if (size_at(a->query, 1) != size_at(a->key, 1))
        return fail_shapes(a, "query.size(-1) must equal key.size(-1)");
    if (size_at(a->key, 2) != size_at(a->value, 2))
        return fail_shapes(a, "key.size(-2) must equal value.size(-2)");
    if (!a->grouped)
        return batches_fit(a, 2) ? TN_OK
                                 : fail_shapes(a, "their dimensions before the last two must "
                                                  "broadcast; enable_gqa lets heads share keys");
    if (!has_rank(a, 3))
        return fail_shapes(a, "with enable_gqa each is [..., heads, places, features]");
    int64_t heads = size_at(a->query, 3), keys = size_at(a->key, 3), values = size_at(a->value, 3);
    if (keys == 0 || values == 0 || heads % keys != 0 || heads % values != 0)
        return fail_shapes(a, "with enable_gqa the heads of key and of value, dimension -3, must "
                              "divide those of query");
    return batches_fit(a, 3) ? TN_OK
                             : fail_shapes(a, "their dimensions before the last three must "
                                              "broadcast");
}

static tn_status check_dtypes(const attention *a) {
    tn_dtype dtype = a->query->view.dtype;
    if (a->key->view.dtype != dtype || a->value->view.dtype != dtype || !tni_is_float(dtype))
        return tni_fail(TN_ERR_DTYPE,
                        "%s: query, key and value must have one floating dtype, but are %s, %s and "
                        "%s; cast with tn_to_dtype",
                        call, tn_dtype_name(dtype), tn_dtype_name(a->key->view.dtype),
                        tn_dtype_name(a->value->view.dtype));
    tn_dtype of_mask = a->mask ? a->mask->view.dtype : TN_BOOL;
    if (of_mask != TN_BOOL && of_mask != TN_F32 && of_mask != dtype)
        return tni_fail(TN_ERR_DTYPE,
                        "%s: attn_mask is %s; it must be bool (true takes part), f32 or %s as "
                        "query (added)",
                        call, tn_dtype_name(of_mask), tn_dtype_name(dtype));
    return TN_OK;
}

static tn_status check_rest(const attention *a) {
    if (!(a->dropout >= 0 && a->dropout <= 1))
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: dropout_p is %g; it must lie in [0, 1]", call,
                        a->dropout);
    if (a->mask && a->causal)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: attn_mask and is_causal exclude each other; leave attn_mask out, or "
                        "put both in it",
                        call);
    return TN_OK;
}

/* x times y, where heads of x share those of y: dimension -3 of both; places of all the heads
 * that share one are its rows, so that y is not repeated. */
static tn_tensor *shared_product(tni_temps *tmp, bool grouped, tn_tensor *x, tn_tensor *y) {
    if (!x || !y || !grouped || size_at(x, 3) == size_at(y, 3))
        return tni_own(tmp, tni_matmul(x, y));
    int64_t sizes[TN_MAX_RANK], heads = size_at(x, 3), places = size_at(x, 2);
    int32_t rank = x->view.rank;
    memcpy(sizes, x->sizes, (size_t)rank * sizeof *sizes);
    sizes[rank - 3] = size_at(y, 3);
    sizes[rank - 2] = heads / size_at(y, 3) * places;
    tn_tensor *rows = tni_own(tmp, tni_reshape(x, tn_ints_of(sizes, rank)));
    tn_tensor *product = tni_own(tmp, tni_matmul(rows, y));
    if (!product)
        return NULL;
    rank = product->view.rank;
    memcpy(sizes, product->sizes, (size_t)rank * sizeof *sizes);
    sizes[rank - 3] = heads;
    sizes[rank - 2] = places;
    return tni_own(tmp, tni_view(product, tn_ints_of(sizes, rank)));
}

/* Query i may see the keys up to i. */
static tn_tensor *causal_mask(tni_temps *tmp, const tn_tensor *scores) {
    tn_device device = scores->device->id;
    tn_tensor *row = tni_own(tmp, tni_arange(tn_int(size_at(scores, 2)), TN_I64, device));
    tn_tensor *column = tni_own(tmp, tni_arange(tn_int(size_at(scores, 1)), TN_I64, device));
    return tni_own(tmp, tni_le(column, tni_own(tmp, tni_unsqueeze(row, 1))));
}

/* Does attn_mask broadcast to the scores' shape? */
static tn_status check_mask(const char *who, const tn_tensor *mask, int32_t rank,
                            const int64_t *scores) {
    int32_t broadcast;
    int64_t sizes[TN_MAX_RANK];
    if (tni_broadcast(mask->view.rank, mask->sizes, rank, scores, &broadcast, sizes) &&
        broadcast == rank && memcmp(sizes, scores, (size_t)rank * sizeof *sizes) == 0)
        return TN_OK;
    return tni_fail(TN_ERR_SHAPE,
                    "%s: attn_mask of shape %s does not broadcast to the scores' %s, [..., "
                    "query.size(-2), key.size(-2)]",
                    who, TNI_SHAPE_OF(mask), TNI_SHAPE_OF_SIZES(rank, scores));
}

/* The scores with the mask on them; *out_dead: the rows that it leaves no key, or NULL. Their
 * own scores stay, which are numbers and have derivatives; what comes of them is replaced at the
 * end. */
static tn_tensor *masked(const attention *a, tni_temps *tmp, tn_tensor *scores,
                         tn_tensor **out_dead) {
    if (!scores || (!a->mask && !a->causal))
        return scores;
    if (a->causal) {
        tn_tensor *seen = causal_mask(tmp, scores);
        return tni_then(tmp, tni_where_scalarother(seen, scores, tn_float(-INFINITY)), scores);
    }
    if (check_mask(call, a->mask, scores->view.rank, scores->sizes) != TN_OK)
        return NULL;
    if (size_at(scores, 1) == 0)
        return scores;
    tn_ints last = TN_SHAPE(-1);
    if (a->mask->view.dtype == TN_BOOL) {
        *out_dead = tni_own(tmp, tni_logical_not(tni_own(tmp, tni_any_dim(a->mask, last, true))));
        tn_tensor *seen = tni_own(tmp, tni_bitwise_or(a->mask, *out_dead));
        return tni_then(tmp, tni_where_scalarother(seen, scores, tn_float(-INFINITY)), scores);
    }
    tn_tensor *most = tni_own(tmp, tni_amax(tni_own(tmp, tni_detach(a->mask)), last, true));
    *out_dead = tni_own(tmp, tni_eq_scalar(most, tn_float(-INFINITY)));
    tn_tensor *added = tni_own(tmp, tni_where_scalarself(*out_dead, tn_int(0), a->mask));
    added = added ? tni_as_dtype(tmp, added, scores->view.dtype) : NULL;
    return tni_then(tmp, tni_add(scores, added, tn_int(1)), scores);
}

/* ---- by the kernels ---------------------------------------------------------------------- */

static double scale_of(const tn_cell *scale, const tn_tensor *query) {
    return scale->tag == TN_CELL_NONE ? 1 / sqrt((double)size_at(query, 1))
                                      : tni_scalar_f64(*scale);
}

/* What scores are computed in. */
static tn_dtype computed(tn_dtype dtype) {
    return dtype == TN_F64 ? TN_F64 : TN_F32;
}

static bool has_kernel(tni_device *device, int kernel, tn_dtype dtype) {
    tn_dtype types[TN_KERNEL_MAX_TYPES] = {dtype, computed(dtype)};
    tni_choice choice;
    tni_choose(&choice, device, kernel, types);
    return choice.kernel != NULL;
}

/* Would the kernels take the call, and its gradient if there is to be one? */
static bool has_flash(const attention *a) {
    tn_tensor *const all[] = {a->query, a->key, a->value, a->mask};
    bool wants_grad = false;
    for (int i = 0; i < 4; i++) {
        tn_tensor *t = all[i];
        if (t && (t->device != a->query->device || t->view.rank > 4 || t->view.numel == 0))
            return false;
        wants_grad = wants_grad || (t && tni_requires_grad(t));
    }
    wants_grad = wants_grad && tn_grad_enabled();
    if (a->dropout > 0 || (wants_grad && a->mask && tni_requires_grad(a->mask)) ||
        (a->grouped && size_at(a->key, 3) != size_at(a->value, 3)))
        return false;
    tni_device *device = a->query->device;
    tn_dtype dtype = a->query->view.dtype;
    return !device->is_meta && has_kernel(device, TNI_KERNEL_flash_attention, dtype) &&
           (!wants_grad || has_kernel(device, TNI_KERNEL_flash_attention_backward, dtype));
}

/* The size of a dimension, 1 where there is none. */
static int64_t size_or_one(const tn_tensor *t, int32_t from_end) {
    return from_end <= t->view.rank ? size_at(t, from_end) : 1;
}

/* t as [batch, heads, places, features], in which it is broadcast. */
static tn_tensor *of_rank_4(tni_temps *tmp, tn_tensor *t, int64_t batch, int64_t heads) {
    while (t && t->view.rank < 4)
        t = tni_own(tmp, tni_unsqueeze(t, 0));
    if (!t || (t->sizes[0] == batch && t->sizes[1] == heads))
        return t;
    return tni_own(tmp, tni_expand(t, TN_SHAPE(batch, heads, t->sizes[2], t->sizes[3])));
}

static int64_t broadcast_size(const attention *a, int32_t from_end) {
    int64_t sizes[] = {size_or_one(a->query, from_end), size_or_one(a->key, from_end),
                       size_or_one(a->value, from_end)};
    return sizes[0] != 1 ? sizes[0] : sizes[1] != 1 ? sizes[1] : sizes[2];
}

/* The three broadcast, as the checks have found. Owned by the list. */
static tn_tensor *by_flash(const attention *a, tni_temps *tmp) {
    int64_t batch = broadcast_size(a, 4), heads = broadcast_size(a, 3), shared = heads;
    int32_t rank = a->query->view.rank;
    rank = rank < a->key->view.rank ? a->key->view.rank : rank;
    rank = rank < a->value->view.rank ? a->value->view.rank : rank;
    if (a->grouped) {
        heads = size_at(a->query, 3);
        shared = size_at(a->key, 3);
    }
    if (a->mask) {
        int64_t scores[] = {batch, heads, size_at(a->query, 2), size_at(a->key, 2)};
        if (check_mask(call, a->mask, rank, scores + 4 - rank) != TN_OK)
            return NULL;
    }
    tn_tensor *query = of_rank_4(tmp, a->query, batch, heads);
    tn_tensor *key = of_rank_4(tmp, a->key, batch, shared);
    tn_tensor *value = of_rank_4(tmp, a->value, batch, shared);
    if (!query || !key || !value)
        return NULL;
    tn_tensor *out, *logsumexp;
    if (tni_scaled_dot_product_flash_attention(query, key, value, a->mask ? a->mask : TN_NONE,
                                               a->causal, tn_float(a->scale), &out,
                                               &logsumexp) != TN_OK)
        return NULL;
    tni_drop(logsumexp);
    out = tni_own(tmp, out);
    for (; out && rank < out->view.rank;)
        out = tni_own(tmp, tni_squeeze_dim(out, 0));
    return out;
}

/* ---- the operator ------------------------------------------------------------------------ */

/* scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale,
 * enable_gqa) */
tn_status tni_run_scaled_dot_product_attention(const tn_cell *args, tn_cell *rets) {
    attention a = {.query = tni_arg_tensor(&args[0]),
                   .key = tni_arg_tensor(&args[1]),
                   .value = tni_arg_tensor(&args[2]),
                   .mask = tni_arg_tensor(&args[3]),
                   .dropout = args[4].v.f64,
                   .causal = args[5].v.boolean,
                   .grouped = args[7].v.boolean};
    TNI_TRY(check_shapes(&a));
    TNI_TRY(check_dtypes(&a));
    TNI_TRY(check_rest(&a));
    a.scale = scale_of(&args[6], a.query);
    tni_temps tmp = {0};
    if (has_flash(&a))
        return tni_temps_return(&tmp, by_flash(&a, &tmp), rets);
    tn_tensor *dead = NULL, *value = tni_widened(&tmp, a.value);
    tn_tensor *key = tni_own(&tmp, tni_transpose(tni_widened(&tmp, a.key), -1, -2));
    tn_tensor *x = tni_widened(&tmp, a.query);
    x = tni_then(&tmp, tni_mul_scalar(x, tn_float(a.scale)), x);
    x = masked(&a, &tmp, shared_product(&tmp, a.grouped, x, key), &dead);
    x = tni_then(&tmp, tni_softmax(x, -1, TN_DTYPE_NONE), x);
    if (a.dropout > 0)
        x = tni_then(&tmp, tni_dropout(x, a.dropout, true), x);
    x = shared_product(&tmp, a.grouped, x, value);
    if (dead)
        x = tni_own(&tmp, tni_where_scalarself(dead, tn_int(0), x));
    return tni_temps_return(&tmp, x ? tni_as_dtype(&tmp, x, a.query->view.dtype) : NULL, rets);
}

/* ---- the kernels' operators -------------------------------------------------------------- */

/* query [B, H, L, E], key [B, G, S, E], value [B, G, S, V] */
typedef struct flash {
    tn_tensor *query, *key, *value, *mask; /* the last NULL: left out */
    bool causal;
    double scale;
} flash;

/* Of arguments that begin with query, and of those that begin with attn_mask. */
static flash flash_of(const tn_cell *first, const tn_cell *rest) {
    flash f = {.query = tni_arg_tensor(&first[0]),
               .key = tni_arg_tensor(&first[1]),
               .value = tni_arg_tensor(&first[2]),
               .mask = tni_arg_tensor(&rest[0]),
               .causal = rest[1].v.boolean};
    f.scale = f.query->view.rank > 0 ? scale_of(&rest[2], f.query) : 0;
    return f;
}

static tn_status check_flash(const tni_build *b, const flash *f) {
    const tn_tensor *q = f->query, *k = f->key, *v = f->value;
    const char *rule = NULL;
    if (q->view.rank != 4 || k->view.rank != 4 || v->view.rank != 4)
        rule = "each is [batch, heads, places, features]";
    else if (q->sizes[0] != k->sizes[0] || q->sizes[0] != v->sizes[0])
        rule = "their batches must be equal";
    else if (k->sizes[1] != v->sizes[1] || k->sizes[1] == 0 || q->sizes[1] % k->sizes[1] != 0)
        rule = "key and value must have as many heads, which divide those of query";
    else if (q->sizes[3] != k->sizes[3] || q->sizes[3] == 0)
        rule = "query.size(-1) must equal key.size(-1), and not be 0";
    else if (k->sizes[2] != v->sizes[2] || k->sizes[2] == 0)
        rule = "key.size(-2) must equal value.size(-2), and not be 0";
    if (!rule)
        return TN_OK;
    return tni_build_fail(b, TN_ERR_SHAPE, "query %s, key %s and value %s do not fit; %s",
                          TNI_SHAPE_OF(q), TNI_SHAPE_OF(k), TNI_SHAPE_OF(v), rule);
}

/* The mask as what is added to scores. */
static tn_tensor *added_mask(tni_temps *tmp, tn_tensor *mask, tn_dtype dtype) {
    if (mask->view.dtype == TN_BOOL)
        mask = tni_own(tmp, tni_where_scalar(mask, tn_float(0), tn_float(-INFINITY)));
    return mask ? tni_as_dtype(tmp, mask, dtype) : NULL;
}

/* Kernel argument `at`: the mask, expanded to the scores' shape. */
static tn_status give_mask(tni_build *b, const flash *f, uint32_t at) {
    tn_tensor *mask = f->mask;
    if (!mask || mask->device != b->device)
        return TN_OK;
    if (mask->view.dtype != TN_BOOL && !tni_is_float(mask->view.dtype))
        return tni_build_fail(b, TN_ERR_DTYPE,
                              "attn_mask is %s; it must be bool (true takes part) or floating "
                              "(added)",
                              tn_dtype_name(mask->view.dtype));
    const int64_t scores[] = {f->query->sizes[0], f->query->sizes[1], f->query->sizes[2],
                              f->key->sizes[2]};
    TNI_TRY(check_mask(b->info->call, mask, 4, scores));
    int64_t strides[4] = {0};
    mask = added_mask(&b->temps, mask, computed(f->query->view.dtype));
    for (int32_t d = 0; mask && d < mask->view.rank; d++)
        strides[4 - mask->view.rank + d] = mask->sizes[d] == 1 ? 0 : mask->strides[d];
    mask = mask ? tni_build_view(b, mask, 4, scores, strides) : NULL;
    if (!mask)
        return tni_failed();
    b->kargs[at] = tni_cell_tensor(mask);
    return TN_OK;
}

/* scaled_dot_product_flash_attention(query, key, value, attn_mask, is_causal, scale) */
tn_status tni_infer_flash_attention(tni_build *b) {
    flash f = flash_of(b->args, b->args + 3);
    TNI_TRY(check_flash(b, &f));
    TNI_TRY(give_mask(b, &f, TN_ARG_flash_attention_attn_mask));
    const int64_t *q = f.query->sizes;
    b->types[1] = computed(f.query->view.dtype);
    tni_build_out(b, 0, 4, TN_SHAPE(q[0], q[1], q[2], f.value->sizes[3]).data);
    tni_build_out(b, 1, 3, q);
    b->kargs[TN_ARG_flash_attention_scale] = tni_cell_f64(f.scale);
    return TN_OK;
}

/* scaled_dot_product_flash_attention_backward(grad_output, query, key, value, output, logsumexp,
 * attn_mask, is_causal, scale) */
tn_status tni_infer_flash_attention_backward(tni_build *b) {
    flash f = flash_of(b->args + 1, b->args + 6);
    TNI_TRY(check_flash(b, &f));
    const int64_t *q = f.query->sizes;
    tn_ints result = TN_SHAPE(q[0], q[1], q[2], f.value->sizes[3]);
    static const char *const names[] = {"grad_output", "", "", "", "output", "logsumexp"};
    for (uint32_t i = 0; i < 6; i += i == 0 ? 4 : 1) {
        const tn_tensor *t = tni_build_tensor(b, i);
        int32_t rank = i == 5 ? 3 : 4;
        if (!tni_has_shape(t, rank, result.data))
            return tni_build_fail(b, TN_ERR_SHAPE, "%s has shape %s, but must have %s", names[i],
                                  TNI_SHAPE_OF(t), TNI_SHAPE_OF_SIZES(rank, result.data));
    }
    TNI_TRY(give_mask(b, &f, TN_ARG_flash_attention_backward_attn_mask));
    b->types[1] = computed(f.query->view.dtype);
    tni_build_out(b, 0, 4, q);
    tni_build_out(b, 1, 4, f.key->sizes);
    tni_build_out(b, 2, 4, f.value->sizes);
    b->has_empty_value = true; /* of no query */
    b->empty_value = tn_int(0);
    b->kargs[TN_ARG_flash_attention_backward_scale] = tni_cell_f64(f.scale);
    return TN_OK;
}

/* [B, H, L, S]; of the rows in `dead`, or NULL, without the masks. */
static tn_tensor *flash_scores(const flash *f, tni_temps *tmp, tn_tensor *dead) {
    tn_tensor *key = tni_own(tmp, tni_transpose(f->key, -1, -2));
    tn_tensor *x = tni_own(tmp, tni_mul_scalar(f->query, tn_float(f->scale)));
    x = shared_product(tmp, true, x, key);
    if (x && f->mask) {
        tn_tensor *added = added_mask(tmp, f->mask, x->view.dtype);
        if (dead)
            added = tni_own(tmp, tni_where_scalarself(dead, tn_int(0), added));
        x = tni_then(tmp, tni_add(x, added, tn_int(1)), x);
    }
    if (x && f->causal) {
        tn_tensor *seen = causal_mask(tmp, x);
        if (dead)
            seen = tni_own(tmp, tni_bitwise_or(seen, dead));
        x = tni_then(tmp, tni_where_scalarother(seen, x, tn_float(-INFINITY)), x);
    }
    return x;
}

/* exp(scores - base), 0 in dead rows */
static tn_tensor *flash_weights(tni_temps *tmp, tn_tensor *scores, tn_tensor *base,
                                tn_tensor *dead) {
    tn_tensor *x = tni_then(tmp, tni_sub(scores, base, tn_int(1)), scores);
    x = tni_then(tmp, tni_exp(x), x);
    return tni_then(tmp, tni_where_scalarself(dead, tn_int(0), x), x);
}

/* Runs below autograd. */
tn_status tni_run_flash_attention(const tn_cell *args, tn_cell *rets) {
    flash f = flash_of(args, args + 3);
    tni_temps tmp = {0};
    tn_tensor *x = flash_scores(&f, &tmp, NULL);
    tn_tensor *sum = tni_own(&tmp, tni_logsumexp(x, TN_SHAPE(-1), true));
    tn_tensor *dead = tni_own(&tmp, tni_eq_scalar(sum, tn_float(-INFINITY)));
    tn_tensor *base = tni_own(&tmp, tni_where_scalarself(dead, tn_int(0), sum));
    x = flash_weights(&tmp, x, base, dead);
    tn_tensor *results[2] = {shared_product(&tmp, true, x, f.value),
                             tni_own(&tmp, tni_squeeze_dim(sum, -1))};
    return tni_temps_return_many(&tmp, results, 2, rets);
}

/* weight * (grad @ value transposed - sum(grad * output)), the derivative by the scores;
 * differentiable: logsumexp, which has no history, is then computed again. */
static tn_tensor *flash_slope(const flash *f, tni_temps *tmp, tn_tensor *grad, tn_tensor *output,
                              tn_tensor *logsumexp, tn_tensor **out_weights) {
    bool again = tn_grad_enabled() &&
                 (tni_requires_grad(f->query) || tni_requires_grad(f->key) ||
                  tni_requires_grad(f->value) || (f->mask && tni_requires_grad(f->mask)));
    tn_tensor *base = tni_own(tmp, tni_unsqueeze(logsumexp, -1));
    tn_tensor *dead = tni_own(tmp, tni_eq_scalar(base, tn_float(-INFINITY)));
    base = tni_own(tmp, tni_where_scalarself(dead, tn_int(0), base));
    tn_tensor *weights = flash_scores(f, tmp, dead);
    if (again)
        base =
            tni_with_history(tmp, base, tni_own(tmp, tni_logsumexp(weights, TN_SHAPE(-1), true)));
    *out_weights = weights = flash_weights(tmp, weights, base, dead);
    tn_tensor *mean = tni_own(tmp, tni_mul(grad, output));
    mean = tni_then(tmp, tni_sum_dim(mean, TN_SHAPE(-1), true, TN_DTYPE_NONE), mean);
    tn_tensor *value = tni_own(tmp, tni_transpose(f->value, -1, -2));
    tn_tensor *x = shared_product(tmp, true, grad, value);
    x = tni_then(tmp, tni_sub(x, mean, tn_int(1)), x);
    return tni_then(tmp, tni_mul(x, weights), x);
}

/* [B, H, L, N] as [B, heads, H / heads * L, N] */
static tn_tensor *folded(tni_temps *tmp, tn_tensor *t, int64_t heads) {
    if (!t || t->sizes[1] == heads)
        return t;
    return tni_own(tmp, tni_reshape(t, TN_SHAPE(t->sizes[0], heads,
                                                t->sizes[1] / heads * t->sizes[2], t->sizes[3])));
}

/* x transposed @ y, over the heads of each of `heads` groups */
static tn_tensor *summed_product(tni_temps *tmp, tn_tensor *x, tn_tensor *y, int64_t heads) {
    x = folded(tmp, x, heads);
    tn_tensor *transposed = tni_own(tmp, tni_transpose(x, -1, -2));
    return tni_own(tmp, tni_matmul(transposed, folded(tmp, y, heads)));
}

tn_status tni_run_flash_attention_backward(const tn_cell *args, tn_cell *rets) {
    flash f = flash_of(args + 1, args + 6);
    tni_temps tmp = {0};
    /* logsumexp is f32 beside halves: what they promote to does not tell that they pass as f32 */
    tn_dtype dtype = f.query->view.dtype;
    f.query = tni_widened(&tmp, f.query);
    f.key = tni_widened(&tmp, f.key);
    f.value = tni_widened(&tmp, f.value);
    tn_tensor *grad = tni_widened(&tmp, tni_arg_tensor(&args[0])), *weights, *results[3];
    tn_tensor *output = tni_widened(&tmp, tni_arg_tensor(&args[4]));
    if (!f.query || !f.key || !f.value || !grad || !output) {
        tni_temps_finish(&tmp);
        return tni_failed();
    }
    tn_tensor *slope = flash_slope(&f, &tmp, grad, output, tni_arg_tensor(&args[5]), &weights);
    tn_tensor *x = shared_product(&tmp, true, slope, f.key);
    results[0] = tni_then(&tmp, tni_mul_scalar(x, tn_float(f.scale)), x);
    x = summed_product(&tmp, slope, f.query, f.key->sizes[1]);
    results[1] = tni_then(&tmp, tni_mul_scalar(x, tn_float(f.scale)), x);
    results[2] = summed_product(&tmp, weights, grad, f.key->sizes[1]);
    for (int i = 0; i < 3; i++)
        results[i] = tni_as_dtype(&tmp, results[i], dtype);
    return tni_temps_return_many(&tmp, results, 3, rets);
}

/* The gradient by attn_mask, of the scores' shape. */
tn_tensor *tni_flash_attention_backward_mask(tn_tensor *grad, tn_tensor *query, tn_tensor *key,
                                             tn_tensor *value, tn_tensor *output,
                                             tn_tensor *logsumexp, tn_tensor *attn_mask,
                                             bool is_causal, tn_scalar scale) {
    if (!grad || !query || !key || !value || !output || !logsumexp || !attn_mask)
        return NULL;
    tni_temps tmp = {0};
    flash f = {tni_widened(&tmp, query),
               tni_widened(&tmp, key),
               tni_widened(&tmp, value),
               attn_mask,
               is_causal,
               scale_of(&scale, query)};
    tn_tensor *weights;
    return tni_temps_keep(&tmp, flash_slope(&f, &tmp, tni_widened(&tmp, grad),
                                            tni_widened(&tmp, output), logsumexp, &weights));
}
