/* The picture of a training. */
#ifndef RESNET_CURVE_H
#define RESNET_CURVE_H

#include "train.h"

/* Draws losses and accuracies over the steps as an SVG. Says what is wrong on stderr, and is false. */
bool curve_write(const char *path, const history *h, const char *title);

#endif
