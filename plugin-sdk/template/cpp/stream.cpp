/* stream.cpp: queues and events. Nothing here is used until stream.h says so: a device without
 * streams is a whole device. Give tn_stream_impl and tn_event_impl members, write the slots, then switch
 * them on. Every kernel and every transfer then gets a stream, and puts its work there. */
#include "stream.h"
#include "internal.h"

struct tn_stream_impl {
    tn_device_impl *device;

    void query();
    void synchronize();
};

struct tn_event_impl {
    tn_device_impl *device;

    void record(tn_stream_impl *stream);
    void query();
    void synchronize();
};

static const tn_host *host_of(const tn_stream_impl *stream) {
    return host_of(stream->device);
}
static const tn_host *host_of(const tn_event_impl *event) {
    return host_of(event->device);
}

/* ---- streams ----------------------------------------------------------------------------- */

void tn_stream_impl::query() {
    yourtype::not_yet(host_of(this), "tn_stream_ops.query",
                      "in stream.cpp, say whether the queue is empty, without waiting", "TNP-55");
}

void tn_stream_impl::synchronize() {
    yourtype::not_yet(host_of(this), "tn_stream_ops.synchronize",
                      "in stream.cpp, wait for the queue and report its first error", "TNP-56");
}

/* ---- events ------------------------------------------------------------------------------ */

void tn_event_impl::record(tn_stream_impl *stream) {
    yourtype::not_yet(host_of(this), "tn_event_ops.record",
                      "in stream.cpp, mark the present end of the stream", "TNP-60");
}

void tn_event_impl::query() {
    yourtype::not_yet(host_of(this), "tn_event_ops.query",
                      "in stream.cpp, say whether the mark was passed, without waiting", "TNP-61");
}

void tn_event_impl::synchronize() {
    yourtype::not_yet(host_of(this), "tn_event_ops.synchronize",
                      "in stream.cpp, wait until the mark was passed", "TNP-62");
}

/* ---- the slots --------------------------------------------------------------------------- */

namespace yourtype {

static void stream_create(tn_device_impl *device, int32_t priority, tn_stream_impl **out_stream) {
    *out_stream = nullptr;
    not_yet(host_of(device), "tn_stream_ops.create",
            "in stream.cpp, make an in-order queue of the device", "TNP-52");
}

/* There is none to destroy yet. Finish the work in the queue, then free it (TNP-54). */
static void stream_destroy(tn_stream_impl *stream) {}

static void event_create(tn_device_impl *device, uint32_t flags, tn_event_impl **out_event) {
    *out_event = nullptr;
    not_yet(host_of(device), "tn_event_ops.create",
            "in stream.cpp, make an event that counts as done", "TNP-59");
}

/* There is none to destroy yet. Streams that wait for it go on waiting (TNP-64). */
static void event_destroy(tn_event_impl *event) {}

static void event_wait(tn_stream_impl *stream, tn_event_impl *event) {
    not_yet(host_of(stream), "tn_event_ops.wait",
            "in stream.cpp, hold the stream up until the mark was passed", "TNP-63");
}

static void event_elapsed(tn_event_impl *start, tn_event_impl *end, double *out_ns) {
    *out_ns = 0;
    not_yet(host_of(start), "tn_event_ops.elapsed",
            "in stream.cpp, give the time between two marks, or leave the slot NULL", "TNP-65");
}

constexpr tn_stream_ops stream_ops = [] {
    auto ops = tenon::table<tn_stream_ops>();
    ops.create = tenon::slot<stream_create>;
    ops.destroy = tenon::slot<stream_destroy>;
    ops.query = tenon::slot<&tn_stream_impl::query>;
    ops.synchronize = tenon::slot<&tn_stream_impl::synchronize>;
    return ops;
}();

constexpr tn_event_ops event_ops = [] {
    auto ops = tenon::table<tn_event_ops>();
    ops.create = tenon::slot<event_create>;
    ops.destroy = tenon::slot<event_destroy>;
    ops.record = tenon::slot<&tn_event_impl::record>;
    ops.wait = tenon::slot<event_wait>;
    ops.query = tenon::slot<&tn_event_impl::query>;
    ops.synchronize = tenon::slot<&tn_event_impl::synchronize>;
    ops.elapsed = tenon::slot<event_elapsed>;
    return ops;
}();

} // namespace yourtype
