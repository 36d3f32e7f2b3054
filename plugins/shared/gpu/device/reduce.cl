/* Sum, prod, amax, amin, argmax, argmin, var. The input's dimensions are kept or reduced.
 * A team of work items makes a result, or as many as it reads side by side:
 *
 *   rows       lanes lie along the innermost reduced dimension, and end in one result
 *   columns    lanes lie along the innermost kept dimension, a result each
 *
 * Where there are few results, what is reduced is cut into chunks, whose states go to memory and
 * are put together by `merge`.
 *
 *   OP       OP_sum and so on, below
 *   T, R     the dtype of the input; of the output
 *   UNIT     1: the elements that lanes read are neighbours
 *   CHUNKS   1: write states for `merge`; 0: results
 *   INDEX, ROWS, L, M, P, W    see tiling.h
 * In `merge` L work items make a result, and M, P, W are 1. */
#include "plugins/shared/gpu/device/reduce.params.h"
#include "plugins/shared/gpu/device/tiling.h"

#define OP_sum 0
#define OP_prod 1
#define OP_var 2
#define OP_amax 3
#define OP_amin 4
#define OP_argmax 5
#define OP_argmin 6

#define AHEAD 4

#define IS_EXTREME (OP >= OP_amax)
#define IS_ARG (OP >= OP_argmax)
#define IS_MAX (OP == OP_amax || OP == OP_argmax)

/* A state is a, the sum, product or extreme so far; and
 *   b    what sums lose (tiling.h), or an extreme's index
 *   c    for var, where a is a sum of squared distances, the sum of these distances */
#if IS_EXTREME
typedef computed(T) A;
#else
typedef wide(T) A;
#endif
#if IS_ARG
typedef INDEX B;
#else
typedef A B;
#endif
#define HAS_B (IS_ARG || ((OP == OP_sum || OP == OP_var) && IS_COMPENSATED(T)))
#define HAS_C (OP == OP_var)

/* ---- states ------------------------------------------------------------------------------ */

#if OP == OP_prod
#define EMPTY 1
#elif !IS_EXTREME
#define EMPTY 0
#elif IS_FLOAT(T)
#define EMPTY ((A)f32_of_bits(IS_MAX ? 0xff800000u : 0x7f800000u))
#elif DTYPE(T) == DTYPE_i64
#define EMPTY (IS_MAX ? -9223372036854775807 - 1 : 9223372036854775807)
#else
#define EMPTY (IS_MAX ? -2147483647 - 1 : 2147483647)
#endif

#if IS_MAX
#define BEATS(x, y) ((x) > (y))
#else
#define BEATS(x, y) ((x) < (y))
#endif

/* The element x, number i of those that are reduced, comes after what is in the state. */
DEVICE void take(A *a, B *b, A x, INDEX i) {
#if OP == OP_prod
    *a *= x;
#elif !IS_EXTREME
    ADD_WIDE(A, *a, *b, x);
#elif IS_ARG
    bool better = BEATS(x, *a) | ((x != x) & (*a == *a));
    *a = better ? x : *a;
    *b = better ? i : *b;
#else
    *a = (BEATS(x, *a) | (x != x)) ? x : *a;
#endif
}

/* The state (a2, b2) is added. Indices decide between equals: states come in any order. */
DEVICE void join(A *a, B *b, A a2, B b2) {
#if IS_ARG
    bool other_nan = a2 != a2, own_nan = *a != *a;
    bool better = BEATS(a2, *a) || (other_nan && !own_nan) ||
                  ((a2 == *a || (other_nan && own_nan)) && b2 < *b);
    *a = better ? a2 : *a;
    *b = better ? b2 : *b;
#else
    take(a, b, a2, 0);
#if HAS_B
    *b += b2;
#endif
#endif
}

/* ---- elements to results, or to the states of chunks ------------------------------------- */

#if OP == OP_var
/* Sums of squared distances, and of distances: from `shift`, which is near the mean. */
#define TAKE(l, x, i) \
    do { \
        A distance_ = (A)(x)-shift[ROWS ? 0 : (l)]; \
        c[l] += distance_; \
        take(&a[l], &b[l], (distance_) * (distance_), 0); \
    } while (0)
#define SWEEPS 2
#else
#define TAKE(l, x, i) take(&a[l], &b[l], (A)(x), (INDEX)(i))
#define SWEEPS 1
#endif

/* What a work item has. */
#define STATES(X) X(A, a) PART_B(X(B, b)) PART_C(X(A, c))
#define MERGE() \
    do { \
        join(&a[0], &b[0], OTHER(a), OTHER_B); \
        PART_C(c[0] += OTHER(c)); \
    } while (0)
#if HAS_B
#define PART_B(...) __VA_ARGS__
#define OTHER_B OTHER(b)
#else
#define PART_B(...)
#define OTHER_B 0
#endif
#if HAS_C
#define PART_C(...) __VA_ARGS__
#else
#define PART_C(...)
#endif

/* States lie by their parts. */
#define N_STATES (p.n_chunks * p.n_outputs)

/* A result from its state. */
#if IS_ARG
#define RESULT(a, b) (b)
#else
#define RESULT(a, b) ((computed(R))TOTAL(a, b))
#endif

KERNEL(reduce)
(GLOBAL stored(R) * out, GLOBAL A *states, GLOBAL i64 *indices, GLOBAL const stored(T) * in,
 const reduce_params p) {
#if L * M * P > 1
    STATES(DECLARE_PART)
#endif
    int id = (int)LOCAL_ID(0), lane = LANE_OF(id), m = SHARE_OF(id);
    i64 begin_chunk = (i64)GROUP_ID(1) * p.chunk,
        n_chunk = p.n_reduced - begin_chunk < p.chunk ? p.n_reduced - begin_chunk : p.chunk;
    i64 share = (n_chunk + M - 1) / M, begin = begin_chunk + m * share,
        end = begin + share < begin_chunk + n_chunk ? begin + share : begin_chunk + n_chunk;
    for (i64 t = 0; t < p.per; t++) {
        i64 first_team = ((i64)GROUP_ID(0) * p.per + t) * P, team = first_team + TEAM_OF(id);
        if (first_team >= p.n_teams)
            break;
        place here = place_of(team, p.width, lane);
        i64 last = team < p.n_teams ? end : begin;
        i64 at[2] = {p.offsets[0] + here.column * p.steps[0],
                     p.offsets[1] + here.column * p.steps[1]};
        WALK(p.kept, 2, INDEX, here.outer, at);

        A a[W];
        B b[W];
#if OP == OP_var
        A c[W], shift[ROWS ? 1 : W];
        for (int l = 0; l < (ROWS ? 1 : W); l++)
            shift[l] = 0;
#endif
        for (int sweep = 0; sweep < SWEEPS; sweep++) {
            for (int l = 0; l < W; l++) {
                a[l] = EMPTY;
                /* So that the first of those equal to EMPTY is found. */
                b[l] = IS_ARG ? (B)(begin + (ROWS ? lane * W + l : 0)) : (B)0;
                PART_C(c[l] = 0);
            }
            i64 n;
            for (i64 r = begin; r < last; r += n) {
                INDEX runs = (INDEX)r / (INDEX)p.run, i = (INDEX)r - runs * (INDEX)p.run;
                i64 x[1] = {at[0] + i * p.run_step};
                WALK(p.reduced, 1, INDEX, runs, x);
                n = p.run - i < last - r ? p.run - i : last - r;
#if ROWS
#if !HAS_PACKS
                i64 step = UNIT ? 1 : p.run_step;
#endif
                i64 j = lane * W;
#if HAS_PACKS && OP != OP_var
                /* Some packs at once, for memory is far away; they are taken one after the other. */
                for (; j + (AHEAD - 1) * L * W + W <= n; j += AHEAD * L * W) {
                    computed(T) packs[AHEAD][W];
                    for (int k = 0; k < AHEAD; k++)
                        LOAD_LANES(W, packs[k], in, x[0] + j + k * L * W, 1);
                    for (int k = 0; k < AHEAD; k++)
                        for (int l = 0; l < W; l++)
                            TAKE(l, packs[k][l], r + j + k * L * W + l);
                }
#endif
                for (; j < n; j += L * W) {
#if HAS_PACKS
                    int count = n - j < W ? (int)(n - j) : W;
                    computed(T) pack[W];
                    LOAD_LANES(count, pack, in, x[0] + j, 1);
                    LANES(count, TAKE(l, pack[l], r + j + l));
#else
                    if (W == 1 || n - j >= W)
                        for (int l = 0; l < W; l++)
                            TAKE(l, load(T)(in, x[0] + (j + l) * step), r + j + l);
                    else
                        for (int l = 0; l < (int)(n - j); l++)
                            TAKE(l, load(T)(in, x[0] + (j + l) * step), r + j + l);
#endif
                }
#else
                i64 step = UNIT ? 1 : p.steps[0];
                for (i64 j = 0; j < n; j++)
                    for (int l = 0; l < (W == 1 ? here.lanes > 0 : here.lanes); l++)
                        TAKE(l, load(T)(in, x[0] + j * p.run_step + l * step), r + j);
#endif
            }
#if ROWS
            for (int h = W / 2; h > 0; h /= 2)
                for (int l = 0; l < h; l++) {
                    join(&a[l], &b[l], a[l + h], b[l + h]);
                    PART_C(c[l] += c[l + h]);
                }
#endif
#if GROUP > 1
            JOIN_TEAM(STATES, MERGE, ROWS ? m * L + lane : m, ROWS ? L * M : M, ROWS ? 1 : L);
#endif
#if OP == OP_var
            for (int l = 0; l < (ROWS ? 1 : W) && sweep == 0; l++)
                shift[l] = c[l] / (A)n_chunk;
#endif
        }

        if (m > 0 || ROWS * lane > 0 || team >= p.n_teams)
            continue;
        for (int l = 0; l < (ROWS ? 1 : here.lanes); l++) {
#if OP == OP_var
            A more = c[l] / (A)n_chunk, squares = TOTAL(a[l], b[l]) - c[l] * more,
              positive = squares < 0 ? 0 : squares;
#endif
#if CHUNKS
            i64 s = (i64)GROUP_ID(1) * p.n_outputs + here.outer * p.width + here.column + l;
            GLOBAL A *const to = states + p.states[0] + s;
#if OP == OP_var
            to[0] = positive;
            to[N_STATES] = shift[l];
            to[2 * N_STATES] = more;
#else
            to[0] = a[l];
#if IS_ARG
            indices[p.states[1] + s] = b[l];
#elif HAS_B
            to[N_STATES] = b[l];
#endif
#endif
#else
            i64 to = at[1] + l * p.steps[1];
#if OP == OP_var
            store(R)(out, to, (computed(R))DIVIDE(positive, number_wide(p.divisor)));
#else
            store(R)(out, to, RESULT(a[l], b[l]));
#endif
#endif
        }
    }
}

/* ---- the states of chunks to results ----------------------------------------------------- */

#if OP == OP_var
/* n elements, their mean as shift + more, and the sum of squared distances from it. T. Chan et al.,
 * Updating formulae and a pairwise algorithm for computing sample variances, 1979. */
DEVICE void join_var(A *n, A *squares, A *shift, A *more, A n2, A squares2, A shift2, A more2) {
    if (n2 == 0)
        return;
    if (*n == 0) {
        *n = n2;
        *squares = squares2;
        *shift = shift2;
        *more = more2;
        return;
    }
    A distance = (shift2 - *shift) + (more2 - *more), part = n2 / (*n + n2);
    *squares += squares2 + distance * distance * *n * part;
    *more += distance * part;
    *n += n2;
}
#define STATES_OF_VAR(X) X(A, n) X(A, squares) X(A, shift) X(A, more)
#define MERGE_VAR() \
    join_var(n, squares, shift, more, OTHER(n), OTHER(squares), OTHER(shift), OTHER(more))
#endif

KERNEL(merge)
(GLOBAL stored(R) * out, GLOBAL const A *states, GLOBAL const i64 *indices, const reduce_params p) {
    int id = (int)LOCAL_ID(0);
    i64 o = (i64)GROUP_ID(0), share = (p.n_chunks + L - 1) / L, begin = id * share,
        end = begin + share < p.n_chunks ? begin + share : p.n_chunks;
    i64 outer = o / p.width;
    i64 at[2] = {0, p.offsets[1] + (o - outer * p.width) * p.steps[1]};
    WALK(p.kept, 2, i64, outer, at);
    GLOBAL const A *const from = states + p.states[0] + o;
#if OP == OP_var
#if L > 1
    STATES_OF_VAR(DECLARE_PART)
#endif
    A n[1] = {0}, squares[1] = {0}, shift[1] = {0}, more[1] = {0};
    for (i64 k = begin; k < end; k++) {
        i64 rest = p.n_reduced - k * p.chunk, s = k * p.n_outputs;
        join_var(n, squares, shift, more, (A)(rest < p.chunk ? rest : p.chunk), from[s],
                 from[N_STATES + s], from[2 * N_STATES + s]);
    }
#if L > 1
    JOIN_TEAM(STATES_OF_VAR, MERGE_VAR, id, L, 1);
#endif
    if (id == 0)
        store(R)(out, at[1], (computed(R))DIVIDE(squares[0], number_wide(p.divisor)));
#else
#if L > 1
    STATES(DECLARE_PART)
#endif
    A a[1] = {EMPTY};
    B b[1] = {IS_ARG ? (B)p.n_reduced : (B)0};
    for (i64 k = begin; k < end; k++) {
        i64 s = k * p.n_outputs;
#if IS_ARG
        join(a, b, from[s], (B)indices[p.states[1] + o + s]);
#elif HAS_B
        join(a, b, from[s], from[N_STATES + s]);
#else
        join(a, b, from[s], 0);
#endif
    }
#if L > 1
    JOIN_TEAM(STATES, MERGE, id, L, 1);
#endif
    if (id == 0)
        store(R)(out, at[1], RESULT(a[0], b[0]));
#endif
}
