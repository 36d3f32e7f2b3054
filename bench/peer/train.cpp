/* The training steps of ../train.c in libtorch: the same networks, loss and optimizer. */
#include "bench/peer/adamw.h"
#include "bench/peer/graph.h"
#include "bench/peer/peer.h"

#include <torch/torch.h>

#include <cmath>
#include <memory>
#include <vector>

enum { BATCH = 64, N_BATCHES = 8, STEPS_FOR_MEMORY = 10 };

using parameters = std::vector<at::Tensor>;

static void add_layer(parameters &p, std::vector<int64_t> shape, int64_t fan_in) {
    double bound = 1 / std::sqrt(double(fan_in));
    p.push_back(at::empty(shape, peer_device()).uniform_(-bound, bound).set_requires_grad(true));
    p.push_back(
        at::empty({shape[0]}, peer_device()).uniform_(-bound, bound).set_requires_grad(true));
}

struct mlp {
    static parameters make() {
        parameters p;
        add_layer(p, {256, 784}, 784);
        add_layer(p, {128, 256}, 256);
        add_layer(p, {10, 128}, 128);
        return p;
    }
    static at::Tensor forward(const parameters &p, const at::Tensor &images) {
        at::Tensor x = images.flatten(1);
        x = at::relu(at::linear(x, p[0], p[1]));
        x = at::relu(at::linear(x, p[2], p[3]));
        return at::linear(x, p[4], p[5]);
    }
};

struct cnn {
    static parameters make() {
        parameters p;
        add_layer(p, {32, 1, 3, 3}, 9);
        add_layer(p, {64, 32, 3, 3}, 32 * 9);
        add_layer(p, {128, 64 * 12 * 12}, 64 * 12 * 12);
        add_layer(p, {10, 128}, 128);
        return p;
    }
    static at::Tensor forward(const parameters &p, const at::Tensor &images) {
        at::Tensor x = at::relu(at::conv2d(images, p[0], p[1]));
        x = at::relu(at::conv2d(x, p[2], p[3]));
        x = at::max_pool2d(x, {2, 2}).flatten(1);
        x = at::dropout(x, 0.25, true);
        x = at::relu(at::linear(x, p[4], p[5]));
        x = at::dropout(x, 0.5, true);
        return at::linear(x, p[6], p[7]);
    }
};

template <typename Network> struct training {
    parameters p = Network::make();
    torch::optim::AdamW plain{p, torch::optim::AdamWOptions(1e-6)};
    peer_adamw fused{p}; /* on a GPU */
    std::vector<at::Tensor> images, labels;

    training() {
        for (int i = 0; i < N_BATCHES; i++) {
            images.push_back(at::randn({BATCH, 1, 28, 28}, peer_device()));
            labels.push_back(
                at::randint(10, {BATCH}, at::TensorOptions(peer_device()).dtype(at::kLong)));
        }
    }
    void step(uint64_t i) {
        at::Tensor logits = Network::forward(p, images[i % N_BATCHES]);
        at::cross_entropy_loss(logits, labels[i % N_BATCHES]).backward();
        if (peer_device().is_cuda())
            fused.step();
        else
            plain.step();
        fused.zero_grad();
    }
};

template <typename Network> static double steps(uint64_t n) {
    static training<Network> t;
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        t.step(i);
    peer_wait();
    return bench_now() - start;
}

/* The step as a CUDA graph. */
static double replays(uint64_t n) {
    static training<mlp> t;
    static peer_graph graph([] { t.step(0); });
    if (!graph.is_there())
        return -1;
    peer_wait();
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        graph.replay();
    peer_wait();
    return bench_now() - start;
}

template <typename Network> static double memory(uint32_t n_threads) {
    at::set_num_threads(int(n_threads));
    at::Tensor x = at::randn({64, 64});
    at::matmul(x, x);
    double before = bench_resident("VmRSS");
    steps<Network>(STEPS_FOR_MEMORY);
    return bench_resident("VmHWM") - before;
}

const bench_row train_rows[] = {
    {"mlp", "training step of the MLP", "ms", steps<mlp>, nullptr, nullptr, false},
    {"cnn", "training step of the CNN", "ms", steps<cnn>, nullptr, nullptr, false},
    {"mlp-graph", "the MLP's as a CUDA graph", "ms", replays, nullptr, nullptr, false},
    {"mlp-memory", "peak memory of training the MLP", "MiB", nullptr, nullptr, memory<mlp>, false},
    {"cnn-memory", "peak memory of training the CNN", "MiB", nullptr, nullptr, memory<cnn>, false},
};
const size_t n_train_rows = sizeof train_rows / sizeof train_rows[0];
