/* What a program may ask of a tensor. NULL answers with the value that no tensor has. */
#include "core/tensor/tensor.h"
#include "base/error.h"

static bool is_tensor(const tn_tensor *t) {
    return t && t != TN_NONE;
}

tn_status tni_no_tensor(const char *call) {
    return tn_error_status() != TN_OK
               ? tn_error_status()
               : tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: the tensor is NULL or TN_NONE", call);
}

tn_tensor *tn_keep(tn_tensor *t) {
    return is_tensor(t) ? tni_keep(t) : t;
}

void tn_drop(tn_tensor *t) {
    if (is_tensor(t))
        tni_drop(t);
}

int64_t tn_rank(const tn_tensor *t) {
    return is_tensor(t) ? t->view.rank : -1;
}

/* Like tni_wrap_dim, but a tensor of rank 0 has no dimension to ask for. */
static int32_t existing_dim(const tn_tensor *t, int64_t dim, const char *call) {
    if (!is_tensor(t)) {
        tni_no_tensor(call);
        return -1;
    }
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
    return is_tensor(t) ? tn_ints_of(t->sizes, t->view.rank) : tn_no_ints();
}

tn_ints tn_strides(const tn_tensor *t) {
    return is_tensor(t) ? tn_ints_of(t->strides, t->view.rank) : tn_no_ints();
}

int64_t tn_numel(const tn_tensor *t) {
    return is_tensor(t) ? t->view.numel : -1;
}

tn_dtype tn_dtype_of(const tn_tensor *t) {
    return is_tensor(t) ? t->view.dtype : TN_DTYPE_NONE;
}

tn_device tn_device_of(const tn_tensor *t) {
    return is_tensor(t) ? t->device->id : tn_no_device();
}

bool tn_is_contiguous(const tn_tensor *t) {
    return is_tensor(t) && tni_is_contiguous(&t->view);
}

int64_t tn_storage_offset(const tn_tensor *t) {
    return is_tensor(t) ? tni_offset_elements(t) : -1;
}

bool tn_shares_storage(const tn_tensor *a, const tn_tensor *b) {
    return is_tensor(a) && is_tensor(b) && a->storage == b->storage;
}

uint64_t tn_version_of(const tn_tensor *t) {
    return is_tensor(t) ? atomic_load_explicit(&t->storage->version, memory_order_relaxed) : 0;
}

void *tn_data(tn_tensor *t) {
    static _Alignas(64) char nothing[64]; /* where the first element of no elements is */
    if (!is_tensor(t)) {
        tni_no_tensor("tn_data");
        return NULL;
    }
    if (t->storage->host)
        return (char *)t->storage->host + (t->view.offset - t->storage->offset);
    if (t->device->host_memory && t->view.numel == 0)
        return nothing;
    return tni_fail_null(TN_ERR_UNSUPPORTED,
                         "tn_data: the host cannot reach memory of %s; copy with tn_to_host",
                         t->device->name);
}

tn_status tn_record_stream(tn_tensor *t, tn_stream *stream) {
    if (!is_tensor(t))
        return tni_no_tensor("tn_record_stream");
    if (!stream)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_record_stream: the stream is NULL");
    if (stream->device != t->device)
        return tni_fail(TN_ERR_DEVICE, "tn_record_stream: a tensor on %s and a stream of %s",
                        t->device->name, stream->device->name);
    return t->storage->block ? tni_block_record_stream(t->storage->block, stream) : TN_OK;
}
