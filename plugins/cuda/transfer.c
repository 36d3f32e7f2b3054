/* Bytes between host and device, within a device and between two; slots of tn_memory_ops.
 *
 * Pinned memory goes to the driver as it is, without waiting. Other memory must be consumed before the
 * call returns, also where the driver knows it for pinned and would not wait (another device's, or what
 * the program registered): a little of it is copied to the stream's own pinned memory, more of it
 * waits. */
#include "plugins/cuda/cuda.h"

#include <string.h>

static tn_status check(tn_device_impl *device, tn_stream_impl *stream, const char *what) {
    if (!stream || stream->device != device)
        return cuda_fail(device->self, TN_ERR_INVALID_ARGUMENT, "%s: the stream is not of cuda:%u",
                         what, device->index);
    return cuda_check_lost(device);
}

static tn_status done(tn_stream_impl *stream, CUresult error, const char *what) {
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail_driver(stream->device, error, what);
}

/* ---- staging ----------------------------------------------------------------------------- */

/* Room for `bytes` in a half whose last transfer is over. The caller locks, in the context. */
static CUresult make_room(tn_stream_impl *stream, uint64_t bytes, cuda_stage **out) {
    const cuda_driver *d = stream->device->driver;
    cuda_stage *s = &stream->stages[stream->stage];
    CUresult error = CUDA_SUCCESS;
    if (s->used + bytes > CUDA_STAGE_BYTES) {
        cuda_stage *other = &stream->stages[!stream->stage];
        if (other->used)
            error = d->cuEventSynchronize(other->last);
        if (error != CUDA_SUCCESS)
            return error;
        stream->stage = !stream->stage;
        s = other;
        s->used = 0;
    }
    if (!s->last)
        error = d->cuEventCreate(&s->last, CU_EVENT_DISABLE_TIMING);
    if (error == CUDA_SUCCESS && !s->data)
        error = d->cuMemHostAlloc((void **)&s->data, CUDA_STAGE_BYTES, CU_MEMHOSTALLOC_PORTABLE);
    *out = s;
    return error;
}

static CUresult write_staged(tn_stream_impl *stream, CUdeviceptr dst, const void *src,
                             uint64_t bytes) {
    const cuda_driver *d = stream->device->driver;
    cuda_stage *s;
    pthread_mutex_lock(&stream->lock);
    CUresult error = make_room(stream, bytes, &s);
    if (error == CUDA_SUCCESS) {
        char *at = s->data + s->used;
        memcpy(at, src, bytes);
        error = d->cuMemcpyHtoDAsync_v2(dst, at, bytes, stream->stream);
        if (error == CUDA_SUCCESS) {
            s->used += (bytes + 15) / 16 * 16;
            error = d->cuEventRecord(s->last, stream->stream);
            if (error != CUDA_SUCCESS) /* nothing says when it was read */
                d->cuStreamSynchronize(stream->stream);
        }
    }
    pthread_mutex_unlock(&stream->lock);
    return error;
}

/* The driver consumes what it knows to be pageable before it returns, and other memory later. Only of
 * memory that it does not know it says that the question is wrong. */
static bool is_read_later(const cuda_driver *d, const void *src) {
    unsigned type = 0;
    return d->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    (CUdeviceptr)(uintptr_t)src) != CUDA_ERROR_INVALID_VALUE;
}

static CUresult write_unpinned(tn_stream_impl *stream, CUdeviceptr dst, const void *src,
                               uint64_t bytes) {
    const cuda_driver *d = stream->device->driver;
    if (bytes <= CUDA_STAGE_BYTES / 4)
        return write_staged(stream, dst, src, bytes);
    CUresult error = d->cuMemcpyHtoDAsync_v2(dst, src, bytes, stream->stream);
    if (error == CUDA_SUCCESS && is_read_later(d, src))
        error = d->cuStreamSynchronize(stream->stream);
    return error;
}

/* ---- host and device --------------------------------------------------------------------- */

tn_status cuda_copy_from_host(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                              uint64_t dst_offset, const void *src, tn_memory src_pinned,
                              uint64_t bytes) {
    CUresult error = CUDA_SUCCESS;
    PLUGIN_TRY(check(device, stream, "copy_from_host"));
    if (!src_pinned)
        PLUGIN_TRY(cuda_enter_uncaptured(stream, "a copy from memory that is not pinned"));
    if (bytes)
        error =
            CUDA_INSIDE(device, src_pinned ? device->driver->cuMemcpyHtoDAsync_v2(
                                                 dst + dst_offset, src, bytes, stream->stream)
                                           : write_unpinned(stream, dst + dst_offset, src, bytes));
    if (!src_pinned)
        cuda_leave_uncaptured(stream);
    return done(stream, error, "copy_from_host");
}

static CUresult read(tn_stream_impl *stream, void *dst, CUdeviceptr src, uint64_t bytes,
                     bool waits) {
    const cuda_driver *d = stream->device->driver;
    CUresult error = d->cuMemcpyDtoHAsync_v2(dst, src, bytes, stream->stream);
    return error == CUDA_SUCCESS && waits ? d->cuStreamSynchronize(stream->stream) : error;
}

tn_status cuda_copy_to_host(tn_device_impl *device, tn_stream_impl *stream, void *dst,
                            tn_memory dst_pinned, tn_memory src, uint64_t src_offset,
                            uint64_t bytes) {
    CUresult error = CUDA_SUCCESS;
    PLUGIN_TRY(check(device, stream, "copy_to_host"));
    if (!dst_pinned)
        PLUGIN_TRY(cuda_enter_uncaptured(stream, "a copy to memory that is not pinned"));
    if (bytes)
        error = CUDA_INSIDE(device, read(stream, dst, src + src_offset, bytes, !dst_pinned));
    if (!dst_pinned)
        cuda_leave_uncaptured(stream);
    return done(stream, error, "copy_to_host");
}

/* ---- devices ----------------------------------------------------------------------------- */

tn_status cuda_copy(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                    uint64_t dst_offset, tn_memory src, uint64_t src_offset, uint64_t bytes) {
    tn_status status = check(device, stream, "copy");
    if (status != TN_OK || bytes == 0)
        return status;
    return done(stream,
                CUDA_CALL(device, cuMemcpyDtoDAsync_v2, dst + dst_offset, src + src_offset, bytes,
                          stream->stream),
                "copy");
}

/* Lets the two reach each other where the hardware can, once: without it copies go over the host. */
static void enable_peer(tn_device_impl *device, tn_device_impl *peer) {
    int can = 0;
    uint64_t bit = UINT64_C(1) << peer->index;
    if (atomic_fetch_or(&device->peers, bit) & bit)
        return;
    if (device->driver->cuDeviceCanAccessPeer(&can, device->found->id, peer->found->id) ==
            CUDA_SUCCESS &&
        can) /* another part of the program may have done so */
        (void)CUDA_CALL(device, cuCtxEnablePeerAccess, peer->context, 0);
}

tn_status cuda_copy_peer(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                         uint64_t dst_offset, tn_device_impl *src_device, tn_memory src,
                         uint64_t src_offset, uint64_t bytes) {
    CUresult error = CUDA_SUCCESS;
    PLUGIN_TRY(check(device, stream, "copy_peer"));
    PLUGIN_TRY(cuda_check_lost(src_device));
    PLUGIN_TRY(cuda_enter_uncaptured(stream, "a copy between devices"));
    if (bytes) {
        enable_peer(device, src_device);
        enable_peer(src_device, device);
        error = CUDA_CALL(device, cuMemcpyPeerAsync, dst + dst_offset, device->context,
                          src + src_offset, src_device->context, bytes, stream->stream);
    }
    cuda_leave_uncaptured(stream);
    return error == CUDA_SUCCESS ? TN_OK
                                 : cuda_fail_between(stream, src_device, error, "copy_peer");
}

tn_status cuda_fill(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                    uint64_t dst_offset, uint8_t value, uint64_t bytes) {
    tn_status status = check(device, stream, "fill");
    if (status != TN_OK || bytes == 0)
        return status;
    return done(stream,
                CUDA_CALL(device, cuMemsetD8Async, dst + dst_offset, value, bytes, stream->stream),
                "fill");
}
