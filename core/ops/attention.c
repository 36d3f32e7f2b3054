/* Attention: what the keys that a query resembles say (Vaswani et al., 2017). All of it is other
 * operators, and autograd looks through them. The scores of every query and key are there once
 * at a time; what else there is has the size of an argument, or of the mask. */
#include "core/ops/functions.h"
#include "core/ops/halves.h"

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

static tn_status check_mask(const attention *a, const tn_tensor *scores) {
    int32_t rank;
    int64_t sizes[TN_MAX_RANK];
    const tn_tensor *mask = a->mask;
    if (tni_broadcast(mask->view.rank, mask->sizes, scores->view.rank, scores->sizes, &rank,
                      sizes) &&
        tni_has_shape(scores, rank, sizes))
        return TN_OK;
    return tni_fail(TN_ERR_SHAPE,
                    "%s: attn_mask of shape %s does not broadcast to the scores' %s, [..., "
                    "query.size(-2), key.size(-2)]",
                    call, TNI_SHAPE_OF(mask), TNI_SHAPE_OF(scores));
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
    if (check_mask(a, scores) != TN_OK)
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
    a.scale = args[6].tag == TN_CELL_NONE ? 1 / sqrt((double)size_at(a.query, 1))
                                          : tni_scalar_f64(args[6]);
    tni_temps tmp = {0};
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
