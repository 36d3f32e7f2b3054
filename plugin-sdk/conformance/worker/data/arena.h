/* Memory that is freed at the end of a case. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_DATA_ARENA_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_DATA_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct tc_arena {
    struct tc_block *blocks;
} tc_arena;

/* Zeroed memory for n elements, aligned for any type; NULL where there is none. n may be 0. */
void *tc_arena_array(tc_arena *arena, uint64_t n, uint64_t size);

/* The same, not zeroed, for what the caller writes all of; of bytes. */
void *tc_arena_unset(tc_arena *arena, uint64_t n, uint64_t size);
void *tc_arena_bytes(tc_arena *arena, uint64_t n);

/* Frees everything; the arena can be used again. */
void tc_arena_finish(tc_arena *arena);

#endif
