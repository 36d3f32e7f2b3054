/* Backward in several threads at once: shared leaves, shared graphs, graphs that are freed. */
#include "tests/autograd/autograd_test.h"

#include <pthread.h>

enum { N_THREADS = 4, ROUNDS = 200 };

static void in_threads(void *(*fn)(void *), void *user) {
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fn, user), 0);
    for (int i = 0; i < N_THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

static void *forward_and_backward(void *user) {
    tn_tensor *x = user;
    for (int i = 0; i < ROUNDS; i++) {
        TN_SCOPE;
        if (tn_backward(tn_sum(tn_mul(tn_mul(x, x), x))) != TN_OK)
            return "backward failed";
    }
    return NULL;
}

static void threads_share_a_leaf(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 2, 3);
    in_threads(forward_and_backward, x);
    double n = N_THREADS * ROUNDS;
    assert_values(tn_grad(x), 12 * n, 27 * n);
}

static void *backward_through(void *user) {
    tn_tensor *y = user;
    for (int i = 0; i < ROUNDS; i++)
        if (tn_backward_full(&y, NULL, 1, true, false) != TN_OK)
            return "backward failed";
    return NULL;
}

static void threads_share_a_graph(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 2, 3), *h = x;
    for (int i = 0; i < 20; i++)
        h = tn_mul_scalar(tn_add(h, tn_mul(x, h)), tn_float(0.3));
    tn_tensor *y = tn_sum(h);
    assert_ok(tn_backward_full(&y, NULL, 1, true, false));
    double once[2];
    assert_ok(tn_to_host(tn_grad(x), once, sizeof once));
    assert_ok(tn_set_grad(x, NULL));
    in_threads(backward_through, y);
    double n = N_THREADS * ROUNDS;
    assert_values(tn_grad(x), once[0] * n, once[1] * n);
}

typedef struct shared {
    tn_tensor *h, *x;
    pthread_barrier_t *barrier;
} shared;

/* Each thread has a graph of its own on top of a common one. */
static void *backward_from_above(void *user) {
    shared *s = user;
    for (int i = 0; i < ROUNDS; i++) {
        TN_SCOPE;
        tn_tensor *y = tn_sum(tn_exp(s->h)), *g;
        if (tn_gradients(&y, NULL, 1, &s->x, 1, true, i % 2, false, &g) != TN_OK)
            return "tn_gradients failed";
        double value[2];
        if (tn_to_host(g, value, sizeof value) != TN_OK || fabs(value[0] - 4 * exp(4)) > 1e-9)
            return "wrong gradient";
    }
    return NULL;
}

static void threads_ask_for_gradients(void **state) {
    tn_tensor *x = LEAF(TN_SHAPE(2), 2, 3);
    shared s = {.h = tn_mul(x, x), .x = x};
    in_threads(backward_from_above, &s);
    assert_null(tn_grad(x));
}

/* Only one may win where the graph is freed; the others must say so, and nothing may be lost. */
static void *backward_once(void *user) {
    shared *s = user;
    pthread_barrier_wait(s->barrier);
    tn_status status = tn_backward(s->h);
    bool as_expected =
        status == TN_OK || (status == TN_ERR_STATE && strstr(tn_error_message(), "second time"));
    tn_error_clear();
    return as_expected ? NULL : "an unexpected failure";
}

static void threads_race_for_a_graph(void **state) {
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, N_THREADS);
    for (int i = 0; i < 50; i++) {
        TN_SCOPE;
        tn_tensor *x = LEAF(TN_SHAPE(1), 2), *h = x;
        for (int k = 0; k < 30; k++)
            h = tn_mul(h, x);
        shared s = {.h = h, .x = x, .barrier = &barrier};
        in_threads(backward_once, &s);
    }
    pthread_barrier_destroy(&barrier);
}

/* Views of a common base that was rewritten: all renew their history at once. */
static void *use_view(void *user) {
    shared *s = user;
    TN_SCOPE;
    pthread_barrier_wait(s->barrier);
    tn_tensor *y = tn_sum(tn_mul(s->h, s->h)), *g;
    if (!y || tn_gradients(&y, NULL, 1, &s->x, 1, true, false, false, &g) != TN_OK)
        return "tn_gradients failed";
    double value[2];
    tn_status status = tn_to_host(g, value, sizeof value);
    return status == TN_OK && fabs(value[0]) + fabs(value[1] - 2 * 15 * 5) < 1e-9
               ? NULL
               : "wrong gradient";
}

static void threads_ask_a_stale_view(void **state) {
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, N_THREADS);
    for (int i = 0; i < 50; i++) {
        TN_SCOPE;
        tn_tensor *x = LEAF(TN_SHAPE(2), 2, 3), *base = tn_clone(x), *v = tn_select(base, 0, 1);
        tn_mul_scalar_(base, tn_float(5));
        shared s = {.h = v, .x = x, .barrier = &barrier};
        in_threads(use_view, &s);
    }
    pthread_barrier_destroy(&barrier);
}

/* A graph made in one thread dies in another. */
static void *drop_it(void *user) {
    tn_drop(user);
    return NULL;
}

static void graphs_die_elsewhere(void **state) {
    tn_tensor *y;
    {
        TN_SCOPE;
        tn_tensor *x = LEAF(TN_SHAPE(1), 2);
        y = x;
        for (int i = 0; i < 1000; i++)
            y = tn_mul(y, x);
        y = tn_keep(y);
    }
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, drop_it, y), 0);
    pthread_join(thread, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(threads_share_a_leaf),      TEST(threads_share_a_graph),
        TEST(threads_ask_for_gradients), TEST(threads_race_for_a_graph),
        TEST(threads_ask_a_stale_view),  TEST(graphs_die_elsewhere),
    };
    return cmocka_run_group_tests_name("engine in threads", tests, NULL, NULL);
}
