/* Where exceptions are off, slots, records, plans and host memory work as ever, nothing of a guard is
 * left, and what would throw ends the process. */
#if defined(__cpp_exceptions) || defined(__cpp_rtti)
#error "to be compiled with -fno-exceptions -fno-rtti"
#endif
#include "tests/plugin_hpp/test_host.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

tn_status tn_device_impl::throws_as_member() {
    return tenon::fail(host_of(this), TN_ERR_STATE, "call %d", ++calls);
}

static void a_slot_is_the_call(void **) {
    test_device d;
    tn_status (*fn)(tn_device_impl *) = tenon::slot<&tn_device_impl::throws_as_member>;
    assert_int_equal(fn(&d.device), TN_ERR_STATE);
    assert_string_equal(d.host.message.c_str(), "call 1");
    assert_int_equal(tenon::guard(&d.host.table, [] {}), TN_OK);
}

static tn_status prepare(const tn_call *call, tn_plan *, tenon::host_ptr<int> &plan) {
    plan = tenon::make_host<int>(host_of(call->device), 42);
    return TN_OK;
}
static tn_status run(const tn_call *, tenon::host_ptr<int> plan) {
    return *plan == 42 ? TN_OK : TN_ERR_INTERNAL;
}
static constexpr tn_kernel record = tenon::kernel("add", 1).planned<prepare, run>();

static void a_plan_is_used_up(void **) {
    test_device d;
    tn_plan plan{};
    assert_int_equal(record.prepare(&d.call, &plan), TN_OK);
    d.call.cookie = plan.cookie;
    assert_int_equal(record.run(&d.call), TN_OK);
    assert_int_equal(d.host.outstanding, 0);
}

static void what_would_throw_ends_the_process(void **) {
    pid_t child = fork();
    if (child == 0) {
        std::signal(SIGABRT, SIG_DFL);
        close(2);
        test_host host;
        host.fail_after = 0;
        tenon::make_host<int>(&host.table, 3);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_is_the_call),
        cmocka_unit_test(a_plan_is_used_up),
        cmocka_unit_test(what_would_throw_ends_the_process),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
