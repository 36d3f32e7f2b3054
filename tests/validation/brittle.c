/* The plugin of brittle.h. */
#define TN_PLUGIN_QUERY brittle_query
#define _GNU_SOURCE
#include "base/alloc.h"
#include "tests/support/host_memory_device.h"
#include "tests/validation/brittle.h"

#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tenon/ext/capture.h>
#include <tenon/kernels.h>
#include <unistd.h>

struct tn_instance {
    int unused;
};
struct tn_device_impl {
    uint32_t index;
};
struct tn_stream_impl {
    tn_device_impl *device;
    bool captures;
};
struct tn_event_impl {
    int queries;
};

brittle_settings brittle;

static struct tn_instance the_self;
static struct tn_device_impl devices[2] = {{0}, {1}};
static bool lost;
static int asked;
static int opened_file = -1;
static pthread_t stray;
static sem_t stray_ends;
static pthread_barrier_t meeting;
static const tn_call *kept_call; /* what is read later than it may be */
static const char *kept_src;

static bool is(const char *fault) {
    return brittle.fault && strcmp(brittle.fault, fault) == 0;
}

static tn_status fail(tn_status status) {
    return brittle.host->fail(brittle.host, status, "the brittle plugin was told to fail");
}

/* What any call may do wrong. */
static tn_status common(void) {
    if (is("silent"))
        return TN_ERR_INTERNAL;
    if (is("no status"))
        return 99;
    if (is("not ready"))
        return TN_NOT_READY;
    if (is("other status")) {
        fail(TN_ERR_IO);
        return TN_ERR_INTERNAL;
    }
    if (is("fails with ok")) {
        brittle.host->fail(brittle.host, TN_OK, "fine");
        return TN_OK;
    }
    if (is("dry")) {
        tni_alloc_fail_at(1);
        brittle.host->alloc(brittle.host, 64, 16);
        return fail(TN_ERR_INTERNAL);
    }
    if (is("comes back")) {
        bool first = !lost;
        lost = true;
        return first ? fail(TN_ERR_DEVICE_LOST) : TN_OK;
    }
    return TN_OK;
}

/* What a capture cannot hold. */
static tn_status check_capture(const tn_stream_impl *stream) {
    return stream && stream->captures && !is("refuses nothing") ? fail(TN_ERR_STATE) : TN_OK;
}

/* ---- memory ------------------------------------------------------------------------------ */

static tn_status memory_alloc(tn_device_impl *d, tn_allocation *a) {
    static _Alignas(64) char shared[4096];
    if ((a->space != TN_SPACE_DEVICE && a->space != TN_SPACE_PINNED) || a->flags)
        return fail(TN_ERR_UNSUPPORTED);
    char *p = is("overlaps") ? shared + 64 * ++asked
                             : brittle.host->alloc(brittle.host, a->bytes + 64, 256);
    if (!p)
        return fail(TN_ERR_OUT_OF_MEMORY);
    if (is("changes request"))
        a->struct_size = 8;
    a->memory = is("no handle") ? 0 : is("same handle") ? 7 : (tn_memory)(uintptr_t)p;
    a->host = is("no host pointer") ? NULL
              : is("misaligned")    ? p + 8
              : is("aligns to 64")  ? p + 64
                                    : p;
    if (is("no handle") || is("same handle"))
        brittle.host->dealloc(brittle.host, p);
    return TN_OK;
}

static void memory_free(tn_device_impl *d, int32_t space, tn_memory memory) {
    if (kept_call || kept_src) { /* of a test of one thread */
        asked += (kept_call ? (int)kept_call->n_args : 0) + (kept_src ? *kept_src : 0);
        kept_call = NULL;
        kept_src = NULL;
    }
    if (!is("overlaps") && memory != 7)
        brittle.host->dealloc(brittle.host, (void *)(uintptr_t)memory);
}

static tn_status memory_write(tn_device_impl *d, tn_stream_impl *stream, tn_memory dst,
                              uint64_t offset, const void *src, tn_memory src_pinned,
                              uint64_t bytes) {
    if (!src_pinned && check_capture(stream) != TN_OK)
        return TN_ERR_STATE;
    plain_write(d, stream, dst, offset, src, src_pinned, bytes);
    if (is("keeps src"))
        kept_src = src;
    if (is("writes behind"))
        plain_at(dst, offset)[bytes] ^= 1;
    return common();
}

static tn_status memory_read(tn_device_impl *d, tn_stream_impl *stream, void *dst,
                             tn_memory dst_pinned, tn_memory src, uint64_t offset, uint64_t bytes) {
    tn_status status = dst_pinned ? TN_OK : check_capture(stream);
    return status == TN_OK ? plain_read(d, stream, dst, dst_pinned, src, offset, bytes) : status;
}

static tn_status memory_copy_peer(tn_device_impl *d, tn_stream_impl *stream, tn_memory dst,
                                  uint64_t dst_offset, tn_device_impl *src_device, tn_memory src,
                                  uint64_t src_offset, uint64_t bytes) {
    tn_status status = check_capture(stream);
    return status == TN_OK ? plain_copy(d, stream, dst, dst_offset, src, src_offset, bytes)
                           : status;
}

static tn_status memory_info(tn_device_impl *d, int32_t space, tn_memory_info *out) {
    if (space != TN_SPACE_DEVICE && space != TN_SPACE_PINNED)
        return fail(TN_ERR_UNSUPPORTED);
    if (is("changes size"))
        out->struct_size = 8;
    out->total_bytes = 100;
    out->free_bytes = is("more than all") ? 101 : 50;
    return TN_OK;
}

static const tn_memory_ops memory_ops = {.struct_size = sizeof memory_ops,
                                         .alloc = memory_alloc,
                                         .dealloc = memory_free,
                                         .copy_from_host = memory_write,
                                         .copy_to_host = memory_read,
                                         .copy = plain_copy,
                                         .copy_peer = memory_copy_peer,
                                         .fill = plain_fill,
                                         .info = memory_info};

/* ---- streams and events ------------------------------------------------------------------ */

static tn_status stream_create(tn_device_impl *d, int32_t priority, tn_stream_impl **out) {
    *out = is("no stream") ? NULL : calloc(1, sizeof **out);
    if (*out)
        (*out)->device = d;
    return TN_OK;
}

static void stream_destroy(tn_stream_impl *stream) {
    free(stream);
}

static tn_status stream_query(tn_stream_impl *stream) {
    return is("not ready") ? TN_NOT_READY : check_capture(stream);
}

static tn_status stream_synchronize(tn_stream_impl *stream) {
    tn_status status = check_capture(stream);
    return status == TN_OK ? common() : status;
}

static const tn_stream_ops stream_ops = {.struct_size = sizeof stream_ops,
                                         .create = stream_create,
                                         .destroy = stream_destroy,
                                         .query = stream_query,
                                         .synchronize = stream_synchronize};

static tn_status event_create(tn_device_impl *d, uint32_t flags, tn_event_impl **out) {
    *out = is("no event") ? NULL : calloc(1, sizeof **out);
    return TN_OK;
}

static void event_destroy(tn_event_impl *event) {
    free(event);
}

static tn_status event_record(tn_event_impl *event, tn_stream_impl *stream) {
    event->queries = 0;
    return check_capture(stream);
}

static tn_status event_wait(tn_stream_impl *stream, tn_event_impl *event) {
    return check_capture(stream);
}

static tn_status event_query(tn_event_impl *event) {
    bool first = event->queries++ == 0;
    return is("never done") || (is("undone") && !first) ? TN_NOT_READY : TN_OK;
}

static tn_status event_synchronize(tn_event_impl *event) {
    return TN_OK;
}

static tn_status event_elapsed(tn_event_impl *start, tn_event_impl *end, double *out) {
    *out = 0;
    return is("times nothing") ? TN_OK : fail(TN_ERR_STATE);
}

static const tn_event_ops event_ops = {.struct_size = sizeof event_ops,
                                       .create = event_create,
                                       .destroy = event_destroy,
                                       .record = event_record,
                                       .wait = event_wait,
                                       .query = event_query,
                                       .synchronize = event_synchronize,
                                       .elapsed = event_elapsed};

/* ---- kernels ----------------------------------------------------------------------------- */

static uint64_t bytes_of(const tn_tensor_view *v) {
    return (uint64_t)v->numel * (v->dtype == TN_BOOL ? 1 : 4);
}

static tn_status run(const tn_call *call) {
    const tn_tensor_view *out = call->outs[0];
    if (is("declines late"))
        *plain_at(out->memory, out->offset) ^= 1;
    if (is("declines") || is("declines late"))
        return fail(TN_ERR_UNSUPPORTED);
    memset(plain_at(out->memory, out->offset), 0, bytes_of(out));
    if (is("writes inputs"))
        *plain_at(call->args[0].v.view->memory, call->args[0].v.view->offset) ^= 1;
    if (is("writes beside"))
        *plain_at(out->memory, out->offset + bytes_of(out)) ^= 1;
    if (is("keeps the call"))
        kept_call = call;
    if (is("rounds"))
        fesetround(FE_UPWARD);
    if (is("masks files"))
        umask(0123);
    if (is("goes away") && chdir("/"))
        return fail(TN_ERR_IO);
    if (is("blocks signals")) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
    }
    return common();
}

static tn_status supports(const tn_call *call) {
    if (is("moody"))
        return asked++ % 2 ? TN_OK : TN_ERR_UNSUPPORTED;
    if (is("answers shape"))
        return fail(TN_ERR_SHAPE);
    return TN_OK;
}

static tn_status prepare(const tn_call *call, tn_plan *out) {
    if (is("changes plan"))
        out->struct_size = 8;
    out->workspace_bytes = is("greedy") ? UINT64_MAX / 2 : 64;
    out->cookie = 5;
    return TN_OK;
}

static void abandon(const tn_call *call) {
    brittle.n_abandoned++;
}

#define RECORD(name, mask, bits) \
    { \
        .struct_size = sizeof(tn_kernel), .op = TN_KERNEL_##name, \
        .schema_hash = TN_KERNEL_HASH_##name, .dtypes = {mask}, .flags = bits, .run = run, \
        .supports = supports, .prepare = prepare, .abandon = abandon \
    }
static const tn_kernel neg = RECORD(neg, TN_DTYPE_BIT(TN_F32), TN_KERNEL_IN_PLACE);
static const tn_kernel add = RECORD(add, TN_DTYPE_BIT(TN_F32), TN_KERNEL_SCALARS);
static const tn_kernel where = RECORD(where, TN_DTYPE_BIT(TN_F32), TN_KERNEL_STRIDED);
static const tn_kernel plain_neg = RECORD(neg, TN_DTYPE_BIT(TN_F32), 0);
static const tn_kernel *const kernels[] = {&neg, &add, &where, &plain_neg};

/* ---- devices and the plugin -------------------------------------------------------------- */

static tn_status count(tn_instance *self, uint32_t *out) {
    *out = 2;
    return TN_OK;
}

static tn_status open_device(tn_instance *self, uint32_t index, tn_device_impl **out) {
    if (is("opens a file"))
        opened_file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (is("meets"))
        pthread_barrier_wait(&meeting);
    if (is("open is silent"))
        return TN_ERR_IO;
    *out = is("no device") ? NULL : is("one device") ? &devices[0] : &devices[index];
    return TN_OK;
}

static tn_status property(tn_instance *self, uint32_t index, int32_t which, tn_cell *out) {
    static int64_t changing = 1;
    if (which == TN_PROP_ALIGNMENT) {
        *out = (tn_cell){.tag = TN_CELL_I64, .v.i64 = is("odd alignment") ? 48 : 64};
        return TN_OK;
    }
    if (which == TN_PROP_NAME) {
        *out = (tn_cell){.tag = TN_CELL_STRING, .v.string = is("no name") ? "" : "brittle"};
        return TN_OK;
    }
    if (which == TN_PROP_SPACES) {
        int64_t both = 1 << TN_SPACE_DEVICE | 1 << TN_SPACE_PINNED;
        *out = (tn_cell){.tag = TN_CELL_I64,
                         .n = is("a list of spaces"),
                         .v.i64 = is("hides pinned")  ? 1 << TN_SPACE_DEVICE
                                  : is("third space") ? both | 4
                                                      : both};
        return TN_OK;
    }
    if (which == TN_PROP_UNIFIED_MEMORY) {
        *out = (tn_cell){.tag = is("wrong tag") ? TN_CELL_I64 : TN_CELL_BOOL, .v.boolean = 1};
        return TN_OK;
    }
    if (which == TN_PROP_COMPUTE_UNITS && is("changes")) {
        *out = (tn_cell){.tag = TN_CELL_I64, .v.i64 = changing++};
        return TN_OK;
    }
    if (is("writes unasked"))
        out->v.i64 = 3;
    return TN_ERR_UNSUPPORTED;
}

static tn_status device_accepts(tn_device_impl *device, const tn_kernel *kernel) {
    bool own = false;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        own = own || kernel == kernels[i];
    if (!own)
        return fail(TN_ERR_INTERNAL);
    if (is("device is moody"))
        return asked++ % 2 ? TN_OK : TN_ERR_UNSUPPORTED;
    return TN_OK;
}

static tn_device_ops device_ops = {.struct_size = sizeof device_ops,
                                   .count = count,
                                   .open = open_device,
                                   .close = plain_close,
                                   .property = property,
                                   .accepts = device_accepts,
                                   .memory = &memory_ops};

/* ---- captures ---------------------------------------------------------------------------- */

static struct tn_graph_impl { tn_device_impl *device; } graphs[2];
static int n_graphs;

static tn_status capture_begin(tn_stream_impl *stream) {
    if (is("captures once") && asked++)
        return fail(TN_ERR_STATE);
    tn_status status = check_capture(stream);
    stream->captures = true;
    return status;
}

static tn_status capture_end(tn_stream_impl *stream, tn_graph_impl **out) {
    bool captured = stream->captures;
    stream->captures = false;
    *out = is("no graph") ? NULL : &graphs[is("same graph") ? 0 : n_graphs++ % 2];
    if (is("fails with a graph"))
        return fail(TN_ERR_INTERNAL);
    if (captured || is("ends nothing"))
        return TN_OK;
    *out = NULL;
    return fail(TN_ERR_STATE);
}

static void capture_abandon(tn_stream_impl *stream) {
    stream->captures = false;
}

static tn_status capture_launch(tn_graph_impl *graph, tn_stream_impl *stream) {
    return check_capture(stream);
}

static void capture_destroy(tn_graph_impl *graph) {}

/* With the fault two calls meet in here. */
static tn_status capture_update(tn_graph_impl *graph, tn_graph_impl *from) {
    if (is("updates meet"))
        pthread_barrier_wait(&meeting);
    return TN_OK;
}

static const tn_ext_capture capture_ext = {.struct_size = sizeof capture_ext,
                                           .begin = capture_begin,
                                           .end = capture_end,
                                           .abandon = capture_abandon,
                                           .launch = capture_launch,
                                           .destroy = capture_destroy,
                                           .update = capture_update};

static const void *extension(tn_instance *self, const char *id) {
    return strcmp(id, TN_EXT_CAPTURE) == 0 ? (const void *)&capture_ext
           : is("knows all")               ? &memory_ops
                                           : NULL;
}

static void *idle(void *unused) {
    sem_wait(&stray_ends);
    return NULL;
}

static tn_status init(const tn_host *host, const char *path, tn_instance **out_self) {
    brittle.host = host;
    lost = false;
    asked = 0;
    *out_self = is("no self") ? NULL : &the_self;
    if (is("bad alignment"))
        host->dealloc(host, host->alloc(host, 64, 48));
    if (is("keeps a block"))
        brittle.kept = host->alloc(host, 1000, 16);
    if (is("frees twice")) {
        void *p = host->alloc(host, 64, 16);
        host->dealloc(host, p);
        host->dealloc(host, p);
    }
    if (is("another host")) {
        tn_host copy = *host;
        host->log_message(&copy, TN_LOG_DEBUG, "hello");
    }
    if (is("fails and keeps")) {
        brittle.kept = host->alloc(host, 64, 16);
        return fail(TN_ERR_IO);
    }
    if (is("sets a locale"))
        setlocale(LC_ALL, "C.UTF-8");
    if (is("meets") || is("updates meet"))
        pthread_barrier_init(&meeting, NULL, 2);
    if (is("starts a thread")) {
        sem_init(&stray_ends, 0, 0);
        pthread_create(&stray, NULL, idle, NULL);
    }
    return TN_OK;
}

static void shutdown_plugin(tn_instance *self) {
    if (is("no host"))
        brittle.host->option(NULL, "threads");
}

static tn_plugin plugin = {.struct_size = sizeof plugin,
                           .abi_version = TN_ABI_VERSION,
                           .abi_required = TN_ABI_VERSION,
                           .id = "org.tenon.brittle",
                           .device_type = "brittle",
                           .name = "Breaks one rule at a time",
                           .version = "1",
                           .init = init,
                           .shutdown = shutdown_plugin,
                           .devices = &device_ops,
                           .kernels = kernels,
                           .n_kernels = sizeof kernels / sizeof *kernels,
                           .extension = extension};

const tn_plugin *brittle_query(const tn_host *host) {
    if (is("asks too early")) {
        brittle.host = host;
        host->option(host, "threads");
    }
    if (is("allocates early"))
        brittle.kept = host->alloc(host, 8, 8);
    device_ops.streams = brittle.async ? &stream_ops : NULL;
    device_ops.events = brittle.async ? &event_ops : NULL;
    return &plugin;
}

void brittle_clean(void) {
    if (opened_file >= 0)
        close(opened_file);
    opened_file = -1;
    if (is("starts a thread")) {
        sem_post(&stray_ends);
        pthread_join(stray, NULL);
        sem_destroy(&stray_ends);
    }
    fesetround(FE_TONEAREST);
    umask(022);
    setlocale(LC_ALL, "C");
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}
