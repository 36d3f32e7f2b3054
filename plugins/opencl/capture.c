/* Extension tenon.capture/1: commands that a stream is given are kept, with all that they were called
 * with, and queued one after the other by each launch.
 *
 * A graph is no object of the driver, so a launch is as many of its calls as there are commands. They
 * are queued on the launching stream like any others: kernels report to its error word. */
#include "plugins/opencl/capture.h"

/* What was captured; of the graph that it became, and of those that were updated from it. */
struct ocl_recording {
    atomic_uint n_users;
    ocl_command *first, **end;
};

struct tn_graph_impl {
    tn_device_impl *device;
    ocl_recording *recording;

    pthread_mutex_t lock;   /* guards what follows; before a stream's */
    cl_event last;          /* behind the latest launch, or NULL */
    cl_command_queue queue; /* where that was */
};

/* ---- recordings -------------------------------------------------------------------------- */

static void recording_drop(tn_device_impl *device, ocl_recording *r) {
    const tn_host *host = device->self->host;
    if (!r || atomic_fetch_sub(&r->n_users, 1) > 1)
        return;
    for (ocl_command *c = r->first, *next; c; c = next) {
        next = c->next;
        host->dealloc(host, c);
    }
    host->dealloc(host, r);
}

tn_status ocl_record(tn_stream_impl *stream, ocl_command *command, const char *what) {
    if (!command)
        return TN_ERR_OUT_OF_MEMORY;
    cl_int error = CL_SUCCESS;
    pthread_mutex_lock(&stream->lock);
    ocl_recording *r = atomic_load(&stream->recording);
    if (r) {
        *r->end = command;
        r->end = &command->next;
    } else {
        error = command->queue(stream, command);
    }
    pthread_mutex_unlock(&stream->lock);
    if (r)
        return TN_OK;
    stream->device->self->host->dealloc(stream->device->self->host, command);
    return ocl_queued(stream, error, what);
}

/* ---- capturing --------------------------------------------------------------------------- */

static tn_status begin(tn_stream_impl *stream) {
    tn_device_impl *device = stream->device;
    PLUGIN_TRY(ocl_check_lost(device));
    PLUGIN_TRY(ocl_check_not_capturing(stream, "a capture"));
    ocl_recording *r = ocl_host_alloc(device->self, sizeof *r, "a capture");
    if (!r)
        return TN_ERR_OUT_OF_MEMORY;
    *r = (ocl_recording){.n_users = 1, .end = &r->first};
    ocl_recording *none = NULL; /* another thread may have begun one */
    if (atomic_compare_exchange_strong(&stream->recording, &none, r))
        return TN_OK;
    recording_drop(device, r);
    return ocl_fail_capturing(stream, "a capture");
}

/* The stream is an ordinary one from here on. */
static ocl_recording *stop(tn_stream_impl *stream) {
    pthread_mutex_lock(&stream->lock);
    ocl_recording *r = atomic_exchange(&stream->recording, NULL);
    pthread_mutex_unlock(&stream->lock);
    return r;
}

static tn_status end(tn_stream_impl *stream, tn_graph_impl **out_graph) {
    tn_device_impl *device = stream->device;
    *out_graph = NULL;
    ocl_recording *r = stop(stream);
    tn_graph_impl *graph = NULL;
    tn_status status = ocl_check_lost(device);
    if (status == TN_OK && !r)
        status =
            ocl_fail(device->self, TN_ERR_STATE,
                     "opencl:%u: a stream does not capture whose capture is ended", device->index);
    if (status == TN_OK) {
        graph = ocl_host_alloc(device->self, sizeof *graph, "a graph");
        status = graph ? TN_OK : TN_ERR_OUT_OF_MEMORY;
    }
    if (status != TN_OK) {
        recording_drop(device, r);
        return status;
    }
    *graph = (tn_graph_impl){.device = device, .recording = r};
    pthread_mutex_init(&graph->lock, NULL);
    *out_graph = graph;
    return TN_OK;
}

static void abandon(tn_stream_impl *stream) {
    recording_drop(stream->device, stop(stream));
}

/* ---- graphs ------------------------------------------------------------------------------ */

/* What comes later waits for it, on whichever stream. Without a mark it is over when this returns. */
static cl_int mark(tn_graph_impl *graph, tn_stream_impl *stream) {
    cl_event last = NULL;
    cl_int error = clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &last);
    if (error == CL_SUCCESS) /* other queues will wait for it */
        error = clFlush(stream->queue);
    if (error != CL_SUCCESS) {
        if (last)
            clReleaseEvent(last);
        last = NULL;
        error = clFinish(stream->queue);
    }
    if (graph->last)
        clReleaseEvent(graph->last);
    graph->last = last;
    graph->queue = stream->queue;
    return error;
}

/* `*out_begun`: what has failed then has done so half way; what was queued is over. */
static cl_int queue(tn_graph_impl *graph, tn_stream_impl *stream, bool *out_begun) {
    cl_int error = CL_SUCCESS;
    if (graph->last && graph->queue != stream->queue)
        error = clEnqueueBarrierWithWaitList(stream->queue, 1, &graph->last, NULL);
    for (ocl_command *c = graph->recording->first; c && error == CL_SUCCESS; c = c->next) {
        error = c->queue(stream, c);
        /* Once more with an empty queue, which leaves the driver more room. */
        if (error != CL_SUCCESS && *out_begun && clFinish(stream->queue) == CL_SUCCESS)
            error = c->queue(stream, c);
        *out_begun |= error == CL_SUCCESS;
    }
    return error == CL_SUCCESS ? mark(graph, stream) : error;
}

static tn_status launch(tn_graph_impl *graph, tn_stream_impl *stream) {
    tn_device_impl *device = graph->device;
    bool begun = false;
    PLUGIN_TRY(ocl_check_lost(device));
    if (stream->device != device)
        return ocl_fail(device->self, TN_ERR_INVALID_ARGUMENT,
                        "a graph of opencl:%u cannot be launched on a stream of opencl:%u",
                        device->index, stream->device->index);
    PLUGIN_TRY(ocl_check_not_capturing(stream, "the launch of a graph"));
    pthread_mutex_lock(&graph->lock);
    pthread_mutex_lock(&stream->lock);
    cl_int error = queue(graph, stream, &begun);
    pthread_mutex_unlock(&stream->lock);
    pthread_mutex_unlock(&graph->lock);
    if (error == CL_SUCCESS || !begun)
        return ocl_queued(stream, error, "launching a graph");
    if (ocl_is_lost(device))
        return ocl_check_lost(device);
    /* A failed launch has queued nothing, and there is no way back. */
    atomic_store(&device->lost, true);
    return ocl_fail(device->self, TN_ERR_DEVICE_LOST,
                    "opencl:%u (%s): launching a graph failed half way with %s (%d), so that it is "
                    "not known what the device's memory holds: the device counts as lost; end the "
                    "program",
                    device->index, device->found->name, ocl_error_name(error), error);
}

static void destroy(tn_graph_impl *graph) {
    if (!graph)
        return;
    tn_device_impl *device = graph->device;
    if (graph->last) {
        if (!ocl_is_lost(device))
            clWaitForEvents(1, &graph->last);
        clReleaseEvent(graph->last);
    }
    pthread_mutex_destroy(&graph->lock);
    recording_drop(device, graph->recording);
    device->self->host->dealloc(device->self->host, graph);
}

/* Launches that are queued have nothing to do with a recording any more. */
static tn_status update(tn_graph_impl *graph, tn_graph_impl *from) {
    tn_device_impl *device = graph->device;
    PLUGIN_TRY(ocl_check_lost(device));
    if (from->device != device)
        return ocl_fail(device->self, TN_ERR_INVALID_ARGUMENT,
                        "a graph of opencl:%u cannot be updated from one of opencl:%u",
                        device->index, from->device->index);
    atomic_fetch_add(&from->recording->n_users, 1);
    recording_drop(device, graph->recording);
    graph->recording = from->recording;
    return TN_OK;
}

const tn_ext_capture ocl_capture = {
    .struct_size = sizeof ocl_capture,
    .begin = begin,
    .end = end,
    .abandon = abandon,
    .launch = launch,
    .destroy = destroy,
    .update = update,
};
