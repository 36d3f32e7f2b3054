/* Capture: work given to a stream becomes nodes of a graph. A capture stands, in each stream that is
 * part of it, at some nodes that the next one comes after; events carry that to other streams. */
#include "tests/cuda/double/inside.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* ---- what captures forbid ---------------------------------------------------------------- */

CUresult capture_fail(capture *k, CUresult error) {
    k->invalid = true;
    return error;
}

CUresult capture_minds(void) {
    CUresult error = CUDA_SUCCESS;
    for (capture *k = driver.captures; k; k = k->next) {
        bool here = k->thread == thread_number() && k->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool anywhere = k->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if ((thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && (here || anywhere)) ||
            (thread_mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && here))
            error = capture_fail(k, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    return error;
}

/* The legacy stream waits for streams that block: none of them may be part of a capture. */
static CUresult legacy_refuses(const stream *s) {
    const context *c = s->head.context;
    CUresult error = CUDA_SUCCESS;
    for (stream *other = c->streams; other && s == c->legacy; other = other->next)
        if (other->capture && !(other->flags & CU_STREAM_NON_BLOCKING))
            error = capture_fail(other->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    return error;
}

CUresult capture_refuses(stream *s) {
    if (!s->capture)
        return legacy_refuses(s);
    return capture_fail(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

/* ---- where it stands --------------------------------------------------------------------- */

static void set_frontier(uint32_t **frontier, uint32_t *n, const uint32_t *nodes,
                         uint32_t n_nodes) {
    uint32_t *kept = take(n_nodes, sizeof(*kept));
    if (n_nodes)
        memcpy(kept, nodes, n_nodes * sizeof(*kept));
    free(*frontier);
    *frontier = kept;
    *n = n_nodes;
}

static void add_to_frontier(stream *s, uint32_t place) {
    for (uint32_t i = 0; i < s->n_frontier; i++)
        if (s->frontier[i] == place)
            return;
    s->frontier = take_again(s->frontier, s->n_frontier + 1, sizeof(s->frontier[0]));
    s->frontier[s->n_frontier++] = place;
}

CUresult capture_add(stream *s, work *w, bool *out) {
    *out = false;
    CUresult error = s->capture ? CUDA_SUCCESS : legacy_refuses(s);
    if (!error && s->capture && s->capture->invalid)
        error = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (error) {
        work_drop(w);
        return error;
    }
    if (!s->capture)
        return CUDA_SUCCESS;
    uint32_t place = graph_add(s->capture->graph, w, s->n_frontier, s->frontier);
    set_frontier(&s->frontier, &s->n_frontier, &place, 1);
    *out = true;
    return CUDA_SUCCESS;
}

CUresult capture_record(stream *s, event *e) {
    if (s->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    e->captured = s->capture->id;
    set_frontier(&e->frontier, &e->n_frontier, s->frontier, s->n_frontier);
    item_drop(e->item);
    e->item = NULL;
    return CUDA_SUCCESS;
}

CUresult capture_wait(stream *s, event *e, unsigned flags, bool *out) {
    capture *of_event = driver.captures;
    while (of_event && of_event->id != e->captured)
        of_event = of_event->next;
    if (s->capture && s->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!e->captured && !s->capture)
        return legacy_refuses(s);
    if (!e->captured) /* recorded, or not, outside: what is not is done */
        return e->item || (flags & CU_EVENT_WAIT_EXTERNAL)
                   ? capture_fail(s->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
                   : (*out = true, CUDA_SUCCESS);
    if (!of_event || of_event->invalid) /* of a capture that is over */
        return s->capture ? capture_fail(s->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
                          : CUDA_ERROR_CAPTURED_EVENT;
    if (s == s->head.context->legacy)
        return capture_fail(of_event, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (s->capture && s->capture != of_event) {
        of_event->invalid = true;
        return capture_fail(s->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    *out = true;
    if (!s->capture)
        set_frontier(&s->frontier, &s->n_frontier, NULL, 0);
    s->capture = of_event;
    for (uint32_t i = 0; i < e->n_frontier; i++)
        add_to_frontier(s, e->frontier[i]);
    return CUDA_SUCCESS;
}

/* ---- begin and end ----------------------------------------------------------------------- */

CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
    context *c;
    stream *s;
    CUresult error = enter(CALL_cuStreamBeginCapture_v2, NEEDS_ALL, &c);
    if (error)
        return error;
    error = stream_find(handle, c, &s);
    if (!error && (unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        error = CUDA_ERROR_INVALID_VALUE;
    if (!error && s == s->head.context->legacy)
        error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!error && s->capture)
        error = CUDA_ERROR_ILLEGAL_STATE;
    if (error)
        return leave(error);
    capture *k = take(1, sizeof(*k));
    k->id = ++driver.n_captures;
    k->mode = mode;
    k->thread = thread_number();
    k->origin = s;
    k->graph = graph_create();
    k->next = driver.captures;
    driver.captures = k;
    s->capture = k;
    set_frontier(&s->frontier, &s->n_frontier, NULL, 0);
    return leave(CUDA_SUCCESS);
}

/* Streams go back to what they did; the graph is the caller's. */
static graph *capture_close(capture *k) {
    for (context *c = driver.contexts; c; c = c->next)
        for (stream *s = c->streams; s; s = s->next)
            if (s->capture == k)
                s->capture = NULL;
    capture **place = &driver.captures;
    while (*place != k)
        place = &(*place)->next;
    *place = k->next;
    graph *g = k->graph;
    free(k);
    return g;
}

void capture_leave(stream *s) {
    if (!s->capture)
        return;
    if (s->capture->origin == s) {
        graph_destroy(capture_close(s->capture));
        return;
    }
    s->capture->invalid = true;
    s->capture = NULL;
}

/* Is every stream of the capture where its first stream is, or before? */
static bool joined(const capture *k) {
    const graph *g = k->graph;
    bool *before = take(g->n_nodes, sizeof(*before)), all = true;
    for (uint32_t i = 0; i < k->origin->n_frontier; i++)
        before[k->origin->frontier[i]] = true;
    for (uint32_t i = g->n_nodes; i-- > 0;)
        for (uint32_t n = 0; n < g->nodes[i].n_after && before[i]; n++)
            before[g->nodes[i].after[n]] = true;
    for (uint32_t i = 0; i < g->n_nodes; i++)
        all = all && before[i];
    free(before);
    return all;
}

CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph *out) {
    context *c;
    stream *s;
    CUresult error = enter(CALL_cuStreamEndCapture, NEEDS_INIT | NEEDS_CONTEXT, &c);
    if (error)
        return error;
    if (!out)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *out = NULL;
    CUresult broken = stream_find(handle, c, &s);
    if (!s)
        return leave(broken);
    capture *k = s->capture;
    if (!k)
        return leave(broken ? broken : CUDA_ERROR_ILLEGAL_STATE);
    if (k->origin != s)
        return leave(capture_fail(k, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED));
    if (k->mode != CU_STREAM_CAPTURE_MODE_RELAXED && k->thread != thread_number())
        return leave(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    error = broken       ? broken
            : k->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
            : !joined(k) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                         : CUDA_SUCCESS;
    graph *g = capture_close(k);
    if (error)
        graph_destroy(g);
    else
        *out = object_handle(&g->head);
    return leave(error);
}

/* ---- questions --------------------------------------------------------------------------- */

static CUstreamCaptureStatus status_of(const stream *s) {
    return !s->capture           ? CU_STREAM_CAPTURE_STATUS_NONE
           : s->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *out) {
    context *c;
    stream *s;
    CUresult error = enter(CALL_cuStreamIsCapturing, NEEDS_ALL, &c);
    if (error)
        return error;
    error = out ? stream_find(handle, c, &s) : CUDA_ERROR_INVALID_VALUE;
    if (!error)
        error = legacy_refuses(s);
    if (!error)
        *out = status_of(s);
    return leave(error);
}

/* The nodes that the next one comes after are not told: they have no handles. */
static CUresult tell(function_name function, CUstream handle, CUstreamCaptureStatus *out,
                     cuuint64_t *out_id, CUgraph *out_graph, bool asks_for_nodes) {
    context *c;
    stream *s;
    CUresult error = enter(function, NEEDS_ALL, &c);
    if (error)
        return error;
    error = !out             ? CUDA_ERROR_INVALID_VALUE
            : asks_for_nodes ? CUDA_ERROR_NOT_SUPPORTED
                             : stream_find(handle, c, &s);
    if (!error)
        error = legacy_refuses(s);
    if (error)
        return leave(error);
    *out = status_of(s);
    if (*out == CU_STREAM_CAPTURE_STATUS_ACTIVE && out_id)
        *out_id = s->capture->id;
    if (*out == CU_STREAM_CAPTURE_STATUS_ACTIVE && out_graph)
        *out_graph = object_handle(&s->capture->graph->head);
    return leave(CUDA_SUCCESS);
}

#if CUDA_VERSION >= 13000
#pragma GCC visibility push(default)
CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *out,
                                           cuuint64_t *out_id, CUgraph *out_graph,
                                           const CUgraphNode **out_nodes, size_t *out_n);
#pragma GCC visibility pop
#endif

CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *out,
                                           cuuint64_t *out_id, CUgraph *out_graph,
                                           const CUgraphNode **out_nodes, size_t *out_n) {
    return tell(CALL_cuStreamGetCaptureInfo_v2, handle, out, out_id, out_graph, out_nodes || out_n);
}

#if CUDA_VERSION >= 12030
CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *out,
                                           cuuint64_t *out_id, CUgraph *out_graph,
                                           const CUgraphNode **out_nodes,
                                           const CUgraphEdgeData **out_edges, size_t *out_n) {
    return tell(CALL_cuStreamGetCaptureInfo_v3, handle, out, out_id, out_graph,
                out_nodes || out_edges || out_n);
}
#endif

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    CUresult error = enter(CALL_cuThreadExchangeStreamCaptureMode, NEEDS_INIT, NULL);
    if (error)
        return error;
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return leave(CUDA_ERROR_INVALID_VALUE);
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return leave(CUDA_SUCCESS);
}
