/* Stable sorting along a dimension, by merging.
 *
 * Each line is brought into the workspace as keys in order, then an array of positions is sorted
 * and the line written from it:
 *
 *     workspace   keys [n] of 8 bytes | positions [n] | positions [n], the other side of a merge */
#include "plugins/sim/kernels/kernel.h"
#include "plugins/sim/dtype.h"

static inline int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Is a the smaller? NaN is larger than any number. (a == a: a is a number.) */
#define LESS(a, b) ((a) < (b) || ((a) == (a) && (b) != (b)))

#define SORT(t, NAME, stored, value, wrap, name) \
    /* Sorts the positions at `from`; `to` is as long. Returns which of the two holds the result. \
     */ \
    static int64_t *merge_sort_##t(const value *keys, int64_t n, bool descending, int64_t *from, \
                                   int64_t *to) { \
        for (int64_t width = 1; width < n; width *= 2) { \
            for (int64_t start = 0; start < n; start += 2 * width) { \
                int64_t middle = least(start + width, n); \
                int64_t end = least(start + 2 * width, n); \
                int64_t left = start, right = middle; \
                for (int64_t i = start; i < end; i++) { \
                    /* From the right only what stands strictly before: this keeps it stable. */ \
                    bool take_right = left == middle; \
                    if (left < middle && right < end) { \
                        value l = keys[from[left]], r = keys[from[right]]; \
                        take_right = descending ? LESS(l, r) : LESS(r, l); \
                    } \
                    to[i] = take_right ? from[right++] : from[left++]; \
                } \
            } \
            int64_t *other = from; \
            from = to; \
            to = other; \
        } \
        return from; \
    } \
\
    static void name##_##t(sim_task *task) { \
        const sim_tensor *self = task->args[TN_ARG_sort_self].v.tensor; \
        int64_t dim = task->args[TN_ARG_sort_dim].v.i64; \
        bool descending = task->args[TN_ARG_sort_descending].v.i64; \
        const stored *x = self->data; \
        stored *z = task->outs[0].data; \
        int64_t *where = task->outs[1].data; \
        int64_t n = self->rank ? self->sizes[dim] : 1; \
        int64_t inner = 1; \
        for (int64_t d = dim + 1; d < self->rank; d++) \
            inner *= self->sizes[d]; \
        value *keys = task->workspace; \
        int64_t *positions = (int64_t *)task->workspace + n; \
        for (int64_t o = 0; o < self->numel; o += n * inner) \
            for (int64_t i = o; i < o + inner; i++) { \
                for (int64_t k = 0; k < n; k++) { \
                    keys[k] = sim_load_##t(x[i + k * inner]); \
                    positions[k] = k; \
                } \
                const int64_t *sorted = \
                    merge_sort_##t(keys, n, descending, positions, positions + n); \
                for (int64_t k = 0; k < n; k++) { \
                    z[i + k * inner] = x[i + sorted[k] * inner]; \
                    where[i + k * inner] = sorted[k]; \
                } \
            } \
    }

SIM_ALL_TYPES(SORT, sort)

static tn_status sort_prepare(const tn_call *call, tn_plan *out) {
    const tn_tensor_view *self = call->args[TN_ARG_sort_self].v.view;
    int64_t dim = call->args[TN_ARG_sort_dim].v.i64;
    out->workspace_bytes = (uint64_t)(self->rank ? self->sizes[dim] : 1) * 3 * sizeof(int64_t);
    return TN_OK;
}

const sim_kernel sim_kernel_sort = {
    .record = {SIM_RECORD(sort, TN_DTYPES_ALL), .prepare = sort_prepare},
    .signature = "Tib>TL",
    .compute = {SIM_ALL_TYPES(SIM_COMPUTE, sort)},
};
