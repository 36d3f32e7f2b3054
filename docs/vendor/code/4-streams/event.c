/* event.c: marks in streams.
 *
 * An event is a name for its latest mark. The event, the job that passes the mark and every job
 * that waits for it hold a reference, so that recording again or destroying the event leaves alone
 * who waits for an earlier mark. */
#include "internal.h"
#include "stream.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

struct mark {
    const tn_host *host;
    atomic_uint references;
    pthread_mutex_t lock; /* guards passed and ns */
    pthread_cond_t passing;
    bool passed;
    double ns;
};

struct tn_event_impl {
    tn_device_impl *device;
    uint32_t flags;
    pthread_mutex_t lock; /* guards mark */
    struct mark *mark;    /* NULL before the first record */
};

struct mark_job {
    struct npu_job job;
    struct mark *mark;
};

static struct mark *mark_create(const tn_host *host) {
    struct mark *mark = host->alloc(host, sizeof *mark, _Alignof(struct mark));
    if (!mark)
        return NULL;
    *mark = (struct mark){.host = host, .references = 1};
    pthread_mutex_init(&mark->lock, NULL);
    pthread_cond_init(&mark->passing, NULL);
    return mark;
}

static struct mark *mark_keep(struct mark *mark) {
    atomic_fetch_add(&mark->references, 1);
    return mark;
}

static void mark_drop(struct mark *mark) {
    if (!mark || atomic_fetch_sub(&mark->references, 1) != 1)
        return;
    pthread_cond_destroy(&mark->passing);
    pthread_mutex_destroy(&mark->lock);
    mark->host->dealloc(mark->host, mark);
}

static void mark_wait(struct mark *mark) {
    pthread_mutex_lock(&mark->lock);
    while (!mark->passed)
        pthread_cond_wait(&mark->passing, &mark->lock);
    pthread_mutex_unlock(&mark->lock);
}

static bool mark_passed(struct mark *mark, double *out_ns) {
    pthread_mutex_lock(&mark->lock);
    bool passed = mark->passed;
    *out_ns = mark->ns;
    pthread_mutex_unlock(&mark->lock);
    return passed;
}

/* The event's present mark, kept for the caller, or NULL. */
static struct mark *present_mark(tn_event_impl *event) {
    pthread_mutex_lock(&event->lock);
    struct mark *mark = event->mark ? mark_keep(event->mark) : NULL;
    pthread_mutex_unlock(&event->lock);
    return mark;
}

/* ---- jobs -------------------------------------------------------------------------------- */

static void free_mark_job(struct mark_job *job) {
    const tn_host *host = job->mark->host;
    mark_drop(job->mark);
    host->dealloc(host, job);
}

static tn_status run_pass(struct npu_job *job, const char **out_message) {
    struct mark *mark = ((struct mark_job *)job)->mark;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&mark->lock);
    mark->passed = true;
    mark->ns = (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
    pthread_cond_broadcast(&mark->passing);
    pthread_mutex_unlock(&mark->lock);
    free_mark_job((struct mark_job *)job);
    return TN_OK;
}

static tn_status run_wait(struct npu_job *job, const char **out_message) {
    mark_wait(((struct mark_job *)job)->mark);
    free_mark_job((struct mark_job *)job);
    return TN_OK;
}

/* ---- the table --------------------------------------------------------------------------- */

static tn_status event_create(tn_device_impl *device, uint32_t flags, tn_event_impl **out_event) {
    *out_event = NULL;
    if (flags & ~TN_EVENT_TIMING)
        return npu_fail(device->self, TN_ERR_UNSUPPORTED, "npu:%u knows no event flags %#x",
                        device->index, (unsigned)flags);
    tn_event_impl *event =
        device->self->host->alloc(device->self->host, sizeof *event, _Alignof(tn_event_impl));
    if (!event)
        return npu_fail(device->self, TN_ERR_OUT_OF_MEMORY, "no host memory for an event");
    *event = (tn_event_impl){.device = device, .flags = flags};
    pthread_mutex_init(&event->lock, NULL);
    *out_event = event;
    return TN_OK;
}

static void event_destroy(tn_event_impl *event) {
    mark_drop(event->mark);
    pthread_mutex_destroy(&event->lock);
    event->device->self->host->dealloc(event->device->self->host, event);
}

static tn_status event_record(tn_event_impl *event, tn_stream_impl *stream) {
    struct mark_job *job = npu_new_job(event->device, sizeof *job);
    if (!job)
        return TN_ERR_OUT_OF_MEMORY;
    struct mark *mark = mark_create(event->device->self->host);
    if (!mark) {
        event->device->self->host->dealloc(event->device->self->host, job);
        return npu_fail(event->device->self, TN_ERR_OUT_OF_MEMORY, "no host memory for a mark");
    }
    *job = (struct mark_job){.job.run = run_pass, .mark = mark_keep(mark)};
    pthread_mutex_lock(&event->lock);
    struct mark *before = event->mark;
    event->mark = mark;
    npu_push(stream, &job->job);
    pthread_mutex_unlock(&event->lock);
    mark_drop(before);
    return TN_OK;
}

static tn_status event_wait(tn_stream_impl *stream, tn_event_impl *event) {
    struct mark *mark = present_mark(event);
    if (!mark)
        return TN_OK;
    struct mark_job *job = npu_new_job(event->device, sizeof *job);
    if (!job) {
        mark_drop(mark);
        return TN_ERR_OUT_OF_MEMORY;
    }
    *job = (struct mark_job){.job.run = run_wait, .mark = mark};
    npu_push(stream, &job->job);
    return TN_OK;
}

static tn_status event_query(tn_event_impl *event) {
    double ns;
    struct mark *mark = present_mark(event);
    tn_status status = !mark || mark_passed(mark, &ns) ? TN_OK : TN_NOT_READY;
    mark_drop(mark);
    return status;
}

static tn_status event_synchronize(tn_event_impl *event) {
    struct mark *mark = present_mark(event);
    if (mark)
        mark_wait(mark);
    mark_drop(mark);
    return TN_OK;
}

static tn_status event_elapsed(tn_event_impl *start, tn_event_impl *end, double *out_ns) {
    struct mark *first = present_mark(start), *last = present_mark(end);
    double from = 0, to = 0;
    bool timed = start->flags & end->flags & TN_EVENT_TIMING;
    bool passed = timed && first && last && mark_passed(first, &from) && mark_passed(last, &to);
    *out_ns = passed ? to - from : 0;
    mark_drop(first);
    mark_drop(last);
    return passed ? TN_OK
                  : npu_fail(start->device->self, TN_ERR_STATE,
                             "elapsed: an event is not for timing, or was not passed yet");
}

const tn_event_ops npu_event_ops = {
    .struct_size = sizeof npu_event_ops,
    .create = event_create,
    .destroy = event_destroy,
    .record = event_record,
    .wait = event_wait,
    .query = event_query,
    .synchronize = event_synchronize,
    .elapsed = event_elapsed,
};
