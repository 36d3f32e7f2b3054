/* Stable sort along a dimension. */
#include "plugin-sdk/conformance/worker/oracle/reference/reference.h"

#include <math.h>

/* NaN is the largest; equals keep their order. */
static bool sorts_before(tc_number a, tc_number b, bool descending) {
    if (isnan(a.f) || isnan(b.f))
        return descending ? isnan(a.f) && !isnan(b.f) : !isnan(a.f) && isnan(b.f);
    return descending ? a.f > b.f || a.i > b.i : a.f < b.f || a.i < b.i;
}

/* A stable merge of two sorted halves, from `from` to `to`. */
static void merge(const tc_number *x, const int64_t *from, int64_t *to, int64_t low, int64_t middle,
                  int64_t high, bool descending) {
    int64_t a = low, b = middle;
    for (int64_t k = low; k < high; k++) {
        bool right = a >= middle || (b < high && sorts_before(x[from[b]], x[from[a]], descending));
        to[k] = from[right ? b++ : a++];
    }
}

static void sort_line(tc_invocation *call, int64_t first, int64_t step, int64_t n) {
    bool descending = call->args[TN_ARG_sort_descending].boolean;
    const tc_number *x = tc_in(call, 0);
    int64_t *order = tc_arena_array(call->arena, (uint64_t)n, sizeof *order);
    int64_t *next = tc_arena_array(call->arena, (uint64_t)n, sizeof *next);
    if (!order || !next)
        return;
    for (int64_t k = 0; k < n; k++)
        order[k] = first + k * step;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t low = 0; low < n; low += 2 * width) {
            int64_t middle = low + width < n ? low + width : n;
            int64_t high = low + 2 * width < n ? low + 2 * width : n;
            merge(x, order, next, low, middle, high, descending);
        }
        int64_t *swap = order;
        order = next, next = swap;
    }
    for (int64_t k = 0; k < n; k++) {
        tc_out(call, 0)[first + k * step] = x[order[k]];
        tc_out(call, 1)[first + k * step].i = (order[k] - first) / step;
    }
}

void tc_reference_sort(tc_invocation *call) {
    tc_each_line(call, call->args[TN_ARG_sort_dim].i, sort_line);
}
