/* The negative log likelihood of target classes, and its gradient.
 *
 *   T         the dtype
 *   BACKWARD  0: one group adds up the loss, in an order that follows from L alone; 1: a work item
 *             makes one element of the gradient, or where it is no thread of a CPU 16 bytes of them
 *   L         work items of the group, a power of two
 *   INDEX     i32 or i64, what counts elements of the gradient */
#include "plugins/shared/gpu/device/loss.params.h"

typedef computed(T) C;

/* The class of target i; -1 where it counts nothing, and where it is no class, which is reported. */
DEVICE i64 class_at(GLOBAL const i64 *target, i64 i, GLOBAL i32 *error, const loss_params *p) {
    i64 k = target[i * p->target];
    if (k == p->ignore_index)
        return -1;
    if ((u64)k < (u64)p->n_classes)
        return k;
    report_index(error, k, p->n_classes);
    return -1;
}

#if !BACKWARD

#define ROWS 1
#define M 1
#define P 1
#define W 1
#define UNIT 0
#include "plugins/shared/gpu/device/tiling.h"

typedef wide(T) A;
enum { AHEAD = 4 }; /* logs that are asked for before the first of them is there */

#define STATES(X) X(A, sum) LOST(X(A, lost)) X(i64, n)
#define MERGE() \
    do { \
        ADD_WIDE(A, sum[0], lost[0], OTHER(sum)); \
        LOST(lost[0] += OTHER(lost)); \
        n[0] += OTHER(n); \
    } while (0)

KERNEL_OF_GROUP(GROUP, 1, nll_loss)
(GLOBAL const stored(T) * RESTRICT self, GLOBAL const i64 *RESTRICT target, GLOBAL stored(T) * out,
 GLOBAL i64 *total_weight, GLOBAL i32 *error, const loss_params p) {
#if GROUP > 1
    STATES(DECLARE_PART)
#endif
    int id = (int)LOCAL_ID(0);
    A sum[1] = {0};
    LOST(A lost[1] = {0};)
    i64 n[1] = {0};
    self += p.offsets[0];
    target += p.offsets[1];
    for (i64 i = id; i < p.n; i += AHEAD * L) {
        i64 k[AHEAD];
        C x[AHEAD];
        for (int a = 0; a < AHEAD; a++)
            k[a] = i + a * L < p.n ? class_at(target, i + a * L, error, &p) : -1;
        for (int a = 0; a < AHEAD; a++)
            x[a] = k[a] < 0 ? 0 : load(T)(self, (i + a * L) * p.self[0] + k[a] * p.self[1]);
        for (int a = 0; a < AHEAD; a++) {
            if (k[a] < 0)
                continue;
            ADD_WIDE(A, sum[0], lost[0], -(A)x[a]);
            n[0]++;
        }
    }
#if GROUP > 1
    JOIN_TEAM(STATES, MERGE, id, L, 1);
#endif
    if (id > 0)
        return;
    A loss = TOTAL(sum[0], lost[0]);
    if (p.mean)
        loss = DIVIDE(loss, (A)n[0]);
    store(T)(out, p.offsets[2], (C)loss);
    total_weight[p.offsets[3]] = n[0];
}

#else

#define E (IS_CPU ? 1 : 16 / BYTES(T))
MAKE_PACK(T, E)

KERNEL(nll_loss_backward)
(GLOBAL const stored(T) * grad_output, GLOBAL const i64 *RESTRICT target,
 GLOBAL const i64 *total_weight, GLOBAL stored(T) * RESTRICT out, GLOBAL i32 *error,
 const loss_params p) {
    INDEX numel = (INDEX)(p.n * p.n_classes), n_classes = (INDEX)p.n_classes,
          step = (INDEX)(GROUPS(0) * LOCAL_SIZE(0)) * E;
    C share = -load(T)(grad_output, p.offsets[0]);
    if (p.mean)
        share = DIVIDE(share, (C)total_weight[p.offsets[2]]);
    target += p.offsets[1];
    for (INDEX i = (INDEX)GLOBAL_ID(0) * E; i < numel; i += step) {
        INDEX row = i / n_classes, column = i - row * n_classes;
        i64 k = class_at(target, row, error, &p);
        int count = numel - i < E ? (int)(numel - i) : E;
        C x[E];
        for (int l = 0; l < E; l++) {
            x[l] = k == column ? share : 0;
            if (++column == n_classes && l + 1 < count) {
                column = 0;
                k = class_at(target, ++row, error, &p);
            }
        }
        STORE_PACK(T, E, out + p.offsets[3] + i, count, x, narrow(T));
    }
}

#endif
