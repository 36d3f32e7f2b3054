/* Attention on a GPU: a group of 16 x 16 has a tile of SIDE own and SIDE other rows. Its scores are made
 * in registers, by way of slices of DEPTH columns in local memory; there they become weights or
 * slopes, and are multiplied with a panel of columns of the other side. */

#define DEPTH 16 /* of what lies in local memory */
#define ITEMS (ATTENTION_GROUP * ATTENTION_GROUP)
#define MINE (SIDE / ATTENTION_GROUP) /* rows of a work item, of both sides */
#define WIDE (PANEL / ATTENTION_GROUP)
#define STEP (SIDE + 4) /* off the banks of the row before */
#define LONGER(a, b) ((a) > (b) ? (a) : (b))

/* to [DEPTH][STEP] = columns of SIDE rows of a tensor, of which so many are there; a work item's first
 * one is at `at`. */
#define LOAD_SLICE(to, tensor, TENSOR, at, n_rows, n_columns) \
    _Pragma("unroll") for (int r_ = 0; r_ < SIDE; r_ += ITEMS / DEPTH) { \
        to[item % DEPTH * STEP + item / DEPTH + r_] = \
            item % DEPTH < (n_columns) && item / DEPTH + r_ < (n_rows) \
                ? load(T)(tensor, (at) + r_ * p->strides[TENSOR][2]) \
                : (C)0; \
    }

/* Where a work item's first element of a slice is. */
#define SLICE_AT(TENSOR, b, h, first) \
    (row_at(p, TENSOR, b, h, (first) + item / DEPTH) + item % DEPTH * p->strides[TENSOR][3])

/* s[i][j] = the product of own row ty * MINE + i, the first of which is at x_at, and other row
 * tx * MINE + j. */
#define MULTIPLY(s, x, X, x_at, n_own, y, Y, y_at, n_other, width) \
    do { \
        i64 from_x_ = (x_at), from_y_ = (y_at); \
        EACH(i, MINE) EACH(j, MINE) s[i][j] = 0; \
        for (int left_ = (int)(width); left_ > 0; left_ -= DEPTH) { \
            int n_ = left_ < DEPTH ? left_ : DEPTH; \
            LOAD_SLICE(mine, x, X, from_x_, n_own, n_) \
            LOAD_SLICE(others, y, Y, from_y_, n_other, n_) \
            from_x_ += DEPTH * p->strides[X][3]; \
            from_y_ += DEPTH * p->strides[Y][3]; \
            BARRIER(); \
            _Pragma("unroll 2") for (int d = 0; d < DEPTH; d++) { \
                C x_[MINE], y_[MINE]; \
                EACH(i, MINE) x_[i] = mine[d * STEP + ty * MINE + i]; \
                EACH(j, MINE) y_[j] = others[d * STEP + tx * MINE + j]; \
                EACH(i, MINE) EACH(j, MINE) s[i][j] = FMA(x_[i], y_[j], s[i][j]); \
            } \
            BARRIER(); \
        } \
    } while (0)

/* sum[i][c] += own row ty * MINE + i of the tile times column tx * WIDE + c of the panel. */
#define ADD_PRODUCT(sum, y, Y, y_at, n_other, width) \
    for (int k_ = 0; k_ < (n_other); k_ += DEPTH) { \
        for (int e_ = item; e_ < DEPTH * PANEL; e_ += ITEMS) { \
            int d_ = k_ + e_ / PANEL; \
            int c_ = panel + e_ % PANEL; \
            others[e_] = d_ < (n_other) && c_ < (width) \
                             ? load(T)(y, (y_at) + d_ * p->strides[Y][2] + c_ * p->strides[Y][3]) \
                             : (C)0; \
        } \
        BARRIER(); \
        _Pragma("unroll 2") for (int d = 0; d < DEPTH; d++) { \
            C x_[MINE], y_[WIDE]; \
            EACH(i, MINE) x_[i] = tile[(ty * MINE + i) * STEP + k_ + d]; \
            EACH(c, WIDE) y_[c] = others[d * PANEL + tx * WIDE + c]; \
            EACH(i, MINE) EACH(c, WIDE) sum[i][c] = FMA(x_[i], y_[c], sum[i][c]); \
        } \
        BARRIER(); \
    }

#define EACH(i, n) _Pragma("unroll") for (int i = 0; i < (n); i++)

#define STORE_PANEL(to, TENSOR, sum, width, factor) \
    EACH(i, MINE) { \
        i64 at_ = row_at(p, TENSOR, t.b, t.own, t.first + ty * MINE + i); \
        EACH(c, WIDE) { \
            int c_ = panel + tx * WIDE + c; \
            if (ty * MINE + i < t.n_own && c_ < (width)) \
                store(T)(to, at_ + c_ * p->strides[TENSOR][3], sum[i][c] * (factor)); \
        } \
    }

/* x joined over the work items that share a row, the same in all of them. */
#if WARP
#define JOIN_ROW(x, MERGE) \
    do { \
        for (int half_ = ATTENTION_GROUP / 2; half_ > 0; half_ /= 2) { \
            C other_ = SHUFFLE_DOWN(x, half_); \
            x = MERGE(x, other_); \
        } \
        x = SHUFFLE(x, item % WARP / ATTENTION_GROUP * ATTENTION_GROUP); \
    } while (0)
#else
#define JOIN_ROW(x, MERGE) \
    do { \
        mine[item] = x; \
        BARRIER(); \
        x = mine[item - tx]; \
        for (int k_ = 1; k_ < ATTENTION_GROUP; k_++) { \
            C other_ = mine[item - tx + k_]; \
            x = MERGE(x, other_); \
        } \
        BARRIER(); \
    } while (0)
#endif
#define LARGER(a, b) ((b) > (a) ? (b) : (a))
#define SUM_OF(a, b) ((a) + (b))

/* A product as a score: of query i of a head with key j. */
DEVICE C score_of(const attention_params *p, C product, GLOBAL const C *mask, i64 at, i64 i,
                  i64 j) {
    C x = product * number(A)(p->scale);
    if (p->causal && j > i)
        return HIDDEN;
    if (!p->masked)
        return x;
    C added = mask[at + i * p->strides[ATTENTION_MASK][2] + j * p->strides[ATTENTION_MASK][3]];
    return added == HIDDEN ? HIDDEN : x + added;
}

/* Of a tile, its first query, among those of a head and of all, and its first key. */
#define FIRST_QUERY (OF_KEYS ? from : t.first)
#define FIRST_KEY (OF_KEYS ? t.first : from)
#define FIRST_ROW ((t.b * p->heads + of_query) * p->queries + FIRST_QUERY)

/* What is done to a tile row by row: unrolled it would be most of the kernel. */
#define EACH_ROW(i) _Pragma("unroll 1") for (int i = 0; i < MINE; i++)
#define TILE(i, j) tile[(ty * MINE + (i)) * STEP + tx * MINE + (j)]

KERNEL_OF_GROUP(ATTENTION_GROUP, ATTENTION_GROUP, attention)(TENSORS, const attention_params p_) {
    LOCAL ALIGNED(16) C mine[LONGER(DEPTH * STEP, ITEMS)];
    LOCAL ALIGNED(16) C others[DEPTH * LONGER(STEP, PANEL)];
    LOCAL ALIGNED(16) C tile[SIDE * STEP]; /* scores, weights or slopes, of own rows */
#if MAKES_OUTPUT
    LOCAL C largest[SIDE], total[SIDE], factor[SIDE]; /* of own rows */
#endif
    const attention_params *const p = &p_;
    int tx = (int)LOCAL_ID(0), ty = (int)LOCAL_ID(1), item = ty * ATTENTION_GROUP + tx;
    int panel = (int)((i64)GROUP_ID(0) % p->panels) * PANEL;
    tile_at t = find_tile(p, (i64)GROUP_ID(0) / p->panels, SIDE);
    C s[MINE][MINE], sum[MINE][WIDE];
    EACH(i, MINE) EACH(c, WIDE) sum[i][c] = 0;
#if MAKES_OUTPUT
    if (item < SIDE) {
        largest[item] = HIDDEN;
        total[item] = 0;
    }
    BARRIER();
#elif MAKES_KEY && MAKES_VALUE
    C sum_2[MINE][WIDE];
    EACH(i, MINE) EACH(c, WIDE) sum_2[i][c] = 0;
#define OF_VALUE sum_2
#else
#define OF_VALUE sum
#endif
    for (i64 h = t.other; h < t.other + t.n_heads; h++)
        for (i64 from = t.from; from < t.end; from += SIDE) {
            int n = t.end - from < SIDE ? (int)(t.end - from) : SIDE;
            i64 of_query = OF_KEYS ? h : t.own,
                mask_at = row_at(p, ATTENTION_MASK, t.b, of_query, 0);
#if OF_KEYS
            MULTIPLY(s, key, ATTENTION_KEY, SLICE_AT(ATTENTION_KEY, t.b, t.own, t.first), t.n_own,
                     query, ATTENTION_QUERY, SLICE_AT(ATTENTION_QUERY, t.b, h, from), n, p->e);
#else
            MULTIPLY(s, query, ATTENTION_QUERY, SLICE_AT(ATTENTION_QUERY, t.b, t.own, t.first),
                     t.n_own, key, ATTENTION_KEY, SLICE_AT(ATTENTION_KEY, t.b, h, from), n, p->e);
#endif
            EACH(i, MINE) EACH(j, MINE) TILE(i, j) = s[i][j];
            EACH_ROW(i) {
                int own = ty * MINE + i;
#if MAKES_OUTPUT
                C before = largest[own], most = before, added = 0;
                EACH(j, MINE) {
                    int other = tx * MINE + j;
                    C x = other < n && own < t.n_own
                              ? score_of(p, TILE(i, j), mask, mask_at, t.first + own, from + other)
                              : HIDDEN;
                    TILE(i, j) = x;
                    most = LARGER(most, x);
                }
                JOIN_ROW(most, LARGER);
                C base = most == HIDDEN ? (C)0 : most; /* of nothing but -infinity */
                EACH(j, MINE) {
                    TILE(i, j) = EXP(A)(TILE(i, j) - base);
                    added += TILE(i, j);
                }
                JOIN_ROW(added, SUM_OF);
                if (tx == 0) {
                    factor[own] = EXP(A)(before - base);
                    largest[own] = most;
                    total[own] = total[own] * factor[own] + added;
                }
#else
                EACH(j, MINE) {
                    int other = tx * MINE + j, q = OF_KEYS ? other : own, k = OF_KEYS ? own : other;
                    bool inside = other < n && own < t.n_own;
                    C x = HIDDEN, logsumexp = 0;
                    if (inside) {
                        x = score_of(p, TILE(i, j), mask, mask_at, FIRST_QUERY + q, FIRST_KEY + k);
                        logsumexp = LOGSUMEXP_OF(FIRST_ROW + q);
                    }
                    TILE(i, j) = x == HIDDEN || logsumexp == HIDDEN ? (C)0 : EXP(A)(x - logsumexp);
                }
#endif
            }
#if MAKES_OUTPUT
            BARRIER();
            EACH(i, MINE) EACH(c, WIDE) sum[i][c] *= factor[ty * MINE + i];
            ADD_PRODUCT(sum, value, ATTENTION_VALUE, row_at(p, ATTENTION_VALUE, t.b, h, from), n,
                        p->v)
#endif
#if MAKES_VALUE
            ADD_PRODUCT(OF_VALUE, grad, ATTENTION_GRAD, row_at(p, ATTENTION_GRAD, t.b, h, from), n,
                        p->v)
#endif
#if HAS_SLOPES
#if OF_KEYS
            MULTIPLY(s, value, ATTENTION_VALUE, SLICE_AT(ATTENTION_VALUE, t.b, t.own, t.first),
                     t.n_own, grad, ATTENTION_GRAD, SLICE_AT(ATTENTION_GRAD, t.b, h, from), n,
                     p->v);
#else
            MULTIPLY(s, grad, ATTENTION_GRAD, SLICE_AT(ATTENTION_GRAD, t.b, t.own, t.first),
                     t.n_own, value, ATTENTION_VALUE, SLICE_AT(ATTENTION_VALUE, t.b, h, from), n,
                     p->v);
#endif
            EACH_ROW(i) { /* row 0 of registers is the next: they have no index */
                EACH(j, MINE) {
                    int own = ty * MINE + i, other = tx * MINE + j, q = OF_KEYS ? other : own;
                    TILE(i, j) = other < n && own < t.n_own
                                     ? TILE(i, j) * (s[0][j] - MEAN_OF(FIRST_ROW + q))
                                     : (C)0;
                }
                EACH(r, MINE - 1) EACH(j, MINE) s[r][j] = s[r + 1][j];
            }
#if OF_KEYS
            ADD_PRODUCT(sum, query, ATTENTION_QUERY, row_at(p, ATTENTION_QUERY, t.b, h, from), n,
                        p->e)
#else
            ADD_PRODUCT(sum, key, ATTENTION_KEY, row_at(p, ATTENTION_KEY, t.b, h, from), n, p->e)
#endif
#endif
        }

#if MAKES_OUTPUT
    EACH(i, MINE) {
        int own = ty * MINE + i;
        C all = total[own], share = all == 0 ? (C)0 : DIVIDE((C)1, all);
        if (tx == 0 && panel == 0 && own < t.n_own)
            second[row_at(p, ATTENTION_SECOND, t.b, t.own, t.first + own)] =
                all == 0 ? HIDDEN : largest[own] + LOG(A)(all);
        EACH(c, WIDE) sum[i][c] *= share;
    }
    STORE_PANEL(out, ATTENTION_OUT, sum, p->v, 1)
#endif
#if HAS_SLOPES
    STORE_PANEL(out, ATTENTION_OUT, sum, p->e, number(A)(p->scale))
#endif
#if MAKES_VALUE
    STORE_PANEL(second, ATTENTION_SECOND, OF_VALUE, p->v, 1)
#endif
}
