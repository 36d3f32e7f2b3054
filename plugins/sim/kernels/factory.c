/* Tensors from nothing: one value, a sequence, and the bits that random numbers are made of. */
#include "plugins/sim/kernels/kernel.h"
#include "plugins/sim/dtype.h"

#define FILL(t, NAME, stored, value, wrap, name, scalar) \
    static void name##_##t(sim_task *task) { \
        stored *z = task->outs[0].data; \
        stored x = sim_store_##t((wrap)scalar(&task->args[TN_ARG_fill_value])); \
        for (int64_t i = 0; i < task->outs[0].numel; i++) \
            z[i] = x; \
    }

SIM_FLOAT_TYPES(FILL, fill, sim_scalar_f64)
SIM_INT_TYPES(FILL, fill, sim_scalar_i64)
SIM_BOOL_TYPES(FILL, fill, 0 != sim_scalar_f64)

const sim_kernel sim_kernel_fill = {
    .record = {SIM_RECORD(fill, TN_DTYPES_ALL)},
    .signature = "s>T",
    .compute = {SIM_ALL_TYPES(SIM_COMPUTE, fill)},
};

/* start + i * step, in f64 or i64, rounded once. */
#define ARANGE(t, NAME, stored, value, wrap, name, wide, scalar, round) \
    static void name##_##t(sim_task *task) { \
        stored *z = task->outs[0].data; \
        wide start = (wide)scalar(&task->args[TN_ARG_arange_start]); \
        wide step = (wide)scalar(&task->args[TN_ARG_arange_step]); \
        for (int64_t i = 0; i < task->outs[0].numel; i++) \
            z[i] = round(start + (wide)i * step); \
    }

static double same(double x) {
    return x;
}

#define TO_F32(x) (float)same(x)
#define TO_F16(x) sim_round_to_16(x, 10)
#define TO_BF16(x) sim_round_to_16(x, 7)

ARANGE(f32, F32, float, float, float, arange, double, sim_scalar_f64, TO_F32)
ARANGE(f64, F64, double, double, double, arange, double, sim_scalar_f64, same)
ARANGE(f16, F16, uint16_t, float, float, arange, double, sim_scalar_f64, TO_F16)
ARANGE(bf16, BF16, uint16_t, float, float, arange, double, sim_scalar_f64, TO_BF16)
SIM_INT_TYPES(ARANGE, arange, uint64_t, sim_scalar_i64, )

const sim_kernel sim_kernel_arange = {
    .record = {SIM_RECORD(arange, TN_DTYPES_NUMBER)},
    .signature = "ss>T",
    .compute = {SIM_NUMBER_TYPES(SIM_COMPUTE, arange)},
};

/* ---- random_bits ------------------------------------------------------------------------- */

/* Philox 4x32-10, the counter-based generator (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", 2011). A block of four words is a function of key and counter alone, so any element can
 * be computed anywhere. */

static void philox_block(uint64_t key, uint64_t counter, uint32_t out[4]) {
    uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
    uint32_t k[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = UINT64_C(0xD2511F53) * c[0], p1 = UINT64_C(0xCD9E8D57) * c[2];
        const uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k[0], (uint32_t)p1,
                                  (uint32_t)(p0 >> 32) ^ c[3] ^ k[1], (uint32_t)p0};
        for (int i = 0; i < 4; i++)
            c[i] = next[i];
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
    for (int i = 0; i < 4; i++)
        out[i] = c[i];
}

/* Words of the stream in order, from word 0 of block `offset`. */
typedef struct word_stream {
    uint64_t key, counter;
    uint32_t block[4];
    int used;
} word_stream;

/* Seed and offset, or a tensor of both and what is added to the second: in the same place. */
static word_stream words_start(const sim_task *task) {
    const sim_value *seed = &task->args[TN_ARG_random_bits_seed];
    word_stream words = {.counter = (uint64_t)task->args[TN_ARG_random_bits_offset].v.i64,
                         .used = 4};
    if (seed->tag == TN_CELL_TENSOR) {
        const uint64_t *state = seed->v.tensor->data;
        words.key = state[0];
        words.counter += state[1];
    } else {
        words.key = (uint64_t)seed->v.i64;
    }
    return words;
}

static uint32_t words_next(word_stream *words) {
    if (words->used == 4) {
        philox_block(words->key, words->counter++, words->block);
        words->used = 0;
    }
    return words->block[words->used++];
}

static void random_i32(sim_task *task) {
    word_stream words = words_start(task);
    uint32_t *z = task->outs[0].data;
    for (int64_t i = 0; i < task->outs[0].numel; i++)
        z[i] = words_next(&words);
}

static void random_i64(sim_task *task) {
    word_stream words = words_start(task);
    uint64_t *z = task->outs[0].data;
    for (int64_t i = 0; i < task->outs[0].numel; i++) {
        uint64_t low = words_next(&words);
        z[i] = low | (uint64_t)words_next(&words) << 32;
    }
}

const sim_kernel sim_kernel_random_bits = {
    .record = {SIM_RECORD(random_bits, TN_DTYPE_BIT(TN_I32) | TN_DTYPE_BIT(TN_I64))},
    .signature = "ii>T",
    .compute = {[TN_I32] = random_i32, [TN_I64] = random_i64},
};

/* The places of random_bits. */
_Static_assert((int)TN_ARG_random_bits_from_state == (int)TN_ARG_random_bits_seed, "words_start");
_Static_assert((int)TN_ARG_random_bits_from_offset == (int)TN_ARG_random_bits_offset,
               "words_start");

const sim_kernel sim_kernel_random_bits_from = {
    .record = {SIM_RECORD(random_bits_from, TN_DTYPE_BIT(TN_I32) | TN_DTYPE_BIT(TN_I64))},
    .signature = "Li>T",
    .compute = {[TN_I32] = random_i32, [TN_I64] = random_i64},
};
