/* copy.c: from any dtype to any other, each element on its own. Of equal dtypes the bits move: S
 * and D are then i8, i16, i32 or i64.
 *
 *   S, D       the input's and the output's dtype
 *   STRIDED    0: both tensors lie in a row; 1: by sizes and strides; 2: each lies in a row along
 *              another dimension: tiles are read along the one and written along the other
 *   INDEX      i32 or i64, what counts elements
 *   SIDE_X, SIDE_Y    work items of a tile's group */

typedef struct parameters {
    i64 numel;
    i64 offsets[2]; /* output, input */
#if STRIDED
    LOOP(2) loop; /* with STRIDED 2: less the two dimensions of the tile */
#endif
#if STRIDED == 2
    i64 sizes[2];      /* along the dimension that the output lies in, and along the input's */
    i64 out_step, in_step; /* of the one along the other's */
#endif
} parameters;

/* What does not fit an integer gives some integer. */
#if IS_BOOL(D)
#define STORE(x) store(D)(out, to, (x) != 0)
#elif IS_FLOAT(S) && IS_INT(D)
#define STORE(x) store(D)(out, to, (computed(D))(i64)(x))
#elif DTYPE(S) == DTYPE_f64 && IS_FLOAT(D)
#define STORE(x) store_of_f64(D)(out, to, x)
#else
#define STORE(x) store(D)(out, to, (computed(D))(x))
#endif

#if STRIDED == 2

#define TILE 32

KERNEL_OF_GROUP(SIDE_X, SIDE_Y, copy)
(GLOBAL stored(D) * out, GLOBAL const stored(S) * in, const parameters p) {
    LOCAL computed(S) tile[TILE][TILE + 1];
    const i64 x0 = (i64)GROUP_ID(0) * TILE, y0 = (i64)GROUP_ID(1) * TILE;
    const int nx = p.sizes[0] - x0 < TILE ? (int)(p.sizes[0] - x0) : TILE,
              ny = p.sizes[1] - y0 < TILE ? (int)(p.sizes[1] - y0) : TILE,
              first = (int)LOCAL_ID(0), second = (int)LOCAL_ID(1);
    i64 at[2] = {p.offsets[0], p.offsets[1]};
    WALK(p.loop, 2, INDEX, (INDEX)GROUP_ID(2), at);
    for (int x = second; x < nx; x += SIDE_Y)
        for (int y = first; y < ny; y += SIDE_X)
            tile[x][y] = load(S)(in, at[1] + (x0 + x) * p.in_step + y0 + y);
    BARRIER();
    for (int y = second; y < ny; y += SIDE_Y)
        for (int x = first; x < nx; x += SIDE_X) {
            const i64 to = at[0] + (y0 + y) * p.out_step + x0 + x;
            STORE(tile[x][y]);
        }
}

#else

KERNEL(copy)(GLOBAL stored(D) * out, GLOBAL const stored(S) * in, const parameters p) {
    const INDEX i = (INDEX)GLOBAL_ID(0);
    if (i >= p.numel)
        return;
    i64 at[2] = {p.offsets[0], p.offsets[1]};
#if STRIDED
    WALK(p.loop, 2, INDEX, i, at);
#else
    at[0] += i;
    at[1] += i;
#endif
    const i64 to = at[0];
    const computed(S) x = load(S)(in, at[1]);
    STORE(x);
}
#endif
