/* What the tests of the OpenCL plugin share: the plugin loaded above a driver that fails on
 * demand (layer.h), and a small piece of work. */
#ifndef TNI_TESTS_OPENCL_RIG_H
#define TNI_TESTS_OPENCL_RIG_H

#include "tests/opencl/layer.h"

#include <mini_test.h>
#include <stdio.h>
#include <string.h>

/* Each test program defines this; rig.c has main, which skips the tests where there is no OpenCL.
 */
int all_tests(void);

/* The plugin under test, from the command line. */
extern const char *rig_plugin;

/* Setup says nothing to the layer; teardown fails where an object of OpenCL is still alive. */
int rig_setup(void **state);
int rig_teardown(void **state);

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

#define assert_text(text, part) \
    do { \
        if (!strstr((text), (part))) \
            fail_msg("'%s' is not in '%s'", (part), (text)); \
    } while (0)

/* Calls kernel `neg` with f32 numbers and looks at what comes back; a status that is not TN_OK is
 * the first that was returned. */
tn_status rig_work(mini *m);

#endif /* TNI_TESTS_OPENCL_RIG_H */
