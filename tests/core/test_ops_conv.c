/* Convolution and pooling against direct loops over windows. */
#include "tests/core/ops_test.h"

typedef struct config {
    int n, c, h, w, o, kernel[2], stride[2], padding[2], dilation[2], groups;
} config;

static int out_size(const config *f, int i) {
    int in = i ? f->w : f->h;
    return (in + 2 * f->padding[i] - f->dilation[i] * (f->kernel[i] - 1) - 1) / f->stride[i] + 1;
}

#define PAIR(p) TN_SHAPE((p)[0], (p)[1])

/* One term of the sum for each output, weight and input element that meet: calls visit(out, weight,
 * input) with flat indices. */
static void walk(const config *f, void (*visit)(void *, int, int, int), void *user) {
    int per = f->c / f->groups, outs = f->o / f->groups, oh = out_size(f, 0), ow = out_size(f, 1);
    for (int n = 0; n < f->n; n++)
        for (int o = 0; o < f->o; o++)
            for (int y = 0; y < oh; y++)
                for (int x = 0; x < ow; x++)
                    for (int c = 0; c < per; c++)
                        for (int i = 0; i < f->kernel[0]; i++)
                            for (int j = 0; j < f->kernel[1]; j++) {
                                int h = y * f->stride[0] + i * f->dilation[0] - f->padding[0];
                                int w = x * f->stride[1] + j * f->dilation[1] - f->padding[1];
                                if (h < 0 || h >= f->h || w < 0 || w >= f->w)
                                    continue;
                                int in = o / outs * per + c;
                                visit(user, ((n * f->o + o) * oh + y) * ow + x,
                                      ((o * per + c) * f->kernel[0] + i) * f->kernel[1] + j,
                                      ((n * f->c + in) * f->h + h) * f->w + w);
                            }
}

typedef struct terms {
    const double *a, *b;
    double *sum;
} terms;

static void add_out(void *user, int out, int weight, int input) {
    terms *t = user;
    t->sum[out] += t->a[input] * t->b[weight];
}

static void add_input(void *user, int out, int weight, int input) {
    terms *t = user;
    t->sum[input] += t->a[out] * t->b[weight];
}

static void add_weight(void *user, int out, int weight, int input) {
    terms *t = user;
    t->sum[weight] += t->a[out] * t->b[input];
}

static void assert_walk(const config *f, tn_tensor *got, tn_tensor *a, tn_tensor *b,
                        void (*visit)(void *, int, int, int), tn_tensor *start) {
    double *x = values_of(a), *y = values_of(b), *sum = values_of(start);
    walk(f, visit, &(terms){x, y, sum});
    check_tensor(got, tn_dtype_of(a), tn_sizes(start), 1e-11, sum, (uint64_t)tn_numel(start),
                 __FILE__, __LINE__);
    free(x);
    free(y);
    free(sum);
}

static void convolve(const config *f) {
    TN_SCOPE;
    tn_tensor *input = noise(TN_F64, TN_SHAPE(f->n, f->c, f->h, f->w), 1);
    tn_tensor *weight =
        noise(TN_F64, TN_SHAPE(f->o, f->c / f->groups, f->kernel[0], f->kernel[1]), 2);
    tn_tensor *bias = noise(TN_F64, TN_SHAPE(f->o), 3);
    tn_tensor *grad = noise(TN_F64, TN_SHAPE(f->n, f->o, out_size(f, 0), out_size(f, 1)), 4);
    tn_tensor *x = restrided(input), *k = restrided(weight), *g = restrided(grad);
    tn_tensor *planes = tn_reshape(bias, TN_SHAPE(f->o, 1, 1));
    assert_walk(
        f, tn_conv2d(x, k, bias, PAIR(f->stride), PAIR(f->padding), PAIR(f->dilation), f->groups),
        input, weight, add_out, tn_expand(planes, tn_sizes(grad)));
    assert_walk(f,
                tn_convolution_backward_input(g, k, tn_sizes(input), PAIR(f->stride),
                                              PAIR(f->padding), PAIR(f->dilation), f->groups),
                grad, weight, add_input, tn_zeros_like(input));
    assert_walk(f,
                tn_convolution_backward_weight(g, x, tn_sizes(weight), PAIR(f->stride),
                                               PAIR(f->padding), PAIR(f->dilation), f->groups),
                grad, input, add_weight, tn_zeros_like(weight));
}

static void convolutions_of_every_geometry(void **state) {
    static const config configs[] = {
        {1, 1, 3, 3, 1, {3, 3}, {1, 1}, {0, 0}, {1, 1}, 1},
        {2, 3, 6, 5, 4, {3, 2}, {1, 1}, {1, 0}, {1, 1}, 1},
        {2, 2, 8, 9, 3, {3, 3}, {2, 3}, {1, 2}, {1, 1}, 1},
        {1, 2, 9, 9, 2, {3, 2}, {1, 2}, {0, 3}, {2, 3}, 1},
        {2, 6, 5, 5, 4, {2, 2}, {2, 1}, {1, 1}, {1, 2}, 2},
        {3, 4, 4, 4, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 4}, /* depthwise */
        {2, 5, 4, 3, 7, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}, /* pointwise */
        {1, 1, 2, 2, 1, {2, 2}, {5, 5}, {3, 3}, {1, 1}, 1}, /* windows of padding alone */
        {1, 3, 1, 7, 2, {1, 4}, {1, 2}, {0, 1}, {1, 1}, 1},
    };
    for (unsigned i = 0; i < sizeof configs / sizeof *configs; i++)
        convolve(&configs[i]);
}

static void many_images_are_convolved_in_parts(void **state) {
    /* columns of 5 * 5 * 96 * 96 doubles: more than a bound's worth of 36 images */
    convolve(&(config){38, 1, 100, 100, 1, {5, 5}, {1, 1}, {0, 0}, {1, 1}, 1});
}

static void shorter_forms_of_convolution(void **state) {
    TN_SCOPE;
    tn_tensor *line = of(TN_F32, TN_SHAPE(1, 1, 4), 1, 2, 3, 4);
    tn_tensor *kernel = of(TN_F32, TN_SHAPE(1, 1, 2), 1, 10);
    tn_tensor *bias = of(TN_F32, TN_SHAPE(1), 0.5);
    assert_tensor(tn_conv1d(line, kernel), TN_F32, TN_SHAPE(1, 1, 3), 0, 21, 32, 43);
    assert_tensor(tn_conv1d(line, kernel, bias, TN_SHAPE(2), TN_SHAPE(1)), TN_F32,
                  TN_SHAPE(1, 1, 3), 0, 10.5, 32.5, 4.5);
    assert_tensor(
        tn_conv1d(tn_select(line, 0, 0), kernel, TN_NONE, TN_SHAPE(1), TN_SHAPE(0), TN_SHAPE(2)),
        TN_F32, TN_SHAPE(1, 2), 0, 31, 42);
    tn_tensor *image = of(TN_F32, TN_SHAPE(1, 2, 2), 1, 2, 3, 4);
    tn_tensor *square = of(TN_F32, TN_SHAPE(1, 1, 2, 2), 1, 1, 1, 1);
    assert_tensor(tn_conv2d(image, square), TN_F32, TN_SHAPE(1, 1, 1), 0, 10);
    assert_tensor(tn_conv2d(image, square, TN_NONE, TN_SHAPE(2), TN_SHAPE(1)), TN_F32,
                  TN_SHAPE(1, 2, 2), 0, 1, 2, 3, 4);
    tn_tensor *half = tn_to_dtype(square, TN_F16);
    assert_tensor(tn_conv2d(tn_to_dtype(image, TN_F16), half), TN_F16, TN_SHAPE(1, 1, 1), 0, 10);
    tn_tensor *none = tn_zeros(TN_SHAPE(0, 1, 4, 4), TN_F32, dev);
    assert_int_equal(tn_size(tn_conv2d(none, square), 3), 3);
    assert_tensor(tn_convolution_backward_weight(tn_zeros(TN_SHAPE(0, 1, 3, 3), TN_F32, dev), none,
                                                 TN_SHAPE(1, 1, 2, 2), TN_SHAPE(1, 1),
                                                 TN_SHAPE(0, 0), TN_SHAPE(1, 1), 1),
                  TN_F32, TN_SHAPE(1, 1, 2, 2), 0, 0, 0, 0, 0);
}

static void padding_by_word(void **state) {
    TN_SCOPE;
    tn_tensor *x = requiring_grad(of(TN_F64, TN_SHAPE(1, 1, 4), 1, 2, 3, 4));
    tn_tensor *w = of(TN_F64, TN_SHAPE(1, 1, 2), 1, 10), *y;
    /* of one element of padding the half rounded down comes first: none */
    y = tn_conv1d_padding(x, w, TN_NONE, TN_SHAPE(1), "same");
    assert_tensor(y, TN_F64, TN_SHAPE(1, 1, 4), 0, 21, 32, 43, 4);
    assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
    assert_tensor(tn_grad(x), TN_F64, TN_SHAPE(1, 1, 4), 0, 1, 11, 11, 11);
    assert_tensor(tn_conv1d_padding(tn_select(x, 0, 0), w, of(TN_F64, TN_SHAPE(1), 100)), TN_F64,
                  TN_SHAPE(1, 3), 0, 121, 132, 143);
    y = tn_conv1d_padding(x, w, TN_NONE, TN_SHAPE(1), "same", TN_SHAPE(3));
    assert_tensor(y, TN_F64, TN_SHAPE(1, 1, 4), 0, 30, 41, 2, 3);
    /* against the same padding in numbers, as far as it can be said so */
    tn_tensor *image = noise(TN_F32, TN_SHAPE(2, 5, 6), 1),
              *k = noise(TN_F32, TN_SHAPE(2, 2, 3, 5), 2);
    y = tn_conv2d_padding(image, k, TN_NONE, TN_SHAPE(1), "same", TN_SHAPE(2, 1));
    assert_same(y, tn_conv2d(image, k, TN_NONE, TN_SHAPE(1), TN_SHAPE(2, 2), TN_SHAPE(2, 1)));
    y = tn_conv2d_padding(image, k, TN_NONE, TN_SHAPE(2, 1));
    assert_same(y, tn_conv2d(image, k, TN_NONE, TN_SHAPE(2, 1)));
    k = noise(TN_F32, TN_SHAPE(3, 1, 4, 2), 3);
    assert_fails(tn_conv2d_padding(image, k, TN_NONE, TN_SHAPE(1), "same"), TN_ERR_SHAPE,
                 "input [1, 2, 6, 7] and weight [3, 1, 4, 2]");
    y = tn_conv2d_padding(tn_narrow(image, 0, 0, 1), k, TN_NONE, TN_SHAPE(1, 1), "same");
    assert_shape(y, 3, 5, 6);
    assert_true(tn_is_contiguous(y));
    assert_fails(tn_conv2d_padding(image, k, TN_NONE, TN_SHAPE(1, 2), "same"),
                 TN_ERR_INVALID_ARGUMENT, "tn_conv2d_padding: padding 'same'", "(1, 2)");
    assert_fails(tn_conv2d_padding(image, k, TN_NONE, TN_SHAPE(1), "full"), TN_ERR_INVALID_ARGUMENT,
                 "padding is 'full'", "'valid', 'same'");
    assert_fails(tn_conv1d_padding(image, tn_select(k, 0, 0), TN_NONE, TN_SHAPE(1, 1)),
                 TN_ERR_INVALID_ARGUMENT, "tn_conv1d: stride must be one value");
    assert_fails(tn_conv2d_padding(x, w, TN_NONE, TN_SHAPE(1), "same"), TN_ERR_SHAPE, "weight");
}

static void convolutions_that_cannot_be_say_why(void **state) {
    TN_SCOPE;
    tn_tensor *x = noise(TN_F32, TN_SHAPE(1, 4, 5, 5), 1),
              *k = noise(TN_F32, TN_SHAPE(2, 4, 3, 3), 1);
    assert_fails(tn_conv2d(x, noise(TN_F32, TN_SHAPE(2, 3, 3, 3), 1)), TN_ERR_SHAPE,
                 "tn_convolution", "[1, 4, 5, 5]", "[2, 3, 3, 3]", "input.size(1)");
    assert_fails(tn_conv2d(x, noise(TN_F32, TN_SHAPE(2, 4, 6, 3), 1)), TN_ERR_SHAPE, "6 x 3",
                 "5 x 5", "does not fit");
    assert_fails(tn_conv2d(x, k, noise(TN_F32, TN_SHAPE(3), 1)), TN_ERR_SHAPE, "bias", "[2]",
                 "[3]");
    assert_fails(tn_conv2d(x, k, TN_NONE, TN_SHAPE(0, 1)), TN_ERR_INVALID_ARGUMENT, "stride",
                 "[0, 1]");
    assert_fails(tn_conv2d(x, k, TN_NONE, TN_SHAPE(1, 2, 3)), TN_ERR_INVALID_ARGUMENT, "stride",
                 "there are 3");
    assert_fails(tn_conv2d(x, k, TN_NONE, TN_SHAPE(1), TN_SHAPE(-1)), TN_ERR_INVALID_ARGUMENT,
                 "padding");
    assert_fails(tn_conv2d(x, k, TN_NONE, TN_SHAPE(1), TN_SHAPE(0), TN_SHAPE(1), 3),
                 TN_ERR_INVALID_ARGUMENT, "2 output channels", "3 groups");
    assert_fails(tn_conv2d(tn_select(tn_select(x, 0, 0), 0, 0), k), TN_ERR_SHAPE, "tn_conv2d",
                 "[5, 5]");
    assert_fails(tn_conv2d(x, tn_to_dtype(k, TN_F64)), TN_ERR_DTYPE, "f32", "f64");
    assert_fails(tn_conv2d(tn_to_dtype(x, TN_I32), tn_to_dtype(k, TN_I32)), TN_ERR_DTYPE, "i32");
    assert_fails(tn_convolution_backward_input(x, k, tn_sizes(x), TN_SHAPE(1, 1), TN_SHAPE(0, 0),
                                               TN_SHAPE(1, 1), 1),
                 TN_ERR_SHAPE, "grad_output", "[1, 4, 5, 5]", "[1, 2, 3, 3]");
}

/* ---- pooling ----------------------------------------------------------------------------- */

/* The largest of each window and its place, from the definition. */
static void assert_max_pool(tn_tensor *x, const config *f, bool ceil_mode, int oh, int ow) {
    double *v = values_of(x), *want = calloc((size_t)(f->n * f->c * oh * ow), sizeof *want);
    double *where = calloc((size_t)(f->n * f->c * oh * ow), sizeof *where);
    int at = 0;
    for (int p = 0; p < f->n * f->c; p++)
        for (int y = 0; y < oh; y++)
            for (int z = 0; z < ow; z++, at++) {
                where[at] = -1;
                for (int i = 0; i < f->kernel[0]; i++)
                    for (int j = 0; j < f->kernel[1]; j++) {
                        int h = y * f->stride[0] + i * f->dilation[0] - f->padding[0];
                        int w = z * f->stride[1] + j * f->dilation[1] - f->padding[1];
                        if (h < 0 || h >= f->h || w < 0 || w >= f->w)
                            continue;
                        double value = v[(p * f->h + h) * f->w + w];
                        if (where[at] < 0 || value > want[at] ||
                            (isnan(value) && !isnan(want[at]))) {
                            want[at] = value;
                            where[at] = h * f->w + w;
                        }
                    }
            }
    tn_tensor *values, *indices;
    assert_int_equal(tn_max_pool2d_with_indices(restrided(x), PAIR(f->kernel), PAIR(f->stride),
                                                PAIR(f->padding), PAIR(f->dilation), ceil_mode,
                                                &values, &indices),
                     TN_OK);
    tn_ints shape = TN_SHAPE(f->n, f->c, oh, ow);
    check_tensor(values, tn_dtype_of(x), shape, 0, want, (uint64_t)at, __FILE__, __LINE__);
    check_tensor(indices, TN_I64, shape, 0, where, (uint64_t)at, __FILE__, __LINE__);
    free(v);
    free(want);
    free(where);
}

static void the_largest_of_each_window(void **state) {
    TN_SCOPE;
    config plain = {2, 3, 6, 6, 0, {2, 2}, {2, 2}, {0, 0}, {1, 1}, 1};
    tn_tensor *x = noise(TN_F32, TN_SHAPE(2, 3, 6, 6), 1);
    assert_max_pool(x, &plain, false, 3, 3);
    assert_max_pool(tn_to_dtype(tn_mul_scalar(x, tn_int(40)), TN_I8), &plain, false, 3, 3);
    assert_max_pool(tn_to_dtype(tn_mul_scalar(x, tn_int(40)), TN_I64), &plain, false, 3, 3);
    config padded = {2, 3, 6, 6, 0, {3, 2}, {2, 1}, {1, 1}, {1, 1}, 1};
    assert_max_pool(x, &padded, false, 3, 7);
    config spread = {2, 3, 6, 6, 0, {2, 3}, {1, 1}, {1, 0}, {2, 2}, 1};
    assert_max_pool(x, &spread, false, 6, 2);
    config over = {2, 3, 6, 6, 0, {3, 3}, {2, 4}, {0, 0}, {1, 1}, 1};
    assert_max_pool(x, &over, false, 2, 1);
    assert_max_pool(x, &over, true, 3, 2);
    /* ties, NaN, and windows of -inf, which are still found in the input and not around it */
    tn_tensor *odd = of(TN_F32, TN_SHAPE(1, 1, 3, 3), -INFINITY, -INFINITY, 4, -INFINITY, -INFINITY,
                        4, NAN, 1, NAN);
    config around = {1, 1, 3, 3, 0, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1};
    assert_max_pool(odd, &around, false, 4, 4);
    /* a window that is larger than the planes, with ceil_mode */
    config larger = {1, 1, 3, 3, 0, {4, 4}, {2, 2}, {0, 0}, {1, 1}, 1};
    assert_max_pool(odd, &larger, true, 1, 1);
}

static void max_pool_takes_a_single_image(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F32, TN_SHAPE(1, 2, 4), 1, 5, 2, 6, 3, 4, 8, 7), *values, *indices;
    assert_tensor(tn_max_pool2d(x, TN_SHAPE(2)), TN_F32, TN_SHAPE(1, 1, 2), 0, 5, 8);
    assert_int_equal(tn_max_pool2d_with_indices(x, TN_SHAPE(2), TN_SCALAR_SHAPE, TN_SHAPE(0),
                                                TN_SHAPE(1), false, &values, &indices),
                     TN_OK);
    assert_tensor(indices, TN_I64, TN_SHAPE(1, 1, 2), 0, 1, 6);
    tn_tensor *leaf = requiring_grad(x);
    assert_int_equal(tn_backward(tn_sum(tn_max_pool2d(leaf, TN_SHAPE(2), TN_SHAPE(1)))), TN_OK);
    assert_tensor(tn_grad(leaf), TN_F32, TN_SHAPE(1, 2, 4), 0, 0, 1, 0, 0, 0, 0, 2, 0);
    assert_fails(tn_max_pool2d(x, TN_SHAPE(2), TN_SHAPE(2), TN_SHAPE(2)), TN_ERR_INVALID_ARGUMENT,
                 "padding 2", "reach of 2");
    /* taps at -1 and 2 of a side of 2, which its neighbours would meet; a side of 3 has both windows */
    assert_fails(tn_max_pool2d(x, TN_SHAPE(2), TN_SHAPE(1), TN_SHAPE(1), TN_SHAPE(3)),
                 TN_ERR_INVALID_ARGUMENT, "dilation 3", "begins 1 before", "all 2 of it");
    assert_tensor(tn_max_pool2d(counting(TN_F32, TN_SHAPE(1, 3, 3)), TN_SHAPE(2), TN_SHAPE(1),
                                TN_SHAPE(1), TN_SHAPE(3)),
                  TN_F32, TN_SHAPE(1, 2, 2), 0, 8, 6, 2, 0);
    assert_fails(tn_max_pool2d(x, TN_SHAPE(3)), TN_ERR_SHAPE, "3 x 3", "2 x 4", "does not fit");
    assert_fails(tn_max_pool2d(tn_select(x, 0, 0), TN_SHAPE(2)), TN_ERR_SHAPE, "[2, 4]");
    assert_int_equal(
        tn_numel(tn_max_pool2d(tn_zeros(TN_SHAPE(0, 1, 4, 4), TN_F32, dev), TN_SHAPE(2))), 0);
}

static void means_of_windows_count_what_they_should(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F32, TN_SHAPE(1, 1, 3, 3), 1, 2, 3, 4, 5, 6, 7, 8, 9);
    assert_tensor(tn_avg_pool2d(x, TN_SHAPE(2), TN_SHAPE(1)), TN_F32, TN_SHAPE(1, 1, 2, 2), 0, 3, 4,
                  6, 7);
    assert_tensor(tn_avg_pool2d(x, TN_SHAPE(2), TN_SHAPE(2), TN_SHAPE(1)), TN_F32,
                  TN_SHAPE(1, 1, 2, 2), 1e-6, 0.25, 1.25, 2.75, 7);
    assert_tensor(tn_avg_pool2d(x, TN_SHAPE(2), TN_SHAPE(2), TN_SHAPE(1), false, false), TN_F32,
                  TN_SHAPE(1, 1, 2, 2), 1e-6, 1, 2.5, 5.5, 7);
    /* beyond the padding nothing counts, whatever is asked for */
    assert_tensor(tn_avg_pool2d(x, TN_SHAPE(2), TN_SHAPE(2), TN_SHAPE(0), true, true), TN_F32,
                  TN_SHAPE(1, 1, 2, 2), 1e-6, 3, 4.5, 7.5, 9);
    tn_tensor *leaf = requiring_grad(tn_select(x, 0, 0));
    tn_tensor *y = tn_avg_pool2d(leaf, TN_SHAPE(2), TN_SHAPE(2), TN_SHAPE(1), false, false);
    assert_int_equal(tn_rank(y), 3);
    assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
    assert_tensor(tn_grad(leaf), TN_F32, TN_SHAPE(1, 3, 3), 1e-6, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.5,
                  0.25, 0.25);
    assert_fails(tn_avg_pool2d(tn_to_dtype(x, TN_I32), TN_SHAPE(2)), TN_ERR_DTYPE, "tn_avg_pool2d",
                 "i32");
}

static void sums_of_windows_are_divided_as_asked(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F32, TN_SHAPE(1, 3, 3), 1, 2, 3, 4, 5, 6, 7, 8, 9), *y;
    /* what counts otherwise, padding and windows that hang over, does not matter */
    for (int i = 0; i < 2; i++) {
        y = tn_avg_pool2d(x, TN_SHAPE(2), TN_SHAPE(2), TN_SHAPE(0), true, i, 4);
        assert_tensor(y, TN_F32, TN_SHAPE(1, 2, 2), 0, 3, 2.25, 3.75, 2.25);
        y = tn_avg_pool2d(x, TN_SHAPE(2), TN_SHAPE(2), TN_SHAPE(1), false, i, -2);
        assert_tensor(y, TN_F32, TN_SHAPE(1, 2, 2), 0, -0.5, -2.5, -5.5, -14);
    }
    tn_tensor *leaf = requiring_grad(tn_unsqueeze(x, 0));
    y = tn_avg_pool2d(leaf, TN_SHAPE(2), TN_SHAPE(1), TN_SHAPE(0), false, true, 2);
    assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
    assert_tensor(tn_grad(leaf), TN_F32, TN_SHAPE(1, 1, 3, 3), 0, 0.5, 1, 0.5, 1, 2, 1, 0.5, 1,
                  0.5);
    /* 4 * 40000 is no f16, half of 4 * 30000 is */
    tn_tensor *half = tn_full(TN_SHAPE(1, 2, 2), tn_int(30000), TN_F16, dev);
    assert_tensor(tn_avg_pool2d(half, TN_SHAPE(2), TN_SCALAR_SHAPE, TN_SHAPE(0), false, true, 2),
                  TN_F16, TN_SHAPE(1, 1, 1), 0, 60000);
    assert_fails(tn_avg_pool2d(x, TN_SHAPE(2), TN_SHAPE(2), TN_SHAPE(0), false, true, 0),
                 TN_ERR_INVALID_ARGUMENT, "tn_avg_pool2d: divisor_override must not be 0");
    assert_shape(tn_avg_pool2d(tn_zeros(TN_SHAPE(0, 1, 4, 4)), TN_SHAPE(2), TN_SHAPE(2),
                               TN_SHAPE(0), false, true, 3),
                 0, 1, 2, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(convolutions_of_every_geometry),
        OPS_TEST(many_images_are_convolved_in_parts),
        OPS_TEST(shorter_forms_of_convolution),
        OPS_TEST(padding_by_word),
        OPS_TEST(convolutions_that_cannot_be_say_why),
        OPS_TEST(the_largest_of_each_window),
        OPS_TEST(max_pool_takes_a_single_image),
        OPS_TEST(means_of_windows_count_what_they_should),
        OPS_TEST(sums_of_windows_are_divided_as_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
