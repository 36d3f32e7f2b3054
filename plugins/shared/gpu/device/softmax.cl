/* Softmax, log_softmax and their gradients, along one dimension, in one launch.
 *
 *   OP       OP_softmax and so on, below
 *   T        the dtype
 *   UNIT     1: the elements that lanes read and write are neighbours
 *   STEPS    so many times W elements of a line are all that a work item has, and it keeps them in
 *            registers; 0: they are read for each sweep
 *   INDEX, ROWS, L, M, P, W    see tiling.h */
#include "plugins/shared/gpu/device/softmax.params.h"
#include "plugins/shared/gpu/device/tiling.h"

#define OP_softmax 0
#define OP_log_softmax 1
#define OP_softmax_backward 2
#define OP_log_softmax_backward 3

#define IS_LOG (OP == OP_log_softmax || OP == OP_log_softmax_backward)
#define IS_BACKWARD (OP >= OP_softmax_backward)
/* Exponentials wait in the output for their sum, where it has the digits. */
#define KEEPS (OP == OP_softmax && (DTYPE(T) == DTYPE_f32 || DTYPE(T) == DTYPE_f64))

typedef computed(T) C;
typedef wide(T) A;

/* The work item's elements: blocks of them, in each a lane's own. What is of a line is at LINE(l).
 */
#define LINE(l) (ROWS ? 0 : (l))
#define LINES (ROWS ? 1 : W)
#if STEPS
#define BLOCKS(j) \
    _Pragma("unroll") for (int s = 0; s < STEPS; s++) for (i64 j = (s * L + lane) * W, once_ = 1; \
                                                           once_; once_ = 0)
#define KEPT STEPS
#define COUNT(j) (length - j < W ? (int)(length - j) : W)
#else
#define BLOCKS(j) for (i64 j = ROWS ? lane * W : m; j < length; j += ROWS ? L * W : M)
#define KEPT 1
#define COUNT(j) (ROWS ? (length - j < W ? (int)(length - j) : W) : here.lanes)
enum { s = 0 };
#endif
#define GET(x, k, tensor) \
    LOAD_LANES(count, x[s], tensor, at[k] + j * p.along[k], UNIT ? 1 : p.lane_step[k])
#define PUT(x) STORE_LANES(count, x[s], out, at[0] + j * p.along[0], UNIT ? 1 : p.lane_step[0])
/* Where they are not kept. */
#if STEPS
#define GET_AGAIN(x, k, tensor)
#else
#define GET_AGAIN(x, k, tensor) GET(x, k, tensor)
#endif

#define STATES_OF_MAX(X) X(C, top)
#define MERGE_MAX() top[0] = OTHER(top) > top[0] ? OTHER(top) : top[0]
#define STATES_OF_SUM(X) X(A, sum) LOST(X(A, lost))
#define MERGE_SUM() \
    do { \
        ADD_WIDE(A, sum[0], lost[0], OTHER(sum)); \
        LOST(lost[0] += OTHER(lost)); \
    } while (0)
#define ADD_SUM(l, x) ADD_WIDE(A, sum[(l) % SUMS], lost[(l) % SUMS], x)
#define SPAN (ROWS ? L : M)
#define JOIN(STATES, MERGE) JOIN_TEAM(STATES, MERGE, ROWS ? lane : m, SPAN, ROWS ? 1 : L)

KERNEL_OF_GROUP(GROUP, 1, softmax)
(GLOBAL stored(T) * out, GLOBAL const stored(T) * in,
#if IS_BACKWARD
 GLOBAL const stored(T) * result, /* of the forward operator */
#endif
 const softmax_params p) {
#if GROUP > 1
#if !IS_BACKWARD
    STATES_OF_MAX(DECLARE_PART)
#endif
    STATES_OF_SUM(DECLARE_PART)
#endif
    int id = (int)LOCAL_ID(0), lane = LANE_OF(id), m = SHARE_OF(id);
    for (i64 t = 0; t < p.per; t++) {
        i64 first_team = ((i64)GROUP_ID(0) * p.per + t) * P, team = first_team + TEAM_OF(id);
        if (first_team >= p.n_teams)
            break;
        place here = place_of(team, p.width, lane);
        i64 length = team < p.n_teams ? p.length : 0;
        i64 at[3];
        for (int k = 0; k < 3; k++)
            at[k] = p.offsets[k] + here.column * p.steps[k];
        WALK(p.others, 3, INDEX, here.outer, at);

        C x[KEPT][W];
        A sum[SUMS], lost[SUMS];
        for (int l = 0; l < SUMS; l++)
            sum[l] = lost[l] = 0;
#if IS_BACKWARD
        C y[KEPT][W];
        BLOCKS(j) {
            int count = COUNT(j);
            GET(x, 1, in);
#if IS_LOG
#if STEPS
            GET(y, 2, result);
#endif
            LANES(count, ADD_SUM(l, (A)x[s][l]));
#else
            GET(y, 2, result);
            LANES(count, ADD_SUM(l, (A)x[s][l] * (A)y[s][l]));
#endif
        }
#else
        C top[W];
        for (int l = 0; l < W; l++)
            top[l] = (C)f32_of_bits(0xff800000u);
        BLOCKS(j) {
            int count = COUNT(j);
            GET(x, 1, in);
            LANES(count, top[l] = x[s][l] > top[l] ? x[s][l] : top[l]);
        }
#if ROWS
        for (int h = W / 2; h > 0; h /= 2)
            for (int l = 0; l < h; l++)
                top[l] = top[l + h] > top[l] ? top[l + h] : top[l];
#endif
#if GROUP > 1
        JOIN(STATES_OF_MAX, MERGE_MAX);
#endif
        BLOCKS(j) {
            int count = COUNT(j);
            GET_AGAIN(x, 1, in);
#if STEPS && IS_LOG
            LANES(count, ADD_SUM(l, (A)EXP(T)(x[s][l] - top[LINE(l)])));
#else
            LANES(count, x[s][l] = EXP(T)(x[s][l] - top[LINE(l)]));
#if KEEPS && !STEPS
            PUT(x);
#endif
            LANES(count, ADD_SUM(l, (A)x[s][l]));
#endif
        }
#endif

#if ROWS
        for (int h = SUMS / 2; h > 0; h /= 2)
            for (int l = 0; l < h; l++) {
                ADD_WIDE(A, sum[l], lost[l], sum[l + h]);
                lost[l] += lost[l + h];
            }
#endif
#if GROUP > 1
        JOIN(STATES_OF_SUM, MERGE_SUM);
#endif

        C factor[LINES];
        for (int l = 0; l < LINES; l++) {
            A total = TOTAL(sum[l], lost[l]);
            factor[l] = IS_BACKWARD ? (C)total : IS_LOG ? LOG(T)((C)total) : (C)DIVIDE(1, total);
        }
        BLOCKS(j) {
            int count = COUNT(j);
#if IS_BACKWARD
            GET_AGAIN(x, 1, in);
            GET_AGAIN(y, 2, result);
#if IS_LOG
            LANES(count, x[s][l] = x[s][l] - EXP(T)(y[s][l]) * factor[LINE(l)]);
#else
            LANES(count, x[s][l] = y[s][l] * (x[s][l] - factor[LINE(l)]));
#endif
#elif IS_LOG
            GET_AGAIN(x, 1, in);
            LANES(count, x[s][l] = x[s][l] - top[LINE(l)] - factor[LINE(l)]);
#elif STEPS
            LANES(count, x[s][l] = x[s][l] * factor[LINE(l)]);
#elif KEEPS
            GET(x, 0, out);
            LANES(count, x[s][l] = x[s][l] * factor[LINE(l)]);
#else
            GET(x, 1, in);
            LANES(count, x[s][l] = EXP(T)(x[s][l] - top[LINE(l)]) * factor[LINE(l)]);
#endif
            PUT(x);
        }
    }
}
