/* Autocast: what it does to the arguments of each kind of operator, to gradients, and to threads. */
#include "tests/autograd/autograd_test.h"

#include <tenon/autocast.h>
#include <tenon/dispatch.h>

#include <pthread.h>

/* f32 of given values. */
static tn_tensor *f32(tn_ints shape, const double *data) {
    return tn_to_dtype(values(shape, data), TN_F32);
}
#define F32(shape, ...) f32(shape, (const double[]){__VA_ARGS__})

static tn_tensor *as(tn_tensor *t, tn_dtype dtype) {
    return tn_to_dtype(t, dtype);
}

static void assert_dtype(tn_tensor *t, tn_dtype dtype) {
    assert_non_null(t);
    assert_string_equal(tn_dtype_name(tn_dtype_of(t)), tn_dtype_name(dtype));
}

static void products_are_low(void **state) {
    static const tn_dtype lows[] = {TN_F16, TN_BF16};
    TN_SCOPE;
    tn_tensor *a = F32(TN_SHAPE(2, 2), 1, 2, 3, 4), *b = F32(TN_SHAPE(2, 2), 5, 6, 7, 8);
    for (int i = 0; i < 2; i++) {
        TN_AUTOCAST(lows[i]);
        assert_int_equal(tn_autocast(), lows[i]);
        assert_dtype(tn_matmul(a, b), lows[i]);
        assert_dtype(tn_mm(as(a, TN_F16), as(b, TN_BF16)), lows[i]);
        assert_dtype(tn_addmm(a, a, b, tn_int(1), tn_int(1)), lows[i]);
        assert_dtype(tn_linear(a, b, TN_NONE), lows[i]);
        assert_values(as(tn_linear(a, b, TN_NONE), TN_F64), 17, 23, 39, 53);
        tn_tensor *picture = tn_view(a, TN_SHAPE(1, 1, 2, 2));
        assert_dtype(tn_conv2d(picture, picture, TN_NONE), lows[i]);
        tn_tensor *q = tn_view(a, TN_SHAPE(1, 2, 2));
        assert_dtype(tn_scaled_dot_product_attention(q, q, q), lows[i]);
    }
    assert_int_equal(tn_autocast(), TN_DTYPE_NONE);
    assert_dtype(tn_matmul(a, b), TN_F32);
}

static void ranges_are_f32(void **state) {
    TN_SCOPE;
    TN_AUTOCAST(TN_F16);
    tn_tensor *x = as(F32(TN_SHAPE(2, 2), 1, 2, 3, 4), TN_F16);
    assert_dtype(tn_softmax(x, 1), TN_F32);
    assert_dtype(tn_log_softmax(as(x, TN_BF16), 1), TN_F32);
    assert_dtype(tn_exp(x), TN_F32);
    assert_dtype(tn_pow_scalar(x, tn_float(2)), TN_F32);
    assert_dtype(tn_layer_norm(x, TN_SHAPE(2), TN_NONE, TN_NONE), TN_F32);
    assert_dtype(tn_mse_loss(x, x), TN_F32);
    assert_dtype(tn_sum(x), TN_F32);
    /* 1e5 is beyond f16 */
    assert_values(as(tn_sum(as(F32(TN_SHAPE(2), 60000, 40000), TN_F16)), TN_F64), 99968 + 32);
}

static void a_given_dtype_holds(void **state) {
    TN_SCOPE;
    TN_AUTOCAST(TN_BF16);
    tn_tensor *x = F32(TN_SHAPE(2), 1, 2);
    assert_dtype(tn_sum(x, TN_F16), TN_F16);
    assert_dtype(tn_softmax(x, 0, TN_F64), TN_F64);
    assert_dtype(tn_cumsum(as(x, TN_F16), 0), TN_F32);
    assert_dtype(tn_sum(as(x, TN_I32)), TN_I64); /* no float takes part: told nothing */
}

static void the_widest_wins(void **state) {
    TN_SCOPE;
    TN_AUTOCAST(TN_F16);
    tn_tensor *x = F32(TN_SHAPE(2), 1, 2), *half = as(x, TN_F16), *other = as(x, TN_BF16);
    tn_tensor *mixed[] = {half, x}, *halves[] = {half, other}, *same[] = {half, half};
    assert_dtype(tn_cat(mixed, 2, 0), TN_F32);
    assert_values(as(tn_cat(mixed, 2, 0), TN_F64), 1, 2, 1, 2);
    assert_dtype(tn_cat(halves, 2, 0), TN_F32);
    assert_dtype(tn_stack(same, 2, 0), TN_F16);
    assert_dtype(tn_dot(half, x), TN_F32);
    assert_dtype(tn_addcmul(half, x, half), TN_F32);
}

static void the_rest_stays(void **state) {
    TN_SCOPE;
    TN_AUTOCAST(TN_BF16);
    tn_tensor *x = F32(TN_SHAPE(2, 2), 1, 2, 3, 4), *wide = as(x, TN_F64), *whole = as(x, TN_I32);
    assert_dtype(tn_matmul(wide, wide), TN_F64);
    assert_dtype(tn_matmul(whole, whole), TN_I32);
    assert_dtype(tn_softmax(wide, 0), TN_F64);
    assert_dtype(tn_add(x, x), TN_F32);
    assert_dtype(tn_relu(as(x, TN_F16)), TN_F16);
    tn_tensor *out = tn_zeros_like(x);
    assert_ptr_equal(tn_exp_out(as(x, TN_F16), out), out);
    assert_dtype(out, TN_F32);
    tn_tensor *half = as(x, TN_F16);
    assert_ptr_equal(tn_exp_(half), half);
    assert_dtype(half, TN_F16);
}

/* The gradients of the parameters are what casts by hand give, and of the parameters' dtype. */
static void gradients_pass_the_casts(void **state) {
    for (int by_hand = 0; by_hand < 2; by_hand++) {
        TN_SCOPE;
        tn_tensor *x = F32(TN_SHAPE(2, 2), 0.1, -0.2, 0.3, 0.7);
        tn_tensor *w = tn_set_requires_grad(F32(TN_SHAPE(2, 2), 0.11, 0.23, -0.37, 0.41), true);
        tn_tensor *b = tn_set_requires_grad(F32(TN_SHAPE(2), 0.013, -0.17), true);
        tn_tensor *loss;
        if (by_hand) {
            tn_tensor *y = tn_linear(as(x, TN_BF16), as(w, TN_BF16), as(b, TN_BF16));
            loss = tn_sum(tn_pow_scalar(as(tn_tanh(y), TN_F32), tn_int(2)));
            assert_ok(tn_backward(loss));
        } else {
            TN_AUTOCAST(TN_BF16);
            loss = tn_sum(tn_pow_scalar(tn_tanh(tn_linear(x, w, b)), tn_int(2)));
            assert_ok(tn_backward(loss)); /* under it, too: the backward pass is not */
        }
        assert_dtype(loss, TN_F32);
        assert_dtype(tn_grad(w), TN_F32);
        static double first[6];
        double grads[6];
        assert_ok(tn_to_host(as(tn_grad(w), TN_F64), grads, 4 * sizeof *grads));
        assert_ok(tn_to_host(as(tn_grad(b), TN_F64), grads + 4, 2 * sizeof *grads));
        for (int i = 0; i < 6; i++) {
            if (by_hand)
                assert_true(grads[i] == first[i] && grads[i] != 0);
            first[i] = grads[i];
        }
    }
}

/* What was computed in f32 is differentiated in f32, whatever holds where backward runs. */
static void backward_is_not_under_it(void **state) {
    TN_SCOPE;
    tn_tensor *x = F32(TN_SHAPE(1, 2), 0.1, 0.3);
    tn_tensor *w = tn_set_requires_grad(F32(TN_SHAPE(2, 1), 0.7, 0.9), true);
    tn_tensor *y = tn_mm(x, w);
    TN_AUTOCAST(TN_BF16);
    assert_ok(tn_backward(tn_sum(y)));
    assert_dtype(tn_grad(w), TN_F32);
    assert_values(as(tn_grad(w), TN_F64), (float)0.1, (float)0.3);
}

/* sum((x w)^2) is differentiated twice with the casts inside. */
static void derivatives_of_derivatives(void **state) {
    TN_SCOPE;
    tn_tensor *w = tn_set_requires_grad(F32(TN_SHAPE(1, 1), 3), true), *first, *second;
    tn_tensor *x = F32(TN_SHAPE(1, 1), 2);
    TN_AUTOCAST(TN_BF16);
    tn_tensor *y = tn_mm(x, w), *loss = tn_sum(tn_mul(y, y));
    assert_ok(tn_gradients(&loss, NULL, 1, &w, 1, true, true, false, &first));
    assert_dtype(first, TN_F32);
    assert_values(as(first, TN_F64), 24); /* 2 x^2 w */
    assert_ok(tn_gradients(&first, NULL, 1, &w, 1, false, false, false, &second));
    assert_values(as(second, TN_F64), 8);
}

/* Attention's results are of two dtypes, also where its gradient is recorded. */
static void attention_is_differentiated_twice(void **state) {
    static const tn_dtype dtypes[] = {TN_F32, TN_BF16, TN_F16};
    double expected = 0;
    for (int i = 0; i < 3; i++) {
        TN_SCOPE;
        double data[16];
        for (int k = 0; k < 16; k++)
            data[k] = sin(k);
        tn_tensor *q =
            tn_set_requires_grad(tn_view(f32(TN_SHAPE(16), data), TN_SHAPE(1, 2, 4, 2)), true);
        tn_tensor *half = as(q, dtypes[i]), *first, *second;
        tn_tensor *loss = tn_sum(tn_scaled_dot_product_attention(half, half, half), TN_F32);
        assert_ok(tn_gradients(&loss, NULL, 1, &q, 1, true, true, false, &first));
        assert_dtype(first, TN_F32);
        loss = tn_sum(tn_mul(first, first));
        assert_ok(tn_gradients(&loss, NULL, 1, &q, 1, false, false, false, &second));
        double norm = item(as(tn_sum(tn_mul(second, second)), TN_F64));
        if (i == 0)
            expected = norm;
        assert_true(norm > 0.1 && fabs(norm - expected) < 0.1 * expected);
    }
}

static void *other_thread(void *arg) {
    tn_dtype *seen = arg;
    TN_SCOPE;
    tn_tensor *x = tn_ones(TN_SHAPE(2, 2), TN_F32, cpu());
    seen[0] = tn_autocast();
    seen[1] = tn_dtype_of(tn_matmul(x, x));
    return NULL;
}

static void it_is_of_a_thread(void **state) {
    pthread_t thread;
    tn_dtype seen[2];
    TN_AUTOCAST(TN_BF16);
    assert_int_equal(pthread_create(&thread, NULL, other_thread, seen), 0);
    pthread_join(thread, NULL);
    assert_int_equal(seen[0], TN_DTYPE_NONE);
    assert_int_equal(seen[1], TN_F32);
}

static void it_nests_and_refuses(void **state) {
    TN_SCOPE;
    tn_tensor *x = F32(TN_SHAPE(1, 1), 1);
    assert_int_equal(tn_set_autocast(TN_BF16), TN_DTYPE_NONE);
    {
        TN_AUTOCAST(TN_DTYPE_NONE);
        assert_dtype(tn_mm(x, x), TN_F32);
    }
    assert_dtype(tn_mm(x, x), TN_BF16);
    assert_int_equal(tn_set_autocast(TN_F32), TN_BF16);
    assert_error(TN_ERR_DTYPE, "tn_set_autocast", "f32", "f16 or bf16");
    assert_int_equal(tn_set_autocast(TN_DTYPE_NONE), TN_BF16);
    /* a program that switches the key on has not said what to cast to */
    tn_thread_keys keys = tn_thread_keys_get(), with = keys;
    with.included |= TN_KEY_BIT(TN_KEY_AUTOCAST);
    tn_thread_keys_set(with);
    assert_dtype(tn_mm(x, x), TN_F32);
    tn_thread_keys_set(keys);
}

/* An operator that says nothing is what its parts say; one that says something is not asked again. */
static void parts_follow_the_whole(void **state) {
    TN_SCOPE;
    TN_AUTOCAST(TN_F16);
    tn_tensor *x = F32(TN_SHAPE(2, 2), 1, 2, 3, 4);
    assert_dtype(tn_mean(x), TN_F32);
    assert_dtype(tn_upsample_nearest1d(tn_view(as(x, TN_F16), TN_SHAPE(1, 2, 2)), TN_SHAPE(4)),
                 TN_F32);
    assert_dtype(tn_mean(as(x, TN_F16)), TN_F16); /* not of sum's parts: a kernel's decomposition */
    tn_tensor *operands[] = {x, x};
    assert_dtype(tn_einsum("ij,jk->ik", operands, 2), TN_F16); /* bmm inside */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(products_are_low),
        TEST(ranges_are_f32),
        TEST(a_given_dtype_holds),
        TEST(the_widest_wins),
        TEST(the_rest_stays),
        TEST(gradients_pass_the_casts),
        TEST(backward_is_not_under_it),
        TEST(derivatives_of_derivatives),
        TEST(attention_is_differentiated_twice),
        TEST(it_is_of_a_thread),
        TEST(it_nests_and_refuses),
        TEST(parts_follow_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
