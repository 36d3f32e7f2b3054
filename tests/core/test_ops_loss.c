/* Softmax, normalisation and losses: stability, masks, running statistics. Expected values come
 * from the definitions, in double. */
#include "tests/core/ops_test.h"

/* ---- softmax ----------------------------------------------------------------------------- */

static void softmax_of_any_dimension_and_dtype(void **state) {
    TN_SCOPE;
    double e = exp(1), s = 1 + e;
    tn_tensor *x = of(TN_F64, TN_SHAPE(2, 2), 0, 1, 1, 1);
    assert_tensor(tn_softmax(x, 1), TN_F64, TN_SHAPE(2, 2), 1e-15, 1 / s, e / s, 0.5, 0.5);
    assert_tensor(tn_softmax(x, -2), TN_F64, TN_SHAPE(2, 2), 1e-15, 1 / s, 0.5, e / s, 0.5);
    assert_tensor(tn_softmax(tn_transpose(x, 0, 1), 0), TN_F64, TN_SHAPE(2, 2), 1e-15, 1 / s, 0.5,
                  e / s, 0.5);
    assert_tensor(tn_log_softmax(x, 1), TN_F64, TN_SHAPE(2, 2), 1e-15, -log(s), 1 - log(s), -log(2),
                  -log(2));
    tn_tensor *whole = of(TN_I32, TN_SHAPE(2), 0, 1);
    assert_tensor(tn_softmax(whole, 0), TN_F32, TN_SHAPE(2), 1e-6, 1 / s, e / s);
    assert_tensor(tn_log_softmax(whole, 0, TN_F64), TN_F64, TN_SHAPE(2), 1e-15, -log(s),
                  1 - log(s));
    assert_tensor(tn_softmax(of(TN_F32, TN_SCALAR_SHAPE, 5), -1), TN_F32, TN_SCALAR_SHAPE, 0, 1);
    assert_tensor(tn_log_softmax(of(TN_F32, TN_SCALAR_SHAPE, 5), 0), TN_F32, TN_SCALAR_SHAPE, 0, 0);
    assert_int_equal(tn_numel(tn_softmax(tn_zeros(TN_SHAPE(3, 0), TN_F32, dev), 1)), 0);
}

static void softmax_of_large_values(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F32, TN_SHAPE(4), 1e4, 1e4, -1e4, -INFINITY);
    assert_tensor(tn_softmax(x, 0), TN_F32, TN_SHAPE(4), 0, 0.5, 0.5, 0, 0);
    assert_tensor(tn_log_softmax(x, 0), TN_F32, TN_SHAPE(4), 1e-6, -log(2), -log(2), -2e4 - log(2),
                  -INFINITY);
    /* 100000 halves of e^0 add up in f32 */
    tn_tensor *zeros = tn_zeros(TN_SHAPE(100000), TN_F16, dev);
    assert_tensor(tn_narrow(tn_log_softmax(zeros, 0), 0, 7, 1), TN_F16, TN_SHAPE(1), 1e-3,
                  -log(1e5));
}

/* ---- normalisation ----------------------------------------------------------------------- */

static void layer_norm_over_the_last_dimensions(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F64, TN_SHAPE(2, 1, 2), 1, 3, -2, 6), *out, *mean, *rstd;
    tn_tensor *weight = of(TN_F64, TN_SHAPE(2), 2, 1), *bias = of(TN_F64, TN_SHAPE(2), 0, 10);
    double r0 = 1 / sqrt(1.25), r1 = 1 / sqrt(16.25);
    assert_int_equal(tn_native_layer_norm(x, TN_SHAPE(2), weight, bias, 0.25, &out, &mean, &rstd),
                     TN_OK);
    assert_tensor(out, TN_F64, TN_SHAPE(2, 1, 2), 1e-14, -2 * r0, 10 + r0, -8 * r1, 10 + 4 * r1);
    assert_tensor(mean, TN_F64, TN_SHAPE(2, 1, 1), 1e-15, 2, 2);
    assert_tensor(rstd, TN_F64, TN_SHAPE(2, 1, 1), 1e-15, r0, r1);
    double r = 1 / sqrt((9 + 1 + 36 + 4) / 4. - 4 + 1e-5), m = 2;
    assert_tensor(tn_layer_norm(x, TN_SHAPE(2, 1, 2)), TN_F64, TN_SHAPE(2, 1, 2), 1e-14,
                  (1 - m) * r, (3 - m) * r, (-2 - m) * r, (6 - m) * r);
    tn_tensor *only_bias =
        tn_layer_norm(x, TN_SHAPE(1, 2), TN_NONE, tn_reshape(bias, TN_SHAPE(1, 2)));
    assert_tensor(tn_select(tn_flatten(only_bias), 0, 1), TN_F64, TN_SCALAR_SHAPE, 1e-4, 11);
    tn_tensor *half = of(TN_F16, TN_SHAPE(2), 60000, 60064);
    assert_tensor(tn_layer_norm(half, TN_SHAPE(2)), TN_F16, TN_SHAPE(2), 1e-3, -1, 1);
    assert_fails(tn_layer_norm(x, TN_SHAPE(3)), TN_ERR_SHAPE, "[2, 1, 2]", "[3]");
    assert_fails(tn_layer_norm(x, TN_SCALAR_SHAPE), TN_ERR_INVALID_ARGUMENT, "normalized_shape");
    assert_fails(tn_layer_norm(x, TN_SHAPE(1, 2), weight), TN_ERR_SHAPE, "weight", "[2]", "[1, 2]");
    tn_tensor *rows = tn_zeros(TN_SHAPE(2, 0), TN_F32, dev);
    assert_int_equal(tn_numel(tn_layer_norm(rows, TN_SHAPE(0))), 0);
}

static void all_gradients_of_layer_norm_at_once(void **state) {
    TN_SCOPE;
    const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16};
    for (int i = 0; i < 3; i++) {
        tn_tensor *x = requiring_grad(noise(dtypes[i], TN_SHAPE(3, 2, 4), 1));
        tn_tensor *w = requiring_grad(noise(dtypes[i], TN_SHAPE(2, 4), 2));
        tn_tensor *b = requiring_grad(noise(dtypes[i], TN_SHAPE(2, 4), 3));
        tn_tensor *g = noise(dtypes[i], TN_SHAPE(3, 2, 4), 4), *y, *mean, *rstd, *grads[3];
        tn_ints shape = TN_SHAPE(2, 4);
        assert_int_equal(tn_native_layer_norm(x, shape, w, b, 1e-5, &y, &mean, &rstd), TN_OK);
        assert_int_equal(tn_backward(tn_sum(tn_mul(y, g))), TN_OK);
        assert_int_equal(tn_native_layer_norm_backward(g, tn_detach(x), shape, mean, rstd,
                                                       tn_detach(w), tn_detach(b), &grads[0],
                                                       &grads[1], &grads[2]),
                         TN_OK);
        tn_tensor *leaves[] = {x, w, b};
        for (int k = 0; k < 3; k++) {
            double *want = values_of(tn_grad(leaves[k]));
            assert_int_equal(tn_dtype_of(grads[k]), dtypes[i]);
            assert_values(grads[k], tn_sizes(leaves[k]), i == 2 ? 4e-3 : 1e-5, want);
            free(want);
        }
    }
    tn_tensor *x = noise(TN_F32, TN_SHAPE(2, 3), 1), *one = tn_ones(TN_SHAPE(2, 1), TN_F32, dev),
              *out[3];
    assert_int_equal(tn_native_layer_norm_backward(one, x, TN_SHAPE(3), one, one, TN_NONE, TN_NONE,
                                                   &out[0], &out[1], &out[2]),
                     TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "grad_output", "[2, 1]", "[2, 3]", NULL);
}

static void batch_norm_normalises_channels_and_remembers(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 2, 2), 1, 3, 10, 10, 5, 7, 10, 14);
    tn_tensor *weight = of(TN_F32, TN_SHAPE(2), 2, 1), *bias = of(TN_F32, TN_SHAPE(2), 0, 100);
    tn_tensor *mean = of(TN_F32, TN_SHAPE(2), 8, 0), *var = of(TN_F32, TN_SHAPE(2), 1, 1);
    /* channel 0: 1 3 5 7, mean 4, variance 5, unbiased 20/3; channel 1: 11, 3, 4 */
    double r0 = 2 / sqrt(5 + 1e-5), r1 = 1 / sqrt(3 + 1e-5);
    assert_tensor(tn_batch_norm(x, weight, bias, mean, var, true, 0.25), TN_F32, TN_SHAPE(2, 2, 2),
                  1e-5, -3 * r0, -r0, 100 - r1, 100 - r1, r0, 3 * r0, 100 - r1, 100 + 3 * r1);
    assert_tensor(mean, TN_F32, TN_SHAPE(2), 1e-6, 7, 2.75);
    assert_tensor(var, TN_F32, TN_SHAPE(2), 1e-6, 0.75 + 20. / 12, 1.75);
    tn_tensor *flat = of(TN_F32, TN_SHAPE(1, 2), 8, 4);
    double s0 = 1 / sqrt(0.75 + 20. / 12 + 0.5), s1 = 1 / sqrt(2.25);
    assert_tensor(tn_batch_norm(flat, TN_NONE, TN_NONE, mean, var, false, 0.1, 0.5), TN_F32,
                  TN_SHAPE(1, 2), 1e-5, s0, 1.25 * s1);
    assert_tensor(mean, TN_F32, TN_SHAPE(2), 1e-6, 7, 2.75);
    tn_tensor *y = tn_batch_norm(x, TN_NONE, TN_NONE, TN_NONE, TN_NONE, true);
    assert_tensor(tn_narrow(tn_flatten(y), 0, 0, 1), TN_F32, TN_SHAPE(1), 1e-5, -1.5 * r0);
    y = tn_batch_norm(tn_to_dtype(x, TN_F16), weight, bias, mean, var, false);
    assert_int_equal(tn_dtype_of(y), TN_F16);
}

static void a_batch_without_elements_changes_nothing(void **state) {
    TN_SCOPE;
    for (int training = 0; training < 2; training++) {
        tn_tensor *x = requiring_grad(tn_zeros(TN_SHAPE(0, 2, 3), TN_F16, dev));
        tn_tensor *weight = requiring_grad(of(TN_F32, TN_SHAPE(2), 2, 1));
        tn_tensor *bias = requiring_grad(of(TN_F32, TN_SHAPE(2), 0, 1));
        tn_tensor *mean = of(TN_F32, TN_SHAPE(2), 8, 0), *var = of(TN_F32, TN_SHAPE(2), 1, 4);
        tn_tensor *y = tn_batch_norm(x, weight, bias, mean, var, training);
        assert_int_equal(tn_dtype_of(y), TN_F16);
        assert_shape(y, 0, 2, 3);
        assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
        assert_shape(tn_grad(x), 0, 2, 3);
        assert_tensor(tn_grad(weight), TN_F32, TN_SHAPE(2), 0, 0, 0);
        assert_tensor(tn_grad(bias), TN_F32, TN_SHAPE(2), 0, 0, 0);
        assert_tensor(mean, TN_F32, TN_SHAPE(2), 0, 8, 0);
        assert_tensor(var, TN_F32, TN_SHAPE(2), 0, 1, 4);
        tn_tensor *none = tn_zeros(TN_SHAPE(0), TN_F32, dev);
        assert_shape(tn_batch_norm(none, none, none, none, none, training), 0);
    }
    assert_shape(
        tn_batch_norm(tn_zeros(TN_SHAPE(2, 0, 3)), TN_NONE, TN_NONE, TN_NONE, TN_NONE, true), 2, 0,
        3);
}

static void statistics_of_a_batch_stay_out_of_the_graph(void **state) {
    TN_SCOPE;
    tn_tensor *x = requiring_grad(noise(TN_F64, TN_SHAPE(4, 2), 1));
    tn_tensor *mean = tn_zeros(TN_SHAPE(2), TN_F64, dev), *var = tn_ones(TN_SHAPE(2), TN_F64, dev);
    tn_tensor *y = tn_batch_norm(x, TN_NONE, TN_NONE, mean, var, true);
    assert_false(tn_requires_grad(mean));
    assert_false(tn_requires_grad(var));
    /* the sum of what is normalised does not depend on x */
    assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
    assert_tensor(tn_grad(x), TN_F64, TN_SHAPE(4, 2), 1e-12, 0, 0, 0, 0, 0, 0, 0, 0);
}

static void batch_norm_says_what_it_lacks(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F32, TN_SHAPE(1, 2), 1, 2), *three = of(TN_F32, TN_SHAPE(3), 1, 2, 3);
    assert_fails(tn_batch_norm(x, TN_NONE, TN_NONE, TN_NONE, TN_NONE, true), TN_ERR_SHAPE,
                 "tn_batch_norm", "more than one value", "[1, 2]");
    assert_fails(tn_batch_norm(x, TN_NONE, TN_NONE, TN_NONE, TN_NONE, false),
                 TN_ERR_INVALID_ARGUMENT, "running_mean");
    assert_fails(tn_batch_norm(x, TN_NONE, three, TN_NONE, TN_NONE, true), TN_ERR_SHAPE, "bias",
                 "[2]", "[3]");
    assert_fails(tn_batch_norm(three, TN_NONE, TN_NONE, TN_NONE, TN_NONE, true), TN_ERR_SHAPE,
                 "[N, C, ...]", "[3]");
}

/* ---- losses ------------------------------------------------------------------------------ */

static void the_likelihood_of_targets(void **state) {
    TN_SCOPE;
    tn_tensor *logs = of(TN_F32, TN_SHAPE(3, 2), -1, -2, -3, -4, -5, -6);
    tn_tensor *target = of(TN_I64, TN_SHAPE(3), 1, 0, 1);
    assert_tensor(tn_nll_loss(logs, target), TN_F32, TN_SCALAR_SHAPE, 1e-6, 11. / 3);
    assert_tensor(tn_nll_loss(logs, target, TN_NONE, "sum"), TN_F32, TN_SCALAR_SHAPE, 0, 11);
    assert_tensor(tn_nll_loss(logs, target, TN_NONE, "none"), TN_F32, TN_SHAPE(3), 0, 2, 3, 6);
    tn_tensor *weight = of(TN_F32, TN_SHAPE(2), 1, 3);
    assert_tensor(tn_nll_loss(logs, target, weight), TN_F32, TN_SCALAR_SHAPE, 1e-6, 27. / 7);
    assert_tensor(tn_nll_loss(logs, target, weight, "none"), TN_F32, TN_SHAPE(3), 0, 6, 3, 18);
    assert_tensor(tn_nll_loss(logs, target, weight, "mean", 1), TN_F32, TN_SCALAR_SHAPE, 0, 3);
    tn_tensor *narrow = tn_to_dtype(target, TN_I32);
    assert_tensor(tn_nll_loss(logs, narrow), TN_F32, TN_SCALAR_SHAPE, 1e-6, 11. / 3);
    tn_tensor *one = tn_select(logs, 0, 0), *class = tn_select(target, 0, 0);
    assert_tensor(tn_nll_loss(one, class), TN_F32, TN_SCALAR_SHAPE, 0, 2);
    assert_tensor(tn_nll_loss(one, class, TN_NONE, "none"), TN_F32, TN_SCALAR_SHAPE, 0, 2);
    /* [N, C, L] */
    tn_tensor *lines = of(TN_F32, TN_SHAPE(1, 2, 3), -1, -2, -3, -4, -5, -6);
    tn_tensor *places = of(TN_I64, TN_SHAPE(1, 3), 0, 1, -100);
    assert_tensor(tn_nll_loss(lines, places, TN_NONE, "none"), TN_F32, TN_SHAPE(1, 3), 0, 1, 5, 0);
    assert_tensor(tn_nll_loss(lines, places), TN_F32, TN_SCALAR_SHAPE, 0, 3);
}

static void ignored_targets_count_nothing(void **state) {
    TN_SCOPE;
    tn_tensor *logs = requiring_grad(of(TN_F32, TN_SHAPE(3, 2), -INFINITY, -2, -3, -4, NAN, NAN));
    tn_tensor *target = of(TN_I64, TN_SHAPE(3), -100, 1, -100);
    tn_tensor *loss = tn_nll_loss(logs, target);
    assert_tensor(loss, TN_F32, TN_SCALAR_SHAPE, 0, 4);
    assert_int_equal(tn_backward(loss), TN_OK);
    assert_tensor(tn_grad(logs), TN_F32, TN_SHAPE(3, 2), 0, 0, 0, 0, -1, 0, 0);
    assert_tensor(tn_nll_loss(logs, target, TN_NONE, "none"), TN_F32, TN_SHAPE(3), 0, 0, 4, 0);
    tn_tensor *all = of(TN_I64, TN_SHAPE(3), -100, -100, -100);
    assert_tensor(tn_nll_loss(logs, all), TN_F32, TN_SCALAR_SHAPE, 0, NAN);
    assert_tensor(tn_nll_loss(logs, all, TN_NONE, "sum"), TN_F32, TN_SCALAR_SHAPE, 0, 0);
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 2), 1, 1, 7, 9);
    tn_tensor *classes = of(TN_I64, TN_SHAPE(2), 1, 0);
    assert_tensor(tn_cross_entropy(x, classes, TN_NONE, "mean", 0), TN_F32, TN_SCALAR_SHAPE, 1e-6,
                  log(2));
}

static void the_likelihood_and_how_many_targets_count(void **state) {
    TN_SCOPE;
    tn_tensor *logs = of(TN_F32, TN_SHAPE(3, 2), -1, -2, -3, -4, -5, NAN), *out, *total;
    tn_tensor *target = of(TN_I32, TN_SHAPE(3), 1, 0, 7);
    assert_int_equal(tn_nll_loss_forward(logs, target, true, 7, &out, &total), TN_OK);
    assert_tensor(out, TN_F32, TN_SCALAR_SHAPE, 0, 2.5);
    assert_tensor(total, TN_I64, TN_SCALAR_SHAPE, 0, 2);
    tn_tensor *grad = of(TN_F32, TN_SCALAR_SHAPE, 3), *spoilt = of(TN_F32, TN_SCALAR_SHAPE, NAN);
    assert_tensor(tn_nll_loss_backward(grad, target, total, TN_SHAPE(3, 2), true, 7), TN_F32,
                  TN_SHAPE(3, 2), 0, 0, -1.5, -1.5, 0, 0, 0);
    assert_tensor(tn_nll_loss_backward(grad, target, total, TN_SHAPE(3, 2), false, 7), TN_F32,
                  TN_SHAPE(3, 2), 0, 0, -3, -3, 0, 0, 0);
    assert_tensor(tn_nll_loss_backward(spoilt, target, total, TN_SHAPE(3, 2), true, 7), TN_F32,
                  TN_SHAPE(3, 2), 0, 0, NAN, NAN, 0, 0, 0);
    tn_tensor *one = tn_select(logs, 0, 1), *class = tn_select(target, 0, 0);
    assert_int_equal(tn_nll_loss_forward(one, class, false, -100, &out, &total), TN_OK);
    assert_tensor(out, TN_F32, TN_SCALAR_SHAPE, 0, 4);
    assert_tensor(tn_nll_loss_backward(grad, class, total, TN_SHAPE(2), false), TN_F32, TN_SHAPE(2),
                  0, 0, -3);
    /* nothing to count */
    tn_tensor *none = tn_zeros(TN_SHAPE(0, 2), TN_F32, dev),
              *no = tn_zeros(TN_SHAPE(0), TN_I64, dev);
    for (int mean = 0; mean < 2; mean++) {
        assert_int_equal(tn_nll_loss_forward(none, no, mean, -100, &out, &total), TN_OK);
        assert_tensor(out, TN_F32, TN_SCALAR_SHAPE, 0, mean ? NAN : 0);
        assert_tensor(total, TN_I64, TN_SCALAR_SHAPE, 0, 0);
        assert_tensor(tn_nll_loss(none, no, TN_NONE, mean ? "mean" : "sum"), TN_F32,
                      TN_SCALAR_SHAPE, 0, mean ? NAN : 0);
    }
    assert_shape(tn_nll_loss_backward(grad, no, total, TN_SHAPE(0, 2)), 0, 2);
}

/* What kernels did, one behind the other. */
static void note_kernel(const tn_profile_event *e, void *user) {
    size_t n = strlen(user);
    if (e->how == TN_PROFILE_KERNEL)
        snprintf((char *)user + n, 256 - n, "%s ", e->op);
}

static void the_likelihood_is_a_kernel_each_way(void **state) {
    TN_SCOPE;
    char kernels[256] = "", name[64];
    tn_tensor *x = requiring_grad(noise(TN_F32, TN_SHAPE(2, 3), 1));
    assert_int_equal(tn_profile_start(), TN_OK);
    tn_tensor *loss = tn_cross_entropy(x, of(TN_I64, TN_SHAPE(2), 0, 2));
    assert_int_equal(tn_backward(loss), TN_OK);
    assert_int_equal(tn_profile_stop(), TN_OK);
    assert_int_equal(tn_profile_events(note_kernel, kernels, NULL), TN_OK);
    if (strcmp(tn_device_name(dev, name, sizeof name), "cpu:0") == 0)
        assert_string_equal(kernels, "log_softmax_forward nll_loss_forward nll_loss_backward "
                                     "log_softmax_backward ");
    else /* which has the small set alone */
        assert_non_null(strstr(kernels, "gather where sum.dim "));
}

static void more_targets_than_halves_count(void **state) {
    TN_SCOPE;
    tn_tensor *logs = requiring_grad(tn_full(TN_SHAPE(70000, 1), tn_float(-3), TN_F16, dev));
    tn_tensor *target = tn_zeros(TN_SHAPE(70000), TN_I64, dev), *loss = tn_nll_loss(logs, target);
    assert_tensor(loss, TN_F16, TN_SCALAR_SHAPE, 0, 3);
    assert_int_equal(tn_backward(tn_mul_scalar(loss, tn_float(7000))), TN_OK);
    assert_tensor(tn_select(tn_grad(logs), 0, 69999), TN_F16, TN_SHAPE(1), 1e-4, -0.1);
}

static void the_likelihood_says_what_does_not_fit(void **state) {
    TN_SCOPE;
    tn_tensor *x = noise(TN_F32, TN_SHAPE(2, 3), 1), *target = of(TN_I64, TN_SHAPE(2), 0, -1);
    tn_tensor *grad = of(TN_F32, TN_SCALAR_SHAPE, 1), *total = of(TN_I64, TN_SCALAR_SHAPE, 2);
    tn_tensor *three = of(TN_I64, TN_SHAPE(3), 0, 1, 2), *out, *n;
    assert_int_equal(tn_nll_loss_forward(x, three, true, -100, &out, &n), TN_ERR_SHAPE);
    assert_error(TN_ERR_SHAPE, "tn_nll_loss_forward", "[2, 3]", "[3]", NULL);
    assert_int_equal(tn_nll_loss_forward(three, total, true, -100, &out, &n), TN_ERR_DTYPE);
    assert_error(TN_ERR_DTYPE, "i64", NULL);
    assert_fails(tn_nll_loss_backward(grad, target, total, TN_SHAPE(3, 3)), TN_ERR_SHAPE,
                 "tn_nll_loss_backward", "[3, 3]", "[2]");
    assert_fails(tn_nll_loss_backward(grad, target, total, TN_SHAPE(2, -3)), TN_ERR_SHAPE,
                 "input_size", "[2, -3]");
    assert_fails(tn_nll_loss_backward(x, target, total, TN_SHAPE(2, 3)), TN_ERR_SHAPE,
                 "grad_output", "[2, 3]");
    assert_fails(tn_nll_loss_backward(grad, target, three, TN_SHAPE(2, 3)), TN_ERR_SHAPE,
                 "total_weight", "[3]");
    tn_nll_loss_backward(grad, target, total, TN_SHAPE(2, 3));
    tn_synchronize(dev);
    assert_error(TN_ERR_INDEX_OUT_OF_RANGE, "-1", NULL);
}

static void cross_entropy_of_logits(void **state) {
    TN_SCOPE;
    tn_tensor *x = requiring_grad(of(TN_F64, TN_SHAPE(2, 3), 1, 2, 3, 1000, 0, -1000));
    tn_tensor *target = of(TN_I64, TN_SHAPE(2), 0, 1);
    double s = exp(-2) + exp(-1) + 1, first = log(s) + 2;
    tn_tensor *loss = tn_cross_entropy(x, target);
    assert_tensor(loss, TN_F64, TN_SCALAR_SHAPE, 1e-14, (first + 1000) / 2);
    assert_int_equal(tn_backward(loss), TN_OK);
    assert_tensor(tn_grad(x), TN_F64, TN_SHAPE(2, 3), 1e-14, (exp(-2) / s - 1) / 2, exp(-1) / s / 2,
                  1 / s / 2, 0.5, -0.5, 0);
    tn_tensor *one = tn_select(x, 0, 0), *class = tn_select(target, 0, 0);
    assert_tensor(tn_cross_entropy(one, class), TN_F64, TN_SCALAR_SHAPE, 1e-14, first);
    tn_tensor *half = tn_to_dtype(tn_zeros(TN_SHAPE(4096, 2), TN_F32, dev), TN_F16);
    tn_tensor *zeros = tn_zeros(TN_SHAPE(4096), TN_I64, dev);
    assert_tensor(tn_cross_entropy(half, zeros), TN_F16, TN_SCALAR_SHAPE, 1e-3, log(2));
}

/* The definition: over targets that count, the mean of -sum over c of q[c] w[c] logp[c], with q
 * smoothed, divided by the targets' weights. */
static void smoothed_targets(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F64, TN_SHAPE(3, 2), 1, 2, 0, -1, 3, 3);
    tn_tensor *target = of(TN_I64, TN_SHAPE(3), 0, 1, -100);
    tn_tensor *weight = of(TN_F64, TN_SHAPE(2), 1, 4);
    double l = log(1 + exp(1)), p[2][2] = {{-l, 1 - l}, {1 - l, -l}};
    double plain[2], weighted[2], s = 0.2;
    for (int i = 0; i < 2; i++) {
        plain[i] = -(1 - s) * p[i][i] - s / 2 * (p[i][0] + p[i][1]);
        weighted[i] = -(1 - s) * p[i][i] * (i ? 4 : 1) - s / 2 * (p[i][0] + 4 * p[i][1]);
    }
    assert_tensor(tn_cross_entropy(x, target, TN_NONE, "none", -100, s), TN_F64, TN_SHAPE(3), 1e-14,
                  plain[0], plain[1], 0);
    assert_tensor(tn_cross_entropy(x, target, TN_NONE, "mean", -100, s), TN_F64, TN_SCALAR_SHAPE,
                  1e-14, (plain[0] + plain[1]) / 2);
    assert_tensor(tn_cross_entropy(x, target, weight, "mean", -100, s), TN_F64, TN_SCALAR_SHAPE,
                  1e-14, (weighted[0] + weighted[1]) / 5);
    /* the same as probabilities of classes */
    tn_tensor *q = of(TN_F64, TN_SHAPE(2, 2), 1, 0, 0, 1), *two = tn_narrow(x, 0, 0, 2);
    assert_tensor(tn_cross_entropy(two, q, weight, "sum", -100, s), TN_F64, TN_SCALAR_SHAPE, 1e-14,
                  weighted[0] + weighted[1]);
    assert_tensor(tn_cross_entropy(two, q, weight, "mean", -100, s), TN_F64, TN_SCALAR_SHAPE, 1e-14,
                  (weighted[0] + weighted[1]) / 2);
}

static void classes_that_do_not_exist_are_refused(void **state) {
    TN_SCOPE;
    tn_tensor *x = noise(TN_F32, TN_SHAPE(2, 3), 1), *target = of(TN_I64, TN_SHAPE(2), 0, 3);
    tn_cross_entropy(x, target);
    tn_synchronize(dev);
    assert_error(TN_ERR_INDEX_OUT_OF_RANGE, "3", NULL);
    assert_fails(tn_cross_entropy(x, of(TN_I64, TN_SHAPE(3), 0, 1, 2)), TN_ERR_SHAPE,
                 "tn_cross_entropy", "[2, 3]", "[3]");
    assert_fails(tn_nll_loss(x, of(TN_F32, TN_SHAPE(2), 0, 1)), TN_ERR_DTYPE, "tn_nll_loss", "f32");
    assert_fails(tn_nll_loss(x, target, of(TN_F32, TN_SHAPE(2), 1, 1)), TN_ERR_SHAPE, "weight",
                 "[3]", "[2]");
    assert_fails(tn_nll_loss(x, target, TN_NONE, "average"), TN_ERR_INVALID_ARGUMENT, "'average'",
                 "'mean'");
    assert_fails(tn_cross_entropy(x, target, TN_NONE, "mean", -100, 1.5), TN_ERR_INVALID_ARGUMENT,
                 "label_smoothing", "1.5");
}

static void distances(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F32, TN_SHAPE(3), 1, 2, 3), *y = of(TN_F32, TN_SHAPE(3), 1, 0, 0);
    assert_tensor(tn_mse_loss(x, y), TN_F32, TN_SCALAR_SHAPE, 1e-6, 13. / 3);
    assert_tensor(tn_mse_loss(x, y, "sum"), TN_F32, TN_SCALAR_SHAPE, 0, 13);
    assert_tensor(tn_mse_loss(x, y, "none"), TN_F32, TN_SHAPE(3), 0, 0, 4, 9);
    assert_fails(tn_mse_loss(x, y, "max"), TN_ERR_INVALID_ARGUMENT, "tn_mse_loss", "'max'");
}

static void binary_cross_entropy_at_both_ends_and_in_the_middle(void **state) {
    TN_SCOPE;
    tn_tensor *x = requiring_grad(of(TN_F32, TN_SHAPE(5), 0, 200, -200, -20, 1));
    tn_tensor *target = of(TN_F32, TN_SHAPE(5), 0.25, 0, 0.5, 0, 1);
    tn_tensor *loss = tn_binary_cross_entropy_with_logits(x, target, TN_NONE, TN_NONE, "none");
    assert_tensor(loss, TN_F32, TN_SHAPE(5), 1e-6, log(2), 200, 100, 0, log1p(exp(-1)));
    double *v = values_of(loss);
    assert_true(fabs(v[3] / exp(-20) - 1) < 1e-5);
    free(v);
    assert_int_equal(tn_backward(tn_sum(loss)), TN_OK);
    assert_tensor(tn_grad(x), TN_F32, TN_SHAPE(5), 1e-6, 0.25, 1, -0.5, 0, 1 / (1 + exp(-1)) - 1);
    assert_fails(tn_binary_cross_entropy_with_logits(x, of(TN_F32, TN_SHAPE(1), 0)), TN_ERR_SHAPE,
                 "tn_binary_cross_entropy_with_logits", "[1]", "[5]");
}

/* weight times -(p t log(s) + (1 - t) log(1 - s)) with s = sigmoid(x), and its derivative by x */
static void weights_of_losses_and_of_positive_targets(void **state) {
    TN_SCOPE;
    const double x[6] = {0, 2, -3, 0.5, -40, 40}, t[6] = {0.25, 1, 0.5, 0, 1, 0.75};
    const double w[3] = {1, 2, 0.5}, p[2] = {3, 0.25};
    double loss[6], slope[6], sum = 0;
    for (int i = 0; i < 6; i++) {
        double more = p[i / 3], s = 1 / (1 + exp(-x[i]));
        double up = log1p(exp(-fabs(x[i]))) + fmax(-x[i], 0); /* -log(s) */
        loss[i] = w[i % 3] * (more * t[i] * up + (1 - t[i]) * (up + x[i]));
        slope[i] = w[i % 3] * ((1 - t[i]) * s - more * t[i] * (1 - s));
        sum += loss[i];
    }
    tn_tensor *in = requiring_grad(of_values(TN_F64, TN_SHAPE(2, 3), x, 6));
    tn_tensor *target = of_values(TN_F64, TN_SHAPE(2, 3), t, 6);
    tn_tensor *weight = of_values(TN_F64, TN_SHAPE(3), w, 3);
    tn_tensor *pos = of_values(TN_F64, TN_SHAPE(2, 1), p, 2);
    tn_tensor *y = tn_binary_cross_entropy_with_logits(in, target, weight, pos, "none");
    assert_values(y, TN_SHAPE(2, 3), 1e-14, loss);
    assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
    assert_values(tn_grad(in), TN_SHAPE(2, 3), 1e-14, slope);
    assert_tensor(tn_binary_cross_entropy_with_logits(in, target, weight, pos), TN_F64,
                  TN_SCALAR_SHAPE, 1e-14, sum / 6);
    tn_tensor *ones = tn_ones(TN_SHAPE(3), TN_F64, dev);
    assert_tensor(tn_binary_cross_entropy_with_logits(in, target, ones, ones), TN_F64,
                  TN_SCALAR_SHAPE, 1e-14,
                  (log(2) + log1p(exp(-2)) + 1.5 + log1p(exp(-3)) - 1.5 + 1.5 + 0.5 +
                   log1p(exp(-0.5)) + 40 + 10) /
                      6);
    assert_fails(
        tn_binary_cross_entropy_with_logits(in, target, tn_ones(TN_SHAPE(2, 2, 3), TN_F64, dev)),
        TN_ERR_SHAPE, "weight", "[2, 2, 3]", "[2, 3]");
    assert_fails(
        tn_binary_cross_entropy_with_logits(in, target, TN_NONE, tn_ones(TN_SHAPE(2), TN_F64, dev)),
        TN_ERR_SHAPE, "pos_weight of shape [2]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(softmax_of_any_dimension_and_dtype),
        OPS_TEST(softmax_of_large_values),
        OPS_TEST(layer_norm_over_the_last_dimensions),
        OPS_TEST(all_gradients_of_layer_norm_at_once),
        OPS_TEST(batch_norm_normalises_channels_and_remembers),
        OPS_TEST(a_batch_without_elements_changes_nothing),
        OPS_TEST(statistics_of_a_batch_stay_out_of_the_graph),
        OPS_TEST(batch_norm_says_what_it_lacks),
        OPS_TEST(the_likelihood_of_targets),
        OPS_TEST(ignored_targets_count_nothing),
        OPS_TEST(the_likelihood_and_how_many_targets_count),
        OPS_TEST(the_likelihood_is_a_kernel_each_way),
        OPS_TEST(more_targets_than_halves_count),
        OPS_TEST(the_likelihood_says_what_does_not_fit),
        OPS_TEST(cross_entropy_of_logits),
        OPS_TEST(smoothed_targets),
        OPS_TEST(classes_that_do_not_exist_are_refused),
        OPS_TEST(distances),
        OPS_TEST(binary_cross_entropy_at_both_ends_and_in_the_middle),
        OPS_TEST(weights_of_losses_and_of_positive_targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
