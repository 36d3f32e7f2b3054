/* Training a network and testing it. */
#ifndef MNIST_TRAIN_H
#define MNIST_TRAIN_H

#include "data.h"
#include "history.h"
#include "model.h"

typedef struct train_options {
    int epochs;           /* 0: as many as the model wants */
    double learning_rate; /* falls to zero over the training */
    int n_printed_losses; /* > 0: print so many losses in full precision, and stop there */
} train_options;

/* Trains `m` on `train` and tests it on `test`; out->accuracy is the result. Shows progress. */
tn_status train_model(model *m, const dataset *train, const dataset *test,
                      const train_options *options, history *out);

#endif
