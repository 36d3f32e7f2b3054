/* What the command line says. */
#ifndef RESNET_OPTIONS_H
#define RESNET_OPTIONS_H

#include "train.h"

typedef struct options {
    const char *data, *out, *save, *load;
    resnet_config config; /* of a model that is made */
    train_options training;
    bool only_tests;
    int64_t n_logits; /* test pictures of which they are printed, and nothing else */
} options;

/* False, after a message, when the command line is wrong. --help prints and ends the program. */
bool options_parse(options *o, int argc, char **argv);

#endif
