/* Scaling of losses; numbers are of the rules, which are torch.amp.GradScaler's. */
#include "tests/optim/optim_test.h"

static tn_grad_scaler *scaler_of(double factor, int64_t interval) {
    tn_grad_scaler_options options = tn_grad_scaler_defaults();
    options.init_scale = factor;
    options.growth_interval = interval;
    tn_grad_scaler *scaler = tn_grad_scaler_create(&options);
    assert_non_null(scaler);
    return scaler;
}

static tn_optimizer *sgd_of(tn_tensor **params, uint64_t n) {
    tn_sgd_options options = tn_sgd_defaults();
    options.lr = 1;
    tn_optimizer *o = tn_sgd_create(params, n, &options);
    assert_non_null(o);
    return o;
}

static double value_of(tn_tensor *t) {
    double x[1];
    read_values(t, x, 1);
    return x[0];
}

/* A step is that of the gradients as they would be without the factor. */
static void a_step_is_unscaled(void **state) {
    TN_SCOPE;
    tn_tensor *w = param_of(TN_F32, (const double[]){5}, 1);
    tn_grad_scaler *scaler = scaler_of(1024, 2);
    tn_optimizer *sgd = sgd_of(&w, 1);
    bool stepped;
    for (int i = 0; i < 4; i++) {
        assert_ok(tn_backward(tn_grad_scaler_scale(scaler, tn_sum(tn_mul_scalar(w, tn_int(2))))));
        assert_true(value_of(tn_grad(w)) == 2 * tn_grad_scaler_factor(scaler));
        assert_ok(tn_grad_scaler_step(scaler, sgd, &stepped));
        assert_true(stepped);
        assert_true(value_of(w) == 5 - 2 * (i + 1) && value_of(tn_grad(w)) == 2);
        assert_ok(tn_grad_scaler_update(scaler));
        assert_ok(tn_optimizer_zero_grad(sgd));
        assert_true(tn_grad_scaler_factor(scaler) == (i < 1 ? 1024 : i < 3 ? 2048 : 4096));
        assert_int_equal(tn_grad_scaler_good_steps(scaler), i % 2 == 0);
    }
    tn_optimizer_destroy(sgd);
    tn_grad_scaler_destroy(scaler);
}

static void what_is_not_finite_is_left_out(void **state) {
    static const double bad[] = {INFINITY, -INFINITY, NAN};
    TN_SCOPE;
    tn_grad_scaler *scaler = scaler_of(8, 2000);
    for (int i = 0; i < 3; i++) {
        tn_tensor *params[] = {param_of(TN_F32, (const double[]){1, 2}, 2),
                               param_of(TN_F64, (const double[]){3}, 1),
                               param_of(TN_F32, (const double[]){4}, 1)};
        give_grad(params[0], (const double[]){8, i == 2 ? 16 : bad[i]});
        give_grad(params[1], (const double[]){i == 2 ? bad[i] : 8}); /* params[2] has none */
        tn_optimizer *sgd = sgd_of(params, 3);
        bool stepped = true;
        assert_ok(tn_grad_scaler_step(scaler, sgd, &stepped));
        assert_false(stepped);
        assert_true(value_of(params[1]) == 3);
        double before = tn_grad_scaler_factor(scaler);
        assert_ok(tn_grad_scaler_update(scaler));
        assert_true(tn_grad_scaler_factor(scaler) == before / 2);
        assert_int_equal(tn_grad_scaler_good_steps(scaler), 0);
        tn_optimizer_destroy(sgd);
    }
    tn_grad_scaler_destroy(scaler);
}

/* Large numbers whose sum is beyond f32 are finite each. */
static void finite_is_of_each_element(void **state) {
    TN_SCOPE;
    tn_tensor *w = param_of(TN_F32, (const double[]){0, 0}, 2);
    give_grad(w, (const double[]){3e38, 3e38});
    tn_grad_scaler *scaler = scaler_of(1, 2000);
    tn_optimizer *sgd = sgd_of(&w, 1);
    bool stepped;
    assert_ok(tn_grad_scaler_step(scaler, sgd, &stepped));
    assert_true(stepped);
    tn_optimizer_destroy(sgd);
    tn_grad_scaler_destroy(scaler);
}

/* Of two optimizers one is left out, and the factor falls for both. */
static void optimizers_step_by_themselves(void **state) {
    TN_SCOPE;
    tn_tensor *a = param_of(TN_F32, (const double[]){1}, 1);
    tn_tensor *b = param_of(TN_F32, (const double[]){1}, 1);
    give_grad(a, (const double[]){4});
    give_grad(b, (const double[]){INFINITY});
    tn_grad_scaler *scaler = scaler_of(4, 2000);
    tn_optimizer *first = sgd_of(&a, 1), *second = sgd_of(&b, 1);
    bool stepped[2];
    assert_ok(tn_grad_scaler_unscale_(scaler, first));
    assert_true(value_of(tn_grad(a)) == 1);
    assert_ok(tn_grad_scaler_step(scaler, first, &stepped[0]));
    assert_ok(tn_grad_scaler_step(scaler, second, &stepped[1]));
    assert_true(stepped[0] && !stepped[1]);
    assert_true(value_of(a) == 0 && value_of(b) == 1);
    assert_ok(tn_grad_scaler_update(scaler));
    assert_true(tn_grad_scaler_factor(scaler) == 2);
    tn_optimizer_destroy(first);
    tn_optimizer_destroy(second);
    tn_grad_scaler_destroy(scaler);
}

static void order_is_told(void **state) {
    TN_SCOPE;
    tn_tensor *w = param_of(TN_F32, (const double[]){1}, 1);
    tn_tensor *half = param_of(TN_F16, (const double[]){1}, 1);
    give_grad(w, (const double[]){1});
    give_grad(half, (const double[]){1});
    tn_grad_scaler *scaler = scaler_of(2, 2000);
    tn_optimizer *sgd = sgd_of(&w, 1), *halves = sgd_of(&half, 1);
    assert_int_equal(tn_grad_scaler_update(scaler), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "tn_grad_scaler_update", "since the last");
    assert_ok(tn_grad_scaler_unscale_(scaler, sgd));
    assert_int_equal(tn_grad_scaler_unscale_(scaler, sgd), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "tn_grad_scaler_unscale_", "unscaled already");
    assert_ok(tn_grad_scaler_step(scaler, sgd, NULL));
    assert_int_equal(tn_grad_scaler_step(scaler, sgd, NULL), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "tn_grad_scaler_step", "tn_grad_scaler_update");
    assert_true(value_of(w) == 0.5);
    assert_int_equal(tn_grad_scaler_step(scaler, halves, NULL), TN_ERR_DTYPE);
    assert_error(TN_ERR_DTYPE, "parameter 0", "f16", "tn_set_autocast");
    assert_true(value_of(tn_grad(half)) == 1);
    tn_optimizer_destroy(sgd);
    tn_optimizer_destroy(halves);
    tn_grad_scaler_destroy(scaler);
}

static void its_state_is_put_back(void **state) {
    tn_grad_scaler *scaler = scaler_of(2, 3);
    assert_ok(tn_grad_scaler_set(scaler, 512, 2));
    assert_true(tn_grad_scaler_factor(scaler) == 512 && tn_grad_scaler_good_steps(scaler) == 2);
    TN_SCOPE;
    tn_tensor *w = param_of(TN_F32, (const double[]){1}, 1);
    give_grad(w, (const double[]){1});
    tn_optimizer *sgd = sgd_of(&w, 1);
    assert_ok(tn_grad_scaler_step(scaler, sgd, NULL));
    assert_ok(tn_grad_scaler_update(scaler));
    assert_true(tn_grad_scaler_factor(scaler) == 1024);
    tn_optimizer_destroy(sgd);
    static const double wrong[] = {0, -1, INFINITY, NAN};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tn_grad_scaler_set(scaler, wrong[i], 0), TN_ERR_INVALID_ARGUMENT);
        assert_error(TN_ERR_INVALID_ARGUMENT, "the factor");
    }
    assert_int_equal(tn_grad_scaler_set(scaler, 1, -1), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "good_steps");
    tn_grad_scaler_destroy(scaler);
}

/* The next optimizer may lie where one lay that is gone. */
static void an_optimizer_that_is_gone_is_not_another(void **state) {
    TN_SCOPE;
    tn_grad_scaler *scaler = scaler_of(4, 2000);
    tn_tensor *w = param_of(TN_F32, (const double[]){1}, 1);
    give_grad(w, (const double[]){4});
    tn_optimizer *gone = sgd_of(&w, 1);
    assert_ok(tn_grad_scaler_unscale_(scaler, gone));
    tn_optimizer_destroy(gone);
    for (int i = 0; i < 8; i++) {
        give_grad(w, (const double[]){4});
        double before = value_of(w);
        tn_optimizer *next = sgd_of(&w, 1);
        assert_ok(tn_grad_scaler_step(scaler, next, NULL));
        assert_true(value_of(w) == before - 1);
        tn_optimizer_destroy(next);
    }
    tn_grad_scaler_destroy(scaler);
}

/* One that cannot be written leaves all as they were. */
static void a_failure_divides_nothing(void **state) {
    TN_SCOPE;
    tn_grad_scaler *scaler = scaler_of(4, 2000);
    tn_tensor *params[] = {param_of(TN_F32, (const double[]){0}, 1),
                           param_of(TN_F32, (const double[]){0, 0}, 2)};
    give_grad(params[0], (const double[]){8});
    assert_ok(tn_set_grad(
        params[1], tn_expand(tn_full(TN_SHAPE(1), tn_float(8), TN_F32, here()), TN_SHAPE(2))));
    tn_optimizer *sgd = sgd_of(params, 2);
    assert_int_not_equal(tn_grad_scaler_unscale_(scaler, sgd), TN_OK);
    assert_non_null(strstr(tn_error_message(), "tn_mul"));
    tn_error_clear();
    assert_true(value_of(tn_grad(params[0])) == 8);
    give_grad(params[1], (const double[]){8, 8});
    assert_ok(tn_grad_scaler_unscale_(scaler, sgd));
    assert_true(value_of(tn_grad(params[0])) == 2);
    tn_optimizer_destroy(sgd);
    tn_grad_scaler_destroy(scaler);
}

static void halves_are_scaled_in_f32(void **state) {
    TN_SCOPE;
    tn_grad_scaler *scaler = tn_grad_scaler_create(NULL);
    tn_tensor *w = param_of(TN_F16, (const double[]){3}, 1);
    tn_tensor *loss = tn_grad_scaler_scale(scaler, tn_sum(w));
    assert_int_equal(tn_dtype_of(loss), TN_F32);
    assert_true(value_of(loss) == 3 * 65536.0);
    tn_grad_scaler_destroy(scaler);
}

static void options_are_checked(void **state) {
    static const tn_grad_scaler_options wrong[] = {
        {sizeof wrong[0], 0, 2, 0.5, 1},       {sizeof wrong[0], 1, 1, 0.5, 1},
        {sizeof wrong[0], 1, 2, 1, 1},         {sizeof wrong[0], 1, 2, 0, 1},
        {sizeof wrong[0], 1, 2, 0.5, 0},       {sizeof wrong[0], NAN, 2, 0.5, 1},
        {sizeof wrong[0], 1, INFINITY, 0.5, 1}};
    static const char *const named[] = {"init_scale",     "growth_factor",   "backoff_factor",
                                        "backoff_factor", "growth_interval", "init_scale",
                                        "growth_factor"};
    for (int i = 0; i < 7; i++) {
        assert_null(tn_grad_scaler_create(&wrong[i]));
        assert_error(TN_ERR_INVALID_ARGUMENT, "tn_grad_scaler_create", named[i]);
    }
    tn_grad_scaler *scaler = tn_grad_scaler_create(NULL);
    assert_true(tn_grad_scaler_factor(scaler) == 65536);
    tn_grad_scaler_destroy(scaler);
    tn_grad_scaler_destroy(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_step_is_unscaled),
        TEST(what_is_not_finite_is_left_out),
        TEST(finite_is_of_each_element),
        TEST(optimizers_step_by_themselves),
        TEST(order_is_told),
        TEST(its_state_is_put_back),
        TEST(an_optimizer_that_is_gone_is_not_another),
        TEST(a_failure_divides_nothing),
        TEST(halves_are_scaled_in_f32),
        TEST(options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
