/* What a program may ask of a tensor. NULL answers with the value that no tensor has. */
#include "core/tensor/tensor.h"
#include "base/error.h"

bool tni_is_tensor(const tn_tensor *t, const char *call) {
    if (TNI_LIKELY(!tni_not_tensor(t) && !tni_is_gone(t)))
        return true;
    if (!tni_not_tensor(t))
        tni_refuse_gone(t, call, "the tensor");
    return false;
}

bool tni_no_tensor(const tn_tensor *t, const char *call) {
    if (tni_not_tensor(t) && tn_error_status() == TN_OK)
        tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: the tensor is NULL or TN_NONE", call);
    return !tni_is_tensor(t, call);
}

tn_tensor *tn_keep(tn_tensor *t) {
    return tni_is_tensor(t, "tn_keep") ? tni_keep(t) : tni_not_tensor(t) ? t : NULL;
}

void tn_drop(tn_tensor *t) {
    if (tni_is_tensor(t, "tn_drop"))
        tni_drop(t);
}

int64_t tn_rank(const tn_tensor *t) {
    return tni_is_tensor(t, "tn_rank") ? t->view.rank : -1;
}

/* Like tni_wrap_dim, but a tensor of rank 0 has no dimension to ask for. */
static int32_t existing_dim(const tn_tensor *t, int64_t dim, const char *call) {
    if (tni_no_tensor(t, call))
        return -1;
    if (t->view.rank == 0) {
        tni_fail(TN_ERR_SHAPE, "%s: dimension %lld of a tensor of rank 0, which has none", call,
                 (long long)dim);
        return -1;
    }
    return tni_wrap_dim(dim, t->view.rank, call);
}

int64_t tn_size(const tn_tensor *t, int64_t dim) {
    int32_t d = existing_dim(t, dim, "tn_size");
    return d < 0 ? -1 : t->sizes[d];
}

int64_t tn_stride(const tn_tensor *t, int64_t dim) {
    int32_t d = existing_dim(t, dim, "tn_stride");
    return d < 0 ? -1 : t->strides[d];
}

tn_ints tn_sizes(const tn_tensor *t) {
    return tni_is_tensor(t, "tn_sizes") ? tn_ints_of(t->sizes, t->view.rank) : tn_no_ints();
}

tn_ints tn_strides(const tn_tensor *t) {
    return tni_is_tensor(t, "tn_strides") ? tn_ints_of(t->strides, t->view.rank) : tn_no_ints();
}

int64_t tn_numel(const tn_tensor *t) {
    return tni_is_tensor(t, "tn_numel") ? t->view.numel : -1;
}

tn_dtype tn_dtype_of(const tn_tensor *t) {
    return tni_is_tensor(t, "tn_dtype_of") ? t->view.dtype : TN_DTYPE_NONE;
}

tn_device tn_device_of(const tn_tensor *t) {
    return tni_is_tensor(t, "tn_device_of") ? t->device->id : tn_no_device();
}

bool tn_is_contiguous(const tn_tensor *t) {
    return tni_is_tensor(t, "tn_is_contiguous") && tni_is_contiguous(&t->view);
}

int64_t tn_storage_offset(const tn_tensor *t) {
    return tni_is_tensor(t, "tn_storage_offset") ? tni_offset_elements(t) : -1;
}

bool tn_shares_storage(const tn_tensor *a, const tn_tensor *b) {
    return tni_is_tensor(a, "tn_shares_storage") && tni_is_tensor(b, "tn_shares_storage") &&
           a->storage == b->storage;
}

uint64_t tn_version_of(const tn_tensor *t) {
    return tni_is_tensor(t, "tn_version_of")
               ? atomic_load_explicit(&t->storage->version, memory_order_relaxed)
               : 0;
}

void *tn_data(tn_tensor *t) {
    static _Alignas(64) char nothing[64]; /* where the first element of no elements is */
    if (tni_no_tensor(t, "tn_data"))
        return NULL;
    if (t->storage->host)
        return (char *)t->storage->host + (t->view.offset - t->storage->offset);
    if (t->device->host_memory && t->view.numel == 0)
        return nothing;
    return tni_fail_null(TN_ERR_UNSUPPORTED,
                         "tn_data: the host cannot reach memory of %s; copy with tn_to_host",
                         t->device->name);
}

tn_status tn_record_stream(tn_tensor *t, tn_stream *stream) {
    if (tni_no_tensor(t, "tn_record_stream"))
        return tni_failed();
    if (!stream)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_record_stream: the stream is NULL");
    if (stream->device != t->device)
        return tni_fail(TN_ERR_DEVICE, "tn_record_stream: a tensor on %s and a stream of %s",
                        t->device->name, stream->device->name);
    return t->storage->block ? tni_block_record_stream(t->storage->block, stream) : TN_OK;
}
