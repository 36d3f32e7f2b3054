/* A kernel that accepts no dtype would never run. */
#define ZOO_BREAK kernels[1].dtypes[0] = 0;
#include "tests/zoo/good.c"
