/* tenon/storage.h: the memory of tensors: storages as handles, tensors over a program's own memory.
 *
 * For language bindings and bridges to other libraries; other programs need none of it. Tensors that
 * are views of each other share one storage. A storage dies with its last tensor and its last kept
 * handle; a handle keeps the memory alive, not the tensors. Every function may be called from any
 * thread; while one thread uses a handle it does not keep, no other may drop the tensor.
 */
#ifndef TENON_STORAGE_H
#define TENON_STORAGE_H

#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- storages ---------------------------------------------------------------------------- */

typedef struct tn_storage tn_storage;

/* The storage of t, borrowed: valid as long as t is, or until what tn_storage_keep took is dropped.
 * One storage, one address. NULL with an error for NULL and TN_NONE. */
TN_API tn_storage *tn_storage_of(tn_tensor *t);
/* Takes a reference and returns the storage; tn_storage_drop gives it back. Both allow NULL. A kept
 * storage counts as a tensor that is alive (tn_shutdown). */
TN_API tn_storage *tn_storage_keep(tn_storage *storage);
TN_API void tn_storage_drop(tn_storage *storage);

/* Its length. 0 for NULL, and where the tensor that made it has no elements. On device meta the
 * bytes that there would be. */
TN_API uint64_t tn_storage_bytes(const tn_storage *storage);
/* Its device; {0, 0} for NULL. */
TN_API tn_device tn_storage_device(const tn_storage *storage);
/* Address of its first byte where the device's memory is host memory, else NULL with an error. NULL
 * without an error for a storage of no bytes. Wait for the device before reading. */
TN_API void *tn_storage_address(tn_storage *storage);

/* A new tensor over a storage: without history, of any dtype that the device can store. Strides and
 * offset count elements of `dtype`; tn_no_ints() as strides is row-major. What sizes and strides
 * reach must lie in the storage (TN_ERR_SHAPE), and elements at addresses that are multiples of their
 * size. Writes through it are seen by every other tensor of the storage, and counted: backward
 * notices a saved one that was overwritten. Belongs to the scope; NULL with an error. */
TN_API tn_tensor *tn_from_storage(tn_storage *storage, tn_ints sizes, tn_ints strides,
                                  int64_t offset, tn_dtype dtype);

/* ---- a program's own memory -------------------------------------------------------------- */

/* A tensor over `data`, without a copy, on a device whose memory is host memory and is named by
 * address ("cpu:0" is one; others answer TN_ERR_UNSUPPORTED; device {0, 0}: the default device). Strides
 * count elements, are not negative, and may overlap; tn_no_ints() is row-major. `data` is the
 * address of the first element, a multiple of the element's size; NULL where there are no elements.
 * Bool elements are bytes of 0 or 1. With TENON_VALIDATE, which knows only what plugins give out, it
 * is TN_ERR_UNSUPPORTED everywhere.
 *
 * The memory must stay until `release` (NULL: nobody is told) is called with `context`: once, when
 * the last tensor of the storage is gone and the device is done with it, in whichever thread that
 * happens, where it may call Tenon. When the call fails, `release` is not called. Belongs to the
 * scope; NULL with an error. */
TN_API tn_tensor *tn_from_blob(void *data, tn_ints sizes, tn_ints strides, tn_dtype dtype,
                               tn_device device, void (*release)(void *context), void *context);

#ifdef __cplusplus
}
#endif

#endif /* TENON_STORAGE_H */
