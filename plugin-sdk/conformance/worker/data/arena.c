/* See arena.h. One block of malloc for each array: cases take few, and a sanitizer then sees where
 * each ends.
 *
 * The system takes large blocks back at once and hands out new ones page by page, which costs a case of
 * many elements a tenth of its time. So some are kept for the next case, by their sizes; in the hard
 * build none.
 *
 * Of gigabytes only the pages that are needed are touched (operand.h); malloc, told by MALLOC_PERTURB_,
 * would write to all of them. */
#include "plugin-sdk/conformance/worker/data/arena.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef TNI_HARD
enum { MOST_KEPT = 0 };
#else
enum { MOST_KEPT = 1 << 28 }; /* bytes */
#endif
/* Sizes of blocks that are kept, 4 KiB to 128 MiB, are of four classes between a power of two and the
 * next. One that is asked for is taken from its own, or from those up to four times as large. */
enum { LEAST_BITS = 12, MOST_BITS = 27, CLASSES = 4 * (MOST_BITS - LEAST_BITS), FARTHEST = 8 };
static const uint64_t MAPPED = 1 << 30; /* bytes, from which on a block is the system's */

/* Behind an array lie bytes of a pattern, as far as its block goes on: a device that wrote there was told to
 * write less. */
enum { BEHIND = 256, PATTERN = 0xa9 };

struct tc_block {
    struct tc_block *next;
    uint64_t room, bytes; /* the array's */
    max_align_t data[];
};

static struct {
    pthread_mutex_t lock;
    struct tc_block *blocks[CLASSES];
    uint64_t bytes;
    int oldest; /* the class that gives way next */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The class of blocks for so many bytes, and what room they have; -1: such ones are not kept. */
static int class_of(uint64_t bytes, uint64_t *out_room) {
    *out_room = bytes;
    if (MOST_KEPT == 0 || bytes <= UINT64_C(1) << LEAST_BITS || bytes > UINT64_C(1) << MOST_BITS)
        return -1;
    int bits = 63 - __builtin_clzll(bytes - 1); /* 2^bits < bytes <= 2^(bits + 1) */
    uint64_t quarter = UINT64_C(1) << (bits - 2), n = (bytes - 1) / quarter - 3; /* 1 to 4 */
    *out_room = (n + 4) * quarter;
    return 4 * (bits - LEAST_BITS) + (int)n - 1;
}

/* The first that is large enough, and not too large by far; or NULL. */
static struct tc_block *take(int class) {
    struct tc_block *block = NULL;
    pthread_mutex_lock(&kept.lock);
    for (int i = class; i < CLASSES && i <= class + FARTHEST && !block; i++)
        if ((block = kept.blocks[i])) {
            kept.blocks[i] = block->next;
            kept.bytes -= block->room;
        }
    pthread_mutex_unlock(&kept.lock);
    return block;
}

/* With the lock: until the next of so many bytes has room. Sizes change in the course of a run, and so
 * each class gives way in turn. */
static void make_room(uint64_t bytes) {
    for (; kept.bytes + bytes > MOST_KEPT; kept.oldest = (kept.oldest + 1) % CLASSES) {
        struct tc_block *gone = kept.blocks[kept.oldest];
        if (!gone)
            continue;
        kept.blocks[kept.oldest] = gone->next;
        kept.bytes -= gone->room;
        free(gone);
    }
}

static uint64_t behind(const struct tc_block *block) {
    uint64_t rest = block->room - block->bytes;
    return rest < BEHIND ? rest : BEHIND;
}

/* As malloc does where its own are written over: this process knows nothing for sure any more. */
static void check_behind(const struct tc_block *block) {
    const unsigned char *end = (const unsigned char *)block->data + block->bytes;
    for (uint64_t i = 0; i < behind(block); i++)
        if (end[i] != PATTERN) {
            fprintf(stderr,
                    "memory was touched %" PRIu64
                    " bytes behind the end of an array of the host's, of %" PRIu64
                    " bytes: a device writes no more than it is asked for\n",
                    i, block->bytes);
            abort();
        }
}

static void give_back(struct tc_block *block) {
    uint64_t room;
    check_behind(block);
    int class = class_of(block->room, &room);
    if (class >= 0) {
        pthread_mutex_lock(&kept.lock);
        make_room(room);
        block->next = kept.blocks[class];
        kept.blocks[class] = block;
        kept.bytes += room;
        pthread_mutex_unlock(&kept.lock);
    } else if (block->room >= MAPPED) {
        munmap(block, sizeof *block + block->room);
    } else {
        free(block);
    }
}

static struct tc_block *map(uint64_t bytes) {
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        block = NULL;
    return block;
}

static void *new_block(tc_arena *arena, uint64_t bytes, bool zero) {
    uint64_t room;
    int class = class_of(bytes, &room);
    struct tc_block *block = class >= 0 ? take(class) : NULL;
    if (block && zero)
        memset(block->data, 0, bytes);
    if (!block) {
        uint64_t all = sizeof *block + room;
        block = room >= MAPPED ? map(all) : zero ? calloc(1, all) : malloc(all);
        if (!block)
            return NULL;
        block->room = room;
    }
    block->bytes = bytes;
    memset((char *)block->data + bytes, PATTERN, behind(block));
    block->next = arena->blocks;
    arena->blocks = block;
    return block->data;
}

static void *new_array(tc_arena *arena, uint64_t n, uint64_t size, bool zero) {
    uint64_t bytes;
    bool known = !__builtin_mul_overflow(n, size, &bytes) && bytes <= INT64_MAX;
    return known ? new_block(arena, bytes, zero) : NULL;
}

void *tc_arena_array(tc_arena *arena, uint64_t n, uint64_t size) {
    return new_array(arena, n, size, true);
}

void *tc_arena_unset(tc_arena *arena, uint64_t n, uint64_t size) {
    return new_array(arena, n, size, false);
}

void *tc_arena_bytes(tc_arena *arena, uint64_t n) {
    return new_array(arena, n, 1, false);
}

void tc_arena_finish(tc_arena *arena) {
    while (arena->blocks) {
        struct tc_block *next = arena->blocks->next;
        give_back(arena->blocks);
        arena->blocks = next;
    }
}
