/* Optimizers against the formulas in double precision. */
#include "tests/autograd/autograd_test.h"

enum { N = 3, STEPS = 5 };

/* The gradient of step t, made up. */
static void gradient(int t, const double *p, double *g) {
    for (int i = 0; i < N; i++)
        g[i] = sin(1.7 * t + i) + 0.3 * p[i];
}

static void set_gradient(tn_tensor *p, int t, const double *reference) {
    double g[N];
    gradient(t, reference, g);
    assert_ok(tn_set_grad(p, values(TN_SHAPE(N), g)));
}

static void check_sgd(tn_sgd_options o) {
    double p[N] = {0.5, -1, 2}, b[N] = {0};
    tn_tensor *param = leaf(TN_SHAPE(N), p);
    tn_optimizer *sgd = tn_sgd_create(&param, 1, &o);
    assert_non_null(sgd);
    assert_int_equal(tn_optimizer_n_states(sgd), o.momentum != 0);
    if (o.momentum != 0)
        assert_null(tn_optimizer_state(sgd, 0, "momentum_buffer"));
    for (int t = 0; t < STEPS; t++) {
        double g[N];
        gradient(t, p, g);
        set_gradient(param, t, p);
        for (int i = 0; i < N; i++) {
            double d = (o.maximize ? -g[i] : g[i]) + o.weight_decay * p[i];
            if (o.momentum != 0) {
                b[i] = t == 0 ? d : o.momentum * b[i] + (1 - o.dampening) * d;
                d = o.nesterov ? d + o.momentum * b[i] : b[i];
            }
            p[i] -= o.lr * d;
        }
        assert_ok(tn_optimizer_step(sgd));
        check_values(param, p, N, __FILE__, __LINE__);
    }
    if (o.momentum != 0)
        check_values(tn_optimizer_state(sgd, 0, "momentum_buffer"), b, N, __FILE__, __LINE__);
    assert_true(tn_is_leaf(param));
    assert_true(tn_requires_grad(param));
    tn_optimizer_destroy(sgd);
}

static void sgd_follows_the_formula(void **state) {
    tn_sgd_options o = tn_sgd_defaults();
    o.lr = 0.1;
    check_sgd(o);
    o.weight_decay = 0.2;
    check_sgd(o);
    o.maximize = true;
    check_sgd(o);
    o.momentum = 0.9;
    check_sgd(o);
    o.maximize = false;
    o.dampening = 0.5;
    check_sgd(o);
    o.dampening = 0;
    o.nesterov = true;
    check_sgd(o);
}

static void check_adamw(tn_adam_options o) {
    double p[N] = {0.5, -1, 2}, m[N] = {0}, v[N] = {0};
    tn_tensor *param = leaf(TN_SHAPE(N), p);
    tn_optimizer *adamw = tn_adamw_create(&param, 1, &o);
    assert_non_null(adamw);
    for (int t = 0; t < STEPS; t++) {
        double g[N];
        gradient(t, p, g);
        set_gradient(param, t, p);
        for (int i = 0; i < N; i++) {
            double d = o.maximize ? -g[i] : g[i];
            p[i] *= 1 - o.lr * o.weight_decay;
            m[i] = o.beta1 * m[i] + (1 - o.beta1) * d;
            v[i] = o.beta2 * v[i] + (1 - o.beta2) * d * d;
            double mean = m[i] / (1 - pow(o.beta1, t + 1));
            double square = v[i] / (1 - pow(o.beta2, t + 1));
            p[i] -= o.lr * mean / (sqrt(square) + o.eps);
        }
        assert_ok(tn_optimizer_step(adamw));
        check_values(param, p, N, __FILE__, __LINE__);
    }
    assert_int_equal(tn_optimizer_steps(adamw, 0), STEPS);
    check_values(tn_optimizer_state(adamw, 0, "exp_avg"), m, N, __FILE__, __LINE__);
    check_values(tn_optimizer_state(adamw, 0, "exp_avg_sq"), v, N, __FILE__, __LINE__);
    tn_optimizer_destroy(adamw);
}

static void adamw_follows_the_formula(void **state) {
    tn_adam_options o = tn_adamw_defaults();
    check_adamw(o);
    o = (tn_adam_options){sizeof o, 0.05, 0.8, 0.9, 1e-3, 0.3, true, false};
    check_adamw(o);
    o.maximize = false;
    o.weight_decay = 0;
    check_adamw(o);
}

static void parameters_without_gradient_are_left_out(void **state) {
    tn_tensor *params[] = {LEAF(TN_SHAPE(1), 1), LEAF(TN_SHAPE(1), 2)};
    tn_optimizer *sgd = tn_sgd_create(params, 2, NULL);
    tn_optimizer *adamw = tn_adamw_create(params, 2, NULL);
    assert_ok(tn_set_grad(params[1], VALUES(TN_SHAPE(1), 1)));
    assert_ok(tn_optimizer_step(sgd));
    assert_ok(tn_optimizer_step(adamw));
    assert_values(params[0], 1);
    assert_int_equal(tn_optimizer_steps(adamw, 0), 0);
    assert_null(tn_optimizer_state(adamw, 0, "exp_avg"));
    assert_ok(tn_optimizer_zero_grad(sgd));
    assert_null(tn_grad(params[1]));
    tn_optimizer_destroy(sgd);
    tn_optimizer_destroy(adamw);
    tn_optimizer_destroy(NULL);
}

static void training_goes_down(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 3, -4);
    tn_sgd_options o = tn_sgd_defaults();
    o.lr = 0.05;
    o.momentum = 0.5;
    tn_optimizer *sgd = tn_sgd_create(&x, 1, &o);
    for (int i = 0; i < 100; i++) {
        TN_SCOPE;
        assert_ok(tn_backward(tn_sum(tn_mul(x, x))));
        assert_ok(tn_optimizer_step(sgd));
        assert_ok(tn_optimizer_zero_grad(sgd));
    }
    double end[2];
    assert_ok(tn_to_host(x, end, sizeof end));
    assert_true(fabs(end[0]) < 1e-4 && fabs(end[1]) < 1e-4);
    tn_optimizer_destroy(sgd);
}

static void the_rate_can_change(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 1);
    tn_optimizer *sgd = tn_sgd_create(&x, 1, NULL);
    assert_true(tn_optimizer_lr(sgd) == 1e-3);
    assert_ok(tn_optimizer_set_lr(sgd, 0.5));
    assert_int_equal(tn_optimizer_set_lr(sgd, -1), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "lr is -1");
    assert_ok(tn_set_grad(x, VALUES(TN_SHAPE(1), 1)));
    assert_ok(tn_optimizer_step(sgd));
    assert_values(x, 0.5);
    tn_optimizer_destroy(sgd);
}

static void what_cannot_work_is_refused(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 1), *twice[] = {x, x}, *made = tn_mul(x, x);
    tn_tensor *whole = tn_from_data((const int64_t[]){1}, TN_SHAPE(1), TN_I64, cpu());
    assert_null(tn_sgd_create(NULL, 0, NULL));
    assert_error(TN_ERR_INVALID_ARGUMENT, "no parameters");
    assert_null(tn_sgd_create(twice, 2, NULL));
    assert_error(TN_ERR_INVALID_ARGUMENT, "0 and 1 are the same");
    assert_null(tn_adamw_create(&made, 1, NULL));
    assert_error(TN_ERR_INVALID_ARGUMENT, "MulBackward", "leaves");
    assert_null(tn_sgd_create(&whole, 1, NULL));
    assert_error(TN_ERR_DTYPE, "i64");
    tn_sgd_options o = tn_sgd_defaults();
    o.lr = -1;
    assert_null(tn_sgd_create(&x, 1, &o));
    assert_error(TN_ERR_INVALID_ARGUMENT, "lr is -1");
    o.lr = 1;
    o.nesterov = true;
    assert_null(tn_sgd_create(&x, 1, &o));
    assert_error(TN_ERR_INVALID_ARGUMENT, "nesterov");
    tn_adam_options a = tn_adamw_defaults();
    a.beta2 = 1;
    assert_null(tn_adamw_create(&x, 1, &a));
    assert_error(TN_ERR_INVALID_ARGUMENT, "beta2 is 1");
    assert_int_equal(tn_optimizer_step(NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "NULL");
}

static void making_one_survives_without_memory(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(1), 1);
    for (uint64_t at = 1; at <= 3; at++) {
        tni_alloc_fail_at(at);
        assert_null(tn_sgd_create(&x, 1, NULL));
        tni_alloc_fail_at(0);
        assert_error(TN_ERR_OUT_OF_MEMORY, "memory");
        tni_alloc_fail_at(at);
        assert_null(tn_adamw_create(&x, 1, NULL));
        tni_alloc_fail_at(0);
        assert_error(TN_ERR_OUT_OF_MEMORY, "memory");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(sgd_follows_the_formula),
        TEST(adamw_follows_the_formula),
        TEST(parameters_without_gradient_are_left_out),
        TEST(training_goes_down),
        TEST(the_rate_can_change),
        TEST(what_cannot_work_is_refused),
        TEST(making_one_survives_without_memory),
    };
    return cmocka_run_group_tests_name("optimizers", tests, NULL, NULL);
}
