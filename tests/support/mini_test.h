/* Mini_host for tests with cmocka, which wants its headers before itself. */
#ifndef TNI_TESTS_SUPPORT_MINI_TEST_H
#define TNI_TESTS_SUPPORT_MINI_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/mini_host.h"

#define assert_ok(call) \
    do { \
        tn_status status_ = (call); \
        if (status_ != TN_OK) \
            fail_msg("%s: status %d, %s", #call, status_, mini_error()); \
    } while (0)

#endif /* TNI_TESTS_SUPPORT_MINI_TEST_H */
