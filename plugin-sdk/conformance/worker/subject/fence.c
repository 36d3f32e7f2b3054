/* See fence.h. */
#include "plugin-sdk/conformance/worker/subject/fence.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PAGES = 1 << 16,
    LIVE = 4096, /* each is two mappings of the 65,530 that a process may have */
};

static pthread_mutex_t fence_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool wanted; /* while it is not, nobody holds the lock when a process is forked */
static char *fences;
static uint64_t page_bytes, next_page, n_live;
static bool given_back[PAGES];

void tc_fence_set(bool on) {
    pthread_mutex_lock(&fence_lock);
    if (on && !fences) {
        page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
        fences = mmap(NULL, PAGES * page_bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (fences == MAP_FAILED)
            fences = NULL;
    }
    if (on && !n_live) {
        next_page = 0;
        memset(given_back, 0, sizeof given_back);
    }
    atomic_store(&wanted, on && fences);
    pthread_mutex_unlock(&fence_lock);
}

bool tc_fence_has(const void *p) {
    return fences && (const char *)p >= fences && (const char *)p < fences + PAGES * page_bytes;
}

static uint64_t page_of(const void *p) {
    return (uint64_t)((const char *)p - fences) / page_bytes;
}

bool tc_fence_was_freed(const void *p) {
    return tc_fence_has(p) && given_back[page_of(p)];
}

char *tc_fence_alloc(uint64_t room) {
    char *end = NULL;
    if (!atomic_load(&wanted))
        return NULL;
    pthread_mutex_lock(&fence_lock);
    uint64_t pages = room / page_bytes + (room % page_bytes != 0);
    if (n_live < LIVE && pages < PAGES - next_page) {
        char *begin = fences + next_page * page_bytes;
        if (mprotect(begin, pages * page_bytes, PROT_READ | PROT_WRITE) == 0) {
            end = begin + pages * page_bytes;
            next_page += pages + 1;
            n_live++;
        }
    }
    pthread_mutex_unlock(&fence_lock);
    return end ? end - room : NULL;
}

void tc_fence_free(const void *p, char *start, const char *end) {
    char *begin = start - (uint64_t)(start - fences) % page_bytes;
    pthread_mutex_lock(&fence_lock);
    given_back[page_of(p)] = true;
    madvise(begin, (uint64_t)(end - begin), MADV_DONTNEED);
    mprotect(begin, (uint64_t)(end - begin), PROT_NONE);
    n_live--;
    pthread_mutex_unlock(&fence_lock);
}
