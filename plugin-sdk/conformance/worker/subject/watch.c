/* See watch.h. */
#include "plugin-sdk/conformance/worker/subject/watch.h"

#include "plugin-sdk/conformance/worker/subject/held.h"
#include "plugin-sdk/conformance/worker/subject/host.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_bool watches_all, called;

void tc_watch_all(bool all) {
    atomic_store(&watches_all, all);
}

bool tc_watch_called(void) {
    return atomic_exchange_explicit(&called, false, memory_order_relaxed);
}

void tc_watch_begin(tc_watch *w) {
    if (!atomic_load_explicit(&called, memory_order_relaxed)) /* threads that meet do not here */
        atomic_store_explicit(&called, true, memory_order_relaxed);
    if (atomic_load_explicit(&watches_all, memory_order_relaxed))
        tni_process_look(&w->before);
    else
        tni_process_look_quickly(&w->before);
}

/* Whether something is not as it was, what in `text`; it is put back. */
static bool has_changed(const tc_watch *w, char *text, size_t room) {
    bool all = atomic_load_explicit(&watches_all, memory_order_relaxed);
    tni_process_part part = all ? tni_process_compare(&w->before, text, room)
                                : tni_process_compare_quickly(&w->before, text, room);
    if (part == TNI_PROCESS_PARTS)
        return false;
    if (all)
        tni_process_restore(&w->before);
    else
        tni_process_restore_quickly(&w->before);
    return true;
}

static void blame(const char *call, const char *text) {
    tc_host_blame(TNP_PROCESS_STATE_KEPT, "%s %s; put it back before the call returns", call, text);
}

void tc_watch_end(const tc_watch *w, const char *call) {
    char text[256];
    if (has_changed(w, text, sizeof text))
        blame(call, text);
}

/* ---- the tables -------------------------------------------------------------------------- */

/* X(table, function, parameters, arguments) of those that return a status, Y(...) of the others. */
#define FUNCTIONS(X, Y) \
    X(memory, alloc, (tn_device_impl * device, tn_allocation * a), (device, a)) \
    Y(memory, dealloc, (tn_device_impl * device, int32_t space, tn_memory memory), \
      (device, space, memory)) \
    X(memory, copy_from_host, \
      (tn_device_impl * device, tn_stream_impl * stream, tn_memory dst, uint64_t offset, \
       const void *src, tn_memory pinned, uint64_t bytes), \
      (device, stream, dst, offset, src, pinned, bytes)) \
    X(memory, copy_to_host, \
      (tn_device_impl * device, tn_stream_impl * stream, void *dst, tn_memory pinned, \
       tn_memory src, uint64_t offset, uint64_t bytes), \
      (device, stream, dst, pinned, src, offset, bytes)) \
    X(memory, copy, \
      (tn_device_impl * device, tn_stream_impl * stream, tn_memory dst, uint64_t to, \
       tn_memory src, uint64_t from, uint64_t bytes), \
      (device, stream, dst, to, src, from, bytes)) \
    X(memory, copy_peer, \
      (tn_device_impl * device, tn_stream_impl * stream, tn_memory dst, uint64_t to, \
       tn_device_impl * other, tn_memory src, uint64_t from, uint64_t bytes), \
      (device, stream, dst, to, other, src, from, bytes)) \
    X(memory, fill, \
      (tn_device_impl * device, tn_stream_impl * stream, tn_memory dst, uint64_t offset, \
       uint8_t value, uint64_t bytes), \
      (device, stream, dst, offset, value, bytes)) \
    X(memory, info, (tn_device_impl * device, int32_t space, tn_memory_info * out), \
      (device, space, out)) \
    X(streams, create, (tn_device_impl * device, int32_t priority, tn_stream_impl * *out), \
      (device, priority, out)) \
    Y(streams, destroy, (tn_stream_impl * stream), (stream)) \
    X(streams, query, (tn_stream_impl * stream), (stream)) \
    X(streams, synchronize, (tn_stream_impl * stream), (stream)) \
    X(events, create, (tn_device_impl * device, uint32_t flags, tn_event_impl * *out), \
      (device, flags, out)) \
    Y(events, destroy, (tn_event_impl * event), (event)) \
    X(events, record, (tn_event_impl * event, tn_stream_impl * stream), (event, stream)) \
    X(events, wait, (tn_stream_impl * stream, tn_event_impl * event), (stream, event)) \
    X(events, query, (tn_event_impl * event), (event)) \
    X(events, synchronize, (tn_event_impl * event), (event)) \
    X(events, elapsed, (tn_event_impl * start, tn_event_impl * end, double *out), \
      (start, end, out)) \
    X(devices, count, (tn_instance * self, uint32_t * out), (self, out)) \
    X(devices, open, (tn_instance * self, uint32_t index, tn_device_impl * *out), \
      (self, index, out)) \
    Y(devices, close, (tn_device_impl * device), (device)) \
    X(devices, property, (tn_instance * self, uint32_t index, int32_t name, tn_cell * out), \
      (self, index, name, out)) \
    X(devices, accepts, (tn_device_impl * device, const tn_kernel *kernel), (device, kernel))

/* The plugin's own, and the same watched. */
static struct {
    tn_memory_ops memory;
    tn_stream_ops streams;
    tn_event_ops events;
    tn_device_ops devices;
} own, watched;

#define STATUS(table, function, parameters, arguments) \
    static tn_status table##_##function parameters { \
        tc_watch w; \
        tc_watch_begin(&w); \
        tn_status status = own.table.function arguments; \
        tc_watch_end(&w, #table "->" #function); \
        return status; \
    }
#define NOTHING(table, function, parameters, arguments) \
    static void table##_##function parameters { \
        tc_watch w; \
        tc_watch_begin(&w); \
        own.table.function arguments; \
        tc_watch_end(&w, #table "->" #function); \
    }
FUNCTIONS(STATUS, NOTHING)

/* What the suite holds is counted as the plugin gives it and before the plugin has it back, when the
 * handle may be another's. */
static tn_status alloc_held(tn_device_impl *device, tn_allocation *a) {
    tn_status status = memory_alloc(device, a);
    if (status == TN_OK && a->memory)
        tc_held_add(device, a->space, a->memory, a->bytes);
    return status;
}

static void dealloc_held(tn_device_impl *device, int32_t space, tn_memory memory) {
    uint64_t bytes = tc_held_remove(device, space, memory);
    memory_dealloc(device, space, memory);
    tc_held_removed(bytes);
}

static void close_held(tn_device_impl *device) {
    tc_held_forget(device);
    devices_close(device);
}

/* As much of a table as there is of it. */
static void take(void *to, const void *from, uint64_t known) {
    uint64_t size = 0;
    memset(to, 0, known);
    if (!from)
        return;
    memcpy(&size, from, sizeof size);
    memcpy(to, from, size < known ? size : known);
}

const tn_device_ops *tc_watch_devices(const tn_device_ops *ops) {
    take(&own.devices, ops, sizeof own.devices);
    take(&own.memory, own.devices.memory, sizeof own.memory);
    take(&own.streams, own.devices.streams, sizeof own.streams);
    take(&own.events, own.devices.events, sizeof own.events);
    watched = own;
#define WATCH(table, function, parameters, arguments) \
    if (own.table.function) \
        watched.table.function = table##_##function;
    FUNCTIONS(WATCH, WATCH)
    watched.memory.alloc = own.memory.alloc ? alloc_held : NULL;
    watched.memory.dealloc = own.memory.dealloc ? dealloc_held : NULL;
    watched.devices.close = own.devices.close ? close_held : NULL;
    watched.devices.memory = own.devices.memory ? &watched.memory : NULL;
    watched.devices.streams = own.devices.streams ? &watched.streams : NULL;
    watched.devices.events = own.devices.events ? &watched.events : NULL;
    return &watched.devices;
}

/* ---- records ----------------------------------------------------------------------------- */

static void end_of(const tc_watch *w, const char *function, const tn_kernel *kernel) {
    char call[96], text[256];
    if (!has_changed(w, text, sizeof text))
        return;
    snprintf(call, sizeof call, "%s of %.60s", function, kernel->op);
    blame(call, text);
}

tn_status tc_watch_supports(const tn_kernel *kernel, const tn_call *call) {
    tc_watch w;
    tc_watch_begin(&w);
    tn_status status = kernel->supports(call);
    end_of(&w, "supports", kernel);
    return status;
}

tn_status tc_watch_prepare(const tn_kernel *kernel, const tn_call *call, tn_plan *plan) {
    tc_watch w;
    tc_watch_begin(&w);
    tn_status status = kernel->prepare(call, plan);
    end_of(&w, "prepare", kernel);
    return status;
}

tn_status tc_watch_run(const tn_kernel *kernel, const tn_call *call) {
    tc_watch w;
    tc_watch_begin(&w);
    tn_status status = kernel->run(call);
    end_of(&w, "run", kernel);
    return status;
}

void tc_watch_abandon(const tn_kernel *kernel, const tn_call *call) {
    tc_watch w;
    tc_watch_begin(&w);
    kernel->abandon(call);
    end_of(&w, "abandon", kernel);
}
