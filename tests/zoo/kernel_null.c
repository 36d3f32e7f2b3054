/* A hole in the list of kernels. */
#define ZOO_BREAK kernel_list[1] = NULL;
#include "tests/zoo/good.c"
