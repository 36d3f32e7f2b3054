/* Copies between any two layouts and dtypes: the kernel that adapts calls for all others. */
#include "plugins/cpu/convolution.h"
#include "plugins/cpu/pointwise.h"

/* ---- conversions: one loop per pair of computing types ----------------------------------- */

/* X(suffix, C type) */
#define SOURCES(X) \
    X(f32, float) \
    X(bf16, tnc_bf16) \
    X(f64, double) \
    X(i8, int8_t) \
    X(i16, int16_t) \
    X(i32, int32_t) \
    X(i64, int64_t) \
    X(u8, uint8_t)

/* Small integers go through i32, as hardware converts floating point. */
#define LOOPS(sfx, T) \
    TNC_LOOP1(sfx##_to_f32, float, T, TNC_NOTHING, a) \
    TNC_LOOP1(sfx##_to_f64, double, T, TNC_NOTHING, a) \
    TNC_LOOP1(sfx##_to_i8, int8_t, T, TNC_NOTHING, (int32_t)a) \
    TNC_LOOP1(sfx##_to_i16, int16_t, T, TNC_NOTHING, (int32_t)a) \
    TNC_LOOP1(sfx##_to_i32, int32_t, T, TNC_NOTHING, (int32_t)a) \
    TNC_LOOP1(sfx##_to_i64, int64_t, T, TNC_NOTHING, (int64_t)a) \
    TNC_LOOP1(sfx##_to_u8, uint8_t, T, TNC_NOTHING, (int32_t)a) \
    TNC_LOOP1(sfx##_to_bool, uint8_t, T, TNC_NOTHING, a != 0)
SOURCES(LOOPS)

/* An i64 as an f64 that rounds as it would to 24 bits or fewer: where f64 cannot hold it the lowest
 * bit that is kept stands for all below, which is rounding to odd. */
static inline double odd_double(int64_t x) {
    int64_t low = 0x3ff, exact = (int64_t)1 << 53;
    bool fits = x >= -exact && x <= exact;
    return (double)(fits || (x & low) == 0 ? x : (x & ~low) | (low + 1));
}

/* bf16 is f32 in a loop, and f16 before and after it. What is narrower goes to f32 exactly, what is wider is rounded
 * to odd on the way, so that it is not rounded twice. */
TNC_LOOP1(f64_to_half, float, double, TNC_NOTHING, tnc_round_to_odd(a))
TNC_LOOP1(i32_to_half, float, int32_t, TNC_NOTHING, tnc_round_to_odd(a))
TNC_LOOP1(i64_to_half, float, int64_t, TNC_NOTHING, tnc_round_to_odd(odd_double(a)))
TNC_LOOP1(bf16_to_bf16, tnc_bf16, tnc_bf16, TNC_NOTHING, a)
TNC_LOOP1(f32_to_bf16, tnc_bf16, float, TNC_NOTHING, a)
TNC_LOOP1(f64_to_bf16, tnc_bf16, double, TNC_NOTHING, tnc_round_to_odd(a))
TNC_LOOP1(i8_to_bf16, tnc_bf16, int8_t, TNC_NOTHING, a)
TNC_LOOP1(i16_to_bf16, tnc_bf16, int16_t, TNC_NOTHING, a)
TNC_LOOP1(i32_to_bf16, tnc_bf16, int32_t, TNC_NOTHING, tnc_round_to_odd(a))
TNC_LOOP1(i64_to_bf16, tnc_bf16, int64_t, TNC_NOTHING, tnc_round_to_odd(odd_double(a)))
TNC_LOOP1(u8_to_bf16, tnc_bf16, uint8_t, TNC_NOTHING, a)

/* In order of tn_dtype. */
#define ROW(s, to_half) \
    { \
        s##_to_f32, s##_to_f64, to_half, s##_to_bf16, s##_to_i8, s##_to_i16, s##_to_i32, \
            s##_to_i64, s##_to_u8, s##_to_bool \
    }

static const tnc_loop loops[TN_DTYPE_COUNT][TN_DTYPE_COUNT] = {
    [TN_F32] = ROW(f32, f32_to_f32),  [TN_F64] = ROW(f64, f64_to_half),
    [TN_F16] = ROW(f32, f32_to_f32),  [TN_BF16] = ROW(bf16, bf16_to_f32),
    [TN_I8] = ROW(i8, i8_to_f32),     [TN_I16] = ROW(i16, i16_to_f32),
    [TN_I32] = ROW(i32, i32_to_half), [TN_I64] = ROW(i64, i64_to_half),
    [TN_U8] = ROW(u8, u8_to_f32),     [TN_BOOL] = ROW(u8, u8_to_f32),
};

typedef struct mover {
    tnc_plan plan; /* output, input */
    int across;    /* the dimension along which the input is dense, or -1 */
    tnc_loop loop; /* with conversion */
} mover;

static void convert(void *context, int64_t begin, int64_t end, int slot) {
    const mover *m = context;
    const tnc_plan *p = &m->plan;
    const tnc_operand *out = &p->operands[0], *in = &p->operands[1];
    (void)slot;
    _Alignas(64) char source[TNC_BLOCK * 8], result[TNC_BLOCK * 8];
    int64_t at[TN_MAX_RANK], n;
    for (int64_t i = begin; i < end; i += n) {
        n = in->dense && out->dense ? end - i : tnc_min(TNC_BLOCK, end - i);
        tnc_plan_seek(p, i, at);
        const void *src = in->dense ? in->base + i * in->item : source;
        void *dst = out->dense ? out->base + i * out->item : result;
        if (!in->dense)
            tnc_plan_move(p, in, at, source, n, false);
        m->loop(n, &dst, &src, NULL);
        if (!out->dense)
            tnc_plan_move(p, out, at, result, n, true);
    }
}

/* ---- moving without conversion ----------------------------------------------------------- */

/* Tiles of a transposition are squares whose sides are a cache line, so that each line of either side is
 * touched once: rows of a power of two of bytes fall into few sets of a cache, and would not stay. */
enum { LINE = 64 };

#define TURN(T) \
    { \
        enum { SIDE = LINE / sizeof(T) }; \
        for (int r = 0; r < SIDE; r++) \
            for (int c = 0; c < SIDE; c++) \
                memcpy(to + (r * SIDE + c) * sizeof(T), from + (c * SIDE + r) * sizeof(T), \
                       sizeof(T)); \
        break; \
    }

/* A tile of lines one behind the other. */
static void turn(char *to, const char *from, int32_t item) {
    switch (item) {
    case 1:
        TURN(uint8_t)
    case 2:
        TURN(uint16_t)
    case 4:
        tnc_transpose(TN_F32, to, LINE / 4, from, LINE / 4, LINE / 4, LINE / 4);
        break;
    default:
        TURN(uint64_t)
    }
}

static void transpose_tile(char *dst, int64_t dst_stride, const char *src, int64_t src_stride,
                           int64_t rows, int64_t columns, int32_t item) {
    /* dst rows are dense, src columns are dense */
    if (rows * item < LINE || columns * item < LINE) {
        for (int64_t r = 0; r < rows; r++)
            tnc_copy_run(dst + r * dst_stride, item, src + r * item, src_stride, columns, item);
        return;
    }
    _Alignas(LINE) char from[LINE * LINE], to[LINE * LINE];
    for (int64_t c = 0; c < columns; c++)
        memcpy(from + c * LINE, src + c * src_stride, LINE);
    turn(to, from, item);
    for (int64_t r = 0; r < rows; r++)
        memcpy(dst + r * dst_stride, to + r * LINE, LINE);
}

enum { NEIGHBOURS = 8 }; /* tiles of one page of the input that are taken one after the other */

/* Tile t of rows * columns: its row and column. */
static void find_tile(int64_t t, int64_t rows, int64_t columns, int64_t *out_row,
                      int64_t *out_column) {
    int64_t first = t / (NEIGHBOURS * columns) * NEIGHBOURS;
    int64_t together = tnc_min(NEIGHBOURS, rows - first);
    t -= first * columns;
    *out_row = first + t % together;
    *out_column = t / together;
}

/* Tasks are the tile pairs of (across, inner) for each index of the other dimensions. */
static void transpose(void *context, int64_t begin, int64_t end, int slot) {
    const mover *m = context;
    const tnc_plan *p = &m->plan;
    const tnc_operand *out = &p->operands[0], *in = &p->operands[1];
    (void)slot;
    int inner = p->rank - 1, across = m->across;
    int64_t side = LINE / out->item;
    int64_t tile_rows = tnc_ceil_div(p->sizes[across], side);
    int64_t tile_columns = tnc_ceil_div(p->sizes[inner], side);
    for (int64_t t = begin; t < end; t++) {
        int64_t rest = t / (tile_rows * tile_columns), row, column;
        find_tile(t % (tile_rows * tile_columns), tile_rows, tile_columns, &row, &column);
        row *= side;
        column *= side;
        char *dst = out->base + row * out->strides[across] + column * out->strides[inner];
        const char *src = in->base + row * in->strides[across] + column * in->strides[inner];
        for (int d = inner - 1; d >= 0; d--) {
            if (d == across)
                continue;
            dst += rest % p->sizes[d] * out->strides[d];
            src += rest % p->sizes[d] * in->strides[d];
            rest /= p->sizes[d];
        }
        transpose_tile(dst, out->strides[across], src, in->strides[inner],
                       tnc_min(side, p->sizes[across] - row),
                       tnc_min(side, p->sizes[inner] - column), out->item);
    }
}

/* Rows of one stride each, or parts of one when the plan has a single dimension. */
static void move_rows(void *context, int64_t begin, int64_t end, int slot) {
    const mover *m = context;
    const tnc_plan *p = &m->plan;
    const tnc_operand *out = &p->operands[0], *in = &p->operands[1];
    (void)slot;
    int inner = p->rank - 1;
    int64_t at[TN_MAX_RANK], n;
    for (int64_t i = begin; i < end; i += n) {
        tnc_plan_seek(p, i, at);
        n = tnc_min(end - i, p->sizes[inner] - at[inner]);
        char *dst = tnc_plan_address(p, out, at);
        const char *src = tnc_plan_address(p, in, at);
        if (in->strides[inner] == 0 && out->strides[inner] == out->item)
            tnc_splat_run(dst, src, n, out->item);
        else
            tnc_copy_run(dst, out->strides[inner], src, in->strides[inner], n, out->item);
    }
}

/* A dimension, other than the inner one, along which the input is dense and not short. */
static int dense_across(const tnc_plan *p) {
    const tnc_operand *out = &p->operands[0], *in = &p->operands[1];
    int inner = p->rank - 1;
    if (p->sizes[inner] >= 4 && out->strides[inner] == out->item && in->strides[inner] != in->item)
        for (int d = inner - 1; d >= 0; d--)
            if (in->strides[d] == in->item && p->sizes[d] >= 4)
                return d;
    return -1;
}

static void add_view(tnc_plan *p, const tn_tensor_view *v) {
    (v->dtype == TN_BF16 ? tnc_plan_add_stored : tnc_plan_add_view)(p, v);
}

/* ---- the kernel -------------------------------------------------------------------------- */

static tn_status run(const tn_call *call) {
    const tn_tensor_view *in = tnc_view(call, TN_ARG_copy_self), *out = call->outs[0];
    mover m;
    tnc_plan_init(&m.plan, out);
    add_view(&m.plan, out);
    add_view(&m.plan, in);
    tnc_plan_finish(&m.plan, true);
    const tnc_plan *p = &m.plan;
    if (in->dtype != out->dtype) {
        m.loop = loops[in->dtype][out->dtype];
        tnc_parallel(call, p->numel, TNC_GRAIN, TNC_MAX_SLOTS, convert, &m);
        return TN_OK;
    }
    m.across = dense_across(p);
    if (m.across < 0) {
        tnc_parallel(call, p->numel, TNC_GRAIN, TNC_MAX_SLOTS, move_rows, &m);
        return TN_OK;
    }
    int64_t rows = p->sizes[m.across], columns = p->sizes[p->rank - 1];
    int64_t side = LINE / p->operands[0].item;
    int64_t tiles = tnc_ceil_div(rows, side) * tnc_ceil_div(columns, side);
    tiles *= p->numel / (rows * columns);
    tnc_parallel(call, tiles, tnc_max(1, TNC_GRAIN * tiles / p->numel), TNC_MAX_SLOTS, transpose,
                 &m);
    return TN_OK;
}

static const tn_kernel records[] = {
    {
        .struct_size = sizeof(tn_kernel),
        .op = TN_KERNEL_copy,
        .schema_hash = TN_KERNEL_HASH_copy,
        .dtypes = {TN_DTYPES_ALL, TN_DTYPES_ALL},
        .flags = TNC_FLAGS_STRIDED,
        .run = run,
    },
};
TNC_PUBLISH(copy, records);
