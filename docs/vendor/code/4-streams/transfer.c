/* transfer.c: bytes to, from and within the device, in stream order. */
#include "internal.h"
#include "stream.h"

#include <string.h>

struct transfer {
    struct npu_job job;
    const tn_host *host;
    void *to;
    const void *from; /* NULL: set to `value` */
    uint64_t bytes;
    uint8_t value;
};

static tn_status run_transfer(struct npu_job *job, const char **out_message) {
    struct transfer *t = (struct transfer *)job;
    if (t->from)
        memcpy(t->to, t->from, t->bytes);
    else
        memset(t->to, t->value, t->bytes);
    if (t->host)
        t->host->dealloc(t->host, t);
    return TN_OK;
}

/* The host's memory is read or written before this returns: what was queued earlier is waited for.
 * An error of that stays where it is (TNP-46). */
static tn_status transfer_now(tn_stream_impl *stream, struct transfer t) {
    t.job.run = run_transfer;
    npu_wait(stream, npu_push(stream, &t.job));
    return TN_OK;
}

static tn_status transfer_later(tn_device_impl *device, tn_stream_impl *stream, struct transfer t) {
    struct transfer *job = npu_new_job(device, sizeof *job);
    if (!job)
        return TN_ERR_OUT_OF_MEMORY;
    *job = t;
    job->job.run = run_transfer;
    job->host = device->self->host;
    npu_push(stream, &job->job);
    return TN_OK;
}

tn_status npu_copy_from_host(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                             uint64_t dst_offset, const void *src, tn_memory src_pinned,
                             uint64_t bytes) {
    return transfer_now(
        stream, (struct transfer){.to = npu_address(dst, dst_offset), .from = src, .bytes = bytes});
}

tn_status npu_copy_to_host(tn_device_impl *device, tn_stream_impl *stream, void *dst,
                           tn_memory dst_pinned, tn_memory src, uint64_t src_offset,
                           uint64_t bytes) {
    return transfer_now(
        stream, (struct transfer){.to = dst, .from = npu_address(src, src_offset), .bytes = bytes});
}

tn_status npu_copy(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                   uint64_t dst_offset, tn_memory src, uint64_t src_offset, uint64_t bytes) {
    return transfer_later(device, stream,
                          (struct transfer){.to = npu_address(dst, dst_offset),
                                            .from = npu_address(src, src_offset),
                                            .bytes = bytes});
}

tn_status npu_fill(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                   uint64_t dst_offset, uint8_t value, uint64_t bytes) {
    return transfer_later(
        device, stream,
        (struct transfer){.to = npu_address(dst, dst_offset), .bytes = bytes, .value = value});
}
