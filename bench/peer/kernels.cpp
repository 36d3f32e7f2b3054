/* Large f32 operators of libtorch: ../kernels.c, row by row. */
#include "bench/peer/peer.h"

#include <torch/torch.h>

template <typename Call> static double repeat(uint64_t n, Call call) {
    at::NoGradGuard no_grad;
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        call();
    peer_wait();
    return bench_now() - start;
}

static double matmul(uint64_t n) {
    static at::Tensor a = at::randn({1024, 1024}, peer_device()),
                      b = at::randn({1024, 1024}, peer_device());
    return repeat(n, [] { at::matmul(a, b); });
}

static at::Tensor image() {
    static at::Tensor t = at::randn({64, 32, 26, 26}, peer_device());
    return t;
}

static at::Tensor weight() {
    static at::Tensor t = at::randn({64, 32, 3, 3}, peer_device());
    return t;
}

static at::Tensor bias() {
    static at::Tensor t = at::randn({64}, peer_device());
    return t;
}

static double conv_forward(uint64_t n) {
    at::Tensor x = image(), w = weight(), b = bias();
    return repeat(n, [&] { at::conv2d(x, w, b); });
}

static double conv_training(uint64_t n) {
    static at::Tensor input = image().clone().set_requires_grad(true);
    static at::Tensor w = weight().clone().set_requires_grad(true);
    static at::Tensor b = bias().clone().set_requires_grad(true);
    static at::Tensor gradient = at::randn({64, 64, 24, 24}, peer_device());
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++) {
        at::conv2d(input, w, b).backward(gradient);
        input.mutable_grad().reset();
        w.mutable_grad().reset();
        b.mutable_grad().reset();
    }
    peer_wait();
    return bench_now() - start;
}

static at::Tensor attend(const at::Tensor *of) {
    return at::scaled_dot_product_attention(of[0], of[1], of[2], {}, 0.0, true);
}

static at::Tensor heads() {
    return at::randn({1, 12, 1024, 64}, peer_device());
}

static double attention(uint64_t n) {
    static at::Tensor of[] = {heads(), heads(), heads()};
    return repeat(n, [&] { attend(of); });
}

static double attention_training(uint64_t n) {
    static at::Tensor of[] = {heads().set_requires_grad(true), heads().set_requires_grad(true),
                              heads().set_requires_grad(true)};
    static at::Tensor gradient = heads();
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++) {
        attend(of).backward(gradient);
        for (at::Tensor &t : of)
            t.mutable_grad().reset();
    }
    peer_wait();
    return bench_now() - start;
}

static at::Tensor rows_of_1024() {
    static at::Tensor t = at::randn({4096, 1024}, peer_device());
    return t;
}

static double softmax(uint64_t n) {
    at::Tensor x = rows_of_1024();
    return repeat(n, [&] { at::softmax(x, 1); });
}

static double layer_norm(uint64_t n) {
    static at::Tensor scale = at::randn({1024}, peer_device()),
                      shift = at::randn({1024}, peer_device());
    at::Tensor x = rows_of_1024();
    return repeat(n, [&] { at::layer_norm(x, {1024}, scale, shift); });
}

static double add(uint64_t n) {
    static at::Tensor y = at::randn({4096, 1024}, peer_device());
    at::Tensor x = rows_of_1024();
    return repeat(n, [&] { at::add(x, y); });
}

static double sum(uint64_t n) {
    at::Tensor x = rows_of_1024();
    return repeat(n, [&] { at::sum(x, 1); });
}

static double copies(uint64_t n, const at::Tensor &source) {
    static at::Tensor target = at::randn({4096, 4096}, peer_device());
    return repeat(n, [&] { target.copy_(source); });
}

static at::Tensor copy_source() {
    static at::Tensor t = at::randn({4096, 4096}, peer_device());
    return t;
}

static double copy(uint64_t n) {
    return copies(n, copy_source());
}

static double copy_transposed(uint64_t n) {
    return copies(n, copy_source().t());
}

const bench_row kernel_rows[] = {
    {"matmul", "at::matmul", "ms", matmul, nullptr, nullptr, false},
    {"conv-forward", "at::conv2d", "ms", conv_forward, nullptr, nullptr, false},
    {"conv-training", "at::conv2d, backward", "ms", conv_training, nullptr, nullptr, false},
    {"attention", "at::scaled_dot_product_attention", "ms", attention, nullptr, nullptr, false},
    {"attention-training", "at::scaled_dot_product_attention, backward", "ms", attention_training,
     nullptr, nullptr, false},
    {"softmax", "at::softmax", "ms", softmax, nullptr, nullptr, false},
    {"layer-norm", "at::layer_norm", "ms", layer_norm, nullptr, nullptr, false},
    {"add-large", "at::add", "ms", add, nullptr, nullptr, false},
    {"sum-rows", "at::sum", "ms", sum, nullptr, nullptr, false},
    {"copy", "Tensor::copy_", "ms", copy, nullptr, nullptr, false},
    {"copy-transposed", "Tensor::copy_ of a transpose", "ms", copy_transposed, nullptr, nullptr,
     false},
};
const size_t n_kernel_rows = sizeof kernel_rows / sizeof kernel_rows[0];
