/* See ends.h. A threshold that is off by little is met by none of a few thousand random numbers. */
#include "plugin-sdk/conformance/worker/kernel/ends.h"

#include <math.h>
#include <stdlib.h>

enum {
    MOST_ENDS = 12,
    NEAR = 96,    /* numbers near each, as many below as above */
    ROUNDS = 100, /* to halve what lies between two numbers until nothing does */
    FIRST =
        3, /* elements that give way: neither those that lie near turns nor far ones that stand alone (fill.c) */
    APART = 4,
    LEAST = FIRST + APART * MOST_ENDS * (NEAR + 2)
};

typedef struct sample {
    tc_real x;
    int kind;
} sample;

/* What a function gives, seen from far. */
static int kind_of(tn_dtype dtype, tc_number y) {
    tc_real r = fabsl(tc_round(dtype, y).f);
    return isnan(r) ? 0 : isinf(r) ? 1 : r == 0 ? 2 : r < tc_smallest_normal(dtype) ? 3 : 4;
}

static bool is_function(const tc_invocation *call) {
    const tc_record *r = call->record;
    const tc_operand *in = &call->args[0].tensor;
    uint32_t n = 0;
    for (uint32_t a = 0; a < r->n_args; a++)
        n += r->args[a].kind == TC_ARG_TENSOR;
    return r->pointwise && n == 1 && r->n_types == 1 && call->scalar < 0 &&
           r->args[0].kind == TC_ARG_TENSOR && tc_is_float(in->dtype) &&
           call->outs[0].tensor.dtype == in->dtype && in->shape.numel >= LEAST &&
           tc_is_dense(&in->shape);
}

/* The call of n numbers, to be filled in. */
static bool start(const tc_invocation *call, int64_t n, tc_invocation *out) {
    tc_expected *e = &out->outs[0];
    *out = *call;
    out->args[0].tensor.shape = e->tensor.shape = tc_dense(1, &n);
    out->args[0].tensor.values = tc_arena_array(call->arena, (uint64_t)n, sizeof(tc_number));
    e->tensor.values = tc_arena_array(call->arena, (uint64_t)n, sizeof(tc_number));
    e->error = tc_arena_array(call->arena, (uint64_t)n, sizeof *e->error);
    e->rounding = tc_arena_array(call->arena, (uint64_t)n, sizeof *e->rounding);
    return out->args[0].tensor.values && e->tensor.values && e->error && e->rounding;
}

static int by_size(const void *a, const void *b) {
    tc_real x = ((const sample *)a)->x, y = ((const sample *)b)->x;
    return (x > y) - (x < y);
}

/* Pairs of neighbours between which the kind changes; how many. */
static int64_t find(const tc_invocation *call, sample *all, sample (*pairs)[2]) {
    int64_t n = call->args[0].tensor.shape.numel, found = 0;
    for (int64_t i = 0; i < n; i++)
        all[i] = (sample){call->args[0].tensor.values[i].f,
                          kind_of(call->types[0], call->outs[0].tensor.values[i])};
    qsort(all, (size_t)n, sizeof *all, by_size);
    for (int64_t i = 1; i < n && found < MOST_ENDS; i++)
        if (all[i].kind != all[i - 1].kind) {
            pairs[found][0] = all[i - 1];
            pairs[found++][1] = all[i];
        }
    return found;
}

/* Halves each pair's distance until they are neighbours in the dtype. */
static void narrow(tc_invocation *probe, sample (*pairs)[2], int64_t n) {
    tn_dtype dtype = probe->types[0];
    for (int round = 0; round < ROUNDS; round++) {
        for (int64_t k = 0; k < n; k++) {
            tc_number middle = {pairs[k][0].x / 2 + pairs[k][1].x / 2, 0};
            probe->args[0].tensor.values[k] = tc_round(dtype, middle);
        }
        probe->record->reference(probe);
        for (int64_t k = 0; k < n; k++) {
            int kind = kind_of(dtype, probe->outs[0].tensor.values[k]);
            pairs[k][kind != pairs[k][0].kind] = (sample){probe->args[0].tensor.values[k].f, kind};
        }
    }
}

/* The pair, and others no further from it than the 64th part of its size. */
static void fill_near(tc_invocation *call, int64_t first, const sample pair[2], tc_random *r) {
    tc_number *x = call->args[0].tensor.values + first;
    x[0] = (tc_number){pair[0].x, 0};
    x[1] = (tc_number){pair[1].x, 0};
    for (int k = 0; k < NEAR; k++) {
        tc_real off = tc_uniform(r, 0, 1.0L / 64);
        tc_number near = {pair[k % 2].x * (k / 2 % 2 ? 1 - off : 1 + off), 0};
        x[2 + k] = tc_round(call->types[0], near);
    }
}

static void give_way(tc_invocation *call, const tc_invocation *near, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        int64_t at = FIRST + APART * k;
        call->args[0].tensor.values[at] = near->args[0].tensor.values[k];
        call->outs[0].tensor.values[at] = near->outs[0].tensor.values[k];
        call->outs[0].error[at] = near->outs[0].error[k];
        call->outs[0].rounding[at] = near->outs[0].rounding[k];
    }
    tc_operand_settle(&call->args[0].tensor);
}

bool tc_add_ends(tc_invocation *call) {
    sample pairs[MOST_ENDS][2], *all;
    tc_invocation probe, near;
    if (call->data != TC_DATA_EXPONENTS || !is_function(call))
        return true;
    all = tc_arena_array(call->arena, (uint64_t)call->args[0].tensor.shape.numel, sizeof *all);
    if (!all)
        return false;
    int64_t n = find(call, all, pairs);
    if (n == 0)
        return true;
    if (!start(call, n, &probe) || !start(call, n * (NEAR + 2), &near))
        return false;
    narrow(&probe, pairs, n);
    tc_random r = {call->seed + 1};
    for (int64_t k = 0; k < n; k++)
        fill_near(&near, k * (NEAR + 2), pairs[k], &r);
    tc_spare_subnormals(&near, &near.args[0].tensor);
    near.record->reference(&near);
    give_way(call, &near, n * (NEAR + 2));
    return true;
}
