/* What the allocator's tests share. */
#ifndef TNI_TESTS_CORE_ALLOCATOR_TEST_H
#define TNI_TESTS_CORE_ALLOCATOR_TEST_H

#include "tests/core/core_test.h"
#include "core/memory/pool.h"

enum { MIB = 1 << 20 };

/* A block for the device's default stream; its absence fails the test. */
tni_block *take(tni_device *d, uint64_t bytes);

/* fake:0 with these settings (TENON_ALLOC_CONF). */
tni_device *open_with(const char *conf);

uint64_t n_segments(const tni_device *d);

/* The invariants of the pools: blocks cover their segments without gap, no two free ones touch. */
void check_pools(tni_device *d);

#endif
