/* A training step of a network of samples/mnist, on random batches that lie on the device already
 * and take turns; the learning rate is small, so that the weights stay where they are. */
#ifndef TNI_BENCH_TRAINING_H
#define TNI_BENCH_TRAINING_H

#include "samples/mnist/model.h"

enum { TRAINING_BATCH = 64, TRAINING_BATCHES = 8 };

typedef struct training {
    model model;
    tn_optimizer *optimizer;
    tn_tensor *images[TRAINING_BATCHES], *labels[TRAINING_BATCHES];
} training;

tn_status training_init(training *t, tn_status (*model_init)(model *, tn_device), tn_device device);

/* Step number i. */
tn_status training_step(training *t, uint64_t i);

/* Seconds of n steps, until the device has done them, of what is made when it is first asked for; -1
 * with an error. */
double training_time(training *t, tn_status (*model_init)(model *, tn_device), tn_device device,
                     uint64_t n);

#endif
