/* Marks in streams. */
#include "plugins/cuda/cuda.h"

static tn_status create(tn_device_impl *device, uint32_t flags, tn_event_impl **out_event) {
    *out_event = NULL;
    PLUGIN_TRY(cuda_check_lost(device));
    if (flags & ~TN_EVENT_TIMING)
        return cuda_fail(device->self, TN_ERR_UNSUPPORTED, "cuda:%u knows no event flags %#x",
                         device->index, flags & ~TN_EVENT_TIMING);
    tn_event_impl *event = cuda_host_alloc(device->self, sizeof *event, "an event");
    if (!event)
        return TN_ERR_OUT_OF_MEMORY;
    *event = (tn_event_impl){.device = device, .flags = flags};
    CUresult error =
        CUDA_CALL(device, cuEventCreate, &event->event,
                  flags & TN_EVENT_TIMING ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
    if (error != CUDA_SUCCESS) {
        device->self->host->dealloc(device->self->host, event);
        return cuda_fail_driver(device, error, "creating an event");
    }
    *out_event = event;
    return TN_OK;
}

static void destroy(tn_event_impl *event) {
    if (!event)
        return;
    (void)CUDA_CALL(event->device, cuEventDestroy_v2, event->event);
    event->device->self->host->dealloc(event->device->self->host, event);
}

static tn_status record(tn_event_impl *event, tn_stream_impl *stream) {
    tn_device_impl *device = event->device;
    PLUGIN_TRY(cuda_check_lost(device));
    if (stream->device != device)
        return cuda_fail(device->self, TN_ERR_INVALID_ARGUMENT,
                         "an event of cuda:%u cannot be recorded in a stream of cuda:%u",
                         device->index, stream->device->index);
    PLUGIN_TRY(cuda_enter_uncaptured(stream, "an event"));
    CUresult error = CUDA_CALL(device, cuEventRecord, event->event, stream->stream);
    cuda_leave_uncaptured(stream);
    if (error != CUDA_SUCCESS)
        return cuda_fail_driver(stream->device, error, "recording an event");
    atomic_store(&event->is_recorded, true);
    return TN_OK;
}

static tn_status wait(tn_stream_impl *stream, tn_event_impl *event) {
    PLUGIN_TRY(cuda_check_lost(stream->device));
    PLUGIN_TRY(cuda_check_lost(event->device));
    PLUGIN_TRY(cuda_enter_uncaptured(stream, "waiting for an event"));
    CUresult error = CUDA_CALL(stream->device, cuStreamWaitEvent, stream->stream, event->event, 0);
    cuda_leave_uncaptured(stream);
    return error == CUDA_SUCCESS
               ? TN_OK
               : cuda_fail_between(stream, event->device, error, "waiting for an event");
}

/* ---- asking ------------------------------------------------------------------------------ */

static tn_status query(tn_event_impl *event) {
    PLUGIN_TRY(cuda_check_lost(event->device));
    CUresult error = CUDA_CALL(event->device, cuEventQuery, event->event);
    if (error == CUDA_ERROR_NOT_READY)
        return TN_NOT_READY;
    return error == CUDA_SUCCESS ? TN_OK
                                 : cuda_fail_driver(event->device, error, "query of an event");
}

static tn_status synchronize(tn_event_impl *event) {
    PLUGIN_TRY(cuda_check_lost(event->device));
    CUresult error = CUDA_CALL(event->device, cuEventSynchronize, event->event);
    return error == CUDA_SUCCESS ? TN_OK
                                 : cuda_fail_driver(event->device, error, "waiting for an event");
}

static tn_status elapsed(tn_event_impl *start, tn_event_impl *end, double *out_ns) {
    const tn_instance *self = start->device->self;
    float ms = 0;
    PLUGIN_TRY(cuda_check_lost(start->device));
    if (!(start->flags & end->flags & TN_EVENT_TIMING))
        return cuda_fail(self, TN_ERR_STATE,
                         "elapsed: both events must be made with TN_EVENT_TIMING");
    if (start->device != end->device)
        return cuda_fail(self, TN_ERR_STATE,
                         "elapsed: the clocks of cuda:%u and cuda:%u have nothing in common",
                         start->device->index, end->device->index);
    CUresult error = CUDA_ERROR_NOT_READY;
    if (atomic_load(&start->is_recorded) && atomic_load(&end->is_recorded))
        error = CUDA_CALL(start->device, cuEventElapsedTime, &ms, start->event, end->event);
    if (error == CUDA_ERROR_NOT_READY)
        return cuda_fail(self, TN_ERR_STATE,
                         "elapsed: an event was not recorded, or not passed yet; synchronize it");
    if (error != CUDA_SUCCESS)
        return cuda_fail_driver(start->device, error, "asking for the time between two events");
    *out_ns = (double)ms * 1e6;
    return TN_OK;
}

const tn_event_ops cuda_event_ops = {
    .struct_size = sizeof cuda_event_ops,
    .create = create,
    .destroy = destroy,
    .record = record,
    .wait = wait,
    .query = query,
    .synchronize = synchronize,
    .elapsed = elapsed,
};
