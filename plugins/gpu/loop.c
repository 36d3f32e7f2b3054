/* loop.c: see loop.h. */
#include "loop.h"

/* Could dimension `d` of the views, which is outside of the loop's last, go on with it? */
static bool joins(const gpu_loop *l, const tn_tensor_view *const *views, int n, int32_t d) {
    const int64_t last = l->rank - 1;
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
