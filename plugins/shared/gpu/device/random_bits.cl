/* Philox 4x32-10 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * 2011). One work item makes W blocks of four words; an i64 element is two of them, the low one
 * first, which is how it lies in memory. random_bits_from finds key and first block in memory. */
#include "plugins/shared/gpu/device/random_bits.params.h"

#if !IS_CPU
MAKE_PACK(i32, 4)
#endif

DEVICE void make_blocks(GLOBAL u32 *out, u64 seed, u64 first, i64 n_words) {
    i64 block = W * (i64)GLOBAL_ID(0), left = n_words - 4 * block;
    u64 counter = first + (u64)block;
    u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
    u32 c0[W], c1[W], c2[W], c3[W];
    for (int i = 0; i < W; i++) {
        c0[i] = (u32)(counter + (u64)i);
        c1[i] = (u32)((counter + (u64)i) >> 32);
        c2[i] = 0;
        c3[i] = 0;
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < W; i++) {
            u64 product0 = (u64)0xD2511F53u * c0[i], product1 = (u64)0xCD9E8D57u * c2[i];
            c0[i] = (u32)(product1 >> 32) ^ c1[i] ^ k0;
            c1[i] = (u32)product1;
            c2[i] = (u32)(product0 >> 32) ^ c3[i] ^ k1;
            c3[i] = (u32)product0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out += 4 * block;
#if !IS_CPU
    i32 words[4] = {(i32)c0[0], (i32)c1[0], (i32)c2[0], (i32)c3[0]};
    int count = left < 4 ? (int)left : 4;
    STORE_PACK(i32, 4, (GLOBAL i32 *)out, count, words, (i32));
#else
    if (left >= 4 * W) {
        for (int i = 0; i < W; i++) {
            out[4 * i] = c0[i];
            out[4 * i + 1] = c1[i];
            out[4 * i + 2] = c2[i];
            out[4 * i + 3] = c3[i];
        }
    } else {
        for (int i = 0; i < W; i++)
            for (int word = 0; word < 4; word++)
                if (4 * i + word < left)
                    out[4 * i + word] = word == 0   ? c0[i]
                                        : word == 1 ? c1[i]
                                        : word == 2 ? c2[i]
                                                    : c3[i];
    }
#endif
}

KERNEL(random_bits)(GLOBAL u32 *out, const random_bits_params p) {
    make_blocks(out + p.offset, (u64)p.seed, (u64)p.first, p.n_words);
}

KERNEL(random_bits_from)(GLOBAL u32 *out, GLOBAL const i64 *state, const random_bits_params p) {
    state += p.seed;
    make_blocks(out + p.offset, (u64)state[0], (u64)state[1] + (u64)p.first, p.n_words);
}
