/* Streams: a queue and a thread each. A place in the queue waits for what it comes after in other
 * streams, for as long as the seed says, and then does its work. */
#include "tests/cuda/double/inside.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the thread -------------------------------------------------------------------------- */

static bool may_start(const item *i) {
    if (driver.ending)
        return true;
    if (driver.held)
        return false;
    for (size_t k = 0; k < i->n_after; k++)
        if (!i->after[k]->done)
            return false;
    return true;
}

static void item_finish(stream *s, item *i) {
    for (size_t k = 0; k < i->n_after; k++)
        item_drop(i->after[k]);
    free(i->after);
    i->after = NULL;
    i->n_after = 0;
    work_drop(i->work);
    plan_drop(i->plan);
    i->work = NULL;
    i->plan = NULL;
    i->time = now();
    i->done = true;
    s->first = i->next;
    if (!s->first)
        s->last = NULL;
    item_drop(i);
    tell_change();
}

static void sleep_a_while(stream *s) {
    if (!driver.settings.delay)
        return;
    uint64_t ns = random_next(&s->random) % (driver.settings.delay + 1);
    pthread_mutex_unlock(&driver.lock);
    nanosleep(
        &(struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)},
        NULL);
    pthread_mutex_lock(&driver.lock);
}

static void item_run(stream *s, item *i) {
    context *c = s->head.context;
    if ((!i->work && !i->plan) || c->error || driver.ending)
        return;
    pthread_mutex_unlock(&driver.lock);
    running = c;
    CUresult error = i->work ? i->work->run(i->work, c) : plan_run(i->plan, c, &s->random);
    running = NULL;
    pthread_mutex_lock(&driver.lock);
    if (error)
        context_break(c, error);
}

static void *stream_main(void *argument) {
    stream *s = argument;
    pthread_mutex_lock(&driver.lock);
    look_away();
    for (;;) {
        while (!s->first && !s->closing)
            pthread_cond_wait(&s->arrived, &driver.lock);
        item *i = s->first;
        if (!i)
            break;
        while (!may_start(i))
            wait_for_change();
        sleep_a_while(s);
        item_run(s, i);
        item_finish(s, i);
    }
    s->ended = true;
    tell_change();
    pthread_mutex_unlock(&driver.lock);
    look_again();
    return NULL;
}

/* ---- life -------------------------------------------------------------------------------- */

stream *stream_create(context *c, unsigned flags, int priority) {
    stream *s = take(1, sizeof(*s));
    s->flags = flags;
    s->priority = priority;
    s->random = driver.settings.seed * UINT64_C(0x2545f4914f6cdd1d) + driver.n_streams++;
    pthread_cond_init(&s->arrived, NULL);
    if (c->legacy)
        object_init(&s->head, DOUBLE_STREAM, c);
    else
        s->head.context = c; /* the first is the legacy stream, which has no handle */
    s->next = c->streams;
    c->streams = s;
    return s;
}

/* No more comes; what is there is done yet. */
static void stream_close(stream *s) {
    if (s->closing)
        return;
    capture_leave(s);
    if (s != s->head.context->legacy)
        object_finish(&s->head);
    s->closing = true;
    s->ended = s->ended || !s->started;
    pthread_cond_signal(&s->arrived);
}

/* Streams of the context that have ended are joined. */
static void streams_reap(context *c) {
    for (stream **place = &c->streams; *place;) {
        stream *s = *place;
        if (!s->ended) {
            place = &s->next;
            continue;
        }
        *place = s->next;
        if (s->started)
            pthread_join(s->thread, NULL);
        item_drop(s->latest);
        pthread_cond_destroy(&s->arrived);
        free(s->frontier);
        free(s);
    }
}

void streams_close(context *c) {
    for (stream *s = c->streams; s; s = s->next)
        stream_close(s);
    while (streams_reap(c), c->streams)
        wait_for_change();
}

CUresult stream_find(CUstream handle, context *current, stream **out) {
    *out = NULL;
    if (handle == NULL || handle == CU_STREAM_LEGACY)
        *out = current->legacy;
    else
        *out = object_find(handle, DOUBLE_STREAM);
    return *out ? (*out)->head.context->error : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- the queue --------------------------------------------------------------------------- */

static void come_after(item *i, item *other) {
    if (!other || other->done)
        return;
    i->after = take_again(i->after, i->n_after + 1, sizeof(i->after[0]));
    i->after[i->n_after++] = item_keep(other);
}

/* The legacy stream and those that block come one after the other. */
static void come_after_legacy(item *i, const stream *s) {
    const context *c = s->head.context;
    if (s->flags & CU_STREAM_NON_BLOCKING)
        return;
    if (s != c->legacy) {
        come_after(i, c->legacy->latest);
        return;
    }
    for (const stream *other = c->streams; other; other = other->next)
        if (other != s && !(other->flags & CU_STREAM_NON_BLOCKING))
            come_after(i, other->latest);
}

item *stream_push(stream *s, work *w, plan *p, item *after) {
    item *i = take(1, sizeof(*i));
    i->references = 1; /* the queue's */
    i->work = w;
    i->plan = p;
    come_after_legacy(i, s);
    come_after(i, after);
    item_drop(s->latest);
    s->latest = item_keep(i);
    bool idle = !s->first;
    if (s->last)
        s->last->next = i;
    else
        s->first = i;
    s->last = i;
    if (idle && !w && !p && !i->n_after && !driver.held && !driver.settings.delay) {
        item_finish(s, i); /* a mark that nothing comes before */
        return s->latest;
    }
    if (!s->started)
        s->started = pthread_create(&s->thread, NULL, stream_main, s) == 0;
    if (!s->started) { /* as on a device without room for another queue: at once, in the caller */
        while (!may_start(i))
            wait_for_change();
        item_run(s, i);
        item_finish(s, i);
    }
    pthread_cond_signal(&s->arrived);
    return s->latest;
}

CUresult stream_submit(stream *s, work *w) {
    bool captured = false;
    CUresult error = capture_add(s, w, &captured);
    if (!error && !captured)
        stream_push(s, w, NULL, NULL);
    return error;
}

void stream_wait(stream *s) {
    driver.n_waits++;
    if (s->latest)
        item_wait(s->latest);
}

static void wait_for(const context *only, const context *owner) {
    item **items = NULL;
    size_t n = 0;
    for (context *c = driver.contexts; c; c = c->next)
        for (stream *s = c->streams; s; s = s->next)
            if (s->latest && !s->latest->done &&
                (only ? c == only : !owner || context_reaches(c, owner))) {
                items = take_again(items, n + 1, sizeof(items[0]));
                items[n++] = item_keep(s->latest);
            }
    for (size_t i = 0; i < n; i++) {
        item_wait(items[i]);
        item_drop(items[i]);
    }
    free(items);
}

void context_wait(const context *c) {
    wait_for(c, NULL);
}

void contexts_wait(const context *owner) {
    wait_for(NULL, owner);
}

/* ---- calls ------------------------------------------------------------------------------- */

static CUresult create(function_name function, CUstream *out, unsigned flags, int priority) {
    context *c;
    CUresult error = enter(function, NEEDS_ALL, &c);
    if (error)
        return error;
    if (!out || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
        return leave(CUDA_ERROR_INVALID_VALUE);
    streams_reap(c);
    /* Outside the range it is the nearest. */
    int kept = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    *out = object_handle(&stream_create(c, flags, kept)->head);
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamCreate(CUstream *out, unsigned flags) {
    return create(CALL_cuStreamCreate, out, flags, 0);
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
    return create(CALL_cuStreamCreateWithPriority, out, flags, priority);
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream handle) {
    context *c;
    CUresult error = enter(CALL_cuStreamDestroy_v2, NEEDS_INIT | NEEDS_CONTEXT, &c);
    if (error)
        return error;
    stream *s = object_find(handle, DOUBLE_STREAM);
    if (!s)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    c = s->head.context;
    stream_close(s);
    streams_reap(c);
    return leave(c->error);
}

/* Enters, and finds the stream, for a call that asks about it. */
static CUresult enter_for(function_name function, unsigned needs, CUstream handle, stream **out) {
    context *c;
    CUresult error = enter(function, NEEDS_ALL | needs, &c);
    if (error)
        return error;
    error = stream_find(handle, c, out);
    return error ? leave(error) : CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext *out) {
    stream *s;
    CUresult error = enter_for(CALL_cuStreamGetCtx, 0, handle, &s);
    if (error)
        return error;
    if (!out)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *out = object_handle(&s->head.context->head);
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamGetFlags(CUstream handle, unsigned *out) {
    stream *s;
    CUresult error = enter_for(CALL_cuStreamGetFlags, 0, handle, &s);
    if (error)
        return error;
    if (!out)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *out = s->flags;
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamGetPriority(CUstream handle, int *out) {
    stream *s;
    CUresult error = enter_for(CALL_cuStreamGetPriority, 0, handle, &s);
    if (error)
        return error;
    if (!out)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *out = s->priority;
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamQuery(CUstream handle) {
    stream *s;
    CUresult error = enter_for(CALL_cuStreamQuery, UNSAFE, handle, &s);
    if (error)
        return error;
    error = capture_refuses(s);
    if (!error && s->latest && !s->latest->done)
        error = CUDA_ERROR_NOT_READY;
    return leave(error ? error : s->head.context->error);
}

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
    stream *s;
    CUresult error = enter_for(CALL_cuStreamSynchronize, UNSAFE, handle, &s);
    if (error)
        return error;
    error = capture_refuses(s);
    if (error)
        return leave(error);
    context *c = s->head.context;
    stream_wait(s);
    return leave(c->error);
}
