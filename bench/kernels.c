/* Large f32 operators, where the kernel is all that counts. */
#include "bench/tenon.h"

#include <stddef.h>

/* The result of `call`, again and again, each freed before the next. */
#define REPEAT(n, call) \
    do { \
        TN_SCOPE; \
        for (uint64_t repeat_ = 0; repeat_ < (n); repeat_++) \
            tn_free(call); \
        tn_synchronize(bench_device); \
    } while (0)

/* Kept for the whole run; made when a row first asks. */
static tn_tensor *randn(tn_tensor **slot, tn_ints shape) {
    if (!*slot)
        *slot = tn_keep(tn_randn(shape, TN_F32, bench_device));
    return *slot;
}

static double matmul(uint64_t n) {
    static tn_tensor *a, *b;
    randn(&a, TN_SHAPE(1024, 1024));
    randn(&b, TN_SHAPE(1024, 1024));
    double start = bench_now();
    REPEAT(n, tn_matmul(a, b));
    return bench_seconds(start);
}

/* The second convolution of the CNN. */
static tn_tensor *image, *weight, *bias;

static void make_convolution(void) {
    randn(&image, TN_SHAPE(64, 32, 26, 26));
    randn(&weight, TN_SHAPE(64, 32, 3, 3));
    randn(&bias, TN_SHAPE(64));
}

static double conv_forward(uint64_t n) {
    make_convolution();
    double start = bench_now();
    REPEAT(n, tn_conv2d(image, weight, bias));
    return bench_seconds(start);
}

static double conv_training(uint64_t n) {
    static tn_tensor *input, *w, *b, *gradient;
    if (!gradient) {
        make_convolution();
        input = tn_set_requires_grad(tn_keep(tn_clone(image)), true);
        w = tn_set_requires_grad(tn_keep(tn_clone(weight)), true);
        b = tn_set_requires_grad(tn_keep(tn_clone(bias)), true);
        randn(&gradient, TN_SHAPE(64, 64, 24, 24));
    }
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++) {
        TN_SCOPE;
        tn_tensor *out = tn_conv2d(input, w, b);
        tn_backward_full(&out, &gradient, 1, false, false);
        tn_set_grad(input, NULL);
        tn_set_grad(w, NULL);
        tn_set_grad(b, NULL);
    }
    tn_synchronize(bench_device);
    return bench_seconds(start);
}

/* Twelve heads of 1024 places, as a small GPT has them. */
static tn_tensor *attention_of[3];

static void make_attention(void) {
    for (int i = 0; i < 3; i++)
        randn(&attention_of[i], TN_SHAPE(1, 12, 1024, 64));
}

static double attention(uint64_t n) {
    make_attention();
    double start = bench_now();
    REPEAT(n, tn_scaled_dot_product_attention(attention_of[0], attention_of[1], attention_of[2],
                                              TN_NONE, 0, true));
    return bench_seconds(start);
}

static double attention_training(uint64_t n) {
    static tn_tensor *inputs[3], *gradient;
    if (!gradient) {
        make_attention();
        for (int i = 0; i < 3; i++)
            inputs[i] = tn_set_requires_grad(tn_keep(tn_clone(attention_of[i])), true);
        randn(&gradient, TN_SHAPE(1, 12, 1024, 64));
    }
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++) {
        TN_SCOPE;
        tn_tensor *out =
            tn_scaled_dot_product_attention(inputs[0], inputs[1], inputs[2], TN_NONE, 0, true);
        tn_backward_full(&out, &gradient, 1, false, false);
        for (int k = 0; k < 3; k++)
            tn_set_grad(inputs[k], NULL);
    }
    tn_synchronize(bench_device);
    return bench_seconds(start);
}

static tn_tensor *rows_of_1024(void) {
    static tn_tensor *x;
    return randn(&x, TN_SHAPE(4096, 1024));
}

static double softmax(uint64_t n) {
    tn_tensor *x = rows_of_1024();
    double start = bench_now();
    REPEAT(n, tn_softmax(x, 1));
    return bench_seconds(start);
}

static double layer_norm(uint64_t n) {
    static tn_tensor *scale, *shift;
    tn_tensor *x = rows_of_1024();
    randn(&scale, TN_SHAPE(1024));
    randn(&shift, TN_SHAPE(1024));
    double start = bench_now();
    REPEAT(n, tn_layer_norm(x, TN_SHAPE(1024), scale, shift));
    return bench_seconds(start);
}

static double add(uint64_t n) {
    static tn_tensor *y;
    tn_tensor *x = rows_of_1024();
    randn(&y, TN_SHAPE(4096, 1024));
    double start = bench_now();
    REPEAT(n, tn_add(x, y));
    return bench_seconds(start);
}

static double sum(uint64_t n) {
    tn_tensor *x = rows_of_1024();
    double start = bench_now();
    REPEAT(n, tn_sum_dim(x, TN_DIMS(1)));
    return bench_seconds(start);
}

/* Copies go into a tensor that exists: pages that are new cost the system, not the kernel. */
static tn_tensor *copy_target(void) {
    static tn_tensor *t;
    return randn(&t, TN_SHAPE(4096, 4096));
}

static tn_tensor *copy_source(void) {
    static tn_tensor *t;
    return randn(&t, TN_SHAPE(4096, 4096));
}

static double copies(uint64_t n, tn_tensor *source) {
    tn_tensor *target = copy_target();
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        tn_copy_(target, source);
    tn_synchronize(bench_device);
    return bench_seconds(start);
}

static double copy(uint64_t n) {
    return copies(n, copy_source());
}

static double copy_transposed(uint64_t n) {
    TN_SCOPE;
    return copies(n, tn_transpose(copy_source(), 0, 1));
}

static const bench_row rows[] = {
    {"matmul", "1024 x 1024 by 1024 x 1024", "ms", .run = matmul},
    {"conv-forward", "conv2d, [64, 32, 26, 26] by [64, 32, 3, 3]", "ms", .run = conv_forward},
    {"conv-training", "the same and its three gradients", "ms", .run = conv_training},
    {"attention", "causal attention, [1, 12, 1024, 64]", "ms", .run = attention},
    {"attention-training", "the same and its three gradients", "ms", .run = attention_training},
    {"softmax", "softmax over rows of [4096, 1024]", "ms", .run = softmax},
    {"layer-norm", "layer_norm over rows of [4096, 1024]", "ms", .run = layer_norm},
    {"add-large", "add of two [4096, 1024]", "ms", .run = add},
    {"sum-rows", "sum over rows of [4096, 1024]", "ms", .run = sum},
    {"copy", "copy of [4096, 4096]", "ms", .run = copy},
    {"copy-transposed", "copy of [4096, 4096] transposed", "ms", .run = copy_transposed},
};

int main(int argc, char **argv) {
    return bench_tenon_main("kernels", rows, sizeof rows / sizeof rows[0], argc, argv);
}
