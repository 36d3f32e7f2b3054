/* Products of tensors over chosen dimensions: tensordot, inner, kron and the cross product. */
#include "core/ops/dims.h"
#include "core/ops/functions.h"

#include <string.h>

/* ---- sums over dimensions of both -------------------------------------------------------- */

/* x as a matrix: dimensions `dims` as the rows when `first`, else as the columns, in their order;
 * the others are appended to `sizes`. */
static tn_tensor *as_matrix(tni_temps *tmp, tn_tensor *x, tn_ints dims, bool first, int64_t *sizes,
                            int64_t *n_sizes) {
    int64_t order[TN_MAX_RANK], free[TN_MAX_RANK], n_free = 0, inner = 1, outer = 1;
    uint32_t mask = 0;
    for (int64_t i = 0; i < dims.n; i++) {
        mask |= 1u << dims.data[i];
        inner *= x->sizes[dims.data[i]];
    }
    for (int32_t d = 0; d < x->view.rank; d++) {
        if (mask >> d & 1)
            continue;
        free[n_free++] = d;
        outer *= x->sizes[d];
        sizes[(*n_sizes)++] = x->sizes[d];
    }
    memcpy(order + (first ? 0 : n_free), dims.data, (size_t)dims.n * sizeof *order);
    memcpy(order + (first ? dims.n : 0), free, (size_t)n_free * sizeof *order);
    tn_tensor *p = tni_own(tmp, tni_permute(x, tn_ints_of(order, x->view.rank)));
    return tni_own(tmp, tni_reshape(p, first ? TN_SHAPE(inner, outer) : TN_SHAPE(outer, inner)));
}

/* Sums over pairs of dimensions; one of size 1 stands for as many as the other has. */
static tn_status contract(const char *call, tn_tensor *x, tn_tensor *y, tn_ints dims_x,
                          tn_ints dims_y, tn_cell *rets) {
    int64_t a[TN_MAX_RANK], b[TN_MAX_RANK], sizes[2 * TN_MAX_RANK], n_sizes = 0;
    uint32_t seen;
    if (dims_x.n != dims_y.n)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: dims_self names %lld dimensions and dims_other %lld; they are summed "
                        "over in pairs",
                        call, (long long)dims_x.n, (long long)dims_y.n);
    if (dims_x.n > 0 && (x->view.rank == 0 || y->view.rank == 0))
        return tni_fail(TN_ERR_SHAPE, "%s: a tensor without dimensions has none to sum over", call);
    if (dims_x.n > 0 && (!tni_reduce_mask(dims_x, x->view.rank, call, &seen) ||
                         !tni_reduce_mask(dims_y, y->view.rank, call, &seen)))
        return tni_failed();
    tni_temps tmp = {0};
    for (int64_t i = 0; i < dims_x.n && x && y; i++) {
        a[i] = tni_wrap_dim(dims_x.data[i], x->view.rank, call);
        b[i] = tni_wrap_dim(dims_y.data[i], y->view.rank, call);
        int64_t n = x->sizes[a[i]], m = y->sizes[b[i]];
        if (n == m)
            continue;
        if (n != 1 && m != 1) {
            tni_temps_finish(&tmp);
            return tni_fail(TN_ERR_SHAPE,
                            "%s: dimension %lld of self %s and dimension %lld of other %s are "
                            "summed over together, so they must be of one size, or of size 1",
                            call, (long long)a[i], TNI_SHAPE_OF(x), (long long)b[i],
                            TNI_SHAPE_OF(y));
        }
        if (n == 1)
            y = tni_own(&tmp, tni_sum_dim(y, TN_SHAPE(b[i]), true, y->view.dtype));
        else
            x = tni_own(&tmp, tni_sum_dim(x, TN_SHAPE(a[i]), true, x->view.dtype));
    }
    if (!x || !y)
        return tni_temps_return(&tmp, NULL, rets);
    if (x->view.rank + y->view.rank - 2 * dims_x.n > TN_MAX_RANK) {
        tni_temps_finish(&tmp);
        return tni_fail(TN_ERR_SHAPE, "%s: the result would have more than %d dimensions", call,
                        TN_MAX_RANK);
    }
    tn_tensor *left = as_matrix(&tmp, x, tn_ints_of(a, dims_x.n), false, sizes, &n_sizes);
    tn_tensor *right = as_matrix(&tmp, y, tn_ints_of(b, dims_x.n), true, sizes, &n_sizes);
    tn_tensor *product = tni_own(&tmp, tni_mm(left, right));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_reshape(product, tn_ints_of(sizes, n_sizes))),
                            rets);
}

/* tensordot(self, other, dims_self, dims_other) */
tn_status tni_run_tensordot(const tn_cell *args, tn_cell *rets) {
    return contract("tn_tensordot", tni_arg_tensor(&args[0]), tni_arg_tensor(&args[1]),
                    tni_arg_ints(&args[2]), tni_arg_ints(&args[3]), rets);
}

tn_status tni_run_inner(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = tni_arg_tensor(&args[0]), *y = tni_arg_tensor(&args[1]);
    if (x->view.rank == 0 || y->view.rank == 0)
        return tni_return(rets, tni_mul(x, y));
    if (x->sizes[x->view.rank - 1] != y->sizes[y->view.rank - 1])
        return tni_fail(TN_ERR_SHAPE,
                        "tn_inner: self %s and other %s must have last dimensions of one size",
                        TNI_SHAPE_OF(x), TNI_SHAPE_OF(y));
    return contract("tn_inner", x, y, TN_SHAPE(-1), TN_SHAPE(-1), rets);
}

/* ---- products of all pairs --------------------------------------------------------------- */

/* kron(self, other): self with each element as its product with all of other. Where twice the
 * dimensions cannot be, both are made as large as the result. */
tn_status tni_run_kron(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = tni_arg_tensor(&args[0]), *y = tni_arg_tensor(&args[1]);
    int32_t rank = x->view.rank > y->view.rank ? x->view.rank : y->view.rank;
    int64_t a[2 * TN_MAX_RANK], b[2 * TN_MAX_RANK], n[TN_MAX_RANK], m[TN_MAX_RANK],
        sizes[TN_MAX_RANK];
    for (int32_t d = 0; d < rank; d++) {
        int32_t dx = d - (rank - x->view.rank), dy = d - (rank - y->view.rank);
        a[2 * d] = n[d] = dx < 0 ? 1 : x->sizes[dx];
        b[2 * d + 1] = m[d] = dy < 0 ? 1 : y->sizes[dy];
        a[2 * d + 1] = b[2 * d] = 1;
        if (!tni_mul_i64(n[d], m[d], &sizes[d]))
            return tni_fail(TN_ERR_SHAPE,
                            "tn_kron: the product of shapes %s and %s has more elements than can "
                            "be counted",
                            TNI_SHAPE_OF(x), TNI_SHAPE_OF(y));
    }
    tni_temps tmp = {0};
    tn_ints all = tn_ints_of(sizes, rank);
    if (2 * rank <= TN_MAX_RANK) {
        x = tni_own(&tmp, tni_reshape(x, tn_ints_of(a, 2 * rank)));
        y = tni_own(&tmp, tni_reshape(y, tn_ints_of(b, 2 * rank)));
        tn_tensor *product = tni_own(&tmp, tni_mul(x, y));
        return tni_temps_return(&tmp, tni_own(&tmp, tni_reshape(product, all)), rets);
    }
    x = tni_own(&tmp, tni_reshape(x, tn_ints_of(n, rank)));
    for (int32_t d = 0; d < rank; d++)
        if (m[d] != 1)
            x = tni_then(&tmp, tni_repeat_interleave_int(x, m[d], d, TN_NO_INT), x);
    y = tni_own(&tmp, tni_repeat(y, tn_ints_of(n, rank)));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_mul(x, y)), rets);
}

/* ---- the cross product ------------------------------------------------------------------- */

/* Element i is x[i + 1] y[i + 2] - x[i + 2] y[i + 1], counted around. */
static tn_status cross(const char *call, tn_tensor *x, tn_tensor *y, int64_t dim_arg,
                       tn_cell *rets) {
    int32_t rank = x->view.rank, dim = tni_wrap_dim(dim_arg, rank, call);
    if (dim < 0)
        return tni_failed();
    if (rank == 0 || y->view.rank != rank || x->sizes[dim] != 3 || y->sizes[dim] != 3)
        return tni_fail(TN_ERR_SHAPE,
                        "%s: self %s and other %s must have as many dimensions, and 3 elements "
                        "along dimension %d",
                        call, TNI_SHAPE_OF(x), TNI_SHAPE_OF(y), dim);
    tni_temps tmp = {0};
    tn_ints dims = TN_SHAPE(dim);
    tn_tensor *x1 = tni_own(&tmp, tni_roll(x, TN_SHAPE(-1), dims));
    tn_tensor *x2 = tni_own(&tmp, tni_roll(x, TN_SHAPE(-2), dims));
    tn_tensor *y1 = tni_own(&tmp, tni_roll(y, TN_SHAPE(-1), dims));
    tn_tensor *y2 = tni_own(&tmp, tni_roll(y, TN_SHAPE(-2), dims));
    tn_tensor *plus = tni_own(&tmp, tni_mul(x1, y2)), *minus = tni_own(&tmp, tni_mul(x2, y1));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_sub(plus, minus, tn_int(1))), rets);
}

tn_status tni_run_linalg_cross(const tn_cell *args, tn_cell *rets) {
    return cross("tn_linalg_cross", tni_arg_tensor(&args[0]), tni_arg_tensor(&args[1]),
                 args[2].v.i64, rets);
}

/* cross(self, other, dim): along the first dimension of 3 elements when dim is left out */
tn_status tni_run_cross(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = tni_arg_tensor(&args[0]), *y = tni_arg_tensor(&args[1]);
    int64_t dim = tni_arg_int(&args[2]);
    if (dim == TN_NO_INT) {
        for (dim = 0; dim < x->view.rank && x->sizes[dim] != 3; dim++)
            continue;
        if (dim == x->view.rank)
            return tni_fail(TN_ERR_SHAPE, "tn_cross: no dimension of self has 3 elements");
    }
    return cross("tn_cross", x, y, dim, rets);
}
