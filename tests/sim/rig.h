/* What the tests of the simulated chip share: the plugin loaded, tensors with a copy on the
 * host, and work that takes a while. */
#ifndef TNI_TESTS_SIM_RIG_H
#define TNI_TESTS_SIM_RIG_H

#include <mini_test.h>
#include <tenon/kernels.h>

/* Each test program defines this; rig.c has main. */
int all_tests(void);

/* The plugin under test, from the command line. */
extern const char *rig_plugin;

/* The loaded plugin with device 0 open. rig_setup and rig_teardown are cmocka fixtures; teardown
 * fails when host memory is missing. */
extern mini rig;
int rig_setup(void **state);
int rig_teardown(void **state);

#define assert_status(call, expected) assert_int_equal((call), (expected))

/* Does the standing message contain `part`? */
#define assert_message(part) \
    do { \
        if (!strstr(mini_error(), part)) \
            fail_msg("'%s' is not in the message '%s'", part, mini_error()); \
    } while (0)

/* ---- tensors with a host copy ------------------------------------------------------------ */

typedef struct array {
    mini_tensor *tensor;
    void *host; /* contiguous, row-major */
    tn_dtype dtype;
    int64_t numel;
} array;

array array_create(tn_dtype dtype, int32_t rank, const int64_t *sizes);

/* f32, rising from `low` to less than `low` + 1. */
array array_ramp(int32_t rank, const int64_t *sizes, float low);

void array_upload(array *a);
void array_download(array *a);
void array_free_host(array *a);

/* ---- work -------------------------------------------------------------------------------- */

/* Queues kernel `op` without waiting for it. */
tn_status rig_launch(const char *op, tn_device_impl *device, tn_stream_impl *stream,
                     uint32_t n_args, const tn_cell *args, const tn_tensor_view *out);

/* A product that keeps a stream busy for some ten milliseconds each time. */
typedef struct slow {
    mini_tensor *a, *b, *out;
} slow;

slow slow_create(void);
void slow_queue(const slow *work, tn_stream_impl *stream, int times);

#endif /* TNI_TESTS_SIM_RIG_H */
