/* Brings a kernel for an operator of the future: skipped and counted. */
#define ZOO_BREAK \
    kernels[1].op = "entangle"; \
    kernels[1].schema_hash = 1;
#include "tests/zoo/good.c"
