/* Bytes between host and device, and within a device; the slots of tn_memory_ops.
 *
 * Pinned memory goes to the driver as it is, without waiting. Other memory must be consumed before
 * the call returns: a little of it is copied to the stream's staging memory, so that the caller
 * need not wait for the queue; more of it waits. */
#include "plugins/opencl/capture.h"

#include <string.h>

static tn_status check(tn_device_impl *device, tn_stream_impl *stream, const char *what) {
    if (!stream || stream->device != device)
        return ocl_fail(device->self, TN_ERR_INVALID_ARGUMENT, "%s: the stream is not of opencl:%u",
                        what, device->index);
    return ocl_check_lost(device);
}

/* ---- what can be recorded ---------------------------------------------------------------- */

typedef struct transfer {
    ocl_command command;
    tn_memory dst, src;
    uint64_t dst_offset, src_offset, bytes;
    void *host;       /* the host's side */
    bool waits;       /* until the host's side can be used again */
    uint8_t value;    /* of a fill */
    uint32_t pattern; /* bytes of a fill at a time */
} transfer;

static cl_int enqueue_write(tn_stream_impl *stream, const ocl_command *command) {
    const transfer *t = (const transfer *)command;
    return clEnqueueWriteBuffer(stream->queue, ocl_mem(t->dst), t->waits, t->dst_offset, t->bytes,
                                t->host, 0, NULL, NULL);
}

static cl_int enqueue_read(tn_stream_impl *stream, const ocl_command *command) {
    const transfer *t = (const transfer *)command;
    return clEnqueueReadBuffer(stream->queue, ocl_mem(t->src), t->waits, t->src_offset, t->bytes,
                               t->host, 0, NULL, NULL);
}

static cl_int enqueue_copy(tn_stream_impl *stream, const ocl_command *command) {
    const transfer *t = (const transfer *)command;
    return clEnqueueCopyBuffer(stream->queue, ocl_mem(t->src), ocl_mem(t->dst), t->src_offset,
                               t->dst_offset, t->bytes, 0, NULL, NULL);
}

enum { PATTERN = 16 };

static cl_int enqueue_fill(tn_stream_impl *stream, const ocl_command *command) {
    const transfer *t = (const transfer *)command;
    unsigned char pattern[PATTERN];
    memset(pattern, t->value, sizeof pattern);
    return clEnqueueFillBuffer(stream->queue, ocl_mem(t->dst), pattern, t->pattern, t->dst_offset,
                               t->bytes, 0, NULL, NULL);
}

/* Queues it, or records it. */
static tn_status submit(tn_stream_impl *stream, const transfer *t, const char *what) {
    if (!ocl_is_capturing(stream)) {
        if (!t->waits)
            pthread_mutex_lock(&stream->lock);
        cl_int error = t->command.queue(stream, &t->command);
        if (!t->waits)
            pthread_mutex_unlock(&stream->lock);
        return ocl_queued(stream, error, what);
    }
    transfer *kept = ocl_host_alloc(stream->device->self, sizeof *kept, "a captured transfer");
    if (kept)
        *kept = *t;
    return ocl_record(stream, kept ? &kept->command : NULL, what);
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
    return s ? ocl_queued(stream, error, "copy_from_host") : TN_ERR_OUT_OF_MEMORY;
}

/* ---- the slots --------------------------------------------------------------------------- */

tn_status ocl_copy_from_host(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                             uint64_t dst_offset, const void *src, tn_memory src_pinned,
                             uint64_t bytes) {
    tn_status status = check(device, stream, "copy_from_host");
    if (status == TN_OK && !src_pinned)
        status = ocl_check_not_capturing(stream, "a copy from memory that is not pinned");
    if (status != TN_OK || bytes == 0)
        return status;
    if (!src_pinned && bytes <= OCL_STAGE_BYTES / 4)
        return write_staged(stream, dst, dst_offset, src, bytes);
    transfer t = {.command.queue = enqueue_write,
                  .dst = dst,
                  .dst_offset = dst_offset,
                  .bytes = bytes,
                  .host = (void *)(uintptr_t)src,
                  .waits = !src_pinned};
    return submit(stream, &t, "copy_from_host");
}

tn_status ocl_copy_to_host(tn_device_impl *device, tn_stream_impl *stream, void *dst,
                           tn_memory dst_pinned, tn_memory src, uint64_t src_offset,
                           uint64_t bytes) {
    tn_status status = check(device, stream, "copy_to_host");
    if (status == TN_OK && !dst_pinned)
        status = ocl_check_not_capturing(stream, "a copy to memory that is not pinned");
    if (status != TN_OK || bytes == 0)
        return status;
    transfer t = {.command.queue = enqueue_read,
                  .src = src,
                  .src_offset = src_offset,
                  .bytes = bytes,
                  .host = dst,
                  .waits = !dst_pinned};
    return submit(stream, &t, "copy_to_host");
}

tn_status ocl_copy(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                   uint64_t dst_offset, tn_memory src, uint64_t src_offset, uint64_t bytes) {
    tn_status status = check(device, stream, "copy");
    if (status != TN_OK || bytes == 0)
        return status;
    transfer t = {.command.queue = enqueue_copy,
                  .dst = dst,
                  .src = src,
                  .dst_offset = dst_offset,
                  .src_offset = src_offset,
                  .bytes = bytes};
    return submit(stream, &t, "copy");
}

/* Drivers fill with patterns of up to 128 bytes, and by the byte slowly: the longest that begins
 * and ends where the range does, and the rest by the byte. */
tn_status ocl_fill(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                   uint64_t dst_offset, uint8_t value, uint64_t bytes) {
    tn_status status = check(device, stream, "fill");
    if (status != TN_OK || bytes == 0)
        return status;
    uint64_t head = (PATTERN - dst_offset % PATTERN) % PATTERN;
    if (head > bytes)
        head = bytes;
    uint64_t middle = (bytes - head) / PATTERN * PATTERN, tail = bytes - head - middle;
    const struct {
        uint64_t offset, bytes;
        uint32_t pattern;
    } parts[] = {{dst_offset, head, 1},
                 {dst_offset + head, middle, PATTERN},
                 {dst_offset + head + middle, tail, 1}};
    for (int i = 0; i < 3 && status == TN_OK; i++) {
        transfer t = {.command.queue = enqueue_fill,
                      .dst = dst,
                      .dst_offset = parts[i].offset,
                      .bytes = parts[i].bytes,
                      .value = value,
                      .pattern = parts[i].pattern};
        if (t.bytes)
            status = submit(stream, &t, "fill");
    }
    return status;
}
