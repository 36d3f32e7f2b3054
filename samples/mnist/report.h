/* The picture of a run: one self-contained SVG. */
#ifndef MNIST_REPORT_H
#define MNIST_REPORT_H

#include "history.h"

#include <stdbool.h>

/* False, with errno set, when the file cannot be written. */
bool report_write(const char *path, const history *histories, int n);

#endif
