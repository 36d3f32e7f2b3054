/* Bytes between host and device, and within a device; the slots of tn_memory_ops.
 *
 * Pinned memory goes to the driver as it is, without waiting. Other memory must be consumed before
 * the call returns: a little of it is copied to the stream's staging memory, so that the caller
 * need not wait for the queue; more of it waits. */
#include "plugins/opencl/opencl.h"

#include <string.h>

static tn_status check(tn_device_impl *device, tn_stream_impl *stream, const char *what) {
    if (!stream || stream->device != device)
        return ocl_fail(device->self, TN_ERR_INVALID_ARGUMENT, "%s: the stream is not of opencl:%u",
                        what, device->index);
    return ocl_check_lost(device);
}

static tn_status done(tn_stream_impl *stream, cl_int error, const char *what) {
    if (error != CL_SUCCESS)
        return ocl_fail_driver(stream->device, error, what);
    ocl_stream_queued(stream);
    return TN_OK;
}

/* ---- staging ----------------------------------------------------------------------------- */

/* Room for `bytes` in a half whose last transfer is over, or NULL. The caller locks. */
static ocl_stage *make_room(tn_stream_impl *stream, uint64_t bytes) {
    ocl_stage *s = &stream->stages[stream->stage];
    if (s->used + bytes > OCL_STAGE_BYTES) {
        stream->stage = !stream->stage;
        s = &stream->stages[stream->stage];
        if (s->last) {
            clWaitForEvents(1, &s->last);
            clReleaseEvent(s->last);
            s->last = NULL;
        }
        s->used = 0;
    }
    if (!s->data)
        s->data = ocl_host_alloc(stream->device->self, OCL_STAGE_BYTES, "staging memory");
    return s->data ? s : NULL;
}

static tn_status write_staged(tn_stream_impl *stream, tn_memory dst, uint64_t dst_offset,
                              const void *src, uint64_t bytes) {
    cl_int error = CL_OUT_OF_HOST_MEMORY;
    cl_event event;
    pthread_mutex_lock(&stream->lock);
    ocl_stage *s = make_room(stream, bytes);
    if (s) {
        memcpy(s->data + s->used, src, bytes);
        error = clEnqueueWriteBuffer(stream->queue, ocl_mem(dst), CL_FALSE, dst_offset, bytes,
                                     s->data + s->used, 0, NULL, &event);
        if (error == CL_SUCCESS) {
            if (s->last)
                clReleaseEvent(s->last);
            s->last = event;
            s->used += bytes;
        }
    }
    pthread_mutex_unlock(&stream->lock);
    return s ? done(stream, error, "copy_from_host") : TN_ERR_OUT_OF_MEMORY;
}

/* ---- the slots --------------------------------------------------------------------------- */

tn_status ocl_copy_from_host(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                             uint64_t dst_offset, const void *src, tn_memory src_pinned,
                             uint64_t bytes) {
    tn_status status = check(device, stream, "copy_from_host");
    if (status != TN_OK || bytes == 0)
        return status;
    if (!src_pinned && bytes <= OCL_STAGE_BYTES / 4)
        return write_staged(stream, dst, dst_offset, src, bytes);
    return done(stream,
                clEnqueueWriteBuffer(stream->queue, ocl_mem(dst), src_pinned ? CL_FALSE : CL_TRUE,
                                     dst_offset, bytes, src, 0, NULL, NULL),
                "copy_from_host");
}

tn_status ocl_copy_to_host(tn_device_impl *device, tn_stream_impl *stream, void *dst,
                           tn_memory dst_pinned, tn_memory src, uint64_t src_offset,
                           uint64_t bytes) {
    tn_status status = check(device, stream, "copy_to_host");
    if (status != TN_OK || bytes == 0)
        return status;
    return done(stream,
                clEnqueueReadBuffer(stream->queue, ocl_mem(src), dst_pinned ? CL_FALSE : CL_TRUE,
                                    src_offset, bytes, dst, 0, NULL, NULL),
                "copy_to_host");
}

tn_status ocl_copy(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                   uint64_t dst_offset, tn_memory src, uint64_t src_offset, uint64_t bytes) {
    tn_status status = check(device, stream, "copy");
    if (status != TN_OK || bytes == 0)
        return status;
    return done(stream,
                clEnqueueCopyBuffer(stream->queue, ocl_mem(src), ocl_mem(dst), src_offset,
                                    dst_offset, bytes, 0, NULL, NULL),
                "copy");
}

/* Drivers fill with patterns of up to 128 bytes, and by the byte slowly: the longest that begins
 * and ends where the range does, and the rest by the byte. */
tn_status ocl_fill(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                   uint64_t dst_offset, uint8_t value, uint64_t bytes) {
    enum { PATTERN = 16 };
    tn_status status = check(device, stream, "fill");
    if (status != TN_OK || bytes == 0)
        return status;
    unsigned char pattern[PATTERN];
    memset(pattern, value, sizeof pattern);
    uint64_t head = (PATTERN - dst_offset % PATTERN) % PATTERN;
    if (head > bytes)
        head = bytes;
    uint64_t middle = (bytes - head) / PATTERN * PATTERN, tail = bytes - head - middle;
    const struct {
        uint64_t offset, bytes, pattern;
    } parts[] = {{dst_offset, head, 1},
                 {dst_offset + head, middle, PATTERN},
                 {dst_offset + head + middle, tail, 1}};
    cl_int error = CL_SUCCESS;
    for (int i = 0; i < 3 && error == CL_SUCCESS; i++)
        if (parts[i].bytes)
            error = clEnqueueFillBuffer(stream->queue, ocl_mem(dst), pattern, parts[i].pattern,
                                        parts[i].offset, parts[i].bytes, 0, NULL, NULL);
    return done(stream, error, "fill");
}
