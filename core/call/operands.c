/* See operands.h. */
#include "core/call/operands.h"

#include <string.h>

void tni_operands_init(tni_operands *o, int32_t rank, const int64_t *sizes) {
    o->n = 0;
    o->rank = rank;
    memcpy(o->sizes, sizes, (size_t)rank * sizeof *sizes);
}

void tni_operands_add(tni_operands *o, const tn_tensor *t) {
    uint32_t i = o->n++;
    o->views[i] = t->view;
    int32_t lead = o->rank - t->view.rank;
    for (int32_t d = 0; d < o->rank; d++)
        o->strides[i][d] =
            d < lead || (t->sizes[d - lead] == 1 && o->sizes[d] != 1) ? 0 : t->strides[d - lead];
}

static void swap_dims(tni_operands *o, int32_t a, int32_t b) {
    int64_t size = o->sizes[a];
    o->sizes[a] = o->sizes[b];
    o->sizes[b] = size;
    for (uint32_t i = 0; i < o->n; i++) {
        int64_t stride = o->strides[i][a];
        o->strides[i][a] = o->strides[i][b];
        o->strides[i][b] = stride;
    }
}

/* Removes dimension d. */
static void remove_dim(tni_operands *o, int32_t d) {
    for (int32_t k = d; k + 1 < o->rank; k++)
        swap_dims(o, k, k + 1);
    o->rank--;
}

static bool mergeable(const tni_operands *o, int32_t outer) {
    for (uint32_t i = 0; i < o->n; i++)
        if (o->strides[i][outer] != o->strides[i][outer + 1] * o->sizes[outer + 1])
            return false;
    return true;
}

void tni_operands_coalesce(tni_operands *o) {
    for (int32_t d = o->rank - 1; d >= 0; d--)
        if (o->sizes[d] == 1)
            remove_dim(o, d);
    /* insertion sort, stable: larger strides of the output come first */
    for (int32_t d = 1; d < o->rank; d++)
        for (int32_t k = d; k > 0 && o->strides[0][k - 1] < o->strides[0][k]; k--)
            swap_dims(o, k - 1, k);
    for (int32_t d = o->rank - 2; d >= 0; d--) {
        if (!mergeable(o, d))
            continue;
        o->sizes[d] *= o->sizes[d + 1];
        for (uint32_t i = 0; i < o->n; i++)
            o->strides[i][d] = o->strides[i][d + 1];
        remove_dim(o, d + 1);
    }
    if (o->rank == 0) {
        o->rank = 1;
        o->sizes[0] = 1;
        for (uint32_t i = 0; i < o->n; i++)
            o->strides[i][0] = 1;
    }
    int64_t numel = 1;
    for (int32_t d = 0; d < o->rank; d++)
        numel *= o->sizes[d];
    for (uint32_t i = 0; i < o->n; i++) {
        o->views[i].rank = o->rank;
        o->views[i].numel = numel;
        o->views[i].sizes = o->sizes;
        o->views[i].strides = o->strides[i];
    }
}

bool tni_operand_is_contiguous(const tni_operands *o, uint32_t i) {
    int64_t expected = 1;
    for (int32_t d = o->rank - 1; d >= 0; d--) {
        if (o->sizes[d] != 1 && o->strides[i][d] != expected)
            return false;
        expected *= o->sizes[d];
    }
    return true;
}

static int64_t reach(const tni_operands *o, uint32_t i) {
    int64_t last = 0;
    for (int32_t d = 0; d < o->rank; d++)
        last += (o->sizes[d] - 1) * o->strides[i][d];
    return last;
}

/* The operand that reaches furthest, if that is too far; else o->n. */
static uint32_t furthest(const tni_operands *o) {
    uint32_t found = o->n;
    int64_t most = INT32_MAX - 1;
    for (uint32_t i = 0; i < o->n; i++) {
        int64_t last = reach(o, i);
        if (last > most) {
            most = last;
            found = i;
        }
    }
    return found;
}

bool tni_operands_are_far(const tni_operands *o) {
    return furthest(o) < o->n;
}

tn_status tni_operands_in_pieces(tni_operands *o, bool far_ok, tn_status (*fn)(void *user),
                                 void *user) {
    uint32_t far = far_ok ? o->n : furthest(o);
    if (TNI_LIKELY(far == o->n))
        return fn(user);
    int32_t longest = 0;
    for (int32_t d = 1; d < o->rank; d++)
        if ((o->sizes[d] - 1) * o->strides[far][d] >
            (o->sizes[longest] - 1) * o->strides[far][longest])
            longest = d;
    int64_t whole = o->sizes[longest], half = whole / 2, numel = o->views[0].numel;
    uint64_t offsets[TNI_MAX_OPERANDS];
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < o->n; i++)
        offsets[i] = o->views[i].offset;
    for (int part = 0; part < 2 && status == TN_OK; part++) {
        o->sizes[longest] = part ? whole - half : half;
        for (uint32_t i = 0; i < o->n; i++) {
            tn_tensor_view *v = &o->views[i];
            v->numel = numel / whole * o->sizes[longest];
            v->offset = offsets[i];
            if (part)
                v->offset += (uint64_t)(half * o->strides[i][longest] * tni_dtype_size(v->dtype));
        }
        status = tni_operands_in_pieces(o, false, fn, user);
    }
    o->sizes[longest] = whole;
    for (uint32_t i = 0; i < o->n; i++) {
        o->views[i].numel = numel;
        o->views[i].offset = offsets[i];
    }
    return status;
}
