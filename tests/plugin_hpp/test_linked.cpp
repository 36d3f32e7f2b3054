/* Two plugins in C++ that are linked into one program, each with names of its own for the handles: neither
 * is taken for the other, though their sources say the same. */
#include "tests/plugin_hpp/test_host.h"

extern "C" const tn_plugin *one_query(const tn_host *host);
extern "C" const tn_plugin *two_query(const tn_host *host);

static void each_lives_with_its_own_host(void **) {
    test_host hosts[2];
    for (test_host &host : hosts)
        host.table.option = [](const tn_host *, const char *) -> const char * { return nullptr; };
    const tn_plugin *plugins[] = {one_query(&hosts[0].table), two_query(&hosts[1].table)};
    assert_ptr_not_equal(plugins[0], plugins[1]);
    assert_ptr_not_equal(plugins[0]->devices, plugins[1]->devices);
    tn_instance *selfs[2];
    tn_device_impl *devices[2], *none;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(plugins[i]->init(&hosts[i].table, nullptr, &selfs[i]), TN_OK);
        assert_int_equal(plugins[i]->devices->open(selfs[i], 0, &devices[i]), TN_OK);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hosts[i].outstanding, 2);
        assert_int_equal(plugins[i]->devices->open(selfs[i], 9, &none), TN_ERR_DEVICE);
        assert_string_equal(hosts[i].message.c_str(), "there is no yourtype:9; there are 1");
        plugins[i]->devices->close(devices[i]);
        plugins[i]->shutdown(selfs[i]);
        assert_int_equal(hosts[i].outstanding, 0);
    }
}

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(each_lives_with_its_own_host)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
