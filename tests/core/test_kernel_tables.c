/* Which kernel a device's table gives for an operator and dtypes. */
#include "tests/dispatcher/dispatch_test.h"

#include <stdio.h>

#include "core/device/kernel_table.h"
#include "loader/loader.h"

static tn_status run_a(const tn_call *call) {
    return TN_OK;
}
static tn_status run_b(const tn_call *call) {
    return TN_ERR_UNSUPPORTED;
}
static tn_status any_size(const tn_call *call) {
    return TN_OK;
}

#define RECORD(op_, dtypes_, run_) \
    { \
        .struct_size = sizeof(tn_kernel), .op = TN_KERNEL_##op_, \
        .schema_hash = TN_KERNEL_HASH_##op_, .dtypes = dtypes_, .run = run_ \
    }
#define MASK(...) \
    { __VA_ARGS__ }
#define F32 TN_DTYPE_BIT(TN_F32)
#define F64 TN_DTYPE_BIT(TN_F64)
#define F16 TN_DTYPE_BIT(TN_F16)

static const tn_kernel add_floats = RECORD(add, MASK(F32 | F64), run_a);
static const tn_kernel add_half = RECORD(add, MASK(F16), run_b);
static const tn_kernel copy_same = RECORD(copy, MASK(F32 | F64, F32 | F64), run_a);
static const tn_kernel copy_to_half = RECORD(copy, MASK(F32, F16), run_b);
static const tn_kernel copy_late = RECORD(copy, MASK(F32, F64), run_b); /* copy_same has it */
static const tn_kernel unknown = {
    .struct_size = sizeof(tn_kernel), .op = "hologram", .dtypes = {F32}, .run = run_a};
static const tn_kernel future_dtype = RECORD(mul, MASK(UINT64_C(1) << 40 | F32), run_a);
static const tn_kernel *const records[] = {&add_floats, &unknown,   &add_half,     &copy_same,
                                           NULL,        &copy_late, &copy_to_half, &future_dtype};

static tn_status no_half(tn_device_impl *device, const tn_kernel *k) {
    return k == &add_half ? TN_ERR_UNSUPPORTED : TN_OK;
}
static tn_status fails(tn_device_impl *device, const tn_kernel *k) {
    return k == &add_half ? TN_ERR_IO : TN_OK;
}

static tni_plugin plugin_of(tn_plugin *table, tn_device_ops *ops,
                            tn_status (*supports)(tn_device_impl *, const tn_kernel *)) {
    *ops = (tn_device_ops){.struct_size = sizeof *ops, .accepts = supports};
    *table = (tn_plugin){.struct_size = sizeof *table,
                         .id = "com.acme.npu",
                         .devices = ops,
                         .kernels = records,
                         .n_kernels = N_OF(records)};
    return (tni_plugin){.table = table, .devices = ops};
}

static const tni_kernel *match(tni_kernel_set *set, uint32_t op, tn_dtype d0, tn_dtype d1) {
    const tn_dtype dtypes[] = {d0, d1};
    return tni_kernel_fitting(tni_kernel_lookup(atomic_load(&set->table), op, d0), dtypes,
                              d1 < 0 ? 1 : 2);
}

/* As a program does it. */
static tn_status add(tni_kernel_set *set, const tn_kernel *k, uint64_t *out_id) {
    return tni_kernel_set_add(set, tni_kernel_op_find(k->op), k, NULL, "app", out_id);
}

static void a_plugin_s_records_fill_the_rows(void **state) {
    tn_plugin table;
    tn_device_ops ops;
    tni_plugin plugin = plugin_of(&table, &ops, NULL);
    tni_kernel_set set;
    assert_int_equal(tni_kernel_set_init(&set, &plugin, NULL), TN_OK);
    const tni_kernel *f32 = match(&set, TNI_KERNEL_add, TN_F32, -1);
    assert_true(f32 && f32->run == run_a && f32 == match(&set, TNI_KERNEL_add, TN_F64, -1));
    assert_string_equal(f32->origin, "com.acme.npu");
    assert_true(match(&set, TNI_KERNEL_add, TN_F16, -1)->run == run_b);
    assert_null(match(&set, TNI_KERNEL_add, TN_I32, -1));
    assert_null(match(&set, TNI_KERNEL_sub, TN_F32, -1));
    assert_null(match(&set, 100000, TN_F32, -1));
    /* A dtype that a later core may know is left out. */
    assert_true(match(&set, TNI_KERNEL_mul, TN_F32, -1)->dtypes[0] == F32);
    tni_kernel_set_finish(&set);
    assert_null(atomic_load(&set.table));
    tni_kernel_set_finish(&set);
}

static void the_second_type_variable_is_matched(void **state) {
    tn_plugin table;
    tn_device_ops ops;
    tni_plugin plugin = plugin_of(&table, &ops, NULL);
    tni_kernel_set set;
    assert_int_equal(tni_kernel_set_init(&set, &plugin, NULL), TN_OK);
    assert_true(match(&set, TNI_KERNEL_copy, TN_F32, TN_F64)->run == run_a); /* listed first */
    assert_true(match(&set, TNI_KERNEL_copy, TN_F32, TN_F16)->run == run_b);
    assert_null(match(&set, TNI_KERNEL_copy, TN_F64, TN_F16));
    assert_null(match(&set, TNI_KERNEL_copy, TN_F32, TN_I8));
    tni_kernel_set_finish(&set);
}

static void a_device_is_asked_about_each_record(void **state) {
    tn_plugin table;
    tn_device_ops ops;
    tni_plugin plugin = plugin_of(&table, &ops, no_half);
    tni_kernel_set set;
    assert_int_equal(tni_kernel_set_init(&set, &plugin, NULL), TN_OK);
    assert_null(match(&set, TNI_KERNEL_add, TN_F16, -1));
    assert_non_null(match(&set, TNI_KERNEL_add, TN_F32, -1));
    tni_kernel_set_finish(&set);

    plugin = plugin_of(&table, &ops, fails);
    assert_int_equal(tni_kernel_set_init(&set, &plugin, NULL), TN_ERR_IO);
    assert_null(set.state);
    assert_error(TN_ERR_IO,
                 "plugin com.acme.npu, device_ops.accepts for kernel add: a file could not "
                 "be read or written, or its content is not what it claims");

    /* An old plugin's table ends before the slot. */
    plugin = plugin_of(&table, &ops, fails);
    ops.struct_size = offsetof(tn_device_ops, accepts);
    assert_int_equal(tni_kernel_set_init(&set, &plugin, NULL), TN_OK);
    tni_kernel_set_finish(&set);
}

static void nothing_past_a_record_s_struct_size_is_read(void **state) {
    tn_kernel old = add_floats;
    old.supports = any_size;
    old.struct_size = offsetof(tn_kernel, supports);
    const tn_kernel *const list[] = {&old};
    tn_plugin table;
    tn_device_ops ops;
    tni_plugin plugin = plugin_of(&table, &ops, NULL);
    table.kernels = list;
    table.n_kernels = 1;
    tni_kernel_set set;
    assert_int_equal(tni_kernel_set_init(&set, &plugin, NULL), TN_OK);
    assert_null(match(&set, TNI_KERNEL_add, TN_F32, -1)->supports);
    tni_kernel_set_finish(&set);
    old.struct_size = sizeof old;
    assert_int_equal(tni_kernel_set_init(&set, &plugin, NULL), TN_OK);
    assert_true(match(&set, TNI_KERNEL_add, TN_F32, -1)->supports == any_size);
    tni_kernel_set_finish(&set);
}

static tni_kernel_set make_set(void) {
    tn_plugin table;
    tn_device_ops ops;
    tni_plugin plugin = plugin_of(&table, &ops, NULL);
    tni_kernel_set set;
    assert_int_equal(tni_kernel_set_init(&set, &plugin, NULL), TN_OK);
    return set;
}

static void the_newest_added_record_wins_until_it_is_removed(void **state) {
    tni_kernel_set set = make_set();
    const tni_kernel_table *base = atomic_load(&set.table);
    tn_kernel mine = RECORD(add, MASK(F32), run_b);
    int which[3];
    uint64_t ids[3];
    for (int order = 0; order < 6; order++) {
        for (int i = 0; i < 3; i++) {
            mine.user = &which[i];
            assert_int_equal(add(&set, &mine, &ids[i]), TN_OK);
            assert_ptr_equal(match(&set, TNI_KERNEL_add, TN_F32, -1)->user, &which[i]);
        }
        assert_true(match(&set, TNI_KERNEL_add, TN_F64, -1)->run == run_a);
        assert_string_equal(match(&set, TNI_KERNEL_add, TN_F32, -1)->origin, "app");
        bool there[3] = {true, true, true};
        for (int left = 3, code = order; left; left--) {
            int pick = code % left, newest = -1;
            code /= left;
            for (int i = 0; i < 3; i++) {
                if (there[i] && pick-- == 0) {
                    tni_alloc_fail_at(0);
                    tni_kernel_set_remove(&set, ids[i]);
                    assert_int_equal(tni_alloc_fail_at(0), 0);
                    there[i] = false;
                }
            }
            for (int i = 0; i < 3; i++)
                newest = there[i] ? i : newest;
            const tni_kernel *k = match(&set, TNI_KERNEL_add, TN_F32, -1);
            assert_ptr_equal(k->user, newest < 0 ? NULL : &which[newest]);
        }
        assert_ptr_equal(atomic_load(&set.table), base); /* published again */
    }
    tni_kernel_set_remove(&set, 12345);
    tni_kernel_set_finish(&set);
}

static void removing_never_needs_memory(void **state) {
    enum { N = 24 };
    tni_kernel_set set = make_set();
    uint64_t ids[N], random = 2463534242u;
    char users[2000];
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < N; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            tn_kernel k = i % 3 ? (tn_kernel)RECORD(add, MASK(0), run_a)
                                : (tn_kernel)RECORD(mul, MASK(0), run_b);
            k.dtypes[0] = (random >> 20 & TN_DTYPES_ALL) | F32;
            k.user = &users[round * N + i];
            assert_int_equal(add(&set, &k, &ids[i]), TN_OK);
        }
        tni_alloc_fail_at(0);
        for (int i = 0; i < N; i++)
            tni_kernel_set_remove(&set, ids[(i * 7 + round) % N]);
        assert_int_equal(tni_alloc_fail_at(0), 0);
        assert_true(match(&set, TNI_KERNEL_add, TN_F32, -1)->run == run_a);
        assert_null(match(&set, TNI_KERNEL_mul, TN_I32, -1));
    }
    tni_kernel_set_finish(&set);
}

static void adding_in_a_loop_does_not_grow(void **state) {
    tni_kernel_set set = make_set();
    int64_t before = 0;
    for (int i = 0; i < 2000; i++) {
        tn_kernel mine = RECORD(add, MASK(F32 | F64), run_b), other = RECORD(mul, MASK(F32), run_b);
        uint64_t a, b;
        assert_int_equal(add(&set, &mine, &a), TN_OK);
        assert_int_equal(add(&set, &other, &b), TN_OK);
        tni_kernel_set_remove(&set, a);
        tni_kernel_set_remove(&set, b);
        if (i == 3)
            before = tni_alloc_outstanding();
    }
    assert_int_equal(tni_alloc_outstanding(), before);
    tni_kernel_set_finish(&set);
}

static void wrong_records_are_refused(void **state) {
    tni_kernel_set set = make_set();
    uint64_t id = 5;
    tn_kernel k = add_floats;
    k.run = NULL;
    assert_int_equal(add(&set, &k, &id), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "kernel add: run is NULL");
    k = add_floats;
    k.schema_hash = 1;
    assert_int_equal(add(&set, &k, &id), TN_ERR_ABI);
    char text[256];
    snprintf(text, sizeof text,
             "kernel add: schema_hash is 0x1, but that of its schema here, add(Tensor self, Tensor "
             "other, Scalar alpha) -> Tensor, is 0x%llx",
             (unsigned long long)TN_KERNEL_HASH_add);
    assert_error(TN_ERR_ABI, text);
    k = add_floats;
    k.dtypes[0] = UINT64_C(1) << 40;
    assert_int_equal(add(&set, &k, &id), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "kernel add: dtypes[0] names no dtype");
    tni_kernel_set_finish(&set);
}

static void programs_add_kernel_operators(void **state) {
    assert_int_equal(tni_kernel_op_count(), TNI_KERNEL_COUNT);
    for (uint32_t i = 0; i < TNI_KERNEL_COUNT; i++) {
        assert_int_equal(tni_kernel_op_at(i)->index, i);
        assert_ptr_equal(tni_kernel_op_find(tni_kernel_op_at(i)->name), tni_kernel_op_at(i));
    }
    assert_true(tni_kernel_op_find("add")->small && !tni_kernel_op_find("sub")->small);
    assert_null(tni_kernel_op_find("mylib::swiglu"));

    tni_kernel_set set = make_set();
    const char *schema = "mylib::swiglu(Tensor x,Tensor gate)->Tensor";
    const tni_kernel_op *op = tni_kernel_op_define("mylib::swiglu", schema);
    assert_non_null(op);
    assert_int_equal(op->index, TNI_KERNEL_COUNT);
    assert_string_equal(op->schema, "mylib::swiglu(Tensor x, Tensor gate) -> Tensor");
    assert_ptr_equal(tni_kernel_op_define("mylib::swiglu", schema), op);
    assert_ptr_equal(tni_kernel_op_find("mylib::swiglu"), op);
    assert_ptr_equal(tni_kernel_op_at(op->index), op);
    assert_null(tni_kernel_op_at(op->index + 1));
    assert_null(tni_kernel_op_define("exp", "exp(Tensor x) -> Tensor"));
    assert_error(TN_ERR_INVALID_ARGUMENT,
                 "kernel operator exp exists with the schema exp(Tensor self) "
                 "-> Tensor, not exp(Tensor x) -> Tensor");
    assert_null(tni_kernel_op_define("other", schema));
    assert_error(TN_ERR_INVALID_ARGUMENT,
                 "kernel operator other: the schema is of 'mylib::swiglu': "
                 "mylib::swiglu(Tensor x, Tensor gate) -> Tensor");
    assert_ptr_equal(tni_kernel_op_define("exp", "exp(Tensor self) -> Tensor"),
                     tni_kernel_op_find("exp"));

    /* A table made before has no row for it; adding a kernel makes one that has. */
    assert_null(match(&set, op->index, TN_F32, -1));
    tn_kernel k = {.struct_size = sizeof k,
                   .op = "mylib::swiglu",
                   .schema_hash = op->hash,
                   .dtypes = {F32},
                   .run = run_a};
    uint64_t id;
    assert_int_equal(add(&set, &k, &id), TN_OK);
    assert_true(match(&set, op->index, TN_F32, -1)->run == run_a);
    assert_true(match(&set, TNI_KERNEL_add, TN_F32, -1)->run == run_a);
    tni_kernel_set_remove(&set, id);
    assert_null(match(&set, op->index, TN_F32, -1));

    /* Another schema under the name, as after the operator was defined anew. */
    const char *short_schema = "mylib::swiglu(Tensor x) -> Tensor";
    const tni_kernel_op *other = tni_kernel_op_define("mylib::swiglu", short_schema);
    assert_int_equal(other->index, op->index + 1);
    assert_ptr_equal(tni_kernel_op_define("mylib::swiglu", schema), op);
    assert_ptr_equal(tni_kernel_op_added("mylib::swiglu", short_schema), other);
    tni_kernel_set_finish(&set);
}

static void failing_allocations_leave_the_table_alone(void **state) {
    tn_plugin table;
    tn_device_ops ops;
    tni_plugin plugin = plugin_of(&table, &ops, NULL);
    tni_kernel_set set;
    for (uint64_t n = 1;; n++) {
        int64_t before = tni_alloc_outstanding();
        tni_alloc_fail_at(n);
        tn_status status = tni_kernel_set_init(&set, &plugin, NULL);
        tni_alloc_fail_at(0);
        if (status == TN_OK)
            break;
        assert_int_equal(status, TN_ERR_OUT_OF_MEMORY);
        tn_error_clear();
        assert_null(set.state);
        assert_int_equal(tni_alloc_outstanding(), before);
    }
    const tni_kernel_op *op = NULL;
    for (uint64_t n = 1; !op; n++) {
        tni_alloc_fail_at(n);
        op = tni_kernel_op_define("mylib::f", "mylib::f(Tensor x) -> Tensor");
        tni_alloc_fail_at(0);
        assert_int_equal(tn_error_status(), op ? TN_OK : TN_ERR_OUT_OF_MEMORY);
        assert_int_equal(tni_kernel_op_count(), TNI_KERNEL_COUNT + (op != NULL));
        tn_error_clear();
    }
    const tni_kernel_table *published = atomic_load(&set.table);
    tn_kernel mine = RECORD(add, MASK(F32), run_b);
    uint64_t first, id;
    for (uint64_t n = 1;; n++) {
        tni_alloc_fail_at(n);
        tn_status status = add(&set, &mine, &first);
        tni_alloc_fail_at(0);
        if (status == TN_OK)
            break;
        assert_int_equal(status, TN_ERR_OUT_OF_MEMORY);
        assert_int_equal(first, 0);
        tn_error_clear();
        assert_ptr_equal(atomic_load(&set.table), published);
    }
    mine.user = &mine;
    assert_int_equal(add(&set, &mine, &id), TN_OK);
    tni_kernel_set_remove(&set, first);
    assert_ptr_equal(match(&set, TNI_KERNEL_add, TN_F32, -1)->user, &mine);
    tni_kernel_set_finish(&set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_plugin_s_records_fill_the_rows),
        TEST(the_second_type_variable_is_matched),
        TEST(a_device_is_asked_about_each_record),
        TEST(nothing_past_a_record_s_struct_size_is_read),
        TEST(the_newest_added_record_wins_until_it_is_removed),
        TEST(removing_never_needs_memory),
        TEST(adding_in_a_loop_does_not_grow),
        TEST(wrong_records_are_refused),
        TEST(programs_add_kernel_operators),
        TEST(failing_allocations_leave_the_table_alone),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
