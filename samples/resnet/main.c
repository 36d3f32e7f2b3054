/* Trains a ResNet-18 on pictures of 3x32x32, on the device that TENON_DEVICE names, draws how it went,
 * and tests it. Read model.c first, then data.c and train.c.
 */
#include "curve.h"
#include "options.h"

#include <stdio.h>
#include <stdlib.h>

/* Not where the output is numbers alone. */
static bool talks(const options *o) {
    return !o->training.prints_losses && o->n_logits == 0;
}

/* ---- model and data ---------------------------------------------------------------------- */

static tn_status make_model(const options *o, tn_device device, resnet *m) {
    tn_manual_seed(o->training.seed);
    tn_status status =
        o->load ? checkpoint_load(o->load, m, device) : resnet_init(m, &o->config, device);
    uint64_t n = 0;
    tn_tensor **parameters = status == TN_OK ? tn_nn_parameters(m, resnet_visit, &n) : NULL;
    if (!parameters)
        return tn_error_status();
    int64_t n_weights = 0;
    for (uint64_t i = 0; i < n; i++)
        n_weights += tn_numel(parameters[i]);
    tn_nn_parameters_free(parameters);
    if (talks(o))
        printf("model   ResNet-18, %lld channels wide, stem of %s: %lld weights\n",
               (long long)m->config.width,
               m->config.stem == STEM_IMAGENET ? "ImageNet's" : "CIFAR's", (long long)n_weights);
    if (talks(o) && m->config.n_classes != N_CLASSES)
        printf("        it knows %lld classes, and the data has %d\n",
               (long long)m->config.n_classes, N_CLASSES);
    return TN_OK;
}

static void describe(const options *o, const pictures *data) {
    printf("data    %s of %s: %lld pictures to learn from, %lld to test on\n",
           data->is_cifar ? "CIFAR-10" : "MNIST (not CIFAR-10), each as 3x32x32,", o->data,
           (long long)data->train.length, (long long)data->test.length);
}

/* ---- what is done with them -------------------------------------------------------------- */

static tn_status train_and_save(const options *o, trainer *t, history *h) {
    bool found = false;
    tn_status status =
        o->load ? checkpoint_load_training(o->load, t->model, &t->state, &found) : TN_OK;
    if (status == TN_OK && talks(o) && t->state.step >= o->training.n_steps)
        printf("        %lld steps are done already; --steps more of them trains on\n",
               (long long)t->state.step);
    if (status == TN_OK)
        status = trainer_run(t, h);
    char name[64], title[160];
    tn_device_name(tn_device_of(t->model->fc.weight), name, sizeof name);
    snprintf(title, sizeof title, "ResNet-18, %lld channels wide, on %s, computed on %s",
             (long long)t->model->config.width, t->data->is_cifar ? "CIFAR-10" : "MNIST as 3x32x32",
             name);
    if (status == TN_OK && talks(o) && h->n_losses) {
        printf("        %.1f s, %.0f images/s", h->seconds, (double)h->n_images / h->seconds);
        printf(curve_write(o->out, h, title) ? "; its curves are in %s\n" : "\n", o->out);
    }
    if (status == TN_OK && o->save)
        status = checkpoint_save(o->save, t->model, &t->state);
    return status;
}

static tn_status train(const options *o, resnet *m, const pictures *data) {
    history *h = malloc(sizeof *h);
    if (!h)
        return tn_fail(TN_ERR_OUT_OF_MEMORY, "no memory for the history");
    trainer t = {0};
    tn_status status = trainer_init(&t, m, data, &o->training);
    if (status == TN_OK)
        status = train_and_save(o, &t, h);
    trainer_finish(&t);
    free(h);
    return status;
}

static tn_status test(const options *o, resnet *m, const pictures *data) {
    double accuracy;
    int64_t n;
    tn_status status =
        test_accuracy(m, data, o->training.side, o->training.n_tested, &accuracy, &n);
    if (status == TN_OK)
        printf("resnet test accuracy %.4f of %lld pictures\n", accuracy, (long long)n);
    return status;
}

/* A line of logits for each of the first test pictures. */
static tn_status print_logits(const options *o, resnet *m, const pictures *data) {
    TN_SCOPE;
    TN_NO_GRAD;
    tn_data_loader *loader = pictures_test_loader(data, o->n_logits, o->n_logits);
    tn_data_batch batch = {.n = 0};
    tn_status status = loader ? tn_data_loader_next(loader, &batch) : tn_error_status();
    if (status == TN_OK)
        status = tn_nn_train(m, resnet_visit, false);
    int64_t n = batch.n * m->config.n_classes;
    float *values = malloc((size_t)(n + 1) * sizeof *values);
    if (status == TN_OK && !values)
        status = tn_fail(TN_ERR_OUT_OF_MEMORY, "no memory for logits");
    if (status == TN_OK) {
        tn_tensor *images = pictures_prepared(data, batch.fields[0], o->training.side);
        status = tn_to_host(resnet_forward(m, images), values, (uint64_t)n * sizeof *values);
    }
    for (int64_t i = 0; i < n && status == TN_OK; i++)
        printf("%.9g%c", (double)values[i], (i + 1) % m->config.n_classes ? ' ' : '\n');
    free(values);
    tn_data_loader_destroy(loader);
    return status;
}

static tn_status work(const options *o, resnet *m, const pictures *data) {
    if (o->n_logits)
        return print_logits(o, m, data);
    tn_status status = TN_OK;
    if (!o->only_tests && o->training.n_steps > 0)
        status = train(o, m, data);
    else if (o->save)
        status = checkpoint_save(o->save, m, NULL);
    return status == TN_OK && talks(o) ? test(o, m, data) : status;
}

/* ---- all of it --------------------------------------------------------------------------- */

static tn_status run(const options *o) {
    tn_device device = tn_default_device();
    if (device.type == 0)
        return tn_error_status();
    char name[64];
    if (talks(o))
        printf("device  %s  %s\n", tn_device_name(device, name, sizeof name),
               tn_device_product(device));
    pictures data = {.is_cifar = false};
    resnet m = {.config = {0}};
    tn_status status = pictures_open(&data, o->data, device);
    if (status == TN_OK && talks(o))
        describe(o, &data);
    if (status == TN_OK)
        status = make_model(o, device, &m);
    if (status == TN_OK)
        status = work(o, &m, &data);
    resnet_finish(&m);
    pictures_finish(&data);
    return status;
}

int main(int argc, char **argv) {
    options o;
    if (!options_parse(&o, argc, argv))
        return 2;
    tn_status status = run(&o);
    if (status != TN_OK)
        fprintf(stderr, "resnet: %s\n", tn_error_message());
    tn_shutdown();
    return status == TN_OK ? 0 : 1;
}
