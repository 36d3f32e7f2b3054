/* Layer_norm, and its gradient by the input. The normalised dimensions make a line;
 * a team of work items has one line.
 *
 *   T            the dtype
 *   BACKWARD     1: the gradient
 *   WEIGHT       1: there is a weight
 *   BIAS         1: there is a bias
 *   UNIT         1: the elements of lines lie in a row, in all tensors
 *   STEPS        as in softmax.cl
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

#if STEPS
#define BLOCKS(j) \
    _Pragma("unroll") for (int s = 0; s < STEPS; s++) for (i64 j = (s * L + lane) * W, once_ = 1; \
                                                           once_; once_ = 0)
#define KEPT STEPS
#else
#define BLOCKS(j) for (i64 j = lane * W; j < length; j += L * W)
#define KEPT 1
enum { s = 0 };
#endif
#define COUNT(j) (length - j < W ? (int)(length - j) : W)
#if UNIT
#define GET(x, k, tensor) LOAD_LANES(count, x, tensor, at[k] + j, 1)
#define PUT(x, k, tensor) STORE_LANES(count, x, tensor, at[k] + j, 1)
#else
#define AT(k, j) (at[k] + walk(&p, k, 0, (int)p.inner, (INDEX)((j) + l)))
#define GET(x, k, tensor) LANES(count, (x)[l] = load(T)(tensor, AT(k, j)))
#define PUT(x, k, tensor) LANES(count, store(T)(tensor, AT(k, j), (x)[l]))
#endif

/* a and b, sums of this work item's lanes, become those of the line. */
#define STATES(X) X(A, a) X(A, b) LOST(X(A, lost_a) X(A, lost_b))
#define MERGE() \
    do { \
        ADD_WIDE(A, a[0], lost_a[0], OTHER(a)); \
        LOST(lost_a[0] += OTHER(lost_a)); \
        ADD_WIDE(A, b[0], lost_b[0], OTHER(b)); \
        LOST(lost_b[0] += OTHER(lost_b)); \
    } while (0)
#if L > 1
#define JOIN_ITEMS() JOIN_TEAM(STATES, MERGE, lane, L, 1)
#else
#define JOIN_ITEMS()
#endif
#define CLEAR_SUMS() \
    do { \
        for (int l = 0; l < SUMS; l++) \
            a[l] = b[l] = lost_a[l] = lost_b[l] = 0; \
    } while (0)
#define JOIN_SUMS_OF_LINE() \
    do { \
        for (int h = SUMS / 2; h > 0; h /= 2) \
            for (int l = 0; l < h; l++) { \
                ADD_WIDE(A, a[l], lost_a[l], a[l + h]); \
                lost_a[l] += lost_a[l + h]; \
                ADD_WIDE(A, b[l], lost_b[l], b[l + h]); \
                lost_b[l] += lost_b[l + h]; \
            } \
        JOIN_ITEMS(); \
    } while (0)
#define ADD_SUM(a, l, x) ADD_WIDE(A, a[(l) % SUMS], lost_##a[(l) % SUMS], x)
/* Between sweeps over what is kept: in f64 it would be twice as many registers. */
#if STEPS
#define FORGET() \
    for (int s = 0; s < STEPS; s++) \
        for (int l = 0; l < W; l++) \
    AFRESH(T)(x[s][l])
#else
#define FORGET()
#endif
/* Distances from the mean. Where sums are wider than elements, the mean is exact but for the wider
 * type's rounding, and in two numbers that elements can be taken from: GPUs have few units that convert
 * or compute f64. Not where f32 would end: below 2^100 a mean moves nothing beyond the largest. */
#if IS_COMPENSATED(T)
#define SPLIT_MEAN()
#define DISTANCE(x) ((A)(x)-near)
#define ADD_DISTANCE(l, d) b[(l) % SUMS] += (d)
#define NORMALISED(x, scale, other) ((C)((DISTANCE(x) - off) * rstd * (A)(scale) + (A)(other)))
#else
#define IS_LESS_THAN_LARGE(x) ((x) < LARGE && (x) > -LARGE)
#define LARGE f32_of_bits(0x71800000u) /* 2^100 */
#define SPLIT_MEAN() \
    bool is_usual = IS_LESS_THAN_LARGE(near); \
    C near_high = (C)near, near_low = (C)(near - (A)near_high)
#define SHORT_DISTANCE(x) (((x)-near_high) - near_low)
#define DISTANCE(x) (is_usual ? (A)SHORT_DISTANCE(x) : (A)(x)-near)
#define ADD_DISTANCE(l, d)
#define NORMALISED(x, scale, other) \
    (is_usual && IS_LESS_THAN_LARGE(rstd) && rstd > (A)(1 / LARGE) \
         ? SHORT_DISTANCE(x) * (C)rstd * (scale) + (other) \
         : (C)(((A)(x)-near) * rstd * (A)(scale) + (A)(other)))
#endif
#define SUM_A TOTAL(a[0], lost_a[0])
#define SUM_B TOTAL(b[0], lost_b[0])

KERNEL_OF_GROUP(GROUP, 1, layer_norm)
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
#if L > 1
    STATES(DECLARE_PART)
#endif
    int id = (int)LOCAL_ID(0), lane = LANE_OF(id);
    A n = (A)p.length;
    for (i64 t = 0; t < p.per; t++) {
        i64 first_team = ((i64)GROUP_ID(0) * p.per + t) * P, team = first_team + TEAM_OF(id);
        if (first_team >= p.n_teams)
            break;
        i64 length = team < p.n_teams ? p.length : 0;
        i64 at[6];
#pragma unroll
        for (int k = 0; k < 6; k++)
            at[k] =
                p.offsets[k] +
                (team < p.n_teams ? walk(&p, k, (int)p.inner, (int)p.loop.rank, (INDEX)team) : 0);
        C x[KEPT][W], scale[W];
        A a[SUMS], b[SUMS], lost_a[SUMS], lost_b[SUMS];
        LANES(W, scale[l] = 1);
#if WEIGHT
#define GET_SCALE() GET(scale, NORM_WEIGHT, weight)
#else
#define GET_SCALE()
#endif
/* What is kept is read the first time. */
#if STEPS
#define GET_AGAIN(x, k, tensor)
#else
#define GET_AGAIN(x, k, tensor) GET(x, k, tensor)
#endif

#if BACKWARD
#define NORMAL (((A)x[s][l] - mean) * rstd)
#define GRADIENT ((A)other[s][l] * (A)scale[l])
        C other[KEPT][W];
        A mean = 0, rstd = 0;
        if (length > 0) {
            mean = load(T)(means, at[NORM_MEAN]);
            rstd = load(T)(rstds, at[NORM_RSTD]);
        }
        CLEAR_SUMS();
        BLOCKS(j) {
            int count = COUNT(j);
            GET(x[s], NORM_INPUT, input);
            GET(other[s], NORM_OTHER, grad);
            GET_SCALE();
            LANES(count, ADD_SUM(a, l, GRADIENT));
            LANES(count, ADD_SUM(b, l, GRADIENT * NORMAL));
        }
        JOIN_SUMS_OF_LINE();
        A mean_gradient = SUM_A / n, slope = SUM_B / n;
        FORGET();
        BLOCKS(j) {
            int count = COUNT(j);
            GET_AGAIN(x[s], NORM_INPUT, input);
            GET_AGAIN(other[s], NORM_OTHER, grad);
            GET_SCALE();
            LANES(count, x[s][l] = (C)(rstd * (GRADIENT - mean_gradient - NORMAL * slope)));
            PUT(x[s], NORM_OUT, out);
        }
#else
        /* The mean first; then the distances from what came out, and how far off that was. */
        CLEAR_SUMS();
        BLOCKS(j) {
            int count = COUNT(j);
            GET(x[s], NORM_INPUT, input);
            LANES(count, ADD_SUM(a, l, (A)x[s][l]));
        }
        JOIN_SUMS_OF_LINE();
        A near = SUM_A / n;
        SPLIT_MEAN();
        FORGET();
        CLEAR_SUMS();
        BLOCKS(j) {
            int count = COUNT(j);
            GET_AGAIN(x[s], NORM_INPUT, input);
            LANES(count, A d = DISTANCE(x[s][l]); ADD_SUM(a, l, d * d); ADD_DISTANCE(l, d));
        }
        JOIN_SUMS_OF_LINE();
        A off = SUM_B / n, squares = SUM_A / n - off * off, variance = squares < 0 ? 0 : squares,
          rstd = DIVIDE(1, SQRT(variance + number_wide(p.eps)));
        if (lane == 0 && length > 0) {
            store(T)(means, at[NORM_MEAN], (C)(near + off));
            store(T)(rstds, at[NORM_RSTD], (C)rstd);
        }
        C other[W];
        LANES(W, other[l] = 0);
        FORGET();
        BLOCKS(j) {
            int count = COUNT(j);
            GET_AGAIN(x[s], NORM_INPUT, input);
            GET_SCALE();
#if BIAS
            GET(other, NORM_OTHER, bias);
#endif
            LANES(count, x[s][l] = NORMALISED(x[s][l], scale[l], other[l]));
            PUT(x[s], NORM_OUT, out);
        }
#endif
    }
}
