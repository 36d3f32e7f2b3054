/* See arena.h. One block of malloc for each array: cases take few, and a sanitizer then sees where
 * each ends.
 *
 * The system takes large blocks back at once and hands out new ones page by page, which costs a case of
 * many elements a tenth of its time. So some are kept for the next case; in the hard build none.
 *
 * Of gigabytes only the pages that are needed are touched (operand.h); malloc, told by MALLOC_PERTURB_,
 * would write to all of them. */
#include "plugin-sdk/conformance/worker/data/arena.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef TNI_HARD
enum { MOST_KEPT = 0 };
#else
enum { MOST_KEPT = 12 };
#endif
enum { LEAST = 1 << 16, MOST = 1 << 24 }; /* bytes, of what is kept */
static const uint64_t MAPPED = 1 << 30;   /* bytes, from which on a block is the system's */

struct tc_block {
    struct tc_block *next;
    uint64_t room;
    max_align_t data[];
};

static struct {
    pthread_mutex_t lock;
    struct tc_block *blocks;
    int n;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The first that is large enough, and not too large by far; or NULL. */
static struct tc_block *take(uint64_t bytes) {
    struct tc_block *block = NULL;
    pthread_mutex_lock(&kept.lock);
    for (struct tc_block **at = &kept.blocks; *at && !block; at = block ? at : &(*at)->next)
        if ((*at)->room >= bytes && (*at)->room / 4 <= bytes) {
            block = *at;
            *at = block->next;
            kept.n--;
        }
    pthread_mutex_unlock(&kept.lock);
    return block;
}

static void give_back(struct tc_block *block) {
    struct tc_block *gone = block;
    if (block->room >= LEAST && block->room <= MOST && MOST_KEPT > 0) {
        pthread_mutex_lock(&kept.lock);
        block->next = kept.blocks;
        kept.blocks = block;
        gone = NULL;
        if (++kept.n > MOST_KEPT) { /* the oldest goes: sizes change in the course of a run */
            struct tc_block **last = &kept.blocks;
            while ((*last)->next)
                last = &(*last)->next;
            gone = *last;
            *last = NULL;
            kept.n--;
        }
        pthread_mutex_unlock(&kept.lock);
    }
    if (gone && gone->room >= MAPPED)
        munmap(gone, sizeof *gone + gone->room);
    else
        free(gone);
}

static struct tc_block *map(uint64_t bytes) {
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        block = NULL;
    return block;
}

static void *new_block(tc_arena *arena, uint64_t bytes, bool zero) {
    struct tc_block *block = bytes >= LEAST ? take(bytes) : NULL;
    if (block && zero)
        memset(block->data, 0, bytes);
    if (!block) {
        uint64_t room = sizeof *block + bytes;
        block = bytes >= MAPPED ? map(room) : zero ? calloc(1, room) : malloc(room);
        if (!block)
            return NULL;
        block->room = bytes;
    }
    block->next = arena->blocks;
    arena->blocks = block;
    return block->data;
}

void *tc_arena_array(tc_arena *arena, uint64_t n, uint64_t size) {
    uint64_t bytes;
    bool known = !__builtin_mul_overflow(n, size, &bytes) && bytes <= INT64_MAX;
    return known ? new_block(arena, bytes, true) : NULL;
}

void *tc_arena_bytes(tc_arena *arena, uint64_t n) {
    return n <= INT64_MAX ? new_block(arena, n, false) : NULL;
}

void tc_arena_finish(tc_arena *arena) {
    while (arena->blocks) {
        struct tc_block *next = arena->blocks->next;
        give_back(arena->blocks);
        arena->blocks = next;
    }
}
