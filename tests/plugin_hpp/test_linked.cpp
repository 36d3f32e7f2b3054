/* Two plugins in C++ that are linked into one program, each with names of its own for the handles: neither
 * gets what the compiler made for the other's. */
#include "tests/plugin_hpp/test_host.h"

extern "C" const tn_plugin *one_query(const tn_host *host);
extern "C" const tn_plugin *two_query(const tn_host *host);

/* The bytes of the device that is opened, without its pointer. */
static uint64_t device_bytes(const tn_plugin *plugin) {
    test_host host;
    tn_instance *self = nullptr;
    tn_device_impl *device = nullptr;
    assert_int_equal(plugin->init(&host.table, nullptr, &self), TN_OK);
    assert_int_equal(plugin->devices->open(self, 0, &device), TN_OK);
    uint64_t bytes = host.bytes - sizeof(void *);
    plugin->devices->close(device);
    plugin->shutdown(self);
    assert_int_equal(host.outstanding, 0);
    return bytes;
}

static void each_has_the_device_that_it_defines(void **) {
    assert_int_equal(device_bytes(one_query(nullptr)), 8);
    assert_int_equal(device_bytes(two_query(nullptr)), 4096);
}

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(each_has_the_device_that_it_defines)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
