/* The smallest host (mini_host.h), of one version, and plugins of its own, of the next and of the one
 * before it: what a host other than the core relies on. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/abi/pair_plugin.h"
#include "tests/support/mini_host.h"

#include <dlfcn.h>

static const char *const plugins[] = {
    PAIR_DIR "/libpair_now.so",
    PAIR_DIR "/libpair_default.so",
    PAIR_DIR "/libpair_raised.so",
    CPU_PLUGIN,
    SIM_PLUGIN,
};

static void add_and_a_property_work(const char *path) {
    static const float ones[] = {1, 2, 3};
    float out[3];
    mini m;
    if (!mini_open(&m, path, 0))
        fail_msg("%s: %s", path, mini_error());
    const int64_t sizes[] = {3};
    mini_tensor *a = mini_tensor_create(&m, TN_F32, 1, sizes, NULL, 0);
    mini_tensor *sum = mini_tensor_create(&m, TN_F32, 1, sizes, NULL, 0);
    assert_int_equal(mini_tensor_write(&m, a, ones), TN_OK);
    const tn_kernel *add = mini_find(&m, "add", TN_F32, TN_DTYPE_NONE);
    assert_non_null(add);
    tn_cell args[] = {mini_view(a), mini_view(a), mini_f64(2)};
    assert_int_equal(mini_run(&m, add, 3, args, 1, &sum), TN_OK);
    assert_int_equal(mini_tensor_read(&m, sum, out), TN_OK);
    assert_true(out[0] == 3 && out[1] == 6 && out[2] == 9);
    tn_cell name;
    assert_int_equal(m.ops->property(m.self, 0, TN_PROP_NAME, &name), TN_OK);
    tn_event_impl *event;
    if (m.stream) {
        assert_int_equal(m.ops->events->create(m.device, 0, &event), TN_OK);
        assert_int_equal(m.ops->events->record(event, m.stream), TN_OK);
        assert_int_equal(m.ops->events->synchronize(event), TN_OK);
        m.ops->events->destroy(event);
    }
    const pair_counts *seen = dlsym(m.object, "pair_seen"); /* of the pair's own plugins */
    assert_true(!seen || (seen->n_calls == 1 && seen->n_wrong == 0));
    assert_true(mini_close(&m));
}

static void plugins_of_either_version_work(void **state) {
    for (size_t i = 0; i < sizeof plugins / sizeof *plugins; i++)
        add_and_a_property_work(plugins[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plugins_of_either_version_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
