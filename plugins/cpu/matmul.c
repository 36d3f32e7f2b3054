/* Matrix products: bmm and addmm.
 *
 * The product is cut into tiles whose sizes depend on the shape alone, so that results do not
 * depend on the number of threads; a tile is one call of BLAS on one thread. Row and column strides
 * become BLAS's transposition where they can; what it cannot read (both strides, zero strides, f16
 * and bf16) is packed into scratch, a panel of K at a time. Integers and tiny products use plain
 * loops.
 */
#include "plugins/cpu/matmul.h"
#include "plugins/cpu/iterate.h"

#ifdef TNC_HAVE_OPENBLAS
#include <cblas.h>
#endif

/* ---- plain loops: any strides, any type -------------------------------------------------- */

/* A matrix: element [i, j] is data[i * row + j * column]. */
typedef struct matrix {
    char *data;
    int64_t row, column; /* strides in elements */
    tn_dtype dtype;
} matrix;

static inline char *element(const matrix *x, int64_t i, int64_t j) {
    return x->data + (i * x->row + j * x->column) * tnc_dtype_bytes(x->dtype);
}

/* n elements of row i, from column j on: where they are, or copied to `packed`. */
static const void *dense_row(const matrix *x, int64_t i, int64_t j, int64_t n, void *packed) {
    return tnc_load_run(packed, element(x, i, j), x->column * tnc_dtype_bytes(x->dtype), n,
                        x->dtype);
}

/* C = alpha A B + beta C. Rows of C in fours, columns in blocks that stay in registers. */
enum { LOOP_ROWS = 4, LOOP_COLUMNS = 64 };

#define LOOP_GEMM(sfx, T, U) \
    static void loop_gemm_##sfx(int64_t m, int64_t n, int64_t k, U alpha, const matrix *a, \
                                const matrix *b, U beta, const matrix *c) { \
        for (int64_t j0 = 0; j0 < n; j0 += LOOP_COLUMNS) \
            for (int64_t i0 = 0; i0 < m; i0 += LOOP_ROWS) { \
                int64_t columns = tnc_min(LOOP_COLUMNS, n - j0); \
                int64_t rows = tnc_min(LOOP_ROWS, m - i0); \
                U sum[LOOP_ROWS][LOOP_COLUMNS] = {{0}}; \
                T packed[LOOP_COLUMNS]; \
                for (int64_t p = 0; p < k; p++) { \
                    const T *row = dense_row(b, p, j0, columns, packed); \
                    const T *left = (const T *)element(a, i0, p); \
                    for (int64_t i = 0; i < rows; i++) { \
                        U x = (U)left[i * a->row]; \
                        for (int64_t j = 0; j < columns; j++) \
                            sum[i][j] += x * (U)row[j]; \
                    } \
                } \
                for (int64_t i = 0; i < rows; i++) { \
                    T *out = (T *)element(c, i0 + i, j0); \
                    for (int64_t j = 0; j < columns; j++) { \
                        U base = beta == 0 ? 0 : beta * (U)out[j * c->column]; \
                        out[j * c->column] = (T)(base + alpha * sum[i][j]); \
                    } \
                } \
            } \
    }
LOOP_GEMM(f32, float, float)
LOOP_GEMM(f64, double, double)
#define LOOP_GEMM_INT(sfx, T, U, DT) LOOP_GEMM(sfx, T, U)
TNC_INT_TYPES(LOOP_GEMM_INT)

/* ---- BLAS -------------------------------------------------------------------------------- */

#ifdef TNC_HAVE_OPENBLAS
#define GEMM_BLAS(sfx, T, letter) \
    static void blas_gemm_##sfx(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, \
                                const T *a, int64_t lda, const T *b, int64_t ldb, T beta, T *c, \
                                int64_t ldc) { \
        if (n == 1) { \
            cblas_##letter##gemv(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, (int)(ta ? k : m), \
                                 (int)(ta ? m : k), alpha, a, (int)lda, b, tb ? 1 : (int)ldb, \
                                 beta, c, (int)ldc); \
        } else if (m == 1) { \
            cblas_##letter##gemv(CblasRowMajor, tb ? CblasNoTrans : CblasTrans, (int)(tb ? n : k), \
                                 (int)(tb ? k : n), alpha, b, (int)ldb, a, ta ? (int)lda : 1, \
                                 beta, c, 1); \
        } else { \
            cblas_##letter##gemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, \
                                 tb ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, alpha, a, \
                                 (int)lda, b, (int)ldb, beta, c, (int)ldc); \
        } \
    }
GEMM_BLAS(f32, float, s)
GEMM_BLAS(f64, double, d)
#endif

static void loop_gemm(tn_dtype dtype, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                      double alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                      double beta, void *c, int64_t ldc) {
    matrix left = {(char *)(uintptr_t)a, ta ? 1 : lda, ta ? lda : 1, dtype};
    matrix right = {(char *)(uintptr_t)b, tb ? 1 : ldb, tb ? ldb : 1, dtype};
    matrix out = {c, ldc, 1, dtype};
    if (dtype == TN_F32)
        loop_gemm_f32(m, n, k, (float)alpha, &left, &right, (float)beta, &out);
    else
        loop_gemm_f64(m, n, k, alpha, &left, &right, beta, &out);
}

void tnc_gemm(tn_dtype dtype, bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha,
              const void *a, int64_t lda, const void *b, int64_t ldb, double beta, void *c,
              int64_t ldc) {
#ifdef TNC_HAVE_OPENBLAS
    /* With alpha 0 most of BLAS's kernels leave the product out, and with it the NaN that 0 * NaN
     * and 0 * infinity are; some do not. */
    if (dtype == TN_F32 && (float)alpha != 0 && tnc_blas_works()) {
        blas_gemm_f32(ta, tb, m, n, k, (float)alpha, a, lda, b, ldb, (float)beta, c, ldc);
        return;
    }
    if (dtype == TN_F64 && alpha != 0 && tnc_blas_works()) {
        blas_gemm_f64(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        return;
    }
#endif
    loop_gemm(dtype, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* ---- one call ---------------------------------------------------------------------------- */

/* C [b, m, n] = beta S + alpha A [b, m, k] B [b, k, n] */
typedef struct product {
    int64_t batch, m, n, k;
    matrix a, b, c, s;                 /* s.data is NULL where there is no S */
    int64_t batch_a, batch_b, batch_c; /* strides in elements */
    int64_t tile_m, tile_n, tile_k;
    tn_dtype type;       /* computed in: a and b of halves are packed as f32 */
    bool loops;          /* not BLAS but plain loops, which take any strides */
    bool pack_a, pack_b; /* BLAS cannot read it in place */
    bool stage_c;        /* BLAS cannot write it in place */
    tn_cell alpha, beta;
    char *scratch; /* [slots] of scratch_bytes */
    int64_t scratch_bytes;
} product;

enum {
    MAX_TILE = 256,
    MAX_TILE_K = 2048,    /* of what is packed */
    MAX_BLAS_K = 1 << 30, /* of what is not: sizes are int there */
    TINY = 4096,          /* multiplications, below which BLAS costs more than it saves */
};

/* Can BLAS read [rows, columns] of it? */
static bool is_blas(const matrix *x, int64_t rows, int64_t columns) {
    int64_t limit = INT32_MAX;
    return (x->column == 1 && x->row >= columns && x->row <= limit) ||
           (x->row == 1 && x->column >= rows && x->column <= limit);
}

/* A dimension of one element has no stride worth speaking of: gives it one that suits BLAS. */
static void tidy(matrix *x, int64_t rows, int64_t columns) {
    if (columns == 1)
        x->column = 1;
    if (rows == 1 && x->column == 1)
        x->row = columns;
    else if (rows == 1)
        x->row = 1;
}

static int64_t aligned(int64_t bytes) {
    return (bytes + 63) & ~(int64_t)63;
}

/* Everything about the call that depends on shapes and strides only. */
static void plan(product *p) {
    tidy(&p->a, p->m, p->k);
    tidy(&p->b, p->k, p->n);
    tidy(&p->c, p->m, p->n);
    if (p->c.column != 1 && p->c.row == 1) { /* C^T = B^T A^T */
        matrix a = p->a;
        p->a = (matrix){p->b.data, p->b.column, p->b.row, p->b.dtype};
        p->b = (matrix){a.data, a.column, a.row, a.dtype};
        p->c = (matrix){p->c.data, p->c.column, p->c.row, p->c.dtype};
        p->s = (matrix){p->s.data, p->s.column, p->s.row, p->s.dtype};
        int64_t m = p->m, batch_a = p->batch_a;
        p->m = p->n;
        p->n = m;
        p->batch_a = p->batch_b;
        p->batch_b = batch_a;
    }
    bool half = tnc_is_half(p->c.dtype);
    p->type = half ? TN_F32 : p->c.dtype;
    p->pack_a = half || !is_blas(&p->a, p->m, p->k);
    p->pack_b = half || !is_blas(&p->b, p->k, p->n);
    p->stage_c = half || p->c.column != 1 || p->c.row < p->n || p->c.row > INT32_MAX;

    double multiplications = (double)p->m * (double)p->n * (double)p->k;
    p->loops = p->type >= TN_I8 || (!half && multiplications <= TINY);
    if (p->loops)
        p->pack_a = p->pack_b = p->stage_c = false;
    p->tile_m = tnc_min(p->m, p->n == 1 ? 4 * MAX_TILE : MAX_TILE);
    p->tile_n = tnc_min(p->n, p->m == 1 ? 4 * MAX_TILE : MAX_TILE);
    p->tile_k = tnc_min(p->k, p->pack_a || p->pack_b ? MAX_TILE_K : MAX_BLAS_K);
    int64_t bytes = tnc_dtype_bytes(p->type);
    p->scratch_bytes = (p->pack_a ? aligned(p->tile_m * p->tile_k * bytes) : 0) +
                       (p->pack_b ? aligned(p->tile_k * p->tile_n * bytes) : 0) +
                       (p->stage_c ? aligned(p->tile_m * p->tile_n * bytes) : 0);
}

/* [rows, columns] at (i, j) of x as a dense row-major panel of the computing type. */
static void pack(void *panel, const matrix *x, int64_t i, int64_t j, int64_t rows,
                 int64_t columns) {
    int64_t item = tnc_dtype_bytes(x->dtype);
    char *out = panel;
    for (int64_t r = 0; r < rows; r++)
        tnc_gather_run(out + r * columns * tnc_cell_bytes(x->dtype), element(x, i + r, j),
                       x->column * item, columns, x->dtype);
}

static double number(const tn_cell *cell) {
    return cell->tag == TN_CELL_F64 ? cell->v.f64 : (double)cell->v.i64;
}

/* C's tile = S's, so that the product can be added with beta. */
static void load_s(const matrix *c, const matrix *s, int64_t m, int64_t n) {
    int64_t item = tnc_dtype_bytes(s->dtype), cell = tnc_dtype_bytes(c->dtype);
    for (int64_t i = 0; i < m; i++) {
        if (c->column == 1)
            tnc_gather_run(element(c, i, 0), element(s, i, 0), s->column * item, n, s->dtype);
        else
            for (int64_t j = 0; j < n; j++)
                memcpy(element(c, i, j), element(s, i, j), (size_t)cell);
    }
}

static void loop_tile(const product *p, const matrix *a, const matrix *b, const matrix *c,
                      int64_t m, int64_t n, double beta) {
    switch (p->type) {
    case TN_F32:
        loop_gemm_f32(m, n, p->k, (float)number(&p->alpha), a, b, (float)beta, c);
        return;
    case TN_F64:
        loop_gemm_f64(m, n, p->k, number(&p->alpha), a, b, beta, c);
        return;
#define LOOP_CASE(sfx, T, U, DT) \
    case TN_##DT: \
        loop_gemm_##sfx(m, n, p->k, (U)p->alpha.v.i64, a, b, beta == 0 ? 0 : (U)p->beta.v.i64, c); \
        return;
        TNC_INT_TYPES(LOOP_CASE)
    default:
        return;
    }
}

/* Rows [i, i + m), columns [j, j + n) of one matrix of the batch. */
static void tile(const product *p, int64_t batch, int64_t i, int64_t j, int64_t m, int64_t n,
                 char *scratch) {
    int64_t item = tnc_dtype_bytes(p->c.dtype), bytes = tnc_dtype_bytes(p->type);
    matrix a = p->a, b = p->b, c = p->c, s = p->s, staged;
    a.data += batch * p->batch_a * item;
    b.data += batch * p->batch_b * item;
    c.data += batch * p->batch_c * item;
    a.data = element(&a, i, 0);
    b.data = element(&b, 0, j);
    c.data = element(&c, i, j);
    char *panel_a = scratch;
    char *panel_b = panel_a + (p->pack_a ? aligned(p->tile_m * p->tile_k * bytes) : 0);
    char *panel_c = panel_b + (p->pack_b ? aligned(p->tile_k * p->tile_n * bytes) : 0);
    staged = p->stage_c ? (matrix){panel_c, n, 1, p->type} : c;

    double beta = s.data ? number(&p->beta) : 0;
    if (beta != 0) {
        s.data = element(&s, i, j);
        load_s(&staged, &s, m, n);
    }
    if (p->loops) {
        loop_tile(p, &a, &b, &staged, m, n, beta);
        return;
    }
    for (int64_t k0 = 0; k0 < p->k; k0 += p->tile_k) {
        int64_t k = tnc_min(p->tile_k, p->k - k0);
        matrix left = a, right = b;
        left.data = element(&a, 0, k0);
        right.data = element(&b, k0, 0);
        if (p->pack_a) {
            pack(panel_a, &a, 0, k0, m, k);
            left = (matrix){panel_a, k, 1, p->type};
        }
        if (p->pack_b) {
            pack(panel_b, &b, k0, 0, k, n);
            right = (matrix){panel_b, n, 1, p->type};
        }
        bool ta = left.column != 1, tb = right.column != 1;
        tnc_gemm(p->type, ta, tb, m, n, k, number(&p->alpha), left.data,
                 ta ? left.column : left.row, right.data, tb ? right.column : right.row,
                 k0 == 0 ? beta : 1, staged.data, staged.row);
    }
    if (p->stage_c)
        for (int64_t r = 0; r < m; r++)
            tnc_scatter_run(element(&c, r, 0), c.column * item, panel_c + r * n * bytes, n,
                            c.dtype);
}

static void tiles(void *context, int64_t begin, int64_t end, int slot) {
    const product *p = context;
    char *scratch = p->scratch + slot * p->scratch_bytes;
    int64_t across = tnc_ceil_div(p->n, p->tile_n), down = tnc_ceil_div(p->m, p->tile_m);
    tnc_blas_visit visit = tnc_blas_enter();
    for (int64_t t = begin; t < end; t++) {
        int64_t j = t % across * p->tile_n, i = t / across % down * p->tile_m;
        tile(p, t / across / down, i, j, tnc_min(p->tile_m, p->m - i), tnc_min(p->tile_n, p->n - j),
             scratch);
    }
    tnc_blas_leave(visit);
}

/* ---- the kernels ------------------------------------------------------------------------- */

/* Dimensions `rows` and `rows` + 1 of a tensor. */
static matrix as_matrix(const tn_tensor_view *v, int rows) {
    return (matrix){tnc_data(v), v->strides[rows], v->strides[rows + 1], v->dtype};
}

/* self [B, M, K], mat2 [B, K, N], out [B, M, N] */
static void bmm_product(const tn_call *call, product *p) {
    const tn_tensor_view *a = tnc_view(call, TN_ARG_bmm_self), *b = tnc_view(call, TN_ARG_bmm_mat2);
    const tn_tensor_view *c = call->outs[0];
    *p = (product){
        .batch = c->sizes[0],
        .m = c->sizes[1],
        .n = c->sizes[2],
        .k = a->sizes[2],
        .a = as_matrix(a, 1),
        .b = as_matrix(b, 1),
        .c = as_matrix(c, 1),
        .batch_a = a->strides[0],
        .batch_b = b->strides[0],
        .batch_c = c->strides[0],
    };
    p->alpha = c->dtype <= TN_BF16 ? (tn_cell){.tag = TN_CELL_F64, .v.f64 = 1}
                                   : (tn_cell){.tag = TN_CELL_I64, .v.i64 = 1};
    plan(p);
}

/* self [M, N], mat1 [M, K], mat2 [K, N], out [M, N] */
static void addmm_product(const tn_call *call, product *p) {
    const tn_tensor_view *s = tnc_view(call, TN_ARG_addmm_self),
                         *a = tnc_view(call, TN_ARG_addmm_mat1);
    const tn_tensor_view *b = tnc_view(call, TN_ARG_addmm_mat2), *c = call->outs[0];
    *p = (product){
        .batch = 1,
        .m = c->sizes[0],
        .n = c->sizes[1],
        .k = a->sizes[1],
        .a = as_matrix(a, 0),
        .b = as_matrix(b, 0),
        .c = as_matrix(c, 0),
        .s = as_matrix(s, 0),
        .alpha = call->args[TN_ARG_addmm_alpha],
        .beta = call->args[TN_ARG_addmm_beta],
    };
    plan(p);
}

static tn_status run(const tn_call *call, product *p) {
    p->scratch = (char *)(uintptr_t)(call->workspace + call->workspace_offset);
    int64_t n_tiles = p->batch * tnc_ceil_div(p->m, p->tile_m) * tnc_ceil_div(p->n, p->tile_n);
    int64_t work = p->tile_m * p->tile_n * p->k;
    int64_t grain = tnc_max(1, TNC_GRAIN_MULTIPLICATIONS / work);
    int64_t slots = TNC_MAX_SLOTS;
    if (p->scratch_bytes > 0)
        slots = (int64_t)call->workspace_bytes / p->scratch_bytes;
    tnc_parallel(n_tiles, grain, (int)slots, tiles, p);
    return TN_OK;
}

static tn_status bmm(const tn_call *call) {
    product p;
    bmm_product(call, &p);
    return run(call, &p);
}

static tn_status addmm(const tn_call *call) {
    product p;
    addmm_product(call, &p);
    return run(call, &p);
}

static tn_status bmm_workspace(const tn_call *call, uint64_t *out_bytes) {
    product p;
    bmm_product(call, &p);
    *out_bytes = (uint64_t)(p.scratch_bytes * tnc_get_threads());
    return TN_OK;
}

static tn_status addmm_workspace(const tn_call *call, uint64_t *out_bytes) {
    product p;
    addmm_product(call, &p);
    *out_bytes = (uint64_t)(p.scratch_bytes * tnc_get_threads());
    return TN_OK;
}

static const tn_kernel records[] = {
    TNC_KERNEL(bmm, TN_DTYPES_NUMBER, TNC_FLAGS_STRIDED, bmm, .workspace = bmm_workspace),
    TNC_KERNEL(addmm, TN_DTYPES_NUMBER, TNC_FLAGS_STRIDED, addmm, .workspace = addmm_workspace),
};
TNC_PUBLISH(matmul, records);
