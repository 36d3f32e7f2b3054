/* The rows of ../device_rows.c in libtorch. */
#include "bench/device.h"
#include "bench/peer/adamw.h"
#include "bench/peer/graph.h"
#include "bench/peer/peer.h"

#include <torch/torch.h>

static at::Tensor randn(std::vector<int64_t> shape, at::ScalarType dtype = at::kFloat) {
    return at::randn(shape, peer_device()).to(dtype);
}

/* ---- the host's part of a call ----------------------------------------------------------- */

template <typename Call> static double host_time(uint64_t n, uint64_t launches, Call call) {
    double took = 0;
    uint64_t group = BENCH_LAUNCHES / launches;
    for (uint64_t done = 0; done < n; done += group) {
        uint64_t end = n - done < group ? n : done + group;
        peer_wait();
        double start = bench_now();
        for (uint64_t i = done; i < end; i++)
            call();
        took += bench_now() - start;
    }
    peer_wait();
    return took;
}

static double launch_add(uint64_t n) {
    static at::Tensor a = randn({BENCH_ELEMENTS}), b = randn({BENCH_ELEMENTS});
    return host_time(n, 1, [] { at::add(a, b); });
}

static void chain() {
    static at::Tensor a = randn({BENCH_ELEMENTS}), b = randn({BENCH_ELEMENTS});
    at::Tensor x = a;
    for (int i = 0; i < BENCH_CHAIN; i++)
        x = at::add(x, b);
}

static double launch_chain(uint64_t n) {
    return host_time(n, BENCH_CHAIN, chain);
}

static double launch_replay(uint64_t n) {
    static peer_graph graph(chain);
    return graph.is_there() ? host_time(n, BENCH_CHAIN, [] { graph.replay(); }) : -1;
}

static double launch_copy(uint64_t n) {
    static at::Tensor a = randn({BENCH_ELEMENTS}), b = randn({BENCH_ELEMENTS});
    return host_time(n, 1, [] { a.copy_(b); });
}

static double launch_product(uint64_t n) {
    static at::Tensor a = randn({BENCH_SMALL, BENCH_SMALL});
    return host_time(n, 1, [] { at::matmul(a, a); });
}

static double launch_recording(uint64_t n) {
    static at::Tensor leaf = randn({BENCH_ELEMENTS}).set_requires_grad(true),
                      b = randn({BENCH_ELEMENTS});
    return host_time(n, 1, [] { at::add(leaf, b); });
}

static double launch_backward(uint64_t n) {
    static at::Tensor leaf = randn({1}).set_requires_grad(true), b = randn({1});
    return host_time(n, BENCH_BACKWARD, [] {
        at::mul(leaf, b).backward();
        leaf.mutable_grad().reset();
    });
}

/* ---- memory ------------------------------------------------------------------------------ */

template <typename Call> static double timed(uint64_t n, Call call) {
    at::NoGradGuard no_grad;
    peer_wait();
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        call();
    peer_wait();
    return bench_now() - start;
}

static at::Tensor square() {
    static at::Tensor t = randn({bench_side(), bench_side()});
    return t;
}

static at::Tensor other_square() {
    static at::Tensor t = randn({bench_side(), bench_side()});
    return t;
}

static double add(uint64_t n) {
    at::Tensor x = square(), y = other_square();
    return timed(n, [&] { at::add(x, y); });
}

static double relu(uint64_t n) {
    at::Tensor x = square();
    return timed(n, [&] { at::relu(x); });
}

static double copy(uint64_t n) {
    at::Tensor x = square(), y = other_square();
    return timed(n, [&] { y.copy_(x); });
}

static double transpose(uint64_t n) {
    at::Tensor x = square().t(), y = other_square();
    return timed(n, [&] { y.copy_(x); });
}

static double sum(uint64_t n) {
    at::Tensor x = square();
    return timed(n, [&] { at::sum(x); });
}

static double sum_rows(uint64_t n) {
    at::Tensor x = square();
    return timed(n, [&] { at::sum(x, 1); });
}

static double softmax(uint64_t n) {
    at::Tensor x = square();
    return timed(n, [&] { at::softmax(x, 1); });
}

static double layer_norm(uint64_t n) {
    static at::Tensor scale = randn({bench_side()}), shift = randn({bench_side()});
    at::Tensor x = square();
    return timed(n, [&] { at::layer_norm(x, {bench_side()}, scale, shift); });
}

/* The fused form, which is the fastest that PyTorch has. */
static double adamw(uint64_t n) {
    static peer_adamw optimizer({randn({bench_side(), bench_side()}).set_requires_grad(true)});
    optimizer.parameters[0].mutable_grad() = square();
    return timed(n, [] { optimizer.step(); });
}

/* ---- products and convolutions ----------------------------------------------------------- */

static const at::ScalarType f32 = at::kFloat, f16 = at::kHalf, bf16 = at::kBFloat16;

#define PRODUCT(dtype, name, m, n, k) \
    static double gemm_##dtype##_##name(uint64_t times) { \
        static at::Tensor a = randn({bench_size(m), bench_size(k)}, dtype), \
                          b = randn({bench_size(k), bench_size(n)}, dtype); \
        return timed(times, [] { at::matmul(a, b); }); \
    }
BENCH_PRODUCTS(PRODUCT)

#define CONVOLUTION(dtype, name, images, in, side, out, padding) \
    static double conv_##dtype##_##name(uint64_t times) { \
        static at::Tensor x = randn({bench_size(images), bench_size(in), bench_size(side), \
                                     bench_size(side)}, \
                                    dtype), \
                          w = randn({bench_size(out), bench_size(in), 3, 3}, dtype); \
        return timed(times, [] { \
            at::conv2d(x, w, {}, at::IntArrayRef({1, 1}), at::IntArrayRef({padding, padding})); \
        }); \
    }
BENCH_CONVOLUTIONS(CONVOLUTION)

/* ---- the table --------------------------------------------------------------------------- */

#define STREAMED_ROW(name, tensors) {"memory-" #name, #name, "ms", name, nullptr, nullptr, false},
#define PRODUCT_ROW(dtype, name, m, n, k) \
    {"gemm-" #dtype "-" #name, "at::matmul", "ms", gemm_##dtype##_##name, nullptr, nullptr, false},
#define CONVOLUTION_ROW(dtype, name, images, in, side, out, padding) \
    {"conv-" #dtype "-" #name, "at::conv2d", "ms", conv_##dtype##_##name, nullptr, nullptr, false},

const bench_row peer_device_rows[] = {
    {"launch-add", "at::add", "us", launch_add, nullptr, nullptr, false},
    {"launch-chain", "at::add, eight", "us", launch_chain, nullptr, nullptr, false},
    {"launch-replay", "the eight as a CUDA graph", "us", launch_replay, nullptr, nullptr, false},
    {"launch-copy", "at::Tensor::copy_", "us", launch_copy, nullptr, nullptr, false},
    {"launch-product", "at::matmul", "us", launch_product, nullptr, nullptr, false},
    {"launch-recording", "at::add, requires_grad", "us", launch_recording, nullptr, nullptr, false},
    {"launch-backward", "at::mul, backward()", "us", launch_backward, nullptr, nullptr, false},
    BENCH_STREAMED(STREAMED_ROW) BENCH_PRODUCTS(PRODUCT_ROW) BENCH_CONVOLUTIONS(CONVOLUTION_ROW)};
const size_t n_peer_device_rows = sizeof peer_device_rows / sizeof peer_device_rows[0];
