/* Trains a multi-layer perceptron and a small convolutional network on MNIST, on the device that
 * TENON_DEVICE names, and draws what happened. Read this file first, then model_mlp.c and train.c.
 */
#include "data.h"
#include "model.h"
#include "report.h"
#include "train.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUICK_TRAIN = 6400, QUICK_TEST_SET = 2000, N_MODELS = 2 };

typedef struct options {
    const char *data, *out, *model;
    bool quick;
    train_options training;
    uint64_t seed;
} options;

static const char *const help_text =
    "usage: mnist [options]\n"
    "\n"
    "  --data DIR          where the four IDX files are [samples/mnist/data]\n"
    "  --model NAME        mlp, cnn or both [both]\n"
    "  --epochs N          how often the training set is seen [mlp 6, cnn 2]\n"
    "  --quick             a part of the images, one epoch: a few seconds\n"
    "  --seed N            of weights, order and dropout [1]\n"
    "  --out FILE          the picture, an SVG [mnist.svg]\n"
    "  --steps-losses N    print the first N losses in full precision, and stop\n"
    "  --help              this text\n"
    "\n"
    "TENON_DEVICE chooses the device: TENON_DEVICE=npu:0 mnist\n";

static bool parse_number(const char *text, long long least, long long *out) {
    char *end;
    *out = strtoll(text, &end, 10);
    return *text && !*end && *out >= least;
}

static bool wants(const options *o, const char *name) {
    return strcmp(o->model, name) == 0 || strcmp(o->model, "both") == 0;
}

/* False, after a message, when the command line is wrong. */
static bool parse_options(options *o, int argc, char **argv) {
    static const struct option known[] = {{"data", required_argument, NULL, 'd'},
                                          {"model", required_argument, NULL, 'm'},
                                          {"epochs", required_argument, NULL, 'e'},
                                          {"quick", no_argument, NULL, 'q'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"out", required_argument, NULL, 'o'},
                                          {"steps-losses", required_argument, NULL, 'l'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        long long number = 0;
        if (strchr("esl", c) && !parse_number(optarg, c == 's' ? 0 : 1, &number)) {
            fprintf(stderr, "mnist: '%s' is not a number that fits here\n", optarg);
            return false;
        }
        switch (c) {
        case 'd':
            o->data = optarg;
            break;
        case 'm':
            o->model = optarg;
            break;
        case 'e':
            o->training.epochs = (int)number;
            break;
        case 'q':
            o->quick = true;
            break;
        case 's':
            o->seed = (uint64_t)number;
            break;
        case 'o':
            o->out = optarg;
            break;
        case 'l':
            o->training.n_printed_losses = (int)number;
            break;
        case 'h':
            fputs(help_text, stdout);
            exit(0);
        default:
            return false;
        }
    }
    if (!wants(o, "mlp") && !wants(o, "cnn")) {
        fprintf(stderr, "mnist: --model is mlp, cnn or both, not '%s'\n", o->model);
        return false;
    }
    if (optind < argc) {
        fprintf(stderr, "mnist: one word too many: '%s'\n", argv[optind]);
        return false;
    }
    return true;
}

static tn_status load_data(const options *o, tn_device device, dataset *train, dataset *test) {
    if (dataset_load(train, o->data, "train", o->quick ? QUICK_TRAIN : 0, device) != TN_OK)
        return tn_error_status();
    return dataset_load(test, o->data, "t10k", o->quick ? QUICK_TEST_SET : 0, device);
}

/* Makes, trains and tests one network. */
static tn_status run_model(tn_status (*init)(model *m, tn_device device), const options *o,
                           tn_device device, const dataset *train, const dataset *test,
                           history *out) {
    model m;
    tn_status status = init(&m, device);
    if (status == TN_OK)
        status = train_model(&m, train, test, &o->training, out);
    model_finish(&m);
    if (status == TN_OK && o->training.n_printed_losses == 0)
        printf("%s  %lld weights, %d epochs in %.1f s, %.0f images/s, %lld of %lld wrong\n",
               out->model, (long long)out->n_weights, out->n_epochs, out->seconds,
               (double)(out->n_images * out->n_epochs) / out->seconds, (long long)out->n_wrong,
               (long long)out->n_tested);
    return status;
}

static tn_status run(const options *o, history *histories, int *out_n) {
    tn_device device = tn_default_device();
    if (device.type == 0)
        return tn_error_status();
    tn_manual_seed(o->seed);
    char name[64];
    printf("device  %s  %s\n", tn_device_name(device, name, sizeof(name)),
           tn_device_product(device));

    dataset train = {0}, test = {0};
    tn_status status = load_data(o, device, &train, &test);
    if (status == TN_OK)
        printf("data    %lld images to learn from, %lld to be tested on\n", (long long)train.n,
               (long long)test.n);
    *out_n = 0;
    if (status == TN_OK && wants(o, "mlp"))
        status = run_model(model_mlp_init, o, device, &train, &test, &histories[(*out_n)++]);
    if (status == TN_OK && wants(o, "cnn"))
        status = run_model(model_cnn_init, o, device, &train, &test, &histories[(*out_n)++]);
    dataset_drop(&train);
    dataset_drop(&test);
    return status;
}

int main(int argc, char **argv) {
    options o = {.data = "samples/mnist/data",
                 .out = "mnist.svg",
                 .model = "both",
                 .seed = 1,
                 .training = {.learning_rate = 1e-3}};
    if (!parse_options(&o, argc, argv)) {
        fputs(help_text, stderr);
        return 2;
    }
    if (o.quick && o.training.epochs == 0)
        o.training.epochs = 1;

    static history histories[N_MODELS];
    int n = 0;
    if (run(&o, histories, &n) != TN_OK) {
        fprintf(stderr, "mnist: %s\n", tn_error_message());
        return 1;
    }
    if (o.training.n_printed_losses > 0)
        return 0;

    if (!report_write(o.out, histories, n)) {
        perror(o.out);
        return 1;
    }
    printf("picture %s\n", o.out);
    for (int i = 0; i < n; i++)
        printf("mnist-%s test accuracy %.4f\n", histories[i].model, histories[i].accuracy);
    return 0;
}
