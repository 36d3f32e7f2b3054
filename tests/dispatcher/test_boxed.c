/* Operators by name, and the boxed call: checks, defaults, conversions, failures. */
#include "tests/dispatcher/dispatch_test.h"

#include <stdio.h>

static tn_cell seen[TNI_MAX_ARGS];
static int64_t seen_ints[TNI_MAX_INTS];
static int n_calls;

static tn_status record(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                        void *user) {
    memcpy(seen, args, tn_op_n_args(op) * sizeof *args);
    for (uint32_t i = 0; i < tn_op_n_args(op); i++) {
        if (args[i].tag == TN_CELL_INTS && args[i].n)
            memcpy(seen_ints, args[i].v.ints, args[i].n * sizeof(int64_t));
    }
    n_calls++;
    return TN_OK;
}

static tn_status fail_after_writing(const tn_op *op, tn_keyset keys, const tn_cell *args,
                                    tn_cell *rets, void *user) {
    assert_int_equal(rets[0].tag, TN_CELL_NONE);
    rets[0] = int_cell(1);
    return tn_fail(TN_ERR_SHAPE, "sizes differ");
}

static tn_op *define(const char *schema, tn_handler_fn fn) {
    tn_op *op = tn_op_define(schema, "test", NULL);
    assert_non_null(op);
    assert_non_null(tn_handler_register(op, TN_KEY_BACKEND, NULL, fn, NULL, "test"));
    n_calls = 0;
    return op;
}

static void what_is_left_out_gets_its_default(void **state) {
    tn_op *op = define("f(int a, int[2] k=[3, 4], *, float p=0.5, Tensor? t=None) -> ()", record);
    tn_cell args[] = {int_cell(1), {.tag = TN_CELL_NONE}, float_cell(2)};
    assert_int_equal(tn_op_call(op, args, 1, NULL), TN_OK);
    assert_int_equal(seen_ints[1], 4);
    assert_true(seen[2].tag == TN_CELL_F64 && seen[2].v.f64 == 0.5);
    assert_int_equal(seen[3].tag, TN_CELL_NONE);
    assert_int_equal(tn_op_call(op, args, 3, NULL), TN_OK);
    assert_int_equal(seen[1].tag, TN_CELL_INTS);
    assert_true(seen[2].v.f64 == 2);
}

static void ints_become_floats_and_lists(void **state) {
    tn_op *op = define("f(float p, int[3] k, Scalar s) -> ()", record);
    tn_cell args[] = {int_cell(2), int_cell(7), int_cell(5)};
    assert_int_equal(tn_op_call(op, args, 3, NULL), TN_OK);
    assert_true(seen[0].tag == TN_CELL_F64 && seen[0].v.f64 == 2.0);
    assert_true(seen[1].tag == TN_CELL_INTS && seen[1].n == 3 && seen_ints[2] == 7);
    assert_true(seen[2].tag == TN_CELL_I64 && seen[2].v.i64 == 5);
}

static void wrong_calls_name_operator_and_argument(void **state) {
    tn_op *op = define("mylib::f(Tensor a, Tensor? t, int b=1) -> int", record);
    tni_tensor_head t = tensor_on("npu", 0);
    tn_cell args[] = {tensor_cell(&t), {.tag = TN_CELL_NONE}, float_cell(1), int_cell(1)}, ret;
    assert_int_equal(tn_op_call(op, args, 4, &ret), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "mylib::f: takes 3 arguments, got 4: mylib::f(Tensor a, "
                                          "Tensor? t, int b=1) -> int");
    assert_int_equal(tn_op_call(op, args, 1, &ret), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "mylib::f: argument 2 't' is missing: mylib::f(Tensor a, "
                                          "Tensor? t, int b=1) -> int");
    assert_int_equal(tn_op_call(op, args, 3, &ret), TN_ERR_INVALID_ARGUMENT);
    assert_string_equal(tn_error_operator(), "mylib::f");
    assert_error(TN_ERR_INVALID_ARGUMENT, "mylib::f: argument 3 'b': expected int, got float");
    assert_int_equal(tn_op_call(op, NULL, 1, &ret), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "mylib::f: the array of arguments is NULL");
    assert_int_equal(tn_op_call(op, args, 2, NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "mylib::f: the array of returns is NULL");
    assert_int_equal(tn_op_call(NULL, args, 2, &ret), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_op_call: the operator is NULL");
    assert_int_equal(n_calls, 0);
    assert_int_equal(tn_op_call(op, args, 2, &ret), TN_OK);
    assert_int_equal(n_calls, 1);
}

static void returns_are_none_after_a_failure(void **state) {
    tn_op *op = define("f() -> (int, int)", fail_after_writing);
    tn_cell rets[2] = {int_cell(5), int_cell(5)};
    assert_int_equal(tn_op_call(op, NULL, 0, rets), TN_ERR_SHAPE);
    assert_int_equal(rets[0].tag, TN_CELL_NONE);
    assert_int_equal(rets[1].tag, TN_CELL_NONE);
    assert_string_equal(tn_error_operator(), "f");
    tn_error_clear();
    tn_fail(TN_ERR_IO, "elsewhere"); /* the operator of later failures is not f */
    assert_string_equal(tn_error_operator(), "");
    tn_error_clear();
}

static void a_failed_tensor_passes_through(void **state) {
    tn_op *op = define("f(Tensor x) -> int", record);
    tn_cell arg = {.tag = TN_CELL_TENSOR}, ret = int_cell(1);
    tn_fail(TN_ERR_SHAPE, "the first failure");
    assert_int_equal(tn_op_call(op, &arg, 1, &ret), TN_ERR_SHAPE);
    assert_int_equal(ret.tag, TN_CELL_NONE);
    assert_int_equal(tn_error_suppressed(), 0);
    assert_error(TN_ERR_SHAPE, "the first failure");
    assert_int_equal(tn_op_call(op, &arg, 1, &ret), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT,
                 "f: argument 1 'x': the tensor is NULL: the call that should "
                 "have made it failed");
    assert_int_equal(n_calls, 0);
}

/* ---- the table --------------------------------------------------------------------------- */

static void operators_are_found_by_name(void **state) {
    tn_op *add = tn_op_define("add.Tensor(Tensor a,Tensor b) -> Tensor", "test", NULL);
    tn_op_define("add.out(Tensor a) -> Tensor", "test", NULL);
    tn_op *custom = tn_op_define("mylib::add(Tensor a) -> (Tensor, int)", "test", NULL);
    assert_ptr_equal(tn_op_find("add.Tensor"), add);
    assert_ptr_equal(tn_op_find("tenon::add.Tensor"), add);
    assert_ptr_equal(tn_op_find("mylib::add"), custom);
    assert_string_equal(tn_op_name(custom), "mylib::add");
    assert_string_equal(tn_op_schema(add), "add.Tensor(Tensor a, Tensor b) -> Tensor");
    assert_int_equal(tn_op_n_args(add), 2);
    assert_int_equal(tn_op_n_rets(custom), 2);
    assert_null(tn_op_find("add"));
    assert_error(TN_ERR_NOT_FOUND, "there is no operator 'add'; there is add.Tensor, add.out");
    assert_null(tn_op_find("sub"));
    assert_error(TN_ERR_NOT_FOUND, "there is no operator 'sub'");
    assert_null(tn_op_find(NULL));
    tn_error_clear();
    assert_null(tni_op_lookup("add"));
    assert_int_equal(tn_error_status(), TN_OK);
    tn_op *plain = tn_op_define("tenon::mul(Tensor a) -> Tensor", "test", NULL);
    assert_string_equal(tn_op_name(plain), "mul");
    assert_int_equal(plain->index, 3);
    assert_int_equal(tni_op_count(), 4);
}

static void a_name_is_defined_once(void **state) {
    assert_non_null(tn_op_define("f(Tensor x) -> Tensor", "mylib 1.2", NULL));
    tn_registration *r = (tn_registration *)&r;
    assert_null(tn_op_define("f(int x) -> Tensor", "other", &r));
    assert_null(r);
    assert_error(TN_ERR_INVALID_ARGUMENT,
                 "operator f is already defined, by mylib 1.2: f(Tensor x) -> Tensor");
    assert_null(tn_op_define("f(int x -> Tensor", "other", &r));
    assert_int_equal(tn_error_status(), TN_ERR_INVALID_ARGUMENT);
    tn_error_clear();
}

static void a_dropped_operator_is_gone_but_its_calls_fail_cleanly(void **state) {
    tn_registration *definition, *handler;
    tni_tensor_head t = tensor_on("npu", 0);
    tn_op *op = tn_op_define("f(Tensor x) -> int", "one", &definition);
    handler = tn_handler_register(NULL, TN_KEY_BACKEND, NULL, answer, number(4), "test");
    assert_int_equal(who_answers(op, &t), 4);
    tn_registration_drop(definition);
    assert_null(tni_op_lookup("f"));
    tn_cell arg = tensor_cell(&t), ret;
    assert_int_equal(tn_op_call(op, &arg, 1, &ret), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "f: the operator was unregistered");
    assert_null(tn_handler_register(op, TN_KEY_BACKEND, NULL, answer, NULL, "test"));
    assert_error(TN_ERR_STATE, "tn_handler_register: operator f was unregistered");
    tn_registration_drop(handler);

    /* The same schema revives it; another schema makes another operator of the name. */
    assert_ptr_equal(tn_op_define("f(Tensor x)->int", "two", &definition), op);
    assert_string_equal(tni_op_origin(op), "two");
    assert_int_equal(who_answers(op, &t), -1);
    tn_registration_drop(definition);
    tn_op *other = tn_op_define("f(int x) -> int", "three", &definition);
    assert_ptr_not_equal(other, op);
    assert_ptr_equal(tn_op_find("f"), other);
}

static void handlers_outlive_a_definition_but_are_not_inherited(void **state) {
    tn_registration *definition;
    tn_op *op = tn_op_define("f(Tensor x) -> int", "one", &definition);
    tn_registration *handler =
        tn_handler_register(op, TN_KEY_BACKEND, NULL, answer, number(4), "test");
    tn_registration_drop(definition);
    tn_op *next = tn_op_define("f(Tensor x) -> int", "two", NULL);
    tni_tensor_head t = tensor_on("npu", 0);
    assert_ptr_not_equal(next, op);
    assert_int_equal(who_answers(next, &t), -1);
    tn_registration_drop(handler);
    assert_int_equal(who_answers(op, &t), -1);
}

static void print_name(const tn_op *op, void *user) {
    strcat(strcat(user, tn_op_name(op)), " ");
}

static void operators_are_listed_in_order_and_finish_starts_anew(void **state) {
    tn_registration *definition;
    char names[64] = "";
    int info = 0;
    assert_ptr_equal(tni_op_define("z() -> ()", "core", &info)->info, &info);
    tn_op_define("y() -> ()", "test", &definition);
    tn_op_define("a() -> ()", "test", NULL);
    tn_registration_drop(definition);
    tni_op_for_each(print_name, names);
    assert_string_equal(names, "z a ");
    tni_registry_finish();
    assert_null(tni_op_lookup("z"));
    assert_int_equal(tni_op_count(), 0);
    tn_op *op = tni_op_define("z(Tensor x) -> int", "core", NULL);
    assert_int_equal(op->index, 0);
    tni_tensor_head t = tensor_on("npu", 0);
    assert_int_equal(who_answers(op, &t), -1);
    tn_handler_register(NULL, TN_KEY_BACKEND, NULL, answer, number(1), "core");
    assert_int_equal(who_answers(op, &t), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_left_out_gets_its_default),
        TEST(ints_become_floats_and_lists),
        TEST(wrong_calls_name_operator_and_argument),
        TEST(returns_are_none_after_a_failure),
        TEST(a_failed_tensor_passes_through),
        TEST(operators_are_found_by_name),
        TEST(a_name_is_defined_once),
        TEST(a_dropped_operator_is_gone_but_its_calls_fail_cleanly),
        TEST(handlers_outlive_a_definition_but_are_not_inherited),
        TEST(operators_are_listed_in_order_and_finish_starts_anew),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
