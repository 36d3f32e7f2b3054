/* What happened while a network was trained: the picture is drawn from it. */
#ifndef MNIST_HISTORY_H
#define MNIST_HISTORY_H

#include <stdint.h>

enum { MAX_LOSSES = 4096, MAX_ACCURACIES = 256, MAX_MISTAKES = 40, IMAGE_PIXELS = 28 * 28 };

typedef struct point {
    double seconds; /* of training, the tests left out */
    double value;
} point;

/* A test image that was taken for another digit. */
typedef struct mistake {
    uint8_t pixels[IMAGE_PIXELS];
    int label, predicted;
} mistake;

typedef struct history {
    const char *model;
    int64_t n_weights, n_images; /* of the network; trained on */
    int n_epochs;
    double seconds;

    point losses[MAX_LOSSES];
    int n_losses;
    point accuracies[MAX_ACCURACIES]; /* on a part of the test set; the last on all of it */
    int n_accuracies;

    mistake mistakes[MAX_MISTAKES]; /* the first of them */
    int n_mistakes;                 /* kept */
    int64_t n_wrong, n_tested;
    double accuracy; /* on the whole test set */
} history;

#endif
