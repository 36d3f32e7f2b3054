/* Blocks on pages of their own. Before and behind each is a page that cannot be touched, and once a block was given back
 * its own cannot be either: what reads or writes there ends the process at that line, with a word on standard error
 * about whose memory it was. Of any thread. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_SUBJECT_FENCE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_SUBJECT_FENCE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tc_fence {
    TC_FENCE_NONE,
    TC_FENCE_BEHIND, /* blocks end where a fence begins, but for what their alignment leaves */
    TC_FENCE_BEFORE, /* they begin where one ends */
} tc_fence;

/* How blocks are fenced from now on. */
void tc_fence_set(tc_fence fence);
bool tc_fence_is_set(void);

/* `bytes` at a multiple of `alignment`; NULL: none are wanted, they are too many, or lie too far apart. `what` is how
 * they are told of, "a block of host->alloc". */
char *tc_fence_alloc(uint64_t bytes, uint64_t alignment, const char *what);

/* What follows is about a block of tc_fence_alloc, by its first byte, which any other memory is not. A block
 * that was freed stays so until the pages of 256 MiB have been used. */
bool tc_fence_has(const void *p);
bool tc_fence_was_freed(const void *p);
void tc_fence_free(const void *p);

/* From p to the fence. */
uint64_t tc_fence_room(const void *p);

/* What the owner likes to know of it; outlives the block. */
enum { TC_FENCE_NOTE = 64 };
void *tc_fence_note(const void *p);

#endif
