/* Storages as handles, and tensors that are made from one. What keeps and ends them is in tensor.c. */
#include "base/error.h"
#include "core/tensor/tensor.h"

tn_storage *tn_storage_of(tn_tensor *t) {
    if (tni_no_tensor(t, "tn_storage_of"))
        return NULL;
    return t->storage;
}

uint64_t tn_storage_bytes(const tn_storage *storage) {
    return storage ? storage->bytes : 0;
}

tn_device tn_storage_device(const tn_storage *storage) {
    return storage ? tni_storage_device(storage)->id : tn_no_device();
}

void *tn_storage_address(tn_storage *storage) {
    if (!storage)
        tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_storage_address: the storage is NULL");
    else if (storage->bytes && !storage->host)
        tni_fail(TN_ERR_UNSUPPORTED, "tn_storage_address: the host cannot reach memory of %s",
                 tni_storage_device(storage)->name);
    return storage && storage->bytes ? storage->host : NULL;
}

tn_tensor *tn_from_storage(tn_storage *storage, tn_ints sizes, tn_ints strides, int64_t offset,
                           tn_dtype dtype) {
    tni_layout layout;
    if (!storage)
        return tni_fail_null(TN_ERR_INVALID_ARGUMENT, "tn_from_storage: the storage is NULL");
    if (!tni_lay_out("tn_from_storage", sizes, strides, dtype, &layout))
        return NULL;
    int64_t item = tni_dtype_size(dtype), start, end;
    if (offset < 0 || !tni_mul_i64(offset, item, &start) ||
        !tni_add_i64(start, layout.bytes, &end) || (layout.numel && (uint64_t)end > storage->bytes))
        return tni_fail_null(
            TN_ERR_SHAPE,
            "tn_from_storage: sizes %s, strides %s, offset %lld of %s do not lie in a storage"
            " of %llu bytes",
            TNI_SHAPE_OF_SIZES(layout.rank, sizes.data),
            TNI_SHAPE_OF_SIZES(layout.rank, layout.strides), (long long)offset,
            tn_dtype_name(dtype), (unsigned long long)storage->bytes);
    /* Only a program's own memory can be; what the allocator gives out suits every dtype. */
    if (layout.numel && (uintptr_t)storage->host % (uint64_t)item)
        return tni_fail_null(
            TN_ERR_INVALID_ARGUMENT,
            "tn_from_storage: the storage begins at %p, which is no multiple of the %lld bytes"
            " of %s",
            storage->host, (long long)item, tn_dtype_name(dtype));
    return tni_scope_push(tni_tensor_over(storage, dtype, layout.rank, sizes.data, layout.strides,
                                          layout.numel, storage->offset + (uint64_t)start));
}
