/* Schedules of learning rates against PyTorch's schedulers. */
#include "tests/optim/expected.inc"
#include "tests/optim/optim_test.h"

static const tn_one_cycle_options *cycle(int64_t total_steps, double pct_start, double div_factor,
                                         double final_div_factor, bool linear, bool three_phase) {
    static tn_one_cycle_options o;
    o = (tn_one_cycle_options){sizeof o,         total_steps, pct_start,  div_factor,
                               final_div_factor, linear,      three_phase};
    return &o;
}

#define FUNCTION(name, call, ...) \
    static double at_##name(int64_t t) { \
        return call; \
    }
SCHEDULES(FUNCTION)

typedef struct schedule {
    const char *name;
    double (*at)(int64_t t);
    double rates[LR_STEPS];
} schedule;
#define ROW(name, call, ...) {#name, at_##name, {__VA_ARGS__}},
static const schedule schedules[] = {SCHEDULES(ROW)};

static void they_are_pytorchs(void **state) {
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        for (int t = 0; t < LR_STEPS; t++) {
            double got = schedules[i].at(t), expected = schedules[i].rates[t];
            if (!(fabs(got - expected) <= 1e-14))
                fail_msg("%s: the rate of step %d is %.17g, expected %.17g", schedules[i].name, t,
                         got, expected);
        }
    }
}

static void ends_are_exact(void **state) {
    tn_one_cycle_options o = tn_one_cycle_defaults();
    o.total_steps = 1;
    assert_true(isfinite(tn_lr_one_cycle(0.1, 0, &o)));
    o.total_steps = 2;
    o.pct_start = 0.5; /* the first phase has no length */
    assert_true(tn_lr_one_cycle(0.1, 0, &o) == 0.1);
    assert_true(tn_lr_cosine(0.1, 10, 10, 0) == 0);
    assert_true(tn_lr_linear(0.1, INT64_MAX, 10, 0, 1) == 0.1);
    assert_true(tn_lr_exponential(0.1, INT64_MAX, 0.5) == 0);
    assert_true(tn_lr_multi_step(0.1, 5, NULL, 0, 0.5) == 0.1);
    double last = tn_lr_cosine_restarts(0.1, INT64_MAX, INT64_MAX, INT64_MAX, 0.01);
    assert_true(last >= 0.01 && last <= 0.1);
    last = tn_lr_cosine_restarts(0.1, INT64_MAX, 1, 2, 0.01);
    assert_true(last >= 0.01 && last <= 0.1);
}

#define REFUSED(call, ...) \
    do { \
        assert_true(isnan(call)); \
        assert_error(TN_ERR_INVALID_ARGUMENT, __VA_ARGS__); \
    } while (0)

static void what_cannot_be_is_refused(void **state) {
    REFUSED(tn_lr_step(-1, 0, 1, 0.5), "tn_lr_step: lr is -1");
    REFUSED(tn_lr_step(1, -1, 1, 0.5), "t is -1", "from 0");
    REFUSED(tn_lr_step(1, 0, 0, 0.5), "step_size is 0", "at least 1");
    REFUSED(tn_lr_exponential(1, 0, NAN), "gamma");
    REFUSED(tn_lr_multi_step(1, 0, (int64_t[]){3, 2}, 2, 0.5), "milestone 1 is 2", "ascend");
    REFUSED(tn_lr_multi_step(1, 0, NULL, 1, 0.5), "milestones is NULL");
    REFUSED(tn_lr_linear(1, 0, 0, 0, 1), "steps is 0");
    REFUSED(tn_lr_cosine(1, 0, 10, -1), "eta_min is -1");
    REFUSED(tn_lr_cosine_restarts(1, 0, 10, 0, 0), "factor is 0");
    REFUSED(tn_lr_one_cycle(1, 0, NULL), "total_steps is 0");
    REFUSED(tn_lr_one_cycle(1, 10, cycle(10, 0.3, 25, 1e4, false, false)), "t is 10", "below");
    REFUSED(tn_lr_one_cycle(1, 0, cycle(10, 1.5, 25, 1e4, false, false)), "pct_start", "[0, 1]");
    REFUSED(tn_lr_one_cycle(1, 0, cycle(10, 0.3, 0, 1e4, false, false)), "div_factor", "above 0");
}

/* The rate that could not be computed is refused with the error that says why. */
static void an_error_reaches_the_optimizer(void **state) {
    tn_tensor *param = LEAF(TN_SHAPE(1), 1);
    tn_optimizer *o = tn_sgd_create(&param, 1, NULL);
    assert_ok(tn_optimizer_set_lr(o, tn_lr_cosine(0.2, 10, 20, 0)));
    assert_true(fabs(tn_optimizer_lr(o) - 0.1) < 1e-15);
    assert_int_equal(tn_optimizer_set_lr(o, tn_lr_cosine(0.2, 10, 0, 0)), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "tn_lr_cosine: steps is 0");
    assert_int_equal(tn_optimizer_set_lr(o, NAN), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "lr is nan");
    tn_optimizer_destroy(o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(they_are_pytorchs),
        TEST(ends_are_exact),
        TEST(what_cannot_be_is_refused),
        TEST(an_error_reaches_the_optimizer),
    };
    return cmocka_run_group_tests_name("schedules", tests, NULL, NULL);
}
