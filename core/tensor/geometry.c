/* Shapes and strides as numbers: no tensor is made or read here. */
#include "core/tensor/tensor.h"
#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>

void tni_contiguous_strides(int32_t rank, const int64_t *sizes, int64_t *out_strides) {
    int64_t stride = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        out_strides[i] = stride;
        stride *= sizes[i] ? sizes[i] : 1;
    }
}

bool tni_numel(int32_t rank, const int64_t *sizes, int64_t element_size, int64_t *out_numel) {
    /* Sizes of zero count as one, so that the strides of an empty tensor do not overflow either. */
    int64_t product = 1, bytes;
    bool empty = false;
    *out_numel = 0;
    for (int32_t i = 0; i < rank; i++) {
        empty |= sizes[i] == 0;
        if (sizes[i] < 0 || !tni_mul_i64(product, sizes[i] ? sizes[i] : 1, &product))
            return false;
    }
    if (!tni_mul_i64(product, element_size, &bytes))
        return false;
    *out_numel = empty ? 0 : product;
    return true;
}

bool tni_check_sizes(const char *call, tn_ints sizes) {
    bool at_null = sizes.n > 0 && !sizes.data;
    if (sizes.n >= 0 && sizes.n <= TN_MAX_RANK && !at_null)
        return true;
    tni_fail(TN_ERR_INVALID_ARGUMENT,
             "%s: the shape has %lld sizes%s; give 0 to %d, for example TN_SHAPE(2, 3)", call,
             (long long)sizes.n, at_null ? " at NULL" : "", TN_MAX_RANK);
    return false;
}

bool tni_lay_out(const char *call, tn_ints sizes, tn_ints strides, tn_dtype dtype,
                 tni_layout *out) {
    if (!tni_check_sizes(call, sizes))
        return false;
    if (strides.n >= 0 && (strides.n != sizes.n || (strides.n > 0 && !strides.data))) {
        tni_fail(TN_ERR_INVALID_ARGUMENT,
                 "%s: %lld strides%s for %lld sizes; give one for each, or none at all"
                 " (tn_no_ints()) for row-major",
                 call, (long long)strides.n, strides.n > 0 && !strides.data ? " at NULL" : "",
                 (long long)sizes.n);
        return false;
    }
    if (!tni_is_dtype(dtype)) {
        tni_fail(TN_ERR_DTYPE, "%s: %d is no dtype", call, dtype);
        return false;
    }
    int32_t rank = out->rank = (int32_t)sizes.n;
    int64_t item = tni_dtype_size(dtype), reach = 0;
    bool fits = strides.n >= 0 || tni_numel(rank, sizes.data, item, &out->numel);
    if (fits && strides.n < 0)
        tni_contiguous_strides(rank, sizes.data, out->strides);
    for (int32_t d = 0; d < rank && strides.n >= 0; d++)
        out->strides[d] = strides.data[d];
    fits = fits && tni_reach(rank, sizes.data, out->strides, &out->numel, &reach) &&
           tni_mul_i64(reach, item, &out->bytes);
    if (!fits) {
        const char *stride_text =
            strides.n >= 0 ? TNI_SHAPE_OF_SIZES(rank, strides.data) : "row-major";
        tni_fail(TN_ERR_SHAPE,
                 "%s: sizes %s, strides %s: they must not be negative, and what they reach must fit"
                 " in 63 bits",
                 call, TNI_SHAPE_OF_SIZES(rank, sizes.data), stride_text);
    }
    return fits;
}

bool tni_is_contiguous(const tn_tensor_view *v) {
    int64_t stride = 1;
    if (v->numel == 0)
        return true;
    for (int32_t i = v->rank - 1; i >= 0; i--) {
        if (v->sizes[i] != 1) {
            if (v->strides[i] != stride)
                return false;
            stride *= v->sizes[i];
        }
    }
    return true;
}

/* Dimensions of more than one element by rising stride, then size. Returns how many. */
static int32_t sort_dims(const tn_tensor_view *v, int32_t out[TN_MAX_RANK]) {
    int32_t n = 0;
    for (int32_t i = v->rank - 1; i >= 0; i--) {
        if (v->sizes[i] == 1)
            continue;
        int32_t k = n++;
        while (k > 0 &&
               (v->strides[out[k - 1]] > v->strides[i] ||
                (v->strides[out[k - 1]] == v->strides[i] && v->sizes[out[k - 1]] > v->sizes[i]))) {
            out[k] = out[k - 1];
            k--;
        }
        out[k] = i;
    }
    return n;
}

bool tni_is_dense(const tn_tensor_view *v) {
    if (v->numel <= 1 || tni_is_contiguous(v))
        return true;
    int32_t dims[TN_MAX_RANK];
    int32_t n = sort_dims(v, dims);
    int64_t expected = 1;
    for (int32_t i = 0; i < n; i++) {
        if (v->strides[dims[i]] != expected)
            return false;
        expected *= v->sizes[dims[i]];
    }
    return true;
}

bool tni_may_overlap(const tn_tensor_view *v) {
    if (v->numel <= 1 || tni_is_contiguous(v))
        return false;
    /* Elements are apart for certain when each stride steps over all that the smaller ones reach.
     */
    int32_t dims[TN_MAX_RANK];
    int32_t n = sort_dims(v, dims);
    int64_t last = 0;
    for (int32_t i = 0; i < n; i++) {
        if (v->strides[dims[i]] <= last)
            return true;
        last += (v->sizes[dims[i]] - 1) * v->strides[dims[i]];
    }
    return false;
}

void tni_view_extent(const tn_tensor_view *v, uint64_t *out_begin, uint64_t *out_end) {
    *out_begin = *out_end = v->offset;
    if (v->numel == 0)
        return;
    int64_t last = 0;
    for (int32_t i = 0; i < v->rank; i++)
        last += (v->sizes[i] - 1) * v->strides[i];
    *out_end += (uint64_t)((last + 1) * tni_dtype_size(v->dtype));
}

static bool same_view(const tn_tensor_view *a, const tn_tensor_view *b) {
    if (a->offset != b->offset || a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++) {
        if (a->sizes[i] != b->sizes[i] || (a->strides[i] != b->strides[i] && a->sizes[i] != 1))
            return false;
    }
    return true;
}

bool tni_partial_overlap(const tn_tensor *a, const tn_tensor *b) {
    if (a == b || a->storage != b->storage || a->view.numel == 0 || b->view.numel == 0 ||
        same_view(&a->view, &b->view))
        return false;
    uint64_t a_begin, a_end, b_begin, b_end;
    tni_view_extent(&a->view, &a_begin, &a_end);
    tni_view_extent(&b->view, &b_begin, &b_end);
    return a_begin < b_end && b_begin < a_end;
}

int32_t tni_wrap_dim(int64_t dim, int32_t rank, const char *what) {
    int64_t n = rank ? rank : 1;
    if (TNI_UNLIKELY(dim < -n || dim >= n)) {
        tni_fail(TN_ERR_SHAPE,
                 "%s: dimension %lld is out of range; for rank %d it goes from %lld to"
                 " %lld",
                 what, (long long)dim, rank, (long long)-n, (long long)n - 1);
        return -1;
    }
    return (int32_t)(dim < 0 ? dim + n : dim);
}

char *tni_shape_text(int32_t rank, const int64_t *sizes, char out[TNI_SHAPE_TEXT]) {
    size_t at = 0;
    out[at++] = '[';
    for (int32_t i = 0; i < rank && at < TNI_SHAPE_TEXT - 32; i++)
        at += (size_t)snprintf(out + at, TNI_SHAPE_TEXT - at, i ? ", %lld" : "%lld",
                               (long long)sizes[i]);
    out[at++] = ']';
    out[at] = 0;
    return out;
}

bool tni_broadcast(int32_t rank_a, const int64_t *a, int32_t rank_b, const int64_t *b,
                   int32_t *out_rank, int64_t *out) {
    int32_t rank = rank_a > rank_b ? rank_a : rank_b;
    *out_rank = rank;
    for (int32_t i = 1; i <= rank; i++) { /* from the last dimension; `out` may be a or b */
        int64_t x = i <= rank_a ? a[rank_a - i] : 1;
        int64_t y = i <= rank_b ? b[rank_b - i] : 1;
        if (x != y && x != 1 && y != 1)
            return false;
        out[rank - i] = x == 1 ? y : x;
    }
    return true;
}
