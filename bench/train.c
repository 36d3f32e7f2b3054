/* One training step of the networks of samples/mnist, and the memory it takes. */
#include "tenon.h"
#include "../samples/mnist/model.h"

enum { BATCH = 64, N_BATCHES = 8, STEPS_FOR_MEMORY = 10 };

/* What is measured is the step, so the batches are random, lie on the device already and take
 * turns; the learning rate is small, so that the weights stay where they are. */
typedef struct training {
    model model;
    tn_adamw *optimizer;
    tn_tensor *images[N_BATCHES], *labels[N_BATCHES];
} training;

static tn_status init(training *t, tn_status (*model_init)(model *, tn_device)) {
    TN_SCOPE;
    if (model_init(&t->model, bench_device) != TN_OK)
        return tn_error_status();
    for (int i = 0; i < N_BATCHES; i++) {
        t->images[i] = tn_keep(tn_randn(TN_SHAPE(BATCH, 1, 28, 28), TN_F32, bench_device));
        t->labels[i] = tn_keep(tn_randint(0, 10, TN_SHAPE(BATCH), TN_I64, bench_device));
    }
    tn_adamw_options options = tn_adamw_defaults();
    options.lr = 1e-6;
    t->optimizer = tn_adamw_create(t->model.parameters, (uint64_t)t->model.n_parameters, &options);
    return tn_error_status();
}

static tn_status step(training *t, uint64_t i) {
    TN_SCOPE;
    tn_tensor *logits = t->model.forward(&t->model, t->images[i % N_BATCHES], true);
    tn_tensor *loss = tn_cross_entropy(logits, t->labels[i % N_BATCHES]);
    if (tn_backward(loss) != TN_OK || tn_adamw_step(t->optimizer) != TN_OK)
        return tn_error_status();
    return tn_adamw_zero_grad(t->optimizer);
}

static double steps(training *t, tn_status (*model_init)(model *, tn_device), uint64_t n) {
    if (!t->optimizer && init(t, model_init) != TN_OK)
        return -1;
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        if (step(t, i) != TN_OK)
            return -1;
    tn_synchronize(bench_device);
    return bench_seconds(start);
}

static double step_mlp(uint64_t n) {
    static training t;
    return steps(&t, model_mlp_init, n);
}

static double step_cnn(uint64_t n) {
    static training t;
    return steps(&t, model_cnn_init, n);
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
