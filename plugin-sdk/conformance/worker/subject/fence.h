/* Blocks on pages of their own. Behind each is a page that cannot be touched, and once a block was given back its own
 * cannot be either: what reads or writes there ends the process at that line. Of any thread. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_SUBJECT_FENCE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_SUBJECT_FENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether blocks are fenced from now on. What is freed stays so until it is set with none alive. */
void tc_fence_set(bool on);

/* `room` bytes that end where the fence begins; NULL: it is not set, or there are too many. */
char *tc_fence_alloc(uint64_t room);

/* Of a block of tc_fence_alloc, from start to end, that holds p. */
void tc_fence_free(const void *p, char *start, const char *end);
bool tc_fence_has(const void *p);
bool tc_fence_was_freed(const void *p);

#endif
