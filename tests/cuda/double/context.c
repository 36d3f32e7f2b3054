/* Contexts: a stack of them for each thread, and a primary one for each device, counted. */
#include "tests/cuda/double/inside.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

/* Handles, not pointers: what is current to a thread may be destroyed by another. */
static _Thread_local struct {
    CUcontext at[MAX_DEPTH];
    int depth;
} stack;

/* ---- inside ------------------------------------------------------------------------------ */

CUresult context_find(CUcontext handle, context **out) {
    *out = object_find(handle, DOUBLE_CONTEXT);
    if (*out)
        return CUDA_SUCCESS;
    return handle ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult context_current(context **out) {
    *out = NULL;
    if (!stack.depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    return context_find(stack.at[stack.depth - 1], out);
}

static context *context_create(gpu *device, bool primary) {
    context *c = take(1, sizeof(*c));
    c->objects.previous = c->objects.next = &c->objects;
    object_init(&c->head, DOUBLE_CONTEXT, NULL);
    c->device = device;
    c->primary = primary;
    c->legacy = stream_create(c, 0, 0);
    c->next = driver.contexts;
    driver.contexts = c;
    return c;
}

static void object_abandon(object *o) {
    driver.abandoned[o->kind]++;
    if (o->kind == DOUBLE_MODULE) {
        module_unload((module *)o);
    } else {
        object_finish(o);
        free(((event *)o)->frontier);
        item_drop(((event *)o)->item);
        free(o);
    }
}

/* Out of sight first: it waits for its streams, and meanwhile others may retain the device's next
 * one. */
void context_destroy(context *c) {
    object_finish(&c->head);
    if (c->primary)
        c->device->primary = NULL;
    for (stream *s = c->streams; s; s = s->next)
        if (!s->closing && s != c->legacy)
            driver.abandoned[DOUBLE_STREAM]++;
    streams_close(c);
    for (object *o = c->objects.next; o != &c->objects; o = c->objects.next)
        object_abandon(o);
    memory_forget(c);
    context **place = &driver.contexts;
    for (; *place != c; place = &(*place)->next)
        for (int i = 0; i < MAX_DEVICES; i++)
            if ((*place)->peers[i] == c)
                (*place)->peers[i] = NULL;
    *place = c->next;
    for (context *other = c->next; other; other = other->next)
        for (int i = 0; i < MAX_DEVICES; i++)
            if (other->peers[i] == c)
                other->peers[i] = NULL;
    free(c);
}

bool context_reaches(const context *c, const context *owner) {
    if (c == owner)
        return true;
    for (int i = 0; i < MAX_DEVICES; i++)
        if (c->peers[i] == owner)
            return owner != NULL;
    return false;
}

void context_break(context *c, CUresult error) {
    if (!c->error)
        c->error = error;
}

static CUresult stack_push(CUcontext handle) {
    if (stack.depth == MAX_DEPTH)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack.at[stack.depth++] = handle;
    return CUDA_SUCCESS;
}

CUcontext double_current(int *out_depth) {
    *out_depth = stack.depth;
    return stack.depth ? stack.at[stack.depth - 1] : NULL;
}

/* ---- primary contexts -------------------------------------------------------------------- */

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice ordinal) {
    CUresult error = enter(CALL_cuDevicePrimaryCtxRetain, NEEDS_INIT | UNSAFE, NULL);
    if (error)
        return error;
    gpu *device;
    error = device_find(ordinal, &device);
    if (!error)
        error = device->lost;
    if (!error && !out)
        error = CUDA_ERROR_INVALID_VALUE;
    if (error)
        return leave(error);
    if (!device->primary)
        device->primary = context_create(device, true);
    device->n_retained++;
    *out = object_handle(&device->primary->head);
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
    CUresult error = enter(CALL_cuDevicePrimaryCtxRelease_v2, NEEDS_INIT | UNSAFE, NULL);
    if (error)
        return error;
    gpu *device;
    error = device_find(ordinal, &device);
    if (!error && !device->n_retained)
        error = CUDA_ERROR_INVALID_CONTEXT;
    if (!error && --device->n_retained == 0)
        context_destroy(device->primary);
    return leave(error);
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned *flags, int *active) {
    CUresult error = enter(CALL_cuDevicePrimaryCtxGetState, NEEDS_INIT, NULL);
    if (error)
        return error;
    gpu *device;
    error = device_find(ordinal, &device);
    if (!error && (!flags || !active))
        error = CUDA_ERROR_INVALID_VALUE;
    if (!error) {
        *flags = 0;
        *active = device->primary != NULL;
    }
    return leave(error);
}

/* ---- other contexts ---------------------------------------------------------------------- */

static CUresult create(function_name function, CUcontext *out, unsigned flags, CUdevice ordinal) {
    CUresult error = enter(function, NEEDS_INIT | UNSAFE, NULL);
    if (error)
        return error;
    gpu *device;
    error = device_find(ordinal, &device);
    if (!error)
        error = device->lost;
    if (!error && (!out || (flags & ~(unsigned)CU_CTX_FLAGS_MASK)))
        error = CUDA_ERROR_INVALID_VALUE;
    if (error)
        return leave(error);
    *out = object_handle(&context_create(device, false)->head);
    error = stack_push(*out);
    return leave(error);
}

#if CUDA_VERSION >= 13000
#pragma GCC visibility push(default)
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice ordinal);
#pragma GCC visibility pop

CUresult CUDAAPI cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned flags,
                                CUdevice ordinal) {
    return create(CALL_cuCtxCreate_v4, out, params ? ~0u : flags, ordinal);
}
#endif

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice ordinal) {
    return create(CALL_cuCtxCreate_v2, out, flags, ordinal);
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext handle) {
    CUresult error = enter(CALL_cuCtxDestroy_v2, NEEDS_INIT | UNSAFE, NULL);
    if (error)
        return error;
    context *c;
    error = context_find(handle, &c);
    if (!error && c->primary)
        error = CUDA_ERROR_INVALID_CONTEXT;
    if (error)
        return leave(error);
    if (stack.depth && stack.at[stack.depth - 1] == handle)
        stack.depth--;
    context_destroy(c);
    return leave(CUDA_SUCCESS);
}

/* ---- the thread's stack ------------------------------------------------------------------ */

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext handle) {
    CUresult error = enter(CALL_cuCtxPushCurrent_v2, NEEDS_INIT, NULL);
    if (error)
        return error;
    context *c;
    error = context_find(handle, &c);
    return leave(error ? error : stack_push(handle));
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *out) {
    CUresult error = enter(CALL_cuCtxPopCurrent_v2, NEEDS_INIT, NULL);
    if (error)
        return error;
    if (!stack.depth)
        return leave(CUDA_ERROR_INVALID_CONTEXT);
    stack.depth--;
    if (out)
        *out = stack.at[stack.depth];
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext handle) {
    CUresult error = enter(CALL_cuCtxSetCurrent, NEEDS_INIT, NULL);
    if (error)
        return error;
    context *c;
    error = handle ? context_find(handle, &c) : CUDA_SUCCESS;
    if (error)
        return leave(error);
    if (stack.depth)
        stack.depth--;
    return leave(handle ? stack_push(handle) : CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *out) {
    CUresult error = enter(CALL_cuCtxGetCurrent, NEEDS_INIT, NULL);
    if (error)
        return error;
    if (!out)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *out = stack.depth ? stack.at[stack.depth - 1] : NULL;
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *out) {
    context *c;
    CUresult error = enter(CALL_cuCtxGetDevice, NEEDS_INIT | NEEDS_CONTEXT, &c);
    if (error)
        return error;
    if (!out)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *out = c->device->ordinal;
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    context *c;
    CUresult error = enter(CALL_cuCtxGetStreamPriorityRange, NEEDS_ALL, &c);
    if (error)
        return error;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxSynchronize(void) {
    context *c;
    CUresult error = enter(CALL_cuCtxSynchronize, NEEDS_ALL | UNSAFE, &c);
    if (error)
        return error;
    for (capture *k = driver.captures; k; k = k->next)
        if (k->origin->head.context == c)
            return leave(capture_fail(k, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
    driver.n_waits++;
    context_wait(c);
    return leave(c->error);
}

/* ---- peers ------------------------------------------------------------------------------- */

static CUresult find_peer(CUcontext handle, context *c, context **out) {
    CUresult error = context_find(handle, out);
    if (error)
        return error;
    if ((*out)->device == c->device)
        return CUDA_ERROR_INVALID_CONTEXT;
    return driver.settings.no_peers ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
    context *c, *peer;
    CUresult error = enter(CALL_cuCtxEnablePeerAccess, NEEDS_ALL | UNSAFE, &c);
    if (error)
        return error;
    error = flags ? CUDA_ERROR_INVALID_VALUE : find_peer(handle, c, &peer);
    if (!error && context_reaches(c, peer))
        error = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    int i = 0;
    while (!error && i < MAX_DEVICES && c->peers[i])
        i++;
    if (!error && i == MAX_DEVICES)
        error = CUDA_ERROR_TOO_MANY_PEERS;
    if (!error)
        c->peers[i] = peer;
    return leave(error);
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext handle) {
    context *c, *peer;
    CUresult error = enter(CALL_cuCtxDisablePeerAccess, NEEDS_ALL | UNSAFE, &c);
    if (error)
        return error;
    error = find_peer(handle, c, &peer);
    if (!error && !context_reaches(c, peer))
        error = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    for (int i = 0; i < MAX_DEVICES && !error; i++)
        if (c->peers[i] == peer)
            c->peers[i] = NULL;
    return leave(error);
}
