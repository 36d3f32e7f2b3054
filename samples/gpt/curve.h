/* The picture of a training. */
#ifndef GPT_CURVE_H
#define GPT_CURVE_H

#include "train.h"

/* Draws the losses over the steps as an SVG. Says what is wrong on stderr, and is false. */
bool curve_write(const char *path, const history *h, const char *device);

#endif
