/* The fake device: counters, failures and queues under the test's control. */
#define TN_PLUGIN_QUERY fake_query
#include "tests/support/fake_plugin.h"
#include "tests/support/host_memory_device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ext/fork.h>
#include <tenon/ext/native.h>
#include <tenon/ext/threads.h>

struct tn_instance {
    const tn_host *host;
};
struct tn_device_impl {
    uint32_t index;
    uint64_t used_bytes;
};
struct tn_stream_impl {
    tn_device_impl *device;
    uint64_t queued, passed;
    tn_status error;
    const char *message;
};
struct tn_event_impl {
    tn_stream_impl *stream; /* of the mark */
    uint64_t at;
    bool marked;
};

/* In front of each allocation. */
typedef struct header {
    uint64_t magic, bytes;
    int32_t space;
    void *base;
} header;
static const uint64_t MAGIC = UINT64_C(0xfa4e0000a110c8ed);

fake_settings fake;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct tn_instance self;
static fake_counts counts;
static uint64_t n_calls, fail_at;
static bool lost, held;
static tn_plugin plugin;

/* ---- control ----------------------------------------------------------------------------- */

void fake_reset(void) {
    pthread_mutex_lock(&lock);
    fake = (fake_settings){.n_devices = 1, .alignment = 64};
    counts = (fake_counts){0};
    n_calls = fail_at = 0;
    lost = held = false;
    pthread_mutex_unlock(&lock);
}

fake_counts fake_count(void) {
    pthread_mutex_lock(&lock);
    fake_counts c = counts;
    pthread_mutex_unlock(&lock);
    return c;
}

uint64_t fake_fail_at(uint64_t n) {
    pthread_mutex_lock(&lock);
    uint64_t made = n_calls;
    n_calls = 0;
    fail_at = n;
    pthread_mutex_unlock(&lock);
    return made;
}

void fake_lose(void) {
    pthread_mutex_lock(&lock);
    lost = true;
    pthread_mutex_unlock(&lock);
}

void fake_hold(bool hold) {
    pthread_mutex_lock(&lock);
    held = hold;
    pthread_mutex_unlock(&lock);
}

void fake_advance(tn_stream_impl *stream) {
    pthread_mutex_lock(&lock);
    stream->passed = stream->queued;
    pthread_mutex_unlock(&lock);
}

void fake_stream_error(tn_stream_impl *stream, tn_status status, const char *message) {
    pthread_mutex_lock(&lock);
    stream->error = status;
    stream->message = message;
    pthread_mutex_unlock(&lock);
}

/* Does this call fail? With the lock held. */
static tn_status refuse(tn_status status) {
    n_calls++;
    if (lost)
        return self.host->fail(self.host, TN_ERR_DEVICE_LOST, "the fake device was lost");
    if (fail_at && n_calls == fail_at)
        return self.host->fail(self.host, status, "the fake device was told to fail");
    return TN_OK;
}

/* ---- memory ------------------------------------------------------------------------------ */

static tn_status take(tn_device_impl *d, int32_t space, uint64_t bytes, void **out) {
    tn_status status = refuse(TN_ERR_OUT_OF_MEMORY);
    if (status)
        return status;
    if (space != TN_SPACE_DEVICE && space != TN_SPACE_PINNED)
        return self.host->fail(self.host, TN_ERR_UNSUPPORTED, "the fake device has no such memory");
    if (space == TN_SPACE_DEVICE && fake.memory_bytes && d->used_bytes + bytes > fake.memory_bytes)
        return self.host->fail(self.host, TN_ERR_OUT_OF_MEMORY, "the fake device is full");
    uint64_t front = fake.alignment > sizeof(header) ? fake.alignment : 64;
    char *base = aligned_alloc(front, (bytes + 2 * front - 1) / front * front);
    if (!base)
        return self.host->fail(self.host, TN_ERR_OUT_OF_MEMORY, "the host is full");
    *out = base + front;
    ((header *)*out)[-1] = (header){MAGIC, bytes, space, base};
    counts.n_allocs++;
    if (space == TN_SPACE_DEVICE) {
        d->used_bytes += bytes;
        counts.live_bytes += bytes;
    } else {
        counts.live_pinned_bytes += bytes;
    }
    return TN_OK;
}

static tn_status memory_alloc(tn_device_impl *d, tn_allocation *a) {
    void *p = NULL;
    pthread_mutex_lock(&lock);
    tn_status status = take(d, a->space, a->bytes, &p);
    pthread_mutex_unlock(&lock);
    if (status == TN_OK) {
        a->memory = (tn_memory)(uintptr_t)p;
        a->host = p;
    }
    return status;
}

static void memory_free(tn_device_impl *d, int32_t space, tn_memory memory) {
    header *h = (header *)(uintptr_t)memory - 1;
    pthread_mutex_lock(&lock);
    counts.n_frees++;
    if (h->magic != MAGIC || h->space != space) {
        counts.n_bad_frees++;
        pthread_mutex_unlock(&lock);
        return;
    }
    h->magic = 0;
    if (space == TN_SPACE_DEVICE) {
        d->used_bytes -= h->bytes;
        counts.live_bytes -= h->bytes;
    } else {
        counts.live_pinned_bytes -= h->bytes;
    }
    pthread_mutex_unlock(&lock);
    free(h->base);
}

/* Copies are done at once, also while the queues are held. */
static tn_status move(tn_stream_impl *stream, void *dst, const void *src, uint64_t bytes) {
    pthread_mutex_lock(&lock);
    tn_status status = refuse(TN_ERR_INTERNAL);
    if (!status && bytes)
        memcpy(dst, src, bytes);
    if (!status && stream)
        stream->queued++;
    pthread_mutex_unlock(&lock);
    return status;
}

static tn_status memory_write(tn_device_impl *d, tn_stream_impl *stream, tn_memory dst,
                              uint64_t offset, const void *src, tn_memory src_pinned,
                              uint64_t bytes) {
    return move(stream, plain_at(dst, offset), src, bytes);
}

static tn_status memory_read(tn_device_impl *d, tn_stream_impl *stream, void *dst,
                             tn_memory dst_pinned, tn_memory src, uint64_t offset, uint64_t bytes) {
    return move(stream, dst, plain_at(src, offset), bytes);
}

static tn_status memory_copy(tn_device_impl *d, tn_stream_impl *stream, tn_memory dst,
                             uint64_t dst_offset, tn_memory src, uint64_t src_offset,
                             uint64_t bytes) {
    return move(stream, plain_at(dst, dst_offset), plain_at(src, src_offset), bytes);
}

static tn_status memory_fill(tn_device_impl *d, tn_stream_impl *stream, tn_memory dst,
                             uint64_t offset, uint8_t value, uint64_t bytes) {
    pthread_mutex_lock(&lock);
    tn_status status = refuse(TN_ERR_INTERNAL);
    if (!status && bytes)
        memset(plain_at(dst, offset), value, bytes);
    if (!status && stream)
        stream->queued++;
    pthread_mutex_unlock(&lock);
    return status;
}

static tn_status memory_info(tn_device_impl *d, int32_t space, tn_memory_info *out) {
    pthread_mutex_lock(&lock);
    out->total_bytes = fake.memory_bytes;
    out->free_bytes = fake.memory_bytes ? fake.memory_bytes - d->used_bytes : 0;
    pthread_mutex_unlock(&lock);
    return TN_OK;
}

static const tn_memory_ops memory_ops = {.struct_size = sizeof memory_ops,
                                         .alloc = memory_alloc,
                                         .dealloc = memory_free,
                                         .copy_from_host = memory_write,
                                         .copy_to_host = memory_read,
                                         .copy = memory_copy,
                                         .fill = memory_fill,
                                         .info = memory_info};

/* ---- streams and events ------------------------------------------------------------------ */

static tn_status stream_create(tn_device_impl *d, int32_t priority, tn_stream_impl **out_stream) {
    *out_stream = NULL;
    pthread_mutex_lock(&lock);
    tn_status status = refuse(TN_ERR_OUT_OF_MEMORY);
    if (!status) {
        *out_stream = calloc(1, sizeof **out_stream);
        (*out_stream)->device = d;
        counts.n_streams++;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static void stream_destroy(tn_stream_impl *stream) {
    pthread_mutex_lock(&lock);
    counts.n_streams--;
    pthread_mutex_unlock(&lock);
    free(stream);
}

static tn_status take_error(tn_stream_impl *s) {
    if (lost)
        return self.host->fail(self.host, TN_ERR_DEVICE_LOST, "the fake device was lost");
    tn_status status = s->error;
    s->error = TN_OK;
    return status ? self.host->fail(self.host, status, s->message) : TN_OK;
}

static tn_status stream_query(tn_stream_impl *s) {
    pthread_mutex_lock(&lock);
    if (!held)
        s->passed = s->queued;
    tn_status status = s->passed < s->queued && !lost ? TN_NOT_READY : take_error(s);
    pthread_mutex_unlock(&lock);
    return status;
}

static tn_status stream_synchronize(tn_stream_impl *s) {
    pthread_mutex_lock(&lock);
    s->passed = s->queued;
    tn_status status = take_error(s);
    pthread_mutex_unlock(&lock);
    return status;
}

static const tn_stream_ops stream_ops = {.struct_size = sizeof stream_ops,
                                         .create = stream_create,
                                         .destroy = stream_destroy,
                                         .query = stream_query,
                                         .synchronize = stream_synchronize};

static tn_status event_create(tn_device_impl *d, uint32_t flags, tn_event_impl **out_event) {
    *out_event = NULL;
    pthread_mutex_lock(&lock);
    tn_status status = refuse(TN_ERR_OUT_OF_MEMORY);
    if (!status) {
        *out_event = calloc(1, sizeof **out_event);
        counts.n_events++;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static void event_destroy(tn_event_impl *event) {
    pthread_mutex_lock(&lock);
    counts.n_events--;
    pthread_mutex_unlock(&lock);
    free(event);
}

static tn_status event_record(tn_event_impl *event, tn_stream_impl *stream) {
    pthread_mutex_lock(&lock);
    tn_status status = refuse(TN_ERR_OUT_OF_MEMORY);
    if (!status)
        *event = (tn_event_impl){.stream = stream, .at = ++stream->queued, .marked = true};
    pthread_mutex_unlock(&lock);
    return status;
}

static tn_status event_wait(tn_stream_impl *stream, tn_event_impl *event) {
    pthread_mutex_lock(&lock);
    counts.n_waits++;
    stream->queued++;
    pthread_mutex_unlock(&lock);
    return TN_OK;
}

static tn_status event_query(tn_event_impl *event) {
    pthread_mutex_lock(&lock);
    if (event->marked && !held && event->stream->passed < event->at)
        event->stream->passed = event->at;
    bool passed = !event->marked || event->stream->passed >= event->at;
    tn_status status = lost ? TN_ERR_DEVICE_LOST : passed ? TN_OK : TN_NOT_READY;
    pthread_mutex_unlock(&lock);
    return status;
}

static tn_status event_synchronize(tn_event_impl *event) {
    pthread_mutex_lock(&lock);
    if (event->marked && event->stream->passed < event->at)
        event->stream->passed = event->at;
    tn_status status = lost ? TN_ERR_DEVICE_LOST : TN_OK;
    pthread_mutex_unlock(&lock);
    return status;
}

static const tn_event_ops event_ops = {.struct_size = sizeof event_ops,
                                       .create = event_create,
                                       .destroy = event_destroy,
                                       .record = event_record,
                                       .wait = event_wait,
                                       .query = event_query,
                                       .synchronize = event_synchronize};

/* ---- devices and the plugin -------------------------------------------------------------- */

static tn_status device_count(tn_instance *s, uint32_t *out_count) {
    *out_count = fake.n_devices;
    return TN_OK;
}

static tn_status device_open(tn_instance *s, uint32_t index, tn_device_impl **out_device) {
    *out_device = NULL;
    if (fake.open_fails)
        return s->host->fail(s->host, fake.open_fails, "the fake device does not open");
    *out_device = s->host->alloc(s->host, sizeof **out_device, 16);
    if (!*out_device)
        return s->host->fail(s->host, TN_ERR_OUT_OF_MEMORY, "no memory for a fake device");
    **out_device = (tn_device_impl){.index = index};
    pthread_mutex_lock(&lock);
    counts.n_devices++;
    pthread_mutex_unlock(&lock);
    return TN_OK;
}

static void device_close(tn_device_impl *d) {
    pthread_mutex_lock(&lock);
    counts.n_devices--;
    pthread_mutex_unlock(&lock);
    self.host->dealloc(self.host, d);
}

static tn_status property(tn_instance *s, uint32_t index, int32_t which, tn_cell *out) {
    switch (which) {
    case TN_PROP_NAME:
        *out = (tn_cell){.tag = TN_CELL_STRING,
                         .v.string = fake.product ? fake.product : "Fake device"};
        return TN_OK;
    case TN_PROP_ALIGNMENT:
        *out = (tn_cell){.tag = TN_CELL_I64, .v.i64 = (int64_t)fake.alignment};
        return TN_OK;
    case TN_PROP_MAX_ALLOCATION:
        *out = (tn_cell){.tag = TN_CELL_I64, .v.i64 = (int64_t)fake.max_allocation};
        return TN_OK;
    case TN_PROP_SPACES:
        *out = (tn_cell){.tag = TN_CELL_I64, .v.i64 = 1 << TN_SPACE_DEVICE | 1 << TN_SPACE_PINNED};
        return TN_OK;
    case TN_PROP_FLUSHES_SUBNORMALS:
        *out = (tn_cell){.tag = TN_CELL_I64, .v.i64 = TN_DTYPE_BIT(TN_F32)};
        return TN_OK;
    case TN_PROP_DTYPES:
        *out = (tn_cell){.tag = TN_CELL_I64, .v.i64 = TN_DTYPES_ALL & ~TN_DTYPE_BIT(TN_F64)};
        return TN_OK;
    }
    return TN_ERR_UNSUPPORTED;
}

static tn_device_ops device_ops = {.struct_size = sizeof device_ops,
                                   .count = device_count,
                                   .open = device_open,
                                   .close = device_close,
                                   .property = property,
                                   .memory = &memory_ops};

static tn_status set_num_threads(tn_instance *s, uint32_t n) {
    fake.threads = (int32_t)n;
    return TN_OK;
}

static uint32_t get_num_threads(tn_instance *s) {
    return fake.threads ? (uint32_t)fake.threads : 7;
}

static const tn_ext_threads threads_ext = {sizeof threads_ext, set_num_threads, get_num_threads};

static void before_fork(tn_instance *s) {
    pthread_mutex_lock(&lock);
    counts.n_before_fork++;
}

static void after_fork(tn_instance *s, int32_t in_child) {
    counts.n_after_fork[in_child]++;
    pthread_mutex_unlock(&lock);
}

static const tn_ext_fork fork_ext = {sizeof fork_ext, before_fork, after_fork};

static void *native_context(tn_device_impl *d) {
    return d;
}

static void *native_stream(tn_stream_impl *s) {
    return s;
}

static uint64_t native_memory(tn_device_impl *d, tn_memory memory) {
    return memory;
}

static const tn_ext_native native_ext = {.struct_size = sizeof native_ext,
                                         .api = "fake",
                                         .context = native_context,
                                         .stream = native_stream,
                                         .memory = native_memory};

static const void *extension(tn_instance *s, const char *id) {
    return strcmp(id, TN_EXT_THREADS) == 0  ? (const void *)&threads_ext
           : strcmp(id, TN_EXT_FORK) == 0   ? &fork_ext
           : strcmp(id, TN_EXT_NATIVE) == 0 ? (const void *)&native_ext
                                            : NULL;
}

static tn_status init(const tn_host *host, const char *path, tn_instance **out_self) {
    self.host = host;
    *out_self = &self;
    return TN_OK;
}

static void shutdown_plugin(tn_instance *s) {}

static tn_plugin plugin = {.struct_size = sizeof plugin,
                           .abi_version = TN_ABI_VERSION,
                           .abi_required = TN_ABI_TARGET,
                           .id = "org.tenon.fake",
                           .device_type = "fake",
                           .name = "Fake device for tests",
                           .version = "1",
                           .init = init,
                           .shutdown = shutdown_plugin,
                           .devices = &device_ops,
                           .extension = extension};

const tn_plugin *fake_query(const tn_host *host) {
    device_ops.streams = fake.async ? &stream_ops : NULL;
    device_ops.events = fake.async ? &event_ops : NULL;
    plugin.flags = fake.fork_safe ? TN_PLUGIN_FORK_SAFE : 0;
    return &plugin;
}
