/* ../sizes.c, row by row, by libtorch. */
#include "bench/sizes.h"
#include "bench/peer/peer.h"

#include <torch/torch.h>

static const at::ScalarType F32 = at::kFloat, BF16 = at::kBFloat16;

struct Scene {
    int size = -1;
    at::ScalarType dtype = F32;
    bool is_product = false;
    at::Tensor x, y, target, turned, mask, rows, scale, shift;
};

static Scene &with_scene(int size, at::ScalarType dtype, bool is_product) {
    static Scene now;
    if (now.size == size && now.dtype == dtype && now.is_product == is_product)
        return now;
    now = Scene();
    now.size = size, now.dtype = dtype, now.is_product = is_product;
    int64_t r = is_product ? size : BENCH_ROWS(size), c = is_product ? size : BENCH_COLUMNS(size);
    auto of = at::TensorOptions().dtype(dtype).device(peer_device());
    now.x = at::randn({r, c}, of);
    now.y = at::randn({r, c}, of);
    if (is_product)
        return now;
    now.target = at::randn({r, c}, of);
    now.turned = at::randn({c, r}, of).t();
    now.mask = at::gt(now.x, now.y);
    now.rows = at::randint(0, r, {r}, at::TensorOptions().dtype(at::kLong).device(peer_device()));
    now.scale = at::randn({c}, of);
    now.shift = at::randn({c}, of);
    return now;
}

#define RUN(name, call) \
    static double run_##name(uint64_t n, const Scene &s) { \
        at::NoGradGuard no_grad; \
        double start = bench_now(); \
        for (uint64_t i = 0; i < n; i++) \
            call; \
        peer_wait(); \
        return bench_now() - start; \
    }

RUN(add, at::add(s.x, s.y))
RUN(relu, at::relu(s.x))
RUN(exp, at::exp(s.x))
RUN(gelu, at::gelu(s.x))
RUN(where, at::where(s.mask, s.x, s.y))
RUN(copy, s.target.copy_(s.x))
RUN(convert, s.x.to(s.dtype == F32 ? BF16 : F32))
RUN(transpose, s.target.copy_(s.turned))
RUN(gather, at::index_select(s.x, 0, s.rows))
RUN(sum, at::sum(s.x))
RUN(sum_rows, at::sum(s.x, 1))
RUN(sum_columns, at::sum(s.x, 0))
RUN(argmax, at::argmax(s.x, 1))
RUN(cumsum, at::cumsum(s.x, 1))
RUN(softmax, at::softmax(s.x, 1))
RUN(layer_norm, at::layer_norm(s.x, {BENCH_COLUMNS(s.size)}, s.scale, s.shift))
RUN(matmul, at::matmul(s.x, s.y))

#define OF_SIZE(name, e, dtype) \
    static double name##_##dtype##_##e(uint64_t n) { \
        return run_##name(n, with_scene(e, dtype, false)); \
    }
#define OF_PRODUCT(name, side, dtype) \
    static double name##_##dtype##_##side(uint64_t n) { \
        return run_##name(n, with_scene(side, dtype, true)); \
    }
BENCH_SIZES(OF_SIZE)
BENCH_PRODUCTS(OF_PRODUCT)

#define ROW(name, size, dtype) \
    {#name "/" #dtype "/" #size, "", "us", name##_##dtype##_##size, nullptr, nullptr, false},
const bench_row size_rows[] = {BENCH_SIZES(ROW) BENCH_PRODUCTS(ROW)};
const size_t n_size_rows = sizeof size_rows / sizeof size_rows[0];
