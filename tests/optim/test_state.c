/* The handle of all optimizers: names, states, rates, and what is refused. */
#include "tests/optim/optim_test.h"

static tn_tensor *one_param(void) {
    return param_of(TN_F32, (const double[]){1, 2}, 2);
}

static void states_have_names(void **state) {
    tn_tensor *param = one_param();
    tn_adam_options a = tn_adam_defaults();
    a.amsgrad = true;
    tn_rmsprop_options r = tn_rmsprop_defaults();
    r.centered = true;
    tn_optimizer *adam = tn_adam_create(&param, 1, &a), *sgd = tn_sgd_create(&param, 1, NULL),
                 *rmsprop = tn_rmsprop_create(&param, 1, &r);
    assert_int_equal(tn_optimizer_n_states(adam), 3);
    assert_string_equal(tn_optimizer_state_name(adam, 2), "max_exp_avg_sq");
    assert_int_equal(tn_optimizer_n_states(sgd), 0);
    assert_string_equal(tn_optimizer_state_name(rmsprop, 1), "grad_avg");
    assert_null(tn_optimizer_state_name(adam, 3));
    assert_error(TN_ERR_INVALID_ARGUMENT, "no tensor 3", "has 3");
    assert_null(tn_optimizer_state(adam, 0, "exp_avg"));
    assert_int_equal(tn_error_status(), TN_OK);
    assert_null(tn_optimizer_state(adam, 0, "momentum"));
    assert_error(TN_ERR_NOT_FOUND, "momentum", "exp_avg, exp_avg_sq, max_exp_avg_sq");
    assert_null(tn_optimizer_state(sgd, 0, "exp_avg"));
    assert_error(TN_ERR_NOT_FOUND, "none");
    assert_null(tn_optimizer_state(adam, 1, "exp_avg"));
    assert_error(TN_ERR_INVALID_ARGUMENT, "no parameter 1");
    assert_int_equal(tn_optimizer_steps(adam, 1), -1);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_optimizer_steps");
    tn_optimizer_destroy(adam);
    tn_optimizer_destroy(sgd);
    tn_optimizer_destroy(rmsprop);
}

static void a_state_fits_its_parameter(void **state) {
    tn_tensor *param = one_param();
    tn_optimizer *o = tn_adamw_create(&param, 1, NULL);
    assert_int_equal(tn_optimizer_set_state(o, 0, "exp_avg", VALUES(TN_SHAPE(2), 1, 2)),
                     TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "exp_avg must be like its parameter", "f32", "[2]");
    assert_int_equal(tn_optimizer_set_steps(o, 0, -1), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "steps is -1");
    tn_optimizer_destroy(o);
}

/* Half a state would train on wrong numbers. */
static void an_incomplete_state_is_refused(void **state) {
    tn_tensor *param = one_param();
    tn_optimizer *o = tn_adamw_create(&param, 1, NULL);
    give_grad(param, (const double[]){1, 1});
    assert_ok(tn_optimizer_set_state(o, 0, "exp_avg", tn_zeros_like(tn_detach(param))));
    assert_int_equal(tn_optimizer_step(o), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "'exp_avg_sq'", "1 of its 2", "tn_optimizer_set_state");
    assert_ok(tn_optimizer_set_state(o, 0, "exp_avg", NULL));
    assert_ok(tn_optimizer_set_steps(o, 0, 3));
    assert_int_equal(tn_optimizer_step(o), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "3 steps", "0 of its 2");
    assert_ok(tn_optimizer_set_steps(o, 0, 0));
    assert_ok(tn_optimizer_step(o));
    tn_optimizer_destroy(o);
}

#define REFUSED(name, member, value, ...) \
    do { \
        tn_##name##_options o = tn_##name##_defaults(); \
        o.member = value; \
        assert_null(tn_##name##_create(&param, 1, &o)); \
        assert_error(TN_ERR_INVALID_ARGUMENT, "tn_" #name "_create", #member " is", __VA_ARGS__); \
    } while (0)

static void options_out_of_range_are_refused(void **state) {
    typedef tn_adam_options tn_adamw_options;
    tn_tensor *param = one_param();
    REFUSED(sgd, lr, NAN, "at least 0");
    REFUSED(sgd, momentum, -0.5, "-0.5");
    REFUSED(adam, lr, -1, "-1");
    REFUSED(adam, beta1, 1, "[0, 1)");
    REFUSED(adam, eps, INFINITY, "at least 0");
    REFUSED(adam, weight_decay, -1, "at least 0");
    REFUSED(adamw, beta2, -0.1, "[0, 1)");
    REFUSED(rmsprop, alpha, 1.5, "at most 1");
    REFUSED(rmsprop, alpha, -1, "at least 0");
    REFUSED(rmsprop, momentum, -1, "at least 0");
    REFUSED(rmsprop, eps, -1, "at least 0");
    REFUSED(adagrad, lr_decay, -1, "at least 0");
    REFUSED(adagrad, initial_accumulator_value, -1, "at least 0");
    REFUSED(adagrad, eps, NAN, "at least 0");
    REFUSED(lion, beta1, 1.5, "[0, 1)");
    REFUSED(lion, beta2, NAN, "[0, 1)");
    REFUSED(lion, weight_decay, -1, "at least 0");
}

/* A program of a version whose struct ended earlier gets the defaults of the rest. */
static void shorter_options_do(void **state) {
    tn_tensor *param = one_param();
    tn_adam_options o = tn_adam_defaults();
    o.amsgrad = true;
    o.lr = 0.5;
    o.struct_size = offsetof(tn_adam_options, amsgrad);
    tn_optimizer *adam = tn_adam_create(&param, 1, &o);
    assert_int_equal(tn_optimizer_n_states(adam), 2);
    assert_true(tn_optimizer_lr(adam) == 0.5);
    tn_optimizer_destroy(adam);
}

/* Each on its own device; the host waits for neither. */
static void parameters_of_two_devices_do(void **state) {
    tn_tensor *params[] = {one_param(), tn_set_requires_grad(VALUES(TN_SHAPE(1), 3), true)};
    tn_optimizer *o = tn_lion_create(params, 2, NULL);
    give_grad(params[0], (const double[]){1, -1});
    assert_ok(tn_set_grad(params[1], VALUES(TN_SHAPE(1), 2)));
    assert_ok(tn_optimizer_step(o));
    assert_values(params[1], 3 - 1e-4);
    assert_true(tn_device_equal(tn_device_of(tn_optimizer_state(o, 0, "exp_avg")), here()));
    tn_optimizer_destroy(o);
}

static void nothing_is_refused_politely(void **state) {
    assert_int_equal(tn_optimizer_step(NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_optimizer_step: the optimizer is NULL");
    assert_int_equal(tn_optimizer_zero_grad(NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "the optimizer is NULL");
    assert_int_equal(tn_optimizer_set_lr(NULL, 1), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "the optimizer is NULL");
    assert_int_equal(tn_optimizer_n_states(NULL), 0);
    assert_true(tn_optimizer_lr(NULL) == 0);
    tn_optimizer_destroy(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(states_have_names),
        TEST(a_state_fits_its_parameter),
        TEST(an_incomplete_state_is_refused),
        TEST(options_out_of_range_are_refused),
        TEST(shorter_options_do),
        TEST(parameters_of_two_devices_do),
        TEST(nothing_is_refused_politely),
    };
    return cmocka_run_group_tests_name("optimizer", tests, NULL, NULL);
}
