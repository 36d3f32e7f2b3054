/* Plugins built from the headers of earlier versions load and start. */
#include "tests/loader/loader_test.h"

static void loads(const char *file, uint32_t version) {
    load_only(in_dir(ABI_DIR, file));
    const tni_plugin *p = tni_loader_get("abi");
    if (!p)
        fail_msg("%s", tn_error_message());
    assert_int_equal(p->table->abi_version, version);
    assert_int_equal(p->n_devices, 1);
    assert_int_equal(p->n_kernels, 2);
}

static void plugin_of_0_11_loads(void **state) {
    loads("libtenon_abi_0_11.so", TN_ABI_MAKE(0u, 11u));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plugin_of_0_11_loads, fresh_loader, fresh_loader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
