/* tenon.native/1: the driver's own objects, as far as one can tell without the driver. */
#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include <tenon/ext/native.h>

/* All that a stream may keep a queue of its own for: work, marks with times and without, waiting, and
 * transfers. */
static bool use(tc_contract *k, tc_buffer *b, tn_stream_impl *stream, int value) {
    const tn_event_ops *ops = k->subject->ops->events;
    tc_subject *s = k->subject;
    unsigned char bytes[16] = {0};
    for (uint32_t flags = 0; flags <= TN_EVENT_TIMING; flags++) {
        tn_event_impl *event;
        if (!tc_buffer_fill(k, b, stream, value) || !tc_event_create(k, s, flags, &event) ||
            !tc_must(k, TNP_NATIVE_OBJECTS, ops->record(event, stream), "record") ||
            !tc_must(k, TNP_NATIVE_OBJECTS, ops->wait(stream, event), "wait") ||
            !tc_must(k, TNP_NATIVE_OBJECTS, ops->synchronize(event), "synchronize of an event"))
            return false;
        tc_event_destroy(k, event);
    }
    return tc_must(k, TNP_NATIVE_OBJECTS,
                   s->memory->copy_to_host(s->device, stream, bytes, 0, b->memory, 0, sizeof bytes),
                   "copy_to_host") &&
           tc_must(
               k, TNP_NATIVE_OBJECTS,
               s->memory->copy_from_host(s->device, stream, b->memory, 0, bytes, 0, sizeof bytes),
               "copy_from_host");
}

static void objects(tc_contract *k) {
    tc_subject *s = k->subject;
    const tn_ext_native *native = tc_subject_extension(s, TN_EXT_NATIVE);
    tn_stream_impl *streams[2] = {0};
    tc_buffer b;
    if (!native) {
        TC_NOT_OFFERED(k, "no tenon.native/1");
        return;
    }
    if (!TN_HAS(native, tn_ext_native, memory) || !native->context || !native->stream ||
        !native->memory || !native->api || !*native->api) {
        TC_BROKEN(k, TNP_NATIVE_OBJECTS, "tenon.native/1 lacks a function or the name in `api`");
        return;
    }
    void *context = native->context(s->device);
    if (!context || native->context(s->device) != context)
        TC_BROKEN(k, TNP_NATIVE_OBJECTS, "context of tenon.native/1 is NULL, or another each time");
    if (native->memory(s->device, 0))
        TC_BROKEN(k, TNP_NATIVE_OBJECTS, "the handle 0 has a name; it names no allocation");
    if (!tc_buffer_create(k, s, TN_SPACE_DEVICE, 5000, &b))
        return;
    uint64_t name = native->memory(s->device, b.memory);
    if (!name || native->memory(s->device, b.memory) != name)
        TC_BROKEN(k, TNP_NATIVE_OBJECTS, "the name of an allocation is 0, or another each time");
    for (int i = 0; s->ops->streams && i < 2 && tc_stream_create(k, s, 0, &streams[i]); i++) {
        void *queue = native->stream(streams[i]);
        if (!use(k, &b, streams[i], 0x21 + i))
            return;
        if (!queue || native->stream(streams[i]) != queue)
            TC_BROKEN(k, TNP_NATIVE_OBJECTS,
                      "the queue of a stream is NULL, or another once there was work "
                      "and a mark with its time");
        if (tc_stream_sync(k, streams[i]))
            tc_buffer_check(k, &b, s->stream, TNP_NATIVE_OBJECTS,
                            "memory that tenon.native/1 was asked for");
    }
    if (native->memory(s->device, b.memory) != name || native->context(s->device) != context)
        TC_BROKEN(k, TNP_NATIVE_OBJECTS,
                  "the name of an allocation or the context changed while work was done");
}

const tc_contract_row tc_native_rows[] = {
    {"native-objects", "", TC_SMOKE, objects},
    {0},
};
