/* In-order command queues. */
#include "plugins/opencl/program.h"

#include <semaphore.h>

_Thread_local char ocl_thread_mark;

static void finish(tn_stream_impl *stream) {
    const tn_host *host = stream->device->self->host;
    if (stream->mark)
        clReleaseEvent(stream->mark);
    for (int i = 0; i < 2; i++) {
        if (stream->stages[i].last)
            clReleaseEvent(stream->stages[i].last);
        host->dealloc(host, stream->stages[i].data);
    }
    if (stream->error_word)
        clReleaseMemObject(stream->error_word);
    if (stream->times)
        clReleaseCommandQueue(stream->times);
    if (stream->timed)
        clReleaseMemObject(stream->timed);
    if (stream->queue)
        clReleaseCommandQueue(stream->queue);
    pthread_mutex_destroy(&stream->lock);
    host->dealloc(host, stream);
}

/* OpenCL 1.2 has no priorities. */
static tn_status create(tn_device_impl *device, int32_t priority, tn_stream_impl **out_stream) {
    (void)priority;
    *out_stream = NULL;
    tn_status status = ocl_check_lost(device);
    if (status != TN_OK)
        return status;
    tn_stream_impl *stream = ocl_host_alloc(device->self, sizeof *stream, "a stream");
    if (!stream)
        return TN_ERR_OUT_OF_MEMORY;
    *stream = (tn_stream_impl){.device = device};
    pthread_mutex_init(&stream->lock, NULL);
    cl_int error, zero[4] = {0};
    stream->queue = clCreateCommandQueue(device->context, device->found->id, 0, &error);
    if (stream->queue)
        stream->error_word = clCreateBuffer(
            device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof zero, zero, &error);
    if (!stream->error_word) {
        status = ocl_fail_driver(device, error, "creating a stream");
        finish(stream);
        return status;
    }
    *out_stream = stream;
    return TN_OK;
}

static void destroy(tn_stream_impl *stream) {
    if (!stream)
        return;
    if (!atomic_load(&stream->device->lost)) {
        clFinish(stream->queue);
        if (stream->times)
            clFinish(stream->times);
    }
    finish(stream);
}

tn_status ocl_queued(tn_stream_impl *stream, cl_int error, const char *what) {
    if (error != CL_SUCCESS)
        return ocl_fail_driver(stream->device, error, what);
    ocl_stream_queued(stream);
    return TN_OK;
}

tn_status ocl_fail_capturing(const tn_stream_impl *stream, const char *what) {
    return ocl_fail(stream->device->self, TN_ERR_STATE,
                    "opencl:%u: %s cannot be captured; do it before the capture or after it",
                    stream->device->index, what);
}

tn_status ocl_check_not_capturing(tn_stream_impl *stream, const char *what) {
    return ocl_is_capturing(stream) ? ocl_fail_capturing(stream, what) : TN_OK;
}

/* ---- what went wrong --------------------------------------------------------------------- */

/* All work is done: was there an index out of range? Told once. */
static tn_status take_error(tn_stream_impl *stream) {
    static const cl_int zero[4] = {0};
    cl_int word[4] = {0};
    if (!atomic_exchange(&stream->may_fail, false))
        return TN_OK;
    pthread_mutex_lock(&stream->lock); /* nothing that may fail is queued between these two */
    cl_int error = clEnqueueReadBuffer(stream->queue, stream->error_word, CL_TRUE, 0, sizeof word,
                                       word, 0, NULL, NULL);
    if (error == CL_SUCCESS && word[0])
        error = clEnqueueWriteBuffer(stream->queue, stream->error_word, CL_TRUE, 0, sizeof zero,
                                     zero, 0, NULL, NULL);
    pthread_mutex_unlock(&stream->lock);
    if (error != CL_SUCCESS)
        return ocl_fail_driver(stream->device, error, "asking whether an index was out of range");
    if (!word[0])
        return TN_OK;
    int64_t index = (int64_t)((uint64_t)(uint32_t)word[2] | (uint64_t)(uint32_t)word[3] << 32);
    return ocl_fail(stream->device->self, TN_ERR_INDEX_OUT_OF_RANGE,
                    "index %lld is out of range for a dimension of size %d", (long long)index,
                    word[1]);
}

/* ---- asking and waiting ------------------------------------------------------------------ */

/* A marker at the present end, asked for only when someone asks; kept for the caller in `out_mark`
 * (which may be NULL, and is set to it where there never was work). */
static cl_int find_mark(tn_stream_impl *stream, cl_int *out_state, cl_event *out_mark) {
    cl_int error = CL_SUCCESS;
    pthread_mutex_lock(&stream->lock);
    uint32_t queued = atomic_load(&stream->queued);
    if (queued != stream->seen || atomic_load(&stream->is_lent)) {
        cl_event mark;
        error = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &mark);
        if (error == CL_SUCCESS) {
            if (stream->mark)
                clReleaseEvent(stream->mark);
            stream->mark = mark;
            stream->seen = queued;
            error = clFlush(stream->queue);
        }
    }
    *out_state = CL_COMPLETE;
    if (error == CL_SUCCESS && stream->mark)
        error = clGetEventInfo(stream->mark, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof *out_state,
                               out_state, NULL);
    if (out_mark) {
        *out_mark = error == CL_SUCCESS ? stream->mark : NULL;
        if (*out_mark)
            clRetainEvent(*out_mark);
    }
    pthread_mutex_unlock(&stream->lock);
    return error;
}

static tn_status query(tn_stream_impl *stream) {
    cl_int state;
    PLUGIN_TRY(ocl_check_lost(stream->device));
    PLUGIN_TRY(ocl_check_not_capturing(stream, "a query"));
    cl_int error = find_mark(stream, &state, NULL);
    if (error != CL_SUCCESS)
        return ocl_fail_driver(stream->device, error, "query of a stream");
    if (state > CL_COMPLETE)
        return TN_NOT_READY;
    if (state < 0)
        return ocl_fail_driver(stream->device, state, "work of a stream");
    return take_error(stream);
}

static void CL_CALLBACK wake(cl_event mark, cl_int state, void *waiter) {
    (void)mark;
    (void)state;
    sem_post(waiter);
}

/* What was queued before is done then and needs no mark, unless another thread has set a later one.
 * Who asks meanwhile finds work that has none yet. */
static cl_int finish_queue(tn_stream_impl *stream) {
    uint32_t queued = atomic_load(&stream->queued);
    cl_int error = clFinish(stream->queue);
    if (error != CL_SUCCESS)
        return error;
    pthread_mutex_lock(&stream->lock);
    if ((int32_t)(queued - stream->seen) > 0) {
        stream->seen = queued;
        if (stream->mark)
            clReleaseEvent(stream->mark);
        stream->mark = NULL;
    }
    pthread_mutex_unlock(&stream->lock);
    return CL_SUCCESS;
}

/* Until what is queued now is done, whatever other threads queue meanwhile. clFinish of some
 * drivers waits for that, too (PoCL), clWaitForEvents of others for all behind the event (Intel's
 * for CPUs). */
static cl_int wait_for_mark(tn_stream_impl *stream) {
    cl_int state;
    cl_event mark;
    sem_t waiter;
    cl_int error = find_mark(stream, &state, &mark);
    if (error != CL_SUCCESS || !mark)
        return error;
    sem_init(&waiter, 0, 0);
    error = clSetEventCallback(mark, CL_COMPLETE, wake, &waiter);
    while (error == CL_SUCCESS && sem_wait(&waiter) != 0) {
    }
    if (error == CL_SUCCESS)
        error = clGetEventInfo(mark, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    sem_destroy(&waiter);
    clReleaseEvent(mark);
    return error != CL_SUCCESS || state >= 0 ? error : state;
}

static tn_status synchronize(tn_stream_impl *stream) {
    PLUGIN_TRY(ocl_check_lost(stream->device));
    PLUGIN_TRY(ocl_check_not_capturing(stream, "waiting"));
    const void *feeder = atomic_load_explicit(&stream->feeder, memory_order_relaxed);
    bool others_queue = feeder && feeder != &ocl_thread_mark;
    cl_int error = others_queue ? wait_for_mark(stream) : finish_queue(stream);
    if (error != CL_SUCCESS)
        return ocl_fail_driver(stream->device, error, "waiting for a stream");
    ocl_programs_save(stream->device, false);
    return take_error(stream);
}

const tn_stream_ops ocl_stream_ops = {
    .struct_size = sizeof ocl_stream_ops,
    .create = create,
    .destroy = destroy,
    .query = query,
    .synchronize = synchronize,
};
