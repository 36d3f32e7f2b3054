/* Guards turn every exception into a status and a message, tables and records are what their builders
 * were told, and arguments are what the schema says. */
#include "tests/plugin_hpp/test_host.h"

#include <cstring>
#include <stdexcept>

/* ---- guards ------------------------------------------------------------------------------ */

enum thrown { NOTHING, STATUS, NO_ERROR, MEMORY, STANDARD, INTEGER };

static void throw_one(int which) {
    switch (which) {
    case STATUS:
        throw tenon::error(TN_ERR_IO, "firmware %d is missing", 7);
    case NO_ERROR:
        throw tenon::error(TN_OK, "thrown as no error");
    case MEMORY:
        throw std::bad_alloc();
    case STANDARD:
        throw std::out_of_range("behind the end");
    case INTEGER:
        throw 7;
    default:
        return;
    }
}

static const struct {
    thrown which;
    tn_status status;
    const char *message;
} kinds[] = {{STATUS, TN_ERR_IO, "firmware 7 is missing"},
             {NO_ERROR, TN_ERR_INTERNAL, "thrown as no error"},
             {MEMORY, TN_ERR_OUT_OF_MEMORY, "no host memory"},
             {STANDARD, TN_ERR_INTERNAL, "behind the end"},
             {INTEGER, TN_ERR_INTERNAL, "no std::exception"}};

static void count(tn_instance *, uint32_t *out_count) {
    throw_one(static_cast<int>(*out_count));
    *out_count = 100;
}

static void a_slot_answers_each_exception_with_a_status_and_its_message(void **) {
    test_device d;
    auto ops = tenon::table<tn_device_ops>();
    ops.count = tenon::slot<count>;
    for (const auto &kind : kinds) {
        uint32_t n = kind.which;
        d.host.message.clear();
        assert_int_equal(ops.count(&d.self, &n), kind.status);
        assert_int_equal(d.host.status, kind.status);
        assert_non_null(std::strstr(d.host.message.c_str(), kind.message));
    }
}

static void a_slot_whose_function_returns_nothing_answers_ok_and_says_nothing(void **) {
    test_device d;
    auto ops = tenon::table<tn_device_ops>();
    ops.count = tenon::slot<count>;
    uint32_t n = NOTHING;
    assert_int_equal(ops.count(&d.self, &n), TN_OK);
    assert_int_equal(n, 100);
    assert_true(d.host.message.empty());
}

static tn_status property(tn_instance *, uint32_t, int32_t name, tn_cell *out_value) noexcept {
    if (name != TN_PROP_NAME)
        return TN_ERR_UNSUPPORTED;
    *out_value = tenon::cell("a device");
    return TN_OK;
}

static void a_status_that_is_returned_stays_as_it_is(void **) {
    test_device d;
    auto ops = tenon::table<tn_device_ops>();
    ops.property = tenon::slot<property>;
    tn_cell cell{};
    assert_int_equal(ops.property(&d.self, 0, TN_PROP_SPACES, &cell), TN_ERR_UNSUPPORTED);
    assert_true(d.host.message.empty());
    assert_int_equal(ops.property(&d.self, 0, TN_PROP_NAME, &cell), TN_OK);
    assert_int_equal(cell.tag, TN_CELL_STRING);
    assert_string_equal(cell.v.string, "a device");
}

tn_status tn_device_impl::throws_as_member() {
    calls++;
    throw tenon::error(TN_ERR_STATE, "from a member");
}

static void a_member_function_of_the_handle_fills_a_slot(void **) {
    test_device d;
    tn_status (*fn)(tn_device_impl *) = tenon::slot<&tn_device_impl::throws_as_member>;
    assert_int_equal(fn(&d.device), TN_ERR_STATE);
    assert_int_equal(d.device.calls, 1);
    assert_string_equal(d.host.message.c_str(), "from a member");
}

/* The handle is gone when the guard needs the host; sanitizers watch. */
static void close_then_throw(tn_device_impl *device) {
    tenon::destroy(host_of(device->self), device);
    throw tenon::error(TN_ERR_IO, "could not be closed");
}

static void what_a_slot_without_status_throws_is_logged(void **) {
    test_device d;
    tn_device_impl *device = tenon::make_host<tn_device_impl>(&d.host.table, &d.self, 0).release();
    auto ops = tenon::table<tn_device_ops>();
    ops.close = tenon::slot<close_then_throw>;
    ops.close(device);
    assert_string_equal(d.host.log.c_str(), "could not be closed");
    assert_int_equal(d.host.outstanding, 0);
}

static const void *extension(tn_instance *self, const char *id) {
    if (std::strcmp(id, "bad") == 0)
        throw std::runtime_error("no such extension");
    return self;
}

static void a_slot_that_returns_a_pointer_returns_null(void **) {
    test_device d;
    auto plugin = tenon::table<tn_plugin>();
    plugin.extension = tenon::slot<extension>;
    assert_ptr_equal(plugin.extension(&d.self, "good"), &d.self);
    assert_null(plugin.extension(&d.self, "bad"));
    assert_string_equal(d.host.log.c_str(), "no such extension");
}

static void guard_takes_what_is_called_by_hand(void **) {
    test_host host;
    for (const auto &kind : kinds)
        assert_int_equal(tenon::guard(&host.table, [&] { throw_one(kind.which); }), kind.status);
    assert_int_equal(tenon::guard(&host.table, [] {}), TN_OK);
    assert_int_equal(tenon::guard(&host.table, [] { return TN_NOT_READY; }), TN_NOT_READY);
}

static void a_thread_keeps_an_error_for_its_stream(void **) {
    test_host host;
    tenon::error kept(TN_OK, "none yet");
    try {
        throw_one(STANDARD);
    } catch (...) {
        kept = tenon::current_error();
    }
    assert_int_equal(tenon::guard(&host.table, [&] { throw kept; }), TN_ERR_INTERNAL);
    assert_string_equal(host.message.c_str(), "behind the end");
}

static void a_long_message_is_cut(void **) {
    test_host host;
    std::string text(5000, 'x');
    assert_int_equal(tenon::fail(&host.table, TN_ERR_IO, "%s", text.c_str()), TN_ERR_IO);
    assert_int_equal(host.message.size(), 319);
    assert_int_equal(std::strlen(tenon::error(TN_ERR_IO, "%s", text.c_str()).what()), 319);
}

/* ---- tables and records ------------------------------------------------------------------ */

static tn_status run(const tn_call *call) {
    throw_one(*static_cast<const int *>(call->user));
    return TN_OK;
}
static tn_status supports(const tn_call *) {
    return TN_ERR_UNSUPPORTED;
}
static constexpr int which = STATUS;
static constexpr tn_kernel record = tenon::kernel("add", 42)
                                        .dtypes(tenon::dtype_set<float, double>, TN_DTYPES_INT)
                                        .flags(TN_KERNEL_STRIDED | TN_KERNEL_IN_PLACE)
                                        .user(&which)
                                        .supports<supports>()
                                        .run<run>();
static_assert(record.struct_size == sizeof(tn_kernel) && record.schema_hash == 42);
static_assert(record.dtypes[0] == (TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64)));
static_assert(record.dtypes[1] == TN_DTYPES_INT && record.dtypes[2] == 0);
static_assert(record.flags == (TN_KERNEL_STRIDED | TN_KERNEL_IN_PLACE));
static_assert(!record.prepare && !record.abandon);
static_assert(tenon::table<tn_memory_ops>().struct_size == sizeof(tn_memory_ops));
static_assert(tenon::table<tn_plugin>().abi_version == TN_ABI_VERSION &&
              tenon::table<tn_plugin>().abi_required == TN_ABI_TARGET);

static void a_record_is_guarded_and_gets_its_user(void **) {
    test_device d;
    d.call.user = record.user;
    assert_string_equal(record.op, "add");
    assert_int_equal(record.run(&d.call), TN_ERR_IO);
    assert_string_equal(d.host.message.c_str(), "firmware 7 is missing");
    assert_int_equal(record.supports(&d.call), TN_ERR_UNSUPPORTED);
}

static void cells_have_the_tag_of_their_value(void **) {
    assert_int_equal(tenon::cell(64).tag, TN_CELL_I64);
    assert_int_equal(tenon::cell(TN_DTYPES_ALL).v.i64, TN_DTYPES_ALL);
    assert_int_equal(tenon::cell(true).tag, TN_CELL_BOOL);
    assert_int_equal(tenon::cell(true).v.boolean, 1);
    assert_int_equal(tenon::cell(0.5f).tag, TN_CELL_F64);
    assert_true(tenon::cell(0.5f).v.f64 == 0.5);
}

/* ---- arguments --------------------------------------------------------------------------- */

static void arguments_are_what_the_schema_says_or_throw(void **) {
    test_device d;
    float values[] = {1, 2, 3};
    const int64_t sizes[] = {2}, strides[] = {1};
    tn_tensor_view view{};
    view.memory = reinterpret_cast<tn_memory>(values);
    view.offset = sizeof(float);
    view.dtype = TN_F32;
    view.rank = 1;
    view.sizes = sizes;
    view.strides = strides;
    const int64_t dims[] = {3, 4};
    tn_cell args[5] = {{}, tenon::cell(3), tenon::cell(2.5), tenon::cell(true), {}};
    args[0].tag = TN_CELL_TENSOR;
    args[0].v.view = &view;
    args[4].tag = TN_CELL_INTS;
    args[4].n = 2;
    args[4].v.ints = dims;
    d.call.args = args;
    d.call.n_args = 5;

    const tn_tensor_view &self = tenon::arg(&d.call, 0).tensor();
    assert_ptr_equal(&self, &view);
    assert_true(tenon::data<const float>(self)[0] == 2);
    assert_int_equal(tenon::sizes(self).size, 1);
    assert_int_equal(tenon::sizes(self)[0], 2);
    assert_int_equal(*tenon::strides(self).begin(), 1);
    assert_int_equal(tenon::arg(&d.call, 1).i64(), 3);
    assert_true(tenon::arg(&d.call, 1).scalar<float>() == 3);
    assert_true(tenon::arg(&d.call, 2).scalar<double>() == 2.5);
    assert_int_equal(tenon::arg(&d.call, 3).scalar<int>(), 1);
    assert_true(tenon::arg(&d.call, 3).boolean());
    int64_t sum = 0;
    for (int64_t dim : tenon::arg(&d.call, 4).ints())
        sum += dim;
    assert_int_equal(sum, 7);

    auto fails = [&](auto &&body) {
        d.host.message.clear();
        assert_int_equal(tenon::guard(&d.host.table, [&] { body(); }), TN_ERR_INTERNAL);
        return d.host.message;
    };
    assert_non_null(
        std::strstr(fails([&] { tenon::arg(&d.call, 2).i64(); }).c_str(), "argument 2"));
    assert_false(fails([&] { tenon::arg(&d.call, 0).scalar<float>(); }).empty());
    assert_non_null(std::strstr(fails([&] { tenon::arg(&d.call, 5); }).c_str(), "argument 5 of 5"));
    assert_non_null(std::strstr(fails([&] { tenon::data<int32_t>(view); }).c_str(), "i32"));
    args[0].tag = TN_CELL_NONE;
    assert_false(tenon::arg(&d.call, 0).given());
    assert_false(fails([&] { tenon::arg(&d.call, 0).tensor(); }).empty());
}

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_answers_each_exception_with_a_status_and_its_message),
        cmocka_unit_test(a_slot_whose_function_returns_nothing_answers_ok_and_says_nothing),
        cmocka_unit_test(a_status_that_is_returned_stays_as_it_is),
        cmocka_unit_test(a_member_function_of_the_handle_fills_a_slot),
        cmocka_unit_test(what_a_slot_without_status_throws_is_logged),
        cmocka_unit_test(a_slot_that_returns_a_pointer_returns_null),
        cmocka_unit_test(guard_takes_what_is_called_by_hand),
        cmocka_unit_test(a_thread_keeps_an_error_for_its_stream),
        cmocka_unit_test(a_long_message_is_cut),
        cmocka_unit_test(a_record_is_guarded_and_gets_its_user),
        cmocka_unit_test(cells_have_the_tag_of_their_value),
        cmocka_unit_test(arguments_are_what_the_schema_says_or_throw),
    };
    int failed = cmocka_run_group_tests_name("guards and builders", tests, nullptr, nullptr);
    return failed + test_plans() + test_memory();
}
