/* See arena.h. One block of calloc for each array: cases take few, and a sanitizer then sees where
 * each ends. */
#include "plugin-sdk/conformance/worker/data/arena.h"

#include <stdlib.h>

struct tc_block {
    struct tc_block *next;
    max_align_t data[];
};

void *tc_arena_array(tc_arena *arena, uint64_t n, uint64_t size) {
    uint64_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > INT64_MAX)
        return NULL;
    struct tc_block *block = calloc(1, sizeof *block + bytes);
    if (!block)
        return NULL;
    block->next = arena->blocks;
    arena->blocks = block;
    return block->data;
}

void tc_arena_finish(tc_arena *arena) {
    while (arena->blocks) {
        struct tc_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
}
