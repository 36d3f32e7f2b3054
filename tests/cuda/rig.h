/* What the tests of the CUDA plugin share: the plugin loaded above the driver double, small pieces of
 * work, and a look at what a call must leave as it was. */
#ifndef TNI_TESTS_CUDA_RIG_H
#define TNI_TESTS_CUDA_RIG_H

#include "tests/cuda/double/double.h"

#include <mini_test.h>
#include <stdio.h>
#include <string.h>

/* Each test program defines this. */
int all_tests(void);

/* From the command line: the plugin under test; the doubles of the driver, which the program is linked
 * with, too, and of NVRTC. */
extern const char *rig_plugin, *rig_driver, *rig_nvrtc;

/* The cache folder that kernels are built into once, for tests that are not about building. */
extern const char *rig_cache;

/* Setup says nothing to the double. Teardown fails where an object of the driver is left, was left
 * in a context that went away, or the thread's current context is another. */
int rig_setup(void **state);
int rig_teardown(void **state);

/* Takes notice of what is alive now: a test that must leave something behind ends with this. */
void rig_forget(void);

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

#define assert_text(text, part) \
    do { \
        if (!strstr((text), (part))) \
            fail_msg("'%s' is not in '%s'", (part), (text)); \
    } while (0)

#define assert_status(call, expected) \
    do { \
        tn_status status_ = (call); \
        if (status_ != (expected)) \
            fail_msg("%s: status %d, not %d; %s", #call, status_, expected, mini_error()); \
    } while (0)

/* Words for the double, as for printf. */
void rig_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Opens device 0 with a stream, or fails the test. */
void rig_open(mini *m);

/* A context of the program's own, which is current from now on. */
CUcontext rig_context(CUdevice device);

/* Ends the program, with what was said last to the double, when the next of these calls, or rig_rest,
 * does not come within so many seconds. */
void rig_watch(unsigned seconds);
void rig_rest(void);

/* ---- kernels, on memory that holds what they need ---------------------------------------- */

/* out[i] = -in[i], of n numbers of f32. */
tn_status rig_negate(mini *m, tn_stream_impl *stream, tn_memory in, tn_memory out, int64_t n);

/* out[i] = in[index[i]], of n numbers of f32, and n indices of i64: what is out of range is told. */
tn_status rig_select(mini *m, tn_stream_impl *stream, tn_memory in, tn_memory index, tn_memory out,
                     int64_t n);

/* Calls `neg` and looks at what comes back; a status that is not TN_OK is the first there was. */
tn_status rig_work(mini *m);

/* Device memory, or fails the test. */
tn_memory rig_alloc(mini *m, uint64_t bytes);
void rig_free(mini *m, tn_memory memory);

#endif /* TNI_TESTS_CUDA_RIG_H */
