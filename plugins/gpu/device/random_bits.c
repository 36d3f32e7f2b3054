/* random_bits.c: Philox 4x32-10 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * 2011). One work item makes one block of four words; an i64 element is two of them, the low one
 * first, which is how it lies in memory. */

typedef struct parameters {
    i64 n_words;
    i64 offset;      /* in words */
    i64 seed, first; /* the key, and the first block */
} parameters;

KERNEL(random_bits)(GLOBAL u32 *out, const parameters p) {
    const i64 block = (i64)GLOBAL_ID(0), left = p.n_words - 4 * block;
    const u64 counter = (u64)p.first + (u64)block;
    u32 c0 = (u32)counter, c1 = (u32)(counter >> 32), c2 = 0, c3 = 0;
    u32 k0 = (u32)p.seed, k1 = (u32)((u64)p.seed >> 32);
    for (int round = 0; round < 10; round++) {
        const u32 high0 = mul_high_u32(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
        const u32 high1 = mul_high_u32(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
        c0 = high1 ^ c1 ^ k0;
        c1 = low1;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out += p.offset + 4 * block;
    if (left > 0)
        out[0] = c0;
    if (left > 1)
        out[1] = c1;
    if (left > 2)
        out[2] = c2;
    if (left > 3)
        out[3] = c3;
}
