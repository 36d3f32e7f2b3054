/* The training loop and the test. */
#include "train.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { N_SHOWN = 10, N_TESTS = 10, QUICK_TEST = 500, TEST_BATCH = 125, LOSS_EVERY = 5 };
static const double momentum = 0.9;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- testing ----------------------------------------------------------------------------- */

static tn_status count_right(resnet *m, const pictures *data, int64_t side, tn_data_loader *loader,
                             int64_t *out_right, int64_t *out_n) {
    *out_right = *out_n = 0;
    for (;;) {
        TN_SCOPE;
        TN_NO_GRAD;
        tn_data_batch batch;
        tn_status status = tn_data_loader_next(loader, &batch);
        if (status != TN_OK || batch.n == 0)
            return status;
        tn_tensor *logits = resnet_forward(m, pictures_prepared(data, batch.fields[0], side));
        int64_t right;
        status = tn_item_i64(tn_sum(tn_eq(tn_argmax(logits, 1), batch.fields[1])), &right);
        if (status != TN_OK)
            return status;
        *out_right += right;
        *out_n += batch.n;
    }
}

tn_status test_accuracy(resnet *m, const pictures *data, int64_t side, int64_t limit,
                        double *out_accuracy, int64_t *out_n) {
    int64_t right;
    tn_data_loader *loader = pictures_test_loader(data, TEST_BATCH, limit);
    tn_status status = loader ? tn_nn_train(m, resnet_visit, false) : tn_error_status();
    if (status == TN_OK)
        status = count_right(m, data, side, loader, &right, out_n);
    tn_data_loader_destroy(loader);
    if (status == TN_OK)
        *out_accuracy = (double)right / (double)*out_n;
    return status;
}

/* ---- steps ------------------------------------------------------------------------------- */

tn_status trainer_init(trainer *t, resnet *m, const pictures *data, const train_options *options) {
    *t = (trainer){.model = m, .data = data, .options = *options};
    t->state.loader =
        pictures_train_loader(data, options->batch, options->seed, options->n_workers);
    if (!t->state.loader)
        return tn_error_status();
    uint64_t n;
    tn_tensor **parameters = tn_nn_parameters(m, resnet_visit, &n);
    tn_sgd_options o = tn_sgd_defaults();
    o.momentum = momentum;
    o.weight_decay = options->weight_decay;
    t->state.optimizer = parameters ? tn_sgd_create(parameters, n, &o) : NULL;
    tn_nn_parameters_free(parameters);
    return t->state.optimizer ? TN_OK : tn_error_status();
}

void trainer_finish(trainer *t) {
    tn_optimizer_destroy(t->state.optimizer);
    tn_data_loader_destroy(t->state.loader);
}

static double rate_of(const train_options *o, int64_t step) {
    if (!o->one_cycle)
        return tn_lr_cosine(o->learning_rate, step, o->n_steps, 0);
    tn_one_cycle_options cycle = tn_one_cycle_defaults();
    cycle.total_steps = o->n_steps;
    return tn_lr_one_cycle(o->learning_rate, step, &cycle);
}

/* The next batch, over the end of an epoch. */
static tn_status next_batch(tn_data_loader *loader, tn_data_batch *out) {
    tn_status status = tn_data_loader_next(loader, out);
    return status == TN_OK && out->n == 0 ? tn_data_loader_next(loader, out) : status;
}

/* The loss is read, and waited for, where out_loss is not NULL. */
static tn_status train_step(trainer *t, double *out_loss) {
    TN_SCOPE;
    const train_options *o = &t->options;
    tn_optimizer *sgd = t->state.optimizer;
    tn_data_batch batch;
    tn_status status = next_batch(t->state.loader, &batch);
    if (status != TN_OK)
        return status;
    tn_tensor *images = pictures_prepared(t->data, batch.fields[0], o->side);
    tn_tensor *loss = tn_cross_entropy(resnet_forward(t->model, images), batch.fields[1], TN_NONE,
                                       "mean", -100, o->label_smoothing);
    status = tn_backward(loss); /* or what went wrong before */
    if (status == TN_OK)
        status = tn_optimizer_set_lr(sgd, rate_of(o, t->state.step));
    if (status == TN_OK)
        status = tn_optimizer_step(sgd);
    if (status == TN_OK)
        status = tn_optimizer_zero_grad(sgd);
    t->state.step++;
    if (status == TN_OK && out_loss)
        status = tn_item(loss, out_loss);
    return status;
}

/* ---- the run ----------------------------------------------------------------------------- */

static void note(point *points, int *n, int64_t step, double value) {
    if (*n < MAX_POINTS)
        points[(*n)++] = (point){step, value};
}

/* A line now and then, or one that is written over on a terminal. */
static void show(const trainer *t, const history *h, double seconds, int64_t first) {
    int64_t step = t->state.step, n_steps = t->options.n_steps;
    bool moves = isatty(STDOUT_FILENO), last = step == n_steps;
    int64_t each = n_steps / N_SHOWN > 0 ? n_steps / N_SHOWN : 1;
    if (t->options.prints_losses || h->n_losses == 0 || (!moves && !last && step % each != 0))
        return;
    tn_data_loader_state at;
    if (tn_data_loader_get_state(t->state.loader, &at) != TN_OK)
        return;
    int64_t n = tn_data_loader_samples(t->state.loader);
    printf("%sstep %lld/%lld  epoch %lld, %2lld%%  loss %.3f", moves ? "\r\033[K" : "",
           (long long)step, (long long)n_steps, (long long)at.epoch + 1,
           (long long)(100 * at.position / n), h->losses[h->n_losses - 1].value);
    if (h->n_accuracies)
        printf("  tested %.1f %% right", 100 * h->accuracies[h->n_accuracies - 1].value);
    double rate = seconds > 0 ? (double)((step - first) * t->options.batch) / seconds : 0;
    printf("  %.0f images/s%s", rate, moves && !last ? "" : "\n");
    fflush(stdout);
}

/* Tests a little, which the time of training does not count. */
static tn_status quick_test(trainer *t, history *h) {
    double accuracy;
    int64_t n, limit = t->options.n_tested < QUICK_TEST ? t->options.n_tested : QUICK_TEST;
    tn_status status = test_accuracy(t->model, t->data, t->options.side, limit, &accuracy, &n);
    if (status == TN_OK)
        note(h->accuracies, &h->n_accuracies, t->state.step, accuracy);
    return status == TN_OK ? tn_nn_train(t->model, resnet_visit, true) : status;
}

tn_status trainer_run(trainer *t, history *out) {
    const train_options *o = &t->options;
    int64_t test_every = o->n_steps / N_TESTS > 0 ? o->n_steps / N_TESTS : 1;
    int64_t first = t->state.step, last = o->until < o->n_steps ? o->until : o->n_steps;
    double paused = 0, started = now();
    *out = (history){.n_images = last > first ? (last - first) * o->batch : 0};
    tn_status status = tn_nn_train(t->model, resnet_visit, true);
    while (status == TN_OK && t->state.step < last) {
        int64_t step = t->state.step + 1;
        bool reads = o->prints_losses || step % LOSS_EVERY == 0 || step == 1 || step == last;
        double loss;
        status = train_step(t, reads ? &loss : NULL);
        if (status == TN_OK && reads)
            note(out->losses, &out->n_losses, step, loss);
        if (status == TN_OK && o->prints_losses)
            printf("resnet loss %lld %.9g\n", (long long)step, loss);
        double before = now();
        if (status == TN_OK && !o->prints_losses && (step % test_every == 0 || step == last))
            status = quick_test(t, out);
        paused += now() - before;
        if (status == TN_OK && reads)
            show(t, out, now() - started - paused, first);
    }
    if (status == TN_OK)
        status = tn_synchronize(tn_device_of(t->model->fc.weight));
    out->seconds = now() - started - paused;
    return status;
}
