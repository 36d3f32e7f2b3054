/* Every optimizer, with its options and in four dtypes: against PyTorch, captured, saved and put back, and
 * where memory ends half-way. */
#include "tests/optim/expected.inc"
#include "tests/optim/optim_test.h"

#include <tenon/graph.h>

typedef tn_adam_options tn_adamw_options;

enum { N_DTYPES = 4 };
static const tn_dtype dtypes[N_DTYPES] = {TN_F32, TN_F64, TN_BF16, TN_F16};
/* What an element may be off by, relative to what it is or to 1. PyTorch's f32 rounds elsewhere; halves are
 * one unit in the last place, which later steps keep. */
static const double tolerances[N_DTYPES] = {4e-6, 1e-13, 0x1p-7, 0x1p-10};

typedef struct trajectory {
    const char *text;
    tn_optimizer *(*make)(tn_tensor *const *params, uint64_t n);
    double points[N_DTYPES][STEPS][N];
} trajectory;

#define MAKE(id, name, set, f32, f64, bf16, f16) \
    static tn_optimizer *make_##id(tn_tensor *const *params, uint64_t n) { \
        tn_##name##_options o = tn_##name##_defaults(); \
        set; \
        return tn_##name##_create(params, n, &o); \
    }
TRAJECTORIES(MAKE)

/* The numbers stand in rows without braces of their own. */
#pragma GCC diagnostic ignored "-Wmissing-braces"
#define BRACED(...) \
    { __VA_ARGS__ }
#define ROW(id, name, set, f32, f64, bf16, f16) \
    {#name " " #set, make_##id, {BRACED f32, BRACED f64, BRACED bf16, BRACED f16}},
static const trajectory trajectories[] = {TRAJECTORIES(ROW)};
#define N_TRAJECTORIES (sizeof trajectories / sizeof trajectories[0])

static void check_point(const trajectory *t, int d, int step, tn_tensor *param) {
    double got[N];
    read_values(param, got, N);
    for (int i = 0; i < N; i++) {
        double expected = t->points[d][step][i];
        if (!(fabs(got[i] - expected) <= tolerances[d] * (1 + fabs(expected))))
            fail_msg("%s, %s, step %d: element %d is %.17g, expected %.17g", t->text,
                     tn_dtype_name(dtypes[d]), step + 1, i, got[i], expected);
    }
}

/* Two parameters of one optimizer: the second has a gradient in every other step only. */
static void they_are_pytorchs(void **state) {
    for (const trajectory *t = trajectories; t < trajectories + N_TRAJECTORIES; t++) {
        for (int d = 0; d < N_DTYPES; d++) {
            TN_SCOPE;
            tn_tensor *params[] = {param_of(dtypes[d], start, N), param_of(dtypes[d], start, N)};
            tn_optimizer *o = t->make(params, 2);
            assert_non_null(o);
            for (int step = 0; step < STEPS; step++) {
                give_grad(params[0], grads[step]);
                if (step % 2 == 1)
                    give_grad(params[1], grads[step / 2]);
                assert_ok(tn_optimizer_step(o));
                check_point(t, d, step, params[0]);
                if (step % 2 == 1)
                    check_point(t, d, step / 2, params[1]);
                assert_ok(tn_optimizer_zero_grad(o));
            }
            assert_int_equal(tn_optimizer_steps(o, 0), STEPS);
            assert_int_equal(tn_optimizer_steps(o, 1), STEPS / 2);
            assert_true(tn_is_leaf(params[0]) && tn_requires_grad(params[0]));
            tn_optimizer_destroy(o);
        }
    }
}

/* Gradients that do not lie one after the other, as of a product of matrices. */
static void strided_gradients_do(void **state) {
    for (const trajectory *t = trajectories; t < trajectories + N_TRAJECTORIES; t++) {
        TN_SCOPE;
        tn_tensor *param = tn_reshape(param_of(TN_F32, start, N), TN_SHAPE(2, 2));
        param = tn_set_requires_grad(tn_detach(param), true);
        tn_optimizer *o = t->make(&param, 1);
        for (int step = 0; step < STEPS; step++) {
            const double *g = grads[step], across[N] = {g[0], g[2], g[1], g[3]};
            tn_tensor *grad = tn_reshape(tn_detach(param_of(TN_F32, across, N)), TN_SHAPE(2, 2));
            assert_ok(tn_set_grad(param, tn_transpose(grad, 0, 1)));
            assert_ok(tn_optimizer_step(o));
            check_point(t, 0, step, param);
        }
        tn_optimizer_destroy(o);
    }
}

/* Parameters of no dimensions, of no elements, and one whose memory is not in the order of its elements. */
static void shapes_do_not_matter(void **state) {
    for (const trajectory *t = trajectories; t < trajectories + N_TRAJECTORIES; t++) {
        TN_SCOPE;
        tn_tensor *params[] = {
            tn_full(TN_SCALAR_SHAPE, tn_float(start[0]), TN_F64, here()),
            tn_zeros(TN_SHAPE(0, 3), TN_F64, here()),
            tn_transpose(tn_full(TN_SHAPE(2, 3), tn_float(start[0]), TN_F64, here()), 0, 1)};
        for (int i = 0; i < 3; i++)
            params[i] = tn_set_requires_grad(tn_detach(params[i]), true);
        tn_optimizer *o = t->make(params, 3);
        for (int step = 0; step < STEPS; step++) {
            double expected = t->points[1][step][0], got[6];
            for (int i = 0; i < 3; i++)
                assert_ok(tn_set_grad(
                    params[i], tn_full_like(tn_detach(params[i]), tn_float(grads[step][0]))));
            assert_ok(tn_optimizer_step(o));
            read_values(params[0], got, 1);
            assert_true(fabs(got[0] - expected) < 1e-12);
            read_values(params[2], got, 6);
            for (int i = 0; i < 6; i++)
                assert_true(fabs(got[i] - expected) < 1e-12);
        }
        assert_int_equal(tn_optimizer_steps(o, 1), STEPS);
        tn_optimizer_destroy(o);
    }
}

/* ---- saved and put back ------------------------------------------------------------------ */

/* What `from` knows of parameter 0, in copies, to `to`. */
static void copy_state(tn_optimizer *to, const tn_optimizer *from) {
    for (uint64_t k = 0; k < tn_optimizer_n_states(from); k++) {
        const char *name = tn_optimizer_state_name(from, k);
        tn_tensor *saved = tn_optimizer_state(from, 0, name);
        assert_ok(tn_optimizer_set_state(to, 0, name, saved ? tn_clone(saved) : NULL));
    }
    assert_ok(tn_optimizer_set_steps(to, 0, tn_optimizer_steps(from, 0)));
}

static void what_is_put_back_goes_on_to_the_last_bit(void **state) {
    for (const trajectory *t = trajectories; t < trajectories + N_TRAJECTORIES; t++) {
        for (int d = 0; d < N_DTYPES; d++) {
            TN_SCOPE;
            tn_tensor *param = param_of(dtypes[d], start, N), *again = NULL;
            tn_optimizer *first = t->make(&param, 1), *second = NULL;
            for (int step = 0; step < STEPS; step++) {
                if (step == STEPS / 2) {
                    again = tn_set_requires_grad(tn_clone(tn_detach(param)), true);
                    second = t->make(&again, 1);
                    copy_state(second, first);
                }
                give_grad(param, grads[step]);
                assert_ok(tn_optimizer_step(first));
                if (!second)
                    continue;
                give_grad(again, grads[step]);
                assert_ok(tn_optimizer_step(second));
                assert_same(param, again);
            }
            tn_optimizer_destroy(first);
            tn_optimizer_destroy(second);
        }
    }
}

/* ---- captured ---------------------------------------------------------------------------- */

typedef struct captured {
    tn_tensor *param, *grad;
    tn_optimizer *optimizer;
} captured;

static tn_status one_step(void *user) {
    captured *c = user;
    tn_status status = tn_set_grad(c->param, c->grad);
    return status == TN_OK ? tn_optimizer_step(c->optimizer) : status;
}

/* Fused kernels, which graphs do not use, round less often; sim has none. */
static bool may_be_fused(const trajectory *t) {
    return !on_sim() && (strncmp(t->text, "sgd", 3) == 0 || strncmp(t->text, "adam", 4) == 0);
}

/* To the last bit. A first step is taken before the capture, as SGD with dampening wants it. */
static void replays_are_steps(void **state) {
    for (const trajectory *t = trajectories; t < trajectories + N_TRAJECTORIES; t++) {
        for (int d = 0; d < N_DTYPES; d++) {
            TN_SCOPE;
            captured c = {param_of(dtypes[d], start, N), NULL, NULL};
            tn_tensor *called = param_of(dtypes[d], start, N);
            tn_optimizer *caller = t->make(&called, 1);
            c.optimizer = t->make(&c.param, 1);
            c.grad = tn_detach(param_of(dtypes[d], grads[0], N));
            assert_ok(one_step(&c));
            give_grad(called, grads[0]);
            assert_ok(tn_optimizer_step(caller));
            tn_graph *graph = NULL;
            tn_status status = tn_graph_capture(here(), one_step, &c, &graph);
            if (status == TN_ERR_UNSUPPORTED) { /* the device captures nothing */
                tn_error_clear();
                tn_optimizer_destroy(c.optimizer);
                tn_optimizer_destroy(caller);
                return;
            }
            assert_ok(status);
            for (int step = 1; step < STEPS; step++) {
                tn_copy_(c.grad, tn_detach(param_of(dtypes[d], grads[step], N)));
                assert_ok(tn_graph_replay(graph));
                give_grad(called, grads[step]);
                assert_ok(tn_optimizer_step(caller));
                check_point(t, d, step, c.param);
                if (!may_be_fused(t))
                    assert_same(c.param, called);
            }
            assert_int_equal(tn_optimizer_steps(c.optimizer, 0), STEPS);
            tn_optimizer_destroy(caller);
            tn_optimizer_destroy(c.optimizer);
            tn_graph_destroy(graph);
        }
    }
}

/* ---- without memory ---------------------------------------------------------------------- */

/* Each allocation of making an optimizer and of its first step fails in turn: an error that says so, and
 * afterwards a step works. */
static void any_allocation_may_fail(void **state) {
    for (const trajectory *t = trajectories; t < trajectories + N_TRAJECTORIES; t++) {
        uint64_t made, at = 1;
        do {
            TN_SCOPE;
            tn_tensor *param = param_of(TN_BF16, start, N);
            give_grad(param, grads[0]);
            tni_alloc_fail_at(at);
            tn_optimizer *o = t->make(&param, 1);
            tn_status status = o ? tn_optimizer_step(o) : tn_error_status();
            made = tni_alloc_fail_at(0);
            if (status != TN_OK)
                assert_error(TN_ERR_OUT_OF_MEMORY, ""); /* a driver has words of its own */
            if (status != TN_OK && o) {
                assert_int_equal(tn_optimizer_steps(o, 0), 0);
                assert_ok(tn_optimizer_step(o));
            }
            assert_true(!o || tn_optimizer_steps(o, 0) == 1);
            tn_optimizer_destroy(o);
        } while (made >= at++);
        assert_true(at > 3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(they_are_pytorchs),    TEST(strided_gradients_do),
        TEST(shapes_do_not_matter), TEST(what_is_put_back_goes_on_to_the_last_bit),
        TEST(replays_are_steps),    TEST(any_allocation_may_fail),
    };
    if (here().type == 0) { /* no driver */
        printf("skipped: %s\n", tn_error_message());
        return 77;
    }
    tn_shutdown();
    return cmocka_run_group_tests_name("trajectories", tests, NULL, NULL);
}
