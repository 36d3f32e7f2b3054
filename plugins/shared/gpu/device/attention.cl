/* Attention without the matrix of all scores (Dao et al., arXiv:2205.14135), and its gradients.
 *
 * A group has a tile of `own` rows of a head and goes through the `other` rows, a tile of these at a
 * time: its scores are a product, of which weights are made, and what these multiply is summed up.
 *
 *   makes       own      others   scores                          summed up
 *   output      query    key      query key^T                     weights value
 *   query's     query    key      the same, and grad value^T      slopes key
 *   key's       key      query    key query^T, and value grad^T   slopes query
 *   value's     key      query    key query^T                     weights grad
 *
 * Sizes, strides, scale, is_causal and whether there is a mask are arguments: one kernel has all shapes.
 *
 *   T, A             the dtype; what it is computed in, f32 or f64
 *   MAKES            a sum of ATTENTION_MAKES_*: both gradients of keys may be made at once; 0: `rows`
 *   LANES, VECTORS   of a CPU: own rows lie along so many vectors
 *   SIDE, PANEL      of a GPU: rows of both tiles, and how many columns of what is made a group has;
 *                    multiples of 16 */
#include "plugins/shared/gpu/device/attention.params.h"

typedef computed(A) C;

#define MAKES_OUTPUT (MAKES == ATTENTION_MAKES_OUTPUT)
#define MAKES_KEY (MAKES & ATTENTION_MAKES_KEY)
#define MAKES_VALUE (MAKES & ATTENTION_MAKES_VALUE)
#define OF_KEYS (MAKES_KEY || MAKES_VALUE)
#define HAS_SLOPES (MAKES_KEY || MAKES == ATTENTION_MAKES_QUERY)

#define OUT_WIDTH(p) (MAKES_OUTPUT ? (p)->v : (p)->e) /* columns of `out` */

#if MAKES_OUTPUT
typedef C second_out;
#else
typedef stored(T) second_out;
#endif

#define TENSORS \
    GLOBAL stored(T) * out, GLOBAL second_out *second, GLOBAL const stored(T) * query, \
        GLOBAL const stored(T) * key, GLOBAL const stored(T) * value, GLOBAL const C *mask, \
        GLOBAL const stored(T) * grad, GLOBAL C *work

#define HIDDEN ((C)f32_of_bits(0xff800000u)) /* -infinity, as a score */

/* Products of rows are added in one order everywhere: what a query that sees one key is given then
 * has a slope of exactly 0. */
#if IS_CPU
#ifdef __OPENCL_VERSION__
#pragma OPENCL FP_CONTRACT ON
#endif
#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))
#else
#define MULTIPLY_ADD(x, y, z) FMA(x, y, z)
#endif

/* Where row i of head h of a tensor begins. */
DEVICE i64 row_at(const attention_params *p, int tensor, i64 b, i64 h, i64 i) {
    return p->offsets[tensor] + b * p->strides[tensor][0] + h * p->strides[tensor][1] +
           i * p->strides[tensor][2];
}

/* A tile: own rows from `first` on of head `own` of batch b, whose others are rows [from, end) of
 * `n_heads` heads from `other` on. */
typedef struct tile_at {
    i64 b, own, other, n_heads, first, from, end;
    int n_own;
} tile_at;

DEVICE tile_at find_tile(const attention_params *p, i64 task, int side) {
    tile_at t;
    i64 heads = OF_KEYS ? p->heads / p->share : p->heads, n = OF_KEYS ? p->keys : p->queries;
    /* Each head begins with another tile, so that a CPU's groups have long and short ones alike. */
    t.first = (task + task / p->tiles) % p->tiles * side;
    task /= p->tiles;
    t.own = task % heads;
    t.b = task / heads;
    t.other = OF_KEYS ? t.own * p->share : t.own / p->share;
    t.n_heads = OF_KEYS ? p->share : 1;
    t.n_own = n - t.first < side ? (int)(n - t.first) : side;
    t.from = OF_KEYS && p->causal ? t.first : 0;
    t.end = OF_KEYS ? p->queries : p->keys;
    if (!OF_KEYS && p->causal && t.first + t.n_own < t.end)
        t.end = t.first + t.n_own;
    return t;
}

/* What `rows` made of a query: which one is [0, n_rows). */
#define LOGSUMEXP_OF(row) work[p->rows + (row)]
#define MEAN_OF(row) work[p->rows + p->n_rows + (row)]

/* ---- what the gradients ask of a query --------------------------------------------------- */

#if MAKES == 0

/* A work item has a query: its logsumexp, and the product of the output and its gradient. */
KERNEL(rows)
(GLOBAL C *work, GLOBAL const stored(T) * output, GLOBAL const stored(T) * grad,
 GLOBAL const C *logsumexp, const attention_params p_) {
    const attention_params *const p = &p_;
    i64 row = GLOBAL_ID(0);
    if (row >= p->n_rows)
        return;
    i64 head = row / p->queries, b = head / p->heads, h = head % p->heads, i = row % p->queries;
    i64 at = row_at(p, ATTENTION_GRAD, b, h, i), from = row_at(p, ATTENTION_OUTPUT, b, h, i);
    C sum = 0;
    for (i64 f = 0; f < p->v; f++)
        sum = MULTIPLY_ADD((C)load(T)(grad, at + f * p->strides[ATTENTION_GRAD][3]),
                           (C)load(T)(output, from + f * p->strides[ATTENTION_OUTPUT][3]), sum);
    LOGSUMEXP_OF(row) = logsumexp[row_at(p, ATTENTION_LOGSUMEXP, b, h, i)];
    MEAN_OF(row) = sum;
}

#elif IS_CPU
#include "plugins/shared/gpu/device/attention_vectors.h"
#else
#include "plugins/shared/gpu/device/attention_tiles.h"
#endif
