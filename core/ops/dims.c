#include "core/ops/dims.h"
#include "core/ops/functions.h"

bool tni_reduce_mask(tn_ints dim, int32_t rank, const char *call, uint32_t *out_mask) {
    uint32_t mask = 0;
    for (int64_t i = 0; i < dim.n; i++) {
        int32_t d = tni_wrap_dim(dim.data[i], rank, call);
        if (d < 0)
            return false;
        if (mask >> d & 1) {
            tni_fail(TN_ERR_INVALID_ARGUMENT,
                     "%s: dimension %d is named twice in dim; name each dimension once", call, d);
            return false;
        }
        mask |= 1u << d;
    }
    *out_mask = mask ? mask : (1u << (rank ? rank : 1)) - 1;
    return true;
}

int64_t tni_reduce_count(const tn_tensor *t, uint32_t mask) {
    int64_t count = 1;
    for (int32_t d = 0; d < t->view.rank; d++)
        if (mask >> d & 1)
            count *= t->sizes[d];
    return count;
}

tn_ints tni_reduce_dims(uint32_t mask, int64_t *out) {
    int64_t n = 0;
    for (int32_t d = 0; d < TN_MAX_RANK; d++)
        if (mask >> d & 1)
            out[n++] = d;
    return tn_ints_of(out, n);
}

tn_tensor *tni_reduce_restore(tn_tensor *reduced, tn_ints sizes, uint32_t mask, bool keepdim) {
    if (!reduced)
        return NULL;
    if (keepdim || reduced->view.rank == 0)
        return tni_keep(reduced);
    int64_t kept[TN_MAX_RANK];
    for (int64_t d = 0; d < sizes.n; d++)
        kept[d] = mask >> d & 1 ? 1 : sizes.data[d];
    return tni_reshape(reduced, tn_ints_of(kept, sizes.n));
}

tn_tensor *tni_along(tni_temps *temps, tn_tensor *t, int32_t dim, int32_t rank) {
    int64_t sizes[TN_MAX_RANK];
    for (int32_t d = 0; d < rank; d++)
        sizes[d] = d == dim ? -1 : 1;
    return tni_own(temps, tni_reshape(t, tn_ints_of(sizes, rank)));
}

tn_dtype tni_accumulator_dtype(tn_dtype dtype) {
    return tni_is_float(dtype) ? dtype : TN_I64;
}

tn_status tni_infer_along(tni_build *b, uint32_t at) {
    tn_tensor *self = tni_build_tensor(b, 0);
    static const int64_t one = 1;
    for (uint32_t i = 0; i < at; i++) {
        tn_tensor *t = b->kargs[i].v.pointer;
        tn_tensor *lifted = tni_build_lift(b, t);
        if (!lifted)
            return tni_failed();
        b->kargs[i] = tni_cell_tensor(lifted);
    }
    int32_t dim = tni_wrap_dim(b->kargs[at].v.i64, self->view.rank, b->info->call);
    if (dim < 0)
        return tni_failed();
    b->kargs[at] = tni_cell_i64(dim);
    for (uint32_t i = 0; i < b->info->n_outs; i++) {
        tni_build_out(b, i, self->view.rank, self->sizes);
        if (self->view.rank == 0)
            tni_build_kernel_out(b, i, 1, &one);
    }
    return TN_OK;
}
