/* Checkpoints: the same gradients from less memory, and what their functions may not do. */
#include "tests/autograd/autograd_test.h"

#include <tenon/autocast.h>
#include <tenon/random.h>

#include <pthread.h>
#include <stdatomic.h>

/* What a layer is told, and what it notes. */
typedef struct layer {
    tn_tensor *weight; /* no input: found by itself */
    double dropout;
    atomic_int runs;
    int ended, odd; /* which run does something else, from 1 */
    enum { SAVES_MORE, SAVES_LESS, OTHER_SHAPE, FAILS, FAILS_SILENTLY } how;
} layer;

static tn_status other(layer *l, tn_tensor *x, tn_tensor **y) {
    switch (l->how) {
    case SAVES_MORE:
        *y = tn_exp(tn_tanh(tn_matmul(x, l->weight)));
        break;
    case SAVES_LESS:
        *y = tn_matmul(x, l->weight);
        break;
    case OTHER_SHAPE:
        *y = tn_tanh(tn_matmul(tn_narrow(x, 0, 0, 1), l->weight));
        break;
    case FAILS:
        return tn_fail(TN_ERR_UNSUPPORTED, "not today");
    case FAILS_SILENTLY:
        return TN_ERR_UNSUPPORTED;
    }
    return TN_OK;
}

/* tanh(x w), some of it dropped. */
static tn_status run_layer(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                           uint64_t n_outputs, void *user) {
    layer *l = user;
    int run = atomic_fetch_add(&l->runs, 1) + 1;
    tn_status status = TN_OK;
    tn_tensor *y = NULL;
    if (run == l->odd)
        status = other(l, inputs[0], &y);
    else
        y = tn_tanh(tn_matmul(inputs[0], l->weight));
    if (l->dropout > 0)
        y = tn_dropout(y, l->dropout, true);
    outputs[0] = y;
    return status != TN_OK || y ? status : tn_error_status();
}

static void end_layer(void *user) {
    ((layer *)user)->ended++;
}

static tn_tensor *checkpointed(layer *l, tn_tensor *x) {
    tn_tensor *y;
    assert_ok(tn_checkpoint(run_layer, l, end_layer, &x, 1, &y, 1));
    return y;
}

static tn_tensor *plain(layer *l, tn_tensor *x) {
    tn_tensor *y;
    assert_ok(run_layer(&x, 1, &y, 1, l));
    return y;
}

static tn_tensor *weight_of(double seed) {
    double data[9];
    for (int i = 0; i < 9; i++)
        data[i] = sin(seed + i);
    return leaf(TN_SHAPE(3, 3), data);
}

static tn_tensor *input(void) {
    return LEAF(TN_SHAPE(2, 3), 0.1, -0.2, 0.3, 0.4, 0.5, -0.6);
}

static void read_grad(tn_tensor *t, double *out, int64_t n) {
    assert_non_null(tn_grad(t));
    assert_ok(tn_to_host(tn_to_dtype(tn_grad(t), TN_F64), out, (uint64_t)n * sizeof *out));
}

enum { LAYERS = 3 };

/* Gradients of a chain, to the last bit those without checkpoints: masks of dropout are drawn again. */
static void gradients_are_the_same(void **state) {
    static double expected[LAYERS + 1][9];
    for (int with = 0; with < 2; with++) {
        TN_SCOPE;
        tn_manual_seed(7);
        layer layers[LAYERS];
        tn_tensor *x = input(), *y = x;
        for (int i = 0; i < LAYERS; i++) {
            layers[i] = (layer){.weight = weight_of(i), .dropout = 0.3};
            y = with ? checkpointed(&layers[i], y) : plain(&layers[i], y);
        }
        tn_tensor *drawn = tn_rand(TN_SHAPE(1), TN_F64, cpu());
        assert_ok(tn_backward(tn_sum(tn_mul(y, y))));
        /* and the generator goes on from where it was */
        static double next[2];
        double numbers[2];
        assert_ok(tn_to_host(drawn, &numbers[0], sizeof *numbers));
        assert_ok(tn_to_host(tn_rand(TN_SHAPE(1), TN_F64, cpu()), &numbers[1], sizeof *numbers));
        for (int i = 0; i <= LAYERS; i++) {
            double grads[9];
            read_grad(i < LAYERS ? layers[i].weight : x, grads, i < LAYERS ? 9 : 6);
            if (with)
                assert_memory_equal(grads, expected[i], (i < LAYERS ? 9 : 6) * sizeof *grads);
            else
                memcpy(expected[i], grads, sizeof grads);
            if (i < LAYERS) {
                assert_int_equal(layers[i].runs, 1 + with);
                assert_int_equal(layers[i].ended, with);
            }
        }
        if (with)
            assert_memory_equal(numbers, next, sizeof next);
        memcpy(next, numbers, sizeof next);
    }
}

/* What a chain of `n` layers of 32 KiB holds after the forward pass, in bytes. */
static int64_t held_by_chain(bool with, int n) {
    TN_SCOPE;
    layer layers[8];
    tn_tensor *y = tn_set_requires_grad(tn_ones(TN_SHAPE(64, 64), TN_F64, cpu()), true);
    tn_tensor *w = tn_set_requires_grad(tn_eye(64, TN_F64, cpu()), true);
    tn_memory_stats before = {.struct_size = sizeof before}, after = before;
    assert_ok(tn_memory_stats_get(cpu(), &before));
    tn_scope scope = tn_scope_open();
    for (int i = 0; i < n; i++) {
        layers[i] = (layer){.weight = w, .dropout = 0.5};
        y = with ? checkpointed(&layers[i], y) : plain(&layers[i], y);
    }
    y = tn_escape(tn_sum(y));
    tn_scope_close(scope);
    assert_ok(tn_memory_stats_get(cpu(), &after));
    assert_ok(tn_backward(y));
    return (int64_t)after.allocated_bytes - (int64_t)before.allocated_bytes;
}

static void less_is_held(void **state) {
    enum { PART = 64 * 64 * 8 };
    int64_t plainly = held_by_chain(false, 8), by_parts = held_by_chain(true, 8);
    assert_true(by_parts <= 8 * PART + 4096); /* the outputs of seven, inputs of the next */
    assert_true(plainly >= 2 * 8 * PART);     /* besides tanh's outputs, and masks */
}

static void derivatives_of_derivatives(void **state) {
    static double expected[9];
    for (int with = 0; with < 2; with++) {
        TN_SCOPE;
        layer l = {.weight = weight_of(1)};
        tn_tensor *x = input(), *y = with ? checkpointed(&l, x) : plain(&l, x), *first, *second;
        tn_tensor *loss = tn_sum(tn_mul(y, y));
        assert_ok(tn_gradients(&loss, NULL, 1, &x, 1, true, true, false, &first));
        loss = tn_sum(tn_mul(first, first));
        assert_ok(tn_gradients(&loss, NULL, 1, &l.weight, 1, false, false, false, &second));
        double grads[9];
        assert_ok(tn_to_host(second, grads, sizeof grads));
        if (with)
            assert_memory_equal(grads, expected, sizeof grads);
        memcpy(expected, grads, sizeof grads);
        assert_true(grads[0] != 0);
    }
}

static void a_kept_graph_is_computed_once(void **state) {
    TN_SCOPE;
    layer l = {.weight = weight_of(1)};
    tn_tensor *loss = tn_sum(checkpointed(&l, input()));
    double once[9], twice[9];
    assert_ok(tn_backward_full(&loss, NULL, 1, true, false));
    read_grad(l.weight, once, 9);
    assert_ok(tn_backward_full(&loss, NULL, 1, false, false));
    read_grad(l.weight, twice, 9);
    for (int i = 0; i < 9; i++)
        assert_true(twice[i] == 2 * once[i]);
    assert_int_equal(l.runs, 2);
    assert_int_equal(l.ended, 1);
    assert_int_equal(tn_backward(loss), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "a second time");
}

static void nothing_is_recorded_without_gradients(void **state) {
    TN_SCOPE;
    layer l = {.weight = weight_of(1)};
    {
        TN_NO_GRAD;
        assert_false(tn_requires_grad(checkpointed(&l, input())));
    }
    assert_int_equal(l.runs, 1);
    assert_int_equal(l.ended, 1);
}

static tn_status two_layers(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                            uint64_t n_outputs, void *user) {
    layer *layers = user;
    tn_tensor *y = checkpointed(&layers[0], inputs[0]);
    outputs[0] = checkpointed(&layers[1], y);
    outputs[1] = inputs[0];
    return TN_OK;
}

static void one_in_another_is_a_part(void **state) {
    static double expected[2][9];
    for (int with = 0; with < 2; with++) {
        TN_SCOPE;
        layer layers[] = {{.weight = weight_of(1)}, {.weight = weight_of(2)}};
        tn_tensor *x = input(), *y[2];
        if (with)
            assert_ok(tn_checkpoint(two_layers, layers, NULL, &x, 1, y, 2));
        else
            y[0] = plain(&layers[1], plain(&layers[0], y[1] = x));
        assert_ok(tn_backward(tn_add(tn_sum(y[0]), tn_sum(y[1]))));
        for (int i = 0; i < 2; i++) {
            double grads[9];
            read_grad(layers[i].weight, grads, 9);
            if (with)
                assert_memory_equal(grads, expected[i], sizeof grads);
            memcpy(expected[i], grads, sizeof grads);
            assert_int_equal(layers[i].runs, 1 + with);
        }
    }
}

/* Autocast is as it was, whatever holds where backward runs. */
static void autocast_is_as_it_was(void **state) {
    static double expected[9];
    for (int with = 0; with < 2; with++) {
        TN_SCOPE;
        layer l = {.weight =
                       tn_set_requires_grad(tn_detach(tn_to_dtype(weight_of(1), TN_F32)), true)};
        tn_tensor *x = tn_to_dtype(input(), TN_F32), *y;
        {
            TN_AUTOCAST(TN_BF16);
            y = with ? checkpointed(&l, x) : plain(&l, x);
        }
        TN_AUTOCAST(TN_F16);
        assert_ok(tn_backward(tn_sum(y)));
        assert_int_equal(tn_autocast(), TN_F16);
        double grads[9];
        read_grad(l.weight, grads, 9);
        if (with)
            assert_memory_equal(grads, expected, sizeof grads);
        memcpy(expected, grads, sizeof grads);
    }
}

/* Whatever is switched off where backward runs, and it stays so. */
static void modes_are_as_they_were(void **state) {
    static double expected[9];
    for (int mode = 0; mode < 3; mode++) {
        TN_SCOPE;
        layer l = {.weight = weight_of(1), .dropout = 0.5};
        tn_manual_seed(3);
        tn_tensor *loss = tn_sum(checkpointed(&l, input()));
        bool before = mode == 1 ? tn_set_grad_enabled(false) : tn_set_inference_mode(mode == 2);
        assert_ok(tn_backward(loss));
        assert_int_equal(tn_grad_enabled(), mode == 0);
        assert_int_equal(tn_inference_mode(), mode == 2);
        if (mode == 1)
            tn_set_grad_enabled(before);
        else
            tn_set_inference_mode(before);
        assert_true(tn_grad_enabled());
        double grads[9];
        read_grad(l.weight, grads, 9);
        if (mode > 0)
            assert_memory_equal(grads, expected, sizeof grads);
        memcpy(expected, grads, sizeof grads);
    }
}

static void what_differs_is_told(void **state) {
    static const struct {
        int how;
        tn_status status;
        const char *says;
    } cases[] = {
        {SAVES_MORE, TN_ERR_STATE, "saved more"},
        {SAVES_LESS, TN_ERR_STATE, "saved less"},
        {OTHER_SHAPE, TN_ERR_STATE, "another shape or dtype"},
        {FAILS, TN_ERR_UNSUPPORTED, "not today"},
        {FAILS_SILENTLY, TN_ERR_UNSUPPORTED, "failed without a message"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        TN_SCOPE;
        layer l = {.weight = weight_of(1), .odd = 2, .how = cases[i].how};
        tn_tensor *loss = tn_sum(checkpointed(&l, input()));
        assert_int_equal(tn_backward(loss), cases[i].status);
        assert_error(cases[i].status, cases[i].says);
        if (cases[i].how < FAILS) { /* and the first run was none of it: it may be tried again */
            assert_ok(tn_backward(loss));
            assert_int_equal(l.runs, 3);
        }
    }
}

static void inputs_stay_as_they_were(void **state) {
    TN_SCOPE;
    layer l = {.weight = weight_of(1)};
    tn_tensor *x = tn_mul_scalar(input(), tn_int(1)), *y = checkpointed(&l, x);
    tn_mul_scalar_(x, tn_int(2));
    assert_int_equal(tn_backward(tn_sum(y)), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "tn_checkpoint: input 0", "[2, 3]", "in place");
}

static tn_status writes_input(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                              uint64_t n_outputs, void *user) {
    tn_mul_(inputs[0], user);
    outputs[0] = inputs[0];
    return TN_OK;
}

static tn_status writes_saved(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                              uint64_t n_outputs, void *user) {
    outputs[0] = tn_exp(inputs[0]);
    tn_add_scalar_(outputs[0], tn_int(1), tn_int(1));
    return TN_OK;
}

static tn_status asks_gradients(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                                uint64_t n_outputs, void *user) {
    tn_tensor *x = tn_mul_scalar(inputs[0], tn_int(1)), *loss = tn_sum(tn_mul(x, x));
    return tn_gradients(&loss, NULL, 1, &x, 1, true, false, false, outputs);
}

static tn_status leaves_unset(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                              uint64_t n_outputs, void *user) {
    outputs[0] = tn_exp(inputs[0]);
    return TN_OK;
}

static void what_functions_may_not_do(void **state) {
    TN_SCOPE;
    tn_tensor *x = tn_mul_scalar(input(), tn_int(1)), *y[2];
    tn_tensor *same = input();
    assert_int_equal(tn_checkpoint(writes_input, same, NULL, &x, 1, y, 1), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "input 0", "written in place");
    assert_null(y[0]);
    x = input();
    assert_ok(tn_checkpoint(writes_saved, NULL, NULL, &x, 1, y, 1));
    assert_int_equal(tn_backward(tn_sum(y[0])), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "ExpBackward", "written in place");
    assert_int_equal(tn_checkpoint(asks_gradients, NULL, NULL, &x, 1, y, 1), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "asks for gradients");
    assert_int_equal(tn_checkpoint(leaves_unset, NULL, NULL, &x, 1, y, 2), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "output 1 unset");
    layer l = {.weight = weight_of(1), .odd = 1, .how = FAILS};
    assert_int_equal(tn_checkpoint(run_layer, &l, end_layer, &x, 1, y, 1), TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED, "not today");
    assert_int_equal(l.ended, 1);
    assert_int_equal(tn_checkpoint(NULL, &l, end_layer, &x, 1, y, 1), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "function is NULL");
    assert_int_equal(l.ended, 2);
}

/* ---- random numbers ---------------------------------------------------------------------- */

static tn_status drops(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                       uint64_t n_outputs, void *user) {
    const int *n = user;
    outputs[0] = inputs[0];
    for (int i = 0; i < *n; i++)
        outputs[0] = tn_dropout(outputs[0], 0.5, true);
    return outputs[0] ? TN_OK : tn_error_status();
}

static void *draw_until(void *stop) {
    while (!atomic_load((atomic_bool *)stop)) {
        TN_SCOPE;
        tn_rand(TN_SHAPE(3), TN_F64, cpu());
    }
    return NULL;
}

/* Though others draw from the device all the time. */
static void masks_are_the_same(void **state) {
    atomic_bool stop = false;
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, draw_until, &stop), 0);
    for (int i = 0; i < 50; i++) {
        TN_SCOPE;
        int n = 2;
        tn_tensor *x = tn_set_requires_grad(tn_ones(TN_SHAPE(64), TN_F64, cpu()), true), *y;
        assert_ok(tn_checkpoint(drops, &n, NULL, &x, 1, &y, 1));
        assert_ok(tn_backward(tn_sum(y)));
        double values[64], grads[64];
        assert_ok(tn_to_host(y, values, sizeof values));
        assert_ok(tn_to_host(tn_grad(x), grads, sizeof grads));
        assert_memory_equal(values, grads, sizeof values);
    }
    atomic_store(&stop, true);
    pthread_join(other, NULL);
}

static tn_status only_draws(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                            uint64_t n_outputs, void *user) {
    for (int i = 0; i < *(const int *)user; i++)
        if (!tn_rand(TN_SHAPE(3), TN_F64, cpu()))
            return tn_error_status();
    outputs[0] = tn_tanh(inputs[0]);
    return TN_OK;
}

static void other_draws_are_told(void **state) {
    static const struct {
        int first, second;
        const char *says;
    } cases[] = {{1, 2, "more often"}, {2, 1, "fewer random numbers"}};
    for (int i = 0; i < 2; i++) {
        TN_SCOPE;
        int n = cases[i].first;
        tn_tensor *x = tn_set_requires_grad(tn_ones(TN_SHAPE(8), TN_F64, cpu()), true), *y;
        assert_ok(tn_checkpoint(only_draws, &n, NULL, &x, 1, &y, 1));
        n = cases[i].second;
        assert_int_equal(tn_backward(tn_sum(y)), TN_ERR_STATE);
        assert_error(TN_ERR_STATE, cases[i].says);
    }
}

/* ---- threads ----------------------------------------------------------------------------- */

static void *pass_back(void *loss) {
    tn_tensor *root = loss;
    for (int i = 0; i < 20; i++)
        if (tn_backward_full(&root, NULL, 1, true, false) != TN_OK)
            return "failed";
    return NULL;
}

/* Of two threads that pass one graph both get it right, whichever computes it again. */
static void threads_share_a_graph(void **state) {
    for (int round = 0; round < 10; round++) {
        TN_SCOPE;
        layer l = {.weight = weight_of(1), .dropout = 0.4};
        tn_tensor *x = input(), *loss = tn_sum(checkpointed(&l, x)), *root = loss;
        double once[6], all[6];
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, pass_back, loss), 0);
        for (int i = 0; i < 2; i++) {
            void *result;
            pthread_join(threads[i], &result);
            assert_null(result);
        }
        read_grad(x, all, 6);
        tn_set_grad(x, NULL);
        assert_ok(tn_backward_full(&root, NULL, 1, false, false));
        read_grad(x, once, 6);
        for (int i = 0; i < 6; i++)
            assert_true(fabs(all[i] - 40 * once[i]) <= 1e-12 * fabs(all[i]));
        assert_true(l.runs <= 3);
    }
}

/* ---- memory ------------------------------------------------------------------------------ */

static tn_status two_outputs(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                             uint64_t n_outputs, void *user) {
    outputs[0] = tn_tanh(inputs[0]);
    outputs[1] = tn_dropout(tn_exp(inputs[0]), 0.5, true);
    return outputs[0] && outputs[1] ? TN_OK : tn_error_status();
}

static tn_status use(tn_tensor *x) {
    TN_SCOPE;
    tn_tensor *y[2];
    tn_status status = tn_checkpoint(two_outputs, NULL, NULL, &x, 1, y, 2);
    if (status != TN_OK)
        return status;
    return tn_backward(tn_add(tn_sum(y[0]), tn_sum(y[1])));
}

/* With any number of tensors in the scope: its stack, too, grows at some moment. */
static void every_allocation_fails_once(void **state) {
    uint64_t failed = 0;
    {
        TN_SCOPE;
        assert_ok(use(input())); /* plugins are found, and the like */
    }
    for (int filler = 0; filler < 70; filler++) {
        tni_scope_finish(); /* the stack starts anew */
        TN_SCOPE;
        tn_tensor *x = input();
        for (int i = 0; i < filler; i++)
            tn_view(x, TN_SHAPE(6));
        for (uint64_t n = 1;; n++) {
            int64_t alive = tni_tensors_alive();
            tn_scope outer =
                tn_scope_open(); /* has what one without memory for a mark would have */
            tni_alloc_fail_at(n);
            tn_status status = use(x);
            bool whole = tni_alloc_fail_at(0) < n;
            tn_scope_close(outer);
            if (status != TN_OK)
                assert_error(TN_ERR_OUT_OF_MEMORY, "memory");
            assert_ok(tn_set_grad(x, NULL));
            assert_int_equal(tni_tensors_alive(), alive);
            failed += status != TN_OK;
            if (whole)
                break;
        }
    }
    assert_true(failed > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(gradients_are_the_same),
        TEST(less_is_held),
        TEST(derivatives_of_derivatives),
        TEST(a_kept_graph_is_computed_once),
        TEST(nothing_is_recorded_without_gradients),
        TEST(one_in_another_is_a_part),
        TEST(autocast_is_as_it_was),
        TEST(modes_are_as_they_were),
        TEST(what_differs_is_told),
        TEST(inputs_stay_as_they_were),
        TEST(what_functions_may_not_do),
        TEST(masks_are_the_same),
        TEST(other_draws_are_told),
        TEST(threads_share_a_graph),
        TEST(every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
