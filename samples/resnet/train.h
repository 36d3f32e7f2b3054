/* Training: stochastic gradient descent with momentum; and testing. */
#ifndef RESNET_TRAIN_H
#define RESNET_TRAIN_H

#include "checkpoint.h"
#include "data.h"
#include "model.h"

enum { MAX_POINTS = 4000 };

typedef struct train_options {
    int64_t n_steps, until; /* in all; stops when so many are done, if that is before */
    int64_t batch, side;    /* pictures in a step; their sides in pixels */
    double learning_rate;   /* the highest */
    double weight_decay, label_smoothing;
    bool one_cycle; /* up to the rate and down again; else half a cosine down from it */
    uint64_t seed;
    uint32_t n_workers;
    int64_t n_tested;   /* pictures of the test at the end */
    bool prints_losses; /* of each step in full precision, and nothing else */
} train_options;

typedef struct point {
    int64_t step;
    double value;
} point;

typedef struct history {
    point losses[MAX_POINTS], accuracies[MAX_POINTS]; /* of a batch; of some test pictures */
    int n_losses, n_accuracies;
    double seconds; /* without the tests */
    int64_t n_images;
} history;

typedef struct trainer {
    resnet *model;
    const pictures *data;
    train_options options;
    training_state state;
} trainer;

/* trainer_finish afterwards in any case. */
tn_status trainer_init(trainer *t, resnet *m, const pictures *data, const train_options *options);
void trainer_finish(trainer *t);

/* The steps from state.step to the last. Shows how it goes. */
tn_status trainer_run(trainer *t, history *out);

/* The part of the first `limit` test pictures that the network gets right; how many it saw. */
tn_status test_accuracy(resnet *m, const pictures *data, int64_t side, int64_t limit,
                        double *out_accuracy, int64_t *out_n);

#endif
