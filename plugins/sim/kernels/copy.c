/* Copies between any strides and any two dtypes.
 *
 * The one kernel that takes strides and broadcasts, for it is what the core brings other tensors
 * into shape with. Equal dtypes move by size. Others go through a small buffer in the widest type
 * of the source's kind (f64 or i64), which holds every value exactly: so there is one load and two
 * stores per dtype, not one loop per pair. */
#include "plugins/sim/kernels/kernel.h"
#include "plugins/sim/dtype.h"
#include "plugins/sim/view.h"

enum { CHUNK = 256 };

/* ---- same dtype -------------------------------------------------------------------------- */

#define MOVE(name, type) \
    static void name(void *to, int64_t to_step, const void *from, int64_t from_step, int64_t n) { \
        type *z = to; \
        const type *x = from; \
        if (to_step == 1 && from_step == 1) \
            memcpy(z, x, (size_t)n * sizeof(type)); \
        else \
            for (int64_t i = 0; i < n; i++) \
                z[i * to_step] = x[i * from_step]; \
    }

MOVE(move_1, uint8_t)
MOVE(move_2, uint16_t)
MOVE(move_4, uint32_t)
MOVE(move_8, uint64_t)

typedef void move_fn(void *to, int64_t to_step, const void *from, int64_t from_step, int64_t n);

static void copy_same(const sim_tensor *out, const sim_tensor *in) {
    uint64_t size = sim_dtype_bytes(out->dtype);
    move_fn *move = size == 1 ? move_1 : size == 2 ? move_2 : size == 4 ? move_4 : move_8;
    sim_walk walk;
    sim_walk_init(&walk, out->rank, out->sizes, out->strides, in->strides);
    do
        move((char *)out->data + walk.offset[0] * (int64_t)size, walk.step[0],
             (const char *)in->data + walk.offset[1] * (int64_t)size, walk.step[1], walk.n);
    while (sim_walk_next(&walk));
}

/* ---- different dtypes -------------------------------------------------------------------- */

/* Truncates; NaN and what does not fit give some integer and never a trap. */
static int64_t truncate_f64(double x) {
    if (x >= -0x1p63 && x < 0x1p63)
        return (int64_t)x;
    return x > 0 ? INT64_MAX : x < 0 ? INT64_MIN : 0;
}

/* The f64 next to `x` whose last bit says whether anything was lost ("rounding to odd"): what is
 * rounded further from there is as if it had been rounded once. */
static double odd_f64(int64_t x) {
    int64_t whole = (int64_t)1 << 53, lost = 0x3ff;
    if (x >= -whole && x <= whole)
        return (double)x;
    return (double)((x & ~lost) | (x & lost ? lost + 1 : 0));
}

#define TO_F32(x) (float)(x)
#define TO_F64(x) (double)(x)
#define FLOAT_TO_F16(x) sim_round_to_16(x, 10)
#define FLOAT_TO_BF16(x) sim_round_to_16(x, 7)
#define INT_TO_F16(x) sim_round_to_16(odd_f64(x), 10)
#define INT_TO_BF16(x) sim_round_to_16(odd_f64(x), 7)
#define NOT_ZERO(x) ((x) != 0)

#define LOAD(t, NAME, stored, value, wrap, name, wide) \
    static void name##_##t(void *buffer, const void *from, int64_t first, int64_t step, \
                           int64_t n) { \
        wide *w = buffer; \
        const stored *x = (const stored *)from + first; \
        for (int64_t i = 0; i < n; i++) \
            w[i] = sim_load_##t(x[i * step]); \
    }

#define STORE(t, name, stored, wide, convert) \
    static void name##_##t(void *to, int64_t first, int64_t step, const void *buffer, int64_t n) { \
        const wide *w = buffer; \
        stored *z = (stored *)to + first; \
        for (int64_t i = 0; i < n; i++) \
            z[i * step] = (stored)convert(w[i]); \
    }

SIM_FLOAT_TYPES(LOAD, load, double)
SIM_INT_BOOL_TYPES(LOAD, load, int64_t)

#define STORE_FLOATS(name, wide, kind) \
    STORE(f32, name, float, wide, TO_F32) \
    STORE(f64, name, double, wide, TO_F64) \
    STORE(f16, name, uint16_t, wide, kind##_TO_F16) \
    STORE(bf16, name, uint16_t, wide, kind##_TO_BF16)
#define STORE_INT(t, NAME, stored, value, wrap, name, wide, convert) \
    STORE(t, name, stored, wide, convert)

STORE_FLOATS(store_floats, double, FLOAT)
SIM_INT_TYPES(STORE_INT, store_floats, double, truncate_f64)
SIM_BOOL_TYPES(STORE_INT, store_floats, double, NOT_ZERO)
STORE_FLOATS(store_ints, int64_t, INT)
SIM_INT_TYPES(STORE_INT, store_ints, int64_t, )
SIM_BOOL_TYPES(STORE_INT, store_ints, int64_t, NOT_ZERO)

typedef void load_fn(void *buffer, const void *from, int64_t first, int64_t step, int64_t n);
typedef void store_fn(void *to, int64_t first, int64_t step, const void *buffer, int64_t n);

static load_fn *const loads[TN_DTYPE_COUNT] = {SIM_ALL_TYPES(SIM_COMPUTE, load)};
static store_fn *const stores[2][TN_DTYPE_COUNT] = {
    {SIM_ALL_TYPES(SIM_COMPUTE, store_floats)},
    {SIM_ALL_TYPES(SIM_COMPUTE, store_ints)},
};

static void copy_converting(const sim_tensor *out, const sim_tensor *in) {
    bool from_float = TN_DTYPES_FLOAT & TN_DTYPE_BIT(in->dtype);
    load_fn *load = loads[in->dtype];
    store_fn *store = stores[from_float ? 0 : 1][out->dtype];
    union {
        double f64[CHUNK];
        int64_t i64[CHUNK];
    } buffer;
    sim_walk walk;
    sim_walk_init(&walk, out->rank, out->sizes, out->strides, in->strides);
    do
        for (int64_t i = 0; i < walk.n; i += CHUNK) {
            int64_t n = walk.n - i < CHUNK ? walk.n - i : CHUNK;
            load(&buffer, in->data, walk.offset[1] + i * walk.step[1], walk.step[1], n);
            store(out->data, walk.offset[0] + i * walk.step[0], walk.step[0], &buffer, n);
        }
    while (sim_walk_next(&walk));
}

static void copy(sim_task *task) {
    const sim_tensor *in = task->args[TN_ARG_copy_self].v.tensor, *out = &task->outs[0];
    if (in->dtype == out->dtype)
        copy_same(out, in);
    else
        copy_converting(out, in);
}

#define COPY(t, NAME, stored, value, wrap, ...) [TN_##NAME] = copy,

const sim_kernel sim_kernel_copy = {
    .record = {SIM_RECORD_WITH(copy, TN_KERNEL_STRIDED | TN_KERNEL_BROADCAST, TN_DTYPES_ALL,
                               TN_DTYPES_ALL)},
    .signature = "A>A",
    .pointwise = true,
    .compute = {SIM_ALL_TYPES(COPY, )},
};
