/* matmul.c: batched matrix product.
 *
 *     for a block of 64 rows, for a strip of 8 columns:       carry [64, 8], wide
 *         for a block of 256 of K:                            panel [256, 8] of mat2, packed
 *             for 4 rows: 4 x 8 sums in registers over the block, then added to the carry
 *
 * Sums run in f32 over 256 products only and are carried in f64, so the result does not depend on
 * how long K is. Packing pads the last strip with zeros, and the last rows are computed more than
 * once, so the innermost loops have fixed lengths that the compiler turns into vectors. */
#include "kernel.h"
#include "../dtype.h"

enum { ROWS = 64, TILE_ROWS = 4, TILE_COLUMNS = 8, DEPTH = 256 };

static inline int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

#define BMM(t, NAME, stored, value, sum, name, wide) \
    /* acc[i][j] = sum over k of a[i][k] * panel[k][j] */ \
    static inline void tile_##t(const stored *const a[TILE_ROWS], const sum(*panel)[TILE_COLUMNS], \
                                int64_t depth, sum acc[TILE_ROWS][TILE_COLUMNS]) { \
        sum s0[TILE_COLUMNS] = {0}, s1[TILE_COLUMNS] = {0}, s2[TILE_COLUMNS] = {0}, \
            s3[TILE_COLUMNS] = {0}; \
        const stored *const a0 = a[0], *const a1 = a[1], *const a2 = a[2], *const a3 = a[3]; \
        for (int64_t k = 0; k < depth; k++) { \
            const sum x0 = (sum)sim_load_##t(a0[k]), x1 = (sum)sim_load_##t(a1[k]), \
                      x2 = (sum)sim_load_##t(a2[k]), x3 = (sum)sim_load_##t(a3[k]); \
            for (int j = 0; j < TILE_COLUMNS; j++) { \
                s0[j] += x0 * panel[k][j]; \
                s1[j] += x1 * panel[k][j]; \
                s2[j] += x2 * panel[k][j]; \
                s3[j] += x3 * panel[k][j]; \
            } \
        } \
        memcpy(acc[0], s0, sizeof s0); \
        memcpy(acc[1], s1, sizeof s1); \
        memcpy(acc[2], s2, sizeof s2); \
        memcpy(acc[3], s3, sizeof s3); \
    } \
\
    /* Rows [m0, m0 + rows) and columns [n0, n0 + columns) of out. */ \
    static void strip_##t(const stored *a, const stored *b, stored *out, int64_t n, int64_t depth, \
                          int64_t m0, int64_t rows, int64_t n0, int64_t columns) { \
        wide carry[ROWS][TILE_COLUMNS] = {{0}}; \
        sum panel[DEPTH][TILE_COLUMNS] = {{0}}; \
        for (int64_t k0 = 0; k0 < depth; k0 += DEPTH) { \
            const int64_t block = least(depth - k0, DEPTH); \
            for (int64_t k = 0; k < block; k++) \
                for (int64_t j = 0; j < columns; j++) \
                    panel[k][j] = (sum)sim_load_##t(b[(k0 + k) * n + n0 + j]); \
            for (int64_t m = 0; m < rows; m += TILE_ROWS) { \
                const stored *tile[TILE_ROWS]; \
                sum acc[TILE_ROWS][TILE_COLUMNS]; \
                for (int64_t i = 0; i < TILE_ROWS; i++) \
                    tile[i] = a + (m0 + least(m + i, rows - 1)) * depth + k0; \
                tile_##t(tile, (const sum(*)[TILE_COLUMNS])panel, block, acc); \
                for (int i = 0; i < TILE_ROWS; i++) \
                    for (int j = 0; j < TILE_COLUMNS; j++) \
                        carry[m + i][j] += acc[i][j]; \
            } \
        } \
        for (int64_t m = 0; m < rows; m++) \
            for (int64_t j = 0; j < columns; j++) \
                out[(m0 + m) * n + n0 + j] = sim_store_##t((sum)carry[m][j]); \
    } \
\
    static void name##_##t(struct sim_task *task) { \
        const struct sim_tensor *self = task->args[TN_ARG_bmm_self].v.tensor; \
        const int64_t batch = task->outs[0].sizes[0], m = task->outs[0].sizes[1]; \
        const int64_t n = task->outs[0].sizes[2], depth = self->sizes[2]; \
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
SIM_INT_TYPES(BMM, bmm, uint64_t)

const struct sim_kernel sim_kernel_bmm = {
    .record = {SIM_RECORD(bmm, TN_DTYPES_NUMBER)},
    .signature = "TT>T",
    .compute = {SIM_NUMBER_TYPES(SIM_COMPUTE, bmm)},
};
