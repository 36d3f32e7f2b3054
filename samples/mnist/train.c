/* The training loop and the test. */
#include "train.h"

#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    BATCH = 64,
    TEST_BATCH = 250,
    LOSS_EVERY = 10,    /* steps; reading a loss waits for the device */
    N_QUICK_TESTS = 12, /* over the training, for the curve */
    QUICK_TEST = 1000   /* images of such a test */
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- testing ----------------------------------------------------------------------------- */

static void note_mistake(history *h, const uint8_t *pixels, int label, int predicted) {
    h->n_wrong++;
    if (h->n_mistakes == MAX_MISTAKES)
        return;
    mistake *m = &h->mistakes[h->n_mistakes++];
    for (int i = 0; i < IMAGE_PIXELS; i++)
        m->pixels[i] = pixels[i];
    m->label = label;
    m->predicted = predicted;
}

/* What the network takes the images start .. start + n) for, and what they are. */
static tn_status predict(const model *m, const dataset *set, int64_t start, int64_t n,
                         int64_t *out_predicted, int64_t *out_labels) {
    TN_SCOPE;
    TN_NO_GRAD;
    tn_tensor *images, *labels;
    dataset_batch(set, NULL, start, n, &images, &labels);
    tn_tensor *predicted = tn_argmax(m->forward(m, images, false), 1);

    uint64_t bytes = (uint64_t)n * sizeof(int64_t);
    if (tn_to_host(predicted, out_predicted, bytes) != TN_OK)
        return tn_error_status();
    return tn_to_host(labels, out_labels, bytes);
}

static tn_status image_pixels(const dataset *set, int64_t i, uint8_t *out) {
    TN_SCOPE;
    return tn_to_host(tn_select(set->images, 0, i), out, IMAGE_PIXELS);
}

/* The part of the first n_images that the network gets right; wrong ones go into `wrong` if it is
 * not NULL. */
static tn_status test_model(const model *m, const dataset *set, int64_t n_images, history *wrong,
                            double *out_accuracy) {
    int64_t predicted[TEST_BATCH], labels[TEST_BATCH], n_right = 0;
    for (int64_t start = 0; start < n_images; start += TEST_BATCH) {
        int64_t n = start + TEST_BATCH < n_images ? TEST_BATCH : n_images - start;
        if (predict(m, set, start, n, predicted, labels) != TN_OK)
            return tn_error_status();
        for (int64_t i = 0; i < n; i++) {
            n_right += predicted[i] == labels[i];
            if (predicted[i] == labels[i] || !wrong)
                continue;
            uint8_t pixels[IMAGE_PIXELS];
            if (image_pixels(set, start + i, pixels) != TN_OK)
                return tn_error_status();
            note_mistake(wrong, pixels, (int)labels[i], (int)predicted[i]);
        }
    }
    *out_accuracy = n_images > 0 ? (double)n_right / (double)n_images : 0;
    return TN_OK;
}

/* ---- training ---------------------------------------------------------------------------- */

typedef struct run {
    model *model;
    const dataset *train, *test;
    const train_options *options;
    tn_optimizer *optimizer;
    tn_tensor *order; /* of this epoch */
    history *history;
    progress progress;
    int64_t n_steps, steps_per_epoch;
    double started, paused; /* seconds; spent testing */
} run;

static double trained_seconds(const run *r) {
    return now() - r->started - r->paused;
}

static void note_loss(run *r, int64_t step, double loss) {
    history *h = r->history;
    if (r->options->n_printed_losses > 0)
        printf("mnist-%s loss %lld %.9g\n", r->model->name, (long long)step + 1, loss);
    if (h->n_losses < MAX_LOSSES)
        h->losses[h->n_losses++] = (point){trained_seconds(r), loss};
}

/* One step: forward, backward, update. Everything made on the way dies with the scope. */
static tn_status train_step(run *r, int64_t step) {
    TN_SCOPE;
    tn_tensor *images, *labels;
    dataset_batch(r->train, r->order, step % r->steps_per_epoch * BATCH, BATCH, &images, &labels);

    tn_tensor *loss = tn_cross_entropy(r->model->forward(r->model, images, true), labels);
    if (tn_backward(loss) != TN_OK)
        return tn_error_status(); /* of whatever went wrong above, too */

    double rate = r->options->learning_rate * (1 - (double)step / (double)r->n_steps);
    tn_optimizer_set_lr(r->optimizer, rate);
    if (tn_optimizer_step(r->optimizer) != TN_OK || tn_optimizer_zero_grad(r->optimizer) != TN_OK)
        return tn_error_status();

    if (step % LOSS_EVERY == 0 || r->options->n_printed_losses > 0) {
        double value;
        if (tn_item(loss, &value) != TN_OK)
            return tn_error_status();
        note_loss(r, step, value);
        progress_update(&r->progress, step, value);
    }
    return TN_OK;
}

/* A new order of the images for a new epoch. */
static tn_status shuffle(run *r) {
    TN_SCOPE;
    tn_drop(r->order);
    r->order = tn_keep(dataset_shuffled(r->train));
    return r->order ? TN_OK : tn_error_status();
}

/* A point of the accuracy curve, not counted as training time. */
static tn_status quick_test(run *r) {
    history *h = r->history;
    double accuracy, before = now(), at = trained_seconds(r);
    int64_t n = r->test->n < QUICK_TEST ? r->test->n : QUICK_TEST;
    if (test_model(r->model, r->test, n, NULL, &accuracy) != TN_OK)
        return tn_error_status();
    if (h->n_accuracies < MAX_ACCURACIES)
        h->accuracies[h->n_accuracies++] = (point){at, accuracy};
    r->paused += now() - before;
    return TN_OK;
}

static tn_status train_steps(run *r) {
    int64_t test_every = r->n_steps / N_QUICK_TESTS > 0 ? r->n_steps / N_QUICK_TESTS : 1;
    int64_t stop = r->n_steps;
    bool draws_curve = r->options->n_printed_losses == 0;
    if (!draws_curve && r->options->n_printed_losses < stop)
        stop = r->options->n_printed_losses;

    for (int64_t step = 0; step < stop; step++) {
        if (step % r->steps_per_epoch == 0 && shuffle(r) != TN_OK)
            return tn_error_status();
        if (train_step(r, step) != TN_OK)
            return tn_error_status();
        if (draws_curve && step % test_every == test_every / 2 && quick_test(r) != TN_OK)
            return tn_error_status();
    }
    return TN_OK;
}

static tn_status train_and_test(run *r) {
    history *h = r->history;
    if (train_steps(r) != TN_OK || tn_synchronize(tn_device_of(r->train->images)) != TN_OK)
        return tn_error_status();
    h->seconds = trained_seconds(r);
    progress_end(&r->progress);
    if (r->options->n_printed_losses > 0)
        return TN_OK;

    if (test_model(r->model, r->test, r->test->n, h, &h->accuracy) != TN_OK)
        return tn_error_status();
    h->n_tested = r->test->n;
    if (h->n_accuracies < MAX_ACCURACIES)
        h->accuracies[h->n_accuracies++] = (point){h->seconds, h->accuracy};
    return TN_OK;
}

tn_status train_model(model *m, const dataset *train, const dataset *test,
                      const train_options *options, history *out) {
    *out = (history){.model = m->name,
                     .n_weights = model_n_weights(m),
                     .n_images = train->n,
                     .n_epochs = options->epochs > 0 ? options->epochs : m->epochs};
    run r = {.model = m, .train = train, .test = test, .options = options, .history = out};
    r.steps_per_epoch = (train->n + BATCH - 1) / BATCH;
    r.n_steps = r.steps_per_epoch * out->n_epochs;

    tn_adam_options adamw = tn_adamw_defaults();
    adamw.lr = options->learning_rate;
    r.optimizer = tn_adamw_create(m->parameters, (uint64_t)m->n_parameters, &adamw);
    if (!r.optimizer)
        return tn_error_status();

    r.started = now();
    progress_begin(&r.progress, m->name, r.n_steps, out->n_epochs, BATCH,
                   options->n_printed_losses == 0);
    tn_status status = train_and_test(&r);
    progress_end(&r.progress);

    tn_optimizer_destroy(r.optimizer);
    tn_drop(r.order);
    return status;
}
