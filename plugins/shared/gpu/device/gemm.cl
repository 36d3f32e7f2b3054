/* Matrix products, C = alpha A B + beta S for each of a batch, which is also what
 * convolutions and their derivatives are.
 *
 *   A   read where it lies: rows and the summed index are grids of three dimensions each, with a
 *       stride for each, so that A may be the patches of an image
 *   B   packed: panels of PANEL columns, [batch][panel][k][PANEL], zeros behind the last
 *   C   rows as A's, a stride along columns; S likewise, where there is one. Where the summed range
 *       is cut into parts C has another dimension of those; `combine` adds them in order.
 *
 *   T, R       the dtype that is computed in (f32, f64, i32, i64), which A and B have; C's dtype
 *   B          the dtype that is stored of B
 *   DEEP, WIDE    rows and columns that a work item packs; of pack_along_k B lies in a row along k
 *   ROWS       rows of a tile
 *   IS_CPU     1: a work item makes a tile of ROWS x (VECTORS x LANES) in registers
 *              0: a group of 16 x 16 makes a tile of ROWS x PANEL by way of local memory, of
 *              which each work item has neighbouring rows and columns in registers
 *   ALONG_K    0 or 1, of groups: A's elements lie in a row along k */
#include "plugins/shared/gpu/device/gemm.params.h"

typedef computed(T) C;
typedef wrap(T) U;
/* ---- rows -------------------------------------------------------------------------------- */

/* Row number m as a place in the grid. */
typedef struct row {
    i64 at[3];
} row;

DEVICE row row_of(const gemm_params *p, i64 m) {
    row r;
    i64 outer = m / p->m_sizes[1];
    r.at[2] = m - outer * p->m_sizes[1];
    r.at[0] = outer / p->m_sizes[0];
    r.at[1] = outer - r.at[0] * p->m_sizes[0];
    return r;
}

DEVICE row row_after(const gemm_params *p, row r) {
    if (++r.at[2] == p->m_sizes[1]) {
        r.at[2] = 0;
        if (++r.at[1] == p->m_sizes[0]) {
            r.at[1] = 0;
            r.at[0]++;
        }
    }
    return r;
}

DEVICE i64 place(row r, const i64 *strides) {
    return r.at[0] * strides[0] + r.at[1] * strides[1] + r.at[2] * strides[2];
}

/* ---- results ----------------------------------------------------------------------------- */

DEVICE void finish(GLOBAL stored(R) * c, GLOBAL const stored(R) * s, const gemm_params *p,
                   i64 batch, i64 part, row r, i64 n, U sum) {
    U value = (U)number(T)(p->alpha) * sum;
    if (p->has_s)
        value += (U)number(T)(p->beta) *
                 (U)load(R)(s, p->s_offset + batch * p->s_batch + place(r, p->s_m) + n * p->s_n);
    store(R)(c, p->c_offset + batch * p->c_batch + part * p->c_part + place(r, p->c_m) + n * p->c_n,
             (C)value);
}

/* Work groups are counted along one dimension, of which there may be the most: tiles of rows, then
 * panels, parts and the batch. */
typedef struct tile_at {
    i64 first, panel, part, batch; /* first row */
} tile_at;

DEVICE tile_at find_tile(const gemm_params *p) {
    i64 rows = (p->m + ROWS - 1) / ROWS, panels = (p->n + PANEL - 1) / PANEL, i = GROUP_ID(0);
    tile_at t;
    t.first = i % rows * ROWS;
    i /= rows;
    t.panel = i % panels;
    i /= panels;
    t.part = i % p->parts;
    t.batch = i / p->parts;
    return t;
}

#define OPERANDS \
    GLOBAL stored(R) * c, GLOBAL const C *a, GLOBAL const U *b, GLOBAL const stored(R) * s

/* ---- registers --------------------------------------------------------------------------- */

#if IS_CPU

#ifdef __OPENCL_VERSION__
#pragma OPENCL FP_CONTRACT ON /* the sums of products are what fused multiply-add is for */
#endif

typedef lanes(T, LANES) lane;

KERNEL_OF_VECTORS(gemm)(OPERANDS, const gemm_params p_) {
    const gemm_params *const p = &p_;
    const tile_at here = find_tile(p);
    i64 first = here.first, panel = here.panel, batch = here.batch, part = here.part;
    i64 begin = part * p->part, end = begin + p->part < p->k ? begin + p->part : p->k;
    i64 panels = (p->n + PANEL - 1) / PANEL;
    GLOBAL const U *from =
        b + p->b_offset + batch * p->b_batch * panels + (panel * p->k + begin) * PANEL;
    i64 offset[ROWS];
    lane sum[ROWS][VECTORS];
    row r = row_of(p, first);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        offset[i] = p->a_offset + batch * p->a_batch + place(r, p->a_m);
        if (first + i + 1 < p->m) /* rows behind the last are the last */
            r = row_after(p, r);
#pragma unroll
        for (int v = 0; v < VECTORS; v++)
            sum[i][v] = (lane)(0);
    }
    i64 outer = p->k_sizes[0] * p->k_sizes[1];
    i64 k = begin;
    for (i64 k0 = begin / outer; k < end; k0++)
        for (i64 k1 = 0; k1 < p->k_sizes[0] && k < end; k1++) {
            i64 last = k + p->k_sizes[1] < end ? k + p->k_sizes[1] : end;
            i64 at = k0 * p->a_k[0] + k1 * p->a_k[1];
            for (; k < last; k++) {
                lane y[VECTORS];
#pragma unroll
                for (int v = 0; v < VECTORS; v++)
                    y[v] = load_lanes(LANES, from + v * LANES);
                from += PANEL;
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    U x = (U)a[offset[i] + at];
#pragma unroll
                    for (int v = 0; v < VECTORS; v++)
                        sum[i][v] = x * y[v] + sum[i][v];
                }
                at += p->a_k[2];
            }
        }
    U lines[ROWS][PANEL]; /* one loop writes them: a loop for each vector compiles for a second */
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int v = 0; v < VECTORS; v++)
            store_lanes(LANES, sum[i][v], lines[i] + v * LANES);
    i64 n0 = panel * PANEL;
    int high = p->m - first < ROWS ? (int)(p->m - first) : ROWS,
        wide = p->n - n0 < PANEL ? (int)(p->n - n0) : PANEL;
    r = row_of(p, first);
    for (int i = 0; i < high; i++) {
        for (int l = 0; l < wide; l++)
            finish(c, s, p, batch, part, r, n0 + l, lines[i][l]);
        r = row_after(p, r);
    }
}

/* ---- local memory ------------------------------------------------------------------------ */
#else

#define DEPTH 16 /* of what lies in local memory */
#define E (16 / BYTES(T))
MAKE_PACK(T, E)
#define ITEMS (GEMM_SIDE * GEMM_SIDE)
#define MINE_M (ROWS / GEMM_SIDE)
#define MINE_N (PANEL / GEMM_SIDE)

/* Where element k of the summed index lies in A, from the row's first on. */
DEVICE i64 place_along(const gemm_params *p, i64 k) {
    i64 outer = k / p->k_sizes[1], k0 = outer / p->k_sizes[0];
    return k0 * p->a_k[0] + (outer - k0 * p->k_sizes[0]) * p->a_k[1] +
           (k - outer * p->k_sizes[1]) * p->a_k[2];
}

KERNEL_OF_GROUP(GEMM_SIDE, GEMM_SIDE, gemm)(OPERANDS, const gemm_params p_) {
    LOCAL ALIGNED(16) U left[DEPTH][ROWS + 4]; /* off the banks of the row before */
    LOCAL ALIGNED(16) U right[DEPTH][PANEL];
    LOCAL i64 offset[ROWS], along[DEPTH]; /* of rows; and from there */
    const gemm_params *const p = &p_;
    int tx = (int)LOCAL_ID(0), ty = (int)LOCAL_ID(1), item = ty * GEMM_SIDE + tx;
    const tile_at here = find_tile(p);
    i64 first = here.first, panel = here.panel, batch = here.batch, part = here.part;
    i64 begin = part * p->part, end = begin + p->part < p->k ? begin + p->part : p->k;
    i64 panels = (p->n + PANEL - 1) / PANEL;
    GLOBAL const U *from = b + p->b_offset + batch * p->b_batch * panels + panel * p->k * PANEL;
    U sum[MINE_M][MINE_N];
#pragma unroll
    for (int i = 0; i < MINE_M; i++)
#pragma unroll
        for (int j = 0; j < MINE_N; j++)
            sum[i][j] = 0;
    for (int i = item; i < ROWS; i += ITEMS) {
        i64 m = first + i < p->m ? first + i : p->m - 1;
        offset[i] = p->a_offset + batch * p->a_batch + place(row_of(p, m), p->a_m);
    }
    if (item < DEPTH)
        along[item] = place_along(p, begin + item);
    BARRIER();
    for (i64 k = begin; k < end; k += DEPTH) {
        for (int e = item; e < ROWS * DEPTH; e += ITEMS) {
#if ALONG_K
            int d = e % DEPTH, i = e / DEPTH;
#else
            int d = e / ROWS, i = e % ROWS;
#endif
            left[d][i] = k + d < end ? (U)a[offset[i] + along[d]] : (U)0;
        }
        for (int e = item * E; e < PANEL * DEPTH; e += ITEMS * E) {
            int d = e / PANEL, j = e % PANEL;
            packed(T) y = {{0}};
            if (k + d < end)
                y = *(GLOBAL const packed(T) *)(from + (k + d) * PANEL + j);
#pragma unroll
            for (int l = 0; l < E; l++)
                right[d][j + l] = (U)y.e[l];
        }
        BARRIER();
        if (item < DEPTH)
            along[item] = place_along(p, k + DEPTH + item);
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            U x[MINE_M], y[MINE_N];
#pragma unroll
            for (int i = 0; i < MINE_M; i++)
                x[i] = left[d][ty * MINE_M + i];
#pragma unroll
            for (int j = 0; j < MINE_N; j++)
                y[j] = right[d][tx * MINE_N + j];
#pragma unroll
            for (int i = 0; i < MINE_M; i++)
#pragma unroll
                for (int j = 0; j < MINE_N; j++)
#if IS_FLOAT(T)
                    sum[i][j] = FMA(x[i], y[j], sum[i][j]);
#else
                    sum[i][j] += x[i] * y[j];
#endif
        }
        BARRIER();
    }
#pragma unroll
    for (int i = 0; i < MINE_M; i++) {
        i64 m = first + ty * MINE_M + i;
        row r = row_of(p, m);
#pragma unroll
        for (int j = 0; j < MINE_N; j++) {
            i64 n = panel * PANEL + tx * MINE_N + j;
            if (m < p->m && n < p->n)
                finish(c, s, p, batch, part, r, n, sum[i][j]);
        }
    }
}
#endif

/* ---- partial sums ------------------------------------------------------------------------ */

/* A work item makes one element. */
KERNEL(combine)
(GLOBAL stored(R) * c, GLOBAL const U *sums, GLOBAL const stored(R) * s, const gemm_params p) {
    i64 each = p.m * p.n, groups = (each + (i64)LOCAL_SIZE(0) - 1) / (i64)LOCAL_SIZE(0);
    i64 batch = (i64)GROUP_ID(0) / groups, i = GLOBAL_ID(0) - batch * groups * LOCAL_SIZE(0);
    if (i >= each)
        return;
    sums += p.sums_offset + batch * p.parts * each + i;
    U sum = sums[0];
    for (i64 k = 1; k < p.parts; k++)
        sum += sums[k * each];
    finish(c, s, &p, batch, 0, row_of(&p, i / p.n), i % p.n, sum);
}

/* ---- packing ----------------------------------------------------------------------------- */

/* A work item brings DEEP rows and WIDE columns of a panel; groups for each panel, then the batch. */
DEVICE void make_pack(const bool along_k, GLOBAL U *out, GLOBAL const stored(B) * in,
                      const pack_params *p) {
    i64 deep = (p->k + DEEP - 1) / DEEP, panels = (p->n + PANEL - 1) / PANEL,
        groups = (deep * (PANEL / WIDE) + (i64)LOCAL_SIZE(0) - 1) / (i64)LOCAL_SIZE(0);
    i64 which = (i64)GROUP_ID(0) / groups, batch = which / panels, panel = which - batch * panels;
    i64 item = GLOBAL_ID(0) - which * groups * LOCAL_SIZE(0);
    i64 j = along_k ? item / deep * WIDE : item % (PANEL / WIDE) * WIDE,
        k = along_k ? item % deep * DEEP : item / (PANEL / WIDE) * DEEP;
    i64 n = panel * PANEL + j;
    if (k >= p->k || j >= PANEL)
        return;
    int rows = p->k - k < DEEP ? (int)(p->k - k) : DEEP, columns = n >= p->n ? 0
                                                                   : p->n - n < WIDE
                                                                       ? (int)(p->n - n)
                                                                       : WIDE;
    i64 at[DEEP];
    for (int d = 0; d < rows; d++) {
        i64 outer = (k + d) / p->k_sizes[1], k0 = outer / p->k_sizes[0];
        at[d] = p->from + batch * p->from_batch + n * p->from_n + k0 * p->from_k[0] +
                (outer - k0 * p->k_sizes[0]) * p->from_k[1] +
                (k + d - outer * p->k_sizes[1]) * p->from_k[2];
    }
    out += p->to + (which * p->k + k) * PANEL + j;
    if (along_k) {
        for (int w = 0; w < columns; w++)
            for (int d = 0; d < rows; d++)
                out[d * PANEL + w] = (U)load(B)(in, at[d] + w * p->from_n);
    } else {
        for (int d = 0; d < rows; d++)
            for (int w = 0; w < columns; w++)
                out[d * PANEL + w] = (U)load(B)(in, at[d] + w * p->from_n);
    }
    for (int d = 0; d < rows; d++)
        for (int w = columns; w < WIDE; w++)
            out[d * PANEL + w] = 0;
}

KERNEL(pack)(GLOBAL U *out, GLOBAL const stored(B) * in, const pack_params p) {
    make_pack(false, out, in, &p);
}

KERNEL(pack_along_k)(GLOBAL U *out, GLOBAL const stored(B) * in, const pack_params p) {
    make_pack(true, out, in, &p);
}
