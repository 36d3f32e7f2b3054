/* Attention without the matrix of all scores (Dao et al., arXiv:2205.14135), and its gradients. A work item
 * has W rows of the tensor that is made, and their share of the scores with STEP rows of the other
 * side at a time: queries of OUT 0 and 1, keys of OUT 2 and 3. On a CPU W is a vector; else it is 1, and
 * PARTS neighbours share the features of one row.
 *
 *   OUT          what is made: 0 the output and logsumexp, 1 the gradient of query, 2 of key, 3 of value
 *   T            the dtype
 *   A            what it is computed in, f32 or f64
 *   E, V         features of query and key, and of value
 *   MASK         1: there is an attn_mask
 *   CAUSAL       1: key j is hidden from queries before it
 *   UNIT         1: features lie in a row, in all tensors
 *   STEP, PARTS, W
 *   GROUP        work items of a group */
#include "plugins/shared/gpu/device/attention.params.h"

typedef computed(A) C;

#if W > 1
typedef lanes(A, W) LANES_OF;
#define GATHER(p) load_lanes(W, p)
#define SPREAD(p, v) store_lanes(W, v, p)
#else
typedef C LANES_OF;
#define GATHER(p) ((p)[0])
#define SPREAD(p, v) ((p)[0] = (v))
#endif
/* Registers have no addresses; a CPU's features lie in memory. */
#if IS_CPU
#define EACH_FEATURE(f, n) for (int f = 0; f < (n); f++)
#else
#define EACH_FEATURE(f, n) _Pragma("unroll") for (int f = 0; f < (n); f++)
#endif
#define EACH_STEP(j) _Pragma("unroll") for (int j = 0; j < STEP; j++)
#define EACH_LANE(l) _Pragma("unroll") for (int l = 0; l < W; l++)

/* x of a row's lanes, y a number. */
#if IS_CPU
#pragma OPENCL FP_CONTRACT ON
#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))
#else
#define MULTIPLY_ADD(x, y, z) FMA(x, y, z)
#endif

#define OF_KEYS (OUT >= 2)
#define HAS_SLOPES (OUT == 1 || OUT == 2)
/* Features of a work item, and of what it sums up. */
#define E_PART ((E + PARTS - 1) / PARTS)
#define V_PART ((V + PARTS - 1) / PARTS)
#define SUMS (HAS_SLOPES ? E_PART : V_PART)
#define N_SUMS (HAS_SLOPES ? E : V)
#define IS_FEATURE(f, part, n) ((n) % PARTS == 0 || (f) < (n))
#define FEATURE(k, f) ((i64)(f) * (UNIT ? 1 : p.strides[k][3]))
#define ROW(k, b, h, i) \
    (p.offsets[k] + (b)*p.strides[k][0] + (h)*p.strides[k][1] + (i)*p.strides[k][2])
#define SMALLEST ((C)f32_of_bits(0xff800000u)) /* -infinity */

/* Row f of every lane of a tensor: x[f] of type LANES_OF. */
#define LOAD_ROWS(x, n_part, n, tensor, k, b, h) \
    EACH_FEATURE(f, n_part) { \
        int at_ = part * (n_part) + f; \
        C lanes_[W]; \
        EACH_LANE(l) { \
            lanes_[l] = IS_FEATURE(at_, part, n) \
                            ? load(T)(tensor, ROW(k, b, h, row[l]) + FEATURE(k, at_)) \
                            : (C)0; \
        } \
        x[f] = GATHER(lanes_); \
    }

/* s[j] += x[f] * feature f of row at[j] of a tensor. */
#define ADD_PRODUCTS(s, x, n_part, n, tensor, k, at) \
    EACH_FEATURE(f, n_part) { \
        int at_ = part * (n_part) + f; \
        if (IS_FEATURE(at_, part, n)) { \
            EACH_STEP(j) { \
                s[j] = MULTIPLY_ADD(x[f], load(T)(tensor, at[j] + FEATURE(k, at_)), s[j]); \
            } \
        } \
    }

/* What is summed up, times row j of another tensor. */
#if OUT == 0
#define ADDED(i) load(T)(value, i)
#define OF_ADDED ATTENTION_VALUE
#elif OUT == 1
#define ADDED(i) load(T)(key, i)
#define OF_ADDED ATTENTION_KEY
#elif OUT == 2
#define ADDED(i) load(T)(query, i)
#define OF_ADDED ATTENTION_QUERY
#else
#define ADDED(i) load(T)(grad, i)
#define OF_ADDED ATTENTION_GRAD
#endif
#define ADD_TO_SUM(f, j) \
    do { \
        int at_ = part * SUMS + f; \
        if (IS_FEATURE(at_, part, N_SUMS)) \
            sums[f] = MULTIPLY_ADD(s[j], ADDED(at[j] + FEATURE(OF_ADDED, at_)), sums[f]); \
    } while (0)

/* Sums of the parts of a row, in all of them. */
#if PARTS > 1
#define JOIN_PARTS(s, n) \
    do { \
        BARRIER(); \
        for (int j = 0; j < (n); j++) \
            parts[j][id] = s[j]; \
        BARRIER(); \
        for (int j = 0; j < (n); j++) { \
            C sum_ = 0; \
            for (int q = 0; q < PARTS; q++) \
                sum_ += parts[j][id - part + q]; \
            s[j] = sum_; \
        } \
    } while (0)
#else
#define JOIN_PARTS(s, n) (void)0
#endif

KERNEL_OF_GROUP(GROUP, 1, attention)
(GLOBAL const stored(T) * query, GLOBAL const stored(T) * key,
#if OUT != 3
 GLOBAL const stored(T) * value,
#endif
#if MASK
 GLOBAL const stored(A) * mask,
#endif
#if OUT == 0
 GLOBAL stored(A) * logsumexp,
#else
 GLOBAL const stored(A) * logsumexp, GLOBAL const stored(T) * grad,
#endif
#if HAS_SLOPES
 GLOBAL const stored(T) * output,
#endif
 GLOBAL stored(T) * out, const attention_params p) {
#if PARTS > 1
    LOCAL C parts[STEP][GROUP];
#endif
    int id = (int)LOCAL_ID(0), part = id % PARTS;
    i64 block = (i64)GROUP_ID(0) % p.per, head = (i64)GROUP_ID(0) / p.per;
    i64 n_heads = OF_KEYS ? p.heads / p.share : p.heads;
    i64 b = head / n_heads;
    head %= n_heads;
    i64 group = OF_KEYS ? head : head / p.share; /* of key and value */
    i64 first_of_group = block * (GROUP / PARTS) * W, n_rows = OF_KEYS ? p.keys : p.queries;
    i64 first = first_of_group + (i64)(id / PARTS) * W, row[W];
    EACH_LANE(l) {
        row[l] = first + l < n_rows ? first + l : n_rows - 1;
    }
    C scale = number(A)(p.scale);
    LANES_OF sums[SUMS], x[E_PART];
    EACH_FEATURE(f, SUMS) {
        sums[f] = 0;
    }
#if OF_KEYS
    LOAD_ROWS(x, E_PART, E, key, ATTENTION_KEY, b, head)
#else
    LOAD_ROWS(x, E_PART, E, query, ATTENTION_QUERY, b, head)
#endif
#if OUT == 0
    C largest[W], total[W];
    EACH_LANE(l) {
        largest[l] = SMALLEST;
        total[l] = 0;
    }
#elif OUT == 1
    LANES_OF y[V_PART], means[1];
    C base[W], mean[W];
    LOAD_ROWS(y, V_PART, V, output, ATTENTION_OUTPUT, b, head)
    means[0] = 0;
    EACH_FEATURE(f, V_PART) {
        C lanes_[W];
        int at_ = part * V_PART + f;
        EACH_LANE(l) {
            lanes_[l] = IS_FEATURE(at_, part, V)
                            ? load(T)(grad, ROW(ATTENTION_GRAD, b, head, row[l]) +
                                                FEATURE(ATTENTION_GRAD, at_))
                            : (C)0;
        }
        LANES_OF one = GATHER(lanes_);
        means[0] += one * y[f];
        y[f] = one;
    }
    JOIN_PARTS(means, 1);
    SPREAD(mean, means[0]);
    EACH_LANE(l) {
        base[l] = load(A)(logsumexp, ROW(ATTENTION_LOGSUMEXP, b, head, row[l]));
        base[l] = base[l] == SMALLEST ? -SMALLEST : base[l]; /* all weights are 0 */
    }
#elif OUT == 2
    LANES_OF y[V_PART];
    LOAD_ROWS(y, V_PART, V, value, ATTENTION_VALUE, b, head)
#endif

    i64 from = 0, end = OF_KEYS ? p.queries : p.keys;
#if CAUSAL && OF_KEYS
    from = first_of_group;
#elif CAUSAL
    if (first_of_group + (GROUP / PARTS) * W < end)
        end = first_of_group + (GROUP / PARTS) * W;
#endif
    for (i64 h = OF_KEYS ? head * p.share : head, h_end = h + (OF_KEYS ? p.share : 1); h < h_end;
         h++)
        for (i64 n = from; n < end; n += STEP) {
            LANES_OF s[STEP];
            C w[STEP][W];
            i64 other[STEP], at[STEP];
            EACH_STEP(j) {
                other[j] = n + j < end ? n + j : end - 1;
                s[j] = 0;
            }
#if OF_KEYS
            EACH_STEP(j) {
                at[j] = ROW(ATTENTION_QUERY, b, h, other[j]);
            }
            ADD_PRODUCTS(s, x, E_PART, E, query, ATTENTION_QUERY, at)
#else
            EACH_STEP(j) {
                at[j] = ROW(ATTENTION_KEY, b, group, other[j]);
            }
            ADD_PRODUCTS(s, x, E_PART, E, key, ATTENTION_KEY, at)
#endif
            JOIN_PARTS(s, STEP);
            EACH_STEP(j) {
                SPREAD(w[j], s[j]);
                EACH_LANE(l) {
#if MASK || CAUSAL
                    i64 i = OF_KEYS ? other[j] : row[l], k = OF_KEYS ? row[l] : other[j];
#endif
                    C score = w[j][l] * scale;
#if MASK
                    score += load(A)(mask, ROW(ATTENTION_MASK, b, h, i) +
                                               k * p.strides[ATTENTION_MASK][3]);
#endif
                    bool hidden = n + j >= end;
#if CAUSAL
                    hidden = hidden || k > i;
#endif
                    w[j][l] = hidden ? SMALLEST : score;
                }
            }

#if OUT == 0
            C factor[W];
            EACH_LANE(l) {
                C next = largest[l];
                EACH_STEP(j) {
                    next = w[j][l] > next ? w[j][l] : next;
                }
                C of = next == SMALLEST ? (C)0 : next; /* of nothing but -infinity */
                factor[l] = EXP(A)(largest[l] - of);
                total[l] *= factor[l];
                largest[l] = next;
                EACH_STEP(j) {
                    w[j][l] = EXP(A)(w[j][l] - of);
                    total[l] += w[j][l];
                }
            }
            LANES_OF moved = GATHER(factor);
            EACH_FEATURE(f, SUMS) {
                sums[f] *= moved;
            }
#elif OUT == 1
            EACH_STEP(j) {
                EACH_LANE(l) {
                    w[j][l] = EXP(A)(w[j][l] - base[l]);
                }
            }
#else
            EACH_STEP(j) {
                C base = load(A)(logsumexp, ROW(ATTENTION_LOGSUMEXP, b, h, other[j]));
                base = base == SMALLEST ? -SMALLEST : base;
                EACH_LANE(l) {
                    w[j][l] = EXP(A)(w[j][l] - base);
                }
            }
#endif

#if HAS_SLOPES
            EACH_STEP(j) {
                s[j] = 0;
            }
#endif
#if OUT == 1
            EACH_STEP(j) {
                at[j] = ROW(ATTENTION_VALUE, b, group, other[j]);
            }
            ADD_PRODUCTS(s, y, V_PART, V, value, ATTENTION_VALUE, at)
            JOIN_PARTS(s, STEP);
            EACH_STEP(j) {
                C slope[W];
                SPREAD(slope, s[j]);
                EACH_LANE(l) {
                    w[j][l] *= slope[l] - mean[l];
                }
            }
#elif OUT == 2
            i64 at_output[STEP];
            EACH_STEP(j) {
                at[j] = ROW(ATTENTION_GRAD, b, h, other[j]);
                at_output[j] = ROW(ATTENTION_OUTPUT, b, h, other[j]);
            }
            EACH_FEATURE(f, V_PART) { /* value - output, whose product with grad is the slope */
                int at_ = part * V_PART + f;
                if (IS_FEATURE(at_, part, V)) {
                    EACH_STEP(j) {
                        LANES_OF off =
                            y[f] - load(T)(output, at_output[j] + FEATURE(ATTENTION_OUTPUT, at_));
                        s[j] = MULTIPLY_ADD(
                            off, load(T)(grad, at[j] + FEATURE(ATTENTION_GRAD, at_)), s[j]);
                    }
                }
            }
            JOIN_PARTS(s, STEP);
            EACH_STEP(j) {
                C slope[W];
                SPREAD(slope, s[j]);
                EACH_LANE(l) {
                    w[j][l] *= slope[l];
                }
            }
#endif

            EACH_STEP(j) {
                at[j] = ROW(OF_ADDED, b, OUT < 2 ? group : h, other[j]);
                s[j] = GATHER(w[j]);
            }
            if (n + STEP <= end)
                EACH_FEATURE(f, SUMS) {
                    EACH_STEP(j) {
                        ADD_TO_SUM(f, j);
                    }
                }
            else
                EACH_STEP(j) {
                    if (n + j < end)
                        EACH_FEATURE(f, SUMS) {
                            ADD_TO_SUM(f, j);
                        }
                }
        }

    C share[W];
    EACH_LANE(l) {
#if OUT == 0
        share[l] = total[l] == 0 ? (C)0 : DIVIDE((C)1, total[l]);
        if (part == 0 && first + l < n_rows)
            store(A)(logsumexp, ROW(ATTENTION_LOGSUMEXP, b, head, row[l]),
                     largest[l] + LOG(A)(total[l]));
#else
        share[l] = OUT == 3 ? (C)1 : scale;
#endif
    }
    LANES_OF shares = GATHER(share);
    EACH_FEATURE(f, SUMS) {
        int at_ = part * SUMS + f;
        C lanes_[W];
        SPREAD(lanes_, sums[f] * shares);
        EACH_LANE(l) {
            if (first + l < n_rows && IS_FEATURE(at_, part, N_SUMS))
                store(T)(out, ROW(ATTENTION_OUT, b, head, row[l]) + FEATURE(ATTENTION_OUT, at_),
                         lanes_[l]);
        }
    }
}
