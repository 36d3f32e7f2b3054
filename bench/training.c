/* See training.h. */
#include "bench/training.h"
#include "bench/common.h"

tn_status training_init(training *t, tn_status (*model_init)(model *, tn_device),
                        tn_device device) {
    TN_SCOPE;
    if (model_init(&t->model, device) != TN_OK)
        return tn_error_status();
    for (int i = 0; i < TRAINING_BATCHES; i++) {
        t->images[i] = tn_keep(tn_randn(TN_SHAPE(TRAINING_BATCH, 1, 28, 28), TN_F32, device));
        t->labels[i] = tn_keep(tn_randint(0, 10, TN_SHAPE(TRAINING_BATCH), TN_I64, device));
    }
    tn_adam_options options = tn_adamw_defaults();
    options.lr = 1e-6;
    t->optimizer = tn_adamw_create(t->model.parameters, (uint64_t)t->model.n_parameters, &options);
    return tn_error_status();
}

tn_status training_step(training *t, uint64_t i) {
    TN_SCOPE;
    tn_tensor *logits = t->model.forward(&t->model, t->images[i % TRAINING_BATCHES], true);
    tn_tensor *loss = tn_cross_entropy(logits, t->labels[i % TRAINING_BATCHES]);
    if (tn_backward(loss) != TN_OK || tn_optimizer_step(t->optimizer) != TN_OK)
        return tn_error_status();
    return tn_optimizer_zero_grad(t->optimizer);
}

double training_time(training *t, tn_status (*model_init)(model *, tn_device), tn_device device,
                     uint64_t n) {
    if ((!t->optimizer && training_init(t, model_init, device) != TN_OK) ||
        tn_synchronize(device) != TN_OK)
        return -1;
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        if (training_step(t, i) != TN_OK)
            return -1;
    return tn_synchronize(device) == TN_OK ? bench_now() - start : -1;
}
