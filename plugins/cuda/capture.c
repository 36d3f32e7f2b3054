/* Extension tenon.capture/1: a stream's work is recorded as a CUgraph and launched as a whole.
 *
 * What a capture recorded, a cuda_recording, is shared by the graph that it became and by those that
 * were updated from it. Kernels write an index out of range to the word that they were recorded with,
 * which so is the recording's; behind each launch a kernel hands it to the launching stream's. */
#include "plugins/cuda/capture.h"

#include <tenon/ext/capture.h>

struct tn_graph_impl {
    tn_device_impl *device;
    pthread_mutex_t lock; /* guards what follows: an executable graph takes one thread at a time */
    CUgraphExec executable;
    cuda_recording *recording;
    CUevent last; /* behind the latest launch, and so behind all */
    bool was_launched;
};

static const gpu_source move_error = {
    "move_error.cu",
    "extern \"C\" __global__ void move_error(int *from, int *to) {\n"
    "    if (from[0] && atomicCAS(to, 0, from[0]) == 0)\n"
    "        for (int i = 1; i < 4; i++)\n"
    "            to[i] = from[i];\n"
    "    from[0] = 0;\n"
    "}\n",
};

/* ---- recordings -------------------------------------------------------------------------- */

/* In the context, as the ones below. */
static CUresult recording_create(tn_device_impl *device, cuda_recording **out) {
    cuda_recording *r = *out = cuda_host_alloc(device->self, sizeof *r, "a capture");
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *r = (cuda_recording){.n_users = 1};
    CUresult error = cuda_error_word_create(device, &r->error_word);
    if (error != CUDA_SUCCESS) {
        device->self->host->dealloc(device->self->host, r);
        *out = NULL;
    }
    return error;
}

static void recording_drop(tn_device_impl *device, cuda_recording *r) {
    if (!r || atomic_fetch_sub(&r->n_users, 1) > 1)
        return;
    if (r->graph)
        device->driver->cuGraphDestroy(r->graph);
    device->driver->cuMemFreeHost(r->error_word);
    device->self->host->dealloc(device->self->host, r);
}

/* ---- capturing --------------------------------------------------------------------------- */

static tn_status begin(tn_stream_impl *stream) {
    tn_device_impl *device = stream->device;
    cuda_recording *r = NULL;
    tn_status status = cuda_check_lost(device);
    if (status == TN_OK)
        status = cuda_check_not_capturing(stream, "a capture");
    if (status != TN_OK)
        return status;
    cuda_scope scope = cuda_enter(device);
    CUresult error = scope.error;
    if (error == CUDA_SUCCESS) {
        error = recording_create(device, &r);
        /* Relaxed: other threads, and this one beside, allocate and load what they need. */
        if (error == CUDA_SUCCESS)
            error = device->driver->cuStreamBeginCapture_v2(stream->stream,
                                                            CU_STREAM_CAPTURE_MODE_RELAXED);
        if (error != CUDA_SUCCESS)
            recording_drop(device, r);
        cuda_leave(&scope);
    }
    if (error != CUDA_SUCCESS)
        return cuda_fail_stream(stream, error, "beginning a capture");
    atomic_store(&stream->recording, r);
    return TN_OK;
}

/* Takes the recording from the stream, which is an ordinary one from now on. In the context. */
static CUresult stop(tn_stream_impl *stream, cuda_recording **out) {
    *out = atomic_exchange(&stream->recording, NULL);
    return *out ? stream->device->driver->cuStreamEndCapture(stream->stream, &(*out)->graph)
                : CUDA_SUCCESS;
}

static void graph_release(tn_graph_impl *graph) {
    const cuda_driver *d = graph->device->driver;
    if (graph->executable)
        d->cuGraphExecDestroy(graph->executable);
    if (graph->last)
        d->cuEventDestroy_v2(graph->last);
    recording_drop(graph->device, graph->recording);
    pthread_mutex_destroy(&graph->lock);
    graph->device->self->host->dealloc(graph->device->self->host, graph);
}

/* Of a recording that is complete, which is the graph's from now on. */
static tn_status make_graph(tn_device_impl *device, cuda_recording *r, tn_graph_impl **out) {
    tn_graph_impl *graph = cuda_host_alloc(device->self, sizeof *graph, "a graph");
    if (!graph) {
        recording_drop(device, r);
        return TN_ERR_OUT_OF_MEMORY;
    }
    *graph = (tn_graph_impl){.device = device, .recording = r};
    pthread_mutex_init(&graph->lock, NULL);
    tn_status status = r->may_fail ? cuda_move_error_build(device, &move_error) : TN_OK;
    if (status == TN_OK) {
        CUresult error =
            device->driver->cuGraphInstantiateWithFlags(&graph->executable, r->graph, 0);
        if (error == CUDA_SUCCESS)
            error = device->driver->cuEventCreate(&graph->last, CU_EVENT_DISABLE_TIMING);
        if (error != CUDA_SUCCESS)
            status = cuda_fail_driver(device, error, "making a graph of what was captured");
    }
    if (status == TN_OK)
        *out = graph;
    else
        graph_release(graph);
    return status;
}

static tn_status end(tn_stream_impl *stream, tn_graph_impl **out_graph) {
    tn_device_impl *device = stream->device;
    cuda_recording *r = NULL;
    *out_graph = NULL;
    cuda_scope scope = cuda_enter(device);
    if (scope.error != CUDA_SUCCESS)
        return cuda_fail_driver(device, scope.error, "ending a capture");
    CUresult error = stop(stream, &r);
    tn_status status = cuda_check_lost(device);
    if (status == TN_OK && !r)
        status =
            cuda_fail(device->self, TN_ERR_STATE,
                      "cuda:%u: a stream does not capture whose capture is ended", device->index);
    else if (status == TN_OK && error != CUDA_SUCCESS)
        status = cuda_fail_driver(device, error, "ending a capture");
    if (status == TN_OK)
        status = make_graph(device, r, out_graph);
    else
        recording_drop(device, r);
    cuda_leave(&scope);
    return status;
}

static void abandon(tn_stream_impl *stream) {
    cuda_recording *r = NULL;
    cuda_scope scope = cuda_enter(stream->device);
    if (scope.error != CUDA_SUCCESS)
        return;
    stop(stream, &r);
    recording_drop(stream->device, r);
    cuda_leave(&scope);
}

/* ---- graphs ------------------------------------------------------------------------------ */

/* Work queued, so that a failure behind it is one of the stream's. */
static CUresult queue(tn_graph_impl *graph, tn_stream_impl *stream) {
    const cuda_driver *d = graph->device->driver;
    cuda_recording *r = graph->recording;
    CUresult error = d->cuGraphLaunch(graph->executable, stream->stream);
    if (error == CUDA_SUCCESS && r->may_fail) {
        void *arguments[] = {&r->error_word, &stream->error_word};
        error = d->cuLaunchKernel(graph->device->move_error->function, 1, 1, 1, 1, 1, 1, 0,
                                  stream->stream, arguments, NULL);
        atomic_store(&stream->may_fail, true);
    }
    if (error == CUDA_SUCCESS)
        error = d->cuEventRecord(graph->last, stream->stream);
    graph->was_launched |= error == CUDA_SUCCESS;
    return error;
}

static tn_status launch(tn_graph_impl *graph, tn_stream_impl *stream) {
    tn_device_impl *device = graph->device;
    tn_status status = cuda_check_lost(device);
    if (status == TN_OK && stream->device != device)
        status = cuda_fail(device->self, TN_ERR_INVALID_ARGUMENT,
                           "a graph of cuda:%u cannot be launched on a stream of cuda:%u",
                           device->index, stream->device->index);
    if (status == TN_OK)
        status = cuda_check_not_capturing(stream, "the launch of a graph");
    if (status != TN_OK)
        return status;
    cuda_scope scope = cuda_enter(device);
    CUresult error = scope.error;
    if (error == CUDA_SUCCESS) {
        pthread_mutex_lock(&graph->lock);
        pthread_mutex_lock(&stream->lock); /* see take_error in stream.c */
        error = queue(graph, stream);
        pthread_mutex_unlock(&stream->lock);
        pthread_mutex_unlock(&graph->lock);
        cuda_leave(&scope);
    }
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail_stream(stream, error, "launching a graph");
}

static void destroy(tn_graph_impl *graph) {
    if (!graph)
        return;
    cuda_scope scope = cuda_enter(graph->device);
    if (scope.error != CUDA_SUCCESS)
        return;
    if (graph->was_launched && !cuda_is_lost(graph->device))
        graph->device->driver->cuEventSynchronize(graph->last);
    graph_release(graph);
    cuda_leave(&scope);
}

/* What the driver cannot change in place is made anew, once nothing runs it. */
static CUresult replace(tn_graph_impl *graph, CUgraph from) {
    const cuda_driver *d = graph->device->driver;
    CUgraphExecUpdateResultInfo info;
    CUgraphExec made = NULL;
    CUresult error = d->cuGraphExecUpdate_v2(graph->executable, from, &info);
    if (error != CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
        return error;
    error = d->cuGraphInstantiateWithFlags(&made, from, 0);
    if (error == CUDA_SUCCESS && graph->was_launched)
        error = d->cuEventSynchronize(graph->last);
    if (error != CUDA_SUCCESS) {
        if (made)
            d->cuGraphExecDestroy(made);
        return error;
    }
    d->cuGraphExecDestroy(graph->executable);
    graph->executable = made;
    return CUDA_SUCCESS;
}

static tn_status update(tn_graph_impl *graph, tn_graph_impl *from) {
    tn_device_impl *device = graph->device;
    tn_status status = cuda_check_lost(device);
    if (status == TN_OK && from->device != device)
        status = cuda_fail(device->self, TN_ERR_INVALID_ARGUMENT,
                           "a graph of cuda:%u cannot be updated from one of cuda:%u",
                           device->index, from->device->index);
    if (status != TN_OK || graph == from || graph->recording == from->recording)
        return status;
    cuda_scope scope = cuda_enter(device);
    CUresult error = scope.error;
    if (error == CUDA_SUCCESS) {
        pthread_mutex_lock(&graph->lock);
        /* Launches that are queued write to the word of the old recording. */
        if (graph->was_launched)
            error = device->driver->cuEventSynchronize(graph->last);
        if (error == CUDA_SUCCESS)
            error = replace(graph, from->recording->graph);
        if (error == CUDA_SUCCESS) {
            atomic_fetch_add(&from->recording->n_users, 1);
            recording_drop(device, graph->recording);
            graph->recording = from->recording;
        }
        pthread_mutex_unlock(&graph->lock);
        cuda_leave(&scope);
    }
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail_driver(device, error, "updating a graph");
}

const tn_ext_capture cuda_capture = {
    .struct_size = sizeof cuda_capture,
    .begin = begin,
    .end = end,
    .abandon = abandon,
    .launch = launch,
    .destroy = destroy,
    .update = update,
};
