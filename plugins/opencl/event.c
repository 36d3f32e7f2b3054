/* Marks in streams. An event is a name for the marker that was queued last; whoever waits
 * holds that marker, so that recording again or destroying leaves him alone. */
#include "plugins/opencl/opencl.h"

static tn_status create(tn_device_impl *device, uint32_t flags, tn_event_impl **out_event) {
    *out_event = NULL;
    PLUGIN_TRY(ocl_check_lost(device));
    if (flags & ~TN_EVENT_TIMING)
        return ocl_fail(device->self, TN_ERR_UNSUPPORTED, "opencl:%u knows no event flags %#x",
                        device->index, flags & ~TN_EVENT_TIMING);
    tn_event_impl *event = ocl_host_alloc(device->self, sizeof *event, "an event");
    if (!event)
        return TN_ERR_OUT_OF_MEMORY;
    *event = (tn_event_impl){.device = device, .flags = flags};
    pthread_mutex_init(&event->lock, NULL);
    *out_event = event;
    return TN_OK;
}

static void release(cl_event mark) {
    if (mark)
        clReleaseEvent(mark);
}

static void destroy(tn_event_impl *event) {
    if (!event)
        return;
    release(event->mark);
    release(event->timed);
    pthread_mutex_destroy(&event->lock);
    event->device->self->host->dealloc(event->device->self->host, event);
}

/* Queues that keep times are slower at everything. Only this one does: `*out_timed` follows `mark` there.
 * It fills a word, for markers have no times on NVIDIA's devices. */
static cl_int follow_with_time(tn_stream_impl *stream, cl_event mark, cl_event *out_timed) {
    static const cl_uint zero;
    cl_int error = CL_SUCCESS;
    pthread_mutex_lock(&stream->lock);
    if (!stream->timed)
        stream->timed =
            clCreateBuffer(stream->device->context, CL_MEM_READ_WRITE, sizeof zero, NULL, &error);
    if (error == CL_SUCCESS && !stream->times)
        stream->times = clCreateCommandQueue(stream->device->context, stream->device->found->id,
                                             CL_QUEUE_PROFILING_ENABLE, &error);
    if (error == CL_SUCCESS)
        error = clEnqueueFillBuffer(stream->times, stream->timed, &zero, sizeof zero, 0,
                                    sizeof zero, 1, &mark, out_timed);
    pthread_mutex_unlock(&stream->lock);
    return error == CL_SUCCESS ? clFlush(stream->times) : error;
}

static tn_status record(tn_event_impl *event, tn_stream_impl *stream) {
    cl_event mark, timed = NULL;
    PLUGIN_TRY(ocl_check_lost(event->device));
    if (stream->device != event->device)
        return ocl_fail(event->device->self, TN_ERR_INVALID_ARGUMENT,
                        "an event of opencl:%u cannot be recorded in a stream of opencl:%u",
                        event->device->index, stream->device->index);
    PLUGIN_TRY(ocl_check_not_capturing(stream, "an event"));
    /* Flushed, for other queues will wait for it. */
    cl_int error = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &mark);
    if (error == CL_SUCCESS) {
        error = clFlush(stream->queue);
        if (error == CL_SUCCESS && (event->flags & TN_EVENT_TIMING))
            error = follow_with_time(stream, mark, &timed);
        if (error != CL_SUCCESS) {
            release(timed);
            clReleaseEvent(mark);
        }
    }
    if (error != CL_SUCCESS)
        return ocl_fail_driver(event->device, error, "recording an event");
    ocl_stream_queued(stream);
    pthread_mutex_lock(&event->lock);
    cl_event before = event->mark, timed_before = event->timed;
    event->mark = mark;
    event->timed = timed;
    event->queue = stream->queue;
    pthread_mutex_unlock(&event->lock);
    release(before);
    release(timed_before);
    return TN_OK;
}

/* The present mark, kept for the caller, or NULL. */
static cl_event present_mark(tn_event_impl *event, cl_command_queue *out_queue) {
    pthread_mutex_lock(&event->lock);
    cl_event mark = event->mark;
    if (mark)
        clRetainEvent(mark);
    *out_queue = event->queue;
    pthread_mutex_unlock(&event->lock);
    return mark;
}

/* ---- waiting ----------------------------------------------------------------------------- */

static void CL_CALLBACK pass_on(cl_event mark, cl_int state, void *bridge) {
    (void)mark;
    clSetUserEventStatus(bridge, state < 0 ? state : CL_COMPLETE);
    clReleaseEvent(bridge);
}

/* Contexts do not know each other's events: one of the stream's own, set when `mark` is passed. */
static cl_int bridge_to(tn_stream_impl *stream, cl_event mark, cl_event *out) {
    cl_int error;
    *out = clCreateUserEvent(stream->device->context, &error);
    if (!*out)
        return error;
    clRetainEvent(*out);
    error = clSetEventCallback(mark, CL_COMPLETE, pass_on, *out);
    if (error != CL_SUCCESS) {
        clReleaseEvent(*out);
        clReleaseEvent(*out);
    }
    return error;
}

static tn_status wait(tn_stream_impl *stream, tn_event_impl *event) {
    PLUGIN_TRY(ocl_check_lost(stream->device));
    PLUGIN_TRY(ocl_check_lost(event->device));
    PLUGIN_TRY(ocl_check_not_capturing(stream, "waiting for an event"));
    cl_command_queue queue;
    cl_event mark = present_mark(event, &queue), awaited = mark;
    if (!mark || queue == stream->queue) { /* which is in order */
        if (mark)
            clReleaseEvent(mark);
        return TN_OK;
    }
    cl_int error = CL_SUCCESS;
    if (event->device != stream->device)
        error = bridge_to(stream, mark, &awaited);
    if (error == CL_SUCCESS)
        error = clEnqueueBarrierWithWaitList(stream->queue, 1, &awaited, NULL);
    if (error == CL_SUCCESS)
        ocl_stream_queued(stream);
    if (awaited != mark && awaited)
        clReleaseEvent(awaited);
    clReleaseEvent(mark);
    return error == CL_SUCCESS ? TN_OK
                               : ocl_fail_driver(stream->device, error, "waiting for an event");
}

/* ---- asking ------------------------------------------------------------------------------ */

static tn_status query(tn_event_impl *event) {
    cl_command_queue queue;
    cl_int state = CL_COMPLETE, error = CL_SUCCESS;
    PLUGIN_TRY(ocl_check_lost(event->device));
    cl_event mark = present_mark(event, &queue);
    if (mark) {
        error = clGetEventInfo(mark, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        clReleaseEvent(mark);
    }
    if (error != CL_SUCCESS)
        return ocl_fail_driver(event->device, error, "query of an event");
    return state > CL_COMPLETE ? TN_NOT_READY : TN_OK;
}

/* Of an event with a time until that is taken, too: who has waited may compare it with his own clock. */
static tn_status synchronize(tn_event_impl *event) {
    cl_int error = CL_SUCCESS;
    PLUGIN_TRY(ocl_check_lost(event->device));
    pthread_mutex_lock(&event->lock);
    cl_event last = event->timed ? event->timed : event->mark;
    if (last)
        clRetainEvent(last);
    pthread_mutex_unlock(&event->lock);
    if (last) {
        error = clWaitForEvents(1, &last);
        clReleaseEvent(last);
    }
    return error == CL_SUCCESS ? TN_OK
                               : ocl_fail_driver(event->device, error, "waiting for an event");
}

/* When the mark was passed; 0 where it was not. Who knows that it was, by the stream it is in, may ask
 * before the driver has come to the one that follows with the time. */
static cl_int passed_at(tn_event_impl *event, cl_ulong *out) {
    cl_int state = CL_QUEUED, error = CL_SUCCESS;
    *out = 0;
    pthread_mutex_lock(&event->lock);
    cl_event mark = event->mark, timed = event->timed;
    if (mark) {
        clRetainEvent(mark);
        clRetainEvent(timed);
    }
    pthread_mutex_unlock(&event->lock);
    if (!mark)
        return CL_SUCCESS;
    error = clGetEventInfo(mark, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    if (error == CL_SUCCESS && state == CL_COMPLETE)
        error = clWaitForEvents(1, &timed);
    if (error == CL_SUCCESS && state == CL_COMPLETE)
        error = clGetEventProfilingInfo(timed, CL_PROFILING_COMMAND_END, sizeof *out, out, NULL);
    clReleaseEvent(timed);
    clReleaseEvent(mark);
    return error;
}

static tn_status elapsed(tn_event_impl *start, tn_event_impl *end, double *out_ns) {
    cl_ulong from = 0, to = 0;
    PLUGIN_TRY(ocl_check_lost(start->device));
    if (!(start->flags & end->flags & TN_EVENT_TIMING))
        return ocl_fail(start->device->self, TN_ERR_STATE,
                        "elapsed: both events must be made with TN_EVENT_TIMING");
    if (start->device != end->device)
        return ocl_fail(start->device->self, TN_ERR_STATE,
                        "elapsed: the clocks of opencl:%u and opencl:%u have nothing in common",
                        start->device->index, end->device->index);
    cl_int error = passed_at(start, &from);
    if (error == CL_SUCCESS)
        error = passed_at(end, &to);
    if (error != CL_SUCCESS)
        return ocl_fail_driver(start->device, error, "asking when an event was passed");
    if (!from || !to)
        return ocl_fail(start->device->self, TN_ERR_STATE,
                        "elapsed: an event was not recorded, or not passed yet; synchronize it");
    *out_ns = (double)to - (double)from;
    return TN_OK;
}

const tn_event_ops ocl_event_ops = {
    .struct_size = sizeof ocl_event_ops,
    .create = create,
    .destroy = destroy,
    .record = record,
    .wait = wait,
    .query = query,
    .synchronize = synchronize,
    .elapsed = elapsed,
};
