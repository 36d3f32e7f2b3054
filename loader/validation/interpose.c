/* The functions of the tables that stand in front of a plugin's and of the host's.
 *
 * plugin.h hands no context to most slots, so a function must know by itself whose it is: each of
 * the TNI_MAX_WATCHES watches has a set of its own, made here from one list.
 */
#include "loader/validation/internal.h"

/* X(N, result, name, parameters, arguments) for each slot */
#define HOST_SLOTS(X, N) \
    X(N, void *, host_alloc, (uint64_t bytes, uint64_t alignment), (W(N), bytes, alignment)) \
    X(N, void, host_free, (void *p), (W(N), p)) \
    X(N, void, host_log, (tn_pself * self, int32_t level, const char *message), \
      (W(N), self, level, message)) \
    X(N, tn_status, host_fail, (tn_status status, const char *message), (W(N), status, message)) \
    X(N, const char *, host_option, (tn_pself * self, const char *name), (W(N), self, name)) \
    X(N, const void *, host_extension, (const char *id), (W(N), id))

#define PLUGIN_SLOTS(X, N) \
    X(N, tn_status, init, (const tn_host *host, const char *path, tn_pself **out), \
      (W(N), host, path, out)) \
    X(N, void, shutdown, (tn_pself * self), (W(N), self)) \
    X(N, const void *, extension, (tn_pself * self, const char *id), (W(N), self, id)) \
    X(N, tn_status, count, (tn_pself * self, uint32_t * out), (W(N), self, out)) \
    X(N, tn_status, open, (tn_pself * self, uint32_t index, tn_pdevice * *out), \
      (W(N), self, index, out)) \
    X(N, void, close, (tn_pdevice * device), (W(N), device)) \
    X(N, tn_status, property, (tn_pself * self, uint32_t index, int32_t property, tn_cell * out), \
      (W(N), self, index, property, out)) \
    X(N, tn_status, supports, (tn_pdevice * device, const tn_kernel *kernel), \
      (W(N), device, kernel))

#define MEMORY_SLOTS(X, N) \
    X(N, tn_status, alloc, \
      (tn_pdevice * device, int32_t space, uint64_t bytes, tn_memory * memory, void **host), \
      (W(N), device, space, bytes, memory, host)) \
    X(N, void, free, (tn_pdevice * device, int32_t space, tn_memory memory), \
      (W(N), device, space, memory)) \
    X(N, tn_status, write, \
      (tn_pdevice * device, tn_pstream * stream, tn_memory dst, uint64_t offset, const void *src, \
       uint64_t bytes), \
      (W(N), device, stream, dst, offset, src, bytes)) \
    X(N, tn_status, read, \
      (tn_pdevice * device, tn_pstream * stream, void *dst, tn_memory src, uint64_t offset, \
       uint64_t bytes), \
      (W(N), device, stream, dst, src, offset, bytes)) \
    X(N, tn_status, copy, \
      (tn_pdevice * device, tn_pstream * stream, tn_memory dst, uint64_t dst_offset, \
       tn_memory src, uint64_t src_offset, uint64_t bytes), \
      (W(N), device, stream, dst, dst_offset, src, src_offset, bytes)) \
    X(N, tn_status, copy_peer, \
      (tn_pdevice * device, tn_pstream * stream, tn_memory dst, uint64_t dst_offset, \
       tn_pdevice * src_device, tn_memory src, uint64_t src_offset, uint64_t bytes), \
      (W(N), device, stream, dst, dst_offset, src_device, src, src_offset, bytes)) \
    X(N, tn_status, fill, \
      (tn_pdevice * device, tn_pstream * stream, tn_memory dst, uint64_t offset, uint32_t value, \
       uint64_t bytes), \
      (W(N), device, stream, dst, offset, value, bytes)) \
    X(N, tn_status, info, (tn_pdevice * device, tn_memory_info * out), (W(N), device, out))

#define QUEUE_SLOTS(X, N) \
    X(N, tn_status, stream_create, (tn_pdevice * device, int32_t priority, tn_pstream * *out), \
      (W(N), device, priority, out)) \
    X(N, void, stream_destroy, (tn_pstream * stream), (W(N), stream)) \
    X(N, tn_status, stream_query, (tn_pstream * stream), (W(N), stream)) \
    X(N, tn_status, stream_synchronize, (tn_pstream * stream), (W(N), stream)) \
    X(N, void *, stream_native_handle, (tn_pstream * stream), (W(N), stream)) \
    X(N, tn_status, event_create, (tn_pdevice * device, uint32_t flags, tn_pevent * *out), \
      (W(N), device, flags, out)) \
    X(N, void, event_destroy, (tn_pevent * event), (W(N), event)) \
    X(N, tn_status, event_record, (tn_pevent * event, tn_pstream * stream), (W(N), event, stream)) \
    X(N, tn_status, event_wait, (tn_pstream * stream, tn_pevent * event), (W(N), stream, event)) \
    X(N, tn_status, event_query, (tn_pevent * event), (W(N), event)) \
    X(N, tn_status, event_synchronize, (tn_pevent * event), (W(N), event)) \
    X(N, tn_status, event_elapsed, (tn_pevent * start, tn_pevent * end, double *out), \
      (W(N), start, end, out)) \
    X(N, void *, event_native_handle, (tn_pevent * event), (W(N), event))

#define W(N) (&tni_watches[N])
#define DEFINE(N, result, name, parameters, arguments) \
    static result name##_##N parameters { \
        return tni_watched_##name arguments; \
    }

#define PROXIES(N) \
    HOST_SLOTS(DEFINE, N) \
    PLUGIN_SLOTS(DEFINE, N) \
    MEMORY_SLOTS(DEFINE, N) \
    QUEUE_SLOTS(DEFINE, N) \
    static const tni_proxies proxies_##N = { \
        .host = {.alloc = host_alloc_##N, \
                 .free = host_free_##N, \
                 .log = host_log_##N, \
                 .fail = host_fail_##N, \
                 .option = host_option_##N, \
                 .extension = host_extension_##N}, \
        .tables = { \
            .plugin = {.init = init_##N, .shutdown = shutdown_##N, .extension = extension_##N}, \
            .devices = {.count = count_##N, \
                        .open = open_##N, \
                        .close = close_##N, \
                        .property = property_##N, \
                        .supports = supports_##N}, \
            .memory = {.alloc = alloc_##N, \
                       .free = free_##N, \
                       .write = write_##N, \
                       .read = read_##N, \
                       .copy = copy_##N, \
                       .copy_peer = copy_peer_##N, \
                       .fill = fill_##N, \
                       .info = info_##N}, \
            .streams = {.create = stream_create_##N, \
                        .destroy = stream_destroy_##N, \
                        .query = stream_query_##N, \
                        .synchronize = stream_synchronize_##N, \
                        .native_handle = stream_native_handle_##N}, \
            .events = {.create = event_create_##N, \
                       .destroy = event_destroy_##N, \
                       .record = event_record_##N, \
                       .wait = event_wait_##N, \
                       .query = event_query_##N, \
                       .synchronize = event_synchronize_##N, \
                       .elapsed = event_elapsed_##N, \
                       .native_handle = event_native_handle_##N}}};

PROXIES(0)
PROXIES(1)
PROXIES(2)
PROXIES(3)
PROXIES(4)
PROXIES(5)
PROXIES(6)
PROXIES(7)

const tni_proxies *const tni_proxies_of[] = {&proxies_0, &proxies_1, &proxies_2, &proxies_3,
                                             &proxies_4, &proxies_5, &proxies_6, &proxies_7};
_Static_assert(sizeof tni_proxies_of / sizeof *tni_proxies_of == TNI_MAX_WATCHES,
               "one set of proxies for each watch");
