/* stream.c: a stream is a list of jobs and a thread that runs them in order. The list has no bound,
 * so that queueing never waits. */
#include "stream.h"
#include "internal.h"

#include <pthread.h>
#include <stdbool.h>

struct tn_stream_impl {
    tn_device_impl *device;
    pthread_t thread;
    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed; /* a job was queued, a job is done, or stop was set */
    struct npu_job *head, **tail;
    uint64_t queued, done; /* jobs so far */
    bool stop;             /* the thread is to end when nothing is queued */
    tn_status error;       /* the first since errors were last reported */
    const char *message;
};

void *npu_new_job(tn_device_impl *device, uint64_t bytes) {
    void *job = device->self->host->alloc(device->self->host, bytes, _Alignof(max_align_t));
    if (!job)
        npu_fail(device->self, TN_ERR_OUT_OF_MEMORY, "no host memory to queue work for npu:%u",
                 device->index);
    return job;
}

static void *run_jobs(void *argument) {
    tn_stream_impl *stream = argument;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        while (!stream->head && !stream->stop)
            pthread_cond_wait(&stream->changed, &stream->lock);
        struct npu_job *job = stream->head;
        if (!job)
            break;
        stream->head = job->next;
        if (!stream->head)
            stream->tail = &stream->head;

        pthread_mutex_unlock(&stream->lock);
        const char *message = NULL;
        tn_status status = job->run(job, &message);
        pthread_mutex_lock(&stream->lock);
        if (status != TN_OK && stream->error == TN_OK) {
            stream->error = status;
            stream->message = message;
        }
        stream->done++;
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

uint64_t npu_push(tn_stream_impl *stream, struct npu_job *job) {
    job->next = NULL;
    pthread_mutex_lock(&stream->lock);
    *stream->tail = job;
    stream->tail = &job->next;
    uint64_t place = ++stream->queued;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return place;
}

void npu_wait(tn_stream_impl *stream, uint64_t place) {
    pthread_mutex_lock(&stream->lock);
    while (stream->done < place)
        pthread_cond_wait(&stream->changed, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
}

/* ---- the table --------------------------------------------------------------------------- */

static void free_stream(tn_stream_impl *stream) {
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->lock);
    stream->device->self->host->dealloc(stream->device->self->host, stream);
}

static tn_status stream_create(tn_device_impl *device, int32_t priority,
                               tn_stream_impl **out_stream) {
    tn_instance *self = device->self;
    *out_stream = NULL;
    tn_stream_impl *stream =
        self->host->alloc(self->host, sizeof *stream, _Alignof(tn_stream_impl));
    if (!stream)
        return npu_fail(self, TN_ERR_OUT_OF_MEMORY, "no host memory for a stream");
    *stream = (tn_stream_impl){.device = device, .tail = &stream->head};
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    if (pthread_create(&stream->thread, NULL, run_jobs, stream) != 0) {
        free_stream(stream);
        return npu_fail(self, TN_ERR_OUT_OF_MEMORY, "no thread for a stream; use fewer of either");
    }
    *out_stream = stream;
    return TN_OK;
}

static void stream_destroy(tn_stream_impl *stream) {
    pthread_mutex_lock(&stream->lock);
    stream->stop = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    free_stream(stream);
}

/* Hands over the error, if there is one, and forgets it. Called with the lock held; releases it. */
static tn_status report(tn_stream_impl *stream) {
    tn_status error = stream->error;
    const char *message = stream->message;
    stream->error = TN_OK;
    pthread_mutex_unlock(&stream->lock);
    return error == TN_OK ? TN_OK : npu_fail(stream->device->self, error, "%s", message);
}

static tn_status stream_query(tn_stream_impl *stream) {
    pthread_mutex_lock(&stream->lock);
    if (stream->done < stream->queued) {
        pthread_mutex_unlock(&stream->lock);
        return TN_NOT_READY;
    }
    return report(stream);
}

static tn_status stream_synchronize(tn_stream_impl *stream) {
    pthread_mutex_lock(&stream->lock);
    for (uint64_t place = stream->queued; stream->done < place;)
        pthread_cond_wait(&stream->changed, &stream->lock);
    return report(stream);
}

const tn_stream_ops npu_stream_ops = {
    .struct_size = sizeof npu_stream_ops,
    .create = stream_create,
    .destroy = stream_destroy,
    .query = stream_query,
    .synchronize = stream_synchronize,
};
