/* A plan behind the cookie is ended once, whatever becomes of its call. */
#include "tests/plugin_hpp/test_host.h"

#include <stdexcept>

static int alive;
struct plan {
    int value;
    explicit plan(int v) : value(v) {
        alive++;
    }
    ~plan() {
        alive--;
    }
};
using plan_ptr = tenon::host_ptr<plan>;

/* What prepare and run are to do, as call->user says. */
enum order { PASS, RUN_THROWS, PREPARE_THROWS, PREPARE_REFUSES, RUN_KEEPS };

static order order_of(const tn_call *call) {
    return *static_cast<const order *>(call->user);
}

static plan_ptr kept;

static tn_status prepare(const tn_call *call, tn_plan *out, plan_ptr &p) {
    p = tenon::make_host<plan>(host_of(call->device), 42);
    out->workspace_bytes = 512;
    if (order_of(call) == PREPARE_THROWS)
        throw std::runtime_error("no plan");
    return order_of(call) == PREPARE_REFUSES ? TN_ERR_UNSUPPORTED : TN_OK;
}

static void run(const tn_call *call, plan_ptr p) {
    assert_int_equal(p->value, 42);
    if (order_of(call) == RUN_THROWS)
        throw tenon::error(TN_ERR_IO, "no run");
    if (order_of(call) == RUN_KEEPS)
        kept = std::move(p);
}

static constexpr tn_kernel record = tenon::kernel("add", 1).planned<prepare, run>();

struct planned_call : test_device {
    order what;
    tn_plan plan{};

    explicit planned_call(order o) : what(o) {
        call.user = &what;
        plan.struct_size = sizeof plan;
    }
    tn_status prepare() {
        tn_status status = record.prepare(&call, &plan);
        call.cookie = plan.cookie;
        return status;
    }
    void assert_nothing_left() {
        assert_int_equal(alive, 0);
        assert_int_equal(host.outstanding, 0);
    }
};

static void run_uses_the_plan_up(void **) {
    planned_call c(PASS);
    assert_int_equal(c.prepare(), TN_OK);
    assert_int_equal(c.plan.workspace_bytes, 512);
    assert_int_equal(alive, 1);
    assert_int_equal(record.run(&c.call), TN_OK);
    c.assert_nothing_left();
}

static void run_that_throws_uses_the_plan_up(void **) {
    planned_call c(RUN_THROWS);
    assert_int_equal(c.prepare(), TN_OK);
    assert_int_equal(record.run(&c.call), TN_ERR_IO);
    assert_string_equal(c.host.message.c_str(), "no run");
    c.assert_nothing_left();
}

static void abandon_ends_the_plan(void **) {
    planned_call c(PASS);
    assert_int_equal(c.prepare(), TN_OK);
    record.abandon(&c.call);
    c.assert_nothing_left();
}

static void prepare_that_fails_leaves_no_plan(void **) {
    planned_call refused(PREPARE_REFUSES);
    assert_int_equal(refused.prepare(), TN_ERR_UNSUPPORTED);
    assert_int_equal(refused.plan.cookie, 0);
    assert_true(refused.host.message.empty());
    refused.assert_nothing_left();
    planned_call thrown(PREPARE_THROWS);
    assert_int_equal(thrown.prepare(), TN_ERR_INTERNAL);
    assert_int_equal(thrown.plan.cookie, 0);
    thrown.assert_nothing_left();
    planned_call without(PASS);
    without.host.fail_after = 0;
    assert_int_equal(without.prepare(), TN_ERR_OUT_OF_MEMORY);
    without.assert_nothing_left();
}

static void a_plan_may_outlive_its_run(void **) {
    planned_call c(RUN_KEEPS);
    assert_int_equal(c.prepare(), TN_OK);
    assert_int_equal(record.run(&c.call), TN_OK);
    assert_int_equal(alive, 1);
    kept.reset();
    c.assert_nothing_left();
}

int test_plans() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(run_uses_the_plan_up),
        cmocka_unit_test(run_that_throws_uses_the_plan_up),
        cmocka_unit_test(abandon_ends_the_plan),
        cmocka_unit_test(prepare_that_fails_leaves_no_plan),
        cmocka_unit_test(a_plan_may_outlive_its_run),
    };
    return cmocka_run_group_tests_name("plans", tests, nullptr, nullptr);
}
