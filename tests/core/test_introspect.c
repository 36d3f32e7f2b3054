/* What the library tells of its operators and dtypes, from which bindings are made. */
#include "tests/core/ops_test.h"

#include "core/call/op_info.h"

typedef struct seen {
    uint32_t n_ops, n_forms[3], n_written_results;
} seen;

static void check_op(const tn_op_info *op, void *user) {
    seen *s = user;
    const tni_op_info *info = tni_info(tn_op_find(op->name));
    if (!info)
        return;
    static const char *const forms[] = {"functional", "inplace", "out"};
    assert_string_equal(op->form, forms[info->form]);
    assert_string_equal(op->function, info->call);
    assert_int_equal(op->n_args, tn_op_n_args(tn_op_find(op->name)));
    assert_int_equal(op->n_rets, tn_op_n_rets(tn_op_find(op->name)));
    for (uint32_t i = 0; i < op->n_args; i++) {
        const tn_arg_info *arg = &op->args[i];
        assert_true(arg->name[0] && strstr(op->schema, arg->name));
        assert_int_equal(arg->is_written, info->written >> i & 1);
        assert_int_equal(arg->alias, -1);
        if (arg->has_default && arg->fallback.tag == TN_CELL_NONE)
            assert_true(arg->optional);
    }
    for (uint32_t i = 0; i < op->n_rets; i++) {
        if (!op->rets[i].is_written)
            continue;
        assert_int_equal(op->rets[i].alias, info->form == TNI_FORM_INPLACE ? 0 : op->n_args - 1);
        s->n_written_results++;
    }
    s->n_ops++;
    s->n_forms[info->form]++;
}

static void operators_say_how_they_are_called(void **state) {
    seen s = {0};
    assert_ok(tn_op_list(check_op, &s));
    assert_true(s.n_ops > 200);
    assert_true(s.n_forms[0] > 100 && s.n_forms[1] > 30 && s.n_forms[2] > 30);
    assert_true(s.n_written_results > 60);
}

static void check_custom(const tn_op_info *op, void *user) {
    assert_string_equal(op->function, "");
    assert_string_equal(op->form, "out");
    assert_int_equal(op->n_args, 5);
    assert_string_equal(op->args[1].type, "Tensor?[]");
    assert_string_equal(op->args[2].type, "int[]");
    assert_int_equal(op->args[2].n_ints, 2);
    assert_int_equal(op->args[2].fallback.v.ints[1], 3);
    assert_string_equal(op->args[3].type, "float");
    assert_true(isinf(op->args[3].fallback.v.f64));
    assert_true(op->args[4].keyword_only && op->args[4].is_written);
    assert_int_equal(op->n_rets, 2);
    assert_string_equal(op->rets[0].name, "result");
    assert_int_equal(op->rets[0].alias, 4);
    assert_int_equal(op->rets[1].alias, -1);
    *(bool *)user = true;
}

static void operators_of_a_program_say_it_too(void **state) {
    tn_registration *definition;
    assert_non_null(
        tn_op_define("mylib::f(Tensor x, Tensor?[] more, int[2] n=3, float limit=inf, *,"
                     " Tensor(a!) out) -> (Tensor(a!) result, Tensor other)",
                     "mylib 1.0", &definition));
    bool told = false;
    assert_ok(tn_op_describe("mylib::f", check_custom, &told));
    assert_true(told);
    tn_registration_drop(definition);
}

static void check_dtype(const tn_dtype_info *info, void *user) {
    tn_dtype *next = user;
    while (tn_dtype_size(*next) == 0)
        ++*next;
    assert_int_equal(info->dtype, (*next)++);
    assert_string_equal(info->name, tn_dtype_name(info->dtype));
    assert_int_equal(info->bytes, tn_dtype_size(info->dtype));
    assert_true(info->kind[0] ==
                (info->name[0] == 'b' && info->name[1] == 'f' ? 'f' : info->name[0]));
}

static void dtypes_can_be_listed(void **state) {
    tn_dtype next = 0;
    tn_dtype_list(check_dtype, &next);
    assert_int_equal(next, TN_DTYPE_END);
    assert_string_equal(tn_dtype_name(TN_DTYPE_END), "?");
}

static void ignore(const tn_op_info *info, void *user) {
    ++*(int *)user;
}

static void listing_survives_failing_allocations(void **state) {
    int n_told = 0;
    assert_ok(tn_op_list(ignore, &n_told));
    int all = n_told;
    n_told = 0;
    tni_alloc_fail_at(1);
    assert_int_equal(tn_op_list(ignore, &n_told), TN_ERR_OUT_OF_MEMORY);
    assert_error(TN_ERR_OUT_OF_MEMORY, "operators", NULL);
    assert_int_equal(n_told, 0);
    assert_ok(tn_op_list(ignore, &n_told));
    assert_int_equal(n_told, all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(operators_say_how_they_are_called),
        TEST(operators_of_a_program_say_it_too),
        TEST(dtypes_can_be_listed),
        TEST(listing_survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
