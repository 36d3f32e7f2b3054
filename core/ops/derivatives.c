/* See derivatives.h: the parts of backward formulas that are no single expression. */
#include "core/ops/derivatives.h"
#include "core/ops/temps.h"

#include <string.h>

uint32_t tni_needed(const tni_node *node) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < node->n_edges && i < 32; i++)
        mask |= tni_node_needs(node, i) ? 1u << i : 0;
    return mask;
}

tn_tensor *tni_unpack(tni_node *node, uint32_t k) {
    bool undefined = false;
    tn_tensor *t = tni_node_saved(node, k, &undefined);
    return undefined ? TN_NONE : t;
}

void tni_drop_all(tn_tensor **out, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        tni_drop(out[i]);
        out[i] = NULL;
    }
}

/* ---- views: the gradient goes to where the view's elements lie --------------------------- */

tn_tensor *tni_permute_backward(tn_tensor *grad, tn_ints dims) {
    int64_t inverse[TN_MAX_RANK];
    for (int64_t i = 0; i < dims.n; i++)
        inverse[dims.data[i] < 0 ? dims.data[i] + dims.n : dims.data[i]] = i;
    return tni_permute(grad, tn_ints_of(inverse, dims.n));
}

/* Zeros of the input's shape with grad copied into `place`, a view of them. Drops place, keeps
 * whole. */
static tn_tensor *put(tn_tensor *whole, tn_tensor *place, tn_tensor *grad) {
    tn_tensor *written = tni_copy_(place, grad, false);
    tni_drop(place);
    tni_drop(written);
    if (!written) {
        tni_drop(whole);
        return NULL;
    }
    return whole;
}

static tn_tensor *zeros_for(tn_tensor *grad, tn_ints sizes) {
    return grad ? tni_zeros(sizes, grad->view.dtype, grad->device->id) : NULL;
}

tn_tensor *tni_select_backward(tn_tensor *grad, tn_ints sizes, int64_t dim, int64_t index) {
    tn_tensor *whole = zeros_for(grad, sizes);
    return put(whole, tni_select(whole, dim, index), grad);
}

tn_tensor *tni_slice_backward(tn_tensor *grad, tn_ints sizes, int64_t dim, int64_t start,
                              int64_t end, int64_t step) {
    tn_tensor *whole = zeros_for(grad, sizes);
    return put(whole, tni_slice(whole, dim, start, end, step), grad);
}

tn_tensor *tni_diagonal_backward(tn_tensor *grad, tn_ints sizes, int64_t offset, int64_t dim1,
                                 int64_t dim2) {
    tn_tensor *whole = zeros_for(grad, sizes);
    return put(whole, tni_diagonal(whole, offset, dim1, dim2), grad);
}

/* Elements from the first to the last of a geometry, both counted. */
static int64_t extent(tn_ints sizes, tn_ints strides) {
    int64_t last = 0;
    for (int64_t d = 0; d < sizes.n; d++) {
        if (sizes.data[d] == 0)
            return 0;
        last += (sizes.data[d] - 1) * strides.data[d];
    }
    return last + 1;
}

/* In the stretch of memory that holds both self and the view. Elements of the view may share
 * memory, so gradients are added: at the places that the same view of 0, 1, 2, ... names. */
tn_tensor *tni_as_strided_backward(tn_tensor *grad, tn_ints sizes, tn_ints strides, int64_t offset,
                                   tn_ints size, tn_ints stride, int64_t view_offset) {
    if (!grad)
        return NULL;
    if (view_offset == TN_NO_INT)
        view_offset = offset;
    int64_t start = offset < view_offset ? offset : view_offset;
    int64_t end = offset + extent(sizes, strides), view_end = view_offset + extent(size, stride);
    int64_t n = (end > view_end ? end : view_end) - start;
    tni_temps temps = {0};
    tn_tensor *places = OWN(tni_arange(tn_int(n), TN_I64, grad->device->id));
    tn_tensor *view = OWN(tni_as_strided(places, size, stride, view_offset - start));
    tn_tensor *index = OWN(tni_reshape(view, TN_SHAPE(-1)));
    tn_tensor *flat = OWN(tni_zeros(TN_SHAPE(n), grad->view.dtype, grad->device->id));
    tn_tensor *sum = OWN(tni_scatter_add(flat, 0, index, OWN(tni_reshape(grad, TN_SHAPE(-1)))));
    return tni_temps_keep(&temps, OWN(tni_as_strided(sum, sizes, strides, offset - start)));
}

/* ---- pointwise --------------------------------------------------------------------------- */

/* exponent * self ^ (exponent - 1), 0 where the exponent is 0 */
tn_tensor *tni_pow_backward_self(tn_tensor *grad, tn_tensor *self, tn_tensor *exponent) {
    tni_temps temps = {0};
    tn_tensor *less = OWN(tni_add_scalar(exponent, tn_int(-1), tn_int(1)));
    tn_tensor *slope = OWN(tni_mul(exponent, OWN(tni_pow(self, less))));
    tn_tensor *zero = OWN(tni_eq_scalar(exponent, tn_int(0)));
    slope = OWN(tni_where(zero, OWN(tni_zero_of(slope)), slope));
    return tni_temps_keep(&temps, OWN(tni_mul(grad, slope)));
}

/* self ^ exponent * log(self), 0 where self is 0 and the exponent is not negative */
tn_tensor *tni_pow_backward_exponent(tn_tensor *grad, tn_tensor *self, tn_tensor *exponent,
                                     tn_tensor *result) {
    tni_temps temps = {0};
    tn_tensor *flat = OWN(tni_bitwise_and(OWN(tni_eq_scalar(self, tn_int(0))),
                                          OWN(tni_ge_scalar(exponent, tn_int(0)))));
    tn_tensor *slope = OWN(tni_mul(result, OWN(tni_log(self))));
    slope = OWN(tni_where(flat, OWN(tni_zero_of(slope)), slope));
    return tni_temps_keep(&temps, OWN(tni_mul(grad, slope)));
}

tn_tensor *tni_pow_scalar_backward(tn_tensor *grad, tn_tensor *self, tn_scalar exponent) {
    double e = tni_scalar_f64(exponent);
    if (e == 0)
        return grad ? tni_zeros_like(grad, TN_DTYPE_NONE, tn_no_device()) : NULL;
    tni_temps temps = {0};
    tn_scalar less = exponent.tag == TN_CELL_F64 ? tn_float(e - 1) : tn_int(exponent.v.i64 - 1);
    tn_tensor *slope = OWN(tni_mul_scalar(OWN(tni_pow_scalar(self, less)), exponent));
    return tni_temps_keep(&temps, OWN(tni_mul(grad, slope)));
}

tn_tensor *tni_clamp_backward(tn_tensor *grad, tn_tensor *self, tn_scalar min, tn_scalar max) {
    tni_temps temps = {0};
    tn_tensor *in = min.tag != TN_CELL_NONE ? OWN(tni_ge_scalar(self, min)) : NULL;
    if (max.tag != TN_CELL_NONE) {
        tn_tensor *below = OWN(tni_le_scalar(self, max));
        in = in ? OWN(tni_bitwise_and(in, below)) : below;
    }
    return tni_temps_keep(&temps, in ? OWN(tni_where(in, grad, OWN(tni_zero_of(grad))))
                                     : tni_own(&temps, tni_keep_some(grad)));
}

static tn_tensor *extremum_backward(tn_tensor *grad, tn_tensor *self, tn_tensor *other,
                                    tn_tensor *(*loses)(tn_tensor *, tn_tensor *)) {
    tni_temps temps = {0};
    tn_tensor *half = OWN(tni_mul_scalar(grad, tn_float(0.5)));
    tn_tensor *shared = OWN(tni_where(OWN(tni_eq(self, other)), half, grad));
    return tni_temps_keep(&temps,
                          OWN(tni_where(OWN(loses(self, other)), OWN(tni_zero_of(grad)), shared)));
}

tn_tensor *tni_maximum_backward(tn_tensor *grad, tn_tensor *self, tn_tensor *other) {
    return extremum_backward(grad, self, other, tni_lt);
}

tn_tensor *tni_minimum_backward(tn_tensor *grad, tn_tensor *self, tn_tensor *other) {
    return extremum_backward(grad, self, other, tni_gt);
}
