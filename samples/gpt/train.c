/* The training loop. */
#include "train.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { N_SHOWN = 10, N_TESTS = 20, TEST_BATCHES = 4, LOSS_EVERY = 10 };
static const double most_norm = 1, weight_decay = 0.1;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- optimizers -------------------------------------------------------------------------- */

static tn_status make_group(trainer *t, group *g, bool matrices, double decay) {
    tn_tensor *own[GPT_MAX_PARAMETERS];
    for (int64_t i = 0; i < t->model->n_parameters; i++)
        if ((tn_rank(t->model->parameters[i]) == 2) == matrices) {
            g->which[g->n] = i;
            own[g->n++] = t->model->parameters[i];
        }
    tn_adam_options o = tn_adamw_defaults();
    o.lr = t->options.learning_rate;
    o.beta2 = 0.95;
    o.weight_decay = decay;
    g->optimizer = tn_adamw_create(own, (uint64_t)g->n, &o);
    return g->optimizer ? TN_OK : tn_error_status();
}

tn_status trainer_init(trainer *t, gpt *m, const corpus *text, const train_options *options) {
    *t = (trainer){.model = m, .text = text, .options = *options};
    m->recomputes = options->recomputes;
    tn_status status = make_group(t, &t->groups[0], true, weight_decay);
    return status == TN_OK ? make_group(t, &t->groups[1], false, 0) : status;
}

void trainer_finish(trainer *t) {
    for (int i = 0; i < CHECKPOINT_OPTIMIZERS; i++)
        tn_optimizer_destroy(t->groups[i].optimizer);
}

static double rate_of(const train_options *o, int64_t step) {
    int64_t warm = o->n_steps / 20;
    if (step < warm)
        return o->learning_rate * (double)(step + 1) / (double)warm;
    return tn_lr_cosine(o->learning_rate, step - warm, o->n_steps - warm, 0.1 * o->learning_rate);
}

/* ---- steps ------------------------------------------------------------------------------- */

/* Cross entropy of what the model says comes next. */
static tn_tensor *loss_of(const trainer *t, tn_tensor *bytes, uint64_t seed, int64_t step) {
    tn_tensor *tokens, *next;
    TN_AUTOCAST(t->options.autocast);
    if (corpus_batch(bytes, seed, step, t->options.batch, t->options.length, &tokens, &next) !=
        TN_OK)
        return NULL;
    tn_tensor *logits = tn_flatten(gpt_forward(t->model, tokens, NULL), 0, 1);
    return tn_cross_entropy(logits, tn_flatten(next));
}

static tn_status train_step(trainer *t, double *out_loss) {
    TN_SCOPE;
    tn_tensor *loss = loss_of(t, t->text->train, t->options.seed, t->step);
    tn_status status = tn_backward(loss);
    if (status == TN_OK)
        status = tn_clip_grad_norm_(t->model->parameters, (uint64_t)t->model->n_parameters,
                                    most_norm, 2, false, NULL);
    double rate = rate_of(&t->options, t->step);
    for (int i = 0; i < CHECKPOINT_OPTIMIZERS && status == TN_OK; i++) {
        tn_optimizer *o = t->groups[i].optimizer;
        status = tn_optimizer_set_lr(o, rate);
        if (status == TN_OK)
            status = tn_optimizer_step(o);
        if (status == TN_OK)
            status = tn_optimizer_zero_grad(o);
    }
    t->step++;
    if (status == TN_OK && out_loss)
        status = tn_item(loss, out_loss);
    return status;
}

/* The mean loss of the same few batches of the text that is not learnt. */
static tn_status test(const trainer *t, double *out_loss) {
    TN_NO_GRAD;
    double sum = 0;
    for (int i = 0; i < TEST_BATCHES; i++) {
        TN_SCOPE;
        double loss;
        if (tn_item(loss_of(t, t->text->rest, ~t->options.seed, i), &loss) != TN_OK)
            return tn_error_status();
        sum += loss;
    }
    *out_loss = sum / TEST_BATCHES;
    return TN_OK;
}

/* ---- the run ----------------------------------------------------------------------------- */

static void note(point *points, int *n, int64_t step, double loss) {
    if (*n < MAX_POINTS)
        points[(*n)++] = (point){step, loss};
}

/* A line now and then, or one that is written over on a terminal. */
static void show(const trainer *t, const history *h, double seconds, int64_t first) {
    bool moves = isatty(STDOUT_FILENO), last = t->step == t->options.n_steps;
    int64_t each = t->options.n_steps / N_SHOWN > 0 ? t->options.n_steps / N_SHOWN : 1;
    if (t->options.prints_losses || h->n_train == 0 || (!moves && !last && t->step % each != 0))
        return;
    double done = (double)(t->step - first), rate = seconds > 0 ? done / seconds : 0;
    printf("%sstep %lld/%lld  loss %.3f", moves ? "\r\033[K" : "", (long long)t->step,
           (long long)t->options.n_steps, h->train[h->n_train - 1].loss);
    if (h->n_test)
        printf(", on text not learnt %.3f", h->test[h->n_test - 1].loss);
    printf("  %.0f tokens/s%s", rate * (double)(t->options.batch * t->options.length),
           moves && !last ? "" : "\n");
    fflush(stdout);
}

tn_status trainer_run(trainer *t, history *out) {
    const train_options *o = &t->options;
    int64_t test_every = o->n_steps / N_TESTS > 0 ? o->n_steps / N_TESTS : 1, first = t->step;
    double paused = 0, started = now();
    int64_t last = o->until < o->n_steps ? o->until : o->n_steps;
    *out = (history){.n_tokens = (last - t->step) * o->batch * o->length};
    while (t->step < last) {
        bool reads = o->prints_losses || t->step % LOSS_EVERY == 0 || t->step + 1 == last;
        double loss;
        if (train_step(t, reads ? &loss : NULL) != TN_OK)
            return tn_error_status();
        if (reads)
            note(out->train, &out->n_train, t->step, loss);
        if (o->prints_losses)
            printf("gpt loss %lld %.9g\n", (long long)t->step, loss);
        bool tests = !o->prints_losses && (t->step % test_every == 0 || t->step == last);
        double before = now();
        if (tests && test(t, &loss) != TN_OK)
            return tn_error_status();
        if (tests)
            note(out->test, &out->n_test, t->step, loss);
        paused += now() - before;
        if (reads || tests)
            show(t, out, now() - started - paused, first);
    }
    tn_status status = tn_synchronize(tn_device_of(t->model->parameters[0]));
    out->seconds = now() - started - paused;
    return status;
}
