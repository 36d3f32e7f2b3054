/* Extension tenon.capture/1: a stream's work is recorded as a CUgraph and launched as a whole.
 *
 * What a capture recorded, a cuda_recording, is shared by the graph that it became and by those that
 * were updated from it. Kernels write an index out of range to the word that they were recorded with,
 * which so is the recording's; behind each launch a kernel hands it to the launching stream's. */
#include "plugins/cuda/capture.h"

#include <tenon/ext/capture.h>

struct tn_graph_impl {
    tn_device_impl *device;
    CUgraphExec executable; /* the recording's lock guards it: it takes one thread at a time */
    cuda_recording *recording;
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

/* What is remembered of a launch. */
static const gpu_kernel whole_graph = {.name = "a graph", .options = ""};

/* ---- recordings -------------------------------------------------------------------------- */

/* In the context, as the ones below. */
static void recording_drop(tn_device_impl *device, cuda_recording *r) {
    const cuda_driver *d = device->driver;
    if (!r || atomic_fetch_sub(&r->n_users, 1) > 1)
        return;
    if (r->graph)
        d->cuGraphDestroy(r->graph);
    if (r->last)
        d->cuEventDestroy_v2(r->last);
    if (r->error_word)
        d->cuMemFreeHost(r->error_word);
    pthread_mutex_destroy(&r->lock);
    device->self->host->dealloc(device->self->host, r);
}

static CUresult recording_create(tn_device_impl *device, cuda_recording **out) {
    cuda_recording *r = *out = cuda_host_alloc(device->self, sizeof *r, "a capture");
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *r = (cuda_recording){.n_users = 1};
    pthread_mutex_init(&r->lock, NULL);
    CUresult error = cuda_error_word_create(device, &r->error_word);
    if (error == CUDA_SUCCESS)
        error = device->driver->cuEventCreate(&r->last, CU_EVENT_DISABLE_TIMING);
    return error;
}

/* Until all launches are over of what was recorded. */
static CUresult recording_wait(tn_device_impl *device, cuda_recording *r) {
    pthread_mutex_lock(&r->lock);
    bool was_launched = r->last_stream != NULL;
    pthread_mutex_unlock(&r->lock);
    return was_launched ? device->driver->cuEventSynchronize(r->last) : CUDA_SUCCESS;
}

/* ---- capturing --------------------------------------------------------------------------- */

static tn_status begin(tn_stream_impl *stream) {
    tn_device_impl *device = stream->device;
    cuda_recording *r = NULL;
    PLUGIN_TRY(cuda_check_lost(device));
    bool captures = false;
    cuda_scope scope = cuda_enter(device);
    CUresult error = scope.error;
    if (error == CUDA_SUCCESS) {
        error = recording_create(device, &r);
        pthread_rwlock_wrlock(&stream->gate);
        pthread_mutex_lock(&stream->lock); /* see enqueue_failing in launch.c */
        captures = atomic_load(&stream->recording) != NULL;
        /* Relaxed: other threads, and this one beside, allocate and load what they need. */
        if (error == CUDA_SUCCESS && !captures)
            error = device->driver->cuStreamBeginCapture_v2(stream->stream,
                                                            CU_STREAM_CAPTURE_MODE_RELAXED);
        if (error == CUDA_SUCCESS && !captures)
            atomic_store(&stream->recording, r);
        pthread_mutex_unlock(&stream->lock);
        pthread_rwlock_unlock(&stream->gate);
        if (error != CUDA_SUCCESS || captures)
            recording_drop(device, r);
        cuda_leave(&scope);
    }
    if (captures)
        return cuda_fail_capturing(stream, "a capture");
    return error == CUDA_SUCCESS ? TN_OK
                                 : cuda_fail_driver(stream->device, error, "beginning a capture");
}

/* Takes the recording from the stream, which is an ordinary one from now on. In the context. */
static CUresult stop(tn_stream_impl *stream, cuda_recording **out) {
    CUresult error = CUDA_SUCCESS;
    pthread_mutex_lock(&stream->lock);
    *out = atomic_exchange(&stream->recording, NULL);
    if (*out)
        error = stream->device->driver->cuStreamEndCapture(stream->stream, &(*out)->graph);
    pthread_mutex_unlock(&stream->lock);
    return error;
}

static void graph_release(tn_graph_impl *graph) {
    if (graph->executable)
        graph->device->driver->cuGraphExecDestroy(graph->executable);
    recording_drop(graph->device, graph->recording);
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
    tn_status status = r->may_fail ? cuda_move_error_build(device, &move_error) : TN_OK;
    if (status == TN_OK) {
        CUresult error =
            device->driver->cuGraphInstantiateWithFlags(&graph->executable, r->graph, 0);
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
    CUresult error = stop(stream, &r);
    if (scope.error != CUDA_SUCCESS)
        error = scope.error;
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

/* Whatever the driver says, what the host has is given back; so below. */
static void abandon(tn_stream_impl *stream) {
    cuda_recording *r = NULL;
    cuda_scope scope = cuda_enter(stream->device);
    stop(stream, &r);
    recording_drop(stream->device, r);
    cuda_leave(&scope);
}

/* ---- graphs ------------------------------------------------------------------------------ */

/* One launch behind the other: the next one's kernels find the error word as it was before. */
static CUresult queue(tn_graph_impl *graph, tn_stream_impl *stream) {
    const cuda_driver *d = graph->device->driver;
    cuda_recording *r = graph->recording;
    CUresult error = CUDA_SUCCESS;
    if (r->last_stream && r->last_stream != stream)
        error = d->cuStreamWaitEvent(stream->stream, r->last, 0);
    if (error == CUDA_SUCCESS)
        error = d->cuGraphLaunch(graph->executable, stream->stream);
    if (error != CUDA_SUCCESS)
        return error;
    cuda_remember(stream, &whole_graph);
    if (r->may_fail) {
        void *arguments[] = {&r->error_word, &stream->error_word};
        error = d->cuLaunchKernel(graph->device->move_error->function, 1, 1, 1, 1, 1, 1, 0,
                                  stream->stream, arguments, NULL);
        atomic_store(&stream->may_fail, true);
    }
    if (error == CUDA_SUCCESS)
        error = d->cuEventRecord(r->last, stream->stream);
    if (error == CUDA_SUCCESS)
        r->last_stream = stream;
    else /* nothing says when it is over */
        d->cuStreamSynchronize(stream->stream);
    return error;
}

static tn_status launch(tn_graph_impl *graph, tn_stream_impl *stream) {
    tn_device_impl *device = graph->device;
    PLUGIN_TRY(cuda_check_lost(device));
    if (stream->device != device)
        return cuda_fail(device->self, TN_ERR_INVALID_ARGUMENT,
                         "a graph of cuda:%u cannot be launched on a stream of cuda:%u",
                         device->index, stream->device->index);
    PLUGIN_TRY(cuda_enter_uncaptured(stream, "the launch of a graph"));
    pthread_mutex_lock(&graph->recording->lock);
    pthread_mutex_lock(&stream->lock); /* see take_error in stream.c */
    CUresult error = CUDA_INSIDE(device, queue(graph, stream));
    pthread_mutex_unlock(&stream->lock);
    pthread_mutex_unlock(&graph->recording->lock);
    cuda_leave_uncaptured(stream);
    return error == CUDA_SUCCESS ? TN_OK
                                 : cuda_fail_driver(stream->device, error, "launching a graph");
}

static void destroy(tn_graph_impl *graph) {
    if (!graph)
        return;
    cuda_scope scope = cuda_enter(graph->device);
    if (!cuda_is_lost(graph->device))
        recording_wait(graph->device, graph->recording);
    graph_release(graph);
    cuda_leave(&scope);
}

/* What the driver cannot change in place is made anew. */
static CUresult replace(tn_graph_impl *graph, CUgraph from) {
    const cuda_driver *d = graph->device->driver;
    CUgraphExecUpdateResultInfo info;
    CUgraphExec made = NULL;
    CUresult error = d->cuGraphExecUpdate_v2(graph->executable, from, &info);
    if (error != CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
        return error;
    error = d->cuGraphInstantiateWithFlags(&made, from, 0);
    if (error != CUDA_SUCCESS)
        return error;
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
        /* Launches that are queued write to the word of the old recording. */
        error = recording_wait(device, graph->recording);
        if (error == CUDA_SUCCESS)
            error = replace(graph, from->recording->graph);
        if (error == CUDA_SUCCESS) {
            atomic_fetch_add(&from->recording->n_users, 1);
            recording_drop(device, graph->recording);
            graph->recording = from->recording;
        }
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
