/* Attention on a CPU: own rows lie along vectors, LANES of each of VECTORS of them; what a group has of
 * other rows, of scores and of sums is in scratch memory of its own, one tile after the other. So all
 * products are of numbers that are spread over vectors, and of vectors that lie in a row. */

#define OWN (LANES * VECTORS)
#define OTHERS ATTENTION_OTHERS
#define ROWS 4 /* of a product, in registers */

typedef lanes(A, LANES) lane;

/* c [m][OWN] = a [m][k] b [k][OWN], added to what is there where `adds`. */
DEVICE void multiply(GLOBAL C *c, bool adds, GLOBAL const C *a, i64 a_row, i64 a_k,
                     GLOBAL const C *b, i64 m, i64 k) {
    for (i64 first = 0; first < m; first += ROWS) {
        lane sum[ROWS][VECTORS];
        i64 row[ROWS]; /* those behind the last are the last */
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            row[i] = first + i < m ? first + i : m - 1;
#pragma unroll
            for (int v = 0; v < VECTORS; v++)
                sum[i][v] = adds ? load_lanes(LANES, c + row[i] * OWN + v * LANES) : (lane)(0);
        }
#pragma nounroll
        for (i64 n = 0; n < k; n++) {
            lane y[VECTORS];
#pragma unroll
            for (int v = 0; v < VECTORS; v++)
                y[v] = load_lanes(LANES, b + n * OWN + v * LANES);
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                C x = a[row[i] * a_row + n * a_k];
#pragma unroll
                for (int v = 0; v < VECTORS; v++)
                    sum[i][v] = MULTIPLY_ADD(x, y[v], sum[i][v]);
            }
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int v = 0; v < VECTORS; v++)
                store_lanes(LANES, sum[i][v], c + row[i] * OWN + v * LANES);
    }
}

/* n rows from `at` on, [n][width]. */
DEVICE void load_rows(GLOBAL C *to, GLOBAL const stored(T) * from, i64 at, const i64 *strides,
                      i64 n, i64 width) {
    for (i64 i = 0; i < n; i++, at += strides[2], to += width) {
        if (strides[3] == 1)
            for (i64 f = 0; f < width; f++)
                to[f] = load(T)(from, at + f);
        else
            for (i64 f = 0; f < width; f++)
                to[f] = load(T)(from, at + f * strides[3]);
    }
}

/* n rows from `at` on as columns, [width][OWN]; those behind the last are 0. */
DEVICE void load_columns(GLOBAL C *to, GLOBAL const stored(T) * from, i64 at, const i64 *strides,
                         int n, i64 width) {
    for (i64 f = 0; f < width; f++, at += strides[3])
        for (int i = 0; i < OWN; i++)
            to[f * OWN + i] = i < n ? load(T)(from, at + i * strides[2]) : (C)0;
}

/* Columns [width][OWN] times `factor` as rows from `at` on. */
DEVICE void store_columns(GLOBAL stored(T) * to, i64 at, const i64 *strides, GLOBAL const C *from,
                          int n, i64 width, const C *factor) {
    for (int i = 0; i < n; i++, at += strides[2])
        for (i64 f = 0; f < width; f++)
            store(T)(to, at + f * strides[3], from[f * OWN + i] * factor[i]);
}

#define EACH_LANE(i) for (int i = 0; i < OWN; i++)

/* Products [n][OWN] become scores: of other rows from `other` on, of head h of query. */
DEVICE void mask_scores(GLOBAL C *scores, GLOBAL const C *mask, const attention_params *p,
                        const tile_at *t, i64 h, i64 other, int n) {
    C scale = number(A)(p->scale);
    const i64 *strides = p->strides[ATTENTION_MASK];
    i64 own_step = strides[OF_KEYS ? 3 : 2], other_step = strides[OF_KEYS ? 2 : 3];
    i64 at = row_at(p, ATTENTION_MASK, t->b, h, 0) + t->first * own_step + other * other_step;
    for (int j = 0; j < n; j++, scores += OWN, at += other_step) {
        EACH_LANE(i) {
            scores[i] *= scale;
        }
        if (p->masked)
            for (int i = 0; i < t->n_own; i++) {
                C added = mask[at + i * own_step];
                scores[i] = added == HIDDEN ? HIDDEN : scores[i] + added;
            }
        i64 ahead = other + j - t->first; /* own rows up to it are seen, or from it on */
        if (p->causal && (OF_KEYS ? ahead < OWN : ahead > 0))
            EACH_LANE(i) {
                scores[i] = (OF_KEYS ? i > (int)ahead : i < (int)ahead) ? HIDDEN : scores[i];
            }
    }
}

/* Scores become exponentials, relative to the largest so far, which the sums follow. */
DEVICE void soften(GLOBAL C *scores, int n, C *largest, C *total, GLOBAL C *sums, i64 width) {
    C base[OWN], factor[OWN], sum[OWN];
    EACH_LANE(i) {
        base[i] = largest[i];
        sum[i] = 0;
    }
    for (int j = 0; j < n; j++)
        EACH_LANE(i) {
            C x = scores[j * OWN + i];
            base[i] = x > base[i] ? x : base[i];
        }
    bool moved = false;
    EACH_LANE(i) {
        C next = base[i];
        base[i] = next == HIDDEN ? (C)0 : next; /* of nothing but -infinity */
        factor[i] = EXP(A)(largest[i] - base[i]);
        largest[i] = next;
    }
    for (int j = 0; j < n; j++)
        EACH_LANE(i) {
            C x = EXP(A)(scores[j * OWN + i] - base[i]);
            scores[j * OWN + i] = x;
            sum[i] += x;
        }
    EACH_LANE(i) {
        moved |= factor[i] != 1;
        total[i] = total[i] * factor[i] + sum[i];
    }
    for (i64 f = 0; moved && f < width; f++)
        EACH_LANE(i) {
            sums[f * OWN + i] *= factor[i];
        }
}

/* Scores become weights and products slopes; `row` is the first query, of others or of own rows. */
DEVICE void weigh(GLOBAL C *scores, GLOBAL C *slopes, GLOBAL const C *work,
                  const attention_params *p, i64 row, int n, int n_own) {
    C logsumexp[OWN], mean[OWN];
    for (int j = 0; j < n; j++) {
        if (OF_KEYS || j == 0)
            EACH_LANE(i) {
                i64 at = row + (OF_KEYS ? j : i < n_own ? i : n_own - 1);
                logsumexp[i] = LOGSUMEXP_OF(at);
                mean[i] = MEAN_OF(at);
            }
        EACH_LANE(i) {
            C x = scores[j * OWN + i], weight = EXP(A)(x - logsumexp[i]);
            bool hidden = x == HIDDEN || logsumexp[i] == HIDDEN;
            scores[j * OWN + i] = hidden ? (C)0 : weight;
#if HAS_SLOPES
            slopes[j * OWN + i] = scores[j * OWN + i] * (slopes[j * OWN + i] - mean[i]);
#endif
        }
    }
}

KERNEL_OF_VECTORS(attention)(TENSORS, const attention_params p_) {
    const attention_params *const p = &p_;
    i64 e = p->e, v = p->v;
    GLOBAL C *own = work + p->scratch + GROUP_ID(0) * p->per; /* [E][OWN] */
    GLOBAL C *own_2 = own + e * OWN;                          /* [V][OWN] */
    GLOBAL C *sum = own_2 + v * OWN;                          /* [E or V][OWN] */
    GLOBAL C *sum_2 = sum + OUT_WIDTH(p) * OWN;               /* [V][OWN] */
    GLOBAL C *scores = sum_2 + v * OWN;                       /* [OTHERS][OWN] */
    GLOBAL C *slopes = scores + OTHERS * OWN;                 /* [OTHERS][OWN] */
    GLOBAL C *other = slopes + OTHERS * OWN;                  /* [OTHERS][E] */
    GLOBAL C *other_2 = other + OTHERS * e;                   /* [OTHERS][V] */
    GLOBAL const stored(T) *x = OF_KEYS ? key : query, *x_2 = OF_KEYS ? value : grad,
                           *y = OF_KEYS ? query : key, *y_2 = OF_KEYS ? grad : value;
    int X = OF_KEYS ? ATTENTION_KEY : ATTENTION_QUERY,
        X_2 = OF_KEYS ? ATTENTION_VALUE : ATTENTION_GRAD,
        Y = OF_KEYS ? ATTENTION_QUERY : ATTENTION_KEY,
        Y_2 = OF_KEYS ? ATTENTION_GRAD : ATTENTION_VALUE;
    for (i64 task = GROUP_ID(0); task < p->n_tasks; task += GROUPS(0)) {
        tile_at t = find_tile(p, task, OWN);
        C factor[OWN], largest[OWN], total[OWN];
        EACH_LANE(i) {
            largest[i] = HIDDEN;
            total[i] = 0;
            factor[i] = MAKES_OUTPUT ? (C)1 : number(A)(p->scale);
        }
        load_columns(own, x, row_at(p, X, t.b, t.own, t.first), p->strides[X], t.n_own, e);
#if HAS_SLOPES
        load_columns(own_2, x_2, row_at(p, X_2, t.b, t.own, t.first), p->strides[X_2], t.n_own, v);
#endif
        for (i64 n = 0; n < OUT_WIDTH(p) * OWN; n++)
            sum[n] = 0;
#if MAKES_VALUE
        for (i64 n = 0; n < v * OWN; n++)
            sum_2[n] = 0;
#endif
        for (i64 h = t.other; h < t.other + t.n_heads; h++)
            for (i64 from = t.from; from < t.end; from += OTHERS) {
                int n = t.end - from < OTHERS ? (int)(t.end - from) : OTHERS;
                i64 of_query = OF_KEYS ? h : t.own;
                load_rows(other, y, row_at(p, Y, t.b, h, from), p->strides[Y], n, e);
                load_rows(other_2, y_2, row_at(p, Y_2, t.b, h, from), p->strides[Y_2], n, v);
                multiply(scores, false, other, e, 1, own, n, e);
                mask_scores(scores, mask, p, &t, of_query, from, n);
#if MAKES_OUTPUT
                soften(scores, n, largest, total, sum, v);
                multiply(sum, true, other_2, 1, v, scores, v, n);
#else
                i64 row = (t.b * p->heads + of_query) * p->queries + (OF_KEYS ? from : t.first);
#if HAS_SLOPES
                multiply(slopes, false, other_2, v, 1, own_2, n, v);
#endif
                weigh(scores, slopes, work, p, row, n, t.n_own);
#if HAS_SLOPES
                multiply(sum, true, other, 1, e, slopes, e, n);
#endif
#if MAKES_VALUE
                multiply(sum_2, true, other_2, 1, v, scores, v, n);
#endif
#endif
            }
#if MAKES_OUTPUT
        EACH_LANE(i) {
            factor[i] = total[i] == 0 ? (C)0 : DIVIDE((C)1, total[i]);
            total[i] = total[i] == 0 ? HIDDEN : largest[i] + LOG(A)(total[i]);
        }
        i64 at = row_at(p, ATTENTION_SECOND, t.b, t.own, t.first);
        for (int i = 0; i < t.n_own; i++)
            second[at + i * p->strides[ATTENTION_SECOND][2]] = total[i];
#endif
        i64 to = row_at(p, ATTENTION_OUT, t.b, t.own, t.first);
#if MAKES_OUTPUT || HAS_SLOPES
        store_columns(out, to, p->strides[ATTENTION_OUT], sum, t.n_own, OUT_WIDTH(p), factor);
#endif
#if MAKES_VALUE
        EACH_LANE(i) {
            factor[i] = 1;
        }
        to = row_at(p, ATTENTION_SECOND, t.b, t.own, t.first);
        store_columns(second, to, p->strides[ATTENTION_SECOND], sum_2, t.n_own, v, factor);
#endif
    }
}
