/* Softmax, log_softmax and their gradients, along one dimension, in one launch.
 *
 *   OP       OP_softmax and so on, below
 *   T        the dtype
 *   UNIT     1: the elements that lanes read and write are neighbours
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
#define BLOCKS(j) for (i64 j = ROWS ? lane * W : m; j < length; j += ROWS ? L * W : M)
#define COUNT(j) (ROWS ? (length - j < W ? (int)(length - j) : W) : here.lanes)
#define AT(k, j) (at[k] + (j)*p.along[k] + l * (UNIT ? 1 : p.lane_step[k]))

#define JOIN_MAX(other) \
    do { \
        top[0] = parts_top[other] > top[0] ? parts_top[other] : top[0]; \
        parts_top[id] = top[0]; \
    } while (0)
#define JOIN_SUM(other) \
    do { \
        ADD_WIDE(A, sum[0], lost[0], parts_sum[other]); \
        lost[0] += parts_lost[other]; \
        parts_sum[id] = sum[0]; \
        parts_lost[id] = lost[0]; \
    } while (0)
#define SPAN (ROWS ? L : M)
#define FIRST (ROWS ? id - lane : lane)

KERNEL(softmax)
(GLOBAL stored(T) * out, GLOBAL const stored(T) * in,
#if IS_BACKWARD
 GLOBAL const stored(T) * result, /* of the forward operator */
#endif
 const softmax_params p) {
#if GROUP > 1
#if !IS_BACKWARD
    LOCAL C parts_top[GROUP];
#endif
    LOCAL A parts_sum[GROUP], parts_lost[GROUP];
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

        C x[W];
        A sum[W], lost[W];
        for (int l = 0; l < W; l++)
            sum[l] = lost[l] = 0;
#if IS_BACKWARD
        C y[W];
        BLOCKS(j) {
            int count = COUNT(j);
            LANES(count, x[l] = load(T)(in, AT(1, j)));
#if IS_LOG
            LANES(count, ADD_WIDE(A, sum[l], lost[l], (A)x[l]));
#else
            LANES(count, y[l] = load(T)(result, AT(2, j)));
            LANES(count, ADD_WIDE(A, sum[l], lost[l], (A)x[l] * (A)y[l]));
#endif
        }
#else
        C top[W];
        for (int l = 0; l < W; l++)
            top[l] = (C)f32_of_bits(0xff800000u);
        BLOCKS(j) {
            int count = COUNT(j);
            LANES(count, x[l] = load(T)(in, AT(1, j)));
            LANES(count, top[l] = x[l] > top[l] ? x[l] : top[l]);
        }
#if ROWS
        for (int h = W / 2; h > 0; h /= 2)
            for (int l = 0; l < h; l++)
                top[l] = top[l + h] > top[l] ? top[l + h] : top[l];
#endif
#if GROUP > 1
        parts_top[id] = top[0];
        JOIN_TEAM(ROWS ? lane : m, SPAN, ROWS ? 1 : L, JOIN_MAX);
        top[0] = parts_top[FIRST];
#endif
        BLOCKS(j) {
            int count = COUNT(j);
            LANES(count, x[l] = load(T)(in, AT(1, j)));
            LANES(count, x[l] = EXP(T)(x[l] - top[LINE(l)]));
#if KEEPS
            LANES(count, store(T)(out, AT(0, j), x[l]));
#endif
            LANES(count, ADD_WIDE(A, sum[l], lost[l], (A)x[l]));
        }
#endif

#if ROWS
        for (int h = W / 2; h > 0; h /= 2)
            for (int l = 0; l < h; l++) {
                ADD_WIDE(A, sum[l], lost[l], sum[l + h]);
                lost[l] += lost[l + h];
            }
#endif
#if GROUP > 1
        parts_sum[id] = sum[0];
        parts_lost[id] = lost[0];
        JOIN_TEAM(ROWS ? lane : m, SPAN, ROWS ? 1 : L, JOIN_SUM);
        sum[0] = parts_sum[FIRST];
        lost[0] = parts_lost[FIRST];
        BARRIER();
#endif

        C factor[LINES];
        for (int l = 0; l < LINES; l++) {
            A total = TOTAL(sum[l], lost[l]);
            factor[l] = IS_BACKWARD ? (C)total : IS_LOG ? LOG(T)((C)total) : (C)DIVIDE(1, total);
        }
        BLOCKS(j) {
            int count = COUNT(j);
#if IS_BACKWARD
            LANES(count, x[l] = load(T)(in, AT(1, j)));
            LANES(count, y[l] = load(T)(result, AT(2, j)));
#if IS_LOG
            LANES(count, x[l] = x[l] - EXP(T)(y[l]) * factor[LINE(l)]);
#else
            LANES(count, x[l] = y[l] * (x[l] - factor[LINE(l)]));
#endif
#elif KEEPS
            LANES(count, x[l] = load(T)(out, AT(0, j)));
            LANES(count, x[l] = x[l] * factor[LINE(l)]);
#else
            LANES(count, x[l] = load(T)(in, AT(1, j)));
#if IS_LOG
            LANES(count, x[l] = x[l] - top[LINE(l)] - factor[LINE(l)]);
#else
            LANES(count, x[l] = EXP(T)(x[l] - top[LINE(l)]) * factor[LINE(l)]);
#endif
#endif
            LANES(count, store(T)(out, AT(0, j), x[l]));
        }
    }
}
