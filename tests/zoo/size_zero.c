/* Forgot to fill in struct_size. */
#define ZOO_BREAK plugin.struct_size = 0;
#include "tests/zoo/good.c"
