/* stream.c: queues and events. Nothing here is used until stream.h says so: a device without
 * streams is a whole device. Give tn_stream_impl and tn_event_impl members, write the slots, then
 * switch them on. Every kernel and every transfer then gets a stream, and puts its work there. */
#include "stream.h"
#include "internal.h"

struct tn_stream_impl {
    tn_device_impl *device;
};

struct tn_event_impl {
    tn_device_impl *device;
};

static tn_status stream_create(tn_device_impl *device, int32_t priority,
                               tn_stream_impl **out_stream) {
    *out_stream = NULL;
    return yourtype_not_yet(device->self, "tn_stream_ops.create",
                            "in stream.c, make an in-order queue of the device", "TNP-52");
}

/* There is none to destroy yet. Finish the work in the queue, then free it (TNP-54). */
static void stream_destroy(tn_stream_impl *stream) {}

static tn_status stream_query(tn_stream_impl *stream) {
    return yourtype_not_yet(stream->device->self, "tn_stream_ops.query",
                            "in stream.c, say whether the queue is empty, without waiting",
                            "TNP-55");
}

static tn_status stream_synchronize(tn_stream_impl *stream) {
    return yourtype_not_yet(stream->device->self, "tn_stream_ops.synchronize",
                            "in stream.c, wait for the queue and report its first error", "TNP-56");
}

static tn_status event_create(tn_device_impl *device, uint32_t flags, tn_event_impl **out_event) {
    *out_event = NULL;
    return yourtype_not_yet(device->self, "tn_event_ops.create",
                            "in stream.c, make an event that counts as done", "TNP-59");
}

/* There is none to destroy yet. Streams that wait for it go on waiting (TNP-64). */
static void event_destroy(tn_event_impl *event) {}

static tn_status event_record(tn_event_impl *event, tn_stream_impl *stream) {
    return yourtype_not_yet(event->device->self, "tn_event_ops.record",
                            "in stream.c, mark the present end of the stream", "TNP-60");
}

static tn_status event_wait(tn_stream_impl *stream, tn_event_impl *event) {
    return yourtype_not_yet(event->device->self, "tn_event_ops.wait",
                            "in stream.c, hold the stream up until the mark was passed", "TNP-63");
}

static tn_status event_query(tn_event_impl *event) {
    return yourtype_not_yet(event->device->self, "tn_event_ops.query",
                            "in stream.c, say whether the mark was passed, without waiting",
                            "TNP-61");
}

static tn_status event_synchronize(tn_event_impl *event) {
    return yourtype_not_yet(event->device->self, "tn_event_ops.synchronize",
                            "in stream.c, wait until the mark was passed", "TNP-62");
}

static tn_status event_elapsed(tn_event_impl *start, tn_event_impl *end, double *out_ns) {
    *out_ns = 0;
    return yourtype_not_yet(start->device->self, "tn_event_ops.elapsed",
                            "in stream.c, give the time between two marks, or leave the slot NULL",
                            "TNP-65");
}

const tn_stream_ops yourtype_stream_ops = {
    .struct_size = sizeof yourtype_stream_ops,
    .create = stream_create,
    .destroy = stream_destroy,
    .query = stream_query,
    .synchronize = stream_synchronize,
};

const tn_event_ops yourtype_event_ops = {
    .struct_size = sizeof yourtype_event_ops,
    .create = event_create,
    .destroy = event_destroy,
    .record = event_record,
    .wait = event_wait,
    .query = event_query,
    .synchronize = event_synchronize,
    .elapsed = event_elapsed,
};
