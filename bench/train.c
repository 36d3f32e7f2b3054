/* One training step of the networks of samples/mnist, and the memory it takes. */
#include "bench/tenon.h"
#include "bench/training.h"

enum { STEPS_FOR_MEMORY = 10 };

static double step_mlp(uint64_t n) {
    static training t;
    return training_time(&t, model_mlp_init, bench_device, n);
}

static double step_cnn(uint64_t n) {
    static training t;
    return training_time(&t, model_cnn_init, bench_device, n);
}

/* The most the process held while training, above what it held before there was a network. A tiny
 * operator first, so that libraries are loaded and threads started. */
static double memory(double (*run)(uint64_t), uint32_t n_threads) {
    if (!bench_tenon_start(n_threads))
        return -1;
    TN_SCOPE;
    tn_tensor *x = tn_randn(TN_SHAPE(64, 64), TN_F32, bench_device);
    tn_matmul(x, x);
    double before = bench_resident("VmRSS");
    return run(STEPS_FOR_MEMORY) < 0 ? -1 : bench_resident("VmHWM") - before;
}

static double memory_mlp(uint32_t n_threads) {
    return memory(step_mlp, n_threads);
}

static double memory_cnn(uint32_t n_threads) {
    return memory(step_cnn, n_threads);
}

static const bench_row rows[] = {
    {"mlp", "training step of the MLP, batch of 64", "ms", .run = step_mlp},
    {"cnn", "training step of the CNN, batch of 64", "ms", .run = step_cnn},
    {"mlp-memory", "peak memory of training the MLP", "MiB", .child = memory_mlp},
    {"cnn-memory", "peak memory of training the CNN", "MiB", .child = memory_cnn},
};

int main(int argc, char **argv) {
    return bench_tenon_main("train", rows, sizeof rows / sizeof rows[0], argc, argv);
}
