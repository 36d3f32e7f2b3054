/* See fence.h. */
#include "plugin-sdk/conformance/worker/subject/fence.h"

#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PAGES = 1 << 16,
    LIVE = 4096, /* each is two mappings of the 65,530 that a process may have */
};

/* Of the page at which a block begins. */
typedef struct block {
    alignas(max_align_t) char note[TC_FENCE_NOTE];
    const char *what;
    uint32_t pages; /* its own */
    bool freed;
} block;

static pthread_mutex_t fence_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int wanted; /* while none are, nobody holds the lock when a process is forked */
static char *fences;
static uint64_t page_bytes;
static uint32_t next_page = 1, n_live;
static block blocks[PAGES];
static bool taken[PAGES]; /* of a block that lives */

static uint32_t page_of(const void *p) {
    return (uint32_t)((uint64_t)((const char *)p - fences) / page_bytes);
}

bool tc_fence_has(const void *p) {
    return fences && (const char *)p >= fences && (const char *)p < fences + PAGES * page_bytes;
}

bool tc_fence_was_freed(const void *p) {
    return tc_fence_has(p) && blocks[page_of(p)].freed;
}

void *tc_fence_note(const void *p) {
    return blocks[page_of(p)].note;
}

uint64_t tc_fence_room(const void *p) {
    uint32_t first = page_of(p);
    return (uint64_t)(fences + (first + blocks[first].pages) * page_bytes - (const char *)p);
}

/* ---- who touched a fence ----------------------------------------------------------------- */

static struct sigaction earlier[2];
static const int faults[] = {SIGSEGV, SIGBUS};

/* In a process that ends: nothing is allocated. A fence is told by the block that is nearer. */
static void explain(const char *at) {
    char text[128];
    int n = 0;
    uint32_t page = page_of(at), first = page;
    while (first > 0 && !blocks[first].pages)
        first--;
    uint32_t end = first + blocks[first].pages;
    ptrdiff_t behind = at - (fences + end * page_bytes);
    ptrdiff_t before = fences + (page + 1) * page_bytes - at;
    bool is_behind = page == end && taken[first];
    bool is_before = page + 1 < PAGES && taken[page + 1];
    if (page < end)
        n = snprintf(text, sizeof text, "memory was touched of %s that is no more\n",
                     blocks[first].what);
    else if (is_before && (!is_behind || before <= behind))
        n = snprintf(text, sizeof text, "memory was touched %td bytes before the start of %s\n",
                     before, blocks[page + 1].what);
    else if (is_behind)
        n = snprintf(text, sizeof text, "memory was touched %td bytes behind the end of %s\n",
                     behind, blocks[first].what);
    if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
        return;
}

/* Whoever had the signal gets it when the instruction runs again. */
static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    if (tc_fence_has(info->si_addr))
        explain(info->si_addr);
    sigaction(number, &earlier[number == SIGBUS], NULL);
}

void tc_fence_set(tc_fence fence) {
    pthread_mutex_lock(&fence_lock);
    if (fence && !fences) {
        page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
        fences = mmap(NULL, PAGES * page_bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (fences == MAP_FAILED)
            fences = NULL;
    }
    bool was = atomic_load(&wanted), is = fence && fences;
    struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    for (int i = 0; i < 2 && was != is; i++)
        sigaction(faults[i], is ? &ours : &earlier[i], is ? &earlier[i] : NULL);
    atomic_store(&wanted, is ? (int)fence : TC_FENCE_NONE);
    pthread_mutex_unlock(&fence_lock);
}

bool tc_fence_is_set(void) {
    return atomic_load(&wanted) != TC_FENCE_NONE;
}

/* ---- blocks ------------------------------------------------------------------------------ */

/* The first of `pages` in a row, with a fence on either side, from where the last search ended; 0: there are none. */
static uint32_t find(uint32_t pages) {
    for (int round = 0; round < 2; round++, next_page = 1)
        for (uint32_t run = 0; next_page < PAGES; next_page++) {
            run = taken[next_page] ? 0 : run + 1;
            if (run == pages + 2)
                return next_page - pages;
        }
    return 0;
}

char *tc_fence_alloc(uint64_t bytes, uint64_t alignment, const char *what) {
    char *p = NULL;
    int fence = atomic_load(&wanted);
    if (!fence)
        return NULL;
    pthread_mutex_lock(&fence_lock);
    bool fits = n_live < LIVE && alignment <= page_bytes && bytes < PAGES * page_bytes / 4;
    uint64_t room = bytes ? (bytes + alignment - 1) / alignment * alignment : alignment;
    uint64_t pages = room / page_bytes + (room % page_bytes != 0);
    uint32_t first = fits ? find((uint32_t)pages) : 0;
    char *begin = fences + first * page_bytes;
    if (first && mprotect(begin, pages * page_bytes, PROT_READ | PROT_WRITE) == 0) {
        for (uint32_t i = first; i < first + pages; i++) {
            blocks[i] = (block){.pages = 0};
            taken[i] = true;
        }
        blocks[first] = (block){.what = what, .pages = (uint32_t)pages};
        n_live++;
        p = fence == TC_FENCE_BEHIND ? begin + pages * page_bytes - room : begin;
    }
    pthread_mutex_unlock(&fence_lock);
    return p;
}

void tc_fence_free(const void *p) {
    pthread_mutex_lock(&fence_lock);
    uint32_t first = page_of(p), pages = blocks[first].pages;
    char *begin = fences + first * page_bytes;
    blocks[first].freed = true;
    memset(taken + first, false, pages);
    madvise(begin, pages * page_bytes, MADV_DONTNEED);
    mprotect(begin, pages * page_bytes, PROT_NONE);
    n_live--;
    pthread_mutex_unlock(&fence_lock);
}
