/* Elements in and out of tensors, through the device's write and read. */
#include "core/tensor/tensor.h"
#include "base/error.h"
#include "core/graph/graph.h"

#include <math.h>

/* The range [start of t, + bytes) must lie in the storage, and t must have a memory at all. */
static tn_status check_range(const tn_tensor *t, uint64_t bytes, const char *what) {
    if (t->device->is_meta)
        return tni_fail(TN_ERR_UNSUPPORTED,
                        "%s: the tensor is on device meta, which has shapes and no data", what);
    uint64_t start = t->view.offset - t->storage->offset;
    if (start > t->storage->bytes || bytes > t->storage->bytes - start)
        return tni_fail(TN_ERR_SHAPE, "%s: %llu bytes from byte %llu of a storage of %llu", what,
                        (unsigned long long)bytes, (unsigned long long)start,
                        (unsigned long long)t->storage->bytes);
    return tni_device_check(t->device);
}

tn_status tni_tensor_write(tn_tensor *t, const void *src, uint64_t bytes) {
    if (bytes == 0 || t->device->is_meta)
        return TN_OK;
    tn_status status = check_range(t, bytes, "write");
    if (status != TN_OK)
        return status;
    tni_device *device = t->device;
    tn_stream *stream = tni_stream_current(device);
    tn_memory pinned = tni_pinned_handle(device, src, bytes);
    if (!pinned)
        status = tni_capture_check(stream, "writing from host memory that is not pinned",
                                   "write before each replay, into a tensor from before the "
                                   "capture, or use memory of tn_pinned_alloc");
    if (status != TN_OK)
        return status;
    status = device->memory->copy_from_host(device->handle, stream->handle, t->view.memory,
                                            t->view.offset, src, pinned, bytes);
    return status == TN_OK ? TN_OK : tni_device_fail(device, status, "write");
}

tn_status tni_tensor_read(tn_tensor *t, void *dst, uint64_t bytes, const char *call) {
    if (bytes == 0)
        return TN_OK;
    TNI_TRY(check_range(t, bytes, "read"));
    tni_device *device = t->device;
    tn_stream *stream = tni_stream_current(device);
    TNI_TRY(tni_capture_check(stream, call, "nothing has been computed; read after a replay"));
    tn_status status = device->memory->copy_to_host(device->handle, stream->handle, dst,
                                                    tni_pinned_handle(device, dst, bytes),
                                                    t->view.memory, t->view.offset, bytes);
    if (status != TN_OK)
        return tni_device_fail(device, status, "read");
    /* A pinned destination is complete only now, and errors of the work that made the data are
     * found here rather than in what is computed from it. */
    return stream->handle ? tn_stream_synchronize(stream) : TN_OK;
}

tn_tensor *tn_from_data(const void *data, tn_ints shape, tn_dtype dtype, tn_device device) {
    if (!tni_check_sizes("tn_from_data", shape))
        return NULL;
    if (device.type == 0)
        device = tn_default_device();
    tni_device *on = device.type ? tni_device_get(device) : NULL;
    if (!on)
        return NULL;
    tn_tensor *t = tni_tensor_new(on, dtype, (int32_t)shape.n, shape.data);
    if (!t)
        return NULL;
    uint64_t bytes = (uint64_t)(t->view.numel * tni_dtype_size(dtype));
    if (bytes && !data) {
        tni_fail(TN_ERR_INVALID_ARGUMENT,
                 "tn_from_data: data is NULL; for a tensor without given elements use tn_empty");
        tni_drop(t);
        return NULL;
    }
    if (dtype == TN_BOOL) { /* kernels compute with the bytes */
        for (uint64_t i = 0; i < bytes; i++) {
            uint8_t byte = ((const uint8_t *)data)[i];
            if (byte > 1) {
                tni_fail(TN_ERR_INVALID_ARGUMENT,
                         "tn_from_data: element %llu of a bool tensor is %u; it must be 0 or 1",
                         (unsigned long long)i, byte);
                tni_drop(t);
                return NULL;
            }
        }
    }
    if (tni_tensor_write(t, data, bytes) != TN_OK) {
        tni_drop(t);
        return NULL;
    }
    return tni_scope_push(t);
}

tn_status tn_to_host(tn_tensor *t, void *out, uint64_t bytes) {
    if (tni_no_tensor(t, "tn_to_host"))
        return tni_failed();
    uint64_t needed, item = (uint64_t)tni_dtype_size(t->view.dtype);
    if (__builtin_mul_overflow((uint64_t)t->view.numel, item, &needed))
        needed = UINT64_MAX; /* expanded to more than there can be */
    if (bytes != needed)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_to_host: room for %llu bytes, but %s of %s has exactly %llu",
                        (unsigned long long)bytes, TNI_SHAPE_OF(t), tn_dtype_name(t->view.dtype),
                        (unsigned long long)needed);
    if (bytes == 0)
        return TN_OK;
    if (!out)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_to_host: out is NULL");
    if (t->device->is_meta || tni_is_contiguous(&t->view))
        return tni_tensor_read(t, out, bytes, "tn_to_host");
    tn_tensor *packed = tni_contiguous_data(t);
    if (!packed)
        return tn_error_status();
    tn_status status = tni_tensor_read(packed, out, bytes, "tn_to_host");
    tni_drop(packed);
    return status;
}

tn_scalar tni_element(const void *data, tn_dtype dtype, int64_t i) {
    switch (dtype) {
    case TN_F32:
        return tn_float(((const float *)data)[i]);
    case TN_F64:
        return tn_float(((const double *)data)[i]);
    case TN_F16:
        return tn_float(tni_f16_to_f32(((const uint16_t *)data)[i]));
    case TN_BF16:
        return tn_float(tni_bf16_to_f32(((const uint16_t *)data)[i]));
    case TN_I8:
        return tn_int(((const int8_t *)data)[i]);
    case TN_I16:
        return tn_int(((const int16_t *)data)[i]);
    case TN_I32:
        return tn_int(((const int32_t *)data)[i]);
    case TN_I64:
        return tn_int(((const int64_t *)data)[i]);
    case TN_U8:
        return tn_int(((const uint8_t *)data)[i]);
    case TN_BOOL:
        return tn_bool(((const uint8_t *)data)[i] != 0);
    case TN_U16:
        return tn_int(((const uint16_t *)data)[i]);
    case TN_U32:
        return tn_int(((const uint32_t *)data)[i]);
    case TN_U64:
        return tn_int((int64_t)((const uint64_t *)data)[i]);
    case TN_C64:
        return tn_float(((const float *)data)[2 * i]);
    case TN_C128:
        return tn_float(((const double *)data)[2 * i]);
    default:
        return tn_no_scalar();
    }
}

/* A number that a cell can hold: one without an imaginary part, and of u64 what the caller makes of
 * its bits. */
static tn_status cell_of(const void *element, tn_dtype dtype, tn_scalar *out, const char *call) {
    *out = tni_element(element, dtype, 0);
    if (!tni_is_complex(dtype) || tni_element(element, tni_real_dtype(dtype), 1).v.f64 == 0)
        return TN_OK;
    return tni_fail(TN_ERR_DTYPE,
                    "%s: the number is complex; take its real part with tn_to_dtype, or read both"
                    " with tn_to_host",
                    call);
}

tn_status tni_tensor_scalar(tn_tensor *t, tn_scalar *out, const char *call) {
    *out = tn_no_scalar();
    if (t->view.numel != 1)
        return tni_fail(
            TN_ERR_SHAPE,
            "tn_item: a tensor %s has %lld elements; only one with exactly one has a value as a"
            " number",
            TNI_SHAPE_OF(t), (long long)t->view.numel);
    int64_t element[2] = {0, 0};
    tn_status status = tni_tensor_read(t, element, (uint64_t)tni_dtype_size(t->view.dtype), call);
    return status == TN_OK ? cell_of(element, t->view.dtype, out, call) : status;
}

tn_status tn_item(tn_tensor *t, double *out) {
    if (!out)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_item: out is NULL");
    *out = 0;
    if (tni_no_tensor(t, "tn_item"))
        return tni_failed();
    tn_scalar value;
    tn_status status = tni_tensor_scalar(t, &value, "tn_item");
    if (status == TN_OK)
        *out = value.tag == TN_CELL_F64  ? value.v.f64
               : t->view.dtype == TN_U64 ? (double)(uint64_t)value.v.i64
                                         : (double)value.v.i64;
    return status;
}

tn_status tn_item_i64(tn_tensor *t, int64_t *out) {
    if (!out)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_item_i64: out is NULL");
    *out = 0;
    if (tni_no_tensor(t, "tn_item_i64"))
        return tni_failed();
    tn_scalar value;
    TNI_TRY(tni_tensor_scalar(t, &value, "tn_item_i64"));
    if (t->view.dtype == TN_U64 && value.v.i64 < 0)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_item_i64: %llu is more than 63 bits hold; use tn_to_host",
                        (unsigned long long)value.v.i64);
    if (value.tag != TN_CELL_F64) {
        *out = value.v.i64;
        return TN_OK;
    }
    double whole = trunc(value.v.f64);
    if (!(whole >= -0x1p63 && whole < 0x1p63))
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_item_i64: %g is no 64-bit integer; use tn_item", value.v.f64);
    *out = (int64_t)whole;
    return TN_OK;
}
