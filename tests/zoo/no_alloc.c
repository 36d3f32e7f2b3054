/* Leaves a required slot empty. */
#define ZOO_BREAK memory_ops.alloc = NULL;
#include "tests/zoo/good.c"
