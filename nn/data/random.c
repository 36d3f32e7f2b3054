/* Random numbers of samples and orders: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random
 * numbers: as easy as 1, 2, 3", 2011). */
#include "nn/data/data.h"

static void philox(const uint32_t counter[4], uint64_t seed, uint32_t out[4]) {
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int i = 0; i < 4; i++)
        out[i] = counter[i];
    for (int round = 0; round < 10; round++) {
        uint64_t a = UINT64_C(0xd2511f53) * out[0], b = UINT64_C(0xcd9e8d57) * out[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ out[1] ^ key[0], (uint32_t)b,
                            (uint32_t)(a >> 32) ^ out[3] ^ key[1], (uint32_t)a};
        for (int i = 0; i < 4; i++)
            out[i] = next[i];
        key[0] += 0x9e3779b9;
        key[1] += 0xbb67ae85;
    }
}

/* The counter is {block, index, index, epoch}. Blocks of four words are two draws. */
uint64_t tn_data_random_bits(tn_data_random *r) {
    if (!r)
        return 0;
    uint32_t counter[4] = {(uint32_t)(r->n_drawn / 2), (uint32_t)(uint64_t)r->index,
                           (uint32_t)((uint64_t)r->index >> 32), (uint32_t)(uint64_t)r->epoch};
    uint32_t words[4];
    philox(counter, r->seed, words);
    uint32_t *pair = &words[r->n_drawn++ % 2 * 2];
    return (uint64_t)pair[1] << 32 | pair[0];
}

/* Lemire, "Fast random integer generation in an interval", 2019. */
int64_t tn_data_random_below(tn_data_random *r, int64_t n) {
    if (!r || n < 2)
        return 0;
    uint64_t range = (uint64_t)n, few = -range % range; /* 2^64 mod n */
    for (;;) {
        unsigned __int128 product = (unsigned __int128)tn_data_random_bits(r) * range;
        if ((uint64_t)product >= few)
            return (int64_t)(product >> 64);
    }
}

double tn_data_random_uniform(tn_data_random *r) {
    return (double)(tn_data_random_bits(r) >> 11) * 0x1p-53;
}

/* Epochs of samples are below 2^31, so orders have counters of their own. */
void tnn_shuffle(int64_t *order, int64_t n, uint64_t seed, int64_t epoch) {
    tn_data_random r = tn_data_random_of(seed, epoch | INT64_C(1) << 31, 0);
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t k = tn_data_random_below(&r, i + 1), held = order[i];
        order[i] = order[k];
        order[k] = held;
    }
}
