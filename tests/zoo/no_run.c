/* A kernel without a function. */
#define ZOO_BREAK kernels[0].run = NULL;
#include "tests/zoo/good.c"
