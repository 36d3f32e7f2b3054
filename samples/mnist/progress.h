/* How far the training is: one moving line on a terminal, plain lines now and then elsewhere. */
#ifndef MNIST_PROGRESS_H
#define MNIST_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    const char *name;
    int64_t n_steps;
    int n_epochs, batch;
    bool is_shown, is_terminal;
    double started, shown; /* when; monotonic seconds */
    int64_t shown_step;
} progress;

void progress_begin(progress *p, const char *name, int64_t n_steps, int n_epochs, int batch,
                    bool is_shown);
/* Step `step` is done and had this loss. */
void progress_update(progress *p, int64_t step, double loss);
/* Takes the moving line away. May be called twice. */
void progress_end(progress *p);

#endif
