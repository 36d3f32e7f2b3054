/* What a host must not do: the chip says so and computes nothing. */
#include "tests/sim/rig.h"

#include <string.h>

static void broken_promises_are_refused(void **state) {
    const int64_t four[] = {4}, two_two[] = {2, 2}, transposed[] = {1, 2}, zero[] = {0, 1};
    mini_tensor *a = mini_tensor_create(&rig, TN_F32, 1, four, NULL, 0);
    mini_tensor *b = mini_tensor_create(&rig, TN_F32, 1, (int64_t[]){3}, NULL, 0);
    mini_tensor *i = mini_tensor_create(&rig, TN_I32, 1, four, NULL, 0);
    mini_tensor *t = mini_tensor_create(&rig, TN_F32, 2, two_two, transposed, 0);
    mini_tensor *r = mini_tensor_create(&rig, TN_F32, 2, two_two, zero, 0);
    mini_tensor *z = mini_tensor_create(&rig, TN_F32, 2, two_two, NULL, 0);
    mini_tensor *q = mini_tensor_create(&rig, TN_F32, 1, four, NULL, 0);
    const struct {
        const char *op;
        mini_tensor *x, *y, *out;
        const char *message;
        tn_status status;
    } calls[] = {
        {"mul", t, z, z, "not contiguous", TN_ERR_INVALID_ARGUMENT},
        {"mul", z, r, z, "stride of zero", TN_ERR_INVALID_ARGUMENT},
        {"mul", a, a, a, "shares memory", TN_ERR_INVALID_ARGUMENT},
        {"mul", a, b, q, "argument 1 has 3 elements", TN_ERR_SHAPE},
        {"mul", a, i, q, "argument 1 is i32 and should be f32", TN_ERR_DTYPE},
        {"mul", a, a, i, "output 0 is i32", TN_ERR_DTYPE},
        {"eq", a, a, q, "should be bool", TN_ERR_DTYPE},
        {"div", i, i, i, "no kernel for i32", TN_ERR_DTYPE},
        {"mul", a, NULL, q, "argument 1 is no tensor", TN_ERR_INVALID_ARGUMENT},
    };
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++) {
        const tn_cell args[] = {mini_view(calls[c].x), mini_view(calls[c].y)};
        tn_status status =
            rig_launch(calls[c].op, rig.device, rig.stream, 2, args, &calls[c].out->view);
        if (status != calls[c].status)
            fail_msg("call %zu: status %d", c, status);
        assert_message(calls[c].message);
    }
    /* A view that reaches past its allocation, and one that starts within an element. */
    tn_tensor_view view = a->view;
    const tn_cell args[] = {mini_f64(0)};
    view.offset = 4;
    assert_status(rig_launch("fill", rig.device, rig.stream, 1, args, &view),
                  TN_ERR_INVALID_ARGUMENT);
    assert_message("[4, 20)");
    view.offset = 2;
    assert_status(rig_launch("fill", rig.device, rig.stream, 1, args, &view),
                  TN_ERR_INVALID_ARGUMENT);
    assert_message("within a f32");
    /* Values of the wrong kind, and the wrong number of them. */
    assert_status(rig_launch("fill", rig.device, rig.stream, 1, (tn_cell[]){mini_none()}, &a->view),
                  TN_ERR_INVALID_ARGUMENT);
    assert_status(rig_launch("fill", rig.device, rig.stream, 0, NULL, &a->view),
                  TN_ERR_INVALID_ARGUMENT);
    /* sort without its workspace */
    array s = array_create(TN_F32, 1, four), from = array_create(TN_I64, 1, four);
    const tn_tensor_view *outs[] = {&s.tensor->view, &from.tensor->view};
    const tn_cell sort[] = {mini_view(a), mini_i64(0), mini_bool(false)};
    const tn_kernel *kernel = mini_find(&rig, "sort", TN_F32, TN_DTYPE_NONE);
    tn_call call = {.struct_size = sizeof call,
                    .device = rig.device,
                    .stream = rig.stream,
                    .user = kernel->user,
                    .args = sort,
                    .outs = outs,
                    .n_args = 3,
                    .n_outs = 2};
    assert_status(kernel->run(&call), TN_ERR_INVALID_ARGUMENT);
    assert_message("workspace");
    assert_ok(mini_synchronize(&rig));
    array_free_host(&s);
    array_free_host(&from);
}

int all_tests(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(broken_promises_are_refused, rig_setup, rig_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
