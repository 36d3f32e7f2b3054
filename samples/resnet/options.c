/* The command line. */
#include "options.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const help_text =
    "usage: resnet [options]     trains a ResNet-18 on pictures of 3x32x32, and tests it\n"
    "\n"
    "  --data DIR          the binary CIFAR-10 (data_batch_1.bin ... test_batch.bin), or the four\n"
    "                      IDX files of MNIST, which are shown to it as 3x32x32 "
    "[samples/mnist/data]\n"
    "  --steps N           of training, those of a loaded checkpoint included; 0: none [300]\n"
    "  --until N           stops before them, for --save, whose file --load goes on from [steps]\n"
    "  --quick             4 channels and 20 steps: a few seconds\n"
    "  --batch N           pictures in a step [64]\n"
    "  --width N           channels behind the stem; 64 is ResNet-18's [16]\n"
    "  --stem NAME         cifar: 3x3; imagenet: 7x7 and a pool, for --side 224 [cifar]\n"
    "  --side N            pictures are resized to so many pixels [32]\n"
    "  --rate X            the highest learning rate [0.1]\n"
    "  --schedule NAME     cosine: half of one, from there to 0; one-cycle: up and down "
    "[one-cycle]\n"
    "  --weight-decay X    [0.0005]\n"
    "  --label-smoothing X [0]\n"
    "  --workers N         threads that prepare pictures; none: the program's own [1]\n"
    "  --seed N            of weights, order and changes to pictures [1]\n"
    "  --load FILE         goes on from a checkpoint, or from weights with torchvision's names\n"
    "                      (safetensors); width, stem and classes are taken\n"
    "  --save FILE         model and training, at the end, to go on from\n"
    "  --eval              no training: tests what --load loads\n"
    "  --tested N          pictures of the test at the end; 0: all [0]\n"
    "  --out FILE          the curves of the training, an SVG [resnet.svg]\n"
    "  --steps-losses      print each loss in full precision, and nothing else\n"
    "  --logits N          print what the network says of the first N test pictures, and stop\n"
    "  --help              this text\n"
    "\n"
    "TENON_DEVICE chooses the device: TENON_DEVICE=npu:0 resnet\n";

enum {
    UNTIL = 256,
    WIDTH,
    STEM,
    SIDE_OF,
    RATE,
    SCHEDULE,
    DECAY,
    SMOOTHING,
    LOAD,
    SAVE,
    EVAL,
    TESTED,
    OUT,
    LOSSES,
    LOGITS
};

static const struct option known[] = {{"data", required_argument, NULL, 'd'},
                                      {"steps", required_argument, NULL, 'n'},
                                      {"until", required_argument, NULL, UNTIL},
                                      {"quick", no_argument, NULL, 'q'},
                                      {"batch", required_argument, NULL, 'b'},
                                      {"width", required_argument, NULL, WIDTH},
                                      {"stem", required_argument, NULL, STEM},
                                      {"side", required_argument, NULL, SIDE_OF},
                                      {"rate", required_argument, NULL, RATE},
                                      {"schedule", required_argument, NULL, SCHEDULE},
                                      {"weight-decay", required_argument, NULL, DECAY},
                                      {"label-smoothing", required_argument, NULL, SMOOTHING},
                                      {"workers", required_argument, NULL, 'w'},
                                      {"seed", required_argument, NULL, 's'},
                                      {"load", required_argument, NULL, LOAD},
                                      {"save", required_argument, NULL, SAVE},
                                      {"eval", no_argument, NULL, EVAL},
                                      {"tested", required_argument, NULL, TESTED},
                                      {"out", required_argument, NULL, OUT},
                                      {"steps-losses", no_argument, NULL, LOSSES},
                                      {"logits", required_argument, NULL, LOGITS},
                                      {"help", no_argument, NULL, 'h'},
                                      {NULL, 0, NULL, 0}};

static bool whole(const char *name, const char *text, int64_t least, int64_t most, int64_t *out) {
    char *end;
    *out = strtoll(text, &end, 10);
    if (*text && !*end && *out >= least && *out <= most)
        return true;
    fprintf(stderr, "resnet: --%s is a whole number from %lld to %lld, not '%s'\n", name,
            (long long)least, (long long)most, text);
    return false;
}

static bool number(const char *name, const char *text, double most, double *out) {
    char *end;
    *out = strtod(text, &end);
    if (*text && !*end && isfinite(*out) && *out >= 0 && *out <= most)
        return true;
    fprintf(stderr, "resnet: --%s is a number from 0 to %g, not '%s'\n", name, most, text);
    return false;
}

/* Which of two names it is: *out_second. */
static bool choice(const char *name, const char *text, const char *first, const char *second,
                   bool *out_second) {
    *out_second = strcmp(text, second) == 0;
    if (*out_second || strcmp(text, first) == 0)
        return true;
    fprintf(stderr, "resnet: --%s is %s or %s, not '%s'\n", name, first, second, text);
    return false;
}

static void make_quick(options *o) {
    o->config.width = 4;
    o->training.n_steps = 20;
    o->training.batch = 32;
    o->training.n_tested = 500;
}

/* One option; false after a message. */
static bool take(options *o, int c, const char *name, const char *text) {
    const int64_t many = 1 << 20;
    train_options *t = &o->training;
    int64_t value;
    bool second;
    switch (c) {
    case 'd':
        o->data = text;
        return true;
    case 'n':
        return whole(name, text, 0, INT32_MAX, &t->n_steps);
    case UNTIL:
        return whole(name, text, 0, INT32_MAX, &t->until);
    case 'q':
        make_quick(o);
        return true;
    case 'b':
        return whole(name, text, 1, many, &t->batch);
    case WIDTH:
        return whole(name, text, 1, 4096, &o->config.width);
    case STEM:
        if (!choice(name, text, "cifar", "imagenet", &second))
            return false;
        o->config.stem = second ? STEM_IMAGENET : STEM_CIFAR;
        return true;
    case SIDE_OF:
        return whole(name, text, 8, 4096, &t->side);
    case RATE:
        return number(name, text, 1e3, &t->learning_rate);
    case SCHEDULE:
        return choice(name, text, "cosine", "one-cycle", &t->one_cycle);
    case DECAY:
        return number(name, text, 1e3, &t->weight_decay);
    case SMOOTHING:
        return number(name, text, 1, &t->label_smoothing);
    case 'w':
        if (!whole(name, text, 0, 64, &value))
            return false;
        t->n_workers = (uint32_t)value;
        return true;
    case 's':
        if (!whole(name, text, 1, INT64_MAX, &value))
            return false;
        t->seed = (uint64_t)value;
        return true;
    case LOAD:
        o->load = text;
        return true;
    case SAVE:
        o->save = text;
        return true;
    case EVAL:
        o->only_tests = true;
        return true;
    case TESTED:
        return whole(name, text, 0, INT32_MAX, &t->n_tested);
    case OUT:
        o->out = text;
        return true;
    case LOSSES:
        t->prints_losses = true;
        return true;
    case LOGITS:
        return whole(name, text, 1, 1000, &o->n_logits);
    case 'h':
        fputs(help_text, stdout);
        exit(0);
    default: /* getopt has said it */
        return false;
    }
}

bool options_parse(options *o, int argc, char **argv) {
    *o = (options){.data = "samples/mnist/data", .out = "resnet.svg"};
    o->config = (resnet_config){.width = 16, .n_classes = N_CLASSES};
    o->training = (train_options){.n_steps = 300,
                                  .until = INT32_MAX,
                                  .batch = 64,
                                  .side = SIDE,
                                  .learning_rate = 0.1,
                                  .weight_decay = 5e-4,
                                  .one_cycle = true,
                                  .seed = 1,
                                  .n_workers = 1};
    int c, which = 0;
    while ((c = getopt_long(argc, argv, "", known, &which)) != -1)
        if (!take(o, c, c == '?' ? "" : known[which].name, optarg))
            return false;
    if (optind < argc) {
        fprintf(stderr, "resnet: one word too many: '%s'\n", argv[optind]);
        return false;
    }
    if (o->only_tests && !o->load) {
        fprintf(stderr, "resnet: --eval tests what --load loads; name a file\n");
        return false;
    }
    if (o->training.n_tested == 0)
        o->training.n_tested = INT32_MAX;
    return true;
}
