/* A network: its parameters and how an image runs through it. model_mlp.c and model_cnn.c each
 * define one. */
#ifndef MNIST_MODEL_H
#define MNIST_MODEL_H

#include <tenon/tenon.h>

enum { MAX_PARAMETERS = 8 };

typedef struct model model;
struct model {
    const char *name;
    int epochs; /* how often it sees the training set, where the user does not say */
    tn_tensor *parameters[MAX_PARAMETERS];
    int n_parameters;

    /* images [n, 1, 28, 28] to logits [n, 10] */
    tn_tensor *(*forward)(const model *m, tn_tensor *images, bool training);
};

/* Fill in a model with fresh random weights on the device. */
tn_status model_mlp_init(model *m, tn_device device);
tn_status model_cnn_init(model *m, tn_device device);

/* Drops the parameters. */
void model_finish(model *m);

/* For their authors: adds a parameter, uniform in [-1/sqrt(fan_in), 1/sqrt(fan_in)]. */
tn_status model_add(model *m, tn_ints shape, int64_t fan_in, tn_device device);
int64_t model_n_weights(const model *m);

#endif
