/* The current stream of each thread and device.
 *
 * A thread's streams are a table by device ordinal, made when it first chooses one. The tables of
 * all threads are listed, so that tn_shutdown can empty those of threads that live on.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/fork.h"
#include "core/device/open.h"
#include "core/graph/graph.h"

TNI_TLS tn_stream **tni_current_streams;
TNI_TLS uint32_t tni_n_current_streams;

/* Where a thread keeps the two variables above. */
typedef struct thread_streams {
    struct thread_streams *next, **at;
    tn_stream ***streams;
    uint32_t *n;
} thread_streams;

static tni_lock lock = TNI_LOCK_INITIALIZER;
static thread_streams *threads;
static TNI_TLS thread_streams *mine;

/* In a child: the tables of the others lie in memory that new threads will have. Their streams are
 * the device's to destroy. */
static void mend(bool whole) {
    for (thread_streams *t = whole ? threads : NULL, *next; t; t = next) {
        next = t->next;
        if (t != mine)
            tni_free(t);
    }
    threads = mine;
    if (mine) {
        mine->next = NULL;
        mine->at = &threads;
    }
}

TNI_FORK_LOCK(CURRENT, lock, mend)

static void clear(thread_streams *t) {
    tn_stream **streams = *t->streams;
    uint32_t n = *t->n;
    *t->streams = NULL;
    *t->n = 0;
    for (uint32_t i = 0; i < n; i++)
        tn_stream_drop(streams[i]);
    tni_free(streams);
}

static void leave(void) {
    thread_streams *t = mine;
    mine = NULL;
    tni_lock_take(&lock);
    *t->at = t->next;
    if (t->next)
        t->next->at = t->at;
    tni_lock_give(&lock);
    clear(t);
    tni_free(t);
}

static bool enter(void) {
    if (mine)
        return true;
    thread_streams *t = tni_alloc(sizeof *t);
    if (!t || !tni_thread_at_exit(leave)) {
        tni_free(t);
        return false;
    }
    *t = (thread_streams){.streams = &tni_current_streams, .n = &tni_n_current_streams};
    tni_lock_take(&lock);
    t->next = threads;
    t->at = &threads;
    if (threads)
        threads->at = &t->next;
    threads = t;
    tni_lock_give(&lock);
    mine = t;
    return true;
}

/* Room in the thread's table for `ordinal`. */
static bool reserve(uint32_t ordinal) {
    if (ordinal < tni_n_current_streams)
        return true;
    uint32_t n = ordinal + 1;
    tn_stream **grown = enter() ? tni_realloc(tni_current_streams, n * sizeof *grown) : NULL;
    if (!grown)
        return false;
    for (uint32_t i = tni_n_current_streams; i < n; i++)
        grown[i] = NULL;
    tni_current_streams = grown;
    tni_n_current_streams = n;
    return true;
}

tn_stream *tn_current_stream(tn_device device) {
    tni_device *d = tni_device_get(device);
    return d ? tni_stream_current(d) : NULL;
}

tn_status tn_set_current_stream(tn_stream *s) {
    if (!s)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_set_current_stream: stream is NULL; to go back, set what"
                        " tn_current_stream gave before");
    tni_device *d = s->device;
    if (tni_capturing && tni_capturing->device == d && s != tni_capturing->stream)
        return tni_capture_refuse("tn_set_current_stream", "a capture has one stream; choose the "
                                                           "stream at the replay");
    bool is_default = s == &d->default_stream;
    if (is_default && d->ordinal >= tni_n_current_streams)
        return TN_OK;
    if (!reserve(d->ordinal))
        return tni_fail_memory("the thread's table of streams");
    tn_stream *before = tni_current_streams[d->ordinal];
    tni_current_streams[d->ordinal] = is_default ? NULL : tn_stream_keep(s);
    tn_stream_drop(before);
    return TN_OK;
}

void tni_current_streams_finish(void) {
    tni_lock_take(&lock);
    for (thread_streams *t = threads; t; t = t->next)
        clear(t);
    tni_lock_give(&lock);
}
