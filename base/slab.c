/* The shared half of the slabs: chunks, and the free objects that no thread holds. */
#include "base/alloc.h"
#include "base/fork.h"
#include "base/slab.h"

#include <stdbool.h>

/* A count of TNI_MAGAZINE_MAX without objects sends a thread's first free to the slow half, which
 * registers the thread's end. */
TNI_TLS tni_magazine tni_magazines[TNI_SLAB_COUNT] = {
    [0 ... TNI_SLAB_COUNT - 1] = {NULL, TNI_MAGAZINE_MAX}};

static const size_t bytes_of[TNI_SLAB_COUNT] = {
    [TNI_SLAB_TENSOR] = TNI_SLAB_TENSOR_BYTES,
    [TNI_SLAB_AUTOGRAD] = TNI_SLAB_AUTOGRAD_BYTES,
    [TNI_SLAB_NODE] = TNI_SLAB_NODE_BYTES,
    [TNI_SLAB_BLOCK] = TNI_SLAB_BLOCK_BYTES,
};

size_t tni_slab_bytes(tni_slab_id id) {
    return bytes_of[id];
}

#if !defined(TNI_HARD)

enum { PER_CHUNK = 32 };

typedef struct chunk {
    struct chunk *next;
    char pad[56]; /* objects start at a multiple of 64 */
} chunk;

static struct {
    pthread_mutex_t lock;
    void *free;
    chunk *chunks;
} shared[TNI_SLAB_COUNT] = {[0 ... TNI_SLAB_COUNT - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

/* The lists of every thread that is known, so that tni_slab_release_all can empty those of threads
 * that live on. */
typedef struct thread_lists {
    struct thread_lists *next, **at;
    tni_magazine *magazines;
} thread_lists;

static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static thread_lists *threads;
static TNI_TLS thread_lists mine;
static TNI_TLS bool thread_known;

static void enter(void) {
    pthread_mutex_lock(&threads_lock);
    mine = (thread_lists){.next = threads, .at = &threads, .magazines = tni_magazines};
    if (threads)
        threads->at = &mine.next;
    threads = &mine;
    pthread_mutex_unlock(&threads_lock);
    thread_known = true;
}

static void leave(void) {
    if (!thread_known)
        return;
    pthread_mutex_lock(&threads_lock);
    *mine.at = mine.next;
    if (mine.next)
        mine.next->at = mine.at;
    pthread_mutex_unlock(&threads_lock);
    thread_known = false;
}

/* In a child: the lists of the others lie in memory that new threads will have. */
static void forget_others(void) {
    mine.next = NULL;
    mine.at = &threads;
    threads = thread_known ? &mine : NULL;
}

TNI_FORK_MUTEX(SLAB_THREADS, threads_lock, forget_others)

static void fork_before_SLABS(void) {
    for (int id = 0; id < TNI_SLAB_COUNT; id++)
        pthread_mutex_lock(&shared[id].lock);
}

static void fork_after_SLABS(bool in_child) {
    for (int id = TNI_SLAB_COUNT - 1; id >= 0; id--)
        pthread_mutex_unlock(&shared[id].lock);
}

TNI_FORK_PART(SLABS)

/* Gives `n` objects of the thread's list back to the shared one. */
static void give_back(tni_slab_id id, uint32_t n) {
    tni_magazine *m = &tni_magazines[id];
    pthread_mutex_lock(&shared[id].lock);
    while (n-- > 0 && m->head) {
        void *p = m->head;
        m->head = *(void **)p;
        m->n--;
        *(void **)p = shared[id].free;
        shared[id].free = p;
    }
    pthread_mutex_unlock(&shared[id].lock);
}

static void flush_all(void) {
    for (tni_slab_id id = 0; id < TNI_SLAB_COUNT; id++) {
        give_back(id, UINT32_MAX);
        tni_magazines[id].n = TNI_MAGAZINE_MAX;
    }
    leave();
}

bool tni_slab_thread_init(void) {
    if (thread_known)
        return true;
    if (!tni_thread_at_exit(flush_all))
        return false;
    for (tni_slab_id id = 0; id < TNI_SLAB_COUNT; id++)
        tni_magazines[id].n -= TNI_MAGAZINE_MAX;
    enter();
    return true;
}

void tni_slab_flush(tni_slab_id id) {
    if (!thread_known)
        tni_slab_thread_init(); /* without memory for that, flushing half is all there is */
    if (tni_magazines[id].n > TNI_MAGAZINE_MAX)
        give_back(id, TNI_MAGAZINE_MAX / 2);
}

void *tni_slab_refill(tni_slab_id id) {
    if (!tni_slab_thread_init())
        return NULL;
    tni_magazine *m = &tni_magazines[id];
    pthread_mutex_lock(&shared[id].lock);
    if (!shared[id].free) {
        chunk *c = tni_alloc_aligned(sizeof(chunk) + PER_CHUNK * bytes_of[id], 64);
        if (!c) {
            pthread_mutex_unlock(&shared[id].lock);
            return NULL;
        }
        c->next = shared[id].chunks;
        shared[id].chunks = c;
        for (int i = PER_CHUNK - 1; i >= 0; i--) {
            void *p = (char *)(c + 1) + (size_t)i * bytes_of[id];
            *(void **)p = shared[id].free;
            shared[id].free = p;
        }
    }
    for (int i = 0; i < PER_CHUNK && shared[id].free; i++) {
        void *p = shared[id].free;
        shared[id].free = *(void **)p;
        *(void **)p = m->head;
        m->head = p;
        m->n++;
    }
    pthread_mutex_unlock(&shared[id].lock);
    return tni_slab_alloc(id);
}

void tni_slab_release_all(void) {
    flush_all();
    pthread_mutex_lock(&threads_lock);
    for (thread_lists *t = threads; t; t = t->next)
        for (int id = 0; id < TNI_SLAB_COUNT; id++)
            t->magazines[id] = (tni_magazine){0};
    pthread_mutex_unlock(&threads_lock);
    for (int id = 0; id < TNI_SLAB_COUNT; id++) {
        pthread_mutex_lock(&shared[id].lock);
        for (chunk *c = shared[id].chunks, *next; c; c = next) {
            next = c->next;
            tni_free(c);
        }
        shared[id].chunks = NULL;
        shared[id].free = NULL;
        pthread_mutex_unlock(&shared[id].lock);
    }
}

#else

void *tni_slab_refill(tni_slab_id id) {
    return tni_slab_alloc(id);
}
void tni_slab_flush(tni_slab_id id) {
    (void)id;
}
bool tni_slab_thread_init(void) {
    return true;
}
void tni_slab_release_all(void) {}

#endif
