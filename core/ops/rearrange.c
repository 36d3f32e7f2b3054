/* Elements in another order or several times: dimensions moved and added, quarter turns, tiles and
 * repeats. */
#include "core/ops/dims.h"
#include "core/ops/functions.h"

#include <string.h>

/* ---- dimensions moved -------------------------------------------------------------------- */

static tn_status movedim(const char *call, const tn_cell *args, tn_ints source, tn_ints destination,
                         tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int32_t rank = self->view.rank;
    int64_t dims[TN_MAX_RANK];
    uint32_t taken = 0, placed = 0;
    if (source.n != destination.n)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: source names %lld dimensions and destination %lld; they must be as "
                        "many",
                        call, (long long)source.n, (long long)destination.n);
    for (int64_t i = 0; i < source.n; i++) {
        int32_t from = tni_wrap_dim(source.data[i], rank, call);
        int32_t to = from < 0 ? -1 : tni_wrap_dim(destination.data[i], rank, call);
        if (to < 0)
            return tni_failed();
        if (taken >> from & 1 || placed >> to & 1)
            return tni_fail(TN_ERR_INVALID_ARGUMENT,
                            "%s: dimension %d stands twice in source, or %d in destination; name "
                            "each once",
                            call, from, to);
        taken |= 1u << from;
        placed |= 1u << to;
        dims[to] = from;
    }
    if (rank == 0)
        return tni_return(rets, tni_alias(self));
    for (int32_t from = 0, to = 0; from < rank; from++) {
        if (taken >> from & 1)
            continue;
        while (placed >> to & 1)
            to++;
        dims[to++] = from;
    }
    return tni_return(rets, tni_permute(self, tn_ints_of(dims, rank)));
}

tn_status tni_run_movedim_intlist(const tn_cell *args, tn_cell *rets) {
    return movedim("tn_movedim_intlist", args, tni_arg_ints(&args[1]), tni_arg_ints(&args[2]),
                   rets);
}

tn_status tni_run_movedim_int(const tn_cell *args, tn_cell *rets) {
    return movedim("tn_movedim_int", args, tn_ints_of(&args[1].v.i64, 1),
                   tn_ints_of(&args[2].v.i64, 1), rets);
}

/* unflatten(self, dim, sizes) */
tn_status tni_run_unflatten_int(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints parts = tni_arg_ints(&args[2]);
    int32_t rank = self->view.rank, dim = tni_wrap_dim(args[1].v.i64, rank, "tn_unflatten_int");
    if (dim < 0)
        return tni_failed();
    if (rank == 0 || parts.n < 1 || parts.n > TN_MAX_RANK + 1 - rank)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_unflatten_int: sizes has %lld values for a dimension of a self of rank "
                        "%d; self has one at least, sizes too, and the result at most %d",
                        (long long)parts.n, rank, TN_MAX_RANK);
    int64_t sizes[TN_MAX_RANK], known = 1, open = -1;
    memcpy(sizes, self->sizes, (size_t)dim * sizeof *sizes);
    bool fits = true;
    for (int64_t i = 0; i < parts.n && fits; i++) {
        sizes[dim + i] = parts.data[i];
        if (parts.data[i] == -1 && open < 0)
            open = dim + i;
        else
            fits = parts.data[i] >= 0 && tni_mul_i64(known, parts.data[i], &known);
    }
    if (fits && open >= 0) {
        fits = known > 0 && self->sizes[dim] % known == 0;
        sizes[open] = fits ? self->sizes[dim] / known : 0;
        known *= fits ? sizes[open] : 1;
    }
    if (!fits || known != self->sizes[dim])
        return tni_fail(TN_ERR_SHAPE,
                        "tn_unflatten_int: sizes %s do not multiply to the %lld of dimension %d; "
                        "one may be -1",
                        TNI_SHAPE_OF_INTS(parts), (long long)self->sizes[dim], dim);
    memcpy(sizes + dim + parts.n, self->sizes + dim + 1, (size_t)(rank - dim - 1) * sizeof *sizes);
    return tni_return(rets, tni_view(self, tn_ints_of(sizes, rank + parts.n - 1)));
}

/* rot90(self, k, dims) */
tn_status tni_run_rot90(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints dims = tni_arg_ints(&args[2]);
    int32_t rank = self->view.rank;
    if (dims.n != 2 || rank < 2)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_rot90: dims names %lld dimensions of a self of rank %d; it must name "
                        "two, which are the plane to turn",
                        (long long)dims.n, rank);
    int32_t a = tni_wrap_dim(dims.data[0], rank, "tn_rot90: dims");
    int32_t b = a < 0 ? -1 : tni_wrap_dim(dims.data[1], rank, "tn_rot90: dims");
    if (b < 0)
        return tni_failed();
    if (a == b)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_rot90: dims names dimension %d twice; a plane has two", a);
    int64_t k = (args[1].v.i64 % 4 + 4) % 4;
    tni_temps tmp = {0};
    tn_tensor *x = NULL;
    if (k == 0)
        x = tni_own(&tmp, tni_clone(self));
    else if (k == 2)
        x = tni_own(&tmp, tni_flip(self, TN_SHAPE(a, b)));
    else
        x = tni_own(&tmp,
                    tni_transpose(tni_own(&tmp, tni_flip(self, TN_SHAPE(k == 1 ? b : a))), a, b));
    return tni_temps_return(&tmp, x, rets);
}

/* ---- diagonals --------------------------------------------------------------------------- */

tn_status tni_run_trace(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    if (self->view.rank != 2)
        return tni_fail(TN_ERR_SHAPE, "tn_trace: self must be a matrix, but has rank %d",
                        self->view.rank);
    tni_temps tmp = {0};
    tn_tensor *diagonal = tni_own(&tmp, tni_diagonal(self, 0, 0, 1));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_sum(diagonal, TN_DTYPE_NONE)), rets);
}

/* diag_embed(self, offset, dim1, dim2): zeros with the last dimension as a diagonal */
tn_status tni_run_diag_embed(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int64_t offset = args[1].v.i64, n;
    int32_t rank = self->view.rank;
    if (rank == 0 || rank == TN_MAX_RANK)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_diag_embed: self has rank %d; it must have 1 to %d dimensions", rank,
                        TN_MAX_RANK - 1);
    int32_t a = tni_wrap_dim(args[2].v.i64, rank + 1, "tn_diag_embed: dim1");
    int32_t b = a < 0 ? -1 : tni_wrap_dim(args[3].v.i64, rank + 1, "tn_diag_embed: dim2");
    if (b < 0)
        return tni_failed();
    if (a == b)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_diag_embed: dim1 and dim2 are both %d; they must differ", a);
    if (offset < -INT64_MAX ||
        __builtin_add_overflow(self->sizes[rank - 1], offset < 0 ? -offset : offset, &n))
        return tni_fail(TN_ERR_SHAPE,
                        "tn_diag_embed: an offset of %lld makes a matrix larger than can be "
                        "counted",
                        (long long)offset);
    int64_t sizes[TN_MAX_RANK];
    for (int32_t d = 0, k = 0; d <= rank; d++)
        sizes[d] = d == a || d == b ? n : self->sizes[k++];
    tni_temps tmp = {0};
    tn_tensor *zeros =
        tni_own(&tmp, tni_zeros(tn_ints_of(sizes, rank + 1), self->view.dtype, self->device->id));
    return tni_temps_return(
        &tmp, zeros ? tni_own(&tmp, tni_diagonal_scatter(zeros, self, offset, a, b)) : NULL, rets);
}

/* diag(self, diagonal): a vector as a matrix with that diagonal, or a matrix's diagonal */
tn_status tni_run_diag(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    if (self->view.rank != 1 && self->view.rank != 2)
        return tni_fail(TN_ERR_SHAPE, "tn_diag: self must be a vector or a matrix, but has rank %d",
                        self->view.rank);
    if (self->view.rank == 1)
        return tni_return(rets, tni_diag_embed(self, args[1].v.i64, 0, 1));
    tni_temps tmp = {0};
    tn_tensor *diagonal = tni_own(&tmp, tni_diagonal(self, args[1].v.i64, 0, 1));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_clone(diagonal)), rets);
}

/* ---- several times ----------------------------------------------------------------------- */

/* tile(self, dims): repeat, where too few counts are 1 for the first dimensions */
tn_status tni_run_tile(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    tn_ints dims = tni_arg_ints(&args[1]);
    int64_t repeats[TN_MAX_RANK], lead = self->view.rank - dims.n;
    if (lead <= 0)
        return tni_return(rets, tni_repeat(self, dims));
    for (int64_t d = 0; d < self->view.rank; d++)
        repeats[d] = d < lead ? 1 : dims.data[d - lead];
    return tni_return(rets, tni_repeat(self, tn_ints_of(repeats, self->view.rank)));
}

/* repeat_interleave(self, repeats, dim, output_size) of a number */
tn_status tni_run_repeat_interleave_int(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int64_t repeats = args[1].v.i64, total = 0;
    bool is_flat = args[2].tag == TN_CELL_NONE;
    int32_t dim =
        is_flat ? 0 : tni_wrap_dim(args[2].v.i64, self->view.rank, "tn_repeat_interleave_int: dim");
    if (dim < 0)
        return tni_failed();
    tni_temps tmp = {0};
    tn_tensor *x =
        is_flat || self->view.rank == 0 ? tni_own(&tmp, tni_reshape(self, TN_SHAPE(-1))) : self;
    if (!x)
        return tni_temps_return(&tmp, NULL, rets);
    tn_status status = TN_OK;
    int32_t rank = x->view.rank;
    int64_t size = tni_dtype_size(x->view.dtype), bytes;
    if (repeats < 0 || !tni_mul_i64(repeats, x->sizes[dim], &total) ||
        !tni_mul_i64(x->view.numel, size, &bytes) || !tni_mul_i64(repeats, bytes, &bytes))
        status = tni_fail(TN_ERR_INVALID_ARGUMENT,
                          "tn_repeat_interleave_int: %lld repeats of %lld elements cannot be; "
                          "repeats must not be negative, nor the result more than can be counted",
                          (long long)repeats, (long long)x->sizes[dim]);
    else if (args[3].tag != TN_CELL_NONE && args[3].v.i64 != total)
        status = tni_fail(TN_ERR_INVALID_ARGUMENT,
                          "tn_repeat_interleave_int: output_size is %lld, but the result has "
                          "%lld; leave it out",
                          (long long)args[3].v.i64, (long long)total);
    if (status != TN_OK) {
        tni_temps_finish(&tmp);
        return status;
    }
    /* merged as [before, n, 1, behind], so that a rank of TN_MAX_RANK has room too */
    int64_t before = 1, behind = 1, sizes[TN_MAX_RANK];
    for (int32_t d = 0; d < rank; d++) {
        before *= d < dim ? x->sizes[d] : 1;
        behind *= d > dim ? x->sizes[d] : 1;
        sizes[d] = d == dim ? total : x->sizes[d];
    }
    int64_t n = x->sizes[dim];
    x = tni_own(&tmp, tni_reshape(x, TN_SHAPE(before, n, 1, behind)));
    x = tni_own(&tmp, tni_expand(x, TN_SHAPE(before, n, repeats, behind)));
    x = tni_own(&tmp, tni_clone(x));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_reshape(x, tn_ints_of(sizes, rank))), rets);
}

static tn_status check_repeats(const char *call, const tn_tensor *repeats) {
    if (repeats->view.rank > 1 || (repeats->view.dtype != TN_I64 && repeats->view.dtype != TN_I32))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: repeats must be i32 or i64 of rank 0 or 1, but is %s of rank %d", call,
                        tn_dtype_name(repeats->view.dtype), repeats->view.rank);
    return TN_OK;
}

/* How many repeats are in all; -1 with an error. Waits for the device, once. */
static int64_t read_total(tni_temps *tmp, tn_tensor *repeats, tn_tensor *ends) {
    tn_tensor *parts[2] = {tni_own(tmp, tni_amin(repeats, TN_SCALAR_SHAPE, false)),
                           tni_own(tmp, tni_select(ends, 0, ends ? ends->sizes[0] - 1 : 0))};
    int64_t read[2] = {0, 0};
    tn_tensor *both = parts[0] && parts[1] ? tni_own(tmp, tni_stack(parts, 2, 0)) : NULL;
    if (!both || tni_tensor_read(both, read, sizeof read, "tn_repeat_interleave") != TN_OK)
        return -1;
    if (read[0] < 0 || read[1] < 0)
        tni_fail(TN_ERR_INVALID_ARGUMENT,
                 "tn_repeat_interleave: repeats has %lld among its elements, which must not be "
                 "negative",
                 (long long)read[0]);
    return read[0] < 0 ? -1 : read[1];
}

/* repeat_interleave(repeats, output_size): each place as often as repeats says. How many ends lie
 * at or before a place of the result is the element that stands there. */
tn_status tni_run_repeat_interleave(const tn_cell *args, tn_cell *rets) {
    tn_tensor *repeats = tni_arg_tensor(&args[0]);
    int64_t total = tni_arg_int(&args[1]), n = repeats->view.numel;
    if (check_repeats("tn_repeat_interleave", repeats) != TN_OK)
        return tni_failed();
    if (repeats->view.rank != 1 || (total != TN_NO_INT && (total < 0 || (n == 0 && total > 0))))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_repeat_interleave: repeats has rank %d and %lld elements, and "
                        "output_size is %lld; it must be a vector, and output_size its sum",
                        repeats->view.rank, (long long)n,
                        (long long)(total == TN_NO_INT ? 0 : total));
    if (n == 0)
        return tni_return(rets, tni_empty(TN_SHAPE(0), repeats->view.dtype, repeats->device->id));
    tni_temps tmp = {0};
    tn_tensor *counts = tni_own(&tmp, tni_to_dtype(repeats, TN_I64));
    tn_tensor *ends = tni_own(&tmp, tni_cumsum(counts, 0, TN_DTYPE_NONE));
    if (total == TN_NO_INT && (total = read_total(&tmp, counts, ends)) < 0)
        return tni_temps_return(&tmp, NULL, rets);
    tn_device device = repeats->device->id;
    tn_tensor *room =
        total < INT64_MAX
            ? tni_own(&tmp, tni_zeros(TN_SHAPE(total + 1), TN_I64, device))
            : tni_fail_null(TN_ERR_INVALID_ARGUMENT, "tn_repeat_interleave: output_size is more "
                                                     "than can be counted");
    tn_tensor *one = room ? tni_own(&tmp, tni_ones(TN_SHAPE(1), TN_I64, device)) : NULL;
    tn_tensor *ones = tni_own(&tmp, tni_expand(one, TN_SHAPE(n)));
    tn_tensor *marks = tni_own(&tmp, tni_scatter_add(room, 0, ends, ones));
    tn_tensor *passed =
        tni_own(&tmp, tni_cumsum(tni_own(&tmp, tni_narrow(marks, 0, 0, total)), 0, TN_DTYPE_NONE));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_to_dtype(passed, repeats->view.dtype)), rets);
}

/* repeat_interleave(self, repeats, dim, output_size) */
tn_status tni_run_repeat_interleave_tensor(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]), *repeats = tni_arg_tensor(&args[1]);
    bool is_flat = args[2].tag == TN_CELL_NONE;
    int32_t dim =
        is_flat ? 0
                : tni_wrap_dim(args[2].v.i64, self->view.rank, "tn_repeat_interleave_tensor: dim");
    if (dim < 0 || check_repeats("tn_repeat_interleave_tensor", repeats) != TN_OK)
        return tni_failed();
    tni_temps tmp = {0};
    tn_tensor *x =
        is_flat || self->view.rank == 0 ? tni_own(&tmp, tni_reshape(self, TN_SHAPE(-1))) : self;
    if (!x)
        return tni_temps_return(&tmp, NULL, rets);
    int64_t n = x->sizes[dim];
    if (repeats->view.numel != 1 && repeats->view.numel != n) {
        tni_temps_finish(&tmp);
        return tni_fail(TN_ERR_SHAPE,
                        "tn_repeat_interleave_tensor: repeats has %lld elements, but dimension %d "
                        "has %lld; they must be as many, or one",
                        (long long)repeats->view.numel, dim, (long long)n);
    }
    if (repeats->view.numel == 1) {
        repeats = tni_own(&tmp, tni_reshape(repeats, TN_SHAPE(1)));
        repeats = tni_own(&tmp, tni_expand(repeats, TN_SHAPE(n)));
    }
    tn_tensor *places =
        repeats ? tni_own(&tmp, tni_repeat_interleave(repeats, tni_arg_int(&args[3]))) : NULL;
    return tni_temps_return(&tmp, tni_own(&tmp, tni_index_select(x, dim, places)), rets);
}

/* ---- channels and pixels ----------------------------------------------------------------- */

/* The sizes of self with the last three as three, which the caller makes pairs of, or false. */
static bool begin_pixels(const char *call, const tn_tensor *self, int64_t factor, int64_t *sizes) {
    int32_t rank = self->view.rank;
    if (rank < 3 || rank + 2 > TN_MAX_RANK || factor < 1) {
        tni_fail(
            TN_ERR_INVALID_ARGUMENT,
            "%s: self has rank %d and the factor is %lld; they must be 3 to %d, and 1 at least",
            call, rank, (long long)factor, TN_MAX_RANK - 2);
        return false;
    }
    memcpy(sizes, self->sizes, (size_t)rank * sizeof *sizes);
    return true;
}

/* self viewed as `split`, its last five dimensions in another order, and reshaped. */
static tn_tensor *shuffled(tn_tensor *self, int64_t *split, const int *order, int64_t *joined) {
    tni_temps tmp = {0};
    int32_t rank = self->view.rank;
    int64_t dims[TN_MAX_RANK];
    for (int32_t i = 0; i < rank + 2; i++)
        dims[i] = i < rank - 3 ? i : rank - 3 + order[i - (rank - 3)];
    tn_tensor *x = tni_own(&tmp, tni_reshape(self, tn_ints_of(split, rank + 2)));
    x = tni_own(&tmp, tni_permute(x, tn_ints_of(dims, rank + 2)));
    return tni_temps_keep(&tmp, tni_own(&tmp, tni_reshape(x, tn_ints_of(joined, rank))));
}

/* pixel_shuffle(self, upscale_factor): [C, r, r, H, W] as [C, H, r, W, r] */
tn_status tni_run_pixel_shuffle(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int64_t r = args[1].v.i64, split[TN_MAX_RANK], joined[TN_MAX_RANK], square;
    if (!begin_pixels("tn_pixel_shuffle", self, r, split) ||
        !begin_pixels("tn_pixel_shuffle", self, r, joined))
        return tni_failed();
    int32_t c = self->view.rank - 3;
    int64_t channels = split[c], high = split[c + 1], wide = split[c + 2];
    if (!tni_mul_i64(r, r, &square) || channels % square != 0 || !tni_mul_i64(high, r, &high) ||
        !tni_mul_i64(wide, r, &wide))
        return tni_fail(
            TN_ERR_SHAPE,
            "tn_pixel_shuffle: self has %lld channels; upscale_factor %lld squared must "
            "divide them",
            (long long)channels, (long long)r);
    memcpy(split + c, (int64_t[]){channels / square, r, r, split[c + 1], split[c + 2]},
           5 * sizeof *split);
    memcpy(joined + c, (int64_t[]){channels / square, high, wide}, 3 * sizeof *joined);
    return tni_return(rets, shuffled(self, split, (int[]){0, 3, 1, 4, 2}, joined));
}

/* pixel_unshuffle(self, downscale_factor): [C, H, r, W, r] as [C, r, r, H, W] */
tn_status tni_run_pixel_unshuffle(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int64_t r = args[1].v.i64, split[TN_MAX_RANK], joined[TN_MAX_RANK];
    if (!begin_pixels("tn_pixel_unshuffle", self, r, split) ||
        !begin_pixels("tn_pixel_unshuffle", self, r, joined))
        return tni_failed();
    int32_t c = self->view.rank - 3;
    int64_t channels = split[c], high = split[c + 1], wide = split[c + 2];
    if (high % r != 0 || wide % r != 0 || !tni_mul_i64(channels, r, &channels) ||
        !tni_mul_i64(channels, r, &channels))
        return tni_fail(
            TN_ERR_SHAPE,
            "tn_pixel_unshuffle: self is %lld x %lld; downscale_factor %lld must divide "
            "both",
            (long long)high, (long long)wide, (long long)r);
    memcpy(split + c, (int64_t[]){split[c], high / r, r, wide / r, r}, 5 * sizeof *split);
    memcpy(joined + c, (int64_t[]){channels, high / r, wide / r}, 3 * sizeof *joined);
    return tni_return(rets, shuffled(self, split, (int[]){0, 2, 4, 1, 3}, joined));
}

/* channel_shuffle(self, groups) */
tn_status tni_run_channel_shuffle(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int64_t groups = args[1].v.i64;
    if (self->view.rank < 3 || groups < 1 || self->sizes[1] % groups != 0)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_channel_shuffle: self is %s and groups %lld; self must have rank 3 at "
                        "least, and groups divide its channels",
                        TNI_SHAPE_OF(self), (long long)groups);
    tni_temps tmp = {0};
    tn_tensor *x =
        tni_own(&tmp, tni_unflatten_int(self, 1, TN_SHAPE(groups, self->sizes[1] / groups)));
    x = tni_own(&tmp, tni_transpose(x, 1, 2));
    return tni_temps_return(&tmp, tni_own(&tmp, tni_reshape(x, tni_sizes(self))), rets);
}
