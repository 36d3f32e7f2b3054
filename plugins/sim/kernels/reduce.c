/* Sums and maxima over some dimensions. */
#include "plugins/sim/kernels/kernel.h"
#include "plugins/sim/dtype.h"
#include "plugins/sim/view.h"

/* ---- the shape of a reduction ------------------------------------------------------------ */

/* `outer` walks over the output (strides 0: input, 1: output), `inner` over what goes into one
 * element of it. */
typedef struct reduction {
    sim_walk outer, inner;
} reduction;

static void reduction_init(reduction *r, const sim_tensor *in, const sim_tensor *out,
                           const sim_value *dims) {
    int64_t outer_sizes[SIM_MAX_RANK], inner_sizes[SIM_MAX_RANK];
    for (int32_t d = 0; d < in->rank; d++) {
        outer_sizes[d] = in->sizes[d];
        inner_sizes[d] = 1;
    }
    for (uint32_t i = 0; i < dims->n; i++) {
        int64_t d = dims->v.ints[i];
        inner_sizes[d] = in->sizes[d];
        outer_sizes[d] = 1;
    }
    sim_walk_init(&r->outer, in->rank, outer_sizes, in->strides, out->strides);
    sim_walk_init(&r->inner, in->rank, inner_sizes, in->strides, in->strides);
}

/* For each element of the output: `begin`, `each` element x that goes into it, then `end` gives its
 * value. */
#define REDUCE(stored, begin, each, end) \
    reduction r; \
    const stored *in = task->args[0].v.tensor->data; \
    stored *out = task->outs[0].data; \
    reduction_init(&r, task->args[0].v.tensor, &task->outs[0], &task->args[1]); \
    do \
        for (int64_t o = 0; o < r.outer.n; o++) { \
            const stored *base = in + r.outer.offset[0] + o * r.outer.step[0]; \
            begin; \
            do \
                for (int64_t i = 0; i < r.inner.n; i++) { \
                    stored x = base[r.inner.offset[0] + i * r.inner.step[0]]; \
                    each; \
                } \
            while (sim_walk_next(&r.inner)); \
            out[r.outer.offset[1] + o * r.outer.step[1]] = end; \
        } \
    while (sim_walk_next(&r.outer));

/* ---- sum --------------------------------------------------------------------------------- */

/* A pairwise sum of any number of f64, taken one by one: sums of 128 are joined two by two like the
 * digits of a binary counter, so the error grows with the logarithm of their number. */
typedef struct pairwise {
    double sum;
    int n;
    uint64_t blocks; /* bit i: level[i] holds the sum of 2^i blocks */
    double level[56];
} pairwise;

static inline void pairwise_add(pairwise *p, double x) {
    p->sum += x;
    if (++p->n < 128)
        return;
    double sum = p->sum;
    int i = 0;
    for (; p->blocks >> i & 1; i++)
        sum += p->level[i];
    p->level[i] = sum;
    p->blocks++;
    p->sum = 0;
    p->n = 0;
}

static inline double pairwise_total(const pairwise *p) {
    double sum = p->sum;
    for (int i = 0; p->blocks >> i; i++)
        if (p->blocks >> i & 1)
            sum += p->level[i];
    return sum;
}

#define SUM_FLOAT(t, NAME, stored, value, wrap, name) \
    static void name##_##t(sim_task *task) { \
        pairwise p; \
        REDUCE(stored, (p.sum = 0, p.n = 0, p.blocks = 0), pairwise_add(&p, sim_load_##t(x)), \
               sim_store_##t((wrap)pairwise_total(&p))) \
    }

#define SUM_INT(t, NAME, stored, value, wrap, name) \
    static void name##_##t(sim_task *task) { \
        wrap sum; \
        REDUCE(stored, sum = 0, sum += (wrap)sim_load_##t(x), sim_store_##t(sum)) \
    }

SIM_FLOAT_TYPES(SUM_FLOAT, sum)
SIM_INT_TYPES(SUM_INT, sum)

const sim_kernel sim_kernel_sum = {
    .record = {SIM_RECORD(sum, TN_DTYPES_NUMBER)},
    .signature = "TI>T",
    .compute = {SIM_NUMBER_TYPES(SIM_COMPUTE, sum)},
};

/* ---- amax -------------------------------------------------------------------------------- */

/* The first element stands for "none yet"; from the first NaN on the result is NaN. */
#define AMAX(t, NAME, stored, value, wrap, name) \
    static void name##_##t(sim_task *task) { \
        stored largest; \
        REDUCE(stored, largest = *base, \
               if (!(sim_load_##t(x) <= sim_load_##t(largest)) && \
                   sim_load_##t(largest) == sim_load_##t(largest)) largest = x, \
               largest) \
    }

SIM_ALL_TYPES(AMAX, amax)

const sim_kernel sim_kernel_amax = {
    .record = {SIM_RECORD(amax, TN_DTYPES_ALL)},
    .signature = "TI>T",
    .compute = {SIM_ALL_TYPES(SIM_COMPUTE, amax)},
};
