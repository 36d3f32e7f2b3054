/* A plugin built from the header of an earlier version loads and starts. */
#include "tests/loader/loader_test.h"

static void it_loads(void **state) {
    load_only(ABI_PLUGIN);
    const tni_plugin *p = tni_loader_get("abi");
    if (!p)
        fail_msg("%s", tn_error_message());
    assert_int_equal(p->table->abi_version, ABI_BUILT);
    assert_int_equal(p->n_devices, 1);
    assert_int_equal(p->n_kernels, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_loads, fresh_loader, fresh_loader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
