/* From any dtype to any other, each element on its own. Of equal dtypes the bits move: S
 * and D are then i8, i16, i32 or i64.
 *
 *   D          the dtype of the output
 *   STRIDED    0: both tensors lie in a row; 1: by sizes and strides; 2: each lies in a row along
 *              another dimension: tiles are read along the one and written along the other
 *   INDEX      i32 or i64, what counts elements
 *   SIDE_X, SIDE_Y    work items of a tile's group
 *   S          where one kernel is wanted, the dtype of the input
 *
 * There is copy_S for each dtype S of the input. A work item makes one element; in a row, where it
 * is no thread of a CPU, as many neighbours as 16 bytes have of the larger dtype. */
#include "plugins/shared/gpu/device/copy.params.h"

/* A number as D is stored; what does not fit an integer gives some integer. */
#define CONVERT(x) narrow(D)((computed(D))(x))
#if IS_BOOL(D)
#define FROM_INT(x) ((u8)((x) != 0))
#define FROM_FLOAT(x) FROM_INT(x)
#elif IS_INT(D)
#define FROM_INT(x) CONVERT(x)
#define FROM_FLOAT(x) CONVERT((i64)(x))
#else
#define FROM_INT(x) CONVERT(x)
#define FROM_FLOAT(x) CONVERT(x)
#endif
#if IS_FLOAT(D)
#define FROM_F64(x) narrow_f64_to(D)(x)
#else
#define FROM_F64(x) FROM_FLOAT(x)
#endif

#if STRIDED == 2

/* A thread of a CPU has the whole tile. Work items of a GPU read all that they have of it before the
 * first of it is there: memory is far away. */
#if IS_CPU
#define READ_TILE(S) \
    for (int x = second; x < nx; x += SIDE_Y) \
        for (int y = first; y < ny; y += SIDE_X) \
    tile[x][y] = load(S)(in, at[1] + (x0 + x) * p.in_step + y0 + y)
#else
#define EACH (COPY_TILE / SIDE_Y)
#define READ_TILE(S) \
    computed(S) kept[EACH]; \
    for (int e = 0; e < EACH; e++) \
        if (second + e * SIDE_Y < nx && first < ny) \
            kept[e] = load(S)(in, at[1] + (x0 + second + e * SIDE_Y) * p.in_step + y0 + first); \
    for (int e = 0; e < EACH; e++) \
        if (second + e * SIDE_Y < nx && first < ny) \
    tile[second + e * SIDE_Y][first] = kept[e]
#endif

#define MAKE(S, FROM) \
    KERNEL_OF_GROUP(SIDE_X, SIDE_Y, copy_##S) \
    (GLOBAL stored(D) * out, GLOBAL const stored(S) * in, const copy_params p) { \
        LOCAL computed(S) tile[COPY_TILE][COPY_TILE + 1]; \
        i64 tiles_x = (p.sizes[0] + COPY_TILE - 1) / COPY_TILE, \
            tiles_y = (p.sizes[1] + COPY_TILE - 1) / COPY_TILE; \
        INDEX tile_x = (INDEX)GROUP_ID(0), others = tile_x / (INDEX)tiles_x; \
        tile_x -= others * (INDEX)tiles_x; \
        INDEX tile_y = others % (INDEX)tiles_y; \
        others /= (INDEX)tiles_y; \
        i64 x0 = (i64)tile_x * COPY_TILE, y0 = (i64)tile_y * COPY_TILE; \
        int nx = p.sizes[0] - x0 < COPY_TILE ? (int)(p.sizes[0] - x0) : COPY_TILE, \
            ny = p.sizes[1] - y0 < COPY_TILE ? (int)(p.sizes[1] - y0) : COPY_TILE, \
            first = (int)LOCAL_ID(0), second = (int)LOCAL_ID(1); \
        i64 at[2] = {p.offsets[0], p.offsets[1]}; \
        WALK(p.loop, 2, INDEX, others, at); \
        READ_TILE(S); \
        BARRIER(); \
        for (int y = second; y < ny; y += SIDE_Y) \
            for (int x = first; x < nx; x += SIDE_X) { \
                out[at[0] + (y0 + y) * p.out_step + x0 + x] = FROM(tile[x][y]); \
            } \
    }

#elif STRIDED || IS_CPU

#if STRIDED
#define FIND() WALK(p.loop, 2, INDEX, i, at)
#else
#define FIND() \
    at[0] += i; \
    at[1] += i
#endif

#define MAKE(S, FROM) \
    KERNEL(copy_##S) \
    (GLOBAL stored(D) * out, GLOBAL const stored(S) * in, const copy_params p) { \
        INDEX i = (INDEX)GLOBAL_ID(0); \
        if (i >= p.numel) \
            return; \
        i64 at[2] = {p.offsets[0], p.offsets[1]}; \
        FIND(); \
        computed(S) x = load(S)(in, at[1]); \
        out[at[0]] = FROM(x); \
    }

#else

#if BYTES(S) > BYTES(D)
#define E (16 / BYTES(S))
#else
#define E (16 / BYTES(D))
#endif
MAKE_PACK(D, E)
#if DTYPE(S) != DTYPE(D)
MAKE_PACK(S, E)
#endif

#define MAKE(S, FROM) \
    KERNEL(copy_##S) \
    (GLOBAL stored(D) * out, GLOBAL const stored(S) * in, const copy_params p) { \
        INDEX step = (INDEX)(GROUPS(0) * LOCAL_SIZE(0)) * E; \
        for (INDEX i = (INDEX)GLOBAL_ID(0) * E; i < p.numel; i += step) { \
            int count = p.numel - i < E ? (int)(p.numel - i) : E; \
            computed(S) x[E] = {0}; \
            LOAD_PACK(S, E, in + p.offsets[1] + i, count, x); \
            STORE_PACK(D, E, out + p.offsets[0] + i, count, x, FROM); \
        } \
    }

#endif

#define FROM_i8 FROM_INT
#define FROM_i16 FROM_INT
#define FROM_i32 FROM_INT
#define FROM_i64 FROM_INT
#define FROM_u8 FROM_INT
#define FROM_bool FROM_INT
#define FROM_f16 FROM_FLOAT
#define FROM_bf16 FROM_FLOAT
#define FROM_f32 FROM_FLOAT
#define FROM_f64 FROM_F64

#ifdef S
#define MAKE_ONE(...) MAKE(__VA_ARGS__)
MAKE_ONE(S, CAT(FROM_, S))
#else
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
#endif
