/* Every host allocation fails in turn, from finding the plugin to the step of the optimizer: each
 * time an error that says so, nothing left behind, and a library that works the next time. */
#include "base/alloc.h"
#include "tests/core/core_test.h"

#include <tenon/tenon.h>

/* Scaled backward pass and step. */
static tn_status step_down(tn_tensor *loss, tn_tensor **params, uint64_t n) {
    tn_sgd_options options = tn_sgd_defaults();
    options.momentum = 0.9;
    tn_optimizer *sgd = tn_sgd_create(params, n, &options);
    tn_grad_scaler *scaler = sgd ? tn_grad_scaler_create(NULL) : NULL;
    tn_status status = scaler ? tn_backward(tn_grad_scaler_scale(scaler, loss)) : tn_error_status();
    if (status == TN_OK)
        status = tn_grad_scaler_step(scaler, sgd, NULL);
    tn_grad_scaler_destroy(scaler);
    tn_optimizer_destroy(sgd);
    return status;
}

/* A small convolutional network, half of it in f16: views, random numbers, several dtypes, saved tensors, indices. */
static tn_status train(const char *device_name) {
    TN_SCOPE;
    tn_device device = tn_device_parse(device_name);
    if (device.type == 0)
        return tn_error_status();
    tn_manual_seed(1);
    tn_tensor *kernel = tn_set_requires_grad(tn_randn(TN_SHAPE(2, 1, 3, 3), TN_F32, device), true);
    tn_tensor *weight = tn_set_requires_grad(tn_randn(TN_SHAPE(3, 8), TN_F32, device), true);
    tn_tensor *bias = tn_set_requires_grad(tn_zeros(TN_SHAPE(3), TN_F32, device), true);
    int64_t classes[] = {0, 2};
    tn_tensor *x = tn_rand(TN_SHAPE(2, 1, 6, 6), TN_F32, device);
    tn_tensor *labels = tn_from_data(classes, TN_SHAPE(2), TN_I64, device);

    tn_tensor *y = tn_relu(tn_conv2d(x, kernel));
    y = tn_flatten(tn_max_pool2d(y, TN_SHAPE(2, 2)), 1);
    TN_AUTOCAST(TN_F16);
    y = tn_linear(tn_dropout(y, 0.25, true), weight, bias);
    tn_tensor *stored[] = {tn_to_dtype(labels, TN_C128),
                           tn_full(TN_SHAPE(2), tn_int(3), TN_C128, device)};
    tn_tensor *kept = tn_to_dtype(tn_flip(tn_cat(stored, 2, 0), TN_SHAPE(0)), TN_U16);
    if (!tn_copy_(tn_to_dtype(x, TN_U64), tn_narrow(kept, 0, 0, 1)))
        return tn_error_status();
    tn_tensor *both[] = {y, y};
    y = tn_narrow(tn_cat(both, 2, 1), 1, 0, 3);
    tn_tensor *loss = tn_cross_entropy(y, labels);
    tn_status status = step_down(loss, (tn_tensor *[]){kernel, weight, bias}, 3);
    if (status != TN_OK)
        return status;
    float value;
    return tn_to_host(loss, &value, sizeof value);
}

/* Under AddressSanitizer all of them take minutes: every third there, each one in the plain build. */
#ifdef __SANITIZE_ADDRESS__
enum { STEP = 3 };
#else
enum { STEP = 1 };
#endif

static void every_allocation_fails_once(void **state) {
    const char *device = *state;
    uint64_t n = 1, made, refused = 0;
    int64_t before = tni_alloc_outstanding();
    for (;; n += STEP) {
        tni_alloc_fail_at(n);
        tn_status status = train(device);
        made = tni_alloc_fail_at(0);
        bool whole = made < n; /* the run was over before its n-th allocation */
        if (status != TN_OK) {
            const char *message = tn_error_message();
            if (status != TN_ERR_OUT_OF_MEMORY || !strstr(message, "memory"))
                fail_msg("allocation %llu failed, and the error is %s: '%s'", (unsigned long long)n,
                         tn_status_name(status), message);
            refused++;
        }
        tn_error_clear();
        if (status != TN_OK && train(device) != TN_OK)
            fail_msg("allocation %llu failed, and then nothing works: %s", (unsigned long long)n,
                     tn_error_message());
        tn_scope_close(0); /* the scope itself may have been what there was no memory for */
        assert_int_equal(tn_shutdown(), TN_OK);
        if (tni_alloc_outstanding() != before)
            fail_msg("allocation %llu failed, and %lld blocks are left", (unsigned long long)n,
                     (long long)(tni_alloc_outstanding() - before));
        if (whole) {
            assert_int_equal(status, TN_OK);
            break;
        }
    }
    print_message("%s: %llu allocations, %llu of them needed\n", device, (unsigned long long)n - 1,
                  (unsigned long long)refused);
    assert_true(refused > 50); /* the test reached the library */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(every_allocation_fails_once, fresh, leave_clean,
                                                 "cpu:0"),
        cmocka_unit_test_prestate_setup_teardown(every_allocation_fails_once, fresh, leave_clean,
                                                 "sim:0"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
