/* From any dtype to any other, each element on its own. Of equal dtypes the bits move: S
 * and D are then i8, i16, i32 or i64.
 *
 *   D          the dtype of the output
 *   STRIDED    0: both tensors lie in a row; 1: by sizes and strides; 2: each lies in a row along
 *              another dimension: tiles are read along the one and written along the other
 *   INDEX      i32 or i64, what counts elements
 *   SIDE_X, SIDE_Y    work items of a tile's group
 *
 * There is copy_S for each dtype S of the input. */
#include "plugins/shared/gpu/device/copy.params.h"

/* A number goes to D; what does not fit an integer gives some integer. */
#define CONVERT(x) store(D)(out, to, (computed(D))(x))
#if IS_BOOL(D)
#define FROM_INT(x) store(D)(out, to, (x) != 0)
#define FROM_FLOAT(x) FROM_INT(x)
#elif IS_INT(D)
#define FROM_INT(x) CONVERT(x)
#define FROM_FLOAT(x) CONVERT((i64)(x))
#else
#define FROM_INT(x) CONVERT(x)
#define FROM_FLOAT(x) CONVERT(x)
#endif
#if IS_FLOAT(D)
#define FROM_F64(x) store_of_f64(D)(out, to, x)
#else
#define FROM_F64(x) FROM_FLOAT(x)
#endif

#if STRIDED == 2

#define MAKE(S, STORE) \
    KERNEL_OF_GROUP(SIDE_X, SIDE_Y, copy_##S) \
    (GLOBAL stored(D) * out, GLOBAL const stored(S) * in, const copy_params p) { \
        LOCAL computed(S) tile[COPY_TILE][COPY_TILE + 1]; \
        i64 x0 = (i64)GROUP_ID(0) * COPY_TILE, y0 = (i64)GROUP_ID(1) * COPY_TILE; \
        int nx = p.sizes[0] - x0 < COPY_TILE ? (int)(p.sizes[0] - x0) : COPY_TILE, \
            ny = p.sizes[1] - y0 < COPY_TILE ? (int)(p.sizes[1] - y0) : COPY_TILE, \
            first = (int)LOCAL_ID(0), second = (int)LOCAL_ID(1); \
        i64 at[2] = {p.offsets[0], p.offsets[1]}; \
        WALK(p.loop, 2, INDEX, (INDEX)GROUP_ID(2), at); \
        for (int x = second; x < nx; x += SIDE_Y) \
            for (int y = first; y < ny; y += SIDE_X) \
                tile[x][y] = load(S)(in, at[1] + (x0 + x) * p.in_step + y0 + y); \
        BARRIER(); \
        for (int y = second; y < ny; y += SIDE_Y) \
            for (int x = first; x < nx; x += SIDE_X) { \
                i64 to = at[0] + (y0 + y) * p.out_step + x0 + x; \
                STORE(tile[x][y]); \
            } \
    }

#else

#if STRIDED
#define FIND() WALK(p.loop, 2, INDEX, i, at)
#else
#define FIND() \
    at[0] += i; \
    at[1] += i
#endif

#define MAKE(S, STORE) \
    KERNEL(copy_##S) \
    (GLOBAL stored(D) * out, GLOBAL const stored(S) * in, const copy_params p) { \
        INDEX i = (INDEX)GLOBAL_ID(0); \
        if (i >= p.numel) \
            return; \
        i64 at[2] = {p.offsets[0], p.offsets[1]}; \
        FIND(); \
        i64 to = at[0]; \
        computed(S) x = load(S)(in, at[1]); \
        STORE(x); \
    }
#endif

MAKE(i8, FROM_INT)
MAKE(i16, FROM_INT)
MAKE(i32, FROM_INT)
MAKE(i64, FROM_INT)
MAKE(u8, FROM_INT)
MAKE(bool, FROM_INT)
MAKE(f16, FROM_FLOAT)
MAKE(bf16, FROM_FLOAT)
MAKE(f32, FROM_FLOAT)
#if HAS_F64
MAKE(f64, FROM_F64)
#endif
