/* Matrix products: mm, bmm and addmm, which have kernels, and matmul and linear, which find the
 * one call that does their work. */

#include "core/ops/functions.h"

#include <string.h>

/* ---- kernels ----------------------------------------------------------------------------- */

/* Both [M, K] and [K, N], or with a batch in front. */
static tn_status check_product(const tni_build *b, const tn_tensor *x, const tn_tensor *y,
                               int32_t rank, const char *names[2]) {
    if (x->view.rank != rank || y->view.rank != rank)
        return tni_build_fail(b, TN_ERR_SHAPE,
                              "%s and %s must both be of rank %d, but have shapes %s and %s; "
                              "tn_matmul takes other ranks",
                              names[0], names[1], rank, TNI_SHAPE_OF(x), TNI_SHAPE_OF(y));
    if (x->sizes[rank - 1] != y->sizes[rank - 2])
        return tni_build_fail(b, TN_ERR_SHAPE,
                              "inner sizes differ: %s x %s; %s.size(-1) must equal %s.size(-2)",
                              TNI_SHAPE_OF(x), TNI_SHAPE_OF(y), names[0], names[1]);
    if (rank == 3 && x->sizes[0] != y->sizes[0])
        return tni_build_fail(b, TN_ERR_SHAPE,
                              "batch sizes differ: %s x %s; %s.size(0) must equal %s.size(0)",
                              TNI_SHAPE_OF(x), TNI_SHAPE_OF(y), names[0], names[1]);
    return TN_OK;
}

/* [M, N] as [1, M, N] */
static tn_tensor *batch_of_one(tni_build *b, tn_tensor *t) {
    int64_t sizes[3] = {1, t->sizes[0], t->sizes[1]};
    int64_t strides[3] = {t->sizes[0] * t->strides[0], t->strides[0], t->strides[1]};
    return tni_build_view(b, t, 3, sizes, strides);
}

tn_status tni_infer_mm(tni_build *b) {
    tn_tensor *self = tni_build_tensor(b, 0), *mat2 = tni_build_tensor(b, 1);
    TNI_TRY(check_product(b, self, mat2, 2, (const char *[]){"self", "mat2"}));
    int64_t sizes[3] = {1, self->sizes[0], mat2->sizes[1]};
    tni_build_out(b, 0, 2, sizes + 1);
    tni_build_kernel_out(b, 0, 3, sizes);
    b->has_empty_value = true;
    b->empty_value = tn_int(0);
    tn_tensor *x = batch_of_one(b, self), *y = x ? batch_of_one(b, mat2) : NULL;
    if (!y)
        return tni_failed();
    b->kargs[0] = tni_cell_tensor(x);
    b->kargs[1] = tni_cell_tensor(y);
    return TN_OK;
}

tn_status tni_infer_bmm(tni_build *b) {
    tn_tensor *self = tni_build_tensor(b, 0), *mat2 = tni_build_tensor(b, 1);
    TNI_TRY(check_product(b, self, mat2, 3, (const char *[]){"self", "mat2"}));
    tni_build_out(b, 0, 3, (int64_t[]){self->sizes[0], self->sizes[1], mat2->sizes[2]});
    b->has_empty_value = true;
    b->empty_value = tn_int(0);
    return TN_OK;
}

/* A product of integers as pointwise products and their sums, which no order of them changes: as many
 * columns of self at a time as keep the products small. */
tn_status tni_run_bmm(const tn_cell *args, tn_cell *rets) {
#ifdef TNI_HARD
    enum { AT_ONCE = 4 };
#else
    enum { AT_ONCE = 1 << 22 };
#endif

    tn_tensor *self = tni_arg_tensor(&args[0]), *mat2 = tni_arg_tensor(&args[1]);
    int64_t inner = self->sizes[2], results = self->view.numel / inner * mat2->sizes[2];
    int64_t most = results < AT_ONCE ? AT_ONCE / results : 1;
    tni_temps tmp = {0};
    tn_tensor *out = NULL;
    for (int64_t first = 0; first < inner; first += most) {
        int64_t n = inner - first < most ? inner - first : most;
        tni_temps step = {0};
        tn_tensor *x = tni_own(&step, tni_narrow(self, 2, first, n));
        tn_tensor *y = tni_own(&step, tni_narrow(mat2, 1, first, n));
        x = tni_own(&step, tni_unsqueeze(x, 2)); /* [B, M, 1, n] */
        y = tni_own(&step, tni_unsqueeze(tni_own(&step, tni_transpose(y, 1, 2)), 1));
        tn_tensor *part =
            tni_sum_dim(tni_own(&step, tni_mul(x, y)), TN_SHAPE(-1), false, self->view.dtype);
        out = !out ? tni_own(&tmp, part)
                   : tni_own(&step, tni_add_(out, tni_own(&step, part), tn_int(1)));
        tni_temps_finish(&step);
        if (!out)
            break;
    }
    return tni_temps_return(&tmp, out, rets);
}

/* Is a factor of a product one, in what its dtype is computed in? */
static bool counts(tn_scalar factor, tn_dtype dtype) {
    double value = tni_scalar_f64(factor);
    return dtype == TN_F64 ? value != 0 : (float)value != 0;
}

/* addmm(self, mat1, mat2, beta, alpha) */
tn_status tni_infer_addmm(tni_build *b) {
    tn_tensor *self = tni_build_tensor(b, 0);
    tn_tensor *mat1 = tni_build_tensor(b, 1), *mat2 = tni_build_tensor(b, 2);
    TNI_TRY(check_product(b, mat1, mat2, 2, (const char *[]){"mat1", "mat2"}));
    int64_t sizes[2] = {mat1->sizes[0], mat2->sizes[1]}, strides[2] = {0, 0};
    bool fits = self->view.rank <= 2;
    for (int32_t d = 0; fits && d < self->view.rank; d++) {
        int32_t at = 2 - self->view.rank + d;
        fits = self->sizes[d] == sizes[at] || self->sizes[d] == 1;
        strides[at] = self->sizes[d] == 1 ? 0 : self->strides[d];
    }
    if (!fits)
        return tni_build_fail(b, TN_ERR_SHAPE,
                              "self of shape %s does not broadcast to the product's %s",
                              TNI_SHAPE_OF(self), TNI_SHAPE_OF_SIZES(2, sizes));
    if (!tni_is_float(self->view.dtype) &&
        (b->args[3].tag == TN_CELL_F64 || b->args[4].tag == TN_CELL_F64))
        return tni_build_fail(b, TN_ERR_DTYPE,
                              "beta and alpha must be integers where the tensors are %s",
                              tn_dtype_name(self->view.dtype));
    tni_build_out(b, 0, 2, sizes);
    tn_tensor *expanded = tni_build_view(b, self, 2, sizes, strides);
    if (!expanded)
        return tni_failed();
    b->kargs[0] = tni_cell_tensor(expanded);
    if (!counts(b->args[3], self->view.dtype))
        b->kargs[3] = (tn_cell){.tag = b->args[3].tag};
    if (mat1->sizes[1] > 0 && counts(b->args[4], self->view.dtype))
        return TN_OK;
    /* A product over nothing, or one that is left out, so that its NaN comes through on no device, BLAS
     * or not: beta * self. */
    b->has_copy_value = true;
    b->copy_value =
        tni_own(&b->temps, !counts(b->args[3], self->view.dtype)
                               ? tni_zeros(tn_ints_of(sizes, 2), self->view.dtype, b->device->id)
                               : tni_scaled(expanded, b->args[3]));
    return b->copy_value ? TN_OK : tni_failed();
}

/* self is not read when beta is zero, so that its NaN does not come through. */
tn_status tni_run_addmm(const tn_cell *args, tn_cell *rets) {
    tn_scalar beta = args[3], alpha = args[4];
    tni_temps tmp = {0};
    tn_tensor *product = tni_own(&tmp, tni_mm(tni_arg_tensor(&args[1]), tni_arg_tensor(&args[2])));
    if (!counts(beta, tni_arg_tensor(&args[0])->view.dtype))
        return tni_temps_return(&tmp, tni_own(&tmp, tni_scaled(product, alpha)), rets);
    tn_tensor *self = tni_own(&tmp, tni_scaled(tni_arg_tensor(&args[0]), beta));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_add(self, product, alpha)), rets);
}

/* ---- any ranks --------------------------------------------------------------------------- */

static tn_status fail_inner(const tn_tensor *x, const tn_tensor *y, const char *call,
                            const char *rule) {
    return tni_fail(TN_ERR_SHAPE, "%s: inner sizes differ: %s x %s; %s", call, TNI_SHAPE_OF(x),
                    TNI_SHAPE_OF(y), rule);
}

/* x [..., M, K] folded to [... * M, K], times y [K, N]; the result unfolded. With `bias` it is
 * added in the same call. Owned by the list. */
static tn_tensor *fold_mm(tni_temps *tmp, tn_tensor *x, tn_tensor *y, tn_tensor *bias) {
    if (!x || !y)
        return NULL;
    int32_t rank = x->view.rank;
    int64_t sizes[TN_MAX_RANK], rows = 1;
    memcpy(sizes, x->sizes, (size_t)rank * sizeof *sizes);
    for (int32_t d = 0; d < rank - 1; d++)
        rows *= sizes[d];
    tn_tensor *flat = rank == 2 ? x : tni_own(tmp, tni_reshape(x, TN_SHAPE(rows, sizes[rank - 1])));
    tn_tensor *product = tni_own(
        tmp, bias == TN_NONE ? tni_mm(flat, y) : tni_addmm(bias, flat, y, tn_int(1), tn_int(1)));
    if (rank == 2 || !product)
        return product;
    sizes[rank - 1] = product->sizes[1];
    return tni_own(tmp, tni_view(product, tn_ints_of(sizes, rank)));
}

/* t [..., M, K] with its batch broadcast to `batch` and made one dimension: [B, M, K] */
static tn_tensor *as_batch(tni_temps *tmp, tn_tensor *t, int32_t n_batch, const int64_t *batch,
                           int64_t numel) {
    int64_t sizes[TN_MAX_RANK + 2], rank = t->view.rank;
    memcpy(sizes, batch, (size_t)n_batch * sizeof *sizes);
    sizes[n_batch] = t->sizes[rank - 2];
    sizes[n_batch + 1] = t->sizes[rank - 1];
    tn_tensor *wide = tni_own(tmp, tni_expand(t, tn_ints_of(sizes, n_batch + 2)));
    return tni_own(tmp, tni_reshape(wide, TN_SHAPE(numel, sizes[n_batch], sizes[n_batch + 1])));
}

/* x [..., M, K] and y [..., K, N], one of them with a batch. */
static tn_tensor *batched(tni_temps *tmp, tn_tensor *x, tn_tensor *y) {
    if (!x || !y)
        return NULL;
    int64_t sizes[TN_MAX_RANK + 2], numel = 1;
    int32_t n_batch;
    if (!tni_broadcast(x->view.rank - 2, x->sizes, y->view.rank - 2, y->sizes, &n_batch, sizes))
        return tni_fail_null(
            TN_ERR_SHAPE,
            "tn_matmul: batch dimensions of %s x %s do not broadcast; each pair must be equal "
            "or one of them 1",
            TNI_SHAPE_OF(x), TNI_SHAPE_OF(y));
    for (int32_t d = 0; d < n_batch; d++)
        numel *= sizes[d];
    tn_tensor *a = as_batch(tmp, x, n_batch, sizes, numel);
    tn_tensor *b = as_batch(tmp, y, n_batch, sizes, numel);
    tn_tensor *product = tni_own(tmp, tni_bmm(a, b));
    sizes[n_batch] = x->sizes[x->view.rank - 2];
    sizes[n_batch + 1] = y->sizes[y->view.rank - 1];
    return tni_own(tmp, tni_view(product, tn_ints_of(sizes, n_batch + 2)));
}

tn_status tni_run_matmul(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *other = tni_arg_tensor(&args[1]);
    int32_t rank1 = self->view.rank, rank2 = other->view.rank;
    if (rank1 == 0 || rank2 == 0)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_matmul: both tensors need a dimension, but have shapes %s and %s; use "
                        "tn_mul to scale",
                        TNI_SHAPE_OF(self), TNI_SHAPE_OF(other));
    if (self->sizes[rank1 - 1] != other->sizes[rank2 == 1 ? 0 : rank2 - 2])
        return fail_inner(self, other, "tn_matmul",
                          rank2 == 1 ? "self.size(-1) must equal other.size(0)"
                                     : "self.size(-1) must equal other.size(-2)");
    if (rank1 == 2 && rank2 == 2)
        return tni_return(rets, tni_mm(self, other));
    /* a vector is a row on the left and a column on the right; its dimension of 1 goes at the end
     */
    tni_temps tmp = {0};
    tn_tensor *x = rank1 == 1 ? tni_own(&tmp, tni_unsqueeze(self, 0)) : self;
    tn_tensor *y = rank2 == 1 ? tni_own(&tmp, tni_unsqueeze(other, 1)) : other;
    tn_tensor *product = rank2 <= 2 ? fold_mm(&tmp, x, y, TN_NONE) : batched(&tmp, x, y);
    if (rank1 == 1)
        product = tni_own(&tmp, tni_squeeze_dim(product, -2));
    if (rank2 == 1)
        product = tni_own(&tmp, tni_squeeze_dim(product, -1));
    return tni_temps_return(&tmp, product, rets);
}

/* linear(input [..., K], weight [N, K], bias [N]); a weight [K] is a row, its bias a number */
tn_status tni_run_linear(const tn_cell *args, tn_cell *rets) {
    tn_tensor *input = tni_arg_tensor(&args[0]), *weight = tni_arg_tensor(&args[1]);
    tn_tensor *bias = tni_arg_some(&args[2]);
    int32_t rank = input->view.rank;
    bool row = weight->view.rank == 1;
    if (rank == 0 || (weight->view.rank != 2 && !row))
        return tni_fail(TN_ERR_SHAPE,
                        "tn_linear: expected input [..., in] and weight [out, in] or [in], but got "
                        "%s and %s",
                        TNI_SHAPE_OF(input), TNI_SHAPE_OF(weight));
    if (input->sizes[rank - 1] != weight->sizes[!row])
        return fail_inner(input, weight, "tn_linear",
                          row ? "input.size(-1) must equal weight.size(0)"
                              : "input.size(-1) must equal weight.size(1)");
    if (row && bias != TN_NONE && bias->view.rank != 0)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_linear: bias must be of rank 0 beside weight %s, but is %s",
                        TNI_SHAPE_OF(weight), TNI_SHAPE_OF(bias));
    tni_temps tmp = {0};
    if (row)
        weight = tni_own(&tmp, tni_unsqueeze(weight, 0));
    tn_tensor *x = rank == 1 ? tni_own(&tmp, tni_unsqueeze(input, 0)) : input;
    tn_tensor *transposed = tni_own(&tmp, tni_transpose(weight, 0, 1));
    tn_tensor *out = fold_mm(&tmp, x, transposed, bias);
    if (row)
        out = tni_own(&tmp, tni_squeeze_dim(out, -1));
    if (rank == 1)
        out = tni_own(&tmp, tni_squeeze_dim(out, 0));
    return tni_temps_return(&tmp, out, rets);
}

/* ---- vectors, and sums with products ----------------------------------------------------- */

static tn_status check_ranks(const char *call, const char *what, const tn_tensor *x, int32_t rank_x,
                             const tn_tensor *y, int32_t rank_y) {
    if (x->view.rank == rank_x && y->view.rank == rank_y)
        return TN_OK;
    return tni_fail(TN_ERR_SHAPE, "%s: expected %s, but got shapes %s and %s", call, what,
                    TNI_SHAPE_OF(x), TNI_SHAPE_OF(y));
}

tn_status tni_run_dot(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = tni_arg_tensor(&args[0]), *y = tni_arg_tensor(&args[1]);
    TNI_TRY(check_ranks("tn_dot", "two vectors", x, 1, y, 1));
    return tni_return(rets, tni_matmul(x, y));
}

tn_status tni_run_mv(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = tni_arg_tensor(&args[0]), *y = tni_arg_tensor(&args[1]);
    TNI_TRY(check_ranks("tn_mv", "a matrix and a vector", x, 2, y, 1));
    return tni_return(rets, tni_matmul(x, y));
}

tn_status tni_run_outer(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = tni_arg_tensor(&args[0]), *y = tni_arg_tensor(&args[1]);
    TNI_TRY(check_ranks("tn_outer", "two vectors", x, 1, y, 1));
    tni_temps tmp = {0};
    tn_tensor *column = tni_own(&tmp, tni_unsqueeze(x, 1));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_mul(column, y)), rets);
}

/* Of bool: beta and self, or alpha and product. */
static tn_status or_product(tni_temps *tmp, const tn_cell *args, tn_tensor *product,
                            tn_cell *rets) {
    bool beta = counts(args[3], TN_I64), alpha = counts(args[4], TN_I64);
    tn_tensor *self = tni_own(tmp, tni_mul_scalar(tni_arg_tensor(&args[0]), tn_bool(beta)));
    product = tni_own(tmp, tni_mul_scalar(product, tn_bool(alpha)));
    return tni_temps_return(tmp, tni_own(tmp, tni_bitwise_or(self, product)), rets);
}

/* beta * self + alpha * product, as addmm has it; self broadcasts. */
static tn_status add_product(const char *call, tni_temps *tmp, const tn_cell *args,
                             tn_tensor *product, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_scalar beta = args[3], alpha = args[4];
    int32_t rank;
    int64_t sizes[TN_MAX_RANK];
    if (!tni_is_float(self->view.dtype) && (beta.tag == TN_CELL_F64 || alpha.tag == TN_CELL_F64)) {
        tni_temps_finish(tmp);
        return tni_fail(TN_ERR_DTYPE,
                        "%s: beta and alpha must be integers where the tensors are %s", call,
                        tn_dtype_name(self->view.dtype));
    }
    if (product && (!tni_broadcast(self->view.rank, self->sizes, product->view.rank, product->sizes,
                                   &rank, sizes) ||
                    !tni_has_shape(product, rank, sizes))) {
        tn_status status =
            tni_fail(TN_ERR_SHAPE, "%s: self %s does not broadcast to the product's shape %s", call,
                     TNI_SHAPE_OF(self), TNI_SHAPE_OF(product));
        tni_temps_finish(tmp);
        return status;
    }
    if (product && product->view.dtype == TN_BOOL && self->view.dtype == TN_BOOL)
        return or_product(tmp, args, product, rets);
    if (!counts(beta, self->view.dtype))
        return tni_temps_return(tmp, tni_own(tmp, tni_scaled(product, alpha)), rets);
    tn_tensor *scaled = tni_own(tmp, tni_scaled(self, beta));
    return tni_temps_return(tmp, tni_own(tmp, tni_add(scaled, product, alpha)), rets);
}

/* addmv(self, mat, vec, beta, alpha) */
tn_status tni_run_addmv(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *product = tni_own(&tmp, tni_mv(tni_arg_tensor(&args[1]), tni_arg_tensor(&args[2])));
    return add_product("tn_addmv", &tmp, args, product, rets);
}

/* baddbmm(self, batch1, batch2, beta, alpha) */
tn_status tni_run_baddbmm(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *product = tni_own(&tmp, tni_bmm(tni_arg_tensor(&args[1]), tni_arg_tensor(&args[2])));
    return add_product("tn_baddbmm", &tmp, args, product, rets);
}

/* addr(self, vec1, vec2, beta, alpha) */
tn_status tni_run_addr(const tn_cell *args, tn_cell *rets) {
    tni_temps tmp = {0};
    tn_tensor *a = tni_arg_tensor(&args[1]), *b = tni_arg_tensor(&args[2]);
    return add_product("tn_addr", &tmp, args, tni_own(&tmp, tni_outer(a, b)), rets);
}

/* addbmm(self, batch1, batch2, beta, alpha): one product, whose inner size has the batch in it */
tn_status tni_run_addbmm(const tn_cell *args, tn_cell *rets) {
    tn_tensor *a = tni_arg_tensor(&args[1]),
              *b = tni_arg_tensor(&args[2]); /* [B, N, M], [B, M, P] */
    if (a->view.rank != 3 || b->view.rank != 3 || a->sizes[0] != b->sizes[0] ||
        a->sizes[2] != b->sizes[1])
        return tni_fail(TN_ERR_SHAPE,
                        "tn_addbmm: batch1 %s and batch2 %s; they must be [B, N, M] and [B, M, P]",
                        TNI_SHAPE_OF(a), TNI_SHAPE_OF(b));
    int64_t inner = a->sizes[0] * a->sizes[2];
    tni_temps tmp = {0};
    tn_tensor *rows = tni_own(&tmp, tni_permute(a, TN_SHAPE(1, 0, 2)));
    rows = tni_own(&tmp, tni_reshape(rows, TN_SHAPE(a->sizes[1], inner)));
    tn_tensor *columns = tni_own(&tmp, tni_reshape(b, TN_SHAPE(inner, b->sizes[2])));
    return add_product("tn_addbmm", &tmp, args, tni_own(&tmp, tni_mm(rows, columns)), rets);
}
