/* A small training run on a right plugin gives no finding, up to its shutdown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <tenon/tenon.h>
#include <tenon/validation.h>

typedef struct training {
    tn_device device;
    tn_tensor *w, *b, *loss;
} training;

static tn_status step(void *user) {
    training *t = user;
    TN_SCOPE;
    tn_tensor *x = tn_randn(TN_SHAPE(16, 12), TN_F32, t->device);
    tn_tensor *hidden = tn_relu(tn_add(tn_matmul(x, t->w), t->b));
    tn_tensor *loss = tn_mean(tn_mul(tn_transpose(hidden, 0, 1), tn_transpose(hidden, 0, 1)));
    tn_backward(loss);
    TN_NO_GRAD;
    tn_copy_(t->loss, loss);
    tn_sub_(t->w, tn_grad(t->w));
    tn_sub_(t->b, tn_grad(t->b));
    return tn_error_status();
}

static void look(const training *t) {
    double value;
    assert_int_equal(tn_item(t->loss, &value), TN_OK);
    assert_true(value >= 0);
}

static void a_training_run_gives_no_finding(void **state) {
    assert_true(tn_validation_level() > 0);
    tn_device device = tn_device_parse(DEVICE);
    assert_string_equal(tn_error_message(), "");
    training t = {.device = device,
                  .w = tn_keep(tn_randn(TN_SHAPE(12, 5), TN_F32, device)),
                  .b = tn_keep(tn_zeros(TN_SHAPE(5), TN_F32, device)),
                  .loss = tn_keep(tn_zeros(TN_SCALAR_SHAPE, TN_F32, device))};
    tn_set_requires_grad(t.w, true);
    tn_set_requires_grad(t.b, true);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(step(&t), TN_OK);
        look(&t);
    }
    tn_graph *graph;
    tn_status captured = tn_graph_capture(device, step, &t, &graph);
    assert_int_equal(captured, strcmp(DEVICE, "cpu:0") == 0 ? TN_ERR_UNSUPPORTED : TN_OK);
    for (int i = 0; i < 5 && captured == TN_OK; i++) {
        assert_int_equal(tn_graph_replay(graph), TN_OK);
        look(&t);
    }
    tn_graph_destroy(graph);
    tn_drop(t.w);
    tn_drop(t.b);
    tn_drop(t.loss);
    tn_scope_close(0);
    assert_int_equal(tn_shutdown(), TN_OK);
    tn_validation_finding f = {.struct_size = sizeof f};
    uint64_t n = 0;
    for (uint64_t i = 0; i < tn_validation_count(); i++) {
        tn_validation_get(i, &f);
        if (f.is_warning && strcmp(DEVICE, "opencl:0") == 0)
            continue; /* threads and files of the driver */
        print_error("TNP-%u %s %s: %s\n", f.requirement, f.slot, f.op, f.text);
        n++;
    }
    assert_int_equal(n, 0);
}

static void *nothing(void *context) {
    return context;
}

int main(void) {
    /* ThreadSanitizer starts a thread of its own with a program's first one; it is not the
     * plugin's. */
    pthread_t thread;
    if (pthread_create(&thread, NULL, nothing, NULL) == 0)
        pthread_join(thread, NULL);
    if (strcmp(DEVICE, "opencl:0") == 0 && tn_device_parse(DEVICE).type == 0) {
        printf("skipped: %s\n", tn_error_message());
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_training_run_gives_no_finding)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
