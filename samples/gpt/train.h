/* Training: next tokens, cross entropy, AdamW. */
#ifndef GPT_TRAIN_H
#define GPT_TRAIN_H

#include "checkpoint.h"
#include "model.h"
#include "corpus.h"

enum { MAX_POINTS = 1000 };

typedef struct train_options {
    int64_t n_steps, until; /* in all; stops when so many are done, if that is before */
    int64_t batch, length;  /* pieces in a step; tokens in a piece */
    double
        learning_rate;  /* the highest: up to it in a twentieth of the steps, then half a cosine */
    uint64_t seed;      /* of the pieces */
    tn_dtype autocast;  /* what products are in; TN_DTYPE_NONE: f32 */
    bool recomputes;    /* less memory, more time */
    bool prints_losses; /* of each step in full precision, and nothing else */
} train_options;

typedef struct point {
    int64_t step;
    double loss; /* nats for each token */
} point;

typedef struct history {
    point train[MAX_POINTS], test[MAX_POINTS];
    int n_train, n_test;
    double seconds;
    int64_t n_tokens; /* seen in them */
} history;

typedef struct trainer {
    gpt *model;
    const corpus *text;
    train_options options;
    group groups[CHECKPOINT_OPTIMIZERS]; /* matrices, whose weights decay; and all else */
    int64_t step;                        /* taken already */
} trainer;

tn_status trainer_init(trainer *t, gpt *m, const corpus *text, const train_options *options);
void trainer_finish(trainer *t);

/* The steps from t->step to the last. Shows how it goes. */
tn_status trainer_run(trainer *t, history *out);

#endif
