/* What the core's tests share: cmocka's preamble, and a library that starts fresh for each test. */
#ifndef TNI_TESTS_CORE_CORE_TEST_H
#define TNI_TESTS_CORE_CORE_TEST_H

/* cmocka wants these before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "core/device/device.h"
#include "core/memory/allocator.h"
#include "core/tensor/tensor.h"
#include "tests/support/fake_plugin.h"

#include <tenon/plugins.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Setup and teardown: the fake plugin reset, no error, no environment of a test before; then
 * everything shut down, with nothing left of host or device memory. */
int fresh(void **state);
int leave_clean(void **state);

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, leave_clean)

/* Registers the fake plugin as `fake` says, and opens fake:0. */
tni_device *open_fake(void);

tn_memory_stats stats_of(const tni_device *device);

/* The standing error has this status and every one of these texts (up to NULL); forgets it. */
void assert_error(tn_status status, ...);

#endif
