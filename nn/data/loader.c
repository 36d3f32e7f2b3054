/* Loaders: a ring of slots that workers fill in order and the caller empties.
 *
 *     slots   [ given out | ready | ready | being filled | being filled | ... ]
 *                           head            next to be filled: head + n_busy
 *
 * Where it stands is counted twice: `at` is the caller's, `next` that of the batch that is assigned
 * next, which is ahead by the slots that are busy. After an error, and where a state is put back, the
 * ring is emptied and `next` begins at `at` again. */
#define _GNU_SOURCE
#include "nn/data/slot.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/random.h>
#include <unistd.h>

enum { MAX_WORKERS = 256, MAX_PREFETCH = 1024, OWN_SLOTS = 2 };

typedef struct worker {
    tn_data_loader *loader;
    pthread_t thread;
    void *scratch[TN_DATA_MAX_FIELDS]; /* a sample before its transform */
} worker;

struct tn_data_loader {
    tnn_source source;
    int64_t batch_size;
    bool shuffles, drops_last;
    int64_t *order; /* of the samples in order_epoch; NULL: as they are */
    int64_t order_epoch;
    pid_t process;

    tn_data_loader_state at; /* the caller's */
    int64_t *given;          /* indices of the last batch */

    /* Under the lock, where there are workers. */
    pthread_mutex_t lock;
    pthread_cond_t work, ready; /* for workers; for the caller */
    int64_t next_epoch, next_position;
    tnn_slot *slots;
    bool *is_ready; /* of each slot */
    uint32_t n_slots, head, n_busy, n_filling;
    bool pauses, stops;
    atomic_bool cancels;

    worker *workers; /* at least one: without threads it is the caller */
    uint32_t n_workers, n_threads;
};

/* The loader one of whose callbacks runs in this thread. */
static _Thread_local const tn_data_loader *inside;

static void lock(tn_data_loader *l) {
    if (l->n_threads)
        pthread_mutex_lock(&l->lock);
}

static void unlock(tn_data_loader *l) {
    if (l->n_threads)
        pthread_mutex_unlock(&l->lock);
}

/* ---- which batch comes ------------------------------------------------------------------- */

static bool is_over(const tn_data_loader *l, int64_t position) {
    int64_t left = l->source.dataset.length - position;
    return left < 1 || (l->drops_last && left < l->batch_size);
}

/* Gives the slot the next batch. An epoch has one at least. */
static void assign(tn_data_loader *l, tnn_slot *s) {
    if (is_over(l, l->next_position)) {
        l->next_epoch++;
        l->next_position = 0;
    }
    if (l->shuffles && l->order_epoch != l->next_epoch) {
        tnn_shuffle(l->order, l->source.dataset.length, l->source.seed, l->next_epoch);
        l->order_epoch = l->next_epoch;
    }
    int64_t left = l->source.dataset.length - l->next_position;
    s->epoch = l->next_epoch;
    s->n = left < l->batch_size ? left : l->batch_size;
    for (int64_t i = 0; i < s->n; i++)
        s->indices[i] = l->shuffles ? l->order[l->next_position + i] : l->next_position + i;
    l->next_position += s->n;
}

static void fill(tn_data_loader *l, const worker *w, tnn_slot *s) {
    const tn_data_loader *before = inside;
    inside = l;
    tnn_slot_fill(s, &l->source, w->scratch, &l->cancels);
    inside = before;
}

/* ---- workers ----------------------------------------------------------------------------- */

static void *work(void *context) {
    worker *w = context;
    tn_data_loader *l = w->loader;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->stops && (l->pauses || l->n_busy == l->n_slots))
            pthread_cond_wait(&l->work, &l->lock);
        if (l->stops)
            break;
        uint32_t i = (l->head + l->n_busy++) % l->n_slots;
        assign(l, &l->slots[i]);
        l->n_filling++;
        pthread_mutex_unlock(&l->lock);
        fill(l, w, &l->slots[i]);
        pthread_mutex_lock(&l->lock);
        l->n_filling--;
        l->is_ready[i] = true;
        pthread_cond_signal(&l->ready);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Handlers of signals are the program's, and so are the threads that they run in. */
static tn_status start_workers(tn_data_loader *l, uint32_t n) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = 0;
    /* The first ones wait for the lock, since it is there only where n_threads is not 0. */
    pthread_mutex_lock(&l->lock);
    while (l->n_threads < n && error == 0) {
        worker *w = &l->workers[l->n_threads];
        error = pthread_create(&w->thread, NULL, work, w);
        l->n_threads += error == 0;
    }
    pthread_mutex_unlock(&l->lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        return TN_OK;
    return tn_fail(TN_ERR_OUT_OF_MEMORY,
                   "tn_data_loader_create: worker %" PRIu32 " of %" PRIu32
                   " could not be started: %s; fewer may do",
                   l->n_threads + 1, n, strerror(error));
}

/* Empties the ring, and goes on at `at`. */
static void restart(tn_data_loader *l) {
    lock(l);
    l->pauses = true;
    atomic_store(&l->cancels, true);
    while (l->n_filling > 0)
        pthread_cond_wait(&l->ready, &l->lock);
    for (uint32_t i = 0; i < l->n_slots; i++) {
        tnn_slot_clear(&l->slots[i]);
        l->is_ready[i] = false;
    }
    l->head = l->n_busy = 0;
    l->source.seed = l->at.seed;
    l->next_epoch = l->at.epoch;
    l->next_position = l->at.position;
    l->order_epoch = -1;
    atomic_store(&l->cancels, false);
    l->pauses = false;
    if (l->n_threads)
        pthread_cond_broadcast(&l->work);
    unlock(l);
}

/* The slot of the batch whose turn it is, filled. */
static tnn_slot *wait_for_front(tn_data_loader *l) {
    if (l->n_threads == 0 && l->n_busy == 0) {
        assign(l, &l->slots[l->head]);
        l->n_busy = 1;
        fill(l, &l->workers[0], &l->slots[l->head]);
        l->is_ready[l->head] = true;
    }
    lock(l);
    while (l->n_busy == 0 || !l->is_ready[l->head])
        pthread_cond_wait(&l->ready, &l->lock);
    tnn_slot *s = &l->slots[l->head];
    unlock(l);
    return s;
}

/* The front slot is free again. The next one where it is filled already, or NULL. */
static tnn_slot *pass_front(tn_data_loader *l) {
    lock(l);
    l->is_ready[l->head] = false;
    l->head = (l->head + 1) % l->n_slots;
    l->n_busy--;
    tnn_slot *next = l->n_busy > 0 && l->is_ready[l->head] ? &l->slots[l->head] : NULL;
    if (l->n_threads)
        pthread_cond_signal(&l->work);
    unlock(l);
    return next;
}

/* ---- making and destroying --------------------------------------------------------------- */

static const char create[] = "tn_data_loader_create";

static tn_status check(const tn_dataset *d, const tn_data_loader_options *o) {
    if (!d || !o)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: dataset or options is NULL", create);
    if (!d->read)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: the dataset has no read function", create);
    if (d->length < 1)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "%s: the dataset has %" PRId64 " samples; it must have at least 1", create,
                       d->length);
    if (o->batch_size < 1)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "%s: batch_size is %" PRId64 "; it must be at least 1", create,
                       o->batch_size);
    if (o->drop_last && d->length < o->batch_size)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "%s: drop_last leaves no batch of %" PRId64 " of %" PRId64
                       " samples; make batch_size smaller",
                       create, o->batch_size, d->length);
    if (o->n_workers > MAX_WORKERS || o->prefetch > MAX_PREFETCH)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "%s: n_workers is %" PRIu32 " and prefetch %" PRIu32
                       "; they are at most %d and %d",
                       create, o->n_workers, o->prefetch, MAX_WORKERS, MAX_PREFETCH);
    if (o->n_workers == 0 && o->prefetch > 0)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "%s: prefetch is %" PRIu32 " without workers, who read ahead; set n_workers",
                       create, o->prefetch);
    if (o->n_fields > 0 && !o->transform)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "%s: the options have fields, and no transform that makes them", create);
    return TN_OK;
}

/* Everything but the ring and the workers. */
static tn_status init_source(tnn_source *s, const tn_dataset *d, const tn_data_loader_options *o) {
    s->dataset = *d;
    s->transform = o->transform;
    s->user = o->user;
    s->n_fields = o->n_fields ? o->n_fields : d->n_fields;
    tn_status status = tnn_field_bytes(create, "the dataset", d->fields, d->n_fields, s->in_bytes);
    const tn_data_field *fields = o->n_fields ? o->fields : d->fields;
    if (status == TN_OK)
        status = tnn_field_bytes(create, o->n_fields ? "the transform" : "the dataset", fields,
                                 s->n_fields, s->out_bytes);
    if (status != TN_OK)
        return status;
    memcpy(s->fields, fields, s->n_fields * sizeof *fields);
    int64_t capacity = o->batch_size < d->length ? o->batch_size : d->length;
    uint64_t bytes;
    for (uint32_t k = 0; k < s->n_fields; k++)
        if (__builtin_mul_overflow(s->out_bytes[k], (uint64_t)capacity, &bytes) ||
            bytes > INT64_MAX)
            return tn_fail(TN_ERR_OUT_OF_MEMORY,
                           "%s: %" PRId64 " samples of %" PRIu64
                           " bytes are more than any memory has; make batch_size smaller",
                           create, capacity, s->out_bytes[k]);
    s->device = o->device.type ? o->device : tn_default_device();
    uint64_t offset;
    if (s->device.type == 0 || tn_generator_get(s->device, &s->seed, &offset) != TN_OK)
        return tn_error_status();
    s->seed = o->seed ? o->seed : s->seed;
    s->stream = tn_stream_create(s->device, 0);
    return s->stream ? TN_OK : tn_error_status();
}

static tn_status fail_memory(void) {
    return tn_fail(TN_ERR_OUT_OF_MEMORY, "%s: no memory for a loader", create);
}

static tn_status init_workers(tn_data_loader *l, uint32_t n) {
    l->n_workers = n ? n : 1;
    l->workers = calloc(l->n_workers, sizeof *l->workers);
    if (!l->workers)
        return fail_memory();
    for (uint32_t i = 0; i < l->n_workers; i++) {
        l->workers[i].loader = l;
        for (uint32_t k = 0; l->source.transform && k < l->source.dataset.n_fields; k++) {
            uint64_t bytes = l->source.in_bytes[k];
            l->workers[i].scratch[k] = malloc(bytes ? bytes : 1);
            if (!l->workers[i].scratch[k])
                return fail_memory();
        }
    }
    return TN_OK;
}

static tn_status init(tn_data_loader *l, const tn_dataset *d, const tn_data_loader_options *o) {
    tn_status status = init_source(&l->source, d, o);
    if (status != TN_OK)
        return status;
    l->at.seed = l->source.seed;
    l->batch_size = o->batch_size;
    l->shuffles = o->shuffle;
    l->drops_last = o->drop_last;
    l->order_epoch = -1;
    l->n_slots = o->n_workers == 0 ? OWN_SLOTS : o->prefetch ? o->prefetch : 2 * o->n_workers;
    int64_t capacity = o->batch_size < d->length ? o->batch_size : d->length;
    l->slots = calloc(l->n_slots, sizeof *l->slots);
    l->is_ready = calloc(l->n_slots, sizeof *l->is_ready);
    l->given = calloc((size_t)capacity, sizeof *l->given);
    l->order = o->shuffle ? calloc((size_t)d->length, sizeof *l->order) : NULL;
    if (!l->slots || !l->is_ready || !l->given || (o->shuffle && !l->order))
        return fail_memory();
    for (uint32_t i = 0; i < l->n_slots && status == TN_OK; i++)
        status = tnn_slot_init(&l->slots[i], &l->source, capacity);
    if (status == TN_OK)
        status = init_workers(l, o->n_workers);
    if (status == TN_OK && o->n_workers > 0)
        status = start_workers(l, o->n_workers);
    return status;
}

tn_data_loader *tn_data_loader_create(const tn_dataset *dataset,
                                      const tn_data_loader_options *options) {
    if (check(dataset, options) != TN_OK)
        return NULL;
    tn_data_loader *l = calloc(1, sizeof *l);
    if (!l) {
        fail_memory();
        return NULL;
    }
    l->process = getpid();
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->ready, NULL);
    if (init(l, dataset, options) == TN_OK)
        return l;
    tn_data_loader_destroy(l);
    return NULL;
}

/* In a forked child the workers are not there, and what they had locked stays so. */
static void stop_workers(tn_data_loader *l) {
    if (l->process != getpid())
        return;
    lock(l);
    l->stops = true;
    atomic_store(&l->cancels, true);
    pthread_cond_broadcast(&l->work);
    unlock(l);
    for (uint32_t i = 0; i < l->n_threads; i++)
        pthread_join(l->workers[i].thread, NULL);
    pthread_cond_destroy(&l->ready);
    pthread_cond_destroy(&l->work);
    pthread_mutex_destroy(&l->lock);
}

static tn_status enter(const tn_data_loader *l, const char *call) {
    if (!l)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: loader is NULL", call);
    if (inside == l)
        return tn_fail(TN_ERR_STATE, "%s: called from a callback of this very loader", call);
    if (l->n_threads > 0 && l->process != getpid())
        return tn_fail(TN_ERR_STATE,
                       "%s: the workers of this loader are not in a forked child; make a loader"
                       " here",
                       call);
    return TN_OK;
}

void tn_data_loader_destroy(tn_data_loader *l) {
    if (!l)
        return;
    if (inside == l) {
        tn_fail(TN_ERR_STATE, "tn_data_loader_destroy: called from a callback of this very loader");
        return;
    }
    stop_workers(l);
    for (uint32_t i = 0; l->slots && i < l->n_slots; i++)
        tnn_slot_finish(&l->slots[i]);
    for (uint32_t i = 0; l->workers && i < l->n_workers; i++)
        for (int k = 0; k < TN_DATA_MAX_FIELDS; k++)
            free(l->workers[i].scratch[k]);
    tn_stream_drop(l->source.stream);
    free(l->workers);
    free(l->slots);
    free(l->is_ready);
    free(l->order);
    free(l->given);
    free(l);
}

/* ---- batches ----------------------------------------------------------------------------- */

tn_status tn_data_loader_next(tn_data_loader *l, tn_data_batch *out) {
    if (out)
        *out = (tn_data_batch){0};
    tn_status status = enter(l, "tn_data_loader_next");
    if (status != TN_OK)
        return status;
    if (!out)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_data_loader_next: out is NULL");
    if (is_over(l, l->at.position)) {
        if (l->at.epoch == INT32_MAX)
            return tn_fail(TN_ERR_STATE, "tn_data_loader_next: epoch %d was the last that there is",
                           INT32_MAX);
        l->at.epoch++;
        l->at.position = 0;
        return TN_OK;
    }
    tnn_slot *s = wait_for_front(l);
    if (s->status != TN_OK) {
        status = tn_fail(s->status, "tn_data_loader_next: %s", s->message);
        restart(l);
        return status;
    }
    status = tnn_slot_stage(s, &l->source);
    if (status == TN_OK)
        status = tnn_slot_give(s, &l->source, out);
    if (status != TN_OK)
        return status;
    memcpy(l->given, s->indices, (size_t)s->n * sizeof *l->given);
    out->indices = l->given;
    l->at.position += s->n;
    /* The next copy runs beside the work on this batch. If it fails now it is tried again. */
    tnn_slot *next = pass_front(l);
    bool was_clear = tn_error_status() == TN_OK;
    if (next && next->status == TN_OK && tnn_slot_stage(next, &l->source) != TN_OK && was_clear)
        tn_error_clear();
    return TN_OK;
}

int64_t tn_data_loader_samples(const tn_data_loader *l) {
    if (!l)
        return 0;
    int64_t n = l->source.dataset.length;
    return l->drops_last ? n - n % l->batch_size : n;
}

int64_t tn_data_loader_batches(const tn_data_loader *l) {
    int64_t n = tn_data_loader_samples(l);
    return l ? n / l->batch_size + (n % l->batch_size != 0) : 0;
}

/* ---- states ------------------------------------------------------------------------------ */

tn_status tn_data_loader_get_state(const tn_data_loader *l, tn_data_loader_state *out) {
    if (out)
        *out = (tn_data_loader_state){0};
    if (!l || !out)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_data_loader_get_state: loader or out is NULL");
    *out = l->at;
    return TN_OK;
}

tn_status tn_data_loader_set_state(tn_data_loader *l, const tn_data_loader_state *state) {
    tn_status status = enter(l, "tn_data_loader_set_state");
    if (status != TN_OK)
        return status;
    if (!state)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_data_loader_set_state: state is NULL");
    int64_t length = l->source.dataset.length;
    if (state->epoch < 0 || state->epoch > INT32_MAX || state->position < 0 ||
        state->position > length)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "tn_data_loader_set_state: epoch %" PRId64 ", position %" PRId64
                       "; an epoch is from 0 to %d, and a position from 0 to the %" PRId64
                       " samples of the dataset",
                       state->epoch, state->position, INT32_MAX, length);
    l->at = *state;
    restart(l);
    return TN_OK;
}
