/* Tiles are chosen for the device and the shape, B is packed, and the sum over k is cut
 * into parts where there would be too few tiles. All of it depends on shapes and the device alone,
 * so that results do. */
#include "plugins/shared/gpu/gemm.h"
#include "plugins/shared/gpu/device/gemm.params.h"

#include <string.h>

enum {
    MAX_PARTS = 64, /* of a sum */
    MIN_PART = 256, /* of k, that is worth a part */
};

static const uint64_t PIECE = 256; /* pieces of a workspace are aligned to so many bytes */

uint64_t gpu_bump_take(gpu_bump *bump, uint64_t bytes) {
    uint64_t at = *bump;
    *bump += (bytes + PIECE - 1) / PIECE * PIECE;
    return at;
}

int64_t gpu_piece(const tn_call *call, uint64_t at, tn_dtype dtype) {
    return (int64_t)((call->workspace_offset + at) / gpu_dtype_sizes[dtype]);
}

tn_dtype gpu_computed(tn_dtype dtype) {
    switch (dtype) {
    case TN_F64:
    case TN_I64:
        return dtype;
    case TN_F32:
    case TN_F16:
    case TN_BF16:
        return TN_F32;
    default:
        return TN_I32;
    }
}

static int64_t size_of(const int64_t grid[3]) {
    return grid[0] * grid[1] * grid[2];
}

/* ---- tiles ------------------------------------------------------------------------------- */

typedef struct tile {
    int rows, vectors;
    double speed; /* multiplications and additions that come with one load, more or less */
} tile;

/* Of a CPU with 32 vector registers, and with 16: sums, a row of B, and one element of A. */
static const tile tiles_of_32[] = {{6, 4, 1.0}, {8, 3, 1.0}, {12, 2, 0.9}, {12, 1, 0.5}},
                  tiles_of_16[] = {{3, 4, 0.9}, {4, 3, 1.0}, {6, 2, 1.0}, {12, 1, 0.7}},
                  /* Of a GPU: rows of a group, and columns in vectors of GEMM_SIDE. */
    tiles_of_gpu[] = {{64, 4, 1.0}, {64, 1, 0.6}};

static int lanes_of(const gpu_traits *traits, tn_dtype type) {
    return traits->is_cpu ? (int)(traits->vector_bytes / gpu_dtype_sizes[type]) : GEMM_SIDE;
}

static tile choose(const gpu_traits *traits, const gpu_gemm *p, double *out_speed) {
    const tile *tiles = !traits->is_cpu              ? tiles_of_gpu
                        : traits->vector_bytes >= 64 ? tiles_of_32
                                                     : tiles_of_16;
    int n = traits->is_cpu ? 4 : 2, lanes = lanes_of(traits, p->a.dtype);
    int64_t m = size_of(p->m);
    const tile *best = tiles;
    double most = 0;
    for (int i = 0; i < n; i++) {
        const tile *t = &tiles[i];
        int64_t panel = t->vectors * lanes;
        double speed = t->speed * (double)p->n / (double)(gpu_ceil_div(p->n, panel) * panel) *
                       (double)m / (double)(gpu_ceil_div(m, t->rows) * t->rows);
        if (speed > most) {
            most = speed;
            best = t;
        }
    }
    *out_speed = most;
    return *best;
}

double gpu_gemm_cost(const gpu_traits *traits, const gpu_gemm *p) {
    enum { PER_NS = 40, PACK_PER_NS = 2, SCATTER_PER_NS = 1 };
    double speed;
    choose(traits, p, &speed);
    double m = (double)size_of(p->m), k = (double)size_of(p->k), n = (double)p->n;
    return (double)p->n_batch * (m * n * k / (PER_NS * speed) + k * n / PACK_PER_NS +
                                 (p->c.n == 1 ? 0 : m * n / SCATTER_PER_NS));
}

/* How many parts of k there should be, and how much of it each. */
static void cut(const gpu_traits *traits, gpu_gemm *p) {
    enum {
        PANEL_BYTES = 256 << 10, /* of B, that stay in a core's cache */
        SUMS_BYTES = 32 << 20    /* of partial sums, more than which cost more than they save */
    };
    int64_t k = p->depth, inner = p->k[1] * p->k[2];
    int64_t rows = gpu_ceil_div(size_of(p->m), p->rows);
    int64_t tiles = p->n_batch * rows * gpu_ceil_div(p->n, p->panel);
    int64_t wanted = gpu_ceil_div(4 * (int64_t)traits->compute_units, tiles);
    if (traits->is_cpu && rows > 4) {
        int64_t bytes = k * p->panel * gpu_dtype_sizes[p->a.dtype];
        if (bytes > 4 * PANEL_BYTES)
            wanted = wanted > bytes / PANEL_BYTES ? wanted : bytes / PANEL_BYTES;
    }
    int64_t most = SUMS_BYTES / (p->n_batch * size_of(p->m) * p->n * gpu_dtype_sizes[p->a.dtype]);
    if (wanted > most)
        wanted = most;
    if (wanted > k / MIN_PART)
        wanted = k / MIN_PART;
    if (wanted > MAX_PARTS)
        wanted = MAX_PARTS;
    p->parts = 1;
    p->part = k;
    if (wanted < 2 || p->k[0] < 2)
        return;
    p->part = gpu_ceil_div(p->k[0], wanted) * inner;
    p->parts = gpu_ceil_div(k, p->part);
}

/* Dimensions of one element leave, and neighbours are joined where all operands let them be, so
 * that the innermost loop is long. */
static void join(int64_t sizes[3], int64_t *x, int64_t *y, int64_t *z) {
    int64_t *const strides[] = {x, y, z};
    int to = 2; /* where the dimension lies that the next may join */
    for (int d = 1; d >= 0; d--) {
        bool joins = sizes[to] != 0;
        for (int i = 0; i < 3 && sizes[to] != 1; i++)
            joins = joins && (!strides[i] || strides[i][d] == strides[i][to] * sizes[to]);
        if (sizes[d] == 1)
            continue;
        if (joins && sizes[to] != 1) {
            sizes[to] *= sizes[d];
            sizes[d] = 1;
            continue;
        }
        if (sizes[to] != 1)
            to--;
        if (to == d)
            continue;
        sizes[to] = sizes[d];
        sizes[d] = 1;
        for (int i = 0; i < 3; i++)
            if (strides[i])
                strides[i][to] = strides[i][d];
    }
}

void gpu_gemm_prepare(const gpu_traits *traits, gpu_gemm *p, gpu_bump *bump) {
    tn_dtype type = p->a.dtype;
    uint64_t item = gpu_dtype_sizes[type];
    double speed;
    join(p->m, p->a.m, p->c.m, p->s.m);
    join(p->k, p->a.k, p->b.k, NULL);
    p->depth = size_of(p->k);
    /* Where one dimension is all of k, it can be cut anywhere. */
    if (p->k[0] == 1 && p->k[1] == 1 && p->k[2] >= 2 * MIN_PART) {
        p->a.k[0] = p->a.k[2] * MIN_PART;
        p->b.k[0] = p->b.k[2] * MIN_PART;
        p->k[0] = gpu_ceil_div(p->k[2], MIN_PART);
        p->k[2] = MIN_PART;
    }
    tile t = choose(traits, p, &speed);
    p->rows = t.rows;
    p->vectors = t.vectors;
    p->lanes = lanes_of(traits, type);
    p->panel = p->vectors * p->lanes;
    cut(traits, p);
    uint64_t columns = (uint64_t)(gpu_ceil_div(p->n, p->panel) * p->panel);
    uint64_t packed = p->b.batch ? (uint64_t)p->n_batch : 1;
    p->packed_at = gpu_bump_take(bump, packed * columns * (uint64_t)p->depth * item);
    if (p->parts > 1)
        p->sums_at =
            gpu_bump_take(bump, (uint64_t)(p->n_batch * p->parts * size_of(p->m) * p->n) * item);
}

/* ---- packing ----------------------------------------------------------------------------- */

enum { CPU_DEEP = 32 /* rows of B that a work item packs */ };

typedef enum { GEMM, COMBINE, PACK, PACK_ALONG_K } which;

/* Runs one of the kernels for a tile, which are in a program together; `c` is the result's dtype. */
static tn_status run(const tn_call *call, const gpu_gemm *p, const gpu_launch *launch, which kernel,
                     tn_dtype c) {
    static const char *const entries[] = {"gemm", "combine", "pack", "pack_along_k"};
    bool is_cpu = gpu_device_traits(call->device)->is_cpu, along_k = !is_cpu && p->a.k[2] == 1;
    tn_dtype a = p->a.dtype, b = p->b.dtype;
    uint64_t key = GPU_KEY(GPU_FAMILY_matmul, (uint64_t)kernel << 40 | (uint64_t)p->panel << 24 |
                                                  (uint64_t)p->rows << 16 | (uint64_t)a << 12 |
                                                  (uint64_t)b << 8 | (uint64_t)c << 4 |
                                                  (uint64_t)along_k << 2);
    return gpu_run(call, launch, key, &gpu_source_gemm,
                   "%s -DT=%s -DB=%s -DR=%s -DROWS=%d -DVECTORS=%d -DLANES=%d -DPANEL=%d "
                   "-DDEEP=%d -DWIDE=%d -DALONG_K=%d",
                   entries[kernel], gpu_dtype_names[a], gpu_dtype_names[b], gpu_dtype_names[c],
                   p->rows, p->vectors, p->lanes, p->panel, is_cpu ? CPU_DEEP : 1,
                   is_cpu ? p->panel : 1, along_k);
}

static tn_status pack(const tn_call *call, const gpu_gemm *p) {
    bool is_cpu = gpu_device_traits(call->device)->is_cpu;
    const gpu_operand *b = &p->b;
    bool along_k = b->k[2] == 1 && b->n != 1;
    int deep = is_cpu ? CPU_DEEP : 1, wide = is_cpu ? p->panel : 1;
    int64_t k = p->depth;
    pack_params params = {
        .k = k,
        .n = p->n,
        .k_sizes = {p->k[1], p->k[2]},
        .from = b->offset,
        .from_batch = b->batch,
        .from_k = {b->k[0], b->k[1], b->k[2]},
        .from_n = b->n,
        .to = gpu_piece(call, p->packed_at, p->a.dtype),
    };
    gpu_launch launch = {.n_memory = 2,
                         .memory = {call->workspace, b->memory},
                         .parameters = &params,
                         .parameter_bytes = sizeof params};
    gpu_launch_items(&launch, gpu_ceil_div(k, deep) * (p->panel / wide), is_cpu ? 1 : GPU_GROUP);
    launch.groups[0] *= (uint64_t)(gpu_ceil_div(p->n, p->panel) * (b->batch ? p->n_batch : 1));
    return run(call, p, &launch, along_k ? PACK_ALONG_K : PACK, p->c.dtype);
}

/* ---- multiplying ------------------------------------------------------------------------- */

static void fill(const tn_call *call, const gpu_gemm *p, gemm_params *out) {
    tn_dtype type = p->a.dtype;
    *out = (gemm_params){
        .m = size_of(p->m),
        .n = p->n,
        .k = p->depth,
        .m_sizes = {p->m[1], p->m[2]},
        .k_sizes = {p->k[1] ? p->k[1] : 1, p->k[2] ? p->k[2] : 1},
        .a_offset = p->a.offset,
        .a_batch = p->a.batch,
        .b_offset = gpu_piece(call, p->packed_at, type),
        .b_batch = p->b.batch ? p->depth * p->panel : 0,
        .c_offset = p->c.offset,
        .c_batch = p->c.batch,
        .c_n = p->c.n,
        .s_offset = p->s.offset,
        .s_batch = p->s.batch,
        .s_n = p->s.n,
        .parts = p->parts,
        .part = p->part,
        .alpha = p->alpha,
        .beta = p->beta,
        .has_s = p->s.memory != 0,
        .sums_offset = p->parts > 1 ? gpu_piece(call, p->sums_at, type) : 0,
    };
    memcpy(out->a_m, p->a.m, sizeof out->a_m);
    memcpy(out->a_k, p->a.k, sizeof out->a_k);
    memcpy(out->c_m, p->c.m, sizeof out->c_m);
    memcpy(out->s_m, p->s.m, sizeof out->s_m);
}

/* The product whose C are the partial sums of `whole`: [batch][part][m][n]. */
static void fill_parts(tn_dtype type, const gemm_params *whole, gemm_params *out) {
    int64_t n = whole->n,
            rows[3] = {whole->m_sizes[0] * whole->m_sizes[1] * n, whole->m_sizes[1] * n, n};
    *out = *whole;
    out->c_offset = whole->sums_offset;
    out->c_part = whole->m * n;
    out->c_batch = out->c_part * whole->parts;
    memcpy(out->c_m, rows, sizeof rows);
    out->c_n = 1;
    out->alpha = gpu_number_i(type, 1);
    out->has_s = 0;
}

static tn_status combine(const tn_call *call, const gpu_gemm *p, const gemm_params *whole,
                         tn_memory s) {
    gpu_launch launch = {.n_memory = 3,
                         .memory = {p->c.memory, call->workspace, s},
                         .parameters = whole,
                         .parameter_bytes = sizeof *whole};
    gpu_launch_items(&launch, whole->m * p->n, GPU_GROUP);
    launch.groups[0] *= (uint64_t)p->n_batch;
    return run(call, p, &launch, COMBINE, p->c.dtype);
}

tn_status gpu_gemm_run(const tn_call *call, const gpu_gemm *p) {
    uint64_t side = gpu_device_traits(call->device)->is_cpu ? 1 : GEMM_SIDE;
    bool has_parts = p->parts > 1;
    tn_dtype type = p->a.dtype;
    tn_memory s = p->s.memory ? p->s.memory : p->c.memory;
    gemm_params whole, parts;
    PLUGIN_TRY(p->depth ? pack(call, p) : TN_OK);
    fill(call, p, &whole);
    if (has_parts)
        fill_parts(type, &whole, &parts);
    gpu_launch launch = {
        .n_memory = 4,
        .memory = {has_parts ? call->workspace : p->c.memory, p->a.memory, call->workspace, s},
        .parameters = has_parts ? &parts : &whole,
        .parameter_bytes = sizeof whole,
        .groups = {(uint64_t)(gpu_ceil_div(whole.m, p->rows) * gpu_ceil_div(p->n, p->panel) *
                              p->n_batch * p->parts)},
        .local = {side, side},
    };
    tn_status status = run(call, p, &launch, GEMM, has_parts ? type : p->c.dtype);
    return status == TN_OK && has_parts ? combine(call, p, &whole, s) : status;
}
