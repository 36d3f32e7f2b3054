/* Dimensions are joined as they come in, from the innermost; and again where they are sorted. */
#include "plugins/shared/gpu/loop.h"

/* Could dimension `d` of the views, which is outside of the loop's last, go on with it? */
static bool joins(const gpu_loop *l, const tn_tensor_view *const *views, int n, int32_t d) {
    int64_t last = l->rank - 1;
    for (int k = 0; k < n; k++)
        if (views[k] && views[k]->strides[d] != l->strides[k][last] * l->sizes[last])
            return false;
    return true;
}

void gpu_loop_init(gpu_loop *l, const tn_tensor_view *const *views, int n, uint32_t dims) {
    const tn_tensor_view *shape = views[0];
    l->rank = 0;
    for (int32_t d = shape->rank - 1; d >= 0; d--) {
        if (shape->sizes[d] == 1 || !(dims >> d & 1))
            continue;
        if (l->rank > 0 && joins(l, views, n, d)) {
            l->sizes[l->rank - 1] *= shape->sizes[d];
            continue;
        }
        l->sizes[l->rank] = shape->sizes[d];
        for (int k = 0; k < n; k++)
            l->strides[k][l->rank] = views[k] ? views[k]->strides[d] : 0;
        l->rank++;
    }
}

/* Could dimension `d` go on with dimension `last`, inside of it? */
static bool follows(const gpu_loop *l, int n, int64_t last, int64_t d) {
    for (int k = 0; k < n; k++)
        if (l->strides[k][d] != l->strides[k][last] * l->sizes[last])
            return false;
    return true;
}

static void set_dim(gpu_loop *l, int n, int64_t to, const gpu_loop *from, int64_t d) {
    l->sizes[to] = from->sizes[d];
    for (int k = 0; k < n; k++)
        l->strides[k][to] = from->strides[k][d];
}

void gpu_loop_sort(gpu_loop *l, int n, int k) {
    gpu_loop before = *l;
    int64_t order[TN_MAX_RANK];
    for (int64_t d = 0; d < l->rank; d++) {
        int64_t at = d;
        for (; at > 0 && before.strides[k][order[at - 1]] > before.strides[k][d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    l->rank = 0;
    for (int64_t d = 0; d < before.rank; d++) {
        set_dim(l, n, l->rank, &before, order[d]);
        if (l->rank > 0 && follows(l, n, l->rank - 1, l->rank))
            l->sizes[l->rank - 1] *= l->sizes[l->rank];
        else
            l->rank++;
    }
}

int64_t gpu_loop_take_innermost(gpu_loop *l, int n, int64_t *out_strides) {
    for (int k = 0; k < n; k++)
        out_strides[k] = l->rank ? l->strides[k][0] : 0;
    if (l->rank == 0)
        return 1;
    int64_t size = l->sizes[0];
    l->rank--;
    for (int64_t d = 0; d < l->rank; d++)
        set_dim(l, n, d, l, d + 1);
    return size;
}

int64_t gpu_loop_numel(const gpu_loop *l) {
    int64_t n = 1;
    for (int64_t d = 0; d < l->rank; d++)
        n *= l->sizes[d];
    return n;
}

bool gpu_loop_in_a_row(const gpu_loop *l, int n, uint32_t absent) {
    if (l->rank > 1)
        return false;
    for (int k = 0; k < n && l->rank; k++)
        if (!(absent >> k & 1) && l->strides[k][0] != 1)
            return false;
    return true;
}
