/* Vectors and matrices put together: grids, products and choices of elements, blocks, triangles'
 * places. */
#include "base/alloc.h"
#include "core/ops/functions.h"
#include "core/ops/resample.h"

#include <string.h>

/* ---- grids ------------------------------------------------------------------------------- */

static tn_status grid(const char *call, const tn_cell *args, bool is_swapped, tn_cell *rets) {
    tn_tensor *const *list = args[0].v.pointer;
    uint32_t n = args[0].n, made = 0;
    int64_t sizes[TN_MAX_RANK];
    if (n == 0 || n > TN_MAX_RANK)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: %u tensors; a grid is made of 1 to %d", call,
                        n, TN_MAX_RANK);
    is_swapped = is_swapped && n > 1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = is_swapped && i < 2 ? 1 - i : i;
        if (list[i]->view.rank > 1 || list[i]->view.dtype != list[0]->view.dtype)
            return tni_fail(TN_ERR_INVALID_ARGUMENT,
                            "%s: tensor %u is %s of rank %d; all must be of one dtype, and of rank "
                            "0 or 1",
                            call, i, tn_dtype_name(list[i]->view.dtype), list[i]->view.rank);
        sizes[at] = list[i]->view.numel;
    }
    tn_tensor **grids = tni_calloc(n, sizeof *grids);
    if (!grids)
        return tni_fail_memory("a list of tensors");
    for (; made < n; made++) {
        int64_t shape[TN_MAX_RANK];
        uint32_t at = is_swapped && made < 2 ? 1 - made : made;
        for (uint32_t d = 0; d < n; d++)
            shape[d] = d == at ? list[made]->view.numel : 1;
        tn_tensor *line = tni_reshape(list[made], tn_ints_of(shape, n));
        grids[made] = line ? tni_expand(line, tn_ints_of(sizes, n)) : NULL;
        tni_drop(line);
        if (!grids[made]) {
            tni_drop_list(grids, made);
            return tni_failed();
        }
    }
    return tni_return_list(rets, grids, n);
}

tn_status tni_run_meshgrid(const tn_cell *args, tn_cell *rets) {
    return grid("tn_meshgrid", args, false, rets);
}

tn_status tni_run_meshgrid_indexing(const tn_cell *args, tn_cell *rets) {
    return grid("tn_meshgrid_indexing", args, strcmp(args[1].v.string, "xy") == 0, rets);
}

/* All choices of an element from each vector, as rows. */
tn_status tni_run_cartesian_prod(const tn_cell *args, tn_cell *rets) {
    tn_tensor *const *list = args[0].v.pointer;
    uint32_t n = args[0].n;
    for (uint32_t i = 0; i < n; i++)
        if (list[i]->view.rank != 1)
            return tni_fail(TN_ERR_SHAPE, "tn_cartesian_prod: tensor %u has rank %d; it must be 1",
                            i, list[i]->view.rank);
    if (n == 1)
        return tni_return(rets, tni_alias(list[0]));
    tn_cell grids[1];
    TNI_TRY(grid("tn_cartesian_prod", args, false, grids));
    tn_tensor **owned = grids[0].v.pointer;
    tn_tensor *all = tni_stack(owned, n, -1);
    tni_drop_list(owned, n);
    tn_tensor *rows = all ? tni_reshape(all, TN_SHAPE(all->view.numel / n, n)) : NULL;
    tni_drop(all);
    return tni_return(rets, rows);
}

/* How many ways there are to choose r of n; -1: more than can be counted. */
static int64_t choose(int64_t n, int64_t r) {
    int64_t ways = 1;
    r = n - r < r ? n - r : r;
    for (int64_t i = 1; i <= r; i++) {
        int64_t next;
        if (!tni_mul_i64(ways, n - r + i, &next))
            return -1;
        ways = next / i;
    }
    return r < 0 ? 0 : ways;
}

/* combinations(self, r, with_replacement): r elements at a time, in the order of their places */
tn_status tni_run_combinations(const tn_cell *args, tn_cell *rets) {
    tn_tensor *self = tni_arg_tensor(&args[0]);
    int64_t r = args[1].v.i64, n = self->view.numel, total = 0, cells = 0;
    bool again = args[2].v.boolean;
    if (self->view.rank != 1 || r < 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_combinations: self has rank %d and r is %lld; self must be a vector, "
                        "and r not negative",
                        self->view.rank, (long long)r);
    if (r == 0)
        return tni_return(rets, tni_empty(TN_SHAPE(0), self->view.dtype, self->device->id));
    if (again && n > 0)
        total = n > INT64_MAX - r ? -1 : choose(n + r - 1, r);
    else
        total = r > n ? 0 : choose(n, r);
    if (total < 0 || !tni_mul_i64(total, r, &cells))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_combinations: %lld of %lld elements can be chosen in more ways than "
                        "can be counted",
                        (long long)r, (long long)n);
    tni_temps tmp = {0};
    tn_tensor *index;
    if (cells == 0) {
        index = tni_own(&tmp, tni_empty(TN_SHAPE(0), TN_I64, self->device->id));
    } else {
        int64_t *table = tni_new_table(self->device, TN_I64, cells, sizeof *table);
        if (!table)
            return tni_failed();
        for (int64_t k = 0; k < r; k++)
            table[k] = again ? 0 : k;
        for (int64_t row = 1; row < total; row++) {
            int64_t *now = table + row * r, k = r - 1;
            memcpy(now, now - r, (size_t)r * sizeof *now);
            while (now[k] == (again ? n - 1 : n - r + k))
                k--;
            now[k]++;
            for (int64_t j = k + 1; j < r; j++)
                now[j] = now[j - 1] + !again;
        }
        index = tni_own(&tmp, tni_table(self->device, TN_I64, TN_SHAPE(cells), table,
                                        (uint64_t)cells * sizeof *table));
        tni_free(table);
    }
    tn_tensor *chosen = index ? tni_own(&tmp, tni_index_select(self, 0, index)) : NULL;
    return tni_temps_return(&tmp, tni_own(&tmp, tni_reshape(chosen, TN_SHAPE(total, r))), rets);
}

/* ---- blocks and triangles ---------------------------------------------------------------- */

/* Matrices along the diagonal of one, with zeros beside them; ranks below 2 count as rows. */
tn_status tni_run_block_diag(const tn_cell *args, tn_cell *rets) {
    tn_tensor *const *list = args[0].v.pointer;
    uint32_t n = args[0].n, made = 0;
    int64_t columns = 0, before = 0;
    if (n == 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_block_diag: there is no tensor");
    for (uint32_t i = 0; i < n; i++) {
        int32_t rank = list[i]->view.rank;
        if (rank > 2)
            return tni_fail(TN_ERR_SHAPE, "tn_block_diag: tensor %u has rank %d; it must be 0 to 2",
                            i, rank);
        columns += rank ? list[i]->sizes[rank - 1] : 1;
    }
    tn_tensor **rows = tni_calloc(n, sizeof *rows);
    if (!rows)
        return tni_fail_memory("a list of tensors");
    for (; made < n; made++) {
        tn_tensor *block = tni_atleast_2d(list[made]);
        int64_t width = block ? block->sizes[1] : 0;
        rows[made] = block ? tni_constant_pad_nd(block, TN_SHAPE(before, columns - before - width),
                                                 tn_int(0))
                           : NULL;
        tni_drop(block);
        before += width;
        if (!rows[made])
            break;
    }
    tn_tensor *all = made == n ? tni_cat(rows, n, 0) : NULL;
    tni_drop_list(rows, made);
    return tni_return(rets, all);
}

/* How many elements of a matrix lie on or above a diagonal: whole rows, then each one less. */
static int64_t above(int64_t rows, int64_t columns, int64_t offset) {
    int64_t last = columns - offset < rows ? columns - offset : rows;
    int64_t whole = offset > 0 ? 0 : 1 - offset < last ? 1 - offset : last;
    if (last <= 0 || columns == 0)
        return 0;
    return whole * columns +
           (last - whole) * (columns - whole - offset + columns - (last - 1) - offset) / 2;
}

/* The rows and columns of the elements at or above (below) a diagonal of a matrix. */
tn_status tni_run_triangle_indices(const char *call, const tn_cell *args, tn_cell *rets,
                                   bool lower) {
    int64_t rows = args[0].v.i64, columns = args[1].v.i64, offset = args[2].v.i64, n = 0, area;
    tn_dtype dtype = tni_arg_dtype(&args[3]);
    if (rows < 0 || columns < 0 || !tni_mul_i64(rows, columns, &area) ||
        !tni_mul_i64(area, 16, &area))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "%s: a matrix of %lld rows and %lld columns cannot be; neither may be "
                        "negative, nor the elements more than can be counted",
                        call, (long long)rows, (long long)columns);
    dtype = dtype == TN_DTYPE_NONE ? TN_I64 : dtype;
    if (dtype != TN_I64 && dtype != TN_I32)
        return tni_fail(TN_ERR_DTYPE, "%s: dtype is %s; it must be i64 or i32", call,
                        tn_dtype_name(dtype));
    /* beyond the corners every diagonal is the same */
    offset = offset < -rows - 1 ? -rows - 1 : offset > columns + 1 ? columns + 1 : offset;
    tni_temps tmp = {0};
    tn_tensor *nothing = tni_own(&tmp, tni_empty(TN_SHAPE(2, 0), dtype, tni_arg_device(&args[4])));
    if (!nothing)
        return tni_temps_return(&tmp, NULL, rets);
    n = lower ? rows * columns - above(rows, columns, offset + 1) : above(rows, columns, offset);
    if (n == 0)
        return tni_temps_return(&tmp, nothing, rets);
    int64_t *table = tni_new_table(nothing->device, TN_I64, 2 * n, sizeof *table), at = 0;
    if (!table)
        return tni_temps_return(&tmp, NULL, rets);
    for (int64_t i = lower && offset < 0 ? -offset : 0; at < n; i++) {
        int64_t edge = lower ? i + offset + 1 : i + offset;
        edge = edge < 0 ? 0 : edge > columns ? columns : edge;
        for (int64_t j = lower ? 0 : edge; j < (lower ? edge : columns); j++, at++) {
            table[at] = i;
            table[n + at] = j;
        }
    }
    tn_tensor *places = tni_own(&tmp, tni_table(nothing->device, TN_I64, TN_SHAPE(2, n), table,
                                                2 * (uint64_t)n * sizeof *table));
    tni_free(table);
    return tni_temps_return(&tmp, places ? tni_own(&tmp, tni_to_dtype(places, dtype)) : NULL, rets);
}

/* vander(x, N, increasing): the powers of each element as a row */
tn_status tni_run_vander(const tn_cell *args, tn_cell *rets) {
    tn_tensor *x = tni_arg_tensor(&args[0]);
    int64_t n = args[1].tag == TN_CELL_NONE ? x->view.numel : args[1].v.i64;
    if (x->view.rank != 1 || n < 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_vander: x has rank %d and N is %lld; x must be a vector, and N not "
                        "negative",
                        x->view.rank, (long long)n);
    tni_temps tmp = {0};
    bool up = args[2].v.boolean;
    tn_tensor *powers = tni_own(
        &tmp, up ? tni_arange(tn_int(n), TN_I64, x->device->id)
                 : tni_arange_start(tn_int(n - 1), tn_int(-1), tn_int(-1), TN_I64, x->device->id));
    tn_tensor *column = tni_own(&tmp, tni_unsqueeze(x, 1));
    return tni_temps_return(&tmp, powers ? tni_own(&tmp, tni_pow(column, powers)) : NULL, rets);
}

/* ---- joined along a dimension that all are brought to have ------------------------------- */

/* cat of raised(tensor) along dim; of vectors along the only one. */
static tn_status joined(const char *call, const tn_cell *args, tn_tensor *(*raised)(tn_tensor *),
                        int64_t dim, tn_cell *rets) {
    tn_tensor *const *list = args[0].v.pointer;
    uint32_t n = args[0].n, made = 0;
    if (n == 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: there is no tensor", call);
    tn_tensor **parts = tni_calloc(n, sizeof *parts);
    if (!parts)
        return tni_fail_memory("a list of tensors");
    while (made < n && (parts[made] = raised(list[made])))
        made++;
    if (dim == 1 && made == n && parts[0]->view.rank == 1)
        dim = 0;
    tn_tensor *all = made == n ? tni_cat(parts, n, dim) : NULL;
    tni_drop_list(parts, made);
    return tni_return(rets, all);
}

tn_status tni_run_hstack(const tn_cell *args, tn_cell *rets) {
    return joined("tn_hstack", args, tni_atleast_1d, 1, rets);
}

tn_status tni_run_vstack(const tn_cell *args, tn_cell *rets) {
    return joined("tn_vstack", args, tni_atleast_2d, 0, rets);
}

tn_status tni_run_dstack(const tn_cell *args, tn_cell *rets) {
    return joined("tn_dstack", args, tni_atleast_3d, 2, rets);
}

static tn_tensor *as_column(tn_tensor *t) {
    return t->view.rank < 2 ? tni_reshape(t, TN_SHAPE(t->view.numel, 1)) : tni_keep(t);
}

tn_status tni_run_column_stack(const tn_cell *args, tn_cell *rets) {
    return joined("tn_column_stack", args, as_column, 1, rets);
}
