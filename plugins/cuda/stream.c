/* In-order queues: CUstreams that do not wait for the legacy stream. */
#include "plugins/cuda/cuda.h"

enum { ERROR_WORDS = 4 };

/* In the context. */
static void release(tn_stream_impl *stream) {
    const cuda_driver *d = stream->device->driver;
    for (int i = 0; i < 2; i++) {
        if (stream->stages[i].last)
            d->cuEventDestroy_v2(stream->stages[i].last);
        if (stream->stages[i].data)
            d->cuMemFreeHost(stream->stages[i].data);
    }
    if (stream->error_word)
        d->cuMemFreeHost(stream->error_word);
    if (stream->stream)
        d->cuStreamDestroy_v2(stream->stream);
}

static void link_to_device(tn_stream_impl *stream) {
    tn_device_impl *device = stream->device;
    pthread_mutex_lock(&device->streams_lock);
    stream->next = device->streams;
    if (stream->next)
        stream->next->previous = stream;
    device->streams = stream;
    pthread_mutex_unlock(&device->streams_lock);
}

static void unlink_from_device(tn_stream_impl *stream) {
    tn_device_impl *device = stream->device;
    pthread_mutex_lock(&device->streams_lock);
    *(stream->previous ? &stream->previous->next : &device->streams) = stream->next;
    if (stream->next)
        stream->next->previous = stream->previous;
    pthread_mutex_unlock(&device->streams_lock);
}

static void finish(tn_stream_impl *stream) {
    pthread_mutex_destroy(&stream->lock);
    pthread_rwlock_destroy(&stream->gate);
    stream->device->self->host->dealloc(stream->device->self->host, stream);
}

CUresult cuda_error_word_create(tn_device_impl *device, int32_t **out) {
    CUresult error =
        device->driver->cuMemHostAlloc((void **)out, ERROR_WORDS * sizeof(int32_t),
                                       CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    for (int i = 0; error == CUDA_SUCCESS && i < ERROR_WORDS; i++)
        (*out)[i] = 0;
    return error;
}

/* The driver has the nearest priority that there is. */
static CUresult start(tn_stream_impl *stream, int32_t priority) {
    const cuda_driver *d = stream->device->driver;
    CUresult error =
        d->cuStreamCreateWithPriority(&stream->stream, CU_STREAM_NON_BLOCKING, priority);
    if (error == CUDA_SUCCESS)
        error = cuda_error_word_create(stream->device, &stream->error_word);
    if (error != CUDA_SUCCESS)
        release(stream);
    return error;
}

static tn_status create(tn_device_impl *device, int32_t priority, tn_stream_impl **out_stream) {
    *out_stream = NULL;
    PLUGIN_TRY(cuda_check_lost(device));
    tn_stream_impl *stream = cuda_host_alloc(device->self, sizeof *stream, "a stream");
    if (!stream)
        return TN_ERR_OUT_OF_MEMORY;
    *stream = (tn_stream_impl){.device = device};
    pthread_rwlock_init(&stream->gate, NULL);
    pthread_mutex_init(&stream->lock, NULL);
    CUresult error = CUDA_INSIDE(device, start(stream, priority));
    if (error != CUDA_SUCCESS) {
        finish(stream);
        return cuda_fail_driver(device, error, "creating a stream");
    }
    link_to_device(stream);
    *out_stream = stream;
    return TN_OK;
}

static void destroy(tn_stream_impl *stream) {
    if (!stream)
        return;
    unlink_from_device(stream);
    cuda_scope scope = cuda_enter(stream->device);
    if (!cuda_is_lost(stream->device))
        stream->device->driver->cuStreamSynchronize(stream->stream);
    release(stream);
    cuda_leave(&scope);
    finish(stream);
}

tn_status cuda_fail_capturing(const tn_stream_impl *stream, const char *what) {
    return cuda_fail(stream->device->self, TN_ERR_STATE,
                     "cuda:%u: %s cannot be captured; do it before the capture or after it",
                     stream->device->index, what);
}

tn_status cuda_enter_uncaptured(tn_stream_impl *stream, const char *what) {
    pthread_rwlock_rdlock(&stream->gate);
    if (!atomic_load_explicit(&stream->recording, memory_order_relaxed))
        return TN_OK;
    pthread_rwlock_unlock(&stream->gate);
    return cuda_fail_capturing(stream, what);
}

void cuda_leave_uncaptured(tn_stream_impl *stream) {
    pthread_rwlock_unlock(&stream->gate);
}

/* ---- what went wrong --------------------------------------------------------------------- */

/* Was there an index out of range? Told once. The caller locks, and all work is done that may say
 * so. */
static tn_status take_error(tn_stream_impl *stream) {
    volatile int32_t *word = stream->error_word;
    atomic_store(&stream->may_fail, false);
    if (!word[0])
        return TN_OK;
    int64_t index = (int64_t)((uint64_t)(uint32_t)word[2] | (uint64_t)(uint32_t)word[3] << 32);
    word[0] = 0;
    return cuda_fail(stream->device->self, TN_ERR_INDEX_OUT_OF_RANGE,
                     "index %lld is out of range for a dimension of size %d", (long long)index,
                     word[1]);
}

static tn_status answer(tn_stream_impl *stream, CUresult error) {
    return error == CUDA_SUCCESS ? TN_OK
                                 : cuda_fail_driver(stream->device, error, "work of a stream");
}

/* Both between cuda_enter_uncaptured and leaving. */
static tn_status ask(tn_stream_impl *stream) {
    tn_status status = TN_OK;
    bool may_fail = atomic_load(&stream->may_fail);
    if (may_fail && pthread_mutex_trylock(&stream->lock) != 0)
        return TN_NOT_READY; /* another thread queues something, or waits */
    CUresult error = CUDA_CALL(stream->device, cuStreamQuery, stream->stream);
    if (may_fail) {
        if (error == CUDA_SUCCESS)
            status = take_error(stream);
        pthread_mutex_unlock(&stream->lock);
    }
    if (error == CUDA_ERROR_NOT_READY)
        return TN_NOT_READY;
    return status == TN_OK ? answer(stream, error) : status;
}

static tn_status await(tn_stream_impl *stream) {
    tn_status status = TN_OK;
    CUresult error = CUDA_CALL(stream->device, cuStreamSynchronize, stream->stream);
    if (error == CUDA_SUCCESS && atomic_load(&stream->may_fail)) {
        pthread_mutex_lock(&stream->lock);
        /* For what another thread may have queued meanwhile. */
        error = CUDA_CALL(stream->device, cuStreamSynchronize, stream->stream);
        if (error == CUDA_SUCCESS)
            status = take_error(stream);
        pthread_mutex_unlock(&stream->lock);
    }
    return status == TN_OK ? answer(stream, error) : status;
}

static tn_status query(tn_stream_impl *stream) {
    PLUGIN_TRY(cuda_check_lost(stream->device));
    PLUGIN_TRY(cuda_enter_uncaptured(stream, "a query"));
    tn_status status = ask(stream);
    cuda_leave_uncaptured(stream);
    return status;
}

static tn_status synchronize(tn_stream_impl *stream) {
    PLUGIN_TRY(cuda_check_lost(stream->device));
    PLUGIN_TRY(cuda_enter_uncaptured(stream, "waiting"));
    tn_status status = await(stream);
    cuda_leave_uncaptured(stream);
    return status;
}

const tn_stream_ops cuda_stream_ops = {
    .struct_size = sizeof cuda_stream_ops,
    .create = create,
    .destroy = destroy,
    .query = query,
    .synchronize = synchronize,
};
