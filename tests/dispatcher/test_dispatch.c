/* Who answers a call: keys, defaults, backends, the order of registrations, and their listing. */
#include "tests/dispatcher/dispatch_test.h"

#include <stdio.h>

static tn_op *define(const char *schema) {
    tn_op *op = tn_op_define(schema, "test", NULL);
    if (!op)
        fail_msg("%s", tn_error_message());
    return op;
}

static tn_registration *hang(const tn_op *op, tn_key key, const char *device_type, intptr_t n) {
    tn_registration *r = tn_handler_register(op, key, device_type, answer, number(n), "test");
    assert_non_null(r);
    return r;
}

static void the_highest_key_that_applies_answers(void **state) {
    tn_op *op = define("f(Tensor x) -> int");
    for (int key = 0; key < TN_KEY_PROFILE; key++)
        hang(op, (tn_key)key, NULL, key);
    tni_tensor_head t = tensor_on("npu", 0);
    assert_int_equal(who_answers(op, &t), TN_KEY_BACKEND);
    for (int key = 1; key < TN_KEY_PROFILE; key++) {
        t.keys |= TN_KEY_BIT(key);
        assert_int_equal(who_answers(op, &t), key);
    }
}

static void every_call_passes_a_profile_handler(void **state) {
    tn_op *op = define("f(Tensor x) -> int");
    hang(op, TN_KEY_BACKEND, NULL, 0);
    tni_tensor_head t = tensor_on("npu", 0);
    assert_int_equal(who_answers(op, &t), 0);
    tn_registration *r = hang(op, TN_KEY_PROFILE, NULL, 5);
    assert_int_equal(who_answers(op, &t), 5);
    tn_registration_drop(r);
    assert_int_equal(who_answers(op, &t), 0);
}

static void keys_come_from_all_tensors_and_lists(void **state) {
    tn_op *op = define("f(Tensor[] l, int i, Tensor? x, Tensor y) -> int");
    hang(op, TN_KEY_BACKEND, NULL, 0);
    hang(op, TN_KEY_AUTOGRAD, NULL, 2);
    hang(op, TN_KEY_CAPTURE, NULL, 4);
    tni_tensor_head plain = tensor_on("npu", 0);
    tni_tensor_head grad = tensor_on("npu", TN_KEY_BIT(TN_KEY_AUTOGRAD));
    tni_tensor_head profiled = tensor_on("npu", TN_KEY_BIT(TN_KEY_CAPTURE));
    const void *list[] = {&plain, &profiled};
    tn_cell args[] = {{.tag = TN_CELL_TENSORS, .n = 1, .v.pointer = list},
                      int_cell(3),
                      {.tag = TN_CELL_NONE},
                      tensor_cell(&plain)};
    tn_cell ret;
    assert_int_equal(tn_op_call(op, args, 4, &ret), TN_OK);
    assert_int_equal(ret.v.i64, 0);
    args[2] = tensor_cell(&grad);
    assert_int_equal(tn_op_call(op, args, 4, &ret), TN_OK);
    assert_int_equal(ret.v.i64, 2);
    args[0].n = 2;
    assert_int_equal(tn_op_call(op, args, 4, &ret), TN_OK);
    assert_int_equal(ret.v.i64, 4);
}

static void a_thread_includes_and_excludes_keys(void **state) {
    tn_op *op = define("f(Tensor x) -> int");
    hang(op, TN_KEY_BACKEND, NULL, 0);
    hang(op, TN_KEY_AUTOGRAD, NULL, 2);
    hang(op, TN_KEY_CAPTURE, NULL, 4);
    tni_tensor_head t = tensor_on("npu", TN_KEY_BIT(TN_KEY_AUTOGRAD));
    tn_thread_keys_set((tn_thread_keys){TN_KEY_BIT(TN_KEY_CAPTURE), 0});
    assert_int_equal(tn_thread_keys_get().included, TN_KEY_BIT(TN_KEY_CAPTURE));
    assert_int_equal(who_answers(op, &t), 4);
    tn_thread_keys_set((tn_thread_keys){0, TN_KEY_BIT(TN_KEY_AUTOGRAD)});
    assert_int_equal(who_answers(op, &t), 0);
    tn_thread_keys_set((tn_thread_keys){TN_KEY_BIT(TN_KEY_CAPTURE), TN_KEY_BIT(TN_KEY_CAPTURE)});
    assert_int_equal(who_answers(op, &t), 2);
}

static void one_operator_s_handler_wins_over_the_default(void **state) {
    tn_op *before = define("before(Tensor x) -> int");
    tni_tensor_head t = tensor_on("npu", 0);
    hang(before, TN_KEY_BACKEND, NULL, 7);
    hang(NULL, TN_KEY_BACKEND, NULL, 1);
    tn_op *after = define("after(Tensor x) -> int"); /* later ones have the default too */
    assert_int_equal(who_answers(before, &t), 7);
    assert_int_equal(who_answers(after, &t), 1);
}

static void a_null_handler_falls_through(void **state) {
    tn_op *op = define("f(Tensor x) -> int");
    tni_tensor_head t = tensor_on("npu", TN_KEY_BIT(TN_KEY_AUTOGRAD));
    hang(op, TN_KEY_BACKEND, NULL, 0);
    hang(NULL, TN_KEY_AUTOGRAD, NULL, 2);
    assert_int_equal(who_answers(op, &t), 2);
    tn_registration *hole = tn_handler_register(op, TN_KEY_AUTOGRAD, NULL, NULL, number(9), "test");
    assert_int_equal(who_answers(op, &t), 0);
    tn_registration_drop(hole);
    hole = tn_handler_register(op, TN_KEY_AUTOGRAD, "npu", NULL, NULL, "test");
    assert_int_equal(who_answers(op, &t), 0);
    t = tensor_on("cpu", TN_KEY_BIT(TN_KEY_AUTOGRAD));
    assert_int_equal(who_answers(op, &t), 2);
}

static tn_status see_keys(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                          void *user) {
    *(uint32_t *)user = keys.keys;
    return tn_op_redispatch(op, tn_keyset_below(keys, TN_KEY_AUTOGRAD), args, rets);
}

static void a_handler_goes_on_below_its_key(void **state) {
    tn_op *op = define("f(Tensor x) -> int");
    uint32_t seen = 0;
    tni_tensor_head t = tensor_on("npu", TN_KEY_BIT(TN_KEY_AUTOGRAD) | TN_KEY_BIT(TN_KEY_PROFILE));
    hang(op, TN_KEY_BACKEND, NULL, 0);
    assert_non_null(tn_handler_register(op, TN_KEY_AUTOGRAD, NULL, see_keys, &seen, "test"));
    assert_int_equal(who_answers(op, &t), 0);
    /* Profile fell through, so it is not among what remains. */
    assert_int_equal(seen, TN_KEY_BIT(TN_KEY_AUTOGRAD) | TN_KEY_BIT(TN_KEY_BACKEND));
}

static void a_backend_s_handler_holds_for_its_device_type(void **state) {
    tn_op *op = define("f(Tensor x) -> int");
    tni_tensor_head npu = tensor_on("npu", 0), gpu = tensor_on("gpu", 0), cpu = tensor_on("cpu", 0);
    hang(NULL, TN_KEY_BACKEND, "gpu", 3);
    hang(op, TN_KEY_BACKEND, "npu", 2);
    assert_int_equal(who_answers(op, &npu), 2);
    assert_int_equal(who_answers(op, &gpu), 3);
    assert_int_equal(who_answers(op, &cpu), -1);
    hang(NULL, TN_KEY_BACKEND, NULL, 1);
    assert_int_equal(who_answers(op, &npu), 2);
    assert_int_equal(who_answers(op, &gpu), 1); /* the newest wins */
    assert_int_equal(who_answers(op, &cpu), 1);
}

static void a_cpu_operand_leaves_the_call_to_the_other_device(void **state) {
    tn_op *op = define("f(Tensor x, Tensor y) -> int");
    hang(op, TN_KEY_BACKEND, "npu", 2);
    hang(op, TN_KEY_BACKEND, "cpu", 1);
    tni_tensor_head npu = tensor_on("npu", 0), cpu = tensor_on("cpu", 0);
    tn_cell args[] = {tensor_cell(&cpu), tensor_cell(&npu)}, ret;
    assert_int_equal(tn_op_call(op, args, 2, &ret), TN_OK);
    assert_int_equal(ret.v.i64, 2);
    args[1] = args[0];
    assert_int_equal(tn_op_call(op, args, 2, &ret), TN_OK);
    assert_int_equal(ret.v.i64, 1);
}

static void a_device_argument_chooses_the_backend(void **state) {
    tn_op *op = define("f(int n, *, Device? device=None) -> int");
    hang(op, TN_KEY_BACKEND, NULL, 0);
    hang(op, TN_KEY_BACKEND, "npu", 2);
    tn_cell args[] = {int_cell(1), int_cell((int64_t)(tni_backend_id("npu") + 1) << 32)}, ret;
    assert_int_equal(tn_op_call(op, args, 2, &ret), TN_OK);
    assert_int_equal(ret.v.i64, 2);
    assert_int_equal(tn_op_call(op, args, 1, &ret), TN_OK);
    assert_int_equal(ret.v.i64, 0);
}

static void an_unhandled_call_names_operator_keys_and_backends(void **state) {
    tn_op *op = define("add.Tensor(Tensor self, Tensor other) -> Tensor");
    tni_tensor_head npu = tensor_on("npu", TN_KEY_BIT(TN_KEY_AUTOGRAD));
    tni_tensor_head cpu = tensor_on("cpu", 0);
    tn_cell args[] = {tensor_cell(&npu), tensor_cell(&npu)}, ret;
#define ADVICE "; register one with tn_handler_register, or use a device that has the operator"
    assert_int_equal(tn_op_call(op, args, 2, &ret), TN_ERR_UNSUPPORTED);
    assert_string_equal(tn_error_operator(), "add.Tensor");
    assert_error(TN_ERR_UNSUPPORTED,
                 "add.Tensor: no handler for keys {Autograd, Backend} on device type 'npu'" ADVICE);
    hang(op, TN_KEY_BACKEND, "gpu", 1);
    args[1] = tensor_cell(&cpu);
    assert_int_equal(tn_op_call(op, args, 2, &ret), TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED,
                 "add.Tensor: no handler for keys {Autograd, Backend} on device "
                 "types 'cpu', 'npu'" ADVICE);
    tn_op *factory = define("empty(int n) -> Tensor");
    args[0] = int_cell(1);
    assert_int_equal(tn_op_call(factory, args, 1, &ret), TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED, "empty: no handler for keys {Backend} on no device" ADVICE);
}

/* ---- dropping ---------------------------------------------------------------------------- */

/* The rule again, written down as simply as possible. */
typedef struct hung {
    tn_registration *r; /* NULL: dropped */
    int op;             /* -1: all */
    int backend;        /* -1: every one */
    int answer;
} hung;

static int expected_answer(const hung *h, int n, int op, int backend) {
    for (int level = 0; level < 2; level++) {
        for (int i = n - 1; i >= 0; i--) {
            if (h[i].r && h[i].op == (level ? -1 : op) &&
                (h[i].backend < 0 || h[i].backend == backend))
                return h[i].answer;
        }
    }
    return -1;
}

static const char *const types[] = {"cpu", "npu", "gpu"};

static void assert_answers(tn_op *const *ops, int n_ops, const hung *h, int n) {
    for (int op = 0; op < n_ops; op++) {
        for (int b = 0; b < (int)N_OF(types); b++) {
            tni_tensor_head t = tensor_on(types[b], 0);
            assert_int_equal(who_answers(ops[op], &t), expected_answer(h, n, op, b));
        }
    }
}

static void drop_quietly(hung *h) {
    tni_alloc_fail_at(0);
    tn_registration_drop(h->r);
    assert_int_equal(tni_alloc_fail_at(0), 0); /* dropping asks for no memory */
    h->r = NULL;
}

static void dropping_restores_in_every_order(void **state) {
    enum { N = 6 };
    static const hung forms[N] = {{.op = -1, .backend = -1}, {.op = 0, .backend = -1},
                                  {.op = -1, .backend = 1},  {.op = 0, .backend = 1},
                                  {.op = -1, .backend = -1}, {.op = 0, .backend = 2}};
    tn_op *ops[] = {define("f(Tensor x) -> int"), define("g(Tensor x) -> int")};
    for (int order = 0; order < 720; order++) {
        hung h[N];
        for (int i = 0; i < N; i++) {
            h[i] = forms[i];
            h[i].answer = 100 + i;
            h[i].r = hang(h[i].op < 0 ? NULL : ops[h[i].op], TN_KEY_BACKEND,
                          h[i].backend < 0 ? NULL : types[h[i].backend], h[i].answer);
            assert_answers(ops, 2, h, i + 1);
        }
        for (int left = N, code = order; left; left--) {
            int pick = code % left;
            code /= left;
            for (int i = 0; i < N; i++) {
                if (h[i].r && pick-- == 0) {
                    drop_quietly(&h[i]);
                    break;
                }
            }
            assert_answers(ops, 2, h, N);
        }
    }
}

/* Many operators and registrations, dropped and hung at random, new operators in between: rows set
 * aside must always suffice. */
static void dropping_never_needs_memory(void **state) {
    enum { N = 40, MAX_OPS = 12 };
    tn_op *ops[MAX_OPS];
    hung h[N];
    int n_ops = 0;
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 60; round++) {
        if (n_ops < MAX_OPS && round % 5 == 0) {
            char schema[32];
            snprintf(schema, sizeof schema, "f%d(Tensor x) -> int", n_ops);
            ops[n_ops++] = define(schema);
        }
        for (int i = 0; i < N; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            int kind = (int)(random >> 20 & 7);
            h[i].op = kind < 3 ? -1 : (int)(random >> 30) % n_ops;
            h[i].op = h[i].op < 0 ? -1 : h[i].op;
            h[i].backend = (int)(random >> 10 & 3) - 1;
            h[i].answer = 1000 * round + i; /* so that every state is new */
            h[i].r = hang(h[i].op < 0 ? NULL : ops[h[i].op], TN_KEY_BACKEND,
                          h[i].backend < 0 ? NULL : types[h[i].backend], h[i].answer);
        }
        assert_answers(ops, n_ops, h, N);
        for (int left = N; left; left--) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            int pick = (int)(random >> 33) % left;
            for (int i = 0; i < N; i++) {
                if (h[i].r && pick-- == 0) {
                    drop_quietly(&h[i]);
                    break;
                }
            }
            if (left % 8 == 0)
                assert_answers(ops, n_ops, h, N);
        }
    }
}

/* ---- provenance -------------------------------------------------------------------------- */

static void print_line(const tni_provenance *line, void *user) {
    char *text = user;
    if (line->key > TN_KEY_INPLACE_OR_VIEW)
        return;
    size_t n = strlen(text);
    snprintf(text + n, 1024 - n, "%d %s '%s' %s%s\n", (int)line->key,
             line->device_type ? line->device_type : "*", line->origin, line->why,
             line->active ? "" : " (hidden)");
}

static void provenance_lists_every_entry_and_why(void **state) {
    tn_op *op = define("f(Tensor x) -> int");
    char origin[] = "vendor 1.0";
    tn_handler_register(NULL, TN_KEY_BACKEND, NULL, answer, NULL, "tenon core");
    tn_handler_register(NULL, TN_KEY_BACKEND, "npu", answer, NULL, origin);
    memset(origin, 'x', sizeof origin - 1); /* it was copied */
    tn_handler_register(op, TN_KEY_BACKEND, "gpu", answer, NULL, NULL);
    tn_registration *own = tn_handler_register(op, TN_KEY_BACKEND, "gpu", NULL, NULL, "app");
    char text[1024] = "";
    tni_op_provenance(op, print_line, text);
    assert_string_equal(text, "1 * '' falls through\n"
                              "0 gpu 'app' falls through\n"
                              "0 gpu 'unnamed' for this operator (hidden)\n"
                              "0 npu 'vendor 1.0' default of the key\n"
                              "0 * 'tenon core' default of the key\n");
    tn_registration_drop(own);
    tn_handler_register(op, TN_KEY_BACKEND, NULL, answer, NULL, "app 2");
    text[0] = 0;
    tni_op_provenance(op, print_line, text);
    assert_string_equal(text, "1 * '' falls through\n"
                              "0 * 'app 2' for this operator\n"
                              "0 gpu 'unnamed' for this operator (hidden)\n"
                              "0 npu 'vendor 1.0' default of the key (hidden)\n"
                              "0 * 'tenon core' default of the key (hidden)\n");
    assert_string_equal(tni_op_origin(op), "test");
}

static void wrong_registrations_are_refused(void **state) {
    tn_op *op = define("f(Tensor x) -> int");
    assert_null(tn_handler_register(op, (tn_key)60, NULL, answer, NULL, "test"));
    assert_error(TN_ERR_INVALID_ARGUMENT,
                 "tn_handler_register: there is no key 60; see TN_KEY_MAP");
    assert_null(tn_handler_register(op, TN_KEY_BACKEND, "", answer, NULL, "test"));
    assert_error(TN_ERR_INVALID_ARGUMENT, "a device type has no name");
    tn_registration_drop(NULL);
}

static void backends_have_ids_until_all_are_taken(void **state) {
    assert_int_equal(tni_backend_id("cpu"), 0);
    assert_int_equal(tni_backend_id("npu"), 1);
    assert_int_equal(tni_backend_id("npu@com.acme"), 2);
    assert_int_equal(tni_backend_id("npu"), 1);
    assert_string_equal(tni_backend_name(2), "npu@com.acme");
    assert_null(tni_backend_name(3));
    assert_null(tni_backend_name(-1));
    assert_null(tni_backend_name(64));
    for (int i = 3; i < TNI_MAX_BACKENDS; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", i);
        assert_int_equal(tni_backend_id(name), i);
    }
    assert_int_equal(tni_backend_id("one_more"), -1);
    assert_error(TN_ERR_UNSUPPORTED,
                 "device type 'one_more': all 64 backends of this process are taken");
    /* The last one's bit works. */
    tn_op *op = define("f(Tensor x) -> int");
    hang(op, TN_KEY_BACKEND, "d63", 63);
    tni_tensor_head t = tensor_on("d63", 0);
    assert_int_equal(who_answers(op, &t), 63);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_highest_key_that_applies_answers),
        TEST(every_call_passes_a_profile_handler),
        TEST(keys_come_from_all_tensors_and_lists),
        TEST(a_thread_includes_and_excludes_keys),
        TEST(one_operator_s_handler_wins_over_the_default),
        TEST(a_null_handler_falls_through),
        TEST(a_handler_goes_on_below_its_key),
        TEST(a_backend_s_handler_holds_for_its_device_type),
        TEST(a_cpu_operand_leaves_the_call_to_the_other_device),
        TEST(a_device_argument_chooses_the_backend),
        TEST(an_unhandled_call_names_operator_keys_and_backends),
        TEST(dropping_restores_in_every_order),
        TEST(dropping_never_needs_memory),
        TEST(provenance_lists_every_entry_and_why),
        TEST(wrong_registrations_are_refused),
        TEST(backends_have_ids_until_all_are_taken),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
