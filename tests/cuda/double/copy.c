/* Copies and fills. Pageable memory is read before the call returns, or written; pinned memory when
 * the stream gets there. */
#include "tests/cuda/double/inside.h"

#include <stdlib.h>
#include <string.h>

typedef struct copy {
    work head;
    uint64_t to, from, bytes;
    unsigned char *staged; /* what a pageable source held */
    bool to_pageable, from_pageable;
} copy;

typedef struct fill {
    work head;
    uint64_t to, n;
    uint32_t value;
    unsigned width; /* bytes */
} fill;

/* What of an operand an update of a graph may not change. */
static uint64_t operand_kind(const range *r) {
    return !r ? 0 : r->pinned ? 1 : 2 + (uint64_t)r->context->device->ordinal;
}

/* ---- when the stream gets there ---------------------------------------------------------- */

static CUresult copy_run(work *w, context *c) {
    copy *k = (copy *)w;
    pthread_mutex_lock(&driver.lock);
    bool there = (k->to_pageable || memory_find(k->to, k->bytes)) &&
                 (k->from_pageable || k->staged || memory_find(k->from, k->bytes));
    pthread_mutex_unlock(&driver.lock);
    if (!there)
        return CUDA_ERROR_ILLEGAL_ADDRESS; /* a graph's, gone since */
    memcpy(memory_host(k->to), k->staged ? k->staged : memory_host(k->from), k->bytes);
    return CUDA_SUCCESS;
}

static void copy_finish(work *w) {
    free(((copy *)w)->staged);
}

static CUresult fill_run(work *w, context *c) {
    fill *f = (fill *)w;
    pthread_mutex_lock(&driver.lock);
    const range *r = memory_find(f->to, f->n * f->width);
    bool there = r && (r->pinned || context_reaches(c, r->context));
    pthread_mutex_unlock(&driver.lock);
    if (!there)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    unsigned char *to = memory_host(f->to);
    if (f->width == 1)
        memset(to, (int)f->value, f->n);
    else
        for (uint64_t i = 0; i < f->n; i++)
            memcpy(to + i * f->width, &f->value, f->width);
    return CUDA_SUCCESS;
}

/* ---- copies ------------------------------------------------------------------------------ */

typedef enum side { DEVICE, HOST } side;

/* `wait`: the caller waits for it, as cuMemcpyHtoD's does. */
static CUresult copy_submit(stream *s, uint64_t to, side to_side, uint64_t from, side from_side,
                            uint64_t bytes, bool wait) {
    const range *to_range = memory_find(to, bytes), *from_range = memory_find(from, bytes);
    if (!bytes)
        return CUDA_SUCCESS;
    if ((to_side == DEVICE ? !to_range : !memory_is_host(memory_host(to), bytes)) ||
        (from_side == DEVICE ? !from_range : !memory_is_host(memory_host(from), bytes)))
        return CUDA_ERROR_INVALID_VALUE;
    bool to_pageable = !to_range, from_pageable = !from_range;
    /* A driver may take pageable memory into a graph, and reads at a launch what is there then. */
    if (s->capture && (to_pageable || from_pageable))
        return capture_refuses(s);

    copy *k = work_create(sizeof(*k), CU_GRAPH_NODE_TYPE_MEMCPY, copy_run, copy_finish);
    k->to = to;
    k->from = from;
    k->bytes = bytes;
    k->to_pageable = to_pageable;
    k->from_pageable = from_pageable;
    k->head.fixed = operand_kind(to_range) << 8 | operand_kind(from_range);
    if (from_pageable && !wait) {
        k->staged = take(bytes, 1);
        memcpy(k->staged, memory_host(from), bytes);
    }
    CUresult error = stream_submit(s, &k->head);
    if (error || (!wait && !to_pageable))
        return error;
    context *c = s->head.context;
    stream_wait(s);
    return c->error;
}

static uint64_t host_address(const void *pointer) {
    return (uint64_t)(uintptr_t)pointer;
}

CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
    context *c;
    CUresult error = enter(CALL_cuMemcpyHtoD_v2, NEEDS_ALL | UNSAFE, &c);
    if (error)
        return error;
    return leave(copy_submit(c->legacy, to, DEVICE, host_address(from), HOST, bytes, true));
}

CUresult CUDAAPI cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    context *c;
    CUresult error = enter(CALL_cuMemcpyDtoH_v2, NEEDS_ALL | UNSAFE, &c);
    if (error)
        return error;
    return leave(copy_submit(c->legacy, host_address(to), HOST, from, DEVICE, bytes, true));
}

CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                                      CUstream handle) {
    context *c;
    stream *s;
    CUresult error = enter(CALL_cuMemcpyHtoDAsync_v2, NEEDS_ALL, &c);
    if (error)
        return error;
    error = stream_find(handle, c, &s);
    if (!error)
        error = copy_submit(s, to, DEVICE, host_address(from), HOST, bytes, false);
    return leave(error);
}

CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream handle) {
    context *c;
    stream *s;
    CUresult error = enter(CALL_cuMemcpyDtoHAsync_v2, NEEDS_ALL, &c);
    if (error)
        return error;
    error = stream_find(handle, c, &s);
    if (!error)
        error = copy_submit(s, host_address(to), HOST, from, DEVICE, bytes, false);
    return leave(error);
}

CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                      CUstream handle) {
    context *c;
    stream *s;
    CUresult error = enter(CALL_cuMemcpyDtoDAsync_v2, NEEDS_ALL, &c);
    if (error)
        return error;
    error = stream_find(handle, c, &s);
    if (!error)
        error = copy_submit(s, to, DEVICE, from, DEVICE, bytes, false);
    return leave(error);
}

/* Needs no peer access: what cannot be reached goes through the host. */
CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_handle, CUdeviceptr from,
                                   CUcontext from_handle, size_t bytes, CUstream handle) {
    context *c, *to_context, *from_context;
    stream *s;
    CUresult error = enter(CALL_cuMemcpyPeerAsync, NEEDS_ALL, &c);
    if (error)
        return error;
    error = stream_find(handle, c, &s);
    if (!error)
        error = context_find(to_handle, &to_context);
    if (!error)
        error = context_find(from_handle, &from_context);
    if (error)
        return leave(error);
    const range *to_range = memory_find(to, bytes), *from_range = memory_find(from, bytes);
    if (bytes && (!to_range || to_range->context != to_context || !from_range ||
                  from_range->context != from_context))
        return leave(CUDA_ERROR_INVALID_VALUE);
    error = to_context->error ? to_context->error : from_context->error;
    return leave(error ? error : copy_submit(s, to, DEVICE, from, DEVICE, bytes, false));
}

/* ---- fills ------------------------------------------------------------------------------- */

static CUresult fill_submit(function_name function, CUdeviceptr to, uint32_t value, unsigned width,
                            size_t n, CUstream handle) {
    context *c;
    stream *s;
    CUresult error = enter(function, NEEDS_ALL, &c);
    if (error)
        return error;
    error = stream_find(handle, c, &s);
    if (error || !n)
        return leave(error);
    const range *r = n > SIZE_MAX / width ? NULL : memory_find(to, n * width);
    if (!r || to % width || !(r->pinned || context_reaches(s->head.context, r->context)))
        return leave(CUDA_ERROR_INVALID_VALUE);
    fill *f = work_create(sizeof(*f), CU_GRAPH_NODE_TYPE_MEMSET, fill_run, NULL);
    f->to = to;
    f->n = n;
    f->value = value;
    f->width = width;
    f->head.fixed = operand_kind(r);
    return leave(stream_submit(s, &f->head));
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream handle) {
    return fill_submit(CALL_cuMemsetD8Async, to, value, 1, n, handle);
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream handle) {
    return fill_submit(CALL_cuMemsetD32Async, to, value, 4, n, handle);
}
