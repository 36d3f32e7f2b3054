/* pack.c: operands of product.c brought into the order that it reads.
 *
 *   T, C        the dtype that is stored; the dtype that is computed in
 *
 * A work item of `pack` brings DEEP rows and WIDE columns of a panel of PANEL columns; with ALONG_K
 * the source lies in a row along k. */

typedef wrap(C) U;

#ifdef PANEL
typedef struct parameters {
    i64 k, n;
    i64 k_sizes[2]; /* of the two inner dimensions of k */
    i64 from, from_batch, from_k[3], from_n;
    i64 to; /* [batch][panel][k][PANEL] */
} parameters;

/* Item, panel, batch */
KERNEL(pack)(GLOBAL U *out, GLOBAL const stored(T) * in, const parameters p) {
    const i64 item = GLOBAL_ID(0), panel = GROUP_ID(1), batch = GROUP_ID(2);
    const i64 deep = (p.k + DEEP - 1) / DEEP;
#if ALONG_K
    const i64 k = item % deep * DEEP, j = item / deep * WIDE;
#else
    const i64 j = item % (PANEL / WIDE) * WIDE, k = item / (PANEL / WIDE) * DEEP;
#endif
    const i64 n = panel * PANEL + j;
    if (k >= p.k || j >= PANEL)
        return;
    const int rows = p.k - k < DEEP ? (int)(p.k - k) : DEEP,
              columns = n >= p.n ? 0 : p.n - n < WIDE ? (int)(p.n - n) : WIDE;
    i64 at[DEEP];
    for (int d = 0; d < rows; d++) {
        const i64 outer = (k + d) / p.k_sizes[1], k0 = outer / p.k_sizes[0];
        at[d] = p.from + batch * p.from_batch + n * p.from_n + k0 * p.from_k[0] +
                (outer - k0 * p.k_sizes[0]) * p.from_k[1] +
                (k + d - outer * p.k_sizes[1]) * p.from_k[2];
    }
    out += p.to + ((batch * GROUPS(1) + panel) * p.k + k) * PANEL + j;
#if ALONG_K
    for (int w = 0; w < columns; w++)
        for (int d = 0; d < rows; d++)
            out[d * PANEL + w] = (U)load(T)(in, at[d] + w * p.from_n);
#else
    for (int d = 0; d < rows; d++)
        for (int w = 0; w < columns; w++)
            out[d * PANEL + w] = (U)load(T)(in, at[d] + w * p.from_n);
#endif
    for (int d = 0; d < rows; d++)
        for (int w = columns; w < WIDE; w++)
            out[d * PANEL + w] = 0;
}

#else

/* out [n, c, h, w], dense: the input with `before` zeros round it, and as many behind as fit. A
 * work item writes a row, or with ONE an element of it. */
typedef struct parameters {
    i64 sizes[4];  /* of the output */
    i64 inside[2]; /* rows and columns of the input */
    i64 before[2];
    i64 from, strides[4];
    i64 to;
} parameters;

KERNEL(pad)(GLOBAL computed(C) * out, GLOBAL const stored(T) * in, const parameters p) {
    i64 i = GLOBAL_ID(0);
    const i64 width = p.sizes[3];
#if ONE
    const i64 x_first = i % width, x_end = x_first + 1;
    i /= width;
#else
    const i64 x_first = 0, x_end = width;
#endif
    const i64 line = i, y = i % p.sizes[2] - p.before[0];
    i /= p.sizes[2];
    const i64 c = i % p.sizes[1], n = i / p.sizes[1];
    if (n >= p.sizes[0])
        return;
    const bool is_inside = y >= 0 && y < p.inside[0];
    i64 begin = is_inside ? p.before[1] : width, end = begin + p.inside[1];
    if (begin < x_first)
        begin = x_first;
    if (begin > x_end)
        begin = x_end;
    if (end > x_end)
        end = x_end;
    if (end < begin)
        end = begin;
    const i64 from = p.from + n * p.strides[0] + c * p.strides[1] + y * p.strides[2] -
                     p.before[1] * p.strides[3];
    out += p.to + line * width;
    i64 x = x_first;
    for (; x < begin; x++)
        out[x] = 0;
    for (; x < end; x++)
        out[x] = load(T)(in, from + x * p.strides[3]);
    for (; x < x_end; x++)
        out[x] = 0;
}
#endif
