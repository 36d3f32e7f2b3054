/* Host memory in C++: containers and objects take it from the host, give all of it back, and fail as the
 * host does. */
#include "tests/plugin_hpp/test_host.h"

#include <map>
#include <stdexcept>
#include <vector>

template <class T> using host_vector = std::vector<T, tenon::host_allocator<T>>;

static void a_container_lives_in_host_memory(void **) {
    test_host host;
    {
        host_vector<int> v(&host.table);
        v.assign(1000, 7);
        assert_int_equal(host.outstanding, 1);
        host_vector<int> other = std::move(v);
        assert_int_equal(other.size(), 1000);
        std::map<int, int, std::less<int>, tenon::host_allocator<std::pair<const int, int>>> map(
            &host.table);
        map[3] = 4;
        assert_int_equal(host.outstanding, 2);
    }
    assert_int_equal(host.outstanding, 0);
}

struct alignas(256) wide {
    char bytes[256];
};

static void alignment_is_that_of_the_type(void **) {
    test_host host;
    host_vector<wide> v(&host.table);
    v.resize(3);
    assert_int_equal(host.alignment, 256);
    assert_int_equal(reinterpret_cast<uintptr_t>(v.data()) % 256, 0);
    auto p = tenon::make_host<wide>(&host.table);
    assert_int_equal(host.alignment, 256);
    assert_int_equal(reinterpret_cast<uintptr_t>(p.get()) % 256, 0);
}

static void memory_that_the_host_lacks_is_out_of_memory(void **) {
    test_host host;
    {
        host_vector<int> v(&host.table);
        v.assign(3, 7);
        host.fail_after = 0;
        assert_int_equal(tenon::guard(&host.table, [&] { v.resize(100); }), TN_ERR_OUT_OF_MEMORY);
        assert_int_equal(v.size(), 3);
        assert_int_equal(tenon::guard(&host.table, [&] { tenon::make_host<int>(&host.table, 3); }),
                         TN_ERR_OUT_OF_MEMORY);
        host.fail_after = -1;
        tenon::host_allocator<double> doubles(&host.table);
        assert_int_equal(
            tenon::guard(&host.table, [&] { return doubles.allocate(SIZE_MAX / 8 + 2), TN_OK; }),
            TN_ERR_OUT_OF_MEMORY);
    }
    assert_int_equal(host.outstanding, 0);
}

static void allocators_are_equal_where_their_host_is(void **) {
    test_host a, b;
    assert_true(tenon::host_allocator<int>(&a.table) == tenon::host_allocator<char>(&a.table));
    assert_true(tenon::host_allocator<int>(&a.table) != tenon::host_allocator<int>(&b.table));
    host_vector<int> v({1, 2, 3}, &a.table), w(&b.table);
    w = std::move(v);
    assert_true(w.get_allocator().host() == &a.table);
}

static int alive;
struct counted {
    explicit counted(bool fails) {
        if (fails)
            throw std::runtime_error("not made");
        alive++;
    }
    ~counted() {
        alive--;
    }
};

static void an_object_is_ended_once_whoever_owns_it(void **) {
    test_host host;
    {
        auto p = tenon::make_host<counted>(&host.table, false);
        assert_int_equal(alive, 1);
        counted *handle = p.release();
        tenon::host_ptr<counted> again(handle, &host.table);
        assert_int_equal(alive, 1);
    }
    assert_int_equal(alive, 0);
    tenon::destroy(&host.table, tenon::make_host<counted>(&host.table, false).release());
    tenon::destroy<counted>(&host.table, nullptr);
    assert_int_equal(alive, 0);
    assert_int_equal(host.outstanding, 0);
}

static void a_constructor_that_throws_leaves_nothing(void **) {
    test_host host;
    assert_int_equal(
        tenon::guard(&host.table, [&] { tenon::make_host<counted>(&host.table, true); }),
        TN_ERR_INTERNAL);
    assert_string_equal(host.message.c_str(), "not made");
    assert_int_equal(alive, 0);
    assert_int_equal(host.outstanding, 0);
}

int test_memory() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_container_lives_in_host_memory),
        cmocka_unit_test(alignment_is_that_of_the_type),
        cmocka_unit_test(memory_that_the_host_lacks_is_out_of_memory),
        cmocka_unit_test(allocators_are_equal_where_their_host_is),
        cmocka_unit_test(an_object_is_ended_once_whoever_owns_it),
        cmocka_unit_test(a_constructor_that_throws_leaves_nothing),
    };
    return cmocka_run_group_tests_name("host memory", tests, nullptr, nullptr);
}
