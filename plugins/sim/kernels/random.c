/* Philox 4x32-10, the counter-based generator.
 *
 * Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011. A block of four words is a
 * function of key and counter alone, so any element can be computed anywhere. */
#include "plugins/sim/kernels/kernel.h"

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
struct words {
    uint64_t key, counter;
    uint32_t block[4];
    int used;
};

static struct words words_start(const struct sim_task *task) {
    return (struct words){
        .key = (uint64_t)task->args[TN_ARG_random_bits_seed].v.i64,
        .counter = (uint64_t)task->args[TN_ARG_random_bits_offset].v.i64,
        .used = 4,
    };
}

static uint32_t words_next(struct words *words) {
    if (words->used == 4) {
        philox_block(words->key, words->counter++, words->block);
        words->used = 0;
    }
    return words->block[words->used++];
}

static void random_i32(struct sim_task *task) {
    struct words words = words_start(task);
    uint32_t *z = task->outs[0].data;
    for (int64_t i = 0; i < task->outs[0].numel; i++)
        z[i] = words_next(&words);
}

static void random_i64(struct sim_task *task) {
    struct words words = words_start(task);
    uint64_t *z = task->outs[0].data;
    for (int64_t i = 0; i < task->outs[0].numel; i++) {
        uint64_t low = words_next(&words);
        z[i] = low | (uint64_t)words_next(&words) << 32;
    }
}

const struct sim_kernel sim_kernel_random_bits = {
    .record = {SIM_RECORD(random_bits, TN_DTYPE_BIT(TN_I32) | TN_DTYPE_BIT(TN_I64))},
    .signature = "ii>T",
    .compute = {[TN_I32] = random_i32, [TN_I64] = random_i64},
};
