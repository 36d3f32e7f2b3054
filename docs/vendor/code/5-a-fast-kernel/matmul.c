/* matmul.c: batches of matrix products, in tiles.
 *
 *            mat2, in strips of 16 columns, packed row by row into the workspace
 *            |....|....|....|
 *   self  -- a tile: 4 rows of self times one strip, 4 x 16 sums kept in registers
 *
 * A strip is read once for each 4 rows and lies in one piece; the loop over it has fixed lengths,
 * which the compiler turns into vectors. The last strip is padded with zeros, and the last rows are
 * computed more than once instead of in a loop of their own. */
#include "internal.h"
#include "kernels.h"
#include "task.h"

enum { ROWS = 4, COLUMNS = 16 };

typedef float row __attribute__((vector_size(COLUMNS * sizeof(float))));

static int64_t n_strips(int64_t n) {
    return (n + COLUMNS - 1) / COLUMNS;
}

/* Room for one mat2, packed. */
static tn_status prepare(const tn_call *call, tn_plan *out) {
    const tn_tensor_view *mat2 = call->args[TN_ARG_bmm_mat2].v.view;
    out->workspace_bytes = (uint64_t)(mat2->sizes[1] * n_strips(mat2->sizes[2])) * sizeof(row);
    return TN_OK;
}

/* mat2 [K, N] to packed [strips][K] */
static void pack(const float *mat2, int64_t depth, int64_t n, row *packed) {
    for (int64_t s = 0; s < n_strips(n); s++)
        for (int64_t k = 0; k < depth; k++, packed++) {
            *packed = (row){0};
            for (int64_t j = 0; j < COLUMNS && s * COLUMNS + j < n; j++)
                (*packed)[j] = mat2[k * n + s * COLUMNS + j];
        }
}

/* sums[i] = sum over k of a[i][k] * strip[k] */
static inline void tile(const float *const a[ROWS], const row *strip, int64_t depth,
                        row sums[ROWS]) {
    row s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (int64_t k = 0; k < depth; k++) {
        s0 += a[0][k] * strip[k];
        s1 += a[1][k] * strip[k];
        s2 += a[2][k] * strip[k];
        s3 += a[3][k] * strip[k];
    }
    sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}

/* self [M, K] times the packed mat2 */
static void multiply(const float *self, const row *packed, float *out, int64_t m, int64_t n,
                     int64_t depth) {
    for (int64_t s = 0; s < n_strips(n); s++)
        for (int64_t i0 = 0; i0 < m; i0 += ROWS) {
            const float *a[ROWS];
            row sums[ROWS];
            for (int64_t i = 0; i < ROWS; i++)
                a[i] = self + (i0 + i < m ? i0 + i : m - 1) * depth;
            tile(a, packed + s * depth, depth, sums);
            for (int64_t i = 0; i < ROWS && i0 + i < m; i++)
                for (int64_t j = 0; j < COLUMNS && s * COLUMNS + j < n; j++)
                    out[(i0 + i) * n + s * COLUMNS + j] = sums[i][j];
        }
}

/* self [B, M, K], mat2 [B, K, N], out [B, M, N] */
static void bmm(const struct npu_task *task) {
    const int64_t batch = task->out.sizes[0], m = task->out.sizes[1], n = task->out.sizes[2];
    const int64_t depth = task->in[0].sizes[2];
    row *packed = (row *)task->workspace;
    for (int64_t b = 0; b < batch; b++) {
        pack(task->in[1].data + b * depth * n, depth, n, packed);
        multiply(task->in[0].data + b * m * depth, packed, task->out.data + b * m * n, m, n, depth);
    }
}

const tn_kernel npu_kernel_bmm = {NPU_RECORD(bmm, bmm), .prepare = prepare};
