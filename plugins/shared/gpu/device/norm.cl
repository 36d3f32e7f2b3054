/* Layer_norm, and its gradient by the input. The normalised dimensions make a line;
 * a team of work items has one line.
 *
 *   T            the dtype
 *   BACKWARD     1: the gradient
 *   WEIGHT       1: there is a weight
 *   BIAS         1: there is a bias
 *   UNIT         1: the elements of lines lie in a row, in all tensors
 *   INDEX, L, M, P, W    see tiling.h; M is 1 */
#define ROWS 1
#include "plugins/shared/gpu/device/norm.params.h"
#include "plugins/shared/gpu/device/tiling.h"

typedef computed(T) C;
typedef wide(T) A;

/* Where element or line i of tensor k lies, by dimensions `from` .. `to` - 1. */
DEVICE i64 walk(const norm_params *p, int k, int from, int to, INDEX i) {
    i64 at = 0;
    for (int d = from; d < to; d++) {
        INDEX size = (INDEX)p->loop.sizes[d], next = i / size;
        at += (i - next * size) * p->loop.strides[k][d];
        i = next;
    }
    return at;
}

#define BLOCKS(j) for (i64 j = lane * W; j < length; j += L * W)
#define COUNT(j) (length - j < W ? (int)(length - j) : W)
#define AT(k, j) (at[k] + (UNIT ? (j) + l : walk(&p, k, 0, (int)p.inner, (INDEX)((j) + l))))

/* a and b, sums of this work item's lanes, become those of the line. */
#define JOIN_SUMS(other) \
    do { \
        ADD_WIDE(A, a[0], lost_a[0], parts_a[other]); \
        lost_a[0] += parts_lost_a[other]; \
        ADD_WIDE(A, b[0], lost_b[0], parts_b[other]); \
        lost_b[0] += parts_lost_b[other]; \
        SHARE_SUMS(); \
    } while (0)
#define SHARE_SUMS() \
    do { \
        parts_a[id] = a[0]; \
        parts_b[id] = b[0]; \
        parts_lost_a[id] = lost_a[0]; \
        parts_lost_b[id] = lost_b[0]; \
    } while (0)
#if L > 1
#define JOIN_ITEMS() \
    do { \
        SHARE_SUMS(); \
        JOIN_TEAM(lane, L, 1, JOIN_SUMS); \
        a[0] = parts_a[id - lane]; \
        b[0] = parts_b[id - lane]; \
        lost_a[0] = parts_lost_a[id - lane]; \
        lost_b[0] = parts_lost_b[id - lane]; \
        BARRIER(); \
    } while (0)
#else
#define JOIN_ITEMS()
#endif
#define CLEAR_SUMS() \
    do { \
        for (int l = 0; l < W; l++) \
            a[l] = b[l] = lost_a[l] = lost_b[l] = 0; \
    } while (0)
#define JOIN_SUMS_OF_LINE() \
    do { \
        for (int h = W / 2; h > 0; h /= 2) \
            for (int l = 0; l < h; l++) { \
                ADD_WIDE(A, a[l], lost_a[l], a[l + h]); \
                lost_a[l] += lost_a[l + h]; \
                ADD_WIDE(A, b[l], lost_b[l], b[l + h]); \
                lost_b[l] += lost_b[l + h]; \
            } \
        JOIN_ITEMS(); \
    } while (0)
#define SUM_A TOTAL(a[0], lost_a[0])
#define SUM_B TOTAL(b[0], lost_b[0])

KERNEL(layer_norm)
(GLOBAL stored(T) * out, GLOBAL const stored(T) * input,
#if WEIGHT
 GLOBAL const stored(T) * weight,
#endif
#if BACKWARD
 GLOBAL const stored(T) * grad, GLOBAL const stored(T) * means, GLOBAL const stored(T) * rstds,
#else
#if BIAS
 GLOBAL const stored(T) * bias,
#endif
 GLOBAL stored(T) * means, GLOBAL stored(T) * rstds,
#endif
 const norm_params p) {
#if GROUP > 1
    LOCAL A parts_a[GROUP], parts_b[GROUP], parts_lost_a[GROUP], parts_lost_b[GROUP];
#endif
    int id = (int)LOCAL_ID(0), lane = LANE_OF(id);
    A n = (A)p.length;
    for (i64 t = 0; t < p.per; t++) {
        i64 first_team = ((i64)GROUP_ID(0) * p.per + t) * P, team = first_team + TEAM_OF(id);
        if (first_team >= p.n_teams)
            break;
        i64 length = team < p.n_teams ? p.length : 0;
        i64 at[6];
        for (int k = 0; k < 6; k++)
            at[k] =
                p.offsets[k] +
                (team < p.n_teams ? walk(&p, k, (int)p.inner, (int)p.loop.rank, (INDEX)team) : 0);
        C x[W], scale[W], other[W];
        A a[W], b[W], lost_a[W], lost_b[W];
        LANES(W, scale[l] = 1);
        LANES(W, other[l] = 0);
#if BACKWARD
        A mean = 0, rstd = 0;
        if (length > 0) {
            mean = load(T)(means, at[NORM_MEAN]);
            rstd = load(T)(rstds, at[NORM_RSTD]);
        }
#define LOAD(j) \
    LANES(count, x[l] = load(T)(input, AT(NORM_INPUT, j))); \
    LANES(count, other[l] = load(T)(grad, AT(NORM_OTHER, j))); \
    LOAD_SCALE(j)
#define NORMAL (((A)x[l] - mean) * rstd)
#define GRADIENT ((A)other[l] * (A)scale[l])
#else
#define LOAD(j) LANES(count, x[l] = load(T)(input, AT(NORM_INPUT, j)))
#endif
#if WEIGHT
#define LOAD_SCALE(j) LANES(count, scale[l] = load(T)(weight, AT(NORM_WEIGHT, j)))
#else
#define LOAD_SCALE(j)
#endif

#if BACKWARD
        CLEAR_SUMS();
        BLOCKS(j) {
            int count = COUNT(j);
            LOAD(j);
            LANES(count, ADD_WIDE(A, a[l], lost_a[l], GRADIENT));
            LANES(count, ADD_WIDE(A, b[l], lost_b[l], GRADIENT * NORMAL));
        }
        JOIN_SUMS_OF_LINE();
        A mean_gradient = SUM_A / n, slope = SUM_B / n;
        BLOCKS(j) {
            int count = COUNT(j);
            LOAD(j);
            LANES(count, x[l] = (C)(rstd * (GRADIENT - mean_gradient - NORMAL * slope)));
            LANES(count, store(T)(out, AT(NORM_OUT, j), x[l]));
        }
#else
        /* The mean first; then the distances from what came out, and how far off that was. */
        CLEAR_SUMS();
        BLOCKS(j) {
            int count = COUNT(j);
            LOAD(j);
            LANES(count, ADD_WIDE(A, a[l], lost_a[l], (A)x[l]));
        }
        JOIN_SUMS_OF_LINE();
        A near = SUM_A / n;
        CLEAR_SUMS();
        BLOCKS(j) {
            int count = COUNT(j);
            LOAD(j);
            LANES(count, ADD_WIDE(A, a[l], lost_a[l], ((A)x[l] - near) * ((A)x[l] - near)));
            LANES(count, b[l] += (A)x[l] - near);
        }
        JOIN_SUMS_OF_LINE();
        A off = SUM_B / n, squares = SUM_A / n - off * off, variance = squares < 0 ? 0 : squares,
          rstd = DIVIDE(1, SQRT(variance + number_wide(p.eps)));
        if (lane == 0 && length > 0) {
            store(T)(means, at[NORM_MEAN], (C)(near + off));
            store(T)(rstds, at[NORM_RSTD], (C)rstd);
        }
        BLOCKS(j) {
            int count = COUNT(j);
            LOAD(j);
            LOAD_SCALE(j);
#if BIAS
            LANES(count, other[l] = load(T)(bias, AT(NORM_OTHER, j)));
#endif
            LANES(count, x[l] = (C)((((A)x[l] - near) - off) * rstd * (A)scale[l] + (A)other[l]));
            LANES(count, store(T)(out, AT(NORM_OUT, j), x[l]));
        }
#endif
    }
}
