/* Matrix products: bmm and addmm.
 *
 * The product is cut into tiles whose sizes depend on the shape alone, so that results do not
 * depend on the number of threads; a tile is one call of BLAS on one thread. Row and column strides
 * become BLAS's transposition where they can; what it cannot read (both strides, zero strides, f16
 * and bf16) is packed into scratch, a panel of K at a time. Integers and tiny products use plain
 * loops, bf16 the processor's own products where there are such (bf16.h).
 */
#include "plugins/cpu/bf16.h"
#include "plugins/cpu/gemm.h"
#include "plugins/cpu/iterate.h"

/* ---- one call ---------------------------------------------------------------------------- */

/* C [b, m, n] = beta S + alpha A [b, m, k] B [b, k, n] */
typedef struct product {
    int64_t batch, m, n, k;
    tnc_matrix a, b, c, s;             /* s.data is NULL where there is no S */
    int64_t batch_a, batch_b, batch_c; /* strides in elements */
    int64_t tile_m, tile_n, tile_k;
    tn_dtype type;       /* computed in: a and b of halves are packed as f32 */
    bool loops;          /* not BLAS but plain loops, which take any strides */
    bool pack_a, pack_b; /* BLAS cannot read it in place */
    bool stage_c;        /* BLAS cannot write it in place */
    bool bf16;           /* not BLAS but products of bf16, unless there are subnormal numbers */
    tn_cell alpha, beta;
    char *scratch; /* [slots] of scratch_bytes: a panel of A, one of B, C */
    int64_t panel_a, panel_b, scratch_bytes;
} product;

enum {
    MAX_TILE = 256,
    MAX_TILE_K = 2048,    /* of what is packed */
    MAX_BLAS_K = 1 << 30, /* of what is not: sizes are int there */
    TINY = 4096,          /* multiplications, below which BLAS costs more than it saves */
    MIN_BF16 = 8,         /* columns, and K, below which packing costs more than it saves */
    BF16_TASKS = 4,       /* tiles of a product that is large enough */
    BF16_TASK = 1 << 20,  /* multiplications, below which it is not: 10 us */
    MANY_TASKS = 16,      /* tiles, above which they may be wider */
};

/* Can BLAS read [rows, columns] of it? */
static bool is_blas(const tnc_matrix *x, int64_t rows, int64_t columns) {
    int64_t limit = INT32_MAX;
    return (x->column == 1 && x->row >= columns && x->row <= limit) ||
           (x->row == 1 && x->column >= rows && x->column <= limit);
}

/* A dimension of one element has no stride worth speaking of: gives it one that suits BLAS. */
static void tidy(tnc_matrix *x, int64_t rows, int64_t columns) {
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

/* Products of bf16: is it more than their packing saves? */
static bool is_worth_bf16(const product *p) {
    return TNC_HAS_BF16 && p->c.dtype == TN_BF16 && p->n >= MIN_BF16 && p->k >= MIN_BF16;
}

/* Even tiles of whole blocks, and several where there is work for several threads. */
static void plan_bf16(product *p) {
    int64_t down = tnc_ceil_div(p->m, MAX_TILE), across = tnc_ceil_div(p->n, TNC_BF16_WIDTH);
    if (p->batch * down * across < MANY_TASKS)
        across = tnc_ceil_div(p->n, MAX_TILE);
    double work = (double)p->m * (double)p->n * (double)p->k;
    while (p->batch * down * across < BF16_TASKS && work / (double)(down * across) > BF16_TASK) {
        if (p->m / down >= p->n / across)
            down++;
        else
            across++;
    }
    p->bf16 = true;
    p->tile_m = tnc_min(p->m, tnc_ceil_div(tnc_ceil_div(p->m, down), 6) * 6);
    p->tile_n = tnc_min(p->n, tnc_bf16_pitch(tnc_ceil_div(p->n, across)));
    p->tile_k = tnc_min(p->k, TNC_BF16_DEPTH);
}

/* Everything about the call that depends on shapes and strides only. */
static void plan(product *p) {
    tidy(&p->a, p->m, p->k);
    tidy(&p->b, p->k, p->n);
    tidy(&p->c, p->m, p->n);
    if (p->c.column != 1 && p->c.row == 1) { /* C^T = B^T A^T */
        tnc_matrix a = p->a;
        p->a = (tnc_matrix){p->b.data, p->b.column, p->b.row, p->b.dtype};
        p->b = (tnc_matrix){a.data, a.column, a.row, a.dtype};
        p->c = (tnc_matrix){p->c.data, p->c.column, p->c.row, p->c.dtype};
        p->s = (tnc_matrix){p->s.data, p->s.column, p->s.row, p->s.dtype};
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

    p->tile_m = tnc_min(p->m, p->n == 1 ? 4 * MAX_TILE : MAX_TILE);
    p->tile_n = tnc_min(p->n, p->m == 1 ? 4 * MAX_TILE : MAX_TILE);
    double multiplications = (double)p->m * (double)p->n * (double)p->k;
    p->loops = p->type >= TN_I8 || (!half && multiplications <= TINY);
    if (p->loops)
        p->pack_a = p->pack_b = p->stage_c = false;
    p->tile_k = tnc_min(p->k, p->pack_a || p->pack_b ? MAX_TILE_K : MAX_BLAS_K);
    if (is_worth_bf16(p))
        plan_bf16(p);
    int64_t bytes = tnc_dtype_bytes(p->type);
    p->panel_a = p->pack_a ? aligned(p->tile_m * p->tile_k * bytes) : 0;
    p->panel_b = p->pack_b ? aligned(p->tile_k * p->tile_n * bytes) : 0;
    if (p->bf16) { /* the same for both */
        p->panel_a = tnc_max(p->panel_a, tnc_bf16_panel_bytes(p->tile_m));
        p->panel_b = tnc_max(p->panel_b, tnc_bf16_panel_bytes(p->tile_n));
    }
    int64_t pitch = p->bf16 ? tnc_bf16_pitch(p->tile_n) : p->tile_n;
    p->scratch_bytes = p->panel_a + p->panel_b;
    if (p->stage_c)
        p->scratch_bytes += aligned(p->tile_m * pitch * bytes);
}

/* [rows, columns] at (i, j) of x as a dense row-major panel of the computing type. */
static void pack(void *panel, const tnc_matrix *x, int64_t i, int64_t j, int64_t rows,
                 int64_t columns) {
    int64_t item = tnc_dtype_bytes(x->dtype);
    char *out = panel;
    for (int64_t r = 0; r < rows; r++)
        tnc_gather_run(out + r * columns * tnc_cell_bytes(x->dtype), tnc_element(x, i + r, j),
                       x->column * item, columns, x->dtype);
}

/* C's tile = S's, so that the product can be added with beta. */
static void load_s(const tnc_matrix *c, const tnc_matrix *s, int64_t m, int64_t n) {
    int64_t item = tnc_dtype_bytes(s->dtype), cell = tnc_dtype_bytes(c->dtype);
    for (int64_t i = 0; i < m; i++) {
        if (c->column == 1)
            tnc_gather_run(tnc_element(c, i, 0), tnc_element(s, i, 0), s->column * item, n,
                           s->dtype);
        else
            for (int64_t j = 0; j < n; j++)
                memcpy(tnc_element(c, i, j), tnc_element(s, i, j), (size_t)cell);
    }
}

/* Rows [i, i + m), columns [j, j + n) of one matrix of the batch. */
static void tile(const product *p, int64_t batch, int64_t i, int64_t j, int64_t m, int64_t n,
                 char *scratch) {
    int64_t item = tnc_dtype_bytes(p->c.dtype), bytes = tnc_dtype_bytes(p->type);
    tnc_matrix a = p->a, b = p->b, c = p->c, s = p->s, staged;
    a.data += batch * p->batch_a * item;
    b.data += batch * p->batch_b * item;
    c.data += batch * p->batch_c * item;
    a.data = tnc_element(&a, i, 0);
    b.data = tnc_element(&b, 0, j);
    c.data = tnc_element(&c, i, j);
    char *panel_a = scratch, *panel_b = panel_a + p->panel_a, *panel_c = panel_b + p->panel_b;
    int64_t pitch = p->bf16 ? tnc_bf16_pitch(n) : n;
    staged = p->stage_c ? (tnc_matrix){panel_c, pitch, 1, p->type} : c;

    static const tn_cell zero = {.tag = TN_CELL_I64};
    const tn_cell *share = s.data ? &p->beta : &zero;
    double beta = tnc_number(share);
    if (beta != 0) {
        s.data = tnc_element(&s, i, j);
        load_s(&staged, &s, m, n);
    }
    if (p->loops) {
        tnc_gemm_loops(p->type, m, n, p->k, &p->alpha, &a, &b, share, &staged);
        return;
    }
    bool is_normal = beta == 0;
    for (int64_t k0 = 0; k0 < p->k; k0 += p->tile_k) {
        int64_t k = tnc_min(p->tile_k, p->k - k0);
        tnc_matrix left = a, right = b;
        left.data = tnc_element(&a, 0, k0);
        right.data = tnc_element(&b, k0, 0);
        bool stores = c.column == 1 && k0 + k == p->k;
        if (p->bf16 && tnc_bf16_multiply(&(tnc_bf16_product){
                           .m = m,
                           .n = n,
                           .k = k,
                           .alpha = (float)tnc_number(&p->alpha),
                           .beta = (float)(k0 == 0 ? beta : 1),
                           .a = left,
                           .b = right,
                           .c = (float *)panel_c,
                           .is_normal = is_normal,
                           .out = stores ? &c : NULL,
                           .panel_a = panel_a,
                           .panel_b = panel_b,
                       })) {
            if (stores)
                return;
            continue;
        }
        is_normal = false;
        if (p->pack_a) {
            pack(panel_a, &a, 0, k0, m, k);
            left = (tnc_matrix){panel_a, k, 1, p->type};
        }
        if (p->pack_b) {
            pack(panel_b, &b, k0, 0, k, n);
            right = (tnc_matrix){panel_b, n, 1, p->type};
        }
        bool ta = left.column != 1, tb = right.column != 1;
        tnc_gemm(p->type, ta, tb, m, n, k, tnc_number(&p->alpha), left.data,
                 ta ? left.column : left.row, right.data, tb ? right.column : right.row,
                 k0 == 0 ? beta : 1, staged.data, staged.row);
    }
    if (p->stage_c)
        for (int64_t r = 0; r < m; r++)
            tnc_scatter_run(tnc_element(&c, r, 0), c.column * item, panel_c + r * pitch * bytes, n,
                            c.dtype);
}

static void tiles(void *context, int64_t begin, int64_t end, int slot) {
    const product *p = context;
    char *scratch = p->scratch ? p->scratch + slot * p->scratch_bytes : NULL;
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
static tnc_matrix as_matrix(const tn_tensor_view *v, int rows) {
    return (tnc_matrix){tnc_data(v), v->strides[rows], v->strides[rows + 1], v->dtype};
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
    tnc_parallel(call, n_tiles, grain, (int)slots, tiles, p);
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

static tn_status bmm_prepare(const tn_call *call, tn_plan *out) {
    product p;
    bmm_product(call, &p);
    out->workspace_bytes = (uint64_t)(p.scratch_bytes * tnc_get_threads(call));
    return TN_OK;
}

static tn_status addmm_prepare(const tn_call *call, tn_plan *out) {
    product p;
    addmm_product(call, &p);
    out->workspace_bytes = (uint64_t)(p.scratch_bytes * tnc_get_threads(call));
    return TN_OK;
}

static const tn_kernel records[] = {
    TNC_KERNEL(bmm, TN_DTYPES_NUMBER, TNC_FLAGS_STRIDED, bmm, .prepare = bmm_prepare),
    TNC_KERNEL(addmm, TN_DTYPES_NUMBER, TNC_FLAGS_STRIDED, addmm, .prepare = addmm_prepare),
};
TNC_PUBLISH(matmul, records);
