/* Views: other geometries over the same storage. No device is asked; nothing moves. */
#include "base/alloc.h"
#include "core/autograd/engine.h"
#include "core/ops/dims.h"
#include "core/ops/functions.h"

#include <string.h>

static tn_status return_view(tn_cell *rets, tn_tensor *self, int32_t rank, const int64_t *sizes,
                             const int64_t *strides, int64_t offset) {
    return tni_return(rets, tni_tensor_view(self, rank, sizes, strides, offset));
}

/* All of self's elements, from its first. */
static tn_status return_all(tn_cell *rets, tn_tensor *self, int32_t rank, const int64_t *sizes,
                            const int64_t *strides) {
    return tni_return(rets, tni_tensor_view_all(self, rank, sizes, strides));
}

/* Where element `index` along a stride of self lies. What cannot be counted is the place of no
 * element: an empty view, which may begin anywhere, begins where self does. */
static int64_t place_of(const tn_tensor *self, int64_t index, int64_t stride) {
    int64_t offset = tni_offset_elements(self), at, bytes;
    bool counts = tni_mul_i64(index, stride, &at) && tni_add_i64(offset, at, &at) &&
                  tni_mul_i64(at, tni_dtype_size(self->view.dtype), &bytes);
    return counts ? at : offset;
}

/* n times a stride; where that is too large to count, it stands between no two elements. */
static int64_t scaled_stride(int64_t stride, int64_t n) {
    int64_t scaled;
    return tni_mul_i64(stride, n, &scaled) ? scaled : stride;
}

tn_status tni_run_alias(const tn_cell *args, tn_cell *rets) {
    return tni_return(rets, tni_tensor_alias(tni_arg_tensor(&args[0])));
}

/* ---- view and reshape -------------------------------------------------------------------- */

/* Fills in -1 and checks that the number of elements stays. */
static tn_status resolve_shape(const char *call, const tn_tensor *self, tn_ints shape,
                               int64_t *out) {
    int64_t known = 1, open = -1;
    bool empty = false;
    if ((uint64_t)shape.n > TN_MAX_RANK)
        return tni_fail(TN_ERR_SHAPE, "%s: the shape must have 0 to %d dimensions, but has %lld",
                        call, TN_MAX_RANK, (long long)shape.n);
    for (int64_t d = 0; d < shape.n; d++) {
        out[d] = shape.data[d];
        if (out[d] == -1 && open < 0)
            open = d;
        else if (out[d] < 0)
            return tni_fail(TN_ERR_SHAPE,
                            "%s: shape %s: one size may be -1, no other may be negative", call,
                            TNI_SHAPE_OF_INTS(shape));
        else if (out[d] == 0) /* counts as one, as in tni_numel: strides must fit, too */
            empty = true;
        else if (!tni_mul_i64(known, out[d], &known))
            return tni_fail(TN_ERR_SHAPE, "%s: the sizes of shape %s multiply to more than 63 bits",
                            call, TNI_SHAPE_OF_INTS(shape));
    }
    known = empty ? 0 : known;
    if (open >= 0 && known > 0 && self->view.numel % known == 0) {
        out[open] = self->view.numel / known;
        known *= out[open];
    } else if (open >= 0 && known == 0) {
        return tni_fail(TN_ERR_SHAPE, "%s: -1 in shape %s stands for any number, for a size is 0",
                        call, TNI_SHAPE_OF_INTS(shape));
    }
    if (known != self->view.numel || (open >= 0 && out[open] < 0))
        return open >= 0
                   ? tni_fail(TN_ERR_SHAPE,
                              "%s: no size in the place of -1 makes shape %s hold the %lld "
                              "elements of self %s",
                              call, TNI_SHAPE_OF_INTS(shape), (long long)self->view.numel,
                              TNI_SHAPE_OF(self))
                   : tni_fail(TN_ERR_SHAPE,
                              "%s: shape %s has %lld elements, but self %s has %lld; they must be "
                              "as many",
                              call, TNI_SHAPE_OF_INTS(shape), (long long)known, TNI_SHAPE_OF(self),
                              (long long)self->view.numel);
    return TN_OK;
}

/* Strides that show self in `sizes`, by runs of dimensions that lie densely in each other (as
 * ATen's computeStride). False: only a copy can. */
static bool view_strides(const tn_tensor *self, int32_t rank, const int64_t *sizes,
                         int64_t *strides) {
    if (self->view.rank == 0 || tni_is_contiguous(&self->view)) {
        tni_contiguous_strides(rank, sizes, strides);
        return true;
    }
    int32_t d = rank - 1;
    int64_t base = self->strides[self->view.rank - 1];
    int64_t run = 1, taken = 1, next;
    for (int32_t s = self->view.rank - 1; s >= 0; s--) {
        run *= self->sizes[s];
        bool ends = s == 0 || (self->sizes[s - 1] != 1 &&
                               (!tni_mul_i64(run, base, &next) || self->strides[s - 1] != next));
        if (!ends)
            continue;
        while (d >= 0 && (taken < run || sizes[d] == 1)) {
            strides[d] = scaled_stride(base, taken);
            taken *= sizes[d];
            d--;
        }
        if (taken != run)
            return false;
        if (s > 0) {
            base = self->strides[s - 1];
            run = taken = 1;
        }
    }
    return d == -1;
}

/* Of a contiguous tensor, with every size given: most calls. NULL: the long way, which knows why.
 */
static inline tn_tensor *plain_view(tn_tensor *self, tn_ints shape) {
    if ((uint64_t)shape.n > TN_MAX_RANK || !tni_is_contiguous(&self->view))
        return NULL;
    tn_tensor *view = tni_tensor_view_blank(self, (int32_t)shape.n);
    if (TNI_UNLIKELY(!view))
        return NULL;
    int64_t stride = 1;
    bool wrong = self->view.numel == 0;
    for (int64_t d = shape.n - 1; d >= 0; d--) {
        view->sizes[d] = shape.data[d];
        view->strides[d] = stride;
        wrong |= shape.data[d] <= 0 || __builtin_mul_overflow(stride, shape.data[d], &stride);
    }
    if (TNI_LIKELY(!wrong && stride == self->view.numel))
        return view;
    tni_drop(view);
    return NULL;
}

tn_status tni_run_view(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints shape = tni_arg_ints(&args[1]);
    tn_tensor *plain = plain_view(self, shape);
    if (TNI_LIKELY(plain != NULL))
        return tni_return(rets, plain);
    int64_t sizes[TN_MAX_RANK], strides[TN_MAX_RANK];
    if (resolve_shape("tn_view", self, shape, sizes) != TN_OK)
        return tni_failed();
    if (!view_strides(self, (int32_t)shape.n, sizes, strides))
        return tni_fail(TN_ERR_SHAPE,
                        "tn_view: self %s with strides %s cannot be seen as %s without a "
                        "copy; use tn_reshape",
                        TNI_SHAPE_OF(self), TNI_SHAPE_OF_SIZES(self->view.rank, self->strides),
                        TNI_SHAPE_OF_SIZES((int32_t)shape.n, sizes));
    return return_all(rets, self, (int32_t)shape.n, sizes, strides);
}

tn_status tni_run_reshape(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints shape = tni_arg_ints(&args[1]);
    int64_t sizes[TN_MAX_RANK], strides[TN_MAX_RANK];
    if (resolve_shape("tn_reshape", self, shape, sizes) != TN_OK)
        return tni_failed();
    tn_ints resolved = tn_ints_of(sizes, shape.n);
    if (view_strides(self, (int32_t)shape.n, sizes, strides))
        return tni_return(rets, tni_view(self, resolved));
    tn_tensor *flat = tni_contiguous(self);
    tn_tensor *result = tni_view(flat, resolved);
    tni_drop(flat);
    return tni_return(rets, result);
}

tn_status tni_run_flatten(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int32_t first = tni_wrap_dim(args[1].v.i64, self->view.rank, "tn_flatten: start_dim");
    int32_t last = tni_wrap_dim(args[2].v.i64, self->view.rank, "tn_flatten: end_dim");
    if (first < 0 || last < 0)
        return tni_failed();
    if (first > last)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_flatten: start_dim %d comes after end_dim %d",
                        first, last);
    if (self->view.rank == 0)
        return tni_return(rets, tni_reshape(self, TN_SHAPE(1)));
    if (first == last)
        return tni_return(rets, tni_keep(self));
    int64_t sizes[TN_MAX_RANK], n = 0, run = 1;
    for (int32_t d = 0; d < self->view.rank; d++) {
        if (d < first || d > last) {
            sizes[n++] = self->sizes[d];
        } else {
            run *= self->sizes[d];
            if (d == last)
                sizes[n++] = run;
        }
    }
    return tni_return(rets, tni_reshape(self, tn_ints_of(sizes, n)));
}

/* ---- dimensions in another order --------------------------------------------------------- */

tn_status tni_run_permute(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints dims = tni_arg_ints(&args[1]);
    int64_t sizes[TN_MAX_RANK], strides[TN_MAX_RANK];
    uint32_t seen = 0;
    if (dims.n != self->view.rank)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_permute: dims names %lld dimensions, but self has %d; name each once",
                        (long long)dims.n, self->view.rank);
    for (int64_t i = 0; i < dims.n; i++) {
        int32_t d = tni_wrap_dim(dims.data[i], self->view.rank, "tn_permute: dims");
        if (d < 0)
            return tni_failed();
        if (seen & 1u << d)
            return tni_fail(TN_ERR_INVALID_ARGUMENT,
                            "tn_permute: dims names dimension %d twice; name each once", d);
        seen |= 1u << d;
        sizes[i] = self->sizes[d];
        strides[i] = self->strides[d];
    }
    return return_all(rets, self, self->view.rank, sizes, strides);
}

tn_status tni_run_transpose(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int32_t a = tni_wrap_dim(args[1].v.i64, self->view.rank, "tn_transpose: dim0");
    int32_t b = a < 0 ? -1 : tni_wrap_dim(args[2].v.i64, self->view.rank, "tn_transpose: dim1");
    if (b < 0)
        return tni_failed();
    tn_tensor *result = tni_tensor_view_all(self, self->view.rank, self->sizes, self->strides);
    if (result && self->view.rank > 0) {
        result->sizes[a] = self->sizes[b];
        result->sizes[b] = self->sizes[a];
        result->strides[a] = self->strides[b];
        result->strides[b] = self->strides[a];
    }
    return tni_return(rets, result);
}

tn_status tni_run_t(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    if (self->view.rank > 2)
        return tni_fail(TN_ERR_SHAPE, "tn_t: self has %d dimensions; use tn_transpose beyond 2",
                        self->view.rank);
    return tni_return(rets, self->view.rank < 2 ? tni_alias(self) : tni_transpose(self, 0, 1));
}

/* ---- other shapes ------------------------------------------------------------------------ */

tn_status tni_run_expand(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints size = tni_arg_ints(&args[1]);
    int64_t sizes[TN_MAX_RANK], strides[TN_MAX_RANK];
    int32_t lead = (int32_t)size.n - self->view.rank;
    if (size.n > TN_MAX_RANK || lead < 0)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_expand: size has %lld dimensions; it must have at least the %d of "
                        "self, and at most %d",
                        (long long)size.n, self->view.rank, TN_MAX_RANK);
    for (int32_t d = 0; d < (int32_t)size.n; d++) {
        bool old = d >= lead;
        sizes[d] = size.data[d] == -1 && old ? self->sizes[d - lead] : size.data[d];
        strides[d] = old && self->sizes[d - lead] == sizes[d] ? self->strides[d - lead] : 0;
        if (sizes[d] < 0 ||
            (old && self->sizes[d - lead] != sizes[d] && self->sizes[d - lead] != 1))
            return tni_fail(TN_ERR_SHAPE,
                            "tn_expand: self %s does not expand to %s; only dimensions of "
                            "size 1, and new ones in front, can grow",
                            TNI_SHAPE_OF(self), TNI_SHAPE_OF_INTS(size));
    }
    return return_view(rets, self, (int32_t)size.n, sizes, strides, tni_offset_elements(self));
}

tn_status tni_run_select(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int64_t index = args[2].v.i64;
    if (self->view.rank == 0)
        return tni_fail(TN_ERR_SHAPE, "tn_select: self has no dimensions to select from");
    int32_t dim = tni_wrap_dim(args[1].v.i64, self->view.rank, "tn_select: dim");
    if (dim < 0)
        return tni_failed();
    int64_t n = self->sizes[dim];
    if (index < -n || index >= n)
        return tni_fail(TN_ERR_INDEX_OUT_OF_RANGE,
                        "tn_select: index %lld is out of range for dimension %d of self %s; it "
                        "goes from %lld to %lld",
                        (long long)index, dim, TNI_SHAPE_OF(self), (long long)-n, (long long)n - 1);
    int64_t sizes[TN_MAX_RANK], strides[TN_MAX_RANK];
    for (int32_t d = 0, k = 0; d < self->view.rank; d++) {
        if (d != dim) {
            sizes[k] = self->sizes[d];
            strides[k++] = self->strides[d];
        }
    }
    return return_view(rets, self, self->view.rank - 1, sizes, strides,
                       place_of(self, index < 0 ? index + n : index, self->strides[dim]));
}

/* Python's rules: negative counts from the end, out of range is clamped. */
static int64_t clamp_index(int64_t i, int64_t fallback, int64_t n) {
    if (i == TN_NO_INT)
        return fallback;
    i = i < 0 ? i + n : i;
    return i < 0 ? 0 : i > n ? n : i;
}

tn_status tni_run_slice(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    if (self->view.rank == 0)
        return tni_fail(TN_ERR_SHAPE, "tn_slice: self has no dimensions to slice");
    int32_t dim = tni_wrap_dim(args[1].v.i64, self->view.rank, "tn_slice: dim");
    if (dim < 0)
        return tni_failed();
    int64_t n = self->sizes[dim], step = args[4].v.i64;
    if (step < 1)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_slice: step is %lld; it must be at least 1",
                        (long long)step);
    int64_t start = clamp_index(tni_arg_int(&args[2]), 0, n);
    int64_t end = clamp_index(tni_arg_int(&args[3]), n, n);
    int64_t sizes[TN_MAX_RANK], strides[TN_MAX_RANK];
    memcpy(sizes, self->sizes, (size_t)self->view.rank * sizeof *sizes);
    memcpy(strides, self->strides, (size_t)self->view.rank * sizeof *strides);
    sizes[dim] = end > start ? (end - start - 1) / step + 1 : 0;
    strides[dim] = scaled_stride(self->strides[dim], step);
    return return_view(rets, self, self->view.rank, sizes, strides,
                       place_of(self, start, self->strides[dim]));
}

tn_status tni_run_narrow(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int32_t dim = tni_wrap_dim(args[1].v.i64, self->view.rank, "tn_narrow: dim");
    if (dim < 0 || self->view.rank == 0)
        return dim < 0 ? tni_failed()
                       : tni_fail(TN_ERR_SHAPE, "tn_narrow: self has no dimensions to narrow");
    int64_t n = self->sizes[dim], start = args[2].v.i64, length = args[3].v.i64;
    start = start < 0 && start >= -n ? start + n : start;
    if (start < 0 || length < 0 || start > n || length > n - start)
        return tni_fail(TN_ERR_INDEX_OUT_OF_RANGE,
                        "tn_narrow: %lld elements from %lld do not lie in "
                        "dimension %d of size %lld",
                        (long long)length, (long long)args[2].v.i64, dim, (long long)n);
    return tni_return(rets, tni_slice(self, dim, start, start + length, 1));
}

/* The start is read, as a view's place is known to the host. */
tn_status tni_run_narrow_tensor(const tn_cell *args, tn_cell *rets) {
    tn_tensor *start = tni_arg_tensor(&args[2]);
    int64_t value;
    if (start->view.rank != 0 || !(TN_DTYPES_INT & TN_DTYPE_BIT(start->view.dtype)))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_narrow_tensor: start must be an integer tensor of rank 0, but is %s of "
                        "rank %d",
                        tn_dtype_name(start->view.dtype), start->view.rank);
    if (tn_item_i64(start, &value) != TN_OK)
        return tni_failed();
    return tni_return(rets,
                      tni_narrow(tni_arg_tensor(&args[0]), args[1].v.i64, value, args[3].v.i64));
}

static tn_status squeeze(tn_tensor *self, uint32_t drop, tn_cell *rets) {
    int64_t sizes[TN_MAX_RANK], strides[TN_MAX_RANK];
    int32_t rank = 0;
    for (int32_t d = 0; d < self->view.rank; d++) {
        if (self->sizes[d] == 1 && (drop & 1u << d))
            continue;
        sizes[rank] = self->sizes[d];
        strides[rank++] = self->strides[d];
    }
    return return_all(rets, self, rank, sizes, strides);
}

tn_status tni_run_squeeze(const tn_cell *args, tn_cell *rets) {
    return squeeze(tni_arg_tensor(&args[0]), ~0u, rets);
}

tn_status tni_run_squeeze_dim(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int32_t dim = tni_wrap_dim(args[1].v.i64, self->view.rank, "tn_squeeze_dim: dim");
    return dim < 0 ? tni_failed() : squeeze(self, 1u << dim, rets);
}

tn_status tni_run_squeeze_dims(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints dims = tni_arg_ints(&args[1]);
    uint32_t drop = 0;
    if (dims.n > 0 && !tni_reduce_mask(dims, self->view.rank, "tn_squeeze_dims", &drop))
        return tni_failed();
    return squeeze(self, drop, rets);
}

tn_status tni_run_unsqueeze(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int32_t dim = tni_wrap_dim(args[1].v.i64, self->view.rank + 1, "tn_unsqueeze: dim");
    if (dim < 0)
        return tni_failed();
    if (self->view.rank == TN_MAX_RANK)
        return tni_fail(TN_ERR_SHAPE, "tn_unsqueeze: self has %d dimensions already, the most",
                        TN_MAX_RANK);
    int64_t sizes[TN_MAX_RANK], strides[TN_MAX_RANK];
    for (int32_t d = 0, k = 0; d <= self->view.rank; d++) {
        sizes[d] = d == dim ? 1 : self->sizes[k];
        strides[d] = d != dim              ? self->strides[k]
                     : k < self->view.rank ? scaled_stride(self->strides[k], self->sizes[k])
                                           : 1;
        k += d != dim;
    }
    return return_all(rets, self, self->view.rank + 1, sizes, strides);
}

tn_status tni_run_as_strided(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints size = tni_arg_ints(&args[1]), stride = tni_arg_ints(&args[2]);
    int64_t offset = tni_arg_int(&args[3]);
    if (size.n != stride.n || (uint64_t)size.n > TN_MAX_RANK)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_as_strided: %lld sizes and %lld strides; they must be as many, "
                        "0 to %d",
                        (long long)size.n, (long long)stride.n, TN_MAX_RANK);
    for (int64_t d = 0; d < size.n; d++)
        if (size.data[d] < 0 || stride.data[d] < 0)
            return tni_fail(TN_ERR_SHAPE,
                            "tn_as_strided: size and stride of dimension %lld are %lld and "
                            "%lld; neither may be negative",
                            (long long)d, (long long)size.data[d], (long long)stride.data[d]);
    if (tni_requires_grad(self) && tni_grad_mode() && tni_may_overlap(&self->view))
        return tni_fail(TN_ERR_UNSUPPORTED,
                        "tn_as_strided: self requires a gradient, but several of its elements "
                        "share memory (an expanded tensor); take tn_contiguous of it");
    return return_view(rets, self, (int32_t)size.n, size.data, stride.data,
                       offset == TN_NO_INT ? tni_offset_elements(self) : offset);
}

tn_status tni_run_diagonal(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int64_t offset = args[1].v.i64;
    int32_t a = tni_wrap_dim(args[2].v.i64, self->view.rank, "tn_diagonal: dim1");
    int32_t b = a < 0 ? -1 : tni_wrap_dim(args[3].v.i64, self->view.rank, "tn_diagonal: dim2");
    if (b < 0)
        return tni_failed();
    if (a == b)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_diagonal: dim1 and dim2 are both %d; they must differ", a);
    int64_t rows = self->sizes[a], columns = self->sizes[b];
    int64_t n = offset >= 0 ? columns - offset : columns;
    int64_t other = offset >= 0 ? rows : rows + offset;
    n = n < other ? n : other;
    n = n < 0 ? 0 : n;
    int64_t start = n == 0        ? tni_offset_elements(self)
                    : offset >= 0 ? place_of(self, offset, self->strides[b])
                                  : place_of(self, -offset, self->strides[a]);
    int64_t sizes[TN_MAX_RANK], strides[TN_MAX_RANK];
    int32_t rank = 0;
    for (int32_t d = 0; d < self->view.rank; d++) {
        if (d != a && d != b) {
            sizes[rank] = self->sizes[d];
            strides[rank++] = self->strides[d];
        }
    }
    sizes[rank] = n;
    strides[rank++] = n > 1 ? self->strides[a] + self->strides[b] : 1;
    return return_view(rets, self, rank, sizes, strides, start);
}

/* ---- several at once --------------------------------------------------------------------- */

static bool add_up(tn_ints lengths, int64_t size) {
    int64_t i = 0;
    for (; i < lengths.n && lengths.data[i] >= 0 && lengths.data[i] <= size; i++)
        size -= lengths.data[i];
    return i == lengths.n && size == 0;
}

/* Views of self along dim one after another, each of length `split` (the last may be shorter), or of
 * the given lengths, which must add up; squeezed when `select`. */
static tn_status pieces(const char *call, tn_tensor *self, int64_t dim_arg, int64_t split,
                        tn_ints lengths, bool select, tn_cell *rets) {
    if (self->view.rank == 0)
        return tni_fail(TN_ERR_SHAPE, "%s: self has no dimensions to take apart", call);
    int32_t dim = tni_wrap_dim(dim_arg, self->view.rank, call);
    if (dim < 0)
        return tni_failed();
    int64_t size = self->sizes[dim], n = size == 0 ? !select : (size - 1) / split + 1, start = 0;
    if (lengths.n >= 0) {
        n = lengths.n;
        if (!add_up(lengths, size))
            return tni_fail(TN_ERR_SHAPE,
                            "%s %d of size %lld: split_sizes %s must not be negative, and add up "
                            "to it",
                            call, dim, (long long)size,
                            TNI_SHAPE_OF_SIZES((int32_t)n, lengths.data));
    }
    tn_tensor **list = tni_calloc((size_t)n, sizeof *list);
    if (!list)
        return tni_fail_memory("a list of views");
    for (int64_t i = 0; i < n; i++) {
        int64_t sizes[TN_MAX_RANK], strides[TN_MAX_RANK];
        int64_t length = lengths.n >= 0         ? lengths.data[i]
                         : size - start < split ? size - start
                                                : split;
        int32_t rank = 0;
        for (int32_t d = 0; d < self->view.rank; d++) {
            if (d == dim && select)
                continue;
            sizes[rank] = d != dim ? self->sizes[d] : length;
            strides[rank++] = self->strides[d];
        }
        list[i] =
            tni_tensor_view(self, rank, sizes, strides, place_of(self, start, self->strides[dim]));
        start += length;
        if (!list[i]) {
            tni_drop_list(list, (uint32_t)i);
            return tni_failed();
        }
    }
    return tni_return_list(rets, list, (uint32_t)n);
}

tn_status tni_run_unbind(const tn_cell *args, tn_cell *rets) {
    return pieces("tn_unbind: dim", tni_arg_tensor(&args[0]), args[1].v.i64, 1, tn_no_ints(), true,
                  rets);
}

tn_status tni_run_split(const tn_cell *args, tn_cell *rets) {
    int64_t split = args[1].v.i64;
    if (split < 1)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_split: split_size is %lld; it must be at least 1", (long long)split);
    return pieces("tn_split: dim", tni_arg_tensor(&args[0]), args[2].v.i64, split, tn_no_ints(),
                  false, rets);
}

tn_status tni_run_split_with_sizes(const tn_cell *args, tn_cell *rets) {
    return pieces("tn_split_with_sizes: dim", tni_arg_tensor(&args[0]), args[2].v.i64, 1,
                  tni_arg_ints(&args[1]), false, rets);
}

tn_status tni_run_chunk(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int64_t chunks = args[1].v.i64;
    int32_t dim = tni_wrap_dim(args[2].v.i64, self->view.rank, "tn_chunk: dim");
    if (dim < 0 || self->view.rank == 0)
        return dim < 0 ? tni_failed()
                       : tni_fail(TN_ERR_SHAPE, "tn_chunk: self has no dimensions to take apart");
    if (chunks < 1)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_chunk: chunks is %lld; it must be at least 1",
                        (long long)chunks);
    int64_t size = self->sizes[dim], split = size == 0 ? 1 : (size - 1) / chunks + 1;
    tn_cell split_args[3] = {args[0], tni_cell_i64(split), tni_cell_i64(dim)};
    return tni_call(tni_ops[TNI_OP_split], split_args, rets);
}

/* ---- derivatives: the gradient goes to where the view's elements lie --------------------- */

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
    tni_temps tmp = {0};
    tn_tensor *places = tni_own(&tmp, tni_arange(tn_int(n), TN_I64, grad->device->id));
    tn_tensor *view = tni_own(&tmp, tni_as_strided(places, size, stride, view_offset - start));
    tn_tensor *index = tni_own(&tmp, tni_reshape(view, TN_SHAPE(-1)));
    tn_tensor *flat = tni_own(&tmp, tni_zeros(TN_SHAPE(n), grad->view.dtype, grad->device->id));
    tn_tensor *sum = tni_own(
        &tmp, tni_scatter_add(flat, 0, index, tni_own(&tmp, tni_reshape(grad, TN_SHAPE(-1)))));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_as_strided(sum, sizes, strides, offset - start)));
}
