/* Matrix products. The kernels are bmm, on batches of matrices, and addmm. */
#include "core/ops/boxed.h"
#include "core/ops/build.h"

#include <string.h>

static tn_status sizes_differ(tni_build *b, const tn_tensor *x, const tn_tensor *y,
                              const char *what) {
    char left[TNI_SHAPE_TEXT], right[TNI_SHAPE_TEXT];
    return tni_build_fail(b, TN_SHAPE, "%s: %s x %s; self.size(-1) must equal mat2.size(-2)", what,
                          tni_shape_text(x->view.rank, x->sizes, left),
                          tni_shape_text(y->view.rank, y->sizes, right));
}

/* mm(self [M, K], mat2 [K, N]): a batch of one */
INFER(infer_mm) {
    tn_tensor *x = tni_build_tensor(b, 0), *y = tni_build_tensor(b, 1);
    if (x->view.rank != 2 || y->view.rank != 2)
        return sizes_differ(b, x, y, "two matrices are needed");
    if (x->sizes[1] != y->sizes[0])
        return sizes_differ(b, x, y, "inner sizes differ");
    const int64_t out[3] = {1, x->sizes[0], y->sizes[1]};
    for (uint32_t i = 0; i < 2; i++) {
        tn_tensor *t = tni_build_tensor(b, i);
        const int64_t sizes[3] = {1, t->sizes[0], t->sizes[1]};
        const int64_t strides[3] = {t->sizes[0] * t->sizes[1], t->strides[0], t->strides[1]};
        tn_tensor *batch = tni_build_view(b, t, 3, sizes, strides);
        if (!batch)
            return tni_failed();
        b->kargs[i] = tni_cell_tensor(batch);
    }
    b->has_empty_value = true;
    b->empty_value = tn_int(0);
    tni_build_out(b, 0, 2, out + 1);
    tni_build_kernel_out(b, 0, 3, out);
    return TN_OK;
}

/* bmm(self [B, M, K], mat2 [B, K, N]) */
INFER(infer_bmm) {
    tn_tensor *x = tni_build_tensor(b, 0), *y = tni_build_tensor(b, 1);
    if (x->view.rank != 3 || y->view.rank != 3 || x->sizes[0] != y->sizes[0])
        return sizes_differ(b, x, y, "two batches [B, M, K] and [B, K, N] are needed");
    if (x->sizes[2] != y->sizes[1])
        return sizes_differ(b, x, y, "inner sizes differ");
    const int64_t out[3] = {x->sizes[0], x->sizes[1], y->sizes[2]};
    b->has_empty_value = true;
    b->empty_value = tn_int(0);
    tni_build_out(b, 0, 3, out);
    return TN_OK;
}

/* addmm(self, mat1 [M, K], mat2 [K, N], beta, alpha); self broadcasts to [M, N] */
INFER(infer_addmm) {
    tn_tensor *self = tni_build_tensor(b, 0);
    tn_tensor *x = tni_build_tensor(b, 1), *y = tni_build_tensor(b, 2);
    char text[TNI_SHAPE_TEXT];
    if (x->view.rank != 2 || y->view.rank != 2 || x->sizes[1] != y->sizes[0])
        return sizes_differ(b, x, y, "two matrices that fit are needed");
    const int64_t out[2] = {x->sizes[0], y->sizes[1]};
    int32_t rank;
    int64_t sizes[TN_MAX_RANK];
    if (self->view.rank > 2 || !tni_broadcast(2, out, self->view.rank, self->sizes, &rank, sizes) ||
        sizes[0] != out[0] || sizes[1] != out[1])
        return tni_build_fail(b, TN_SHAPE, "self %s does not broadcast to the result [%lld, %lld]",
                              tni_shape_text(self->view.rank, self->sizes, text), (long long)out[0],
                              (long long)out[1]);
    int64_t strides[2];
    for (int32_t d = 0; d < 2; d++) {
        int32_t s = d - (2 - self->view.rank);
        strides[d] = s < 0 || (self->sizes[s] == 1 && out[d] != 1) ? 0 : self->strides[s];
    }
    tn_tensor *wide = tni_build_view(b, self, 2, out, strides);
    b->kargs[0] = tni_cell_tensor(wide);
    tni_build_out(b, 0, 2, out);
    if (x->sizes[1] == 0) { /* nothing is multiplied: beta * self */
        tn_tensor *scaled = wide ? tni_build_own(b, tni_scaled(wide, b->args[3])) : NULL;
        b->has_copy_value = true;
        b->copy_value = scaled;
        return scaled ? TN_OK : tni_failed();
    }
    return wide ? TN_OK : tni_failed();
}

BOXED(run_addmm) {
    tni_temps temps = {0};
    tn_tensor *product = OWN(tni_mm(tni_arg_tensor(&args[1]), tni_arg_tensor(&args[2])));
    product = OWN(tni_scaled(product, args[4]));
    if (tni_scalar_f64(args[3]) == 0)
        RETURN(product);
    RETURN(OWN(tni_add(product, tni_arg_tensor(&args[0]), args[3])));
}

/* Batches of matrices of any rank: broadcast, folded to rank 3, multiplied, unfolded. */
static tn_tensor *batched(tni_temps *list, tn_tensor *x, tn_tensor *y) {
    tni_temps temps = {0};
    int64_t batch[TN_MAX_RANK], left[TN_MAX_RANK], right[TN_MAX_RANK], out[TN_MAX_RANK];
    int32_t n;
    if (!tni_broadcast(x->view.rank - 2, x->sizes, y->view.rank - 2, y->sizes, &n, batch)) {
        char a[TNI_SHAPE_TEXT], c[TNI_SHAPE_TEXT];
        tni_fail(TN_SHAPE, "tn_matmul: the batches of %s and %s do not broadcast",
                 tni_shape_text(x->view.rank, x->sizes, a),
                 tni_shape_text(y->view.rank, y->sizes, c));
        return NULL;
    }
    int64_t count = 1;
    for (int32_t d = 0; d < n; d++) {
        left[d] = right[d] = out[d] = batch[d];
        count *= batch[d];
    }
    int64_t m = left[n] = out[n] = x->sizes[x->view.rank - 2];
    int64_t k = left[n + 1] = x->sizes[x->view.rank - 1];
    right[n] = y->sizes[y->view.rank - 2];
    int64_t p = right[n + 1] = out[n + 1] = y->sizes[y->view.rank - 1];
    tn_tensor *a =
        OWN(tni_reshape(OWN(tni_expand(x, tn_ints_of(left, n + 2))), TN_SHAPE(count, m, k)));
    tn_tensor *c = OWN(
        tni_reshape(OWN(tni_expand(y, tn_ints_of(right, n + 2))), TN_SHAPE(count, right[n], p)));
    tn_tensor *product = OWN(tni_bmm(a, c));
    tn_tensor *result = OWN(tni_reshape(product, tn_ints_of(out, n + 2)));
    return tni_own(list, tni_temps_keep(&temps, result));
}

BOXED(run_matmul) {
    tni_temps temps = {0};
    tn_tensor *x = tni_arg_tensor(&args[0]), *y = tni_arg_tensor(&args[1]);
    if (x->view.rank == 2 && y->view.rank == 2)
        return tni_return(rets, tni_mm(x, y));
    if (x->view.rank == 0 || y->view.rank == 0)
        return tni_fail(TN_SHAPE,
                        "tn_matmul: both operands need at least one dimension; use tn_mul "
                        "for scalars");
    bool row = x->view.rank == 1, column = y->view.rank == 1;
    x = row ? OWN(tni_unsqueeze(x, 0)) : x;
    y = column ? OWN(tni_unsqueeze(y, 1)) : y;
    if (!x || !y)
        RETURN(NULL);
    tn_tensor *result;
    if (x->view.rank == 2 && y->view.rank == 2) {
        result = OWN(tni_mm(x, y));
    } else if (y->view.rank == 2) {
        /* [..., M, K] x [K, N] is one product of [... * M, K] */
        int64_t sizes[TN_MAX_RANK];
        memcpy(sizes, x->sizes, (size_t)x->view.rank * sizeof *sizes);
        sizes[x->view.rank - 1] = y->sizes[1];
        tn_tensor *flat = OWN(tni_reshape(
            x, TN_SHAPE(x->sizes[x->view.rank - 1] ? -1 : 0, x->sizes[x->view.rank - 1])));
        result = OWN(tni_reshape(OWN(tni_mm(flat, y)), tn_ints_of(sizes, x->view.rank)));
    } else {
        result = batched(&temps, x, y);
    }
    if (result && column)
        result = OWN(tni_squeeze_dim(result, -1));
    if (result && row)
        result = OWN(tni_squeeze_dim(result, column ? -1 : -2));
    RETURN(result);
}

/* linear(input [..., I], weight [O, I], bias [O]) */
BOXED(run_linear) {
    tni_temps temps = {0};
    tn_tensor *input = tni_arg_tensor(&args[0]), *bias = tni_arg_some(&args[2]);
    tn_tensor *weight = OWN(tni_t(tni_arg_tensor(&args[1])));
    if (bias != TN_NONE && input->view.rank == 2)
        RETURN(OWN(tni_addmm(bias, input, weight, tn_int(1), tn_int(1))));
    tn_tensor *product = OWN(tni_matmul(input, weight));
    RETURN(bias == TN_NONE ? product : OWN(tni_add(product, bias, tn_int(1))));
}
