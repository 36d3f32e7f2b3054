/* Batched matrix product of floats; like most units for it, it knows no integers.
 *
 *     for a block of 64 rows, for a strip of 8 columns:       carry [64, 8], wide
 *         for a block of 256 of K:                            panel [256, 8] of mat2, packed
 *             for 4 rows: 4 x 8 sums in registers over the block, then added to the carry
 *
 * Sums run in f32 over 256 products only and are carried in f64, so the result does not depend on
 * how long K is. Packing pads the last strip with zeros, and the last rows are computed more than
 * once, so the innermost loops have fixed lengths that the compiler turns into vectors. */
#include "plugins/sim/kernels/kernel.h"
#include "plugins/sim/dtype.h"

enum { ROWS = 64, TILE_ROWS = 4, TILE_COLUMNS = 8, DEPTH = 256 };

static inline int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

#define BMM(t, NAME, stored, value, sum, name, wide) \
    /* A row of a tile. Vectors of C are spelled out by the compiler for what the machine has. */ \
    typedef sum row_##t __attribute__((vector_size(TILE_COLUMNS * sizeof(sum)))); \
\
    /* out[i] = sum over k of a[i][k] * panel[k] */ \
    static inline void tile_##t(const stored *const a[TILE_ROWS], const row_##t *panel, \
                                int64_t depth, row_##t out[TILE_ROWS]) { \
        const stored *const a0 = a[0], *const a1 = a[1], *const a2 = a[2], *const a3 = a[3]; \
        row_##t s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}; \
        for (int64_t k = 0; k < depth; k++) { \
            s0 += (sum)sim_load_##t(a0[k]) * panel[k]; \
            s1 += (sum)sim_load_##t(a1[k]) * panel[k]; \
            s2 += (sum)sim_load_##t(a2[k]) * panel[k]; \
            s3 += (sum)sim_load_##t(a3[k]) * panel[k]; \
        } \
        out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3; \
    } \
\
    /* Rows [m0, m0 + rows) and columns [n0, n0 + columns) of out. */ \
    static void strip_##t(const stored *a, const stored *b, stored *out, int64_t n, int64_t depth, \
                          int64_t m0, int64_t rows, int64_t n0, int64_t columns) { \
        wide carry[ROWS][TILE_COLUMNS] = {{0}}; \
        row_##t panel[DEPTH]; \
        for (int64_t k0 = 0; k0 < depth; k0 += DEPTH) { \
            int64_t block = least(depth - k0, DEPTH); \
            for (int64_t k = 0; k < block; k++) { \
                panel[k] = (row_##t){0}; \
                for (int64_t j = 0; j < columns; j++) \
                    panel[k][j] = (sum)sim_load_##t(b[(k0 + k) * n + n0 + j]); \
            } \
            for (int64_t m = 0; m < rows; m += TILE_ROWS) { \
                const stored *tile[TILE_ROWS]; \
                row_##t sums[TILE_ROWS]; \
                for (int64_t i = 0; i < TILE_ROWS; i++) \
                    tile[i] = a + (m0 + least(m + i, rows - 1)) * depth + k0; \
                tile_##t(tile, panel, block, sums); \
                for (int i = 0; i < TILE_ROWS; i++) \
                    for (int j = 0; j < TILE_COLUMNS; j++) \
                        carry[m + i][j] += sums[i][j]; \
            } \
        } \
        for (int64_t m = 0; m < rows; m++) \
            for (int64_t j = 0; j < columns; j++) \
                out[(m0 + m) * n + n0 + j] = sim_store_##t((sum)carry[m][j]); \
    } \
\
    static void name##_##t(sim_task *task) { \
        const sim_tensor *self = task->args[TN_ARG_bmm_self].v.tensor; \
        int64_t batch = task->outs[0].sizes[0], m = task->outs[0].sizes[1]; \
        int64_t n = task->outs[0].sizes[2], depth = self->sizes[2]; \
        for (int64_t i = 0; i < batch; i++) { \
            const stored *a = (const stored *)self->data + i * m * depth; \
            const stored *b = \
                (const stored *)task->args[TN_ARG_bmm_mat2].v.tensor->data + i * depth * n; \
            stored *out = (stored *)task->outs[0].data + i * m * n; \
            for (int64_t m0 = 0; m0 < m; m0 += ROWS) \
                for (int64_t n0 = 0; n0 < n; n0 += TILE_COLUMNS) \
                    strip_##t(a, b, out, n, depth, m0, least(m - m0, ROWS), n0, \
                              least(n - n0, TILE_COLUMNS)); \
        } \
    }

SIM_FLOAT_TYPES(BMM, bmm, double)

const sim_kernel sim_kernel_bmm = {
    .record = {SIM_RECORD(bmm, TN_DTYPES_FLOAT)},
    .signature = "TT>T",
    .compute = {SIM_FLOAT_TYPES(SIM_COMPUTE, bmm)},
};
