/* Events: the place in a stream where one was recorded last, or where its capture stood then. */
#include "tests/cuda/double/inside.h"

#include <stdlib.h>

CUresult CUDAAPI cuEventCreate(CUevent *out, unsigned flags) {
    context *c;
    CUresult error = enter(CALL_cuEventCreate, NEEDS_ALL, &c);
    if (error)
        return error;
    unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    if (!out || (flags & ~known))
        return leave(CUDA_ERROR_INVALID_VALUE);
    event *e = take(1, sizeof(*e));
    object_init(&e->head, DOUBLE_EVENT, c);
    e->flags = flags;
    *out = object_handle(&e->head);
    return leave(CUDA_SUCCESS);
}

/* Those that wait for it have the place that it stood for. */
CUresult CUDAAPI cuEventDestroy_v2(CUevent handle) {
    CUresult error = enter(CALL_cuEventDestroy_v2, NEEDS_INIT | NEEDS_CONTEXT, &(context *){NULL});
    if (error)
        return error;
    event *e = object_find(handle, DOUBLE_EVENT);
    if (!e)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    error = e->head.context->error;
    object_finish(&e->head);
    item_drop(e->item);
    free(e->frontier);
    free(e);
    return leave(error);
}

CUresult CUDAAPI cuEventRecord(CUevent handle, CUstream stream_handle) {
    context *c;
    CUresult error = enter(CALL_cuEventRecord, NEEDS_ALL, &c);
    if (error)
        return error;
    event *e = object_find(handle, DOUBLE_EVENT);
    stream *s = NULL;
    error = e ? stream_find(stream_handle, c, &s) : CUDA_ERROR_INVALID_HANDLE;
    if (!error && e->head.context != s->head.context)
        error = CUDA_ERROR_INVALID_HANDLE;
    if (error)
        return leave(error);
    bool captured = s->capture != NULL;
    error = captured ? capture_record(s, e) : capture_add(s, NULL, &captured);
    if (error || captured)
        return leave(error);
    e->captured = 0;
    item *place = item_keep(stream_push(s, NULL, NULL, NULL));
    item_drop(e->item);
    e->item = place;
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned flags) {
    context *c;
    CUresult error = enter(CALL_cuStreamWaitEvent, NEEDS_ALL, &c);
    if (error)
        return error;
    event *e = object_find(handle, DOUBLE_EVENT);
    stream *s = NULL;
    error = e ? stream_find(stream_handle, c, &s) : CUDA_ERROR_INVALID_HANDLE;
    if (!error && (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL))
        error = CUDA_ERROR_INVALID_VALUE;
    bool captured = false;
    if (!error)
        error = capture_wait(s, e, flags, &captured);
    if (!error && !captured && e->item && !e->item->done)
        stream_push(s, NULL, NULL, e->item);
    return leave(error);
}

/* Enters, and finds an event that may be asked how far it is. */
static CUresult enter_for(function_name function, CUevent handle, event **out) {
    CUresult error = enter(function, NEEDS_ALL | UNSAFE, &(context *){NULL});
    if (error)
        return error;
    *out = object_find(handle, DOUBLE_EVENT);
    if (!*out)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if ((*out)->captured)
        return leave(CUDA_ERROR_CAPTURED_EVENT);
    error = (*out)->head.context->error;
    return error ? leave(error) : CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventQuery(CUevent handle) {
    event *e;
    CUresult error = enter_for(CALL_cuEventQuery, handle, &e);
    if (error)
        return error;
    return leave(e->item && !e->item->done ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS);
}

CUresult CUDAAPI cuEventSynchronize(CUevent handle) {
    event *e;
    CUresult error = enter_for(CALL_cuEventSynchronize, handle, &e);
    if (error)
        return error;
    context *c = e->head.context;
    driver.n_waits++;
    if (e->item)
        item_wait(e->item);
    return leave(c->error);
}

/* Milliseconds. The header may call this one cuEventElapsedTime_v2. */
CUresult CUDAAPI cuEventElapsedTime(float *out, CUevent start_handle, CUevent end_handle) {
    CUresult error = enter(CALL_cuEventElapsedTime, NEEDS_ALL, &(context *){NULL});
    if (error)
        return error;
    event *start = object_find(start_handle, DOUBLE_EVENT);
    event *end = object_find(end_handle, DOUBLE_EVENT);
    if (!out)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (!start || !end || start->head.context != end->head.context || start->captured ||
        end->captured || !start->item || !end->item ||
        ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (!start->item->done || !end->item->done)
        return leave(CUDA_ERROR_NOT_READY);
    *out = (float)((double)((int64_t)end->item->time - (int64_t)start->item->time) * 1e-6);
    return leave(start->head.context->error);
}

#ifdef cuEventElapsedTime
#undef cuEventElapsedTime
#pragma GCC visibility push(default)
CUresult CUDAAPI cuEventElapsedTime(float *out, CUevent start, CUevent end);
#pragma GCC visibility pop

CUresult CUDAAPI cuEventElapsedTime(float *out, CUevent start, CUevent end) {
    return cuEventElapsedTime_v2(out, start, end);
}
#endif
